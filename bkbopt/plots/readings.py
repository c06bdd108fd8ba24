"""Data that plots read from an optimizer: trials with their values, predictions, and prior correlations.

| symbol | shape  | units   | meaning                       |
| ------ | ------ | ------- | ----------------------------- |
| X      | (n, d) | encoded | points                        |
| y      | (n,)   | user's  | values in order of completion |
"""

from collections import defaultdict, deque
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bkbopt.errors import ArgumentError, NotReadyError
from bkbopt.optimizer import Optimizer
from bkbopt.optimizer.trials import Trial

__all__ = ["Told", "correlation", "predicted", "told"]

#: Number of points that are predicted at once.
BLOCK = 8192
#: Number of pairs of points at once; the whole matrix between the two sets is computed, of which the diagonal is used.
PAIRS = 256


@dataclass(frozen=True)
class Told:
    """The trials with a value, in the order of completion; see the table."""

    trials: tuple[Trial, ...]
    X: Tensor
    y: np.ndarray


def told(opt: Optimizer) -> Told:
    """The trials with a value.

    Raises:
        ArgumentError: there are several objectives.
        NotReadyError: there are no values.
    """
    if len(opt.directions) > 1:
        raise ArgumentError(
            f"opt: expected an optimizer with a single objective, got one with {len(opt.directions)}; see pareto."
        )
    X, y = opt.observed()
    if not len(y):
        raise NotReadyError("opt: expected at least one value, got none; call tell first.")
    # The order is that of the values, since times of completion may be equal, or a clock may have been set back.
    complete = [trial for trial in opt.trials if trial.values]
    waiting: dict[float, deque[Trial]] = defaultdict(deque)
    for trial in sorted(complete, key=lambda t: (str(t.told_at), t.id)):
        waiting[trial.values[0]].append(trial)
    return Told(tuple(waiting[value].popleft() for value in y.tolist()), X, y)


def predicted(opt: Optimizer, X: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and standard deviation of encoded points `X (n, d)`, each (n,), user's units."""
    parts = [opt.predict_encoded(block) for block in X.split(BLOCK)]
    return np.concatenate([mean for mean, _ in parts]), np.concatenate([std for _, std in parts])


def correlation(opt: Optimizer, X: Tensor, other: Tensor) -> np.ndarray:
    """Prior correlation of each point of `X (n, d)` with that in the same row of `other`, (n,), clipped to [0, 1]."""
    kernel = opt.surrogate.kernel
    out = []
    with torch.no_grad():
        for A, B in zip(X.split(PAIRS), other.split(PAIRS), strict=True):
            scale = (kernel.diag(A) * kernel.diag(B)).sqrt()
            out.append((kernel(A, B).diagonal() / scale).clamp(0.0, 1.0).numpy())
    return np.concatenate(out) if out else np.zeros(0)
