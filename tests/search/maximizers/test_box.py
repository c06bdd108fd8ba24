"""The search over a box: starts, gradients and discrete moves."""

import numpy as np
import pytest
import torch
from torch import Tensor

import bkbopt as bo
from bkbopt.posterior.model import Model
from bkbopt.search.criteria.acquisition import UCB
from bkbopt.search.criteria.criterion import ACQUISITIONS, UpperBound
from bkbopt.search.maximizers.box import FAR, BoxMaximizer, SearchSettings

SPACES = {
    "floats": {"a": (0.0, 1.0), "b": bo.Float(1e-3, 10.0, log=True)},
    "mixed": {"a": (0.0, 1.0), "n": bo.Int(1, 5), "big": bo.Int(0, 100), "c": ["r", "g", "b"]},
    "categories": {"c": list("abcdefg"), "d": list("abcdefg"), "e": list("abcdefg")},
    "steps": {"a": bo.Float(0.0, 1.0, step=0.01), "b": bo.Float(0.0, 1.0, step=0.25)},
}


def trained(space: bo.Space, seed: int = 0, n: int = 25) -> tuple[Model, Tensor]:
    """A model of random values, and the observed points with the best posterior means."""
    rng = np.random.default_rng(seed)
    X = space.sample(n, rng)
    gp = bo.ExactGP(bo.kernels.matern52(space.dim, categorical=space.categorical), noise=1e-2)
    gp.observe(X, rng.standard_normal(n))
    return gp.model, gp.observations.X[gp.fitted().topk(5).indices]


def best(space: bo.Space, model: Model, good: Tensor, seed: int = 0, settings: SearchSettings | None = None) -> Tensor:
    maximizer = BoxMaximizer(space, settings)
    return maximizer.ranked(UpperBound.over(model, 1.5), good, np.random.default_rng(seed), lambda *_: True)[0]


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("seed", range(3))
def test_result_is_never_worse_than_a_known_point(name: str, seed: int) -> None:
    space = bo.Space.parse(SPACES[name])
    model, good = trained(space, seed)
    # So few random candidates that the known points are what matters.
    settings = SearchSettings(n_raw=2, n_local=1, n_starts=3)
    score = UCB(1.5)(*model(torch.cat([best(space, model, good, seed, settings)[None], good])))
    # The ranking uses the collapsed predictor, whose rounding is relative to k(x, x) = 1.
    assert float(score[0]) >= float(score[1:].max()) - 1e-7


@pytest.mark.parametrize("name", SPACES)
def test_result_is_at_least_the_best_of_ten_thousand_random_points(name: str) -> None:
    space = bo.Space.parse(SPACES[name])
    model, good = trained(space)
    random = space.sample(10_000, np.random.default_rng(9))
    found = float(UCB(1.5)(*model(best(space, model, good)[None])))
    assert found >= float(UCB(1.5)(*model(random)).max()) - 1e-7


def test_gradients_improve_on_the_candidates_alone() -> None:
    space = bo.Space.parse({f"x{i}": (0.0, 1.0) for i in range(4)})
    gains = []
    for seed in range(5):
        model, good = trained(space, seed)
        with_gradients = UCB(1.5)(*model(best(space, model, good, seed)[None]))
        without = UCB(1.5)(*model(best(space, model, good, seed, SearchSettings(max_iterations=0))[None]))
        gains.append(float(with_gradients - without))
    assert min(gains) >= -1e-7
    assert max(gains) > 1e-3


@pytest.mark.parametrize("beta", [0.0, 1.5])
def test_compiled_ascent_ends_where_one_by_automatic_differentiation_does(beta: float) -> None:
    space = bo.Space.parse(SPACES["mixed"])  # two of its four columns are relaxed
    rng = np.random.default_rng(0)
    bkb = bo.BKB(bo.kernels.matern52(space.dim, categorical=space.categorical), noise=1e-2)
    bkb.observe(space.sample(40, rng), rng.standard_normal(40))
    score, starts, maximizer = UpperBound.over(bkb.model, beta), space.sample(12, rng), BoxMaximizer(space)
    assert score.plain() is not None
    found = maximizer.climbed(starts, score, 40)
    expected = maximizer.climbed(starts, score.__call__, 40)
    assert not torch.equal(found, starts)
    # Searches end where a step gains less than 2e-9, which is a distance of the root of that.
    torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-4)


