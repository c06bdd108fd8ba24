"""The exact, lazy argmax of the upper confidence bound over a pool in parts; `pool.py` has the mathematics.

Each part keeps the bounds of its rows (see `parts.py`). A step computes the best rows of the step before, whose scores
are often close to the best. It asks every part for the rows whose bounds exceed these scores, and computes them, best
bound first, until no remaining bound exceeds the best score. So it costs one pass over the bounds and the posterior of
some hundred rows.

Parts without bounds, because they are new in the pool or their worker has died, are scanned alone, with the model of
the step, as one more version.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.progress import bar, bars
from bkbopt._support.threads import small_work, threads_for
from bkbopt.posterior.model import Model
from bkbopt.search.maximizers.parts import Bounds, Floats, Ints, Mask, Part
from bkbopt.search.maximizers.pool import SCAN_SHARE, SLACK, Argmax, check_some_open
from bkbopt.search.maximizers.versions import MAX_VERSIONS, Versions
from bkbopt.spaces.remote import LostPartError
from bkbopt.spaces.stored_rows import EncodedRows

__all__ = ["PartedMaximizer"]

#: Rows requested from a part at first; rows that are the first candidates of the next step.
MOST, FRONT = 4096, 64
#: Rows computed at first; each later time twice as many. The most rows that are requested or computed at once, which
#: limits the memory.
CHUNK, MOST_AT_ONCE = 256, 1 << 16

T = TypeVar("T")


@dataclass
class _Computed:
    """Rows with exact scores: those that may still be the best, or tied with it.

    Attributes:
        beta: multiplies the standard deviation.
        best: the largest score.
        slack: rounding error of bounds; scores that differ by a thousandth of it are tied.
        n: how many were computed.
        rows, scores: of those that may be the best.
    """

    beta: float
    best: float = -math.inf
    slack: float = 0.0
    n: int = 0
    rows: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    scores: Floats = field(default_factory=lambda: np.zeros(0))

    def add(self, rows: Ints, mean: Floats, variance: Floats) -> None:
        """Add computed rows."""
        sd = np.sqrt(variance)
        scores = mean + self.beta * sd
        self.slack = max(self.slack, SLACK * float((np.abs(mean) + (1.0 + self.beta) * sd).max()))
        self.best = max(self.best, float(scores.max()))
        self.n += len(rows)
        self.rows, self.scores = np.concatenate([self.rows, rows]), np.concatenate([self.scores, scores])
        if len(self.rows) > 4 * MOST:  # the next step begins with the best of them in any case
            good = self.scores >= min(self.best - self.slack, np.partition(self.scores, -FRONT)[-FRONT])
            self.rows, self.scores = self.rows[good], self.scores[good]

    def argmax(self) -> Argmax:
        """The best row; of tied ones that with the lowest number."""
        tied = self.scores >= self.best - 1e-3 * self.slack
        at = int(np.where(tied, self.rows, np.iinfo(np.int64).max).argmin())
        return Argmax(int(self.rows[at]), float(self.scores[at]))

    def front(self) -> Ints:
        """The rows that are the first candidates of the next step."""
        few = len(self.rows) <= FRONT
        return np.sort(self.rows if few else self.rows[np.argpartition(-self.scores, FRONT)[:FRONT]])


class PartedMaximizer:
    """Argmax of mean + beta * stddev over the rows of several parts; keeps bounds between calls.

    Args:
        X: the rows of all parts.
        parts: in the order of the rows.
        shows_bar: whether long scans show a bar.
        each: calls a function of each part, as `map` does.
        before: an earlier search with the same model; the bounds of parts that are the same objects are kept.

    Attributes:
        parts: in the order of the rows.
        n_scans: full passes over the pool so far.
        n_scanned: rows computed in scans so far.
        n_refreshed: arms computed exactly outside of scans so far.
    """

    def __init__(
        self,
        X: EncodedRows | Tensor,
        parts: Sequence[Part],
        *,
        shows_bar: bool = False,
        each: Callable[[Callable[..., Any], Iterable[Any]], Iterable[Any]] = map,
        before: "PartedMaximizer | None" = None,
    ) -> None:
        self.X = X
        self.n_scans = 0
        self.n_scanned = 0
        self.n_refreshed = 0
        self.parts, self._shows_bar, self._each = tuple(parts), shows_bar, each
        self._starts = np.cumsum([0, *map(len, self.parts)])
        self._versions: Versions | None = None if before is None else before._versions
        kept = set[int]() if before is None else {id(before.parts[number]) for number in before._numbers(True)}
        self._has_bounds: list[bool] = [id(part) in kept for part in self.parts]
        self._front = np.zeros(0, dtype=np.int64)
        #: Rows computed since the last scan.
        self._n_since_scan = 0

    def argmax(self, model: Model, beta: float, excluded: Tensor | None = None) -> Argmax:
        """See `PoolMaximizer.argmax`."""
        check_some_open(excluded)
        closed = np.zeros(0, dtype=np.bool_) if excluded is None else excluded.numpy()
        computed = None
        with torch.no_grad():
            while computed is None:
                versions, is_new = self._up_to_date(model)
                self._versions = None  # bounds that an interrupt leaves half-way do not hold
                try:
                    with small_work():
                        computed = self._refine(versions, model, beta, closed, may_give_up=not is_new)
                except LostPartError:
                    self._versions = versions  # only the part that was lost is scanned again
        self._versions, self._front = versions, computed.front()
        self.n_refreshed += computed.n
        self._n_since_scan += computed.n
        return computed.argmax()

    @torch.no_grad()
    def scan(self, model: Model) -> tuple[Tensor, Tensor]:
        """Mean and variance, each `(A,)`, of the whole pool, in blocks."""
        predict = model.collapse()
        both = self.scores(lambda X: torch.stack(predict(X), 1), model.features.size)
        return both[:, 0], both[:, 1]

    @torch.no_grad()
    def scores(self, score: Callable[[Tensor], Tensor], size: int) -> Tensor:
        """Scores `(A, ...)` of the whole pool, in blocks that fit the cache for models of `size` features."""
        with threads_for(2.0 * len(self.X) * size * size):
            return torch.cat(list(self._each(lambda part: part.scores(score, size), self.parts)))

    def _up_to_date(self, model: Model) -> tuple[Versions, bool]:
        """The versions, the last being the model's, still without rows; and whether the pool was scanned for it."""
        versions, is_new, self._versions = self._versions, False, None
        if versions is None or not versions.holds(model):
            self.n_scans += 1
            self._n_since_scan = 0
            self._has_bounds = [False] * len(self.parts)
            versions, is_new = Versions(model), True
            self._scan(model, 0)
        elif len(versions) >= MAX_VERSIONS - 1:  # room for two, one for the rows of parts without bounds
            growth, drift = versions.growths().cpu().numpy(), versions.drifts().cpu().numpy()
            with contextlib.suppress(LostPartError):
                self._of(lambda number: self.parts[number].fold(growth, drift), self._numbers(True))
            versions.fold()
        if not all(self._has_bounds):
            versions.begin(model)
            self._scan(model, len(versions) - 1)
        versions.begin(model)
        return versions, is_new

    def _scan(self, model: Model, version: int) -> None:
        """Compute all rows of the parts without bounds, as rows of a version."""
        numbers, m = self._numbers(False), model.features.size
        n = sum(len(self.parts[number]) for number in numbers)
        with bars(self._shows_bar), bar(n, "pool scanned") as done, threads_for(2.0 * n * m * m):
            self._of(lambda number: self.parts[number].scan(model, done, version), numbers)
        self.n_scanned += n
        for number in numbers:
            self._has_bounds[number] = True

    def _numbers(self, with_bounds: bool) -> list[int]:
        """The parts that have bounds, or those that have none."""
        return [number for number, has in enumerate(self._has_bounds) if has == with_bounds]

    def _of(self, call: Callable[[int], T], numbers: Iterable[int]) -> list[T]:
        """The results of a function of parts' numbers; parts whose bounds are lost are recorded.

        Raises:
            LostPartError: the bounds of a part are lost; it is raised after all parts have been called.
        """

        def of_part(number: int) -> T | LostPartError:
            try:
                return call(number)
            except LostPartError as error:
                self._has_bounds[number] = False
                return error

        answers = list(self._each(of_part, numbers))
        lost = next((answer for answer in answers if isinstance(answer, LostPartError)), None)
        if lost is not None:
            raise lost
        return [answer for answer in answers if not isinstance(answer, LostPartError)]

    def _refine(
        self, versions: Versions, model: Model, beta: float, closed: Mask, *, may_give_up: bool
    ) -> _Computed | None:
        """Compute exactly, best bound first, until no remaining bound beats the best exact score.

        None if so many bounds do that a scan costs less.
        """
        width, current, most = versions.widths(beta).cpu().numpy(), len(versions) - 1, MOST
        computed = _Computed(beta)
        front = self._front if not len(closed) else self._front[~closed[self._front]]
        self._compute(computed, front, model, current)
        while True:
            above = computed.best - computed.slack
            found = self._bounds(width, above, most, closed, current)
            if may_give_up and math.isfinite(above) and self._scan_is_cheaper(found.n_above):
                return None
            start, chunk = 0, CHUNK
            while start < len(found.rows) and found.bounds[start] > computed.best - computed.slack:
                self._compute(computed, found.rows[start : start + chunk], model, current)
                start, chunk = start + chunk, min(2 * chunk, MOST_AT_ONCE)
            if found.rest <= computed.best - computed.slack:
                return computed
            may_give_up, most = may_give_up and math.isinf(above), min(4 * most, MOST_AT_ONCE)

    def _scan_is_cheaper(self, n: int) -> bool:
        """Whether a scan costs less than computing `n` rows: now, or with those computed since the last one.

        A scan makes all bounds tight. It is due once the rows computed one by one have cost as much: later steps are
        not known, and by this rule both together cost at most twice the least possible.
        """
        return n > MOST and n + self._n_since_scan > SCAN_SHARE * len(self.X)

    def _bounds(self, width: Floats, above: float, most: int, closed: Mask, current: int) -> Bounds:
        """The bounds of all parts, largest first."""

        def of_part(number: int) -> Bounds:
            start, stop = self._starts[number], self._starts[number + 1]
            answer = self.parts[number].bounds(width, above, most, closed[start:stop], current)
            return Bounds(answer.rows + start, answer.bounds, answer.n_above, answer.rest)

        answers = self._of(of_part, range(len(self.parts)))
        rows = np.concatenate([answer.rows for answer in answers])
        bounds = np.concatenate([answer.bounds for answer in answers])
        order = np.argsort(-bounds, kind="stable")
        rest = max(answer.rest for answer in answers)
        return Bounds(rows[order], bounds[order], sum(answer.n_above for answer in answers), rest)

    def _compute(self, computed: _Computed, rows: Ints, model: Model, version: int) -> None:
        if not len(rows):
            return
        rows = np.sort(rows)
        cuts = np.searchsorted(rows, self._starts)
        mine = [number for number in range(len(self.parts)) if cuts[number] < cuts[number + 1]]

        def of_part(number: int) -> tuple[Floats, Floats]:
            own = rows[cuts[number] : cuts[number + 1]] - self._starts[number]
            return self.parts[number].refine(own, model, version)

        means, variances = zip(*self._of(of_part, mine), strict=True)
        computed.add(rows, np.concatenate(means), np.concatenate(variances))
