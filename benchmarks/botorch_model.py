"""BoTorch's default Gaussian process as those peers fit it that are made of BoTorch's parts."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from botorch.models import SingleTaskGP

__all__ = ["fitted", "quiet_botorch"]


def fitted(X: Tensor, Y: Tensor, corners: Tensor) -> "SingleTaskGP":
    """`SingleTaskGP` of points (n, d) of the box with these `corners` (2, d) and outcomes (n, k), its noise unknown."""
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Normalize, Standardize
    from gpytorch.mlls import ExactMarginalLogLikelihood

    to_cube, to_units = Normalize(X.shape[-1], bounds=corners), Standardize(Y.shape[-1])
    model = SingleTaskGP(X, Y, input_transform=to_cube, outcome_transform=to_units)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


@contextmanager
def quiet_botorch() -> Iterator[None]:
    """Suppress BoTorch's usual warnings: retried fits, restarts that stop early, unchecked sparse tensors."""
    from botorch.exceptions.warnings import BotorchWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.filterwarnings("ignore", "Sparse invariant checks", UserWarning)
        yield
