"""Names of objectives and of columns, as they are given: with directions, in lists, and for one of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from bkbopt._support.checks import check_choice, check_count
from bkbopt.errors import ArgumentError, ArgumentTypeError

__all__ = ["as_directions", "as_names", "as_objective"]


def as_directions(
    direction: str, directions: Sequence[str] | Mapping[str, str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """One direction for each objective, and their names, if they have any."""
    allowed = ("minimize", "maximize")
    if directions is None:
        return (check_choice("direction", direction, allowed),), ()
    is_list = isinstance(directions, Sequence) and not isinstance(directions, str)
    if not (is_list or isinstance(directions, Mapping)) or not directions:
        raise ArgumentTypeError(
            "directions: expected a list of directions, one per objective, or a dict from names of objectives to "
            f"directions, got {directions!r}."
        )
    if direction != "minimize":
        raise ArgumentError(f"direction: expected none beside directions={directions!r}, got {direction!r}; drop one.")
    names = as_names("directions", list(directions)) if isinstance(directions, Mapping) else ()
    each = directions.values() if isinstance(directions, Mapping) else directions
    return tuple(check_choice("directions", one, allowed) for one in each), names


def as_objective(given: Any, k: int, names: Sequence[str]) -> int:
    """The number of an objective that is given by its number or name.

    Raises:
        ArgumentTypeError: neither a number nor a name.
        ArgumentError: there is no such objective.
    """
    if isinstance(given, str) and names:
        if given not in names:
            raise ArgumentError(f"objective: expected one of {tuple(names)}, or its number, got {given!r}.")
        return names.index(given)
    number = check_count("objective", given, 0)
    if number >= k:
        raise ArgumentError(f"objective: expected a number below {k}, got {number}.")
    return number


def as_names(argument: str, given: Sequence[str]) -> tuple[str, ...]:
    """A tuple of distinct names."""
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise ArgumentTypeError(f"{argument}: expected a list of names, got {given!r}.")
    if len(set(given)) < len(given):
        raise ArgumentError(f"{argument}: expected distinct names, got {tuple(given)}.")
    return tuple(given)
