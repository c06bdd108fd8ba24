"""Points whose parameters and ranges differ, as rows of one table of encoded columns.

| symbol  | shape  | meaning                                                                                |
| ------- | ------ | -------------------------------------------------------------------------------------- |
| key     | -      | a column key, see `bkbopt.spaces.base`                                                 |
| point   | {key}  | the values of a trial's active parameters, in internal form                            |
| X       | (n, d) | encoded points; a column that a point does not have holds a constant                   |
| U       | (n, k) | points of a space inside the encoding, in the encoding of that space                   |

Ranges and steps may change from point to point: a column covers all of them. A parameter that is absent is a constant
in its column, so that it adds nothing to the distance of two points without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt.errors import ArgumentError
from bkbopt.spaces.base import Point
from bkbopt.spaces.parameters import Categorical, Float, Int, Ordinal, Parameter
from bkbopt.spaces.scales import Continuum, Grid, LogGrid, Scale
from bkbopt.spaces.space import Space
from bkbopt.spaces.stretched import like_part

__all__ = ["Embedding", "Encoding", "merged", "real_numbers", "whole_numbers"]

#: Limits of what doubles resolve: whole numbers are searched on a grid of at most this many bits, and floats up to
#: this size and ratio. Ranges of Optuna may be larger, and so may the union of two ranges.
MAX_BITS, WIDEST = 49, 1e300
#: Number of cached embeddings: of the branches of a space, and of fixed values.
KEPT = 64
#: Smallest width of a range inside a wider one: a narrower one is lost to rounding.
NARROWEST = 1e-300


def whole_numbers(low: int, high: int, *, log: bool = False, step: int = 1) -> Int | Float:
    """A range of whole numbers; where doubles cannot tell all apart a coarser grid, or a continuum."""
    try:
        return Int(low, high, log=log, step=step)
    except ArgumentError:
        doublings = ((high - low) // step).bit_length() - MAX_BITS
        if log or doublings <= 0:
            return real_numbers(float(low), float(high), log=log)
        return whole_numbers(low, high, step=step << doublings)


def real_numbers(low: float, high: float, *, log: bool = False, step: float | None = None) -> Float:
    """A range of real numbers; a step too fine for doubles is dropped, and a range too wide for them is cut."""
    try:
        return Float(low, high, log=log, step=step)
    except ArgumentError:
        if log:
            return Float(max(low, high / WIDEST), high, log=True)
        return Float(max(low, -WIDEST), min(high, WIDEST))


def merged(old: Parameter, new: Parameter) -> Parameter:
    """The smallest parameter with the values of both, which belong to one column; it has no condition.

    Of lists it is the later one, which has numbers and places for all values of the earlier ones.
    """
    old, new = old.unconditional(), new.unconditional()
    if old == new or isinstance(old, Categorical | Ordinal) or isinstance(new, Categorical | Ordinal):
        return new if new.generation > old.generation else old
    low, high = min(old.low, new.low), max(old.high, new.high)
    if isinstance(old, Int) and isinstance(new, Int):
        same = old.step == new.step and (old.low - new.low) % old.step == 0
        return whole_numbers(int(low), int(high), log=old.log, step=old.step if same else 1)
    # Two grids of floats seldom share values; a continuum has them all.
    return real_numbers(low, high, log=old.log)


@dataclass(frozen=True)
class Encoding:
    """All columns of a table of points: one for each key whose parameter has more than one value.

    Args:
        parameters: pairs of a column key and the parameter with the union of its ranges, in the order of the columns.
    """

    parameters: tuple[tuple[str, Parameter], ...]

    @property
    def dim(self) -> int:
        """Number of columns d, at least 1: without a free parameter there is a constant one."""
        return max(len(self.columns), 1)

    @cached_property
    def columns(self) -> Mapping[str, int]:
        """The column of each key that has one."""
        return {key: j for j, (key, _) in enumerate(self.varying)}

    @cached_property
    def categorical(self) -> tuple[int, ...]:
        """Columns that hold the numbers of choices."""
        return tuple(j for j, (_, parameter) in enumerate(self.varying) if parameter.kind == "categorical")

    @cached_property
    def n_codes(self) -> Mapping[int, int]:
        """Number of the choices of each column that holds their numbers."""
        return {j: self.varying[j][1].n_numbers or 0 for j in self.categorical}

    @cached_property
    def absent(self) -> Tensor:
        """The point `(d,)` without any of the parameters: mid-range, first choice."""
        codes = [parameter.absent for _, parameter in self.varying]
        return torch.tensor(codes or [0.5], dtype=torch.float64)

    def encode(self, points: Sequence[Point]) -> Tensor:
        """Encoded points `X (n, d)`.

        Keys without a column are ignored. A value outside of its column's range or between its steps is encoded as the
        nearest value of the column: a running trial may use a range that no finished trial has used.
        """
        if not self.columns or not points:
            return self.absent.repeat(len(points), 1)
        nan = float("nan")
        return self._encoded(np.array([[point.get(key, nan) for key in self.columns] for point in points]))

    def recoded(self, space: Space, U: Tensor) -> Tensor:
        """Encoded points `X (n, d)` of points `U (n, k)` in the encoding of a space: `encode` of what it decodes."""
        values = np.full((len(U), len(self.columns)), np.nan)
        for key, column in space.internal_columns(U).items():
            if key in self.columns:
                values[:, self.columns[key]] = column
        return self._encoded(values) if self.columns else self.absent.repeat(len(U), 1)

    def _encoded(self, values: NDArray[np.float64]) -> Tensor:
        """Encoded points `X (n, d)` of internal values `(n, d)`, NaN where a parameter is absent."""
        X = self._codes.encoded(values)
        missing = np.isnan(values)
        if missing.any():
            X[missing] = np.broadcast_to(self.absent.numpy(), X.shape)[missing]
        return torch.from_numpy(X)

    def embedding(self, proposed: Mapping[str, Parameter], fixed: Point) -> "Embedding":
        """The points that a trial can have: `proposed` vary over their present ranges, `fixed` are known.

        Args:
            proposed: parameters by column key, all of which belong to this encoding; their conditions are ignored.
            fixed: values of other columns; those not named are absent.
        """
        parameters = tuple(proposed.values())
        key = tuple(proposed), tuple(map(id, parameters)), tuple(fixed.items())
        made = self._embeddings.get(key)
        # In a copy of this encoding the ids are those of the parameters of the original.
        if made is None or any(one is not other for one, other in zip(made[1], parameters, strict=True)):
            if len(self._embeddings) >= KEPT:
                self._embeddings.clear()
            made = self._embeddings[key] = self._new_embedding(proposed, fixed), parameters
        return made[0]

    @cached_property
    def _embeddings(self) -> dict[object, tuple["Embedding", tuple[Parameter, ...]]]:
        return {}

    def _new_embedding(self, proposed: Mapping[str, Parameter], fixed: Point) -> "Embedding":
        inner = {key: like_part(_in_internal_form(p), self._by_key[key]) for key, p in proposed.items()}
        # A parameter with a single value now may have a column, from trials in which it had several.
        known = {**fixed, **{key: p.internal_values[0] for key, p in proposed.items() if p.n_values == 1}}
        free = {key: p for key, p in proposed.items() if p.n_values != 1}
        ranges = {key: _ends(p) for key, p in free.items() if not isinstance(p, Categorical)}
        lows, highs = ({key: ends[side] for key, ends in ranges.items()} for side in (0, 1))
        base, low, high = self.encode([known, lows, highs])
        lists = [(key, p) for key, p in free.items() if isinstance(p, Categorical | Ordinal)]
        columns = torch.tensor([self.columns[key] for key in free], dtype=torch.int64)
        varies = torch.tensor([key in ranges for key in free], dtype=torch.bool)
        return Embedding(
            space=Space(tuple(inner.items())) if inner else None,
            fixed=known,
            base=base,
            columns=columns,
            low=torch.where(varies, low[columns], 0.0),
            width=torch.where(varies, (high - low)[columns], 1.0),
            has_all=all(p.n_values == self._by_key[key].n_numbers for key, p in lists),
        )

    @cached_property
    def varying(self) -> tuple[tuple[str, Parameter], ...]:
        """The keys that have a column, and their parameters."""
        return tuple((key, parameter) for key, parameter in self.parameters if parameter.n_numbers != 1)

    @cached_property
    def _by_key(self) -> Mapping[str, Parameter]:
        return dict(self.parameters)

    @cached_property
    def _codes(self) -> "_Codes":
        return _Codes.of_parameters([parameter for _, parameter in self.varying])


@dataclass(frozen=True)
class Embedding:
    """A space inside the encoding: x = base, with x[columns] = low + width * u for the space's own points u.

    Scales are affine in the encoded columns (of the logarithm where log=True), so the map is exact. Without anything
    that varies the only point is the base.

    Attributes:
        space: the parameters that vary, with column keys as names and indices as choices; None if none varies.
        fixed: the values that do not vary, in internal form.
        base: (d,) encoded point of the fixed values.
        columns: (k,) columns of what varies.
        low: (k,) where the ranges begin within their columns.
        width: (k,) how much of their columns the ranges take.
        has_all: whether every value of the columns of lists is one of the space's.
    """

    space: Space | None
    fixed: Point
    base: Tensor
    columns: Tensor
    low: Tensor
    width: Tensor
    has_all: bool

    @cached_property
    def key(self) -> object:
        """A key that is equal for equal embeddings in one encoding."""
        parts = (self.base, self.columns, self.low, self.width)
        return (tuple(sorted(self.fixed.items())), *(part.numpy().tobytes() for part in parts), repr(self.space))

    @cached_property
    def is_whole(self) -> bool:
        """Whether the space is all of the encoding."""
        same = self.has_all and torch.equal(self.columns, torch.arange(len(self.base)))
        return same and bool((self.low == 0.0).all()) and bool((self.width == 1.0).all())

    def __call__(self, U: Tensor) -> Tensor:
        """Encoded points `X (n, d)` of the space's points `U (n, k)`; differentiable."""
        if self.is_whole:
            return U
        X = self.base.repeat(len(U), 1)
        if not len(self.columns):
            return X
        return X.index_copy(1, self.columns, self.low + self.width * U[:, : len(self.columns)])

    def pullback(self, slopes: Tensor) -> Tensor:
        """Gradients with respect to U `(n, k)`, given those with respect to X, `slopes (n, d)`."""
        return slopes if self.is_whole else slopes[:, self.columns] * self.width

    def project(self, X: Tensor) -> Tensor:
        """The space's points `U (n, k)` nearest to encoded points `X (n, d)`; those inside are met up to rounding."""
        if self.is_whole:
            return X
        if self.space is None or not len(self.columns):
            return X.new_zeros(len(X), 1)
        return self.space.snap((X[:, self.columns] - self.low) / self.width.clamp_min(NARROWEST))

    def holds(self, X: Tensor) -> Tensor:
        """Which of the encoded points `X (n, d)` have the fixed values, (n,) of bool."""
        fixed = ((self.base == X) | self._varies).all(1)
        if self.has_all:
            return fixed
        # The nearest point of the space to a value that is no longer listed is another point.
        return fixed & torch.isclose(self(self.project(X)), X, rtol=0.0, atol=1e-9).all(1)

    @cached_property
    def _varies(self) -> Tensor:
        return torch.zeros(len(self.base), dtype=torch.bool).index_fill(0, self.columns, True)

    def sample(self, n: int, rng: np.random.Generator) -> Tensor:
        """Random points `U (n, k)` of the space; without anything that varies a single one."""
        if self.space is None or not len(self.columns):
            return torch.zeros(1, 1, dtype=torch.float64)
        return self.space.sample(n, rng)

    def point(self, u: Tensor) -> dict[str, float]:
        """The values of one of the space's points `u (k,)` in internal form, with the fixed ones."""
        return self.points(u[None])[0]

    def points(self, U: Tensor) -> list[dict[str, float]]:
        """The same for several points `(n, k)`."""
        decoded = [{}] * len(U) if self.space is None else self.space.decode(U[:, : len(self.columns)])
        return [{**self.fixed, **{key: float(value) for key, value in row.items()}} for row in decoded]


