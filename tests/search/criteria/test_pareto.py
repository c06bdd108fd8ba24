"""Optimistic hypervolume improvement against volumes by hand."""

import sys

import pytest
import torch

from bkbopt.errors import MissingPackageError
from bkbopt.search.criteria.pareto import Improvement

F = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)  # the reference is (-0.1, -0.1)


def test_scores_are_the_logarithms_of_the_added_volumes() -> None:
    pytest.importorskip("botorch")
    Y = torch.tensor([[1.0, 1.0], [2.0, 0.5]], dtype=torch.float64)
    # Of the rectangle above the reference, 1.1 x 1.1 or 2.1 x 0.6, less what the front dominates of it.
    added = [1.1**2 - (2 * 1.1 * 0.1 - 0.1**2), 2.1 * 0.6 - (1.1 * 0.1 + 0.1 * 0.6 - 0.1**2)]
    # The subtractions of rectangles lose no more than a digit.
    assert Improvement.over(F)(Y).exp().tolist() == pytest.approx(added, rel=1e-14)


def test_dominated_points_score_by_their_distance_from_the_front() -> None:
    pytest.importorskip("botorch")
    dominated = torch.tensor([[0.0, 0.9], [-0.05, 0.5], [-0.5, 0.5]], dtype=torch.float64)
    scores = Improvement.over(F)(dominated)
    # The distances behind (0, 1) are 0, 0.05 and 0.5; the last one is another 0.4 below the reference.
    assert (scores[0] - scores[1:]).tolist() == pytest.approx([0.05, 0.9], rel=1e-12)


def test_without_botorch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "botorch.utils.multi_objective.box_decompositions.non_dominated"
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingPackageError, match=r'^botorch: .*pip install "bkbopt\[botorch\]"'):
        Improvement.over(F)
