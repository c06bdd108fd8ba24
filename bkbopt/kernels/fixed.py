"""Kernels as functions of one of their two points, for compiled loops; see `FixedKernel` in `_fixed_loops.py`."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from bkbopt.kernels.ard import FORMS, ARDKernel
from bkbopt.kernels.base import Kernel, check_columns
from bkbopt.kernels.spherical import SphericalKernel
from bkbopt.kernels.structured import SQRT5, ColumnsKernel, RotatedKernel, SumKernel

if TYPE_CHECKING:
    from bkbopt.kernels._fixed_loops import FixedKernel

__all__ = ["fixed_kernel", "gram_to_fixed"]


def fixed_kernel(kernel: Kernel, X2: Tensor) -> "FixedKernel | None":
    """The kernel with `X2 (m, d)`, in CPU memory, as its second points; None for other kernels than these.

    The kernels are `ARDKernel`, rotated or not, alone and in a sum with another `ARDKernel`, a `ColumnsKernel` or a
    `SphericalKernel` of the same columns.
    """
    parts = kernel.parts if isinstance(kernel, SumKernel) else (kernel,)
    base, added = parts[0], parts[1] if len(parts) == 2 else None
    R = base.R if isinstance(base, RotatedKernel) else X2.new_zeros(0, 0)
    radial = base.base if isinstance(base, RotatedKernel) else base
    if len(parts) > 2 or not isinstance(radial, ARDKernel):
        return None
    match added:
        case None:
            return _fixed(radial, R, X2)
        case ARDKernel() if (added.numeric, added.categorical) == (radial.numeric, radial.categorical):
            return _with_ripples(_fixed(radial, R, X2), added, X2)
        case ColumnsKernel() if (added.numeric, added.categorical) == (list(radial.numeric), radial.categorical):
            return _with_columns(_fixed(radial, R, X2), added, X2)
        case SphericalKernel() if (added.dim, added.numeric) == (radial.dim, list(radial.numeric)):
            return _with_trend(_fixed(radial, R, X2), added, X2)
    return None


def gram_to_fixed(X: Tensor, fixed: "FixedKernel") -> Tensor:
    """The kernel matrix `(n, m)` of the points `X (n, d)`, in CPU memory, and the fixed ones."""
    from bkbopt.kernels._fixed_loops import to_fixed

    K = X.new_empty(len(X), fixed.B.shape[1])
    to_fixed(X.contiguous().numpy(), fixed, np.empty((len(X), len(fixed.numeric))), K.numpy())
    return K


def _fixed(radial: ARDKernel, R: Tensor, X2: Tensor) -> "FixedKernel":
    from bkbopt.kernels._fixed_loops import FixedKernel

    check_columns(X2, X2, radial.dim)
    numeric = list(radial.numeric)
    scale = torch.exp(-radial.log_lengthscale)
    rotated = X2 @ R if len(R) else X2
    return FixedKernel(
        prior=float(radial.outputscale),
        form=FORMS.index(radial.form),
        height=float(radial.outputscale),
        numeric=np.array(numeric, dtype=np.int64),
        scale=scale.numpy(),
        R=R.contiguous().numpy(),
        B=(rotated[:, numeric] * scale).T.contiguous().numpy(),
        categorical=np.array(radial.categorical, dtype=np.int64),
        factor=torch.exp(-torch.exp(-radial.log_hamming)).numpy(),
        codes=X2[:, radial.categorical].T.contiguous().numpy(),
    )


def _with_ripples(fixed: "FixedKernel", ripples: ARDKernel, X2: Tensor) -> "FixedKernel":
    alone = _fixed(ripples, X2.new_zeros(0, 0), X2)
    return fixed._replace(
        prior=fixed.prior + alone.prior,
        ripple_form=alone.form,
        ripple_height=alone.height,
        ripple_scale=alone.scale,
        ripples=alone.B,
        ripple_factor=alone.factor,
    )


def _with_columns(fixed: "FixedKernel", columns: ColumnsKernel, X2: Tensor) -> "FixedKernel":
    a, scale = columns.log_variance.exp(), SQRT5 * torch.exp(-columns.log_lengthscale)
    return fixed._replace(
        prior=fixed.prior + float(a.sum()),
        a=a[: len(scale)].numpy(),
        column_scale=scale.numpy(),
        columns=(X2[:, columns.numeric] * scale).T.contiguous().numpy(),
        match=a[len(scale) :].numpy(),
    )


def _with_trend(fixed: "FixedKernel", trend: SphericalKernel, X2: Tensor) -> "FixedKernel":
    variances = trend.log_variance.exp()
    return fixed._replace(
        prior=fixed.prior + float(variances.sum()),
        trend=variances.numpy(),
        trend_scale=torch.exp(-trend.log_lengthscale).numpy(),
        sphere=trend.projected(X2).T.contiguous().numpy(),
    )
