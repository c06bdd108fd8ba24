"""Columns of ordered choices have axes with all categories, in their order."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt import plots
from bkbopt.errors import ArgumentError

ORDER = ["XS", "S", "M", "L", "XL"]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size = pd.Categorical(rng.choice(["XL", "S", "M", "L"], 40), ORDER, ordered=True)
    return pd.DataFrame({"size": size, "dose": rng.random(40)})


@pytest.fixture(scope="module")
def opt(frame: pd.DataFrame) -> bo.Optimizer:
    opt = bo.Optimizer(frame, seed=0)
    for trial in opt.ask(12):
        opt.tell(trial, ORDER.index(trial.params["size"]) + trial.params["dose"])
    return opt


def test_a_slice_has_the_categories_as_ticks(opt: bo.Optimizer) -> None:
    ax = plots.posterior_slice(opt, "size")
    assert [label.get_text() for label in ax.get_xticklabels()] == ORDER
    plt.close(ax.get_figure(root=True))


def test_ranks_are_no_coordinates_of_a_scatter(opt: bo.Optimizer) -> None:
    with pytest.raises(ArgumentError, match=r"numeric column of \['dose'\], got 'size'"):
        plots.pool_ucb(opt, "size", "dose")


def test_a_report_says_that_the_choices_are_ordered(frame: pd.DataFrame, tmp_path: Path) -> None:
    plots.report(bo.Optimizer(frame, seed=0), tmp_path / "report.html")
    assert "ordered choice</td>" in (tmp_path / "report.html").read_text()
