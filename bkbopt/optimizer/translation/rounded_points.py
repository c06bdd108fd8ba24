"""Points of a space that are told with rounded numbers, as after a table of text: the trials that are meant.

| symbol | shape  | units  | meaning                                                    |
| ------ | ------ | ------ | ---------------------------------------------------------- |
| rows   | (m, f) | user's | real parameters of trials with the same other parameters   |
| values | (f,)   | user's | real parameters of a point that is none of these trials    |
| spans  | (m, f) | user's | the differences that are a share of 1 of the search ranges |

A number agrees if it is that of a trial, rounded to three significant digits or more, to three decimals or more, or to
float32, and if it differs by little of the range. Rows of pools lie closer: `bkbopt.spaces.rounding`.
"""

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bkbopt.search.trials.evaluations import Point
from bkbopt.spaces.numeric import Float
from bkbopt.spaces.space import Space

__all__ = ["meant_points", "note_near_points"]

logger = logging.getLogger(__name__)

#: Numbers of decimals, or of significant digits, to which numbers may have been rounded.
DIGITS = range(3, 13)
#: The error of float32, and that of a division by a power of ten, both relative.
SINGLE, DOUBLE = 6e-8, 1e-14
#: Largest difference as a share of the range: half a unit of the third digit; and that of points that are warned of.
SHARE, NEAR = 5e-3, 2e-2
#: Fewest points that are warned of; few points, of which the trials are looked at one by one.
FEWEST, FEW = 2, 4

Floats = NDArray[np.float64]
#: What trials have in common that can be confused: their other parameters, and the names of their real ones.
Shape = tuple[frozenset[tuple[str, float]], frozenset[str]]


class _Known:
    """Trials of a space by their parameters."""

    def __init__(self, points: Iterable[Point], space: Space) -> None:
        self.real = {key: p for key, p in space.keyed.items() if isinstance(p, Float) and p.step is None}
        self.points: dict[Shape, list[Point]] = {}
        self._tables: dict[Shape, _Table] = {}
        for point in points:
            self.points.setdefault(self._shape(point), []).append(point)

    def _shape(self, point: Point) -> Shape:
        rest = frozenset((key, value) for key, value in point.items() if key not in self.real)
        return rest, frozenset(point.keys() & self.real.keys())

    def meant(self, point: Point) -> list[Point]:
        """The trials whose numbers are those of the point, rounded, nearest first."""
        rows, at = self._within(point, SHARE)
        if not len(at):
            return []
        table = self._tables[shape := self._shape(point)]
        agree = np.all(_are_rounded(table.rows[at], rows), axis=1)
        return [self.points[shape][table.order[i]] for i in at[agree]]

    def has_near(self, point: Point, share: float) -> bool:
        """Whether a trial differs from the point by at most a `share` of each range."""
        return len(self._within(point, share)[1]) > 0

    def _within(self, point: Point, share: float) -> tuple[Floats, NDArray[np.intp]]:
        """The `values` of a point, and the places of those rows that differ by at most a `share`, nearest first."""
        shape = self._shape(point)
        if shape not in self._tables:
            self._tables[shape] = self._table(shape)
        table = self._tables[shape]
        values = np.array([point[name] for name in table.names])
        some = table.beside(values, share)
        gaps, spans = np.abs(table.rows[some] - values), table.spans[some]
        shares = np.divide(gaps, spans, out=np.where(gaps > 0.0, np.inf, 0.0), where=spans > 0.0).max(1, initial=0.0)
        near = np.flatnonzero(shares <= share)
        near = near[np.lexsort((table.order[some][near], shares[near]))]
        return values, near + some.start

    def _table(self, shape: Shape) -> "_Table":
        points, names = self.points.get(shape, []), sorted(shape[1])
        rows = np.array([[known[name] for name in names] for known in points]).reshape(len(points), len(names))
        order = np.argsort(rows[:, 0], kind="stable") if names else np.arange(len(points))
        ends = [(self.real[name].low, self.real[name].high, self.real[name].log) for name in names]
        widths = np.array([np.log(high / low) if log else high - low for low, high, log in ends])
        spans = np.where([log for *_, log in ends], np.abs(rows), 1.0) * widths
        return _Table(names, rows[order], spans[order], order)


