"""Scaling of values: direction, robust standardisation and, if useful, a logarithm (output warping).

| symbol | units         | meaning                                                                         |
| ------ | ------------- | ------------------------------------------------------------------------------- |
| y      | user's        | values as told                                                                  |
| s      | user's        | sign y, larger is better                                                        |
| z      | -             | (s - origin) / unit, clamped to the bounds `floor` and `ceiling`                |
| g      | -             | z; for warped values, below `top`: top - h log(1 + (top - z) / h)               |
| v      | -             | (g - center) / scale, never further from zero than `most`                       |
| origin | user's        | zero, or one of the values if they are so close that s / unit would lose digits |
| unit   | user's        | largest |s - origin| above the floor; avoids overflow at 1e300, 1e-300          |
| h      | -             | `warp_range`: range of the best quarter; infinite if values are not warped      |
| top    | -             | the best of the values                                                          |

No other module scales values. The map of warped values has slope one at the best value and above, and is logarithmic
far below. Noise and slopes that grow with the distance from the best value, as for many losses and errors, are then
similar everywhere. Whether values are warped is decided by evidence (`output_warping.py`).

Means and widths in the user's units beyond the largest double are set to the largest double.
"""

import math
import sys
from dataclasses import dataclass, replace

import torch
from torch import Tensor

__all__ = ["NOISELESS", "Scaler", "is_informative", "usable"]

#: Values more than this many robust standard deviations below the median are clipped there (winsorised): the size of
#: very poor values is no information on the good region, and would increase the kernel's scale.
WINSOR = 4.0
#: Number of first values, which come from the whole space; later ones are dense near the best.
FIRST = 20
#: If the spread of the values is below this fraction of their size, one of them is subtracted first, which is exact for
#: doubles that are so close. With a larger spread at most this factor of precision is lost.
NARROW = 2.0**-20
#: Far values, whose distance from the median is FAR times that of the quartile on the other side, are clipped at BEYOND
#: times the distance of that quartile from the other values. Otherwise one value of 1e300 would make all others equal.
#: For objectives the factor is one with which winsorising alone fails; for limits one with which the differences of the
#: other values would be below the smallest noise of a fit.
FAR, BEYOND = 2.0**20, 8.0
FAR_OF_LIMITS, BEYOND_OF_LIMITS = 2.0**10, 2.0
#: Values of a limit that are told after a fit are at most this many ranges of the fitted ones away from these and from
#: zero. Otherwise the smooth function through a value far away oscillates, and is on the wrong side of zero elsewhere.
LATER_OF_LIMITS = 1.0
#: Smallest number of values with a meaningful quartile.
FEWEST = 8
#: Largest standardised value; values after the fit may be arbitrarily large.
MOST = 1e6
#: Smallest and largest noise variance on the surrogate's scale. With less noise the kernel matrix is singular in
#: float64; with more nothing can be learnt, and a weight lam / variance must not become zero.
NOISE_BOUNDS = (1e-12, 1e12)
#: Fitted noise variance, standardised units squared, up to which values count as measured without noise. Without noise
#: the fitted one is between its lower limit, 1e-8, and some 1e-6.
NOISELESS = 1e-5
LARGEST = sys.float_info.max
INFINITE = float("inf")
#: Largest exponent in the inverse of the warping, to avoid overflow.
MOST_WARPED = 700.0
#: Values whose known noise is so many times the range of the more precise ones do not count in the scaling, if there
#: are so many more precise ones. The range of fewer is too uncertain.
DROWNED, PRECISE = 3.0, 8


