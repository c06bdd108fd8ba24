"""Decorators that compile loops with numba. Compiled code is cached on disk, so only the first run compiles.

Importing numba takes a fraction of a second, so modules of compiled loops are imported inside the functions that
call them.
"""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

__all__ = ["compiled", "fast", "fused"]

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile without changes of the floating-point arithmetic."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))


def fused(function: F) -> F:
    """Compile with fused multiply-adds, and otherwise without changes of the floating-point arithmetic."""
    return cast(F, numba.njit(cache=True, nogil=True, fastmath={"contract"})(function))


def fast(function: F) -> F:
    """Compile with fused multiply-adds and sums in vectorised order.

    The flags also apply to inlined functions, so the loop must not call `exp_of_negative`: reordering breaks it.
    """
    flags = {"reassoc", "contract", "nsz"}
    return cast(F, numba.njit(cache=True, nogil=True, fastmath=flags)(function))
