"""Argument checks shared by all surrogates."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.checks import check_number
from bkbopt.errors import ArgumentError, ArgumentTypeError

__all__ = [
    "DEFAULT_NOISE",
    "DROPPED",
    "UNKNOWN",
    "as_points",
    "as_values",
    "check_noise",
    "without_mask",
]

#: Noise variance before the first fit, on standardised values.
DEFAULT_NOISE = 1e-2
#: What to do with values that are not finite, for messages.
DROPPED = 'drop it, or fail that trial, as invalid="fail" does'
UNKNOWN = 'leave it out, as invalid="skip" does for many trials, or fail that trial, as invalid="fail" does'


def check_noise(noise: object) -> float:
    """A noise variance: positive and finite; None is the default."""
    if noise is None:
        return DEFAULT_NOISE
    return check_number("noise", noise, 0.0, "a positive finite variance (y squared)", strict=True)


def as_points(
    X: object,
    dim: int | None,
    device: torch.device | None = None,
    name: str = "X",
    *,
    advice: str = "drop or impute such rows",
) -> Tensor:
    """Points as a float64 tensor `(n, d)`, from a tensor, array, data frame or nested list.

    Args:
        X: the points.
        dim: expected number of columns; any if None.
        device: device of the tensor.
        name: name of the argument, for messages.
        advice: what to do with a row that is not finite, for messages.

    Raises:
        ArgumentTypeError: not numeric.
        ArgumentError: not two-dimensional, not `dim` columns, or not finite (the first bad row is named).
    """
    T = _as_tensor(X, device, name)
    if T.ndim == 1 and dim is not None and T.shape[0] == dim:
        T = T[None]
    if T.ndim != 2 or (dim is not None and T.shape[1] != dim):
        expected = f"(n, {dim})" if dim is not None else "(n, d)"
        raise ArgumentError(f"{name}: expected shape {expected}, got {tuple(T.shape)}; pass one row for each point.")
    if not _all_finite(T):
        row = int(torch.nonzero(~torch.isfinite(T).all(1))[0])
        raise ArgumentError(f"{name}: expected finite values, got {T[row].tolist()} in row {row}; {advice}.")
    return T


def as_values(
    y: object,
    n: int | None = None,
    device: torch.device | None = None,
    name: str = "y",
    *,
    advice: str = DROPPED,
) -> Tensor:
    """Values as a float64 tensor `(n,)`; the errors are those of `as_points`."""
    T = _as_tensor(y, device, name)
    if T.ndim == 0:
        T = T[None]
    if T.ndim == 2 and T.shape[1] == 1:
        T = T[:, 0]
    if T.ndim != 1 or (n is not None and T.shape[0] != n):
        expected = f"({n},)" if n is not None else "(n,)"
        raise ArgumentError(f"{name}: expected shape {expected}, one value for each point, got {tuple(T.shape)}.")
    if not _all_finite(T):
        row = int(torch.nonzero(~torch.isfinite(T))[0])
        raise ArgumentError(f"{name}: expected finite values, got {float(T[row])} at position {row}; {advice}.")
    return T


def _all_finite(T: Tensor) -> bool:
    """Whether all values are finite; a finite sum proves it, at a fifth of the time for a few values."""
    return math.isfinite(float(T.detach().sum())) or bool(torch.isfinite(T).all())


def _as_tensor(value: object, device: torch.device | None, name: str) -> Tensor:
    if isinstance(value, Tensor):
        if value.is_complex() or value.dtype == torch.bool:
            raise ArgumentTypeError(f"{name}: expected real numbers, got a tensor of dtype {value.dtype}.")
        return value.to(dtype=torch.float64, device=device)
    try:
        array = np.asarray(without_mask(value))
    except ValueError:
        raise ArgumentError(f"{name}: expected numbers in equal rows, got rows of different lengths.") from None
    other = [v for v in array.flat if not isinstance(v, int | float)] if array.dtype == object and array.ndim else []
    if other:
        kind = "None" if other[0] is None else type(other[0]).__name__
        raise ArgumentTypeError(f"{name}: expected real numbers, got {kind} among them; convert all to floats.")
    if hasattr(value, "__next__"):
        raise ArgumentTypeError(f"{name}: expected real numbers, got {type(value).__name__}; pass list({name}).")
    if array.dtype.kind not in "iuf":
        raise ArgumentTypeError(f"{name}: expected real numbers, got {type(value).__name__} of dtype {array.dtype}.")
    # A copy: read-only and Fortran-ordered arrays are accepted, and memory is not shared with the caller.
    return torch.tensor(np.ascontiguousarray(array, dtype=np.float64), device=device or "cpu")


def without_mask(values: Any) -> Any:
    """`values`; a masked array with NaN, or None among other things than numbers, in place of what is masked.

    `np.asarray` would return the numbers below the mask, which are no data; also for lists of masked arrays.
    """
    if isinstance(values, list | tuple):
        is_any = any(isinstance(part, np.ma.MaskedArray) for part in values)
        return [without_mask(part) for part in values] if is_any else values
    if not np.ma.is_masked(values):
        return values
    numbers = values.dtype.kind in "iuf"
    out = np.array(np.ma.getdata(values), dtype=np.float64 if numbers else object)
    out[np.ma.getmaskarray(values)] = np.nan if numbers else None
    return out
