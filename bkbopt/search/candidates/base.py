"""The protocol of candidate sets, from which suggestions are chosen: pools, grids and boxes.

| symbol | shape  | units   | meaning                                                                  |
| ------ | ------ | ------- | ------------------------------------------------------------------------ |
| X      | (n, d) | encoded | points, in the columns of the whole encoding                             |
| U      | (n, k) | encoded | the same points in the columns of the space from which is chosen         |

Points that may not be chosen are given as rows of X. Methods return None if no other point is left.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt._support.row_keys import row_keys
from bkbopt.posterior.model import Model
from bkbopt.search.criteria.criterion import Criterion, Search
from bkbopt.spaces.base import Point
from bkbopt.spaces.rows import RowSource

__all__ = [
    "BLOCK",
    "TRIES",
    "CandidateSet",
    "Choice",
    "Feasible",
    "Perturbed",
    "Scope",
    "Shared",
    "best_usable",
    "first_then_blocks",
    "one_row_each",
]

#: Number of random points that are tried before the feasible set counts as empty.
TRIES = 10_000
#: Points that are decoded together where the first one may not be proposed.
BLOCK = 32

Feasible = Callable[[Point], bool]


@dataclass(frozen=True)
class Choice:
    """A chosen point.

    Attributes:
        x: its encoded form, (d,).
        point: its parameters, in internal form.
        index: its row in the pool, or None.
    """

    x: Tensor
    point: Point
    index: int | None = None


@dataclass(frozen=True)
class Shared:
    """What suggestions beside many running trials share.

    Attributes:
        numbers: seed of random starts.
        data: the finished trials, in a form that can be compared.
        pending: the first running trials, in such a form.
        earlier: makes the criterion for these, and the points that were closed, (t, d).
        finished: makes the criterion of a greedy suggestion that counts no running trial; None for other suggestions.
    """

    numbers: tuple[int, ...]
    data: tuple[object, ...]
    pending: tuple[object, ...]
    earlier: Callable[[], tuple[Criterion, Tensor]]
    finished: Callable[[], Criterion] | None = None


@dataclass(frozen=True)
class Scope:
    """Arguments of a search over a candidate set.

    Attributes:
        incumbents: the best known points, best first, (g, d); searches also start from them.
        rng: generator of the points that are compared.
        taken: points that may not be chosen, (t, d).
        each_row: whether a taken point closes only one of the rows of a pool that are equal to it, instead of all.
        new_choices: whether points whose choices are those of a taken one may not be chosen either; see
            `CandidateSet.has_many_choices`.
        shared: what the search shares with those of other suggestions, so that it costs a half or less. None for a
            whole search.
    """

    incumbents: Tensor
    rng: np.random.Generator
    taken: Tensor
    shared: Shared | None = None
    each_row: bool = False
    new_choices: bool = False

    def exploring(self) -> "Scope":
        """The same for a suggestion that is not greedy."""
        return self if self.shared is None else replace(self, shared=replace(self.shared, finished=None))


#: Gives the best of so many random points that differ from a centre `(d,)` in one parameter.
Perturbed = Callable[[Criterion, int, Tensor, Scope], Choice | None]


class CandidateSet(Protocol):
    """The interface that a designer needs of a set of candidates; bodies of methods are those of listed ones."""

    @property
    def n_arms(self) -> int | None:
        """Number of points of a list, or of a product."""

    @property
    def is_listed(self) -> bool:
        """Whether a search compares all points, so that its choice is exact and exhaustion is detected."""

    @property
    def is_discrete(self) -> bool:
        """Whether the same point can be proposed twice by chance."""

    @property
    def has_many_choices(self) -> bool:
        """Whether the choices without an order have so many combinations that they could not be listed."""
        return False

    @property
    def coordinate_perturbation(self) -> Perturbed | None:
        """The coordinate perturbations of the set; None if its search compares all points."""
        return None

    def best(self, criterion: Criterion, scope: Scope) -> Choice | None:
        """The point with the largest score."""

    def random(self, rng: np.random.Generator, taken: Tensor, *, each_row: bool = False) -> Choice | None:
        """A random point that is not in `taken (t, d)`; see `Scope`."""

    def off_ends(self, choice: Choice, scope: Scope) -> Choice:
        """The choice, moved away from ends of ranges near which the first incumbent is; the same one from a list."""
        return choice

    def upper_bound(self, model: Model, beta: float, incumbents: Tensor) -> float:
        """The largest upper confidence bound over all points, feasible or not; exact if they are listed."""


def first_then_blocks(U: Tensor) -> tuple[Tensor, ...]:
    """The points `U (n, k)`: the first one, which is mostly all that is needed, and the others in blocks."""
    return U[:1], *U[1:].split(BLOCK)


def best_usable(criterion: Criterion, search: Search, closed: Tensor, usable: Callable[[int], bool]) -> int | None:
    """The usable row with the largest score; None if there is none.

    Args:
        criterion: the scores.
        search: the rows.
        closed: (A,) rows that may not be chosen; those found to be unusable are added to it.
        usable: whether a row may be chosen, which may be expensive.
    """
    for row in criterion.ranked(search, closed):
        if usable(row):
            return row
        closed[row] = True
    return None


def one_row_each(X: Tensor, rows: NDArray[np.int64], source: RowSource) -> list[int]:
    """Of `rows` of the `source`, which are equal to points `X (n, d)`, one for each point: the first ones."""
    rows, left, first = np.unique(rows), Counter(row_keys(X)), list[int]()
    for row, key in zip(rows.tolist(), row_keys(source[torch.from_numpy(rows)]), strict=True):
        if left[key]:
            left[key] -= 1
            first.append(row)
    return first
