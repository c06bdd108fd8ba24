"""The compiled rounds against the formulas written out, and what each algorithm promises."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.kernels import matern52, rbf
from bkbopt.learners.base import OnlineLearner
from bkbopt.learners.budgeted import BOGD, BPAS, KOGD, RBP, Forgetron, KernelPerceptron, Projectron, ProjectronPP
from bkbopt.learners.losses import LOSSES, Array

B = 12
LENGTH = 0.8


def stream(n: int = 400, d: int = 3, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    # Some points come again, with either label: distances of zero, and weights that cancel.
    X[::7] = X[rng.integers(20, size=len(X[::7]))]
    y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n) > 0.0, 1.0, -1.0)
    y[0] = -1.0  # the first label is -1 inside, whichever it is
    return X, y


def gauss(a: Array, b: Array) -> float:
    return float(np.exp(-np.sum((a - b) ** 2) / (2.0 * LENGTH**2)))


Terms = list[tuple[Array, float]]
Predictions = tuple[list[float], Terms]


def value(terms: Terms, x: Array) -> float:
    return sum(a * gauss(s, x) for s, a in terms)


def literal_perceptron(X: Array, y: Array) -> Predictions:
    terms: Terms = []
    p = []
    for x, label in zip(X, y, strict=True):
        p.append(value(terms, x))
        if label * p[-1] <= 0.0:
            terms.append((x, label))
    return p, terms


def literal_norma(
    X: Array, y: Array, loss: str, step: float, ridge: float, window: int | None
) -> Predictions:
    terms: list[tuple[int, Array, float]] = []
    p = []
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        p.append(sum(a * gauss(s, x) for _, s, a in terms))
        slope = float(LOSSES[loss].slope(np.array(label), np.array(p[-1])))
        terms = [(born, s, a * (1.0 - step * ridge)) for born, s, a in terms]
        if slope != 0.0:
            terms.append((t, x, -step * slope))
        terms = [term for term in terms if window is None or term[0] > t - window]
    return p, [(s, a) for _, s, a in terms]


def literal_rbp(X: Array, y: Array, seed: int) -> Predictions:
    u = np.random.default_rng(seed).random(len(X))
    terms: Terms = []
    p = []
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        p.append(value(terms, x))
        if label * p[-1] <= 0.0:
            if len(terms) == B:
                # The compiled loop fills the gap with its last term; so that both draw the same one, this does too.
                terms[int(u[t] * B)] = terms[-1]
                terms.pop()
            terms.append((x, label))
    return p, terms


def literal_forgetron(X: Array, y: Array) -> Predictions:
    terms: Terms = []
    p: list[float] = []
    Q, M = 0.0, 0
    for x, label in zip(X, y, strict=True):
        p.append(value(terms, x))
        if label * p[-1] > 0.0:
            continue
        M += 1
        terms.append((x, label))
        if len(terms) <= B:
            continue
        oldest, a = terms[0]
        d, mu = abs(a), np.sign(a) * value(terms, oldest)
        damage = lambda phi, d=d, mu=mu: (d * phi) ** 2 + 2.0 * d * phi * (1.0 - phi * mu)  # noqa: E731
        # The largest factor within the budget, by bisection: no formula for the root. The damage at 0 is 0.
        low, high = 0.0, 1.0
        if Q + damage(1.0) > 15.0 / 32.0 * M:
            for _ in range(200):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if Q + damage(middle) <= 15.0 / 32.0 * M else (low, middle)
        else:
            low = 1.0
        Q += damage(low)
        terms = [(s, low * w) for s, w in terms[1:]]
    return p, terms


def literal_bpas(X: Array, y: Array, C: float) -> Predictions:
    terms: Terms = []
    p: list[float] = []
    for x, label in zip(X, y, strict=True):
        p.append(value(terms, x))
        loss = max(0.0, 1.0 - label * p[-1])
        if loss == 0.0:
            continue
        tau = min(C, loss)
        if len(terms) < B:
            terms.append((x, tau * label))
            continue
        candidates = []
        for r, (s, a) in enumerate(terms):
            changed = [*terms[:r], (x, a * gauss(s, x) + tau * label), *terms[r + 1 :]]
            difference = [(s, a), (x, -changed[r][1])]
            norm = sum(a1 * a2 * gauss(s1, s2) for s1, a1 in difference for s2, a2 in difference)
            candidates.append((0.5 * norm + C * max(0.0, 1.0 - label * value(changed, x)), changed))
        terms = min(candidates, key=lambda candidate: candidate[0])[1]
    return p, terms


def literal_projectron(X: Array, y: Array, eta: float, budget: int | None, margin: bool) -> Predictions:
    points: list[Array] = []
    a = np.zeros(0)
    p: list[float] = []
    for x, label in zip(X, y, strict=True):
        k = np.array([gauss(s, x) for s in points])
        p.append(float(a @ k))
        if label * p[-1] >= 1.0 or (label * p[-1] > 0.0 and not margin):
            continue
        K = np.array([[gauss(s, t) for t in points] for s in points]).reshape(len(points), len(points))
        d = np.linalg.solve(K, k) if len(points) else k
        distance = np.sqrt(max(1.0 - k @ d, 0.0))
        if label * p[-1] > 0.0:
            loss = 1.0 - label * p[-1]
            if loss > distance / eta:
                P2 = k @ d
                a = a + min(loss / P2, 2.0 * (loss - distance / eta) / P2, 1.0) * label * d
        elif distance <= eta or len(points) == budget:
            a = a + label * d
        else:
            points.append(x)
            a = np.append(a, label)
    return p, list(zip(points, a, strict=True))


def literal_bogd(X: Array, y: Array, seed: int, removal: str) -> Predictions:
    u = np.random.default_rng(seed).random(len(X))
    terms: Terms = []
    p: list[float] = []
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        p.append(value(terms, x))
        slope = float(LOSSES["hinge"].slope(np.array(label), np.array(p[-1])))
        terms = [(s, a * (1.0 - 0.2 * 0.01)) for s, a in terms]
        if slope == 0.0:
            continue
        if len(terms) == B:
            sizes = np.array([abs(a) for _, a in terms])
            q = np.full(B, 1.0 / B) if removal == "uniform" else (1.0 - sizes / sizes.sum()) / (B - 1)
            gone = int(np.searchsorted(np.cumsum(q), u[t], side="right"))
            terms = [(s, a / (1.0 - q[j])) for j, (s, a) in enumerate(terms)]
            terms[gone] = terms[-1]
            terms.pop()
        terms.append((x, -0.2 * slope))
        largest = max(abs(a) for _, a in terms)
        terms = [(s, a * min(1.0, 0.2 * 1.5 / largest)) for s, a in terms]
    return p, terms


CASES: dict[str, tuple[Callable[..., OnlineLearner], Callable[[Array, Array], Predictions]]] = {
    "perceptron": (KernelPerceptron, literal_perceptron),
    **{
        f"norma-{loss}": (
            lambda loss=loss, **k: KOGD(loss=loss, step=0.3, ridge=0.05, window=40, **k),
            lambda X, y, loss=loss: literal_norma(X, y, loss, 0.3, 0.05, 40),
        )
        for loss in LOSSES
    },
    "kogd": (KOGD, lambda X, y: literal_norma(X, y, "hinge", 0.2, 0.0, None)),
    "rbp": (lambda **k: RBP(budget=B, seed=3, **k), lambda X, y: literal_rbp(X, y, 3)),
    "forgetron": (lambda **k: Forgetron(budget=B, **k), literal_forgetron),
    "bpas": (lambda **k: BPAS(budget=B, C=0.7, **k), lambda X, y: literal_bpas(X, y, 0.7)),
    "projectron": (lambda **k: Projectron(eta=0.3, **k), lambda X, y: literal_projectron(X, y, 0.3, None, False)),
    "projectron-b": (
        lambda **k: Projectron(eta=0.1, budget=B, **k),
        lambda X, y: literal_projectron(X, y, 0.1, B, False),
    ),
    "projectron++": (lambda **k: ProjectronPP(eta=0.4, **k), lambda X, y: literal_projectron(X, y, 0.4, None, True)),
    "bogd": (
        lambda **k: BOGD(budget=B, ridge=0.01, gamma=1.5, seed=5, **k),
        lambda X, y: literal_bogd(X, y, 5, "uniform"),
    ),
    "bogd-weighted": (
        lambda **k: BOGD(budget=B, ridge=0.01, gamma=1.5, seed=5, removal="weighted", **k),
        lambda X, y: literal_bogd(X, y, 5, "weighted"),
    ),
}


def predicted(learner: OnlineLearner, X: Array, y: Array) -> Array:
    kind = {"decision": True} if LOSSES[learner.loss].task == "classification" else {}
    return learner.progressive(X, y, **kind)


@pytest.mark.parametrize("name", CASES)
def test_compiled_rounds_follow_the_formulas(name: str) -> None:
    make, literal = CASES[name]
    X, y = stream()
    learner = make(lengthscale=LENGTH)
    p = predicted(learner, X, y)
    expected, terms = literal(X, y)
    # Sums of some tens of terms in another order; the projections solve with matrices of condition 1e4.
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-11 if name.startswith("projectron") else 1e-12)
    assert learner.dictionary_size_ == len(terms)
    order = np.lexsort(learner.support_.T)
    other = np.lexsort(np.array([s for s, _ in terms]).T)
    np.testing.assert_allclose(learner.support_[order], np.array([s for s, _ in terms])[other], rtol=1e-15)
