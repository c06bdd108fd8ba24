"""KORS against dense formulas, and its theorem measured over seeds."""

import math

import numpy as np
import pytest
import torch

from bkbopt.errors import ArgumentError
from bkbopt.kernels import Kernel, rbf
from bkbopt.learners.numerics.kors import KORS, draw_kors
from tests.sweeps import slow_but

KERNEL = rbf(2, 0.4)
ALPHA = 0.5


def stream(n: int = 300, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).uniform(0.0, 1.0, (n, 2)))


def estimates(X: torch.Tensor, sampler: KORS, rows: torch.Tensor, p: torch.Tensor) -> np.ndarray:
    """The score of every row by Eq. 4 as printed, with the dictionary as it was when the row came."""
    scores = np.empty(len(X))
    for t in range(len(X)):
        before = rows < t
        J = torch.cat([rows[before], torch.tensor([t])])
        s = torch.cat([p[before] ** -0.5, torch.ones(1, dtype=torch.float64)])
        K = s[:, None] * KERNEL(X[J], X[J]) * s
        k = s * KERNEL(X[J], X[t : t + 1])[:, 0]
        inner = k @ torch.linalg.solve(K + sampler.alpha * torch.eye(len(J), dtype=torch.float64), k)
        scores[t] = (1.0 + sampler.eps) / sampler.alpha * float(1.0 - inner)
    return scores


def online_scores(X: torch.Tensor, alpha: float) -> np.ndarray:
    """Exact ridge leverage score of every row among the rows up to it."""
    L = torch.linalg.cholesky(KERNEL(X, X) + alpha * torch.eye(len(X), dtype=torch.float64))
    residual = L.diagonal() ** 2 - alpha
    return (residual / (residual + alpha)).numpy()


def draw(
    X: torch.Tensor, seed: int = 1, kernel: Kernel = KERNEL, kind: type[KORS] = KORS, **options: object
) -> tuple[KORS, object]:
    sampler = kind(**{"alpha": ALPHA, **options})  # type: ignore[arg-type]
    return sampler, draw_kors(kernel, X, sampler, np.random.default_rng(seed))


def test_rows_and_probabilities_are_those_of_the_printed_score() -> None:
    X = stream()
    sampler, drawn = draw(X, oversampling=0.7)
    probabilities = np.minimum(1.0, 0.7 * estimates(X, sampler, drawn.rows, drawn.probabilities))
    # One number a row, whatever the blocks.
    uniforms = np.random.default_rng(1).random(300)
    np.testing.assert_array_equal(np.flatnonzero(uniforms < probabilities), drawn.rows.numpy())
    np.testing.assert_allclose(probabilities[drawn.rows], drawn.probabilities.numpy(), rtol=1e-9)


def test_factor_is_that_of_the_dictionary_with_weights() -> None:
    X = stream()
    sampler, drawn = draw(X)
    E = KERNEL(X[drawn.rows], X[drawn.rows]) + ALPHA * torch.diag(drawn.probabilities)
    L = sampler.L[: sampler.m, : sampler.m]
    np.testing.assert_allclose(L @ L.T, E.numpy(), atol=1e-13)


@pytest.mark.parametrize("seed", slow_but({0}, range(6)))
def test_scores_keep_within_the_theorems_factors(seed: int) -> None:
    # The theorem's beta is above 200 here and takes all rows; a twentieth of it keeps the promise already.
    X, eps, beta = stream(400, seed), 0.5, 10.0
    sampler, drawn = draw(X, seed, alpha=0.05, oversampling=beta, eps=eps)
    exact = online_scores(X, 0.05)
    ratio = estimates(X, sampler, drawn.rows, drawn.probabilities) / exact
    rho = (1.0 + eps) / (1.0 - eps)
    assert ratio.min() >= 1.0 - 1e-9
    assert ratio.max() <= rho
    assert sampler.m < 0.9 * len(X)
    assert sampler.m <= 3.0 * rho * beta * exact.sum()


def test_projection_error_is_below_the_ridge() -> None:
    X, eps = stream(400), 0.5
    _, drawn = draw(X, alpha=0.05, oversampling=10.0, eps=eps)
    K, C = KERNEL(X, X), KERNEL(X, X[drawn.rows])
    w, U = torch.linalg.eigh(KERNEL(X[drawn.rows], X[drawn.rows]))
    keep = w > 1e-13 * w[-1]
    Z = C @ (U[:, keep] / w[keep].sqrt())
    # |Phi (I - P) Phi^T| <= alpha eps / (1 - eps)
    assert float(torch.linalg.eigvalsh(K - Z @ Z.T)[-1]) <= 0.05 * eps / (1.0 - eps)


def test_repeats_of_a_row_enter_with_falling_probability() -> None:
    X = stream(1).expand(500, 2).contiguous()
    sampler, _ = draw(X)
    # The score of the n-th copy is about 1 / n: as many points as the logarithm of the number of rows.
    assert 1 <= sampler.m <= 4 * math.log(500)


def test_limit_is_kept() -> None:
    sampler, drawn = draw(stream(), alpha=1e-3, limit=17)
    assert sampler.m == len(drawn.rows) == 17


def test_blocks_of_any_size_accept_the_same_rows() -> None:
    X, uniforms = stream(), np.random.default_rng(4).random(300)
    taken = []
    for size in (1, 7, 300):
        sampler, rows = KORS(ALPHA), []
        for a in range(0, 300, size):
            B = X[a : a + size]
            K = KERNEL(B, torch.cat([X[rows], B])).numpy()
            rows.extend((a + np.flatnonzero(sampler.select(K, np.ones(len(B)), uniforms[a : a + size]))).tolist())
        taken.append(rows)
    assert taken[0] == taken[1] == taken[2]


@pytest.mark.parametrize("bad", [{"alpha": 0.0}, {"oversampling": -1.0}, {"eps": 1.0}, {"eps": 0.0}, {"limit": 0}])
def test_arguments_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ArgumentError, match=f"^{next(iter(bad))}: expected"):
        KORS(**bad)  # type: ignore[arg-type]
