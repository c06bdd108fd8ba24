"""Coordinates of points: rows of numbers with a column for each parameter that varies.

| symbol | shape  | units   | meaning                                                                            |
| ------ | ------ | ------- | ---------------------------------------------------------------------------------- |
| U      | (n, k) | -       | points: for a space in its own encoding, for a pool in the model's encoding        |
| X      | (n, d) | encoded | the same points in the model's encoding, maybe with more parameters, wider ranges  |

The column of an inactive parameter is ignored. If the parameter becomes active, by another value of the parameter on
which it is conditional (its *switch*), the column has the value that is then used: mid-range, or the first choice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from bkbopt.analysis.dimensions import FEW, Dimension
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer import Optimizer
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.columns import RANKED, Columns, Tails
from bkbopt.spaces.space import Categorical, Ordinal, Space
from bkbopt.spaces.stretched import Stretch, StretchedAxis, stretched

__all__ = ["Coordinates", "coordinates_of", "dimension_of", "has_dimensions", "pair_of"]


class Coordinates(Protocol):
    """The coordinates of a space or of a pool.

    Methods about conditions and encodings have bodies, which are those of a pool.
    """

    def dimensions(self, n: int) -> list[Dimension]:
        """All parameters that vary, each with at most `n` numbers (listed values are all included)."""

    def center(self, at: Mapping[str, Any] | None) -> Tensor:
        """The recommended point, some of its parameters replaced by `at`, `(k,)`.

        If the space has changed since the point was evaluated, it is the nearest point of the current space.

        Raises:
            ArgumentTypeError: `at` is not a dict.
            ArgumentError: `at` has a parameter that does not exist or is inactive, or a value outside of the space.
            NotReadyError: there are no values yet.
        """

    def inactive(self, name: str, u: Tensor) -> str:
        """The reason why a parameter is inactive at `u (k,)`, as text; empty if it is active."""
        return ""

    def active(self, dimensions: list[Dimension], U: Tensor) -> np.ndarray:
        """A mask (n,) of the points at which all of the dimensions are active."""
        return np.ones(len(U), dtype=np.bool_)

    def encoded(self, U: Tensor) -> Tensor:
        """The points in the model's encoding, `X (n, d)`."""
        return U

    def sampled(self, n: int, at: Mapping[str, Any] | None = None) -> Tensor:
        """A sample of points `(<= n, k)`: quasi-random in a box, random arms of a pool.

        Switches (parameters on which others are conditional) have the values of the recommended point, changed by `at`.
        """

    def shuffled(self, n: int) -> tuple[Tensor, Tensor]:
        """Two independent samples `(n, k)` of points whose columns are drawn independently."""


