"""Suggestions are a function of problem, options, seed and log, to the last bit, whatever the history."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import bkbopt as bo
from bkbopt.errors import SpaceExhaustedError
from bkbopt.search import choosing
from bkbopt.search import designer as designers
from bkbopt.search.choosing import LARGE_BATCH
from bkbopt.search.criteria.acquisition import UCB
from bkbopt.search.criteria.criterion import rule_of
from bkbopt.search.designer import Designer
from bkbopt.search.maximizers.pool import PoolMaximizer
from bkbopt.search.options import Options
from bkbopt.search.quantities import quantity
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.search.quantities.quantity import Quantity
from bkbopt.search.trials.evaluations import Evaluation, Problem
from bkbopt.search.trials.history import History
from bkbopt.search.trials.states import RUNNING
from bkbopt.spaces.pool import Pool
from bkbopt.surrogates.base import SurrogateBase as Surrogate
from tests.search.logs import ARMS, PROBLEMS, Case, arrivals, points, pool_of, random_log, read
from tests.sweeps import slow_but, sweep

SURROGATES: dict[str, Any] = {
    "bkb": bo.BKB,
    "bkb with a small dictionary": lambda: bo.BKB(max_inducing=8),
    "bkb, a draw at every step": lambda: bo.BKB(resample="every"),
    "exact": bo.ExactGP,
    "fourier": bo.FourierGP,
    "learner": lambda: bo.LearnerSurrogate(learner="pkawv"),
}


def mean_plus_sd(mean: Any, variance: Any) -> Any:
    """A user's own acquisition function."""
    return UCB(1.0)(mean, variance)


ACQUISITIONS: dict[str, Any] = {"ucb": "ucb", "logei": "logei", "thompson": "thompson", "callable": mean_plus_sd}
#: Random features are those of numeric columns.
NUMERIC = ("floats", "arms")


def follow(case: Case, n: int, seed: int, late: bool) -> None:
    """Hand a random log to a designer in pieces, and compare it now and then with one that meets it whole."""
    rng = np.random.default_rng(seed)
    log = random_log(case, n, rng)
    pieces = list(arrivals(log, rng, late))
    follower, seen = case.designer(), dict[int, Evaluation]()
    for i, piece in enumerate(pieces):
        follower.update(piece)
        for evaluation in piece:
            if evaluation.number not in seen or seen[evaluation.number].state == RUNNING:
                seen[evaluation.number] = evaluation
        if rng.random() < 0.4:
            read(case, follower, rng)
        last = i == len(pieces) - 1
        if last or rng.random() < 0.4:
            number, count = int(rng.integers(n, n + 200)), int(rng.integers(1, 4))
            suggested = case.suggestions(follower, number, count)
            if last or rng.random() < 0.2:
                fresh, trials = case.designer(), list(seen.values())
                fresh.update(trials[j] for j in rng.permutation(len(trials)))
                assert case.suggestions(fresh, number, count) == suggested
                assert case.suggestions(follower, number, count) == suggested


@pytest.mark.parametrize(("name", "surrogate", "acquisition"), sweep(PROBLEMS, SURROGATES, ACQUISITIONS))
def test_a_designer_that_followed_the_log_suggests_the_same_as_one_that_reads_it_at_once(
    name: str, surrogate: str, acquisition: str
) -> None:
    if surrogate == "fourier" and name not in NUMERIC:
        name = NUMERIC[name == "table"]
    options = {"rule": rule_of(ACQUISITIONS[acquisition])}
    follow(Case(name, surrogate=SURROGATES[surrogate](), options=options), 14, len(name), late=True)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    name = draw(st.sampled_from(list(PROBLEMS)))
    several = draw(st.integers(0, 3)) == 0
    options = {
        "rule": rule_of(ACQUISITIONS[draw(st.sampled_from(list(ACQUISITIONS)))]),
        "avoid_duplicates": draw(st.booleans()),
        "repeat_when_exhausted": True,
        "n_startup_trials": draw(st.sampled_from([1, 3, 10])),
    }
    return Case(
        name,
        signs=(1.0, -1.0) if several else (draw(st.sampled_from([-1.0, 1.0])),),
        constraints=("heat", "weight") if draw(st.booleans()) else (),
        options=options,
        feasible=draw(st.booleans()),
        known_noise=draw(st.booleans()),
        hostile=draw(st.booleans()),
        partly=several and draw(st.booleans()),
    )


