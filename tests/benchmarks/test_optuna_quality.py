"""The comparison of Optuna's samplers counts what happened, keeps it, and averages it as it says."""

import math
from pathlib import Path

import numpy as np
import optuna
import pytest

from benchmarks import comparison, optuna_quality, samplers
from benchmarks.functions import PROBLEMS
from benchmarks.optuna_quality import Result, geometric_mean, results_of, run_study
from benchmarks.samplers import SAMPLERS, missing_packages, quiet_optuna, recommended
from benchmarks.tasks import DEVELOPMENT, HELD_OUT, Task, of_problem

BRANIN = PROBLEMS["branin"]


def watched(told: list[float]) -> Task:
    """A task of one parameter whose values are noted; the noise-free value is the parameter."""

    def observe(params: dict[str, float], seed: int, number: int) -> tuple[float, float]:
        told.append(params["x"])
        return params["x"] + 0.01 * number, params["x"]

    def suggest(trial: optuna.Trial) -> None:
        trial.suggest_float("x", 1.0, 3.0)

    return Task("line", suggest, observe, lambda params: params["x"], 2.0, 1.0, "one float")


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_study_is_measured_at_its_checkpoints(sampler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if lacking := missing_packages(sampler):
        pytest.skip(f"{lacking[0]} is optional, and not installed")
    monkeypatch.setattr(optuna_quality, "CHECKPOINTS", (5, 12, 100))
    told: list[float] = []
    record = run_study(sampler, watched(told), 14, seed=0)
    assert record["checkpoints"] == [5, 12, 14]
    averages = [sum(told[:n]) / n for n in (5, 12, 14)]
    assert record["average"] == pytest.approx(averages, rel=1e-14)
    assert record["last_fifth"] == pytest.approx([told[4], sum(told[10:12]) / 2, sum(told[12:14]) / 2], rel=1e-14)
    if sampler in ("cmaes_mean", "cmaes_noise", "cmaes_anywhere"):  # which recommend the mean of their distribution
        assert all(1.0 <= value <= 3.0 for value in record["recommended"])
    else:
        assert set(record["recommended"]) <= set(told)
    assert record["seconds"] == sorted(record["seconds"])
    assert len(told) == 14


@pytest.mark.parametrize("sampler", ["random", "tpe", "cmaes", "cmaes_noise", "turbo", "bkb"])
def test_a_seed_decides_the_study(sampler: str) -> None:
    first, again, other = (run_study(sampler, of_problem(BRANIN), 14, seed) for seed in (1, 1, 2))
    assert first["average"] == again["average"]
    assert first["recommended"] == again["recommended"]
    assert first["average"] != other["average"]


@pytest.mark.parametrize(("sampler", "starts_anywhere"), [("cmaes_noise", False), ("cmaes_anywhere", True)])
def test_cma_es_starts_in_the_centre_or_anywhere(sampler: str, starts_anywhere: bool) -> None:
    away = []
    with quiet_optuna():
        for seed in range(8):
            study = optuna.create_study(sampler=SAMPLERS[sampler](seed))
            study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0) + trial.suggest_float("y", 0.0, 1.0), 25)
            away.append(abs(float(np.mean([trial.params["x"] for trial in study.trials[1:]])) - 0.5))
    # The mean of the first 24 points has a standard deviation of 1 / 6 / sqrt(24) = 0.034 about the start.
    assert (max(away) > 0.1) is starts_anywhere


def test_others_recommend_the_best_value_observed_and_ours_its_posterior() -> None:
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        for name in ("tpe", "bkb"):
            study = optuna.create_study(sampler=SAMPLERS[name](0))
            study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=14)
            expected = study.best_params if name == "tpe" else study.sampler.recommend(study).params
            assert recommended(study) == expected
    finally:
        optuna.logging.set_verbosity(verbosity)


def record(checkpoints: list[int], found: list[float], average: list[float]) -> dict[str, list[float]]:
    last = [value + 1.0 for value in average]
    seconds = [0.1] * len(checkpoints)
    return {
        "checkpoints": checkpoints,
        "recommended": found,
        "average": average,
        "last_fifth": last,
        "seconds": seconds,
    }


def test_regrets_are_above_the_minimum_in_units_of_the_scale() -> None:
    records = {"bkb": [record([10, 20], [2.0, 1.5], [3.0, 2.0])], "tpe": [record([10], [3.0], [4.0])]}
    results = results_of(watched([]), records)
    assert results == [
        Result("bkb", "line", 10, [0.5], [1.0], [1.5], ms=pytest.approx(10.0)),
        Result("tpe", "line", 10, [1.0], [1.5], [2.0], ms=pytest.approx(10.0)),
        Result("bkb", "line", 20, [0.25], [0.5], [1.0], ms=pytest.approx(5.0)),
    ]


def test_the_best_of_all_recommendations_stands_for_an_unknown_minimum() -> None:
    task = watched([])
    unknown = Task(task.name, task.suggest, task.observe, task.truth, task.scale, None, task.note)
    records = {"bkb": [record([10], [2.0], [3.0])], "tpe": [record([10], [1.6], [4.0])]}
    assert [r.recommended for r in results_of(unknown, records)] == [[pytest.approx(0.2)], [0.0]]


