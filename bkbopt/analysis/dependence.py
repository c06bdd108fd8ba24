"""Partial dependence: the posterior mean over one or two parameters, averaged over the others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.checks import check_count
from bkbopt._support.settings import in_usual_settings
from bkbopt.analysis.coordinates import Coordinates, coordinates_of, dimension_of, pair_of
from bkbopt.analysis.dimensions import Dimension
from bkbopt.analysis.run_data import Told, as_optimizer, predicted, told
from bkbopt.analysis.slices import grid_of
from bkbopt.errors import ArgumentError
from bkbopt.optimizer import Optimizer

__all__ = ["ALONG", "ALONG_2D", "Averages", "Dependence", "partial_dependence"]

#: Number of points along a continuum, for one parameter and for each of two.
ALONG, ALONG_2D = 60, 24


@dataclass(frozen=True, eq=False)
class Dependence:
    """The posterior mean over one or two parameters, averaged over the others, user's units.

    Attributes:
        values: values of `x`, and of `y` if there are two parameters, by name.
        mean: the averages, (n_x,), or (n_y, n_x) for two parameters; NaN at combinations that do not exist.
        low: lower end of the middle 80 % of what is averaged, in the same shape.
        high: its upper end.
    """

    values: Mapping[str, tuple[Any, ...]]
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


@in_usual_settings
def partial_dependence(
    opt: Optimizer,
    x: str | None = None,
    y: str | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    n_samples: int = 128,
    n_grid: int | None = None,
) -> Dependence:
    """The posterior mean over `x`, or over `x` and `y`, averaged over all other parameters (Friedman 2001).

    The average is over the whole space, uniform in its own scales (a log parameter uniform in its logarithm), or over
    arms of the pool. Switches (parameters on which others are conditional) are not averaged over; they have the values
    of the recommended point, or those of `at`. The middle 80 % is wide where there are interactions with other
    parameters, or effects of these alone; it is not a measure of uncertainty. `bkbopt.plots.partial_dependence` draws
    it.

    Args:
        opt: an optimizer with at least one value.
        x: the parameter, or column of a pool; None if only one varies.
        y: a second parameter, or None.
        at: values of switches in place of those of the recommended point, which show another branch.
        n_samples: number of settings of the other parameters.
        n_grid: number of points along a continuum; None for 60, and 24 along each of two.

    Raises:
        ArgumentTypeError: `opt` or `at` has the wrong type.
        ArgumentError: a parameter that does not exist, is fixed, is inactive in this branch or is given twice; `at`
            with another parameter than a switch; a pool of objects; several objectives.
        NotReadyError: there are no values yet.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import analysis
        >>> space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
        >>> opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2 + p["y"], space, n_trials=20, seed=0)
        >>> found = analysis.partial_dependence(opt, "y", n_grid=5)
        >>> found.values["y"], bool((found.mean[1:] > found.mean[:-1]).all())
        ((0.0, 0.25, 0.5, 0.75, 1.0), True)
    """
    averages = Averages.of(opt, at, n_samples)
    coordinates, center = averages.coordinates, averages.center
    n = (ALONG if y is None else ALONG_2D) if n_grid is None else check_count("n_grid", n_grid)
    across = dimension_of(coordinates, "x", x, center, n)
    if y is None:
        return Dependence({across.name: across.values}, *averages.over(across))
    across, up = pair_of(coordinates, across.name, y, center, n)
    mean, low, high = (part.reshape(len(up.values), -1) for part in averages.over(up, across))
    return Dependence({across.name: across.values, up.name: up.values}, mean, low, high)


def _center(opt: Optimizer, coordinates: Coordinates, at: Mapping[str, Any] | None) -> Tensor:
    """The recommended point (k,), at which the switches have the values of `at`; other parameters are refused there."""
    center = coordinates.center(at)
    switches = () if opt.space is None else opt.space.switches
    others = [name for name in at or () if name not in switches]
    if others:
        raise ArgumentError(
            f"at: expected switches among {sorted(switches)}, got {others[0]!r}, which is averaged over."
        )
    return center


@dataclass(frozen=True)
class Averages:
    """Predictions at `samples (n_samples, k)` in which one or two columns are replaced by given values."""

    opt: Optimizer
    data: Told
    coordinates: Coordinates
    center: Tensor
    samples: Tensor

    @classmethod
    def of(cls, opt: object, at: Mapping[str, Any] | None, n_samples: int) -> "Averages":
        """The samples with the arguments of `partial_dependence`, which are checked."""
        opt, n_samples = as_optimizer(opt), check_count("n_samples", n_samples, 1)
        data, coordinates = told(opt), coordinates_of(opt)
        return cls(opt, data, coordinates, _center(opt, coordinates, at), coordinates.sampled(n_samples, at=at))

    def over(self, *dimensions: Dimension) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The average, and the ends of the middle 80 %, over the values of dimensions, each `(n_1 * n_2,)`.

        Those of the last dimension change fastest. They are NaN at combinations that do not exist.
        """
        curves = self._curves(*dimensions)
        low, high = np.quantile(curves, [0.1, 0.9], axis=-1)
        found = curves.mean(axis=-1), low, high
        if len(dimensions) > 1:
            up, across = dimensions
            active = self.coordinates.active([across, up], grid_of(self.center, across, up))
            for part in found:
                part[~active] = np.nan
        return found

    def _curves(self, *dimensions: Dimension) -> np.ndarray:
        """Posterior means `(n_1 * n_2, n_samples)` over the values of dimensions; the last changes fastest."""
        codes = [torch.from_numpy(dimension.codes(dimension.values)) for dimension in dimensions]
        grid = torch.cartesian_prod(*codes).reshape(-1, len(codes))
        U = self.samples.repeat(len(grid), 1)
        U[:, [dimension.column for dimension in dimensions]] = grid.repeat_interleave(len(self.samples), 0)
        return predicted(self.opt, self.coordinates.encoded(U))[0].reshape(len(grid), len(self.samples))
