"""The points that would have been recommended earlier: by the rule of `recommend`, which the last one is."""

import logging
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bkbopt as bo
from bkbopt import errors
from bkbopt.optimizer.results.recommendations import recommendation, recommendations_after
from bkbopt.search.quantities.quantity import Quantity
from bkbopt.search.trials.evaluations import Evaluation, Point
from bkbopt.search.trials.reports import Recommendation
from bkbopt.search.trials.states import COMPLETE, FAIL, PRUNED
from tests.search.logs import Case, random_log

BOX = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
N = 30
POINTS = [{"x": float(x), "y": float(y)} for x, y in np.random.default_rng(0).random((N, 2))]
TRUE = np.array([(p["x"] - 0.3) ** 2 + p["y"] ** 2 for p in POINTS])
#: The points with the best values are infeasible.
LIMIT = np.array([0.4 - p["x"] - 0.5 * p["y"] for p in POINTS])


def noise(sd: float, seed: int = 1) -> np.ndarray:
    return sd * np.random.default_rng(seed).standard_normal(N)


def told(values: Any = TRUE, *, limits: Any = None, std: Any = None, **options: Any) -> bo.Optimizer:
    opt = bo.Optimizer(options.pop("where", BOX), seed=0, constraints=[] if limits is None else ["g"], **options)
    limits = None if limits is None else {"g": limits}
    opt.tell(POINTS, values, std=std, constraints=limits, invalid="skip")  # gaps in constraints
    return opt


def changed(space: Any, past: Any = None) -> bo.Optimizer:
    opt = told(TRUE + noise(0.1))
    opt.set_space(space, past)
    return opt


def point_that_fails(i: int) -> dict[str, float]:
    return {"x": 0.9 + 0.1 * i / N, "y": 0.9}


def with_failures() -> bo.Optimizer:
    opt = bo.Optimizer(BOX, seed=0, constraints=["g"])
    for i, point in enumerate(POINTS):
        if i % 5 == 0:
            opt.tell(point_that_fails(i), math.nan, invalid="fail")
        elif i % 5 == 1:
            opt.tell(point, constraints={"g": LIMIT[i]})
        else:
            opt.tell(point, TRUE[i] + noise(0.1)[i], constraints={"g": LIMIT[i] + noise(0.1, 2)[i]})
    opt.tell({"x": 0.35, "y": 0.05}, constraints={"g": 2.0})  # after the last value
    return opt


def of_pool(**options: Any) -> bo.Optimizer:
    rows = np.array([[p["x"], p["y"]] for p in POINTS])
    opt = bo.Optimizer(np.vstack([rows, rows[:3], rows + 0.1]), direction="maximize", seed=0, **options)
    opt.tell_rows([*range(N), N], [*(noise(0.1) - TRUE), 0.3])  # row N equals row 0
    return opt


def of_changed_pool() -> bo.Optimizer:
    opt = of_pool()
    best = opt.recommend().index
    opt.set_pool(np.delete(np.array([[p["x"], p["y"]] for p in POINTS]), best, axis=0))
    return opt


def with_repeats() -> bo.Optimizer:
    opt = told(TRUE + noise(0.2))
    opt.tell(POINTS[:10] * 2, [*(TRUE + noise(0.2, 3))[:10], *(TRUE + noise(0.2, 4))[:10]])
    return opt


def without_fit() -> bo.Optimizer:
    return told(TRUE + noise(0.1), fit=False, surrogate=bo.BKB(bo.kernels.rbf(2, lengthscale=0.3), 0.01))


