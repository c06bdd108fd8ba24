"""Values that an ask holds, and points that are queued."""

import math
from typing import Any

import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, SpaceExhaustedError, TrialStateError
from tests.optimizer.spaces_to_ask import BOX, FRAME, TREE, active, bowl, optimizer, run, tree

# -- values that are held ------------------------------------------------------------------------------------------


def test_held_values_are_held_in_start_up_and_search() -> None:
    opt = optimizer({**BOX, "day": ["mon", "tue"], "n": bo.Int(1, 5)})
    for i in range(12):
        day = ("mon", "tue")[i % 2]
        trial = opt.ask(fixed={"day": day, "n": 3} if i % 3 else {"day": day})
        assert trial.params["day"] == day
        assert set(trial.params) == {"x", "y", "day", "n"}
        assert i % 3 == 0 or trial.params["n"] == 3
        opt.tell(trial, bowl(trial.params) + (day == "tue") * trial.params["x"])
    points = opt.ask(4, fixed={"x": 0.125})
    assert {t.params["x"] for t in points} == {0.125}
    assert len({tuple(t.params.values()) for t in points}) == 4


def test_context_is_learnt_where_it_is_held() -> None:
    best = {"mon": 0.2, "tue": 0.8}
    opt = optimizer({"x": (0.0, 1.0), "day": ["mon", "tue"]})
    for i in range(30):
        trial = opt.ask(fixed={"day": ("mon", "tue")[i % 2]})
        opt.tell(trial, (trial.params["x"] - best[trial.params["day"]]) ** 2)
    for day, x in best.items():
        near = [t.params["x"] for t in opt.trials[-10:] if t.params["day"] == day]
        assert min(abs(value - x) for value in near) < 0.05


@pytest.mark.parametrize(
    ("fixed", "model"), [({"C": 1.0}, {"svm"}), ({"degree": 3}, {"svm", "gp"}), ({"model": "forest"}, {"forest"})]
)
@pytest.mark.parametrize("told", [0, 12])
def test_held_values_choose_the_branch_that_has_them(fixed: dict[str, Any], model: set[str], told: int) -> None:
    opt = optimizer(TREE)
    run(opt, told, tree)
    for trial in opt.ask(3, fixed=fixed):
        assert trial.params["model"] in model
        assert set(trial.params) == active(trial.params)
        assert {name: trial.params[name] for name in fixed} == fixed


def test_held_values_of_a_pool_choose_among_its_arms() -> None:
    opt = optimizer(FRAME)
    for i in range(12):
        trial = opt.ask(fixed={"day": ("mon", "tue")[i % 2]})
        assert trial.params["day"] == ("mon", "tue")[i % 2] == FRAME["day"].iloc[trial.index]
        opt.tell(trial, trial.params["dose"])
    assert opt.ask(fixed={"index": 7}).index == 7
    assert opt.ask(fixed={"dose": FRAME["dose"].iloc[4]}).index == 4


@pytest.mark.parametrize(
    ("space", "fixed"),
    [
        (BOX, {"z": 1.0}),
        (BOX, {"x": 1.5}),
        (BOX, {"x": math.nan}),
        (TREE, {"model": "forest", "C": 1.0}),
        (TREE, {"degree": 3, "kernel": "rbf"}),
        (FRAME, {"day": "sun"}),
        (FRAME, {"dose": 2.0}),
        (FRAME, {"index": 30}),
    ],
)
def test_invalid_fixed_and_queued_values_are_refused(space: Any, fixed: dict[str, Any]) -> None:
    opt = optimizer(space)
    for call in (lambda: opt.ask(fixed=fixed), lambda: opt.enqueue(fixed)):
        with pytest.raises(ArgumentError):
            call()
    assert opt.trials == []


def test_all_values_held_leave_nothing_to_choose() -> None:
    opt = optimizer()
    for _ in range(2):
        assert [t.params for t in opt.ask(2, fixed={"x": 0.5, "y": 1.0})] == [{"x": 0.5, "y": 1.0}] * 2
        run(opt, 6)


# -- the queue -----------------------------------------------------------------------------------------------------


def test_an_error_says_that_only_points_with_the_fixed_values_are_exhausted() -> None:
    pool = bo.Optimizer(pd.DataFrame({"kind": list("uuuvvv"), "a": range(6)}), seed=0, duplicates="avoid")
    pool.ask(3, fixed={"kind": "u"})
    with pytest.raises(SpaceExhaustedError, match=r"all arms with the fixed values .*; fix other values"):
        pool.ask(fixed={"kind": "u"})
    assert pool.ask().params["kind"] == "v"
    box = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, duplicates="avoid")
    asked = box.ask()
    with pytest.raises(SpaceExhaustedError, match="all points with the fixed values"):
        box.ask(fixed=asked.params)


def test_fixed_values_without_a_feasible_point_are_not_an_exhausted_space() -> None:
    opt = bo.Optimizer({"n": bo.Int(0, 9), "kind": ["a", "b"]}, seed=0, feasible=lambda p: p["n"] < 7)
    with pytest.raises(ArgumentError, match="feasible: expected points with the fixed values"):
        opt.ask(fixed={"n": 8})


def test_queued_points_are_asked_next_in_order_and_completed() -> None:
    opt = optimizer()
    run(opt, 6)
    whole, part, none = opt.enqueue({"x": 0.25, "y": 1}), opt.enqueue({"y": -1.0}), opt.enqueue({})
    assert [t.state for t in (whole, part, none)] == ["WAITING"] * 3
    assert opt.trials[6:] == [whole, part, none]
    assert repr(opt) == "<Optimizer to minimize over 2 parameters: 9 trials, 6 of them with values>"
    first = opt.ask()
    second, third, fourth = opt.ask(3)
    assert (first.id, first.params, first.state) == (whole.id, {"x": 0.25, "y": 1.0}, "RUNNING")
    assert (second.id, second.params["y"], set(second.params)) == (part.id, -1.0, {"x", "y"})
    assert (third.id, set(third.params), fourth.id) == (none.id, {"x", "y"}, 9)
    opt.tell([first, second, third, fourth], [bowl(t.params) for t in (first, second, third, fourth)])
    assert len(opt.diagnostics) == 10


