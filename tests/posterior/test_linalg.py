"""Roots, factors and rank-one steps against numpy's inverses."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bkbopt._support import threads
from bkbopt.errors import KernelError
from bkbopt.posterior import linalg

seeds = st.integers(0, 2**32 - 1)


def positive_definite(m: int, seed: int) -> Tensor:
    """A random matrix with eigenvalues between 0.1 and 10."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((m, m)))
    return torch.as_tensor(Q @ np.diag(10.0 ** rng.uniform(-1, 1, m)) @ Q.T)


def close(actual: Tensor, expected: object, tol: float = 1e-12) -> None:
    np.testing.assert_allclose(actual.numpy(), np.asarray(expected), rtol=tol, atol=tol)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_small_work_runs_on_one_thread_and_restores_the_callers_setting() -> None:
    with threads.small_work():
        assert torch.get_num_threads() == 1
        with threads.small_work():
            assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_small_work_restores_the_setting_when_the_block_raises() -> None:
    with pytest.raises(ZeroDivisionError), threads.small_work():
        _ = 1 // 0
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_threads_for_limits_only_small_work() -> None:
    with threads.threads_for(1e3):
        assert torch.get_num_threads() == 1
    with threads.threads_for(1e12):
        assert torch.get_num_threads() == 2


@given(st.integers(1, 12), seeds)
def test_safe_cholesky_reproduces_a_positive_definite_matrix(m: int, seed: int) -> None:
    A = positive_definite(m, seed)
    L = linalg.safe_cholesky(A)
    close(L @ L.T, A)
    assert torch.equal(L, L.tril())


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_safe_cholesky_survives_a_singular_matrix_of_any_scale(scale: float) -> None:
    A = torch.ones(5, 5, dtype=torch.float64) * scale
    L = linalg.safe_cholesky(A)
    # The largest jitter is 1e-8 of the diagonal; less was enough if the matrix is closer.
    close(L @ L.T / scale, np.ones((5, 5)), 1.01e-8)


def test_safe_cholesky_refuses_an_indefinite_matrix() -> None:
    A = torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=torch.float64)
    with pytest.raises(KernelError, match="expected a positive semi-definite matrix, got a 2 x 2 one"):
        linalg.safe_cholesky(A)


@pytest.mark.parametrize(
    "function", [linalg.safe_cholesky, linalg.thin_root, linalg.inverse_root, linalg.inverse_and_logdet]
)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("j", [1, 2])
def test_factors_refuse_values_that_are_not_finite(function: object, value: float, j: int) -> None:
    A = torch.eye(3, dtype=torch.float64)
    A[1, j] = A[j, 1] = value
    with pytest.raises(KernelError, match="finite values"):
        function(A)  # type: ignore[operator]


@given(st.integers(1, 12), seeds)
def test_the_inverse_takes_the_memory_of_the_matrix(m: int, seed: int) -> None:
    A = positive_definite(m, seed)
    expected, memory = np.linalg.inv(A.numpy()), A.data_ptr()
    inverse, logdet = linalg.inverse_and_logdet(A.clone())
    close(inverse, expected)
    assert logdet == pytest.approx(-np.linalg.slogdet(expected)[1], abs=1e-12)
    assert linalg.inverse_and_logdet(A)[0].data_ptr() == memory


def test_an_inverse_that_needs_jitter_is_that_of_its_cholesky_factor() -> None:
    x = torch.linspace(0.0, 1.0, 60, dtype=torch.float64)
    K = torch.exp(-0.5 * (x[:, None] - x).square())  # of rank 10, up to rounding
    L = linalg.safe_cholesky(K)
    inverse, logdet = linalg.inverse_and_logdet(K.clone())
    size = float(inverse.abs().max())
    close(inverse / size, (torch.cholesky_inverse(L) / size).numpy(), 1e-9)  # the condition number is 1e13
    assert logdet == pytest.approx(2.0 * float(L.diagonal().log().sum()), rel=1e-12)
    with pytest.raises(KernelError, match="expected a positive semi-definite matrix, got a 60 x 60 one"):
        linalg.inverse_and_logdet(-K)


@given(st.integers(1, 12), seeds)
def test_inverse_root_squares_to_the_inverse(m: int, seed: int) -> None:
    A = positive_definite(m, seed)
    G = linalg.inverse_root(A)
    close(G.T @ G, np.linalg.inv(A.numpy()))


@given(st.integers(1, 10), st.integers(1, 10), seeds)
def test_thin_root_whitens_and_squares_to_the_pseudo_inverse(m: int, rank: int, seed: int) -> None:
    B = np.random.default_rng(seed).standard_normal((m, min(rank, m)))
    # Singular values of a random factor go down to 1e-3 or so by chance; QR keeps the test about rank alone.
    B = np.linalg.qr(B)[0]
    K = torch.as_tensor(B @ B.T)
    W = linalg.thin_root(K)
    assert W.shape == (m, min(rank, m))
    close(W.T @ K @ W, np.eye(min(rank, m)))
    close(W @ W.T, np.linalg.pinv(K.numpy(), hermitian=True, rcond=1e-12))


def test_thin_root_of_equal_points_has_rank_one() -> None:
    W = linalg.thin_root(torch.full((4, 4), 2.0, dtype=torch.float64))
    assert W.shape == (4, 1)


