"""`set_space` with other lists of values and with new parameters: what the model keeps of the past."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bkbopt as bo
from bkbopt.kernels import matern52

LISTS: dict[str, tuple[Any, Any]] = {
    "permuted choices": (["a", "b", "c"], ["c", "a", "b"]),
    "more choices": (["a", "b", "c"], ["a", "b", "c", "d"]),
    "choices before the others": (["b", "c"], ["a", "b", "c"]),
    "a value above": (bo.Ordinal(["a", "b"]), bo.Ordinal(["a", "b", "c"])),
    "a value below": (bo.Ordinal(["b", "c"]), bo.Ordinal(["a", "b", "c"])),
    "a value in between": (bo.Ordinal(["a", "c"]), bo.Ordinal(["a", "b", "c"])),
    "another order": (bo.Ordinal(["a", "b", "c"]), bo.Ordinal(["c", "a", "b"])),
    "a choice that was fixed": (bo.Categorical(["b"]), ["a", "b", "c"]),
}


def space(k: Any, **more: Any) -> dict[str, Any]:
    return {"x": (0.0, 1.0), "k": k, **more}


def value(p: Any) -> float:
    return (p["x"] - 0.4) ** 2 + {"a": 0.0, "b": 1.0, "c": 2.0, "d": 3.0}[p["k"]]


def points(k: Any, n: int = 12) -> list[dict[str, Any]]:
    listed = getattr(k, "listed", k)
    return [{"x": i / n, "k": listed[i % len(listed)]} for i in range(n)]


def optimizer(k: Any, storage: Path | None = None, **options: Any) -> bo.Optimizer:
    return bo.Optimizer(space(k), seed=0, n_startup_trials=4, storage=storage, **options)


def surrogate(k: Any) -> bo.BKB:
    """One with hyper-parameters that are given, for the columns of a space with `k` in it."""
    categorical = [] if isinstance(k, bo.Ordinal) else [1]
    return bo.BKB(matern52(2, 0.5, categorical=categorical), noise=1e-4)


def run(opt: bo.Optimizer, n: int, f: Any = value) -> None:
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, f(trial.params))


def predicted(opt: bo.Optimizer, at: list[dict[str, Any]]) -> Any:
    return np.stack(opt.predict(at))


# -- lists that change -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in LISTS if "fixed" not in name])  # a kernel is for all columns
def test_predictions_are_those_of_an_optimizer_that_had_the_new_list_from_the_start(name: str) -> None:
    old, new = LISTS[name]
    told = points(old)
    moved, fresh = (optimizer(k, surrogate=surrogate(new), fit=False) for k in (old, new))
    fresh.tell(told, [value(p) for p in told])
    moved.tell(told[:8], [value(p) for p in told[:8]])
    moved.set_space(space(new))
    moved.tell(told[8:], [value(p) for p in told[8:]])
    assert predicted(moved, points(new, 30)) == pytest.approx(predicted(fresh, points(new, 30)), abs=1e-9)


@pytest.mark.parametrize("name", LISTS)
def test_a_fitted_model_keeps_what_it_knows(name: str) -> None:
    old, new = LISTS[name]
    opt = optimizer(old)
    told = points(old, 24)
    opt.tell(told, [value(p) for p in told])
    opt.set_space(space(new))
    means, _ = opt.predict(told)
    assert means == pytest.approx([value(p) for p in told], abs=0.05)
    assert value(opt.recommend().params) == pytest.approx(min(value(p) for p in told), abs=0.01)


def test_a_choice_that_was_removed_stays_in_the_model_and_is_not_proposed() -> None:
    opt, kept = optimizer(["a", "b", "c"]), optimizer(["a", "b", "c"])
    for each in (opt, kept):
        run(each, 16)
    opt.set_space(space(["c", "b"]))
    assert opt.surrogate.observations.total == 16
    assert len(np.unique(opt.observed()[0][:, 1])) == len({t.params["k"] for t in opt.trials}) == 3
    run(opt, 8)
    assert {t.params["k"] for t in opt.trials[16:]} <= {"b", "c"}
    assert opt.recommend().params["k"] == "b"
    with pytest.raises(bo.errors.ArgumentError, match=r"'k'.*'c', 'b'"):
        opt.predict({"x": 0.4, "k": "a"})


def test_choices_come_back_as_they_went() -> None:
    opt, kept = (optimizer(["a", "b"], surrogate=surrogate(["a"]), fit=False) for _ in range(2))
    for each in (opt, kept):
        run(each, 10)
    before = predicted(opt, points(["a", "b"]))
    opt.set_space(space(["b"]))
    opt.set_space(space(["a", "b"]))
    assert predicted(opt, points(["a", "b"])).tolist() == before.tolist()
    assert [t.params for t in opt.ask(3)] == [t.params for t in kept.ask(3)]


@pytest.mark.parametrize("name", [*LISTS, "a choice less", "a value less"])
def test_a_log_with_changed_lists_is_continued_to_the_last_bit(name: str, tmp_path: Path) -> None:
    less = {"a choice less": (["a", "b", "c"], ["c", "b"])}
    less["a value less"] = bo.Ordinal(["a", "b", "c"]), bo.Ordinal(["a", "c"])  # type: ignore[assignment]
    old, new = {**LISTS, **less}[name]
    first = optimizer(old, tmp_path / "log")
    run(first, 8)
    first.ask()  # running
    first.set_space(space(new))
    run(first, 3)
    again = bo.Optimizer.open(tmp_path / "log")
    first.save(tmp_path / "copy")
    copied = bo.Optimizer.load(tmp_path / "copy")
    at = points(new, 7)
    assert predicted(again, at).tolist() == predicted(copied, at).tolist() == predicted(first, at).tolist()
    assert [t.params for t in again.trials] == [t.params for t in first.trials]
    asked = [t.params for t in copied.ask(3)]
    assert [t.params for t in again.ask(3)] == asked
    first.set_space(space(old))  # by one process, for all
    run(again, 1)
    assert again.space == first.space


def test_queued_and_running_trials_of_another_list_keep_their_choices() -> None:
    opt = optimizer(["a", "b"])
    run(opt, 5)
    running = opt.ask()
    queued = [opt.enqueue({"k": k}) for k in ("a", "b")]
    opt.set_space(space(["c", "b"]))
    trial = opt.ask()
    assert (trial.id, trial.params["k"]) == (queued[1].id, "b")  # "a" waits for a space with it
    assert opt.tell(running, 1.0).params == running.params
    opt.set_space(space(["b", "c", "a"]))
    trial = opt.ask()
    assert (trial.id, trial.params["k"]) == (queued[0].id, "a")


def test_a_discrete_space_counts_points_by_their_values() -> None:
    opt = bo.Optimizer({"k": ["a", "b", "c"], "n": bo.Int(0, 1)}, seed=0, n_startup_trials=2, duplicates="avoid")
    for k in "ac":
        opt.tell([{"k": k, "n": n} for n in (0, 1)], [1.0, 2.0])
    opt.set_space({"k": ["d", "c", "b"], "n": bo.Int(0, 1)})
    assert {tuple(t.params.values()) for t in opt.ask(4)} == {("d", 0), ("d", 1), ("b", 0), ("b", 1)}
    with pytest.raises(bo.errors.SpaceExhaustedError):
        opt.ask()


def test_conditions_on_a_list_that_changes_hold_by_value() -> None:
    def tree(kinds: list[str]) -> dict[str, Any]:
        return {"kind": kinds, "x": (0.0, 1.0), "rate": bo.Float(0.0, 1.0, when={"kind": "slow"})}

    def f(p: Any) -> float:
        return (p["x"] - 0.3) ** 2 + (abs(p["rate"] - 0.7) if p["kind"] == "slow" else 0.5)

    opt = bo.Optimizer(tree(["fast", "slow"]), seed=0, n_startup_trials=5)
    run(opt, 25, f)
    opt.set_space(tree(["none", "slow", "fast"]))
    at = [dict(t.params) for t in opt.trials]
    assert opt.predict(at)[0] == pytest.approx([f(p) for p in at], abs=0.1)
    run(opt, 6, f)
    assert all(("rate" in t.params) == (t.params["kind"] == "slow") for t in opt.trials)
    assert opt.recommend().params["kind"] == "slow"
