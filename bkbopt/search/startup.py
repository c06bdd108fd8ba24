"""The start-up design: the centre of the space, then a scrambled Sobol sequence, by the number of the trial.

The first point is the centre, because ranges are often chosen around a value that is known to be good. The error where
no point is left, by these and by later suggestions, is here, too.
"""

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from bkbopt.errors import ArgumentError, SpaceExhaustedError
from bkbopt.search.candidates.base import TRIES, CandidateSet, Choice, first_then_blocks
from bkbopt.search.candidates.feasible_walk import KNOWN, small_set
from bkbopt.search.candidates.listed import GRID_LIMIT
from bkbopt.search.options import Options
from bkbopt.search.trials.evaluations import Point, Request
from bkbopt.search.trials.history import History
from bkbopt.spaces.encoding import Embedding, Encoding
from bkbopt.spaces.numeric import Float, Int
from bkbopt.spaces.points import with_values
from bkbopt.spaces.space import Space

__all__ = ["exhausted", "first_fit", "slack_of", "startup_point", "with_repeats"]

#: Weight of a failed trial among the values of the start-up, and the number of values that it needs beside failures.
FAILED, LEAST_VALUES = 0.5, 3
#: Number of random points that are tried after the point of the sequence.
FIRST_TRIES = 64
#: Number of random points among which there would be a feasible one if the feasible set were not small.
FEW = 1024
#: A fraction of a continuum's range, and of a step: values nearer to each other are the same up to rounding.
NEAR_ON_RANGE, NEAR_ON_GRID = 1e-9, 0.25
#: What tells the random numbers of a walk from those of other points.
WALK = 1
#: A discrete space with at most this many points is enumerated after these tries, one with more after all tries.
MAX_LISTED = 1024


def first_fit(n_startup: int, history: History) -> int:
    """The number of values at the first fit: `n_startup`, or fewer where trials have failed.

    A failure is information on where to search, too: each has the weight `FAILED` of a value, with `LEAST_VALUES` or
    more values.
    """
    least, known = min(LEAST_VALUES, n_startup), history.n_complete + history.n_estimated
    by = range(min(n_startup, known + 1))  # short, even if `n_startup` is huge
    n = bisect.bisect_left(by, n_startup, least, key=lambda count: int(count + FAILED * history.n_failed_by(count)))
    return n if n <= known else n_startup