CASES: dict[str, Callable[[], bo.Optimizer]] = {
    "noisy": lambda: told(TRUE + noise(0.1)),
    "exact surrogate": lambda: told(TRUE + noise(0.1), surrogate="exact"),
    "learner of one pass": lambda: told(TRUE + noise(0.1), surrogate="kons"),
    "maximised": lambda: told(noise(0.1) - TRUE, direction="maximize"),
    "deterministic": lambda: told(deterministic=True),
    "noisy constraints": lambda: told(TRUE + noise(0.1), limits=LIMIT + noise(0.2, 2)),
    "exact constraints": lambda: told(TRUE + noise(0.1), limits=LIMIT, deterministic=True),
    "partly missing": lambda: told(
        TRUE + noise(0.1), limits=np.where(np.arange(N) % 3, LIMIT + noise(0.1, 2), math.nan)
    ),
    "late constraint": lambda: told(limits=np.where(np.arange(N) > 20, LIMIT, math.nan)),
    "nothing feasible": lambda: told(TRUE + noise(0.1), limits=1.0 + LIMIT**2),
    "stated constraint": lambda: told(TRUE + noise(0.1), feasible=lambda p: p["x"] + p["y"] > 0.9),
    "smaller space": lambda: changed({"x": (0.5, 1.0), "y": (0.2, 1.0)}),
    "space without trials": lambda: changed({"x": (2.0, 3.0), "y": (2.0, 3.0)}),
    "new parameter": lambda: changed({**BOX, "z": (0.0, 1.0)}),
    "new parameter with a past": lambda: changed({**BOX, "z": (0.0, 1.0)}, {"z": 0.25}),
    "removed parameter": lambda: changed({"x": (0.0, 1.0)}),
    "pool": of_pool,
    "changed pool": of_changed_pool,
    "failures": with_failures,
    "repeats": with_repeats,
    "clipped": lambda: told(np.where(np.arange(N) % 9 == 8, 50.0, TRUE)),
    "warped": lambda: told(np.exp(8.0 * TRUE) * (1.0 + noise(0.1))),
    "penalties": lambda: told(np.where(np.arange(N) % 5 == 3, 1e10, TRUE + noise(0.1))),
    "known noise": lambda: told(TRUE + noise(0.1), std=np.where(np.arange(N) % 2, 0.1, math.nan)),
    "without a fit": without_fit,
    "outliers": lambda: told(TRUE + noise(0.05) - 30.0 * (np.arange(N) == 12)),
    "first value": lambda: bo.Optimizer(BOX, seed=0),
}


def objective_of(opt: bo.Optimizer) -> Quantity:
    """The objective with its model."""
    return opt._core.update().trained().objectives[0]


def earlier(opt: bo.Optimizer) -> list[Recommendation]:
    return opt.recommended_after(range(1, opt.n_complete - len(opt.penalties) + 1))


@pytest.mark.parametrize("case", CASES)
def test_after_all_values_it_is_what_is_recommended_to_the_last_bit(case: str) -> None:
    opt = CASES[case]()
    if not opt.n_complete:
        opt.tell(POINTS[0], 1.0)
    choice, found = opt.recommend(), earlier(opt)
    assert found[-1] == choice
    assert found == earlier(opt)  # reading changes nothing
    assert opt.recommend() == choice
    # Each is the present estimate of a point that had been evaluated by then.
    distinct = {str(choice.params): choice for choice in found}
    for each in distinct.values():
        if each.params.keys() <= {*POINTS[0]} and case != "space without trials":
            assert each.mean == pytest.approx(float(opt.predict(each.params)[0][0]), rel=1e-12)


def test_the_cases_are_what_they_are_named_after() -> None:
    made = {case: CASES[case]() for case in ("outliers", "penalties", "clipped", "warped", "deterministic")}
    assert [trial.id for trial in made["outliers"].outliers] == [12]
    assert len(made["penalties"].penalties) == 6
    assert made["clipped"].clipping_level < 50.0
    assert objective_of(made["warped"]).scaler.warp_range < math.inf
    assert objective_of(made["deterministic"]).is_noiseless


@pytest.mark.parametrize("seed", range(6))
def test_under_noisy_constraints_no_curve_ends_where_nothing_is_recommended(seed: int) -> None:
    opt = told(TRUE + noise(0.05, 10 + seed), limits=LIMIT + noise(0.3, 20 + seed))
    assert earlier(opt)[-1] == opt.recommend()


