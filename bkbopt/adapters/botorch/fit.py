"""Fitting of a `BKBModel`: BoTorch's optimiser and a marginal likelihood of bounded cost."""

import copy
import logging
import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from botorch.exceptions.errors import ModelFittingError, UnsupportedError
from botorch.exceptions.warnings import OptimizationWarning
from botorch.fit import _fit_fallback
from botorch.models import SingleTaskGP
from botorch.optim.fit import fit_gpytorch_mll_scipy
from gpytorch.mlls import ExactMarginalLogLikelihood, MarginalLogLikelihood
from gpytorch.mlls._approximate_mll import _ApproximateMarginalLogLikelihood  # as BoTorch does; it has no public name

from bkbopt._support.threads import small_scipy_work
from bkbopt.adapters.botorch.mll import BKBMarginalLogLikelihood

__all__ = ["fit_bkb_model", "fit_likelihood"]

log = logging.getLogger(__name__)

#: Up to this number of training points there is a single fit.
AT_ONCE_UP_TO = 500
#: With more, a first fit to this many points runs to convergence at a small part of the cost.
FIRST_POINTS = 300
#: Iterations of the second fit, on all points that the likelihood uses; more did not improve predictions.
SECOND_ITERATIONS = 15


def fit_bkb_model(
    model: SingleTaskGP,
    *,
    closure: Callable[..., Any] | None = None,
    optimizer: Callable[..., Any] = fit_gpytorch_mll_scipy,
    closure_kwargs: dict[str, Any] | None = None,
    optimizer_kwargs: dict[str, Any] | None = None,
) -> SingleTaskGP:
    """Fit the hyper-parameters of a `BKBModel` and return the model, in evaluation mode.

    This is `fit_gpytorch_mll(BKBMarginalLogLikelihood(model.likelihood, model))`. Priors and constraints are those of
    the model. Up to 500 training points it is BoTorch's fit of the exact marginal likelihood. For more points a fit to
    300 random points is refined by one to 800 random points.

    Args:
        model: a `BKBModel`.
        closure: an objective of the user, which is optimised once, without a first fit.
        optimizer: the optimiser, one of BoTorch's.
        closure_kwargs: arguments of the objective.
        optimizer_kwargs: arguments of the optimiser.

    Raises:
        ModelFittingError: no hyper-parameters with a finite likelihood were found. After any error the parameters are
            those of before.

    Example:
        >>> import torch
        >>> from bkbopt.adapters.botorch import BKBModel, fit_bkb_model
        >>> X = torch.linspace(0.0, 1.0, 20, dtype=torch.float64)[:, None]
        >>> model = fit_bkb_model(BKBModel(X, torch.sin(6.0 * X)))
        >>> bool(model.likelihood.noise < 0.01)
        True
    """
    fit_likelihood(
        BKBMarginalLogLikelihood(model.likelihood, model),
        closure=closure,
        optimizer=optimizer,
        closure_kwargs=closure_kwargs,
        optimizer_kwargs=optimizer_kwargs,
    )
    model.eval()
    return model


