"""Regions of the search: declared or inferred branches, neglected ones first, with held values."""

import math
from typing import Any

import numpy as np
import pytest

import bkbopt as bo
from bkbopt.search.designer import Designer
from bkbopt.search.options import Options
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.search.regions import MAX_BRANCHES, regions_of
from bkbopt.search.trials.evaluations import Evaluation, Point, Problem
from bkbopt.search.trials.states import COMPLETE, FAIL
from bkbopt.spaces.space import Space

MODEL, KERNEL = "model of ('svm', 'trees', 'mean')", "kernel of ('rbf', 'poly')"
SPEC = {
    "model": bo.Categorical(["svm", "trees", "mean"]),
    "c": bo.Float(1e-3, 1e3, log=True, when={"model": "svm"}),
    "kernel": bo.Categorical(["rbf", "poly"], when={"model": "svm"}),
    "degree": bo.Int(2, 9, when={"kernel": "poly"}),
    "share": bo.Float(0.1, 0.9, when={"model": ["svm", "trees"]}),
}
SPACE = Space.parse(SPEC)
#: The same without conditions: trials show them, as Optuna's do.
FLAT = {"model": ["svm", "trees", "mean"], "c": bo.Float(1e-3, 1e3, log=True), "kernel": ["rbf", "poly"]}
FLAT |= {"degree": bo.Int(2, 9), "share": bo.Float(0.1, 0.9)}


def trials(n: int, value: Any = None, seed: int = 0, declared: bool = True) -> list[Evaluation]:
    """Trials at random points of the conditional space."""
    points = SPACE.internal(SPACE.decode(SPACE.sample(n, np.random.default_rng(seed))))
    out = []
    for i, point in enumerate(points):
        names = [key.split(" ")[0] for key in point]
        space = SPACE if declared else Space.parse({name: FLAT[name] for name in FLAT if name in names})
        y = math.sin(i) if value is None else value(point)
        state = FAIL if y is None else COMPLETE
        out.append(Evaluation(i, state, point, space, (float(i), i), () if y is None else (y,)))
    return out


def designer(log: list[Evaluation], declared: bool = True) -> Designer:
    problem = Problem(space=SPACE if declared else None)
    out = Designer(problem, Options(ModelOptions(bo.BKB()), n_startup_trials=3), seed=0)
    out.update(log)
    return out


def suggested(mine: Designer, n: int, **more: Any) -> list[Point]:
    space = None if mine.problem.space is not None else Space.parse(FLAT)
    return [s.point for s in mine.suggest(n, number=100, space=space, **more)]


def test_declared_branches_are_the_settings_of_the_switches() -> None:
    mine = designer(trials(12))
    regions = regions_of(mine.history, SPACE, {}, np.random.default_rng(0))
    settings = {tuple(sorted(region.branch.setting.items())) for region in regions}
    assert settings == {
        ((KERNEL, 0.0), (MODEL, 0.0)),
        ((KERNEL, 1.0), (MODEL, 0.0)),
        ((MODEL, 1.0),),
        ((MODEL, 2.0),),
    }
    free = {region.branch.setting.get(KERNEL, -region.branch.setting[MODEL]): region.branch.free for region in regions}
    assert set(free[1.0]) == {"c (float, log)", "degree (int)", "share (float)"}
    assert set(free[-2.0]) == set()


#: More settings of the switches than regions are made for.
WIDE = Space.parse(
    {name: bo.Categorical(list(range(8))) for name in "abc"}
    | {"sub": bo.Categorical([0, 1, 2], when={"a": [6, 7]}), "x": bo.Float(0.0, 1.0, when={"sub": 2, "b": [5, 6]})}
    | {"y": bo.Float(0.0, 1.0, when={"c": 7}), "z": bo.Float(0.0, 1.0)}
)


@pytest.mark.parametrize(
    "fixed",
    [{"a": 7, "b": 6, "c": 5}, {"a": 3}, {"z": 0.5}, {"y": 0.25, "b": 4}, {"sub": 1}, {"x": 0.75}, {"x": 0.75, "a": 6}],
    ids=str,
)
def test_regions_of_many_settings_have_the_fixed_values(fixed: dict[str, Any]) -> None:
    points = WIDE.internal(WIDE.decode(WIDE.sample(40, np.random.default_rng(0))))
    mine = Designer(Problem(space=WIDE), Options(ModelOptions(bo.BKB())), seed=0)
    mine.update([Evaluation(i, COMPLETE, p, WIDE, (float(i), i), (float(i),)) for i, p in enumerate(points)])
    held = WIDE.fixed(fixed)
    regions = regions_of(mine.history, WIDE, held, np.random.default_rng(0))
    assert all(region.branch.has(held) for region in regions)
    for suggestion in mine.suggest(3, number=100, fixed=held):
        (params,) = WIDE.external([suggestion.point])
        assert fixed.items() <= params.items()
        assert suggestion.point == WIDE.active_part(suggestion.point)


