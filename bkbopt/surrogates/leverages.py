"""Leverages of the observed points, at any lam of the sampling."""

from torch import Tensor

from bkbopt.posterior.features.table import FeatureTable
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.linalg import eigh

__all__ = ["Leverages", "bounded_sum"]


class Leverages:
    """scale -> leverages (u,) of the observed points with the sampling's lam at scale * lam.

    One eigendecomposition of Z^T N Z serves every scale: lev = residual / l + sum_j (Z Q)_j^2 / (e_j + l).
    """

    def __init__(self, table: FeatureTable, state: GaussianState) -> None:
        self.table, self.state = table, state
        self._eigen: tuple[Tensor, Tensor] | None = None

    def __call__(self, scale: float) -> Tensor:
        """Leverages `(u,)` with the sampling's lam at `scale` times lam."""
        lam = self.state.lam
        if scale == 1.0:
            return self.table.residual / lam + self.state.leverage(self.table.Z)
        if self._eigen is None:
            e, Q = eigh(self.state.V)
            self._eigen = (e - lam).clamp_min(0.0), (self.table.Z @ Q).square_()
        e, squares = self._eigen
        return self.table.residual / (lam * scale) + squares @ (1.0 / (e + lam * scale))


def bounded_sum(unseen: Tensor) -> float:
    """Sum of what the features do not see of each point, n residual / lam `(u,)`, counted as 1 at most.

    With what they see, Tr Q (Q + lam I)^-1 with Q = Z Z^T in rows of evaluations, it bounds d_eff from above, whatever
    the features, if they are a projection: the share of a point in d_eff is below 1, and that of the other points is
    no larger than without it, where Tr f(K) <= Tr f(Q) + Tr(K - Q) / lam for f(x) = x / (x + lam), f' <= 1 / lam.
    """
    return float(unseen.clamp_max(1.0).sum())
