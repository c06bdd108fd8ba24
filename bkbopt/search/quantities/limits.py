"""The limit of a constraint: the value on the standardised scale above which the constraint holds.

It is the place of zero. If several values are zero, as of flags, counts and max(0, violation), it is that of half of
the smallest value above: posterior means of zeros are on either side of zero. If all values are zero, it is one unit
beyond.
"""

from dataclasses import dataclass

from torch import Tensor

from bkbopt.search.quantities.scaling import Scaler

__all__ = ["Limit"]

#: With this number of values that are zero the limit is moved.
ZEROS = 3


@dataclass(frozen=True)
class Limit:
    """The limit of a constraint with some values; see the module's text.

    Attributes:
        above_zero: the smallest value above zero if several values are zero; otherwise zero. User's units.
        only_zeros: whether all values are zero, and there are several.
    """

    above_zero: float = 0.0
    only_zeros: bool = False

    @classmethod
    def of(cls, y: Tensor) -> "Limit":
        """The limit of a constraint with the values `y (n,)`, user's units."""
        above, n_zeros = y[y > 0.0], int((y == 0.0).sum())
        return cls(float(above.min()) if len(above) and n_zeros >= ZEROS else 0.0, n_zeros == len(y) >= ZEROS)

    def standardised(self, scaler: Scaler) -> float:
        """The limit on the standardised scale."""
        return scaler.place(0.5 * scaler.bounded(self.above_zero)) - (1.0 if self.only_zeros else 0.0)
