"""Boxes of what a front does not dominate, against a grid on which all volumes are counted."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bkbopt.search.criteria.cells import Cells, cells_of


def parts_below(cells: Cells, y: np.ndarray) -> float:
    return float((np.minimum(y, cells.high) - cells.low).clip(0.0).prod(1).sum())


def counted(F: np.ndarray, reference: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Volumes above the reference that F dominates, and that `y` dominates but F does not, in unit cubes."""
    cubes = [np.arange(low, 5.0) + 0.5 for low in reference]
    corners = np.array(list(itertools.product(*cubes)))
    by_F = (F[None] > corners[:, None]).all(2).any(1)
    return float(by_F.sum()), float(((y > corners).all(1) & ~by_F).sum())


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@given(n=st.integers(0, 8), levels=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_volumes_are_those_counted_on_a_grid(k: int, n: int, levels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)  # hypothesis takes ten times as long to draw arrays
    F = rng.integers(levels, size=(n, k)).astype(np.float64)  # with ties
    y = rng.integers(5, size=k).astype(np.float64)
    reference = rng.integers(-1, 2, size=k).astype(np.float64)
    cells = cells_of(F, reference)
    # Sums and products of small whole numbers are exact.
    assert (cells.dominated, parts_below(cells, y)) == counted(F, reference, y)


@given(arrays(np.float64, st.tuples(st.integers(0, 12), st.integers(2, 4)), elements=st.floats(0.0, 1.0)))
def test_boxes_are_disjoint(F: np.ndarray) -> None:
    low, high, _ = cells_of(F, np.full(F.shape[1], -0.1))
    for a, b in itertools.combinations(range(len(low)), 2):
        overlap = np.minimum(high[a], high[b]) - np.maximum(low[a], low[b])
        assert (overlap <= 0.0).any()


@pytest.mark.parametrize(("k", "boxes"), [(2, 51), (3, 101)])
def test_number_of_boxes_of_points_in_general_position_is_that_of_the_paper(k: int, boxes: int) -> None:
    F = np.abs(np.random.default_rng(k).standard_normal((50, k)))
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    assert len(cells_of(F, np.full(k, -0.1)).low) == boxes