@dataclass(frozen=True)
class _Table:
    """The trials of a shape, sorted by their first real parameter.

    Attributes:
        names: names of the real parameters.
        rows: see the module's table.
        spans: see the module's table.
        order: the number of each row's trial, (m,).
    """

    names: list[str]
    rows: Floats
    spans: Floats
    order: NDArray[np.intp]

    def beside(self, values: Floats, share: float) -> slice:
        """Rows among which all are that differ by at most a `share`, by the first parameter."""
        if not (len(self.names) and len(self.rows)):
            return slice(0, len(self.rows))
        first = self.rows[:, 0]
        reach = (1.0 + 1e-9) * share * self.spans[:, 0] + 1e-14 * np.abs(first)  # a little more, because of rounding
        start, low = np.searchsorted(first + reach, values[0], "left"), first - reach
        is_sorted = low[-1] >= low[0]  # not where a logarithmic range has so many decades that all larger rows are near
        stop = np.searchsorted(low, values[0], "right") if is_sorted else len(first)
        return slice(int(start), int(stop))


def _are_rounded(rows: Floats, values: Floats) -> NDArray[np.bool_]:
    """Whether `values` are numbers of `rows`, rounded, (m, f)."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # of zero, and of numbers near the largest one
        units = 10.0 ** np.floor(np.log10(np.abs(rows)))  # of the first digit
        units = np.where(units > 0.0, units, 1.0)
        agree = np.abs(rows - values) <= SINGLE * np.abs(rows)
        for digits in DIGITS:
            agree |= np.round(rows, digits) == values
            agree |= np.abs(np.round(rows / units, digits - 1) * units - values) <= DOUBLE * np.abs(values)
    return agree


def meant_points(points: Sequence[Point], known: Iterable[Point], space: Space) -> list[Point]:
    """The points, with those of `known` trials in place of points that are these with rounded numbers."""
    trials = list(known)
    if len(points) <= FEW:
        trials = _near(trials, points, space)
    exact = {frozenset(point.items()) for point in trials}
    if not trials or all(frozenset(point.items()) in exact for point in points):
        return list(points)
    out, finder, taken = list(points), _Known(trials, space), set[frozenset[tuple[str, float]]]()
    for i, point in enumerate(points):
        if frozenset(point.items()) in exact:
            continue
        near = finder.meant(point)
        free = (one for one in near if frozenset(one.items()) not in taken)
        if near:
            out[i] = next(free, near[0])
            taken.add(frozenset(out[i].items()))
    return out


def _near(trials: list[Point], points: Sequence[Point], space: Space) -> list[Point]:
    """The trials whose first real parameter is near that of one of few `points`: a table of all would cost more."""
    key, first = next(
        ((key, p) for key, p in space.keyed.items() if isinstance(p, Float) and p.step is None), ("", None)
    )
    if first is None:
        return trials
    width = SHARE * (math.log(first.high / first.low) if first.log else first.high - first.low)

    def is_near(trial: Point, point: Point) -> bool:
        if key not in trial or key not in point:
            return True
        return abs(trial[key] - point[key]) <= width * (abs(trial[key]) if first.log else 1.0)

    return [trial for trial in trials if any(is_near(trial, point) for point in points)]


def note_near_points(points: Sequence[Point], running: Iterable[Point], space: Space) -> None:
    """Warn of told `points`, new trials, that lie so near running trials that these may be meant."""
    if len(points) < FEWEST:
        return
    finder = _Known(running, space)
    if not finder.points or len(finder.real) < FEWEST:
        return
    n_near = sum(finder.has_near(point, NEAR) for point in points)
    if n_near >= max(FEWEST, len(points) / 2):
        logger.warning(
            "tell: %d of %d points lie very near to running trials, which go on running, since the points have other "
            "numbers. If these trials are meant, tell them by id, tell(ids, values), or with three digits; fail takes "
            "trials off.",
            n_near,
            len(points),
        )
