"""Data that analyses and plots read from an optimizer: trials with their values, predictions, recommendations.

| symbol | shape  | units   | meaning                       |
| ------ | ------ | ------- | ----------------------------- |
| X      | (n, d) | encoded | points                        |
| y      | (n,)   | user's  | values in order of completion |
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.row_keys import row_keys
from bkbopt._support.settings import in_usual_settings
from bkbopt.errors import ArgumentError, ArgumentTypeError, NotReadyError
from bkbopt.optimizer import Optimizer
from bkbopt.optimizer.log.trials import Trial
from bkbopt.search.trials.states import FAIL, RUNNING

__all__ = [
    "Told",
    "as_optimizer",
    "bounded",
    "failures",
    "has_model",
    "is_modelled",
    "left_out",
    "n_values",
    "penalised",
    "predicted",
    "present",
    "recommended_so_far",
    "running",
    "told",
    "values_of",
]

#: Largest size of values.
WIDEST = 1e150
#: Number of points that are predicted at once.
BLOCK = 8192
#: Numbers of values at which the recommended point is computed.
LOOKS = 20


@dataclass(frozen=True)
class Told:
    """The trials with a value, in the order of completion; see the table."""

    trials: Sequence[Trial]
    X: Tensor
    y: np.ndarray

    @cached_property
    def feasible(self) -> np.ndarray:
        """A mask (n,) of the feasible trials."""
        return np.array([trial.is_feasible for trial in self.trials], dtype=np.bool_)


def as_optimizer(opt: object) -> Optimizer:
    """The argument, checked to be an optimizer.

    Raises:
        ArgumentTypeError: it is not an optimizer.
    """
    if not isinstance(opt, Optimizer):
        raise ArgumentTypeError(f"opt: expected a bkbopt Optimizer, got {type(opt).__name__}.")
    return opt


def bounded(values: Any) -> np.ndarray:
    """The values, those beyond `WIDEST` at `WIDEST`: differences, squares and axes of larger ones are beyond floats."""
    return np.clip(np.asarray(values, dtype=float), -WIDEST, WIDEST)


def told(opt: Optimizer) -> Told:
    """The trials with a value that is no penalty.

    Raises:
        ArgumentError: there are several objectives.
        NotReadyError: there are no values.
    """
    if len(opt.directions) > 1:
        raise ArgumentError(
            f"opt: expected an optimizer with a single objective, got one with {len(opt.directions)}; see overview "
            "and pareto, or pass opt.single_objective(0) (in the shell --objective 0)."
        )
    (trials, X, y), bad = opt.observed_trials(), penalised(opt)
    if not trials:
        raise NotReadyError("opt: expected at least one value, got none; call tell first.")
    if not bad:
        return Told(trials, X, bounded(y))
    kept = [row for row, trial in enumerate(trials) if trial.id not in bad]
    return Told([trials[row] for row in kept], X[kept], bounded(y[kept]))


def penalised(opt: Optimizer) -> set[int]:
    """The ids of the trials with penalties, which count as failures."""
    return {trial.id for trial in opt.penalties}


def failures(opt: Optimizer, data: Told) -> tuple[tuple[Trial, ...], Tensor]:
    """Failed trials and those with penalties, at points of the present space without another value, with X (n, d).

    Lost trials are left out.
    """
    known, lost, bad = set(row_keys(data.X)), {trial.id for trial in opt.lost_trials}, penalised(opt)
    trials = [trial for trial in opt.trials if (trial.state == FAIL and trial.id not in lost) or trial.id in bad]
    found = [(trial, x) for trial, x in present(opt, trials) if row_keys(x)[0] not in known]
    return tuple(trial for trial, _ in found), torch.cat([data.X[:0], *(x for _, x in found)])


def running(opt: Optimizer, data: Told) -> tuple[tuple[Trial, ...], Tensor]:
    """Running trials at points of the present space, with X (n, d)."""
    found = [*present(opt, (trial for trial in opt.trials if trial.state == RUNNING))]
    return tuple(trial for trial, _ in found), torch.cat([data.X[:0], *(x for _, x in found)])


def present(opt: Optimizer, trials: Iterable[Trial]) -> Iterator[tuple[Trial, Tensor]]:
    """Those trials whose points are in the present space or pool, with the encoded points, (1, d)."""
    for trial in trials:
        try:
            x = opt.encode(trial.params)
        except (ArgumentError, ArgumentTypeError):  # a point of an earlier space
            continue
        yield trial, x


def has_model(opt: Optimizer) -> bool:
    """Whether there is a single objective that `is_modelled`."""
    return len(opt.directions) == 1 and is_modelled(opt)


def left_out(opt: Optimizer, data: Told) -> np.ndarray:
    """A mask (n,) of the values that the fit leaves out as outliers; none of them before there is a model."""
    ids = {trial.id for trial in opt.outliers} if has_model(opt) else set()
    if not ids:
        return np.zeros(len(data.y), dtype=np.bool_)
    return np.array([trial.id in ids for trial in data.trials], dtype=np.bool_)


def is_modelled(opt: Optimizer) -> bool:
    """Whether suggestions use models, not the start-up design, and there are two values."""
    return n_values(opt) >= max(opt.n_startup_values, 2)


def n_values(opt: Optimizer) -> int:
    """The number of trials with values that are no penalties."""
    return opt.n_complete - len(opt.penalties)


def values_of(opt: Optimizer, objective: int) -> np.ndarray:
    """Values of one of the objectives as they came, (n,); NaN for penalties and infeasible trials."""
    (trials, *_), bad = opt.observed_trials(), penalised(opt)
    return bounded([t.values[objective] if t.is_feasible and t.id not in bad else np.nan for t in trials])


def predicted(opt: Optimizer, X: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and standard deviation of encoded points `X (n, d)`, each (n,), user's units."""
    parts = [opt.predict_encoded(block) for block in X.split(BLOCK)]
    mean, std = (bounded(np.concatenate([part[j] for part in parts])) for j in (0, 1))
    return mean, std


@in_usual_settings
def recommended_so_far(opt: Optimizer) -> np.ndarray:
    """The model's mean, user's units, at the point that it would have recommended after each value, `(n,)`.

    Kernel and noise are fitted to all values, and the means are those of the model of all values: the curve shows the
    present estimate of earlier recommendations, see `Optimizer.recommended_after`. It ends at that of
    `Optimizer.recommend`. It is computed at 20 numbers of values at most and constant in between; NaN before the first
    of these, and while no trial was feasible. With noise it is what the best value told is not: free of selection.

    Args:
        opt: an optimizer with at least one value.

    Returns:
        A mean for each value in the order of completion, without `Optimizer.penalties`.

    Raises:
        ArgumentTypeError: `opt` is not an optimizer.
        ArgumentError: there are several objectives.
        NotReadyError: there are no values yet.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import analysis
        >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, deterministic=True, seed=0)
        >>> told = opt.tell([{"x": 0.1}, {"x": 0.4}, {"x": 0.9}], [0.3, 0.1, 0.8])
        >>> analysis.recommended_so_far(opt).round(3).tolist()
        [0.3, 0.1, 0.1]
    """
    feasible = told(as_optimizer(opt)).feasible
    n = len(feasible)
    looks = np.unique(np.ceil(n * np.linspace(0.0, 1.0, LOOKS + 1)[1:] ** 2).astype(int))  # closer at the beginning
    out = np.full(n, np.nan)
    for t, choice in zip(looks, opt.recommended_after(looks.tolist()), strict=True):
        out[t - 1 :] = bounded(choice.mean)
    return np.where(np.logical_or.accumulate(feasible), out, np.nan)
