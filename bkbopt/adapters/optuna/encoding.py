"""Optuna's distributions as encoded columns: one space over all parameters that a study has ever suggested.

| symbol  | shape  | meaning                                                                                |
| ------- | ------ | -------------------------------------------------------------------------------------- |
| key     | -      | a parameter's name with what Optuna lets nobody change: its kind, log, choices         |
| values  | {key}  | a trial's parameters in Optuna's internal form: numbers, categories by their index     |
| x       | (d,)   | the encoded point; a column that the trial does not have holds a constant              |

Ranges and steps may change from trial to trial: the column then covers all of them. A parameter that is absent is a
constant in its column, so that it adds nothing to the distance of two trials without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from torch import Tensor

from bkbopt.errors import ArgumentError
from bkbopt.spaces.space import Categorical, Float, Int, Parameter, Space

__all__ = ["Embedding", "Encoding", "column_key", "internal_values", "merged", "parameter_of"]

Values = Mapping[str, float]

#: Whole numbers are searched on a grid of this many bits at most, and floats up to this size and ratio: what doubles
#: can follow. Optuna's own ranges may be larger.
MAX_BITS, WIDEST = 49, 1e300
#: Smallest width of a range inside a wider one: a narrower one vanishes in the rounding of its place.
NARROWEST = 1e-300


def column_key(name: str, distribution: BaseDistribution) -> str:
    """The name of the column that a parameter belongs to."""
    if isinstance(distribution, CategoricalDistribution):
        return f"{name} of {distribution.choices!r}"
    kind = "int" if isinstance(distribution, IntDistribution) else "float"
    return f"{name} ({kind}, log)" if getattr(distribution, "log", False) else f"{name} ({kind})"


def parameter_of(distribution: BaseDistribution) -> Parameter:
    """The parameter that takes the distribution's values in their internal form.

    Raises:
        NotImplementedError: a distribution that Optuna did not have when this was written.
    """
    if isinstance(distribution, CategoricalDistribution):
        return Categorical([float(i) for i in range(len(distribution.choices))])
    if isinstance(distribution, IntDistribution):
        return _whole_numbers(distribution.low, distribution.high, distribution.log, distribution.step)
    if isinstance(distribution, FloatDistribution):
        return _numbers(distribution.low, distribution.high, distribution.log, distribution.step)
    raise NotImplementedError(f"BKBSampler does not know the distribution {distribution!r}.")


def _whole_numbers(low: int, high: int, log: bool, step: int) -> Int | Float:
    """The whole numbers, or as many of them as doubles can tell apart."""
    try:
        return Int(low, high, log=log, step=step)
    except ArgumentError:
        if log:
            return _numbers(float(low), float(high), log=True, step=None)
        doublings = ((high - low) // step).bit_length() - MAX_BITS
        return Int(low, high, step=step << max(doublings, 0))


def _numbers(low: float, high: float, log: bool, step: float | None) -> Float:
    """The numbers; without a step that doubles cannot follow, and of a range too wide for them a part."""
    try:
        return Float(low, high, log=log, step=step)
    except ArgumentError:
        if log:
            return Float(max(low, high / WIDEST), high, log=True)
        return Float(max(low, -WIDEST), min(high, WIDEST))


def internal_values(params: Mapping[str, object], distributions: Mapping[str, BaseDistribution]) -> dict[str, float]:
    """A trial's parameters by column, in Optuna's internal form."""
    return {
        column_key(name, distribution): float(distribution.to_internal_repr(params[name]))
        for name, distribution in distributions.items()
        if name in params
    }


def merged(old: Parameter, new: Parameter) -> Parameter:
    """The smallest parameter that holds the values of both, which belong to one column."""
    if old == new or isinstance(old, Categorical) or isinstance(new, Categorical):
        return old
    low, high = min(old.low, new.low), max(old.high, new.high)
    if isinstance(old, Int) and isinstance(new, Int):
        same = old.step == new.step and (old.low - new.low) % old.step == 0
        return _whole_numbers(int(low), int(high), old.log, old.step if same else 1)
    # Two float grids seldom have their values in common; a continuum holds them all.
    return _numbers(low, high, old.log, None)


@dataclass(frozen=True)
class Encoding:
    """All columns of a study, in the order of their keys."""

    parameters: tuple[tuple[str, Parameter], ...]

    @cached_property
    def space(self) -> Space | None:
        """The space of all columns; None before the first parameter."""
        return Space(self.parameters) if self.parameters else None

    @property
    def dim(self) -> int:
        """Number of columns d, at least 1: without a free parameter there is a constant one."""
        return max(self.space.dim, 1) if self.space is not None else 1

    @cached_property
    def columns(self) -> dict[str, int]:
        """The column of each key that has one; parameters with a single value have none."""
        return {} if self.space is None else {column.name: j for j, column in enumerate(self.space.columns)}

    @property
    def categorical(self) -> tuple[int, ...]:
        """Columns that hold category codes."""
        return () if self.space is None else self.space.categorical

    @cached_property
    def absent(self) -> Tensor:
        """The point `(d,)` of a trial without any of the parameters: mid-range, first choice."""
        x = torch.full((self.dim,), 0.5, dtype=torch.float64)
        x[list(self.categorical)] = 0.0
        return x

    def encode(self, rows: Sequence[Values]) -> Tensor:
        """Encoded points `(n, d)` of trials given by their values."""
        X = self.absent.repeat(len(rows), 1)
        for key, parameter in self.parameters:
            j = self.columns.get(key)
            if j is None:
                continue
            have = [i for i, row in enumerate(rows) if key in row]
            if have:
                one = Space(((key, parameter),))
                X[have, j] = one.encode([{key: _inside(parameter, rows[i][key])} for i in have])[:, 0]
        return X

    def embedding(self, proposed: Mapping[str, BaseDistribution], fixed: Values) -> "Embedding":
        """The points that a trial can have: `proposed` vary over the ranges they have now, `fixed` are known.

        Args:
            proposed: distributions by column key, all of which are columns of this encoding.
            fixed: values of other columns, in internal form; those not named count as absent.
        """
        items = tuple((key, parameter_of(distribution)) for key, distribution in proposed.items())
        space = Space(items) if items else None
        base = self.encode([fixed])[0] if self.parameters else self.absent
        free = space.columns if space is not None else ()
        columns = [self.columns[column.name] for column in free]
        low, width = torch.zeros(len(columns), dtype=torch.float64), torch.ones(len(columns), dtype=torch.float64)
        for i, column in enumerate(free):
            here = dict(items)[column.name]
            if not isinstance(here, Categorical):
                ends = self.encode([{column.name: here.low}, {column.name: here.high}])[:, columns[i]]
                low[i], width[i] = ends[0], ends[1] - ends[0]
        return Embedding(space, base, torch.tensor(columns, dtype=torch.int64), low, width)


@dataclass(frozen=True)
class Embedding:
    """A space inside the encoding: x = base, with x[columns] = low + width * u for the space's own points u.

    Scales are affine in the encoded columns (of the logarithm where log=True), so the map is exact. Without anything
    that varies there is no space, and the only point is the base.
    """

    space: Space | None
    base: Tensor
    columns: Tensor
    low: Tensor
    width: Tensor

    @cached_property
    def is_whole(self) -> bool:
        """Whether the space is all of the encoding."""
        same = torch.equal(self.columns, torch.arange(len(self.base)))
        return same and bool((self.low == 0.0).all()) and bool((self.width == 1.0).all())

    def __call__(self, U: Tensor) -> Tensor:
        """Encoded points `(n, d)` of the space's points `U (n, k)`; differentiable."""
        if self.is_whole:
            return U
        X = self.base.repeat(len(U), 1)
        if not len(self.columns):
            return X
        return X.index_copy(1, self.columns, self.low + self.width * U[:, : len(self.columns)])

    def project(self, X: Tensor) -> Tensor:
        """The space's points `(n, k)` nearest to encoded ones `(n, d)`: where they are inside, their own."""
        if self.is_whole:
            return X
        if self.space is None or not len(self.columns):
            return X.new_zeros(len(X), 1)
        return self.space.snap((X[:, self.columns] - self.low) / self.width.clamp_min(NARROWEST))

    def sample(self, n: int, rng: np.random.Generator) -> Tensor:
        """Random points `(n, k)` of the space."""
        if self.space is None or not len(self.columns):
            return torch.zeros(1, 1, dtype=torch.float64)
        return self.space.sample(n, rng)


def _inside(parameter: Parameter, value: float) -> float:
    """The value, or the nearest that the parameter has: a running trial may use a range that no finished one had."""
    if parameter.locate(value) is not None or isinstance(parameter, Categorical):
        return value
    value = min(max(value, parameter.low), parameter.high)
    if parameter.step is None or parameter.locate(value) is not None:
        return value
    return parameter.low + round((value - parameter.low) / parameter.step) * parameter.step
