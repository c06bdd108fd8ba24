"""The ready-made loop: here, on threads, on processes."""

import logging
import re
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, SpaceExhaustedError
from tests.optimizer.runs import OPTIONS, SPACE, BoomError, ManualExecutor, bowl, fragile


def test_result_is_an_optimizer_that_solved_it() -> None:
    opt = bo.minimize(bowl, SPACE, 15, **OPTIONS)
    assert isinstance(opt, bo.Optimizer)
    assert len(opt.trials) == 15
    assert opt.recommend().params["k"] == "a"
    assert bowl(dict(opt.recommend().params)) < 0.02


def test_loop_is_ask_and_tell() -> None:
    opt = bo.Optimizer(SPACE, **OPTIONS)
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, bowl(dict(trial.params)))
    ready = bo.minimize(bowl, SPACE, 8, **OPTIONS)
    assert [(t.params, t.value) for t in ready.trials] == [(t.params, t.value) for t in opt.trials]


def test_it_maximises_too_and_goes_on_with_an_optimizer() -> None:
    opt = bo.minimize(lambda p: -bowl(p), SPACE, 6, direction="maximize", **OPTIONS)
    assert bo.minimize(lambda p: -bowl(p), opt, 6) is opt
    assert len(opt.trials) == 12
    assert opt.best_trial.value == max(t.value for t in opt.trials)


def test_pools_are_spaces_too() -> None:
    opt = bo.minimize(lambda p: p["x0"], [[0.1], [0.7], [0.4]], 5, **OPTIONS)
    assert opt.recommend().index == 0


@pytest.mark.parametrize("parallel", [False, True])
def test_an_objective_may_get_the_trial_with_its_row_and_its_name(parallel: bool) -> None:
    frame = pd.DataFrame({"name": ["a", "b", "c", "d"], "x": [0.0, 0.3, 0.7, 1.0]})
    seen: list[bo.Trial] = []

    def f(trial: bo.Trial) -> float:
        seen.append(trial)
        return {"a": 1.0, "b": 0.0, "c": 2.0, "d": 3.0}[str(trial.label)]

    with ThreadPoolExecutor(2) as executor:
        run = {"executor": executor} if parallel else {}
        opt = bo.minimize(f, bo.Pool(frame, id_column="name"), 6, pass_trial=True, **run, **OPTIONS)
    assert opt.recommend().label == "b"
    assert sorted((t.id, t.index, t.params["x"]) for t in seen) == [(t.id, t.index, t.params["x"]) for t in opt.trials]


def test_an_objective_may_change_the_params_of_the_trial_that_it_got() -> None:
    def f(trial: bo.Trial) -> float:
        return float(trial.params.pop("x"))  # type: ignore[attr-defined]

    assert all(set(t.params) == {"x", "k"} for t in bo.minimize(f, SPACE, 3, pass_trial=True, **OPTIONS).trials)


def test_what_is_passed_to_the_objective_is_a_flag() -> None:
    with pytest.raises(ArgumentTypeError, match="pass_trial: expected True or False, got 'yes'"):
        bo.minimize(bowl, SPACE, 1, pass_trial="yes", **OPTIONS)  # type: ignore[arg-type]


def test_objective_may_keep_and_change_its_params() -> None:
    def f(params: dict[str, Any]) -> float:
        x = params.pop("x")
        params.clear()
        return float(x)

    assert all(set(t.params) == {"x", "k"} for t in bo.minimize(f, SPACE, 6, **OPTIONS).trials)


@pytest.mark.parametrize("n_workers", [None, 3])
def test_threads_run_all_trials(n_workers: int | None) -> None:
    started, running, most, lock, two = 0, 0, 0, threading.Lock(), threading.Barrier(2)

    def f(params: dict[str, Any]) -> float:
        nonlocal started, running, most
        with lock:
            started, running = started + 1, running + 1
            most, is_early = max(most, running), started <= 2
        if is_early:
            two.wait(60.0)  # however long the second suggestion takes; a failure if they never run together
        time.sleep(0.01)  # in which too many would be seen
        with lock:
            running -= 1
        return bowl(params)

    with ThreadPoolExecutor(2 if n_workers is None else 8) as pool:
        opt = bo.minimize(f, SPACE, 14, executor=pool, n_workers=n_workers, **OPTIONS)
    assert [t.id for t in opt.trials] == list(range(14))
    assert {t.state for t in opt.trials} == {"COMPLETE"}
    assert 2 <= most <= (n_workers or 2)


