"""The spaces or pools of a log, and values that trials of earlier spaces had for parameters that a later one adds.

A space continues the lists of values of those before it, see `bkbopt.spaces.succession`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from bkbopt.errors import ArgumentError, BkbError
from bkbopt.optimizer.log.log_rows import Described
from bkbopt.search.trials.evaluations import Point
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.base import Params
from bkbopt.spaces.space import Space
from bkbopt.spaces.succession import successor

__all__ = ["LogSpaces", "PastValues"]


@dataclass(frozen=True)
class PastValues:
    """The values that trials of earlier spaces had for parameters that are new in a space; made by `stated`.

    Attributes:
        space: the space with the new parameters.
        point: the values by column key, in internal form; empty if none are known.
    """

    space: Space
    point: Point

    @classmethod
    def stated(cls, space: Space, earlier: Sequence[Space | Arms], past: Params) -> "PastValues":
        """The values that a user states.

        Args:
            space: the space with the new parameters.
            earlier: the spaces before it, the last one last.
            past: the values by name.

        Raises:
            ArgumentTypeError: no mapping.
            ArgumentError: a name or a value that the space does not have, a parameter that is not new, or one whose
                condition is on a new parameter without a value.
        """
        values = cls(space, space.fixed(past, "past"))
        before = earlier[-1].keyed if earlier and isinstance(earlier[-1], Space) else {}
        new = {name for name, parameter in space.items if parameter.column_key(name) not in before}
        if not past.keys() <= new:
            raise ArgumentError(
                f"past: expected parameters that are new in this space ({_listed(new)}), got "
                f"{_listed(past.keys() - new)}, of which earlier trials have values; leave it out."
            )
        for name in past:
            missing = (space.parameters[name].when or {}).keys() & new - past.keys()
            if missing:
                raise ArgumentError(
                    f"past: expected a value of {_listed(missing)} too, since {name!r} is conditional on it."
                )
        return values

    @cached_property
    def ranges(self) -> Space | None:
        """The parameters with values, without their conditions."""
        items = [(name, p.unconditional()) for name, p in self.space.items if p.column_key(name) in self.point]
        return Space(tuple(items)) if items else None

    @property
    def params(self) -> dict[str, object]:
        """The values by name."""
        return self.space.external([self.point])[0]

    def complete(self, point: Point) -> Point:
        """The point of an earlier trial with the values of those new parameters that are active at it."""
        active = self.space.active_part({**self.point, **point})
        return {**{key: value for key, value in self.point.items() if key in active}, **point}


class LogSpaces:
    """All spaces or pools of a log, by number; the last one is that of new trials."""

    def __init__(self) -> None:
        #: Pairs, so that an interrupt leaves no space without its values of the past.
        self._pairs: list[tuple[Space | Arms, PastValues | None]] = []

    def __len__(self) -> int:
        """Number of spaces or pools."""
        return len(self._pairs)

    def __getitem__(self, number: int) -> Space | Arms:
        """The space or pool of this number; negative ones count from the end."""
        return self._pairs[number][0]

    def append(self, candidates: Space | Arms, past: Params) -> None:
        """Add the space or pool of later trials; raises the errors of `next`."""
        self._pairs.append(self.next(candidates, past))

    def add(self, pair: tuple[Space | Arms, PastValues | None]) -> None:
        """Add what `next` has returned."""
        self._pairs.append(pair)

    def copy(self) -> "LogSpaces":
        """Another object with the same spaces or pools."""
        other = LogSpaces()
        other._pairs = [*self._pairs]
        return other

    def restore(self, described: Described, candidates: Space | Arms) -> None:
        """Add a space or pool that a file describes; `ValueError` if its values of the past are invalid."""
        try:
            self.append(candidates, described.past)
        except BkbError as error:
            raise ValueError(f"invalid values of past trials ({error})") from error

    def next(self, candidates: Space | Arms, past: Params) -> tuple[Space | Arms, PastValues | None]:
        """A space or pool as the one after all others, and values that earlier trials had for its new parameters.

        Raises:
            ArgumentError, ArgumentTypeError: `past` does not belong to the space, see `PastValues.stated`.
        """
        if not isinstance(candidates, Space):
            return candidates, None
        earlier = [each for each, _ in self._pairs]
        space = successor(candidates, earlier)
        return space, PastValues.stated(space, earlier, past) if past else PastValues(space, {})

    def is_last(self, candidates: Space | Arms, past: Params) -> bool:
        """Whether the last space is this one, and was set with the same values of the past."""
        last, values = self._pairs[-1]
        if not isinstance(candidates, Space) or values is None or not values.point:
            return False
        space = successor(candidates, [each for each, _ in self._pairs])
        return space == last and space.fixed(past, "past") == values.point

    def use_everywhere(self, pool: Arms) -> None:
        """Take a pool in place of all earlier ones: it has the choices of all, and their rows are not needed."""
        self._pairs = [(pool, None)] * len(self)

    def past(self, number: int) -> Params:
        """The values by name that trials before space `number` had for its new parameters."""
        values = self._pairs[number][1]
        return {} if values is None else values.params

    def has_past(self, first: int) -> bool:
        """Whether there are values of the past for a space from number `first` on."""
        return any(values is not None and values.point for _, values in self._pairs[first:])

    def complete(self, point: Point, number: int) -> tuple[Point, tuple[Space, ...]]:
        """A point of space `number` with the values that later spaces state, and the ranges of these values."""
        added = []
        for _, values in self._pairs[number + 1 :]:
            if values is not None and values.ranges is not None:
                point = values.complete(point)
                added.append(values.ranges)
        return point, tuple(added)


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(map(repr, names))) or "none"
