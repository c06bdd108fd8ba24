"""Parts of a pool on the workers of a Dask cluster, each with the data of the search for its rows; see `parts.py`.

Sent to a worker are the model, once for a scan and once for each few hundred rows that are computed, a number for each
version of the bounds, and rows that were closed since the last call. It returns numbers of rows with their bounds, or
with mean and variance. A part whose worker has died has no bounds: it raises `LostPartError`, and is scanned again.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from torch import Tensor

from bkbopt.posterior.model import Model
from bkbopt.search.maximizers.parts import Bounds, Floats, Ints, LocalPart, Mask
from bkbopt.spaces.columns import Columns
from bkbopt.spaces.remote import Beside, LostPartError, RemotePart

__all__ = ["ClusterPart", "at_once"]

#: Numbers of searches; a part belongs to the one that scanned it last.
_OWNERS = itertools.count(1)


def at_once(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """As `map`, but all calls at once, since each of them waits for a worker."""
    items = list(items)
    if not items:
        return []
    with ThreadPoolExecutor(len(items)) as threads:
        return list(threads.map(function, items))


class ClusterPart:
    """A part on a worker; see `Part`.

    Args:
        remote: its rows.
        columns: how they become encoded.
        codes: by column, the pool's codes in the order of the part's own.
    """

    def __init__(self, remote: RemotePart, columns: Columns, codes: Mapping[int, Floats]) -> None:
        self._remote, self._columns, self._codes = remote, columns, codes
        self._owner = next(_OWNERS)
        self._closed = np.zeros(len(remote), dtype=np.bool_)

    def __len__(self) -> int:
        return len(self._remote)

    def scan(self, model: Model, done: Callable[[int], object], version: int = 0) -> None:
        """See `Part`."""
        self._closed = np.zeros(len(self), dtype=np.bool_)
        self._remote.apply(_scan, self._owner, self._columns, self._codes, model, version)
        done(len(self))

    def bounds(self, width: Floats, above: float, most: int, closed: Mask, current: int) -> Bounds:
        """See `Part`."""
        now = closed if len(closed) else np.zeros_like(self._closed)
        changed = np.flatnonzero(now != self._closed)
        out = self._remote.apply(_bounds, self._owner, width, above, most, changed, current)
        self._closed = now.copy()
        return out

    def refine(self, rows: Ints, model: Model, version: int) -> tuple[Floats, Floats]:
        """See `Part`."""
        return self._remote.apply(_refine, self._owner, rows, model, version)

    def fold(self, growth: Floats, drift: Floats) -> None:
        """See `Part`."""
        self._remote.apply(_fold, self._owner, growth, drift)

    def scores(self, score: Callable[[Tensor], Tensor], size: int) -> Tensor:
        """See `Part`."""
        return self._remote.apply(_scores, self._columns, self._codes, score, size)


# -- functions that run on workers -------------------------------------------------------------------------------------


def _scan(here: Beside, owner: int, columns: Columns, codes: Mapping[int, Floats], model: Model, version: int) -> None:
    part = LocalPart(here.encoded(columns, codes))
    part.scan(model, int, version)
    here.kept = {"owner": owner, "part": part, "closed": np.zeros(len(part), dtype=np.bool_)}


def _part(here: Beside, owner: int) -> LocalPart:
    if here.kept.get("owner") != owner:
        raise LostPartError("part: expected one that was scanned, got a new one on its worker.")
    part: LocalPart = here.kept["part"]
    return part


def _bounds(here: Beside, owner: int, width: Floats, above: float, most: int, changed: Ints, current: int) -> Bounds:
    part, closed = _part(here, owner), here.kept["closed"].copy()
    closed[changed] ^= True
    here.kept["closed"] = closed
    return part.bounds(width, above, most, closed, current)


def _refine(here: Beside, owner: int, rows: Ints, model: Model, version: int) -> tuple[Floats, Floats]:
    return _part(here, owner).refine(rows, model, version)


def _fold(here: Beside, owner: int, growth: Floats, drift: Floats) -> None:
    _part(here, owner).fold(growth, drift)


def _scores(
    here: Beside, columns: Columns, codes: Mapping[int, Floats], score: Callable[[Tensor], Tensor], size: int
) -> Tensor:
    return LocalPart(here.encoded(columns, codes)).scores(score, size)