def test_processes_run_all_trials() -> None:
    # "spawn": torch's threads do not survive a fork.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        # Of the standard library: under pytest's importlib mode the child could not import a function of this file.
        opt = bo.minimize(itemgetter("x"), {"x": (-1.0, 1.0)}, 6, executor=pool, **OPTIONS)
    assert [t.value for t in opt.trials] == [t.params["x"] for t in opt.trials]


def test_results_enter_as_they_come() -> None:
    executor = ManualExecutor()
    seen: list[int] = []
    loop = threading.Thread(
        target=lambda: bo.minimize(
            bowl,
            SPACE,
            5,
            executor=executor,
            n_workers=2,
            callbacks=[lambda opt, trial: seen.append(trial.id)],
            **OPTIONS,
        )
    )
    loop.start()
    for job in (1, 2, 0, 4, 3):  # the first comes after the third: it does not hold up the others
        while len(executor.jobs) <= job:
            time.sleep(0.001)
        future, params = executor.jobs[job]
        future.set_result(bowl(params))
    loop.join(timeout=30.0)
    assert not loop.is_alive()
    assert sorted(seen) == list(range(5))
    # Job 2 exists only once 1 was told, and job 4 once 0 was.
    assert seen.index(1) < seen.index(2)
    assert seen.index(1) < seen.index(0) < seen.index(3)


def test_workers_get_different_points() -> None:
    executor, asked = ManualExecutor(), []

    def first_result(opt: bo.Optimizer, trial: bo.Trial) -> bool:
        asked.extend(opt.trials)
        return True

    def answer() -> None:
        while len(executor.jobs) < 4:
            time.sleep(0.001)
        for future, params in executor.jobs:
            future.set_result(bowl(params))

    helper = threading.Thread(target=answer)
    helper.start()
    bo.minimize(bowl, SPACE, 30, executor=executor, n_workers=4, callbacks=[first_result], **OPTIONS)
    helper.join()
    assert len({tuple(t.params.values()) for t in asked}) == 4


def test_timeout_starts_no_further_trial() -> None:
    opt = bo.minimize(lambda p: time.sleep(0.02) or bowl(p), SPACE, timeout=0.1, **OPTIONS)
    assert 1 <= len(opt.trials) <= 5
    assert {t.state for t in opt.trials} == {"COMPLETE"}
    with ThreadPoolExecutor(2) as pool:
        opt = bo.minimize(lambda p: time.sleep(0.02) or bowl(p), SPACE, timeout=0.1, executor=pool, **OPTIONS)
    assert {t.state for t in opt.trials} == {"COMPLETE"}  # those running were waited for
    assert bo.minimize(bowl, SPACE, 5, timeout=0, **OPTIONS).trials == []
    assert bo.minimize(bowl, SPACE, 0, **OPTIONS).trials == []


def test_callback_that_returns_true_stops_the_run() -> None:
    values: list[float] = []

    def callback(opt: bo.Optimizer, trial: bo.Trial) -> bool:
        values.append(trial.value)
        return len(opt.trials) == 5

    opt = bo.minimize(bowl, SPACE, 50, callbacks=[callback], **OPTIONS)
    assert values == [t.value for t in opt.trials]
    assert len(values) == 5
    # A callback that returns anything else does not.
    assert len(bo.minimize(bowl, SPACE, 3, callbacks=[lambda opt, trial: "yes"], **OPTIONS).trials) == 3


