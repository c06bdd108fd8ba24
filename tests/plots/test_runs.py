"""Convergence and regret."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import bkbopt as bo
from bkbopt import errors

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from matplotlib.axes import Axes

from bkbopt import plots


def test_convergence_is_the_running_best_and_ends_at_the_recommendation(line: bo.Optimizer) -> None:
    ax = plots.convergence(line, value_name="loss (nats)")
    values = [t.value for t in line.trials]
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), np.minimum.accumulate(values))
    np.testing.assert_array_equal(ax.get_lines()[0].get_xdata(), np.arange(1, len(values) + 1))
    choice = line.recommend()
    assert ax.containers[0][0].get_ydata() == pytest.approx([choice.mean], abs=0)
    assert ax.get_ylabel() == "best loss (nats) so far"


def test_convergence_takes_values_in_the_order_in_which_they_were_told() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    first, second = opt.ask(2)
    opt.tell(second, 5.0)
    opt.tell(first, 3.0)
    np.testing.assert_array_equal(plots.convergence(opt).get_lines()[0].get_ydata(), [5.0, 3.0])


def test_convergence_over_seeds_has_median_and_quartiles_of_the_shortest_length(
    band_of: Callable[[Axes], tuple[float, float]],
) -> None:
    rows = np.random.default_rng(0).random((5, 9))
    runs = [*rows[:4], [*rows[4].tolist(), 0.0]]
    ax = plots.convergence({"a": runs}, direction="maximize")
    best = np.maximum.accumulate(rows, axis=1)
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), np.median(best, axis=0), rtol=1e-14)
    low, high = np.quantile(best, [0.25, 0.75], axis=0)
    assert band_of(ax) == pytest.approx((low.min(), high.max()), rel=1e-14)
    legend = ax.get_legend()
    assert legend is not None
    assert [t.get_text() for t in legend.get_texts()] == ["a (n = 5)", "median and quartiles"]


def test_convergence_by_standard_errors_and_answers_as_they_are(band_of: Callable[[Axes], tuple[float, float]]) -> None:
    rows = np.array([[3.0, 1.0, 2.0], [5.0, 2.0, 4.0]])
    ax = plots.convergence({"a": rows}, best=False, band="standard error", t=[10, 20, 40])
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), rows.mean(axis=0))
    np.testing.assert_array_equal(ax.get_lines()[0].get_xdata(), [10, 20, 40])
    error = rows.std(axis=0, ddof=1) / 2**0.5
    assert band_of(ax)[1] == pytest.approx((rows.mean(axis=0) + 2 * error).max())


def test_failed_evaluations_are_nan_and_improve_nothing() -> None:
    ax = plots.convergence([np.nan, 2.0, np.nan, 1.0])
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), [np.nan, 2.0, 2.0, 1.0])
    ax = plots.regret([np.nan, 2.0, np.nan, 1.0], 0.5, kind="average")
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), [0.0, 1.5, 1.5, 1.0])


@pytest.mark.parametrize("draw", [plots.convergence, lambda run: plots.regret(run, 1.0)])
def test_a_single_value_is_a_dot_above_a_whole_number(draw: Callable[[Any], Axes]) -> None:
    ax = draw([3.0])
    ax.figure.canvas.draw()
    assert ax.get_lines()[0].get_marker() == "o"
    assert [tick for tick in ax.get_xticks() if tick != round(tick)] == []
    assert 1.0 in ax.get_xticks()


def test_recommended_values_are_a_second_line_of_the_same_colour() -> None:
    ax = plots.convergence({"a": [3.0, 1.0], "b": [2.0, 2.0]}, recommended={"b": [2.5, 1.5]})
    lines = {line.get_label(): line for line in ax.get_lines()}
    np.testing.assert_array_equal(lines["b, recommended"].get_ydata(), [2.5, 1.5])
    assert lines["b, recommended"].get_color() == lines["b"].get_color() != lines["a"].get_color()


def test_regret_by_the_truth_is_that_of_the_points_asked(
    mixed: bo.Optimizer, cost: Callable[[Mapping[str, Any]], float]
) -> None:
    true = np.array([cost(t.params) for t in mixed.trials if t.state == "COMPLETE"]) - 0.1
    drawn = {
        kind: plots.regret(mixed, 0.1, kind=kind, truth=cost)  # type: ignore[arg-type]
        for kind in ("simple", "average", "cumulative")
    }
    np.testing.assert_allclose(drawn["simple"].get_lines()[0].get_ydata(), np.minimum.accumulate(true))
    np.testing.assert_allclose(drawn["cumulative"].get_lines()[0].get_ydata(), np.cumsum(true))
    average = np.cumsum(true) / np.arange(1, len(true) + 1)
    np.testing.assert_allclose(drawn["average"].get_lines()[0].get_ydata(), average)
    assert [ax.get_yscale() for ax in drawn.values()] == ["log", "log", "linear"]


def test_regret_of_maximisation_is_the_gap_to_the_optimum_and_linear_where_negative() -> None:
    ax = plots.regret([1.0, 4.0, 2.0], 3.0, direction="maximize", recommended=[1.0, 1.0, 2.5])
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), [2.0, -1.0, -1.0])
    np.testing.assert_array_equal(ax.get_lines()[1].get_ydata(), [2.0, 2.0, 0.5])
    assert ax.get_yscale() == "linear"


@pytest.mark.parametrize("kind", ["simple", "average", "cumulative"])
def test_the_label_of_regret_says_where_the_optimum_is_beaten(kind: Any) -> None:
    name = f"{kind} regret in value"
    assert plots.regret([[3.0, 2.0], [np.nan, 1.0]], 1.0, kind=kind).get_ylabel() == name
    runs = [[3.0, 1.0], [3.0, 2.0], [0.5, 0.75]]  # of the last one alone, so that the median is above zero
    assert plots.regret(runs, 1.0, kind=kind).get_ylabel() == f"{name}, optimum beaten"
    assert plots.regret([3.0, 2.0], 1.0, kind=kind, recommended=[3.0, 0.5]).get_ylabel() == f"{name}, optimum beaten"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: plots.convergence("abc"), errors.ArgumentTypeError, "runs: expected an optimizer"),
        (lambda: plots.convergence(3.0), errors.ArgumentTypeError, "runs: .* got float"),
        (lambda: plots.convergence([]), errors.ArgumentError, "empty list"),
        (lambda: plots.convergence({}), errors.ArgumentError, "empty dict"),
        (lambda: plots.convergence(["a", "b"]), errors.ArgumentTypeError, "expected numbers"),
        (lambda: plots.convergence([1.0, np.inf]), errors.ArgumentError, "expected finite values"),
        (lambda: plots.convergence([1.0, 10**400]), errors.ArgumentError, "expected finite values"),
        (lambda: plots.convergence([1.0], direction="up"), errors.ArgumentError, "direction: .* got .'up'"),
        (lambda: plots.convergence([1.0], band="sd"), errors.ArgumentError, "band: expected"),  # type: ignore[arg-type]
        (lambda: plots.convergence([1.0, 2.0], t=[1]), errors.ArgumentError, "t: expected 2 numbers"),
        (lambda: plots.convergence([1.0, 2.0], t="ab"), errors.ArgumentTypeError, "t: expected numbers, got 'ab'"),  # type: ignore[arg-type]
        (lambda: plots.convergence({"a": [1.0]}, recommended={"b": [1.0]}), errors.ArgumentError, "recommended: "),
        (lambda: plots.regret([1.0], float("nan")), errors.ArgumentError, "optimum: expected a finite number"),
        (lambda: plots.regret([1.0], 0.0, kind="best"), errors.ArgumentError, "kind: "),  # type: ignore[arg-type]
        (lambda: plots.regret([1.0], 0.0, truth=3), errors.ArgumentTypeError, "truth: "),  # type: ignore[arg-type]
        (lambda: plots.ask_time([1.0, -1.0]), errors.ArgumentError, "times: expected positive"),
        (lambda: plots.ask_time([1.0, 10**400]), errors.ArgumentError, "times: expected positive"),
        (lambda: plots.ask_time("abc"), errors.ArgumentTypeError, "times: "),  # type: ignore[arg-type]
    ],
)
def test_refused_runs_are_named(call: Callable[[], Axes], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_optimizers_of_two_directions_have_no_common_picture(line: bo.Optimizer, arms: bo.Optimizer) -> None:
    with pytest.raises(errors.ArgumentError, match="the same for all runs"):
        plots.convergence({"a": line, "b": arms})
