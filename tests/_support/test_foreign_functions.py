"""How functions of the user are called: of torch, of numpy, and others."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bkbopt._support.foreign_functions import real_tensor, way_of

X = torch.tensor([[0.25, 1.0], [0.5, -2.0]], dtype=torch.float64)
WEIGHT = torch.tensor(2.0, requires_grad=True)

DIFFERENTIABLE: dict[str, Callable[[Any], Any]] = {
    "operators": lambda A: 2.0 * A,
    "torch": lambda A: torch.exp(A).sum(),
}
OF_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda A: np.exp(-A),
    "asarray": lambda A: np.asarray(A).sum(1),
    "a method of arrays": lambda A: A.astype(np.float32),
    "numbers": lambda A: [float(a) for a in A[:, 0]],
    "a constant": lambda A: np.ones(len(A)),
    "complex": lambda A: A * 1j,
}
OF_TENSORS: dict[str, Callable[[Any], Any]] = {
    "detached": lambda A: A.detach().numpy().sum(),
    "numpy()": lambda A: np.exp(A.numpy()),
    "steps": lambda A: (A > 0.3).double(),
    "parameters only": lambda A: WEIGHT * A.detach(),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_what_torch_differentiates_gets_its_argument_as_it_is(name: str) -> None:
    assert way_of(DIFFERENTIABLE[name], X)(X) is X


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_what_torch_cannot_differentiate_gets_arrays(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        passed = way_of(OF_ARRAYS[name], X)(X.clone().requires_grad_())
    assert isinstance(passed, np.ndarray)
    np.testing.assert_array_equal(passed, X)


@pytest.mark.parametrize("name", OF_TENSORS)
def test_what_fails_with_arrays_gets_tensors_without_gradients(name: str) -> None:
    passed = way_of(OF_TENSORS[name], X)(X.clone().requires_grad_())
    assert isinstance(passed, Tensor)
    assert not passed.requires_grad
    assert torch.equal(passed, X)


def test_a_function_that_changes_its_arrays_changes_no_points() -> None:
    def halved(A: Any) -> Any:
        A *= 0.5
        return np.exp(A)

    points = X.clone()
    passed = way_of(halved, points)(points)
    halved(passed)
    assert torch.equal(points, X)


@pytest.mark.parametrize("error", [ValueError("mine"), MemoryError("mine")])
def test_an_error_in_any_case_is_the_function_s_own(error: Exception) -> None:
    def broken(A: Any) -> Any:
        raise error

    with pytest.raises(type(error), match=re.escape("mine")):
        way_of(broken, X)


def test_results_of_numbers_become_tensors_and_others_nothing() -> None:
    for values in ([1, 2], [True, False], np.float32([1.5, 2.5]), torch.ones(2)):
        found = real_tensor(values)
        assert found is not None
        assert found.tolist() == list(values)
    for wrong in (None, "ab", ["a"], np.ones(2) * 1j, torch.ones(2) * 1j, object()):
        assert real_tensor(wrong) is None
