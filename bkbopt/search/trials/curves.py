"""Estimates of the final values of pruned trials, from the intermediate values of all trials.

| symbol | shape  | units  | meaning                                                                        |
| ------ | ------ | ------ | ------------------------------------------------------------------------------ |
| v      | (n,)   | user's | intermediate values at a step, or at the last one before it, of complete       |
|        |        |        | trials and of those that were pruned later                                     |
| y      | (n,)   | user's | their final values; estimates for those that were pruned                       |

The estimate for a trial that was pruned at a step is the isotonic regression of y on v at that step: intermediate and
final values have the same direction, but need not have the same scale. Beyond the poorest v it continues with the slope
of the linear regression. Beyond the best v it is constant, since a pruned trial is no evidence for a new best value.
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

#: Number of such trials from which on there is an estimate.
FEWEST = 4


@dataclass(frozen=True)
class _Line:
    """A regression of final on intermediate values; larger is better.

    Attributes:
        v: intermediate values, ascending.
        y: their regression, ascending.
        slope: slope below `v[0]`.
    """

    v: Array
    y: Array
    slope: float

    @classmethod
    def fitted(cls, v: Array, y: Array) -> "_Line":
        from scipy.optimize import isotonic_regression  # late, since importing it takes time

        # Equal v with falling y are pooled, so that they get their mean.
        order = np.lexsort((-y, v))
        u, z = _normalised(v), _normalised(y)
        slope = float((u[0] @ z[0]) / (u[0] @ u[0])) * (z[1] / u[1]) if u[1] and z[1] else 0.0
        return cls(v[order], isotonic_regression(y[order]).x, slope if 0.0 < slope < math.inf else 0.0)

    def __call__(self, v: float) -> float:
        worst, final = float(self.v[0]), float(self.y[0])
        if -math.inf < v < worst:
            beyond = final - self.slope * (worst - v)
            return beyond if math.isfinite(beyond) else final
        # Computed from quarters, since differences of the largest doubles overflow; so may the slope of a steep step.
        with np.errstate(over="ignore", invalid="ignore"):
            found = 4.0 * float(np.interp(v / 4.0, self.v / 4.0, self.y / 4.0))
        return min(float(self.y[-1]), max(final, found))


def _normalised(v: Array) -> tuple[Array, float]:
    """Deviations from the mean `(n,)`, of size one, and their unit; zero if they are equal."""
    deviations = v / 4.0 - (v / 4.0).mean()
    unit = float(np.abs(deviations).max())
    return (deviations / unit if unit else deviations), unit


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
    _known: list[tuple[Curve, list[int], float, bool]] = field(init=False)
    _lines: dict[int, _Line | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        trials = [(curve, sorted(curve), self.sign * y) for curve, y in zip(self.curves, self.y, strict=True)]
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
        """The regression at a step, from complete trials and those that were pruned later."""
        pairs = []
        for curve, steps, final, is_pruned in self._known:
            if is_pruned and steps[-1] <= step:
                continue
            last = bisect.bisect_right(steps, step) - 1
            if last >= 0 and math.isfinite(curve[steps[last]]) and math.isfinite(final):
                pairs.append((self.sign * curve[steps[last]], final))
        return _Line.fitted(*np.array(pairs).T) if len(pairs) >= FEWEST else None
