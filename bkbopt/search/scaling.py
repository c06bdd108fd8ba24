"""The only place where values are scaled: robust standardisation of y, for maximisation, bent where that pays.

| symbol | units         | meaning                                                                        |
| ------ | ------------- | ------------------------------------------------------------------------------ |
| y      | user's        | values as told                                                                 |
| s      | user's        | sign y, larger is better                                                       |
| z      | -             | (s - origin) / unit, clamped to the bounds `floor` and `ceiling`               |
| g      | -             | z, or where values are bent: top - bend log(1 + (top - z) / bend) below `top`  |
| v      | -             | (g - center) / scale, never further from zero than `most`                      |
| origin | user's        | zero, or one of the values where they lie so close that s / unit would lose them |
| unit   | user's        | largest |s - origin| above the floor: no overflow at 1e300, 1e-300              |
| bend   | -             | how far the best quarter of the values spreads; infinite where they are not bent |
| top    | -             | the best of the values                                                         |

Bent values have the slope one at the best value and above it, and that of a logarithm far below: what is so many times
worse is so much further down. Noise that grows with the distance from the best is then alike everywhere, as are slopes:
losses and errors are often so. Whether values are bent is decided by evidence (`bending.py`).

What cannot be a double in the user's units, a mean or a width beyond the largest, is the largest double.
"""

import math
import sys
from dataclasses import dataclass, replace

import torch
from torch import Tensor

__all__ = ["Scaler", "usable"]

