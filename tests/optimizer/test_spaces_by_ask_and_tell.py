"""Conditional and ordinal parameters, held values, the queue, and spaces and pools that change."""

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError, SpaceExhaustedError, TrialStateError
from bkbopt.spaces import parsing

BOX = {"x": (0.0, 1.0), "y": (-2.0, 2.0)}
TREE = {
    "model": ["svm", "gp", "forest"],
    "C": bo.Float(1e-3, 1e3, log=True, when={"model": "svm"}),
    "kernel": bo.Categorical(["rbf", "poly"], when={"model": ["svm", "gp"]}),
    "degree": bo.Int(2, 5, when={"kernel": "poly"}),
    "x": (0.0, 1.0),
}
FRAME = pd.DataFrame(
    {"dose": np.random.default_rng(0).random(30), "day": ["mon", "tue", "wed"] * 10},
    index=[f"mix {i}" for i in range(30)],
)


def bowl(p: Any) -> float:
    return (p["x"] - 0.3) ** 2 + 0.1 * (p["y"] - 0.5) ** 2


def tree(p: Any) -> float:
    """Best: model "svm" with C = 1 and a kernel of degree 3."""
    base = {"svm": 0.0, "gp": 0.5, "forest": 0.7}[p["model"]]
    rate = 0.1 * abs(math.log10(p["C"])) if "C" in p else 0.0
    degree = 0.1 * abs(p["degree"] - 3) if "degree" in p else 0.2
    return base + rate + degree + (p["x"] - 0.3) ** 2


def optimizer(space: Any = None, **options: Any) -> bo.Optimizer:
    return bo.Optimizer(BOX if space is None else space, **{"seed": 0, "n_startup_trials": 5, **options})


def run(opt: bo.Optimizer, n: int, f: Any = bowl) -> None:
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, f(trial.params))


def active(p: Any) -> set[str]:
    """The names that belong to a point of the tree."""
    names = {"model", "x"} | ({"C"} if p["model"] == "svm" else set())
    if p["model"] != "forest":
        names |= {"kernel"} | ({"degree"} if p["kernel"] == "poly" else set())
    return names


# -- conditional parameters ----------------------------------------------------------------------------------------


def test_conditional_space_is_solved_and_points_hold_what_is_active() -> None:
    opt = optimizer(TREE, n_startup_trials=8)
    run(opt, 35, tree)
    assert all(set(t.params) == active(t.params) for t in opt.trials)
    assert {t.params["model"] for t in opt.trials} == {"svm", "gp", "forest"}
    best = opt.recommend().params
    assert (best["model"], best["kernel"], best["degree"]) == ("svm", "poly", 3)
    assert tree(best) < 0.05


def test_past_data_of_a_conditional_space_are_told_by_dicts_and_by_tables_with_gaps() -> None:
    rows: list[dict[str, Any]] = [
        {"model": "svm", "C": 2.0, "kernel": "poly", "degree": 3, "x": 0.1},
        {"model": "gp", "kernel": "rbf", "x": 0.2},
        {"model": "forest", "x": 0.3},
    ]
    by_dict, by_table = optimizer(TREE), optimizer(TREE)
    by_dict.tell(rows, [1.0, 2.0, 3.0])
    by_table.tell(pd.DataFrame(rows).assign(loss=[1.0, 2.0, 3.0]), "loss")
    assert [t.params for t in by_table.trials] == [t.params for t in by_dict.trials] == rows
    # What one optimizer writes, another reads.
    written = by_dict.trials_dataframe()
    again = optimizer(TREE)
    frame = written.rename(columns=lambda name: name.removeprefix("params_"))
    again.tell(frame, "value", columns=list(TREE))
    assert [t.params for t in again.trials] == rows


