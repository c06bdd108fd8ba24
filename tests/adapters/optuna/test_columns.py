"""Choices of categories: what Optuna takes for the same is one column or choice, and many make no long proposals."""

import math
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from bkbopt.adapters.optuna import BKBSampler, optimizer_of
from bkbopt.adapters.optuna.columns import distinct, key_of

Space = dict[str, BaseDistribution]


@pytest.mark.parametrize(
    ("some", "others"),
    [
        (["a", "b"], list(np.array(["a", "b"]))),
        ([0.5, 2.0], list(np.array([0.5, 2.0]))),
        ([0, 1], [False, True]),
        ([1, 2, None], [1.0, 2.0, None]),
    ],
    ids=str,
)
def test_choices_that_are_equal_to_optuna_are_one_column(some: list[Any], others: list[Any]) -> None:
    first, then = CategoricalDistribution(some), CategoricalDistribution(others)
    assert first == then
    assert key_of("kind", first) == key_of("kind", then)


def test_trials_read_from_a_storage_are_learnt_where_choices_are_numpys() -> None:
    """Storages write numpy's strings as JSON, which gives Python's back."""
    suggested = []
    for kinds in (["a", "b", "c"], list(np.array(["a", "b", "c"]))):
        study = optuna.create_study(sampler=BKBSampler(seed=0, n_startup_trials=0))
        space: Space = {"kind": CategoricalDistribution(["a", "b", "c"]), "x": FloatDistribution(0.0, 1.0)}
        for kind, value in [("a", 3.0), ("b", 0.0), ("c", 3.0)] * 3:
            trial = optuna.create_trial(params={"kind": kind, "x": 0.5}, distributions=space, value=value)
            study.add_trial(trial)
        space["kind"] = CategoricalDistribution(kinds)
        for _ in range(4):
            trial = study.ask(space)
            study.tell(trial, 3.0 * (trial.params["kind"] != "b") + trial.params["x"])
            suggested.append(trial.params)
    assert suggested[:4] == suggested[4:]


def test_the_length_of_a_proposal_does_not_grow_with_the_number_of_choices() -> None:
    space: Space = {"kind": CategoricalDistribution([f"molecule {i}" for i in range(1000)])}
    study = optuna.create_study(sampler=BKBSampler(seed=0, n_startup_trials=1))
    for value in range(3):
        study.tell(study.ask(space), float(value))
    assert sum(len(text) for text in study.trials[-1].system_attrs.values()) < 200


@pytest.mark.parametrize("n", [5, 1000])
def test_long_LISTS_of_other_choices_are_other_columns(n: int) -> None:
    first, then = (CategoricalDistribution([f"{name} {i}" for i in range(n)]) for name in ("molecule", "alloy"))
    assert key_of("kind", first) != key_of("kind", then)


class Named:
    """A choice with the same text as others."""

    def __repr__(self) -> str:
        return "Named"


NAMED = [Named(), Named()]
LISTS = [[1], [2]]
NANS = [math.nan, float("nan"), np.float32("nan")]


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        (["a", "b", "a"], ["a", "b"]),
        (["a", "a"], ["a"]),
        ([1, True, 1.0, 2], [1, 2]),
        ([*NANS, 0], [NANS[0], 0]),
        ([NAMED[0], NAMED[1], NAMED[0]], NAMED),
        ([LISTS[0], LISTS[1], LISTS[0].copy()], LISTS),
        (["1", 1, None, "None"], ["1", 1, None, "None"]),
    ],
    ids=str,
)
def test_a_choice_that_is_listed_twice_is_one_choice(choices: list[Any], expected: list[Any]) -> None:
    distribution = CategoricalDistribution(choices)
    once = distinct(distribution)
    assert isinstance(once, CategoricalDistribution)
    assert list(map(id, once.choices)) == list(map(id, expected))
    assert distribution.choices == tuple(choices)
    assert key_of("kind", distribution) == key_of("kind", once)


def test_a_study_with_a_choice_listed_twice_goes_as_one_without_the_repeat() -> None:
    suggested = []
    for kinds in (["a", "b", "c"], ["a", "a", "b", "c", "b"]):
        study = optuna.create_study(sampler=BKBSampler(seed=0, n_startup_trials=3))
        space: Space = {"kind": CategoricalDistribution(kinds), "x": FloatDistribution(0.0, 1.0)}
        for _ in range(9):
            trial = study.ask(space)
            study.tell(trial, 3.0 * (trial.params["kind"] != "b") + trial.params["x"])
        suggested.append([trial.params for trial in study.trials])
        assert study.sampler.recommend(study, fixed={"kind": "c"}).params["kind"] == "c"  # type: ignore[attr-defined]
    assert suggested[0] == suggested[1]


def test_running_trials_of_workers_spread_over_choices_of_which_some_are_listed_twice() -> None:
    study = optuna.create_study(sampler=BKBSampler(seed=0, warn_independent_sampling=False))
    kinds = [study.ask().suggest_categorical("kind", ["a", "b", "b", "c"]) for _ in range(3)]
    assert sorted(kinds) == ["a", "b", "c"]


@pytest.mark.parametrize("kinds", [["a", "b"], ["a", "b", "a"]], ids=str)
def test_a_parameter_may_be_named_as_another_one_with_its_choices(kinds: list[str]) -> None:
    suggested = []
    for name in ("other", "kind of ('a', 'b')", "kind of ('a', 'b') of 2", "kind (float)"):
        study = optuna.create_study(sampler=BKBSampler(seed=0, n_startup_trials=2))
        space: Space = {"kind": CategoricalDistribution(kinds), name: FloatDistribution(0.0, 1.0)}
        for _ in range(6):
            trial = study.ask(space)
            study.tell(trial, 3.0 * (trial.params["kind"] != "b") + trial.params[name])
        suggested.append([tuple(trial.params[key] for key in space) for trial in study.trials])
        assert study.sampler.recommend(study) == optimizer_of(study).recommend()  # type: ignore[attr-defined]
    assert suggested[1] == suggested[2] == suggested[3] == suggested[0]
