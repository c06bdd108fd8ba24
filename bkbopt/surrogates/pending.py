"""Pending points: posteriors that count them as evaluated, and which of them the dictionary must take to see them all.

| symbol   | shape  | units | meaning                                                               |
| -------- | ------ | ----- | --------------------------------------------------------------------- |
| X        | (p, d) | enc.  | pending points                                                        |
| Z        | (p, r) | y     | their features                                                        |
| R        | (p, p) | y^2   | what the features do not see of their covariance, k(X, X) - Z Z^T     |
| C        | (p, k) | y     | the new features of the k points taken so far; C C^T approximates R   |

A list of pending points is counted in steps of 512 as long as there are so many, then of 128, 32 and 8, then one by
one. The steps depend on the number of points alone, so the result is a function of the list. A list that begins with
one counted before goes on from the last end of a step that both have.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from bkbopt.posterior.features import Extension, Nystrom
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.linalg import inverse_of_lower
from bkbopt.posterior.observations import Observations

__all__ = ["Counted", "Fantasy", "count_all", "extension_by"]

#: How many pending points are counted together; each divides the one before.
STEPS = (512, 128, 32, 8, 1)

T = TypeVar("T")


@dataclass(frozen=True)
class Counted(Generic[T]):
    """A posterior with the pending points `X (p, d)` counted."""

    X: Tensor
    value: T


def count_all(kept: Sequence[Counted[T]], X: Tensor, count: Callable[[T, Tensor], T]) -> tuple[Counted[T], ...]:
    """Count the points `X (p, d)`; the last of the results counts them all, the others are worth keeping.

    Args:
        kept: results of before on the same data; the first one counts no points.
        X: the points.
        count: a posterior and a few points to the posterior that counts them too.
    """
    p = len(X)
    usable = [one for one in kept if _is_stop(len(one.X), p) and torch.equal(one.X, X[: len(one.X)])]
    n = len(usable[-1].X)
    value = usable[-1].value
    while n < p:
        step = next(step for step in STEPS if n % step == 0 and n + step <= p)
        value, n = count(value, X[n : n + step].clone()), n + step  # a copy: its memory is aligned as any other's
        if n in _ends(p):
            usable.append(Counted(X[:n].clone(), value))
    return usable[0], *(one for one in usable[1:] if len(one.X) in _ends(p))


def _ends(p: int) -> list[int]:
    """Where the steps of each size end in a list of `p` points."""
    return [p - p % step for step in STEPS]


def _is_stop(n: int, p: int) -> bool:
    """Whether one of the steps through a list of `p` points ends at `n`."""
    return n <= p and all(n % step == 0 or n >= end for step, end in zip(STEPS, _ends(p), strict=True))


@dataclass(frozen=True)
class Fantasy:
    """A posterior on Nystrom features with pending points counted as evaluated at their mean.

    Attributes:
        features: of the dictionary, with the inducing points that were appended for pending points.
        observed: state of the observations alone on these features.
        state: the same with the pending points counted; its mean is that of `observed`.
        Z: features of the observed points under the dictionary without the appended ones, (u, r - k).
        C: values of the appended features at the observed points, (u, k).
        X: pending points, (p, d).
        parts: their features, blocks of rows in order, (p, r) in all.
    """

    features: Nystrom
    observed: GaussianState
    state: GaussianState
    Z: Tensor
    C: Tensor
    X: Tensor
    parts: tuple[Tensor, ...] = ()

    @classmethod
    def start(cls, features: Nystrom, Z: Tensor, state: GaussianState) -> "Fantasy":
        """Nothing pending yet."""
        return cls(features, state, state, Z, Z.new_zeros(len(Z), 0), features.S[:0])

    def count(self, X: Tensor, Z: Tensor) -> "Fantasy":
        """The points `X (q, d)` counted, too, whose features are `Z (q, r)`."""
        return replace(self, state=self.state.hallucinate(Z), X=torch.cat([self.X, X]), parts=(*self.parts, Z))

    def append(self, more: Extension, seen: Observations) -> "Fantasy":
        """Inducing points appended: O((u + p) r k + r^2 k + k^3).

        Args:
            more: the points.
            seen: the observations.
        """
        r = self.Z.shape[1]
        # As `more.columns`, without a copy of Z and C side by side.
        K = more.features.kernel(seen.X, more.X)
        C = (K - self.Z @ more.Z[:, :r].T - self.C @ more.Z[:, r:].T) @ more.root.T
        NC = seen.n[:, None] * C
        G, H = torch.cat([self.Z.T @ NC, self.C.T @ NC]), C.T @ NC
        observed = self.observed.append(G, H, C.T @ seen.s)
        state, parts = observed, self.parts
        if parts:
            Z = torch.cat(parts)
            E = more.columns(self.X, Z)
            state = self.state.append(G + Z.T @ E, H + E.T @ E, torch.zeros_like(H[0])).with_mean(observed.w)
            parts = (torch.cat([Z, E], 1),)
        C = torch.cat([self.C, C], 1)
        return replace(self, features=more.whole(), observed=observed, state=state, C=C, parts=parts)


def extension_by(
    features: Nystrom,
    state: GaussianState,
    X: Tensor,
    Z: Tensor,
    room: int | None,
    pays: Callable[[float, float, Tensor], bool],
) -> Extension | None:
    """By those of `X (p, d)` that pay, each judged after those before it: O(p r^2 + p^2 r + p k^2).

    A Cholesky factorisation of what the features do not see tells what each point leaves unseen of the next ones.

    Args:
        features: those of the dictionary.
        state: what it knows of the points is taken as it is now.
        X: points.
        Z: their features (p, r).
        room: how many points may be appended, or None for no limit.
        pays: leverage, residual (y squared) and point `(d,)` to whether to append it.
    """
    known, residual = state.leverage(Z).tolist(), features.residual(X, Z).tolist()
    # A point that does not pay now does not pay once others are in, either: residuals only fall.
    rows = [i for i in range(len(X)) if pays(residual[i] / state.lam + known[i], residual[i], X[i])]
    if not rows:
        return None
    R = features.residual_covariance(X[rows], Z[rows]).cpu().numpy()
    most = len(rows) if room is None else min(room, len(rows))
    left, C, taken = R.diagonal().copy(), np.zeros((len(rows), most)), list[int]()
    for i, row in enumerate(rows):
        k = len(taken)
        if k == most:
            break
        if pays(float(left[i]) / state.lam + known[row], float(left[i]), X[row]):
            C[:, k] = (R[:, i] - C[:, :k] @ C[i, :k]) / left[i] ** 0.5
            left = (left - C[:, k] ** 2).clip(0.0)
            taken.append(i)
    if not taken:
        return None
    chosen = [rows[i] for i in taken]
    L = torch.as_tensor(np.tril(C[taken, : len(taken)]), device=Z.device)
    return Extension(features, X[chosen], Z[chosen], inverse_of_lower(L))
