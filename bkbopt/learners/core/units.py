"""The units in which a learner gets rows and targets: computed from the first rows of a stream, then fixed.

| symbol   | shape  | units     | meaning                                                                       |
| -------- | ------ | --------- | ----------------------------------------------------------------------------- |
| X, y     | (n, d) | as given  | rows and, for a regression, targets                                           |
| c, s     | (d,)   | as X      | centre and unit of each column at the last mark, see below                    |
| Z        | (n, d) | -         | (X - c) / s                                                                   |
| c_y, s_y | -      | as y      | mean and standard deviation of targets; the learner gets (y - c_y) / s_y      |
| l        | -      | as Z      | lengthscale: the root of the sum of the variances of the columns of Z, times  |
|          |        |           | the root of a half for labels                                                 |

The marks are 1, 2, 4, ..., 128 rows. At a mark these numbers become those of all rows so far; the learner begins anew
and learns these rows again, in the new units. After the last mark the units are fixed: later drift is measured in the
units of the first rows. The units depend only on the order of the rows, not on how they are divided into calls. After
128 rows the learner equals, bit for bit, the one without units on the stream (X - c) / s, with all its guarantees.
(With running means, support points would be in different units.)

The centre is the mean and the unit the standard deviation. In a column that mostly has one value, such as a flag or a
count, the unit is the root mean square distance of the other values from it, so that a rare value is not far from all
rows. One value in 64 that is so far away that it dominates the standard deviation does not count for either.

If s is 0, since a column has been constant, the first value that differs sets the unit. All rows learnt before have a
zero there, so they need not be learnt again. The same holds for targets, since a learner of zeros predicts zero.
"""

import math
from typing import Any

import numpy as np

from bkbopt._support.state_forms import Floats, Form, Maybe, Number, refused
from bkbopt.learners.numerics.losses import Array

__all__ = ["FIRST_ROWS", "Units"]

#: The last mark.
FIRST_ROWS = 128
#: A few values dominate a standard deviation if it is this many times that of the others.
FAR = 30.0
#: Squares of numbers up to this size, and sums of them, are finite.
_FARTHEST = 1e150


