"""The best trials of a log by their observed values: the best one, the Pareto front, and its hypervolume."""

import math
import sys
from collections.abc import Sequence

import numpy as np

from bkbopt._support.arrays import as_values
from bkbopt.errors import ArgumentError, NotReadyError
from bkbopt.optimizer.log.aims import Aims
from bkbopt.optimizer.log.trial_log import TrialLog
from bkbopt.optimizer.log.trials import Trial
from bkbopt.search.criteria.pareto import hypervolume as volume_above
from bkbopt.search.criteria.pareto import non_dominated
from bkbopt.search.trials.directions import sign_of
from bkbopt.search.trials.states import COMPLETE
from bkbopt.spaces.values import shown

__all__ = ["best_trial", "front", "hypervolume"]


def _gains(trials: Sequence[Trial], aims: Aims) -> np.ndarray:
    """Values (n, k), with the sign such that larger is better."""
    signs = np.array([*map(sign_of, aims.directions)])
    return signs * np.array([trial.values for trial in trials]).reshape(-1, aims.k)


def _candidates(log: TrialLog, aims: Aims, call: str) -> list[Trial]:
    """The feasible trials; those without a value of some constraint only if there are no others."""
    found = [trial for trial in log if trial.values and trial.state == COMPLETE]
    if not found:
        if any(trial.partial_values for trial in log):
            raise NotReadyError(
                f"{call}: expected a trial with a value of each objective, got none; tell the others with replace=True."
            )
        raise NotReadyError(f"{call}: expected at least one value, got none; call tell first.")
    feasible = [trial for trial in found if trial.is_feasible]
    if not feasible:
        hint = "recommend has the nearest point" if call == "best_trial" else "trials has the constraints' values"
        raise NotReadyError(f"{call}: expected at least one feasible trial, got none; {hint}.")
    return [trial for trial in feasible if all(name in trial.constraints for name in aims.constraints)] or feasible


def best_trial(log: TrialLog, aims: Aims) -> Trial:
    """See `Optimizer.best_trial`."""
    if aims.k > 1:
        raise ArgumentError("best_trial: expected a single objective, got several; see best_trials.")
    feasible = _candidates(log, aims, "best_trial")
    return feasible[int(_gains(feasible, aims)[:, 0].argmax())]


def front(log: TrialLog, aims: Aims, call: str = "best_trials") -> list[Trial]:
    """See `Optimizer.best_trials`; in order of their ids. Errors name the user's `call`."""
    feasible = _candidates(log, aims, call)
    return [feasible[i] for i in sorted(non_dominated(_gains(feasible, aims)))]


def hypervolume(log: TrialLog, aims: Aims, reference: Sequence[float]) -> float:
    """See `Optimizer.hypervolume`."""
    low = _reference(reference, aims.k) * [*map(sign_of, aims.directions)]
    Y = _gains(front(log, aims, "hypervolume"), aims)
    # Scaled by powers of two to values below 1/2, so that only the volume itself can overflow.
    exponents = np.frexp(np.abs(np.vstack([Y, low])).max(0))[1] + 1
    corner, points = (np.ldexp(part, -exponents) for part in (low, Y))
    return _ldexp(volume_above(points, corner), int(exponents.sum()))


def _reference(given: Sequence[float], k: int) -> np.ndarray:
    """A reference point (k,), checked."""
    try:
        return as_values(given, k, name="reference").numpy()
    except ArgumentError:
        raise ArgumentError(
            f"reference: expected {k} finite number{'s' * (k > 1)}, one for each objective, got {shown(given)}."
        ) from None


def _ldexp(x: float, exponent: int) -> float:
    """x 2^exponent, or the largest double if that overflows."""
    try:
        return math.ldexp(x, exponent)
    except OverflowError:
        return math.copysign(sys.float_info.max, x)
