"""Every kind of parameter, changing ranges, and parameters that only some trials have."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial

from bkbopt.adapters.optuna import BKBSampler
from bkbopt.search.perturbations import Perturbations
from tests.sweeps import slow_but

Space = dict[str, BaseDistribution]
Objective = Callable[[optuna.Trial], float]
DISTRIBUTIONS: Space = {
    "float": FloatDistribution(-2.0, 3.0),
    "log float": FloatDistribution(1e-9, 1e3, log=True),
    "step float": FloatDistribution(-1.0, 1.0, step=0.25),
    "awkward step": FloatDistribution(0.1, 0.7, step=0.1),
    "tiny float": FloatDistribution(1e-300, 3e-300),
    "huge float": FloatDistribution(-1e300, 1e300),
    "narrow float": FloatDistribution(1e6, 1e6 + 1e-6),
    "int": IntDistribution(-3, 5),
    "log int": IntDistribution(1, 1000, log=True),
    "step int": IntDistribution(2, 20, step=3),
    "huge int": IntDistribution(0, 10**12),
    "ints beyond doubles": IntDistribution(-5, 2**63 - 1),
    "log ints beyond a grid": IntDistribution(1, 2**50, log=True),
    "ratio beyond doubles": FloatDistribution(1e-300, 1e300, log=True),
    "step below rounding": FloatDistribution(0.0, 1.0, step=1e-17),
    "two ints": IntDistribution(7, 8),
    "two ints of one double": IntDistribution(2**53, 2**53 + 1),
    "bool": CategoricalDistribution([False, True]),
    "mixed": CategoricalDistribution([None, True, 1.5, "x", -3]),
    "strings": CategoricalDistribution(["relu", "tanh", ""]),
    "many": CategoricalDistribution(list(range(30))),
    "infinite choice": CategoricalDistribution([float("inf"), 0.0]),
    "one float": FloatDistribution(0.3, 0.3),
    "one int": IntDistribution(4, 4, log=True),
    "one choice": CategoricalDistribution([None]),
}


def new_study(**options: Any) -> optuna.Study:
    return optuna.create_study(sampler=BKBSampler(**{"seed": 0, "n_startup_trials": 3, **options}))


def assert_inside(trial: FrozenTrial | optuna.Trial, space: Space) -> None:
    assert trial.params.keys() == space.keys()
    for name, distribution in space.items():
        value = trial.params[name]
        assert distribution._contains(distribution.to_internal_repr(value)), (name, value)
        assert not isinstance(value, np.generic)
        if isinstance(distribution, CategoricalDistribution):
            assert any(value is choice or (value == choice != 1) for choice in distribution.choices)
        else:
            assert type(value) is (int if isinstance(distribution, IntDistribution) else float)
            if distribution.step is not None:
                steps = (value - distribution.low) / distribution.step
                assert abs(steps - round(steps)) < 1e-8  # as good as decimal steps are in binary


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("n_startup_trials", slow_but([3], [0, 3]))  # three random trials, then three of the model
def test_a_parameter_alone_stays_inside_its_range(name: str, n_startup_trials: int) -> None:
    study, space = new_study(n_startup_trials=n_startup_trials), {name: DISTRIBUTIONS[name]}
    for number in range(6):
        trial = study.ask(space)
        assert_inside(trial, space)
        study.tell(trial, float(number % 3))


def test_all_parameters_together_stay_inside_their_ranges() -> None:
    study = new_study()
    for number in range(8):
        trial = study.ask(DISTRIBUTIONS)
        assert_inside(trial, DISTRIBUTIONS)
        study.tell(trial, trial.params["float"] ** 2 + number % 2)


def numbers(step: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any, Any]]:
    return st.tuples(st.integers(-50, 50), st.integers(0, 40), step)


distributions = st.one_of(
    numbers(st.just(None)).map(lambda t: FloatDistribution(t[0] / 8, (t[0] + t[1]) / 8)),
    numbers(st.sampled_from([0.125, 0.5, 3.0])).map(lambda t: FloatDistribution(t[0], t[0] + t[1] * t[2], step=t[2])),
    numbers(st.floats(1e-8, 1e3)).map(lambda t: FloatDistribution(t[2], t[2] * 1.5 ** t[1], log=True)),
    numbers(st.sampled_from([1, 2, 7])).map(lambda t: IntDistribution(t[0], t[0] + t[1] * t[2], step=t[2])),
    numbers(st.integers(1, 10)).map(lambda t: IntDistribution(t[2], t[2] + t[1] ** 2, log=True)),
    st.lists(
        st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(-9, 9).map(lambda x: x + 0.5), st.text()),
        min_size=1,
        max_size=5,
        # To Optuna True and 1 are the same choice.
        unique_by=lambda choice: (isinstance(choice, str), choice),
    ).map(CategoricalDistribution),
)


@settings(max_examples=12)
@given(
    space=st.dictionaries(st.sampled_from(["a", "b", "c", "kind (int)"]), distributions, min_size=1),
    values=st.lists(st.floats(allow_nan=False), min_size=4, max_size=4),
    n_startup_trials=st.integers(0, 2),
)
def test_whatever_the_space_and_the_values_the_parameters_are_inside(
    space: Space, values: list[float], n_startup_trials: int
) -> None:
    study = new_study(n_startup_trials=n_startup_trials)
    for value in values:
        trial = study.ask(space)
        assert_inside(trial, space)
        study.tell(trial, value)
    assert_inside(study.ask(space), space)


@pytest.mark.parametrize(
    "second",
    [
        {"x": FloatDistribution(0.0, 5.0), "n": IntDistribution(2, 3)},
        {"x": FloatDistribution(-20.0, 20.0), "n": IntDistribution(0, 40)},
        {"x": FloatDistribution(20.0, 30.0), "n": IntDistribution(-9, -5)},
        {"x": FloatDistribution(0.0, 10.0, step=0.5), "n": IntDistribution(0, 10, step=5)},
        {"x": FloatDistribution(3.0, 3.0), "n": IntDistribution(0, 10)},
        {"x": FloatDistribution(-1e18, 1e18), "n": IntDistribution(-(2**60), 2**60)},
    ],
    ids=["narrower", "wider", "apart", "coarser", "single", "vast"],
)
def test_a_range_that_changes_is_kept_to(second: Space) -> None:
    first: Space = {"x": FloatDistribution(0.0, 10.0), "n": IntDistribution(0, 10)}
    study = new_study(warn_independent_sampling=False)
    for space in (first, second, first):
        for _ in range(4):
            trial = study.ask(space)
            assert_inside(trial, space)
            study.tell(trial, (trial.params["x"] - 4.0) ** 2 + trial.params["n"])


def test_a_range_may_depend_on_another_parameter() -> None:
    study = new_study(warn_independent_sampling=False)
    for _ in range(25):
        trial = study.ask()
        low = trial.suggest_float("low", 0.0, 1.0)
        high = trial.suggest_float("high", low, 1.0)
        assert low <= high <= 1.0
        study.tell(trial, (low - 0.2) ** 2 + (high - 0.6) ** 2)
    assert study.best_value < 0.05


def test_a_wider_range_is_made_use_of() -> None:
    study = new_study()
    for high in (1.0, 4.0):
        study.optimize(lambda trial, high=high: (trial.suggest_float("x", 0.0, high) - 3.0) ** 2, n_trials=10)
    assert study.best_value < 0.05  # 4 is the best that the first range allows


def conditional(trial: optuna.Trial) -> float:
    """Three branches with parameters of their own and one in common; the best value is 0, in the second one."""
    kind = trial.suggest_categorical("kind", ["a", "b", "c"])
    shared = (trial.suggest_float("shared", 0.0, 1.0) - 0.4) ** 2
    if kind == "a":
        return 0.5 + shared + (trial.suggest_float("x", 0.0, 1.0) - 0.7) ** 2
    if kind == "b":
        y, z = trial.suggest_float("y", -2.0, 2.0), trial.suggest_float("z", 1e-4, 1.0, log=True)
        return shared + (y - 1.0) ** 2 + 0.1 * (np.log10(z) + 2.0) ** 2
    return 1.0 + shared + 0.1 * trial.suggest_int("n", 0, 9)


def best_values(sampler: Callable[[int], BaseSampler], objective: Objective, n_trials: int) -> np.ndarray:
    best = []
    for seed in range(3):
        study = optuna.create_study(sampler=sampler(seed))
        study.optimize(objective, n_trials=n_trials)
        best.append(study.best_value)
    return np.array(best)


@pytest.mark.slow
def test_a_conditional_space_is_searched_better_than_at_random() -> None:
    ours = best_values(lambda seed: BKBSampler(seed=seed), conditional, 60)
    random = best_values(lambda seed: RandomSampler(seed=seed), conditional, 60)
    assert ours.mean() < 0.5 * random.mean()


def test_the_parameters_of_every_branch_come_from_the_model() -> None:
    """Once every branch has been seen, nothing is sampled independently."""
    drawn: list[int] = []

    class Counting(RandomSampler):
        def sample_independent(self, study: Any, trial: FrozenTrial, name: str, distribution: Any) -> Any:
            drawn.append(trial.number)
            return super().sample_independent(study, trial, name, distribution)

    study = new_study(independent_sampler=Counting(seed=0), n_startup_trials=15)
    study.optimize(conditional, n_trials=15)
    assert {trial.params["kind"] for trial in study.trials} == {"a", "b", "c"}
    study.optimize(conditional, n_trials=15)
    assert set(drawn) == set(range(15))


@pytest.mark.slow  # the branches of the search are in tests/search/test_regions.py
def test_the_better_branch_is_chosen_more_often() -> None:
    study = new_study(n_startup_trials=10)
    study.optimize(conditional, n_trials=50)
    kinds = Counter(trial.params["kind"] for trial in study.trials[25:])
    assert kinds.most_common(1)[0][0] == "b"


def test_a_nested_condition_is_followed() -> None:
    def objective(trial: optuna.Trial) -> float:
        if not trial.suggest_categorical("outer", [True, False]):
            return 2.0
        if trial.suggest_int("inner", 0, 2) != 1:
            return 1.0
        return (trial.suggest_float("x", -1.0, 1.0) - 0.3) ** 2

    study = new_study(n_startup_trials=10)
    study.optimize(objective, n_trials=28)
    assert study.best_value < 0.01


def test_a_branch_that_the_range_has_lost_is_not_searched() -> None:
    def objective(trial: optuna.Trial, most: int) -> float:
        return -sum(trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(trial.suggest_int("n", 1, most)))

    study = new_study(n_startup_trials=6, warn_independent_sampling=False)
    study.optimize(lambda trial: objective(trial, 5), n_trials=16)
    study.optimize(lambda trial: objective(trial, 3), n_trials=1)
    for _ in range(8):
        trial = study.ask()
        assert trial.relative_params["n"] in (1, 2, 3)
        study.tell(trial, objective(trial, 3))


def test_a_branch_that_always_fails_is_given_up() -> None:
    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", ["a", "b", "c"])
        x = trial.suggest_float(kind, 0.0, 1.0)
        if kind == "c":
            raise RuntimeError
        return x

    study = new_study(n_startup_trials=6, warn_independent_sampling=False)
    study.optimize(objective, n_trials=21, catch=(RuntimeError,))
    assert sum(trial.params["kind"] == "c" for trial in study.trials) < 8


@pytest.mark.parametrize(
    "options",
    slow_but(
        [{}],
        [{}, {"n_startup_trials": 0}, {"deterministic_objective": True}, {"acquisition": "logei"}],
    ),
    ids=str,
)
def test_a_grid_without_noise_is_visited_cell_by_cell(options: dict[str, Any]) -> None:
    study = optuna.create_study(sampler=BKBSampler(seed=0, **options))

    def objective(trial: optuna.Trial) -> float:
        return (trial.suggest_int("a", 0, 6) - 3) ** 2 + (trial.suggest_int("b", 0, 6) - 5) ** 2

    study.optimize(objective, n_trials=49)
    # One repeat tells that there is no noise, where that was not said.
    n_cells = len({tuple(sorted(trial.params.items())) for trial in study.trials})
    assert n_cells >= (49 if options.get("deterministic_objective") else 48)


def test_a_deterministic_objective_of_choices_is_not_repeated() -> None:
    study = new_study(deterministic_objective=True)

    def objective(trial: optuna.Trial) -> float:
        return len(trial.suggest_categorical("a", ["x", "xx", "xxx"])) - 2.0 * trial.suggest_categorical("b", [0, 1, 2])

    study.optimize(objective, n_trials=9)
    assert len({tuple(sorted(trial.params.items())) for trial in study.trials}) == 9
    study.optimize(objective, n_trials=2)  # with every point known, there is nothing left but to repeat


def test_combinations_of_switches_that_no_trial_had_come_before_a_repeat() -> None:
    def objective(trial: optuna.Trial) -> float:
        a, b = trial.suggest_int("a", 0, 3), trial.suggest_int("b", 0, 3)
        return a + b + (trial.suggest_int("c", 0, 1) if a == 0 else 0) + (trial.suggest_int("d", 0, 1) if b == 0 else 0)

    study = new_study(deterministic_objective=True, n_startup_trials=5, warn_independent_sampling=False)
    study.optimize(objective, n_trials=25)
    cells = [tuple(trial.params.items()) for trial in study.trials]
    # Before there is a model a proposed "c" or "d" may turn out to be of another branch, and the rest a repeat.
    assert len(set(cells)) >= 24


def test_under_noise_the_best_cells_are_repeated() -> None:
    rng = np.random.default_rng(0)
    study = new_study(n_startup_trials=5)

    def objective(trial: optuna.Trial) -> float:
        distance = abs(trial.suggest_int("a", 0, 2) - 1) + abs(trial.suggest_int("b", 0, 2) - 1)
        return distance + 0.5 * rng.standard_normal()

    study.optimize(objective, n_trials=60)
    visits = Counter(tuple(sorted(trial.params.items())) for trial in study.trials)
    best = visits[("a", 1), ("b", 1)]
    assert best == max(visits.values())
    assert best > 2 * 60 / 9  # twice what an even share would be


@pytest.mark.parametrize("acquisition", ["ucb", "logei", "thompson"])
def test_a_choice_that_no_trial_had_is_searched_too(acquisition: str) -> None:
    study = new_study(acquisition=acquisition, n_startup_trials=0, warn_independent_sampling=False)

    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", ["a", "b", "c"])
        return trial.suggest_float(kind, 0.0, 1.0)

    study.enqueue_trial({"kind": "a"})
    study.enqueue_trial({"kind": "b"})
    study.optimize(objective, n_trials=8)
    assert {trial.params["kind"] for trial in study.trials} == {"a", "b", "c"}


def test_coordinate_perturbations_change_one_parameter_of_the_best_trial() -> None:
    space: Space = {name: FloatDistribution(0.0, 1.0) for name in "xyz"}
    study = new_study(seed=1)
    for u in np.random.default_rng(0).random((58, 3)):
        params = dict(zip("xyz", u.tolist(), strict=True))
        value = sum((j + 1.0) * (v - 0.3) ** 2 for j, v in enumerate(params.values()))
        study.add_trial(optuna.create_trial(params=params, distributions=space, value=value))
    schedule = Perturbations(wide=True)
    perturbed = 0
    for number in range(58, 80):
        # The best one by posterior mean; the best dozen values differ by 1e-6 at most.
        best = sorted(study.trials, key=lambda trial: trial.value)[:12]
        trial = study.ask(space)
        assert trial.number == number
        same = max(sum(trial.params[n] == pytest.approx(one.params[n], abs=1e-9) for n in space) for one in best)
        perturbed += same == 2
        assert (same == 2) == (schedule.is_due(number) and not schedule.is_wide(number))
        study.tell(trial, sum((j + 1.0) * (v - 0.3) ** 2 for j, v in enumerate(trial.params.values())))
    assert perturbed >= 2
