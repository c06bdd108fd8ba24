"""Kernels in state files: what is refused; `tests/conformance` restores all of them."""

from dataclasses import replace
from typing import Any

import pytest

from bkbopt.errors import ArgumentError, StateFileError
from bkbopt.kernels import matern52
from bkbopt.kernels.saving import kernel_from_state, kernel_to_state


def test_state_holds_kernels_of_the_package_only() -> None:
    assert kernel_from_state(kernel_to_state(None), None) is None
    with pytest.raises(ArgumentError, match="pass kernel="):
        kernel_from_state(kernel_to_state(abs), None)
    assert kernel_from_state(kernel_to_state(abs), abs) is abs


def test_a_kernel_with_a_prior_of_its_own_is_not_saved() -> None:
    kernel = replace(matern52(2), height_prior=(-2.0, 1.5))
    with pytest.raises(ArgumentError, match="pass kernel="):
        kernel_from_state(kernel_to_state(kernel), None)


@pytest.mark.parametrize("inactive", [[1], [2, 2], [-1], [3], [True], [0.0], "0"])
def test_inactive_columns_that_cannot_be_are_refused(inactive: object) -> None:
    # One number, and the category in column 1; each inactive column is one more.
    state: Any = kernel_to_state(matern52(2, 0.3, categorical=[1]))
    with pytest.raises(StateFileError, match="the kernel's sizes to be those of its parameters"):
        kernel_from_state({**state, "sizes": [1, [1], inactive]}, None)
