"""Conversion of a VOCS to a space, directions, and limits of constraints.

| VOCS | bkbopt |
| --- | --- |
| `ContinuousVariable`, `dtype` none or a float | `Float` |
| `ContinuousVariable`, `dtype` an integer | `Int` |
| `DiscreteVariable` of finite numbers | `Ordinal`, in ascending order |
| another `DiscreteVariable` | `Categorical` |
| "LESS_THAN", v | (None, v) |
| "GREATER_THAN", v | (v, None) |
| "BOUNDS", a, b | (a, b) |
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gest_api.vocs import (
    VOCS,
    BoundsConstraint,
    ContextualVariable,
    ContinuousVariable,
    DiscreteVariable,
    GreaterThanConstraint,
    LessThanConstraint,
    MaximizeObjective,
    MinimizeObjective,
)

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.parameters import Categorical, Float, Int, Ordinal, Parameter
from bkbopt.spaces.space import Space
from bkbopt.spaces.values import is_real, shown

__all__ = ["ID", "TranslatedProblem", "problem_of"]

#: The key of a suggestion's identifier.
ID = "_id"

#: A lower and an upper limit, None for one that there is not.
Pair = tuple[float | None, float | None]

_DIRECTIONS = {MinimizeObjective: "minimize", MaximizeObjective: "maximize"}


@dataclass(frozen=True)
class TranslatedProblem:
    """A VOCS as arguments of an optimizer.

    Attributes:
        space: the space of the variables.
        directions: "minimize" or "maximize" by name of the objective.
        limits: the finite limits (low, high) of each constraint by name.
        constants: values by name.
        observables: names of outputs that are kept with the trials.
    """

    space: Space
    directions: Mapping[str, str]
    limits: Mapping[str, Pair]
    constants: Mapping[str, Any]
    observables: tuple[str, ...]


def problem_of(vocs: Any) -> TranslatedProblem:
    """The problem of a VOCS.

    Raises:
        ArgumentTypeError: `vocs` is not a VOCS.
        ArgumentError: a variable, an objective or a constraint that is not supported, no variable or no objective, or
            a name that is used twice.
    """
    if not isinstance(vocs, VOCS):
        raise ArgumentTypeError(f"vocs: expected a gest_api.vocs.VOCS, got {type(vocs).__name__}.")
    for kind, named in (("variable", vocs.variables), ("objective", vocs.objectives)):
        if not named:
            raise ArgumentError(f"vocs: expected at least one {kind}, got none.")
    meanings = Counter([*vocs.variables, *vocs.constants, *vocs.output_names, ID])
    doubled = [name for name, times in meanings.items() if times > 1]
    if doubled:
        raise ArgumentError(
            f"vocs: expected distinct names of variables, constants and outputs, none of them {ID!r}, got "
            f"{doubled[0]!r} twice."
        )
    return TranslatedProblem(
        Space(tuple((name, _parameter(name, variable)) for name, variable in vocs.variables.items())),
        {name: _direction(name, objective) for name, objective in vocs.objectives.items()},
        _limits(vocs.constraints),
        {name: constant.value for name, constant in vocs.constants.items()},
        tuple(vocs.observables),
    )


def _parameter(name: str, variable: Any) -> Parameter:
    where = f"vocs: variable {name!r}:"
    try:
        dtype = np.dtype(float if variable.dtype is None else variable.dtype)
    except TypeError:
        raise ArgumentError(f"{where} expected a dtype of NumPy, got {shown(variable.dtype)}.") from None
    if dtype.shape:
        raise ArgumentError(f"{where} expected a scalar, got dtype shape {dtype.shape}; use one variable per entry.")
    if isinstance(variable, DiscreteVariable):
        return _listed(variable.values)
    if isinstance(variable, ContextualVariable) or not isinstance(variable, ContinuousVariable):
        raise ArgumentError(f"{where} expected a continuous or discrete variable, got a {type(variable).__name__}.")
    if dtype.kind not in "fiu":
        raise ArgumentError(f"{where} expected a dtype of floats or integers, got {dtype}.")
    try:
        return (Float if dtype.kind == "f" else Int)(*variable.domain)
    except ArgumentError as error:
        raise ArgumentError(f"{where} {error}.") from None


def _listed(values: set[Any]) -> Parameter:
    """The parameter of a set of values: numbers, sorted, as `Ordinal`; other values as `Categorical`."""
    if all(is_real(value) and abs(value) < math.inf for value in values):
        return Ordinal(sorted(values))
    return Categorical(values)  # type: ignore[arg-type]  # `Categorical` sorts sets


def _direction(name: str, objective: Any) -> str:
    for kind, direction in _DIRECTIONS.items():
        if isinstance(objective, kind):
            return direction
    raise ArgumentError(
        f'vocs: objective {name!r}: expected "MINIMIZE" or "MAXIMIZE", got a {type(objective).__name__}; make '
        "outputs that are not optimised observables."
    )


def _limits(constraints: Mapping[str, Any]) -> dict[str, Pair]:
    """The limits of the constraints that have a finite one."""
    limits = {name: _limit(name, constraint) for name, constraint in constraints.items()}
    return {name: limit for name, limit in limits.items() if limit != (None, None)}


def _limit(name: str, constraint: Any) -> Pair:
    if isinstance(constraint, LessThanConstraint):
        low, high = -math.inf, constraint.value
    elif isinstance(constraint, GreaterThanConstraint):
        low, high = constraint.value, math.inf
    elif isinstance(constraint, BoundsConstraint):
        low, high = constraint.range
    else:
        raise ArgumentError(
            f'vocs: constraint {name!r}: expected "LESS_THAN", "GREATER_THAN" or "BOUNDS", got a '
            f"{type(constraint).__name__}."
        )
    for bound, worst in ((low, math.inf), (high, -math.inf)):
        if math.isnan(bound) or bound == worst:
            raise ArgumentError(f"vocs: constraint {name!r}: expected a bound that can be satisfied, got {bound!r}.")
    return low if math.isfinite(low) else None, high if math.isfinite(high) else None
