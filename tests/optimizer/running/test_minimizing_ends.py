"""Failures and interrupts in the ready-made loop."""

import copy
import json
import pickle
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.adapters.shell import main
from bkbopt.errors import ArgumentError, ArgumentTypeError, StorageError
from bkbopt.optimizer.log.log_file import LogFile
from tests.optimizer.runs import OPTIONS, SPACE, BoomError, ManualExecutor, bowl, fragile


@pytest.mark.parametrize("threads", [False, True])
def test_caught_exceptions_fail_the_trial_and_others_end_the_run(threads: bool) -> None:
    with ThreadPoolExecutor(2) as pool:
        executor = pool if threads else None
        opt = bo.minimize(fragile, SPACE, 12, catch=(BoomError,), executor=executor, **OPTIONS)
        assert len(opt.trials) == 12
        for t in opt.trials:
            assert t.state == ("FAIL" if t.params["x"] > 0.6 else "COMPLETE")
        assert any(t.state == "FAIL" for t in opt.trials)
        with pytest.raises(BoomError, match="too hot"):
            bo.minimize(fragile, SPACE, 12, catch=(KeyError,), executor=executor, **OPTIONS)


@pytest.mark.parametrize("threads", [False, True])
def test_values_that_are_no_numbers_fail_the_trial_if_asked_for(threads: bool) -> None:
    with ThreadPoolExecutor(2) as pool:
        opt = bo.minimize(
            lambda p: float("nan") if p["x"] > 0.6 else bowl(p),
            SPACE,
            9,
            invalid="fail",
            executor=pool if threads else None,
            **OPTIONS,
        )
    assert len(opt.trials) == 9
    assert all(t.state == ("FAIL" if t.params["x"] > 0.6 else "COMPLETE") for t in opt.trials)
    assert any(t.state == "FAIL" for t in opt.trials)


def test_bad_value_of_the_objective_is_named() -> None:
    for bad in (None, float("nan"), "3", 1j, [1.0, 2.0]):
        with pytest.raises((ArgumentError, ArgumentTypeError), match="value"):
            bo.minimize(lambda p, bad=bad: bad, SPACE, 5, **OPTIONS)


class Refusing(ThreadPoolExecutor):
    """It takes two jobs, and then none."""

    n_taken = 0

    def submit(self, *given: Any, **more: Any) -> Any:
        if self.n_taken == 2:
            raise RuntimeError("no more")
        self.n_taken += 1
        return super().submit(*given, **more)


def test_no_trial_stays_running_if_the_executor_refuses_it() -> None:
    opt = bo.Optimizer(SPACE, **OPTIONS)
    with Refusing(1) as executor, pytest.raises(RuntimeError, match="no more"):
        bo.minimize(bowl, opt, 9, executor=executor, n_workers=1)
    assert [t.state for t in opt.trials] == ["COMPLETE", "COMPLETE", "FAIL", "WAITING"]
    assert opt.trials[-1].params == opt.trials[-2].params


def test_an_executor_that_returns_no_futures_is_refused_and_its_trial_is_queued_again() -> None:
    class Jobs:
        def submit(self, f: Any, params: dict[str, Any]) -> int:
            return 7

    opt = bo.Optimizer(SPACE, **OPTIONS)
    with pytest.raises(ArgumentTypeError, match=r"executor: expected .* a future with add_done_callback, .* got int"):
        bo.minimize(bowl, opt, 9, executor=Jobs())
    assert [t.state for t in opt.trials] == ["FAIL", "WAITING"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, BoomError])
