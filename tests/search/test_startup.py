"""Start-up points: how many there are, and in ranges that are narrow beside their values, all before a repeat."""

import math
from typing import Any

import numpy as np
import pytest

import bkbopt as bo
from bkbopt.errors import SpaceExhaustedError
from bkbopt.search import startup
from bkbopt.search.designer import SEARCHING, Designer
from bkbopt.search.options import Options
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.search.restarts import unknown_share
from bkbopt.search.trials.evaluations import Evaluation, Problem
from bkbopt.search.trials.states import COMPLETE, FAIL
from tests.sweeps import slow_but

NEXT = math.nextafter(1.0, 2.0)
LAST = math.nextafter(NEXT, 2.0)


def asked(parameter: Any, n: int, **options: Any) -> list[Any]:
    """The values of a parameter in so many start-up trials, one after the other."""
    opt = bo.Optimizer({"x": parameter}, seed=0, **options)
    found = []
    for i in range(n):
        trial = opt.ask()
        found.append(trial.params["x"])
        opt.tell(trial, float(i))
    return found


@pytest.mark.parametrize("duplicates", ["allow", "avoid"])
@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        (bo.Int(10**12, 10**12 + 5), [10**12 + i for i in range(6)]),
        (
            bo.Float(1.7e9, 1.7e9 + 0.5, step=0.1),
            [1.7e9 + d for d in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)],
        ),
        (bo.Float(1.0, LAST), [1.0, NEXT, LAST]),
    ],
)
def test_each_value_of_a_narrow_range_is_proposed_before_a_repeat(
    parameter: Any, values: list[float], duplicates: str
) -> None:
    assert sorted(asked(parameter, len(values), duplicates=duplicates)) == values


def test_a_continuum_far_from_zero_has_new_points_also_without_duplicates() -> None:
    for duplicates in ("allow", "avoid"):
        assert len(set(asked(bo.Float(1.7e9, 1.7e9 + 0.5), 10, duplicates=duplicates))) == 10