def startup_point(
    space: Space, request: Request, taken: Sequence[Point], feasible: Callable[[Point], bool] | None
) -> Choice | None:
    """The start-up point of a trial; None if all points are taken, or no feasible point was found.

    Args:
        space: the search space.
        request: the request for a suggestion.
        taken: points that may not be proposed.
        feasible: the user's constraint.
    """
    fixed = request.fixed
    encoding = Encoding(tuple(space.keyed.items()))
    embedding = encoding.embedding({key: p for key, p in space.keyed.items() if key not in fixed}, fixed)
    free = embedding.space
    if free is None or not free.dim:
        U: Iterable[Tensor] = [torch.zeros(1, 1, dtype=torch.float64)]
    else:
        U = _quasi_random(free, request)
        if free.is_discrete and free.cardinality <= MAX_LISTED:
            U = itertools.chain(itertools.islice(U, 1), [_listed(free, request.rng())])
    if feasible is not None and free is not None and free.dim:
        small = _in_small_set(encoding, embedding, space, request, taken, feasible)
        blocks = iter(U)
        U = itertools.chain(itertools.islice(blocks, FEW // FIRST_TRIES), small, blocks)
    if free is not None and free.is_discrete and MAX_LISTED < free.cardinality <= GRID_LIMIT:
        U = itertools.chain(U, map(_listed, [free], [request.rng()]))  # made when it is needed
    slack, narrow, n_tried, repeats = slack_of(space), _is_continuum(space, fixed), 0, set[tuple[float, ...]]()
    for block in U:
        decoded = itertools.chain.from_iterable(map(embedding.points, first_then_blocks(block)))
        for point in map(space.active_part, decoded):
            if any(key not in point for key in fixed):
                continue  # a fixed value belongs to another branch
            if with_values(point, taken, slack):
                repeats.add(tuple(point.values()))
            elif feasible is None or feasible(point):
                return Choice(encoding.encode([point])[0], point)
            else:
                narrow = False
            n_tried += 1
        if narrow and 2 * len(repeats) < n_tried:
            break  # a continuum of a few doubles, all of which are taken
    return None


def exhausted(
    request: Request, arms: CandidateSet | None, history: History, options: Options, is_discrete: bool
) -> SpaceExhaustedError | ArgumentError:
    """The error where nothing is left to propose.

    Args:
        request: the request.
        arms: the arms of a pool; None for a space.
        history: the trials; the points of failed ones are not proposed again.
        options: the options of the designer.
        is_discrete: whether every searched column has finitely many values.
    """
    is_fixed, is_constrained = bool(request.fixed), history.problem.feasible is not None
    avoids_duplicates, has_failed = options.avoid_duplicates, history.n_failed > 0
    those = " with the fixed values" if is_fixed else ""
    number = "" if is_fixed or arms is None else f"{arms.n_arms} "
    countable = is_discrete if arms is None else arms.is_listed
    few = _is_few(request) or not is_constrained if arms is None else countable
    if is_constrained and not (countable and (avoids_duplicates or has_failed) and (few or request.number > 0)):
        none, known = ("none", "") if few else (f"none of {TRIES} random ones", "enqueue a feasible point, ")
        return ArgumentError(
            f"feasible: expected points{those} to propose, but {none} was feasible and new; "
            f"check the constraint, {known}or restrict the space to points where it can hold."
        )
    remedies = ["fix other values" if is_fixed else "stop here"]
    if arms is None:
        what = f"space: all points{those}" if few else f"space: all feasible points{those} that were found"
    else:
        twins = "" if avoids_duplicates else " (rows with equal values are one)"
        what = f"pool: all {number}arms{those}{twins}"
        remedies.append("add arms with set_pool")
    state = "have been proposed, have failed" if avoids_duplicates else "have failed"
    allow = (
        'allow repeats with duplicates="allow"'
        if avoids_duplicates
        else "tell values of failed trials with replace=True"
    )
    state = f"{state} or are infeasible" if few or arms is not None else state.replace(",", " or")
    return SpaceExhaustedError(f"{what} {state}; {', '.join(remedies)}, or {allow}.")


def _is_few(request: Request) -> bool:
    """Whether a space with fixed values has so few points that all are tried where random points are not enough."""
    space = request.space
    if space is None or space.cardinality <= GRID_LIMIT:
        return True
    free = [p.n_values for key, p in space.keyed.items() if key not in request.fixed]
    return math.prod(n or math.inf for n in free) <= GRID_LIMIT


def with_repeats(levels: list[list[Point]], space: Space | None, fixed: Point) -> list[list[Point]]:
    """The points to exclude, level by level; none at last in a continuum, whose doubles may all have been proposed."""
    repeats = space is not None and levels[-1] and _is_continuum(space, fixed)
    return [*levels, []] if repeats else levels


def _is_continuum(space: Space, fixed: Point) -> bool:
    """Whether a parameter without a fixed value has no steps."""
    return any(p.n_values is None for key, p in space.keyed.items() if key not in fixed)


def slack_of(space: Space) -> dict[str, float]:
    """By key of a parameter of numbers, the difference up to which two values are the same, for `with_values`."""
    slack = {}
    for key, p in space.keyed.items():
        if isinstance(p, Float) and p.step is None:
            slack[key] = NEAR_ON_RANGE * (p.high - p.low)
        elif isinstance(p, Float | Int):
            slack[key] = NEAR_ON_GRID * float(p.step or 1)
    return slack


def _quasi_random(space: Space, request: Request) -> Iterator[Tensor]:
    """Blocks of points `(n, k)`: first the point of the design and random ones, then random ones."""
    rng, (seed, attempt) = request.rng(), request.entropy
    first = []
    if attempt == 0 and request.number == 0:
        first = [torch.full((1, space.dim), 0.5, dtype=torch.float64)]
    elif attempt == 0:
        sobol = torch.quasirandom.SobolEngine(space.dim, scramble=True, seed=seed)
        sobol.fast_forward(request.number)
        first = [sobol.draw(1, dtype=torch.float64)]
    # The next points of the sequence belong to later trials, so the alternatives are random points.
    yield space.from_unit(torch.cat([*first, torch.as_tensor(rng.random((FIRST_TRIES, space.dim)))]))
    for _ in range(TRIES // FIRST_TRIES):
        yield space.sample(FIRST_TRIES, rng)


def _in_small_set(
    encoding: Encoding,
    embedding: Embedding,
    space: Space,
    request: Request,
    taken: Sequence[Point],
    feasible: Callable[[Point], bool],
) -> Iterator[Tensor]:
    """Points of a feasible set that random points of the space do not meet, from the latest of those that are taken."""
    assert embedding.space is not None
    X = encoding.encode(list(taken[-KNOWN:]))

    def rows(U: Tensor) -> list[bool]:
        return [feasible(space.active_part(point)) for point in embedding.points(U)]

    yield from small_set(embedding.space, embedding.project(X), rows, request.rng(WALK))


def _listed(space: Space, rng: np.random.Generator) -> Tensor:
    """All points, in a random order."""
    points = space.all_points(GRID_LIMIT)
    return points[torch.as_tensor(rng.permutation(len(points)))]
