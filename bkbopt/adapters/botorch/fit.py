"""Fitting a `BKBModel`: BoTorch's optimiser on an objective whose cost does not grow with the data."""

import logging
import warnings
from collections.abc import Callable
from typing import Any

import torch
from botorch.exceptions.warnings import OptimizationWarning
from botorch.models import SingleTaskGP
from botorch.optim.fit import fit_gpytorch_mll_scipy
from gpytorch.mlls import MarginalLogLikelihood

from bkbopt.adapters.botorch.mll import BKBMarginalLogLikelihood
from bkbopt.linalg import small_scipy_work

__all__ = ["fit_bkb_model", "fit_likelihood"]

log = logging.getLogger(__name__)

#: Iterations of L-BFGS-B under each dictionary of the bound.
ROUNDS = (30, 15)


def fit_bkb_model(model: SingleTaskGP, **kwargs: Any) -> SingleTaskGP:
    """Fit the hyper-parameters of a `BKBModel`; it ends in evaluation mode, and is returned.

    The same as `fit_gpytorch_mll(BKBMarginalLogLikelihood(model.likelihood, model))`. Priors and constraints are the
    model's. Up to 500 points the marginal likelihood is exact; after that its collapsed bound on at most 2,000 points,
    with inducing points that are drawn anew by leverage between two rounds.

    Args:
        model: a `BKBModel`.
        kwargs: see `fit_likelihood`.
    """
    fit_likelihood(BKBMarginalLogLikelihood(model.likelihood, model), **kwargs)
    model.eval()
    return model


def fit_likelihood(
    mll: MarginalLogLikelihood,
    *,
    closure: Callable[..., Any] | None = None,
    optimizer: Callable[..., Any] = fit_gpytorch_mll_scipy,
    closure_kwargs: dict[str, Any] | None = None,
    optimizer_kwargs: dict[str, Any] | None = None,
    **ignored: Any,  # noqa: ARG001  BoTorch passes what other fits know
) -> None:
    """Fit by `mll`; one that is not ours is taken for a wish to fit its model, and ours is put in its place.

    Args:
        mll: around a `BKBModel`.
        closure: an objective of the user's, taken as it is.
        optimizer: BoTorch's optimiser to use.
        closure_kwargs: arguments of the objective.
        optimizer_kwargs: arguments of the optimiser.
        ignored: other arguments of `fit_gpytorch_mll`, which do not apply here.
    """
    model = mll.model
    own = mll if isinstance(mll, BKBMarginalLogLikelihood) else BKBMarginalLogLikelihood(mll.likelihood, model)
    given = dict(optimizer_kwargs or {})
    if closure is not None:
        given["closure"] = closure
    if closure_kwargs is not None:
        given["closure_kwargs"] = closure_kwargs
    own.train()
    exact = model.train_targets.shape[-1] <= own.exact_up_to or closure is not None
    rounds: tuple[int | None, ...] = (None,) if exact else ROUNDS
    for iterations in rounds:
        if not exact:
            own.refresh()
        arguments = dict(given)
        if iterations is not None and optimizer is fit_gpytorch_mll_scipy:
            arguments["options"] = {"maxiter": iterations, **given.get("options", {})}
        with warnings.catch_warnings(), small_scipy_work():
            # A round ends where its iterations do.
            warnings.simplefilter("ignore", OptimizationWarning)
            result = optimizer(own, **arguments)
        log.debug("fit: %s", result)
    with torch.no_grad():
        own.eval()
