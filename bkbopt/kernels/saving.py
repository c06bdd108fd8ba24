"""Kernels in state files and logs: those of this package whole, of others only that there was one."""

import torch
from torch import Tensor

from bkbopt._support.state_forms import Form, Kept, Number, checked, refused
from bkbopt.errors import ArgumentError
from bkbopt.kernels.ard import HEIGHT_PRIOR, ARDKernel

__all__ = ["kernel_from_state", "kernel_to_state"]

_KERNEL = Form({"form": Kept(), "sizes": Kept(), "prior_loc": Number(), "theta": Kept()})


def kernel_to_state(kernel: object) -> object:
    """The argument `kernel` for a state file: an `ARDKernel` whole, of others nothing but that there was one.

    A kernel with a `height_prior` of its own is one of the others.
    """
    if isinstance(kernel, ARDKernel) and kernel.height_prior == HEIGHT_PRIOR:
        # Without inactive columns the state is that of versions that did not know any.
        inactive = [list(kernel.inactive)] if kernel.inactive else []
        sizes = [len(kernel.log_lengthscale), list(kernel.categorical), *inactive]
        return {"form": kernel.form, "sizes": sizes, "prior_loc": kernel.prior_loc, "theta": kernel.theta}
    return None if kernel is None else {"form": None}


def kernel_from_state(state: object, given: object) -> object:
    """The inverse of `kernel_to_state`; `given` is the kernel of the caller, needed where it is not ours.

    Raises:
        ArgumentError: such a kernel was saved and none is given, or it has no such form.
        StateFileError: `state` is none of a kernel.
    """
    if state is None:
        return None
    if state == {"form": None}:
        if given is None:
            raise ArgumentError(
                "kernel: this state was saved with a kernel of yours; pass kernel= with the same kernel to load."
            )
        return given
    saved = checked(state, _KERNEL, where="the kernel")
    if not isinstance(saved["sizes"], list) or len(saved["sizes"]) not in (2, 3) or not isinstance(saved["form"], str):
        raise refused("the kernel's sizes", "a number of columns and lists of others", repr(saved["sizes"])[:80])
    n, categorical, inactive = (*saved["sizes"], [])[:3]
    theta = saved["theta"]
    parameters = theta.numel() if isinstance(theta, Tensor) and theta.ndim == 1 else 0
    known = isinstance(categorical, list) and isinstance(inactive, list) and type(n) is int and n >= 0
    if not known or parameters != n + len(categorical) + 1 or not _differ([*categorical, *inactive], n):
        raise refused("the kernel's sizes", "those of its parameters", repr(saved["sizes"])[:80])
    # Within that, scales and their inverses are positive and finite.
    if not theta.is_floating_point() or not bool((theta.abs() < 300.0).all()):
        raise refused("the kernel's parameters", "logarithms of positive finite scales", f"{theta.dtype}")
    blank = torch.zeros(n + len(categorical) + 1, dtype=torch.float64)
    form, loc = saved["form"], saved["prior_loc"]
    kernel = ARDKernel(blank[:n], blank[-1], blank[n:-1], tuple(categorical), form, loc, tuple(inactive))
    return kernel.with_theta(theta)


def _differ(columns: list[object], n: int) -> bool:
    """Whether `columns` are different indices of columns, of which there are `n` besides these."""
    return len({j for j in columns if type(j) is int and 0 <= j < n + len(columns)}) == len(columns)
