"""Quantities with made rows, for the tests of this folder."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

import bkbopt as bo
from bkbopt.search.quantities.fitting import Fitter, ModelOptions
from bkbopt.search.quantities.marked_rows import Rows, last_mark
from bkbopt.search.quantities.quantity import Quantity


def data(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    X = torch.as_tensor(np.random.default_rng(seed).random((n, 2)))
    return X, torch.sin(6.0 * X[:, 0]) + X[:, 1]


def rows(X: Tensor, y: Any, *, estimates: Any = None, std: Any = None, version: int = 0, first: int = 3) -> Rows:
    """The rows as a history gives them."""
    y = torch.as_tensor(y, dtype=torch.float64)
    none = torch.full_like(y, math.nan)
    columns = (none if given is None else torch.as_tensor(given, dtype=torch.float64) for given in (estimates, std))
    mark = last_mark(len(y), first)
    later = tuple(range(mark, len(y)))
    return Rows(X, y, *columns, categorical=(), version=version, mark=mark, later=later)


def quantity(surrogate: Any = None, *, sign: float = -1.0, winsorised: bool = True, **options: Any) -> Quantity:
    return Quantity(Fitter(ModelOptions(surrogate or bo.ExactGP(), **options), sign, winsorised), seed=0, stream=0)


def fitted(X: Tensor, y: Any, surrogate: Any = None, **more: Any) -> Quantity:
    options = {key: more.pop(key) for key in ("sign", "winsorised", "fit", "deterministic") if key in more}
    out = quantity(surrogate, **options)
    out.follow(rows(X, y, **more))
    return out


def learnt(quantity: Quantity) -> Tensor:
    """The standardised values that the surrogate has learnt, point by point."""
    obs = quantity.surrogate.observations
    return obs.s / obs.n
