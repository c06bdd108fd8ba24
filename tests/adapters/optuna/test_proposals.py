"""Proposals that a sampler publishes in the storage, for other samplers on the same study."""

import copy
import json
from collections.abc import Callable

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from bkbopt.adapters.optuna import BKBSampler
from tests.adapters.optuna.shared_studies import (
    CELLS,
    CONTINUOUS,
    KEY,
    STUDY,
    Space,
    finish,
    joined,
    n_distinct,
    new_study,
)


def published(trial: FrozenTrial) -> list[str]:
    """The attributes that hold the proposal, in their order."""
    chunks = {int(key.removeprefix(KEY)): text for key, text in trial.system_attrs.items() if key.startswith(KEY)}
    assert sorted(chunks) == list(range(len(chunks)))
    return [chunks[i] for i in range(len(chunks)) if chunks[i]]


@pytest.mark.parametrize("space", [CONTINUOUS, CELLS], ids=["continuous", "12 cells"])
def test_the_proposal_is_published_whole(space: Space) -> None:
    study = new_study()
    finish(study, space, 4)
    trial = study.ask()
    assert published(study.trials[-1]) == []  # nothing is proposed before the first parameter is asked for
    name, distribution = next(iter(space.items()))
    trial._suggest(name, distribution)
    assert len(json.loads("".join(published(study.trials[-1])))) == len(space)
    for name, distribution in space.items():
        trial._suggest(name, distribution)
    assert trial.relative_params == trial.params


def test_a_published_proposal_counts_like_one_that_has_been_taken_up() -> None:
    study = new_study()
    finish(study, CONTINUOUS, 6)
    trial = study.ask()
    trial.suggest_float("x", -1.0, 1.0)
    twin = optuna.load_study(
        study_name=STUDY, storage=copy.deepcopy(study._storage), sampler=BKBSampler(seed=0, n_startup_trials=3)
    )
    trial.suggest_float("rate", 1e-4, 1.0, log=True)
    assert joined(study).ask(CONTINUOUS).params == twin.ask(CONTINUOUS).params


def test_a_proposal_too_long_for_one_attribute_is_published_in_chunks(
    open_storage: Callable[..., BaseStorage],
) -> None:
    space: Space = {f"{'a_long_name_' * 16}{i}": FloatDistribution(0.0, 1.0) for i in range(12)}
    rng = np.random.default_rng(0)
    past = [
        optuna.create_trial(params=dict(zip(space, rng.random(12), strict=True)), distributions=space, value=value)
        for value in (0.0, 1.0, 3.0)
    ]
    studies = [new_study(open_storage("sqlite", name)) for name in ("published", "taken up")]
    for study in studies:
        study.add_trials(past)
    trial = studies[0].ask()
    first = next(iter(space))
    trial.suggest_float(first, 0.0, 1.0)
    chunks = published(studies[0].trials[-1])
    assert len(chunks) > 1
    # An attribute of a relational database holds 2,045 characters, quotes and escapes of its JSON included.
    assert max(len(json.dumps(chunk)) for chunk in chunks) <= 2046
    assert len(json.loads("".join(chunks))) == len(space)

    # Another sampler sees the same as if all parameters had been taken up.
    taken_up = optuna.create_trial(state=TrialState.RUNNING, params=trial.relative_params, distributions=space)
    studies[1].add_trial(taken_up)
    suggested = [joined(study).ask(space).params for study in studies]
    assert suggested[0] == suggested[1] != trial.relative_params


def test_a_proposal_that_nobody_can_read_is_ignored() -> None:
    study = new_study()
    finish(study, CONTINUOUS, 4)
    for text in ("{", "[1]", "null", '{"x": "nonsense"}', '{"x": 7e9, "unknown": 1}'):
        trial = study.ask()
        for i, chunk in enumerate((text, "")):
            study._storage.set_trial_system_attr(trial._trial_id, f"{KEY}{i}", chunk)
    assert n_distinct([study.ask(CONTINUOUS) for _ in range(3)]) == 3
