"""Mixed search spaces: floats, integers, log scales, steps, categories and fixed values, as columns of numbers.

Symbols and shapes:

    d         number of encoded columns (`Space.dim`); a fixed parameter has none
    X (n, d)  encoded points, float64: numeric columns in [0, 1], categorical ones hold the number of the choice
    U (n, d)  points of the unit cube, as quasi-random sequences give them

The numeric code of a value v is (f(v) - f(low)) / (f(high) - f(low)), with f = log where `log=True`. The points of a
grid (whole numbers, steps, choices) have one code each, the same to the last bit wherever it is computed.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces import parsing as _spec
from bkbopt.spaces.base import Kind
from bkbopt.spaces.parameters import Categorical, Float, Int, Ordinal, Parameter, shown
from bkbopt.spaces.scales import Scale

__all__ = ["Categorical", "Column", "Float", "Int", "Ordinal", "Parameter", "Space"]

_SMALL_GRID = 12  # up to here every other grid value is a neighbour
_LEAP = 0.1  # of the encoded range; the longest move to a neighbour on a larger grid


@dataclass(frozen=True)
class Column:
    """One encoded column: the parameter it stands for, its kind, and its number of values (None on a continuum)."""

    name: str
    kind: Kind
    n_values: int | None


@dataclass(frozen=True)
class Space:
    """A search space; made by `Space.parse`.

    Points come in two forms: as parameters (a dict of values for each point) and encoded (rows of `X (n, d)`).
    `encode` and `decode` go from one to the other. Results lie on the device of the input.

    Example:
        >>> import bkbopt as bo
        >>> space = bo.Space.parse({"rate": bo.Float(1e-4, 1e-1, log=True), "kind": ["a", "b", "c"], "seed": 0})
        >>> space.encode([{"rate": 1e-3, "kind": "c"}])
        tensor([[0.3333, 2.0000]], dtype=torch.float64)
        >>> space.decode(space.encode([{"rate": 1e-3, "kind": "c"}]))
        [{'rate': 0.0010000000000000002, 'kind': 'c', 'seed': 0}]
    """

    items: tuple[tuple[str, Parameter], ...]

    def __post_init__(self) -> None:
        """Refuse what `parse` could not have made."""
        if not self.items:
            raise ArgumentError("space: expected at least one parameter, got none")
        for name, _ in self.items:
            if not isinstance(name, str):
                raise ArgumentTypeError(f"space: expected names that are strings, got {shown(name)}")
        if len(set(self.names)) < len(self.names):
            raise ArgumentError(f"space: expected distinct names, got {shown(self.names)}")

    @classmethod
    def parse(cls, spec: object) -> "Space":
        """Read a search space in any of the forms that people write.

        Args:
            spec: a `Space`; or a dict from names to
                - `Float`, `Int`, `Categorical`, `Ordinal`, or a distribution of Optuna,
                - a tuple (low, high): a `Float`, also if both are whole (which is warned of once),
                - a range: an `Int`,
                - a list or set of values: a `Categorical`,
                - a number, string, bool or None: a fixed value;
                or a list of (low, high) pairs (or a (d, 2) array), whose parameters are called x0, x1, ...

        Raises:
            ArgumentTypeError: none of these forms, or a name that is no string.
            ArgumentError: no parameters, or what the parameters refuse; it names the parameter.
        """
        return spec if isinstance(spec, Space) else cls(_spec.parse(spec))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters, fixed ones included, in the order given."""
        return tuple(name for name, _ in self.items)

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters by name (read-only)."""
        return MappingProxyType(dict(self.items))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """What the encoded columns stand for."""
        return tuple(Column(name, parameter.kind, parameter.n_values) for name, parameter in self._free)

    @property
    def dim(self) -> int:
        """Number d of encoded columns."""
        return len(self._free)

    @cached_property
    def categorical(self) -> tuple[int, ...]:
        """Indices of the categorical columns."""
        return tuple(j for j, column in enumerate(self.columns) if column.kind == "categorical")

    @cached_property
    def numeric(self) -> tuple[int, ...]:
        """Indices of the other columns."""
        return tuple(j for j, column in enumerate(self.columns) if column.kind != "categorical")

    @cached_property
    def is_discrete(self) -> bool:
        """Whether the space has finitely many points."""
        return all(column.n_values is not None for column in self.columns)

    @cached_property
    def cardinality(self) -> int | float:
        """Number of different points: an exact int, or `math.inf`."""
        return math.prod(math.inf if column.n_values is None else column.n_values for column in self.columns)

    def encode(self, params_list: Sequence[Mapping[str, object]]) -> Tensor:
        """Encode points given as parameters.

        Args:
            params_list: for each point the values of all parameters by name; fixed ones may be left out. Numpy's
                scalars will do, and whole floats for an `Int`.

        Returns:
            `X (n, d)`.

        Raises:
            ArgumentTypeError: not a sequence of mappings.
            ArgumentError: a name unknown or missing, or a value that is not one of the parameter's: outside the
                bounds, off the grid (by more than 1e-8 steps), NaN, not a number, not among the choices.
        """
        rows = self._checked_rows(params_list)
        X = np.empty((len(rows), self.dim))
        for name, parameter in self.items:
            positions = _locate(name, parameter, rows)
            if name in self._index:
                X[:, self._index[name]] = parameter.scale.encoded(np.array(positions))
        return torch.from_numpy(X)

    def decode(self, X: Tensor) -> list[dict[str, Any]]:
        """Turn encoded points `X (n, d)` into parameters, each the nearest allowed value.

        Raises:
            ArgumentTypeError: `X` is no tensor or array.
            ArgumentError: `X` has the wrong shape, or NaN or infinite entries.
        """
        A = self._checked("X", X)
        values = []
        for name, parameter in self.items:
            if name in self._index:
                positions = parameter.scale.nearest(A[:, self._index[name]]).tolist()
                values.append([parameter.value(position) for position in positions])
            else:
                values.append([parameter.first] * len(A))
        return [dict(zip(self.names, row, strict=True)) for row in zip(*values, strict=True)]

    def snap(self, X: Tensor) -> Tensor:
        """Move encoded points `X (n, d)` to the nearest feasible ones, as distances are in the encoded scale.

        A continuum is clipped to [0, 1]; snapping twice changes nothing, to the last bit. The errors are `decode`'s.
        """
        A = self._checked("X", X)
        out = np.clip(A, 0.0, 1.0)
        for j, scale in self._gridded:
            out[:, j] = scale.encoded(scale.nearest(A[:, j]))
        return _like(X, out)

    def from_unit(self, U: Tensor) -> Tensor:
        """Map points of the unit cube `U (n, d)` into the space, such that even points become even points.

        A continuum is taken as it is (clipped to [0, 1]); a grid's values and the choices share [0, 1] in equal
        cells; whole numbers on a log scale own the logarithmic width of [v - 1/2, v + 1/2]. The errors are `decode`'s.
        """
        out = np.clip(self._checked("U", U), 0.0, 1.0)
        for j, scale in self._gridded:
            out[:, j] = scale.encoded(scale.spread(out[:, j]))
        return _like(U, out)

    def sample(self, n: int, generator: np.random.Generator) -> Tensor:
        """Draw `n` independent random points `(n, d)`, distributed as `from_unit` says.

        Raises:
            ArgumentError, ArgumentTypeError: `n` is negative, or no whole number.
        """
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
            raise ArgumentTypeError(f"n: expected a whole number, got {shown(n)}")
        if n < 0:
            raise ArgumentError(f"n: expected 0 or more, got {n}")
        return self.from_unit(torch.from_numpy(generator.random((int(n), self.dim))))

    def neighbours(self, x: Tensor) -> Tensor:
        """Give the points `(k, d)` that differ from `x (d,)`, once snapped, in one discrete column.

        Choices, and values on grids of at most 12, change to every other one. Longer grids move by one and two
        steps and by a tenth of the encoded range, or to the end of the range where that is nearer. k is 0 in a space
        without discrete columns. The errors are `decode`'s.
        """
        base = _as_array("x", x)
        if base.shape != (self.dim,):
            raise ArgumentError(f"x: expected shape ({self.dim},), got {base.shape}")
        base = self.snap(torch.from_numpy(base[None])).numpy()
        blocks = [base[:0]]
        for j, scale in self._gridded:
            column = self.columns[j]
            moves = _moves(scale, base[:, j], column.n_values or 0, every=column.kind == "categorical")
            block = np.repeat(base, len(moves), axis=0)
            block[:, j] = moves
            blocks.append(block)
        return _like(x, np.concatenate(blocks))

    def all_points(self, limit: int) -> Tensor:
        """List every point of a discrete space, `(N, d)`; the last column changes fastest.

        Raises:
            ArgumentError: the space has more than `limit` points, or a continuum.
        """
        if not self.is_discrete or self.cardinality > limit:
            raise ArgumentError(f"limit: expected a space of at most {limit} points, got one of {self.cardinality}")
        sizes = [column.n_values or 0 for column in self.columns]
        X = np.empty((math.prod(sizes), self.dim))
        rows = np.arange(len(X))
        for j, scale in reversed(self._gridded):
            rows, positions = np.divmod(rows, sizes[j])
            X[:, j] = scale.encoded(positions)
        return torch.from_numpy(X)

    def to_dict(self) -> dict[str, Any]:
        """Describe the space in JSON's terms; `from_dict` reads it back.

        Raises:
            ArgumentError: a choice that is not None, bool, int, float or str cannot be saved.
        """
        return {"parameters": _spec.describe(self.items)}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> "Space":
        """Read what `to_dict` wrote.

        Raises:
            ArgumentError, ArgumentTypeError: a field is missing, unknown, of the wrong type or has a value that is
                not allowed.
        """
        if not isinstance(description, Mapping) or "parameters" not in description:
            raise ArgumentTypeError(f"description: expected a dict as to_dict returns it, got {shown(description)}")
        return cls(_spec.read_description(description["parameters"]))

    @cached_property
    def _free(self) -> tuple[tuple[str, Parameter], ...]:
        return tuple((name, parameter) for name, parameter in self.items if parameter.n_values != 1)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: j for j, (name, _) in enumerate(self._free)}

    @cached_property
    def _gridded(self) -> list[tuple[int, Scale]]:
        return [(j, p.scale) for j, (_, p) in enumerate(self._free) if p.n_values is not None]

    def _checked(self, argument: str, X: Tensor) -> NDArray[np.float64]:
        A = _as_array(argument, X)
        if A.ndim != 2 or A.shape[1] != self.dim:
            raise ArgumentError(f"{argument}: expected shape (n, {self.dim}), got {A.shape}")
        return A

    def _checked_rows(self, params_list: Sequence[Mapping[str, object]]) -> Sequence[Mapping[str, object]]:
        if not isinstance(params_list, Sequence) or isinstance(params_list, str):
            raise ArgumentTypeError(f"params_list: expected a list of dicts, got {shown(params_list)}: use [params]")
        known, required = set(self.names), set(self._index)
        for i, row in enumerate(params_list):
            if not isinstance(row, Mapping):
                raise ArgumentTypeError(f"params_list: expected a dict in row {i}, got {shown(row)}")
            unknown, missing = row.keys() - known, required - row.keys()
            if unknown or missing:
                fault = f"unknown {_listed(unknown)}" if unknown else f"nothing for {_listed(missing)}"
                raise ArgumentError(f"params_list: expected values for {_listed(known)} in row {i}, got {fault}")
        return params_list


def _locate(name: str, parameter: Parameter, rows: Sequence[Mapping[str, object]]) -> list[float]:
    """Positions of the values in all rows that have one: a fixed parameter may be missing."""
    positions = []
    for i, row in enumerate(rows):
        if name not in row:
            continue
        position = parameter.locate(row[name])
        if position is None:
            raise ArgumentError(f"parameter {name!r} in row {i}: expected {parameter.expected}, got {shown(row[name])}")
        positions.append(position)
    return positions


def _moves(scale: Scale, code: NDArray[np.float64], n: int, *, every: bool) -> NDArray[np.float64]:
    """Codes of the neighbours of the grid point with code `code (1,)`."""
    here = scale.nearest(code)
    if every or n <= _SMALL_GRID:
        others = np.arange(n)
    else:
        leaps = scale.nearest(np.concatenate([code - _LEAP, code + _LEAP]))
        others = np.unique(np.concatenate([here - 2, here - 1, here + 1, here + 2, leaps]))
    return scale.encoded(others[(others != here) & (others >= 0) & (others < n)])


def _as_array(argument: str, X: object) -> NDArray[np.float64]:
    if isinstance(X, Tensor) and not X.is_complex():
        A = X.detach().to("cpu", torch.float64).numpy()
    elif isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
        A = X.astype(np.float64)
    else:
        raise ArgumentTypeError(f"{argument}: expected a tensor of real numbers, got {shown(X)}")
    finite = np.isfinite(A)
    if not finite.all():
        where = np.argwhere(~finite)[0]
        raise ArgumentError(f"{argument}: expected finite numbers, got {A[tuple(where)]} at {where.tolist()}")
    return A


def _like(X: Tensor, out: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(out).to(X.device if isinstance(X, Tensor) else "cpu")


def _listed(names: Iterable[object]) -> str:
    return ", ".join(sorted(map(repr, names)))
