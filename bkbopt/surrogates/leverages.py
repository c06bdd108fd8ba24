"""Leverages of the observed points (posterior variance / lam), for any lam of the sampling, and sums of them."""

from torch import Tensor

from bkbopt.posterior.features.table import FeatureTable
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.linalg import eigh

__all__ = ["Leverages", "bounded_dimension", "sum_of_leverages"]


class Leverages:
    """Leverages (u,) of the observed points as a function of the scale l / lam, l the lam of the sampling.

    One eigendecomposition of Z^T N Z suffices for all scales: leverage = residual / l + sum_j (Z Q)_j^2 / (e_j + l).
    """

    def __init__(self, table: FeatureTable, state: GaussianState) -> None:
        self.table, self.state = table, state
        self._eigen: tuple[Tensor, Tensor] | None = None

    def __call__(self, scale: float) -> Tensor:
        """Leverages `(u,)` for the sampling's lam = `scale` times lam."""
        lam = self.state.lam
        if scale == 1.0:
            return self.table.residual / lam + self.state.leverage(self.table.Z)
        if self._eigen is None:
            e, Q = eigh(self.state.V)
            self._eigen = (e - lam).clamp_min(0.0), (self.table.Z @ Q).square_()
        e, squares = self._eigen
        return self.table.residual / (lam * scale) + squares @ (1.0 / (e + lam * scale))


def sum_of_leverages(state: GaussianState, unseen: Tensor) -> float:
    """Sum of the leverages of all evaluations: Tr Q (Q + lam I)^-1 + sum n residual / lam, see `bounded_dimension`."""
    return state.effective_dimension() + float(unseen.sum())


def bounded_dimension(state: GaussianState, unseen: Tensor) -> float:
    """An upper bound of d_eff: Tr Q (Q + lam I)^-1 + sum of min(1, n residual / lam) over the points.

    Q is Z Z^T with a row of Z for each evaluation, and the features are any projection. Proof: with f(x) = x / (x +
    lam), f' <= 1 / lam, Tr f(K) <= Tr f(Q) + Tr(K - Q) / lam, which proves the bound without the minimum. The share of
    a point in d_eff is below 1, and without the point the shares of the others are no smaller; so points with
    n residual > lam may be removed and counted as 1 each.

    Args:
        state: the state of all observations, whose effective dimension is the trace.
        unseen: n residual / lam of the unique observed points, (u,).
    """
    return state.effective_dimension() + float(unseen.clamp_max(1.0).sum())
