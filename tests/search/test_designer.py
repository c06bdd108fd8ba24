"""The designer: start-up, global steps and perturbations, failures, held values and taken points."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.confidence import Constant
from bkbopt.errors import ArgumentTypeError, SpaceExhaustedError
from bkbopt.search.choosing import Chooser
from bkbopt.search.criteria.criterion import ACQUISITIONS
from bkbopt.search.designer import Designer
from bkbopt.search.maximizers.box import FAR
from bkbopt.search.options import Options
from bkbopt.search.perturbations import (
    FIRST_PERTURBATION,
    PERTURBATIONS,
    WIDE_BETA,
    Perturbations,
    is_within_schedule,
)
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.search.trials.evaluations import Evaluation, Point, Problem
from bkbopt.search.trials.states import COMPLETE, FAIL, RUNNING
from bkbopt.spaces.pool import EncodedPool, Pool

FLOATS = {"x": (0.0, 1.0), "y": (0.0, 1.0), "z": (0.0, 1.0)}
MIXED = {"x": (0.0, 1.0), "rate": bo.Float(1e-3, 1.0, log=True), "n": bo.Int(1, 40), "kind": ["a", "b", "c"]}
#: The trials up to 200 that are perturbations: of a coordinate, and wide steps.
SCHEDULE = Perturbations(wide=True)
DUE = [t for t in range(200) if SCHEDULE.is_due(t) and not SCHEDULE.is_wide(t)]
WIDE = [t for t in range(200) if SCHEDULE.is_due(t) and t not in DUE]


def value(point: Point) -> float:
    return sum((i + 1.0) * (v - 0.3) ** 2 for i, v in enumerate(point.values()))


def some_points(space: bo.Space, n: int, seed: int = 0) -> list[Point]:
    return list(space.internal(space.decode(space.sample(n, np.random.default_rng(seed)))))


def evaluation(number: int, point: Point, state: str = COMPLETE, **more: Any) -> Evaluation:
    values = (value(point),) if state == COMPLETE else ()
    return Evaluation(number, state, point, order=(float(number), number), **{"values": values, **more})


def designer(spec: Any, n: int = 20, feasible: Any = None, **options: Any) -> Designer:
    """A designer that knows `n` trials at random points."""
    space = bo.Space.parse(spec)
    out = Designer(Problem(space=space, feasible=feasible), Options(ModelOptions(bo.BKB()), **options), seed=0)
    out.update(evaluation(i, point) for i, point in enumerate(some_points(space, n)))
    return out


def best_known(designer: Designer) -> torch.Tensor:
    models = designer.models
    with torch.no_grad():
        posteriors = models.posteriors(designer.history.X[:0], None)
        return posteriors.incumbents()[0]


def moved(designer: Designer, point: Point) -> int:
    """Number of columns in which a point differs from the best known one."""
    return int((designer.history.encode([point])[0] != best_known(designer)).sum())


def suggested(designer: Designer, number: int, seed: int = 0) -> Point:
    return designer.suggest(number=number, seed=seed)[0].point


# -- ends of ranges ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("perturbations", [True, False])
def test_some_suggestions_at_the_end_where_the_best_point_is_are_close_to_it(perturbations: bool) -> None:
    corner = designer(FLOATS, n=0, perturbations=perturbations)
    at = some_points(bo.Space.parse(FLOATS), 25)
    at += [dict.fromkeys(at[0], 0.0)] * 5
    corner.update(evaluation(i, point, values=(sum(point.values()),)) for i, point in enumerate(at))
    lowest = {number: min(suggested(corner, number).values()) for number in range(30, 80)}
    close = [number for number, low in lowest.items() if 0.0 < low < 0.01]
    due = [number for number in lowest if is_within_schedule(number - 1)]
    assert close == (due if perturbations else [])
    assert sum(low == 0.0 for low in lowest.values()) > 30


# -- perturbations -----------------------------------------------------------------------------------------------------


def test_perturbations_are_due_about_three_root_t_times_and_none_at_first() -> None:
    trials = [t for t in range(10_001) if Perturbations(wide=False).is_due(t)]
    assert trials[0] > FIRST_PERTURBATION
    for t in (200, 1_000, 10_000):
        expected = PERTURBATIONS * (t**0.5 - FIRST_PERTURBATION**0.5)
        assert abs(sum(s <= t for s in trials) - expected) <= 1.0


@pytest.mark.parametrize("spec", [FLOATS, MIXED], ids=["floats", "mixed"])
def test_perturbation_differs_from_the_best_point_in_one_parameter_and_is_of_the_space(spec: Any) -> None:
    mine, space = designer(spec), bo.Space.parse(spec)
    for seed in range(20):
        point = suggested(mine, DUE[0], seed)
        assert moved(mine, point) == 1
        assert space.internal(space.external([point])) == [point]


def test_perturbation_along_a_continuum_goes_far() -> None:
    mine = designer(FLOATS)
    X = mine.history.encode([suggested(mine, DUE[0], seed) for seed in range(30)])
    assert float((X - best_known(mine)).abs().amax(1).min()) > FAR


def test_global_step_stands_in_where_no_perturbation_is_open() -> None:
    mine = designer(FLOATS)
    best = dict(zip(mine.history.encoding.columns, best_known(mine).tolist(), strict=True))

    def near(point: Point) -> bool:
        return all(abs(point[key] - best[key]) < 0.5 * FAR for key in best)

    mine.set_problem(replace(mine.problem, feasible=near))
    assert near(suggested(mine, DUE[0]))


def test_perturbation_is_feasible_and_neither_pending_nor_failed() -> None:
    spec = {"n": bo.Int(0, 200), "kind": list("abcdefghij"), "k": bo.Int(0, 200)}
    mine = designer(spec, feasible=lambda point: point["n (int)"] > 50)
    taken = set()
    for i in range(40):
        point = suggested(mine, DUE[0], i % 30)
        assert point["n (int)"] > 50
        key = tuple(sorted(point.items()))
        assert key not in taken
        taken.add(key)
        mine.update([evaluation(100 + i, point, FAIL if i % 2 else RUNNING)])


def test_trial_of_a_perturbation_is_global_where_there_are_none() -> None:
    mine = designer(FLOATS, perturbations=False)
    assert all(moved(mine, suggested(mine, DUE[0], seed)) == 3 for seed in range(5))


@pytest.mark.parametrize("acquisition", ["ucb", "logei", "thompson"])
def test_wide_step_is_that_of_a_global_search_with_its_beta(acquisition: str) -> None:
    mine = designer(FLOATS, rule=ACQUISITIONS[acquisition])
    wide = designer(FLOATS, schedule=Constant(WIDE_BETA), perturbations=False)
    for number in WIDE[:3]:
        assert suggested(mine, number) == suggested(wide, number)


def test_perturbations_under_a_constraint_are_those_of_a_coordinate() -> None:
    mine = designer(FLOATS, 0)
    points = some_points(bo.Space.parse(FLOATS), 20)
    limits = [{"limit": next(iter(point.values())) - 0.9} for point in points]
    mine.update(evaluation(i, p, constraints=limit) for i, (p, limit) in enumerate(zip(points, limits, strict=True)))
    number = next(t for t in WIDE if t > FIRST_PERTURBATION)
    assert moved(mine, suggested(mine, number)) == 1


@pytest.mark.parametrize("spec", [{"n": bo.Int(0, 30), "kind": ["a", "b"]}, {"x": (0.0, 1.0)}], ids=["grid", "line"])
def test_what_is_seen_whole_is_searched_as_without_perturbations(spec: Any) -> None:
    with_, without = designer(spec), designer(spec, perturbations=False)
    assert [suggested(with_, t) for t in DUE[:3]] == [suggested(without, t) for t in DUE[:3]]


def test_pool_is_searched_as_without_perturbations() -> None:
    pool = EncodedPool(Pool(np.random.default_rng(0).random((40, 2))), scale=True, has_kernel=False)
    points = []
    for perturbations in (True, False):
        options = Options(ModelOptions(bo.BKB()), perturbations=perturbations)
        mine = Designer(Problem(pool=pool), options, seed=0)
        mine.update(evaluation(i, pool.point(i)) for i in range(20))
        points.append([suggested(mine, t) for t in DUE[:5]])
    assert points[0] == points[1]


def test_fixed_kernel_is_searched_as_without_perturbations() -> None:
    points = []
    for perturbations in (True, False):
        models = ModelOptions(bo.BKB(bo.kernels.matern52(3, 0.4), noise=1e-2), fit=False)
        mine = Designer(Problem(space=bo.Space.parse(FLOATS)), Options(models, perturbations=perturbations), seed=0)
        mine.update(evaluation(i, point) for i, point in enumerate(some_points(bo.Space.parse(FLOATS), 20)))
        points.append([suggested(mine, t) for t in DUE[:3]])
    assert points[0] == points[1]


def test_perturbations_find_the_better_well_of_each_parameter() -> None:
    # Three wells of depth 1 at 0.2 and of depth 0.8 at 0.8, one a parameter: all are wrong at the start.
    def wells(params: Any) -> float:
        return -sum(
            np.exp(-(((v - 0.2) / 0.08) ** 2)) + 0.8 * np.exp(-(((v - 0.8) / 0.08) ** 2)) for v in params.values()
        )

    ends = []
    for perturbations in (True, False):
        opt = bo.Optimizer({f"x{j}": (0.0, 1.0) for j in range(3)}, seed=0, perturbations=perturbations)
        rng = np.random.default_rng(0)
        near = 0.8 + 0.05 * rng.standard_normal((60, 3))
        rows = [{f"x{j}": float(v) for j, v in enumerate(x.clip(0.0, 1.0))} for x in near]
        opt.tell(rows, [wells(p) for p in rows])
        for _ in range(40):
            trial = opt.ask()
            opt.tell(trial, wells(trial.params) + 0.02 * rng.standard_normal())
        ends.append(wells(opt.recommend().params))
    # Without perturbations it stays in the wells where it begins.
    assert ends == pytest.approx([-3.0, -2.4], abs=0.01)


def test_perturbation_has_no_confidence_gap() -> None:
    mine = designer(FLOATS)
    assert mine.suggest(number=DUE[0])[0].diagnostics.confidence_gap is None
    bound = mine.suggest(number=DUE[0] + 1)[0].diagnostics.confidence_gap
    assert bound is not None
    assert bound >= 0.0


def test_a_point_that_was_moved_away_from_an_end_has_no_confidence_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Chooser, "_probes_ends", True)
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0, perturbations=False)
    rng, gaps = np.random.default_rng(0), dict[bool, list[float | None]]()
    for _ in range(30):
        x, y = (trial := opt.ask()).params.values()
        if len(opt.diagnostics) and opt.diagnostics[-1].beta is not None:
            is_near = any(0.0 < u < 0.01 for u in (x, y))
            gaps.setdefault(is_near, []).append(opt.diagnostics[-1].confidence_gap)
        opt.tell(trial, x + y**2 + 0.1 * rng.standard_normal())
    assert len(gaps[True]) > 3
    assert all(gap is None for gap in gaps[True])
    assert all(gap is not None for gap in gaps[False])


def test_switch_takes_booleans_only() -> None:
    with pytest.raises(ArgumentTypeError, match="perturbations: expected True or False, got 1"):
        bo.Optimizer(FLOATS, perturbations=1)  # type: ignore[arg-type]


# -- batches, held values, exhaustion --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_known", [0, 20])
def test_suggestions_together_are_those_one_after_the_other(n_known: int) -> None:
    together, alone = designer(MIXED, n_known), designer(MIXED, n_known)
    for suggestion in together.suggest(6, number=60):
        other = alone.suggest(number=suggestion.number)[0]
        assert other.point == suggestion.point
        alone.update([evaluation(other.number, other.point, RUNNING)])


@pytest.mark.parametrize("n_known", [0, 20])
def test_fixed_values_are_held(n_known: int) -> None:
    mine = designer(MIXED, n_known)
    held = {"kind of ('a', 'b', 'c')": 2.0, "n (int)": 7.0}
    for number in (40, DUE[0], DUE[0] + 1):
        point = mine.suggest(number=number, fixed=held)[0].point
        assert {key: point[key] for key in held} == held
    assert (
        mine.suggest(number=40, fixed=(whole := {**held, "x (float)": 0.5, "rate (float, log)": 0.1}))[0].point == whole
    )


def test_given_values_are_completed_by_the_model() -> None:
    mine = designer(MIXED)
    given = {"x (float)": 0.25}
    assert mine.complete(given, 60) == mine.suggest(number=60, fixed=given)[0]


def test_own_trial_does_not_count_as_running() -> None:
    mine, other = designer(FLOATS), designer(FLOATS)
    point = mine.suggest(number=40)[0].point
    mine.update([evaluation(40, point, RUNNING)])
    assert mine.suggest(number=40)[0].point == other.suggest(number=40)[0].point
    assert mine.suggest(number=41)[0].point != point


def test_a_grid_that_is_used_up_ends_or_repeats() -> None:
    spec = {"n": bo.Int(0, 3), "kind": ["a", "b"]}
    space = bo.Space.parse(spec)
    every = space.internal(space.decode(space.all_points(8)))
    for repeats in (False, True):
        mine = designer(spec, 0, avoid_duplicates=True, repeat_when_exhausted=repeats, n_startup_trials=3)
        mine.update(evaluation(i, point) for i, point in enumerate(every[:5]))
        left = mine.suggest(3)
        assert {tuple(s.point.values()) for s in left} == {tuple(point.values()) for point in every[5:]}
        mine.update(evaluation(i, point) for i, point in enumerate(every))
        if repeats:
            assert len(mine.suggest(3)) == 3
        else:
            with pytest.raises(SpaceExhaustedError):
                mine.suggest(1)


SCRIPT = """
import json
import sys
sys.path.insert(0, sys.argv[2])
from tests.search.test_designer import MIXED, designer
mine = designer(MIXED, 30)
print(json.dumps([dict(s.point) for s in mine.suggest(json.loads(sys.argv[1]), number=60)]))
"""


@pytest.mark.slow  # tests/optimizer/designers/test_saving.py has the same of whole logs
def test_same_log_gives_the_same_suggestions_in_another_process() -> None:
    root = str(Path(bo.__file__).parents[1])
    command = [sys.executable, "-c", SCRIPT, "12", root]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert json.loads(output) == [dict(s.point) for s in designer(MIXED, 30).suggest(12, number=60)]


def test_more_points_than_a_list_can_have_are_all_points_of_a_discrete_set() -> None:
    opt = bo.Optimizer({"n": bo.Int(1, 6)}, seed=0, duplicates="avoid")
    assert sorted(trial.params["n"] for trial in opt.ask(10**20)) == [1, 2, 3, 4, 5, 6]
