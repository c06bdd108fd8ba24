"""The regret certificate: gaps of joint draws, over pools, boxes and mixed spaces, and how often their bound holds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.errors import ArgumentError
from bkbopt.search import certificate
from bkbopt.search.certificate import gap_quantile
from bkbopt.search.quantities.scaling import Scaler
from tests.sweeps import slow_but


def told(where: Any, f: Any, n: int, **options: Any) -> bo.Optimizer:
    opt, rng = bo.Optimizer(where, seed=0, **options), np.random.default_rng(0)
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, f(trial.params) + 0.05 * rng.standard_normal())
    return opt


def bowl(params: Any) -> float:
    return float((params["x0"] - 0.3) ** 2 + (params["x1"] - 0.6) ** 2)


BOX = {"x0": (0.0, 1.0), "x1": (0.0, 1.0)}
ARMS = np.random.default_rng(0).random((1500, 2))
SPACES: dict[str, Any] = {
    "pool": ARMS,
    "box": BOX,
    "grid": {"x0": bo.Float(0.0, 1.0, step=0.1), "x1": bo.Float(0.0, 1.0, step=0.1)},
    "conditional": {**BOX, "kind": ["a", "b"], "z": bo.Float(0.0, 1.0, when={"kind": "a"})},
}


def test_the_quantile_keeps_half_of_the_failures_for_the_model() -> None:
    gap = torch.arange(1.0, 200.0, dtype=torch.float64)  # 199 draws: the 195th has 0.975 of 200 up to it
    assert gap_quantile(gap, 0.95) == 195.0
    assert gap_quantile(gap, 0.999999) == 199.0


@pytest.mark.parametrize("name", slow_but({"pool"}, SPACES))
def test_a_certificate_is_of_the_recommended_point_and_grows_with_the_confidence(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "N_DRAWS", 200)  # enough for both quantiles
    monkeypatch.setattr(certificate, "N_FREQUENCIES", 1280)
    opt = told(SPACES[name], bowl, 14)
    narrow, wide, again = (opt.regret_certificate(confidence) for confidence in (0.5, 0.99, 0.5))
    assert narrow == again
    assert 0.0 <= narrow.bound < wide.bound
    assert (narrow.confidence, wide.confidence) == (0.5, 0.99)
    assert narrow.params == opt.recommend().params
    assert narrow.confidence_gap == wide.confidence_gap > 0.0


@pytest.mark.parametrize("fit", [True, False])
def test_the_bound_of_a_known_function_is_that_of_the_posterior_s_draws(fit: bool) -> None:
    """Against the exact joint distribution of all arms, with a fit under each draw of the hyper-parameters."""
    surrogate = None if fit else bo.ExactGP(bo.kernels.matern52(2, 0.4), 0.0025)
    arms = ARMS[:300]
    opt = told(arms, bowl, 20, surrogate=surrogate, fit=fit, beta=1.0)
    bound = opt.regret_certificate().bound
    if fit:
        # With beta = 1 at fitted hyper-parameters the gap says next to nothing.
        assert bound > opt.regret_certificate().confidence_gap
    objective, pool = opt._core.update().models.objectives[0], opt.pool
    assert pool is not None
    posteriors = [model.posterior(pool.X[:]) for model, _ in objective.ensemble()]
    draws = torch.cat([p.sample(4000 // len(posteriors), seed=seed) for seed, p in enumerate(posteriors)])
    gap = draws.max(1).values - draws[:, opt.recommend().index]
    exact = objective.scaler.rise(0.0, float(gap.quantile(0.975)))  # nothing is warped
    # A quantile of 400 draws.
    assert bound == pytest.approx(exact, rel=0.3)


def limited(where: Any, n: int, at: float = 0.5) -> bo.Optimizer:
    """The bowl, whose optimum is beyond a constraint unless `at` is 0.9 or more."""
    opt, rng = bo.Optimizer(where, constraints=["c"], seed=0), np.random.default_rng(0)
    for _ in range(n):
        trial = opt.ask()
        y, c = (0.05 * rng.standard_normal(), trial.params["x0"] + trial.params["x1"] - at)
        opt.tell(trial, bowl(trial.params) + y, constraints={"c": c + 0.2 * y})
    return opt


def test_under_a_constraint_the_maximum_is_over_the_feasible_arms_of_each_draw() -> None:
    """Against the exact joint distributions of all arms, as above."""
    opt = limited(ARMS[:300], 25)
    models, pool = opt._core.update().models, opt.pool
    assert pool is not None
    found = opt.regret_certificate()

    def drawn(quantity: Any, first: int) -> torch.Tensor:
        posteriors = [(model.posterior(pool.X[:]), mean) for model, mean in quantity.ensemble()]
        n = 4000 // len(posteriors)
        return torch.cat([p.sample(n, seed=first + i) + mean for i, (p, mean) in enumerate(posteriors)])

    (limit,), (objective,) = models.constraints.values(), models.objectives
    f, holds = drawn(objective, 0), drawn(limit, 1000) >= limit.zero
    row = opt.recommend().index
    gap = (torch.where(holds, f, -torch.inf).max(1).values - f[:, row])[holds[:, row]]
    exact = objective.scaler.rise(0.0, float(gap.quantile(0.975)))
    assert found.feasibility == opt.recommend().feasibility
    # A quantile of 400 draws.
    assert found.bound == pytest.approx(exact, rel=0.3)
    free = (f.max(1).values - f[:, row]).quantile(0.975)
    assert found.bound < 0.7 * objective.scaler.rise(0.0, float(free))


def test_draws_in_which_the_point_is_infeasible_are_left_out() -> None:
    def paths(rows: list[list[float]]) -> Any:
        values = torch.tensor(rows, dtype=torch.float64)
        return certificate._Paths([lambda X: values[X[:, 0].long()]], torch.zeros(4, dtype=torch.float64), 0.0)  # type: ignore[list-item]

    f = paths([[1.0, 1.0, 1.0, 1.0], [3.0, 3.0, 0.0, 9.0], [7.0, 0.0, 2.0, 8.0]])
    c = paths([[0.5, 0.5, 0.5, -0.5], [0.5, 0.5, 0.5, 0.5], [-0.5, 0.5, 0.5, 0.5]])
    fails = paths([[-0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5], [0.5, 0.5, -0.5, 0.5]])
    X, box = torch.arange(3.0, dtype=torch.float64)[:, None], torch.tensor([-1, 0, 0])

    def found(**limits: Any) -> list[float]:
        draws = certificate._Draws(Scaler.identity(1.0), f, **limits)
        return certificate._gaps(draws, [None], X, box, 0.95).tolist()

    assert found() == [6.0, 2.0, 1.0, 8.0]
    assert found(uncertain=[c]) == [2.0, 2.0, 1.0]
    assert found(certain=[fails]) == [6.0, 2.0, 0.0, 8.0]  # the point itself did not fail
    nowhere = paths([[-0.5] * 4] * 3)
    assert found(uncertain=[nowhere]) == [0.0] * 4


def test_draws_climb_along_a_constraint(monkeypatch: pytest.MonkeyPatch) -> None:
    opt = limited(BOX, 16)
    bound = opt.regret_certificate().bound
    monkeypatch.setattr(certificate, "PENALTY", 0.0)
    assert opt.regret_certificate().bound > 1.3 * bound  # the draws climb to the optimum beyond it
    monkeypatch.setattr(certificate, "ITERATIONS", 0)
    assert opt.regret_certificate().bound <= bound


def test_where_no_point_is_expected_to_be_feasible_constraints_are_ignored() -> None:
    opt = limited(BOX, 14, at=-1.0)
    found = opt.regret_certificate()
    assert found.feasibility is not None
    assert found.feasibility < 0.5
    # The point with the smallest violation is not the minimum of the bowl.
    assert found.bound > bowl(found.params)


def test_a_point_that_was_measured_at_the_limit_without_noise_is_feasible() -> None:
    """The posterior gives it a probability of about one half: the noise variance of a fit has a lower limit."""
    budget = np.array([[x, y] for x in range(11) for y in range(11)], dtype=float)
    opt = bo.Optimizer(budget, constraints=["c"], deterministic=True, seed=0)
    for _ in range(15):
        x, y = (trial := opt.ask()).params.values()
        opt.tell(trial, 0.01 * x * x - x - 0.97 * y, constraints={"c": x + 2.0 * y - 3.0})
    found = opt.regret_certificate()
    assert found.params == {"x0": 3.0, "x1": 0.0}
    assert found.feasibility == opt.recommend().feasibility == opt.feasibility(found.params)[0] == 1.0
    # The best feasible arm is known; over all arms the gap is 15.8.
    assert found.bound < 0.01


def test_a_constraint_that_was_measured_at_the_point_without_noise_leaves_out_no_draws() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, constraints=["c"], deterministic=True, seed=0)
    opt.tell([{"x": i / 20} for i in range(20)], [-i / 20 for i in range(20)], constraints={"c": np.arange(20) - 7.0})
    models, x = opt._core.update().models, opt.encode({"x": 7 / 20})[0]
    rng = np.random.default_rng(0)
    draws = certificate._Draws.of(models, models.limits, x, x[None], rng)
    assert (len(draws.uncertain), len(draws.certain)) == (0, 1)
    # At another point, or with noise, the posterior decides.
    draws = certificate._Draws.of(models, models.limits, x + 0.01, x[None], rng)
    assert (len(draws.uncertain), len(draws.certain)) == (1, 0)


def test_where_constraints_are_ignored_failures_are_not() -> None:
    opt = bo.Optimizer(BOX, constraints=["c"], seed=0, deterministic=True)
    for i in range(8):
        for j in range(8):
            trial = opt.enqueue({"x0": i / 7, "x1": j / 7})
            opt.ask()
            opt.fail(trial) if i > 3 else opt.tell(trial, -i / 7, constraints={"c": 1.0 + j})
    models = opt._core.update().models
    posteriors = models.posteriors(torch.zeros(0, 2), None)
    x = opt.encode(opt.recommend().params)[0]
    found = opt.regret_certificate()
    assert found.feasibility == 0.0
    free = certificate.regret_bound(opt._core.designer, replace(posteriors, constraints=()), x, 0.95)
    assert found.bound < 0.5 * free


def test_the_maximum_is_over_points_at_which_trials_do_not_fail() -> None:
    opt = bo.Optimizer(BOX, seed=0, deterministic=True)
    for i in range(8):
        for j in range(8):
            trial = opt.enqueue({"x0": i / 7, "x1": j / 7})
            opt.ask()
            opt.fail(trial) if i > 3 else opt.tell(trial, -i / 7)
    models = opt._core.update().models
    posteriors = models.posteriors(torch.zeros(0, 2), None)
    x = opt.encode(opt.recommend().params)[0]
    bound = certificate.regret_bound(opt._core.designer, posteriors, x, 0.95)
    free = certificate.regret_bound(opt._core.designer, replace(posteriors, constraints=()), x, 0.95)
    assert opt.regret_certificate().bound == bound < 0.5 * free


def below(params: Any) -> bool:
    return bool(params["x0"] + params["x1"] <= 0.5)


LINE = np.linspace(0.0, 1.0, 1001)
STATED: dict[str, Any] = {**SPACES, "product": bo.Pool.product({"x0": LINE, "x1": LINE})}


@pytest.mark.parametrize("name", slow_but({"box"}, STATED))
def test_the_maximum_is_over_points_that_the_users_constraint_accepts(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "N_FREQUENCIES", 1280)
    opt, free = told(STATED[name], bowl, 25, feasible=below), bo.Optimizer(STATED[name], seed=0)
    for trial in opt.trials:
        free.tell(trial.params, trial.value)
    found, designer = opt.regret_certificate(), free._core.update()
    # The best point of all is (0.3, 0.6), the best accepted one (0.1, 0.4) with a value of 0.08. Pools have none there.
    assert bowl(found.params) - 0.09 <= found.bound
    posteriors, x = designer.models.posteriors(designer.history.X[:0], None), free.encode(found.params)[0]
    assert found.bound < 0.8 * certificate.regret_bound(designer, posteriors, x, 0.95)


@pytest.mark.parametrize("feasible", [None, below])
def test_an_ascent_that_ends_at_a_point_that_is_not_accepted_counts_as_its_start(feasible: Any) -> None:
    class Slope:
        def penalised(self, X: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
            return X.sum(1) - (X[:, 0] - X[:, 1]).square()

    opt = told(BOX, bowl, 12, feasible=feasible)
    (candidates,) = opt._core.designer.candidates.all_with({})
    X = torch.tensor([[0.1, 0.1], [0.2, 0.3]], dtype=torch.float64)
    found = certificate._climbed(candidates, Slope(), X, torch.arange(2))  # type: ignore[arg-type]
    if feasible is None:
        assert float(found.min()) > 1.0
    else:
        assert found.tolist() == pytest.approx([0.2, 0.5 - 0.01], rel=1e-12)


def test_draws_climb_in_a_box_and_those_far_below_the_quantile_need_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "N_FREQUENCIES", 1280)
    opt = told({f"x{j}": (0.0, 1.0) for j in range(4)}, bowl, 14)
    part = opt.regret_certificate().bound
    monkeypatch.setattr(certificate, "LEAST_CLIMBING", 1.0)
    whole = opt.regret_certificate().bound
    monkeypatch.setattr(certificate, "ITERATIONS", 0)
    assert opt.regret_certificate().bound < 0.98 * part
    # The draws climb together, and other ones on other ways.
    assert part == pytest.approx(whole, rel=0.05)


def test_under_a_theorem_the_certificate_is_the_band_s() -> None:
    opt = bo.theory(ARMS[:50], kernel=bo.kernels.rbf(2, 0.4), noise=0.01, norm_bound=1.0, horizon=20, seed=0)
    for _ in range(5):
        trial = opt.ask()
        opt.tell(trial, bowl(trial.params))
    found = opt.regret_certificate()
    assert found.confidence is None
    assert found.bound == found.confidence_gap


@pytest.mark.parametrize("feasible", [None, lambda params: params["x0"] < 0.9])
def test_rows_that_a_pool_repeats_have_the_certificate_of_one(feasible: Any) -> None:
    # The 1,000 rows with the largest bounds would be one to four different arms.
    rows, at = np.random.default_rng(1).random((60, 3)), [*range(0, 60, 5)]
    bounds = []
    for times in (1, 30, 500):
        pool = bo.Pool(np.repeat(rows, times, 0))
        opt = bo.Optimizer(pool, seed=0, direction="maximize", feasible=feasible)
        opt.tell_rows([times * row for row in at], np.sin(5.0 * rows[at]).sum(1))
        bounds.append(opt.regret_certificate().bound)
    assert bounds == pytest.approx([bounds[0]] * 3, rel=1e-9)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, float("nan")])
def test_confidences_outside_of_zero_and_one_are_refused(confidence: float) -> None:
    opt = told(ARMS[:20], bowl, 3)
    with pytest.raises(ArgumentError, match=r"^confidence: expected a number strictly between 0 and 1"):
        opt.regret_certificate(confidence)


def test_averaged_predictions_are_wider_and_change_nothing() -> None:
    opt, twin = told(BOX, bowl, 15), told(BOX, bowl, 15)
    points = [{"x0": x, "x1": 0.5} for x in np.linspace(0.0, 1.0, 11)]
    (_, fitted), (mean, averaged) = opt.predict(points), opt.predict(points, averaged=True)
    assert np.mean(averaged / fitted) > 1.05
    assert np.array_equal(mean, opt.predict(points, averaged=True)[0])
    opt.regret_certificate()
    assert opt.ask().params == twin.ask().params


@pytest.mark.slow
def test_certificates_hold_where_the_naive_ones_do_not() -> None:
    """Draws of a prior with random lengthscales, twenty searches of 25 values each."""
    from benchmarks.calibration import readings

    found = [readings("pool prior2", seed, [25])[0] for seed in range(20)]
    # With a probability of 0.95 fewer than 16 of 20 hold once in four thousand times.
    assert sum(r.regret <= r.bound + 1e-9 for r in found) >= 16
    assert sum(r.regret <= r.naive + 1e-9 for r in found) < 20