@dataclass(frozen=True)
class _OfSpace:
    """See `Coordinates`."""

    opt: Optimizer
    space: Space

    @cached_property
    def _stretches(self) -> dict[str, Stretch]:
        return self.opt.stretched_ends

    @cached_property
    def _dimensions(self) -> dict[str, Dimension]:
        return {dimension.name: dimension for dimension in self.dimensions(2)}

    def dimensions(self, n: int) -> list[Dimension]:
        found = []
        for j, column in enumerate(self.space.columns):
            name, parameter = column.name, self.space.parameters[column.name]
            if isinstance(parameter, Categorical | Ordinal):
                width = 1.0 if isinstance(parameter, Categorical) else len(parameter.listed) - 1.0
                found.append(Dimension(name, j, parameter.listed, 0.0, width, parameter, is_continuum=False))
                continue
            many, by = column.n_values is None or column.n_values > FEW, self._stretches.get(name)
            scale = parameter.scale if by is None else stretched(parameter, by).scale
            positions = np.unique(scale.nearest(np.linspace(0.0, 1.0, n))) if many else range(column.n_values or 0)
            values = tuple(parameter.value(position) for position in positions)
            low, high = (np.log(float(v)) if parameter.log else float(v) for v in (parameter.low, parameter.high))
            axis = None if by is None else StretchedAxis.of(parameter, by)
            found.append(
                Dimension(name, j, values, low, high - low, log=parameter.log, is_continuum=many, stretched=axis)
            )
        return Dimension.labelled(found)

    def center(self, at: Mapping[str, Any] | None) -> Tensor:
        at = _checked_at(at, self.space.names)
        for name, value in at.items():
            parameter = self.space.parameters[name]
            if parameter.locate(value) is None:
                raise ArgumentError(f"at: parameter {name!r}: expected {parameter.expected}, got {value!r}.")
        params = {**self.opt.recommend().params, **at}
        u = torch.full((self.space.dim,), torch.nan, dtype=torch.float64)
        for name, dimension in self._dimensions.items():
            code = float(dimension.codes([params.get(name)])[0])
            u[dimension.column] = self.space.parameters[name].absent if np.isnan(code) else code
        u = self.space.snap(u[None])[0]
        for name in at:
            reason = self.inactive(name, u)
            if reason:
                raise ArgumentError(f"at: expected active parameters, but {name!r} is inactive here: {reason}.")
        return u

    def inactive(self, name: str, u: Tensor) -> str:
        (params,) = self.space.decode(u[None])
        if name in params:
            return ""
        when = self.space.parameters[name].when or {}
        needs = " and ".join(f"{parent!r} is {' or '.join(map(repr, values))}" for parent, values in when.items())
        has = " and ".join(
            f"{parent!r} is {params[parent]!r}" if parent in params else f"{parent!r} is not active" for parent in when
        )
        return f"it is active where {needs}, and here {has}"

    def active(self, dimensions: list[Dimension], U: Tensor) -> np.ndarray:
        return np.array([all(d.name in params for d in dimensions) for params in self.space.decode(U)])

    def encoded(self, U: Tensor) -> Tensor:
        return self.opt.recode(U)

    def sampled(self, n: int, at: Mapping[str, Any] | None = None) -> Tensor:
        U = self._even(self.space.dim, n)[0]
        if self.space.is_conditional:
            switches = [d.column for name, d in self._dimensions.items() if name in self.space.switches]
            U[:, switches] = self.center(at)[switches]
        return U

    def shuffled(self, n: int) -> tuple[Tensor, Tensor]:
        # One sequence in 2 k dimensions, since two sequences with different scrambles would be correlated.
        A, B = self._even(2 * self.space.dim, n)
        return A, B

    def _even(self, dim: int, n: int) -> list[Tensor]:
        """Quasi-random samples, `(n, k)` each, with values for the columns of all parameters, active or not."""
        unit = torch.quasirandom.SobolEngine(dim, scramble=True, seed=0).draw(n, dtype=torch.float64)
        free = Space(tuple((name, replace(parameter, when=None)) for name, parameter in self.space.items))
        return [free.from_unit(part) for part in unit.split(self.space.dim, dim=1)]


@dataclass(frozen=True)
class _OfPool(Coordinates):
    """See `Coordinates`."""

    opt: Optimizer
    pool: Arms
    columns: Columns

    def dimensions(self, n: int) -> list[Dimension]:
        found = []
        for j, name in enumerate(self.columns.names):
            low, width = float(self.columns.low[j]), float(self.columns.width[j])
            if j in self.columns.choices:
                listed = (Ordinal if self.columns.kinds[j] == RANKED else Categorical)(self.columns.choices[j])
                found.append(Dimension(name, j, listed.listed, low, width, listed, is_continuum=False))
            else:
                raw = self.pool.values_in(j)
                few = len(raw) <= FEW
                tails = self.columns.tails.get(j)
                values = raw if few else _between(raw[0], raw[-1], n, tails)
                found.append(Dimension(name, j, tuple(values.tolist()), low, width, tails=tails, is_continuum=not few))
        return Dimension.labelled([dimension for dimension in found if len(dimension.values) > 1])

    def center(self, at: Mapping[str, Any] | None) -> Tensor:
        at = _checked_at(at, self.pool.names)
        best = self.pool.values_of(self.pool.internal(self.opt.recommend().params))
        return self.opt.encode([{**best, **at}])[0]

    def sampled(self, n: int, at: Mapping[str, Any] | None = None) -> Tensor:
        return self.pool.X[torch.from_numpy(np.sort(self.pool.some_rows(n, np.random.default_rng(0))))]

    def shuffled(self, n: int) -> tuple[Tensor, Tensor]:
        rng = np.random.default_rng(0)

        def column(j: int) -> Tensor:
            return self.pool.X[torch.from_numpy(rng.integers(len(self.pool), size=n))][:, j]

        A, B = (torch.stack([column(j) for j in range(self.pool.dim)], dim=1) for _ in range(2))
        return A, B


