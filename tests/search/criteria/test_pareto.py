"""Pareto fronts against BoTorch's, and optimistic hypervolume improvement against volumes by hand."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bkbopt.search.criteria import pareto
from bkbopt.search.criteria.pareto import Improvement, hypervolume, near_reference_of, non_dominated, reference_of
from tests.search.criteria import dense

F = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)  # the reference is (-0.1, -0.1)


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_no_other_dominates_are_botorchs(seed: int) -> None:
    botorch = pytest.importorskip("botorch.utils.multi_objective.pareto")
    Y = np.random.default_rng(seed).integers(0, 5, size=(40, 3)).astype(float)  # with ties
    rows = non_dominated(Y)
    assert sorted(rows) == botorch.is_non_dominated(torch.as_tensor(Y), deduplicate=False).nonzero()[:, 0].tolist()
    assert (np.diff(Y[rows, 0]) <= 0.0).all()


def test_rows_that_may_not_be_used_dominate_nothing_and_dominated_ones_are_not_asked_about() -> None:
    Y, asked = np.array([[3.0, 3.0], [2.0, 2.0], [1.0, 1.0], [0.0, 4.0]]), list[int]()

    def usable(row: int) -> bool:
        asked.append(row)
        return row != 0

    assert non_dominated(Y, usable) == [1, 3]
    assert sorted(asked) == [0, 1, 3]


@given(arrays(np.float64, st.tuples(st.integers(0, 12), st.integers(1, 3)), elements=st.sampled_from([0.0, 1.0, 2.0])))
def test_the_front_of_usable_rows_is_that_without_the_others(Y: np.ndarray) -> None:
    usable = Y.sum(1) % 2.0 == 0.0
    dominated = [bool(((Y[usable] >= y).all(1) & (Y[usable] > y).any(1)).any()) for y in Y]
    expected = [i for i in range(len(Y)) if usable[i] and not dominated[i]]
    assert sorted(non_dominated(Y, lambda row: bool(usable[row]))) == expected


def test_no_rows_have_no_front() -> None:
    assert non_dominated(np.zeros((0, 2))) == []


@pytest.mark.parametrize("k", [2, 3])
def test_scores_and_slopes_are_those_of_the_formula(k: int) -> None:
    rng = np.random.default_rng(k)
    known = torch.as_tensor(rng.standard_normal((30, k)))
    improvement = Improvement.over(known, reference_of(known))
    Y = torch.as_tensor(2.0 * rng.standard_normal((200, k))).requires_grad_(True)
    expected = dense.score(improvement, Y)
    (by_autograd,) = torch.autograd.grad(expected.sum(), Y)
    scores, slopes = improvement.with_slopes(Y.detach())
    assert 20 < int((expected > -27.0).sum()) < 180  # some improve: the others score less than log(1e-12)
    # Sums of up to 60 cells in another order.
    torch.testing.assert_close(scores, expected.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(slopes, by_autograd, rtol=1e-11, atol=1e-11)


def test_scores_are_the_logarithms_of_the_added_volumes() -> None:
    Y = torch.tensor([[1.0, 1.0], [2.0, 0.5]], dtype=torch.float64)
    # Of the rectangle above the reference, 1.1 x 1.1 or 2.1 x 0.6, less what the front dominates of it.
    added = [1.1**2 - (2 * 1.1 * 0.1 - 0.1**2), 2.1 * 0.6 - (1.1 * 0.1 + 0.1 * 0.6 - 0.1**2)]
    # The subtractions of rectangles lose no more than a digit.
    assert Improvement.over(F, reference_of(F))(Y).exp().tolist() == pytest.approx(added, rel=1e-14)


def test_a_reference_near_the_front_is_a_tenth_of_its_range_below_it() -> None:
    Y = torch.tensor([[4.0, 6.0], [5.0, 5.0], [6.0, 4.0], [0.0, 0.0]], dtype=torch.float64)
    assert near_reference_of(Y).tolist() == pytest.approx([3.8, 3.8], rel=1e-15)
    assert reference_of(Y).tolist() == pytest.approx([-0.6, -0.6], rel=1e-15)


@pytest.mark.parametrize(("front", "expected"), [([[6.0, 6.0]], [-0.6, -0.6]), ([[3.0, 6.0], [6.0, 5.8]], [2.7, -0.6])])
def test_in_objectives_in_which_the_front_is_short_the_reference_is_below_all_points(
    front: list[list[float]], expected: list[float]
) -> None:
    Y = torch.tensor([*front, [0.0, 0.0]], dtype=torch.float64)
    assert near_reference_of(Y).tolist() == pytest.approx(expected, rel=1e-14)


@given(arrays(np.float64, (6, 3), elements=st.floats(-5.0, 5.0)))
def test_a_reference_near_the_front_is_below_it_and_not_below_that_of_all_points(Y: np.ndarray) -> None:
    near, front = near_reference_of(torch.from_numpy(Y)), torch.from_numpy(Y[non_dominated(Y)])
    assert bool((near <= front).all())
    assert bool((near >= reference_of(torch.from_numpy(Y))).all())


def test_bounds_that_are_no_numbers_have_no_score() -> None:
    Y = torch.tensor([[torch.nan, 2.0], [2.0, torch.nan], [1.0, 1.0]], dtype=torch.float64)
    scores, slopes = Improvement.over(F, reference_of(F)).with_slopes(Y)
    assert scores.isnan().tolist() == [True, True, False]
    assert slopes.isnan().all(1).tolist() == [True, True, False]


def test_dominated_points_score_by_their_distance_from_the_front() -> None:
    dominated = torch.tensor([[0.0, 0.9], [-0.05, 0.5], [-0.5, 0.5]], dtype=torch.float64)
    scores = Improvement.over(F, reference_of(F))(dominated)
    # The distances behind (0, 1) are 0, 0.05 and 0.5; the last one is another 0.4 below the reference.
    assert (scores[0] - scores[1:]).tolist() == pytest.approx([0.05, 0.9], rel=1e-12)


@pytest.mark.parametrize(("k", "p"), [(1, 5), (2, 60), (3, 60), (4, 30), (5, 20)])
def test_hypervolumes_are_botorchs(k: int, p: int) -> None:
    botorch = pytest.importorskip("botorch.utils.multi_objective.hypervolume")
    Y, reference = np.random.default_rng(k).standard_normal((p, k)), np.full(k, -1.0)
    front = torch.as_tensor(Y[non_dominated(Y)])
    expected = botorch.Hypervolume(ref_point=torch.as_tensor(reference)).compute(front)
    # Sums of up to some hundred volumes in another order.
    assert hypervolume(Y, reference) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("k", [5, 6])
def test_the_volume_of_many_points_is_the_same_by_their_cells_and_by_what_each_adds(
    k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    Y, reference = np.abs(np.random.default_rng(k).standard_normal((80, k))), np.full(k, -0.1)
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    by_parts = hypervolume(Y, reference)
    monkeypatch.setattr(pareto, "FEW", 80)
    # What each point adds is a difference of volumes of the same size.
    assert by_parts == pytest.approx(hypervolume(Y, reference), rel=1e-12)


def test_points_that_are_not_above_the_reference_add_no_volume() -> None:
    Y = np.array([[1.0, 1.0], [9.0, 0.0], [9.0, -1.0]])
    assert hypervolume(Y, np.zeros(2)) == 1.0
    assert hypervolume(Y[1:], np.zeros(2)) == hypervolume(Y[:0], np.zeros(2)) == 0.0


def test_a_front_of_two_hundred_points_of_three_objectives_is_not_thinned() -> None:
    Y = np.abs(np.random.default_rng(0).standard_normal((200, 3)))
    Y = torch.as_tensor(Y / np.linalg.norm(Y, axis=1, keepdims=True))
    scores = Improvement.over(Y, reference_of(Y))(Y)
    # A point of the front adds nothing; over 64 of these points another one would add 0.003.
    assert scores.tolist() == [math.log(pareto.SMALLEST)] * 200


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6, 7, 8, 10])
def test_large_fronts_of_many_objectives_are_thinned_so_that_their_cells_stay_few(k: int) -> None:
    Y = np.abs(np.random.default_rng(k).standard_normal((1100, k)))
    Y = torch.as_tensor(Y / np.linalg.norm(Y, axis=1, keepdims=True))
    improvement = Improvement.over(Y, reference_of(Y))
    assert len(improvement.front) < 1100
    assert improvement.cells.shape[1] <= 2100  # a score takes some ten microseconds
    assert bool(torch.isfinite(improvement(Y)).all())
