"""The examples run, each at a smoke size in a folder of its own."""

import io
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest

from tests.sweeps import slow_but

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[2]
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Done:
    """How an example ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


def in_a_process(name: str, folder: Path, *arguments: str) -> Done:
    """Run an example in `folder`, at a smoke size, as users do."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py"), "--smoke", *arguments],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def in_this_process(name: str, folder: Path, *arguments: str) -> Done:
    """The same without the seconds that a new process takes to import everything."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    optuna = sys.modules.get("optuna")
    verbosity = optuna.logging.get_verbosity() if optuna else None
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err), catch_warnings():
        simplefilter("ignore")  # not errors, as users have it
        patch.chdir(folder)
        patch.setattr(sys, "argv", [name, "--smoke", *arguments])
        try:
            runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
        except SystemExit as end:
            status = int(end.code or 0)
    if optuna and verbosity is not None:
        optuna.logging.set_verbosity(verbosity)
    return Done(status, out.getvalue(), err.getvalue())


@pytest.fixture(params=slow_but({in_this_process}, [in_this_process, in_a_process]))
def run(request: pytest.FixtureRequest) -> Run:
    runs: Run = request.param
    return runs


def output_of(run: Run, name: str, folder: Path, *arguments: str) -> str:
    """What an example printed; it ended well and left its picture in `out`."""
    done = run(name, folder, *arguments)
    assert done.returncode == 0, done.stderr
    assert (folder / "out" / f"{name}.png").read_bytes().startswith(PNG)
    return done.stdout


def number_after(label: str, text: str) -> float:
    """The first number behind a label."""
    found = re.search(re.escape(label) + r"\D*?(-?\d[\d,]*\.?\d*)", text)
    assert found is not None, f"{label!r} is not in:\n{text}"
    return float(found[1].replace(",", ""))


def test_tune_svm_reports_recommendation_and_both_searches_on_fresh_splits(run: Run, tmp_path: Path) -> None:
    out = output_of(run, "tune_svm", tmp_path, "--trials", "16")
    assert "BKB, 16 trials" in out
    for label in ("posterior accuracy", "best observed", "BKB's recommendation", "random search's best"):
        assert 0.0 < number_after(label, out) <= 1.0
    assert re.search(r"posterior accuracy +0\.\d+ \+- 0\.\d+ \(2 sd\)", out)
    assert re.search(r"difference +-?0\.\d+ \+- 0\.\d+", out)


def test_two_objectives_measures_both_fronts_again(run: Run, tmp_path: Path) -> None:
    out = output_of(run, "two_objectives", tmp_path)
    assert re.search(r"^\d+ recommended settings, some of them measured again on 2 fresh splits:$", out, re.M)
    assert re.search(r"^ +[\d.]+ ± [\d.]+ +[\d.]+ % +\d+ +n_estimators=\d+, max_depth=\d+, ", out, re.M)
    assert re.search(r"^-?[\d.]+ for the observed front, -?[\d.]+ for the recommended one$", out, re.M)
    assert (tmp_path / "out" / "two_objectives.png").read_bytes().startswith(PNG)


def test_plates_come_back_as_tables_and_their_limits_change(run: Run, tmp_path: Path) -> None:
    out = output_of(run, "plates", tmp_path)
    assert re.search(r"^plate 1: \d+ of 24 wells are within the limits viscosity <= 20$", out, re.M)
    assert re.search(r"^plate 2: \d+ of 48 wells are within the limits viscosity <= 12, gloss >= 0.6$", out, re.M)
    assert re.search(r"^ +[-\d.]+ ± [\d.]+( +-?[\d.]+){5}  resin [\d.]+, hardener ", out, re.M)
    assert re.search(r"^\d+ of \d+ are truly within the limits, \d+ gel$", out, re.M)
    assert (tmp_path / "out" / "plates.png").read_bytes().startswith(PNG)


@pytest.mark.slow
def test_tune_svm_shows_a_progress_bar_on_standard_error(run: Run, tmp_path: Path) -> None:
    done = run("tune_svm", tmp_path, "--trials", "12")
    assert "12/12" in done.stderr
    assert "12/12" not in done.stdout


@pytest.mark.slow
def test_tune_svm_repeats_itself_with_the_same_seed(run: Run, tmp_path: Path) -> None:
    def run_in(name: str) -> str:
        folder = tmp_path / name
        folder.mkdir()
        return output_of(run, "tune_svm", folder, "--trials", "14", "--seed", "3")

    assert run_in("a") == run_in("b")


def test_screen_pool_finds_more_bundled_hits_than_chance(run: Run, tmp_path: Path) -> None:
    out = output_of(run, "screen_pool", tmp_path, "--trials", "150")
    assert "150 of 1797 rows measured" in out
    assert "183 rows" in out  # the threes among scikit-learn's digits
    # The expectation of random screening is 15 threes, its standard deviation 3.5.
    assert number_after("found", out) > number_after("random screening", out) + 2 * 3.5


def test_screen_pool_never_measures_more_rows_than_there_are(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "cadata.npz", X=rng.random((40, 8), dtype=np.float32), y=rng.random(40, dtype=np.float32) * 1e5)
    out = output_of(run, "screen_pool", tmp_path, "--data", str(tmp_path), "--trials", "1000")
    assert "40 of 40 rows measured" in out
    assert number_after("found", out) == 1


def test_screen_pool_says_which_file_is_missing(run: Run, tmp_path: Path) -> None:
    done = run("screen_pool", tmp_path, "--data", str(tmp_path))
    assert done.returncode == 2
    assert "cadata.npz" in done.stderr


@pytest.mark.slow
def test_variance_starvation_shows_calibrated_and_starved_widths(run: Run, tmp_path: Path) -> None:
    out = output_of(run, "variance_starvation", tmp_path)
    # Far from all data an honest posterior is the prior, whose deviation is 1; the table has four digits.
    for name in ("exact GP", "BKB (DTC)", "uniform points, DTC"):
        assert number_after(name, out) == pytest.approx(1.0, abs=1e-3)
    for name in ("BKB's points, SoR", "uniform points, SoR"):
        assert number_after(name, out) < 0.01


def test_optuna_sampler_measures_both_answers_on_kept_rows(run: Run, tmp_path: Path) -> None:
    out = output_of(run, "optuna_sampler", tmp_path, "--trials", "16")
    assert "BKB, 16 trials" in out
    assert "TPE, 16 trials" in out
    for label in ("posterior error", "best observed error", "the average trial's", "BKB's answer", "TPE's answer"):
        assert 0.0 < number_after(label, out) < 0.5
    assert re.search(r"posterior error +0\.\d+ \+- 0\.\d+ \(2 sd\)", out)
    assert re.search(r"difference +-?0\.\d+ \+- 0\.\d+", out)


@pytest.mark.slow
def test_optuna_sampler_reads_the_folder_and_says_which_file_is_missing(run: Run, tmp_path: Path) -> None:
    missing = run("optuna_sampler", tmp_path, "--data", str(tmp_path))
    assert missing.returncode == 2
    assert "codrna.npz" in missing.stderr
    rng = np.random.default_rng(0)
    X = rng.random((20_700, 8), dtype=np.float32)
    np.savez(tmp_path / "codrna.npz", X=X, y=np.where(X[:, 0] + 0.2 * rng.standard_normal(len(X)) > 0.5, 1.0, -1.0))
    out = output_of(run, "optuna_sampler", tmp_path, "--data", str(tmp_path), "--trials", "12")
    assert "cod-RNA: trials train on 300 rows and test on 300" in out
    assert "tested on 20,000 rows kept from the searches" in out


def test_botorch_model_reports_every_round_and_the_answer_without_noise(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("botorch")
    done = run("botorch_model", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "botorch_model.png").read_bytes().startswith(PNG)
    out = done.stdout
    assert "60 past observations, noise sd 0.1; the best value is 3.322" in out
    batches = re.findall(r"round (\d): batch ((?:-?\d\.\d{3} ){3}-?\d\.\d{3}); answer (-?\d\.\d{3})", out)
    assert [number for number, _, _ in batches] == ["1", "2"]
    # The answer is a point that was evaluated, and no value without noise lies above the function's best.
    assert all(float(answer) <= 3.323 for _, _, answer in batches)
    assert number_after("inducing points for", out) == 68
    assert number_after("random points:", out) > 60.0
    assert "2/2" in done.stderr


@pytest.mark.slow
def test_a_library_is_screened_on_workers_that_have_its_parts(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    done = in_a_process("screen_dask", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3,000 rows in 5 parts: 24 evaluated" in done.stdout
    (better,) = re.findall(r"^recommended row \d+: (\d+) rows of the library are better$", done.stdout, re.MULTILINE)
    assert int(better) < 300  # of random ones the best of 24 leaves more than 300 in one run of twelve


@pytest.mark.parametrize(
    ("way", "package", "n_runs"),
    [
        pytest.param("executor", "concurrent", 1, marks=pytest.mark.slow),
        pytest.param("dask", "distributed", 1, marks=pytest.mark.slow),
        pytest.param("optuna", "optuna", 1, marks=pytest.mark.slow),
        ("libensemble", "libensemble", 1),
        ("ray", "ray", 2),
    ],
)
def test_parallel_runs_report_time_and_cost(way: str, package: str, n_runs: int, tmp_path: Path) -> None:
    pytest.importorskip(package)
    done = in_a_process(f"parallel_{way}", tmp_path)
    assert done.returncode == 0, done.stderr
    # Workers may each be in the middle of a trial when the last one that was wanted ends.
    took = re.findall(r"^1[45] trials of 0.02 s each on 2 workers took \d+\.\d s$", done.stdout, re.MULTILINE)
    found = re.findall(r"^reorder at (\d+), order (\d+): (\d+\.\d\d) a day$", done.stdout, re.MULTILINE)
    assert len(took) == len(found) == n_runs
    for reorder_at, order, cost in found:
        assert 0 <= int(reorder_at) <= 120
        assert 10 <= int(order) <= 250
        assert 7.0 < float(cost) < 100.0  # the square-root rule for orders gives more than 7 without any chance


def test_the_readme_of_the_folder_lists_every_example() -> None:
    named = set(re.findall(r"`(\w+\.py)`", (ROOT / "examples" / "README.md").read_text()))
    assert named == {path.name for path in (ROOT / "examples").glob("*.py")}
