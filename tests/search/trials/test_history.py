"""The log as input of the models: order, encoding, and the rows of each quantity."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

import bkbopt as bo
from bkbopt.search.quantities.marked_rows import last_mark, next_mark
from bkbopt.search.trials.evaluations import Evaluation, Point, Problem
from bkbopt.search.trials.history import History
from bkbopt.search.trials.states import COMPLETE, FAIL, PRUNED, RUNNING
from bkbopt.spaces.encoding import Encoding

SPACE = bo.Space.parse({"x": (0.0, 1.0), "y": (0.0, 1.0)})


def trial(
    number: int, state: str = COMPLETE, end: float | None = None, space: bo.Space = SPACE, **more: object
) -> Evaluation:
    point = {"x (float)": 0.1 * number, "y (float)": 0.5}
    values = (float(number),) if state == COMPLETE else ()
    order = (float(number if end is None else end), number)
    return Evaluation(number, state, point, space, order, **{"values": values, **more})  # type: ignore[arg-type]


def history(*trials: Evaluation, signs: tuple[float, ...] = (-1.0,)) -> History:
    out = History(Problem(signs, space=SPACE))
    out.update(trials)
    return out


def test_rows_are_in_the_order_of_completion() -> None:
    known = history(trial(0, end=3.0), trial(1, end=1.0), trial(2, end=2.0))
    assert known.objective(0, 1).y.tolist() == [1.0, 2.0, 0.0]
    assert known.X[:, 0].tolist() == pytest.approx([0.1, 0.2, 0.0], abs=1e-15)


def test_a_late_trial_is_inserted_in_order_and_resets_the_models() -> None:
    known = history(trial(0), trial(2))
    version = known.version
    known.update([trial(3)])
    assert known.version == version
    known.update([trial(1)])
    assert known.version == version + 1
    assert known.objective(0, 1).y.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_known_trials_change_nothing() -> None:
    known = history(trial(0), trial(1))
    before = known.version, known.objective(0, 1).y.tolist()
    known.update([trial(1), trial(0, RUNNING), trial(0)])
    assert (known.version, known.objective(0, 1).y.tolist()) == before
    assert known.running == {}


def test_a_running_trial_is_pending_until_it_ends() -> None:
    known = history(trial(0, RUNNING), trial(1))
    assert list(known.running) == [0]
    known.update([trial(0, end=5.0)])
    assert known.running == {}
    assert known.n_complete == 2


def test_failed_trials_have_rows_of_failing_only() -> None:
    known = history(trial(0), trial(1, FAIL), trial(2))
    assert (known.n_failed, known.n_complete) == (1, 2)
    assert known.objective(0, 1).y.tolist() == [0.0, 2.0]
    assert known.failing().y.tolist() == [-1.0, 1.0, -1.0]
    assert torch.equal(known.failures(), known.X[1:2])


def test_rows_name_the_trials_that_failed_after_their_mark_and_when_they_did() -> None:
    failed = (trial(30, FAIL, end=5.5), trial(20, FAIL), trial(22, FAIL), trial(23, FAIL))
    known = history(*map(trial, range(20)), trial(21), *failed)
    rows = known.objective(0, 20)
    assert (rows.mark, len(rows.y)) == (20, 21)
    assert rows.failed is not None
    assert (rows.failed.n, rows.failed.numbers) == ((20, 21, 21), (20, 22, 23))
    assert torch.equal(rows.failed.X, known.encode([trial(number).point for number in (20, 22, 23)]))
    assert rows.failed.since(21).numbers == (22, 23)
    assert known.failing().failed is None


def test_a_point_that_gave_a_value_once_is_no_failure() -> None:
    again = Evaluation(9, FAIL, trial(1).point, SPACE, (9.0, 9))
    assert len(history(trial(0), trial(1), again).failures()) == 0


def test_a_point_with_a_value_of_any_objective_is_no_failure() -> None:
    other = trial(1, values=(), partial=(math.nan, 1.0))
    again = Evaluation(9, FAIL, other.point, SPACE, (9.0, 9))
    known = history(other, again, signs=(-1.0, -1.0))
    assert len(known.failures()) == 0
    assert [known.n_failed_by(n) for n in range(3)] == [0, 1, 1]


def test_pruned_trials_come_with_the_estimate_from_the_rows_up_to_the_mark() -> None:
    told = [trial(i, curve={1: 10.0 * i}) for i in range(4)]
    pruned = [trial(4, PRUNED, curve={1: 15.0}), trial(5, PRUNED), trial(6, PRUNED, curve={1: 70.0})]
    rows = history(*told, *pruned).objective(0, 4)
    assert rows.mark == 7
    assert rows.y.isnan().tolist() == [False] * 4 + [True] * 3
    # Beyond 30 the slope is the mean of 0.1, with the four pairs' sum of squares 500, and 1, with the further pair's.
    further = np.mean((np.array([0.0, 10.0, 20.0, 30.0, 15.0, 70.0]) - 15.0) ** 2)
    beyond = 3.0 + 40.0 * (0.1 * 500.0 + further) / (500.0 + further)
    assert rows.estimates[4:].tolist() == pytest.approx([1.5, math.nan, beyond], nan_ok=True)
    assert bool(rows.estimates[:4].isnan().all())
    # Complete trials after the mark change no estimate, so that learnt rows do not change between marks.
    later = history(*told, *pruned, trial(7, curve={1: 40.0}, values=(100.0,)))
    assert torch.equal(later.objective(0, 4).estimates[:7].nan_to_num(), rows.estimates.nan_to_num())


def test_estimates_are_the_same_for_rows_that_came_one_by_one() -> None:
    rng = np.random.default_rng(0)
    log = [
        trial(i, PRUNED, curve={int(s): float(rng.normal()) for s in rng.choice(4, 2)})
        if i % 3
        else trial(i, curve={s: i + float(rng.normal()) for s in range(4)})
        for i in range(60)
    ]
    step_by_step = history()
    for one in log:
        step_by_step.update([one])
        step_by_step.objective(0, 3)
    whole, grown = history(*log).objective(0, 3), step_by_step.objective(0, 3)
    assert int(whole.estimates.isfinite().sum()) == 40
    assert torch.equal(whole.estimates.nan_to_num(), grown.estimates.nan_to_num())


def test_each_objective_and_constraint_has_the_rows_with_its_values() -> None:
    told = Evaluation(3, COMPLETE, trial(3).point, SPACE, (3.0, 3), (), constraints={"heat": -1.0})
    known = history(
        trial(0, values=(1.0, 2.0), stds=(0.1, 0.2)),
        trial(1, values=(3.0, 4.0), constraints={"heat": 1.0, "weight": 2.0}),
        told,
        signs=(-1.0, 1.0),
    )
    assert [known.objective(k, 1).y.tolist() for k in (0, 1)] == [[1.0, 3.0], [2.0, 4.0]]
    assert known.objective(1, 1).std[0] == 0.2
    assert known.constraint_names == ["heat", "weight"]
    assert known.constraint("heat", 1).y.tolist() == [1.0, -1.0]
    assert torch.equal(known.constraint("heat", 1).X, known.X[1:])
    assert known.n_complete == 2


def test_a_wider_range_encodes_all_rows_anew() -> None:
    known = history(trial(0), trial(5))
    version = known.version
    wide = bo.Space.parse({"x": (0.0, 2.0), "y": (0.0, 1.0)})
    known.update([trial(6, space=wide)])
    assert known.version > version
    assert known.X[:, 0].tolist() == pytest.approx([0.0, 0.25, 0.3], abs=1e-15)


def test_points_are_encoded_once_though_others_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    known, encoded = history(trial(0)), list[int]()
    points = [trial(number).point for number in range(8)]
    encode = Encoding.encode

    def counted(self: Encoding, new: Sequence[Point]) -> Tensor:
        encoded.append(len(new))
        return encode(self, new)

    monkeypatch.setattr(Encoding, "encode", counted)
    lists = points[:6], points[2:3], points[:2], points[:0], [*points[1:3], *points[4:]], [points[7], *points[1:3]]
    for some in lists:
        assert torch.equal(known.encode(some), encode(known.encoding, some))
    assert encoded == [6, 2]


def test_the_range_of_a_failed_trial_widens_nothing() -> None:
    known = history(trial(0), trial(5))
    known.update([trial(6, FAIL, space=bo.Space.parse({"x": (0.0, 2.0), "y": (0.0, 1.0)}))])
    assert known.X[1, 0] == 0.5


def test_columns_are_those_of_the_space_and_then_the_others_by_key() -> None:
    known = history(trial(0))
    other = bo.Space.parse({"b": (0.0, 1.0), "a": (0.0, 1.0)})
    known.update([Evaluation(1, COMPLETE, {"a (float)": 0.3, "b (float)": 0.4}, other, (1.0, 1), (1.0,))])
    assert list(known.encoding.columns) == ["x (float)", "y (float)", "a (float)", "b (float)"]
    assert known.is_conditional
    assert known.X[1].tolist() == [0.5, 0.5, 0.3, 0.4]


def test_marks_of_failing_are_those_of_the_failures_too() -> None:
    # The first failures say most.
    known = history(*(trial(i) for i in range(19)))
    assert last_mark(20, 2) == 18
    known.update([trial(19, FAIL)])
    assert known.failing().mark == 20
    known = history(*(trial(i) for i in range(20)), trial(20, FAIL))
    assert known.failing().mark == 21
    known.update([trial(i) for i in range(21, 23)])
    assert known.failing().mark == 21
    assert math.isnan(known.failing().std[0])


@pytest.mark.parametrize("late", [False, True])
def test_marks_are_further_apart_beside_running_trials(late: bool) -> None:
    """Of 400 trials begun together those with even numbers end first; which are known first changes nothing."""
    ended = [*range(0, 400, 2), *range(1, 400, 2)]
    trials = [trial(number, end=float(place)) for place, number in enumerate(ended)]
    known = history(*trials[1::2] if late else trials)
    known.update(trials)
    mark = last_mark(400, 10, lambda row: max(ended[: row + 1]) - row)
    assert known.objective(0, 10).mark == mark
    assert mark != last_mark(400, 10)


def test_marks_of_failing_wait_for_as_many_trials_as_are_running() -> None:
    """400 trials begun together, of which every tenth fails: a fit for each would serve few suggestions."""
    ended = [*range(0, 400, 2), *range(1, 400, 2)]
    known, marks = history(), set[int]()
    for place, number in enumerate(ended[:200]):
        known.update([trial(number, FAIL if place % 10 == 5 else COMPLETE, end=float(place))])
        marks |= {known.failing().mark} if place >= 5 else set()
    assert sorted(marks) == [6, 12, 25, 46, 98]  # that of 5 failures, 46, comes before that of twice the rows


def test_marks_of_failing_are_each_fifteen_percent_after_the_one_before_in_rows_or_failures() -> None:
    known, marks = history(), set[int]()
    for number in range(200):
        known.update([trial(number, FAIL if number % 50 == 10 else COMPLETE)])
        marks |= {known.failing().mark} if number >= 10 else set()
    assert {11, 61, 111, 161} < marks
    for a, b in pairwise(sorted(marks)):
        assert b == min(n for n in (11, 61, 111, 161, next_mark(a, 0)) if n > a)


WIDE = bo.Space.parse({"x": (0.0, 3.0), "new": ["u", "v"]})


@pytest.mark.parametrize("method", ["_merge", "_void", "_take_all", "_take"])
@pytest.mark.parametrize("change", ["problem", "trials"])
def test_a_change_that_was_interrupted_is_begun_anew(change: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    late = Evaluation(2, COMPLETE, {"x (float)": 2.0, "new of ('u', 'v')": 1.0}, WIDE, (0.5, 2), (5.0,))

    def made(known: History) -> History:
        if change == "problem":
            known.set_problem(Problem((-1.0,), space=WIDE))
        else:
            known.update([late])
        return known

    def interrupted(self: History, *_: object) -> None:
        raise KeyboardInterrupt

    known, expected = history(trial(0), trial(1)), made(history(trial(0), trial(1)))
    with monkeypatch.context() as patch:
        patch.setattr(History, method, interrupted)
        with pytest.raises(KeyboardInterrupt):
            made(known)
    made(known)
    assert known.encoding == expected.encoding
    assert torch.equal(known.X, expected.X)
    assert known.objective(0, 1).y.tolist() == expected.objective(0, 1).y.tolist()
