"""The compiled kernel rows against numpy."""

import numpy as np
import pytest
import torch

from bkbopt.kernels import matern52, rbf
from bkbopt.learners.expansions.expansion import block_of, new_support, restored_support, rows_of, support_state
from bkbopt.learners.numerics import _loops_kernel as loops
from bkbopt.learners.numerics.gram import GaussianGram, as_gram
from bkbopt.learners.numerics.losses import Array


def points(n: int, d: int = 3, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("n", [1, 7, 8, 65])
def test_rows_are_the_gaussian_whatever_their_length(n: int) -> None:
    A, B = points(5), points(n, seed=1)
    out = np.empty((5, n))
    loops.gaussian_matrix(np.ascontiguousarray(B.T), A, 1.7, out)
    expected = 1.7 * np.exp(-((A[:, None] - B[None]) ** 2).sum(-1))
    np.testing.assert_allclose(out, expected, rtol=1e-14)
    for row, x in zip(out, A, strict=True):
        alone = np.empty(n)
        loops.gaussian_row(np.ascontiguousarray(B.T), n, x, 1.7, alone)
        np.testing.assert_array_equal(alone, row)


@pytest.mark.parametrize("kernel", [None, rbf(3, [0.5, 1.0, 2.0], outputscale=0.3), matern52(3, 0.7)])
def test_blocks_agree_with_their_kernel(kernel: object) -> None:
    gram = as_gram(kernel, 0.7, 3)
    A, B = points(6), points(9, seed=1)
    # The kernels' own distances come from products, with rounding of 1e-16 |x|^2 / l^2.
    on_tensors = gram.kernel(torch.from_numpy(A), torch.from_numpy(B)).numpy()
    np.testing.assert_allclose(gram(A, B), on_tensors, rtol=0, atol=1e-13)
    np.testing.assert_allclose(gram.diag(A), gram.kernel.diag(torch.from_numpy(A)).numpy(), rtol=1e-15)
    block = block_of(gram, A, np.zeros(6), np.empty((3, 0)))
    np.testing.assert_allclose(rows_of(gram, block.X.T), A, rtol=1e-15)
    np.testing.assert_array_equal(block.diagonal, gram.diag(A))
    # Either the loops have what they need for the kernel, or its values.
    assert block.K.shape == ((6, 0) if isinstance(gram, GaussianGram) else (6, 6))


@pytest.mark.parametrize("kernel", [None, matern52(3, 0.7)])
def test_terms_keep_their_kernel_values_through_moves(kernel: object) -> None:
    gram = as_gram(kernel, 0.7, 3)
    support = new_support(3, 10)
    first = block_of(gram, points(5), np.zeros(5), np.empty((3, 0)))
    for t in range(5):
        assert loops.append(first, t, support, float(t), 100) == t
    loops.remove(support, 1)  # the last term moves there
    kept = [0, 4, 2, 3]
    np.testing.assert_array_equal(support.born[:4], 100 + np.array(kept))
    np.testing.assert_array_equal(support.weights[:4], kept)
    support = restored_support(support_state(support), 10)
    X = points(3, seed=2)
    second = block_of(gram, X, np.zeros(3), support.points[:, :4])
    loops.put(second, 0, support, 2, 7.0, 200)
    now = np.vstack([points(5)[[0, 4]], X[:1], points(5)[3:4]])
    k = np.empty(10)
    loops.kernel_row(second, 1, support, k)
    np.testing.assert_allclose(k[:4], gram(X[1:2], now)[0], rtol=0, atol=1e-14)
    np.testing.assert_allclose(support.diagonal[:4], 1.0, rtol=1e-15)
