"""Columns of text: choices, unless they look like names of rows, or like numbers."""

import logging
import math
from collections.abc import Collection, Mapping
from typing import Any

from bkbopt.errors import ArgumentError
from bkbopt.spaces.columns import Columns
from bkbopt.spaces.values import is_real, shown

__all__ = ["all_different", "check_names", "note_many_choices", "undeclared"]

logger = logging.getLogger(__name__)

#: A column with at most so many different values is one of choices, whatever they look like.
FEW_CHOICES = 20


def undeclared(arms: Any, columns: Columns) -> dict[str, Collection[Any]]:
    """The values of each column of choices in a data frame whose categories are not declared, by its name.

    A single column is what was meant, so that it counts as declared.
    """
    if not hasattr(arms, "iloc") or len(columns.names) < 2:
        return {}
    declared = {str(c) for c, dtype in zip(arms.columns, arms.dtypes, strict=True) if hasattr(dtype, "categories")}
    choices = {columns.names[j]: values for j, values in columns.choices.items()}
    return {name: values for name, values in choices.items() if name not in declared}


def check_names(choices: Mapping[str, Collection[Any]], n: int) -> None:
    """Refuse columns of text in which more than two rows all differ: they may name the rows.

    Args:
        choices: the different values of each column whose categories are not declared, by its name.
        n: number of rows.

    Raises:
        ArgumentError: there is such a column.
    """
    for name, values in choices.items():
        if 2 < n == len(values):
            raise all_different(name)


def all_different(name: str) -> ArgumentError:
    """The error for a column of text whose values are all different."""
    return ArgumentError(
        f"pool: expected columns of text with repeated values, but those of {name!r} are all different; pass "
        f"bo.Pool(frame, id_column={name!r}) if they name the rows, make the column categorical "
        f"(frame[{name!r}].astype('category')) if they are choices, or drop it."
    )


def note_many_choices(choices: Mapping[str, Collection[Any]], n: int) -> None:
    """Log a warning for each column that may be no feature with choices: numbers as text, or names with repeats.

    Args:
        choices: the different values of each column whose categories are not declared, by its name.
        n: number of rows.
    """
    for name, values in choices.items():
        others = [value for value in values if not _is_number(value)]
        if len(values) <= FEW_CHOICES:
            continue
        if 2 * len(others) < len(values):
            why = f"as {shown(others[0])} is no number" if others else "as they are text"
            advice = f"most are numbers, {why}; convert the column, as by pandas.to_numeric"
        elif 2 * len(values) > n:
            advice = "if they are names or remarks, leave the column out: bo.Pool(..., columns=[...])"
        else:
            continue
        logger.warning("pool: column %r is taken for %d choices in %d rows: %s.", name, len(values), n, advice)


def _is_number(value: Any) -> bool:
    if not isinstance(value, str):
        return is_real(value)
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False