#: Values this many robust standard deviations below the median are pulled up to there: how bad a bad point is
#: carries no information about where the good ones are, and would stretch the kernel's scale.
WINSOR = 4.0
#: The first values told, which come from all over the space; later ones crowd around the best.
FIRST = 20
#: Values whose spread is this part of their size are taken from one of them before anything else; the difference of
#: doubles so close is exact. What is less close loses at most this factor of its digits.
NARROW = 2.0**-20
#: What is this many times as far from the median as the quartile on the other side counts as little worse than the
#: rest, by so many times the distance of that quartile: beside 1e300 all others would be one number. Of objectives so
#: far that winsorising does not cope; of limits where the others would be less apart than the least noise of a fit.
FAR, BEYOND = 2.0**20, 8.0
FAR_OF_LIMITS, BEYOND_OF_LIMITS = 2.0**10, 2.0
#: Values of which a quartile says something.
FEWEST = 8
#: Largest standardised value. One that comes after those that were standardised may be anything.
MOST = 1e6
#: Smallest and largest noise variance on the surrogate's scale. Below, the kernel matrix is singular in float64; with
#: a noise above, nothing can be learnt, and a weight lam / variance must not become zero.
NOISE_BOUNDS = (1e-12, 1e12)
LARGEST = sys.float_info.max
INFINITE = float("inf")
#: Exponent from which on a value that is unbent is the largest double.
MOST_BENT = 700.0


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
    bend: float = INFINITE
    top: float = 0.0

    @classmethod
    def identity(cls, sign: float) -> "Scaler":
        """Only the direction: what a fixed kernel and a known noise ask for."""
        return cls(sign)

    @classmethod
    def from_values(cls, y: Tensor, sign: float, *, winsorised: bool = True, with_zero: bool = False) -> "Scaler":
        """Robust standardisation of the values `y (n,)` in the user's units.

        Args:
            y: the values.
            sign: +1 if larger is better, -1 if smaller is.
            winsorised: whether very poor values are pulled up.
            with_zero: whether it matters on which side of zero a value is, as with a constraint.
        """
        s = sign * y
        low, high = _bounds(s, with_zero)
        s = s.clamp(low, high)
        origin = _origin(s)
        unit = float((s - origin).abs().max()) or 1.0
        z = (s - origin) / unit
        # Of the two floors the lower: once most values lie near the best one, their spread alone would cut off
        # everything that says where the bad regions are.
        floor = min(_floor(z), _floor(z[:FIRST])) if winsorised else -INFINITE
        z = z.clamp_min(floor)
        # One terrible value must not set the unit, in which the others would be too small to square.
        top = float(z.abs().max()) or 1.0
        unit, floor, z = unit * top, floor / top, z / top
        scale = float(z.std(correction=0))
        # A constant y has no scale of its own: anything finite will do.
        center, scale = float(z.mean()), scale or 1.0
        floor, ceiling = max(floor, (low - origin) / unit), (high - origin) / unit
        return cls(sign, unit, center, scale, floor, ceiling, origin, MOST)

    def bent(self, y: Tensor) -> "Scaler":
        """The scaler that also bends its values `y (n,)`; itself where a quarter of them are the best one."""
        z = self._clamped(y)
        top = float(z.max())
        bend = top - float(torch.quantile(z, 0.75))
        if bend <= 0.0:
            return self
        bent = replace(self, bend=bend, top=top)
        g = bent._bent(z)
        return replace(bent, center=float(g.mean()), scale=float(g.std(correction=0)))

    def log_slopes(self, v: Tensor) -> Tensor:
        """Logarithms `(n,)` of dv / dz at standardised values `v (n,)`: what the density of y has beside that of v."""
        g = v * self.scale + self.center
        return (g - self.top).clamp_max(0.0) / self.bend - math.log(self.scale)

    def shifted(self, v: float) -> "Scaler":
        """The scaler whose zero is the present one's `v`: for a constant mean other than that of the sample."""
        return replace(self, center=self.center + v * self.scale)

    def transform(self, y: Tensor) -> Tensor:
        """The surrogate's values of `y (n,)`."""
        return ((self._bent(self._clamped(y)) - self.center) / self.scale).clamp(-self.most, self.most)

    def _clamped(self, y: Tensor) -> Tensor:
        """z, see the table."""
        return ((self.sign * y - self.origin) / self.unit).clamp(self.floor, self.ceiling)

    def _bent(self, z: Tensor) -> Tensor:
        """g, see the table."""
        if self.bend == INFINITE:
            return z
        below = (self.top - z).clamp_min(0.0)
        return z + below - self.bend * torch.log1p(below / self.bend)

    def _unbent(self, g: Tensor) -> Tensor:
        """z of g."""
        if self.bend == INFINITE:
            return g
        below = (self.top - g).clamp_min(0.0)
        return g + below - self.bend * torch.expm1((below / self.bend).clamp_max(MOST_BENT))

    def place(self, y: float) -> float:
        """Where `y`, which was not observed, lies on the surrogate's scale: the bounds of values do not hold for it."""
        unbounded = replace(self, floor=-INFINITE, ceiling=INFINITE)
        return float(unbounded.transform(torch.tensor([y], dtype=torch.float64))[0])

    def mean(self, v: float) -> float:
        """A posterior mean in the user's units; of bent values the median."""
        return float(self.means(torch.tensor([v], dtype=torch.float64))[0])

    def means(self, v: Tensor) -> Tensor:
        """Posterior means `(n,)` in the user's units; of bent values the medians."""
        away = self._unbent(v * self.scale + self.center) * self.unit
        return (self.sign * (away + self.origin)).clamp(-LARGEST, LARGEST)

    def widths(self, sd: Tensor, v: Tensor) -> Tensor:
        """Standard deviations `(n,)` at the standardised values `v (n,)` in the user's units, to first order."""
        slope = torch.ones_like(sd)
        if self.bend < INFINITE:
            below = (self.top - (v * self.scale + self.center)).clamp_min(0.0)
            slope = (below / self.bend).clamp_max(MOST_BENT).exp()
        return (sd * self.scale * slope * self.unit).clamp_max(LARGEST)

    def rises(self, v: Tensor, gap: Tensor) -> Tensor:
        """What `gap (n,)` above the standardised values `v (n,)` is in the user's units, (n,)."""
        if self.bend == INFINITE:
            return self.widths(gap, v)
        low, high = (self._unbent(end * self.scale + self.center) for end in (v, v + gap))
        return ((high - low) * self.unit).clamp_max(LARGEST)

    def rise(self, v: float, gap: float) -> float:
        """The same of one value."""
        ends = torch.tensor([v, gap], dtype=torch.float64)
        return float(self.rises(ends[:1], ends[1:])[0])

    def noise(self, sd: float) -> float:
        """The variance, on the surrogate's scale, of noise whose standard deviation `sd` is in the user's units."""
        least, most = NOISE_BOUNDS
        return float(max(min(sd / self.unit / self.scale, most**0.5) ** 2, least))

    def noises(self, sd: Tensor) -> Tensor:
        """The same of deviations `(n,)`; NaN stays."""
        return (sd / self.unit / self.scale).square().clamp(*NOISE_BOUNDS)


