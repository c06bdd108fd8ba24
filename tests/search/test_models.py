"""Posteriors of all quantities with pending points: starting points of searches, and bounds on the regret."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.posterior.model import Model
from bkbopt.search.criteria.acquisition import SMALLEST_GAIN, UCB, LogEI
from bkbopt.search.criteria.criterion import ACQUISITIONS, Constraint
from bkbopt.search.criteria.pareto import SMALLEST
from bkbopt.search.models import N_INCUMBENTS, Known, Posteriors

RNG = np.random.default_rng(0)
X, ELSEWHERE = torch.as_tensor(RNG.random((12, 2))), torch.as_tensor(RNG.random((40, 2)))


def model(seed: int) -> Model:
    gp = bo.ExactGP(bo.kernels.rbf(2, 0.3), noise=1e-2)
    gp.observe(X, np.random.default_rng(seed).standard_normal(len(X)))
    return gp.model


#: The score of a point that gains nothing over a bound, not even loses: log(s softplus(0)).
NOTHING = math.log(SMALLEST_GAIN * math.log(2.0))


def posteriors(means: Tensor, violation: Tensor, pending: Tensor = X[:0], models: tuple[Model, ...] = ()) -> Posteriors:
    return Posteriors(models, (), (2.0,) * len(models), (), pending, Known(X, means, violation, None))


def test_searches_start_from_the_best_points_that_are_expected_to_be_feasible() -> None:
    means, violation = torch.arange(12.0, dtype=torch.float64)[:, None], torch.zeros(12, dtype=torch.float64)
    assert torch.equal(posteriors(means, violation).incumbents(), X[[11, 10, 9, 8, 7]])
    violation[[11, 9]] = 0.1
    assert torch.equal(posteriors(means, violation).incumbents(), X[[10, 8, 7, 6, 5]])
    assert torch.equal(posteriors(means, violation).incumbents(torch.tensor([9, 0, 3])), X[[3, 0, 9]])
    assert len(posteriors(means, violation).incumbents(torch.arange(N_INCUMBENTS + 1))) == N_INCUMBENTS


def of_two_objectives(pending: Tensor = X[:0]) -> Posteriors:
    models = (model(1), model(2))
    return posteriors(torch.stack([m(X)[0] for m in models], 1), torch.zeros(12), pending, models)


def gains(points: Tensor, pending: Tensor = X[:0]) -> Tensor:
    """Scores of points by two objectives, with the known points `X` and some pending ones."""
    return of_two_objectives(pending).criterion(ACQUISITIONS["ucb"], np.random.default_rng(0))(points)


def improvements(points: Tensor, pending: Tensor = X[:0]) -> Tensor:
    """The same without the widths that are added to points of the front."""
    combined = of_two_objectives(pending).combined
    assert combined.improvement is not None
    return combined.improvement(torch.stack([bound(points) for bound in combined.objectives], 1))


def test_a_known_point_of_several_objectives_has_nothing_to_gain_whatever_its_noise() -> None:
    scores = improvements(X)
    # Those on the front of the bounds are at no distance from it, the others behind it.
    assert float(scores.max()) == pytest.approx(math.log(SMALLEST), abs=1e-12)
    assert int((scores > math.log(SMALLEST) - 1e-9).sum()) >= 2


def test_a_pending_point_of_several_objectives_has_nothing_to_gain() -> None:
    before = improvements(ELSEWHERE)
    best = int(before.argmax())
    assert float(before[best]) > math.log(1e-3)
    assert float(improvements(ELSEWHERE, ELSEWHERE[[best]])[best]) == pytest.approx(math.log(SMALLEST), abs=1e-12)


def test_of_points_of_the_front_the_one_with_the_widest_bounds_has_the_largest_score() -> None:
    scores, front = gains(X), improvements(X) > math.log(SMALLEST) - 1e-9
    width = torch.stack([2.0 * m(X)[1].sqrt() for m in (model(1), model(2))]).sum(0)
    torch.testing.assert_close(scores[front], math.log(SMALLEST) + width[front], rtol=0.0, atol=1e-9)
    assert torch.equal(scores[~front], improvements(X)[~front])
    assert bool((scores[~front] < math.log(SMALLEST)).all())


def test_a_noisy_pool_without_rows_that_improve_is_not_searched_at_one_row() -> None:
    arms, rng = np.random.default_rng(0).random((12, 2)), np.random.default_rng(1)
    opt = bo.Optimizer(bo.Pool(arms), directions=["minimize", "minimize"], seed=0)
    rows = []
    for _ in range(60):
        trial = opt.ask()
        assert trial.index is not None
        x, y = arms[trial.index]
        opt.tell(trial, (np.array([x**2, 1.0 - x + y]) + 0.2 * rng.standard_normal(2)).tolist())
        rows.append(trial.index)
    assert max(np.bincount(rows)) < 20


def test_narrow_suggestions_for_several_objectives_gain_nothing_far_behind_an_end_of_the_front() -> None:
    wide = of_two_objectives().combined
    narrow = replace(of_two_objectives(), is_narrow=True).combined
    assert wide.improvement is not None
    assert narrow.improvement is not None
    # Slightly better than the best in one objective, and worse than all points of the front in the other.
    best, worst = wide.improvement.front.max(0).values, narrow.improvement.reference
    beyond = torch.stack([best[0] + 0.1, worst[1] - 0.1])[None]
    assert float(wide.improvement(beyond)[0]) > math.log(1e-2)
    assert float(narrow.improvement(beyond)[0]) < math.log(SMALLEST)
    ahead = best[None] + 0.1
    assert float(narrow.improvement(ahead)[0]) > math.log(1e-2)


@pytest.mark.parametrize(("width", "is_narrow"), [(0.0, False), (0.4, True), (1.0, False), (2.5, False)])
def test_suggestions_are_narrow_by_the_width_of_their_bounds(width: float, is_narrow: bool) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=["minimize", "maximize"], seed=0, n_startup_trials=4)
    for _ in range(6):
        trial = opt.ask()
        opt.tell(trial, [trial.params["x"], trial.params["x"] ** 2])
    models = opt._core.designer.trained()
    assert models.posteriors(X[:0, :1], None, width=width).is_narrow == is_narrow


def under_a_constraint(points: Tensor, pending: Tensor = X[:0], *, noisy: bool = True) -> Tensor:
    """Scores of points by one objective and a constraint that surely holds; the first four known points violate it."""
    m = model(1)
    means, violation = m(X)[0][:, None], torch.zeros(12, dtype=torch.float64)
    violation[:4] = 1.0
    made = replace(posteriors(means, violation, pending, (m,)), constraints=(Constraint(m, -1e3),), by_bounds=noisy)
    return made.criterion(ACQUISITIONS["ucb"], np.random.default_rng(0))(points)


def test_under_constraints_a_feasible_known_point_has_nothing_to_gain_whatever_its_noise() -> None:
    scores = under_a_constraint(X[4:])
    # The collapsed predictor's rounding, relative to k(x, x) = 1, is divided by the smallest gain.
    assert float(scores.max()) == pytest.approx(NOTHING, abs=1e-6)
    assert int(scores.argmax()) == int(UCB(2.0)(*model(1)(X[4:])).argmax())


def test_under_constraints_a_pending_point_has_nothing_to_gain() -> None:
    before = under_a_constraint(ELSEWHERE)
    best = int(before.argmax())
    assert float(before[best]) > math.log(1e-3)
    after = under_a_constraint(ELSEWHERE, ELSEWHERE[[best]])
    assert float(after[best]) == pytest.approx(NOTHING, abs=1e-6)


def test_without_noise_the_gain_under_constraints_is_the_expected_improvement_over_the_best_feasible_mean() -> None:
    m = model(1)
    expected = LogEI(float(m(X[4:])[0].max()))(*m(ELSEWHERE))
    torch.testing.assert_close(under_a_constraint(ELSEWHERE, noisy=False), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("noise", "directions"), [(0.05, 1), (0.0, 1), (0.05, 2)])
def test_a_single_objective_is_noisily_limited_by_a_constraint_with_noise(noise: float, directions: int) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=["minimize"] * directions, constraints=["c"], seed=0)
    x, rng = np.linspace(0.0, 1.0, 41), np.random.default_rng(0)
    y = np.stack([x**2, (x - 1.0) ** 2][:directions], 1)
    limits = {"c": x - 0.5 + noise * rng.standard_normal(41)}
    opt.tell([{"x": each} for each in x.tolist()], y if directions > 1 else y[:, 0], constraints=limits)
    assert opt._core.update().models.is_noisily_limited == (noise > 0.0 and directions == 1)


@pytest.mark.parametrize("at_random", [True, False])
def test_failing_limits_the_search_unless_a_constant_explains_it_better(at_random: bool) -> None:
    rng = np.random.default_rng(3)
    X = rng.random((300, 2))
    failed = rng.random(300) < 0.2 if at_random else X[:, 0] > 0.8
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
    values = [None if f else float(x[0]) for x, f in zip(X, failed, strict=True)]
    opt.tell([{"x": float(x), "y": float(y)} for x, y in X], values, invalid="fail")
    opt.ask()
    designer = opt._core.designer
    posteriors = designer.models.posteriors(torch.zeros(0, 2), None)
    assert posteriors.is_plain == at_random
    failing = designer.models.failing
    assert failing is not None
    assert failing.mark < 300
    # Where it is not used, rows since the last fit are not learnt.
    assert failing.surrogate.observations.total == (failing.mark if at_random else 300)


@pytest.mark.parametrize(
    ("number", "error"), [(-1.0, ArgumentError), (math.nan, ArgumentError), ("2", ArgumentTypeError)]
)
def test_what_a_schedule_of_the_users_own_returns_is_checked_and_a_refused_ask_asks_nothing(
    number: object, error: type[Exception]
) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, n_startup_trials=2, beta=lambda context: number)
    opt.tell([{"x": 0.2}, {"x": 0.7}], [1.0, 2.0])
    with pytest.raises(error, match=r"^beta: expected a finite number >= 0 from the schedule of beta"):
        opt.ask()
    assert len(opt.trials) == 2


@pytest.mark.parametrize("surrogate", ["exact", "bkb"])
def test_losses_of_points_without_a_value_are_predicted_or_nan(surrogate: str) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, surrogate=surrogate, seed=0)
    opt.tell([{"x": 0.1 * i} for i in range(8)], [*[(0.1 * i - 0.3) ** 2 for i in range(7)], None], invalid="fail")
    models = opt._core.followed("test").trained()
    X = models.history.X
    means = models.objectives[0].surrogate.model(X)[0]
    expected = means[:7].max() - means
    torch.testing.assert_close(models.losses(X, predicted=True), expected.clamp_min(0.0), rtol=0, atol=1e-9)
    known = models.losses(X, predicted=False)
    torch.testing.assert_close(known[:7], expected[:7], rtol=0, atol=1e-9)
    assert known[7:].isnan().tolist() == [True]
