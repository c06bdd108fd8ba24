"""Penalties: which values stand for failures, and that the search treats them as failures."""

import logging
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import bkbopt as bo
from bkbopt.kernels import rbf
from bkbopt.search.designer import Designer
from bkbopt.search.options import Options
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.search.trials.evaluations import Evaluation, Problem
from bkbopt.search.trials.history import History
from bkbopt.search.trials.penalties import FIRST, Penalties, largest_penalty
from bkbopt.search.trials.states import COMPLETE, FAIL

SPACE = bo.Space.parse({"x": (0.0, 1.0), "y": (0.0, 1.0)})
GOOD = [0.1, 0.4, 0.7, 1.1]
NONE = -math.inf


def found(values: Sequence[float], at: Sequence[float] | None = None) -> float:
    """The penalty among values of which larger ones are better, at points that are all different by default."""
    return largest_penalty(values, [{"x": x} for x in (range(len(values)) if at is None else at)])


def test_a_repeated_value_far_below_all_others_is_a_penalty() -> None:
    assert found([*GOOD, -100.0, -100.0, -100.0]) == -100.0
    assert found([-1e308, 1e308, *GOOD, -1e308, -1e308]) == NONE  # the best value is as far from the others
    assert found([-1.7e308, *GOOD, -1.7e308, -1.7e308]) == -1.7e308


def test_of_several_penalties_the_best_one_is_the_limit() -> None:
    assert found([*GOOD, -100.0, -100.0, -100.0, -1e6, -1e6, -1e6, -4567.0]) == -100.0


@pytest.mark.parametrize(
    "values",
    [
        [*GOOD, -100.0, -100.0],  # twice
        [*GOOD, -100.0, -101.0, -102.0],  # different
        [*GOOD, -1.8, -1.8, -1.8],  # not far: 1.9, and the others have a range of 1
        [0.1, 1.1, -100.0, -100.0, -100.0],  # two better values
        [1.0, 1.0, 1.0, 0.0, 0.0, 0.0],  # labels
        [5.0, 5.0, 4.9, 4.8, 4.9, 4.8, 5.0, 1.0, 1.0, 1.0],  # ratings
        [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 0.0, 0.0, 0.0],  # a floor that other values are near
        [math.inf, -math.inf, math.nan],
        [],
    ],
)
def test_other_values_are_none(values: Sequence[float]) -> None:
    assert found(values) == NONE


def test_values_of_one_point_and_outcomes_by_chance_are_no_penalties() -> None:
    values = [*GOOD, -100.0, -100.0, -100.0, -200.0]
    assert found(values, [0, 1, 2, 3, 4, 5, 6, 7]) == -100.0
    assert found(values, [0, 1, 2, 3, 4, 5, 5, 7]) == NONE  # two points with the penalty
    assert found(values, [0, 1, 2, 3, 4, 5, 6, 3]) == NONE  # a good value and a terrible one at one point


def evaluated(n: int, seed: int = 3, penalty: float = 1e10) -> list[Evaluation]:
    """Trials of a bowl to minimise, with a penalty where x > 0.6."""
    rng = np.random.default_rng(seed)
    trials = []
    for number, (x, y) in enumerate(rng.random((n, 2))):
        value = penalty if x > 0.6 else (x - 0.5) ** 2 + y + 0.01 * rng.standard_normal()
        point = {"x (float)": float(x), "y (float)": float(y)}
        trials.append(Evaluation(number, COMPLETE, point, SPACE, (float(number), number), (float(value),)))
    return trials


def as_failures(trials: Sequence[Evaluation], penalty: float = 1e10) -> list[Evaluation]:
    return [replace(e, state=FAIL, values=()) if e.values == (penalty,) else e for e in trials]


def suggestions(trials: Sequence[Evaluation], sign: float = -1.0) -> list[object]:
    designer = Designer(Problem((sign,), space=SPACE), Options(ModelOptions(bo.BKB()), n_startup_trials=5), 3)
    designer.update(trials)
    return [suggestion.point for suggestion in designer.suggest(3, number=100)]


@pytest.mark.parametrize("penalty", [1e10, 5.0, math.inf])
def test_suggestions_are_those_of_failed_trials(penalty: float) -> None:
    trials = evaluated(30, penalty=penalty)
    assert suggestions(trials) == suggestions(as_failures(trials, penalty))


def test_where_nothing_is_fitted_penalties_are_values() -> None:
    options = Options(ModelOptions(bo.BKB(rbf(2), noise=0.01), fit=False), n_startup_trials=5)
    designer = Designer(Problem(space=SPACE), options, 3)
    trials = evaluated(30, penalty=100.0)
    designer.update([*trials, replace(trials[0], number=30, order=(30.0, 30), values=(math.inf,))])
    assert (designer.history.n_failed, designer.history.n_complete) == (0, 31)
    assert float(designer.models.objectives[0].predict(designer.history.X)[0].max()) > 50.0


