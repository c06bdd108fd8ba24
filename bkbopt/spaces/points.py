"""Checks of points: dicts of values by name, as users write them, and encoded rows."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.base import Params, Point
from bkbopt.spaces.conditions import Conditions
from bkbopt.spaces.parameters import Parameter
from bkbopt.spaces.values import shown, with_hint

__all__ = [
    "active_names",
    "as_array",
    "checked_points",
    "fixed_values",
    "in_row",
    "internal_columns",
    "internal_points",
    "like",
    "listed",
    "name_faults",
    "places_of",
    "position_of",
    "with_values",
]

#: What the names of parameters begin with in a table of trials.
OF_TABLES = "params_"


def checked_points(conditions: Conditions, params_list: object) -> list[Params]:
    """The points, each with the names of its active parameters, fixed ones filled in; values are not checked.

    Raises:
        ArgumentTypeError: not a sequence of mappings.
        ArgumentError: a name unknown, missing, or of a parameter that is not active.
    """
    if not isinstance(params_list, Sequence) or isinstance(params_list, str):
        raise ArgumentTypeError(f"params_list: expected a list of dicts, got {shown(params_list)}: use [params]")
    known, fixed = conditions.parameters, conditions.fixed
    active = list(known)
    out: list[Params] = []
    for i, row in zip(places_of(params_list), params_list, strict=True):
        if not isinstance(row, Mapping):
            raise ArgumentTypeError(f"params: expected a dict{in_row(i)}, got {with_hint(row, shown(row))}")
        if conditions.allowed:
            active = active_names(conditions, row, i)
        unknown, missing = row.keys() - known.keys(), set(active) - fixed.keys() - row.keys()
        if unknown or missing:
            reason = _reason(conditions, row, min(missing)) if missing else ""
            fault = name_faults(unknown, missing)
            raise ArgumentError(f"params: expected values for {listed(active)}{in_row(i)}, got {fault}{reason}")
        inactive = row.keys() - set(active)
        if inactive:
            name = min(inactive)
            raise ArgumentError(
                f"params: expected nothing for {name!r}{in_row(i)}, got {shown(row[name])}"
                f"{_reason(conditions, row, name)}: leave it out"
            )
        out.append({name: row[name] if name in row else fixed[name] for name in active})
    return out


def places_of(rows: Sequence[object]) -> Sequence[int | None]:
    """The places of points for messages: from 0 on, or None if there is only one."""
    return range(len(rows)) if len(rows) > 1 else [None] * len(rows)


def in_row(i: int | None) -> str:
    """A place among several points as text."""
    return "" if i is None else f" in row {i}"


def active_names(conditions: Conditions, row: Params, i: int | None) -> list[str]:
    """The parameters that are active in a point, which gives the values of its active switches; in their order.

    Raises:
        ArgumentError: a switch that is active has no value, or one that is not allowed.
    """
    positions: dict[str, int | None] = {}
    for name in conditions.switches:
        if not conditions.is_active(name, positions):
            continue
        parameter = conditions.parameters[name]
        if name in row:
            position = position_of(name, parameter, row, i)
            positions[name] = int(position) if parameter.n_values != 1 else 0
        elif parameter.n_values == 1:
            positions[name] = 0
        else:
            reason = _reason(conditions, row, name)
            raise ArgumentError(f"params: expected a value for {name!r}{in_row(i)}, got none{reason}")
    return [name for name in conditions.parameters if conditions.is_active(name, positions)]


def position_of(name: str, parameter: Parameter, row: Params, i: int | str | None) -> float | int:
    """The position of the value of one parameter; for messages, i is its place or the name of an argument.

    Raises:
        ArgumentError: the value is not one of the parameter's.
    """
    position = parameter.locate(row[name])
    if position is None:
        where = f"{i}: parameter {name!r}" if isinstance(i, str) else f"parameter {name!r}{in_row(i)}"
        raise ArgumentError(f"{where}: expected {parameter.expected}, got {shown(row[name])}")
    return position


def internal_points(conditions: Conditions, params_list: object) -> list[dict[str, float]]:
    """See `Space.internal`."""
    points = checked_points(conditions, params_list)
    return [_internal(conditions, row, i) for i, row in zip(places_of(points), points, strict=True)]


def internal_columns(
    conditions: Conditions, encoded: Mapping[str, NDArray[np.float64]], masks: Mapping[str, NDArray[np.bool_]]
) -> dict[str, NDArray[np.float64]]:
    """See `Space.internal_columns`; `encoded` are the columns of the parameters that vary."""
    columns = {}
    for name, parameter in conditions.parameters.items():
        if name in encoded:
            internal = np.asarray(parameter.scale.nearest(encoded[name]))
            if parameter.n_values is not None:  # on a continuum positions are the values
                # Points of plots have few distinct values in a column.
                distinct, places = np.unique(internal, return_inverse=True)
                internal = np.array([parameter.internal_at(position) for position in distinct])[places]
        else:
            internal = np.array(parameter.internal_values)
        columns[conditions.keys[name]] = np.where(masks.get(name, True), internal, np.nan)
    return columns


def fixed_values(conditions: Conditions, params: object, argument: str) -> dict[str, float]:
    """See `Space.fixed`."""
    if not isinstance(params, Mapping):
        raise ArgumentTypeError(f"{argument}: expected a dict of parameters, got {with_hint(params, shown(params))}")
    unknown = params.keys() - conditions.parameters.keys()
    if unknown:
        raise ArgumentError(f"{argument}: expected names among {listed(conditions.parameters)}, got {listed(unknown)}")
    point = _internal(conditions, params, argument)
    if not conditions.count(point):
        raise ArgumentError(
            f"{argument}: expected parameters that can be active together, got {shown(dict(params))}; see their "
            "conditions"
        )
    return point


def _internal(conditions: Conditions, row: Params, i: int | str | None) -> dict[str, float]:
    """The internal forms of a point's values by column key."""
    return {
        conditions.keys[name]: parameter.internal_at(position_of(name, parameter, row, i))
        for name, parameter in conditions.parameters.items()
        if name in row
    }