def test_geometric_means_carry_the_errors_of_their_factors() -> None:
    centre, error = geometric_mean([(0.1, 0.01), (0.4, 0.04)])
    assert centre == pytest.approx(0.2)
    # Relative errors of a tenth each, independent: sqrt(2) / 2 of a tenth.
    assert error == pytest.approx(0.2 * 0.1 / math.sqrt(2))
    assert geometric_mean([(0.0, 0.0), (1.0, 0.0)])[0] == pytest.approx(1e-2)  # the floor of 1e-4


def test_the_summary_holds_the_problems_that_all_samplers_have(capsys: pytest.CaptureFixture[str]) -> None:
    results = [
        Result("bkb", "one", 10, [0.1, 0.1], [0.2, 0.2], [0.5, 0.5], 1.0),
        Result("tpe", "one", 10, [0.3, 0.3], [0.1, 0.1], [2.0, 2.0], 1.0),
        Result("bkb", "two", 10, [9.0, 9.0], [9.0, 9.0], [9.0, 9.0], 1.0),
    ]
    optuna_quality.print_summary(results)
    bkb, tpe = capsys.readouterr().out.splitlines()[3:5]
    assert bkb.split()[:3] == tpe.replace("tpe", "bkb").split()[:3] == ["10", "bkb", "1"]
    zero = ["+-", "0.0000"]
    assert bkb.split()[3:] == ["0.1000", *zero, "1", "0.2000", *zero, "1", "0.5000", *zero, "1"]
    assert tpe.split()[3:] == ["0.3000", *zero, "3", "0.1000", *zero, "0.5", "2.0000", *zero, "4"]


def test_nothing_is_computed_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--peers", "random", "bkb", "--problems", "branin", "shekel4", "--seeds", "2", "--trials", "12"]
    optuna_quality.main([*options, "--jobs", "1", "--out", str(tmp_path)])
    assert "8 runs, 0 of them done before" in capsys.readouterr().out
    written = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(written) == 8
    optuna_quality.main([*options, "--jobs", "1", "--out", str(tmp_path)])
    out = capsys.readouterr().out
    assert "8 runs, 8 of them done before" in out
    assert "shekel4 (4 floats, noise sd = 0.1 IQR)" in out
    assert "the whole set" in out
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == written


def test_only_our_files_belong_to_a_version_of_the_package(tmp_path: Path) -> None:
    names = [comparison.Job(peer, "branin", 10, 0).path(tmp_path, "abc").name for peer in ("bkb", "tpe")]
    assert names == ["bkb-abc_branin_10_0.json", "tpe_branin_10_0.json"]


def test_slow_samplers_are_asked_for_fewer_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[comparison.Job] = []
    monkeypatch.setattr(optuna_quality, "run_all", lambda given, *rest: jobs.extend(given))
    optuna_quality.main(["--out", str(tmp_path)])
    slow = ("gp_sampler", "turbo")
    assert {job.n_trials for job in jobs if job.peer in slow} == {300}
    assert {job.n_trials for job in jobs if job.peer not in slow} == {5_000}
    assert len(jobs) == 7 * 10 * len(DEVELOPMENT)


def test_samplers_that_are_not_installed_are_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(samplers.OPTIONAL, "hebo", ("numpy", "a_package_that_nobody_has"))
    few = ["--peers", "hebo", "random", "--problems", "branin", "--seeds", "1", "--trials", "12", "--jobs", "1"]
    optuna_quality.main([*few, "--out", str(tmp_path)])
    out = capsys.readouterr().out
    assert "hebo is left out: a_package_that_nobody_has cannot be imported" in out
    assert [path.name for path in tmp_path.iterdir()] == ["random_branin_12_0.json"]


@pytest.mark.parametrize(("chosen", "expected"), [([], DEVELOPMENT), (["--set", "held-out"], HELD_OUT)])
def test_held_out_tasks_run_only_when_asked_for(
    chosen: list[str], expected: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[comparison.Job] = []
    monkeypatch.setattr(optuna_quality, "run_all", lambda given, *rest: jobs.extend(given))
    optuna_quality.main([*chosen, "--peers", "random", "--seeds", "1", "--out", str(tmp_path)])
    assert tuple(job.problem for job in jobs) == expected


def test_files_that_lack_a_measure_are_refused_before_anything_runs(tmp_path: Path) -> None:
    old = record([12], [1.0], [2.0])
    del old["last_fifth"]
    comparison.keep(old, comparison.Job("random", "branin", 12, 0).path(tmp_path, ""))
    options = ["--peers", "random", "--problems", "branin", "--seeds", "2", "--trials", "12", "--out", str(tmp_path)]
    with pytest.raises(SystemExit, match=r"random_branin_12_0\.json has no last_fifth"):
        optuna_quality.main(options)
    assert len(list(tmp_path.iterdir())) == 1
