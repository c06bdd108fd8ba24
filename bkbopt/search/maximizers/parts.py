"""Parts of a pool; each part stores its rows' bounds of the score.

| symbol  | shape | units | meaning                                                                               |
| ------- | ----- | ----- | ------------------------------------------------------------------------------------- |
| X       | (n, d) | enc. | the rows of a part                                                                    |
| mu, sd  | (n,)  | y     | mean and standard deviation when they were last computed, in float32, rounded up       |
| version | (n,)  | -     | when that was, see `versions.py`; one byte, so that a row takes nine bytes in all       |
| top, most_sd, at | (n / 256,) | | of each group of rows: top is the largest mu + at sd, and most_sd the largest sd |

No bound of a group is above top + most_sd max(width - at, 0), where width is the largest of all versions, so most
groups are skipped as a whole. The three numbers of a group are computed anew when its rows are searched.

A search sends the model and a few numbers to a part and receives the few best rows; the other rows are not sent.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt.posterior.model import Model
from bkbopt.spaces.stored_rows import EncodedRows

__all__ = ["Bounds", "LocalPart", "Part", "block_rows"]

#: Entries of a block of k(pool, dictionary): half a megabyte of float64, so that it and its temporaries stay in a
#: core's cache; larger blocks took twice the time of a scan.
BLOCK_ENTRIES = 1 << 16
#: The same on another device, half a gigabyte: it occupies all units of the device, and little of its memory.
DEVICE_ENTRIES = 1 << 26

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


def block_rows(size: int, device: torch.device | None = None) -> int:
    """Rows that are computed at once with a model of `size` features on a `device`, by default the CPU."""
    entries = BLOCK_ENTRIES if device is None or device.type == "cpu" else DEVICE_ENTRIES
    return max(256, entries // max(size, 1))


@dataclass(frozen=True)
class Bounds:
    """The rows of a part with the largest bounds.

    Attributes:
        rows: their numbers in the part, (k,).
        bounds: of their scores, (k,).
        n_above: how many rows of the part have a bound above the given number.
        rest: an upper bound of the bounds of all other rows.
    """

    rows: Ints
    bounds: Floats
    n_above: int
    rest: float


class Part(Protocol):
    """Some rows of a pool. Numbers of rows are those in the part, from 0 on."""

    def __len__(self) -> int:
        """Number of rows."""

    def scan(self, model: Model, done: Callable[[int], object], version: int = 0) -> None:
        """Compute mean and standard deviation of all rows, as rows of a version; `done` receives numbers of rows."""

    def bounds(self, width: Floats, above: float, most: int, closed: Mask, current: int) -> Bounds:
        """The rows with the largest bounds mu + width[version] sd, at most `most`, whose bounds exceed `above`.

        Args:
            width: of each version, (versions,).
            above: the number to exceed.
            most: largest number of rows.
            closed: (n,), which may not be chosen; of length 0 if all may.
            current: a version whose rows are left out, since they have been computed.
        """

    def refine(self, rows: Ints, model: Model, version: int) -> tuple[Floats, Floats]:
        """Mean and variance of the `rows (k,)`, exactly, which become rows of a `version`; (k,) both."""

    def fold(self, growth: Floats, drift: Floats) -> None:
        """Write all bounds in terms of one version, number 0, given g_v and drift_v (versions,); see `versions.py`."""

    def scores(self, score: Callable[[Tensor], Tensor], size: int) -> Tensor:
        """The values, (n, ...), at all rows of a function of encoded rows `(b, d)` with `size` features."""


class LocalPart:
    """A part whose rows are read here, from memory or from where they are stored; see `Part`."""

    def __init__(self, X: Tensor | EncodedRows) -> None:
        self.X = X
        self._mu = self._sd = np.zeros(0, dtype=np.float32)
        self._version = np.zeros(0, dtype=np.uint8)
        self._groups = (np.zeros(0), np.zeros(0), np.zeros(0))

    def __len__(self) -> int:
        return len(self.X)

    def scan(self, model: Model, done: Callable[[int], object], version: int = 0) -> None:
        """See `Part`."""
        predict, n = model.collapse(), len(self)
        if len(self._mu) != n:
            self._mu, self._sd = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32)
            self._version = np.empty(n, dtype=np.uint8)
        self._version.fill(version)
        self._forget_groups()
        start = 0
        for X in self.X.split(block_rows(model.features.size, model.w.device)):
            mean, variance = predict(X)
            stop = start + len(X)
            self._mu[start:stop], self._sd[start:stop] = _up(mean), _up(variance.sqrt())
            start = stop
            done(len(X))

    def bounds(self, width: Floats, above: float, most: int, closed: Mask, current: int) -> Bounds:
        """See `Part`."""
        from bkbopt.search.maximizers._loops_parts import best_bounds

        rows, bounds = np.empty(2 * most, dtype=np.int64), np.empty(2 * most)
        n, n_above, rest = best_bounds(
            self._mu, self._sd, self._version, self._groups, closed, width, current, above, rows, bounds
        )
        return Bounds(rows[:n], bounds[:n], n_above, rest)

    def refine(self, rows: Ints, model: Model, version: int) -> tuple[Floats, Floats]:
        """See `Part`."""
        from bkbopt.search.maximizers._loops_parts import raise_tops

        blocks = torch.from_numpy(rows).split(block_rows(model.features.size))
        mean, variance = (torch.cat(parts) for parts in zip(*(model(self.X[some]) for some in blocks), strict=True))
        self._mu[rows], self._sd[rows], self._version[rows] = _up(mean), _up(variance.sqrt()), version
        raise_tops(self._groups, rows, self._mu, self._sd)
        return mean.numpy(), variance.numpy()

    def fold(self, growth: Floats, drift: Floats) -> None:
        """See `Part`."""
        from bkbopt.search.maximizers._loops_parts import fold

        fold(self._mu, self._sd, self._version, growth, drift)
        self._forget_groups()

    def _forget_groups(self) -> None:
        """Discard the bounds of the groups: the next call searches all rows."""
        from bkbopt.search.maximizers._loops_parts import GROUP

        n = -(-len(self) // GROUP)
        self._groups = (np.full(n, np.inf), np.zeros(n), np.zeros(n))

    def scores(self, score: Callable[[Tensor], Tensor], size: int) -> Tensor:
        """See `Part`."""
        return torch.cat([score(X) for X in self.X.split(block_rows(size))])


def _up(values: Tensor) -> NDArray[np.float32]:
    """The values in float32, rounded up."""
    return np.nextafter(values.numpy().astype(np.float32), np.float32(np.inf))
