"""The compiled rounds against the formulas written out, and the guarantees of each algorithm."""

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from bkbopt.errors import ArgumentError, ArgumentTypeError, NotReadyError
from bkbopt.kernels import rbf
from bkbopt.learners import BOGD, BPAS, KOGD, RBP, Forgetron, KernelPerceptron, Projectron, ProjectronPP
from bkbopt.learners.base import OnlineLearner
from bkbopt.learners.expansions import descent as loops
from bkbopt.learners.numerics.losses import LOSSES, Array
from tests.learners.streams import margins, normal_rows
from tests.sweeps import sweep

B = 12
LENGTH = 0.8


def stream(n: int = 400, repeats: bool = True) -> tuple[Array, Array]:
    return normal_rows(n, repeats)


def gauss(a: Array, b: Array) -> float:
    return float(np.exp(-np.sum((a - b) ** 2) / (2.0 * LENGTH**2)))


Terms = list[tuple[Array, float]]
Predictions = tuple[list[float], Terms]


def value(terms: Terms, x: Array) -> float:
    return sum(a * gauss(s, x) for s, a in terms)


def literal_norma(X: Array, y: Array, loss: str, step: float, ridge: float, window: int | None) -> Predictions:
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


def literal_perceptron(X: Array, y: Array, seed: int = 0, budget: int | None = None) -> Predictions:
    u = np.random.default_rng(seed).random(len(X))
    terms: Terms = []
    p = []
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        p.append(value(terms, x))
        if label * p[-1] <= 0.0:
            if len(terms) == budget:
                # The compiled loop fills the gap with its last term; so that both draw the same one, this does too.
                terms[int(u[t] * budget)] = terms[-1]
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
        d = np.linalg.solve(K, k) if points else k
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
    "perceptron": (KernelPerceptron.paper, literal_perceptron),
    **{
        f"norma-{loss}": (
            lambda loss=loss, **k: KOGD.paper(loss=loss, step=0.3, ridge=0.05, window=40, **k),
            lambda X, y, loss=loss: literal_norma(X, y, loss, 0.3, 0.05, 40),
        )
        for loss in LOSSES
    },
    "kogd": (KOGD.paper, lambda X, y: literal_norma(X, y, "hinge", 0.2, 0.0, None)),
    "rbp": (lambda **k: RBP.paper(budget=B, seed=3, **k), lambda X, y: literal_perceptron(X, y, 3, B)),
    "forgetron": (lambda **k: Forgetron.paper(budget=B, **k), literal_forgetron),
    "bpas": (lambda **k: BPAS.paper(budget=B, C=0.7, **k), lambda X, y: literal_bpas(X, y, 0.7)),
    "projectron": (lambda **k: Projectron.paper(eta=0.3, **k), lambda X, y: literal_projectron(X, y, 0.3, None, False)),
    "projectron-b": (
        lambda **k: Projectron.paper(eta=0.1, budget=B, **k),
        lambda X, y: literal_projectron(X, y, 0.1, B, False),
    ),
    "projectron++": (
        lambda **k: ProjectronPP.paper(eta=0.4, **k),
        lambda X, y: literal_projectron(X, y, 0.4, None, True),
    ),
    "bogd": (
        lambda **k: BOGD.paper(budget=B, ridge=0.01, max_weight=1.5, seed=5, **k),
        lambda X, y: literal_bogd(X, y, 5, "uniform"),
    ),
    "bogd-weighted": (
        lambda **k: BOGD.paper(budget=B, ridge=0.01, max_weight=1.5, seed=5, removal="weighted", **k),
        lambda X, y: literal_bogd(X, y, 5, "weighted"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_compiled_rounds_follow_the_formulas(name: str) -> None:
    make, literal = CASES[name]
    X, y = stream()
    learner = make(lengthscale=LENGTH)
    p = margins(learner, X, y)
    expected, terms = literal(X, y)
    # Sums of some tens of terms in another order; the projections solve with matrices of condition 1e4.
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-11 if name.startswith("projectron") else 1e-12)
    assert learner.dictionary_size_ == len(terms)
    order = np.lexsort(learner.support_.T)
    other = np.lexsort(np.array([s for s, _ in terms]).T)
    np.testing.assert_allclose(learner.support_[order], np.array([s for s, _ in terms])[other], rtol=1e-15)


def gaussian_of_tensors(A: torch.Tensor, B_: torch.Tensor) -> torch.Tensor:
    return torch.exp(-(torch.cdist(A, B_, compute_mode="donot_use_mm_for_euclid_dist") ** 2) / (2.0 * LENGTH**2))


GIVEN = {"ard": rbf(3, LENGTH), "callable": gaussian_of_tensors}


@pytest.mark.parametrize(("name", "given"), sweep(CASES, GIVEN))
def test_given_kernels_give_the_predictions_of_the_compiled_ones(name: str, given: str) -> None:
    # Without repeats: where terms are equal, rounding would decide which one BPA-S replaces.
    X, y = stream(300, repeats=False)
    make = CASES[name][0]
    p = margins(make(lengthscale=LENGTH), X, y)
    # Rounding of the two exponentials, 1e-16, carried through 300 rounds.
    np.testing.assert_allclose(margins(make(kernel=GIVEN[given]), X, y), p, rtol=0, atol=1e-11)


def test_outputscale_of_a_gaussian_kernel_counts() -> None:
    X, y = stream(100)
    double = rbf(3, LENGTH, outputscale=2.0)
    expected = margins(KernelPerceptron.paper(kernel=double.__call__), X, y)
    np.testing.assert_allclose(margins(KernelPerceptron.paper(kernel=double), X, y), expected, rtol=0, atol=1e-12)


def test_points_far_away_do_no_harm() -> None:
    X, y = stream(200)
    X[::3] *= 1e200
    for make, _ in CASES.values():
        assert np.isfinite(margins(make(lengthscale=LENGTH), X, y)).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_descent_keeps_to_its_regret_bound(loss: str) -> None:
    X, y = stream(300)
    learner = KOGD.paper(loss=loss, lengthscale=LENGTH)
    p = margins(learner, X, y)
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1) / (2.0 * LENGTH**2))
    rng = np.random.default_rng(1)
    for size in np.logspace(-3, 0, 30):
        f = size * (rng.normal(size=len(X)) + 3.0 * y)
        regret = LOSSES[loss].value(y, p).sum() - LOSSES[loss].value(y, K @ f).sum()
        assert regret <= learner.regret_bound(np.sqrt(f @ K @ f))


