"""Decorators that compile loops. The results are kept on disk, so that only the first run waits for them.

Loading numba takes a part of a second: modules of loops are imported where they are first called.
"""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

__all__ = ["compiled", "fast", "fused"]

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile to the letter: no rounding is exchanged for speed."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))


def fused(function: F) -> F:
    """Compile with fused multiply-adds, and otherwise to the letter."""
    return cast(F, numba.njit(cache=True, nogil=True, fastmath={"contract"})(function))


def fast(function: F) -> F:
    """Compile with sums in vector order too. That reaches into called functions: none may be `exp_of_negative`."""
    flags = {"reassoc", "contract", "nsz"}
    return cast(F, numba.njit(cache=True, nogil=True, fastmath=flags)(function))
