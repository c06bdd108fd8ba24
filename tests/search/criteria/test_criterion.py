"""The criterion that a suggestion maximises: probabilities of constraints, failed trials, several objectives."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from torch import Tensor

import bkbopt as bo
from bkbopt.posterior.model import Model
from bkbopt.search.criteria.acquisition import (
    CONSTRAINT_FLOOR,
    UCB,
    ClosedFormAcquisition,
    LogEI,
    LogFeasibility,
    LogGain,
)
from bkbopt.search.criteria.crashes import Crashes
from bkbopt.search.criteria.criterion import (
    ACQUISITIONS,
    LAZY,
    Combined,
    Constraint,
    UpperBound,
    by_decreasing,
    rule_of,
    still_open_beside,
)
from bkbopt.search.criteria.pareto import Improvement, reference_of
from bkbopt.search.maximizers.ascent import SlopedScore, differentiated
from bkbopt.search.maximizers.pool import PoolMaximizer
from tests.search.criteria import dense

KERNEL = bo.kernels.rbf(2, 0.3)


def model(seed: int = 0, n: int = 12) -> tuple[Model, Tensor]:
    rng = np.random.default_rng(seed)
    X = torch.as_tensor(rng.random((n, 2)))
    gp = bo.ExactGP(KERNEL, noise=1e-2)
    gp.observe(X, rng.standard_normal(n))
    return gp.model, torch.as_tensor(rng.random((40, 2)))


def test_constraint_has_the_probability_of_its_posterior() -> None:
    m, X = model()
    mean, variance = (t.numpy() for t in m(X))
    expected = norm.logcdf((mean - 0.3 - 2.0 * CONSTRAINT_FLOOR) / np.sqrt(variance))
    # The collapsed predictor's rounding is relative to k(x, x) = 1, and the standard deviations are above 0.05.
    np.testing.assert_allclose(Constraint(m, 0.3).log_probability(X), expected, rtol=1e-6, atol=1e-9)


def test_constrained_score_is_expected_improvement_times_the_probabilities() -> None:
    (objective, X), (first, _), (second, _) = (model(seed) for seed in range(3))
    limits = (Constraint(first, 0.0), Constraint(second, -0.5))
    score = Combined([UpperBound.over(objective, 2.0)], limits, None, LogEI(0.4))(X)
    parts = [LogEI(0.4)(*objective(X)), *(limit.log_probability(X) for limit in limits)]
    torch.testing.assert_close(score, sum(parts[1:], parts[0]), rtol=1e-6, atol=1e-6)


def test_without_a_feasible_point_feasibility_comes_first() -> None:
    (objective, X), (limit, _) = model(0), model(1)
    constraint = Constraint(limit, 1.0)
    best = int(Combined([UpperBound.over(objective, 2.0)], (constraint,), None, None)(X).argmax())
    probability = constraint.log_probability(X)
    # A hundredth of the spread of the bounds at most is given up for the objective.
    spread = UCB(2.0)(*objective(X))
    assert float(probability.max() - probability[best]) <= 0.01 * float(spread.max() - spread.min())


@pytest.mark.parametrize("name", ["ucb", "logei"])
def test_slopes_of_a_criterion_are_those_of_automatic_differentiation(name: str) -> None:
    m, X = model()
    criterion = rule_of(name).build(m, 2.0, 0.4, np.random.default_rng(0))
    assert isinstance(criterion, SlopedScore)
    acquisition = UCB(2.0) if name == "ucb" else LogEI(0.4)
    # Of the model itself, by autograd all the way; the collapsed predictor's rounding is relative to k(x, x) = 1.
    expected = differentiated(lambda X: acquisition(*m(X)), X)
    torch.testing.assert_close(criterion.with_slopes(X), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("gain", [LogEI(0.4), LogGain(UCB(1.5), 0.4), None])
def test_slopes_under_constraints_are_those_of_automatic_differentiation(gain: ClosedFormAcquisition | None) -> None:
    (objective, X), (first, _), (second, _) = (model(seed) for seed in range(3))
    limits = (Constraint(first, 0.0), Constraint(second, 40.0))  # the second one all but fails everywhere
    crashes = Crashes(objective.features.kernel, X[:3], X[3:9])  # type: ignore[attr-defined]
    combined = Combined([UpperBound.over(objective, 2.0)], limits, None, gain, crashes)
    scores, slopes = combined.with_slopes(X)
    torch.testing.assert_close(scores, combined(X))

    def whole(X: torch.Tensor) -> torch.Tensor:
        score = gain(*objective(X)) if gain is not None else 0.01 * UCB(2.0)(*objective(X))
        for m, bound in ((first, 0.0), (second, 40.0)):
            score = score + LogFeasibility(bound)(*m(X))
        return score

    # The collapsed predictor rounds relative to k(x, x) = 1, and slopes of the second limit are of the order 1e4.
    torch.testing.assert_close(slopes, differentiated(whole, X)[1], rtol=1e-5, atol=1e-6)


def test_slopes_of_several_objectives_are_those_of_automatic_differentiation() -> None:
    (one, X), (two, _), (limit, _) = (model(seed) for seed in range(3))
    F = torch.stack([one(X[:8])[0], two(X[:8])[0]], 1)
    improvement = Improvement.over(F, reference_of(F))
    bounds = [UpperBound.over(one, 2.0), UpperBound.over(two, 0.5)]
    combined = Combined(bounds, (Constraint(limit, 0.0),), improvement, None)
    scores, slopes = combined.with_slopes(X)
    torch.testing.assert_close(scores, combined(X))

    def whole(X: torch.Tensor) -> torch.Tensor:
        bounds = torch.stack([UCB(2.0)(*one(X)), UCB(0.5)(*two(X))], 1)
        return dense.score(improvement, bounds) + LogFeasibility(0.0)(*limit(X))

    # The collapsed predictor rounds relative to k(x, x) = 1.
    torch.testing.assert_close(slopes, differentiated(whole, X)[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("margin", [-1e8, -1e5, -30.0, 0.0, 5.0])
def test_slopes_of_a_feasibility_are_right_however_far_below_the_bound(margin: float) -> None:
    mean, variance = torch.tensor([margin], dtype=torch.float64), torch.tensor([1.0], dtype=torch.float64)
    _, by_mean, by_variance = LogFeasibility(-2.0 * CONSTRAINT_FLOOR).with_slopes(mean, variance)
    expected = math.exp(norm.logpdf(margin) - norm.logcdf(margin)) if margin > -1e4 else -margin
    assert float(by_mean) == pytest.approx(expected, rel=1e-7)
    assert float(by_variance) == pytest.approx(-0.5 * margin * expected, rel=1e-7)


def test_a_user_s_acquisition_is_used_as_it_is() -> None:
    m, X = model()
    criterion = rule_of(lambda mean, variance: mean - variance).build(m, 2.0, 0.0, np.random.default_rng(0))
    mean, variance = m(X)
    torch.testing.assert_close(
        criterion(X), mean - variance, rtol=0.0, atol=1e-9
    )  # rounding of the collapsed predictor


def in_batch(pending: Tensor, noise: float = 1e-2) -> tuple[UpperBound, UpperBound, Tensor]:
    """The posterior mean with and without pending points, and points around that with the largest mean."""
    rng = np.random.default_rng(0)
    gp = bo.ExactGP(KERNEL, noise=noise)
    X = rng.random((12, 2))
    gp.observe(X, np.sin(4.0 * X).sum(axis=1))
    X = torch.as_tensor(rng.random((40, 2)))
    finished = UpperBound.over(gp.model, 0.0)
    best = X[finished(X).argmax()]
    X = torch.cat([best[None], best + 0.3 * (X - best)])
    return UpperBound.over(gp.fantasy(best + pending), 0.0), finished, X


def test_without_pending_points_a_batch_takes_points_in_the_order_of_their_scores() -> None:
    _, finished, X = in_batch(torch.zeros(1, 2))
    order = list(finished.in_batch_order(X, finished, spreads=False))
    assert order == finished(X).argsort(descending=True, stable=True).tolist()


def test_a_batch_leaves_places_whose_standard_deviation_is_more_than_halved() -> None:
    criterion, finished, X = in_batch(torch.zeros(1, 2))
    left = criterion.model(X)[1] / finished.model(X)[1]
    is_open = left >= 0.25
    assert not bool(is_open[0])
    assert 1 < int(is_open.sum()) < len(X) - 1
    order = list(criterion.in_batch_order(X, finished, spreads=False))
    opened, closed = is_open.nonzero()[:, 0], (~is_open).nonzero()[:, 0]
    by_score, by_rest = criterion(X)[opened].argsort(descending=True), left[closed].argsort(descending=True)
    assert order == torch.cat([opened[by_score], closed[by_rest]]).tolist()


def test_beside_hundreds_of_pending_points_a_place_is_left_later() -> None:
    assert [still_open_beside(n) for n in (0, 100, 300)] == pytest.approx([0.25, 0.25, 0.1], rel=1e-12)
    criterion, finished, X = in_batch(torch.zeros(1, 2))
    left = criterion.model(X)[1] / finished.model(X)[1]
    order = list(criterion.in_batch_order(X, finished, spreads=False, still_open=0.99 * float(left.min())))
    assert order == criterion(X).argsort(descending=True, stable=True).tolist()


def test_a_batch_that_is_known_everywhere_goes_where_most_variance_is_left() -> None:
    grid = torch.cartesian_prod(torch.arange(-4.0, 5.0), torch.arange(-4.0, 5.0)).double()
    criterion, finished, X = in_batch(0.05 * grid)
    left = criterion.model(X)[1] / finished.model(X)[1]
    assert bool((left < 0.25).all())
    for spreads in (False, True):
        assert list(criterion.in_batch_order(X, finished, spreads)) == left.argsort(descending=True).tolist()


def test_points_that_are_known_exactly_count_as_open() -> None:
    zero = torch.zeros(3, dtype=torch.float64)
    scored = UpperBound.over(model()[0], 0.0)
    scored.__dict__["_predict"] = lambda X: (X[:, 0], zero)
    X = torch.tensor([[0.1, 0.0], [0.3, 0.0], [0.2, 0.0]], dtype=torch.float64)
    assert list(scored.in_batch_order(X, scored, spreads=False)) == [1, 2, 0]


@pytest.mark.parametrize(("noise", "away", "size"), [(1e-2, 0.0, 1.0), (1e-8, 0.3, 0.1)])
def test_a_point_that_spreads_is_almost_as_good_as_the_best_one_and_has_the_largest_variance(
    noise: float, away: float, size: float
) -> None:
    criterion, finished, X = in_batch(torch.full((1, 2), away), noise)
    X = X[0] + size * (X - X[0])
    mean, variance = criterion(X), criterion.model(X)[1]
    is_open = variance >= 0.25 * finished.model(X)[1]
    near = is_open & (mean >= mean[is_open].max() - max(noise**0.5, 0.01))
    assert 1 < int(near.sum()) < int(is_open.sum())
    order = list(criterion.in_batch_order(X, finished, spreads=True))
    others = (is_open & ~near).nonzero()[:, 0]
    expected = [
        near.nonzero()[:, 0][variance[near].argsort(descending=True)],
        others[mean[others].argsort(descending=True)],
    ]
    assert order[: int(is_open.sum())] == torch.cat(expected).tolist()


@pytest.mark.parametrize("spreads", [False, True])
@pytest.mark.parametrize("away", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("n", [1, 3, 30, 81])
def test_the_order_in_a_batch_is_that_of_sorting_all_points(n: int, away: float, spreads: bool) -> None:
    grid = torch.cartesian_prod(torch.arange(-4.0, 5.0), torch.arange(-4.0, 5.0)).double()
    rng = np.random.default_rng(n)
    criterion, finished, X = in_batch(away * grid[rng.permutation(81)[:n]])
    variance = criterion.model(X)[1]
    left = variance / finished.model(X)[1]
    is_open = left >= 0.25
    for penalty in (torch.zeros(len(X)), torch.as_tensor(rng.random(len(X)))):
        scores = criterion(X) - penalty
        best = scores[is_open].max() if bool(is_open.any()) else torch.inf
        near = is_open & (scores >= best - 0.1) & spreads  # 0.1: the noise's standard deviation
        group = 2.0 - is_open.double() - near.double()
        value = torch.where(near, variance, torch.where(is_open, scores, left))
        expected = np.lexsort((-value.numpy(), group.numpy())).tolist()
        assert list(criterion.in_batch_order(X, finished, spreads, penalty)) == expected


def test_the_score_of_a_point_without_width_is_the_posterior_mean() -> None:
    rng = np.random.default_rng(0)
    bkb = bo.BKB(KERNEL, noise=1e-2)
    X = rng.random((40, 2))
    bkb.observe(X, np.sin(4.0 * X).sum(axis=1))
    assert len(bkb.inducing) >= 16  # so that loops are compiled
    there = torch.as_tensor(rng.random((50, 2)))
    scores, mean = UpperBound.over(bkb.model, 0.0)(there), bkb.model.collapse()(there)[0]
    assert torch.equal(scores, mean)


@pytest.mark.slow
def test_thompson_scores_are_joint_samples() -> None:
    m, X = model()
    rng = np.random.default_rng(0)
    X = X[0] + torch.tensor([[0.0, 0.0], [0.05, 0.0], [0.1, 0.1]], dtype=torch.float64)
    draws = torch.stack([ACQUISITIONS["thompson"].build(m, 2.0, 0.0, rng)(X) for _ in range(4000)])
    covariance = m.covariance(X)
    # Six standard errors of a covariance over 4,000 draws, each with Fourier frequencies of its own.
    error = 6.0 * (2.0 / 4000) ** 0.5 * float(covariance.diagonal().max())
    assert float(covariance[0, 1]) > error  # draws of single points would be noticed
    assert float((torch.cov(draws.T) - covariance).abs().max()) < error


# -- where trials failed -----------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([-math.inf, -1.0, 0.0, 0.5, 2.0]), max_size=12), st.data())
def test_open_rows_come_by_decreasing_score_of_equal_ones_the_first(scores: list[float], data: st.DataObject) -> None:
    closed = data.draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores)))
    rows = by_decreasing(torch.tensor(scores, dtype=torch.float64), torch.tensor(closed, dtype=torch.bool))
    assert list(rows) == sorted((i for i, shut in enumerate(closed) if not shut), key=lambda i: -scores[i])


@pytest.mark.parametrize("copies", [1, 2])
def test_rows_of_a_pool_come_in_the_order_of_the_lazy_argmax_also_those_after_a_scan(copies: int) -> None:
    m, X = model()
    X = X.repeat(copies, 1)
    closed = torch.arange(len(X)) % 7 == 3
    rows, left, search = [], closed.clone(), PoolMaximizer(X)
    while not left.all():
        rows.append(search.argmax(m, 2.0, left).index)
        left[rows[-1]] = True
    assert len(rows) > LAZY
    assert list(UpperBound.over(m, 2.0).ranked(PoolMaximizer(X), closed)) == rows
