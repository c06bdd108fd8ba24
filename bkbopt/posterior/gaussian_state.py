"""Bayesian linear regression on fixed features: the linear-Gaussian state.

| symbol | shape  | units   | meaning                                                       |
| ------ | ------ | ------- | ------------------------------------------------------------- |
| lam    | scalar | y^2     | ridge = noise variance                                        |
| Z      | (u, r) | y       | features of the unique observed points                        |
| N      | (u, u) | -       | diagonal matrix of counts                                     |
| s      | (u,)   | y       | sums of the values                                            |
| V      | (r, r) | y^2     | Z^T N Z + lam I                                               |
| root   | (r, r) | 1/y     | root^T root = V^-1                                            |
| b      | (r,)   | y^2     | Z^T s                                                         |
| w      | (r,)   | -       | V^-1 b                                                        |

The leverage z^T V^-1 z has no unit; lam times the leverage is a variance.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bkbopt.posterior.explained import LONGEST, Explained
from bkbopt.posterior.linalg import (
    LEAST_COMPILED,
    append_to_inverse_root,
    block_update_inverse_root,
    compiles,
    difference_root,
    in_memory,
    inverse_root,
    update_inverse_root,
)

__all__ = ["GaussianState"]

#: Number of rows that are multiplied at once.
BLOCK = 4096
#: Up to so many hallucinated observations are taken one after the other, like single ones: their root of explained
#: variance costs O(m^2) each, where that of a block is a factorisation. It is the second smallest step of
#: `surrogates.pending`, of which there are three before the next larger one.
FEW = 8


@dataclass(frozen=True)
class GaussianState:
    """The Gaussian posterior of the weights; see the module's table of symbols.

    `explained` follows I - lam V^-1 through single values, where there are enough features for compiled loops.

    Example:
        >>> import torch
        >>> from bkbopt.posterior.gaussian_state import GaussianState
        >>> Z = torch.eye(2, dtype=torch.float64)  # features of two points
        >>> n, s = torch.tensor([[1.0, 3.0], [1.0, 6.0]], dtype=torch.float64)  # evaluations and their sums
        >>> state = GaussianState.from_data(Z, n, s, lam=1.0)
        >>> state.w, state.leverage(Z)
        (tensor([0.5000, 1.5000], dtype=torch.float64), tensor([0.5000, 0.2500], dtype=torch.float64))
    """

    lam: float
    V: Tensor
    root: Tensor
    b: Tensor
    w: Tensor
    explained: Explained | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Begin a sequence of values, if the state continues none."""
        if self.explained is None and len(self.w) >= LEAST_COMPILED and in_memory(self.root):
            object.__setattr__(self, "explained", Explained(self.root, self.lam))

    @classmethod
    def from_data(cls, Z: Tensor, n: Tensor, s: Tensor, lam: float) -> "GaussianState":
        """The state after counts `n (u,)` and sums `s (u,)` at the features `Z (u, r)`: O(u r^2 + r^3)."""
        V = Z.new_zeros(Z.shape[1], Z.shape[1])
        for i in range(0, Z.shape[0], BLOCK):  # in blocks, so that no second copy of Z is made
            B = Z[i : i + BLOCK]
            V.addmm_(B.T, B * n[i : i + BLOCK, None])
        return cls._from_V(V.diagonal_scatter(V.diagonal() + lam), Z.T @ s, lam)

    @classmethod
    def _from_V(cls, V: Tensor, b: Tensor, lam: float) -> "GaussianState":
        root = _root_of(V)
        return cls(lam, V, root, b, root.T @ (root @ b))

    def __deepcopy__(self, memo: dict[int, Any]) -> "GaussianState":
        """The object itself, since it is immutable."""
        return self

    def leverage(self, Z: Tensor) -> Tensor:
        """z^T V^-1 z `(n,)` of the rows of `Z (n, r)`; never negative."""
        if Z.shape[0] <= BLOCK:
            return torch.linalg.vector_norm(Z @ self.root.T, dim=1).square_()
        return torch.cat([self.leverage(B) for B in torch.split(Z, BLOCK)])

    def update(self, z: Tensor, y: float, weight: float = 1.0) -> "GaussianState":
        """The state after an observation `y` with noise variance lam / weight at the features `z (r,)`: O(r^2)."""
        return self.update_and_leverage(z, y, weight)[0]

    def update_and_leverage(self, z: Tensor, y: float, weight: float = 1.0) -> tuple["GaussianState", float]:
        """See `update`; also the leverage of `z` before the observation, which is a by-product."""
        if compiles(len(z), z):
            state, (inside,) = self._update_few(z[None], [0], [y], [weight])
            return state, inside
        if weight != 1.0:
            z, y = z * weight**0.5, y * weight**0.5
        u = self.root @ z
        v = self.root.T @ u
        q = float(u @ u)
        w = self.w + v * ((y - float(z @ self.w)) / (1.0 + q))
        V, root = torch.addr(self.V, z, z), update_inverse_root(self.root, u, v, q)
        explained = self.explained and self.explained.after(v.numpy() * (self.lam / (1.0 + q)) ** 0.5)
        return GaussianState(self.lam, V, root, self.b + z * y, w, explained), q / weight

    def update_in_turn(
        self, Z: Tensor, rows: list[int], y: list[float], weight: list[float], *, keeps: bool = False
    ) -> tuple["GaussianState", list[float]]:
        """`update_and_leverage` for values at some `rows` of Z, one after the other, in one call of compiled loops.

        Z has r columns at least, of which the first r are read, and is where `compiles` allows it. `keeps` says that
        other values may follow this state; see `Explained`.
        """
        # Sequences of explained parts end at the same values, however many are learnt in a call. The complete ones are
        # learnt at once, since each `_update_few` copies the matrices, and a copy takes as long as several values.
        n = len(rows)
        left = n if self.explained is None else self.explained.left + 1
        done = n - (n - left) % (LONGEST + 1) if left <= n else 0
        state, inside = self, list[float]()
        for start, stop in ((0, done), (done, n)):
            if start < stop:
                some, first = slice(start, stop), keeps and start == 0
                state, before = state._update_few(Z, rows[some], y[some], weight[some], keeps=first)
                inside += before
        return state, inside

    def _update_few(
        self, Z: Tensor, rows: list[int], y: list[float], weight: list[float], *, keeps: bool = False
    ) -> tuple["GaussianState", list[float]]:
        """`update_in_turn` for values within a sequence of explained parts, or up to the end of one."""
        from bkbopt.posterior._loops import observe

        old = self.V, self.root, self.b, self.w
        V, root, b, w = (part.clone(memory_format=torch.contiguous_format) for part in old)
        scale, inside, steps = np.array([a**0.5 for a in weight]), np.empty(len(rows)), np.empty((len(rows), len(w)))
        changed = V.numpy(), root.numpy(), b.numpy(), w.numpy()
        observe(Z.numpy(), np.array(rows), np.array(y), scale, *changed, inside, steps)
        explained = self.explained
        steps *= self.lam**0.5
        for t, step in enumerate(steps):
            explained = explained and explained.after(step, keeps=keeps and t == 0)
        state = GaussianState(self.lam, V, root, b, w, explained)
        return state, [q / a for q, a in zip(inside.tolist(), weight, strict=True)]

    def append(self, G: Tensor, H: Tensor, b: Tensor) -> "GaussianState":
        """The state with k more features, whose values at the data are C `(u, k)`: O(r^2 k + k^3).

        Args:
            G: Z^T N C, `(r, k)`.
            H: C^T N C, `(k, k)`.
            b: C^T s, `(k,)`.
        """
        U = self.root @ G
        P = self.root.T @ U
        # The Schur complement: the part of C that the other features do not explain, plus lam I.
        root = difference_root(H - U.T @ U, self.lam)
        step = root.T @ (root @ (b - P.T @ self.b))
        r, k = G.shape
        V = self.V.new_zeros(r + k, r + k)
        V[:r, :r], V[:r, r:], V[r:, :r] = self.V, G, G.T
        V[r:, r:] = H.diagonal_scatter(H.diagonal() + self.lam)
        w, b = torch.cat([self.w - P @ step, step]), torch.cat([self.b, b])
        return GaussianState(self.lam, V, append_to_inverse_root(self.root, P, root), b, w)

    def refactor(self) -> "GaussianState":
        """The same state with root and w recomputed from V and b, without the rounding errors of rank-one steps."""
        return self._from_V(self.V, self.b, self.lam)

    def effective_dimension(self) -> float:
        """Tr(V^-1 Z^T N Z) = r - lam Tr(V^-1), the part of d_eff inside the span of the features."""
        return self._effective_dimension

    @cached_property
    def _effective_dimension(self) -> float:
        return max(len(self.w) - self.lam * float((self.root * self.root).sum()), 0.0)

    def log_determinant(self) -> float:
        """logdet(V / lam), twice the information gain inside the span of the features: O(r^3)."""
        return float(torch.linalg.slogdet(self.V).logabsdet) - len(self.w) * math.log(self.lam)

    def hallucinate(self, Z: Tensor) -> "GaussianState":
        """The state after hallucinated observations, equal to the mean, at the rows of `Z (p, r)`; w is unchanged.

        A few of them, at most `FEW`, continue the sequence of explained parts.
        """
        y, explained = Z @ self.w, None
        b = self.b + Z.T @ y
        if 1 < len(Z) <= FEW and compiles(len(self.w), Z):
            state, _ = self.update_in_turn(Z, list(range(len(Z))), y.tolist(), [1.0] * len(Z), keeps=True)
            return replace(state, b=b, w=self.w)
        if len(Z) == 1:
            z = Z[0]
            u = self.root @ z
            v, q = self.root.T @ u, float(u @ u)
            V, root = torch.addr(self.V, z, z), update_inverse_root(self.root, u, v, q)
            explained = self.explained and self.explained.after(v.numpy() * (self.lam / (1.0 + q)) ** 0.5, keeps=True)
        else:
            V = self.V + Z.T @ Z
            few = len(Z) * 4 <= len(self.w)
            root = block_update_inverse_root(self.root, self.root @ Z.T) if few else _root_of(V)
        return replace(self, V=V, root=root, b=b, explained=explained)

    def with_mean(self, w: Tensor) -> "GaussianState":
        """The same covariance with other weights."""
        return replace(self, w=w, b=self.V @ w)


def _root_of(V: Tensor) -> Tensor:
    return inverse_root(0.5 * (V + V.T))
