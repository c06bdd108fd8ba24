"""Labels of the parts of product pools, for trials that are read from a log without its pools.

A log has the columns of a trial and the labels of its parts' entries. In older logs only queued trials have labels;
those of others follow from the row, and without one from the columns.
The module imports neither torch nor NumPy.
"""

import array
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from bkbopt.optimizer.log.log_rows import Described
from bkbopt.optimizer.log.trials import Entry, Trial

__all__ = ["labelled"]


def labelled(entries: Sequence[Entry], spaces: Sequence[Described]) -> list[Trial]:
    """The trials; those of a product have the labels of its parts' entries, each before the columns of its part.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: an invalid description of a product.
    """
    parts = [_parts(space) if "parts" in space.text else [] for space in spaces]
    return [_labelled(entry.trial, parts[entry.space]) for entry in entries]


def _labelled(trial: Trial, parts: Sequence["_Part"]) -> Trial:
    params: dict[str, Any] = {}
    for part in parts:
        entry = part.entry(trial)
        if part.labels is not None and part.name in trial.params:
            params[part.name] = trial.params[part.name]
        elif part.labels is not None and entry is not None:
            params[part.name] = part.labels[entry]
        params |= {name: trial.params[name] for name in part.columns if name in trial.params}
    return replace(trial, params=params) if params else trial


@dataclass(frozen=True)
class _Part:
    """A part of a product, as a log describes it.

    Attributes:
        name: of the part.
        columns: names of its d columns.
        choices: the listed values of columns that are no numbers, by the columns' names.
        labels: of its n entries; None for a list, whose values are the labels.
        n: number of entries.
        stride: number of rows of the pool from one entry to the next.
        table: n rows of d numbers; empty if the log does not have them.
    """

    name: str
    columns: tuple[str, ...]
    choices: Mapping[str, Sequence[Any]]
    labels: Sequence[Any] | None
    n: int
    stride: int
    table: Sequence[float]

    def entry(self, trial: Trial) -> int | None:
        """The entry of a trial: that of its row, else the first one with the same values; None if it is unknown."""
        if self.labels is None:
            return None
        if trial.index is not None:
            return trial.index // self.stride % self.n
        if not all(name in trial.params for name in self.columns):
            return None
        return self._entries.get(tuple(self._code(name, trial.params[name]) for name in self.columns))

    def _code(self, name: str, value: Any) -> Any:
        listed = self.choices.get(name)
        if listed is None:
            return value
        return next((i for i, own in enumerate(listed) if own == value and type(own) is type(value)), None)

    @cached_property
    def _entries(self) -> dict[tuple[float, ...], int]:
        """The first entry with each row of the table."""
        d, entries = len(self.columns), dict[tuple[float, ...], int]()
        for i in range(len(self.table) // d):
            entries.setdefault(tuple(self.table[i * d : (i + 1) * d]), i)
        return entries


def _parts(space: Described) -> list[_Part]:
    """The parts of a product, in order."""
    names, every = space.text["names"], space.text["parts"]
    choices = {names[j]: values for j, values in space.text["choices"]}
    numbers = array.array("d", space.rows or b"")
    if sys.byteorder == "big":
        numbers.byteswap()
    parts, first, at = [], 0, 0
    for i, own in enumerate(every):
        n, d, labels = own["n"], own["d"], own["labels"]
        if n < 1 or d < 1 or (labels is not None and len(labels) != n):
            raise ValueError("parts of a product without entries, or with too few labels")
        stride = math.prod(later["n"] for later in every[i + 1 :])
        columns = tuple(names[first : first + d])
        parts.append(_Part(own["name"], columns, choices, labels, n, stride, numbers[at : at + n * d]))
        first, at = first + d, at + n * d
    return parts
