"""Bars of importances."""

import pytest

import bkbopt as bo

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from bkbopt import analysis, plots
from bkbopt.plots.sensitivity import draw_shares
from bkbopt.plots.style import new_figure


def test_importance_draws_the_shares_largest_on_top(mixed: bo.Optimizer) -> None:
    shares = analysis.variance_shares(mixed, n_samples=256)
    ax = plots.importance(mixed, n_samples=256)
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert names == sorted(shares, key=lambda name: shares[name].total)
    first, rest = ax.containers
    for name, bar, more in zip(names, first, rest, strict=True):
        assert bar.get_width() == pytest.approx(100 * shares[name].first)
        assert bar.get_width() + more.get_width() == pytest.approx(100 * shares[name].total)
    assert "fixed" not in names


def legend_of(shares: dict[str, analysis.Share]) -> tuple[list[str], list[str]]:
    """The entries of the legend, and the texts at the bars."""
    ax = draw_shares(new_figure(6.0, 4.0).add_subplot(), shares)
    legend = ax.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()], [text.get_text() for text in ax.texts]


def test_small_shares_are_not_said_to_be_zero() -> None:
    shares = {"a": analysis.Share(0.99, 0.99), "b": analysis.Share(0.003, 0.003), "c": analysis.Share(0.0, 0.0)}
    assert legend_of(shares)[1] == ["0 %", "<1 %", "99 %"]


def test_the_legend_of_importances_names_interactions_where_there_are_some() -> None:
    name = "interactions, counted for each of their parameters"
    assert legend_of({"a": analysis.Share(0.9, 0.9), "b": analysis.Share(0.099, 0.1)})[0] == ["main effect"]
    assert legend_of({"a": analysis.Share(0.8, 0.9), "b": analysis.Share(0.1, 0.2)})[0] == ["main effect", name]
