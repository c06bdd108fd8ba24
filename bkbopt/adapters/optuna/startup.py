"""Points before there is a model, and single values beside it. Both depend on seed, trial and storage alone."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from optuna.distributions import BaseDistribution

from bkbopt.adapters.optuna.encoding import Values, column_key, parameter_of
from bkbopt.posterior.observations import row_keys
from bkbopt.spaces.space import Space

__all__ = ["independent_value", "startup_values"]

#: Points of the sequence that are tried before a repeat is accepted.
TRIES = 64
#: Discrete parameters with more values than this are drawn without a look at what others have.
MAX_COUNTED = 1024


def startup_values(
    search_space: Mapping[str, BaseDistribution],
    running: Sequence[Values],
    tried: Sequence[Values],
    number: int,
    seed: int,
) -> dict[str, float]:
    """The point of a scrambled Sobol sequence that belongs to the trial's number; by column key, in internal form.

    Args:
        search_space: distributions by parameter name.
        running: values of running trials, which are not proposed again while there are others.
        tried: values of finished trials; the same, as far as that leaves something.
        number: of the trial.
        seed: of the scrambling.
    """
    space = Space(tuple((column_key(name, d), parameter_of(d)) for name, d in search_space.items()))
    if not space.dim:
        return {key: float(value) for key, value in space.decode(torch.zeros(1, 0))[0].items()}
    sobol = torch.quasirandom.SobolEngine(space.dim, scramble=True, seed=seed)
    sobol.fast_forward(number)
    # Past the number come points of later trials, so whoever skips takes a jump away from them.
    U = torch.cat([sobol.draw(1, dtype=torch.float64), _others(space.dim, number, seed)])
    X = space.from_unit(U)
    busy = _taken(space, running)
    taken = busy | _taken(space, tried)
    if len(taken) >= space.cardinality:
        taken = busy
    fresh = [i for i, key in enumerate(row_keys(X)) if key not in taken]
    if not fresh and space.is_discrete and space.cardinality <= MAX_COUNTED:
        every = space.all_points(MAX_COUNTED)
        free = [i for i, key in enumerate(row_keys(every)) if key not in taken]
        if free:
            X, fresh = every, [free[np.random.default_rng([seed, number]).integers(len(free))]]
    x = X[fresh[0] if fresh else 0]
    return {key: float(value) for key, value in space.decode(x[None])[0].items()}


def _others(dim: int, number: int, seed: int) -> torch.Tensor:
    return torch.as_tensor(np.random.default_rng([seed, number]).random((TRIES, dim)))


def _taken(space: Space, busy: Sequence[Values]) -> set[bytes]:
    names = [column.name for column in space.columns]
    rows = []
    for values in busy:
        if all(name in values for name in names):
            positions = {name: values[name] for name in names}
            if all(space.parameters[name].locate(value) is not None for name, value in positions.items()):
                rows.append(positions)
    return set(row_keys(space.encode(rows))) if rows else set()


def independent_value(
    name: str, distribution: BaseDistribution, chosen: Values, others: Sequence[Values], rng: np.random.Generator
) -> float:
    """A random value in internal form; of a discrete parameter one that completes the fewest points of others.

    Args:
        name: of the parameter.
        distribution: its values.
        chosen: what this trial has so far, by column key.
        others: values of other trials.
        rng: of this draw.
    """
    key, parameter = column_key(name, distribution), parameter_of(distribution)
    space = Space(((key, parameter),))
    n = parameter.n_values
    if n is None or n > MAX_COUNTED:
        return float(space.decode(space.sample(1, rng))[0][key])
    alike = [row[key] for row in others if key in row and all(row.get(k) == v for k, v in chosen.items())]
    grid = np.array([float(parameter.value(i)) for i in range(n)])
    counts = np.array([np.isclose(grid, value, rtol=1e-9, atol=0.0) for value in alike]).reshape(-1, n).sum(0)
    if counts.any():
        open_values = grid[counts == counts.min()]
        return float(open_values[rng.integers(len(open_values))])
    return float(space.decode(space.sample(1, rng))[0][key])
