"""Points of small feasible sets: the walk is uniform, stays feasible, and starts from known points or near corners."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

import bkbopt as bo
from bkbopt.errors import ArgumentError, SpaceExhaustedError
from bkbopt.search.candidates.feasible_walk import beside, found, near_corners, walked
from bkbopt.spaces.space import Space
from tests.sweeps import slow_but

MIXED = Space.parse({**{f"x{j}": (0.0, 1.0) for j in range(6)}, "k": ["a", "b", "c"], "n": bo.Int(1, 50, log=True)})


def box(d: int) -> Space:
    return Space.parse({f"x{j}": (0.0, 1.0) for j in range(d)})


def in_simplex(X: Tensor) -> list[bool]:
    return [bool(one) for one in X[:, :6].sum(1) <= 1.0]


@pytest.mark.parametrize("d", slow_but({3}, (3, 6)))
def test_a_walk_is_uniform_on_a_simplex(d: int) -> None:
    n, truth = 2000, stats.dirichlet(np.ones(d + 1))
    start = torch.full((n, d), 0.01, dtype=torch.float64)
    X = walked(box(d), start, lambda X: (X.sum(1) <= 1.0).tolist(), np.random.default_rng(0), 20 * d).numpy()
    assert (X.sum(1) <= 1.0).all()
    # Four standard errors of means of n independent points, and of their squares.
    np.testing.assert_allclose(X.mean(0), truth.mean()[:d], atol=4 * (truth.var()[0] / n) ** 0.5)
    second = truth.var()[0] + truth.mean()[0] ** 2
    assert np.mean(X**2) == pytest.approx(second, abs=4 * np.std(X**2) / n**0.5)
    assert stats.kstest(X.sum(1), stats.beta(d, 1).cdf).pvalue > 1e-3


def test_a_walk_stays_feasible_and_in_the_space() -> None:
    def feasible(X: Tensor) -> list[bool]:
        return [params["k"] != "b" and ok for params, ok in zip(MIXED.decode(X), in_simplex(X), strict=True)]

    start = MIXED.encode([{**{f"x{j}": 0.1 for j in range(6)}, "k": "a", "n": 7}] * 40)
    X = walked(MIXED, start, feasible, np.random.default_rng(0), 60)
    assert all(feasible(X))
    assert torch.equal(MIXED.snap(X), X)
    params = MIXED.decode(X)
    assert {one["k"] for one in params} == {"a", "c"}
    assert len({one["n"] for one in params}) > 15


def test_points_near_corners_are_in_the_space_and_reach_small_sums() -> None:
    X = near_corners(MIXED, 3000, np.random.default_rng(0))
    assert torch.equal(MIXED.snap(X), X)
    assert 10 * np.mean(in_simplex(MIXED.sample(3000, np.random.default_rng(0)))) < np.mean(in_simplex(X))
    assert np.mean([not ok for ok in in_simplex(1.0 - X)]) < 1.0  # large sums, too


def test_a_walk_starts_from_known_points_that_are_feasible() -> None:
    center = torch.full((1, 6), 0.7, dtype=torch.float64)

    def near(X: Tensor) -> list[bool]:
        return ((X - center).norm(dim=1) < 0.02).tolist()

    rng = np.random.default_rng(0)
    assert len(found(box(6), center[:0], near, rng)) == 0  # too small for any random point
    known = torch.cat([torch.rand(5, 6, dtype=torch.float64), center])
    X = found(box(6), known, near, rng)
    assert len(X) > 1
    assert all(near(X))
    assert len(torch.unique(X, dim=0)) == len(X)


def mixture(params: dict[str, float]) -> bool:
    return sum(params.values()) <= 1.0


def test_a_search_over_a_mixture_of_many_parts_finds_its_minimum() -> None:
    d, target = 8, np.full(8, 1.0 / 9.0)
    opt = bo.Optimizer({f"x{j}": (0.0, 1.0) for j in range(d)}, seed=0, feasible=mixture)
    for _ in range(40):
        trial = opt.ask()
        assert mixture(trial.params)
        opt.tell(trial, float(np.square(np.array(list(trial.params.values())) - target).sum()))
    # The best of 10,000 uniform mixtures has 0.003 on average.
    draws = np.random.default_rng(0).dirichlet(np.ones(d + 1), 10_000)[:, :d]
    assert opt.best_trial.value < np.square(draws - target).sum(1).min()
    assert len({tuple(trial.params.values()) for trial in opt.trials}) == 40


def test_a_set_without_a_known_point_is_refused_and_a_queued_one_is_enough() -> None:
    def ball(params: dict[str, float]) -> bool:
        return sum((value - 0.7) ** 2 for value in params.values()) < 0.02**2

    opt = bo.Optimizer({f"x{j}": (0.0, 1.0) for j in range(6)}, seed=0, feasible=ball)
    with pytest.raises(
        ArgumentError, match=r"none of 10000 random ones was feasible and new; check .* enqueue a feasible"
    ):
        opt.ask()
    opt.enqueue({f"x{j}": 0.7 for j in range(6)})
    trials = opt.ask(5)
    assert all(ball(trial.params) for trial in trials)
    assert len({tuple(trial.params.values()) for trial in trials}) == 5
    (fixed,) = opt.ask(1, fixed={"x0": 0.701})
    assert fixed.params["x0"] == 0.701
    assert ball(fixed.params)


@pytest.mark.parametrize("n_startup", [3, 20])
def test_all_points_of_a_small_discrete_set_are_proposed_before_it_is_exhausted(n_startup: int) -> None:
    opt = bo.Optimizer(
        {f"n{j}": bo.Int(0, 7) for j in range(8)},
        seed=0,
        feasible=lambda params: sum(params.values()) <= 1,
        duplicates="avoid",
        n_startup_trials=n_startup,
    )
    for _ in range(9):
        trial = opt.ask()
        opt.tell(trial, float(sum(trial.params.values())))
    assert len({tuple(trial.params.values()) for trial in opt.trials}) == 9
    with pytest.raises(SpaceExhaustedError, match="all feasible points that were found have been proposed or have"):
        opt.ask()


def test_a_large_discrete_space_without_a_known_point_is_not_called_exhausted() -> None:
    space = {f"k{j}": list("abcdefgh") for j in range(8)}
    opt = bo.Optimizer(space, seed=0, feasible=lambda params: set(params.values()) == {"a"}, duplicates="avoid")
    with pytest.raises(ArgumentError, match=r"none of 10000 random ones was feasible and new; .* enqueue a feasible"):
        opt.ask()


def test_all_points_of_a_grid_are_tried_before_it_is_refused() -> None:
    only = {"x": 77, "y": 31}
    opt = bo.Optimizer({"x": bo.Int(1, 140), "y": bo.Int(1, 140)}, seed=1, feasible=lambda params: params == only)
    assert opt.ask().params == only


def test_beside_candidates_there_are_further_points_where_few_are_feasible() -> None:
    rng, X = np.random.default_rng(0), box(8).sample(1000, np.random.default_rng(1))
    assert len(beside(box(8), X, (X[:, 0] < 0.5).tolist(), in_mixture, rng)) == 0
    assert len(beside(box(8), X, [False] * len(X), in_mixture, rng)) == 0
    X[:5] *= 0.1
    further = beside(box(8), X, in_mixture(X), in_mixture, rng)
    assert all(in_mixture(further))
    assert float(further.max()) > 5.0 * float(X[:5].max())


def in_mixture(X: Tensor) -> list[bool]:
    return [bool(one) for one in X.sum(1) <= 1.0]


def test_a_certificate_looks_at_feasible_points_far_from_all_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    opt = bo.Optimizer({f"x{j}": (0.0, 1.0) for j in range(8)}, seed=0, feasible=mixture, n_startup_trials=4)
    points = np.random.default_rng(0).random((12, 8)) * 0.02
    opt.tell([{f"x{j}": float(x) for j, x in enumerate(row)} for row in points], np.cos(40.0 * points.sum(1)))
    bound = opt.regret_certificate().bound
    monkeypatch.setattr("bkbopt.search.certificate.beside", lambda space, X, usable, feasible, rng: X[:0])
    assert bound > opt.regret_certificate().bound