def test_a_callback_with_finish_is_told_of_the_end_of_a_run_but_not_of_an_error() -> None:
    class Witness:
        calls: list[tuple[str, int]]

        def __init__(self) -> None:
            self.calls = []

        def __call__(self, opt: bo.Optimizer, trial: bo.Trial) -> None:
            self.calls.append(("trial", opt.n_complete))

        def finish(self, opt: bo.Optimizer) -> None:
            self.calls.append(("end", opt.n_complete))

    for executor in (None, ThreadPoolExecutor(1)):
        witness = Witness()
        bo.minimize(bowl, SPACE, 2, callbacks=[lambda opt, trial: None, witness], executor=executor, **OPTIONS)
        assert witness.calls == [("trial", 1), ("trial", 2), ("end", 2)]

    def broken(params: dict[str, Any]) -> float:
        raise OSError("no value")

    witness = Witness()
    with pytest.raises(OSError, match="no value"):
        bo.minimize(broken, SPACE, 2, callbacks=witness, **OPTIONS)
    assert witness.calls == []


def test_any_of_several_callbacks_stops_the_run() -> None:
    calls = [lambda *_: None, lambda _, trial: np.bool_(trial.id == 2), lambda *_: False]
    assert len(bo.minimize(lambda p: p["x"], {"x": (0.0, 1.0)}, n_trials=6, callbacks=calls, seed=0).trials) == 3


def test_regret_certificate_stops_the_run() -> None:
    pool = [[i / 10] for i in range(11)]
    opt = bo.minimize(lambda p: p["x0"] ** 2, pool, 200, stop_at_regret=0.05, **OPTIONS)
    assert 10 <= len(opt.trials) < 200
    assert opt.regret_certificate().bound <= 0.05
    assert opt.recommend().index == 0


def test_penalties_are_no_values_of_which_a_certificate_is_made() -> None:
    values = iter([0.1, 0.2, 0.3, 0.4] + [1e10] * 27)
    opt = bo.minimize(lambda p: next(values), {"x": (0.0, 1.0)}, 31, stop_at_regret=1e5, seed=0)
    assert len(opt.trials) == 31


