"""Data frames as lists of parameters. The module does not import pandas."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bkbopt.errors import ArgumentError
from bkbopt.spaces.base import Params
from bkbopt.spaces.values import is_missing

__all__ = ["is_table", "named", "points_of", "rows_of", "whole"]


def is_table(given: object) -> bool:
    """Whether it is a data frame."""
    return hasattr(given, "iloc") and hasattr(given, "columns")


def points_of(given: Any, without_gaps: Callable[[Params], Params]) -> list[Params]:
    """One point, several or a data frame as a list of points, which are not checked."""
    if is_table(given):
        return rows_of(given, without_gaps)
    is_one = isinstance(given, Mapping) or hasattr(given, "iloc")  # a row of a data frame is no list of points
    return [whole(one, without_gaps) for one in (given if isinstance(given, Iterable) and not is_one else [given])]


def whole(point: Any, without_gaps: Callable[[Params], Params]) -> Any:
    """A point without the gaps of inactive parameters, as rows of JSON and of tables have them; all else as it is."""
    has_gaps = isinstance(point, Mapping) and any(map(is_missing, point.values()))
    return without_gaps(point) if has_gaps else point


def rows_of(frame: Any, without_gaps: Callable[[Params], Params]) -> list[Params]:
    """The rows of a data frame as parameters."""
    return [without_gaps(row) for row in named(frame).to_dict("records")]


def named(frame: Any) -> Any:
    """The data frame with text as the names of its columns, as in a pool: those of a table without names are numbers.

    Raises:
        ArgumentError: two columns of one name.
    """
    names = [str(column) for column in frame.columns]
    if len(set(names)) < len(names):
        raise ArgumentError(f"trial: expected a data frame with distinct columns, got {names}.")
    return frame.set_axis(names, axis=1)
