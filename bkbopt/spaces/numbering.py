"""The numbers of listed values, which stay the same where a parameter gets another list.

The internal form of a listed value is its number. In a first list that is its index. In a later list of the same
parameter a value keeps its number, and a new one gets the next. So points of all lists can be compared, and a value
that is no longer listed still has a number and a place in its column.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Numbering"]


@dataclass(frozen=True)
class Numbering:
    """The numbers and places of the values of all lists of a parameter up to its present one.

    Attributes:
        values: all values, by number.
        own: the numbers of the values of the present list, in its order.
        places: the place of each value in the column, by number; values of the present list have 0, 1, ....
        n_first: length of the first list, which the column key names.
        generation: number of lists before the present one.
    """

    values: tuple[Any, ...] = field(compare=False)
    own: tuple[int, ...]
    places: tuple[float, ...]
    n_first: int
    generation: int

    @classmethod
    def first(cls, listed: Sequence[Any]) -> "Numbering":
        """The numbering of a first list."""
        n = len(listed)
        return cls(tuple(listed), tuple(range(n)), tuple(map(float, range(n))), n, 0)

    def continued(self, listed: Sequence[Any], positions: Sequence[int | None], *, ordered: bool) -> "Numbering":
        """The numbering of the next list.

        Args:
            listed: the values of the next list.
            positions: for each value of this numbering its position in the next list; None if it is not there.
            ordered: whether the list has an order. A value that is not in the next list then comes directly behind the
                one that it followed; without an order it comes after those that are in the list.
        """
        own: dict[int, int] = {}
        for number, position in enumerate(positions):
            if position is not None:
                own.setdefault(position, number)
        new = [position for position in range(len(listed)) if position not in own]
        own |= {position: len(self.values) + i for i, position in enumerate(new)}
        gone = [number for number, position in enumerate(positions) if position is None]
        last = len(listed) - 1
        moved = self._behind(positions, last) if ordered else {n: last + 1.0 + i for i, n in enumerate(gone)}
        known = [moved[number] if position is None else float(position) for number, position in enumerate(positions)]
        return Numbering(
            (*self.values, *(listed[position] for position in new)),
            tuple(own[position] for position in range(len(listed))),
            (*known, *map(float, new)),
            self.n_first,
            self.generation + 1,
        )

    def _behind(self, positions: Sequence[int | None], last: int) -> dict[int, float]:
        """Places of the values that are gone, by number: within the step behind the value that each followed.

        Beyond the ends of the next list, whose last position is `last`, they are whole steps apart.
        """
        groups: dict[int, list[int]] = {}
        at = -1
        for number in sorted(range(len(positions)), key=self.places.__getitem__):
            position = positions[number]
            if position is None:
                groups.setdefault(at, []).append(number)
            else:
                at = position
        places: dict[int, float] = {}
        for at, group in groups.items():
            first, step = at + 1.0, 1.0  # beyond the last position
            if at < 0:
                first = -float(len(group))
            elif at < last:
                step = 1.0 / (len(group) + 1.0)
                first = at + step
            places |= {number: first + i * step for i, number in enumerate(group)}
        return places
