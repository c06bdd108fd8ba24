"""Columns of a table as encoded numbers: ranges scaled to [0, 1], long tails compressed, choices numbered or ranked.

| symbol  | shape  | units   | meaning                                                                  |
| ------- | ------ | ------- | ------------------------------------------------------------------------ |
| table   | (A, d) | user's  | raw values; of columns that are not numeric the codes                    |
| X       | (A, d) | encoded | numeric columns and ranks scaled to [0, 1] (or as given), and codes      |
| t       | -      | -       | (x - middle) / half, for a value x of a column with long tails           |
| p       | -      | -       | `POWER`                                                                  |

By its range, a column with a few far values would be scaled to [0, 1] such that all others are nearly alike, for every
kernel. So beyond the bulk of a column with long tails, |t| > 1, numbers are compressed:

    c(t) = sign(t) (1 + (|t|^p - 1) / p),

the transformation of Box and Cox (1964), continuous with its derivative at |t| = 1. With p = 1/16 it is nearly
1 + log |t|. Its roots are square roots, which IEEE arithmetic rounds correctly: an encoded row is the same to the last
bit on each machine and in each layout of memory, as a logarithm need not be. Points are found by these bits.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt._support.checks import check_number
from bkbopt.errors import ArgumentError
from bkbopt.spaces.values import as_python

__all__ = ["FARTHEST", "RANKED", "Columns", "Tails", "choices_after", "columns_of", "sampled_rows"]

Floats = NDArray[np.float64]

#: The largest encoded number: sums of squares of numbers up to this one are finite.
FARTHEST = 1e100
#: The letter of a column of ordered choices, whose codes are ranks.
RANKED = "r"
#: Square roots of a compressed number, and the power p that they make.
N_ROOTS = 4
POWER = 0.5**N_ROOTS
#: The bulk of a column is between these quantiles; its tails are long if its range is more than `LONG` bulks.
BULK = Fraction(1, 20), Fraction(19, 20)
LONG = 4.0
#: Rows from which the bulk of each column is computed, at most.
SAMPLE = 1 << 14


@dataclass(frozen=True)
class Tails:
    """The compression of a column with long tails; see the module's text.

    Attributes:
        middle: of the bulk, user's units.
        half: half the width of the bulk, user's units.

    Example:
        >>> import numpy as np
        >>> from bkbopt.spaces.columns import Tails
        >>> Tails(middle=1.0, half=2.0).compressed(np.array([0.0, 3.0, 2001.0]))
        array([-0.5       ,  1.        ,  9.63882442])
    """

    middle: float
    half: float

    def compressed(self, x: Floats) -> Floats:
        """c of raw values, of any shape."""
        t = (x - self.middle) / self.half
        far = root = np.maximum(np.abs(t), 1.0)
        for _ in range(N_ROOTS):
            root = np.sqrt(root)
        return np.where(far > 1.0, np.copysign(1.0 + (root - 1.0) / POWER, t), t)

    def spread(self, c: Floats) -> Floats:
        """The raw values with these c."""
        size = np.maximum(np.abs(c), 1.0)
        far = np.copysign((1.0 + (size - 1.0) * POWER) ** 2**N_ROOTS, c)
        return self.middle + self.half * np.where(size > 1.0, far, c)


@dataclass(frozen=True)
class Columns:
    """How raw columns become encoded ones.

    Attributes:
        names: of the columns.
        kinds: numpy's letter for the type of each: "i" and "u" for whole numbers, "b", "f", or "O" for choices; for
            choices with an order `RANKED`.
        low: (d,) subtracted from each column; of one with long tails, from its compressed values.
        width: (d,) by which the difference is divided.
        choices: the values of each column that is not numeric, in the order of their codes.
        tails: of each column that has long ones.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    low: Tensor
    width: Tensor
    choices: Mapping[int, tuple[Any, ...]]
    tails: Mapping[int, Tails] = field(default_factory=dict)

    @property
    def choice_names(self) -> tuple[str, ...]:
        """Names of the columns that are not numeric."""
        return tuple(self.names[j] for j in self.choices)

    @property
    def unordered(self) -> Mapping[int, tuple[Any, ...]]:
        """The choices of the columns whose codes have no order."""
        return {j: values for j, values in self.choices.items() if self.kinds[j] != RANKED}

    @cached_property
    def _ranges(self) -> list[tuple[float, float]]:
        return list(zip(self.low.tolist(), self.width.tolist(), strict=True))

    def scaled(self, table: Tensor, first: int = 0) -> Tensor:
        """The encoded rows of the raw ones `table (n, k)`, which have the columns from `first` on."""
        some = slice(first, first + table.shape[1])
        X = (table - self.low[some]) / self.width[some]
        for j in self.tails:
            if some.start <= j < some.stop:
                X[:, j - first] = torch.from_numpy(self.encoded(j, table[:, j - first].numpy()))
        return X

    def encoded(self, j: int, x: Floats) -> Floats:
        """The encoded numbers of raw ones of column j, of any shape."""
        low, width = self._ranges[j]
        return ((self.tails[j].compressed(x) if j in self.tails else x) - low) / width

    def check_reach(self, X: Tensor) -> None:
        """Refuse encoded rows `(n, d)` whose squares might overflow.

        Raises:
            ArgumentError: a number beyond `FARTHEST`.
        """
        if not bool((X.abs() <= FARTHEST).all()):
            raise ArgumentError(
                f"pool: expected columns whose numbers are below {FARTHEST:g} ranges of the first pool, got larger "
                "ones; divide them."
            )

    def extended(self, names: tuple[str, ...], choices: Mapping[int, tuple[Any, ...]]) -> "Columns":
        """The same columns for a later pool; its `choices` are the earlier ones, followed by its own new ones.

        Raises:
            ArgumentError: its columns are different.
        """
        if names != self.names or set(choices) != set(self.choices):
            expected, got = (
                [f"{name} (categorical)" if j in of else name for j, name in enumerate(every)]
                for every, of in ((self.names, self.choices), (names, choices))
            )
            raise ArgumentError(f"pool: expected the columns of the first pool, {expected}, got {got}.")
        return replace(self, choices=choices)

    def internal(self, j: int, value: Any, where: str) -> float:
        """A value of column j as a raw number.

        Raises:
            ArgumentError, ArgumentTypeError: none of the column's choices, or no finite number; `where` is for the
                message.
        """
        value = as_python(value)
        if j not in self.choices:
            if self.kinds[j] == "b" and isinstance(value, bool):
                return float(value)
            number = check_number(f"{where}: {self.names[j]!r}", value, -math.inf, "a finite number")
            with np.errstate(over="ignore"):
                reached = abs(self.encoded(j, np.array(number)))
            if not reached <= FARTHEST:
                raise ArgumentError(
                    f"{where}: {self.names[j]!r}: expected a number nearer to the pool's, got {value!r}."
                )
            return number
        if value not in self.choices[j]:
            raise ArgumentError(f"{where}: expected one of the pool's {self.names[j]!r}, got {value!r}.")
        return float(self.choices[j].index(value))

    def external(self, j: int, number: float) -> Any:
        """The value of column j that has this raw number."""
        if j in self.choices:
            return self.choices[j][int(number)]
        if self.kinds[j] in "iub" and number == int(number):
            return bool(number) if self.kinds[j] == "b" and number in (0.0, 1.0) else int(number)
        return float(number)


