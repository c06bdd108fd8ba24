"""Optuna's samplers as the benchmarks use them, ours among them, with their defaults and ten start-up trials."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.samplers import BaseSampler

__all__ = ["N_STARTUP", "SAMPLERS", "quiet_optuna", "recommended"]

N_STARTUP = 10


def _bkb(seed: int) -> BaseSampler:
    from bkbopt.adapters.optuna import BKBSampler

    return BKBSampler(seed=seed, n_startup_trials=N_STARTUP, warn_independent_sampling=False)


def _tpe(seed: int) -> BaseSampler:
    return optuna.samplers.TPESampler(multivariate=True, n_startup_trials=N_STARTUP, seed=seed)


def _tpe_group(seed: int) -> BaseSampler:
    """TPE with a joint model for each branch of a conditional space."""
    return optuna.samplers.TPESampler(multivariate=True, group=True, n_startup_trials=N_STARTUP, seed=seed)


def _tpe_liar(seed: int) -> BaseSampler:
    """TPE that takes running trials for poor ones; by default it does not see them."""
    return optuna.samplers.TPESampler(multivariate=True, constant_liar=True, n_startup_trials=N_STARTUP, seed=seed)


def _gp_sampler(seed: int) -> BaseSampler:
    return optuna.samplers.GPSampler(n_startup_trials=N_STARTUP, seed=seed)


def _cmaes(seed: int) -> BaseSampler:
    return optuna.samplers.CmaEsSampler(seed=seed)


def _random(seed: int) -> BaseSampler:
    return optuna.samplers.RandomSampler(seed=seed)


#: A name to a callable that makes the sampler for a seed, inside `quiet_optuna`.
SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "random": _random,
    "cmaes": _cmaes,
    "tpe": _tpe,
    "tpe_group": _tpe_group,
    "tpe_liar": _tpe_liar,
    "bkb": _bkb,
    "gp_sampler": _gp_sampler,
}


def recommended(study: optuna.Study) -> Mapping[str, Any]:
    """The recommended parameters: ours by its posterior, the others' best observed trial."""
    recommend = getattr(study.sampler, "recommend", None)
    return study.best_trial.params if recommend is None else recommend(study).params


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Silence Optuna's per-trial log and its warnings about experimental samplers, here only."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)
