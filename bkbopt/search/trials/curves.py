"""Estimates of the final values of pruned trials, from the intermediate values of all trials.

| symbol | shape  | units  | meaning                                                                        |
| ------ | ------ | ------ | ------------------------------------------------------------------------------ |
| v      | (n,)   | user's | intermediate values at a step, or at the last one before it, of complete       |
|        |        |        | trials and of those that were pruned later                                     |
| y      | (n,)   | user's | their final values; estimates for those that were pruned                       |
| a      | (m,)   | user's | intermediate values at a step of all trials that reached it                    |

The estimate for a trial that was pruned at a step is the isotonic regression of y on v at that step: intermediate and
final values have the same direction, but need not have the same scale. Beyond the best v it is constant, since a pruned
trial is no evidence for a new best value. Beyond the poorest v it continues with the slope of the linear regression,
which has one more pair: it lies on the line of slope one through the means of v and y, at the root mean square distance
of a from the mean of v. So few trials that ran longer, or trials that differ little, give a slope of about one, and
many that differ as much as all do give their own. A search thus learns from pruned trials while few are complete: if
the first trial is good, successive halving prunes nearly all others.
"""

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Curve", "FinalValues"]

Array = NDArray[np.float64]
#: Intermediate values by step.
Curve = Mapping[int, float]


@dataclass(frozen=True)
class _Line:
    """A regression of final on intermediate values; larger is better.

    Attributes:
        v: intermediate values, ascending; not empty.
        y: their regression, ascending.
        slope: slope below `v[0]`.
    """

    v: Array
    y: Array
    slope: float

    @classmethod
    def fitted(cls, v: Array, y: Array, a: Array) -> "_Line":
        """The regression of `y (n,)` on `v (n,)` at a step with the values `a (m,)`; n > 0."""
        from scipy.optimize import isotonic_regression  # late, since importing it takes time

        # Equal v with falling y are pooled, so that they get their mean.
        order = np.lexsort((-y, v))
        return cls(v[order], isotonic_regression(y[order]).x, _slope(v, y, a))

    def __call__(self, v: float) -> float:
        worst, final = float(self.v[0]), float(self.y[0])
        if -math.inf < v < worst:
            beyond = final - self.slope * (worst - v)
            return beyond if math.isfinite(beyond) else final
        # Computed from quarters, since differences of the largest doubles overflow; so may the slope of a steep step.
        with np.errstate(over="ignore", invalid="ignore"):
            found = 4.0 * float(np.interp(v / 4.0, self.v / 4.0, self.y / 4.0))
        return min(float(self.y[-1]), max(final, found))


def _slope(v: Array, y: Array, a: Array) -> float:
    """Slope of the linear regression with the further pair; zero if it is negative, or all of `v` and `a` are equal."""
    # From quarters and in units of their own, since differences and squares of the largest doubles overflow.
    z = y / 4.0 - (y / 4.0).mean()
    distances = np.concatenate([v, a]) / 4.0 - (v / 4.0).mean()
    unit, height = float(np.abs(distances).max()), float(np.abs(z).max())
    if not unit:
        return 0.0
    u, others = np.split(distances / unit, [len(v)])
    more = float((others**2).mean()) if len(a) else 0.0  # the further pair's share of both sums
    covariance = float(u @ z / height) * (height / unit) if height else 0.0
    slope = (covariance + more) / (float(u @ u) + more)
    return slope if 0.0 < slope < math.inf else 0.0


@dataclass
class FinalValues:
    """The estimates of final values that follow from trials.

    Args:
        sign: +1 if larger is better, -1 if smaller is better.
        curves: the curves of the trials.
        y: their final values; NaN for pruned trials.
    """

    sign: float
    curves: Sequence[Curve]
    y: Sequence[float]
    _all: list[tuple[Curve, list[int], float]] = field(init=False)
    _known: list[tuple[Curve, list[int], float, bool]] = field(init=False)
    _lines: dict[int, _Line | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        trials = [(curve, sorted(curve), self.sign * y) for curve, y in zip(self.curves, self.y, strict=True)]
        self._all = trials
        self._known = [(*trial, False) for trial in trials if math.isfinite(trial[2])]
        pruned = sorted(
            (trial for trial in trials if math.isnan(trial[2]) and trial[1]), key=lambda trial: -trial[1][-1]
        )
        for step, group in itertools.groupby(pruned, key=lambda trial: trial[1][-1]):
            self._lines[step] = self._line(step)
            self._known += [(curve, steps, self.sign * self(curve), True) for curve, steps, _ in list(group)]

    def __call__(self, curve: Curve) -> float:
        """Estimated final value of a trial that was pruned after the last step of `curve`; NaN if there is none."""
        step = max(curve, default=None)
        if step is None or math.isnan(curve[step]):
            return math.nan
        if step not in self._lines:
            self._lines[step] = self._line(step)
        line = self._lines[step]
        return math.nan if line is None else self.sign * line(self.sign * curve[step])

    def _line(self, step: int) -> _Line | None:
        """The regression at a step, from complete trials and those that were pruned later; None without a pair."""
        pairs = []
        for curve, steps, final, is_pruned in self._known:
            if is_pruned and steps[-1] <= step:
                continue
            value = self._value(curve, steps, step)
            if math.isfinite(value) and math.isfinite(final):
                pairs.append((value, final))
        if not pairs:
            return None
        at_step = (self._value(curve, steps, step) for curve, steps, _ in self._all if steps and steps[-1] >= step)
        reached = [value for value in at_step if math.isfinite(value)]
        v, y = np.array(pairs).T
        return _Line.fitted(v, y, np.array(reached))

    def _value(self, curve: Curve, steps: list[int], step: int) -> float:
        """Intermediate value at a step, or at the last one before it; larger is better, NaN if there is none."""
        last = bisect.bisect_right(steps, step) - 1
        return self.sign * curve[steps[last]] if last >= 0 else math.nan