@pytest.mark.parametrize("name", ["floats", "mixed", "conditional"])
def test_the_law_holds_where_many_trials_are_running(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "LARGE_BATCH", 2)
    follow(Case(name), 18, seed=3, late=True)


@pytest.mark.parametrize("seed", slow_but([1, 2], range(6)))
@pytest.mark.parametrize("name", slow_but(["floats", "arms"], PROBLEMS))
def test_the_law_holds_where_models_follow_from_anchors(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "LARGE_BATCH", 2)
    monkeypatch.setattr(designers, "MANY", 2)
    monkeypatch.setattr(quantity, "BETWEEN_ANCHORS", 3)
    case = Case(name, constraints=("heat",) if seed % 3 == 2 else (), known_noise=seed % 2 == 1)
    follow(case, 18 + 6 * seed, seed, late=True)


@pytest.mark.parametrize("count", [1, 5])
def test_a_batch_is_the_same_in_one_call_and_in_several_and_from_a_cold_designer(count: int) -> None:
    space = bo.Space.parse({"x": (0.0, 1.0), "y": (0.0, 1.0), "z": (0.0, 1.0)})
    trials, batch = along(space, 20), 2 * LARGE_BATCH
    warm, cold = (designer(Problem(space=space)) for _ in range(2))
    warm.update(trials)
    whole = [s.point for s in warm.suggest(batch, number=20)]
    parts: list[Evaluation] = []
    while len(parts) < batch:
        for suggestion in warm.suggest(count, number=20 + len(parts)):
            parts.append(Evaluation(suggestion.number, RUNNING, suggestion.point, space, n_values=20))
        warm.update(parts)
    assert [e.point for e in parts] == whole
    cold.update([*trials, *parts[:-1]])
    assert cold.suggest(number=20 + batch - 1)[0].point == whole[-1]


