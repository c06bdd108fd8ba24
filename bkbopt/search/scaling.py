"""The only place where values are scaled: robust standardisation of y, for maximisation.

| symbol | units         | meaning                                                     |
| ------ | ------------- | ----------------------------------------------------------- |
| y      | user's        | values as told                                              |
| v      | -             | (sign y / unit - center) / scale, winsorised from below     |
| unit   | user's        | largest |y| above the floor: no overflow at 1e300, 1e-300    |
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

__all__ = ["Scaler"]

#: Values this many robust standard deviations below the median are pulled up to there: how bad a bad point is
#: carries no information about where the good ones are, and would stretch the kernel's scale.
WINSOR = 4.0
#: The first values told, which come from all over the space; later ones crowd around the best.
FIRST = 20


@dataclass(frozen=True)
class Scaler:
    """An affine map from the user's values to the surrogate's, larger is better, with a floor; see the table."""

    sign: float
    unit: float = 1.0
    center: float = 0.0
    scale: float = 1.0
    floor: float = -float("inf")

    @classmethod
    def identity(cls, sign: float) -> "Scaler":
        """Only the direction: what a fixed kernel and a known noise ask for."""
        return cls(sign)

    @classmethod
    def from_values(cls, y: Tensor, sign: float, *, winsorised: bool = True) -> "Scaler":
        """Robust standardisation of the values `y (n,)` in the user's units; with a floor if `winsorised`."""
        unit = float(y.abs().max()) or 1.0
        z = sign * (y / unit)
        # Of the two floors the lower: once most values lie near the best one, their spread alone would cut off
        # everything that says where the bad regions are.
        floor = min(_floor(z), _floor(z[:FIRST])) if winsorised else -float("inf")
        z = z.clamp_min(floor)
        # One terrible value must not set the unit, in which the others would be too small to square.
        top = float(z.abs().max()) or 1.0
        unit, floor, z = unit * top, floor / top, z / top
        scale = float(z.std(correction=0))
        # A constant y has no scale of its own: anything finite will do.
        center, scale = float(z.mean()), scale if scale > 1e-12 else 1.0
        return cls(sign, unit, center, scale, floor)

    def shifted(self, v: float) -> "Scaler":
        """The scaler whose zero is the present one's `v`: for a constant mean other than that of the sample."""
        return replace(self, center=self.center + v * self.scale)

    def transform(self, y: Tensor) -> Tensor:
        """The surrogate's values of `y (n,)`."""
        return ((self.sign * (y / self.unit)).clamp_min(self.floor) - self.center) / self.scale

    def mean(self, v: float) -> float:
        """A posterior mean in the user's units."""
        return self.sign * (v * self.scale + self.center) * self.unit

    def width(self, sd: float) -> float:
        """A standard deviation, or any difference of values, in the user's units."""
        return sd * self.scale * self.unit

    def noise(self, variance: float) -> float:
        """A noise variance, given in the user's units squared, on the surrogate's scale."""
        return (variance**0.5 / self.unit / self.scale) ** 2


def _floor(z: Tensor) -> float:
    q1, median, q3 = torch.quantile(z, torch.tensor([0.25, 0.5, 0.75], dtype=z.dtype)).tolist()
    robust = (q3 - q1) / 1.349
    return float(median - WINSOR * robust) if robust > 0 else -float("inf")
