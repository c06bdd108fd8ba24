"""Other optimisers as samplers of Optuna: they search the space that all trials share, and the rest is random.

HEBO and SMAC3 are optional, and pin versions of NumPy and other packages that differ from this project's. Do not
install them into its environment, but without dependencies into a separate folder (as of HEBO 0.3.6, SMAC 2.4.1):

    python -m pip install --no-deps --target DIR smac ConfigSpace pynisher dask_jobqueue emcee regex more-itertools
    python -m pip install --no-deps --target DIR HEBO disjoint-set pymoo moocore GPy paramz autograd cma \
        alive-progress about-time grapheme dill Deprecated wrapt
    PYTHONPATH=DIR python -m benchmarks.optuna_quality --peers hebo smac ...

HEBO requires NumPy below 1.25 and pymoo 0.6.0, and runs here with the installed versions.

Sources: Cowen-Rivers et al., "HEBO: pushing the limits of sample-efficient hyper-parameter optimisation" (JAIR 74,
2022); Lindauer et al., "SMAC3: a versatile Bayesian optimization package for hyperparameter optimization" (JMLR 23,
2022).
"""

import logging
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
import torch
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.trial import FrozenTrial, TrialState

__all__ = ["HeboSampler", "SmacSampler", "SpaceSampler"]

Space = dict[str, BaseDistribution]
Params = dict[str, Any]


class SpaceSampler(BaseSampler):
    """A sampler of the parameters that all trials have; after `n_startup` random trials it calls `propose`."""

    def __init__(self, seed: int, n_startup: int) -> None:
        self.seed = seed
        self.n_startup = n_startup
        self._shared = IntersectionSearchSpace()
        self._random = optuna.samplers.RandomSampler(seed=seed)

    def propose(self, study: optuna.Study, space: Space, finished: Sequence[FrozenTrial]) -> Params:
        """Return values of the parameters of `space` (below those of Optuna, which are checked there)."""
        raise NotImplementedError

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> Space:
        return {name: d for name, d in self._shared.calculate(study).items() if not d.single()}

    def sample_relative(self, study: optuna.Study, trial: FrozenTrial, search_space: Space) -> Params:
        finished = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if not search_space or len(finished) < self.n_startup:
            return {}
        return self.propose(study, search_space, finished)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self._random.sample_independent(study, trial, param_name, param_distribution)


def _values(finished: Sequence[FrozenTrial]) -> list[float]:
    return [float(trial.value) for trial in finished if trial.value is not None]


def _on_log_scale(distribution: BaseDistribution) -> bool:
    return isinstance(distribution, FloatDistribution | IntDistribution) and distribution.log


class HeboSampler(SpaceSampler):
    """HEBO with its defaults; it recommends the best value observed, as `HEBO.best_x` does."""

    def __init__(self, seed: int, n_startup: int) -> None:
        super().__init__(seed, n_startup)
        self._space: Space = {}
        self._optimizer: Any = None
        self._told = 0

    def propose(self, study: optuna.Study, space: Space, finished: Sequence[FrozenTrial]) -> Params:
        import pandas as pd
        from hebo.optimizers.hebo import HEBO  # type: ignore[import-not-found]

        if space != self._space:
            self._space, self._told = dict(space), 0
            self._optimizer = HEBO(_hebo_space(space), rand_sample=self.n_startup, scramble_seed=self.seed)
        new = finished[self._told :]
        self._told = len(finished)
        with warnings.catch_warnings(), torch.random.fork_rng():
            warnings.simplefilter("ignore")
            np.random.seed([self.seed, len(finished)])  # noqa: NPY002  HEBO draws from NumPy's global generator
            torch.manual_seed(self.seed * 100_003 + len(finished))
            self._optimizer.observe(
                pd.DataFrame([{name: trial.params[name] for name in space} for trial in new]),
                np.array(_values(new))[:, None],
            )
            row = self._optimizer.suggest().iloc[0]
        return {name: _native(row[name], distribution) for name, distribution in space.items()}


def _hebo_space(space: Space) -> Any:
    from hebo.design_space.design_space import DesignSpace  # type: ignore[import-not-found]

    columns: list[Params] = []
    for name, distribution in space.items():
        if isinstance(distribution, CategoricalDistribution):
            columns.append({"name": name, "type": "cat", "categories": list(distribution.choices)})
        else:
            assert isinstance(distribution, FloatDistribution | IntDistribution)
            whole = isinstance(distribution, IntDistribution)
            kind = ("pow_int" if whole else "pow") if distribution.log else ("int" if whole else "num")
            columns.append({"name": name, "type": kind, "lb": distribution.low, "ub": distribution.high})
    return DesignSpace().parse(columns)