def _between(first: float, last: float, n: int, tails: Tails | None) -> np.ndarray:
    """Values from exactly the first to the last one, (n,), evenly spaced on the axis, which may be compressed."""
    if tails is None:
        return np.linspace(first, last, n)
    low, high = tails.compressed(np.array([first, last]))
    return np.concatenate([[first], tails.spread(np.linspace(low, high, n))[1:-1], [last]])


def coordinates_of(opt: Optimizer) -> Coordinates:
    """The coordinates of an optimizer's space or pool.

    Raises:
        ArgumentError: the pool is one of objects, which have no columns, or no parameter varies.
    """
    if opt.space is not None:
        coordinates: Coordinates = _OfSpace(opt, opt.space)
    else:
        assert opt.pool is not None
        if opt.pool.columns is None:
            raise ArgumentError(
                "opt: expected a space or a pool with columns, got a pool of objects, which have no parameters to vary."
            )
        coordinates = _OfPool(opt, opt.pool, opt.pool.columns)
    if not coordinates.dimensions(2):
        raise ArgumentError("opt: expected a parameter that varies, but all are fixed.")
    return coordinates


def has_dimensions(opt: Optimizer) -> bool:
    """Whether there are parameters or columns that vary."""
    try:
        coordinates_of(opt)
    except ArgumentError:
        return False
    return True


def dimension_of(coordinates: Coordinates, argument: str, name: str | None, center: Tensor, n: int) -> Dimension:
    """The dimension of a parameter; with `name` None that of the only one that varies.

    Raises:
        ArgumentError: no parameter of this name varies, it is inactive at `center`, or `name` is None and several vary.
    """
    known = {dimension.name: dimension for dimension in coordinates.dimensions(n)}
    if name is None and len(known) == 1:
        name = next(iter(known))
    if name not in known:
        got = f"none; name it by {argument}=, in the shell by --{argument}" if name is None else repr(name)
        raise ArgumentError(f"{argument}: expected one of the parameters {', '.join(known)} that vary, got {got}.")
    reason = coordinates.inactive(name, center)
    if reason:
        raise ArgumentError(
            f"{argument}: expected a parameter that is active at the recommended point, changed by `at`, "
            f"got {name!r}: {reason}; pass such values, as at={{parameter: value}}."
        )
    return known[name]


def pair_of(coordinates: Coordinates, x: str, y: str, center: Tensor, n: int) -> tuple[Dimension, Dimension]:
    """Two different dimensions with `n` points along a continuum, 3 `n` if the other one is no continuum.

    Raises:
        ArgumentError: as for `dimension_of`, or both are the same.
    """
    if x == y:
        raise ArgumentError(f"y: expected another parameter than x, got {y!r} twice.")

    def pair(n: int) -> tuple[Dimension, Dimension]:
        return dimension_of(coordinates, "x", x, center, n), dimension_of(coordinates, "y", y, center, n)

    found = pair(n)
    return found if all(dimension.is_continuum for dimension in found) else pair(3 * n)


def _checked_at(at: Mapping[str, Any] | None, names: tuple[str, ...]) -> dict[str, Any]:
    if at is not None and not isinstance(at, Mapping):
        raise ArgumentTypeError(f"at: expected a dict of parameters, got {type(at).__name__}.")
    unknown = set(at or ()) - set(names)
    if unknown:
        raise ArgumentError(f"at: expected parameters among {names}, got {sorted(map(str, unknown))}.")
    return dict(at or {})
