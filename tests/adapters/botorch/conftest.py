"""Fixtures of the BoTorch adapter: data, and a `BKBModel` with a `SingleTaskGP` of the same state.

BoTorch is imported in the functions: where it is missing, the test files skip themselves with a reason.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

#: Options of `BKBModel` that `SingleTaskGP` does not know.
OWN = ("qbar", "max_inducing", "seed")


def _data(
    n: int = 20,
    d: int = 3,
    m: int = 1,
    batch: tuple[int, ...] = (),
    *,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """X in the unit cube, Y between 0.5 and 6 (so that it has a logarithm), and noise variances."""
    g = torch.Generator().manual_seed(seed)
    X = torch.rand(*batch, n, d, generator=g, dtype=torch.float64)
    noise = torch.randn(*batch, n, m, generator=g, dtype=torch.float64)
    Y = torch.stack([(3.0 * X + j).sin().sum(-1) / d**0.5 + 3.0 for j in range(m)], -1) + 0.1 * noise
    Yvar = 0.05 + 0.1 * torch.rand(*batch, n, m, generator=g, dtype=torch.float64)
    return X.to(dtype), Y.clamp(0.5, 6.0).to(dtype), Yvar.to(dtype)


def _shift(model: torch.nn.Module, seed: int = 1) -> None:
    """Move all hyper-parameters off their start, alike in every dtype; those that are positive stay so."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            u = torch.rand(parameter.shape, generator=g, dtype=torch.float64).to(parameter)
            parameter.mul_(0.8 + 0.6 * u).add_(0.2 * u)


def _pair(X: Tensor, Y: Tensor, Yvar: Tensor | None = None, **options: Any) -> tuple[Any, Any]:
    """A `BKBModel`, and a `SingleTaskGP` in float64 with the same data and hyper-parameters; options are copied."""
    from botorch.models import SingleTaskGP

    from bkbopt.adapters.botorch import BKBModel

    ours = BKBModel(X, Y, Yvar, **copy.deepcopy(options))
    _shift(ours)
    known = {name: value for name, value in copy.deepcopy(options).items() if name not in OWN}
    known = {name: value.double() if isinstance(value, torch.nn.Module) else value for name, value in known.items()}
    theirs = SingleTaskGP(X.double(), Y.double(), None if Yvar is None else Yvar.double(), **known)
    theirs.load_state_dict(ours.state_dict())
    theirs.eval().posterior(X[..., :1, :].double())  # it conditions on nothing before it has predicted something
    return ours.eval(), theirs


@pytest.fixture(scope="session", autouse=True)
def hypervolume_in_python() -> None:
    """Keep BoTorch from compiling its fused hypervolume, which gives the same numbers.

    That takes half a minute in a fresh environment, and a run that is killed meanwhile leaves a lock for which all
    later ones wait without end.
    """
    logei = pytest.importorskip("botorch.acquisition.multi_objective.logei")
    logei._load_attempted = True


@pytest.fixture
def data() -> Callable[..., tuple[Tensor, Tensor, Tensor]]:
    return _data


@pytest.fixture(scope="module")
def data_() -> Callable[..., tuple[Tensor, Tensor, Tensor]]:
    """The same for fixtures that live as long as their test file."""
    return _data


@pytest.fixture
def pair() -> Callable[..., tuple[Any, Any]]:
    return _pair


@pytest.fixture
def shift() -> Callable[..., None]:
    return _shift