def usable(y: Tensor, poor: Tensor, sign: float, first: Tensor) -> Tensor:
    """Finite values `(n,)`; what stands in for others depends on the values up to the mark, `first`, only.

    A pruned trial counts as its last intermediate value or the poorer quartile of the complete ones, whichever is
    worse: it was stopped for being behind, and its early values are not on the scale of final ones.
    """
    if bool(torch.isfinite(y).all()):
        return y
    finite = first[torch.isfinite(first)]
    low, high = float(finite.min()), float(finite.max())
    # Of quarters, since the difference of the largest doubles is none.
    quartile = 4.0 * sign * float(torch.quantile(sign * finite / 4.0, 0.25))
    values = torch.where(torch.isinf(y), y.clamp(low, high), y)
    behind = torch.where(torch.isfinite(poor), poor, torch.full_like(poor, quartile))
    behind = sign * torch.minimum(sign * behind, torch.full_like(poor, sign * quartile))
    return torch.where(torch.isnan(y), behind, values)


def _floor(z: Tensor) -> float:
    q1, median, q3 = torch.quantile(z, torch.tensor([0.25, 0.5, 0.75], dtype=z.dtype)).tolist()
    robust = (q3 - q1) / 1.349
    return float(median - WINSOR * robust) if robust > 0 else -INFINITE


def _origin(s: Tensor) -> float:
    """What is subtracted first, without loss."""
    low, high = float(s.min()), float(s.max())
    size = max(abs(low), abs(high))
    # Halves, since the difference of the largest doubles is none.
    narrow = 0.0 < high / 2.0 - low / 2.0 <= NARROW * size / 2.0
    return float(s.median()) if narrow else 0.0


def _bounds(s: Tensor, with_zero: bool) -> tuple[float, float]:
    """Bounds of the values `s (n,)` that are a little beyond those that are not `FAR`; infinite where none is.

    The spread of the far ones' own side would be theirs if they were many, so that of the other side counts. Values
    that are too good stay as they are, but for those of a limit: the best value is what is looked for.
    """
    low = _lower_bound(s, with_zero)
    high = -_lower_bound(-s, with_zero) if with_zero else INFINITE
    return low, high


def _lower_bound(s: Tensor, with_zero: bool) -> float:
    quarter = s / 4.0  # differences of the largest doubles are no doubles
    # Of all values and of the first, as with the floor.
    upper = [_upper_half(part) for part in (quarter, quarter[:FIRST])]
    spread = max(spread for _, spread in upper)
    far_off, beyond = (FAR_OF_LIMITS, BEYOND_OF_LIMITS) if with_zero else (FAR, BEYOND)
    far = quarter < min(median for median, _ in upper) - far_off * spread
    if len(s) < FEWEST or spread <= 0.0 or not bool(far.any()):
        return -INFINITE
    lowest, away = float(s[~far].min()), 4.0 * beyond * spread
    if not with_zero:
        return lowest - away
    # On their own side of zero.
    return min(lowest, 0.0) - away if float(s.min()) < 0.0 else max(lowest - away, lowest / 2.0)


def _upper_half(s: Tensor) -> tuple[float, float]:
    """The median, and how far the upper quartile, or else the largest value, is from it."""
    ordered = s.sort().values
    median, q3, top = (float(ordered[int(part * (len(s) - 1))]) for part in (0.5, 0.75, 1.0))
    return median, (q3 - median) or top - median
