"""Which pending points are proposed again, and what the suggestions of a large batch share."""

import math
from collections import Counter

import numpy as np
import pytest

import bkbopt as bo
from bkbopt.search.choosing import BATCH_BUDGET

ARMS = np.linspace(0.0, 1.0, 30)[:, None]
BEST = 12


def told(noise: float, repeats: int, **options: object) -> bo.Optimizer:
    """One row is far better than the others; it has been evaluated `repeats` times, the others once."""
    rng = np.random.default_rng(0)
    opt = bo.Optimizer(ARMS, direction="maximize", seed=0, **{"n_startup_trials": 5, **options})
    for row in [*range(30), *[BEST] * (repeats - 1), 0]:
        opt.tell({"index": row}, 10.0 * (row == BEST) + noise * float(rng.standard_normal()))
    return opt


@pytest.mark.parametrize("repeats", [1, 6])
def test_a_batch_repeats_a_row_until_it_would_tell_as_much_as_was_known(repeats: int) -> None:
    opt = told(0.5, repeats)
    pool, objective = opt.pool, opt._core.update().models.objectives[0]
    assert pool is not None
    leverages = objective.in_flight(pool.X[:]).tolist()
    rows = [trial.index for trial in opt.ask(25)]
    copies = Counter(rows)
    for row, n in copies.items():
        assert (n - 1) * leverages[row or 0] < BATCH_BUDGET
    assert rows[0] == BEST
    assert copies[BEST] == math.ceil(BATCH_BUDGET / leverages[BEST])
    assert len(copies) > 2


def test_with_the_users_own_kernel_and_noise_a_batch_follows_the_bounds_alone() -> None:
    opt = told(0.1, 1, fit=False, surrogate=bo.BKB(bo.kernels.rbf(1, 0.02), noise=0.01))
    assert {trial.index for trial in opt.ask(25)} == {BEST}


def test_when_every_row_has_spent_its_budget_rows_are_repeated_all_the_same() -> None:
    rows = [trial.index for trial in told(0.5, 1).ask(70)]
    assert len(rows) == 70
    assert len(set(rows)) == 30
