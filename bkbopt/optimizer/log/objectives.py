"""Names of objectives: their columns in tables, and values that are told by name.

The module imports neither torch nor NumPy.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bkbopt.errors import ArgumentError, ArgumentTypeError

__all__ = [
    "Named",
    "aims_of",
    "apart",
    "by_label",
    "columns_of",
    "in_order",
    "is_pair",
    "named_directions",
    "stored_names",
]


def columns_of(stem: str, k: int, names: Sequence[str]) -> list[str]:
    """The columns "value" or "std" of each of `k` objectives, named as in Optuna's tables.

    Without names they are value, or values_0, values_1, ...; with names value_loss, or values_loss, values_time, ...
    """
    if names:
        return [f"{stem}{'s' * (k > 1)}_{name}" for name in names]
    return [stem] if k == 1 else [f"{stem}s_{j}" for j in range(k)]


def named_directions(directions: Sequence[str], names: Sequence[str]) -> tuple[str, ...] | dict[str, str]:
    """The directions as they were given: by name, if the objectives have names."""
    return dict(zip(names, directions, strict=True)) if names else tuple(directions)


def stored_names(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the objectives in the options of a log, which logs of earlier versions do not have.

    Raises:
        ValueError: no distinct names, one for each objective.
    """
    names, k = options.get("objectives"), len(options["directions"])
    if names is None:
        return ()
    is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not is_list or not len(set(names)) == len(names) == k:
        raise ValueError(f"{names!r} as names of {k} objectives")
    return tuple(names)


def aims_of(directions: Sequence[str], names: Sequence[str]) -> str:
    """What is minimised and maximised, as text: "minimize" or "minimize loss, maximize power"."""
    return ", ".join(map(" ".join, zip(directions, names, strict=True)) if names else directions)


def in_order(argument: str, given: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """The items of a mapping in the order of the objectives.

    Args:
        argument: the name of what is given, for messages.
        given: the mapping.
        names: names of the objectives.

    Raises:
        ArgumentTypeError: the objectives have no names.
        ArgumentError: an objective is missing.
    """
    if not names:
        raise ArgumentTypeError(
            f"{argument}: expected numbers, since the objectives have no names, got {dict(given)!r}; name them with "
            "directions={name: direction}."
        )
    if not all(name in given for name in names):
        advice = "" if len(names) == 1 else "; of one that is not measured give None"
        raise ArgumentError(f"{argument}: expected the objectives {tuple(names)}, got {tuple(given)}{advice}.")
    return [given[name] for name in names]


def by_label(given: Any, names: Sequence[str]) -> Any:
    """A data frame, or a series, with labels that are names of objectives as a dict; all else as it is."""
    if not hasattr(given, "iloc"):
        return given
    labels = list(given.columns if hasattr(given, "columns") else given.index)
    if not any(name in labels for name in names):
        return given
    parts = [part.tolist() for _, part in given.items()] if hasattr(given, "columns") else given.tolist()
    return dict(zip(labels, parts, strict=True))


@dataclass(frozen=True)
class Named:
    """What was told by name.

    Attributes:
        values: as `tell` takes them without names.
        stds: the standard deviations that came with them, in the same form; None without any.
        others: the other items by name: of a list of mappings a list for each, with None where it is missing.
    """

    values: Any
    stds: Any = None
    others: Mapping[str, Any] = field(default_factory=dict)


def apart(argument: str, given: Any, names: Sequence[str], *, many: bool) -> Named:
    """What is given by name, taken apart; all else, and all if there are no names, are the values as they are.

    Args:
        argument: the name of what is given, for messages.
        given: anything; by name are a mapping or a table, and for `many` trials a list of mappings, too. Items of a
            mapping for one trial are numbers, or pairs (value, standard deviation of its noise); of a mapping for many
            trials numbers for each trial, names of columns, or pairs of these and deviations; or a number for all.
        names: names of the objectives.
        many: whether it is for many trials.

    Raises:
        ArgumentError: as in `in_order`, or different numbers of items.
    """
    if not names:
        return Named(given)
    if hasattr(given, "columns") or not many:  # of many trials a series has a number for each
        given = by_label(given, names)
    if isinstance(given, Mapping):
        parts = in_order(argument, given, names)
        others = {name: item for name, item in given.items() if name not in names and isinstance(name, str)}
        if many:
            return _columns(argument, parts, names, others)
        pairs = [part if is_pair(part) else (part, math.nan) for part in parts]
        values, stds = (row[0] if len(row) == 1 else list(row) for row in zip(*pairs, strict=True))
        return Named(values, stds if any(map(is_pair, parts)) else None, others)
    if many and isinstance(given, list | tuple):
        labelled = [by_label(one, names) for one in given]
        if any(isinstance(one, Mapping) for one in labelled):
            return _joined([apart(argument, one, names, many=False) for one in labelled], len(names))
    return Named(given)


def is_pair(part: Any) -> bool:
    """Whether something is a value with its standard deviation; a list may be several values."""
    return isinstance(part, tuple) and len(part) == 2


def _joined(rows: Sequence[Named], k: int) -> Named:
    """What was told of many trials, one by one."""
    unknown = math.nan if k == 1 else [math.nan] * k
    stds = [unknown if row.stds is None else row.stds for row in rows]
    known = dict.fromkeys(name for row in rows for name in row.others)
    return Named(
        [row.values for row in rows],
        stds if any(row.stds is not None for row in rows) else None,
        {name: [row.others.get(name) for row in rows] for name in known},
    )


def _columns(argument: str, parts: list[Any], names: Sequence[str], others: Mapping[str, Any]) -> Named:
    """The values of many trials by objective, of which some are pairs of values and their standard deviations."""
    are_pairs = [is_pair(part) and (_is_list(part[0]) or isinstance(part[0], str)) for part in parts]
    pairs = [part if is_one else (part, None) for part, is_one in zip(parts, are_pairs, strict=True)]
    if len(parts) == 1:
        return Named(pairs[0][0], pairs[0][1], others)
    values, stds = _as_rows(argument, [value for value, _ in pairs], names), [std for _, std in pairs]
    if not any(are_pairs):
        return Named(values, None, others)
    if any(map(_is_list, stds)):  # a single number is that of all trials, and without one it is unknown
        n = len(values)
        stds = [std if _is_list(std) else [math.nan if std is None else std] * n for std in stds]
        return Named(values, _as_rows("std", stds, names), others)
    return Named(values, stds, others)


def _as_rows(argument: str, parts: list[Any], names: Sequence[str]) -> list[Any]:
    """Numbers of each objective as rows of numbers; names of columns, or numbers for all trials, as they are."""
    lists = [list(part) if _is_list(part) else None for part in parts]
    whole = [part for part in lists if part is not None]
    if not whole:
        return parts
    if len(whole) < len(parts) or len(set(map(len, whole))) > 1:
        got = {name: "no list" if part is None else len(part) for name, part in zip(names, lists, strict=True)}
        raise ArgumentError(f"{argument}: expected a list for each objective, all of one length, got lengths {got}.")
    return [list(row) for row in zip(*whole, strict=True)]


def _is_list(part: Any) -> bool:
    """Whether it has a number for each trial: neither a name, nor a number, as an array without dimensions is."""
    return isinstance(part, Iterable) and not isinstance(part, str) and getattr(part, "shape", None) != ()
