"""What an optimizer aims at: the directions of its objectives, its constraints and their names.

The module imports neither torch nor NumPy.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bkbopt.optimizer.log.limits import FREE, Limits, SharedLimits, limits_of
from bkbopt.optimizer.log.objectives import named_directions, stored_names

__all__ = ["Aims"]


@dataclass(frozen=True)
class Aims:
    """Directions, constraints and names of objectives.

    Attributes:
        directions: "minimize" or "maximize", for each objective.
        limits: limits of each measured quantity, by name; of one that was a constraint once it has none.
        objectives: names of the objectives; empty if they have none.
    """

    directions: tuple[str, ...]
    limits: Limits = field(default_factory=dict)
    objectives: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "limits", SharedLimits(self.limits))

    @classmethod
    def of_options(cls, options: Mapping[str, Any]) -> "Aims":
        """The aims in the options of a log.

        Raises:
            ValueError, KeyError, TypeError: invalid options.
        """
        return cls(tuple(options["directions"]), limits_of(options["constraints"]), stored_names(options))

    @property
    def k(self) -> int:
        """Number of objectives."""
        return len(self.directions)

    @property
    def constraints(self) -> tuple[str, ...]:
        """Names of the outcome constraints."""
        return tuple(name for name, limit in self.limits.items() if limit != FREE)

    @property
    def texts(self) -> tuple[str, ...]:
        """The outcome constraints as text, as "viscosity <= 30"."""
        return tuple(self.limits[name].text(name) for name in self.constraints)

    @property
    def as_given(self) -> tuple[str, ...] | dict[str, str]:
        """The directions as they were given: by name, if the objectives have names."""
        return named_directions(self.directions, self.objectives)

    def with_one(self, k: int) -> "Aims":
        """Those of objective `k` alone."""
        return Aims(self.directions[k : k + 1], self.limits, self.objectives[k : k + 1])

    def with_quantity(self, name: str) -> "Aims":
        """Those of a measured quantity alone, in the direction in which it stays within its limit."""
        limit = self.limits.get(name, FREE)
        is_above = math.isfinite(limit.low) and not math.isfinite(limit.high)
        return Aims(("maximize" if is_above else "minimize",), {}, (name,))

    def by_name(self, items: Sequence[Any]) -> dict[str, Any] | list[Any]:
        """One item for each objective, by its name, or as a list if they have none."""
        return dict(zip(self.objectives, items, strict=True)) if self.objectives else list(items)
