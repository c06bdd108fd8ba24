"""Thread limits: blocks of work on small matrices run on one thread, and the caller's settings are restored.

Forked processes begin with one torch thread. OpenMP's threads do not survive a fork: once torch has used several in the
parent, which a scrambled Sobol sequence does, the first loop that the child would share among threads never ends.
"""

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any

import torch

__all__ = ["small_scipy_work", "small_work", "threads_for"]


class _OneThread:
    """See `small_work`; a generator would take three times as long to enter and leave."""

    def __enter__(self) -> None:
        self._n = torch.get_num_threads()
        if self._n != 1:
            torch.set_num_threads(1)

    def __exit__(self, *error: object) -> None:
        if self._n != 1:
            torch.set_num_threads(self._n)


def small_work() -> contextlib.AbstractContextManager[None]:
    """Run the block on one torch thread and restore the caller's setting.

    For matrices of a few hundred rows starting threads costs more than it gains, and two thread pools that compete for
    the cores make a step many times slower.
    """
    return _OneThread()


@functools.cache
def _blas_pools() -> Any:
    """The thread pools of NumPy's and SciPy's BLAS, looked up once."""
    import scipy.linalg  # noqa: F401  loads SciPy's BLAS, so that the look-up finds it
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextlib.contextmanager
def small_scipy_work() -> Iterator[None]:
    """`small_work` for a block that also calls SciPy, whose BLAS has its own thread pool.

    L-BFGS-B passes vectors of a few dozen numbers to BLAS at every step. Starting threads for them took 4 ms a step on
    two busy cores, ten times the rest of the step.
    """
    with small_work(), _blas_pools().limit(limits=1):
        yield


def threads_for(flops: float) -> contextlib.AbstractContextManager[None]:
    """`small_work` if `flops` is below the size where more threads pay off (about 1 ms of one core)."""
    return small_work() if flops < 2e7 else contextlib.nullcontext()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=functools.partial(torch.set_num_threads, 1))
