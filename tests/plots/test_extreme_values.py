"""Pictures of values whose differences or squares are beyond floats."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bkbopt as bo

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from bkbopt import plots
from bkbopt.analysis.run_data import WIDEST
from bkbopt.plots.progress import draw_progress
from tests.sweeps import slow_but

ENDS = {
    "both ends": (-1e308, 1e308),
    "largest floats": (1.7e308, 1.6e308),
    "a penalty": (1.7e308, 1.0),
    "just within": (-1e150, 1e150),
}
DRAW: dict[str, Callable[[bo.Optimizer], Any]] = {
    "convergence": plots.convergence,
    "progress": draw_progress,
    "regret": lambda opt: plots.regret(opt, 0.0),
    "cumulative regret": lambda opt: plots.regret(opt, -1.7e308, kind="cumulative", truth=lambda p: 1.7e308),
    "runs": lambda opt: plots.convergence([opt, [1e308, -1e308, 1.0]], band="standard error"),
    "slice": lambda opt: plots.posterior_slice(opt, "x"),
    "contour": lambda opt: plots.posterior_contour(opt, "x", "y", n_grid=8),
    "dependence": lambda opt: plots.partial_dependence(opt, "x", n_samples=8),
    "importance": lambda opt: plots.importance(opt, n_samples=64),
    "calibration": plots.calibration,
    "test values": lambda opt: plots.calibration(opt, [{"x": 0.3, "y": 0.1}], [-1.7e308]),
}


def told(ends: tuple[float, float], n: int) -> bo.Optimizer:
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
    for value in [*ends, *np.random.default_rng(0).standard_normal(n - 2)]:
        opt.tell(opt.ask(), float(value))
    return opt


@pytest.mark.parametrize("n", [2, 12])
@pytest.mark.parametrize("ends", slow_but(["both ends", "a penalty"], list(ENDS)))
def test_pictures_of_extreme_values_are_drawn_without_a_warning(ends: str, n: int) -> None:
    opt = told(ENDS[ends], n)
    for name, draw in DRAW.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            figure = draw(opt).figure
            figure.canvas.draw()
        assert figure.axes, name


def test_values_beyond_what_can_be_drawn_are_at_the_end_of_it() -> None:
    ax = plots.convergence([1e308, -1e308])
    assert ax.get_lines()[0].get_ydata() == pytest.approx([WIDEST, -WIDEST])


@pytest.mark.slow
def test_a_report_of_extreme_values_is_written(tmp_path: Path) -> None:
    plots.report(told(ENDS["both ends"], 2), tmp_path / "run.html")
    plots.report(told(ENDS["a penalty"], 12), tmp_path / "run.html")
    assert "1.7e+308" in (tmp_path / "run.html").read_text()


def test_the_front_and_the_rows_of_a_pool_are_drawn_with_extreme_values() -> None:
    two = bo.Optimizer([(0.0, 1.0)], directions=["minimize"] * 2, seed=0)
    two.tell([{"x0": 0.1}, {"x0": 0.9}], [[1e308, -1e308], [-1e308, 1e308]])
    plots.overview(two).canvas.draw()
    pool = bo.Optimizer(np.random.default_rng(0).random((30, 2)), seed=0)
    pool.tell([pool.ask(), pool.ask()], [1e308, -1e308])
    plots.pool_ucb(pool, "x0", "x1").figure.canvas.draw()
