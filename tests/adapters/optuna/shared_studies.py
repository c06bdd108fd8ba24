"""Studies that several samplers work on, over small grids and a continuum, and an objective for all of them."""

from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial

from bkbopt.adapters.optuna import BKBSampler

Space = dict[str, BaseDistribution]
STUDY = "study"
#: The attributes of a published proposal begin with this.
KEY = "bkb:relative_params:"
GRID: Space = {"a": IntDistribution(0, 3), "b": IntDistribution(-2, 4, step=2)}
CELLS: Space = {"a": IntDistribution(0, 2), "kind": CategoricalDistribution(["relu", None, True, 0.5])}
CONTINUOUS: Space = {"x": FloatDistribution(-1.0, 1.0), "rate": FloatDistribution(1e-4, 1.0, log=True)}


def new_study(storage: BaseStorage | None = None, **options: Any) -> optuna.Study:
    sampler = BKBSampler(**{"seed": 0, "n_startup_trials": 3, **options})
    return optuna.create_study(study_name=STUDY, storage=storage, sampler=sampler)


def joined(study: optuna.Study, **options: Any) -> optuna.Study:
    """The same study as another process sees it."""
    sampler = BKBSampler(**{"seed": 0, "n_startup_trials": 3, **options})
    return optuna.load_study(study_name=STUDY, storage=study._storage, sampler=sampler)


def point(trial: FrozenTrial | optuna.Trial) -> tuple[Any, ...]:
    return tuple(sorted(trial.params.items()))


def n_distinct(trials: list[Any]) -> int:
    return len({point(trial) for trial in trials})


def cost(trial: optuna.Trial) -> float:
    """Best in the middle of numbers, and at the first of choices."""
    distances = [
        distribution.to_internal_repr(trial.params[name]) / (getattr(distribution, "high", 4) or 1.0)
        for name, distribution in trial.distributions.items()
    ]
    return sum((distance - 0.5) ** 2 for distance in distances)


def finish(study: optuna.Study, space: Space, n_trials: int) -> None:
    for _ in range(n_trials):
        trial = study.ask(space)
        study.tell(trial, cost(trial))
