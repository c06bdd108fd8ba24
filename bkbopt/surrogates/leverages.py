"""Leverages of the observed points, at any lam of the sampling."""

from torch import Tensor

from bkbopt.posterior.features.table import FeatureTable
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.linalg import eigh

__all__ = ["Leverages"]


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
