"""Kernels in state files."""

import numpy as np
import pytest
import torch

from bkbopt.errors import ArgumentError
from bkbopt.kernels import matern52
from bkbopt.kernels.saving import kernel_from_state, kernel_to_state


def test_state_holds_kernels_of_the_package_only() -> None:
    kernel = matern52(3, [0.1, 0.2], 3.0, categorical=[1])
    restored = kernel_from_state(kernel_to_state(kernel), None)
    assert restored.form == kernel.form  # type: ignore[attr-defined]
    assert restored.categorical == (1,)  # type: ignore[attr-defined]
    X = torch.from_numpy(np.round(np.random.default_rng(0).standard_normal((7, 3))))
    torch.testing.assert_close(restored(X, X), kernel(X, X), rtol=0.0, atol=0.0)  # type: ignore[operator]
    assert kernel_from_state(kernel_to_state(None), None) is None
    with pytest.raises(ArgumentError, match="pass kernel="):
        kernel_from_state(kernel_to_state(abs), None)
    assert kernel_from_state(kernel_to_state(abs), abs) is abs