def test_a_space_of_many_settings_is_exhausted_when_all_its_points_are_proposed() -> None:
    space = Space.parse(
        {"a": list(range(7)), "b": list(range(6))}
        | {"c": bo.Int(0, 1, when={"a": 3, "b": 2}), "d": bo.Int(0, 1, when={"b": 0, "a": 1})}
    )
    assert MAX_BRANCHES < 7 * 6
    opt = bo.Optimizer(space, seed=0, n_startup_trials=3, duplicates="avoid", direction="minimize")
    for trial in opt.ask(6):
        opt.tell(trial, float(trial.params["a"]))
    points = [trial.params for trial in [*opt.trials, *opt.ask(int(space.cardinality) - 6)]]
    assert len({tuple(params.items()) for params in points}) == space.cardinality == 44
    with pytest.raises(bo.errors.SpaceExhaustedError, match="all points"):
        opt.ask()


def test_each_trial_is_in_at_least_one_region() -> None:
    mine = designer(trials(30))
    X = mine.history.X
    members = [
        r.members(mine.history.encoding, X) for r in regions_of(mine.history, SPACE, {}, np.random.default_rng(0))
    ]
    # A switch that is absent has the code of its first choice, so a region may hold rows of one without that switch.
    assert {int(i) for rows in members for i in rows} == set(range(30))


@pytest.mark.parametrize("declared", [True, False])
def test_suggestions_have_the_parameters_of_their_branch(declared: bool) -> None:
    mine = designer(trials(30, declared=declared), declared)
    for point in suggested(mine, 12):
        assert not SPACE.free_in(point)
        if declared:
            assert set(point) == set(SPACE.active_part(point))


@pytest.mark.parametrize("declared", [True, False])
def test_a_branch_that_was_hardly_tried_comes_first(declared: bool) -> None:
    def value(point: Point) -> float:
        return point.get("share (float)", 0.5) + point[MODEL]

    log = [e for e in trials(60, value, declared=declared) if e.point[MODEL] != 1.0]
    rare = [e for e in trials(60, value, declared=declared) if e.point[MODEL] == 1.0][:1]
    mine = designer([*log, *rare], declared)
    assert suggested(mine, 1)[0][MODEL] == 1.0


def test_a_branch_that_always_fails_is_given_up() -> None:
    mine = designer(trials(60, lambda point: None if point[MODEL] == 1.0 else point[MODEL]))
    assert all(point[MODEL] != 1.0 for point in suggested(mine, 5))


@pytest.mark.parametrize("declared", [True, False])
def test_the_better_branch_is_searched_more(declared: bool) -> None:
    def value(point: Point) -> float:
        return {0.0: 5.0, 1.0: 0.0, 2.0: 4.0}[point[MODEL]] + 0.1 * point.get("share (float)", 0.0)

    mine = designer(trials(60, value, 0, declared), declared)
    chosen = []
    for number in range(60, 80):
        space = None if declared else Space.parse(FLAT)
        point = SPACE.active_part(mine.suggest(number=number, space=space)[0].point)
        chosen.append(point[MODEL])
        own = Space.parse({name: FLAT[name] for name in FLAT if name in [key.split(" ")[0] for key in point]})
        order = (float(number), number)
        mine.update([Evaluation(number, COMPLETE, point, SPACE if declared else own, order, (value(point),))])
    # The others are owed some visits: one of four branches had few.
    assert chosen.count(1.0) >= 12
    assert set(chosen[-8:]) == {1.0}


def test_values_that_are_held_choose_the_branch() -> None:
    mine = designer(trials(30))
    for point in suggested(mine, 4, fixed={KERNEL: 1.0}):
        assert (point[MODEL], point[KERNEL]) == (0.0, 1.0)
        assert "degree (int)" in point


def test_ranges_of_now_bound_suggestions_whatever_they_were() -> None:
    spaces = [Space.parse({"x": (low, low + 1.0)}) for low in (0.0, 1.0, 2.0)]
    mine = Designer(Problem(), Options(ModelOptions(bo.BKB()), n_startup_trials=3), seed=0)
    for i in range(18):
        space = spaces[i % 3]
        x = i % 3 + (i % 7) / 7.0
        mine.update([Evaluation(i, COMPLETE, {"x (float)": x}, space, (float(i), i), (x,))])
    for k, space in enumerate(spaces):
        for s in mine.suggest(5, number=30, space=space):
            assert k <= s.point["x (float)"] <= k + 1.0
