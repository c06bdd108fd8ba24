"""Search spaces in the forms that users write, and in the form that is saved."""

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.parameters import Categorical, Float, Int, Ordinal, Parameter
from bkbopt.spaces.values import as_python, shown

__all__ = ["FIELDS", "check_items", "describe", "looks_like_bounds", "made", "parse", "read_description"]

T = TypeVar("T")
Items = tuple[tuple[str, Parameter], ...]

_CLASSES: dict[str, type[Parameter]] = {cls.kind: cls for cls in (Float, Int, Categorical, Ordinal)}
_NUMERIC = ("low", "high", "log", "step")
#: The fields of each kind of parameter, without its condition.
FIELDS = {"float": _NUMERIC, "int": _NUMERIC, "categorical": ("choices",), "ordinal": ("values",)}


def parse(spec: object) -> Items:
    """Read the forms that `Space.parse` lists, except a `Space` itself."""
    build: Callable[[Any], Parameter] = _parse_value
    if isinstance(spec, Mapping):
        entries = dict(spec)
    elif isinstance(spec, (list, tuple, np.ndarray)):
        rows = spec.tolist() if isinstance(spec, np.ndarray) else spec
        build, entries = _parse_bounds, {f"x{i}": value for i, value in enumerate(rows)}
    else:
        raise ArgumentTypeError(
            f"space: expected a dict of parameters or a list of (low, high) pairs, got {_with_type(spec)}"
        )
    items = tuple((name, _named(name, build, value)) for name, value in entries.items())
    for name, value in entries.items():
        if isinstance(value, tuple) and all(type(as_python(bound)) is int for bound in value):
            low, high = map(as_python, value)
            _warn_once(
                f"parameter {name!r}: ({low}, {high}) is a range of real numbers; write bo.Int({low}, {high}) for "
                f"whole numbers, or ({float(low)}, {float(high)}) for real ones."
            )
        elif build is _parse_value and looks_like_bounds(value):
            low, high = map(as_python, value)
            _warn_once(
                f"parameter {name!r}: [{low}, {high}] is a set of two choices; write ({low}, {high}) for the range "
                f"between them, or bo.Categorical([{low}, {high}]) for the choices."
            )
    return items


def check_items(items: object) -> None:
    """Refuse what is no tuple of at least one pair of a name and a parameter, as the forms that `parse` reads."""
    if not isinstance(items, tuple) or not all(isinstance(item, tuple) and len(item) == 2 for item in items):
        raise ArgumentTypeError(
            f"items: expected a tuple of pairs (name, parameter), got {_with_type(items)}: make a space of a dict or "
            "of bounds with Space.parse"
        )
    if not items:
        raise ArgumentError("space: expected at least one parameter, got none")
    for name, parameter in items:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"space: expected names that are strings, got {shown(name)}")
        if not isinstance(parameter, Parameter):
            raise ArgumentTypeError(
                f"items: expected for {name!r} a Float, Int, Categorical or Ordinal, got {_with_type(parameter)}: "
                "Space.parse reads other forms"
            )


def describe(items: Items) -> list[dict[str, Any]]:
    """Describe parameters in JSON's terms."""
    return [{"name": name, **_named(name, _describe_parameter, parameter)} for name, parameter in items]


def read_description(description: object) -> Items:
    """Read what `describe` wrote."""
    if not isinstance(description, list):
        raise ArgumentTypeError(f"parameters: expected a list of descriptions, got {shown(description)}")
    return tuple(map(_read_parameter, description))


def made(name: object, kind: str, fields: Mapping[str, Any]) -> Parameter:
    """The parameter of a kind with these fields; its errors name it."""
    return _named(name, lambda given: _CLASSES[kind](**given), fields)


def _named(name: object, build: Callable[[Any], T], value: object) -> T:
    try:
        return build(value)
    except (ArgumentError, ArgumentTypeError) as error:
        raise type(error)(f"parameter {name!r}: {error}") from None


def _parse_value(value: object) -> Parameter:
    if isinstance(value, Parameter):
        return value
    if isinstance(value, tuple):
        return _parse_bounds(value)
    if isinstance(value, range):
        return _parse_range(value)
    if isinstance(value, (list, set, frozenset)):
        return Categorical(value)  # type: ignore[arg-type]  # a set is put in order
    kind = {base.__name__ for base in type(value).__mro__} & _DISTRIBUTIONS.keys()
    if kind:
        return _DISTRIBUTIONS[kind.pop()](value)
    if value is None or isinstance(value, (bool, int, float, str, np.bool_, np.integer, np.floating)):
        return _fixed(value)
    if hasattr(value, "__iter__") and not isinstance(value, bytes | Mapping):  # arrays, series, generators and others
        raise ArgumentTypeError(
            f"expected a list of choices, got {type(value).__name__}; pass bo.Categorical(values), or, if they have an "
            "order, bo.Ordinal(values)"
        )
    raise ArgumentTypeError(
        "expected a Float, Int, Categorical, Ordinal, a tuple (low, high), a range, a list of choices, an Optuna"
        f" distribution or a number, string, bool or None as a fixed value, got {_with_type(value)}"
    )