@dataclass(frozen=True)
class Scaler:
    """An increasing map from the user's values to the surrogate's, larger is better, with bounds; see the table."""

    sign: float
    unit: float = 1.0
    center: float = 0.0
    scale: float = 1.0
    floor: float = -INFINITE
    ceiling: float = INFINITE
    origin: float = 0.0
    most: float = INFINITE
    warp_range: float = INFINITE
    top: float = 0.0

    @classmethod
    def identity(cls, sign: float) -> "Scaler":
        """The scaler that only changes the sign, for a given kernel and noise."""
        return cls(sign)

    @classmethod
    def from_values(cls, y: Tensor, sign: float, *, winsorised: bool = True, with_zero: bool = False) -> "Scaler":
        """Robust standardisation of the values `y (n,)` in the user's units.

        Args:
            y: the values.
            sign: +1 if larger is better, -1 if smaller is better.
            winsorised: whether very poor values are clipped.
            with_zero: whether the side of zero of a value matters, as for a constraint.
        """
        s = sign * y
        low, high = _bounds(s, with_zero)
        s = s.clamp(low, high)
        origin = _origin(s)
        unit = float((s - origin).abs().max()) or 1.0
        z = (s - origin) / unit
        # The lower one of two floors: if most values are near the best one, the floor from all values would clip the
        # values that show where the bad regions are.
        floor = min(_floor(z), _floor(z[:FIRST])) if winsorised else -INFINITE
        z = z.clamp_min(floor)
        # The unit is taken from clipped values; in the unit of a terrible value the squares of others would underflow.
        top = float(z.abs().max()) or 1.0
        unit, floor, z = unit * top, floor / top, z / top
        scale = float(z.std(correction=0))
        # For a constant y any finite scale will do.
        center, scale = float(z.mean()), scale or 1.0
        floor, ceiling = max(floor, (low - origin) / unit), (high - origin) / unit
        if with_zero:
            ends = torch.cat([z, z.new_tensor([-origin / unit])])
            lowest, highest = float(ends.min()), float(ends.max())
            if away := LATER_OF_LIMITS * (highest - lowest):
                floor, ceiling = max(floor, lowest - away), min(ceiling, highest + away)
        return cls(sign, unit, center, scale, floor, ceiling, origin, MOST)

    def warped(self, y: Tensor) -> "Scaler":
        """The scaler that also warps the values `y (n,)`; itself if a quarter of them equal the best one."""
        z = self._clamped(y)
        top = float(z.max())
        warp_range = top - float(torch.quantile(z, 0.75))
        if warp_range <= 0.0:
            return self
        warped = replace(self, warp_range=warp_range, top=top)
        g = warped._warped(z)
        return replace(warped, center=float(g.mean()), scale=float(g.std(correction=0)))

    def log_slopes(self, v: Tensor) -> Tensor:
        """log dv / dz `(n,)` at standardised values `v (n,)`: log density of y minus that of v, up to a constant."""
        g = v * self.scale + self.center
        return (g - self.top).clamp_max(0.0) / self.warp_range - math.log(self.scale)

    def shifted(self, v: float) -> "Scaler":
        """The scaler whose zero is at `v` of this one, for a constant mean other than the sample mean."""
        return replace(self, center=self.center + v * self.scale)

    def transform(self, y: Tensor) -> Tensor:
        """The standardised values of `y (n,)`."""
        return ((self._warped(self._clamped(y)) - self.center) / self.scale).clamp(-self.most, self.most)

    def _clamped(self, y: Tensor) -> Tensor:
        """z, see the table."""
        return ((self.sign * y - self.origin) / self.unit).clamp(self.floor, self.ceiling)

    def _warped(self, z: Tensor) -> Tensor:
        """g, see the table."""
        if self.warp_range == INFINITE:
            return z
        below = (self.top - z).clamp_min(0.0)
        return z + below - self.warp_range * torch.log1p(below / self.warp_range)

    def _unwarped(self, g: Tensor) -> Tensor:
        """z of g."""
        if self.warp_range == INFINITE:
            return g
        below = (self.top - g).clamp_min(0.0)
        return g + below - self.warp_range * torch.expm1((below / self.warp_range).clamp_max(MOST_WARPED))

    def bounded(self, y: float) -> float:
        """`y`, or the value at the bound `floor` or `ceiling` that it is beyond."""
        z = (self.sign * y - self.origin) / self.unit
        bound = min(max(z, self.floor), self.ceiling)
        return y if bound == z else self.sign * (bound * self.unit + self.origin)

    def place(self, y: float) -> float:
        """The standardised value of `y`, which is not an observation, without the bounds `floor` and `ceiling`."""
        unbounded = replace(self, floor=-INFINITE, ceiling=INFINITE)
        return float(unbounded.transform(torch.tensor([y], dtype=torch.float64))[0])

    def means(self, v: Tensor) -> Tensor:
        """Posterior means `(n,)` in the user's units; for warped values the medians."""
        away = self._unwarped(v * self.scale + self.center) * self.unit
        return (self.sign * (away + self.origin)).clamp(-LARGEST, LARGEST) + 0.0  # no zero with a minus sign

    def widths(self, sd: Tensor, v: Tensor) -> Tensor:
        """Standard deviations `(n,)` at the standardised values `v (n,)` in the user's units, to first order."""
        slope = torch.ones_like(sd)
        if self.warp_range < INFINITE:
            below = (self.top - (v * self.scale + self.center)).clamp_min(0.0)
            slope = (below / self.warp_range).clamp_max(MOST_WARPED).exp()
        return (sd * self.scale * slope * self.unit).clamp_max(LARGEST)

    def rises(self, v: Tensor, gap: Tensor) -> Tensor:
        """The differences from `v (n,)` to `v + gap (n,)`, standardised, in the user's units, (n,)."""
        if self.warp_range == INFINITE:
            return self.widths(gap, v)
        low, high = (self._unwarped(end * self.scale + self.center) for end in (v, v + gap))
        return ((high - low) * self.unit).clamp_max(LARGEST)

    def rise(self, v: float, gap: float) -> float:
        """`rises` for one value."""
        ends = torch.tensor([v, gap], dtype=torch.float64)
        return float(self.rises(ends[:1], ends[1:])[0])

    def noise(self, sd: float) -> float:
        """The noise variance on the surrogate's scale for a standard deviation `sd` in the user's units."""
        least, most = NOISE_BOUNDS
        return float(max(min(sd / self.unit / self.scale, most**0.5) ** 2, least))

    def noises(self, sd: Tensor) -> Tensor:
        """`noise` for standard deviations `(n,)`; NaN stays NaN."""
        return (sd / self.unit / self.scale).square().clamp(*NOISE_BOUNDS)