def test_regret_bound_is_reached_where_the_loss_is_linear() -> None:
    # With steps so small every margin stays below one, and the last hypothesis is the worst to be compared with.
    X, y = stream(50)
    learner = KOGD.paper(step=1e-3, lengthscale=LENGTH)
    p = margins(learner, X, y)
    f = learner.decision_function(X)
    norm = np.sqrt(learner.weights_ @ learner.decision_function(learner.support_))
    regret = LOSSES["hinge"].value(y, p).sum() - LOSSES["hinge"].value(y, f).sum()
    assert regret == pytest.approx(learner.regret_bound(norm), rel=1e-12)
    with pytest.raises(ArgumentError, match="norm: expected a norm >= 0"):
        learner.regret_bound(-1.0)
    with pytest.raises(NotReadyError, match="KOGD: expected at least one learnt row first"):
        KOGD.paper().regret_bound(1.0)


def test_regret_bound_is_for_plain_descent_only() -> None:
    X, y = stream(20)
    with pytest.raises(ArgumentError, match="ridge, window: expected neither"):
        KOGD.paper(window=5).fit(X, y).regret_bound(1.0)


@pytest.mark.parametrize("first", ["a", "b"])
@pytest.mark.parametrize("known", [True, False])
def test_weights_are_those_of_the_decision_function(first: str, known: bool) -> None:
    X, y = stream(60, repeats=False)
    labels = np.where(y < 0.0, "a", "b")
    order = np.argsort(labels != first, kind="stable")
    learner = KOGD.paper(lengthscale=LENGTH)
    if known:
        learner.fit(X[order], labels[order])
    else:
        for t in order:
            learner.learn_one(X[t], labels[t])
    K = np.array([[gauss(a, b) for b in learner.support_] for a in X])
    np.testing.assert_allclose(K @ learner.weights_, learner.decision_function(X), rtol=0, atol=1e-13)
    row_of = np.argmin(np.abs(learner.support_[:, None] - X).sum(-1), axis=1)
    np.testing.assert_array_equal(np.sign(learner.weights_), y[row_of])


def test_norma_forgets_what_its_window_has_passed() -> None:
    X, y = stream(100)
    learner = KOGD.paper(loss="squared", window=7)
    learner.partial_fit(X, y)
    assert learner.dictionary_size_ == 7
    # The loops keep points in units of the lengthscale.
    rows = [sorted(A.tolist()) for A in (learner.support_, X[-7:])]
    np.testing.assert_allclose(rows[0], rows[1], rtol=1e-15)


def test_budgets_are_kept() -> None:
    X, y = stream(400)
    for kind in (RBP, Forgetron, BPAS, BOGD, Projectron, ProjectronPP):
        learner = kind(budget=5, lengthscale=0.1)
        learner.partial_fit(X, y)
        assert learner.dictionary_size_ == 5


