"""`BKBSampler`: an Optuna sampler for Bayesian optimisation over thousands of trials."""

import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.logging import get_logger
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from bkbopt._support.checks import check_count, check_flag
from bkbopt._support.compiled import noticed
from bkbopt._support.settings import usual_settings
from bkbopt._support.showing import shown_call
from bkbopt.adapters.optuna.columns import external, held, key_of, space_of
from bkbopt.adapters.optuna.followed import FollowedStudy
from bkbopt.adapters.optuna.independent import independent_value
from bkbopt.adapters.optuna.proposals import publish
from bkbopt.confidence import Confidence, as_confidence
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.kernels import as_kernel
from bkbopt.optimizer.arguments.option_types import AcquisitionName
from bkbopt.optimizer.arguments.searching import as_rule, as_surrogate, checked_seed
from bkbopt.optimizer.results.recommendations import recommendation, recommended_front
from bkbopt.search.criteria.acquisition import Acquisition
from bkbopt.search.options import Options
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.search.trials.reports import Diagnostics, FrontPoint, Recommendation
from bkbopt.surrogates import BKB, Surrogate
from bkbopt.surrogates.base import MakesSurrogate

__all__ = ["BKBSampler", "arguments_of", "check_study", "ranges_of", "trials_of"]

Found = TypeVar("Found", Recommendation, list[FrontPoint])

#: A child of Optuna's logger, so that `optuna.logging.set_verbosity` applies to it.
log = get_logger("optuna.samplers.bkbopt")
say_once = functools.cache(log.info)

#: Number of proposals, the last of them quasi-random, if other processes keep proposing the same points.
ATTEMPTS = 5
#: The defaults of `qbar` and `max_inducing`.
OF_BKB = (2.0, 400)


