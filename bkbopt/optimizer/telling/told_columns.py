"""Numbers and attributes of many trials, as users tell them, checked."""

import math
from collections.abc import Callable, Mapping
from numbers import Rational
from typing import Any

import numpy as np
import torch

from bkbopt._support.arrays import DROPPED, as_points, as_values, without_mask
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer.arguments.frames import is_table
from bkbopt.optimizer.log.attributes import checked_attrs, is_simple, plain_of, storable_attrs
from bkbopt.spaces.values import as_float, as_python, is_missing, is_real

__all__ = ["attrs_by_row", "known_stds", "matrix", "plain", "simple_attrs", "values_by_row", "with_nan"]


def matrix(
    name: str, given: Any, n: int, k: int, keep_invalid: bool, *, advice: str = DROPPED
) -> tuple[torch.Tensor | None, Any]:
    """Numbers (n, k) or None, and a mask of the finite rows."""
    fine = np.ones(n, dtype=bool)
    if given is None:
        return None, fine
    given = plain(given)
    if _has_bool(given):
        flags = "; of flags tell -1.0 where it holds, and 1.0 elsewhere" if name.startswith("constraints") else ""
        raise ArgumentTypeError(f"{name}: expected real numbers, got bool among them{flags}.")
    if keep_invalid:
        given = with_nan(name, given)
        if given.ndim and len(given) == n:
            finite = np.isfinite(given)
            fine, given = finite.all(axis=tuple(range(1, given.ndim))), np.where(finite, given, 0.0)
    if k == 1:
        return as_values(given, n, name=name, advice=advice)[:, None], fine
    table = as_points(given, k, name=name, advice=advice)
    if len(table) != n:
        raise ArgumentError(
            f"{name}: expected shape ({n}, {k}), one column for each objective, got {tuple(table.shape)}."
        )
    return table, fine


def values_by_row(
    name: str, given: Any, n: int, k: int, invalid: str, *, many: bool
) -> tuple[torch.Tensor | None, Any]:
    """Values (n, k) or None, with NaN for objectives that are not measured, and a mask (n,) of the rows to tell.

    Of several objectives those that are None are not measured, and with `invalid="partial"` those that are NaN. Of many
    trials, as a table is, a row with None is one without a finite value with "fail" and "skip".
    """
    if k == 1 or given is None:
        return matrix(name, given, n, k, invalid != "raise")
    rows = plain(given.to_numpy() if is_table(given) else given)
    has_none = isinstance(rows, list) or getattr(getattr(rows, "dtype", None), "kind", None) == "O"
    if (many and invalid in ("fail", "skip")) or (invalid == "raise" and not has_none):
        return matrix(name, rows, n, k, invalid != "raise")
    rows = _listed(rows)
    is_gap: Callable[[Any], bool] = is_missing if invalid == "partial" else _is_none
    are_gaps = [[is_gap(cell) for cell in row] for row in rows if len(row) == k] if _are_rows(rows) else []
    if not any(map(any, are_gaps)) or len(are_gaps) != len(rows):
        return matrix(name, rows, n, k, invalid != "raise")
    if invalid == "raise":
        _check_rows(name, rows, are_gaps)
    pairs = (zip(row, gaps, strict=True) for row, gaps in zip(rows, are_gaps, strict=True))
    filled = [[0.0 if is_gap else cell for cell, is_gap in row] for row in pairs]
    values, fine = matrix(name, filled, n, k, invalid != "raise")
    assert values is not None
    gaps = np.array(are_gaps)
    values[torch.from_numpy(gaps)] = math.nan
    return values, fine & ~gaps.all(1)


def _check_rows(name: str, rows: list[list[Any]], are_gaps: list[list[bool]]) -> None:
    """Refuse rows of gaps alone, and numbers beside gaps that are not finite, as `matrix` does where there are none."""
    for i, (row, gaps) in enumerate(zip(rows, are_gaps, strict=True)):
        if all(gaps):
            where = f" at position {i}" if len(rows) > 1 else ""
            raise ArgumentError(
                f"{name}: expected a number for one objective at least, got {row!r}{where}; call fail for a trial "
                "without a value."
            )
        if any(type(cell) is float and not math.isfinite(cell) for cell in row):
            raise ArgumentError(f"{name}: expected finite values, got {row!r} in row {i}; {DROPPED}.")


def _listed(part: Any) -> Any:
    """Rows, which may be arrays, series or tensors, as lists of lists, and NumPy's cells as Python's."""
    if isinstance(part, list):
        return [_listed(one) for one in part]
    if part is None or type(part) is float:  # the usual cells
        return part
    part = part.to_numpy() if hasattr(part, "to_numpy") and hasattr(part, "__len__") else part
    is_array = isinstance(part, np.ndarray) and part.dtype.kind in "fiuO"
    if (is_array or isinstance(part, torch.Tensor)) and part.ndim:
        return _listed(plain(part.tolist()))
    return as_python(part)