@pytest.mark.parametrize("bar", [False, True])
def test_the_first_caught_exception_is_a_warning_and_later_ones_are_information(
    bar: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def mistaken(params: dict[str, Any]) -> float:
        raise NameError("name 'los' is not defined")

    caplog.set_level(logging.INFO, "bkbopt.optimizer.running.minimizing")
    bo.minimize(mistaken, SPACE, 3, catch=Exception, show_progress_bar=bar, **OPTIONS)
    said = "minimize: trial {} failed, since f raised NameError(\"name 'los' is not defined\")."
    levels = [logging.WARNING, logging.INFO, logging.INFO]
    assert [(r.levelno, r.getMessage()) for r in caplog.records] == [
        (lv, said.format(i)) for i, lv in enumerate(levels)
    ]


def test_a_caught_exception_that_cannot_be_shown_fails_its_trial_only() -> None:
    class SilentError(Exception):
        def __repr__(self) -> str:
            raise RuntimeError("no text")

    def mute(params: dict[str, Any]) -> float:
        raise SilentError if params["x"] > 0.6 else ValueError("x" * 1000)

    trials = bo.minimize(mute, {"x": (0.0, 1.0)}, 6, catch=Exception, seed=0).trials
    assert [trial.state for trial in trials] == ["FAIL"] * 6
    assert {trial.user_attrs["error"][:12] for trial in trials} == {"<SilentError", "ValueError('"}
    assert all(len(trial.user_attrs["error"]) <= 300 for trial in trials)


def test_nothing_is_printed_but_the_bar_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    bo.minimize(bowl, SPACE, 6, **OPTIONS)
    assert capfd.readouterr() == ("", "")
    bo.minimize(fragile, SPACE, 6, catch=(BoomError,), show_progress_bar=True, **OPTIONS)
    out, err = capfd.readouterr()
    assert out == ""
    assert "6/6" in err
    assert "best=" in err


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_bar_of_a_continued_run_shows_the_best_value_of_all_trials(
    sign: float, capfd: pytest.CaptureFixture[str]
) -> None:
    opt = bo.Optimizer(SPACE, direction="minimize" if sign > 0 else "maximize", **OPTIONS)
    opt.tell({"x": 0.3, "k": "a"}, -9.0 * sign)
    bo.minimize(lambda p: sign * bowl(p), opt, 3, show_progress_bar=True)
    err = capfd.readouterr().err
    assert set(re.findall(r"best=([-\d.]+)", err)) == {f"{-9 * sign:g}"}


def test_the_bar_shows_no_infeasible_value_as_the_best(capfd: pytest.CaptureFixture[str]) -> None:
    opt = bo.Optimizer(SPACE, constraints=["heat"], **OPTIONS)
    opt.tell({"x": 0.3, "k": "a"}, -9.0, constraints={"heat": 1.0})
    bo.minimize(lambda p: (bowl(p), {"heat": 1.0}), opt, 2, show_progress_bar=True)
    assert "best=" not in capfd.readouterr().err
    bo.minimize(lambda p: (2.0, {"heat": -1.0}), opt, 1, show_progress_bar=True)
    assert "best=2]" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "error", "name"),
    [
        ({"f": 3}, ArgumentTypeError, "f: "),
        ({"n_trials": None}, ArgumentError, "n_trials"),
        ({"n_trials": -1}, ArgumentError, "n_trials"),
        ({"n_trials": 2.5}, ArgumentError, "n_trials"),
        ({"n_trials": "9"}, ArgumentTypeError, "n_trials"),
        ({"timeout": -1.0}, ArgumentError, "timeout"),
        ({"timeout": float("nan")}, ArgumentError, "timeout"),
        ({"n_workers": 0}, ArgumentError, "n_workers"),
        ({"n_workers": 1.5}, ArgumentError, "n_workers"),
        ({"stop_at_regret": -1.0}, ArgumentError, "stop_at_regret"),
        ({"executor": 4}, ArgumentTypeError, "executor"),
        ({"executor": ThreadPoolExecutor}, ArgumentTypeError, "executor: .* the class ThreadPoolExecutor; make one"),
        ({"invalid": "drop"}, ArgumentError, "invalid"),
        ({"catch": 4}, ArgumentTypeError, "catch"),
        ({"catch": ("BoomError",)}, ArgumentTypeError, "catch"),
        ({"callbacks": 4}, ArgumentTypeError, "callbacks"),
        ({"callbacks": [4]}, ArgumentTypeError, "callbacks"),
        ({"space": {"x": (1.0, 0.0)}}, ArgumentError, "x"),
        ({"direction": "up"}, ArgumentError, "direction"),
        ({"space": bo.Optimizer(SPACE), "seed": 3}, ArgumentError, "seed"),
    ],
)
def test_bad_argument_is_named_before_anything_runs(options: dict[str, Any], error: Any, name: str) -> None:
    calls: list[Any] = []
    arguments = {"f": lambda p: calls.append(p) or 0.0, "space": SPACE, "n_trials": 3} | options
    with pytest.raises(error, match=name):
        bo.minimize(**arguments)
    assert calls == []


def test_single_exception_or_callback_need_not_be_in_a_list() -> None:
    opt = bo.minimize(fragile, SPACE, 6, catch=BoomError, callbacks=lambda opt, trial: len(opt.trials) == 4, **OPTIONS)
    assert len(opt.trials) == 4


@pytest.mark.parametrize("n_workers", [None, 6])
def test_run_ends_when_no_arm_is_left(n_workers: int | None) -> None:
    arms = [[0.1], [0.7], [0.4], [0.2]]
    with ThreadPoolExecutor(6) as executor:
        more = {} if n_workers is None else {"executor": executor, "n_workers": n_workers}
        opt = bo.minimize(itemgetter("x0"), arms, 20, duplicates="avoid", **more, **OPTIONS)
    assert sorted(t.value for t in opt.trials) == [0.1, 0.2, 0.4, 0.7]
    with pytest.raises(SpaceExhaustedError):
        bo.minimize(itemgetter("x0"), opt, 1)


