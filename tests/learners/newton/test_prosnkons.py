"""PROS-N-KONS against the algorithm written out with dense matrices and an eigendecomposition an epoch."""

import numpy as np
import pytest

from bkbopt.errors import ArgumentError
from bkbopt.learners import KONS, LOSSES, ProsNKONS, get_loss
from tests.learners.streams import surface
from tests.sweeps import sweep

N = 400
X, NUMBERS, LABELS = surface(N, seed=2)


def targets(loss: str) -> np.ndarray:
    return NUMBERS if get_loss(loss).task == "regression" else LABELS


def gaussian(A: np.ndarray, B: np.ndarray, length: float) -> np.ndarray:
    return np.exp(-((A[:, None] - B) ** 2).sum(-1) / (2.0 * length**2))


def root(K: np.ndarray) -> np.ndarray:
    w, U = np.linalg.eigh(K)
    keep = w > len(K) * 1e-15 * w[-1]
    return U[:, keep] / np.sqrt(w[keep])


def literal(model: ProsNKONS, y: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """The algorithm as written: the map of round t is that of the dictionary before it."""
    rule, C, length = get_loss(model.loss), model.clip, model.lengthscale
    uniforms = np.random.default_rng(model.seed).random(N)
    rows: list[int] = []
    p: list[float] = []
    W, A, u = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0)
    out = np.zeros(N)
    for t in range(N):
        k = gaussian(X[rows], X[t : t + 1], length)[:, 0]
        if rows:
            z = W.T @ k
            v = np.linalg.solve(A, z)
            out[t] = np.clip(z @ u, -C, C)
            g = float(rule.slope(y[t : t + 1], out[t : t + 1])[0])
            w = u - (z @ u - out[t]) / (z @ v) * v
            weight = (
                (model.curvature or rule.step_weight(C, t + 1)) * g * g
                if model.curvature != "auto"
                else 2.0 * (g != 0.0)
            )
            A = A + weight * np.outer(z, z)
            u = w - np.linalg.solve(A, g * z)
        weights = np.array(p) ** model._SAMPLER.power
        K = gaussian(X[rows], X[rows], length)
        c = 1.0 - float(k @ np.linalg.solve(K + model.kors_ridge * np.diag(weights), k))
        probability = min(1.0, model.oversampling * (1.0 + model.eps) * c / (c + model.kors_ridge))
        if uniforms[t] < probability and len(rows) != model.max_dictionary:
            rows.append(t)
            p.append(probability)
            W = root(gaussian(X[rows], X[rows], length))
            A, u = model.alpha * np.eye(W.shape[1]), np.zeros(W.shape[1])
    return out, rows


@pytest.mark.parametrize(("loss", "length"), sweep(LOSSES, [0.7, 2.0]))
def test_predictions_are_those_of_the_algorithm_written_out(loss: str, length: float) -> None:
    model = ProsNKONS.paper(loss=loss, lengthscale=length, clip=1.5, alpha=0.5)
    predictions = model.progressive(X, targets(loss), decision=True)
    expected, rows = literal(model, targets(loss))
    np.testing.assert_allclose(predictions, expected, atol=1e-10)
    assert model.dictionary_size_ == model.n_restarts_ == len(rows) > 10


@pytest.mark.parametrize(
    "options", [{"max_dictionary": 20}, {"curvature": 1 / 16, "kors_ridge": 3.0}, {"curvature": "auto"}]
)
def test_options_do_what_they_say(options: dict[str, object]) -> None:
    model = ProsNKONS.paper(**options)  # type: ignore[arg-type]
    predictions = model.progressive(X, LABELS, decision=True)
    expected, rows = literal(model, LABELS)
    np.testing.assert_allclose(predictions, expected, atol=1e-10)
    assert model.dictionary_size_ == len(rows)


def test_first_prediction_of_an_epoch_is_zero() -> None:
    model = ProsNKONS.paper(kors_ridge=5.0)
    zeros = 0
    for t in range(N):
        before = model.n_restarts_
        model.partial_fit(X[t : t + 1], LABELS[t : t + 1], classes=[-1, 1])
        if model.n_restarts_ > before:
            zeros += 1
            np.testing.assert_array_equal(model.decision_function(X), np.zeros(N))
    assert zeros == model.n_restarts_ > 5


def test_without_restarts_a_new_point_leaves_the_hypothesis_as_it_is() -> None:
    model = ProsNKONS.paper(restart=False, clip=50.0).fit(X[:300], LABELS[:300])
    before, size, algorithm = model.decision_function(X), len(model._u), model._after_rows().runs.first
    assert isinstance(algorithm, ProsNKONS)
    algorithm._grow(X[300], model._gram(X[300:301], model._S.rows)[0], 1.0)
    assert len(model._u) == size + 1
    np.testing.assert_allclose(model.decision_function(X), before, atol=1e-11)


@pytest.mark.parametrize("loss", ["squared", "squared_hinge"])
def test_with_all_rows_in_the_dictionary_and_no_restarts_it_is_kons(loss: str) -> None:
    # All rows are accepted, each before it is learnt. Nystrom features are cut at a relative 1e-10, the root of which
    # is the error of a feature; 2e-8 was seen.
    model = ProsNKONS(loss=loss, kors_ridge=1e-9, oversampling=100.0, max_dictionary=None)
    predictions = model.progressive(X, targets(loss), decision=loss != "squared")
    exact = KONS(loss=loss).progressive(X, targets(loss), decision=loss != "squared")
    assert model.dictionary_size_ == N
    np.testing.assert_allclose(predictions, exact, atol=1e-6)


def test_with_a_dictionary_that_spans_everything_it_is_kons_since_the_restart() -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform(-1.0, 1.0, (4, 2))[rng.integers(0, 4, N)]
    y = np.sin(points[:, 0]) + 0.1 * rng.standard_normal(N)
    model = ProsNKONS.paper(loss="squared")
    predictions, restarts = np.zeros(N), np.zeros(N)
    for t in range(N):
        predictions[t] = model.progressive(points[t : t + 1], y[t : t + 1])[0]
        restarts[t] = model.n_restarts_
    since = int(np.flatnonzero(np.diff(restarts))[-1]) + 2
    assert len(model._u) == 4
    assert N - since > 20
    # Points that were accepted twice make the kernel matrix singular, and are cut at 1e-10.
    exact = KONS.paper(loss="squared").progressive(points[since:], y[since:])
    np.testing.assert_allclose(predictions[since:], exact, atol=1e-9)


@pytest.mark.parametrize(
    "bad",
    [
        {"clip": 0.0},
        {"alpha": 0.0},
        {"kors_ridge": 0.0},
        {"oversampling": 0.0},
        {"eps": 2.0},
        {"curvature": -1.0},
        {"curvature": "own"},
        {"max_dictionary": 0},
    ],
)
def test_parameters_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ArgumentError, match=f"^{next(iter(bad))}: expected"):
        ProsNKONS.paper(**bad).fit(X, LABELS)  # type: ignore[arg-type]
