"""Which kernel: structure chosen by evidence.

| symbol | shape  | units   | meaning                                                              |
| ------ | ------ | ------- | -------------------------------------------------------------------- |
| U      | (u, d) | enc.    | unique points                                                        |
| g      | (u, c) | y/enc.  | gradients of the posterior mean at U, by the c numeric columns       |
| R      | (d, d) | -       | rotation of the numeric columns                                      |

One stationary kernel with a lengthscale for each column is the wrong prior for many black boxes. Two departures from
it, and both together, are compared with it at each fit:

- rotated: lengthscales along the eigenvectors of the mean outer product of gradients (Constantine et al. 2014, "active
  subspaces"), found from the posterior mean of the kernel so far, a few times in turn;
- additive: a further sum of one-column kernels (`ColumnsKernel`).

Where columns are many another one is tried in their place, a trend (`SphericalKernel`): points are too few to tell a
rotation, and a sum over columns takes most of the time of a fit and of a suggestion.

The evidence of a kernel is its log posterior density at the maximum (`Fit.value`). A departure has to be better by a
margin that grows with what it chose from: a rotation of c columns has c (c - 1) / 2 angles, none of which has a prior.
"""

import logging
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from bkbopt.kernels import ARDKernel, ColumnsKernel, Kernel, RotatedKernel, SphericalKernel, SumKernel, gram
from bkbopt.posterior.linalg import eigh, safe_cholesky
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates.fit import Fit, FitSettings, fit_data, fit_from
from bkbopt.surrogates.fit_data import FitData

__all__ = ["COMPARED", "FEWEST", "fit_structure"]

log = logging.getLogger(__name__)

#: Structure is not looked for among fewer unique points.
FEWEST = 20
#: Structure is compared on at most this many of the points; what was chosen is then fitted to all.
COMPARED = 200
#: Rotations are found anew this often: each from the posterior mean under the last one.
ROTATIONS = 3
#: More numeric columns than these are many.
MANY = 30
#: What the evidence must gain: by each angle of a rotation, by a sum with a second kernel.
ANGLE_MARGIN, SUM_MARGIN = 1.0, 3.0
#: Iterations of the last fit, which begins where the comparison ended: 50 gained another 0.4 and cost twice as much.
AGAIN = 15
#: A further rotation is tried only where the last one gained this.
PROGRESS = 0.1


def fit_structure(
    observations: Observations, kernel: ARDKernel, noise: float, *, fit_noise: bool, rng: np.random.Generator
) -> tuple[Kernel, float]:
    """A kernel with structure, and the noise variance, fitted with an unknown constant mean.

    Args:
        observations: the data, standardised.
        kernel: where to start.
        noise: noise variance to start from, y squared.
        fit_noise: whether the noise is fitted too.
        rng: of the subsampling.
    """
    data = fit_data(observations, rng=rng)
    if len(data.U) < FEWEST:
        found = fit_from(data, kernel, noise, fit_noise=fit_noise, with_mean=True)
        return found.kernel, found.noise
    few = data.subset(COMPARED, rng)
    search = _Search(few, kernel, fit_noise)
    chosen = search.best(noise)
    if few is not data:
        short = FitSettings(max_iterations=AGAIN)
        chosen = fit_from(data, chosen.kernel, chosen.noise, fit_noise=fit_noise, with_mean=True, settings=short)
    log.debug("structure of %d points: %s", len(data.U), chosen.kernel)
    return chosen.kernel, chosen.noise


@dataclass(frozen=True)
class _Search:
    """The comparison; `start` is the kernel that fits begin with."""

    data: FitData
    start: ARDKernel
    fit_noise: bool

    def fit(self, kernel: Kernel, noise: float) -> Fit:
        return fit_from(self.data, kernel, noise, fit_noise=self.fit_noise, with_mean=True)

    def best(self, noise: float) -> Fit:
        plain = self.fit(self.start, noise)
        columns = [j for j in range(self.start.dim) if j not in self.start.categorical]
        if len(columns) > MANY:
            return self.with_trend(plain, noise)
        found = [(0.0, plain)]  # each with the margin that it has to be better by
        rotated, margin = self.rotated(plain, columns), ANGLE_MARGIN * len(columns) * (len(columns) - 1) / 2.0
        if rotated.value > plain.value + margin:
            found.append((margin, rotated))
        if self.start.dim > 1:
            found += [(margin + SUM_MARGIN, self.with_columns(fit, noise)) for margin, fit in found]
        return max(found, key=lambda pair: pair[1].value - pair[0])[1]

    def with_columns(self, fit: Fit, noise: float) -> Fit:
        """The kernel of `fit`, rotated or not, beside a sum over columns."""
        # Not from the lengthscales found so far: there are short ones where there are ripples.
        base = replace(fit.kernel, base=self.start) if isinstance(fit.kernel, RotatedKernel) else self.start
        added = ColumnsKernel.start(self.start.dim, self.start.categorical)
        return self.fit(SumKernel((base, added)), max(noise, fit.noise))

    def with_trend(self, best: Fit, noise: float) -> Fit:
        """`best`, or the stationary kernel beside a trend."""
        trend = SphericalKernel.start(self.start.dim, self.start.categorical)
        beside = self.fit(SumKernel((self.start, trend)), noise)
        return beside if beside.value > best.value + SUM_MARGIN else best

    def rotated(self, plain: Fit, columns: list[int]) -> Fit:
        """The best of a few rotations; `plain` itself where none is better."""
        best, kernel = plain, plain.kernel
        for _ in range(ROTATIONS if len(columns) > 1 else 0):
            assert isinstance(kernel, ARDKernel)
            found = self.fit(RotatedKernel(kernel, _rotation(self.data, best, columns)), best.noise)
            if found.value < best.value + PROGRESS:
                break
            assert isinstance(found.kernel, RotatedKernel)
            best, kernel = found, found.kernel.base
        return best


def _rotation(data: FitData, fit: Fit, columns: list[int]) -> Tensor:
    """R: the eigenvectors of sum_i g_i g_i^T in `columns`, the one with the largest eigenvalue first."""
    kernel = fit.kernel
    with torch.no_grad():
        L = safe_cholesky(gram(kernel, data.U) + torch.diag(fit.noise / data.n))
        a = torch.cholesky_solve(data.ybar[:, None], L)[:, 0]
    with torch.enable_grad():
        X = data.U.clone().requires_grad_(True)
        (g,) = torch.autograd.grad((kernel(X, data.U) @ a).sum(), X)
    index = torch.tensor(columns)
    g = g[:, index]
    R = torch.eye(data.U.shape[1], dtype=torch.float64, device=g.device)
    R[index[:, None], index] = eigh(g.T @ g)[1].flip(1)
    return R
