"""Points before there is a model: a scrambled Sobol sequence, of which every trial has the point of its number."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from bkbopt.posterior.observations import row_keys
from bkbopt.search.candidates import TRIES, Choice
from bkbopt.search.evaluations import Point, Request
from bkbopt.search.keyed import keyed
from bkbopt.spaces.encoding import Encoding
from bkbopt.spaces.space import Space

__all__ = ["startup_point"]

#: Random points that are tried after the one of the sequence.
FIRST_TRIES = 64
#: Discrete spaces up to this many points are listed once these have all been taken.
MAX_LISTED = 1024


def startup_point(
    space: Space, request: Request, taken: Sequence[Point], feasible: Callable[[Point], bool] | None
) -> Choice | None:
    """The start-up point of a trial; None where all points are taken, or none is found that is feasible.

    Args:
        space: the parameters.
        request: for which trial, and what is held.
        taken: points that are not proposed.
        feasible: the user's constraint.
    """
    fixed = request.fixed
    at = keyed(space)
    encoding = Encoding(tuple(at.parameters.items()))
    embedding = encoding.embedding({key: p for key, p in at.parameters.items() if key not in fixed}, fixed)
    rows = [point for point in taken if at.conditions or all(key in point for key in encoding.columns)]
    busy = set(row_keys(encoding.encode(rows)))
    free = embedding.space
    if free is None or not free.dim:
        U: Iterable[Tensor] = [torch.zeros(1, 1, dtype=torch.float64)]
    else:
        U = _quasi_random(free, request)
        if free.is_discrete and not at.conditions and free.cardinality <= MAX_LISTED:
            U = itertools.chain(itertools.islice(U, 1), [_listed(free, request.rng())])
    for block in U:
        for u in block:
            point = at.active(embedding.point(u))
            if any(key not in point for key in fixed):
                continue  # a value that is held belongs to another branch
            x = encoding.encode([point])
            if row_keys(x)[0] not in busy and (feasible is None or feasible(point)):
                return Choice(x[0], point)
    return None


def _quasi_random(space: Space, request: Request) -> Iterator[Tensor]:
    """Blocks of points `(n, k)`: that of the sequence with some random ones, then random ones."""
    rng, (seed, attempt) = request.rng(), request.entropy
    first = []
    if attempt == 0:
        sobol = torch.quasirandom.SobolEngine(space.dim, scramble=True, seed=seed)
        sobol.fast_forward(request.number)
        first = [sobol.draw(1, dtype=torch.float64)]
    # Past the number come points of later trials, so whoever skips one goes to a random point.
    yield space.from_unit(torch.cat([*first, torch.as_tensor(rng.random((FIRST_TRIES, space.dim)))]))
    for _ in range(TRIES // FIRST_TRIES):
        yield space.sample(FIRST_TRIES, rng)


def _listed(space: Space, rng: np.random.Generator) -> Tensor:
    """All points, in a random order."""
    points = space.all_points(MAX_LISTED)
    return points[torch.as_tensor(rng.permutation(len(points)))]
