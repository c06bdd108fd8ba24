"""The data of a modelled quantity, and the marks: the numbers of rows at which hyper-parameters are fitted."""

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

__all__ = ["GROWTH", "Failures", "Rows", "last_mark", "last_mark_of_failing", "next_mark"]

#: Ratio of two marks: the hyper-parameters are fitted again when the number of rows has grown by this factor.
GROWTH = 1.15
#: A fit waits for the values of one in so many running trials; that of the model of failing, most of whose values are
#: the same, for all of them.
WAIT, WAIT_OF_FAILING = 3, 1


@dataclass(frozen=True)
class Failures:
    """Some failed trials, in the order of their ends.

    Attributes:
        n: the numbers of rows that a quantity had when they ended, ascending, (f,).
        numbers: their numbers, (f,).
        X: encoded points, (f, d).
    """

    n: tuple[int, ...]
    numbers: tuple[int, ...]
    X: Tensor

    def since(self, n: int) -> "Failures":
        """Those that ended when there were `n` rows, or later."""
        first = bisect.bisect_left(self.n, n)
        return Failures(self.n[first:], self.numbers[first:], self.X[first:])


@dataclass(frozen=True)
class Rows:
    """The data of a quantity.

    Attributes:
        X: encoded points, (n, d).
        y: values (n,), user's units; NaN for pruned trials, and perhaps infinite ones.
        estimates: estimated final values of pruned trials (n,), user's units; NaN if there is none.
        std: known standard deviations of the noise (n,); NaN if it is fitted.
        categorical: columns that hold category codes.
        version: version of the rows; if it changes, the surrogate is built again.
        mark: number of rows at which hyper-parameters are fitted.
        constant: columns in which all points of the search are the same, on which no model depends.
        later: numbers of the trials of the rows after the mark.
        failed: the trials that failed after the mark; None where failures are rows.
        places: places of the rows among all finished trials, from 0, ascending, (n,).
    """

    X: Tensor
    y: Tensor
    estimates: Tensor
    std: Tensor
    categorical: tuple[int, ...]
    version: int
    mark: int
    constant: tuple[int, ...] = ()
    later: tuple[int, ...] = ()
    failed: Failures | None = None
    places: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))

    @property
    def finite_limits(self) -> Tensor:
        """Values of a constraint (n,) with finite substitutes for infinite ones, on the same side of zero.

        A substitute is the extreme one of the finite values up to the mark on that side; without such a value it is as
        far from zero as the extreme one on the other side, or by one.
        """
        if not bool(torch.isinf(self.y).any()):
            return self.y
        finite = self.y[: self.mark][torch.isfinite(self.y[: self.mark])]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
        most = high if high > 0.0 else -low if low < 0.0 else 1.0
        return torch.where(torch.isinf(self.y), self.y.clamp(low if low < 0.0 else -most, most), self.y)

    def at_mark(self) -> "Rows":
        """The rows up to the mark, from which hyper-parameters are fitted.

        A quantity that has followed more rows since the last fit stays as it is when it follows these.
        """
        n = self.mark
        columns = {name: getattr(self, name)[:n] for name in ("X", "y", "estimates", "std", "places")}
        return replace(self, **columns, later=())


def last_mark(n: int, first: int, n_running: Callable[[int], int] | None = None) -> int:
    """The largest mark <= `n`; 0 if there is none.

    Args:
        n: number of rows.
        first: the first mark.
        n_running: maps a row to the number of trials that were running when it was finished; None if there were none.
    """
    mark = max(first, 1)
    if n < mark:
        return 0
    while (following := next_mark(mark, 0 if n_running is None else n_running(mark - 1))) <= n:
        mark = following
    return mark


def last_mark_of_failing(failures: Sequence[int], n: int, n_running: Callable[[int], int]) -> int:
    """The last mark of the model of failing, whose rows are all finished trials.

    From mark to mark their number has grown as that of other rows does, or the number of failures has: the first
    failures are the most informative.

    Args:
        failures: the rows of the failed trials, ascending; not empty.
        n: number of rows.
        n_running: maps a row to the number of trials that were running when it was finished.
    """
    mark = min(2, failures[0] + 1)
    while True:
        failed, running = bisect.bisect_left(failures, mark), n_running(mark - 1)
        failing = math.ceil(running * failed / mark)  # so many of the running ones are expected to fail
        enough = next_mark(failed, failing, WAIT_OF_FAILING)
        by_failures = failures[enough - 1] + 1 if enough <= len(failures) else n + 1
        following = min(next_mark(mark, running, WAIT_OF_FAILING), by_failures)
        if following > n:
            return mark
        mark = following


def next_mark(mark: int, n_running: int, wait: int = WAIT) -> int:
    """The mark after `mark`.

    Beside many running trials marks are further apart, by one in `wait` of them, or of the mark if that is smaller:
    only a few suggestions would follow from each fit.
    """
    return max(mark + 1, math.ceil(GROWTH * mark) + min(n_running, mark) // wait)
