"""Parts of the papers' tables that the package does without: TISVD, and KORS with the published mistake."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.paper_tables.programs import ProgramProsNKONS, SquaredKORS
from benchmarks.paper_tables.tisvd import TisvdFORKS, TisvdSkeGD, TruncatedSVD
from bkbopt.learners import FORKS, OnlineLearner
from bkbopt.learners.numerics.kors import KORS
from tests.learners.features.test_sketched import psd
from tests.learners.newton.test_prosnkons import LABELS, X, literal
from tests.learners.numerics.test_kors import ALPHA, KERNEL, draw, stream
from tests.learners.streams import margins, normal_rows


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), columns=st.integers(1, 4), k=st.integers(1, 6))
def test_one_step_of_tisvd_is_the_truncated_svd(seed: int, columns: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    start = TruncatedSVD.of(rng.normal(size=(12, 9)), k)
    left, right = rng.normal(size=(12, columns)), rng.normal(size=(9, columns))
    M = (start.U * start.sigma) @ start.V.T + left @ right.T
    new = start.change(left, right)
    sigma = np.linalg.svd(M, compute_uv=False)
    kept = min(k, len(sigma))
    np.testing.assert_allclose(new.sigma, sigma[:kept], rtol=0, atol=1e-12 * sigma[0])
    best = np.linalg.norm(sigma[kept:])
    error = np.linalg.norm((new.U * new.sigma) @ new.V.T - M)
    assert error <= best + 1e-11 * sigma[0]
    for vectors in (new.U, new.V):
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(kept), rtol=0, atol=1e-13)


def test_columns_without_a_direction_of_their_own_add_none() -> None:
    rng = np.random.default_rng(3)
    start = TruncatedSVD.of(psd(10, 3, rng), 3)
    # Two equal columns, both in the span of U: a plain QR would add two made-up directions.
    left = start.U @ rng.normal(size=(3, 1)) @ np.ones((1, 2))
    new = start.change(left, left)
    np.testing.assert_allclose(new.U.T @ new.U, np.eye(3), rtol=0, atol=1e-13)
    np.testing.assert_allclose(
        (new.U * new.sigma) @ new.V.T, (start.U * start.sigma) @ start.V.T + left @ left.T, rtol=0, atol=1e-12
    )


def test_negative_eigenvalues_count_as_positive_ones() -> None:
    svd = TruncatedSVD.of(np.diag([3.0, -2.0, 1.0]), 2)
    np.testing.assert_allclose(svd.root @ svd.root.T, np.diag([3.0, 2.0, 0.0]))


@pytest.mark.parametrize("kind", [TisvdFORKS, TisvdSkeGD])
def test_it_equals_the_exact_decomposition_at_full_rank(kind: type[OnlineLearner]) -> None:
    X, y = normal_rows(300)

    def linear(A: object, B: object) -> object:
        return A @ B.T  # type: ignore[attr-defined]

    options = {"loss": "logistic", "budget": 10, "rank": 3, "refresh_every": 30, "kernel": linear, "seed": 0}
    exact = kind.__mro__[1].paper(decomposition="exact", **options)  # type: ignore[attr-defined]
    # The kernel has rank three.
    np.testing.assert_allclose(margins(kind.paper(**options), X, y), margins(exact, X, y), rtol=0, atol=1e-9)


def test_it_predicts_what_the_eigenpairs_do_but_for_rounding() -> None:
    X, y = normal_rows(300)
    options = {"budget": 10, "rank": 4, "refresh_every": None, "lengthscale": 1.0, "seed": 0}
    p, ours = margins(TisvdFORKS.paper(**options), X, y), margins(FORKS.paper(**options), X, y)
    # Sketches are symmetric and, but for rounding, positive semi-definite.
    np.testing.assert_allclose(p, ours, rtol=0, atol=1e-9)


def test_mistaken_weights_take_fewer_points() -> None:
    sizes = {kind: sum(draw(stream(), seed, kind=kind)[0].m for seed in range(8)) for kind in (KORS, SquaredKORS)}
    assert sizes[SquaredKORS] < 0.95 * sizes[KORS]


def test_mistaken_weights_enter_the_factor_squared() -> None:
    rows = stream()
    sampler, drawn = draw(rows, kind=SquaredKORS)
    E = KERNEL(rows[drawn.rows], rows[drawn.rows]) + ALPHA * torch.diag(drawn.probabilities**2)
    L = sampler.L[: sampler.m, : sampler.m]
    np.testing.assert_allclose(L @ L.T, E.numpy(), atol=1e-13)


def test_program_of_prosnkons_follows_the_algorithm_with_these_weights() -> None:
    model = ProgramProsNKONS.paper()
    expected, rows = literal(model, LABELS)
    np.testing.assert_allclose(model.progressive(X, LABELS, decision=True), expected, atol=1e-10)
    assert model.dictionary_size_ == len(rows)
