"""Thread limits: small matrices on one thread, the caller's settings restored."""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import torch

__all__ = ["small_scipy_work", "small_work", "threads_for"]


@contextlib.contextmanager
def small_work() -> Iterator[None]:
    """Run the block on one torch thread and restore the caller's setting.

    Matrices of a few hundred rows lose more to waking threads than they gain, and two thread pools that fight over
    the cores make a step many times slower.
    """
    n = torch.get_num_threads()
    if n == 1:
        yield
        return
    try:
        torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(n)


@functools.cache
def _blas_pools() -> Any:
    """The thread pools of numpy's and scipy's BLAS; looked up once, after scipy has been imported."""
    import scipy.linalg  # noqa: F401  loads the library that the look-up must find
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextlib.contextmanager
def small_scipy_work() -> Iterator[None]:
    """`small_work` for a block that also calls scipy, whose BLAS has a thread pool of its own.

    L-BFGS-B hands it vectors of a few dozen numbers at every step; waking threads for them took 4 ms a step on two
    busy cores, ten times what the rest of the step takes.
    """
    with small_work(), _blas_pools().limit(limits=1):
        yield


def threads_for(flops: float) -> contextlib.AbstractContextManager[None]:
    """`small_work` below the size where more threads pay (about a millisecond of one core), else nothing."""
    return small_work() if flops < 2e7 else contextlib.nullcontext()
