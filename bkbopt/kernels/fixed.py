"""Kernels as functions of one of their two points, for compiled loops; see `FixedKernel` in `_loops.py`."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from bkbopt.kernels.ard import FORMS, ARDKernel
from bkbopt.kernels.base import Kernel, check_columns
from bkbopt.kernels.structured import SQRT5, ColumnsKernel, RotatedKernel, SumKernel

if TYPE_CHECKING:
    from bkbopt.kernels._loops import FixedKernel

__all__ = ["fixed_kernel"]


def fixed_kernel(kernel: Kernel, X2: Tensor) -> "FixedKernel | None":
    """The kernel with `X2 (m, d)`, in CPU memory, as its second points; None for other kernels than these.

    The kernels are `ARDKernel`, rotated or not, and its sum with a `ColumnsKernel` of the same columns.
    """
    parts = kernel.parts if isinstance(kernel, SumKernel) else (kernel,)
    base, columns = parts[0], parts[1] if len(parts) == 2 else None
    R = base.R if isinstance(base, RotatedKernel) else X2.new_zeros(0, 0)
    radial = base.base if isinstance(base, RotatedKernel) else base
    if len(parts) > 2 or not isinstance(radial, ARDKernel) or not isinstance(columns, ColumnsKernel | None):
        return None
    if columns is not None and (tuple(columns.numeric), columns.categorical) != (radial.numeric, radial.categorical):
        return None
    return _fixed(radial, R, columns, X2)


def _fixed(radial: ARDKernel, R: Tensor, columns: ColumnsKernel | None, X2: Tensor) -> "FixedKernel":
    from bkbopt.kernels._loops import FixedKernel

    check_columns(X2, X2, radial.dim)
    numeric = list(radial.numeric)
    scale, none = torch.exp(-radial.log_lengthscale), X2.new_zeros(0)
    a = none if columns is None else columns.log_variance.exp()
    column_scale = none if columns is None else SQRT5 * torch.exp(-columns.log_lengthscale)
    rotated = X2 @ R if len(R) else X2
    return FixedKernel(
        prior=float(radial.outputscale + a.sum()),
        form=FORMS.index(radial.form),
        height=float(radial.outputscale),
        numeric=np.array(numeric, dtype=np.int64),
        scale=scale.numpy(),
        R=R.contiguous().numpy(),
        B=(rotated[:, numeric] * scale).T.contiguous().numpy(),
        categorical=np.array(radial.categorical, dtype=np.int64),
        factor=torch.exp(-torch.exp(-radial.log_hamming)).numpy(),
        codes=X2[:, radial.categorical].T.contiguous().numpy(),
        a=a[: len(column_scale)].numpy(),
        column_scale=column_scale.numpy(),
        columns=(X2[:, numeric[: len(column_scale)]] * column_scale).T.contiguous().numpy(),
        match=a[len(column_scale) :].numpy(),
    )
