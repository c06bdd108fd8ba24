"""Importance of a study's parameters by the model: `optuna.importance.get_param_importances` with our evaluator."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from optuna.importance import BaseImportanceEvaluator
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from bkbopt.adapters.optuna.sampler import check_study
from bkbopt.adapters.optuna.studies import Target, of_complete
from bkbopt.errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    from bkbopt.analysis import Share

__all__ = ["BKBImportanceEvaluator"]


class BKBImportanceEvaluator(BaseImportanceEvaluator):
    """Importance as a share of the variance of the Gaussian process's mean over the whole space.

    The importance of a parameter is its total Sobol index, 0 to 1: the share of the variance that is due to it, alone
    and together with others; see `bkbopt.analysis.variance_shares`. Interactions are counted for each of their
    parameters, so that the sum may exceed 1 (`get_param_importances` divides by it unless `normalize=False`).
    Evaluators that count trials, or split them, describe the sampled points, most of which are near the optimum; a
    model is evaluated everywhere. The study may have any sampler.

    The space has the latest range of each parameter. Numbers are uniform in it, in the logarithm where `log=True` (the
    evaluators of Optuna that fit trees take them as uniform without it), and choices are equally likely.

    Example:
        >>> import optuna
        >>> from bkbopt.adapters.optuna import BKBImportanceEvaluator
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        >>> study.optimize(lambda t: t.suggest_float("x", 0, 1) ** 2 + 0.01 * t.suggest_float("y", 0, 1), n_trials=30)
        >>> shares = optuna.importance.get_param_importances(study, evaluator=BKBImportanceEvaluator())
        >>> list(shares), shares["x"] > 0.99
        (['x', 'y'], True)
    """

    def evaluate(
        self, study: Study, params: list[str] | None = None, *, target: Target | None = None
    ) -> dict[str, float]:
        """The importance of each parameter, the largest first.

        Args:
            study: a study with a complete trial.
            params: names of parameters; None for all of complete trials, also those that only some have.
            target: what is explained, a number for each complete trial, as for `optimizer_of`; None for the value.

        Returns:
            Importances by name. All are 0 if the model explains nothing, or fewer than two trials have a value.

        Raises:
            ArgumentTypeError: `study` is none, `params` is no list of names, or `target` gives something else than
                numbers.
            ArgumentError: no trial is complete, `params` has a name that complete trials lack, or several objectives
                without `target`.
        """
        check_study(study)
        complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        names = _checked(params, complete)
        if target is None and len(study.directions) > 1:
            raise ArgumentError(
                f"target: expected a function of trials, since the study has {len(study.directions)} objectives, got "
                "None; give lambda trial: trial.values[0] for the first."
            )
        found = _shares(study, target) if names and len(complete) > 1 else {}
        shares = {name: found[name].total if name in found else 0.0 for name in names}
        return dict(sorted(shares.items(), key=lambda share: -share[1]))


def _shares(study: Study, target: Target | None) -> "Mapping[str, Share]":
    """The Sobol indices of the parameters that vary; none if there is no finite value."""
    # Imported here, since a sampler does without it.
    from bkbopt.analysis import variance_shares
    from bkbopt.analysis.coordinates import has_dimensions
    from bkbopt.analysis.run_data import n_values

    opt = of_complete(study, target)
    return variance_shares(opt) if has_dimensions(opt) and n_values(opt) else {}


def _checked(params: list[str] | None, complete: list[FrozenTrial]) -> list[str]:
    """The names of the parameters that are asked for."""
    known = sorted({name for trial in complete for name in trial.params})
    if params is None:
        if not complete:
            raise ArgumentError("study: expected a complete trial, got none; call optimize or tell first.")
        return known
    if not isinstance(params, list | tuple) or not all(isinstance(name, str) for name in params):
        raise ArgumentTypeError(f"params: expected a list of names, or None, got {params!r}.")
    unknown = [name for name in params if name not in known]
    if unknown:
        raise ArgumentError(f"params: expected names of complete trials' parameters, {known}, got {unknown}.")
    return list(params)