def test_result_is_a_stationary_point_or_on_the_border() -> None:
    space = bo.Space.parse({"a": (0.0, 1.0), "b": (0.0, 1.0)})
    model, good = trained(space, 3)
    x = best(space, model, good).clone().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(UCB(1.5)(*model(x[None])).sum(), x)
    inside = (x > 0.0) & (x < 1.0)
    # L-BFGS-B stops at a projected gradient of 1e-5, or when the value changes by 2e-9 of itself.
    assert float(gradient[inside].abs().sum()) < 1e-2
    assert bool((gradient[x == 0.0] <= 1e-3).all())
    assert bool((gradient[x == 1.0] >= -1e-3).all())


def test_moves_find_the_best_category_of_each_column() -> None:
    space = bo.Space.parse({"c": list("abcdefg"), "d": list("abcdefg"), "x": (0.0, 1.0)})
    target = space.encode([{"c": "e", "d": "b", "x": 0.3}])
    gp = bo.ExactGP(bo.kernels.matern52(3, categorical=(0, 1)), noise=1e-4)
    gp.observe(target, [5.0])
    start = space.encode([{"c": "a", "d": "a", "x": 0.8}])
    gp.observe(start, [-1.0])
    x = BoxMaximizer(space, SearchSettings(n_raw=4, n_local=1)).ranked(
        UpperBound.over(gp.model, 0.0), start, np.random.default_rng(0), lambda *_: True
    )[0]
    assert space.decode(x[None])[0]["c"] == "e"
    assert space.decode(x[None])[0]["d"] == "b"
    # Not exactly 0.3: the bad point pushes the maximum of the mean a little further away from itself.
    assert float(x[2]) == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("name", ["mixed", "categories"])
@pytest.mark.parametrize("seed", range(3))
def test_no_neighbour_of_the_result_is_better(name: str, seed: int) -> None:
    space = bo.Space.parse(SPACES[name])
    model, good = trained(space, seed)
    score, x = UpperBound.over(model, 1.5), best(space, model, good, seed, SearchSettings(n_raw=8, n_local=4))
    assert float(score(space.neighbours(x[None])[0]).max()) <= float(score(x[None]))


def test_moves_go_on_until_nothing_is_gained() -> None:
    """There are 20 moves to the best point, more than one round of moves makes."""
    space = bo.Space.parse({f"bit{j}": [False, True] for j in range(20)})
    start = torch.zeros(1, 20, dtype=torch.float64)
    maximizer, rng = BoxMaximizer(space, SearchSettings(n_raw=1, n_local=0)), np.random.default_rng(0)
    X = maximizer.ranked(lambda X: X.sum(1), start, rng, lambda X, i: not bool(X[i].any()))
    assert torch.equal(X[0], torch.ones(20, dtype=torch.float64))


@pytest.mark.parametrize("name", SPACES)
def test_every_ranked_candidate_lies_in_the_space(name: str) -> None:
    space = bo.Space.parse(SPACES[name])
    model, good = trained(space)
    for rule in ACQUISITIONS.values():
        rng = np.random.default_rng(0)
        criterion = rule.build(model, 2.0, 0.5, rng)
        X = BoxMaximizer(space).ranked(criterion, good, rng, lambda *_: True)
        assert torch.equal(space.snap(X), X)


