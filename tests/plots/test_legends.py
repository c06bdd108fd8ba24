"""A legend names what is drawn, and nothing else."""

import numpy as np
import pytest

import bkbopt as bo

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bkbopt import plots
from bkbopt.plots.progress import draw_progress
from bkbopt.plots.style import legend_below

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def named(ax: Axes) -> set[str]:
    legend = ax.get_legend()
    return set() if legend is None else {text.get_text() for text in legend.get_texts()}


def test_without_a_feasible_trial_no_legend_has_values() -> None:
    opt = bo.Optimizer(SPACE, constraints=["heat"], seed=0)
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, trial.params["x"] ** 2, constraints={"heat": 1.0 + trial.params["y"]})
    for ax in (plots.posterior_slice(opt, "x"), plots.posterior_contour(opt, "x", "y", n_grid=10), draw_progress(opt)):
        assert any(label.startswith("infeasible") for label in named(ax))
        assert not [label for label in named(ax) if label.startswith(("values", "best"))]
    assert not [label for label in named(plots.convergence(opt)) if label.startswith("best")]


def test_in_a_space_without_trials_no_legend_has_values_or_inducing_points() -> None:
    opt = bo.minimize(lambda p: p["x"] ** 2, SPACE, 12, seed=0)
    opt.set_space({"x": (2.0, 3.0), "y": (0.0, 1.0)})
    assert named(plots.posterior_slice(opt, "x")) == {"mean $\\pm$ 2 sd", "posterior mean"}
    assert named(plots.posterior_contour(opt, "x", "y", n_grid=10)) == set()


def test_a_pool_without_evaluated_rows_has_no_legend_of_them() -> None:
    opt = bo.Optimizer(np.random.default_rng(0).random((30, 2)), seed=0)
    opt.tell([{"x0": 0.5, "x1": 0.2 * i} for i in range(5)], [0.1 * i for i in range(5)])
    assert named(plots.pool_ucb(opt, "x0", "x1")) == {"rows"}
    opt.tell_rows([3, 4], [0.1, 0.2])
    assert "evaluated (2)" in named(plots.pool_ucb(opt, "x0", "x1"))


def test_long_labels_share_a_column_where_a_legend_would_else_be_a_single_one() -> None:
    long, short = ["values told (faint: off slice)", "worse values clipped at -16.26"], ["failed", "infeasible"]
    for labels, shown, columns in (
        ([long[0], short[0], short[1], long[1]], [long[0], long[1], short[1], short[0]], 2),
        ([short[0], long[0], short[1]], [short[0], long[0], short[1]], 1),  # no order has room for two
    ):
        ax = Figure((4.5 if columns == 2 else 2.0, 4.6)).add_subplot()
        for label in labels:
            ax.plot([], [], label=label)
        legend_below(ax)
        legend = ax.get_legend()
        assert legend is not None
        assert [text.get_text() for text in legend.get_texts()] == shown
        assert legend._ncols == columns  # type: ignore[attr-defined]