class BKBSampler(BaseSampler):
    """Bayesian optimisation with the BKB posterior; the cost of a suggestion hardly grows over thousands of trials.

    A suggestion depends only on the seed, the trial's number, the finished trials of the storage in the order of their
    completion, and the running trials. A new sampler on an existing study, also in another process, makes the same
    suggestions as one that was used from the start.

    - One or several objectives (several by optimistic hypervolume improvement), and constraints
      set by `trial.set_constraint`, which some trials may lack.
    - All distributions, changing ranges, and parameters that exist in some trials only, in one model.
    - Running trials are pending. Proposals are published in the trial's system attributes, so that threads, processes
      and machines that share a storage propose different points.
    - The final value of a pruned trial is estimated from its last intermediate value and the curves of longer trials;
      without these it is the worse quartile of complete trials. An infinitely good value counts as the best finite one.
    - The probability of failure is modelled; infinitely bad values and penalties are failures. Points near failures,
      and not near successes, are proposed less often, and a failed point of a discrete space is not proposed again
      while others are left. Optuna's samplers ignore failures.

    Args:
        seed: seed of all random numbers; None for a random one.
        n_startup_trials: number of trials before the model is used, complete or pruned ones with intermediate values;
            failed ones count half. Until then points are quasi-random, after the centre of the space.
        independent_sampler: sampler for the start-up trials, and for parameters that no earlier trial had; by default
            quasi-random points and random values.
        deterministic_objective: whether the objective has no noise; a point of a discrete space is then not proposed
            twice while there are others.
        warn_independent_sampling: whether to log a warning when a parameter is sampled without the model.
        qbar: oversampling of the dictionary, see `BKB`.
        max_inducing: largest dictionary, see `BKB`.
        beta: width of the confidence bounds, as for `Optimizer`.
        acquisition: "ucb", "logei", "thompson" or a callable, as for `Optimizer`.
        kernel: see `BKB`; its columns are those of all parameters in the order of their names.
        surrogate: another model, "exact", "fourier" or an instance without data, as for `Optimizer`, in place of a
            `BKB` with this `qbar`, `max_inducing` and `kernel`.
        perturbations: whether some trials, fewer and fewer, search for a better basin, as for `Optimizer`.
        constraints_func: none; Optuna 5 deprecates it, and the objective calls `trial.set_constraint` in its place.

    Raises:
        ArgumentError: an option is out of range (a ValueError).
        ArgumentTypeError: an option has the wrong type (a TypeError).

    Example:
        >>> import optuna
        >>> from bkbopt.adapters.optuna import BKBSampler
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=BKBSampler(seed=0))
        >>> study.optimize(lambda trial: (trial.suggest_float("x", -1, 2) - 0.5) ** 2, n_trials=15)
        >>> abs(study.sampler.recommend(study).params["x"] - 0.5) < 0.2
        True
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        n_startup_trials: int = 10,
        independent_sampler: BaseSampler | None = None,
        deterministic_objective: bool = False,
        warn_independent_sampling: bool = True,
        qbar: float = OF_BKB[0],
        max_inducing: int | None = OF_BKB[1],
        beta: float | Confidence | None = None,
        acquisition: AcquisitionName | Acquisition = "ucb",
        kernel: object = None,
        surrogate: str | Surrogate | MakesSurrogate | None = None,
        perturbations: bool = True,
        constraints_func: None = None,
    ) -> None:
        self._given = {name: value for name, value in locals().items() if name != "self"}
        rule = as_rule(acquisition)
        if constraints_func is not None:
            raise ArgumentTypeError(
                f"constraints_func: expected none, as Optuna 5 deprecates it, got {type(constraints_func).__name__}; "
                "call trial.set_constraint(name, value) in the objective, with values <= 0 where the constraint holds."
            )
        if independent_sampler is not None and not isinstance(independent_sampler, BaseSampler):
            raise ArgumentTypeError(
                f"independent_sampler: expected a sampler of Optuna or None, got {type(independent_sampler).__name__}."
            )
        self._warn = check_flag("warn_independent_sampling", warn_independent_sampling)
        if surrogate is None:
            surrogate = BKB(None if kernel is None else as_kernel(kernel), qbar=qbar, max_inducing=max_inducing)
        elif kernel is not None or (qbar, max_inducing) != OF_BKB:
            raise ArgumentError("surrogate: expected no kernel, qbar or max_inducing beside it; pass them to BKB.")
        sequence = np.random.SeedSequence(checked_seed(seed))
        #: The seed of an `Optimizer` with the same models.
        self._seed: Any = sequence.entropy
        self._entropy = self._model_seed = int(sequence.generate_state(1)[0])
        self._options = Options(
            ModelOptions(
                as_surrogate(surrogate, fit=True),
                deterministic=check_flag("deterministic_objective", deterministic_objective),
            ),
            check_count("n_startup_trials", n_startup_trials, 0),
            rule,
            as_confidence(beta),
            repeat_when_exhausted=True,
            perturbations=check_flag("perturbations", perturbations),
        )
        self._independent_sampler = independent_sampler
        self._followed: FollowedStudy | None = None
        self._lock = threading.RLock()
        #: One record for each suggestion that this object made with the model.
        self.diagnostics: list[Diagnostics] = []

    def __repr__(self) -> str:
        return shown_call(type(self), self._given)

    def __getstate__(self) -> dict[str, Any]:
        """The state without the lock and the designer, which follows from the storage."""
        return {**vars(self), "_followed": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The inverse of `__getstate__`, with a new lock."""
        vars(self).update(state, _lock=threading.RLock())

    # -- Optuna's protocol ---------------------------------------------------------------------------------------

    def reseed_rng(self) -> None:
        """Draw a new seed for later suggestions; the seed of the models is unchanged."""
        self._entropy = int(np.random.SeedSequence().generate_state(1)[0])
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters of all earlier trials with their latest ranges, except those with a single value."""
        latest = ranges_of(self, study)
        if not latest:
            for other in trials_of(study, TrialState.RUNNING):
                if other.number != trial.number:
                    latest.update(other.distributions)
        return {name: distribution for name, distribution in sorted(latest.items()) if not distribution.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The next point, which is published in the storage; with values that were enqueued, the best beside these."""
        space, fixed = space_of(search_space), held(trial.system_attrs.get("fixed_params", {}), search_space)
        if space is None or len(fixed) == len(search_space):
            return {}
        start = time.perf_counter()
        with self._lock, usual_settings(), noticed(say_once):
            followed = self._follow(study)
            if self._independent_sampler is not None and not followed.designer.has_models:
                return {}
            for attempt in range(ATTEMPTS):
                (suggestion,) = followed.designer.suggest(
                    number=trial.number,
                    fixed=fixed,
                    space=space,
                    attempt=attempt,
                    seed=self._entropy,
                    quasi_random=attempt == ATTEMPTS - 1,
                )
                publish(study, trial, suggestion.point)
                if not followed.meets(suggestion.point, space, trial.number, trials_of(study)):
                    break
        if suggestion.diagnostics.n_inducing is not None:
            self.diagnostics.append(replace(suggestion.diagnostics, ask_seconds=time.perf_counter() - start))
        point = {name: suggestion.point.get(key_of(name, search_space[name])) for name in search_space}
        return {name: external(search_space[name], v) for name, v in point.items() if v is not None}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A random value of a parameter that the model does not cover."""
        if self._warn and trial.number:
            self._log_independent(study, trial, param_name)
        if self._independent_sampler is not None:
            return self._independent_sampler.sample_independent(study, trial, param_name, param_distribution)
        with self._lock, usual_settings():
            others = self._follow(study).running_points(trial.number)
            value = independent_value(self._entropy, trial, param_name, param_distribution, others)
        return external(param_distribution, value)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Call the independent sampler's method."""
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Call the independent sampler's method."""
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)

    # -- results -------------------------------------------------------------------------------------------------

    def recommend(self, study: Study, *, fixed: Mapping[str, Any] | None = None) -> Recommendation:
        """The best evaluated point by the posterior, among those expected to be feasible; see `Optimizer.recommend`.

        With noise use it instead of `study.best_trial`, whose value is too good by selection. With `fixed` the ranges
        are those of the latest trials. In a study with conditional parameters the point then has those of a branch that
        trials have used, and the fixed ones: Optuna does not say which values of a switch go with which parameters.

        Args:
            study: the study.
            fixed: values at which some parameters are fixed (a context, for example); None for the best evaluated
                point.

        Returns:
            The parameters, and the posterior mean and standard deviation of the noise-free objective, in its units.

        Raises:
            RuntimeError: the study has several objectives.
            ArgumentError: no trial is complete, or none has a finite value (a ValueError, as for `study.best_trial`);
                `fixed` has a name that the study does not have, or a value outside of its distribution.
            ArgumentTypeError: `study` is none, or `fixed` is no mapping.
        """
        if len(check_study(study).directions) > 1:
            raise RuntimeError(
                "recommend: expected a study with a single objective, got one with "
                f"{len(study.directions)}; use recommend_front for the Pareto front."
            )
        return self._recommended(recommendation, study, fixed)

    def recommend_front(self, study: Study, *, fixed: Mapping[str, Any] | None = None) -> list[FrontPoint]:
        """The evaluated points whose posterior means no other one's dominate, among those expected to be feasible.

        With noise use it instead of `study.best_trials`, where lucky values hide better points. With `fixed` they are
        at most 20 points with these values, which need not have been evaluated; see `Optimizer.recommend_front`.

        Args:
            study: the study.
            fixed: as in `recommend`.

        Returns:
            For each point its parameters, and the posterior means and standard deviations of the noise-free
            objectives, in their units; in the order of the first objective, the best first.

        Raises:
            ArgumentError, ArgumentTypeError: as in `recommend`.
        """
        return self._recommended(recommended_front, check_study(study), fixed)

    # -- parts ---------------------------------------------------------------------------------------------------

    def _follow(self, study: Study) -> FollowedStudy:
        """The study with its designer, updated with all trials."""
        followed, trials = self._followed, trials_of(study)
        if followed is None or not followed.belongs_to(study, trials):
            followed = self._followed = FollowedStudy(study, self._options, self._model_seed)
        followed.update(trials)
        return followed

    def _recommended(self, choose: Callable[..., Found], study: Study, fixed: Mapping[str, Any] | None) -> Found:
        """What `choose` recommends by models of all trials."""
        with self._lock, usual_settings():
            followed = self._follow(study)
            history = followed.designer.history
            if not history.n_complete or not followed.designer.trained().ready:
                got = "infinite ones only" if any(e.values for e in history.finished) else "none"
                raise ArgumentError(
                    f"study: expected at least one complete trial with a finite value, got {got}; "
                    "call optimize or tell first."
                )
            point = followed.fixed({} if fixed is None else fixed)
            space = space_of(followed.latest_distributions())
            return choose(followed.designer, point, followed.params, space=space)

    def _log_independent(self, study: Study, trial: FrozenTrial, name: str) -> None:
        with self._lock, usual_settings():
            followed = self._follow(study)
        if not followed.designer.has_values:
            return
        by = type(self._independent_sampler).__name__ if self._independent_sampler is not None else "random sampling"
        reason = (
            "its distribution is new, or the proposed point has no value in its range, or is on a branch that had none"
            if name in followed.latest_distributions()
            else "no earlier trial has it, as when a branch of a conditional space is visited for the first time"
        )
        log.warning(
            f"The parameter {name!r} of trial {trial.number} is sampled by {by}, without the model: {reason}. If this "
            "is intended, pass warn_independent_sampling=False."
        )


def ranges_of(sampler: BKBSampler, study: Study) -> dict[str, BaseDistribution]:
    """The latest distribution of each parameter of a study's complete and pruned trials, by name."""
    with sampler._lock, usual_settings():
        return sampler._follow(study).latest_distributions()


def arguments_of(sampler: BKBSampler) -> dict[str, Any]:
    """The arguments with which an `Optimizer` has the models and the rules of a sampler."""
    return {
        "seed": sampler._seed,
        "surrogate": sampler._options.surrogate,
        "deterministic": sampler._options.models.deterministic,
        "perturbations": sampler._options.perturbations,
        **{name: sampler._given[name] for name in ("n_startup_trials", "beta", "acquisition")},
    }


def trials_of(study: Study, *states: TrialState) -> list[FrozenTrial]:
    """The study's trials; under `HyperbandPruner` not those of one bracket only, since the model learns from all."""
    return study._storage.get_all_trials(study._study_id, deepcopy=False, states=states or None)


def check_study(study: object) -> Study:
    """The argument, checked to be a study; raises `ArgumentTypeError` otherwise."""
    if not isinstance(study, Study):
        raise ArgumentTypeError(f"study: expected a study of Optuna, got {type(study).__name__}.")
    return study