def _is_none(cell: Any) -> bool:
    return cell is None


def _are_rows(rows: Any) -> bool:
    """Whether it is a list of lists."""
    return isinstance(rows, list) and all(isinstance(row, list) for row in rows)


def known_stds(std: Any, valid: Any, k: int) -> tuple[torch.Tensor | None, Any]:
    """Standard deviations (n, k) or None, and a mask of the trials for which some are known; see `Optimizer.tell`.

    Those that are unknown are NaN. In rows that are not `valid (n,)` none is used.
    """
    n = len(valid)
    if std is None:
        return None, np.zeros(n, dtype=bool)
    std = std.to_numpy() if is_table(std) else plain(std)
    if _has_bool(std):
        raise ArgumentTypeError("std: expected real numbers, got bool among them.")
    numbers = with_nan("std", std)
    if numbers.shape == (() if k == 1 else (k,)):  # those of all trials
        numbers = np.tile(numbers, (n, 1))
    known, unknown = valid, None
    if numbers.ndim and len(numbers) == n:
        unknown = np.isnan(numbers).reshape(n, -1)
        known = valid & ~unknown.all(1)
        numbers[~known] = 0.0
        numbers[np.isnan(numbers)] = 0.0
    infinite = np.isinf(np.atleast_1d(numbers))
    if infinite.any():
        i = infinite.nonzero()[0][0]
        raise ArgumentError(f"std: expected finite numbers, got inf at position {i}; pass None where it is unknown.")
    stds, _ = matrix("std", numbers, n, k, False)
    assert stds is not None
    if bool((stds < 0.0).any()):
        raise ArgumentError(f"std: expected standard deviations >= 0, got {float(stds.min())!r}.")
    if unknown is not None:
        stds[torch.from_numpy(unknown)] = math.nan
    return stds, known


def _has_bool(given: Any) -> bool:
    return any(map(_has_bool, given)) if isinstance(given, list) else isinstance(given, bool | np.bool_)


def plain(given: Any) -> Any:
    """Tensors without gradients, arrays without masks, whole numbers and fractions in lists as doubles.

    Arrays have no large whole numbers, and an array of masked arrays has what is below the masks.
    """
    if isinstance(given, list | tuple):
        return [plain(part) for part in given]
    if isinstance(given, np.ma.MaskedArray):
        return without_mask(given)
    if isinstance(given, torch.Tensor):
        return given.detach()
    return as_float(given) if isinstance(given, Rational) and is_real(given) else given


def with_nan(name: str, given: Any) -> Any:
    """Numbers as an array, with NaN for missing ones."""

    def numbers(part: Any) -> Any:
        part = part.tolist() if hasattr(part, "tolist") else part
        if isinstance(part, list | tuple):
            return [numbers(one) for one in part]
        if is_missing(part):
            return math.nan
        if not is_real(part):
            raise ArgumentTypeError(f"{name}: expected real numbers, got {type(part).__name__} among them.")
        return as_float(part)

    try:
        return np.array(numbers(given), dtype=np.float64)
    except ValueError:
        raise ArgumentError(f"{name}: expected numbers in equal rows, got rows of different lengths.") from None


def attrs_by_row(attrs: Mapping[str, Any], others: Mapping[str, Any], n: int) -> list[dict[str, Any]]:
    """The attributes of each of `n` trials; gaps are left out.

    Args:
        attrs: by name a list with one for each trial, or anything else for all of them.
        others: items that were told beside the values; of these numbers, flags and text are attributes.
        n: number of trials.

    Raises:
        ArgumentError, ArgumentTypeError: `attrs` has lists of another length, or see `checked_attrs`.
    """
    if not (attrs or others):
        return [{}] * n
    rows: list[dict[str, Any]] = [{} for _ in range(n)]
    for name, given in others.items():
        cells = _cells(given, n)
        for row, cell in zip(rows, cells if len(cells) == n else (), strict=False):
            row.update(simple_attrs({name: cell}))
    for name, given in attrs.items():
        cells = _cells(given, n)
        if len(cells) != n:
            raise ArgumentError(f"user_attrs: expected {n} for {name!r}, one for each trial, got {len(cells)}.")
        for row, cell in zip(rows, cells, strict=True):
            row.update({} if is_missing(cell) else checked_attrs({name: cell}))
    return rows


def simple_attrs(others: Mapping[str, Any]) -> dict[str, Any]:
    """The items that are attributes where they were told beside values: numbers, flags and text that a log can hold."""
    return storable_attrs({name: given for name, given in others.items() if is_simple(given) and not is_missing(given)})


def _cells(given: Any, n: int) -> list[Any]:
    given = plain_of(given)
    return list(given) if isinstance(given, list | tuple) else [given] * n
