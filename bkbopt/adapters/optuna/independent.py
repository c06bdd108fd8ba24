"""Values of parameters that the model does not cover; they depend on seed, trial and storage only."""

import zlib
from collections.abc import Sequence

import numpy as np
import torch
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from bkbopt.adapters.optuna.columns import internal_point, parameter_of
from bkbopt.search.trials.evaluations import Point
from bkbopt.spaces.space import Space

__all__ = ["independent_value"]

#: For discrete parameters with more values than this, the values of other running trials are ignored.
MAX_COUNTED = 1024


def independent_value(
    seed: int, trial: FrozenTrial, name: str, distribution: BaseDistribution, others: Sequence[Point]
) -> float:
    """A random value in internal form; for a discrete parameter one that equals the fewest points of other trials.

    The first trial has the centre of each range, as that of the start-up design.

    Args:
        seed: seed of the draw, together with the trial's number and the parameter's name.
        trial: the trial, with the parameters that it has so far.
        name: name of the parameter.
        distribution: its distribution.
        others: points of other running trials.
    """
    rng = np.random.default_rng([seed, trial.number, zlib.crc32(name.encode())])
    parameter = parameter_of(distribution)
    key, n = parameter.column_key(name), parameter.n_values
    if n is not None and n <= MAX_COUNTED:
        chosen = internal_point(trial)
        alike = [row[key] for row in others if key in row and all(row.get(k) == v for k, v in chosen.items())]
        grid = np.array(parameter.internal_values)
        counts = np.isclose(grid, np.array(alike)[:, None], rtol=1e-9, atol=0.0).sum(0)
        if counts.any():
            open_values = grid[counts == counts.min()]
            return float(open_values[rng.integers(len(open_values))])
    space = Space(((name, parameter),))  # without columns if doubles know a single value only
    u = rng.random((1, space.dim)) if trial.number else np.full((1, space.dim), 0.5)
    return float(space.decode(space.from_unit(torch.as_tensor(u)))[0][name])