def _native(value: Any, distribution: BaseDistribution) -> Any:
    """A value in Python's own types and inside its range, from which a power's rounding may lead."""
    if isinstance(distribution, FloatDistribution):
        return float(np.clip(value, distribution.low, distribution.high))
    if isinstance(distribution, IntDistribution):
        return int(np.clip(value, distribution.low, distribution.high))
    assert isinstance(distribution, CategoricalDistribution)
    return next(choice for choice in distribution.choices if choice == value)


class SmacSampler(SpaceSampler):
    """SMAC3's facade for hyper-parameters (random forest, log EI), set to noisy values.

    Against the noise it evaluates promising settings up to three times, each time as a trial; it recommends its
    incumbent. Trials of a larger or smaller space are told to it by the shared parameters.
    """

    def __init__(self, seed: int, n_startup: int) -> None:
        super().__init__(seed, n_startup)
        self._space: Space = {}
        self._facade: Any = None
        self._folder = tempfile.mkdtemp(prefix="smac-")  # it cannot do without one
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._asked: dict[int, Any] = {}
        self._told = 0

    def propose(self, study: optuna.Study, space: Space, finished: Sequence[FrozenTrial]) -> Params:
        if space != self._space:
            self._space, self._told = dict(space), 0
            self._asked.clear()
            self._facade = _smac_facade(space, self.seed, self._folder)
        self._tell(finished[self._told :])
        self._told = len(finished)
        asked = self._facade.ask()
        # One process asks and tells in turn: the trial of this proposal is the next to be finished.
        self._asked[len(finished)] = asked
        return {name: _native(asked.config[name], distribution) for name, distribution in space.items()}

    def _tell(self, finished: Sequence[FrozenTrial]) -> None:
        from ConfigSpace import Configuration  # type: ignore[import-not-found]
        from smac.runhistory.dataclasses import TrialInfo, TrialValue  # type: ignore[import-not-found]

        for place, trial in enumerate(finished, start=self._told):
            asked = self._asked.pop(place, None)
            if asked is None:
                settings = {name: trial.params[name] for name in self._space}
                configuration = Configuration(self._facade.scenario.configspace, values=settings)
                # SMAC takes the seeds of what it was told before its first ask for those to evaluate with.
                asked = TrialInfo(configuration, seed=0)
            self._facade.tell(asked, TrialValue(cost=_values([trial])[0]))

    def recommend(self, study: optuna.Study) -> Any:
        """The incumbent, with parameters that it lacks as in the best trial."""
        found = None if self._facade is None else self._facade.intensifier.get_incumbent()
        params = study.best_trial.params
        if found is None:
            return SimpleNamespace(params=params)
        mine = {name: _native(found[name], distribution) for name, distribution in self._space.items()}
        return SimpleNamespace(params={**params, **mine})


def _smac_facade(space: Space, seed: int, folder: str) -> Any:
    from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer
    from smac import HyperparameterOptimizationFacade, Scenario  # type: ignore[import-not-found]

    columns: list[Any] = []
    for name, distribution in space.items():
        if isinstance(distribution, CategoricalDistribution):
            columns.append(Categorical(name, list(distribution.choices)))
        else:
            assert isinstance(distribution, FloatDistribution | IntDistribution)
            make = Integer if isinstance(distribution, IntDistribution) else Float
            columns.append(make(name, (distribution.low, distribution.high), log=_on_log_scale(distribution)))
    configurations = ConfigurationSpace(seed=seed)
    configurations.add(columns)
    scenario = Scenario(configurations, deterministic=False, n_trials=10**6, seed=seed, output_directory=folder)
    return HyperparameterOptimizationFacade(
        scenario,
        _never_called,
        initial_design=HyperparameterOptimizationFacade.get_initial_design(scenario, n_configs=0),
        logging_level=logging.ERROR,
        overwrite=True,
    )


def _never_called(config: Mapping[str, Any], seed: int = 0) -> float:
    raise NotImplementedError("SMAC is asked and told, it evaluates nothing")