def test_suggestions_do_not_depend_on_the_direction() -> None:
    trials = evaluated(30)
    negated = [replace(e, values=(-e.values[0],)) for e in trials]
    assert suggestions(negated, 1.0) == suggestions(trials)


def history(*pieces: Sequence[Evaluation]) -> History:
    out = History(Problem(space=SPACE))
    for piece in pieces:
        out.update(piece)
    return out


def test_penalties_are_found_at_a_mark_and_trials_before_it_are_judged_again() -> None:
    trials = evaluated(FIRST)
    n_penalties = sum(e.values[0] == 1e10 for e in trials)
    assert n_penalties >= 3
    known = history(trials[:-1])
    assert (known.n_failed, known.n_complete, known.version) == (0, FIRST - 1, 0)
    known.update(trials[-1:])
    assert (known.n_failed, known.n_complete, known.version) == (n_penalties, FIRST - n_penalties, 1)
    assert known.objective(0, 1).y.max() < 1e10


def test_a_penalty_of_an_earlier_mark_remains_one() -> None:
    early = evaluated(FIRST, penalty=5.0)
    poor = [replace(e, values=(4.0 + 0.01 * e.number,)) for e in evaluated(30)[FIRST:]]  # near 5, and no penalties
    assert history(early, poor).n_failed == history([*early, *poor]).n_failed == sum(e.values[0] == 5.0 for e in early)
    assert history([*early[:4], *poor, *early[4:]]).n_failed == history(early, poor).n_failed  # in their order


def test_a_late_trial_may_show_that_penalties_came_by_chance() -> None:
    trials = evaluated(30)
    first = next(e for e in trials if e.values[0] == 1e10)
    late = replace(first, number=30, order=(0.5, 30), values=(0.3,))
    known = history(trials)
    assert known.n_failed > 0
    known.update([late])
    assert known.n_failed == history([*trials, late]).n_failed == 0


def test_penalties_are_those_of_the_log_after_a_late_trial_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = evaluated(30)
    first = next(e for e in trials if e.values[0] == 1e10)
    late = replace(first, number=30, order=(0.5, 30), values=(0.3,))
    known = history(trials)
    with monkeypatch.context() as patched:
        patched.setattr(Penalties, "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            known.update([late])
    known.update([late])
    assert known.n_failed == 0
    assert known.n_complete == 31


def interrupted(*_: object) -> bool:
    raise KeyboardInterrupt


def test_a_constraint_is_learnt_from_trials_with_penalties() -> None:
    trials = [replace(e, constraints={"cost": e.point["y (float)"] - 0.5}) for e in evaluated(20)]
    known = history(trials)
    assert known.n_failed > 0
    assert len(known.constraint("cost", 1).y) == 20


def test_ranges_are_learnt_from_trials_with_penalties() -> None:
    trials = evaluated(20)
    known = history(trials)
    before = known.parameters
    known.set_problem(Problem())
    assert known.parameters == before


def test_a_log_message_says_how_many_penalties_there_are(caplog: pytest.LogCaptureFixture) -> None:
    trials = evaluated(FIRST)
    with caplog.at_level(logging.INFO, logger="bkbopt"):
        history(trials)
    n = sum(e.values[0] == 1e10 for e in trials)
    assert caplog.messages == [f"values: {n} of {FIRST} are penalties, and are treated as failures."]


def test_penalties_of_trials_without_the_other_objective_count_as_failures() -> None:
    trials = [replace(e, values=(), partial=(e.values[0], math.nan)) for e in evaluated(14)]
    trials[2] = replace(trials[2], values=(trials[2].partial[0], 5.0), partial=())
    failed = [e.number for e in trials if e.measured[0] == 1e10]
    found = History(Problem((-1.0, -1.0), space=SPACE))
    found.update(trials)
    assert found.penalised == failed
    assert found.n_complete == 14 - len(failed)
    assert max(found.objective(0, 1).y) < 2.0


def test_values_that_are_not_measured_are_no_penalties() -> None:
    values = [-v for v in GOOD] + [100.0] * 3
    trials = [replace(e, values=(), partial=(v, math.nan)) for v, e in zip(values, evaluated(7), strict=True)]
    others = [replace(e, values=(), partial=(math.nan, float(e.number))) for e in evaluated(14)[7:]]
    found = History(Problem((-1.0, -1.0), space=SPACE))
    found.update([*trials, *others])
    assert found.penalised == [4, 5, 6]


def test_a_front_has_no_penalties() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, directions=["minimize", "maximize"], seed=0)
    n_late = 0
    for number in range(40):
        trial = opt.ask()
        x, y = trial.params["x"], trial.params["y"]
        fails = x + y > 1.2
        n_late += fails and number >= 20
        opt.tell(trial, [1e6, -1e6] if fails else [x**2 + y, x - y**2])
    # Random search has 6.4 of 20 on average. Five seeds had none.
    assert n_late == 0