def test_projectron_stays_small_by_its_threshold_alone() -> None:
    X, y = stream(1000)
    sizes = [Projectron.paper(eta=eta, lengthscale=3.0).fit(X, y).dictionary_size_ for eta in (0.05, 0.2, 0.5)]
    assert sizes[0] > sizes[1] > sizes[2]
    assert sizes[0] < 0.5 * KernelPerceptron.paper(lengthscale=3.0).fit(X, y).dictionary_size_


def test_projectron_without_threshold_is_the_perceptron() -> None:
    # Points in the span, repeated ones here, are projected on themselves.
    X, y = stream(300)
    p = margins(KernelPerceptron.paper(lengthscale=0.3), X, y)
    # Distances below a relative 1e-10 count as zero, which moves a prediction by up to its root.
    np.testing.assert_allclose(margins(Projectron.paper(eta=0.0, lengthscale=0.3), X, y), p, rtol=0, atol=1e-5)


@pytest.mark.parametrize("uniform", [True, False])
def test_the_expectation_of_a_bogd_removal_is_no_change(uniform: bool) -> None:
    from bkbopt.learners.numerics._loops_kernel import Support

    a = np.array([0.3, -0.1, 0.7, 0.2])
    diagonal = np.array([1.0, 4.0, 1.0, 0.25])
    sizes = np.abs(a) * np.sqrt(diagonal)
    q = np.full(4, 0.25) if uniform else (1.0 - sizes / sizes.sum()) / 3.0
    mean = np.zeros(4)
    for i in range(4):
        index = np.arange(4)
        terms = Support(index[None] + 0.0, a.copy(), diagonal.copy(), index.copy(), index.copy(), np.array([4]))
        loops.drop_at_random(terms, uniform, q[:i].sum() + 0.5 * q[i])
        left = terms.points[0, :3].astype(int)
        assert i not in left
        mean[left] += q[i] * terms.weights[:3]
    np.testing.assert_allclose(mean, a, rtol=1e-15)


def test_forgetron_damage_stays_within_its_budget() -> None:
    X, y = stream(500)
    rng = np.random.default_rng(0)
    learner = Forgetron.paper(budget=4, lengthscale=LENGTH)
    for x, label in zip(X, np.where(rng.random(500) < 0.2, -y, y), strict=True):
        learner.learn_one(x, label)
        damage, mistakes = learner._sums
        assert damage <= 15.0 / 32.0 * mistakes + 1e-9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBP.paper(budget=0), "budget: expected a whole number >= 1"),
        (lambda: BOGD.paper(step=0.0), "step: expected a positive learning rate"),
        (lambda: KOGD.paper(step=0.5, ridge=2.0), "ridge: expected step \\* ridge below 1, got 1"),
        (lambda: KOGD.paper(window=0), "window: expected a whole number >= 1"),
        (lambda: KOGD.paper(loss="cubic"), "loss: expected one of squared"),
        (lambda: BPAS.paper(C=-1.0), "C: expected a positive largest step"),
        (lambda: Projectron.paper(eta=-0.1), "eta: expected a distance >= 0"),
        (lambda: BOGD.paper(removal="oldest"), 'removal: expected "uniform" or "weighted"'),
        (lambda: BOGD.paper(max_weight=0.0), "max_weight: expected a positive bound"),
        (lambda: RBP.paper(kernel=rbf(2)), "kernel: expected one for 3 features, got one for 2"),
    ],
)
def test_parameters_out_of_range_are_refused_at_the_first_row(make: Callable[[], OnlineLearner], message: str) -> None:
    learner = make()
    before = dict(vars(learner))
    with pytest.raises(ArgumentError, match=message):
        learner.learn_one(np.zeros(3), 1)
    assert vars(learner) == before


def test_budget_that_is_no_number_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="budget: expected a whole number"):
        RBP.paper(budget="many").learn_one(np.zeros(3), 1)


@pytest.mark.parametrize("name", CASES)
def test_saved_learner_goes_on_alike(name: str, tmp_path: Path) -> None:
    X, y = stream(300)
    learner = CASES[name][0](lengthscale=LENGTH)
    for start in (0, 100):  # before the budget is full, and after
        learner.partial_fit(X[start : start + 100], y[start : start + 100])
        learner.save(tmp_path / "state")
        again = OnlineLearner.load(tmp_path / "state")
        np.testing.assert_array_equal(again.predict(X), learner.predict(X))
        np.testing.assert_array_equal(
            margins(again, X[200:], y[200:]), margins(copy.deepcopy(learner), X[200:], y[200:])
        )
