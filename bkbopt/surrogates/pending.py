"""Fantasies: posteriors that count pending points as if they had been evaluated at their posterior mean.

| symbol   | shape  | units | meaning                                                               |
| -------- | ------ | ----- | --------------------------------------------------------------------- |
| X        | (p, d) | enc.  | pending points                                                        |
| Z        | (p, r) | y     | features of the pending points                                        |
| R        | (p, p) | y^2   | residual covariance k(X, X) - Z Z^T                                   |
| C        | (p, k) | y     | new features of the k points appended so far; C C^T approximates R    |

A list of pending points is counted in steps of 512 points, then of 128, 32 and 8, then one by one. The steps depend
only on the length of the list, so the result, bit for bit, is a function of the list. A list that begins with a list
that was counted before continues from the end of the last step that both lists have.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from bkbopt.posterior.collapsed import Collapsed, collapsed
from bkbopt.posterior.features import Extension, Nystrom
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.linalg import inverse_of_lower
from bkbopt.posterior.observations import Observations

__all__ = ["Counted", "Fantasy", "count_all", "extension_by"]

#: Numbers of pending points that are counted together; each divides the one before.
STEPS = (512, 128, 32, 8, 1)

T = TypeVar("T")


@dataclass(frozen=True)
class Counted(Generic[T]):
    """A posterior with the pending points `X (p, d)` counted, with inducing points beyond the budget or without."""

    X: Tensor
    value: T
    beyond_budget: bool = False


def count_all(
    kept: Sequence[Counted[T]], X: Tensor, count: Callable[[T, Tensor], T], *, beyond_budget: bool = False
) -> tuple[Counted[T], ...]:
    """Count the points `X (p, d)`: the last result counts all, the others are intermediate results for the next call.

    Args:
        kept: results of the previous call for the same data; the first one counts no points.
        X: the points.
        count: maps a posterior and a few points to the posterior that also counts these.
        beyond_budget: what `count` does; results of the other kind are of no use.
    """
    p = len(X)
    alike = (one for one in kept if one.beyond_budget == beyond_budget or not len(one.X))
    usable = [one for one in alike if _is_stop(len(one.X), p) and torch.equal(one.X, X[: len(one.X)])]
    n = len(usable[-1].X)
    value = usable[-1].value
    while n < p:
        step = next(step for step in STEPS if n % step == 0 and n + step <= p)
        value, n = count(value, X[n : n + step].clone()), n + step  # a copy has torch's memory alignment
        if n in _ends(p):
            usable.append(Counted(X[:n].clone(), value, beyond_budget))
    return usable[0], *(one for one in usable[1:] if len(one.X) in _ends(p))


def _ends(p: int) -> list[int]:
    """For each step size, the number of points after its last step in a list of `p` points."""
    return [p - p % step for step in STEPS]


def _is_stop(n: int, p: int) -> bool:
    """Whether a step through a list of `p` points ends after `n` points."""
    return n <= p and all(n % step == 0 or n >= end for step, end in zip(STEPS, _ends(p), strict=True))


@dataclass(frozen=True)
class Seen:
    """What a posterior has learnt: unique points X `(u, d)`, their counts n `(u,)`, and sums s `(u,)`, y."""

    X: Tensor
    n: Tensor
    s: Tensor

    @classmethod
    def of(cls, observations: Observations) -> "Seen":
        """The observations, whose counts and sums must not change."""
        return cls(observations.X, observations.n, observations.s)

    def kept(self) -> "Seen":
        """The same for observations that others may follow, which repeat some of the points."""
        return Seen(self.X, self.n.clone(), self.s.clone())


@dataclass(frozen=True)
class Fantasy:
    """A posterior on Nystrom features with pending points counted as evaluated at their posterior mean.

    Attributes:
        features: features of the dictionary, including inducing points that were appended for pending points.
        observed: state of the observations alone on these features.
        state: state that also counts the pending points; its mean is that of `observed`.
        seen: the observed points.
        Z: features of the observed points without the appended ones, (u, r - k).
        C: values of the appended features at the observed points, (u, k).
        X: pending points, (p, d).
        parts: features of the pending points, (p, r), as blocks of rows in order.
        before: a fantasy with the same covariance, or None.
    """

    features: Nystrom
    observed: GaussianState
    state: GaussianState
    seen: Seen
    Z: Tensor
    C: Tensor
    X: Tensor
    parts: tuple[Tensor, ...] = ()
    before: "Fantasy | None" = None

    @classmethod
    def start(cls, features: Nystrom, seen: Seen, Z: Tensor, state: GaussianState) -> "Fantasy":
        """The posterior without pending points."""
        return cls(features, state, state, seen, Z, Z.new_zeros(len(Z), 0), features.S[:0])

    def count(self, X: Tensor, Z: Tensor) -> "Fantasy":
        """Count further points `X (q, d)`, whose features are `Z (q, r)`."""
        state, parts = self.state.hallucinate(Z), (*self.parts, Z)
        return replace(self, state=state, X=torch.cat([self.X, X]), parts=parts)

    @cached_property
    def collapsed(self) -> Collapsed:
        """The predictor of the posterior; O(r^2) after a single point, else O(r^3)."""
        state = self.state
        if self.before is not None:
            return replace(self.before.collapsed, a=self.features.W @ state.w)
        return collapsed(self.features, state.w, state.root, state.lam, state.explained)

    def rows(self, at: Sequence[int]) -> Tensor:
        """Features `(k, r)` of the pending points in some rows of X."""
        ends = np.cumsum([len(part) for part in self.parts])
        parts = np.searchsorted(ends, at, side="right").tolist()
        return torch.stack([self.parts[j][row - ends[j]] for j, row in zip(parts, at, strict=True)])

    def with_data(self, observed: GaussianState) -> "Fantasy":
        """The same covariance with the mean of other data, which are a state on the same features."""
        return replace(self, observed=observed, state=self.state.with_mean(observed.w), before=self)

    def append(self, more: Extension) -> "Fantasy":
        """Append inducing points: O((u + p) r k + r^2 k + k^3)."""
        r, seen = self.Z.shape[1], self.seen
        # The same as `more.columns`, without concatenating Z and C.
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
    """The extension by those points of `X (p, d)` that are worth appending: O(p r^2 + p^2 r + p k^2).

    Points are tested in order, each with its residual after the points before it were appended. A Cholesky
    factorisation of the residual covariance gives these residuals. None if no point is worth appending.

    Args:
        features: features of the dictionary.
        state: the state for the leverages inside the features, which are not updated between points.
        X: the points.
        Z: their features (p, r).
        room: largest number of points to append, or None for no limit.
        pays: whether to append a point, from its leverage, residual (y squared) and coordinates `(1, d)`.
    """
    known, residual = state.leverage(Z).tolist(), features.residual(X, Z).tolist()
    # A point that fails the test now also fails it after others were appended, since residuals only fall.
    rows = [i for i in range(len(X)) if pays(residual[i] / state.lam + known[i], residual[i], X[i : i + 1])]
    if not rows:
        return None
    R = features.residual_covariance(X[rows], Z[rows]).cpu().numpy()
    most = len(rows) if room is None else min(room, len(rows))
    left, C, taken = R.diagonal().copy(), np.zeros((len(rows), most)), list[int]()
    for i, row in enumerate(rows):
        k = len(taken)
        if k == most:
            break
        if pays(float(left[i]) / state.lam + known[row], float(left[i]), X[row : row + 1]):
            C[:, k] = (R[:, i] - C[:, :k] @ C[i, :k]) / left[i] ** 0.5
            left = (left - C[:, k] ** 2).clip(0.0)
            taken.append(i)
    if not taken:
        return None
    chosen = [rows[i] for i in taken]
    L = torch.as_tensor(np.tril(C[taken, : len(taken)]), device=Z.device)
    return Extension(features, X[chosen], Z[chosen], inverse_of_lower(L))