def usable(y: Tensor, estimates: Tensor, sign: float, first: Tensor) -> Tensor:
    """Values `(n,)` with finite substitutes for infinite ones and for pruned trials.

    The substitutes depend only on `first`, the values up to the mark, and on `estimates (n,)` of the final values of
    pruned trials. Without an estimate a pruned trial gets the worse quartile of the complete trials.
    """
    if bool(torch.isfinite(y).all()):
        return y
    finite = first[torch.isfinite(first)]
    low, high = float(finite.min()), float(finite.max())
    # Computed from quarters, since differences of the largest doubles overflow.
    quartile = 4.0 * sign * float(torch.quantile(sign * finite / 4.0, 0.25))
    values = torch.where(torch.isinf(y), y.clamp(low, high), y)
    return torch.where(torch.isnan(y), torch.nan_to_num(estimates, nan=quartile), values)


def is_informative(y: Tensor, std: Tensor) -> Tensor:
    """Which of the values `y (n,)` are a measure of the scale of all, (n,); `std` are known deviations of their noise.

    Not those whose noise is `DROWNED` times the range of the more precise ones, if these are `PRECISE` or more: a value
    of any size may have been told with a noise that takes all weight from it.
    """
    everything = torch.ones_like(y, dtype=torch.bool)
    noise = std.nan_to_num(nan=0.0)
    sd, order = noise.sort()
    n_better = torch.searchsorted(sd, sd)
    halves = y[order] / 2.0  # the range of the largest doubles overflows
    ranges = halves.cummax(0).values - halves.cummin(0).values
    drowned = (n_better >= PRECISE) & (sd / 2.0 > DROWNED * ranges[(n_better - 1).clamp_min(0)])
    if not bool(drowned.any()):
        return everything
    kept = noise < sd[drowned][0]
    return kept if y[kept].max() > y[kept].min() else everything


def _floor(z: Tensor) -> float:
    q1, median, q3 = torch.quantile(z, torch.tensor([0.25, 0.5, 0.75], dtype=z.dtype)).tolist()
    robust = (q3 - q1) / 1.349
    return float(median - WINSOR * robust) if robust > 0 else -INFINITE


def _origin(s: Tensor) -> float:
    """The value that is subtracted first, without rounding errors."""
    low, high = float(s.min()), float(s.max())
    size = max(abs(low), abs(high))
    # Computed from halves, since differences of the largest doubles overflow.
    narrow = 0.0 < high / 2.0 - low / 2.0 <= NARROW * size / 2.0
    return float(s.median()) if narrow else 0.0


def _bounds(s: Tensor, with_zero: bool) -> tuple[float, float]:
    """Bounds of the values `s (n,)`, a little beyond those that are not `FAR`; infinite if no value is far.

    Far values are detected by the spread on the other side of the median, since they may be the spread on their own
    side. There is an upper bound for limits only: the best values of an objective are never clipped.
    """
    low = _lower_bound(s, with_zero)
    high = -_lower_bound(-s, with_zero) if with_zero else INFINITE
    return low, high


def _lower_bound(s: Tensor, with_zero: bool) -> float:
    quarter = s / 4.0  # differences of the largest doubles overflow
    # Computed from all values and from the first ones, as for the floor.
    upper = [_upper_half(part) for part in (quarter, quarter[:FIRST])]
    spread = max(spread for _, spread in upper)
    far_off, beyond = (FAR_OF_LIMITS, BEYOND_OF_LIMITS) if with_zero else (FAR, BEYOND)
    far = quarter < min(median for median, _ in upper) - far_off * spread
    if len(s) < FEWEST or spread <= 0.0 or not bool(far.any()):
        return -INFINITE
    lowest, away = float(s[~far].min()), 4.0 * beyond * spread
    if not with_zero:
        return lowest - away
    # The clipped values stay on their side of zero.
    return min(lowest, 0.0) - away if float(s.min()) < 0.0 else max(lowest - away, lowest / 2.0)


def _upper_half(s: Tensor) -> tuple[float, float]:
    """The median, and its distance to the upper quartile or, if that is zero, to the largest value."""
    ordered = s.sort().values
    median, q3, top = (float(ordered[int(part * (len(s) - 1))]) for part in (0.5, 0.75, 1.0))
    return median, (q3 - median) or top - median
