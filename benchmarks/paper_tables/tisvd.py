"""TISVD (FORKS, Algorithm 2): a truncated singular value decomposition that follows its matrix through small changes.

It is what the paper of FORKS updates its sketches by. The package does without: the sketches are symmetric, which a
symmetric update makes use of and keeps.

| symbol | shape   | units     | meaning                                             |
| ------ | ------- | --------- | --------------------------------------------------- |
| sigma  | (k,)    | y squared | leading singular values                             |
| U, V   | (n, k)  | -         | their vectors                                       |
"""

from dataclasses import dataclass

import numpy as np

from benchmarks.paper_tables.sets import Array
from bkbopt._support.state_forms import Floats, Form
from bkbopt.learners import FORKS, SkeGD
from bkbopt.learners.features.sketched import new_directions
from bkbopt.learners.numerics.growing import finite

__all__ = ["TisvdFORKS", "TisvdSkeGD", "TruncatedSVD"]


@dataclass(frozen=True)
class TruncatedSVD:
    """Leading singular values `sigma (k,)` with vectors `U (n, k)` and `V (n', k)`; updated by TISVD (Algorithm 2)."""

    U: Array
    sigma: Array
    V: Array

    @staticmethod
    def form(s: int, k: int) -> Form:
        """What saved factors have to be."""
        vectors = Floats((s, k), -2.0, 2.0)
        return Form({"U": vectors, "sigma": Floats((k,), 0.0), "V": vectors})

    @classmethod
    def of(cls, Phi: Array, k: int) -> "TruncatedSVD":
        """From scratch."""
        U, sigma, Vt = np.linalg.svd(finite(Phi), full_matrices=False)
        return cls(np.ascontiguousarray(U[:, :k]), sigma[:k], np.ascontiguousarray(Vt[:k].T))

    def change(self, left: Array, right: Array) -> "TruncatedSVD":
        """That of U diag(sigma) V^T + left right^T, cut to as many singular values, for good as in `Eigenpairs`.

        `left (n, c)` and `right (n', c)` may have fewer directions than columns.
        """
        k = len(self.sigma)
        U = np.hstack([self.U, new_directions(self.U, left)])
        V = np.hstack([self.V, new_directions(self.V, right)])
        H = (U.T @ left) @ (V.T @ right).T
        H[np.arange(k), np.arange(k)] += self.sigma
        inner = TruncatedSVD.of(H, k)
        return TruncatedSVD(U @ inner.U, inner.sigma, V @ inner.V)

    def update(self, s: Array, v: Array, kappa: float) -> "TruncatedSVD":
        """The change of Phi_pp by a new point, in the paper's three columns."""
        return self.change(np.stack([s, v, s], 1), np.stack([v, s, kappa * s], 1))

    @property
    def root(self) -> Array:
        """V diag(sigma)^1/2 `(n', k)`: equation 5 takes V for both sides, and so a negative eigenvalue for positive."""
        return self.V * np.sqrt(self.sigma)


@dataclass(kw_only=True, eq=False)
class TisvdFORKS(FORKS):
    """FORKS with the paper's update."""

    def _kind(self) -> type[TruncatedSVD]:  # type: ignore[override]
        return TruncatedSVD


@dataclass(kw_only=True, eq=False)
class TisvdSkeGD(SkeGD):
    """SkeGD with the paper's update."""

    def _kind(self) -> type[TruncatedSVD]:  # type: ignore[override]
        return TruncatedSVD
