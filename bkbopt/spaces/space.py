"""Mixed search spaces: floats, integers, log scales, steps, categories and fixed values, as columns of numbers.

Symbols and shapes:

    d         number of encoded columns (`Space.dim`); a fixed parameter has none
    X (n, d)  encoded points, float64: numeric columns in [0, 1], categorical ones hold the number of the choice
    U (n, d)  points of the unit cube, as quasi-random sequences give them

The numeric code of a value v is (f(v) - f(low)) / (f(high) - f(low)), with f = log where `log=True`. The points of a
grid (whole numbers, steps, choices) have one code each, the same to the last bit wherever it is computed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces import parsing
from bkbopt.spaces.base import Column
from bkbopt.spaces.conditions import Conditions
from bkbopt.spaces.moves import Moves
from bkbopt.spaces.parameters import Categorical, Float, Int, Ordinal, Parameter
from bkbopt.spaces.points import (
    active_names,
    as_array,
    checked_points,
    fixed_values,
    internal_columns,
    internal_points,
    like,
    places_of,
    position_of,
)
from bkbopt.spaces.scales import Scales
from bkbopt.spaces.values import shown

__all__ = ["Categorical", "Column", "Float", "Int", "Ordinal", "Parameter", "Space"]


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
        """Refuse items, names and conditions that are not valid."""
        parsing.check_items(self.items)
        if len(set(self.names)) < len(self.names):
            raise ArgumentError(f"space: expected distinct names, got {shown(self.names)}")
        self._conditions  # noqa: B018  # checks them

    @classmethod
    def parse(cls, spec: object) -> "Space":
        """Read a search space in any of the forms below.

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
        return spec if isinstance(spec, Space) else cls(parsing.parse(spec))

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

    @property
    def is_conditional(self) -> bool:
        """Whether a parameter is active at some values of others only."""
        return bool(self._conditions.allowed)

    @property
    def switches(self) -> tuple[str, ...]:
        """Names of the parameters that others are conditional on, each behind those that it is conditional on."""
        return self._conditions.switches

    @property
    def conditions(self) -> Mapping[str, Mapping[str, tuple[float, ...]]]:
        """For each conditional parameter the values, in internal form, of others at which it is active."""
        internal = self._conditions.internal
        allowed = self._conditions.allowed.items()
        return {name: {parent: internal(parent, at) for parent, at in above.items()} for name, above in allowed}

    @cached_property
    def is_discrete(self) -> bool:
        """Whether the space has finitely many points."""
        return all(column.n_values is not None for column in self.columns)

    @cached_property
    def cardinality(self) -> int | float:
        """Number of different points: an exact int, or `math.inf`."""
        return self._conditions.count()

    def active(self, params: Mapping[str, object]) -> tuple[str, ...]:
        """Names of the parameters that are active at the values that `params` gives for the switches.

        Raises:
            ArgumentError: a switch that is active has no value, or one that is not allowed.
        """
        return tuple(active_names(self._conditions, params, None))

    def internal(self, params_list: Sequence[Mapping[str, object]]) -> list[dict[str, float]]:
        """Values in internal form by column key, of points given as parameters; the errors are those of `encode`.

        Fixed parameters that are left out are filled in. Whole numbers beyond 2**53 become the nearest double.
        """
        return internal_points(self._conditions, params_list)

    def external(self, points: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
        """Parameters of points whose values are given in internal form by column key; other keys are ignored."""
        known = [(name, key, self.parameters[name]) for name, key in self._conditions.keys.items()]
        return [{name: p.external(point[key]) for name, key, p in known if key in point} for point in points]

    def settings(self, limit: int, fixed: Mapping[str, float] | None = None) -> list[dict[str, float]] | None:
        """All combinations of values that the switches can have, as points of the active ones.

        Args:
            limit: of their number.
            fixed: values of some parameters, switches or others, by column key and in internal form: only
                combinations at which these are active, and have these values.

        Returns:
            Points by column key, in internal form; [{}] in a space without conditions, None if there are too many.
        """
        return self._conditions.settings(limit, fixed or {})

    @cached_property
    def keyed(self) -> Mapping[str, Parameter]:
        """The parameters by column key."""
        return {self._conditions.keys[name]: parameter for name, parameter in self.items}

    def active_part(self, point: Mapping[str, float]) -> dict[str, float]:
        """A point, by column key and in internal form, without the values of parameters that are not active."""
        inactive = self.keyed.keys() - self._conditions.active_keys(point)
        return {key: value for key, value in point.items() if key not in inactive}

    def free_in(self, point: Mapping[str, float]) -> dict[str, Parameter]:
        """The active parameters, by column key, for which a point has no value; its values are in internal form."""
        return {key: self.keyed[key] for key in self._conditions.active_keys(point) if key not in point}

    def fixed(self, params: Mapping[str, object], argument: str = "fixed") -> dict[str, float]:
        """Values that are to be held, in internal form by column key; other parameters vary.

        Raises:
            ArgumentTypeError: no mapping.
            ArgumentError: an unknown name, a value that is not allowed, or parameters that are never active together;
                messages name the `argument`.
        """
        return fixed_values(self._conditions, params, argument)

    def encode(self, params_list: Sequence[Mapping[str, object]]) -> Tensor:
        """Encode points given as parameters.

        Args:
            params_list: for each point the values of its active parameters by name; fixed ones may be left out.
                Numpy's scalars will do, and whole floats for an `Int`.

        Returns:
            `X (n, d)`; the columns of parameters that are not active hold a constant.

        Raises:
            ArgumentTypeError: not a sequence of mappings.
            ArgumentError: a name unknown, missing or of a parameter that is not active, or a value that is not one of
                the parameter's: outside the bounds, off the grid (by more than 1e-8 steps), NaN, not a number, not
                among the choices.
        """
        rows = checked_points(self._conditions, params_list)
        X, places = np.empty((len(rows), self.dim)), places_of(rows)
        for name, parameter in self.items:
            have = [i for i, row in enumerate(rows) if name in row]
            positions = np.array([position_of(name, parameter, rows[i], places[i]) for i in have])
            if name in self._index:
                column = X[:, self._index[name]]
                column[:] = parameter.absent
                column[have] = parameter.scale.encoded(positions)
        return torch.from_numpy(X)

    def decode(self, X: Tensor) -> list[dict[str, Any]]:
        """Turn encoded points `X (n, d)` into their active parameters, each the nearest allowed value.

        Raises:
            ArgumentTypeError: `X` is no tensor or array.
            ArgumentError: `X` has the wrong shape, or NaN or infinite entries.
        """
        A = self._checked("X", X)
        values, positions = [], self._scales.nearest(A)
        for name, parameter in self.items:
            j = self._index.get(name)
            values.append([parameter.first] * len(A) if j is None else [*map(parameter.value, positions[j].tolist())])
        rows = [dict(zip(self.names, row, strict=True)) for row in zip(*values, strict=True)]
        for name, mask in self._masks(A).items():
            for i in np.flatnonzero(~mask):
                del rows[i][name]
        return rows

    def internal_columns(self, X: Tensor) -> dict[str, NDArray[np.float64]]:
        """Internal forms of what `decode` gives by column key, `(n,)`, or `(1,)` if fixed; NaN where not active."""
        A = self._checked("X", X)
        return internal_columns(self._conditions, {name: A[:, j] for name, j in self._index.items()}, self._masks(A))

    def snap(self, X: Tensor) -> Tensor:
        """Move encoded points `X (n, d)` to the nearest feasible ones, as distances are in the encoded scale.

        A continuum is clipped to [0, 1]; snapping twice changes nothing, to the last bit. The errors are `decode`'s.
        """
        return like(X, self._without_inactive(self._scales.snapped(self._checked("X", X))))

    def canonical(self, X: Tensor) -> Tensor:
        """Encode what `decode` makes of `X (n, d)`, to the last bit: equal points are equal rows, also on a continuum.

        The errors are `decode`'s.
        """
        return like(X, self._without_inactive(self._scales.canonical(self._checked("X", X))))

    def from_unit(self, U: Tensor) -> Tensor:
        """Map points of the unit cube `U (n, d)` into the space; an even distribution stays even.

        A continuum is taken as it is (clipped to [0, 1]). Values of a grid and choices have equal cells of [0, 1]; a
        whole number v on a log scale has the logarithmic width of [v - 1/2, v + 1/2]. The errors are `decode`'s.
        """
        return like(U, self._without_inactive(self._scales.spread(self._checked("U", U))))

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

    def neighbours(self, X: Tensor) -> tuple[Tensor, list[int]]:
        """Points `(k, d)` that differ from one of `X (n, d)`, once snapped, in one discrete parameter.

        Those of the first point come first; also returns the number of each point's neighbours, (n,). Choices, and
        values on grids of at most 12, change to every other one. Longer grids move by one and two steps and by a tenth
        of the encoded range, or to the end of the range where that is nearer. What becomes active is mid-range. k is 0
        in a space without discrete columns. The errors are `decode`'s.
        """
        A = self._without_inactive(self._scales.snapped(self._checked("X", X)))
        found, rows = self._moves.neighbours(A, self._active(A))
        if self.is_conditional:
            found = self._without_inactive(self._scales.snapped(found))
        return like(X, found), np.bincount(rows, minlength=len(A)).tolist()

    def all_points(self, limit: int) -> Tensor:
        """List every point of a discrete space, `(N, d)`; the last column changes fastest.

        Raises:
            ArgumentError: the space has more than `limit` points, or a continuum.
        """
        if not self.is_discrete or self.cardinality > limit:
            raise ArgumentError(f"limit: expected a space of at most {limit} points, got one of {self.cardinality}")
        if self.is_conditional:
            return self._all_active()
        sizes = [column.n_values or 0 for column in self.columns]
        X = np.empty((math.prod(sizes), self.dim))
        rows = np.arange(len(X))
        for j, scale in reversed(self._scales.gridded):
            rows, positions = np.divmod(rows, sizes[j])
            X[:, j] = scale.encoded(positions)
        return torch.from_numpy(X)

    def _all_active(self) -> Tensor:
        """Every point of a conditional space, `(N, d)`."""
        order = self._conditions.order
        found = self._conditions.combinations(order, {}, int(self.cardinality)) or []
        X = np.tile([parameter.absent for _, parameter in self._free], (len(found), 1))
        for j, (name, parameter) in enumerate(self._free):
            have = [i for i, positions in enumerate(found) if positions[name] is not None]
            X[have, j] = parameter.scale.encoded(np.array([found[i][name] for i in have], dtype=np.int64))
        return torch.from_numpy(X)

    def to_dict(self) -> dict[str, Any]:
        """Describe the space in JSON's terms; `from_dict` reads it back.

        Raises:
            ArgumentError: a choice that is not None, bool, int, float or str cannot be saved.
        """
        return {"parameters": parsing.describe(self.items)}

    @classmethod
    def from_dict(cls, description: Mapping[str, Any]) -> "Space":
        """Read what `to_dict` wrote.

        Raises:
            ArgumentError, ArgumentTypeError: a field is missing, unknown, of the wrong type or has a value that is
                not allowed.
        """
        if not isinstance(description, Mapping) or "parameters" not in description:
            raise ArgumentTypeError(f"description: expected a dict as to_dict returns it, got {shown(description)}")
        return cls(parsing.read_description(description["parameters"]))

    @cached_property
    def _free(self) -> tuple[tuple[str, Parameter], ...]:
        return tuple((name, parameter) for name, parameter in self.items if parameter.n_values != 1)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: j for j, (name, _) in enumerate(self._free)}

    @cached_property
    def _scales(self) -> Scales:
        return Scales(tuple(parameter.scale for _, parameter in self._free))

    @cached_property
    def _moves(self) -> Moves:
        return Moves(self._scales)

    def _checked(self, argument: str, X: Tensor) -> NDArray[np.float64]:
        A = as_array(argument, X)
        if A.ndim != 2 or A.shape[1] != self.dim:
            raise ArgumentError(f"{argument}: expected shape (n, {self.dim}), got {A.shape}")
        return A

    def _without_inactive(self, A: NDArray[np.float64]) -> NDArray[np.float64]:
        """Encoded points whose inactive columns hold their constants."""
        active = self._active(A)
        return A if active is None else np.where(active, A, [parameter.absent for _, parameter in self._free])

    def _active(self, A: NDArray[np.float64]) -> NDArray[np.bool_] | None:
        """Where the columns of encoded points `(n, d)` are active, (n, d); None for everywhere."""
        active = np.ones(A.shape, dtype=np.bool_) if self.is_conditional else None
        for name, mask in self._masks(A).items():
            if active is not None and name in self._index:
                active[:, self._index[name]] = mask
        return active

    def _masks(self, A: NDArray[np.float64]) -> Mapping[str, NDArray[np.bool_]]:
        """Where each conditional parameter is active in encoded points `(n, d)`."""
        if not self.is_conditional:
            return {}
        at = {name: self._index.get(name) for name in self.switches}
        fixed = np.zeros(len(A), dtype=np.int64)
        positions = {
            name: fixed if j is None else self.parameters[name].scale.nearest(A[:, j]) for name, j in at.items()
        }
        return self._conditions.masks(positions)

    @cached_property
    def _conditions(self) -> Conditions:
        return Conditions.of(dict(self.items))
