"""Conditional parameters: which are active at which values of others.

A parameter with `when` has *parents*, the discrete parameters that it names; they are the space's *switches*. It is
active if all of its parents are and have one of the values named. Values are positions here, see
`bkbopt.spaces.scales`; the position of an inactive switch is None.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bkbopt.errors import ArgumentError
from bkbopt.spaces.parameters import Parameter
from bkbopt.spaces.values import shown

__all__ = ["Conditions"]

#: A parameter with more values than this is no switch.
MAX_DECLARED_VALUES = 1000

Positions = Mapping[str, int | None]


@dataclass(frozen=True)
class Conditions:
    """The conditions of a space; made by `of`, which checks them.

    Attributes:
        parameters: all parameters by name.
        allowed: by name of a conditional parameter and of its parent the positions that the parent may have.
        order: all names, parents before their children.
    """

    parameters: Mapping[str, Parameter]
    allowed: Mapping[str, Mapping[str, frozenset[int]]]
    order: tuple[str, ...]

    @classmethod
    def of(cls, parameters: Mapping[str, Parameter]) -> "Conditions":
        """Read the conditions of parameters by name.

        Raises:
            ArgumentError: a parent that is unknown, the parameter itself or not discrete, a value that the parent
                cannot have, or parameters under each other in a circle.
        """
        conditional = {name: parameter.when for name, parameter in parameters.items() if parameter.when is not None}
        allowed = {
            name: {parent: _positions(name, parent, values, parameters) for parent, values in when.items()}
            for name, when in conditional.items()
        }
        return cls(parameters, allowed, tuple(_ordered(parameters, allowed)))

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """The parameters that others are conditional on, parents before their children."""
        parents = {parent for when in self.allowed.values() for parent in when}
        return tuple(name for name in self.order if name in parents)

    def is_active(self, name: str, positions: Positions) -> bool:
        """Whether a parameter is active at these positions of its parents; a parent left out is inactive."""
        return all(positions.get(parent) in allowed for parent, allowed in self.allowed.get(name, {}).items())

    def masks(self, positions: Mapping[str, NDArray[np.int64]]) -> dict[str, NDArray[np.bool_]]:
        """Where each conditional parameter is active, (n,), given the positions of all switches, (n,) each."""
        masks: dict[str, NDArray[np.bool_]] = {}
        for name in self.order:
            for parent, allowed in self.allowed.get(name, {}).items():
                table = np.zeros(self.parameters[parent].n_values or 0, dtype=np.bool_)
                table[list(allowed)] = True
                mask = table[positions[parent]] & masks.get(parent, True)
                masks[name] = masks[name] & mask if name in masks else mask
        return masks

    @cached_property
    def fixed(self) -> Mapping[str, Any]:
        """The values of the parameters that have only one, by name."""
        return {name: parameter.first for name, parameter in self.parameters.items() if parameter.n_values == 1}

    @cached_property
    def keys(self) -> Mapping[str, str]:
        """Column keys by name."""
        return {name: parameter.column_key(name) for name, parameter in self.parameters.items()}

    def internal(self, name: str, positions: Iterable[int]) -> tuple[float, ...]:
        """Internal forms of the values at positions of a discrete parameter, in order."""
        values = self.parameters[name].internal_values
        return tuple(values[position] for position in sorted(positions))

    def settings(self, limit: int, fixed: Mapping[str, float]) -> list[dict[str, float]] | None:
        """See `Space.settings`."""
        held = self._positions(fixed)
        found = self.combinations(self.switches, held, limit)
        if found is None:
            return None
        return [
            {self.keys[name]: self.internal(name, [at])[0] for name, at in positions.items() if at is not None}
            for positions in found
            if all(self.is_active(name, positions) for name in held)
        ]

    def active_keys(self, point: Mapping[str, float]) -> list[str]:
        """Column keys of the parameters that are active at the values of a point, by column key.

        A value that its parameter cannot have fulfils no condition: a trial may be of an earlier space.
        """
        positions: dict[str, int | None] = {}
        for name in self.switches:
            if self.keys[name] in point and self.is_active(name, positions):
                positions[name] = self._position(name, point[self.keys[name]])
        return [key for name, key in self.keys.items() if self.is_active(name, positions)]

    def combinations(
        self, names: Sequence[str], held: Mapping[str, int], limit: int
    ) -> list[dict[str, int | None]] | None:
        """All positions that discrete `names` can have together, some of them held; None if more than `limit`.

        All switches that `names` depend on are among them, parents before their children.
        """
        found: list[dict[str, int | None]] = [{}]
        for name in names:
            values = [held[name]] if name in held else range(self.parameters[name].n_values or 0)
            grown: list[dict[str, int | None]] = []
            for positions in found:
                active = self.is_active(name, positions)
                grown += [positions | {name: position} for position in (values if active else [None])]
                if len(grown) > limit:
                    return None
            found = grown
        return found

    def count(self, fixed: Mapping[str, float] | None = None) -> int | float:
        """Number of different points in which `fixed` parameters are active and have these values; may be infinite."""
        return self._count(self.order, {}, self._positions(fixed or {}))

    def _positions(self, point: Mapping[str, float]) -> dict[str, int]:
        """Positions by name of values by column key; 0 stands for any value of a continuum."""
        names = {key: name for name, key in self.keys.items()}
        out = {}
        for key, number in point.items():
            position = self._position(names[key], number)
            if position is None:
                expected = self.parameters[names[key]].expected
                raise ArgumentError(f"parameter {names[key]!r}: expected {expected}, got {number!r}")
            out[names[key]] = position
        return out

    def _position(self, name: str, number: float) -> int | None:
        """Position of a value in internal form, see `_positions`; None if the parameter cannot have it."""
        parameter = self.parameters[name]
        position = parameter.locate(parameter.external(number))
        return None if position is None else 0 if parameter.n_values in (None, 1) else int(position)

    def _count(self, names: Sequence[str], decided: Positions, held: Mapping[str, int]) -> int | float:
        """Number of points of `names`, in order, with other switches decided. Independent parts are multiplied."""
        decided, open_names = dict(decided), []
        for name in names:
            above = self.allowed.get(name, {})
            if all(decided[parent] in allowed for parent, allowed in above.items() if parent in decided):
                open_names.append(name)
            elif name in held:
                return 0
            else:
                decided[name] = None
        total: int | float = 1
        for first, *rest in self._components(open_names):
            part = sum(
                multiplicity * self._count(rest, {**decided, first: position}, held)
                for position, multiplicity in self._classes(first, rest, held)
            )
            if not part:
                return 0
            total *= part
        return total

    def _classes(
        self, name: str, others: Sequence[str], held: Mapping[str, int]
    ) -> Iterable[tuple[int | None, int | float]]:
        """One position for each set of positions that are the same to the conditions of `others`, and their number."""
        below = [self.allowed[other][name] for other in others if name in self.allowed.get(other, {})]
        n = self.parameters[name].n_values
        if name in held or not below:
            return [(held.get(name), 1 if name in held else math.inf if n is None else n)]
        counts: dict[tuple[bool, ...], tuple[int, int]] = {}
        for position in range(n or 0):
            seen = tuple(position in allowed for allowed in below)
            first, multiplicity = counts.get(seen, (position, 0))
            counts[seen] = (first, multiplicity + 1)
        return counts.values()

    def _components(self, names: Sequence[str]) -> list[list[str]]:
        """The parts of `names`, in order, between which no condition holds."""
        parts: list[list[str]] = []
        for name in names:
            above = self.allowed.get(name, {})
            joined = [part for part in parts if any(parent in part for parent in above)]
            parts = [part for part in parts if part not in joined]
            members = {name, *(other for part in joined for other in part)}
            parts.append([other for other in names if other in members])
        return parts


def _positions(name: str, parent: str, values: Iterable[object], parameters: Mapping[str, Parameter]) -> frozenset[int]:
    """The positions of a parent's values."""
    where = f"parameter {name!r}: when"
    if parent == name:
        raise ArgumentError(f"{where}: expected other parameters, got {name!r} itself; leave it out.")
    if parent not in parameters:
        known = ", ".join(repr(other) for other in parameters if other != name) or "none"
        raise ArgumentError(f"{where}: expected names of other parameters ({known}), got {parent!r}.")
    switch = parameters[parent]
    if switch.n_values is None or switch.n_values > MAX_DECLARED_VALUES:
        raise ArgumentError(
            f"{where}: expected parameters with at most {MAX_DECLARED_VALUES} values, got {parent!r}, "
            f"{switch.expected}; make {parent!r} an Int, Ordinal or Categorical, or give it a larger step."
        )
    found = set()
    for value in values:
        position = switch.locate(value)
        if position is None:
            is_rule = callable(value) or (isinstance(value, Iterable) and not isinstance(value, str | bytes))
            advice = "pass a list of its values" if is_rule else "leave it out, or correct it"
            raise ArgumentError(
                f"{where}: expected values that {parent!r} can have, {switch.expected}, got {shown(value)}; {advice}."
            )
        found.add(0 if switch.n_values == 1 else int(position))
    return frozenset(found)


def _ordered(parameters: Mapping[str, Parameter], allowed: Mapping[str, Mapping[str, frozenset[int]]]) -> Iterator[str]:
    """All names, as given, but parents before their children."""
    left = list(parameters)
    while left:
        ready = [name for name in left if not any(parent in left for parent in allowed.get(name, {}))]
        if not ready:
            raise ArgumentError(
                f"parameter {left[0]!r}: when: expected conditions that lead to a parameter without one, got a circle: "
                f"{' under '.join(map(repr, _circle(left, allowed)))}; remove one of these conditions."
            )
        yield from ready
        left = [name for name in left if name not in ready]


def _circle(left: Sequence[str], allowed: Mapping[str, Mapping[str, frozenset[int]]]) -> list[str]:
    """Names of which each is under the next, the first and the last being the same."""
    path = [left[0]]
    while path[-1] not in path[:-1]:
        path.append(next(parent for parent in allowed[path[-1]] if parent in left))
    return path[path.index(path[-1]) :]
