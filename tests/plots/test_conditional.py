"""Spaces with conditional parameters, ordinal parameters and changed ranges."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bkbopt as bo
from bkbopt import errors

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from matplotlib.axes import Axes
from matplotlib.collections import PathCollection

from bkbopt import analysis, plots
from bkbopt.analysis.coordinates import coordinates_of
from bkbopt.errors import ArgumentError
from tests.plots.panels import panels_of

BRANCHES = {
    "model": ["svm", "gp"],
    "gamma": bo.Float(1e-3, 1.0, log=True, when={"model": "svm"}),
    "degree": bo.Int(1, 5, when={"model": "gp"}),
    "x": (0.0, 1.0),
    "size": bo.Ordinal(["S", "M", "L"]),
}


def loss(params: dict[str, Any]) -> float:
    """The best model is "svm"."""
    own = np.log10(params["gamma"]) ** 2 if params["model"] == "svm" else 3.0 + params["degree"]
    return float(own + (params["x"] - 0.3) ** 2 + 0.5 * "SML".index(params["size"]))


@pytest.fixture(scope="module")
def branched(run: Callable[..., bo.Optimizer]) -> bo.Optimizer:
    opt = run(BRANCHES, loss, 16)
    assert opt.recommend().params["model"] == "svm"
    return opt


def test_a_slice_along_a_conditional_parameter_shows_the_trials_that_have_it(
    branched: bo.Optimizer, scattered: Callable[[Axes], list[np.ndarray]]
) -> None:
    ax = plots.posterior_slice(branched, "gamma")
    curve, choice = ax.get_lines()[0], dict(branched.recommend().params)
    mean, _ = branched.predict([{**choice, "gamma": float(v)} for v in np.asarray(curve.get_xdata())])
    np.testing.assert_allclose(curve.get_ydata(), mean, rtol=0, atol=1e-12)
    data, inducing, _ = scattered(ax)
    with_gamma = [(t.params["gamma"], t.value) for t in branched.trials if "gamma" in t.params]
    assert 0 < len(with_gamma) < len(branched.trials)
    np.testing.assert_array_equal(data, with_gamma)
    assert set(inducing[:, 0]) <= set(data[:, 0])


def test_pairs_of_another_branch_are_drawn_with_its_switch(branched: bo.Optimizer) -> None:
    figure = plots.pairwise_dependence(branched, ["degree", "x"], at={"model": "gp"}, n_samples=8)
    alone = plots.partial_dependence(branched, "x", at={"model": "gp"}, n_samples=8)
    np.testing.assert_array_equal(panels_of(figure)[1, 1].get_lines()[0].get_ydata(), alone.get_lines()[0].get_ydata())
    assert "model = gp, " in figure.get_suptitle()
    own = panels_of(plots.pairwise_dependence(branched, at={"model": "gp"}, n_samples=8))
    assert [own[i, i].get_xlabel() for i in range(len(own))] == ["model", "degree", "x", "size"]
    with pytest.raises(errors.ArgumentError, match=r"at: expected switches among .*, got 'x'"):
        plots.pairwise_dependence(branched, at={"x": 0.5})


def test_a_parameter_that_is_not_active_is_refused_with_the_reason(branched: bo.Optimizer) -> None:
    reason = "'degree': it is active where 'model' is 'gp', and here 'model' is 'svm'; pass such values, as at="
    draw: list[Callable[[], Any]] = [
        lambda: plots.posterior_slice(branched, "degree"),
        lambda: plots.posterior_contour(branched, "x", "degree"),
        lambda: plots.partial_dependence(branched, "degree"),
        lambda: plots.pairwise_dependence(branched, ["degree", "x"]),
    ]
    for refused in draw:
        with pytest.raises(errors.ArgumentError, match=reason):
            refused()
    with pytest.raises(
        errors.ArgumentError, match=r"at: .* 'degree' is inactive here: it is active where 'model' is 'gp'"
    ):
        plots.posterior_slice(branched, "x", at={"degree": 2})


def test_at_may_name_another_branch(branched: bo.Optimizer) -> None:
    ax = plots.posterior_slice(branched, "degree", at={"model": "gp"})
    others = {name: branched.recommend().params[name] for name in ("x", "size")}
    mean, _ = branched.predict([{**others, "model": "gp", "degree": n} for n in range(1, 6)])
    np.testing.assert_allclose(ax.containers[0][0].get_ydata(), mean, rtol=0, atol=1e-12)


def test_parameters_that_become_active_along_a_switch_are_mid_range(branched: bo.Optimizer) -> None:
    choice = dict(branched.recommend().params)
    others = {name: choice[name] for name in ("x", "size")}
    mean, _ = branched.predict([choice, {**others, "model": "gp", "degree": 3}])
    np.testing.assert_allclose(
        plots.posterior_slice(branched, "model").containers[0][0].get_ydata(), mean, rtol=0, atol=1e-12
    )


def test_a_contour_has_no_colour_where_a_parameter_is_not_there(branched: bo.Optimizer) -> None:
    mesh = next(
        c
        for c in plots.posterior_contour(branched, "model", "gamma", n_grid=5).collections
        if not isinstance(c, PathCollection)
    )
    cells = np.ma.masked_invalid(mesh.get_array()).reshape(-1, 2)
    assert not np.ma.getmaskarray(cells)[:, 0].any()
    assert np.ma.getmaskarray(cells)[:, 1].all()


def test_a_legend_names_the_hatching_of_combinations_that_do_not_exist(branched: bo.Optimizer) -> None:
    for draw in (plots.posterior_contour, plots.partial_dependence):
        for pair, named in ((("model", "gamma"), True), (("x", "size"), False)):
            legend = draw(branched, *pair).get_legend()
            labels = [] if legend is None else [text.get_text() for text in legend.get_texts()]
            assert ("combinations that do not exist" in labels) is named


def test_the_recommended_point_is_drawn_where_the_slice_goes_through_it(branched: bo.Optimizer) -> None:
    best = dict(branched.recommend().params)
    other = next(size for size in "SML" if size != best["size"])
    for at, shown in (
        (None, True),
        ({"model": best["model"], "size": best["size"]}, True),
        ({"x": 0.5 * best["x"]}, True),  # of the drawn parameter
        ({"size": other}, False),
        ({"model": "gp"}, False),
        ({}, False),
    ):
        legend = plots.posterior_slice(branched, "x", at=at).get_legend()
        assert legend is not None
        assert ("recommended" in [text.get_text() for text in legend.get_texts()]) is shown, at


def test_dependence_keeps_to_the_recommended_branch(branched: bo.Optimizer) -> None:
    assert branched.space is not None
    rest = branched.space.decode(coordinates_of(branched).sampled(16))
    assert {params["model"] for params in rest} == {"svm"}
    ax = plots.partial_dependence(branched, "size", n_samples=16)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["S", "M", "L"]
    curves = [branched.predict([{**params, "size": size} for params in rest])[0] for size in "SML"]
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), np.mean(curves, axis=1), rtol=0, atol=1e-9)
    figure = plots.pairwise_dependence(branched, n_samples=4)
    axes = panels_of(figure)
    assert [axes[i, 0].get_ylabel() for i in range(1, 4)] == ["gamma", "x", "size"]
    title = " ".join(figure.get_suptitle().split())
    assert title.endswith(
        "all panels are for model = svm, except where this is on an axis; hatched: combinations that do not exist"
    )
    assert [axes[i, 0].patch.get_hatch() is not None for i in range(1, 4)] == [True, False, False]
    unhatched = plots.pairwise_dependence(branched, ["x", "size"], n_samples=4).get_suptitle()
    assert " ".join(unhatched.split()).endswith("model = svm, except where this is on an axis")


def test_dependence_shows_another_branch_where_at_names_it(branched: bo.Optimizer) -> None:
    assert branched.space is not None
    rest = branched.space.decode(coordinates_of(branched).sampled(16, at={"model": "gp"}))
    assert {params["model"] for params in rest} == {"gp"}
    ax = plots.partial_dependence(branched, "degree", at={"model": "gp"}, n_samples=16)
    curves = [branched.predict([{**params, "degree": n} for params in rest])[0] for n in range(1, 6)]
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), np.mean(curves, axis=1), rtol=0, atol=1e-9)
    with pytest.raises(ArgumentError, match=r"at: expected switches among \['model'\], got 'x', which is averaged"):
        plots.partial_dependence(branched, "degree", at={"x": 0.5})


def test_shares_of_a_conditional_parameter_are_those_of_its_part_of_the_space(branched: bo.Optimizer) -> None:
    shares = analysis.variance_shares(branched, n_samples=512)
    assert set(shares) == set(BRANCHES)
    assert shares["model"].total > shares["degree"].total
    assert len(plots.overview(branched).axes) >= 4


def test_ordinals_are_drawn_in_their_order(
    run: Callable[..., bo.Optimizer], scattered: Callable[[Axes], list[np.ndarray]]
) -> None:
    opt = run({"batch": bo.Ordinal([16, 32, 128]), "x": (0.0, 1.0)}, lambda p: p["batch"] / 64 + p["x"], 9)
    ax = plots.posterior_slice(opt, "batch")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["16", "32", "128"]
    mean, _ = opt.predict([{**opt.recommend().params, "batch": n} for n in (16, 32, 128)])
    np.testing.assert_allclose(ax.containers[0][0].get_ydata(), mean, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(scattered(ax)[0][:, 0], [[16, 32, 128].index(t.params["batch"]) for t in opt.trials])


def test_trials_beyond_moved_bounds_are_not_drawn_and_the_rest_is_where_it_was(
    run: Callable[..., bo.Optimizer], scattered: Callable[[Axes], list[np.ndarray]]
) -> None:
    opt = run({"x": (0.0, 2.0), "old": ["a", "b"]}, lambda p: (p["x"] - 1.5) ** 2, 14)
    opt.set_space({"x": bo.Float(0.0, 1.0), "new": bo.Int(1, 3)})
    ax = plots.posterior_slice(opt, "x", n_grid=5)
    here = [(t.params["x"], t.value) for t in opt.trials if t.params["x"] <= 1.0]
    assert 0 < len(here) < 14
    assert len(scattered(ax)) == 2  # no star: the recommended point is beyond them too
    np.testing.assert_array_equal(scattered(ax)[0], here)
    curve = ax.get_lines()[0]
    mean, _ = opt.predict([{"x": float(v), "new": 2} for v in np.asarray(curve.get_xdata())])
    np.testing.assert_allclose(curve.get_ydata(), mean, rtol=0, atol=1e-12)
    assert set(analysis.variance_shares(opt, n_samples=64)) == {"x", "new"}
    assert scattered(plots.posterior_contour(opt, "x", "new", n_grid=5)) == []


def test_values_told_in_one_call_belong_to_their_trials() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    trials = opt.ask(4)
    opt.tell([trials[i] for i in (2, 0, 3, 1)], [3.0, 1.0, 4.0, 2.0])
    dots = next(c for c in plots.posterior_slice(opt).collections if isinstance(c, PathCollection))
    x = [trials[i].params["x"] for i in (2, 0, 3, 1)]
    np.testing.assert_array_equal(dots.get_offsets(), np.column_stack([x, [3.0, 1.0, 4.0, 2.0]]))
