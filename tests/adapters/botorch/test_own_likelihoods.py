"""Likelihoods of the user's own, which `fit_gpytorch_mll` maximises as for a `SingleTaskGP` and never replaces."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import ModelFittingError, UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel
from gpytorch.means import ZeroMean
from gpytorch.mlls import (
    ExactMarginalLogLikelihood,
    LeaveOneOutPseudoLikelihood,
    MarginalLogLikelihood,
    PredictiveLogLikelihood,
    VariationalELBO,
)
from scipy.stats import norm
from torch import Tensor

from bkbopt.adapters.botorch import BKBMarginalLogLikelihood, BKBModel
from tests.adapters.botorch.kinds import KINDS, close, data, mll_of
from tests.sweeps import sweep

# BoTorch would have the values standardised; these tests mean what they do.
pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")


def penalty(model: SingleTaskGP) -> Tensor:
    """A term that draws all hyper-parameters to 0.3 on the scales that the optimiser moves on."""
    values = torch.cat([p.reshape(*model._aug_batch_shape, -1) for p in model.parameters()], -1)
    return (values - 0.3).square().sum(-1)


class Penalised(ExactMarginalLogLikelihood):
    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return super().forward(*args, **kwargs) - penalty(self.model)


class PenalisedOnSubsets(BKBMarginalLogLikelihood):
    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return super().forward(*args, **kwargs) - penalty(self.model)


class FromScratch(MarginalLogLikelihood):
    """Not below `ExactMarginalLogLikelihood`: BoTorch passes it the prior and the targets only."""

    def forward(self, prior: Any, targets: Tensor) -> Tensor:
        observed = self.likelihood(prior, *self.model.train_inputs)
        return observed.log_prob(targets) / targets.shape[-1] - penalty(self.model)


class Nowhere(ExactMarginalLogLikelihood):
    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return math.nan * super().forward(*args, **kwargs)


OWN = {"penalty": Penalised, "leave one out": LeaveOneOutPseudoLikelihood, "from scratch": FromScratch}


@pytest.mark.parametrize(("own", "kind"), sweep(OWN, KINDS))
def test_a_likelihood_of_the_users_is_optimised_as_for_a_native_model(own: str, kind: str) -> None:
    model, theirs, usual = KINDS[kind](BKBModel), KINDS[kind](SingleTaskGP), KINDS[kind](BKBModel)
    for each in (model, theirs):
        assert not fit_gpytorch_mll(OWN[own](each.likelihood, each)).training
    # Both are the same steps of the same optimiser.
    close(model, theirs, atol=1e-8)
    fit_gpytorch_mll(mll_of(usual))
    assert any(not torch.allclose(a, b, atol=0.1) for a, b in zip(model.parameters(), usual.parameters(), strict=True))


def test_a_likelihood_of_the_users_has_all_of_many_points() -> None:
    models = [cls(*data(600)) for cls in (BKBModel, SingleTaskGP)]
    for model in models:
        fit_gpytorch_mll(Penalised(model.likelihood, model), optimizer_kwargs={"options": {"maxiter": 3}})
    close(*models, atol=1e-8)


def test_a_leave_one_out_fit_predicts_left_out_points_best() -> None:
    X, Y = data(25)
    values = []
    for likelihood in (LeaveOneOutPseudoLikelihood, ExactMarginalLogLikelihood):
        model = BKBModel(X, Y, outcome_transform=None, covar_module=RBFKernel(), mean_module=ZeroMean())
        fit_gpytorch_mll(likelihood(model.likelihood, model))
        lengthscale, noise = model.covar_module.lengthscale.item(), model.likelihood.noise.item()
        K = np.exp(-0.5 * ((X[:, None] - X).numpy() / lengthscale) ** 2).prod(-1)
        value = 0.0
        for i in range(25):  # each point is predicted by a model without it
            rest, y = np.delete(np.arange(25), i), Y[:, 0].numpy()
            gain = np.linalg.solve(K[np.ix_(rest, rest)] + noise * np.eye(24), K[rest, i])
            value += norm.logpdf(y[i], gain @ y[rest], np.sqrt(1.0 + noise - gain @ K[rest, i])) / 25
        values.append(value)
    assert values[0] > values[1] + 1e-3


def test_a_subclass_of_our_likelihood_is_the_objective_of_both_fits() -> None:
    model = BKBModel(*data(600))
    mll = PenalisedOnSubsets(model.likelihood, model, max_points=520, seed=3)
    fits: list[Any] = []
    fit_gpytorch_mll(mll, optimizer=lambda mll, **_: fits.append((type(mll), mll.max_points, mll.seed)))
    assert fits == [(PenalisedOnSubsets, 300, 3), (PenalisedOnSubsets, 520, 3)]
    assert mll.max_points == 520


@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.OptimizationWarning")
def test_a_likelihood_of_the_users_that_is_nowhere_finite_is_refused_and_changes_nothing() -> None:
    model = BKBModel(*data(20))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(ModelFittingError):
        fit_gpytorch_mll(Nowhere(model.likelihood, model))
    after = model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


@pytest.mark.parametrize("bound", [VariationalELBO, PredictiveLogLikelihood])
def test_bounds_of_variational_models_are_refused(bound: Any) -> None:
    model = BKBModel(*data(20)).eval()
    with pytest.raises(UnsupportedError, match=rf"^mll: expected .* exact model, got {bound.__name__}.* use Exact"):
        fit_gpytorch_mll(bound(model.likelihood, model, num_data=20))
    assert not model.training
