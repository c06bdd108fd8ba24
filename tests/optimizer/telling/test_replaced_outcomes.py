"""Outcomes of finished trials that are replaced: corrected values, larger noise, trials that did not fail after all."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, TrialStateError, UnknownTrialError

SPACE = {"x": (0.0, 1.0), "kind": ["a", "b"]}


def value(params: Any) -> float:
    return float((params["x"] - 0.3) ** 2 + 0.1 * (params["kind"] == "b"))


def told(n: int = 14, storage: Path | None = None, wrong: int | None = None) -> bo.Optimizer:
    """An optimizer with `n` finished trials at the same points, one of them with a wrong value."""
    opt = bo.Optimizer(SPACE, seed=0, n_startup_trials=5, storage=storage)
    rng = np.random.default_rng(1)
    for i in range(n):
        params = {"x": float(rng.random()), "kind": ["a", "b"][i % 2]}
        opt.tell(params, 50.0 if i == wrong else value(params))
    return opt


def asked(opt: bo.Optimizer, n: int = 4) -> list[Any]:
    out = []
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, value(trial.params))
        out.append((dict(trial.params), trial.id))
    return out


@pytest.mark.parametrize("stored", [False, True])
def test_after_a_correction_all_is_as_if_the_right_value_had_been_told(stored: bool, tmp_path: Path) -> None:
    right, opt = told(), told(storage=tmp_path / "log.db" if stored else None, wrong=7)
    opt.predict([{"x": 0.5, "kind": "a"}])  # the wrong value has been learnt
    trial = opt.trials[7]
    corrected = opt.tell(trial, value(trial.params), replace=True)
    assert (corrected.value, corrected.told_at) == (right.trials[7].value, trial.told_at)
    at = [{"x": x, "kind": kind} for x in np.linspace(0.0, 1.0, 9) for kind in "ab"]
    for one, other in zip(opt.predict(at), right.predict(at), strict=True):
        np.testing.assert_array_equal(one, other)
    assert asked(opt) == asked(right)
    assert opt.recommend() == right.recommend()


def test_other_processes_and_later_ones_learn_the_replaced_value(tmp_path: Path) -> None:
    path, at = tmp_path / "log.db", [{"x": 0.5, "kind": "a"}]
    one = told(storage=path, wrong=3)
    other = bo.Optimizer.open(path)
    other.predict(at)
    one.tell(3, value(one.trials[3].params), replace=True)
    expected = one.predict(at)
    for reader in (other, bo.Optimizer.open(path), bo.Optimizer.load(path)):
        for part, same in zip(reader.predict(at), expected, strict=True):
            np.testing.assert_array_equal(part, same)
        assert reader.trials == one.trials
    copy = bo.Optimizer.load(path)
    assert asked(other, 2) == asked(copy, 2)


def test_a_failed_trial_gets_its_late_value_and_a_value_becomes_a_failure() -> None:
    opt = told()
    trial = opt.ask()
    opt.fail(trial)
    assert opt.tell(trial, 0.25, replace=True).state == "COMPLETE"
    assert opt.best_trial.value == min(t.value for t in opt.trials)
    withdrawn = opt.tell([0, 1], [np.nan, 1.0], replace=True, invalid="fail")
    assert [t.state for t in withdrawn] == ["FAIL", "COMPLETE"]
    assert asked(opt, 1)


def test_outdated_values_keep_less_weight_by_a_larger_std() -> None:
    opt = told()
    at = [{"x": 0.5, "kind": "a"}]
    before = opt.predict(at)[1]
    old = opt.trials[:10]
    opt.tell(old, [t.value for t in old], std=[2.0] * 10, replace=True)
    assert opt.predict(at)[1] > before
    assert [t.stds for t in opt.trials[:10]] == [(2.0,)] * 10


def test_a_value_that_got_a_large_std_is_not_recommended_among_values_without_noise() -> None:
    opt = told(24)
    best, slip = opt.recommend(), opt.trials[9]
    opt.tell(slip, -1.0, std=1e3, replace=True)
    assert slip.params != best.params
    assert opt.recommend().params == best.params


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda opt: opt.tell(14, 1.0, replace=True), TrialStateError, "is replaced, but trial 14 is running"),
        (lambda opt: opt.tell(15, 1.0, replace=True), TrialStateError, "trial 15 is queued"),
        (lambda opt: opt.tell(99, 1.0, replace=True), UnknownTrialError, "got 99"),
        (lambda opt: opt.tell([0, 0], [1.0, 2.0], replace=True), ArgumentError, "trial 0 twice"),
        (lambda opt: opt.tell({"x": 0.5, "kind": "a"}, 1.0, replace=True), ArgumentTypeError, "got parameters"),
        (lambda opt: opt.tell(0, 1.0, replace="yes"), ArgumentTypeError, "replace: expected True or False"),
        (lambda opt: opt.tell(0, float("nan"), replace=True), ArgumentError, "value"),
        (lambda opt: opt.tell(0, 1.0), TrialStateError, "was told the value"),
    ],
)
def test_what_cannot_be_replaced_is_refused_and_changes_nothing(
    call: Any, error: type[Exception], words: str, tmp_path: Path
) -> None:
    opt = told(storage=tmp_path / "log.db")
    opt.ask()
    opt.enqueue({"x": 0.1})
    before = opt.trials, (tmp_path / "log.db").read_bytes()
    with pytest.raises(error, match=words):
        call(opt)
    assert (opt.trials, (tmp_path / "log.db").read_bytes()) == before


def test_what_is_not_told_again_stays(tmp_path: Path) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, constraints=["heat <= 30", "mass"], seed=0, storage=tmp_path / "log.db")
    opt.tell({"x": 0.5}, 1.0, std=0.25, constraints={"heat": 20.0})
    opt.tell(0, constraints={"mass": -1.0}, replace=True)  # measured a day later
    opt.tell(0, constraints={"heat": 40.0}, replace=True)
    (trial,) = bo.Optimizer.load(tmp_path / "log.db").trials
    assert (trial.value, trial.stds, trial.constraints) == (1.0, (0.25,), {"heat": 40.0, "mass": -1.0})
    assert not trial.is_feasible
    opt.tell(0, 2.0, replace=True)
    assert (opt.trials[0].value, opt.trials[0].stds, opt.trials[0].constraints) == (2.0, None, trial.constraints)
    opt.tell(0, np.nan, invalid="fail", replace=True)
    assert (opt.trials[0].state, opt.trials[0].values, opt.trials[0].constraints) == ("FAIL", (), {})