def looks_like_bounds(value: Any) -> bool:
    """Whether a list is two floats in order, as bounds are in some other packages."""
    if not isinstance(value, list) or len(value) != 2:
        return False
    low, high = map(as_python, value)
    return type(low) is float and type(high) is float and low < high


def _parse_bounds(value: object) -> Parameter:
    if isinstance(value, Parameter):
        return value
    if not isinstance(value, (tuple, list)):
        raise ArgumentTypeError(f"expected a pair (low, high), got {_with_type(value)}")
    if len(value) != 2:
        raise ArgumentError(f"expected a pair (low, high), got {shown(value)}: choices are given as a list in a dict")
    return Float(*value)


def _parse_range(values: range) -> Int:
    if not values:
        raise ArgumentError(f"expected a range with at least one value, got {values!r}")
    low, high = sorted((values[0], values[-1]))
    return Int(low, high, step=abs(values.step) if low < high else 1)


_has_warned = False


def _warn_once(text: str) -> None:
    """Warn of what may be meant otherwise, once in a process."""
    global _has_warned  # noqa: PLW0603
    if not _has_warned:
        warnings.warn(text, UserWarning, stacklevel=3)
    _has_warned = True


def _fixed(value: Any) -> Parameter:
    value = as_python(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return Int(value, value)  # rather than a choice, so that a whole float (from a data frame) matches
    if isinstance(value, float) and math.isfinite(value):
        return Float(value, value)
    return Categorical([value])


# Recognised by name, so that Optuna need not be installed.
_DISTRIBUTIONS: dict[str, Callable[[Any], Parameter]] = {
    "FloatDistribution": lambda given: Float(given.low, given.high, log=given.log, step=given.step),
    "IntDistribution": lambda given: Int(given.low, given.high, log=given.log, step=given.step),
    "CategoricalDistribution": lambda given: Categorical(given.choices),
}


def _describe_parameter(parameter: Parameter) -> dict[str, Any]:
    out: dict[str, Any] = {"type": parameter.kind}
    for name in FIELDS[parameter.kind]:
        value = getattr(parameter, name)
        out[name] = list(map(_describe_choice, value)) if isinstance(value, tuple) else value
    if parameter.when is not None:
        out["when"] = {parent: list(map(_describe_choice, values)) for parent, values in parameter.when.items()}
    return out


def _describe_choice(choice: object) -> object:
    if choice is not None and type(choice) not in (bool, int, float, str):
        raise ArgumentError(
            f"expected choices that can be saved (None, bool, int, float, str), got {_with_type(choice)}:"
            " use strings as choices and look the objects up by them"
        )
    # Strict JSON cannot represent NaN and the infinities.
    return {"float": repr(choice)} if isinstance(choice, float) and not math.isfinite(choice) else choice


def _read_parameter(entry: object) -> tuple[str, Parameter]:
    fields = dict(entry) if isinstance(entry, Mapping) else {}
    name, kind = fields.pop("name", None), fields.pop("type", None)
    if not isinstance(kind, str) or set(fields) - {"when"} != set(FIELDS.get(kind, ())) or not fields:
        raise ArgumentError(f"parameters: expected a description of a parameter, got {shown(entry)}")
    for key in {"choices", "values"} & set(fields):
        fields[key] = _named(name, _read_choices, fields[key])
    if isinstance(fields.get("when"), dict):
        fields["when"] = {parent: _named(name, _read_choices, values) for parent, values in fields["when"].items()}
    return name, made(name, kind, fields)


def _read_choices(choices: object) -> object:
    return list(map(_read_choice, choices)) if isinstance(choices, list) else choices


def _read_choice(choice: object) -> object:
    if not isinstance(choice, (dict, list)):
        return choice
    word = choice.get("float") if isinstance(choice, dict) else None
    if word not in ("inf", "-inf", "nan"):
        raise ArgumentError(f"expected a saved choice, got {shown(choice)}")
    return float(word)


def _with_type(value: object) -> str:
    return f"{shown(value)} of type {type(value).__name__}"
