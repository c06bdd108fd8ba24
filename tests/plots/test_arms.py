"""Pools coloured by their bounds."""

from collections.abc import Callable

import numpy as np
import pytest

import bkbopt as bo
from bkbopt import errors

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from matplotlib.axes import Axes

from bkbopt import analysis, plots


def test_a_pool_is_coloured_by_its_upper_bound(
    arms: bo.Optimizer, scattered: Callable[[Axes], list[np.ndarray]]
) -> None:
    ax = plots.pool_ucb(arms, "x0", "x1", beta=2.0)
    mean, std = arms.predict([{"index": i} for i in range(60)])
    rows = np.array([[p["x0"], p["x1"]] for p in map(arms.pool.decode, range(60))])  # type: ignore[union-attr]
    every, evaluated, star = scattered(ax)
    drawn = {
        tuple(np.round(place, 9)): v for place, v in zip(every, np.asarray(ax.collections[0].get_array()), strict=True)
    }
    for place, bound in zip(rows, mean + 2.0 * std, strict=True):
        assert drawn[tuple(np.round(place, 9))] == pytest.approx(bound, abs=1e-9)
    indices = sorted({t.index for t in arms.trials if t.state == "COMPLETE"})  # type: ignore[type-var]
    np.testing.assert_allclose(evaluated, rows[indices])
    np.testing.assert_allclose(star[0], rows[arms.recommend().index])


def test_a_pool_that_is_minimised_is_coloured_by_its_lower_bound_at_the_beta_in_use(
    run: Callable[..., bo.Optimizer],
) -> None:
    rows = np.random.default_rng(0).random((30, 2))
    opt = run(rows, lambda p: p["x0"], 10)
    ax = plots.pool_ucb(opt, rows[:, 1], "x0")
    mean, std = opt.predict([{"index": i} for i in range(30)])
    bound = mean - opt.regret_certificate().beta * std
    np.testing.assert_allclose(np.sort(np.asarray(ax.collections[0].get_array())), np.sort(bound), rtol=0, atol=1e-9)
    figure = ax.get_figure(root=True)
    assert figure is not None
    assert figure.axes[1].get_ylabel().startswith("lower confidence bound of value")


def test_running_rows_are_diamonds_in_the_present_pool(run: Callable[..., bo.Optimizer]) -> None:
    rows = np.random.default_rng(2).random((40, 2))
    opt = run(rows, lambda p: p["x0"], 12, duplicates="avoid")
    assert not plots.pool_ucb(opt, "x0", "x1").get_lines()
    batch = opt.ask(3)
    (diamonds,) = plots.pool_ucb(opt, "x0", "x1").get_lines()
    assert diamonds.get_label() == "running (3)"
    asked = sorted(trial.index for trial in batch if trial.index is not None)
    np.testing.assert_allclose(np.column_stack([diamonds.get_xdata(), diamonds.get_ydata()]), rows[asked])
    kept = np.delete(rows, asked[0], axis=0)[::-1]
    opt.set_pool(kept)
    (diamonds,) = plots.pool_ucb(opt, "x0", "x1").get_lines()
    places = np.column_stack([diamonds.get_xdata(), diamonds.get_ydata()])
    np.testing.assert_allclose(sorted(places.tolist()), sorted(rows[asked[1:]].tolist()))


def test_a_column_of_whole_numbers_has_whole_ticks(run: Callable[..., bo.Optimizer]) -> None:
    rows = np.column_stack([np.random.default_rng(0).random(30), np.arange(30) % 4])
    ax = plots.pool_ucb(run(rows, lambda p: p["x0"], 10), "x0", "x1")
    assert all(tick == round(tick) for tick in ax.get_yticks())
    assert any(tick != round(tick) for tick in ax.get_xticks())


def test_pools_with_choices_and_pools_of_objects_have_what_fits_them(
    run: Callable[..., bo.Optimizer], scattered: Callable[[Axes], list[np.ndarray]]
) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": np.linspace(1.0, 5.0, 20), "shape": ["round", "square"] * 10})
    opt = run(frame, lambda p: p["size"] + (p["shape"] == "round"), 9)
    assert [t.get_text() for t in plots.posterior_slice(opt, "shape").get_xticklabels()] == ["round", "square"]
    assert set(analysis.variance_shares(opt, n_samples=64)) == {"size", "shape"}
    with pytest.raises(errors.ArgumentError, match=r"numeric column of \['size'\], got 'shape'"):
        plots.pool_ucb(opt, "size", "shape")
    with pytest.raises(errors.ArgumentError, match="y: expected 20 finite coordinates"):
        plots.pool_ucb(opt, "size", [1.0, 2.0])
    with pytest.raises(errors.ArgumentTypeError, match="y: expected a column's name or numbers"):
        plots.pool_ucb(opt, "size", ["a"] * 20)

    def near(A: list[str], B: list[str]) -> np.ndarray:
        return np.exp(-0.5 * np.subtract.outer([float(len(a)) for a in A], [float(len(b)) for b in B]) ** 2)

    words = ["a", "bb", "ccc", "dddd", "eeeee"]
    named = run(words, lambda p: float(len(p["arm"])), 8, n_startup_trials=4, surrogate=bo.BKB(kernel=near))
    with pytest.raises(errors.ArgumentError, match="pool of objects"):
        plots.posterior_slice(named, "arm")
    assert len(scattered(plots.pool_ucb(named, [1, 2, 3, 4, 5], [0, 0, 1, 1, 2]))[0]) == 5
    progress, coverage, _ = plots.overview(named).axes
    assert coverage.get_ylabel() == "values inside (%)"
    spec = progress.get_subplotspec()
    assert spec is not None
    assert list(spec.colspan) == [0, 1]  # no panel is empty
    new = bo.Optimizer(words, surrogate=bo.BKB(kernel=near), seed=0)
    new.tell(new.ask(), 1.0)
    _, coverage, _ = plots.overview(new).axes
    assert [text.get_text() for text in coverage.texts] == ["calibration needs values of two points"]


def test_arms_that_have_gone_are_not_drawn_as_evaluated(
    arms: bo.Optimizer, run: Callable[..., bo.Optimizer], scattered: Callable[[Axes], list[np.ndarray]]
) -> None:
    rows = np.random.default_rng(0).random((20, 2))
    opt = run(rows, lambda p: p["x0"], 10)
    opt.set_pool(rows[10:])
    here = {t.index - 10 for t in opt.trials if t.index is not None and t.index >= 10}
    shown = [points for points in scattered(plots.pool_ucb(opt, "x0", "x1")) if len(points) not in (1, 10)]
    expected = {tuple(row) for row in np.round(rows[10:][sorted(here)], 9).tolist()}
    assert {tuple(row) for points in shown for row in np.round(points, 9).tolist()} <= expected