@pytest.mark.parametrize("given", [[0.25, 1.0], (0.25, 1.0), [{"x": 0.25, "y": 1.0}, {"x": 0.5, "y": 0.0}]], ids=str)
def test_a_list_in_place_of_a_queued_point_is_refused_with_advice(given: Any) -> None:
    for opt in (optimizer(BOX), optimizer(FRAME)):
        message = (
            rf"params: expected a dict of parameters, got {type(given).__name__}; "
            r'pass \{"name": value, \.\.\.\}, and call enqueue once for each of several points\.$'
        )
        with pytest.raises(ArgumentTypeError, match=message):
            opt.enqueue(given)
        assert opt.trials == []


def test_queued_points_wait_for_an_ask_that_holds_the_same() -> None:
    opt = optimizer({"x": (0.0, 1.0), "day": ["mon", "tue"]})
    mon, tue, either = (opt.enqueue(p) for p in ({"day": "mon", "x": 0.1}, {"day": "tue", "x": 0.2}, {"x": 0.3}))
    a, b = opt.ask(2, fixed={"day": "tue"})
    assert (a.id, a.params) == (tue.id, {"x": 0.2, "day": "tue"})
    assert (b.id, b.params) == (either.id, {"x": 0.3, "day": "tue"})
    assert opt.ask().id == mon.id


def test_queued_trial_cannot_be_told_before_it_is_asked() -> None:
    opt = optimizer()
    queued = opt.enqueue({"x": 0.25, "y": 1.0})
    for call in (lambda: opt.tell(queued, 1.0), lambda: opt.fail(queued.id)):
        with pytest.raises(TrialStateError, match="is queued and was not asked yet"):
            call()
    past = opt.tell({"x": 0.25, "y": 1.0}, 1.0)  # the same point as past data is another trial
    assert past.id == 1
    assert opt.tell(opt.ask(), 2.0).id == queued.id


def test_queued_branch_and_queued_arm_are_asked() -> None:
    opt = optimizer(TREE)
    opt.enqueue({"degree": 4})
    opt.enqueue({"model": "forest"})
    a, b = opt.ask(2)
    assert (a.params["kernel"], a.params["degree"], b.params["model"]) == ("poly", 4, "forest")
    pool = optimizer(FRAME)
    assert pool.enqueue({"index": 3}).params == {"dose": FRAME["dose"].iloc[3], "day": "mon"}
    pool.enqueue({"day": "wed"})
    a, b = pool.ask(2)
    assert (a.index, b.params["day"]) == (3, "wed")


def test_queued_point_is_asked_again_even_where_duplicates_are_avoided() -> None:
    opt = optimizer({"n": bo.Int(0, 3)}, duplicates="avoid", n_startup_trials=1)
    opt.tell({"n": 2}, 1.0)
    opt.enqueue({"n": 2})
    assert opt.ask(4)[0].params["n"] == 2
    assert sorted(t.params["n"] for t in opt.trials) == [0, 1, 2, 2, 3]


def test_queue_that_cannot_be_served_holds_nothing_up() -> None:
    opt = optimizer({"n": bo.Int(0, 5), "x": (0.0, 1.0)}, feasible=lambda p: p["x"] < 0.5, n_startup_trials=2)
    run(opt, 3, lambda p: float(p["n"]))
    with pytest.raises(ArgumentError, match="feasible point"):
        opt.enqueue({"n": 1, "x": 0.9})
    stuck = opt.enqueue({"x": 0.9})
    assert opt.ask().params["x"] < 0.5
    assert opt.trials[stuck.id].state == "WAITING"
    pool = optimizer(FRAME)
    run(pool, 6, lambda p: p["dose"])
    gone = pool.enqueue({"index": 2})
    pool.set_pool(FRAME.iloc[20:])
    assert pool.ask().id > gone.id
    pool.set_pool(FRAME)
    assert (pool.ask().id, pool.trials[gone.id].index) == (gone.id, 2)


@pytest.mark.parametrize("n_values", [0, 8])
def test_a_list_with_queued_trials_is_what_single_asks_give(n_values: int) -> None:
    """A queued trial of the same call is pending for those after it."""

    def begun() -> bo.Optimizer:
        opt = bo.Optimizer({"x": (0.0, 1.0), "n": bo.Int(1, 4)}, seed=0, n_startup_trials=5, perturbations=False)
        past = [{"x": (i + 0.5) / 8, "n": 1 + i % 4} for i in range(n_values)]
        opt.tell(past, [(row["x"] - 0.4) ** 2 for row in past])
        opt.enqueue({"x": 0.41, "n": 2})
        opt.enqueue({"n": 3})
        return opt

    one, several = begun(), begun()
    assert [t.params for t in several.ask(4)] == [one.ask().params for _ in range(4)]


def test_a_list_over_all_of_a_discrete_space_proposes_no_point_twice() -> None:
    opt = bo.Optimizer({"n": bo.Int(0, 4)}, duplicates="avoid", seed=0)
    opt.enqueue({"n": 3})
    assert sorted(t.params["n"] for t in opt.ask(10)) == [0, 1, 2, 3, 4]
    with pytest.raises(SpaceExhaustedError):
        opt.ask()