def fit_likelihood(
    mll: MarginalLogLikelihood,
    *,
    closure: Callable[..., Any] | None = None,
    optimizer: Callable[..., Any] = fit_gpytorch_mll_scipy,
    closure_kwargs: dict[str, Any] | None = None,
    optimizer_kwargs: dict[str, Any] | None = None,
    **others: Any,
) -> None:
    """Fit the model of `mll`.

    The usual `ExactMarginalLogLikelihood` is replaced by a `BKBMarginalLogLikelihood`, whose subclasses are fitted like
    it, on random subsets. Other objectives are the user's: BoTorch optimises them as for a `SingleTaskGP`, on the prior
    of all points.

    Args:
        mll: marginal log likelihood of a `BKBModel`, other than a variational bound.
        closure: an objective of the user, which is optimised once, without a first fit.
        optimizer: the optimiser, one of BoTorch's.
        closure_kwargs: arguments of the objective.
        optimizer_kwargs: arguments of the optimiser.
        others: other arguments of `fit_gpytorch_mll`, for an `mll` of the user's; our own fits ignore them, as BoTorch
            ignores those that it does not know.

    Raises:
        UnsupportedError: `mll` is a bound for variational models.
        ModelFittingError: no finite hyper-parameters were found. After any error the parameters are those of before.
    """
    if isinstance(mll, _ApproximateMarginalLogLikelihood):
        raise UnsupportedError(
            f"mll: expected a likelihood of an exact model, got {type(mll).__name__}, a bound for models with a "
            "variational distribution; use ExactMarginalLogLikelihood, which costs no more for this model, or "
            "fit_bkb_model(model)."
        )
    given = {"closure": closure, "closure_kwargs": closure_kwargs}
    # The type itself: a subclass is another objective.
    if type(mll) is ExactMarginalLogLikelihood:
        mll = BKBMarginalLogLikelihood(mll.likelihood, mll.model)
    if isinstance(mll, BKBMarginalLogLikelihood):
        objective = {name: value for name, value in given.items() if value is not None}
        _fit_own(mll, optimizer, dict(optimizer_kwargs or {}) | objective)
    else:
        # What `fit_gpytorch_mll` does for models without a `custom_fit`, with its retries and warnings.
        others.update(given, optimizer=optimizer, optimizer_kwargs=optimizer_kwargs)
        _fit_fallback(mll, **others)


def _fit_own(mll: BKBMarginalLogLikelihood, optimizer: Callable[..., Any], arguments: dict[str, Any]) -> None:
    before, is_training = [p.detach().clone() for p in mll.parameters()], mll.model.training
    try:
        _fit_in_turn(mll, optimizer, arguments)
    except BaseException:  # an interrupt, too, comes between parameters that the optimiser tries
        with torch.no_grad():
            for p, value in zip(mll.parameters(), before, strict=True):
                p.copy_(value)
        mll.train(is_training)
        raise
    mll.eval()


def _fit_in_turn(mll: BKBMarginalLogLikelihood, optimizer: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Fit to a few points, then to more.

    Raises:
        ModelFittingError: that ends at parameters, or at a likelihood, that are not finite.
    """
    model = mll.model
    model.train()
    points = min(model.train_targets.shape[-1], mll.max_points)
    if "closure" not in arguments and points > AT_ONCE_UP_TO:
        first = copy.copy(mll)  # of the same class: a subclass has one objective in both fits
        first.max_points = FIRST_POINTS
        _optimise(first, optimizer, arguments)
        if optimizer is fit_gpytorch_mll_scipy:
            arguments["options"] = {"maxiter": SECOND_ITERATIONS, **arguments.get("options", {})}
    result = _optimise(mll, optimizer, arguments)
    if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        raise ModelFittingError(
            "model: expected finite hyper-parameters from the fit, got NaN or infinity; check the scale of the "
            "training data and the priors. The model is unchanged."
        )
    # The value of a search that ended beside values that are not finite may be one of these, with good parameters.
    if "closure" not in arguments and not math.isfinite(getattr(result, "fval", 0.0)) and not _is_finite(mll):
        raise ModelFittingError(
            "model: expected a finite likelihood of the training data, got NaN or infinity; check their scale: values "
            "near 1e150 need Standardize as outcome_transform, the default. The model is unchanged."
        )


def _is_finite(mll: BKBMarginalLogLikelihood) -> bool:
    """Whether the likelihood of the present hyper-parameters is finite."""
    with torch.no_grad():
        value = mll(mll.model(*mll.model.train_inputs), mll.model.train_targets)
    return bool(torch.isfinite(value).all())


def _optimise(mll: BKBMarginalLogLikelihood, optimizer: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """What the optimiser returns, for those of BoTorch an `OptimizationResult`."""
    mll.train()
    with warnings.catch_warnings(), small_scipy_work():
        # BoTorch warns at the limit of iterations, which is intended here, and if the last line search gains nothing.
        warnings.simplefilter("ignore", OptimizationWarning)
        result = optimizer(mll, **arguments)
    log.debug("fit: %s", result)
    return result