def test_the_point_of_a_trial_is_queued_after_an_interrupt_and_not_after_an_error_of_its_own(
    error: type[BaseException],
) -> None:
    opt = bo.Optimizer(np.arange(6.0)[:, None], seed=0)

    def f(params: dict[str, Any]) -> float:
        if opt.n_complete == 2:
            raise error("too hot")
        return float(params["x0"])

    with pytest.raises(error):
        bo.minimize(f, opt, 9)
    queued = ["WAITING"] if error is KeyboardInterrupt else []
    assert [t.state for t in opt.trials] == ["COMPLETE", "COMPLETE", "FAIL", *queued]
    assert {t.index for t in opt.trials[2:]} == {opt.trials[2].index}


def n_known_failures(opt: bo.Optimizer) -> int:
    """The number of failures that the search has learnt."""
    return opt._core.update().history.n_failed


@pytest.mark.parametrize("stored", [True, False])
def test_the_search_does_not_learn_from_an_interrupt_that_a_point_fails(
    stored: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "runs.db"
    opt = bo.Optimizer(SPACE, storage=path if stored else None, **OPTIONS)

    def f(params: dict[str, Any]) -> float:
        if len(opt.trials) in (3, 5):
            raise {3: KeyboardInterrupt, 5: BoomError}[len(opt.trials)]("too hot")
        return bowl(params)

    for _ in range(2):
        with pytest.raises((KeyboardInterrupt, BoomError)):
            bo.minimize(f, opt, 9)
    assert [t.state for t in opt.trials] == ["COMPLETE", "COMPLETE", "FAIL", "COMPLETE", "FAIL"]
    assert n_known_failures(opt) == 1  # that of the function
    if stored:
        assert n_known_failures(bo.Optimizer.open(path)) == 1
        assert main(["show", str(path)]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert (shown["failed"], shown["lost"]) == (1, 1)
    opt.tell(2, 0.5, replace=True)  # it had a value after all
    assert opt._core.update().history.n_complete == 4


def test_an_interrupt_queues_a_point_that_does_not_belong_to_the_space_any_more_until_it_does() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)

    def f(params: dict[str, Any]) -> float:
        opt.set_space({"x": (2.0, 3.0)})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bo.minimize(f, opt, 3)
    assert [t.state for t in opt.trials] == ["FAIL", "WAITING"]
    assert opt.ask().params["x"] >= 2.0
    opt.set_space({"x": (0.0, 1.0)})
    assert opt.ask().params == opt.trials[0].params


def test_an_interrupt_queues_the_row_of_an_earlier_pool_by_its_name() -> None:
    rows = pd.DataFrame({"name": list("abcd"), "x": [0.0, 1.0, 2.0, 3.0]})
    opt = bo.Optimizer(bo.Pool(rows, id_column="name"), seed=0)
    asked = []

    def f(trial: bo.Trial) -> float:
        asked.append(trial.label)
        opt.set_pool(bo.Pool(rows.iloc[::-1], id_column="name"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bo.minimize(f, opt, 3, pass_trial=True)
    assert opt.ask().label == asked[0]


def test_the_points_of_the_other_running_trials_are_queued_when_one_ends_the_run() -> None:
    class Failing(ManualExecutor):
        def submit(self, f: Any, params: dict[str, Any]) -> "Future[float]":
            future = super().submit(f, params)
            if len(self.jobs) == 3:
                self.jobs[1][0].set_exception(BoomError("too hot"))
            return future

    executor, opt = Failing(), bo.Optimizer(SPACE, **OPTIONS)
    with pytest.raises(BoomError):
        bo.minimize(bowl, opt, 9, executor=executor, n_workers=3)
    assert [t.state for t in opt.trials] == ["FAIL", "FAIL", "FAIL", "WAITING", "WAITING"]
    assert [t.params for t in opt.trials[3:]] == [opt.trials[0].params, opt.trials[2].params]


@pytest.mark.parametrize("threads", [False, True])
def test_the_point_of_a_trial_whose_value_cannot_be_written_is_queued(
    threads: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt, transaction = bo.Optimizer(SPACE, storage=tmp_path / "log.db", **OPTIONS), LogFile.transaction

    def full(file: LogFile) -> Any:
        monkeypatch.setattr(LogFile, "transaction", transaction)  # there is room again
        raise StorageError("the disk is full")

    def f(params: dict[str, Any]) -> float:
        monkeypatch.setattr(LogFile, "transaction", full)
        return bowl(params)

    with ThreadPoolExecutor(1) as pool, pytest.raises(StorageError, match="the disk is full"):
        bo.minimize(f, opt, 3, executor=pool if threads else None)
    assert [t.state for t in opt.trials] == ["FAIL", "WAITING"]
    assert opt.lost_trials == [opt.trials[0]]


def test_a_storage_that_fails_does_not_replace_the_error_that_ended_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opt = bo.Optimizer(SPACE, storage=tmp_path / "log.db", **OPTIONS)

    def unreachable(file: LogFile, since: int) -> Any:
        raise StorageError("the file cannot be read")

    def failing(params: dict[str, Any]) -> float:
        monkeypatch.setattr(LogFile, "changes", unreachable)
        raise BoomError("too hot")

    with pytest.raises(BoomError, match="too hot"):
        bo.minimize(failing, opt, 3)
    assert "Trials [0] are still running in the log" in caplog.text


@pytest.mark.parametrize(("n_workers", "warns"), [(None, False), (1, False), (3, True)])
def test_workers_without_an_executor_are_warned_of(
    n_workers: int | None, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    opt = bo.minimize(bowl, SPACE, 3, n_workers=n_workers, **OPTIONS)
    assert len(opt.trials) == 3
    assert caplog.text.count("n_workers=3 has no effect without an executor") == warns


def test_a_function_without_a_result_is_told_what_to_return() -> None:
    opt = bo.Optimizer(SPACE, **OPTIONS)
    with pytest.raises(
        ArgumentTypeError, match=r"^f: expected a number as its result, got None; return the value\. .*"
    ):
        bo.minimize(lambda params: None, opt, 3)
    assert [trial.state for trial in opt.trials] == ["FAIL"]


def test_the_trials_of_a_run_that_an_exception_ends_are_in_the_exception(tmp_path: Path) -> None:
    def breaks(params: Any) -> float:
        if len(seen) == 6:
            raise BoomError("the sixth")
        seen.append(params)
        return float(params["x"])

    seen: list[Any] = []
    with pytest.raises(BoomError, match="the sixth") as raised:
        bo.minimize(breaks, {"x": (0.0, 1.0)}, 20, seed=0)
    opt = raised.value.bkbopt_run.optimizer  # type: ignore[attr-defined]
    assert [trial.params for trial in opt.trials[:6]] == seen
    assert "The run had 7 trials" in raised.value.__notes__[0]
    seen.append("goes on")
    assert bo.minimize(breaks, opt, 3) is opt
    for space, options in ((opt, {}), ({"x": (0.0, 1.0)}, {"storage": tmp_path / "log.db", "seed": 0})):
        del seen[6:]
        with pytest.raises(BoomError) as other:
            bo.minimize(breaks, space, 20, **options)
        assert not hasattr(other.value, "bkbopt_run")


def test_an_exception_that_ends_a_run_can_be_sent_to_another_process() -> None:
    def breaks(params: Any) -> float:
        if params["x"] > 0.6:
            error = BoomError("beyond", 0.6)
            error.add_note("of the user")
            raise error
        return float(params["x"])

    with pytest.raises(BoomError) as raised:
        bo.minimize(breaks, {"x": (0.0, 1.0)}, 20, seed=0)
    sent = pickle.loads(pickle.dumps(raised.value))
    assert type(sent) is BoomError
    assert sent.args == ("beyond", 0.6)
    assert sent.__notes__[0] == "of the user"
    assert sent.bkbopt_run.optimizer is None
    assert copy.copy(raised.value).args == sent.args
    assert raised.value.bkbopt_run.optimizer.trials  # type: ignore[attr-defined]