@dataclass(frozen=True)
class _Codes:
    """The scales of several columns at once: internal values to codes by few operations on whole tables.

    The value of a listed choice is its place. With t = value - low, rounded to t / step on a grid, the code is
    f(t) / width, f = log(1 + t / low) on a log scale. Each operation is that of `bkbopt.spaces.scales`, so that the
    codes are the same to the last bit.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    width: NDArray[np.float64]
    gridded: NDArray[np.int64]
    step: NDArray[np.float64]
    top: NDArray[np.float64]
    logarithmic: NDArray[np.int64]
    log_low: NDArray[np.float64]
    #: Places by number, of the columns in which a later list has moved them.
    places: Mapping[int, NDArray[np.float64]]
    #: The scales of the columns with a stretched end.
    stretched: Mapping[int, Scale]

    @classmethod
    def of_parameters(cls, parameters: Sequence[Parameter]) -> "_Codes":
        """The scales of parameters that vary."""
        lines = [_ColumnScale.of(parameter) for parameter in parameters]
        gridded = [j for j, line in enumerate(lines) if line.n is not None]
        logarithmic = [j for j, line in enumerate(lines) if line.log]
        return cls(
            low=np.array([line.low for line in lines]),
            high=np.array([line.high for line in lines]),
            width=np.array([line.width for line in lines]),
            gridded=np.array(gridded, dtype=np.int64),
            step=np.array([lines[j].step for j in gridded]),
            top=np.array([float((lines[j].n or 1) - 1) for j in gridded]),
            logarithmic=np.array(logarithmic, dtype=np.int64),
            log_low=np.array([lines[j].low for j in logarithmic]),
            places={j: np.array(line.places) for j, line in enumerate(lines) if line.places is not None},
            stretched={j: line.stretched for j, line in enumerate(lines) if line.stretched is not None},
        )

    def encoded(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Codes of internal values `(n, d)`, each the nearest in its column's range; NaN stays NaN."""
        for j, places in self.places.items():
            values = values.copy()
            known = ~np.isnan(values[:, j])
            numbers = values[known, j].astype(np.int64)
            values[known, j] = places[np.minimum(numbers, len(places) - 1)]
        inside = np.minimum(np.maximum(values, self.low), self.high)
        T = inside - self.low
        if len(self.gridded):
            T[:, self.gridded] = np.minimum(np.rint(T[:, self.gridded] / self.step), self.top)
        if len(self.logarithmic):
            # Contiguous, since numpy may round a logarithm differently with the layout of its argument.
            ratios = np.ascontiguousarray(T[:, self.logarithmic] / self.log_low)
            T[:, self.logarithmic] = np.log1p(ratios)
        for j, scale in self.stretched.items():
            T[:, j] = scale.encoded(np.ascontiguousarray((T if j in self.gridded else inside)[:, j]))
        return np.asarray(T / self.width)