def test_with_a_constraint_each_suggestion_of_a_large_batch_is_that_of_a_cold_designer() -> None:
    """Greedy and other suggestions order the random points that they share by different criteria."""
    space = bo.Space.parse({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    problem, trials = Problem(space=space), along(space, 8)
    trials = [replace(trial, constraints={"heat": trial.point["x (float)"] - 0.7}) for trial in trials]
    warm, running = designer(problem), list[Evaluation]()
    warm.update(trials)
    for number in range(20, 20 + 2 * LARGE_BATCH):
        suggested = warm.suggest(number=number)[0].point
        if len(running) >= LARGE_BATCH:
            cold = designer(problem)
            cold.update([*trials, *running])
            assert cold.suggest(number=number)[0].point == suggested
        running.append(Evaluation(number, RUNNING, suggested, space))
        warm.update(running[-1:])


# The histories are short; to shrink one that fails would take minutes.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
SEEDS = st.integers(0, 10**6)


@settings(max_examples=6, phases=PHASES)
@given(case=cases(), seed=SEEDS, n=st.integers(4, 20), late=st.booleans())
def test_the_law_holds_on_random_problems_and_histories(case: Case, seed: int, n: int, late: bool) -> None:
    follow(case, n, seed, late)


@pytest.mark.slow
@settings(max_examples=300, phases=PHASES)
@given(case=cases(), seed=SEEDS, n=st.integers(4, 60), late=st.booleans(), large=st.sampled_from([2, LARGE_BATCH]))
def test_the_law_holds_on_many_random_problems_and_histories(
    case: Case, seed: int, n: int, late: bool, large: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "LARGE_BATCH", large)
        follow(case, n, seed, late)


def finished(number: int, point: Any, space: bo.Space | None, value: float | None = None) -> Evaluation:
    values = () if value is None else (value,)
    return Evaluation(number, "FAIL" if value is None else "COMPLETE", point, space, (float(number), number), values)


def designer(problem: Problem, **options: Any) -> Designer:
    return Designer(problem, Options(ModelOptions(bo.BKB()), **{"n_startup_trials": 3, **options}), seed=0)


def along(space: bo.Space, n: int, first: int = 0) -> list[Evaluation]:
    """Trials at random points of a space of floats."""
    U = space.sample(n, np.random.default_rng(first))
    rows = space.internal(space.decode(U))
    return [finished(first + i, row, space, sum(math.sin(3.0 * v) for v in row.values())) for i, row in enumerate(rows)]


@pytest.mark.parametrize("when", ["before any trial", "after failures", "after values"])
def test_a_space_that_was_replaced_counts_only_through_its_trials(when: str) -> None:
    wide, narrow = (bo.Space.parse({"x": (-9.0, 9.0), "y": (0.0, high)}) for high in (5.0, 1.0))
    narrow = bo.Space.parse({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    before = {
        "before any trial": [],
        "after failures": [finished(100 + i, {"x (float)": 8.0, "y (float)": 4.0 - i}, wide) for i in range(2)],
        "after values": along(wide, 4, 100),
    }[when]
    after = along(narrow, 8)
    moved, fresh = designer(Problem(space=wide)), designer(Problem(space=narrow))
    moved.update(before)
    moved.suggest(2)
    moved.set_problem(Problem(space=narrow))
    moved.suggest(1)
    moved.update(after)
    fresh.update([*after, *before])
    for number in (200, 201):
        assert points(moved.suggest(2, number=number)) == points(fresh.suggest(2, number=number))


def test_a_pool_that_was_replaced_counts_only_through_its_trials() -> None:
    first = pool_of(ARMS)
    second = first.replaced(Pool(ARMS[::-2] * 1.1))
    moved, fresh = designer(Problem(pool=first)), designer(Problem(pool=second))
    log = [finished(i, first.point(7 * i), None, math.sin(i)) for i in range(12)]
    moved.update(log[:6])
    moved.suggest(2)
    moved.set_problem(Problem(pool=second))
    moved.suggest(2)
    moved.update(log[6:])
    fresh.update(log)
    assert points(moved.suggest(4)) == points(fresh.suggest(4))


def test_equal_spaces_are_one_space() -> None:
    spec = {"kind": ["a", "b"], "x": bo.Float(0.0, 1.0, step=0.1, when={"kind": "a"}), "y": (0.0, 1.0)}
    one, other = bo.Space.parse(spec), bo.Space.parse(spec)
    assert one is not other
    followers = [designer(Problem(space=one)) for _ in range(2)]
    for i, follower in enumerate(followers):
        row = [{"kind of ('a', 'b')": 0.0, "x (float)": 0.1 * j, "y (float)": 0.2 * j} for j in range(5)]
        follower.update(finished(j, point, (one, other)[i], float(j % 3)) for j, point in enumerate(row))
    assert followers[0].history.encoding == followers[1].history.encoding
    assert points(followers[0].suggest(3)) == points(followers[1].suggest(3))


@pytest.mark.parametrize("rule", slow_but(["ucb"], ["ucb", "thompson"]))
def test_remembered_results_of_the_constraint_on_points_change_no_suggestion(rule: str) -> None:
    # Hardly any arm is feasible, so that random draws fail, and the search meets many arms that are not.
    few = Problem(
        pool=pool_of(np.random.default_rng(0).random((600, 2))), feasible=lambda point: hash(point["x0"]) % 60 == 0
    )
    knows, fresh = designer(few, rule=rule_of(rule)), designer(few, rule=rule_of(rule))
    pool = few.pool
    assert pool is not None
    log = [finished(i, pool.point(i), None, math.sin(i)) for i in range(8)]
    for until in (0, 2, 5, 8):
        knows.update(log[:until])
        knows.suggest(3, number=50 + until)
    fresh.update(log)
    assert points(knows.suggest(4, number=80)) == points(fresh.suggest(4, number=80))


def test_a_constraint_that_raises_has_said_nothing_of_the_point() -> None:
    calls = []

    def feasible(point: Any) -> bool:
        calls.append(point)
        if len(calls) == 1:
            raise OSError("The disk is full.")
        return False

    pool = pool_of(np.random.default_rng(0).random((20, 2)))
    mine = designer(Problem(pool=pool, feasible=feasible), avoid_duplicates=True)
    with pytest.raises(OSError, match="full"):
        mine.suggest()
    with pytest.raises(SpaceExhaustedError):
        mine.suggest()


@pytest.mark.parametrize(
    ("name", "owner", "method"),
    [
        ("changing", History, "_take"),
        ("changing", History, "_widen"),
        ("arms", Quantity, "follow"),
        ("arms", PoolMaximizer, "_refine"),
        ("changing", Surrogate, "observe"),
        pytest.param("arms", History, "_take", marks=pytest.mark.slow),
        pytest.param("changing", Quantity, "follow", marks=pytest.mark.slow),
        pytest.param("arms", Surrogate, "observe", marks=pytest.mark.slow),
    ],
)
def test_interrupted_calls_start_again(name: str, owner: type, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(name, hostile=name != "arms")  # where trials fail, pools are scored without bounds of their own
    log = random_log(case, 20, np.random.default_rng(3))
    mine, fresh = case.designer(), case.designer()
    mine.update(log[:12])
    case.suggestions(mine, 40)
    real, interruptions = getattr(owner, method), 0
    for after in range(4):
        left = [after]

        def interrupted(self: Any, *args: Any, left: list[int] = left, **options: Any) -> Any:
            result = real(self, *args, **options)
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return result

        with monkeypatch.context() as patch:
            patch.setattr(owner, method, interrupted)
            try:
                mine.update(log)
                case.suggestions(mine, 50 + after)
            except KeyboardInterrupt:
                interruptions += 1
    assert interruptions, "the method is not part of a suggestion here"
    mine.update(log)
    fresh.update(log)
    assert case.suggestions(mine, 60) == case.suggestions(fresh, 60)


def test_a_test_for_noise_does_not_change_which_of_two_equal_rows_is_asked_for() -> None:
    without = (9, 5, 6)

    def made() -> bo.Optimizer:
        rows = [[i // 2 / 7] for i in range(16)]
        opt = bo.Optimizer(rows, constraints=["c"], duplicates="avoid", seed=46, n_startup_trials=3)
        for row in (9, 5, 12, 6, 1, 10, 14, 8):
            opt.enqueue({"index": row})
            value = None if row in without else (rows[row][0] - 0.45) ** 2
            opt.tell(opt.ask(), value, constraints={"c": -1.0})
        return opt

    tested, fresh = made(), made()
    tested._core.update()
    assert not tested._core.designer.models.objectives[0].noisiness.is_noisy()
    assert tested.ask().index == fresh.ask().index


def test_a_trial_without_parameters_is_no_trial() -> None:
    case = Case("changing", hostile=False)
    log = random_log(case, 20, np.random.default_rng(0))
    mine, fresh = case.designer(), case.designer()
    mine.update([Evaluation(90, RUNNING, {}), *log])
    case.suggestions(mine, 95)
    mine.update([Evaluation(90, "FAIL", {}, order=(50.0, 90))])
    fresh.update(log)
    assert case.suggestions(mine, 99) == case.suggestions(fresh, 99)