def test_thin_root_of_a_zero_matrix_has_rank_zero() -> None:
    # A linear kernel at the origin is zero, and valid.
    assert linalg.thin_root(torch.zeros(3, 3, dtype=torch.float64)).shape == (3, 0)


@pytest.mark.parametrize("diagonal", [[1.0, -0.1], [-1.0, -1.0], [0.0, -1e-300]])
def test_thin_root_refuses_negative_eigenvalues(diagonal: list[float]) -> None:
    with pytest.raises(KernelError, match=r"got eigenvalues from -.* on 2 points"):
        linalg.thin_root(torch.diag(torch.tensor(diagonal, dtype=torch.float64)))


@given(st.integers(1, 6), seeds, st.floats(1e-12, 1e-2))
def test_difference_root_sets_negative_eigenvalues_to_zero(m: int, seed: int, lam: float) -> None:
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((m, m)))
    e = rng.uniform(-0.5, 1.0, m)
    e[e < 0.0] -= 2.0 * lam  # so that R + lam I is not positive definite either
    root = linalg.difference_root(torch.as_tensor(Q @ np.diag(e) @ Q.T), lam).numpy()
    expected = Q @ np.diag(np.maximum(e, 0.0) + lam) @ Q.T
    # Rounding of R, 1e-16, counts where lam is as small.
    np.testing.assert_allclose(root @ expected @ root.T, np.eye(m), rtol=0.0, atol=1e-10 + 1e-14 / lam)


@given(st.integers(1, 8), st.integers(1, 3), seeds)
def test_append_to_thin_root_spans_the_larger_dictionary(m: int, k: int, seed: int) -> None:
    A = positive_definite(m + k, seed)
    W = linalg.thin_root(A[:m, :m])
    Z = A[m:, :m] @ W
    longer = linalg.append_to_thin_root(W, Z, linalg.inverse_root(A[m:, m:] - Z @ Z.T))
    close(longer.T @ A @ longer, np.eye(m + k), 1e-11)
    close(longer @ longer.T, np.linalg.inv(A.numpy()), 1e-10)  # the inverse's condition number is up to 100
    # Old features stay as they are: the first columns take nothing from the new points.
    assert torch.equal(longer[:m, :m], W)
    assert not longer[m:, :m].any()


@given(st.integers(1, 8), st.integers(1, 3), seeds)
def test_append_to_inverse_root_borders_the_inverse(m: int, k: int, seed: int) -> None:
    A = positive_definite(m + k, seed)
    G = linalg.inverse_root(A[:m, :m])
    P = G.T @ (G @ A[:m, m:])
    G = linalg.append_to_inverse_root(G, P, linalg.inverse_root(A[m:, m:] - A[m:, :m] @ P))
    close(G.T @ G, np.linalg.inv(A.numpy()), 1e-10)


@given(st.integers(1, 8), st.integers(1, 4), seeds, st.sampled_from([1e-6, 1.0, 1e3]))
def test_block_update_inverse_root_adds_outer_products(m: int, k: int, seed: int, scale: float) -> None:
    A = positive_definite(m, seed)
    Z = torch.as_tensor(np.random.default_rng(seed).standard_normal((k, m))) * scale
    G = linalg.inverse_root(A)
    out = linalg.block_update_inverse_root(G, G @ Z.T)
    AZ = np.linalg.solve(A.numpy(), Z.numpy().T)
    inner = np.linalg.solve(np.eye(k) + Z.numpy() @ AZ, AZ.T)
    # Woodbury's form loses what a sum of condition 1e8 loses.
    close(out.T @ out, np.linalg.inv(A.numpy()) - AZ @ inner, 1e-7)
    one_by_one = G
    for z in Z:
        u = one_by_one @ z
        one_by_one = linalg.update_inverse_root(one_by_one, u, one_by_one.T @ u, float(u @ u))
    close(one_by_one.T @ one_by_one, (out.T @ out).numpy(), 1e-9)


@given(st.integers(1, 8), seeds, st.sampled_from([1e-12, 1e-6, 1.0, 1e6]))
def test_update_inverse_root_adds_an_outer_product(m: int, seed: int, scale: float) -> None:
    A = positive_definite(m, seed)
    z = torch.as_tensor(np.random.default_rng(seed).standard_normal(m)) * scale
    G = linalg.inverse_root(A)
    u = G @ z
    out = linalg.update_inverse_root(G, u, G.T @ u, float(u @ u))
    # Sherman and Morrison's form: a sum A + z z^T of condition 1e13 would lose the digits of A before it is inverted.
    Az = np.linalg.solve(A.numpy(), z.numpy())
    close(out.T @ out, np.linalg.inv(A.numpy()) - np.outer(Az, Az) / (1.0 + z.numpy() @ Az), 1e-10)


@given(st.integers(1, 8), seeds, st.floats(1e-12, 0.99))
def test_downdate_inverse_root_lowers_one_diagonal_entry(m: int, seed: int, part: float) -> None:
    A = positive_definite(m, seed)
    G = linalg.inverse_root(A)
    i = seed % m
    delta = part / float(G[:, i] @ G[:, i])
    out = linalg.downdate_inverse_root(G, i, delta)
    B = A.clone()
    B[i, i] -= delta
    close(out.T @ out, np.linalg.inv(B.numpy()), 1e-8)  # within a hundredth of singular at part = 0.99