def test_none_in_a_table_is_no_gap_where_it_is_a_choice() -> None:
    cap = bo.Categorical([None, "soft"], when={"kind": "wide"})
    opt = optimizer({"kind": ["wide", "flat"], "cap": cap, "x": (0.0, 1.0)})
    rows = [{"kind": "wide", "cap": None, "x": 0.1}, {"kind": "wide", "cap": "soft", "x": 0.2}]
    # As objects: pandas takes None for a missing text otherwise.
    opt.tell(pd.DataFrame(rows, dtype=object).assign(loss=[1.0, 2.0]), "loss")
    assert [dict(t.params) for t in opt.trials] == rows


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"degree": 3}, r"nothing for 'degree'.* where 'kernel' is 'poly'"),
        ({"model": "forest"}, r"nothing for 'C'"),
        ({"kernel": "poly"}, r"nothing for 'degree'"),
        ({"C": None}, r"'C'"),
    ],
)
def test_values_of_inactive_parameters_and_missing_ones_of_active_are_refused(
    change: dict[str, Any], words: str
) -> None:
    opt = optimizer(TREE)
    point = {"model": "svm", "C": 1.0, "kernel": "rbf", "x": 0.5}
    with pytest.raises(ArgumentError, match=words):
        opt.tell(point | change, 1.0)
    assert opt.trials == []
    opt.tell(point, 1.0)


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({"a": bo.Int(0, 1, when={"b": 1}), "b": bo.Int(0, 1, when={"a": 1})}, "circle"),
        ({"a": bo.Float(0.0, 1.0, when={"z": 1})}, "got 'z'"),
        ({"a": bo.Float(0.0, 1.0, when={"k": "q"}), "k": ["u", "v"]}, "one of 'u', 'v'.*got 'q'"),
        ({"a": bo.Float(0.0, 1.0, when={"k": 0.5}), "k": (0.0, 1.0)}, "got 'k'"),
    ],
)
def test_impossible_conditions_are_refused_by_name(space: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=f"parameter 'a': when: .*{words}"):
        bo.Optimizer(space)


def test_every_point_of_a_discrete_conditional_space_is_asked_once() -> None:
    opt = optimizer({"k": ["a", "b"], "n": bo.Int(0, 2, when={"k": "a"})}, duplicates="avoid", n_startup_trials=2)
    run(opt, 4, lambda p: float(len(p)))
    assert len({tuple(t.params.items()) for t in opt.trials}) == 4
    with pytest.raises(SpaceExhaustedError):
        opt.ask()


# -- kinds of parameters -------------------------------------------------------------------------------------------


def test_ordinal_values_are_asked_told_and_recommended_as_they_are() -> None:
    opt = optimizer({"batch": bo.Ordinal([16, 32, 64, 128]), "size": bo.Ordinal(["S", "M", "L"])})
    run(opt, 15, lambda p: abs(math.log2(p["batch"]) - 6) + "SML".index(p["size"]))
    assert opt.recommend().params == {"batch": 64, "size": "S"}
    assert {type(t.params["batch"]) for t in opt.trials} == {int}
    assert opt.tell({"batch": np.int64(32), "size": "M"}, 1.0).params == {"batch": 32, "size": "M"}
    with pytest.raises(ArgumentError, match=r"'batch'.*one of 16, 32, 64, 128"):
        opt.tell({"batch": 48, "size": "M"}, 1.0)


def test_neighbours_in_the_order_are_alike_and_choices_are_not() -> None:
    values = [{"k": k} for k in ("a", "b", "d", "e") for _ in range(2)]
    y = [0.0, 0.0, 1.0, 1.0, 3.0, 3.0, 4.0, 4.0]
    ordered, choice = optimizer({"k": bo.Ordinal(list("abcde"))}), optimizer({"k": list("abcde")})
    for opt in (ordered, choice):
        opt.tell(values, y)
    assert ordered.predict({"k": "c"})[1][0] < 0.5 * choice.predict({"k": "c"})[1][0]


