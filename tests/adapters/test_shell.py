"""The command-line tool does what the API does, one JSON object a line, and says on one line what went wrong."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import bkbopt as bo
from bkbopt.adapters import shell as cli
from bkbopt.errors import ArgumentError, ArgumentTypeError

fcntl = pytest.importorskip("fcntl", reason="the locks of these tests are those of POSIX")

ROOT = Path(__file__).resolve().parents[2]
SPACE = """
direction = "maximize"
seed = 3
n_startup_trials = 6

[space]
rate = { type = "float", low = 1e-3, high = 1.0, log = true }
width = { type = "int", low = 16, high = 64, step = 16 }
kind = ["fast", "slow"]
level = { type = "categorical", choices = [1, 2.5, true] }
threads = 4
"""
IN_PYTHON = {
    "rate": bo.Float(1e-3, 1.0, log=True),
    "width": bo.Int(16, 64, step=16),
    "kind": ["fast", "slow"],
    "level": [1, 2.5, True],
    "threads": 4,
}


@pytest.fixture
def state(tmp_path: Path) -> str:
    """A new state file."""
    (tmp_path / "space.toml").write_text(SPACE)
    assert cli.main(["init", str(tmp_path / "space.toml"), str(tmp_path / "state")]) == 0
    return str(tmp_path / "state")


def value(params: dict[str, Any]) -> float:
    return float(-((params["rate"] - 0.1) ** 2) - params["width"] / 640 - (params["kind"] == "slow"))


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    """What a command that succeeds prints, one object a line."""
    capsys.readouterr()
    status = cli.main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line on standard error of a command that fails; standard output stays empty."""
    capsys.readouterr()
    try:
        status = cli.main([str(a) for a in arguments])
    except SystemExit as stop:
        status = int(stop.code or 0)
    out, err = capsys.readouterr()
    assert status in (1, 2)
    assert out == ""
    assert err.startswith("bkbopt: error: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    return err


def process(*arguments: object) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "bkbopt.adapters.shell", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# -- what it does ------------------------------------------------------------------------------------------------------


def test_25_tells_are_those_of_the_api_with_the_same_seed(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    opt = bo.Optimizer(IN_PYTHON, direction="maximize", seed=3, n_startup_trials=6)
    for _ in range(25):
        trial = opt.ask()
        (asked,) = call(capsys, "ask", state)
        assert asked == {"id": trial.id, "params": dict(trial.params)}
        y = value(asked["params"])
        opt.tell(trial, y)
        (told,) = call(capsys, "tell", state, asked["id"], repr(y))
        assert told == {"id": trial.id, "state": "COMPLETE", "value": y, "params": dict(trial.params)}
    (best,) = call(capsys, "best", state)
    choice = opt.recommend()
    assert (best["params"], best["mean"], best["std"]) == (dict(choice.params), choice.mean, choice.std)
    assert best["observed"]["id"] == opt.best_trial.id


def test_it_runs_as_a_process_of_its_own(state: str) -> None:
    asked = process("ask", state, "-n", "2")
    out, err = asked.communicate(timeout=120)
    assert (asked.returncode, err) == (0, "")
    assert [json.loads(line)["id"] for line in out.splitlines()] == [0, 1]
    lost = process("tell", state, "7", "0.5")
    out, err = lost.communicate(timeout=120)
    assert (lost.returncode, out) == (1, "")
    assert err == "bkbopt: error: trial: expected an id that ask gave out (0 to 1), got 7.\n"


def test_concurrent_asks_get_different_trials_and_none_is_lost(state: str) -> None:
    workers = [process("ask", state) for _ in range(4)]
    asked = [json.loads(worker.communicate(timeout=240)[0]) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4
    assert sorted(trial["id"] for trial in asked) == [0, 1, 2, 3]
    assert len({json.dumps(trial["params"]) for trial in asked}) == 4
    assert len(bo.Optimizer.load(state).trials) == 4


def test_past_data_failures_and_negative_numbers_in_any_notation(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    past = {"rate": 0.25, "width": 32, "kind": "slow", "level": True}
    (told,) = call(capsys, "tell", state, "--params", json.dumps(past), "-1e-3")
    assert told["value"] == -1e-3
    assert told["params"] == {**past, "threads": 4}
    call(capsys, "ask", state, "-n", 2)
    (failed,) = call(capsys, "fail", state, 2)
    assert (failed["state"], failed["value"]) == ("FAIL", None)
    assert call(capsys, "tell", state, 1, "-.5")[0]["value"] == -0.5
    (shown,) = call(capsys, "show", state)
    assert (shown["direction"], shown["complete"], shown["running"], shown["failed"]) == ("maximize", 2, [], 1)
    assert [p["name"] for p in shown["space"]] == list(IN_PYTHON)
    trials = call(capsys, "show", state, "--trials")
    assert [(t["id"], t["state"], t["value"]) for t in trials] == [
        (0, "COMPLETE", -1e-3),
        (1, "COMPLETE", -0.5),
        (2, "FAIL", None),
    ]


def test_the_space_is_that_of_the_api(tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(SPACE)
    space, options = cli.read_space(tmp_path / "space.toml")
    assert bo.Space.parse(space) == bo.Space.parse(IN_PYTHON)
    assert options == {"direction": "maximize", "seed": 3, "n_startup_trials": 6}


def test_conditions_are_those_of_the_api(tmp_path: Path) -> None:
    lines = (
        "[space]",
        'model = ["svm", "gp", "tree"]',
        'kernel = { type = "categorical", choices = ["rbf", "linear"], when = { model = ["svm", "gp"] } }',
        'gamma = { type = "float", low = 0.1, high = 1.0, when = { kernel = "rbf", model = "svm" } }',
        'leaf = { type = "ordinal", values = [1, 2, 5], when = { model = "tree" } }',
    )
    (tmp_path / "space.toml").write_text("\n".join(lines))
    space, _ = cli.read_space(tmp_path / "space.toml")
    assert bo.Space.parse(space) == bo.Space.parse(
        {
            "model": ["svm", "gp", "tree"],
            "kernel": bo.Categorical(["rbf", "linear"], when={"model": ["svm", "gp"]}),
            "gamma": bo.Float(0.1, 1.0, when={"kernel": "rbf", "model": "svm"}),
            "leaf": bo.Ordinal([1, 2, 5], when={"model": "tree"}),
        }
    )


def test_a_state_over_a_pool_shows_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opt = bo.Optimizer([[0.0], [0.5], [1.0]], seed=0)
    opt.tell({"index": 1}, 2.0)
    opt.save(tmp_path / "pool")
    assert call(capsys, "best", tmp_path / "pool")[0]["index"] == 1
    assert call(capsys, "show", tmp_path / "pool")[0]["arms"] == 3
    assert "index" in call(capsys, "ask", tmp_path / "pool")[0]


def test_plots_are_pictures_of_the_kind_that_the_name_says(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    for trial in call(capsys, "ask", state, "-n", 4):
        call(capsys, "tell", state, trial["id"], value(trial["params"]))
    before = Path(state).read_bytes()
    out = Path(state).parent
    assert call(capsys, "plot", state, out / "a.png") == [{"plot": str(out / "a.png"), "kind": "overview"}]
    assert (out / "a.png").read_bytes().startswith(b"\x89PNG")
    call(capsys, "plot", state, out / "b.pdf", "--kind", "contour", "--x", "rate", "--y", "kind")
    assert (out / "b.pdf").read_bytes().startswith(b"%PDF")
    for kind in ("convergence", "importance", "time"):
        call(capsys, "plot", state, out / f"{kind}.svg", "--kind", kind)
    call(capsys, "plot", state, out / "s.svg", "--kind", "slice", "--x", "width")
    assert "expected a file name that ends on one of" in refused(capsys, "plot", state, out / "a.xyz")
    assert "--x and --y with --kind contour" in refused(
        capsys, "plot", state, "c.png", "--kind", "contour", "--x", "rate"
    )
    assert "at most 0 parameters" in refused(capsys, "plot", state, "c.png", "--x", "rate")
    assert "'nope'" in refused(capsys, "plot", state, "c.png", "--kind", "slice", "--x", "nope")
    assert Path(state).read_bytes() == before


def test_held_values_and_queued_points_are_those_of_the_api(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    opt = bo.Optimizer(IN_PYTHON, direction="maximize", seed=3, n_startup_trials=6)
    given = {"rate": 0.5, "kind": "slow"}
    opt.enqueue(given)
    queued = {"id": 0, "state": "WAITING", "params": given}
    assert call(capsys, "enqueue", state, json.dumps(given)) == [queued]
    assert call(capsys, "show", state)[0]["queued"] == [0]
    for _ in range(9):
        trial = opt.ask(fixed={"width": 32})
        (asked,) = call(capsys, "ask", state, "--fixed", '{"width": 32}')
        assert asked == {"id": trial.id, "params": dict(trial.params)}
        assert asked["params"]["width"] == 32
        opt.tell(trial, value(asked["params"]))
        call(capsys, "tell", state, asked["id"], value(asked["params"]))
    assert dict(opt.trials[0].params).items() >= given.items()


LIMITED = """
constraints = ["heat", "weight"]
seed = 0
n_startup_trials = 4
perturbations = false

[space]
x = { type = "float", low = 0.0, high = 1.0 }
"""


def test_constraints_are_told_with_the_value_or_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "space.toml").write_text(LIMITED)
    state = tmp_path / "state"
    (made,) = call(capsys, "init", tmp_path / "space.toml", state)
    assert made["constraints"] == ["heat", "weight"]
    call(capsys, "ask", state, "-n", 3)
    (told,) = call(capsys, "tell", state, 0, 2.5, "--constraint", "heat=1e-1", "--constraint", "weight=-1")
    assert (told["value"], told["constraints"], told["feasible"]) == (2.5, {"heat": 0.1, "weight": -1.0}, False)
    assert call(capsys, "best", state)[0]["observed"] is None
    (told,) = call(capsys, "tell", state, "--constraint", "heat=-2", "1", "-1.5")  # values behind an option
    assert (told["id"], told["value"], told["feasible"]) == (1, -1.5, True)
    (told,) = call(capsys, "tell", state, 2, "--constraint", "heat=3")
    assert (told["state"], told["value"], told["feasible"]) == ("COMPLETE", None, False)
    (told,) = call(capsys, "tell", state, "--params", '{"x": 0.5}', "--constraint", "heat=3")
    assert (told["id"], told["value"]) == (3, None)
    assert call(capsys, "best", state)[0]["observed"]["id"] == 1
    (shown,) = call(capsys, "show", state)
    assert (shown["complete"], shown["feasible"], shown["constraints"]) == (4, 1, ["heat", "weight"])
    for arguments, message in (
        (("tell", state, 0, "--constraint", "heat"), "expected NAME=NUMBER, got 'heat'"),
        (("tell", state, 0, "--constraint", "heat=hot"), "expected NAME=NUMBER, got 'heat=hot'"),
        (("tell", state, 0, 1, "--constraint", "heat=1", "--constraint", "heat=2"), "each name once"),
        (("tell", state, "--params", '{"x": 0.1}', 1, "--constraint", "hat=1"), "expected names among"),
        (("tell", state, 0, 1, "--limit", "2"), "unrecognized arguments: --limit"),
    ):
        assert message in refused(capsys, *arguments)


def test_several_objectives_have_a_value_each_and_a_front_for_the_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("botorch")
    (tmp_path / "space.toml").write_text('directions = ["minimize", "maximize"]\n[space]\nx = [1, 2, 3, 4]\n')
    state = tmp_path / "state"
    (made,) = call(capsys, "init", tmp_path / "space.toml", state)
    assert made["directions"] == ["minimize", "maximize"]
    for x, values in ((1, ("-1", "2")), (2, ("0", "3")), (3, ("1", "1"))):
        (told,) = call(capsys, "tell", state, "--params", json.dumps({"x": x}), *values)
        assert told["values"] == [float(v) for v in values]
    call(capsys, "ask", state)
    assert [trial["id"] for trial in call(capsys, "best", state)] == [0, 1]
    assert [trial["values"] for trial in call(capsys, "show", state, "--trials")][2:] == [[1.0, 1.0], None]
    assert "expected 2 values, one for each objective" in refused(capsys, "tell", state, 3, 1.0)
    assert call(capsys, "tell", state, 3, "-1e-3", "0.5")[0]["values"] == [-1e-3, 0.5]
    pytest.importorskip("matplotlib")
    call(capsys, "plot", state, tmp_path / "front.svg", "--kind", "pareto")
    assert "see pareto" in refused(capsys, "plot", state, tmp_path / "a.png")


# -- what it refuses ---------------------------------------------------------------------------------------------------


def test_refused_commands_take_one_line_and_leave_the_state(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "ask", state)
    before = Path(state).read_bytes()
    for arguments, message in (
        (("tell", state, "0", "nan"), "expected finite values"),
        (("tell", state, "0", "-inf"), "expected finite values"),
        (("tell", state, "0", "abc"), "argument VALUE: invalid float value: 'abc'"),
        (("tell", state, "0.5", "1"), "argument ID: invalid int value: '0.5'"),
        (("tell", state, "0"), "expected an id and a value"),
        (("tell", state, "0", "1", "--params", "{}"), "one of the two forms"),
        (("tell", state, "--params", "{", "1"), "--params: expected a JSON object"),
        (("tell", state, "--params", "[1]", "1"), "--params: expected a JSON object"),
        (("tell", state, "--params", '{"rate": 3}', "1"), "nothing for 'kind'"),
        (("ask", state, "--fixed", "[]"), "--fixed: expected a JSON object"),
        (("ask", state, "--fixed", '{"rate": 7}'), "'rate'"),
        (("enqueue", state, "x"), "params: expected a JSON object"),
        (("enqueue", state, '{"size": 1}'), "'size'"),
        (("tell", state, "0", "1", "2"), "expected 1 value, one for each objective"),
        (("fail", state, "4"), "expected an id that ask gave out"),
        (("ask", state, "-n", "0"), "n: expected a whole number >= 1"),
        (("ask", state, "--wait", "nan"), "argument --wait: expected a number of seconds"),
        (("best", state), "at least one value"),
        (("show", state + "x"), "No such file"),
        (("ask", state + "x"), "No such file"),
        (("frobnicate",), "invalid choice: 'frobnicate'"),
        ((), "arguments are required"),
        (("init", Path(state).parent / "space.toml", state), "exists already"),
        (("init", Path(state).parent / "no.toml", state), "No such file"),
    ):
        assert message in refused(capsys, *arguments)
    assert Path(state).read_bytes() == before
    assert not Path(state + "x.lock").exists()
    Path(state).write_bytes(b"no state")
    assert "expected a complete state file" in refused(capsys, "best", state)


def test_help_of_init_shows_a_search_space_that_init_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["init", "--help"])
    _, _, example = capsys.readouterr().out.partition("A search space in TOML:\n")
    (tmp_path / "space.toml").write_text(textwrap.dedent(example))
    (made,) = call(capsys, "init", tmp_path / "space.toml", tmp_path / "state")
    assert made["parameters"] == ["rate", "width", "kind", "size", "depth", "threads"]


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"bkbopt {bo.__version__}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[space", "expected a TOML file"),
        ("seed = 3", r"expected a table \[space\]"),
        ("space = 3", r"expected a table \[space\]"),
        ("sede = 3\n[space]\nx = [1, 2]", r"expected options among .* got \['sede'\]"),
        ("[space]\nx = { low = 0, high = 1 }", "parameter 'x': expected a type among"),
        ("[space]\nx = { type = 'float', low = 0 }", r"parameter 'x': expected \['high', 'low'\] and no more than"),
        ("[space]\nx = { type = 'int', low = 0, high = 3, base = 2 }", "parameter 'x': .* got .*'base'"),
        (
            "[space]\nx = { type = 'float', low = 0.0, high = 1.0, log = true }",
            "parameter 'x': low: expected a positive",
        ),
        ("[space]\nx = [nan]", "parameter 'x': expected finite numbers"),
        ("[space]\nx = { type = 'ordinal', values = 3 }", "parameter 'x': values: expected a list"),
        ("[space]\nx = { type = 'int', low = 0, high = 3, when = 'a' }", "parameter 'x': when: expected a dict"),
    ],
)
def test_a_space_that_cannot_be_is_refused_by_name(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(text)
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        cli.read_space(tmp_path / "space.toml")


def test_choices_and_options_that_cannot_be_are_refused_by_init(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, message in (
        ("[space]\nx = [1979-05-27, 2]", "choices that can be saved"),
        ("direction = 'up'\n[space]\nx = [1, 2]", "direction: expected one of"),
        ("seed = -1\n[space]\nx = [1, 2]", "seed: "),
    ):
        (tmp_path / "space.toml").write_text(text)
        assert message in refused(capsys, "init", tmp_path / "space.toml", tmp_path / "state")
        assert not (tmp_path / "state").exists()


def test_force_starts_anew(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "ask", state)
    call(capsys, "init", Path(state).parent / "space.toml", state, "--force")
    assert bo.Optimizer.load(state).trials == []


def test_a_held_lock_is_waited_for_and_then_named(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    with open(state + ".lock", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        message = refused(capsys, "ask", state, "--wait", "0.1")
        assert "another command has held its lock for 0.1 s" in message
        assert state + ".lock" in message
        call(capsys, "show", state)  # reading needs no lock: files are replaced whole
    assert call(capsys, "ask", state, "--wait", "0")[0]["id"] == 0


def test_a_lock_on_a_link_is_that_of_the_file(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    link = Path(state).with_name("link")
    link.symlink_to(state)
    with open(state + ".lock", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "lock" in refused(capsys, "ask", link, "--wait", "0")
    call(capsys, "ask", link)
    assert len(bo.Optimizer.load(state).trials) == 1


def test_a_reader_that_goes_away_costs_one_line(state: str) -> None:
    asked = process("ask", state, "-n", "3")
    assert asked.stdout is not None
    assert asked.stderr is not None
    asked.stdout.close()
    err = asked.stderr.read()
    asked.stderr.close()
    assert asked.wait(timeout=120) == 1
    assert err.count("\n") == 1
    assert "Broken pipe" in err
    assert len(bo.Optimizer.load(state).trials) == 3  # they are in the state, as running


# -- the shell example -------------------------------------------------------------------------------------------------


@pytest.mark.slow  # nine processes, each of which starts torch
def test_the_shell_example_runs_and_goes_on_where_it_was(tmp_path: Path) -> None:
    if shutil.which("awk") is None or shutil.which("sh") is None:
        pytest.skip("needs sh and awk")
    pytest.importorskip("matplotlib")
    tool = tmp_path / "bkbopt"
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bkbopt.adapters.shell "$@"\n')
    tool.chmod(0o755)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    for trials in ("2", "3"):
        done = subprocess.run(
            ["sh", str(ROOT / "examples" / "shell" / "optimise.sh"), trials, str(tmp_path / "out")],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    *_, best, plot = done.stdout.splitlines()
    assert json.loads(best)["params"]["head"] == 60
    assert json.loads(plot)["kind"] == "overview"
    assert len(bo.Optimizer.load(tmp_path / "out" / "pump.bkb").trials) == 3
    assert (tmp_path / "out" / "pump.png").stat().st_size > 0


def test_the_shell_example_s_pump_prints_one_number_and_fails_where_it_bursts() -> None:
    if shutil.which("awk") is None:
        pytest.skip("needs awk")

    def pump(speed: float, impeller: int) -> subprocess.CompletedProcess[str]:
        params = {"speed": speed, "impeller": impeller, "stages": 3, "blades": "curved", "head": 60}
        return subprocess.run(
            ["awk", "-v", "seed=1", "-f", str(ROOT / "examples" / "shell" / "pump.awk")],
            input=json.dumps({"id": 0, "params": params}) + "\n",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert 0.0 < float(pump(2500.0, 140).stdout) < 10.0
    assert float(pump(2500.0, 140).stdout) < float(pump(900.0, 100).stdout)
    assert (pump(4000.0, 240).returncode, pump(4000.0, 240).stdout) == (3, "")