def _reason(conditions: Conditions, row: Params, name: str) -> str:
    """The condition of a parameter and the point's values for it, as a text for messages."""
    when = conditions.parameters[name].when
    if when is None:
        return ""
    parts = [f"{parent!r} is {' or '.join(map(shown, values))}" for parent, values in when.items()]
    given = [f"{parent!r} is {shown(row[parent])}" if parent in row else f"{parent!r} is not there" for parent in when]
    return f" (it is active where {' and '.join(parts)}; here {' and '.join(given)})"


def listed(names: Iterable[object]) -> str:
    """Names for a message, in order."""
    return ", ".join(sorted(map(repr, names)))


def name_faults(unknown: Collection[str], missing: Collection[str]) -> str:
    """What is wrong with the names of a point, for a message; of a misspelt one both halves."""
    faults = [f"{what} {listed(names)}" for what, names in (("unknown", unknown), ("nothing for", missing)) if names]
    if {name.removeprefix(OF_TABLES) for name in unknown if isinstance(name, str)} & set(missing):
        return f"{' and '.join(faults)}; of a table of trials leave out the prefix {OF_TABLES!r} of the names"
    return " and ".join(faults) + ("" if missing else ": leave it out")


def as_array(argument: str, X: object) -> NDArray[np.float64]:
    """Encoded points as a new array; refuses what is not numeric or not finite."""
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


def like(X: Tensor, out: NDArray[np.float64]) -> Tensor:
    """An array as a tensor on the device of `X`."""
    return torch.from_numpy(out).to(X.device if isinstance(X, Tensor) else "cpu")


def with_values(values: Point, points: Sequence[Point], slack: Mapping[str, float]) -> list[Point]:
    """Those of the points, which may have further parameters, that have these values, up to rounding.

    Values of a column that differ by more than its `slack` are different, however large they are.
    """
    # Column by column, since most points differ in the first one; to encode the points would take ten times as long.
    found = list(points)
    for key, value in values.items():
        found = [point for point in found if key in point and math.isclose(point[key], value, rel_tol=1e-9)]
        found = [point for point in found if abs(point[key] - value) <= slack.get(key, math.inf)]
    return found