@pytest.mark.parametrize("duplicates", ["allow", "avoid"])
def test_a_continuum_whose_doubles_are_all_taken_repeats_them_after_few_tries(
    duplicates: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_tries, compare = [0], startup.with_values

    def counted(*args: Any) -> Any:
        n_tries[0] += 1
        return compare(*args)

    monkeypatch.setattr(startup, "with_values", counted)
    assert set(asked(bo.Float(1.0, LAST), 9, duplicates=duplicates)) == {1.0, NEXT, LAST}
    assert n_tries[0] < 9 * 4 * startup.FIRST_TRIES


def test_points_that_are_infeasible_do_not_end_the_search_of_a_continuum() -> None:
    space = {"kind": ["a", "b", "c", "d"], "x": bo.Float(0.0, 1.0, when={"kind": "d"})}
    opt = bo.Optimizer(space, seed=0, n_startup_trials=30, feasible=lambda p: p.get("x", 1.0) < 0.002 or "x" not in p)
    opt.tell([{"kind": kind} for kind in "abc"], [1.0, 2.0, 3.0])
    assert opt.ask().params["x"] < 0.002


def test_a_discrete_space_is_exhausted_as_before() -> None:
    with pytest.raises(SpaceExhaustedError):
        asked(bo.Int(10**12, 10**12 + 5), 7, duplicates="avoid")


# -- how many there are ------------------------------------------------------------------------------------------------


def designer_after(outcomes: str, n_startup: int) -> Designer:
    """A designer that knows trials with a value, "v", and failed ones, "f", in this order."""
    out = Designer(
        Problem(space=bo.Space.parse({"x": (0.0, 1.0)})),
        Options(ModelOptions(bo.BKB()), n_startup_trials=n_startup),
        seed=0,
    )
    for i, outcome in enumerate(outcomes):
        state, values = (COMPLETE, (float(i % 3),)) if outcome == "v" else (FAIL, ())
        out.update([Evaluation(i, state, {"x": (i + 1.0) / 100.0}, order=(float(i), i), values=values)])
    return out


@pytest.mark.parametrize(
    ("outcomes", "n_startup", "first"),
    [
        ("vvvvvvvvvv", 10, 10),
        ("vvv", 10, 10),  # later failures may still make it fewer
        ("vvvvvvvvv" + "ff", 10, 9),
        ("vvvvvvvvv" + "f", 10, 10),
        ("ffffff" + "vvvvvvv", 10, 7),
        ("vfvfvfvfvfvfvfvf", 10, 7),
        ("f" * 40, 10, 10),
        ("f" * 40 + "vv", 10, 10),  # two values, a function of which is a straight line
        ("f" * 40 + "vvv", 10, 3),
        ("f" * 40 + "vvvvvv", 10, 3),  # what follows the first fit does not move it
        ("ffff" + "vv", 2, 2),
        ("ffff" + "v", 1, 1),
        ("vvvv", 2**63, 2**63),
        ("ffff" + "vvvv", 10**400, 10**400),  # no model, ever
    ],
)
def test_from_three_values_on_a_failed_trial_counts_half(outcomes: str, n_startup: int, first: int) -> None:
    designer = designer_after(outcomes, n_startup)
    assert designer.first_fit == first
    assert designer.has_models == (outcomes.count("v") >= first)


@pytest.mark.parametrize("outcomes", ["fvffvfffvfffffvfffv", "vvvvvvvvvfffvvv"])
def test_the_first_fit_stays_where_it_was(outcomes: str) -> None:
    firsts = [designer_after(outcomes[:n], 10).first_fit for n in range(len(outcomes) + 1)]
    begun = next(n for n, first in enumerate(firsts) if outcomes[:n].count("v") >= first)
    assert len(set(firsts[begun:])) == 1
    assert firsts[begun] < 10


@pytest.mark.parametrize("seed", slow_but({0}, range(3)))
def test_failures_of_a_region_are_learnt_from_before_there_are_many_values(seed: int) -> None:
    opt = bo.Optimizer(dict.fromkeys("abc", (0.0, 1.0)), seed=seed)
    n_failed = 0
    for _ in range(40):
        trial = opt.ask()
        if trial.params["a"] + trial.params["b"] > 0.55:  # 85 % of the square
            n_failed += 1
            opt.fail(trial)
        else:
            opt.tell(trial, sum((v - 0.4) ** 2 for v in trial.params.values()))
    # 33 to 35 fail where points are quasi-random until there are ten values, and 26 or 27 here.
    assert n_failed <= 30


def flat(n: int, **more: object) -> Designer:
    """A designer with values that are the same everywhere up to noise."""
    space = bo.Space.parse({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    rng = np.random.default_rng(1)
    out = Designer(Problem(space=space), Options(ModelOptions(bo.BKB())), seed=0)
    points = space.internal(space.decode(space.sample(n, rng)))
    values = 3.0 + 0.1 * rng.standard_normal(n)
    known = zip(points, values, strict=True)
    out.update(
        Evaluation(i, COMPLETE, p, space, (float(i), i), (float(y),), **more)  # type: ignore[arg-type]
        for i, (p, y) in enumerate(known)
    )
    return out


def test_most_suggestions_are_of_the_start_up_while_the_points_explain_nothing_of_the_values() -> None:
    mine, empty = flat(60), Designer(flat(0).problem, flat(0).options, seed=0)
    assert mine.models.is_flat
    for number in range(60, 60 + 2 * SEARCHING):
        (suggestion,), (of_startup,) = (designer.suggest(1, number=number) for designer in (mine, empty))
        assert (suggestion.point == of_startup.point) == (number % SEARCHING > 0)
        assert (suggestion.diagnostics.beta is None) == (number % SEARCHING > 0)


def test_a_flat_model_takes_the_best_values_for_good_points_until_others_refute_that() -> None:
    mine = flat(60)
    X, y = mine.history.X, mine.history.objective(0, 1).y
    recommended, _ = mine.models.posteriors(X[:0], None).lower_bound()
    (suggestion,) = mine.suggest(1, number=10 * SEARCHING)
    for point in (recommended, mine.history.encode([suggestion.point])[0]):
        near = (X - point).abs().amax(1) < 0.1
        assert float(y[near].mean()) < float(y.quantile(0.25))


def test_there_is_no_restart_while_the_points_explain_nothing() -> None:
    mine = flat(60)
    assert mine.problem.space is not None
    assert unknown_share(mine.models, mine.history, mine.problem.space) == 0.0


def test_under_a_constraint_a_flat_objective_is_searched_by_models() -> None:
    mine = flat(60, constraints={"cost": -1.0})
    assert not mine.models.is_flat
    assert mine.suggest(1, number=60)[0].diagnostics.n_inducing is not None


def test_the_few_good_rows_of_a_pool_are_found() -> None:
    X = np.random.default_rng(0).random((400, 3))
    away = ((X - 0.4) ** 2).sum(1)
    good = away <= np.sort(away)[7]
    opt = bo.Optimizer(bo.Pool(X), direction="maximize", seed=0)
    for _ in range(150):
        trial = opt.ask()
        opt.tell(trial, float(good[trial.index]))
    # Random rows miss all eight with a probability of 3 %.
    assert good[opt.recommend().index]