def test_range_is_a_whole_number() -> None:
    opt = optimizer({"n": range(1, 10, 3), "down": range(5, 0, -1)})
    points = [t.params for t in opt.ask(15)]
    assert {p["n"] for p in points} == {1, 4, 7}
    assert {p["down"] for p in points} <= {1, 2, 3, 4, 5}
    assert {type(p["n"]) for p in points} == {int}


def test_two_whole_bounds_are_real_numbers_and_said_to_be_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_has_warned", False)
    with pytest.warns(UserWarning, match=r"'n': \(1, 10\) .* bo\.Int\(1, 10\)"):
        opt = bo.Optimizer({"n": (1, 10)}, seed=0)
    assert isinstance(opt.ask().params["n"], float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bo.Optimizer({"n": (1, 10)})
        bo.Optimizer({"x": (1.0, 10.0)})


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


def test_queued_points_are_asked_next_in_order_and_completed() -> None:
    opt = optimizer()
    run(opt, 6)
    whole, part, none = opt.enqueue({"x": 0.25, "y": 1}), opt.enqueue({"y": -1.0}), opt.enqueue({})
    assert [t.state for t in (whole, part, none)] == ["WAITING"] * 3
    assert opt.trials[6:] == [whole, part, none]
    assert repr(opt) == "<Optimizer to minimize: 9 trials, 6 of them with values>"
    first = opt.ask()
    second, third, fourth = opt.ask(3)
    assert (first.id, first.params, first.state) == (whole.id, {"x": 0.25, "y": 1.0}, "RUNNING")
    assert (second.id, second.params["y"], set(second.params)) == (part.id, -1.0, {"x", "y"})
    assert (third.id, set(third.params), fourth.id) == (none.id, {"x", "y"}, 9)
    opt.tell([first, second, third, fourth], [bowl(t.params) for t in (first, second, third, fourth)])
    assert len(opt.diagnostics) == 10


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


# -- spaces and pools that change ----------------------------------------------------------------------------------


def test_moved_range_is_kept_to_and_the_past_stays_in_the_model() -> None:
    opt = optimizer({"x": (0.0, 1.0)})
    run(opt, 12, lambda p: (p["x"] - 1.4) ** 2)
    before = opt.predict({"x": 0.5})
    opt.set_space({"x": (0.5, 2.0)})
    assert opt.space is not None
    assert opt.space.names == ("x",)
    # Another scale of the same data: the same function but for the fit.
    assert opt.predict({"x": 0.5})[0] == pytest.approx(before[0], abs=0.02)
    assert opt.surrogate.observations.total == 12
    run(opt, 12, lambda p: (p["x"] - 1.4) ** 2)
    assert all(0.5 <= t.params["x"] <= 2.0 for t in opt.trials[12:])
    assert opt.recommend().params["x"] == pytest.approx(1.4, abs=0.05)
    assert len(opt.trials) == 24
    with pytest.raises(ArgumentError, match=r"\[0.5, 2.0\]"):
        opt.tell({"x": 0.25}, 1.0)


def test_recommendation_belongs_to_the_space_as_it_is_now() -> None:
    opt = optimizer()
    run(opt, 12)
    narrow = {"x": (0.6, 1.0), "y": (-2.0, 2.0)}
    opt.set_space(narrow)
    inside = [t for t in opt.trials if t.params["x"] >= 0.6]
    assert inside
    assert opt.recommend().params in [t.params for t in inside]
    assert opt.best_trial.params["x"] < 0.6  # the best that was ever told
    opt.set_space({"x": (5.0, 6.0), "y": (-2.0, 2.0)})
    assert opt.recommend().params in [t.params for t in opt.trials]  # none is inside: the best of all


def test_new_and_dropped_parameters_keep_the_past() -> None:
    opt = optimizer()
    run(opt, 10)
    opt.set_space({"x": (0.0, 1.0), "batch": bo.Ordinal([1, 2, 4])})
    assert opt.surrogate.observations.total == 10
    run(opt, 8, lambda p: (p["x"] - 0.3) ** 2 + 0.1 * p["batch"])
    assert all(set(t.params) == {"x", "batch"} for t in opt.trials[10:])
    assert set(opt.trials[0].params) == {"x", "y"}
    assert set(opt.recommend().params) == {"x", "batch"}
    assert opt.recommend().params["x"] == pytest.approx(0.3, abs=0.1)


def test_running_trials_of_the_old_space_can_still_be_told() -> None:
    opt = optimizer()
    run(opt, 6)
    trial = opt.ask()
    opt.set_space({"x": (2.0, 3.0), "z": ["a", "b"]})
    assert opt.tell(trial, 1.0).params == trial.params
    assert set(opt.ask().params) == {"x", "z"}


def test_same_space_set_again_changes_nothing() -> None:
    a, b = optimizer(), optimizer()
    for opt in (a, b):
        run(opt, 9)
    b.set_space(dict(BOX))
    assert a.recommend() == b.recommend()
    assert [t.params for t in a.ask(3)] == [t.params for t in b.ask(3)]


def test_space_that_became_conditional_keeps_the_past() -> None:
    opt = optimizer({"kind": ["a", "b"], "x": (0.0, 1.0)})
    run(opt, 10, lambda p: (p["x"] - 0.3) ** 2 + (p["kind"] == "b"))
    opt.set_space({"kind": ["a", "b"], "x": bo.Float(0.0, 1.0, when={"kind": "a"})})
    run(opt, 6, lambda p: (p["x"] - 0.3) ** 2 if "x" in p else 1.0)
    assert opt.recommend().params["kind"] == "a"


def test_labels_of_rows_are_an_index_or_a_column() -> None:
    named = FRAME.reset_index(names="name")
    with pytest.raises(ArgumentError, match=r"'name' are all different.*id_column='name'"):
        optimizer(named)
    opt = optimizer(bo.Pool(named, id_column="name"))
    run(opt, 6, lambda p: p["dose"])
    assert set(opt.trials[0].params) == {"dose", "day"}
    assert [t.index for t in opt.tell_rows(["mix 4", "mix 29"], [1.0, 2.0])] == [4, 29]
    opt.set_pool(named.iloc[20:])
    assert opt.tell_rows(["mix 29"], [1.0])[0].index == 9
    for words, rows in (("'mix 4'", ["mix 4"]), ("'nobody'", ["nobody"])):
        with pytest.raises(ArgumentError, match=words):
            opt.tell_rows(rows, [1.0])


def test_arms_that_are_numbers_of_rows_and_labels_are_told_apart() -> None:
    opt = optimizer(FRAME.set_axis(range(100, 130), axis=0))
    assert opt.tell_rows([103], [1.0])[0].index == 3
    with pytest.raises(ArgumentError, match="labels"):
        opt.tell_rows([3], [1.0])
    array = optimizer(FRAME[["dose"]].to_numpy())
    assert [t.index for t in array.tell_rows(np.array([3, 5]), [1.0, 2.0])] == [3, 5]


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


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("seed", [0, 2])
def test_without_noise_all_points_of_all_branches_come_before_a_repeat(batch: int, seed: int) -> None:
    space = {
        "m": bo.Categorical(["a", "b"]),
        "n": bo.Int(0, 4, when={"m": "a"}),
        "z": bo.Int(0, 5, when={"m": "b"}),
    }
    opt = bo.Optimizer(space, seed=seed, n_startup_trials=3, deterministic=True)
    for trial in opt.ask(4):
        opt.tell(trial, float(sum(v**2 for v in trial.params.values() if isinstance(v, int))))
    for _ in range(7 // batch):
        for trial in opt.ask(batch):
            if batch == 1:
                opt.tell(trial, float(sum(v**2 for v in trial.params.values() if isinstance(v, int))))
    assert len({tuple(trial.params.items()) for trial in opt.trials}) == 11
