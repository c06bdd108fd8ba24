"""Boxes: start-up, constraints, fixed values, and grids that are searched exactly."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bkbopt as bo
from bkbopt.errors import ArgumentError, SpaceExhaustedError
from bkbopt.search.candidates.base import Choice, Scope
from bkbopt.search.candidates.box import BoxCandidates, _Within
from bkbopt.search.candidates.listed import GridCandidates
from bkbopt.search.criteria.acquisition import UCB
from bkbopt.search.criteria.criterion import UpperBound
from bkbopt.search.designer import Designer
from bkbopt.search.maximizers.box import BoxMaximizer
from bkbopt.search.options import Options
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.search.trials.evaluations import Problem
from bkbopt.spaces.encoding import Encoding
from tests.search.candidates.boxes import candidates

SPACE = {"x": (0.0, 1.0), "rate": bo.Float(1e-4, 1.0, log=True), "n": bo.Int(1, 5), "kind": ["a", "b", "c"]}


def startup(spec: Any, n: int) -> list[dict[str, float]]:
    """The start-up points of the first `n` trials."""
    designer = Designer(Problem(space=bo.Space.parse(spec)), Options(ModelOptions(bo.BKB())), seed=0)
    return [dict(s.point) for s in designer.suggest(n, quasi_random=True)]


def run(opt: bo.Optimizer, n: int, f: Any) -> list[dict[str, Any]]:
    asked = []
    for _ in range(n):
        trial = opt.ask()
        asked.append(dict(trial.params))
        opt.tell(trial, f(trial.params))
    return asked


def test_startup_is_the_centre_and_then_even_over_a_box() -> None:
    # A scrambled Sobol net: each of the 64 elementary intervals of 8 x 8 holds exactly one of its first 64 points.
    first, *others = (tuple(point.values()) for point in startup({"x": (0.0, 1.0), "y": (0.0, 1.0)}, 64))
    assert first == (0.5, 0.5)
    assert len({tuple(int(8 * v) for v in values) for values in others}) == 63


def test_the_centre_is_that_of_the_scale() -> None:
    space = {"rate": bo.Float(1e-4, 1.0, log=True), "n": bo.Int(1, 7), "kind": ["a", "b", "c"]}
    (point,) = startup(space, 1)
    assert list(bo.Space.parse(space).external([point])[0].values()) == [pytest.approx(1e-2, rel=1e-12), 4, "b"]


def test_compiled_ascent_inside_wider_ranges_ends_where_one_by_automatic_differentiation_does() -> None:
    wide = {"x": (0.0, 4.0), "y": (-2.0, 2.0), "z": (0.0, 1.0), "kind": ["a", "b"]}
    encoding = Encoding(tuple(bo.Space.parse(wide).keyed.items()))
    narrow = bo.Space.parse({"y": (-1.5, -0.5), "kind": ["a", "b"], "x": (1.0, 2.0)})
    embedding, rng = encoding.embedding(narrow.keyed, {"z": 0.3}), np.random.default_rng(0)
    whole = encoding.embedding(dict(encoding.parameters), {})
    bkb = bo.BKB(bo.kernels.matern52(encoding.dim, categorical=encoding.categorical), noise=1e-2)
    bkb.observe(whole.sample(40, rng), rng.standard_normal(40))
    score, space = _Within(UpperBound.over(bkb.model, 1.5), embedding), embedding.space
    assert space is not None
    assert score.plain() is not None
    starts, maximizer = space.sample(12, rng), BoxMaximizer(space)
    found = maximizer.climbed(starts, score, 40)
    expected = maximizer.climbed(starts, score.__call__, 40)
    assert float((score(found) - score(starts)).min()) > 1e-3
    # Searches end where a step gains less than 2e-9, which is a distance of the root of that.
    torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-4)


def test_a_choice_moves_off_the_ends_of_linear_ranges_near_which_the_best_point_is() -> None:
    spec = {"x": (-5.0, 5.0), "y": (0.0, 1.0), "n": bo.Int(1, 10**6), "k": bo.Int(1, 30), "rate": SPACE["rate"]}
    box, low, high = candidates(spec), torch.zeros(5, dtype=torch.float64), torch.ones(5, dtype=torch.float64)
    for end in (low, high):
        choice = Choice(end, box.embedding.point(end))
        best = torch.tensor([1e-3, 0.5, 0.0, 0.0, 0.0], dtype=torch.float64)
        best = best if end is low else 1.0 - best
        moved = box.off_ends(choice, Scope(best[None], np.random.default_rng(0), low[None]))
        away = (moved.x - end).abs()
        assert (away > 0.0).tolist() == [True, False, True, False, False]
        assert 1e-5 < float(away[0]) < 1e-2
        assert moved.point == box.embedding.point(moved.x)


def test_a_choice_stays_at_an_end_far_from_the_best_point_and_where_it_would_be_infeasible() -> None:
    parameters = bo.Space.parse({"x": (0.0, 1.0), "y": (0.0, 1.0)}).keyed
    embedding, end = Encoding(tuple(parameters.items())).embedding(parameters, {}), torch.zeros(2, dtype=torch.float64)
    choice, rng = Choice(end, embedding.point(end)), np.random.default_rng(0)
    free = BoxCandidates(embedding, None)
    assert free.off_ends(choice, Scope(torch.full((1, 2), 0.1, dtype=torch.float64), rng, end[None])) is choice
    assert free.off_ends(choice, Scope(end[:0, None].repeat(1, 2), rng, end[None])) is choice
    assert free.off_ends(choice, Scope(end[None], rng, end[None])) is not choice
    bounded = BoxCandidates(embedding, lambda point: sum(point.values()) == 0.0)
    assert bounded.off_ends(choice, Scope(end[None], rng, end[None])) is choice


@pytest.mark.parametrize("seed", [4, 6, 8])
def test_in_a_space_of_choices_a_search_leads_past_the_points_that_are_taken(seed: int) -> None:
    """The thousand best points are taken; without their exclusion a search ends among them."""
    box = candidates({f"flag{j}": [False, True] for j in range(15)})
    assert not box.is_listed
    every, rng = box.embedding(box.space.all_points(2**15)), np.random.default_rng(seed)
    kernel = bo.kernels.matern52(15, categorical=tuple(range(15)))
    bkb = bo.BKB(replace(kernel, log_hamming=torch.full((15,), math.log(5.0), dtype=torch.float64)), noise=0.1)
    X = box.embedding(box.space.sample(60, rng))
    bkb.observe(X, (X @ torch.as_tensor(rng.standard_normal(15))).numpy() + 0.3 * rng.standard_normal(60))
    bound = UpperBound.over(bkb.model, 1.5)
    scores = bound(every)
    order = scores.argsort(descending=True)
    choice = box.best(bound, Scope(every[order[:3]], rng, every[order[:1000]]))
    assert choice is not None
    found = float(bound(choice.x[None]))
    # Of 31,768 open points one of the best 30: it is a local search.
    assert 1000 <= int((scores > found + 1e-9).sum()) < 1030


def test_startup_point_survives_its_parameters() -> None:
    space = bo.Space.parse(SPACE)
    for point in startup(SPACE, 50):
        assert space.internal(space.external([point])) == [point]


def test_log_scale_is_searched_evenly_in_the_logarithm() -> None:
    rates = [rate for point in startup({"rate": bo.Float(1e-4, 1.0, log=True)}, 64) for rate in point.values()]
    # The first is the centre instead of a point of the net, of which each 64th of the logarithm holds one.
    assert len({int(16 * (math.log10(rate) + 4.0)) for rate in rates[1:]}) == 63


def test_startup_point_of_a_trial_depends_on_its_number_and_not_on_the_trials_before() -> None:
    designer = Designer(Problem(space=bo.Space.parse(SPACE)), Options(ModelOptions(bo.BKB())), seed=0)
    alone = [designer.suggest(number=number, quasi_random=True)[0].point for number in (7, 3, 5)]
    together = startup(SPACE, 8)
    assert alone == [together[number] for number in (7, 3, 5)]


def test_another_attempt_at_a_trial_gives_another_startup_point() -> None:
    designer = Designer(Problem(space=bo.Space.parse(SPACE)), Options(ModelOptions(bo.BKB())), seed=0)
    points = [designer.suggest(number=3, quasi_random=True, attempt=attempt)[0].point for attempt in range(4)]
    assert len({tuple(point.values()) for point in points}) == 4


def test_startup_of_a_small_grid_meets_each_point_once() -> None:
    points = startup({"n": bo.Int(0, 4), "kind": ["a", "b"]}, 10)
    assert len({tuple(point.values()) for point in points}) == 10


def test_fixed_values_are_in_every_proposal() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "k": 3, "s": "adam", "z": (2.0, 2.0)}, seed=0, n_startup_trials=3)
    for params in run(opt, 6, lambda p: p["x"]):
        assert (params["k"], params["s"], params["z"]) == (3, "adam", 2.0)
        assert list(params) == ["x", "k", "s", "z"]


def test_space_of_one_point_can_be_asked_for_ever() -> None:
    opt = bo.Optimizer({"k": 3, "s": "adam"}, seed=0, n_startup_trials=2)
    rng = np.random.default_rng(0)
    assert run(opt, 8, lambda p: 5.0 + rng.standard_normal()) == [{"k": 3, "s": "adam"}] * 8
    rec = opt.recommend()
    assert rec.params == {"k": 3, "s": "adam"}
    assert math.isfinite(rec.mean)
    assert opt.regret_certificate().bound >= 0.0
    opt = bo.Optimizer({"k": 3}, duplicates="avoid")
    opt.tell(opt.ask(), 1.0)
    with pytest.raises(SpaceExhaustedError, match="all points"):
        opt.ask()


def test_discrete_space_is_searched_exactly() -> None:
    grid = candidates({"a": bo.Int(0, 30), "b": bo.Int(0, 30), "c": ["x", "y"]})
    assert isinstance(grid, GridCandidates)
    assert grid.n_arms == 31 * 31 * 2
    X = grid.search.X
    rng = np.random.default_rng(0)
    gp = bo.ExactGP(bo.kernels.matern52(3, categorical=(2,)), noise=1e-2)
    rows = rng.integers(len(X), size=12)
    gp.observe(X[rows], rng.standard_normal(12))
    chosen = grid.best(UpperBound.over(gp.model, 1.5), Scope(gp.observations.X[:1], rng, X[:0]))
    assert chosen is not None
    scores = UCB(1.5)(*gp.model(X))
    # The same formula on rows in another batch: rounding only.
    assert float(UCB(1.5)(*gp.model(chosen.x[None]))) == pytest.approx(float(scores.max()), abs=1e-9)


def test_continuum_has_no_arms_and_is_not_discrete() -> None:
    assert candidates(SPACE).n_arms is None
    assert not candidates(SPACE).is_discrete
    big = candidates({f"n{i}": bo.Int(0, 99) for i in range(4)})
    assert big.is_discrete
    assert big.n_arms is None  # 10^8 points are not listed


def test_upper_bound_of_a_space_of_one_point_is_its_own() -> None:
    among, rng = candidates({"k": 1}), np.random.default_rng(0)
    X = among.embedding(among.embedding.sample(12, rng))
    gp = bo.ExactGP(bo.kernels.matern52(X.shape[1]), noise=1e-2)
    gp.observe(X, rng.standard_normal(len(X)))
    bound = among.upper_bound(gp.model, 2.0, X[:3])
    assert bound == pytest.approx(float(UCB(2.0)(*gp.model(X)).max()), abs=1e-7)  # rounding of the collapsed predictor


@pytest.mark.parametrize("spec", [SPACE, {"n": bo.Int(0, 40), "kind": ["a", "b"]}, [(0.0, 1.0)] * 3])
def test_pending_points_are_not_proposed_again(spec: Any) -> None:
    opt = bo.Optimizer(spec, seed=0, n_startup_trials=6)
    for n in (6, 20):  # in the initial design, and by the model
        trials = opt.ask(n)
        assert len({tuple(t.params.values()) for t in trials}) == n
        for t in trials:
            opt.tell(t, float(next(iter(t.params.values()))))


def test_fewer_points_than_workers_are_shared() -> None:
    opt = bo.Optimizer({"c": ["a", "b", "c"]}, seed=0, n_startup_trials=3)
    first = opt.ask(7)
    assert {t.params["c"] for t in first[:3]} == {"a", "b", "c"}
    for t in first:
        opt.tell(t, 1.0)
    assert {t.params["c"] for t in opt.ask(7)[:3]} == {"a", "b", "c"}


BOUND = st.floats(0.15, 0.85)


@settings(max_examples=6)
@given(a=BOUND, b=BOUND, above=st.booleans(), kinds=st.sets(st.sampled_from("abc"), min_size=1), seed=st.integers(0, 9))
def test_constraint_holds_for_every_proposal(a: float, b: float, above: bool, kinds: set[str], seed: int) -> None:
    def feasible(p: Any) -> bool:
        inside = p["x"] + 0.2 * p["n"] <= a + 1.0
        return inside and ((p["y"] > b) if above else (p["y"] < b)) and p["kind"] in kinds

    spec = {"x": (0.0, 1.0), "y": (0.0, 1.0), "n": bo.Int(1, 5), "kind": list("abc")}
    opt = bo.Optimizer(spec, seed=seed, n_startup_trials=3, feasible=feasible)
    # The objective is best outside of the constraint.
    for params in run(opt, 5, lambda p: -p["x"] + (p["y"] if above else -p["y"])):
        assert feasible(params)
    assert all(feasible(t.params) for t in opt.ask(3))


@settings(max_examples=12)
@given(allowed=st.sets(st.tuples(st.integers(0, 4), st.sampled_from("ab")), min_size=1, max_size=6))
def test_constraint_on_a_grid_is_met_until_its_points_are_used_up(allowed: set[tuple[int, str]]) -> None:
    opt = bo.Optimizer(
        {"n": bo.Int(0, 4), "c": ["a", "b"]},
        seed=0,
        n_startup_trials=2,
        feasible=lambda p: (p["n"], p["c"]) in allowed,
        duplicates="avoid",
    )
    asked = run(opt, len(allowed), lambda p: p["n"])
    assert {(p["n"], p["c"]) for p in asked} == allowed
    with pytest.raises(SpaceExhaustedError):
        opt.ask()


def test_narrow_constraint_is_met_by_random_search() -> None:
    opt = bo.Optimizer(
        [(0.0, 1.0)] * 2, seed=0, n_startup_trials=2, feasible=lambda p: abs(p["x0"] - 0.5) < 0.01 and p["x1"] < 0.3
    )
    for params in run(opt, 5, lambda p: p["x1"]):
        assert abs(params["x0"] - 0.5) < 0.01


@pytest.mark.parametrize("spec", [{"x": (0.0, 1.0)}, {"n": bo.Int(0, 9)}, {f"n{i}": bo.Int(0, 99) for i in range(4)}])
def test_impossible_constraint_is_a_clear_error(spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("candidates.box", "candidates.base", "startup"):  # as with 10,000 tries, sooner
        monkeypatch.setattr(f"bkbopt.search.{module}.TRIES", 640)
    opt = bo.Optimizer(spec, seed=0, n_startup_trials=1, feasible=lambda p: False)
    with pytest.raises(ArgumentError, match="feasible: expected points to propose"):
        opt.ask()
    assert opt.trials == []
    # Also when the model is in charge already.
    params = dict.fromkeys(spec, 0)
    opt.tell(params, 1.0)
    with pytest.raises(ArgumentError, match="feasible: expected points to propose"):
        opt.ask()
    assert len(opt.trials) == 1


def test_constraint_is_asked_once_a_point_and_cannot_change_the_trial() -> None:
    calls: list[tuple[Any, ...]] = []

    def feasible(p: Any) -> bool:
        calls.append(tuple(p.values()))
        p.clear()
        return True

    opt = bo.Optimizer({"n": bo.Int(0, 9), "c": ["a", "b"]}, seed=0, n_startup_trials=3, feasible=feasible)
    assert all(set(p) == {"n", "c"} for p in run(opt, 10, lambda p: p["n"]))
    assert len(calls) == len(set(calls))


def test_optuna_distributions_ask_the_same_as_our_own_classes() -> None:
    d = optuna.distributions
    theirs = {
        "x": d.FloatDistribution(0.0, 1.0),
        "rate": d.FloatDistribution(1e-4, 1.0, log=True),
        "step": d.FloatDistribution(0.0, 1.0, step=0.25),
        "n": d.IntDistribution(1, 9, step=2),
        "kind": d.CategoricalDistribution(["a", "b"]),
    }
    ours = {
        "x": bo.Float(0.0, 1.0),
        "rate": bo.Float(1e-4, 1.0, log=True),
        "step": bo.Float(0.0, 1.0, step=0.25),
        "n": bo.Int(1, 9, step=2),
        "kind": bo.Categorical(["a", "b"]),
    }
    a, b = (run(bo.Optimizer(s, seed=3, n_startup_trials=4), 8, lambda p: p["x"] + p["n"]) for s in (theirs, ours))
    assert a == b
    for params in a:
        for name, value in params.items():
            assert theirs[name]._contains(theirs[name].to_internal_repr(value))


def test_list_of_pairs_names_its_parameters() -> None:
    pairs = bo.Optimizer([(0.0, 1.0), (2.0, 5.0)], seed=3, n_startup_trials=3)
    named = bo.Optimizer({"x0": (0.0, 1.0), "x1": (2.0, 5.0)}, seed=3, n_startup_trials=3)
    assert run(pairs, 6, lambda p: p["x0"]) == run(named, 6, lambda p: p["x0"])


def test_steps_and_whole_numbers_stay_on_their_grid() -> None:
    opt = bo.Optimizer(
        {"s": bo.Float(0.1, 0.9, step=0.1), "n": bo.Int(10, 1000, step=30), "x": (0.0, 1.0)}, seed=1, n_startup_trials=4
    )
    for p in run(opt, 12, lambda p: p["s"] * p["n"]):
        assert p["s"] in [round(0.1 * i, 1) for i in range(1, 10)]
        assert type(p["n"]) is int
        assert (p["n"] - 10) % 30 == 0


def test_categories_have_no_order() -> None:
    # The same objective with the names of the choices exchanged: the same search up to the names.
    f = {"a": 1.0, "b": -1.0, "c": 0.0, "d": 0.5}
    swap = {"a": "c", "b": "d", "c": "a", "d": "b"}
    one = bo.Optimizer({"k": list("abcd"), "x": (0.0, 1.0)}, seed=0, n_startup_trials=4)
    two = bo.Optimizer({"k": [swap[k] for k in "abcd"], "x": (0.0, 1.0)}, seed=0, n_startup_trials=4)
    a = run(one, 10, lambda p: f[p["k"]] + p["x"])
    b = run(two, 10, lambda p: f[{v: k for k, v in swap.items()}[p["k"]]] + p["x"])
    assert [swap[p["k"]] for p in a] == [p["k"] for p in b]


def test_a_coordinate_perturbation_has_nearly_the_largest_bound_of_the_points_that_differ_in_one_parameter() -> None:
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.random((30, 3)))
    gp = bo.ExactGP(bo.kernels.matern52(3, lengthscale=0.3), noise=0.01)
    gp.observe(X, torch.sin(9.0 * X).sum(1))
    bound = UpperBound.over(gp.model, 3.0)
    box = candidates(dict.fromkeys("xyz", (0.0, 1.0)))
    assert box.coordinate_perturbation is not None
    for seed, center in enumerate(X[:10]):
        scope = Scope(center[None], np.random.default_rng(seed), X[:0])
        chosen = box.coordinate_perturbation(bound, 256, center, scope)
        assert chosen is not None
        assert int((chosen.x != center).sum()) == 1
        lines = center.repeat(3, 1001, 1)
        for j in range(3):
            lines[j, :, j] = torch.linspace(0.0, 1.0, 1001, dtype=torch.float64)
        scores = bound(lines.reshape(-1, 3))
        # The best of 256 random points is among the best 3 % of all but with a probability of 0.97^256 = 4e-4.
        assert float((scores > bound(chosen.x[None])).double().mean()) < 0.03
