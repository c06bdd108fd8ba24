"""The ascent against scipy's L-BFGS-B, one run a row."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize, rosen, rosen_der
from torch import Tensor

from bkbopt.search.maximizers.ascent import ascend, differences, differentiated, slopes_of

Floats = NDArray[np.float64]


def quadratic(seed: int, c: int) -> tuple[Floats, Floats]:
    """A (c, c) and b (c,) of the concave score b . x - x . A x / 2, with condition number 1,000."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((c, c)))[0]
    return Q @ np.diag(np.logspace(0.0, 3.0, c)) @ Q.T, 300.0 * rng.standard_normal(c)


@pytest.mark.parametrize("seed", range(5))
def test_the_top_of_a_concave_score_over_the_cube_is_scipys(seed: int) -> None:
    c = 6
    A, b = quadratic(seed, c)
    starts = np.random.default_rng(seed).random((4, c))
    found = ascend(lambda X: (X @ b - 0.5 * ((X @ A) * X).sum(1), b - X @ A), starts, 200)
    expected = minimize(
        lambda x: -(b @ x - 0.5 * x @ A @ x),
        starts[0],
        jac=lambda x: A @ x - b,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * c,
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000},
    )
    assert np.any((expected.x == 0.0) | (expected.x == 1.0))  # the bounds matter
    scores = found @ b - 0.5 * ((found @ A) * found).sum(1)
    # Both stop where a step gains a few 1e-9 of the score.
    np.testing.assert_allclose(scores, -expected.fun, rtol=1e-7)


def valley(X: Floats) -> tuple[Floats, Floats]:
    """Rosenbrock's function upside down, over [-2, 2]^c; its top is at 3/4 of every column."""
    Y = 4.0 * X - 2.0
    return -np.array([rosen(y) for y in Y]), -4.0 * np.stack([rosen_der(y) for y in Y])


def test_a_curved_valley_is_followed_to_its_end() -> None:
    starts = np.array([[0.2, 0.9], [0.1, 0.1], [0.6, 0.3]])
    np.testing.assert_allclose(ascend(valley, starts, 200), 0.75, atol=1e-3)


def test_a_search_does_not_depend_on_those_beside_it() -> None:
    starts = np.random.default_rng(0).random((5, 3))
    together = ascend(valley, starts, 30)
    for i in range(5):
        np.testing.assert_array_equal(together[i : i + 1], ascend(valley, starts[i : i + 1], 30))


def test_at_a_cliff_a_search_ends_near_it_after_twice_its_number_of_steps() -> None:
    n_evaluations = 0

    def cliff(X: Floats) -> tuple[Floats, Floats]:
        nonlocal n_evaluations
        n_evaluations += 1
        score, slopes = -((X - 0.9) ** 2).sum(1), -2.0 * (X - 0.9)
        return np.where(X.sum(1) > 1.0, score - 1e6, score), slopes

    found = ascend(cliff, np.array([[0.3, 0.1], [0.0, 0.05]]), 40)
    assert n_evaluations <= 80
    np.testing.assert_allclose(found.sum(1), 1.0, atol=1e-4)
    assert bool((found.sum(1) <= 1.0).all())


def test_no_row_becomes_worse_where_the_score_jumps() -> None:
    def cliff(X: Floats) -> tuple[Floats, Floats]:
        return X[:, 0] - 1e6 * (X[:, 0] > 0.6), np.ones_like(X)

    starts = np.array([[0.1], [0.59], [0.7]])
    found = ascend(cliff, starts, 100)
    assert (found[:2, 0] <= 0.6).all()
    assert (cliff(found)[0] >= cliff(starts)[0]).all()


def test_a_start_whose_slope_is_not_finite_stays() -> None:
    def broken(X: Floats) -> tuple[Floats, Floats]:
        return X.sum(1), np.where(X > 0.5, np.nan, 1.0)

    found = ascend(broken, np.array([[0.7], [0.2]]), 100)
    assert found[0, 0] == 0.7
    assert 0.2 < found[1, 0] <= 0.5


def test_the_ascent_takes_no_more_steps_than_asked_for() -> None:
    evaluated = []

    def slow(X: Floats) -> tuple[Floats, Floats]:
        evaluated.append(len(X))
        return X.sum(1), np.full_like(X, 1e-3)

    ascend(slow, np.zeros((2, 2)), 3)
    assert evaluated == [2] * (1 + 3)  # the starts, and three steps


def test_scores_without_slopes_of_their_own_are_differentiated() -> None:
    def score(X: Tensor) -> Tensor:
        return (X**3).sum(1)

    X = torch.rand(4, 2, dtype=torch.float64)
    for scores, slopes in (differentiated(score, X), slopes_of(score)(X)):
        torch.testing.assert_close(scores, score(X))
        torch.testing.assert_close(slopes, 3.0 * X**2)


def test_slopes_of_their_own_are_preferred() -> None:
    class Score:
        def __call__(self, X: Tensor) -> Tensor:
            raise AssertionError

        def with_slopes(self, X: Tensor) -> tuple[Tensor, Tensor]:
            return X.sum(1), torch.ones_like(X)

    scores, slopes = slopes_of(Score())(torch.ones(2, 3))
    assert scores.tolist() == [3.0, 3.0]
    assert torch.equal(slopes, torch.ones(2, 3))


def test_slopes_of_a_score_that_torch_cannot_differentiate_are_unknown() -> None:
    X = torch.rand(4, 2, dtype=torch.float64)
    weight = torch.ones(2, dtype=torch.float64, requires_grad=True)
    for score in (lambda X: X.detach().sum(1), lambda X: X.detach() @ weight):
        scores, slopes = differentiated(score, X)
        torch.testing.assert_close(scores, X.sum(1))
        assert not scores.requires_grad
        assert bool(slopes.isnan().all())


def test_differences_are_the_slopes_of_their_columns_and_stay_in_the_cube() -> None:
    X = torch.tensor([[0.0, 1.0, 2.0], [0.3, 0.8, 1.0], [1.0, 0.0, 0.0]], dtype=torch.float64)

    def score(Y: Tensor) -> Tensor:
        assert bool(((Y[:, :2] >= 0.0) & (Y[:, :2] <= 1.0)).all())
        assert torch.equal(Y[:, 2], X[:, 2].repeat(len(Y) // 3))  # a column of codes
        return torch.exp(Y).sum(1)

    slopes = differences(score, X, [1, 0], score(X))
    # Half of the curvature, at most e, times the step.
    torch.testing.assert_close(slopes, torch.exp(X[:, [1, 0]]), rtol=0.0, atol=2e-6)
