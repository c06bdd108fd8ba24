"""Names of objectives: their columns in tables, and values that are told by name.

The module imports neither torch nor NumPy.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bkbopt.errors import ArgumentError, ArgumentTypeError

__all__ = ["aims_of", "apart", "by_label", "columns_of", "in_order", "named_directions", "stored_names"]


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
        raise ArgumentError(f"{argument}: expected the objectives {tuple(names)}, got {tuple(given)}.")
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


def apart(argument: str, given: Any, names: Sequence[str], *, many: bool) -> tuple[Any, dict[str, Any]]:
    """What is given by name, as `tell` takes it without names, and the other items.

    All else, and all if there are no names, stays as it is.

    Args:
        argument: the name of what is given, for messages.
        given: anything; by name are a mapping or a table, and for `many` trials a list of mappings, too. Items of a
            mapping for many trials are numbers for each trial, names of columns, or a number for all.
        names: names of the objectives.
        many: whether it is for many trials.

    Returns:
        The values, and the other items by name: of a list of mappings a list for each, with None where it is missing.

    Raises:
        ArgumentError: as in `in_order`, or different numbers of items.
    """
    if not names:
        return given, {}
    if hasattr(given, "columns") or not many:  # of many trials a series has a number for each
        given = by_label(given, names)
    if isinstance(given, Mapping):
        parts = in_order(argument, given, names)
        others = {name: item for name, item in given.items() if name not in names and isinstance(name, str)}
        if len(parts) == 1:
            return parts[0], others
        return (_as_rows(argument, parts, names) if many else parts), others
    if many and isinstance(given, list | tuple):
        labelled = [by_label(one, names) for one in given]
        if any(isinstance(one, Mapping) for one in labelled):
            rows = [apart(argument, one, names, many=False) for one in labelled]
            known = dict.fromkeys(name for _, others in rows for name in others)
            return [one for one, _ in rows], {name: [others.get(name) for _, others in rows] for name in known}
    return given, {}


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
