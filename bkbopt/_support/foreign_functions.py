"""How a user's function is called, and how its result is read: kernels and acquisition functions.

Functions of torch are given tensors, so that their results have exact gradients. Functions of numpy, which PyTorch
cannot differentiate, are given arrays, and the search takes differences of the scores (`differences` in
`search/maximizers/ascent.py`).
"""

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["Way", "real_tensor", "way_of"]

#: Errors of functions that get a tensor where they need an array, or an array where they need a tensor.
UNSUITED = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
#: Makes of a tensor the argument of a user's function.
Way = Callable[[Tensor], Any]


def way_of(function: Callable[..., object], *examples: Tensor) -> Way:
    """How the arguments of `function` have to be passed, found by calls with `examples`.

    They are passed as they are if PyTorch can differentiate the result, else as arrays, and as tensors without
    gradients if it fails with arrays. An error that it raises with these too is raised, and so is one of another kind
    than `UNSUITED`, at once.
    """
    with contextlib.suppress(*UNSUITED):
        if _is_differentiable(function, examples):
            return _as_they_are
    try:
        function(*map(_as_array, examples))
    except UNSUITED:
        function(*map(_detached, examples))
        return _detached
    return _as_array


def _is_differentiable(function: Callable[..., object], examples: tuple[Tensor, ...]) -> bool:
    with torch.enable_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's about a tensor with gradients that is converted to a number
        inputs = [x.detach().clone().requires_grad_(True) for x in examples]
        values = function(*inputs)
        if not isinstance(values, Tensor) or not values.requires_grad:
            return False
        # Parameters inside of the function may require gradients where its arguments have none.
        return any(g is not None for g in torch.autograd.grad(values.sum(), inputs, allow_unused=True))


def _as_they_are(X: Tensor) -> Tensor:
    return X


def _detached(X: Tensor) -> Tensor:
    return X.detach()


def _as_array(X: Tensor) -> np.ndarray[Any, Any]:
    return X.detach().cpu().numpy().copy()  # functions of arrays may change them in place


def real_tensor(values: object) -> Tensor | None:
    """A function's result, a tensor or something that numpy understands, as a tensor; None if not of real numbers."""
    if not isinstance(values, Tensor):
        array = np.asarray(values)
        return torch.tensor(array) if array.dtype.kind in "biuf" else None
    return None if values.is_complex() else values