def test_unknown_options_are_named_with_one_that_is_similar() -> None:
    for given, advice in (
        ("n_startup_trails", "; do you mean n_startup_trials?"),
        ("timeouts", "; do you mean timeout?"),
        ("n_jobs", "; do you mean executor=ThreadPoolExecutor(4)?"),
        ("jobs", "."),
    ):
        with pytest.raises(
            ArgumentTypeError, match=f"^{given}: expected an argument of minimize or Optimizer, .*{re.escape(advice)}$"
        ):
            bo.minimize(bowl, SPACE, **{given: 3})


@pytest.mark.parametrize(
    ("result", "options", "words"),
    [
        (
            (0.5, 0.1),
            {},
            r"a value, or a tuple of a value and a dict .* \['g', 'h'\], got \(0.5, 0.1\); return \(value, ",
        ),
        ([0.5, 0.1, 0.2], {}, r"\{'g': number, 'h': number\}\), or, of more objectives, pass their directions"),
        (([1.0, 2.0], 0.1, 0.2), {"directions": ["minimize"] * 2}, r"2 values, or .* return \(values, \{'g'"),
    ],
)
def test_numbers_beside_a_value_are_taken_for_constraints_first(
    result: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ArgumentError, match=f"^f: expected .*{words}"):
        bo.minimize(lambda p: result, {"x": (0.0, 1.0)}, 3, constraints=["g", "h"], **options, **OPTIONS)


def test_two_values_of_two_objectives_are_no_constraints() -> None:
    two = {"directions": ["minimize"] * 2, "constraints": ["g"], **OPTIONS}
    opt = bo.minimize(lambda p: (p["x"], 1.0 - p["x"]), {"x": (0.0, 1.0)}, 2, **two)
    assert opt.n_complete == 2


@pytest.mark.parametrize("limit", [0.3, -1.0, None], ids=["feasible below", "feasible nowhere", "never told"])
def test_a_certificate_ends_a_run_under_constraints_if_a_feasible_point_is_recommended(limit: float | None) -> None:
    def f(params: Any) -> Any:
        x = params["x"]
        return (-x, {"g": x - limit}) if limit is not None else -x

    opt = bo.minimize(f, {"x": (0.0, 1.0)}, 31, constraints=["g"], stop_at_regret=0.1, **OPTIONS)
    assert (len(opt.trials) < 31) == (limit == 0.3)
    if limit == 0.3:
        assert opt.recommend().params["x"] == pytest.approx(0.3, abs=0.1)


def test_a_certificate_does_not_end_a_run_whose_best_point_of_all_is_infeasible() -> None:
    def f(params: Any) -> Any:
        return -params["x"], {"g": 2.0 - params["x"]}  # the violation is smallest at the optimum, too

    opt = bo.minimize(f, {"x": (0.0, 1.0)}, 31, constraints=["g"], stop_at_regret=0.1, **OPTIONS)
    assert len(opt.trials) == 31
    assert opt.regret_certificate().bound < 0.1


def test_a_certificate_does_not_end_a_run_while_a_constraint_has_no_value() -> None:
    def f(params: Any) -> Any:
        return -params["x"], {"g": params["x"] - 0.3}

    opt = bo.minimize(f, {"x": (0.0, 1.0)}, 31, constraints=["g", "h"], stop_at_regret=0.1, **OPTIONS)
    assert len(opt.trials) == 31


@pytest.mark.parametrize(
    ("result", "warns"), [(0.5, True), ((0.5, {"g": 1.0}), True), ((0.5, {"g": 1.0, "h": 0}), False)]
)
def test_a_function_that_does_not_return_the_constraints_is_reported_once(
    result: Any, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    bo.minimize(lambda p: result, {"x": (0.0, 1.0)}, 3, constraints=["g", "h"], **OPTIONS)
    assert caplog.text.count("has a value, but not one of each constraint ['g', 'h']") == warns


def test_regret_of_several_objectives_is_no_stopping_rule() -> None:
    opt = bo.Optimizer(SPACE, directions=["minimize", "maximize"])
    with pytest.raises(ArgumentError, match="stop_at_regret: expected a single objective"):
        bo.minimize(lambda p: [p["x"], p["x"]], opt, 3, stop_at_regret=0.1)
    assert opt.trials == []
