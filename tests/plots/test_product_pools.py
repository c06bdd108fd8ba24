"""Pictures over product pools: columns are axes as for listed rows, and the rows of a product are never listed."""

import numpy as np
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from bkbopt import analysis, plots

RNG = np.random.default_rng(0)
PARTS = {"a": RNG.random((200, 2)), "b": RNG.random((200, 1)), "c": [1, 2, 5], "d": list(range(10))}


def told() -> bo.Optimizer:
    """Over 1.2 million rows."""
    opt = bo.Optimizer(bo.Pool.product(PARTS), seed=0)
    opt.tell_rows([3, 70_000, 600_000, 999_999, 12_345], [1.0, 2.0, 0.0, 3.0, 1.5])
    return opt


def test_a_slice_goes_along_a_column_and_holds_others() -> None:
    ax = plots.posterior_slice(told(), "a.x0", at={"c": 5, "a.x1": 0.5})
    assert ax.get_xlabel() == "a.x0"


def test_averages_over_rows_need_no_list_of_them() -> None:
    assert set(analysis.variance_shares(told(), n_samples=64)) == {"a.x0", "a.x1", "b.x0", "c", "d"}


def test_a_picture_of_all_arms_is_refused() -> None:
    with pytest.raises(ArgumentError, match="pool: expected at most 1,000,000 rows to be listed"):
        plots.pool_ucb(told(), "a.x0", "a.x1")
