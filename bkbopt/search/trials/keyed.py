"""A space by column keys, with its conditions in internal form."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from bkbopt.search.trials.evaluations import Point
from bkbopt.spaces.encoding import column_key
from bkbopt.spaces.space import Parameter, Space

__all__ = ["KeyedSpace", "keyed"]


@dataclass(frozen=True)
class KeyedSpace:
    """A space by column keys.

    Attributes:
        parameters: parameters by key, in the order of the space.
        conditions: for each conditional key, the values of other keys with which it is active, in internal form.
    """

    parameters: Mapping[str, Parameter]
    conditions: Mapping[str, Mapping[str, frozenset[float]]]

    @property
    def switches(self) -> tuple[str, ...]:
        """Keys on which other keys are conditional."""
        return tuple(key for key in self.parameters if any(key in needs for needs in self.conditions.values()))

    def active(self, point: Point) -> dict[str, float]:
        """The active part of a point."""
        known: dict[str, bool] = {}

        def is_active(key: str) -> bool:
            if key not in known:
                needs = self.conditions.get(key, {})
                known[key] = all(is_active(parent) and point.get(parent) in values for parent, values in needs.items())
            return known[key]

        return {key: value for key, value in point.items() if is_active(key)}

    def may_be_active(self, setting: Point) -> list[str]:
        """The keys that are active under a setting of the switches."""
        point = {**dict.fromkeys(self.parameters, math.nan), **setting}
        active = self.active(point)
        return [key for key in self.parameters if key in active]


@lru_cache(maxsize=256)
def keyed(space: Space) -> KeyedSpace:
    """The space by column keys."""
    keys = {name: column_key(name, parameter) for name, parameter in space.items}
    conditions = {
        keys[name]: {keys[parent]: frozenset(values) for parent, values in needs.items()}
        for name, needs in space.conditions.items()
    }
    return KeyedSpace({keys[name]: parameter for name, parameter in space.items}, conditions)
