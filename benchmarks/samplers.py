"""Samplers of Optuna as the benchmarks use them, ours among them, with their defaults and ten start-up trials.

Those of other packages are in `ask_tell_samplers` (HEBO and SMAC3, which are optional) and `turbo`.
"""

import importlib.util
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna._transform import _SearchSpaceTransform
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler, CmaEsSampler
from optuna.trial import FrozenTrial

__all__ = ["N_STARTUP", "SAMPLERS", "NoisyCma", "floats", "missing_packages", "point", "quiet_optuna", "recommended"]

N_STARTUP = 10
#: What samplers need that this project does not bring.
OPTIONAL = {"hebo": ("hebo", "GPy", "pymoo"), "smac": ("smac", "ConfigSpace")}


class NoisyCma(CmaEsSampler):
    """CMA-ES as its authors advise under noise: a larger population, and the distribution's mean as recommendation.

    The population is `factor` times the default of 4 + 3 log d: recombination averages the noise of the better half of
    it (Hansen, "The CMA evolution strategy: a tutorial", 2016; Hansen, Niederberger, Guzzella and Koumoutsakos, IEEE
    Transactions on Evolutionary Computation 13, 2009, who raise the effort when ranks turn out to be noise). Four times
    leaves some 25 generations of 1,000 trials in ten dimensions. Restarts would not help: Optuna ignores its strategies
    since 4.4, and at this noise few runs of 1,000 trials converge.

    By default it starts in the centre of the space; with `starts_anywhere` at a random point, drawn by the seed.
    """

    def __init__(self, seed: int, factor: int = 4, *, starts_anywhere: bool = False) -> None:
        super().__init__(seed=seed, warn_independent_sampling=False)
        self._factor = factor
        self._start = optuna.samplers.RandomSampler(seed=seed) if starts_anywhere else None
        self._columns: dict[str, BaseDistribution] = {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if search_space and self._popsize is None:
            self._popsize = self._factor * (4 + math.floor(3 * math.log(len(search_space))))
            if self._start is not None:
                draw = self._start.sample_independent
                self._x0 = {name: draw(study, trial, name, column) for name, column in search_space.items()}
        self._columns = search_space
        return super().sample_relative(study, trial, search_space)

    def recommend(self, study: optuna.Study) -> Any:
        """The mean after the last whole generation; parameters that have none are those of the best trial.

        Where trials have different parameters it is the best trial: the mean may lie in another branch.
        """
        best = study.best_trial.params
        if any(trial.params.keys() != best.keys() for trial in study.get_trials(deepcopy=False)):
            return SimpleNamespace(params=best)
        optimizer = self._restore_optimizer(self._get_trials(study))
        transform = _SearchSpaceTransform(self._columns, transform_0_1=True) if self._columns else None
        if optimizer is None or transform is None or optimizer.dim != len(transform.bounds):
            return SimpleNamespace(params=best)
        return SimpleNamespace(params={**best, **transform.untransform(optimizer.mean)})


def _bkb(seed: int) -> BaseSampler:
    from bkbopt.adapters.optuna import BKBSampler

    return BKBSampler(seed=seed, n_startup_trials=N_STARTUP, warn_independent_sampling=False)


def _tpe(seed: int) -> BaseSampler:
    return optuna.samplers.TPESampler(multivariate=True, n_startup_trials=N_STARTUP, seed=seed)


def _tpe_group(seed: int) -> BaseSampler:
    """TPE with a joint model for each branch of a conditional space."""
    return optuna.samplers.TPESampler(multivariate=True, group=True, n_startup_trials=N_STARTUP, seed=seed)


def _tpe_liar(seed: int) -> BaseSampler:
    """TPE with the constant liar, which treats running trials as poor ones; by default it ignores them."""
    return optuna.samplers.TPESampler(multivariate=True, constant_liar=True, n_startup_trials=N_STARTUP, seed=seed)


def _gp_sampler(seed: int) -> BaseSampler:
    return optuna.samplers.GPSampler(n_startup_trials=N_STARTUP, seed=seed)


def _cmaes(seed: int) -> BaseSampler:
    return optuna.samplers.CmaEsSampler(seed=seed)


def _cmaes_mean(seed: int) -> BaseSampler:
    """CMA-ES at the default population that recommends its mean; `cmaes_noise` differs in the population alone."""
    return NoisyCma(seed, factor=1)


def _cmaes_anywhere(seed: int) -> BaseSampler:
    """CMA-ES for noise that starts at a random point; of some functions the minimum is close to the centre."""
    return NoisyCma(seed, starts_anywhere=True)


def _turbo(seed: int) -> BaseSampler:
    from benchmarks.turbo import TurboSampler

    return TurboSampler(seed, N_STARTUP)


def _hebo(seed: int) -> BaseSampler:
    from benchmarks.ask_tell_samplers import HeboSampler

    return HeboSampler(seed, N_STARTUP)


def _smac(seed: int) -> BaseSampler:
    from benchmarks.ask_tell_samplers import SmacSampler

    return SmacSampler(seed, N_STARTUP)


def _genetic(seed: int) -> BaseSampler:
    return optuna.samplers.NSGAIISampler(seed=seed, population_size=30)  # the default of 50 is too many for 400 trials


def _random(seed: int) -> BaseSampler:
    return optuna.samplers.RandomSampler(seed=seed)


#: A name to a callable that makes the sampler for a seed, inside `quiet_optuna`.
SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "random": _random,
    "cmaes": _cmaes,
    "cmaes_mean": _cmaes_mean,
    "cmaes_noise": NoisyCma,
    "cmaes_anywhere": _cmaes_anywhere,
    "tpe": _tpe,
    "tpe_group": _tpe_group,
    "tpe_liar": _tpe_liar,
    "bkb": _bkb,
    "genetic": _genetic,
    "gp_sampler": _gp_sampler,
    "turbo": _turbo,
    "hebo": _hebo,
    "smac": _smac,
}


def missing_packages(sampler: str) -> list[str]:
    """The optional packages that this sampler needs and that cannot be imported here."""
    return [name for name in OPTIONAL.get(sampler, ()) if importlib.util.find_spec(name) is None]


def recommended(study: optuna.Study) -> Mapping[str, Any]:
    """The recommended parameters: those that the sampler recommends, or else the best observed trial."""
    recommend = getattr(study.sampler, "recommend", None)
    return study.best_trial.params if recommend is None else recommend(study).params


def floats(bounds: Sequence[tuple[float, float]]) -> dict[str, BaseDistribution]:
    """The parameters x0, x1, ... of a box, from its bounds."""
    return {f"x{i}": FloatDistribution(low, high) for i, (low, high) in enumerate(bounds)}


def point(params: Mapping[str, Any]) -> NDArray[np.float64]:
    """The point (d,) of the box with these parameters x0, x1, ..."""
    return np.array([params[f"x{i}"] for i in range(len(params))], dtype=np.float64)


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
