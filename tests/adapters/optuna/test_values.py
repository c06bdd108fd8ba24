"""Return values of an objective: infinite, failed, pruned, constrained and several."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optuna
import pytest
import torch
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import TrialState

from bkbopt.adapters.optuna import BKBSampler
from bkbopt.adapters.optuna.columns import evaluation_of
from bkbopt.search.criteria.pareto import Improvement
from tests.sweeps import slow_but

Objective = Callable[[optuna.Trial], Any]


def new_study(direction: str = "minimize", **options: Any) -> optuna.Study:
    sampler = BKBSampler(**{"seed": 0, "n_startup_trials": 5, **options})
    return optuna.create_study(direction=direction, sampler=sampler)


def several(directions: Sequence[str], sampler: BaseSampler | None = None) -> optuna.Study:
    return optuna.create_study(directions=directions, sampler=sampler or BKBSampler(seed=0, n_startup_trials=5))


def share(trials: Sequence[Any], where: Callable[[dict[str, Any]], bool]) -> float:
    return float(np.mean([where(trial.params) for trial in trials]))


def n_distinct(study: optuna.Study) -> int:
    return len({tuple(sorted(trial.params.items())) for trial in study.trials})


def bowl(trial: optuna.Trial) -> float:
    """Best, 0, at (0.2, 0.6)."""
    return (trial.suggest_float("x", 0.0, 1.0) - 0.2) ** 2 + (trial.suggest_float("y", 0.0, 1.0) - 0.6) ** 2


def test_infinitely_poor_values_keep_the_search_away() -> None:
    for direction, sign in (("minimize", 1.0), ("maximize", -1.0)):
        study = new_study(direction)
        study.optimize(lambda t, sign=sign: sign * (math.inf if bowl(t) > 0.3 else bowl(t)), n_trials=30)
        assert any(math.isinf(trial.value) for trial in study.trials)
        assert share(study.trials[15:], lambda p: (p["x"] - 0.2) ** 2 + (p["y"] - 0.6) ** 2 <= 0.3) > 0.6
        assert abs(study.best_value) < 0.01


@pytest.mark.parametrize("best", [-math.inf, -1e300])
def test_infinitely_good_values_do_no_harm(best: float) -> None:
    study = new_study()
    study.optimize(lambda trial: best if trial.number in (2, 7) else bowl(trial), n_trials=3)
    study.optimize(lambda trial: min(bowl(trial), best if trial.number == 7 else math.inf), n_trials=12)
    assert study.best_value == best


@pytest.mark.parametrize(
    "values",
    [
        [math.inf],
        [-math.inf],
        [math.inf, -math.inf],
        [math.inf, 1.0],
        [0.0],
        [3.5],
        [1e300, -1e300],
        [1.7e308, -1.7e308, 0.0],
        [1e300, 1.0, 2.0],
        [1e-300, 2e-300, 0.0],
        [5e-324, 0.0],
        [1.0, 1.0 + 1e-15],
        [-0.0, 0.0],
    ],
    ids=str,
)
@pytest.mark.parametrize("n_objectives", [1, 2])
def test_a_study_survives_values_of_any_size(values: list[float], n_objectives: int) -> None:
    study = several(["minimize"] * n_objectives)
    for number in range(10):
        trial = study.ask()
        x, n = trial.suggest_float("x", 0.0, 1.0), trial.suggest_int("n", 0, 5)
        assert 0.0 <= x <= 1.0
        assert 0 <= n <= 5
        study.tell(trial, [values[(number + k) % len(values)] for k in range(n_objectives)])
    assert n_distinct(study) >= 7  # what may be noise may be tried again


def test_the_scale_of_the_values_does_not_matter() -> None:
    runs = []
    for scale in (1.0, 2.0**200, 2.0**-200):
        study = new_study()
        study.optimize(lambda trial, scale=scale: scale * bowl(trial), n_trials=15)
        runs.append([trial.params for trial in study.trials])
    assert runs[0] == runs[1] == runs[2]  # powers of two are exact


def test_nan_fails_the_trial_and_the_study_goes_on() -> None:
    study = new_study()
    study.optimize(lambda trial: math.nan if bowl(trial) < 0.0 or trial.number % 3 == 1 else bowl(trial), n_trials=24)
    states = [trial.state for trial in study.trials]
    assert states.count(TrialState.FAIL) == 8
    assert study.best_value < 0.02


def on_a_line(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 0.0, 1.0)
    if x > 0.6:
        raise ValueError
    return -x


def beyond_an_edge(trial: optuna.Trial) -> float:
    x, y = (trial.suggest_float(name, 0.0, 1.0) for name in "xy")
    if x > 0.6:
        raise ValueError
    return (x - 0.9) ** 2 + (y - 0.3) ** 2


def below_a_line(trial: optuna.Trial) -> float:
    x, y = (trial.suggest_float(name, 0.0, 1.0) for name in "xy")
    if x + y > 1.2:
        raise ValueError
    return -x - y


@pytest.mark.slow  # the optimizer's search for an edge is in tests/search/criteria/test_criterion.py
@pytest.mark.parametrize(
    ("crashes", "best", "seeds"),
    [(on_a_line, -0.6, [0]), pytest.param(beyond_an_edge, 0.09, range(4), marks=pytest.mark.slow)],
)
def test_a_search_for_an_edge_beyond_which_runs_crash_spends_about_half_of_its_trials_there_at_most(
    crashes: Callable[[optuna.Trial], float], best: float, seeds: Sequence[int]
) -> None:
    n_failed = []
    for seed in seeds:
        study = new_study(seed=seed)
        study.optimize(crashes, n_trials=60, catch=(ValueError,))
        failed = [trial.params for trial in study.trials if trial.state == TrialState.FAIL]
        assert len({tuple(params.values()) for params in failed}) == len(failed)
        assert study.best_value < best + 0.005
        n_failed.append(len(failed))
    # All improvements lie at the edge, on which half of the trials fail: single seeds have 22 to 34 failures of 60.
    assert sum(n_failed) <= 0.5 * 60 * len(n_failed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_an_edge_across_the_axes_is_found(seed: int) -> None:
    study = new_study(seed=seed)
    study.optimize(below_a_line, n_trials=60, catch=(ValueError,))
    assert study.best_value < -1.19


@pytest.mark.parametrize("seed", slow_but([0], range(3)))
def test_the_cell_of_a_grid_that_fails_is_tried_once(seed: int) -> None:
    def fails_at_its_best(trial: optuna.Trial) -> float:
        a, b = (trial.suggest_int(name, 0, 4) for name in "ab")
        if (a, b) == (2, 2):
            raise ValueError
        return float((a - 2) ** 2 + (b - 2) ** 2)

    study = new_study(seed=seed)
    study.optimize(fails_at_its_best, n_trials=60, catch=(ValueError,))
    assert sum(trial.state == TrialState.FAIL for trial in study.trials) == 1
    assert study.best_value == 1.0


@pytest.mark.parametrize("n_startup_trials", [0, 5])
def test_a_study_in_which_everything_fails_goes_on_searching(n_startup_trials: int) -> None:
    study = new_study(n_startup_trials=n_startup_trials)

    def objective(trial: optuna.Trial) -> float:
        bowl(trial)
        raise ZeroDivisionError

    study.optimize(objective, n_trials=15, catch=(ZeroDivisionError,))
    assert {trial.state for trial in study.trials} == {TrialState.FAIL}
    assert n_distinct(study) == 15


#: What a pruned trial reports; where the early step looks good, the pruner knew better.
REPORTS: dict[str, Callable[[optuna.Trial], None]] = {
    "no value": lambda trial: None,
    "a poor value": lambda trial: trial.report(5.0, step=1),
    "NaN": lambda trial: trial.report(math.nan, step=1),
    "infinite": lambda trial: trial.report(math.inf, step=1),
    "a good value": lambda trial: trial.report(-3.0, step=0),
}


@pytest.mark.parametrize("name", slow_but(["no value", "NaN", "a good value"], REPORTS))
def test_pruned_trials_keep_the_search_away(name: str) -> None:
    study = new_study()

    def objective(trial: optuna.Trial) -> float:
        value = bowl(trial)
        if trial.params["x"] > 0.6:
            REPORTS[name](trial)
            raise optuna.TrialPruned
        return value

    study.optimize(objective, n_trials=36)
    assert any(trial.state == TrialState.PRUNED for trial in study.trials)
    # Who ignores what was pruned finds that part unexplored for ever; at random it would get 40 %.
    assert share(study.trials[18:], lambda p: p["x"] > 0.6) < 1 / 3
    assert min(trial.value for trial in study.get_trials(states=[TrialState.COMPLETE])) < 0.01


def test_pruned_and_complete_trials_keep_their_intermediate_values() -> None:
    reported = {0: 1.0, 7: 3.0, 2: 9.0}
    for state, value, kept in ((TrialState.PRUNED, None, reported), (TrialState.COMPLETE, 1.0, reported)):
        trial = optuna.trial.create_trial(state=state, value=value, intermediate_values=reported)
        assert evaluation_of(trial).curve == kept


def test_pruned_trials_do_not_distort_the_recommended_mean_and_deviation() -> None:
    # Early values are 10 above the final ones: as substitutes for final values they would be far off.
    study = optuna.create_study(
        sampler=BKBSampler(seed=0, n_startup_trials=5), pruner=optuna.pruners.MedianPruner(n_warmup_steps=1)
    )

    def objective(trial: optuna.Trial) -> float:
        final = bowl(trial)
        for step in range(5):
            trial.report(final + 10.0 * 0.1**step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return final

    study.optimize(objective, n_trials=40)
    assert sum(trial.state == TrialState.PRUNED for trial in study.trials) >= 5
    best = study.sampler.recommend(study)
    assert abs(best.mean - study.best_value) < 0.01
    assert best.std < 0.05


@pytest.mark.parametrize("n_startup_trials", [0, 5])
def test_a_study_in_which_everything_is_pruned_goes_on_searching(n_startup_trials: int) -> None:
    study = new_study(n_startup_trials=n_startup_trials)

    def objective(trial: optuna.Trial) -> float:
        trial.report(bowl(trial), step=1)
        raise optuna.TrialPruned

    study.optimize(objective, n_trials=15)
    assert {trial.state for trial in study.trials} == {TrialState.PRUNED}
    assert n_distinct(study) == 15


def test_pruning_works_with_optunas_pruner() -> None:
    sampler = BKBSampler(seed=0, n_startup_trials=5)
    study = optuna.create_study(sampler=sampler, pruner=optuna.pruners.MedianPruner(n_startup_trials=3))

    def objective(trial: optuna.Trial) -> float:
        final = bowl(trial)
        for step in range(4):
            trial.report(final + 1.0 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return final

    study.optimize(objective, n_trials=30)
    assert any(trial.state == TrialState.PRUNED for trial in study.trials)
    assert study.best_value < 0.02


def constrained(trial: optuna.Trial) -> float:
    """Best at (0.5, 0.5), with 0.18; without the constraint at (0.8, 0.8)."""
    x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
    trial.set_constraint("budget", x + y - 1.0)
    return (x - 0.8) ** 2 + (y - 0.8) ** 2


def test_the_constrained_optimum_is_found() -> None:
    study = new_study()
    study.optimize(constrained, n_trials=40)
    feasible = [trial.value for trial in study.trials if trial.constraints["budget"] <= 0.0]
    # The quarter of the square that is at least as good has an area of about 0.001.
    assert 0.18 <= min(feasible) < 0.2
    assert study.best_value == min(feasible)
    assert study.best_trial.params == pytest.approx({"x": 0.5, "y": 0.5}, abs=0.15)


def test_a_small_feasible_region_is_found_by_its_constraint() -> None:
    study = new_study()

    def objective(trial: optuna.Trial) -> float:
        trial.set_constraint("near", (bowl(trial)) ** 0.5 - 0.08)
        return -trial.params["x"]

    study.optimize(objective, n_trials=40)
    # The region has an area of 0.02: at random one trial in 50 lies in it. The optimum lies on its edge.
    assert sum(trial.constraints["near"] < 0.01 for trial in study.trials) >= 5
    assert -0.28 <= min(trial.value for trial in study.trials if trial.constraints["near"] <= 0.0) < -0.26


@pytest.mark.slow  # each of them is a quantity like the one above
def test_several_constraints_hold_together() -> None:
    study = new_study("maximize")

    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        trial.set_constraint("x", x - 0.4)
        trial.set_constraint("y", 1e6 * (y - 0.7))  # units of a constraint do not matter
        return x + y

    study.optimize(objective, n_trials=40)
    feasible = [trial.value for trial in study.trials if max(trial.constraints.values()) <= 0.0]
    assert 1.0 < max(feasible) <= 1.1


def test_trials_without_constraints_are_tolerated() -> None:
    study = new_study()
    study.optimize(bowl, n_trials=4)
    study.optimize(constrained, n_trials=4)

    def objective(trial: optuna.Trial) -> float:
        if trial.number % 2:
            trial.set_constraint("another", -1.0)
        return bowl(trial) if trial.number % 3 else constrained(trial)

    study.optimize(objective, n_trials=12)
    assert {len(trial.constraints) for trial in study.trials} >= {0, 1, 2}
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)


@pytest.mark.parametrize("violation", [1.0, 1e-300, 1e300, math.inf])
def test_a_study_without_a_feasible_trial_goes_on(violation: float) -> None:
    study = new_study()

    def objective(trial: optuna.Trial) -> float:
        trial.set_constraint("never", violation)
        return bowl(trial)

    study.optimize(objective, n_trials=15)
    assert n_distinct(study) >= 12  # what may be noise may be tried again


def test_pruned_trials_may_have_constraints() -> None:
    study = new_study()

    def objective(trial: optuna.Trial) -> float:
        value = constrained(trial)
        if trial.number % 4 == 3:
            raise optuna.TrialPruned
        return value

    study.optimize(objective, n_trials=24)
    feasible = [t.value for t in study.get_trials(states=[TrialState.COMPLETE]) if t.constraints["budget"] <= 0.0]
    assert min(feasible) < 0.25


def hypervolume(points: Sequence[Sequence[float]], reference: Sequence[float]) -> float:
    """Of two objectives to be minimized: the area that the points dominate below the reference."""
    area, height = 0.0, reference[1]
    for first, second in sorted(tuple(point) for point in points):
        if first < reference[0] and second < height:
            area += (reference[0] - first) * (height - second)
            height = second
    return area


def two_bowls(trial: optuna.Trial) -> tuple[float, float]:
    """A front between (0.2, 0.2, 0.2) and (0.8, 0.8, 0.8)."""
    point = np.array([trial.suggest_float(name, 0.0, 1.0) for name in "xyz"])
    return float(((point - 0.2) ** 2).sum()), float(((point - 0.8) ** 2).sum())


@pytest.mark.slow  # the optimizer's front is in tests/optimizer/test_several_objectives.py
def test_the_hypervolume_of_two_objectives_is_larger_than_at_random() -> None:
    def mean_of(sampler: Callable[[int], BaseSampler]) -> float:
        found = []
        for seed in range(2):
            study = several(["minimize"] * 2, sampler(seed))
            study.optimize(two_bowls, n_trials=35)
            found.append(hypervolume([trial.values for trial in study.trials], (1.2, 1.2)))
        return float(np.mean(found))

    front = [3 * (t - np.array([0.2, 0.8])) ** 2 for t in np.linspace(0.2, 0.8, 1001)]
    best = hypervolume(front, (1.2, 1.2))
    missed = [
        best - mean_of(sampler)
        for sampler in (lambda seed: BKBSampler(seed=seed, n_startup_trials=8), lambda seed: RandomSampler(seed=seed))
    ]
    assert 0.0 < missed[0] < 0.5 * missed[1]


def test_each_objective_has_its_own_direction() -> None:
    first, second = several(["minimize", "minimize"]), several(["minimize", "maximize"])
    first.optimize(two_bowls, n_trials=14)

    def flipped(trial: optuna.Trial) -> tuple[float, float]:
        one, other = two_bowls(trial)
        return one, -other

    second.optimize(flipped, n_trials=14)
    assert [trial.params for trial in first.trials] == [trial.params for trial in second.trials]


def test_three_objectives_are_searched() -> None:
    def objective(trial: optuna.Trial) -> tuple[float, ...]:
        point = np.array([trial.suggest_float(name, 0.0, 1.0) for name in "xy"])
        return tuple(float(((point - corner) ** 2).sum()) for corner in ([0, 0], [1, 0], [0, 1]))

    study = several(["minimize"] * 3)
    study.optimize(objective, n_trials=25)
    # The front is the triangle of the three corners, half of the square.
    assert share(study.trials[12:], lambda p: p["x"] + p["y"] <= 1.05) > 0.6


def test_the_fronts_of_many_objectives_are_cut_so_that_their_cells_stay_few() -> None:
    for k in range(2, 10):
        F = torch.as_tensor(np.random.default_rng(k).random((40, k)))
        improvement = Improvement.over(F)
        assert len(improvement.front) <= 40
        assert improvement.cells.shape[1] <= 400
        assert bool(torch.isfinite(improvement(F)).all())


def test_objectives_may_be_constrained() -> None:
    def objective(trial: optuna.Trial) -> tuple[float, float]:
        values = two_bowls(trial)
        trial.set_constraint("x", 0.5 - trial.params["x"])
        return values

    study = several(["minimize"] * 2)
    study.optimize(objective, n_trials=30)
    assert share(study.trials[12:], lambda p: p["x"] >= 0.45) > 0.6
    assert len(study.best_trials) >= 3


def test_pruned_failed_and_infinite_trials_of_several_objectives_are_survived() -> None:
    study = several(["minimize", "maximize"])

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        first, second = two_bowls(trial)
        if trial.number % 5 == 1:
            raise optuna.TrialPruned
        if trial.number % 5 == 2:
            return math.nan, second
        if trial.number % 5 == 3:
            return math.inf, -math.inf
        return first, -second

    with warnings.catch_warnings():
        # Optuna itself subtracts infinities when it sorts such values.
        warnings.simplefilter("ignore", RuntimeWarning)
        study.optimize(objective, n_trials=20)
    assert len(study.trials) == 20
    assert n_distinct(study) >= 16  # what may be noise may be tried again
