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
        self._tables: dict[Shape, tuple[list[str], Floats, Floats]] = {}
        for point in points:
            self.points.setdefault(self._shape(point), []).append(point)

    def _shape(self, point: Point) -> Shape:
        rest = frozenset((key, value) for key, value in point.items() if key not in self.real)
        return rest, frozenset(point.keys() & self.real.keys())

    def gaps(self, point: Point) -> tuple[list[Point], Floats, NDArray[np.bool_]]:
        """The trials of a shape, their largest differences as shares of ranges, and whether they may be meant."""
        shape = self._shape(point)
        if shape not in self._tables:
            self._tables[shape] = self._table(shape)
        names, rows, spans = self._tables[shape]
        values = np.array([point[name] for name in names])
        gaps = np.abs(rows - values)
        shares = np.divide(gaps, spans, out=np.where(gaps > 0.0, np.inf, 0.0), where=spans > 0.0).max(1, initial=0.0)
        agree = shares <= SHARE  # the digits of others are not looked at, which takes most of the time
        if agree.any():
            agree[agree] = np.all(_are_rounded(rows[agree], values), axis=1)
        return self.points.get(shape, []), shares, agree

    def _table(self, shape: Shape) -> tuple[list[str], Floats, Floats]:
        """The names of the real parameters, and `rows` and `spans` of the trials of a shape."""
        points, names = self.points.get(shape, []), sorted(shape[1])
        rows = np.array([[known[name] for name in names] for known in points]).reshape(len(points), len(names))
        ends = [(self.real[name].low, self.real[name].high, self.real[name].log) for name in names]
        widths = np.array([np.log(high / low) if log else high - low for low, high, log in ends])
        return names, rows, np.where([log for *_, log in ends], np.abs(rows), 1.0) * widths


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
        there, shares, agree = finder.gaps(point)
        near = sorted(np.flatnonzero(agree).tolist(), key=shares.__getitem__)
        free = [j for j in near if frozenset(there[j].items()) not in taken]
        if near:
            out[i] = there[(free or near)[0]]
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
    n_near = sum(bool((finder.gaps(point)[1] <= NEAR).any()) for point in points)
    if n_near >= max(FEWEST, len(points) / 2):
        logger.warning(
            "tell: %d of %d points lie very near to running trials, which go on running, since the points have other "
            "numbers. If these trials are meant, tell them by id, tell(ids, values), or with three digits; fail takes "
            "trials off.",
            n_near,
            len(points),
        )