def sampled_rows(n: int) -> NDArray[np.int64]:
    """The rows of a table of `n` rows from which the bulk of its columns is computed, in order: all of a short one."""
    if n <= SAMPLE:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, SAMPLE, replace=False, shuffle=False))


def choices_after(
    name: str, known: Sequence[Any], own: Sequence[Any], *, ranked: bool, ordered: bool
) -> tuple[Any, ...]:
    """The choices of a column, of which some are known: these, followed by the new ones.

    Args:
        name: of the column.
        known: earlier choices.
        own: the choices of a later table.
        ranked: whether the codes of the column are ranks.
        ordered: whether `own` has an order.

    Raises:
        ArgumentError: no rank follows for a new choice, or the order is another one.
    """
    every = tuple(dict.fromkeys([*known, *own]))
    kept = tuple(filter(set(own).__contains__, every)) == tuple(own) if ordered else len(every) == len(known)
    if ranked and not kept:
        raise ArgumentError(
            f"pool: expected the ordered categories {tuple(known)} in column {name!r}, in this order and new ones "
            f"after them, got {tuple(own)}; declare them, as by pandas.Categorical(values, categories, ordered=True)."
        )
    return every


def columns_of(
    names: tuple[str, ...],
    kinds: tuple[str, ...],
    choices: Mapping[int, tuple[Any, ...]],
    limits: tuple[Tensor, Tensor],
    sample: Tensor | None,
) -> Columns:
    """The columns of a first pool.

    Args:
        names: of the columns.
        kinds: see `Columns`.
        choices: see `Columns`.
        limits: the smallest and the largest raw value of each column, (d,) both.
        sample: the `sampled_rows`, (n, d), by which numeric columns are scaled; None if they are left as they are.

    Raises:
        ArgumentError: a range that overflows.
    """
    low, high = limits
    if sample is not None and not bool(torch.isfinite(high - low).all()):
        raise ArgumentError("pool: a column's range overflows; divide it by its largest value first.")
    ends, tails = torch.tensor([[0.0], [1.0]], dtype=torch.float64).repeat(1, len(low)), dict[int, Tails]()
    by_column = None if sample is None else np.ascontiguousarray(sample.numpy().T)
    for j, range_ in enumerate(torch.stack([low, high], 1).numpy()):
        if by_column is not None and kinds[j] == RANKED:
            ends[1, j] = len(choices[j]) - 1.0
        elif by_column is not None and j not in choices:
            found = _tails_of(by_column[j], float(range_[1] - range_[0]))
            if found is not None:
                tails[j] = found
            ends[:, j] = torch.from_numpy(range_ if found is None else found.compressed(range_))
    width = ends[1] - ends[0]
    return Columns(names, kinds, ends[0], torch.where(width > 0.0, width, 1.0), choices, tails)


def _tails_of(x: Floats, span: float) -> Tails | None:
    """The compression of a numeric column with some values `x (n,)` and the range `span`; None without long tails."""
    start, stop = _quantiles(x, *BULK)
    middle, half = start + 0.5 * (stop - start), 0.5 * (stop - start)
    if not half > 0.0:  # nine in ten values are alike: the bulk is that of the others
        away = np.abs(x - start)
        away = away[away > 0.0]
        if not len(away):
            return None
        middle, (half,) = start, _quantiles(away, BULK[1] - BULK[0])
    is_long = LONG * 2.0 * half < span <= FARTHEST * half
    return Tails(middle, half) if is_long else None


def _quantiles(x: Floats, *shares: Fraction) -> list[float]:
    """Values of `x (n,)` which so large shares of them do not exceed; repeating each value changes nothing."""
    ranks = [math.ceil(share * len(x)) - 1 for share in shares]
    found: list[float] = np.partition(x, ranks)[ranks].tolist()
    return found
