"""Choices of categories: what Optuna takes for the same is one column, and many choices make no long proposals."""

from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from bkbopt.adapters.optuna import BKBSampler
from bkbopt.adapters.optuna.columns import key_of

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
def test_long_lists_of_other_choices_are_other_columns(n: int) -> None:
    first, then = (CategoricalDistribution([f"{name} {i}" for i in range(n)]) for name in ("molecule", "alloy"))
    assert key_of("kind", first) != key_of("kind", then)
