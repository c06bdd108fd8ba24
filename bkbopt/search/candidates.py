"""What a suggestion is chosen from: the protocol of the sets, of listed points and of those of a box.

| symbol | shape  | units   | meaning                                                                  |
| ------ | ------ | ------- | ------------------------------------------------------------------------ |
| X      | (n, d) | encoded | points, in the columns of the whole encoding                             |
| U      | (n, k) | encoded | points of the space inside the encoding that a suggestion is chosen from |

Points that may not be chosen come as rows of X. A set answers None where it has nothing else to offer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from torch import Tensor

from bkbopt.errors import ArgumentError, SpaceExhaustedError
from bkbopt.posterior.model import Model
from bkbopt.search.criteria import Criterion
from bkbopt.spaces.arms import Arms

__all__ = ["TRIES", "CandidateSet", "Choice", "Feasible", "Scope", "exhausted"]

#: Random points tried before a feasible set is called empty.
TRIES = 10_000

Point = Mapping[str, float]
Feasible = Callable[[Point], bool]


@dataclass(frozen=True)
class Choice:
    """A point that was chosen.

    Attributes:
        x: its encoded form, (d,).
        point: its parameters, in internal form.
        index: its row in the pool, or None.
    """

    x: Tensor
    point: Point
    index: int | None = None


@dataclass(frozen=True)
class Scope:
    """Where a point is looked for, beside the set that it is chosen from.

    Attributes:
        good: the best known points, best first, (g, d); searches start from them too.
        rng: of the points that are compared.
        taken: points that may not be chosen, (t, d).
        shared: what the random starts of a search follow from, where points are not listed and many suggestions have
            them in common: they are compared once, and a search costs less than half. None for starts of its own.
    """

    good: Tensor
    rng: np.random.Generator
    taken: Tensor
    shared: tuple[int, ...] | None = None


class CandidateSet(Protocol):
    """What a designer asks of a set of candidates."""

    @property
    def n_arms(self) -> int | None:
        """Number of points where they are listed."""
        ...

    @property
    def is_discrete(self) -> bool:
        """Whether a point can be met twice by chance."""
        ...

    @property
    def has_choices(self) -> bool:
        """Whether a column has few values: categories, or a short grid."""
        ...

    @property
    def is_perturbed(self) -> bool:
        """Whether some suggestions are to be perturbations: not where a search sees the set whole."""
        ...

    def best(self, criterion: Criterion, scope: Scope) -> Choice | None:
        """The point with the largest score."""
        ...

    def perturbed(self, criterion: Criterion, center: Tensor, scope: Scope) -> Choice | None:
        """The best of a few random points that differ from `center (d,)` in one parameter."""
        ...

    def random(self, rng: np.random.Generator, taken: Tensor) -> Choice | None:
        """A random point, none of `taken (t, d)`."""
        ...

    def upper_bound(self, model: Model, beta: float, good: Tensor) -> float:
        """The largest upper confidence bound, feasible or not: exact where points are listed, else as found."""
        ...


def exhausted(pool: Arms | None, is_discrete: bool) -> SpaceExhaustedError | ArgumentError:
    """The error where nothing is left to propose."""
    if pool is not None:
        return SpaceExhaustedError(
            f"pool: all {len(pool)} arms have been proposed, have failed or are infeasible; "
            'stop here, add arms with set_pool, or allow repeats with duplicates="allow".'
        )
    if is_discrete:
        return SpaceExhaustedError(
            "space: all points have been proposed, have failed or are infeasible; "
            'stop here, or allow repeats with duplicates="allow".'
        )
    return ArgumentError(
        f"feasible: expected points to propose, but none of {TRIES} random ones was feasible and new; "
        "check the constraint, or narrow the space to where it can hold."
    )
