"""Features of the observed points, in a buffer that grows by rows (new points) and columns (new features)."""

import torch
from torch import Tensor

from bkbopt.posterior.features.base import FeatureMap

__all__ = ["FeatureTable"]

#: Number of points whose features are computed at once.
BLOCK = 4096


class FeatureTable:
    """`Z (u, r)` and `residual (u,)` (y squared) of the unique observed points; appending is amortised O(r) or O(u)."""

    def __init__(self, Z: Tensor, residual: Tensor) -> None:
        self._u, self._r = Z.shape
        self._Z, self._residual = Z, residual

    @classmethod
    def of(cls, features: FeatureMap, X: Tensor) -> "FeatureTable":
        """The table of the points `X (u, d)`; computed in blocks, so that the kernel's temporaries stay small."""
        u, r = X.shape[0], features.size
        # With room from the start: otherwise the first point and the first feature that follow copy the whole table.
        table = cls(X.new_empty(u + _room(u), r + _room(r)), X.new_empty(u + _room(u)))
        table._u, table._r = u, r
        for i in range(0, u, BLOCK):
            block, Z = X[i : i + BLOCK], table.Z[i : i + BLOCK]
            Z[:] = features(block)
            table.residual[i : i + BLOCK] = features.residual(block, Z)
        return table

    @property
    def Z(self) -> Tensor:
        """Features (u, r)."""
        return self._Z[: self._u, : self._r]

    @property
    def residual(self) -> Tensor:
        """Residuals (u,), y squared."""
        return self._residual[: self._u]

    @property
    def buffer(self) -> Tensor:
        """The features (>= u, >= r) with room for more points and features: contiguous, unlike `Z`."""
        return self._Z

    def row(self, at: int) -> tuple[Tensor, float]:
        """A copy of the features `(r,)` and the residual of one point."""
        return self._Z[at, : self._r].clone(), self._residual[at].item()

    def __copy__(self) -> "FeatureTable":
        """A table that shares the buffers, which stay as they are for it when this one grows."""
        other = FeatureTable.__new__(FeatureTable)
        other._u, other._r, other._Z, other._residual = self._u, self._r, self._Z, self._residual
        return other

    def add_row(self, z: Tensor, residual: Tensor) -> None:
        """Add a point with the features `z (r,)` and a scalar residual."""
        if self._u == self._Z.shape[0]:
            self._grow(rows=_room(self._u), columns=0)
        self._Z[self._u, : self._r] = z
        self._residual[self._u] = residual
        self._u += 1

    def add_column(self, c: Tensor) -> None:
        """Add a feature with the values `c (u,)`, and subtract c^2 from the residuals."""
        if self._r == self._Z.shape[1]:
            self._grow(rows=0, columns=_room(self._r))
        self._Z[: self._u, self._r] = c
        lost = torch.zeros_like(self._residual)
        lost[: self._u] = c * c
        # Not in place: earlier copies of this table share the buffers and have to stay valid.
        self._residual = (self._residual - lost).clamp_min(0.0)
        self._r += 1

    def _grow(self, rows: int, columns: int) -> None:
        u, r = self._Z.shape
        Z = self._Z.new_empty(u + rows, r + columns)
        Z[:u, :r] = self._Z
        self._Z = Z
        self._residual = torch.cat([self._residual, self._residual.new_empty(rows)])


def _room(n: int) -> int:
    """How many points or features may follow n of them before the buffer grows: a fixed share, for amortised growth."""
    return max(16, n // 4)