def test_refinement_starts_from_usable_points_only() -> None:
    space = bo.Space.parse({"a": (0.0, 1.0), "b": (0.0, 1.0)})
    model, good = trained(space)
    settings = SearchSettings(max_iterations=0)
    above = bool(best(space, model, good, settings=settings)[0] > 0.5)
    seen: list[Tensor] = []

    def usable(X: Tensor, i: int) -> bool:
        seen.append(X[i])
        return bool(X[i, 0] > 0.5) is not above  # the best start of all is not usable

    score = UpperBound.over(model, 2.0)
    starts = BoxMaximizer(space, settings).ranked(score, good, np.random.default_rng(0), usable)[: settings.n_starts]
    assert len(seen) > settings.n_starts
    assert bool(((starts[:, 0] > 0.5) != above).all())


def test_no_usable_start_leaves_the_raw_candidates() -> None:
    space = bo.Space.parse({"a": (0.0, 1.0)})
    model, good = trained(space)
    score = UpperBound.over(model, 2.0)
    assert (
        len(BoxMaximizer(space).ranked(score, good, np.random.default_rng(0), lambda *_: False))
        > SearchSettings().n_raw
    )


def test_same_generator_gives_the_same_candidates() -> None:
    space = bo.Space.parse(SPACES["mixed"])
    model, good = trained(space)
    a, b = (best(space, model, good, seed=4) for _ in range(2))
    assert torch.equal(a, b)


def test_caller_keeps_threads_and_gradient_mode() -> None:
    space = bo.Space.parse(SPACES["floats"])
    model, good = trained(space)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with torch.enable_grad():
            best(space, model, good)
            assert torch.is_grad_enabled()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("name", SPACES)
def test_perturbations_draw_every_column_anew_one_at_a_time(name: str) -> None:
    space = bo.Space.parse(SPACES[name])
    rng = np.random.default_rng(0)
    x = space.sample(1, rng)[0]
    X = BoxMaximizer(space).perturbations(x, 200, rng)
    assert torch.equal(space.snap(X), X)
    assert ((x != X).sum(1) == 1).all()
    assert (x != X).any(0).all()


def test_perturbations_along_a_continuum_go_far() -> None:
    space = bo.Space.parse(SPACES["floats"])
    x = torch.tensor([0.5, 0.02], dtype=torch.float64)
    X = BoxMaximizer(space).perturbations(x, 200, np.random.default_rng(0))
    assert float((X - x).abs().amax(1).min()) > FAR
    along_first = X[X[:, 0] != x[0], 0]
    assert bool((along_first < x[0]).any())
    assert bool((along_first > x[0]).any())


def test_maximum_of_a_sum_of_rippled_columns_is_found() -> None:
    """With 8 basins a column there are 4,096 of them, more than candidates."""
    space = bo.Space.parse(dict.fromkeys("abcd", (0.0, 1.0)))
    best_at = torch.tensor([0.3, 0.62, 0.81, 0.45], dtype=torch.float64)

    def score(X: Tensor) -> Tensor:
        away = X - best_at
        return -(30.0 * away.square() + 2.0 - 2.0 * torch.cos(16.0 * torch.pi * away)).sum(1)

    for seed in range(5):
        x = BoxMaximizer(space).ranked(score, torch.zeros(0, 4), np.random.default_rng(seed), lambda *_: True)[0]
        # Gradients end where the score, of size one, no longer changes by 1e-7 or so.
        torch.testing.assert_close(x, best_at, rtol=0.0, atol=1e-4)


def test_looks_along_columns_keep_to_steps_and_categories() -> None:
    space = bo.Space.parse({"a": bo.Float(0.0, 1.0, step=0.05), "b": (0.0, 1.0), "c": ["r", "g", "b"]})
    for seed in range(5):
        x = space.sample(1, np.random.default_rng(seed))
        moved = BoxMaximizer(space)._scanned(x, lambda Y: -(Y[:, :2] - 0.33).abs().sum(1))
        assert len(moved) == 1
        torch.testing.assert_close(moved, space.snap(moved), rtol=0.0, atol=0.0)
        assert torch.equal(moved[:, 2], x[:, 2])
        assert float((moved[0, :2] - 0.33).abs().max()) < 0.03