def at_that_time(n: int) -> bo.Optimizer:
    """Of given kernel and noise, with `n` values, repeats among them, exact ones of a constraint, and failures."""
    surrogate = bo.ExactGP(bo.kernels.rbf(2, lengthscale=0.3), 0.01)
    opt = bo.Optimizer(BOX, seed=0, constraints=["g"], surrogate=surrogate, fit=False, deterministic=True)
    values = TRUE + noise(0.1)
    for i in range(n):
        opt.tell(POINTS[i // 2], values[i], constraints={"g": LIMIT[i // 2]})
        if i % 4 == 0:
            opt.tell(point_that_fails(i), math.nan, invalid="fail")
    opt.set_space({"x": (0.2, 1.0), "y": (0.0, 1.0)})
    return opt


def test_they_are_what_an_optimizer_of_that_time_recommends_with_the_same_kernel_and_space() -> None:
    opt = at_that_time(N)
    expected = [at_that_time(n).recommend().params for n in range(1, N + 1)]
    assert [choice.params for choice in earlier(opt)] == expected
    assert len({str(params) for params in expected}) == 3


def test_a_point_outside_of_the_present_space_is_one_only_before_there_was_another() -> None:
    opt = changed({"x": (0.5, 1.0), "y": (0.2, 1.0)})
    inside = [p["x"] >= 0.5 and p["y"] >= 0.2 for p in POINTS]
    outside = [choice.params["x"] < 0.5 or choice.params["y"] < 0.2 for choice in earlier(opt)]
    assert outside == [not any(inside[: t + 1]) for t in range(N)]


def test_values_of_constraints_that_came_later_are_not_known() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, constraints=["g"], deterministic=True)
    opt.tell([{"x": x} for x in (0.1, 0.5, 0.9)], [1.0, 2.0, 3.0])
    opt.tell([{"x": x} for x in (0.1, 0.5)], constraints={"g": [1.0, -1.0]})
    opt.tell({"x": 0.95}, 4.0, constraints={"g": 1.0})
    # After three values, and before the fourth, came the values of the constraint.
    assert [choice.params["x"] for choice in earlier(opt)] == [0.1, 0.1, 0.5, 0.5]


def shown(point: Point, index: int | None) -> dict[str, Any]:
    return dict(point)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", ["floats", "conditional", "changing", "arms"])
def test_beside_pruned_trials_and_infinite_values_the_last_one_is_recommended_too(case: str, seed: int) -> None:
    made = Case(case, constraints=("g", "h"))
    designer, log = made.designer(), random_log(made, 25, np.random.default_rng(seed))
    designer.update(log)
    finished = designer.history.finished
    places = [i for i, e in enumerate(finished) if e.values and e.state != FAIL]
    found = recommendations_after(designer, range(1, len(places) + 1), shown, lambda _: True)
    assert found[-1] == recommendation(designer, {}, shown)
    for choice, end in zip(found, [*places[1:], len(finished)], strict=True):
        assert choice.params in [e.point for e in finished[:end] if e.state != FAIL]


def test_a_pruned_trial_is_not_recommended_before_the_complete_trial_at_its_point() -> None:
    good, poor = ({"x (float)": 0.4 - 0.1 * i, "y (float)": 0.2} for i in range(2))
    designer = Case("floats").designer()
    space = designer.problem.space
    log = [Evaluation(0, PRUNED, good, space, (0.0, 0), curve={1: -5.0})]
    log += [Evaluation(i, COMPLETE, poor, space, (float(i), i), (0.1 * i,), curve={1: 0.1 * i}) for i in (1, 2, 3)]
    designer.update([*log, Evaluation(4, COMPLETE, good, space, (4.0, 4), (-5.0,))])
    found = recommendations_after(designer, range(1, 5), shown, lambda _: True)
    assert [choice.params for choice in found] == [poor, poor, poor, good]


def test_numbers_of_values_that_there_are_not_are_refused() -> None:
    opt = CASES["penalties"]()
    assert (opt.n_complete, len(opt.penalties)) == (N, 6)
    assert opt.recommended_after([N - 6]) == [opt.recommend()]
    for counts, got in (([N - 5], N - 5), ([1, 0], 0), ([1.5], 1.5)):
        with pytest.raises(errors.ArgumentError, match=f"counts: expected numbers of values from 1 to 24, got {got}"):
            opt.recommended_after(counts)  # type: ignore[arg-type]
    for given in (3, "3", ["3"]):
        with pytest.raises(errors.ArgumentTypeError, match="counts: expected "):
            opt.recommended_after(given)  # type: ignore[arg-type]
    with pytest.raises(errors.NotReadyError, match="recommended_after: expected at least one value"):
        bo.Optimizer(BOX, seed=0).recommended_after([1])
    with pytest.raises(errors.ArgumentError, match="recommended_after: expected a single objective, got several"):
        bo.Optimizer(BOX, directions=["minimize", "minimize"], seed=0).recommended_after([1])


def test_no_warning_is_logged_of_earlier_points(caplog: pytest.LogCaptureFixture) -> None:
    x = np.linspace(0.0, 1.0, 40)
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    opt.tell([{"x": each} for each in x], x - 30.0 * (np.arange(40) == 20))
    with caplog.at_level(logging.WARNING):
        earlier(opt)
    assert not caplog.records
