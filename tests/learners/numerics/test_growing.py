"""Arrays and Cholesky factors that grow."""

import numpy as np
import pytest

from bkbopt.errors import KernelError
from bkbopt.learners.numerics.growing import GrowingCholesky, GrowingRows, lower_factor


def matrix(n: int) -> np.ndarray:
    B = np.random.default_rng(0).standard_normal((n, n))
    return B @ B.T + n * np.eye(n)


@pytest.mark.parametrize("size", [1, 37, 300])
def test_bordered_factor_is_that_of_the_whole_matrix(size: int) -> None:
    A, growing = matrix(600), GrowingCholesky()
    for a in range(0, 600, size):
        b = min(a + size, 600)
        V = growing.solve(A[:a, a:b])
        growing.append(V, lower_factor(A[a:b, a:b] - V.T @ V))
    np.testing.assert_allclose(growing.factor, np.linalg.cholesky(A), atol=1e-11)


def test_solves_are_those_of_the_factor() -> None:
    growing = GrowingCholesky()
    L = growing.factor = np.linalg.cholesky(matrix(600))
    B = np.random.default_rng(1).standard_normal((600, 5))
    np.testing.assert_allclose(L @ growing.solve(B), B, atol=1e-12)
    np.testing.assert_allclose(L.T @ growing.solve_transposed(B[:, 0]), B[:, 0], atol=1e-12)


def test_empty_factor_solves_nothing() -> None:
    growing = GrowingCholesky()
    assert growing.solve(np.zeros((0, 3))).shape == (0, 3)
    assert growing.solve_transposed(np.zeros(0)).shape == (0,)


def test_rows_keep_their_values_and_type() -> None:
    grown = GrowingRows(2, dtype=np.intp)
    for a in range(0, 100, 7):
        grown.append(np.arange(a, a + 14).reshape(7, 2))
    assert grown.n == len(grown.rows) == 105
    assert grown.rows.dtype == np.intp
    np.testing.assert_array_equal(grown.rows[7:9], [[7, 8], [9, 10]])


def test_matrix_that_is_singular_by_rounding_has_a_factor_and_a_negative_one_not() -> None:
    ones = np.ones((4, 4))
    L = lower_factor(ones)
    np.testing.assert_allclose(L @ L.T, ones, atol=1e-7)  # the jitter
    with pytest.raises(KernelError, match="positive semi-definite"):
        lower_factor(-ones)
