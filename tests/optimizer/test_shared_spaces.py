"""Two optimizers on one log: one sets another space while a call of the other one is about to write."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError
from bkbopt.optimizer.log.log_file import LogFile

NARROW = {"x": (0.0, 0.3)}
OTHERS: dict[str, dict[str, Any]] = {
    "narrower": NARROW,
    "one parameter more": {"x": (0.0, 1.0), "y": (0.0, 1.0)},
    "another parameter": {"y": (0.0, 1.0)},
    "another kind": {"x": ["a", "b"]},
}
CALLS: dict[str, Callable[[bo.Optimizer], object]] = {
    "tell": lambda opt: opt.tell({"x": 0.5}, 1.0),
    "enqueue": lambda opt: opt.enqueue({"x": 0.5}),
    "ask": lambda opt: opt.ask(fixed={"x": 0.5}),
}


@pytest.fixture
def pair(tmp_path: Path) -> tuple[bo.Optimizer, bo.Optimizer]:
    path = tmp_path / "log.db"
    a = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, n_startup_trials=2, storage=path)
    for x in (0.1, 0.2, 0.9):
        a.tell({"x": x}, (x - 0.2) ** 2)
    return a, bo.Optimizer.open(path)


def before_writing(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Let `change` happen once, just before the next transaction begins."""
    transaction, changes = LogFile.transaction, [change]

    def later(file: LogFile) -> Any:
        if changes:
            changes.pop()()
        return transaction(file)

    monkeypatch.setattr(LogFile, "transaction", later)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("space", [name for name in OTHERS if name != "one parameter more"])
def test_values_outside_of_the_new_space_are_refused_and_nothing_is_written(
    pair: tuple[bo.Optimizer, bo.Optimizer], call: str, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair
    before_writing(monkeypatch, lambda: b.set_space(OTHERS[space]))
    with pytest.raises(ArgumentError):
        CALLS[call](a)
    assert a.storage is not None
    assert bo.Optimizer.open(a.storage).trials == a.trials == b.trials
    assert len(a.trials) == 3


def test_a_point_without_a_value_of_a_new_parameter_is_refused(
    pair: tuple[bo.Optimizer, bo.Optimizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair
    before_writing(monkeypatch, lambda: b.set_space(OTHERS["one parameter more"]))
    with pytest.raises(ArgumentError, match="y"):
        a.tell({"x": 0.5}, 1.0)
    assert len(b.trials) == 3


@pytest.mark.parametrize("call", ["enqueue", "ask"])
def test_a_part_of_a_point_is_completed_in_the_new_space(
    pair: tuple[bo.Optimizer, bo.Optimizer], call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair
    before_writing(monkeypatch, lambda: b.set_space(OTHERS["one parameter more"]))
    CALLS[call](a)
    trial = b.ask() if call == "enqueue" else b.trials[3]
    assert trial.params["x"] == 0.5
    assert set(trial.params) == {"x", "y"}


def test_a_copy_has_the_trials_that_another_process_has_told(
    pair: tuple[bo.Optimizer, bo.Optimizer], tmp_path: Path
) -> None:
    a, b = pair
    b.tell({"x": 0.4}, 0.04)
    a.save(tmp_path / "copy.db")
    assert bo.Optimizer.load(tmp_path / "copy.db").trials == b.trials
