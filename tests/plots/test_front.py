"""Several objectives, and outcome constraints."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bkbopt as bo
from bkbopt import errors

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bkbopt import plots


def told(directions: list[str], values: list[list[float]], heat: list[float]) -> bo.Optimizer:
    opt = bo.Optimizer([(0.0, 1.0)], directions=directions, constraints=["heat"], seed=0)
    points = [{"x0": i / len(values)} for i in range(len(values))]
    opt.tell(points, values, constraints={"heat": heat})
    opt.fail(opt.ask())
    return opt


@pytest.mark.parametrize(
    ("directions", "front", "steps"),
    [
        (["minimize", "minimize"], [(1, 4), (2, 2)], "steps-post"),
        (["maximize", "minimize"], [(2, 2), (4, 3)], "steps-pre"),
    ],
)
def test_the_front_bounds_what_it_dominates_and_the_rest_is_marked(
    directions: list[str],
    front: list[tuple[float, float]],
    steps: str,
    scattered: Callable[[Axes], list[np.ndarray]],
) -> None:
    values = [[4.0, 3.0], [2.0, 2.0], [1.0, 4.0], [0.0, 0.0]]
    ax = plots.pareto(told(directions, values, [0.0, -1.0, 0.0, 0.5]), value_names=("cost (s)", "error"))
    (line,) = ax.get_lines()
    np.testing.assert_array_equal(np.column_stack([line.get_xdata(), line.get_ydata()]), front)
    assert line.get_drawstyle() == steps
    infeasible, dominated = scattered(ax)
    assert infeasible.tolist() == [[0.0, 0.0]]
    assert dominated.tolist() == [row for row in values[:3] if tuple(row) not in front]
    assert (ax.get_xlabel(), ax.get_ylabel()) == (f"cost (s) ({directions[0]})", f"error ({directions[1]})")


def test_trials_far_from_the_front_are_triangles_at_the_edge(scattered: Callable[[Axes], list[np.ndarray]]) -> None:
    front = [[float(i), float(9 - i)] for i in range(10)]
    dominated = [[2.0 + i, 10.0] for i in range(6)]
    far = [[900.0, 5.0], [3.0, 800.0], [900.0, 800.0]]
    values, heat = [*front, *dominated, *far, [-700.0, 5.0]], [0.0] * 19 + [1.0]
    ax = plots.pareto(told(["minimize", "minimize"], values, heat), with_recommended=False)
    (low, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    assert low < -9.0
    assert 9.0 < right < 30.0
    assert bottom < 0.0
    assert 10.0 < top < 30.0
    left, near, beside, above = scattered(ax)
    assert left.tolist() == [[low, 5.0]]  # it is infeasible
    assert near.tolist() == dominated
    assert beside.tolist() == [[right, 5.0]]
    assert above.tolist() == [[3.0, top], [right, top]]
    legend = ax.get_legend()
    assert legend is not None
    names = {text.get_text() for text in legend.get_texts()}
    assert names == {"dominated", "beyond the axes", "Pareto front"}
    line = ax.get_lines()[0]
    np.testing.assert_array_equal(np.column_stack([line.get_xdata(), line.get_ydata()]), front)


def test_axes_of_a_front_follow_from_all_trials_if_none_is_far_or_all_are_equal() -> None:
    for values in ([[float(i), float(-i)] for i in range(12)], [[1.0, 2.0]] * 12):
        ax = plots.pareto(told(["maximize", "minimize"], values, [0.0] * 12))
        legend = ax.get_legend()
        assert legend is not None
        assert not [t for t in legend.get_texts() if "beyond" in t.get_text()]
    flat = plots.pareto(told(["minimize"] * 2, [*[[7.0, float(i)] for i in range(12)], [7.0, 1e6]], [0.0] * 13))
    (left, right), (_, top) = flat.get_xlim(), flat.get_ylim()
    assert left < 7.0 < right
    assert 11.0 < top < 100.0
    opt = told(
        ["minimize", "minimize"], [[1.0, 2.0], *[[3.0, 3.0 + i] for i in range(10)], [99.0, 2.5]], [0.0] * 11 + [1.0]
    )
    legend = plots.pareto(opt, with_recommended=False).get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["dominated", "infeasible, beyond the axes", "Pareto front"]


def test_two_of_three_objectives_are_named_by_their_numbers() -> None:
    opt = told(["minimize", "maximize", "minimize"], [[1.0, 2.0, 5.0], [2.0, 1.0, 7.0]], [0.0, 0.0])
    ax = plots.pareto(opt, objectives=(2, 1))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("value 2 (minimize)", "value 1 (maximize)")
    assert ax.get_lines()[0].get_label() == "Pareto front of all 3 objectives"  # trials may look dominated here


def test_pictures_of_one_objective_refuse_several_and_the_front_refuses_others(line: bo.Optimizer) -> None:
    opt = told(["minimize"] * 2, [[1.0, 2.0], [2.0, 1.0]], [0.0, 0.0])
    draw: list[Callable[[], Any]] = [
        lambda: plots.convergence(opt),
        lambda: plots.regret(opt, 0.0, truth=lambda p: 0.0),
        lambda: plots.posterior_slice(opt),
        lambda: plots.posterior_contour(opt, "x0", "x1"),
        lambda: plots.partial_dependence(opt),
        lambda: plots.pairwise_dependence(opt),
        lambda: plots.importance(opt),
        lambda: plots.calibration(opt),
    ]
    for refused in draw:
        with pytest.raises(errors.ArgumentError, match="a single objective, got one with 2; see overview and pareto"):
            refused()
    assert plots.ask_time(opt).has_data()
    with pytest.raises(errors.ArgumentError, match="expected an optimizer with two objectives, got 1"):
        plots.pareto(line)
    for names in (5, ("a", 5)):
        with pytest.raises(errors.ArgumentTypeError, match="value_names: expected a text, or a list of texts"):
            plots.pareto(opt, value_names=names)  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="value_names: expected 2, one for each objective"):
        plots.pareto(opt, value_names=["a", "b", "c"])
    assert plots.pareto(opt, value_names="loss").get_ylabel() == "loss 1 (minimize)"
    assert plots.pareto(opt, value_names=np.array(["a", "b"])).get_ylabel() == "b (minimize)"  # type: ignore[arg-type]
    bad: list[Any] = [5, "01", (0, 0), (0, 2), (0, [1]), (0, 1, 1), (0.5, 1)]
    for pair in bad:
        with pytest.raises(errors.ArgumentError, match="objectives: expected two different numbers from 0 to 1, got"):
            plots.pareto(opt, objectives=pair)
    assert plots.pareto(opt, objectives=(1.0, 0.0)).get_xlabel() == "value 1 (minimize)"  # type: ignore[arg-type]
    with pytest.raises(errors.NotReadyError):
        plots.pareto(bo.Optimizer([(0.0, 1.0)], directions=["minimize"] * 2, seed=0))


def test_infeasible_trials_are_never_the_best_so_far() -> None:
    opt = bo.Optimizer([(0.0, 1.0)], constraints=["heat"], seed=0)
    opt.tell([{"x0": v} for v in (0.1, 0.4, 0.6, 0.9)], [1.0, 3.0, 2.0, 2.5], constraints={"heat": [1.0, 0.0, -1.0, 0]})
    best = plots.convergence(opt).get_lines()[0]
    np.testing.assert_array_equal(best.get_ydata(), [np.nan, 3.0, 2.0, 2.0])
    simple = plots.regret(opt, 0.0, truth=lambda p: p["x0"]).get_lines()[0]
    np.testing.assert_array_equal(simple.get_ydata(), [np.nan, 0.4, 0.4, 0.4])
    assert len(plots.overview(opt).axes) >= 3


def test_dollar_signs_in_the_names_of_values_are_literal() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=["minimize", "minimize"], seed=0)
    opt.tell([{"x": 0.1}, {"x": 0.9}], [[1.0, 2.0], [2.0, 1.0]])
    ax = plots.pareto(opt, value_names=("a $50% of $ b", "$\\c$"))
    assert isinstance(ax.figure, Figure)
    ax.figure.savefig(io.BytesIO())  # matplotlib reads mathematics, and refuses these, when it draws
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a $50% of $ b (minimize)", "$\\c$ (minimize)")


@pytest.mark.parametrize(("k", "n_pairs"), [(2, 1), (3, 3), (5, 4)])
def test_an_overview_of_several_objectives_has_their_fronts_and_the_best_of_each(k: int, n_pairs: int) -> None:
    opt = told(["minimize", *["maximize"] * (k - 1)], [[float(i + j) for j in range(k)] for i in range(3)], [0.0] * 3)
    names = [f"loss {'abcde'[j]}" for j in range(k)]
    axes = plots.overview(opt, value_names=names).axes
    fronts, best = axes[:n_pairs], axes[n_pairs : n_pairs + k]
    assert {ax.get_xlabel() for ax in fronts} <= {f"loss {c} (m{a}imize)" for c in "abcd" for a in ("in", "ax")}
    assert [ax.get_ylabel() for ax in best] == [f"best {name} so far" for name in names]
    np.testing.assert_array_equal(best[0].get_lines()[0].get_ydata(), [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(best[1].get_lines()[0].get_ydata(), [1.0, 2.0, 3.0])
    assert [ax.get_ylabel() for ax in axes[n_pairs + k :]] == ["time of an ask (ms)"]


def test_an_overview_without_feasible_trials_has_no_front() -> None:
    opt = told(["minimize"] * 2, [[1.0, 2.0], [2.0, 1.0]], [1.0, 1.0])
    assert len(plots.overview(opt).axes) == 3  # the best of each, and the time of the asks


def test_names_of_values_in_an_overview_are_one_for_each_objective() -> None:
    opt = told(["minimize"] * 2, [[1.0, 2.0], [2.0, 1.0]], [0.0, 0.0])
    with pytest.raises(errors.ArgumentError, match="value_names: expected 2, one for each objective"):
        plots.overview(opt, value_names=["loss"])
    with pytest.raises(errors.ArgumentTypeError, match="value_names: expected a text, or a list of texts, got 3"):
        plots.overview(opt, value_names=3)  # type: ignore[arg-type]
    with pytest.raises(errors.NotReadyError, match="expected at least one value"):
        plots.overview(bo.Optimizer([(0.0, 1.0)], directions=["minimize"] * 2, seed=0))


def test_labels_are_the_names_of_the_objectives() -> None:
    opt = bo.Optimizer([(0.0, 1.0)], directions={"loss": "minimize", "power": "maximize", "c": "minimize"}, seed=0)
    opt.tell([{"x0": 0.1}, {"x0": 0.5}, {"x0": 0.9}], [[1.0, 2.0, 0.0], [2.0, 1.0, 3.0], [3.0, 0.0, 2.0]])
    ax = plots.pareto(opt, objectives=("power", "loss"))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("power (maximize)", "loss (minimize)")
    labels = [ax.get_ylabel() for ax in plots.overview(opt).axes]
    assert {f"best {name} so far" for name in ("loss", "power", "c")} <= set(labels)
    assert plots.pareto(opt, objectives=(1, 0), value_names=["a", "b", "c"]).get_xlabel() == "b (maximize)"
    with pytest.raises(
        errors.ArgumentError,
        match=r"objectives: expected two different numbers from 0 to 2, or names among \(.loss., .power., .c.\)",
    ):
        plots.pareto(opt, objectives=("power", "other"))


def test_labels_are_the_name_of_a_single_objective() -> None:
    opt = bo.Optimizer([(0.0, 1.0)] * 2, directions={"loss": "minimize"}, seed=0)
    opt.tell([{"x0": i / 4, "x1": 1.0 - i / 4} for i in range(5)], [1.0, 0.2, 0.1, 0.4, 0.9])
    assert plots.overview(opt).axes[0].get_ylabel() == plots.posterior_slice(opt, "x0").get_ylabel() == "loss"
    assert plots.partial_dependence(opt, "x0", n_samples=4).get_ylabel() == "loss, averaged"
    assert plots.posterior_slice(opt, "x0", value_name="error").get_ylabel() == "error"
    bars = [ax.get_ylabel() for ax in plots.posterior_contour(opt, "x0", "x1", n_grid=5).figure.axes]
    assert "posterior mean of loss" in bars


def test_the_recommended_front_is_drawn_where_values_have_noise() -> None:
    noise = np.random.default_rng(0).normal(scale=0.05, size=(40, 2))
    X = np.random.default_rng(1).random(40)
    values = np.c_[(X - 0.3) ** 2, -X]
    for told_values, is_noisy in ((values + noise, True), (values, False)):
        opt = bo.Optimizer([(0.0, 1.0)], directions=["minimize"] * 2, seed=0)
        opt.tell([{"x0": x} for x in X], told_values)
        ax = plots.pareto(opt)
        legend = ax.get_legend()
        assert legend is not None
        assert ("recommended (mean and sd)" in [text.get_text() for text in legend.get_texts()]) == is_noisy
        assert not plots.pareto(opt, with_recommended=False).containers
        if is_noisy:
            line = ax.containers[0][0]
            means = np.array([point.means for point in opt.recommend_front()])
            np.testing.assert_array_equal(np.c_[line.get_xdata(), line.get_ydata()], means)
            (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
            assert left < means[:, 0].min() < means[:, 0].max() < right
            assert low < means[:, 1].min() < means[:, 1].max() < high


def test_runs_have_the_name_that_all_their_objectives_have() -> None:
    loss, error, plain = (
        bo.Optimizer([(0.0, 1.0)], directions=directions, seed=0)
        for directions in ({"loss": "minimize"}, {"error": "minimize"}, None)
    )
    for opt in (loss, error, plain):
        opt.tell([{"x0": 0.1}, {"x0": 0.5}, {"x0": 0.9}], [3.0, 1.0, 2.0])
    assert plots.convergence([loss, loss]).get_ylabel() == "best loss so far"
    assert plots.convergence({"a": loss, "b": error}).get_ylabel() == "best value so far"
    assert plots.convergence([loss, plain]).get_ylabel() == "best value so far"
    assert plots.regret(loss, 0.0).get_ylabel() == "simple regret in loss"
    assert plots.regret(loss, 0.0, value_name="cost").get_ylabel() == "simple regret in cost"
