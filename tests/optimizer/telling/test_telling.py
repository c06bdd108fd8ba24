"""Forms of told values: trials, ids, parameters and rows of pools, with known noise and gaps."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, TrialStateError, UnknownTrialError
from tests.optimizer.tables_to_tell import FRAME, ROWS, optimizer

# -- whose value it is ---------------------------------------------------------------------------------------------


def test_trials_ids_and_parameters_are_told_together() -> None:
    opt = optimizer()
    a, b, c = opt.ask(3)
    done = opt.tell([c, np.int64(a.id), dict(b.params), {"x": 0.5, "y": 0.0}], [3.0, 1.0, 2.0, 4.0])
    assert [(t.id, t.value) for t in done] == [(2, 3.0), (0, 1.0), (1, 2.0), (3, 4.0)]
    assert opt.observed()[1].tolist() == [3.0, 1.0, 2.0, 4.0]
    assert [t.state for t in opt.trials] == ["COMPLETE"] * 4


def test_parameters_of_a_running_trial_complete_it_and_again_are_past_data() -> None:
    opt = optimizer()
    trial, other = opt.ask(2)
    assert opt.tell(dict(trial.params), 1.0).id == trial.id
    assert opt.tell(dict(trial.params), 2.0).id == 2
    with pytest.raises(TrialStateError):
        opt.tell(trial, 1.0)
    assert opt.trials[other.id].state == "RUNNING"
    both = opt.tell([dict(other.params)] * 2, [1.0, 2.0])
    assert [t.id for t in both] == [other.id, 3]


def test_equal_running_points_are_completed_one_by_one() -> None:
    opt = optimizer()
    point = {"x": 0.5, "y": 1.0}
    trials = opt.ask(3, fixed=point)
    assert opt.tell(point, 0.0).id == trials[0].id
    assert [t.id for t in opt.tell([point] * 3, [1.0, 2.0, 3.0])] == [trials[1].id, trials[2].id, 3]


def test_a_trial_of_another_optimizer_is_refused_where_its_id_means_another_point() -> None:
    opt, other = optimizer(), optimizer(seed=1)
    opt.tell(opt.ask(), 0.0)
    first, second = other.ask(2)
    own = opt.ask()
    before = opt.trials
    for call in (
        lambda: opt.tell(second, 1.0),
        lambda: opt.fail(second),
        lambda: opt.tell([own, second], [1.0, 2.0]),
        lambda: opt.heartbeat([own, second]),
    ):
        with pytest.raises(ArgumentError, match=r"trial: expected a trial of this optimizer, whose trial 1 has .*'x'"):
            call()
    assert opt.trials == before
    other.tell([first, second], [1.0, 2.0])
    opt.tell(own, 3.0)
    with pytest.raises(ArgumentError, match="expected a trial of this optimizer"):
        opt.tell(other.trials[1], 0.0, replace=True)


def test_trials_of_copies_and_queued_ones_are_those_of_the_optimizer(tmp_path: Path) -> None:
    opt = optimizer()
    queued = opt.enqueue({"x": 0.25})
    opt.save(tmp_path / "copy.db")
    copy = bo.Optimizer.load(tmp_path / "copy.db")
    assert opt.ask().params == copy.ask().params
    assert opt.tell(queued, 1.0).value == copy.tell(opt.trials[0], 1.0).value == 1.0


def test_trials_of_a_longer_log_are_refused_with_the_form_in_which_they_may_be_told() -> None:
    opt, longer = optimizer(), optimizer()
    longer.tell(ROWS, [1.0, 2.0, 3.0])
    for call in (lambda: opt.tell(longer.trials, [1.0] * 3), lambda: opt.tell(longer.trials[2], 1.0, replace=True)):
        with pytest.raises(UnknownTrialError, match=r"has 0 trials, got one with the id [02]; .* tell its params"):
            call()
    assert len(opt.trials) == 0
    assert len(opt.tell([trial.params for trial in longer.trials], [1.0] * 3)) == 3


def test_usual_slips_in_the_call_are_named() -> None:
    opt = optimizer()
    trial = opt.ask()
    named = r"pass that of the objective, or name the objectives: directions=\{name: direction\}"
    for given, got in (("0.3", "'0.3' of type str"), ({"loss": 0.3}, f"{{'loss': 0.3}} of type dict; {named}")):
        with pytest.raises(ArgumentTypeError, match=f"^value: expected a number, got {got}.$"):
            opt.tell(trial, given)
    with pytest.raises(ArgumentTypeError, match=r"^std: expected a number, got \{'loss': 0\.3\} of type dict\.$"):
        opt.tell(trial, 0.3, std={"loss": 0.3})
    with pytest.raises(ArgumentTypeError, match=r"got a Trial, which comes first: tell\(trial, value\)"):
        opt.tell(0.3, trial)
    with pytest.raises(
        ArgumentTypeError,
        match=r"^trial: expected a trial, .*, got float; of a point pass a dict, .*row\)\)\.$",
    ):
        opt.tell((0.3, 1.0), 0.4)
    with pytest.raises(ArgumentTypeError, match=r"got list; of a point pass a dict, as dict\(zip\(names"):
        opt.tell([[0.3, 1.0]], [0.4])
    with pytest.raises(ArgumentError, match=r"got \(0\.4, 0\.1\); .* std= for the noise of a value"):
        opt.tell(trial, (0.4, 0.1))
    row = FRAME[["x", "y"]].iloc[0]
    with pytest.raises(ArgumentTypeError, match=r"got Series; pass dict\(row\), or list\(ids\) for trials"):
        opt.tell(row, 0.4)
    assert opt.tell(dict(row), 0.4).params == {"x": 0.1, "y": 0.0}
    assert trial.id == 0
    assert opt.trials[0].state == "RUNNING"


def test_a_known_noise_without_a_value_is_refused(tmp_path: Path) -> None:
    opt = optimizer(constraints=["c"], storage=tmp_path / "log")
    trial = opt.ask()
    many = (ROWS, [1.0, 2.0, 3.0], [0.1, math.nan, 0.0])
    for targets, limit, std in ((trial, 1.0, 0.1), (ROWS[0], 1.0, [0.1]), many):
        with pytest.raises(ArgumentError, match=r"^std: expected None where only constraints have values, .* leave it"):
            opt.tell(targets, constraints={"c": limit}, std=std)
    assert opt.trials == [trial]
    opt.tell(trial, constraints={"c": 1.0}, std=math.nan)  # unknown
    assert bo.Optimizer.open(tmp_path / "log").trials == opt.trials


@pytest.mark.parametrize(
    ("many", "advice"),
    [
        (
            np.array([[0.1, 0.0], [0.2, 1.0]]),
            r"ndarray; pass dict\(zip\(names, row\)\), or a list of these .*, or list\(ids\) for trials",
        ),
        ({1, 2}, "set; pass a list of them for many"),
        ((row for row in ROWS[:2]), "generator; pass a list of them for many"),
    ],
)
def test_many_points_in_another_form_than_a_list_are_what_the_message_is_about(many: Any, advice: str) -> None:
    opt = optimizer()
    with pytest.raises(ArgumentTypeError, match=f"^trial: expected a trial, .*, got {advice}"):
        opt.tell(many, [1.0, 2.0])


@pytest.mark.parametrize("many", [np.array([0, 1]), pd.Series([0, 1])])
def test_where_only_trials_are_taken_an_array_of_ids_is_refused_with_the_form_for_many(many: Any) -> None:
    opt = optimizer()
    opt.ask(2)
    with pytest.raises(ArgumentTypeError, match=r"^trial: expected a trial or its id, got .*; pass a list of them"):
        opt.heartbeat(many)
    with pytest.raises(ArgumentTypeError, match=r"^trial: expected a trial, .*; pass .* list\(ids\) for trials by"):
        opt.fail(many)


def test_columns_as_a_dict_are_refused_with_the_form_for_many_points() -> None:
    with pytest.raises(ArgumentError, match="pass a list of trials or points for several values"):
        optimizer().tell({"x": [0.1, 0.2], "y": [0.0, 1.0]}, [1.0, 2.0])


def test_an_id_is_refused_where_there_are_no_trials_yet() -> None:
    with pytest.raises(UnknownTrialError, match=r"expected the id of a trial \(there is none yet\), got 7"):
        optimizer().tell(7, 1.0)


def test_arms_are_told_by_row_or_label_and_complete_running_ones() -> None:
    frame = FRAME[["x", "y"]].set_axis(["a", "b", "c"], axis=0)
    opt = optimizer(frame)
    trial = opt.ask()
    first = opt.tell_rows([frame.index[trial.index]], [1.0])[0]
    assert (first.id, first.index) == (trial.id, trial.index)
    done = opt.tell_rows(["c", 0], [3.0, 4.0], std=[0.1, 0.2])
    assert [(t.id, t.index, t.stds) for t in done] == [(1, 2, (0.1,)), (2, 0, (0.2,))]
    failed = opt.tell_rows(pd.Series(["a", "b"]), [math.nan, 2.0], invalid="fail")
    assert [t.state for t in failed] == ["FAIL", "COMPLETE"]
    assert opt.tell({"index": 1}, 1.0).index == 1
    assert opt.tell({"x": 0.9, "y": 2.0}, 1.0).index == 2
    assert opt.tell({"x": 0.7, "y": 2.0}, 1.0).index is None  # a point that is no arm


def test_several_values_for_a_single_objective_are_refused_with_a_hint() -> None:
    opt = optimizer()
    with pytest.raises(ArgumentError, match=r"^value: expected a number, .* got \[1, 2\]; .* see directions"):
        opt.tell(ROWS[0], [1, 2])
    assert opt.trials == []


# -- known noise ---------------------------------------------------------------------------------------------------


def test_known_noise_of_a_mean_is_that_of_its_repeats() -> None:
    surrogate, point = bo.ExactGP(bo.kernels.rbf(1, 0.3), noise=0.04), {"x": 0.5}
    repeated, mean = (optimizer({"x": (0.0, 1.0)}, surrogate=surrogate, fit=False) for _ in range(2))
    for opt in (repeated, mean):
        opt.tell({"x": 0.1}, 0.3)
    repeated.tell([point] * 4, [1.0, 2.0, 3.0, 4.0])
    mean.tell(point, 2.5, std=0.1)  # 0.2 / sqrt(4)
    where = [{"x": x} for x in (0.1, 0.4, 0.5, 0.9)]
    # The same posterior in exact arithmetic; sums of a few terms of order one round differently.
    np.testing.assert_allclose(repeated.predict(where), mean.predict(where), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("surrogate", ["bkb", "exact", "fourier"])
def test_value_of_less_noise_is_trusted_more(surrogate: str) -> None:
    opt = optimizer({"x": (0.0, 1.0)}, surrogate=surrogate)
    for x in np.linspace(0.0, 1.0, 9):
        opt.tell({"x": float(x)}, float(x), std=0.1)
    opt.tell([{"x": 0.5}, {"x": 0.5}], [2.0, 0.6], std=[1.0, 0.01])
    mean, std = opt.predict({"x": 0.5})
    assert mean[0] == pytest.approx(0.6, abs=0.05)
    assert std[0] < 0.05
    assert opt.trials[-1].stds == (0.01,)


def test_exact_values_may_be_told_and_noise_of_zero_is_allowed() -> None:
    opt = optimizer({"x": (0.0, 1.0)}, surrogate="exact")
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, (trial.params["x"] - 0.3) ** 2, std=0.0)
    assert opt.recommend().params["x"] == pytest.approx(0.3, abs=0.1)


def test_infinite_std_is_refused_whatever_becomes_of_values() -> None:
    opt = optimizer({"x": (0.0, 1.0)})
    for invalid in ("raise", "fail", "skip"):
        with pytest.raises(ArgumentError, match=r"^std: expected finite numbers, got inf at position 1"):
            opt.tell([{"x": 0.5}, {"x": 0.6}], [1.0, 2.0], std=[0.1, math.inf], invalid=invalid)
    assert not opt.trials


def test_known_noise_is_refused_where_the_model_cannot_use_it() -> None:
    opt = optimizer(surrogate="pkawv")
    with pytest.raises(ArgumentError, match="std: an online learner gives all values the same weight"):
        opt.tell(opt.ask(), 1.0, std=0.1)
    opt.tell(0, 1.0)


@pytest.mark.parametrize("invalid", ["raise", "fail"])
def test_a_truth_value_is_no_value_of_several_objectives(invalid: str) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=["minimize", "maximize"], seed=0)
    with pytest.raises(ArgumentTypeError, match=r"value: expected real numbers, got bool among them\.$"):
        opt.tell(opt.ask(), [True, 2], invalid=invalid)
    assert opt.trials[0].state == "RUNNING"


@pytest.mark.parametrize("truth", [True, np.bool_(True)])
def test_a_truth_value_is_no_value_of_a_constraint(truth: object) -> None:
    opt = optimizer(constraints=["heat"])
    with pytest.raises(ArgumentTypeError, match=r"constraints\['heat'\]: .* got bool among them; of flags tell -1\.0"):
        opt.tell(opt.ask(), 1.0, constraints={"heat": truth})


def test_messages_name_the_argument_that_was_given() -> None:
    opt, pool = bo.Optimizer({"x": (0.0, 1.0)}, seed=0), bo.Optimizer([[0.0], [1.0]], seed=0)
    for call, words in (
        (lambda: opt.enqueue({"y": 1.0}), "params: expected names"),
        (lambda: opt.ask(fixed={"y": 1.0}), "fixed: expected names"),
        (lambda: opt.ask(fixed={"x": 5.0}), "fixed: parameter 'x': expected a number in"),
        (lambda: opt.enqueue({"x": 5.0}), "params: parameter 'x': expected a number in"),
        (lambda: opt.tell({"x": 5.0}, 0.0), "parameter 'x': expected a number in"),
        (lambda: opt.tell({"y": 1.0}, 0.0), "params: expected values"),
        (lambda: pool.enqueue({"x0": 0.5}), "params: expected values that an arm"),
        (lambda: pool.ask(fixed={"x0": 0.5}), "fixed: expected values that an arm"),
        (
            lambda: pool.tell({"x1": 0.5}, 0.0),
            r"params: expected the columns .*, got unknown 'x1' and nothing for 'x0'",
        ),
    ):
        with pytest.raises(ArgumentError, match=words):
            call()


def test_messages_of_rows_name_the_argument_values() -> None:
    opt = bo.Optimizer([[0.0], [1.0]], seed=0)
    with pytest.raises(ArgumentError, match=r"^values: expected finite"):
        opt.tell_rows([0, 1], [1.0, math.nan])
    with pytest.raises(ArgumentTypeError, match=r"^values: expected a finite number, got None"):
        opt.tell_rows([0, 1], None)


@pytest.mark.parametrize("scalar", [np.array, torch.tensor])
def test_arrays_and_tensors_without_dimensions_are_values_of_parameters(scalar: Any) -> None:
    opt, pool = bo.Optimizer({"x": (0.0, 1.0)}, seed=0), bo.Optimizer([[0.0], [1.0]], seed=0)
    told = opt.tell({"x": scalar(0.5)}, 1.0).params["x"]
    assert (told, type(told)) == (0.5, float)
    assert pool.tell({"x0": scalar(1.0)}, 1.0).index == 1
    assert pool.tell({"index": scalar(1)}, 1.0).index == 1


# -- numbers that arrays do not have -------------------------------------------------------------------------------


@pytest.mark.parametrize("invalid", ["raise", "fail"])
def test_large_whole_numbers_and_fractions_are_values(invalid: Any) -> None:
    opt = optimizer(constraints=["c"])
    opt.tell(ROWS[0], 10**30, constraints={"c": -(10**25)}, std=Fraction(1, 4), invalid=invalid)
    opt.tell(ROWS, [Fraction(1, 2), 10**19, 2], constraints={"c": [Fraction(-1, 2), 2**70, 0]}, invalid=invalid)
    assert [trial.value for trial in opt.trials] == [1e30, 0.5, 1e19, 2.0]
    assert [trial.constraints["c"] for trial in opt.trials] == [-1e25, -0.5, 2.0**70, 0.0]
    assert opt.trials[0].stds == (0.25,)


def test_whole_numbers_beyond_the_doubles_are_not_finite() -> None:
    opt = optimizer()
    with pytest.raises(ArgumentError, match="value: expected finite values, got inf at position 0"):
        opt.tell(ROWS[0], 10**400)
    assert opt.trials == []
    assert opt.tell(ROWS[0], 10**400, invalid="fail").state == "FAIL"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "value", [np.ma.masked, np.ma.array(1.0, mask=True), np.ma.array([1.0], mask=[True])], ids=["masked", "0-d", "1-d"]
)
def test_a_number_below_a_mask_is_not_told(value: Any) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, constraints=["heat"], seed=0)
    trial, before = opt.ask(), opt.trials
    for told in (value, [value]):
        with pytest.raises(ArgumentError, match="value: expected finite values, got nan"):
            opt.tell([trial], told)
    with pytest.raises(ArgumentError, match="value: expected finite values, got nan"):
        opt.tell(trial, value)
    with pytest.raises(ArgumentError, match=r"constraints\['heat'\]: expected finite values, got nan"):
        opt.tell(trial, 1.0, constraints={"heat": value})
    with pytest.raises(ArgumentError, match="parameter 'x': expected a number"):
        opt.tell({"x": value}, 1.0)
    assert opt.trials == before
    assert opt.tell(trial, value, invalid="fail").state == "FAIL"


def test_one_masked_objective_of_two_is_not_told() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=["minimize", "minimize"], seed=0)
    with pytest.raises(ArgumentError, match=r"values?: expected finite values, got \[nan, 2\.0\]"):
        opt.tell(opt.ask(), np.ma.array([1.0, 2.0], mask=[True, False]))


def test_a_duration_of_numpy_is_no_number() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    with pytest.raises(ArgumentTypeError, match=r"value: expected real numbers, got list of dtype timedelta64"):
        opt.tell(opt.ask(), np.timedelta64(3, "s"))
    with pytest.raises(ArgumentTypeError, match="std: expected real numbers"):
        opt.tell(opt.ask(), 1.0, std=np.timedelta64(3, "s"))


@pytest.mark.parametrize("gap", [None, math.nan, np.nan, pd.NA], ids=str)
def test_gaps_of_inactive_parameters_are_as_in_a_table(gap: Any) -> None:
    space = {"kind": ["a", "b", None], "x": bo.Float(0.0, 1.0, when={"kind": "a"}), "y": (0.0, 1.0)}
    opt = bo.Optimizer(space, seed=0)
    rows = [{"kind": "b", "x": gap, "y": 0.5}, {"kind": "a", "x": 0.25, "y": 0.5}]
    told = [*opt.tell(rows, [1.0, 2.0]), opt.tell({"kind": None, "x": gap, "y": 0.25}, 3.0)]
    assert [trial.params for trial in told] == [{"kind": "b", "y": 0.5}, rows[1], {"kind": None, "y": 0.25}]
    for bad in ({"kind": "a", "x": gap, "y": 0.5}, {"kind": "b", "y": gap}):
        with pytest.raises((ArgumentError, ArgumentTypeError)):
            opt.tell(bad, 1.0)
    assert len(opt.trials) == 3
