"""`Optimizer.outliers`: trials with wrong values, in any log."""

from pathlib import Path

import numpy as np
import pytest

import bkbopt as bo
from bkbopt.errors import NotReadyError

NOISE = 0.02
WRONG = (15, 33)


def told(opt: bo.Optimizer, error: float = 5.0, seed: int = 0) -> bo.Optimizer:
    """Values of a bowl with noise and two wrong ones; every tenth trial has failed."""
    rng = np.random.default_rng(seed)
    for i in range(60):
        if i % 10 == 0:
            nothing = [np.nan] if len(opt.directions) == 1 else [[np.nan] * 2]
            opt.tell([{"x": 0.5, "z": i / 60}], nothing, invalid="fail")
            continue
        x, z = (float(u) for u in rng.random(2))
        value = (x - 0.3) ** 2 + (z - 0.6) ** 2 + NOISE * float(rng.standard_normal()) + error * (i in WRONG)
        opt.tell({"x": x, "z": z}, value if len(opt.directions) == 1 else (float(rng.random()), value))
    return opt


@pytest.fixture(scope="module")
def bowl() -> bo.Optimizer:
    """An optimizer that was told of the bowl, to be read only."""
    return told(bo.Optimizer({"x": (0.0, 1.0), "z": (0.0, 1.0)}, seed=0))


def test_the_trials_with_errors_are_named(bowl: bo.Optimizer) -> None:
    opt = bowl
    assert tuple(trial.id for trial in opt.outliers) == WRONG
    assert opt.outliers == [opt.trials[i] for i in WRONG]


def test_the_trials_with_errors_have_the_largest_residuals_by_the_noise_of_the_others(bowl: bo.Optimizer) -> None:
    first, second, third, *_ = bowl.residuals()
    assert {first.id, second.id} == set(WRONG)
    # 250 standard deviations of the noise; scores are of values that are clipped at four robust ones of all values.
    assert min(-first.score, -second.score) > 10.0
    assert abs(third.score) < 5.0
    for found in (first, second):
        assert found.value - found.mean == pytest.approx(5.0, abs=3.0 * NOISE)
        assert found.std == pytest.approx(NOISE, rel=0.5)  # fitted to 50 values, and that of the prediction


def test_a_new_process_names_the_same_trials(tmp_path: Path) -> None:
    opt = told(bo.Optimizer({"x": (0.0, 1.0), "z": (0.0, 1.0)}, seed=0, storage=tmp_path / "runs.db"))
    assert bo.Optimizer.open(tmp_path / "runs.db").outliers == opt.outliers != []


def test_an_error_in_one_of_several_values_is_named() -> None:
    space = {"x": (0.0, 1.0), "z": (0.0, 1.0)}
    opt = told(bo.Optimizer(space, directions=["minimize", "minimize"], seed=0), error=1.0, seed=1)
    assert tuple(trial.id for trial in opt.outliers) == WRONG


def test_an_error_for_the_better_is_measured_again_and_not_recommended() -> None:
    rng = np.random.default_rng(0)
    rows = rng.random((200, 2))
    opt = bo.Optimizer(rows, seed=0)
    wrong = 40

    def value(row: int, i: int) -> float:
        return float(((rows[row] - 0.4) ** 2).sum() + NOISE * rng.standard_normal() - 3.0 * (i == wrong))

    for i in range(70):
        trial = opt.ask()
        assert trial.index is not None
        opt.tell(trial, value(trial.index, i))
    assert [trial.id for trial in opt.outliers] == [wrong]
    assert opt.best_trial.id == wrong
    best = opt.recommend().index
    assert best is not None
    assert float(((rows[best] - 0.4) ** 2).sum()) < 0.02


def test_without_a_value_there_is_nothing_to_name() -> None:
    with pytest.raises(NotReadyError, match="outliers: expected at least one value"):
        _ = bo.Optimizer({"x": (0.0, 1.0)}).outliers
