"""Data that plots read from an optimizer: trials with their values, predictions, and prior correlations.

| symbol | shape  | units   | meaning                       |
| ------ | ------ | ------- | ----------------------------- |
| X      | (n, d) | encoded | points                        |
| y      | (n,)   | user's  | values in order of completion |
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.row_keys import row_keys
from bkbopt.errors import ArgumentError, ArgumentTypeError, NotReadyError
from bkbopt.optimizer import Optimizer
from bkbopt.optimizer.trials import Trial
from bkbopt.search.trials.states import FAIL, RUNNING

__all__ = [
    "Told",
    "correlation",
    "drawable",
    "evaluations_of",
    "failed_in_words",
    "failures",
    "has_model",
    "is_modelled",
    "left_out",
    "n_values",
    "name_of",
    "name_of_all",
    "penalised",
    "predicted",
    "present",
    "recommended_so_far",
    "running",
    "told",
    "values_of",
]

#: Largest size of values in pictures.
WIDEST = 1e150
#: Number of points that are predicted at once.
BLOCK = 8192
#: Numbers of values at which the recommended point is computed.
LOOKS = 20
#: Number of pairs of points at once; of the matrix between two sets of points only the diagonal is used.
PAIRS = 256


@dataclass(frozen=True)
class Told:
    """The trials with a value, in the order of completion; see the table."""

    trials: tuple[Trial, ...]
    X: Tensor
    y: np.ndarray


def drawable(values: Any) -> np.ndarray:
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
    (trials, X), bad = opt.observed_trials(), penalised(opt)
    if not trials:
        raise NotReadyError("opt: expected at least one value, got none; call tell first.")
    kept = [row for row, trial in enumerate(trials) if trial.id not in bad]
    own = tuple(trials[row] for row in kept)
    return Told(own, X[kept], drawable([trial.values[0] for trial in own]))


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


def failed_in_words(opts: Sequence[Optimizer], noun: str = "") -> str:
    """How many trials of optimizers have no value that counts, as "7 failed, 4 penalties"; empty if there are none.

    Lost trials are left out. The `noun` follows "failed".
    """
    failed = sum(sum(trial.state == FAIL for trial in opt.trials) - len(opt.lost_trials) for opt in opts)
    penalties = sum(len(opt.penalties) for opt in opts)
    what = f"failed {noun}{'s' * (failed > 1)}" if noun else "failed"
    counts = ((failed, what), (penalties, "penalties"))
    return ", ".join(f"{count} {words}" for count, words in counts if count)


def evaluations_of(opts: Sequence[Optimizer]) -> str:
    """The label of an axis of evaluations of runs, which says how many trials of optimizers are left out."""
    failed = failed_in_words(opts, "trial")
    return f"evaluations ({failed} left out)" if failed else "evaluations"


def has_model(opt: Optimizer) -> bool:
    """Whether there is a single objective that `is_modelled`."""
    return len(opt.directions) == 1 and is_modelled(opt)


def left_out(opt: Optimizer, data: Told) -> np.ndarray:
    """A mask (n,) of the values that the fit leaves out as outliers; none of them before there is a model."""
    ids = {trial.id for trial in opt.outliers} if has_model(opt) else set()
    return np.array([trial.id in ids for trial in data.trials], dtype=np.bool_)


def is_modelled(opt: Optimizer) -> bool:
    """Whether suggestions use models, not the start-up design, and there are two values."""
    return n_values(opt) >= max(opt.n_startup_values, 2)


def n_values(opt: Optimizer) -> int:
    """The number of trials with values that are no penalties."""
    return opt.n_complete - len(opt.penalties)


def name_of(opt: Optimizer, value_name: str | None) -> str:
    """The label of the value, which is the name of the single objective if none was given."""
    return (opt.objectives or ("value",))[0] if value_name is None else value_name


def name_of_all(opts: Sequence[Optimizer], value_name: str | None) -> str:
    """The label of the values of several runs: the name that all of their objectives have, if none was given."""
    names = {name_of(opt, value_name) for opt in opts}
    return names.pop() if len(names) == 1 else value_name or "value"


def values_of(opt: Optimizer, objective: int) -> np.ndarray:
    """Values of one of the objectives as they came, (n,); NaN for penalties and infeasible trials."""
    (trials, _), bad = opt.observed_trials(), penalised(opt)
    return drawable([t.values[objective] if t.is_feasible and t.id not in bad else np.nan for t in trials])


def predicted(opt: Optimizer, X: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and standard deviation of encoded points `X (n, d)`, each (n,), user's units."""
    parts = [opt.predict_encoded(block) for block in X.split(BLOCK)]
    mean, std = (drawable(np.concatenate([part[j] for part in parts])) for j in (0, 1))
    return mean, std


def recommended_so_far(opt: Optimizer) -> np.ndarray:
    """The model's mean, user's units, at the point that it would have recommended after each value, `(n,)`.

    Kernel and noise are fitted to all values, and the means are those of the model of all values: the curve shows the
    present estimate of earlier recommendations, see `Optimizer.recommended_after`. It ends
    at that of `Optimizer.recommend`. It is computed at `LOOKS` numbers of values and constant in between; NaN before
    the first of these, and while no trial was feasible.
    """
    feasible = np.array([trial.is_feasible for trial in told(opt).trials])
    n = len(feasible)
    looks = np.unique(np.ceil(n * np.linspace(0.0, 1.0, LOOKS + 1)[1:] ** 2).astype(int))  # closer at the beginning
    out = np.full(n, np.nan)
    for t, choice in zip(looks, opt.recommended_after(looks.tolist()), strict=True):
        out[t - 1 :] = drawable(choice.mean)
    return np.where(np.logical_or.accumulate(feasible), out, np.nan)


def correlation(opt: Optimizer, X: Tensor, other: Tensor) -> np.ndarray:
    """Prior correlation of each point of `X (n, d)` with that in the same row of `other`, (n,), clipped to [0, 1]."""
    kernel = opt.surrogate.kernel
    out = []
    with torch.no_grad():
        for A, B in zip(X.split(PAIRS), other.split(PAIRS), strict=True):
            scale = (kernel.diag(A) * kernel.diag(B)).sqrt()
            out.append((kernel(A, B).diagonal() / scale).clamp(0.0, 1.0).numpy())
    return np.concatenate(out) if out else np.zeros(0)
