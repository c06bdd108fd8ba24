"""Trials of which some objectives are measured."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, NotReadyError
from bkbopt.plots import overview, report

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
NAMED = {"loss": "minimize", "cost": "minimize"}


def loss(params: Any) -> float:
    return (params["x"] - 0.3) ** 2 + params["y"]


def cost(params: Any) -> float:
    return (params["x"] - 0.8) ** 2 + (1.0 - params["y"]) ** 2


def optimizer(directions: Any = NAMED, **options: Any) -> bo.Optimizer:
    return bo.Optimizer(options.pop("space", SPACE), directions=directions, seed=0, **options)


def run(opt: bo.Optimizer, n: int, every: int = 3) -> bo.Optimizer:
    """`n` trials, of which one in `every` has a cost."""
    for i in range(n):
        trial = opt.ask()
        opt.tell(trial, [loss(trial.params), cost(trial.params) if i % every == 0 else None])
    return opt


def test_an_objective_that_is_none_is_not_measured() -> None:
    opt = optimizer()
    first = opt.tell(opt.ask(), {"loss": 0.3, "cost": None})
    second = opt.tell(opt.ask(), [None, 2.0])
    whole = opt.tell(opt.ask(), [1.0, 2.0])
    assert [t.partial_values for t in (first, second, whole)] == [(0.3, None), (None, 2.0), ()]
    assert [t.values for t in (first, second, whole)] == [(), (), (1.0, 2.0)]
    assert [t.state for t in opt.trials] == ["COMPLETE"] * 3
    assert opt.n_complete == 3
    frame = opt.trials_dataframe()
    np.testing.assert_array_equal(frame[["values_loss", "values_cost"]], [[0.3, np.nan], [np.nan, 2.0], [1.0, 2.0]])


def test_the_other_objective_may_be_told_later_and_the_search_is_then_the_same() -> None:
    later, whole = optimizer(n_startup_trials=4), optimizer(n_startup_trials=4)
    for opt in (later, whole):
        for trial in opt.ask(8):
            both = [loss(trial.params), cost(trial.params)]
            opt.tell(trial, [both[0], None] if opt is later else both)
    assert later.ask().params != whole.ask().params
    for trial in later.trials[:8]:
        opt_trial = later.tell(trial, [None, cost(trial.params)], replace=True)
        assert (opt_trial.values, opt_trial.partial_values) == ((loss(trial.params), cost(trial.params)), ())
    for opt in (later, whole):
        opt.fail(8, lost=True)
    assert later.ask().params == whole.ask().params


def test_what_is_told_again_replaces_its_own_objective_only() -> None:
    opt = optimizer()
    trial = opt.tell(opt.ask(), [1.0, None], std=[0.1, None])
    assert trial.stds == (0.1, None)
    assert opt.tell(trial, [3.0, None], replace=True).partial_values == (3.0, None)
    both = opt.tell(trial, [None, 2.0], std=[None, 0.2], replace=True)
    assert (both.values, both.stds) == ((3.0, 2.0), (None, 0.2))
    assert opt.tell(trial, [None, 5.0], replace=True).values == (3.0, 5.0)
    other = opt.tell(opt.ask(), [1.0, None], std=[0.1, None])
    assert opt.tell(other, [None, 2.0], std=[None, 0.2], replace=True).stds == (0.1, 0.2)
    assert opt.tell(other, [1.5, 2.5], replace=True).stds is None


def test_each_objective_is_modelled_by_its_own_values() -> None:
    given = {"surrogate": bo.ExactGP(bo.kernels.rbf(2, 0.4), noise=0.01), "fit": False}
    opt = run(optimizer(**given), 15)
    at = [{"x": 0.2, "y": 0.4}, {"x": 0.9, "y": 0.1}]
    means, stds = opt.predict(at)
    for k, name in enumerate(NAMED):
        alone = bo.Optimizer(SPACE, seed=0, **given)
        measured = [t for t in opt.trials if (t.values or t.partial_values)[k] is not None]
        alone.tell([t.params for t in measured], [(t.values or t.partial_values)[k] for t in measured])
        mean, std = alone.predict(at)
        # The same formula, with values in the same order: to rounding.
        np.testing.assert_allclose(means[:, k], mean, rtol=1e-12)
        np.testing.assert_allclose(stds[:, k], std, rtol=1e-12)
        single = opt.single_objective(name)
        assert single.n_complete == len(measured) == (15 if name == "loss" else 5)
        np.testing.assert_allclose(single.predict(at)[0], mean, rtol=1e-12)


def test_a_search_goes_on_with_an_objective_that_is_measured_seldom() -> None:
    opt = run(optimizer(), 40)
    points = {tuple(trial.params.values()) for trial in opt.trials}
    assert len(points) == 40
    front = opt.recommend_front()
    complete = [trial.params for trial in opt.trials if trial.values]
    assert len(complete) == 14
    assert all(point.params in complete for point in front)
    assert all(trial.params in complete for trial in opt.best_trials)
    # The costs of the other trials are predicted: four standard deviations would be far off.
    at = [trial.params for trial in opt.trials if trial.partial_values]
    means, stds = opt.predict(at)
    assert np.all(np.abs(means[:, 1] - [cost(params) for params in at]) < 4.0 * stds[:, 1])


def test_the_start_up_ends_while_one_objective_has_few_values() -> None:
    opt = run(optimizer(n_startup_trials=6), 8, every=4)
    assert [d.beta is not None for d in opt.diagnostics] == [False] * 6 + [True] * 2


def test_objectives_may_be_measured_in_turns() -> None:
    opt = optimizer(n_startup_trials=5)
    for i in range(16):
        trial = opt.ask()
        opt.tell(trial, [loss(trial.params), None] if i % 2 else [None, cost(trial.params)])
    assert opt.diagnostics[-1].beta is not None  # no point has both, but there are models
    (point,) = opt.recommend_front()
    assert point.params in [trial.params for trial in opt.trials]
    with pytest.raises(NotReadyError):
        opt.best_trials  # noqa: B018


@pytest.mark.parametrize("directions", [NAMED, ["minimize", "minimize"]])
def test_logs_keep_the_values(tmp_path: Path, directions: Any) -> None:
    path = tmp_path / "runs.db"
    opt = run(optimizer(directions, storage=path, constraints=["heat"]), 14)
    opt.tell(opt.ask(), [None, 1.0], constraints={"heat": -1.0}, std=[None, 0.1])
    again = bo.Optimizer.open(path)
    assert again.trials == opt.trials
    assert [t.partial_values for t in again.trials] == [t.partial_values for t in opt.trials]
    assert again.trials[-1].stds == (None, 0.1)
    opt.save(tmp_path / "copy.db")
    copied = bo.Optimizer.load(tmp_path / "copy.db")
    assert copied.trials == opt.trials
    assert copied.ask().params == again.ask().params


def test_rows_of_a_table_may_have_gaps() -> None:
    gap = math.nan
    frame = pd.DataFrame({"x": [0.1, 0.2, 0.3], "y": 0.5, "a": [1.0, gap, gap], "b": [1.0, 2.0, gap]})
    opt = optimizer()
    told = opt.tell(frame, ["a", "b"], invalid="partial")
    assert [trial.values or trial.partial_values for trial in told] == [(1.0, 1.0), (None, 2.0)]
    assert len(opt.trials) == 2  # without any value nothing is measured
    assert opt.tell(frame, ["a", "b"], invalid="partial", again=False) == []
    with pytest.raises(ArgumentError, match=r"^value: expected finite values, got \[nan, 2.0\] in row 1"):
        opt.tell(frame, ["a", "b"])
    for given in (frame[["a", "b"]].to_numpy(), frame[["a", "b"]], {"loss": frame["a"], "cost": frame["b"]}):
        assert len(optimizer().tell(frame[["x", "y"]], given, invalid="partial")) == 2
    rows = [[1.0, None], {"loss": None, "cost": 3.0}]
    assert [t.partial_values for t in optimizer().tell([{"x": 0.1, "y": 0.2}] * 2, rows)] == [(1.0, None), (None, 3.0)]


GAPS = [[1.0, 2.0], [3.0, math.nan], [math.nan, 4.0]]
NONES = [[1.0, 2.0], [3.0, None], [None, 4.0]]


@pytest.mark.parametrize(
    "given",
    [
        torch.tensor(GAPS),
        [torch.tensor(row) for row in GAPS],
        [np.array(row) for row in GAPS],
        [np.array(row, dtype=object) for row in NONES],
        [np.ma.masked_invalid(row) for row in GAPS],
        np.ma.masked_invalid(GAPS),
        [pd.Series(row) for row in GAPS],
        pd.Series(NONES),
        pd.DataFrame(GAPS).astype("Float64"),
        [[1.0, 2.0], np.array([3.0, np.nan]), (None, 4.0)],
        [[1.0, 2.0], [3.0, np.float32("nan")], [pd.NaT, 4.0]],
        {"loss": torch.tensor([1.0, 3.0, math.nan]), "cost": np.ma.masked_invalid([2.0, math.nan, 4.0])},
    ],
    ids=lambda given: type(given).__name__,
)
def test_rows_with_gaps_come_in_many_forms(given: Any) -> None:
    at = [{"x": 0.1 * i, "y": 0.5} for i in range(3)]
    told = optimizer().tell(at, given, invalid="partial")
    assert [trial.values or trial.partial_values for trial in told] == [(1.0, 2.0), (3.0, None), (None, 4.0)]


@pytest.mark.parametrize("row", [np.array([0.3, None], dtype=object), pd.Series([0.3, None], dtype=object)])
def test_none_is_not_measured_in_an_array_or_a_series_either(row: Any) -> None:
    opt = optimizer(["minimize", "minimize"])
    assert opt.tell(opt.ask(), row).partial_values == (0.3, None)
    assert [t.partial_values for t in opt.tell([opt.ask(), opt.ask()], [row, row])] == [(0.3, None)] * 2


def test_rows_of_another_number_are_refused_with_gaps_too() -> None:
    with pytest.raises(ArgumentError, match=r"^value: expected shape \(3, 2\), one column for each objective, got"):
        optimizer().tell([{"x": 0.1, "y": 0.2}] * 3, [[1.0, 2.0], [3.0, None]])


def test_a_table_without_names_may_have_rows_to_leave_out() -> None:
    at = [{"x": 0.1 * i, "y": 0.5} for i in range(3)]
    opt = optimizer(["minimize", "minimize"])
    assert [trial.values for trial in opt.tell(at, pd.DataFrame(GAPS), invalid="skip")] == [(1.0, 2.0)]


def test_gaps_of_both_a_constraint_and_an_objective() -> None:
    opt = optimizer(constraints=["heat"])
    frame = pd.DataFrame(
        {"x": [0.1, 0.2], "y": 0.5, "loss": [1.0, 2.0], "cost": [math.nan, 1.0], "heat": [-1.0, math.nan]}
    )
    names = {name: name for name in ("loss", "cost", "heat")}
    told = opt.tell(frame, names, invalid="partial")
    assert [(t.partial_values, t.constraints) for t in told] == [((1.0, None), {"heat": -1.0}), ((), {})]


@pytest.mark.parametrize("value", [[None, None], {"loss": None, "cost": None}])
def test_a_trial_without_any_value_is_refused(value: Any) -> None:
    opt = optimizer()
    trial = opt.ask()
    with pytest.raises(ArgumentError, match=r"^value: expected a number for one objective at least, got .*; call fail"):
        opt.tell(trial, value)
    with pytest.raises(ArgumentError, match=r"^value: .* at position 1; call fail for a trial without a value"):
        opt.tell([trial, {"x": 0.1, "y": 0.2}], [[1.0, 2.0], [None, None]])
    assert [t.state for t in opt.trials] == ["RUNNING"]


def test_a_number_that_is_not_finite_is_refused_beside_none() -> None:
    opt = optimizer()
    with pytest.raises(ArgumentError, match=r"^value: expected finite values, got \[None, inf\] in row 0; drop it, or"):
        opt.tell(opt.ask(), [None, math.inf])
    assert [t.state for t in opt.trials] == ["RUNNING"]


def test_a_single_objective_needs_its_value() -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    with pytest.raises(ArgumentTypeError, match=r"^value: expected a finite number, got None; call fail"):
        opt.tell(opt.ask(), None)
    with pytest.raises(ArgumentError, match=r'^invalid: expected "raise" or "fail" for a single trial'):
        opt.tell(0, 1.0, invalid="partial")  # type: ignore[call-overload]


def test_a_name_that_is_missing_is_a_mistake() -> None:
    opt = optimizer()
    message = (
        r"^value: expected the objectives \('loss', 'cost'\), got \('loss',\); of one that is not measured give None"
    )
    with pytest.raises(ArgumentError, match=message):
        opt.tell(opt.ask(), {"loss": 1.0})


def test_functions_may_measure_some_objectives() -> None:
    def both(params: Any) -> list[float | None]:
        return [loss(params), cost(params) if params["y"] < 0.5 else None]

    opt = bo.minimize(both, SPACE, n_trials=14, directions=NAMED, seed=0)
    assert {bool(trial.values) for trial in opt.trials} == {True, False}
    assert all(trial.state == "COMPLETE" for trial in opt.trials)


def test_none_fails_no_trial_where_values_that_are_not_finite_do() -> None:
    results = iter([[1.0, None], [1.0, math.nan], [None, math.inf], [None, 2.0]])
    opt = bo.minimize(lambda _: next(results), SPACE, n_trials=4, directions=NAMED, invalid="fail", seed=0)
    assert [(t.state, t.partial_values) for t in opt.trials] == [
        ("COMPLETE", (1.0, None)),
        ("FAIL", ()),
        ("FAIL", ()),
        ("COMPLETE", (None, 2.0)),
    ]
    assert opt.tell(opt.ask(), [None, None], invalid="fail").state == "FAIL"


def test_rows_of_a_pool_that_are_partly_measured_are_evaluated() -> None:
    pool = np.random.default_rng(0).random((30, 2))
    opt = bo.Optimizer(pool, directions=NAMED, seed=0, duplicates="avoid")
    rows = []
    for i in range(30):
        trial = opt.ask()
        rows.append(trial.index)
        opt.tell(trial, [float(pool[trial.index].sum()), 1.0 - pool[trial.index][0] if i % 4 == 0 else None])
    assert sorted(rows) == list(range(30))


def test_results_need_a_value_of_each_objective() -> None:
    opt = optimizer()
    for _ in range(3):
        opt.tell(opt.ask(), [1.0, None])
    for name in ("recommend_front", "predict"):
        with pytest.raises(NotReadyError, match=f"^{name}: expected a value of each objective, got none of one; call"):
            getattr(opt, name)(*([{"x": 0.1, "y": 0.2}] if name == "predict" else []))
    for read in (lambda: opt.best_trials, lambda: opt.hypervolume([9.0, 9.0]), lambda: overview(opt)):
        with pytest.raises(NotReadyError, match="expected a trial with a value of each objective, got none"):
            read()
    assert opt.single_objective("loss").recommend().params in [trial.params for trial in opt.trials]
    assert opt.ask().state == "RUNNING"


def test_reports_and_html_show_what_is_known(tmp_path: Path) -> None:
    opt = run(optimizer(), 12)
    report(opt, tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    (partial,) = opt.trials[10].partial_values[:1]
    assert partial is not None
    assert f"{partial:.6g}" in text
    assert f"{partial:.6g}" in opt._repr_html_()
