"""Calls interrupted at any line: the log has all of their effect, or none, and the optimizer continues."""

import contextlib
import itertools
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

import bkbopt as bo
from bkbopt.optimizer.log import log_schema
from tests.faults.interrupted_scenes import SCENES
from tests.faults.interrupts import impatient, sweep

#: Scenes of the fast slice, and at how many lines of each.
FAST = (
    "model, set_space",
    "model in memory, recover",
    "rules in memory, set_space, rules",
    "rules, set_space, other rules",
    "model, tell, refused",
    "queue, ask(3)",
    "constraints at a mark, ask",
    "constraints, set_constraints",
    "constraints in memory, set_constraints",
    "pool, set_pool",
    "written by others, ask",
)
LINES = 3
BOX = {"x": (0.0, 1.0)}


@pytest.mark.parametrize("name", FAST)
def test_a_call_that_is_interrupted_leaves_all_or_nothing(name: str) -> None:
    found = list(sweep(SCENES[name], 0, LINES))
    assert [one for one in found if one.wrong is not None] == []
    assert len(found) >= LINES - 1


# An interrupt in the line that ends a `with open(...)` skips its `__exit__`: the garbage collector closes the lock file
# that is being made (`locks._opened`), with a warning.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_a_call_that_is_interrupted_at_any_line_leaves_all_or_nothing(name: str) -> None:
    assert [one for one in sweep(SCENES[name], 1) if one.wrong is not None] == []


@pytest.mark.parametrize("stored", [True, False])
def test_a_space_whose_use_was_interrupted_is_used(
    stored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt = bo.Optimizer(BOX, storage=tmp_path / "runs.db" if stored else None, seed=0)

    def interrupted(self: Any, *args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(opt._core), "_use", interrupted)
        with pytest.raises(KeyboardInterrupt):
            opt.set_space({"y": (0.0, 2.0)})
    assert set(opt.ask().params) == {"y"}


def test_a_pool_of_the_users_that_was_being_set_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no array, so that it is not in the file."""
    frame = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": ["u", "v", "u"]})
    opt = bo.Optimizer(frame, storage=tmp_path / "runs.db", seed=0)
    opt.tell(opt.ask(), 1.0)
    with monkeypatch.context() as patch:
        patch.setattr(type(opt._core), "_use", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            opt.set_pool(frame[1:])
    assert len(opt.pool or ()) == 2
    opt.tell(opt.ask(), 1.0)


def test_the_end_of_a_block_that_was_skipped_is_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt within contextlib leaves our blocks open as long as somebody keeps the traceback."""
    opt = bo.Optimizer(BOX, storage=tmp_path / "runs.db", seed=0)
    end = contextlib._GeneratorContextManager.__exit__

    def interrupted(self: Any, *args: Any) -> Any:
        if under_way and opt._core.is_in_use:  # a lock is held, or a transaction is open
            raise KeyboardInterrupt
        return end(self, *args)

    under_way: list[Any] = []
    kept: list[BaseException] = []
    threads = torch.get_num_threads()
    for call in (opt.ask, lambda: opt.tell({"x": 0.5}, 1.0)):
        under_way.append(call)
        with monkeypatch.context() as patch:
            patch.setattr(contextlib._GeneratorContextManager, "__exit__", interrupted)
            try:
                call()
            except KeyboardInterrupt as error:
                kept.append(error)
        under_way.clear()
        assert torch.get_num_threads() == threads
        core = opt._core
        assert core.file is not None
        assert not core.is_in_use
        other = bo.Optimizer.open(tmp_path / "runs.db")
        other.ask()  # nobody is in its way
        opt.ask()
    assert len(kept) == 2
    assert [t.id for t in opt.trials] == [0, 1, 2, 3]


def test_a_block_that_ends_late_ends_no_other_one(tmp_path: Path) -> None:
    opt = bo.Optimizer(BOX, storage=tmp_path / "runs.db", seed=0)
    file = opt._core.file
    assert file is not None
    skipped = file.transaction()
    skipped.__enter__()
    file.release()
    with file.transaction() as writer:
        writer.set_option("perturbations", False)
        del skipped  # its traceback was dropped
    assert bo.Optimizer.open(tmp_path / "runs.db")._core.file.options["perturbations"] is False  # type: ignore[union-attr]


def test_a_users_function_may_look_at_the_trials_while_an_ask_is_under_way(tmp_path: Path) -> None:
    seen: list[bool] = []

    def feasible(params: Any) -> bool:
        assert len(opt.trials) >= 0
        seen.append(opt._core.is_in_use)
        return True

    opt = bo.Optimizer(BOX, storage=tmp_path / "runs.db", seed=0, feasible=feasible)
    opt.ask()
    assert seen
    assert all(seen)
    assert not opt._core.is_in_use


def test_a_log_whose_first_attribute_was_interrupted_is_not_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The view is written anew, from what queries found; the traceback would keep an unfinished query alive."""
    opt = bo.Optimizer(BOX, storage=tmp_path / "runs.db", seed=0)
    opt.set_space({"x": (0.0, 2.0)})
    opt.tell({"x": 1.0}, 1.0)
    read, kept = log_schema.from_json, list[BaseException]()
    for at in itertools.count():
        calls = itertools.count()

        def interrupted(text: str, calls: Any = calls, at: int = at) -> Any:
            if next(calls) == at:
                raise KeyboardInterrupt
            return read(text)

        with monkeypatch.context() as patch:
            patch.setattr(log_schema, "from_json", interrupted)
            try:
                opt.set_user_attr(0, "a", 1)
                break
            except KeyboardInterrupt as error:
                kept.append(error)
        with impatient(), bo.Optimizer.open(tmp_path / "runs.db")._core.file.transaction():  # type: ignore[union-attr]
            pass
    assert len(kept) > 10
    assert opt.trials[0].user_attrs == bo.Optimizer.open(tmp_path / "runs.db").trials[0].user_attrs == {"a": 1}
