"""Points on slices of the posterior, and how well other points stand for them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bkbopt.analysis.dimensions import Dimension
from bkbopt.analysis.run_data import bounded, predicted
from bkbopt.optimizer import Optimizer

__all__ = ["grid_of", "likeness", "projected"]

#: Number of pairs of points at once; of the matrix between two sets of points only the diagonal is used.
PAIRS = 256


def projected(center: Tensor, dimensions: Sequence[Dimension], values: Sequence[Sequence[Any]]) -> Tensor:
    """The `center (k,)` with some dimensions replaced by `values`, `(n, k)`."""
    U = center.repeat(len(values[0]), 1)
    for dimension, own in zip(dimensions, values, strict=True):
        U[:, dimension.column] = torch.from_numpy(dimension.codes(own))
    return U


def grid_of(center: Tensor, across: Dimension, up: Dimension) -> Tensor:
    """The `center (k,)` with two dimensions replaced by all pairs of values; those of `across` change fastest."""
    pairs = [(u, v) for v in up.values for u in across.values]
    return projected(center, [across, up], list(zip(*pairs, strict=True)))


def likeness(opt: Optimizer, X: Tensor, other: Tensor, least: float) -> np.ndarray:
    """How well the values of points `X (n, d)` stand for those of the points in the same rows of `other`, (n,).

    It is rho exp(-(m - m')^2 / 2 h^2), with the prior correlation rho, the posterior means m and m', and
    h^2 = noise^2 + s'^2 + least^2, s' being the posterior standard deviation at `other`. Where a value depends on a
    parameter by a trend, points far along it are correlated, though their values differ.
    """
    (mean, _), (there, std) = predicted(opt, X), predicted(opt, other)
    width = np.hypot(np.hypot(bounded(opt.noise_std), std), least)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gap = np.nan_to_num((mean - there) / width, nan=0.0)  # no gap, and no width
    return _correlation(opt, X, other) * np.exp(-0.5 * np.square(np.clip(gap, -40.0, 40.0)))


def _correlation(opt: Optimizer, X: Tensor, other: Tensor) -> np.ndarray:
    """Prior correlation of each point of `X (n, d)` with that in the same row of `other`, (n,), clipped to [0, 1]."""
    kernel = opt.surrogate.kernel
    out = []
    with torch.no_grad():
        for A, B in zip(X.split(PAIRS), other.split(PAIRS), strict=True):
            scale = (kernel.diag(A) * kernel.diag(B)).sqrt()
            out.append((kernel(A, B).diagonal() / scale).clamp(0.0, 1.0).numpy())
    return np.concatenate(out) if out else np.zeros(0)
