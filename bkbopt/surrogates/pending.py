"""Pending points: a state that counts them as evaluated, and which of them the dictionary must take to see them all.

| symbol   | shape  | units | meaning                                                               |
| -------- | ------ | ----- | --------------------------------------------------------------------- |
| X        | (p, d) | enc.  | pending points                                                        |
| Z        | (p, r) | y     | their features                                                        |
| R        | (p, p) | y^2   | what the features do not see of their covariance, k(X, X) - Z Z^T     |
| C        | (p, k) | y     | the new features of the k points taken so far; C C^T approximates R   |
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from bkbopt.posterior.features import Nystrom
from bkbopt.posterior.gaussian_state import GaussianState

__all__ = ["Fork", "uncovered"]


@dataclass
class Fork:
    """The state with pending points counted, and how often each is counted, by its bytes."""

    pending: Counter[bytes]
    state: GaussianState

    def observe(self, key: bytes, z: Tensor) -> "Fork":
        """In step with an observation at features `z (r,)`: a pending point's arrival changes nothing in its V."""
        pending = self.pending.copy()
        if pending[key] > 0:
            pending.subtract([key])
            return Fork(+pending, self.state)
        return Fork(pending, self.state.update(z, None))


def uncovered(
    features: Nystrom, state: GaussianState, X: Tensor, room: int | None, pays: Callable[[float, float, Tensor], bool]
) -> list[int]:
    """Rows of `X (p, d)` to append, each judged after those before it, by pivoted Cholesky: O(p m^2 + p^2 m + p k^2).

    Args:
        features: those of the dictionary.
        state: of all observations; what it knows of the points is taken as it is now.
        X: pending points.
        room: how many points may be appended, or None for no limit.
        pays: leverage, residual (y squared) and point `(d,)` to whether to append it.
    """
    Z = features(X)
    known, residual = state.leverage(Z).tolist(), features.residual(X, Z).tolist()
    # A point that does not pay now does not pay once others are in, either: residuals only fall.
    rows = [i for i in range(len(X)) if pays(residual[i] / state.lam + known[i], residual[i], X[i])]
    if not rows:
        return []
    R = features.residual_covariance(X[rows], Z[rows]).cpu().numpy()
    most = len(rows) if room is None else min(room, len(rows))
    left, C, taken = R.diagonal().copy(), np.empty((len(rows), most)), list[int]()
    for i, row in enumerate(rows):
        k = len(taken)
        if k == most:
            break
        if pays(float(left[i]) / state.lam + known[row], float(left[i]), X[row]):
            C[:, k] = (R[:, i] - C[:, :k] @ C[i, :k]) / left[i] ** 0.5
            left = (left - C[:, k] ** 2).clip(0.0)
            taken.append(row)
    return taken