class Units:
    """See the module's table.

    Args:
        d: number of columns.
        standardise: whether c and s are those of the rows; if not, 0 and 1.
        targets: whether targets are standardised as well.
        width: factor from the root of the sum of variances to the lengthscale.
    """

    def __init__(self, d: int, *, standardise: bool, targets: bool, width: float = 1.0) -> None:
        self.standardise, self.targets = standardise, standardise and targets
        self.width = width
        self.c, self.s, self.c_y, self.s_y, self.lengthscale = np.zeros(d), np.ones(d), 0.0, 1.0, 1.0
        self._X: Array | None = np.zeros((0, d))
        self._y = np.zeros(0)

    @property
    def are_fixed(self) -> bool:
        """Whether the last mark is passed."""
        return self._X is None

    def valid_until(self, start: int, n: int) -> int:
        """The end of the rows, from row `start` on and at most `n`, for which the units hold."""
        if self._X is None:
            return n
        next_mark = 1 << len(self._X).bit_length()
        return min(n, start + next_mark - len(self._X))

    def store(self, X: Array, y: Array) -> tuple[Array, Array] | None:
        """Store rows that were learnt; at a mark return all rows so far, which must be learnt again in new units."""
        if self._X is None:
            return None
        A, b = np.concatenate([self._X, X]), np.concatenate([self._y, y])
        n = len(A)
        self._X, self._y = (A, b) if n < FIRST_ROWS else (None, np.zeros(0))
        if n & (n - 1):  # no power of two
            return None
        c, s, sd = _statistics(A)
        if self.standardise:
            self.c, self.s = c, s
            sd = sd / np.where(s > 0.0, s, 1.0)
        if self.targets:
            centre, _, spread = _statistics(b[:, None])
            self.c_y, self.s_y = float(centre[0]), float(spread[0])
        norm = math.hypot(*sd.tolist())  # without overflow of the squares
        self.lengthscale = self.width * min(norm, _FARTHEST) or 1.0
        return A, b

    def scale_constant_columns(self, X: Array, y: Array) -> None:
        """Set the units of columns that were constant, and of the first targets, from rows that will be learnt next."""
        is_first = self._X is not None and not len(self._X)
        with np.errstate(over="ignore"):
            for j in np.flatnonzero(self.s == 0.0) if self.standardise else ():
                self.s[j] = _first(np.abs(X[:, j] - self.c[j]))
            if self.targets and (is_first or self.s_y == 0.0):
                self.s_y = _first(np.abs(y - self.c_y))

    def scaled_rows(self, X: Array) -> Array:
        """Z `(n, d)` of the rows `X (n, d)`."""
        if not self.standardise:
            return X
        known = self.s > 0.0
        with np.errstate(over="ignore"):
            Z = np.clip((X - self.c) / np.where(known, self.s, 1.0), -_FARTHEST, _FARTHEST)
        if not known.all():
            # As if it were the first value that differs.
            Z[:, ~known] = np.sign(Z[:, ~known])
        return Z

    def original(self, Z: Array) -> Array:
        """The rows `(n, d)` as they were given, up to rounding."""
        return Z * self.s + self.c if self.standardise else Z

    def scaled_targets(self, y: Array) -> Array:
        """Targets `(n,)` in the learner's units."""
        with np.errstate(over="ignore"):
            return (y - self.c_y) * (1.0 / (self.s_y or 1.0)) if self.targets else y

    def unscaled_targets(self, p: Array) -> Array:
        """Predictions `(n,)` in units of the targets."""
        return p * self.slope + self.c_y if self.targets else p

    @property
    def slope(self) -> float:
        """The size of one of the learner's units in units of the targets."""
        return self.s_y if self.targets else 1.0

    def state_dict(self) -> dict[str, object]:
        """For a state file."""
        first = None if self._X is None else {"X": self._X, "y": self._y}
        columns = {"c": self.c.copy(), "s": self.s.copy(), "lengthscale": self.lengthscale}
        return {**columns, "c_y": self.c_y, "s_y": self.s_y, "first": first}

    @staticmethod
    def form() -> Form:
        """The form of `state_dict`."""
        first = Form({"X": Floats(("first", "d")), "y": Floats(("first",))}, {"first": FIRST_ROWS - 1})
        columns = {"c": Floats(("d",)), "s": Floats(("d",), 0.0), "lengthscale": Number(np.finfo(float).tiny)}
        return Form({**columns, "c_y": Number(), "s_y": Number(0.0), "first": Maybe(first)})

    def load_state_dict(self, state: dict[str, Any], rounds: int, codes: int | None) -> None:
        """The inverse of `state_dict` after `rounds` rows; `codes` is the number of classes.

        Raises:
            StateFileError: not the first rows, or targets that are no classes.
        """
        first = state.pop("first")
        vars(self).update(state)
        self._X, self._y = (None, np.zeros(0)) if first is None else (first["X"], first["y"])
        if (rounds < FIRST_ROWS) != (first is not None) or len(self._y) != (rounds if first else 0):
            raise refused("the first rows", f"those of {rounds} rows", len(self._y))
        if codes is not None and not np.isin(self._y, np.arange(codes)).all():
            raise refused("the classes of the first rows", f"whole numbers below {codes}", "others")


def _statistics(A: Array) -> tuple[Array, Array, Array]:
    """Means, units and standard deviations of the columns; the latter two are 0 if all values are equal."""
    # Avoids overflow of squares of large numbers, and of sums of many.
    size = np.maximum(np.abs(A).max(0), np.finfo(float).tiny)
    B = _near(A / size)
    c, sd = B.mean(0), B.std(0)
    sd[(A[0] == A).all(0)] = 0.0
    common = np.median(B, axis=0)  # if more than half of the values are equal it is one of them
    others = np.count_nonzero(common != B, axis=0)
    distance = np.sqrt(((B - common) ** 2).sum(0) / np.maximum(others, 1))
    s = np.where(2 * others < len(B), distance, sd)
    return np.where(sd > 0.0, c * size, A[0]), s * size, sd * size


def _near(B: Array) -> Array:
    """The columns, with the farthest value of 64 replaced by the nearest other one where it dominates the spread."""
    if len(B) < 8:
        return B
    order = np.argsort(np.abs(B - np.median(B, axis=0)), axis=0)
    rest = np.take_along_axis(B, order[: -math.ceil(len(B) / 64)], axis=0)
    spread = rest.std(0)
    dominates = (spread > 0.0) & (FAR * spread < B.std(0))
    return np.where(dominates, np.clip(B, rest.min(0), rest.max(0)), B)


def _first(differences: Array) -> float:
    """The first number that is not zero, as a finite one, or zero."""
    return min(float(differences[np.argmax(differences > 0.0)]), float(np.finfo(float).max))
