"""Conversion of evaluated points of gest-api to arguments of `tell`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bkbopt.adapters.gest.problem import ID, TranslatedProblem
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer.log.attributes import storable_attrs
from bkbopt.optimizer.log.trials import Trial
from bkbopt.spaces.parameters import Parameter
from bkbopt.spaces.values import as_float, as_python, as_whole, is_missing, is_real, shown

__all__ = ["evaluated_point"]

#: Largest relative difference between an ingested number and the suggested one; single precision and text round.
ROUNDING = 1e-5


@dataclass(frozen=True)
class EvaluatedPoint:
    """An evaluated point.

    Attributes:
        target: id of its trial, or its variables if it was not suggested.
        values: values of the objectives; NaN for missing ones.
        measured: values of the constraints by name; NaN for missing ones.
        observed: the observables that a log can store.
    """

    target: int | dict[str, Any]
    values: tuple[float, ...]
    measured: Mapping[str, float]
    observed: Mapping[str, Any]


def evaluated_point(i: int, row: Any, problem: TranslatedProblem, trials: Sequence[Trial]) -> EvaluatedPoint:
    """The point in row `i` of the ingested results; `trials` are those of the optimizer.

    Raises:
        ArgumentError: see `BKBGenerator.ingest`.
        ArgumentTypeError: the row is not a dict, or a value is not a number.
    """
    if not isinstance(row, Mapping):
        raise ArgumentTypeError(f"results: expected a list of dicts, got a {type(row).__name__} as point {i}.")
    trial = _trial(i, row, trials)
    target = _variables(i, row, problem) if trial is None else _agreeing(i, row, problem, trial)
    values = tuple(_number(i, row, name) for name in problem.directions)
    measured = {name: _number(i, row, name) for name in problem.limits}
    absent = [name for name in measured if name not in row]
    if absent and all(map(math.isfinite, values)):
        raise ArgumentError(
            f"results: expected the constraint {absent[0]!r} in point {i}, which has objectives; if the evaluation "
            "failed, leave the objectives out too, or set them to NaN."
        )
    observed = storable_attrs({name: row[name] for name in problem.observables if name in row})
    return EvaluatedPoint(target, values, measured, observed)


def _trial(i: int, row: Mapping[str, Any], trials: Sequence[Trial]) -> Trial | None:
    """The trial of a suggested point; None for points that were not suggested."""
    given = as_python(row.get(ID))
    if is_missing(given):  # a table has NaN for rows without an id
        return None
    number = as_whole(given)
    if number is None or not 0 <= number < len(trials):
        raise ArgumentError(
            f"results: expected the {ID!r} of a suggestion, got {shown(given)} in point {i}; leave it out for points "
            "that were not suggested."
        )
    return trials[number]


def _variables(i: int, row: Mapping[str, Any], problem: TranslatedProblem) -> dict[str, Any]:
    params = {}
    for name, parameter in problem.space.items:
        if name not in row:
            raise ArgumentError(
                f"results: expected all variables in a point without {ID!r}, got point {i} without {name!r}."
            )
        params[name] = as_python(row[name])
        if parameter.locate(params[name]) is None:
            raise ArgumentError(
                f"results: expected for {name!r} {parameter.expected}, got {shown(params[name])} in point {i}."
            )
    return params


def _agreeing(i: int, row: Mapping[str, Any], problem: TranslatedProblem, trial: Trial) -> int:
    """The id of the trial, checked to have the same variables as the point, as far as the point has them."""
    for name, parameter in problem.space.items:
        if name in row and not _is_same(parameter, as_python(row[name]), trial.params[name]):
            raise ArgumentError(
                f"results: expected {name!r} as suggested with {ID!r} {trial.id}, {shown(trial.params[name])}, got "
                f"{shown(row[name])} in point {i}; leave {ID!r} out for a point that was not suggested."
            )
    return trial.id


def _is_same(parameter: Parameter, given: Any, suggested: Any) -> bool:
    found = parameter.locate(given)
    is_rounded = found is None or parameter.kind == "float"  # a listed number may be in single precision
    if is_rounded and is_real(given) and is_real(suggested):
        return math.isclose(as_float(given), as_float(suggested), rel_tol=ROUNDING)
    return found == parameter.locate(suggested)


def _number(i: int, row: Mapping[str, Any], name: str) -> float:
    """An output; NaN if it is missing."""
    value = as_python(row.get(name))
    if is_missing(value):
        return math.nan
    if not is_real(value):
        raise ArgumentTypeError(f"results: expected a number for {name!r}, got {shown(value)} in point {i}.")
    return as_float(value)