@dataclass(frozen=True)
class _ColumnScale:
    """The scale of one column in numbers: `n` values in steps from `low`, or a continuum where `n` is None."""

    low: float
    high: float
    width: float
    step: float
    n: int | None
    log: bool
    #: Places by number, see `bkbopt.spaces.numbering`; None if they are the numbers.
    places: tuple[float, ...] | None = None
    #: The scale itself, of a column with a stretched end.
    stretched: Scale | None = None

    @classmethod
    def of(cls, parameter: Parameter) -> "_ColumnScale":
        """The scale of a parameter that varies."""
        if isinstance(parameter, Categorical | Ordinal):
            places = parameter.places
            low, high = min(places), max(places)
            width = high - low if isinstance(parameter, Ordinal) else 1.0
            if parameter.numbering is None:
                return cls(low, high, width, 1.0, len(places), False)
            return cls(low, high, width, 1.0, None, False, places)
        step = 1.0 if parameter.step is None else float(parameter.step)
        low, high, n, scale = float(parameter.low), float(parameter.high), parameter.n_values, parameter.scale
        if isinstance(scale, Continuum | Grid | LogGrid):
            return cls(low, high, scale.width, step, n, parameter.log)
        return cls(low, high, 1.0, step, n, False, stretched=scale)


def _ends(parameter: Float | Int | Ordinal) -> tuple[float, float]:
    """The first and the last value of a parameter in internal form."""
    if isinstance(parameter, Ordinal):
        return parameter.internal_at(0), parameter.internal_at(len(parameter.listed) - 1)
    return float(parameter.low), float(parameter.high)


def _in_internal_form(parameter: Parameter) -> Parameter:
    """The parameter of the internal forms of the values."""
    if isinstance(parameter, Categorical | Ordinal):
        return _of_numbers(type(parameter), parameter.internal_values)
    return parameter.unconditional()


@lru_cache(maxsize=64)
def _of_numbers(kind: type[Categorical | Ordinal], numbers: tuple[float, ...]) -> Categorical | Ordinal:
    return kind(numbers)
