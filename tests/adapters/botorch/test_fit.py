"""Fits of `BKBModel`: BoTorch's own while small, and bounded in cost after, for every kind of model."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, SingleTaskGP
from botorch.optim.closures import get_loss_closure_with_grads
from botorch.optim.closures.core import NdarrayOptimizationClosure
from botorch.optim.fit import fit_gpytorch_mll_scipy, fit_gpytorch_mll_torch
from botorch.optim.utils import get_parameters_and_bounds
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood, SumMarginalLogLikelihood
from gpytorch.priors import LogNormalPrior
from linear_operator import to_linear_operator
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from bkbopt.adapters.botorch import BKBMarginalLogLikelihood, BKBModel, fit_bkb_model
from bkbopt.adapters.botorch.mll import log_density
from bkbopt.errors import ArgumentError
from tests.adapters.botorch.kinds import KINDS, D, close, data, mll_of
from tests.sweeps import slow_but

pytestmark = [
    # BoTorch would have the values standardised, and in float64; these tests mean what they do.
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_small_fits_find_the_hyper_parameters_that_botorch_finds(kind: str) -> None:
    own, theirs = KINDS[kind](BKBModel), KINDS[kind](SingleTaskGP)
    for model in (own, theirs):
        fit_gpytorch_mll(mll_of(model))
    # Both end where the objective is flat to L-BFGS-B's tolerance, 1e-5 a point.
    close(own, theirs, atol=2e-2)
    assert not own.training
    values = [mll_value(mll_of(model)) for model in (own, theirs)]
    torch.testing.assert_close(values[0], values[1], rtol=0, atol=1e-4)


def mll_value(mll: ExactMarginalLogLikelihood) -> Tensor:
    mll.train()
    model = mll.model
    with torch.no_grad():
        return torch.as_tensor(mll(model(*model.train_inputs), model.train_targets))


@pytest.mark.parametrize("kind", KINDS)
def test_the_likelihood_of_all_points_is_gpytorchs_with_its_gradient(kind: str) -> None:
    model = KINDS[kind](BKBModel)
    found = []
    for mll in (BKBMarginalLogLikelihood(model.likelihood, model), mll_of(model)):
        mll.train()
        value = mll(model(*model.train_inputs), model.train_targets)
        found.append((value, *torch.autograd.grad(value.sum(), list(mll.parameters()))))
    for own, theirs in zip(*found, strict=True):
        # Sums over 40 x 40 entries, of a covariance with a condition number below 1e4.
        torch.testing.assert_close(own, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_the_likelihood_of_a_subset_is_that_of_a_model_of_the_subset(kind: str) -> None:
    model = KINDS[kind](BKBModel)
    mll = BKBMarginalLogLikelihood(model.likelihood, model, max_points=17, seed=3)
    value = mll_value(mll)
    rows = mll._rows(model.train_targets.shape[-1])
    assert rows.unique().shape == (17,)
    mll.train()
    prior = model(*model.train_inputs)
    noise = model.likelihood.noise.expand(model.train_targets.shape)[..., rows]
    C = prior.covariance_matrix[..., rows, :][..., rows] + torch.diag_embed(noise)
    expected = torch.distributions.MultivariateNormal(prior.mean[..., rows], C).log_prob(model.train_targets[..., rows])
    expected = mll._add_other_terms(expected.detach(), []).detach() / 17
    torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-10)


def test_gradients_of_the_density_are_right() -> None:
    generator = torch.Generator().manual_seed(0)
    A = torch.randn(2, 5, 5, generator=generator, dtype=torch.float64)
    R = torch.randn(2, 5, generator=generator, dtype=torch.float64).requires_grad_()
    root = A.requires_grad_()

    def f(root: Tensor, R: Tensor) -> Tensor:
        return log_density(root @ root.mT + torch.eye(5, dtype=torch.float64), R)

    assert torch.autograd.gradcheck(f, (root, R))


def test_a_covariance_that_is_not_finite_is_what_optimisers_step_back_from() -> None:
    model = BKBModel(*data(12))
    model.covar_module.raw_lengthscale.data.fill_(math.nan)
    with pytest.raises(NanError, match="finite"):
        mll_value(BKBMarginalLogLikelihood(model.likelihood, model))


def test_a_covariance_that_is_not_definite_is_refused_as_such() -> None:
    model = BKBModel(*data(12))
    mll = BKBMarginalLogLikelihood(model.likelihood, model)
    R = model.train_targets
    # As a lazy operator, which GPyTorch does not factorise here.
    prior = MultivariateNormal(torch.zeros_like(R), to_linear_operator(torch.full((12, 12), -1e6, dtype=R.dtype)))
    with pytest.raises(NotPSDError, match="positive semi-definite"):
        mll(prior, R)


def test_a_fit_that_tries_a_lengthscale_of_zero_goes_on_from_the_step_before() -> None:
    X, Y = data(40)
    tried = []

    def from_zero(mll: BKBMarginalLogLikelihood, **arguments: Any) -> Any:
        """BoTorch's optimiser, after one look at a lengthscale of zero, as its line searches have."""
        parameters = {n: p for n, p in mll.named_parameters() if p.requires_grad}
        closure = NdarrayOptimizationClosure(get_loss_closure_with_grads(mll, parameters), parameters)
        start = closure.state.copy()
        tried.append(closure(np.where(np.arange(len(start)) == len(start) - 1, -1e3, start))[0])
        closure.state = start
        return fit_gpytorch_mll_scipy(mll, **arguments)

    own, theirs = (kind(X, Y, covar_module=ScaleKernel(MaternKernel(nu=1.5))) for kind in (BKBModel, SingleTaskGP))
    fit_gpytorch_mll(mll_of(own), optimizer=from_zero)
    fit_gpytorch_mll(mll_of(theirs))
    assert np.isnan(tried).all()
    close(own, theirs, atol=2e-2)


def test_subsets_need_a_point() -> None:
    model = BKBModel(*data(12))
    with pytest.raises(ArgumentError, match="max_points"):
        BKBMarginalLogLikelihood(model.likelihood, model, max_points=0)


# -- many points -----------------------------------------------------------------------------------------------------


class LargestTensor(TorchDispatchMode):
    """Notes the largest tensor that any operation gives."""

    numel = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, Tensor):
                self.numel = max(self.numel, tensor.untyped_storage().nbytes() // tensor.element_size())
        return result


@pytest.mark.parametrize("usual", slow_but({True}, [True, False]))
def test_nothing_of_the_size_of_the_data_squared_is_made(usual: bool) -> None:
    n = 6_000
    model = BKBModel(*data(n), max_inducing=50)
    mll = mll_of(model) if usual else BKBMarginalLogLikelihood(model.likelihood, model)
    before = mll_value(BKBMarginalLogLikelihood(model.likelihood, model))
    with LargestTensor() as largest:
        fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": 3}})
    assert 800**2 <= largest.numel <= max(800**2, n * D)
    assert not model.training
    after = mll_value(BKBMarginalLogLikelihood(model.likelihood, model))
    assert float(after) > float(before) + 0.1
    model.eval()
    with LargestTensor() as largest:
        model.posterior(torch.rand(3, D, dtype=torch.float64))
    assert largest.numel <= 400 * n  # the features of all points under the first draw of the dictionary


def test_many_points_are_fitted_nearly_as_well_as_all_at_once() -> None:
    X, Y = data(400)
    own, theirs = BKBModel(X, Y), SingleTaskGP(X, Y)
    fit_gpytorch_mll(BKBMarginalLogLikelihood(own.likelihood, own, max_points=350))
    fit_gpytorch_mll(mll_of(theirs))
    values = [float(mll_value(mll_of(model))) for model in (own, theirs)]
    # The value of all points: a model with wrong hyper-parameters is a tenth below and more.
    assert values[1] - 0.003 < values[0] < values[1] + 1e-4
    torch.testing.assert_close(own.likelihood.noise, theirs.likelihood.noise, rtol=0.1, atol=0)


def test_fits_to_many_points_repeat_themselves() -> None:
    first, second = (fit_bkb_model(BKBModel(*data(700)), optimizer_kwargs={"options": {"maxiter": 3}}) for _ in "ab")
    close(first, second, atol=0.0)


@pytest.mark.parametrize("kind", slow_but({"two outputs"}, ["two outputs", "a batch", "fixed noise"]))
def test_models_of_every_kind_are_fitted_to_many_points(kind: str) -> None:
    X, Y = data(600, m=2 if kind == "two outputs" else 1, batch=(2,) if kind == "a batch" else ())
    noise = torch.full_like(Y, 0.04) if kind == "fixed noise" else None
    transform = {"outcome_transform": None} if kind == "a batch" else {}
    model = BKBModel(X, Y, noise, **transform)
    mll = BKBMarginalLogLikelihood(model.likelihood, model, max_points=550)
    before = mll_value(mll)
    fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": 5}})
    assert bool((mll_value(mll) > before + 0.01).all())


# -- the ways to ask for a fit ---------------------------------------------------------------------------------------


def test_the_usual_likelihood_ours_and_the_short_form_are_one_fit() -> None:
    usual, ours, short = (BKBModel(*data(30)) for _ in range(3))
    fit_gpytorch_mll(mll_of(usual))
    mll = fit_gpytorch_mll(BKBMarginalLogLikelihood(ours.likelihood, ours))
    assert fit_bkb_model(short) is short
    assert not mll.training
    for model in (usual, ours):
        close(model, short, atol=0.0)
    assert not any(model.training for model in (usual, ours, short))


def test_lists_of_models_are_fitted_one_by_one() -> None:
    X, Y = data(30, m=2)
    models = [BKBModel(X, Y[:, [j]]) for j in range(2)]
    together = ModelListGP(*models)
    fit_gpytorch_mll(SumMarginalLogLikelihood(together.likelihood, together))
    for j, model in enumerate(models):
        close(model, fit_bkb_model(BKBModel(X, Y[:, [j]])), atol=0.0)


def test_single_precision_is_fitted_to_the_same_hyper_parameters() -> None:
    X, Y = data(40)
    model = BKBModel(X.float(), Y.float())
    fit_gpytorch_mll(mll_of(model))
    assert all(p.dtype == torch.float32 for p in model.parameters())
    # The last digits of a float32 objective end the search about 1e-4 below its best value.
    theirs = SingleTaskGP(X, Y)
    fit_gpytorch_mll(mll_of(theirs))
    close(model.double(), theirs, atol=0.1)


def test_priors_hold_the_hyper_parameters() -> None:
    X, Y = data(40)
    kernel = RBFKernel(ard_num_dims=D, lengthscale_prior=LogNormalPrior(math.log(5.0), 1e-3))
    model = fit_bkb_model(BKBModel(X, Y, covar_module=kernel))
    # The prior's mode is exp(mu - sigma^2); forty values move it by a fraction of its width.
    torch.testing.assert_close(kernel.lengthscale, torch.full_like(kernel.lengthscale, 5.0), rtol=2e-3, atol=0)
    assert model.covar_module is kernel


def test_frozen_hyper_parameters_stay() -> None:
    model = BKBModel(*data(40))
    model.covar_module.raw_lengthscale.requires_grad_(False)
    before = model.covar_module.lengthscale.clone()
    noise = model.likelihood.noise.detach().clone()
    fit_bkb_model(model)
    torch.testing.assert_close(model.covar_module.lengthscale, before, rtol=0, atol=0)
    assert not torch.equal(model.likelihood.noise, noise)


@pytest.mark.parametrize("n", slow_but({30}, [30, 600]))
def test_botorchs_other_optimiser_fits_too(n: int) -> None:
    model = BKBModel(*data(n))
    mll = BKBMarginalLogLikelihood(model.likelihood, model)
    before = mll_value(mll)
    fit_gpytorch_mll(mll, optimizer=fit_gpytorch_mll_torch, optimizer_kwargs={"step_limit": 20})
    assert float(mll_value(mll)) > float(before)


def test_an_objective_of_the_users_is_taken_as_it_is() -> None:
    model = BKBModel(*data(600))
    mll = BKBMarginalLogLikelihood(model.likelihood, model, max_points=520)
    closure = get_loss_closure_with_grads(mll.train(), get_parameters_and_bounds(mll)[0])
    calls = 0

    def counted(**kwargs: Any) -> Any:
        nonlocal calls
        assert kwargs == {"scale": 1.0}
        calls += 1
        return closure()

    fit_gpytorch_mll(mll, closure=counted, closure_kwargs={"scale": 1.0}, optimizer_kwargs={"options": {"maxiter": 2}})
    assert calls >= 2


def test_a_fit_that_ends_nowhere_is_refused_and_changes_nothing() -> None:
    model = BKBModel(*data(20))
    before = {name: value.clone() for name, value in model.state_dict().items()}

    def astray(mll: Any, **kwargs: Any) -> None:
        mll.model.covar_module.raw_lengthscale.data.fill_(math.nan)

    with pytest.raises(ModelFittingError, match="finite"):
        fit_gpytorch_mll(mll_of(model), optimizer=astray)
    after = model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


@pytest.mark.parametrize("n", [20, 520])
def test_values_whose_squares_overflow_have_no_fit_as_for_single_task_gp(n: int) -> None:
    X, Y = data(n)
    model = BKBModel(X, 1e200 * Y, outcome_transform=None)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(ModelFittingError, match=r"^model: expected a finite likelihood .* Standardize"):
        fit_gpytorch_mll(mll_of(model))
    after = model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


def test_a_search_that_ends_beside_likelihoods_that_are_not_finite_keeps_what_it_found() -> None:
    def ending_beside(mll: Any, **arguments: Any) -> Any:
        result = fit_gpytorch_mll_scipy(mll, **arguments)
        return replace(result, fval=math.nan)

    model = BKBModel(*data(20))
    fit_gpytorch_mll(mll_of(model), optimizer=ending_beside)
    close(model, fit_bkb_model(BKBModel(*data(20))), atol=0.0)


@pytest.mark.parametrize("error", [NotPSDError, NanError, KeyboardInterrupt])
@pytest.mark.parametrize("is_training", [False, True])
def test_a_fit_that_ends_with_an_error_changes_nothing(error: type[BaseException], is_training: bool) -> None:
    model = BKBModel(*data(20)).train(is_training)
    before = {name: value.clone() for name, value in model.state_dict().items()}

    def breaking(mll: Any, **kwargs: Any) -> None:
        for parameter in mll.parameters():
            parameter.data.add_(1.0)
        raise error("while the optimiser tries parameters")

    with pytest.raises(error, match="while the optimiser tries"):
        fit_gpytorch_mll(mll_of(model), optimizer=breaking)
    after = model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert model.training == is_training


def test_a_covariance_that_is_not_definite_in_a_fit_leaves_the_parameters_and_predictions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, Y = data(20)
    model = BKBModel(X, Y).eval()
    before = model.posterior(X[:3] + 0.01).mean
    left = iter([True] * 4)

    def until_the_fifth(C: Tensor, R: Tensor) -> Tensor:
        return log_density(C if next(left, False) else -C, R)

    monkeypatch.setattr("bkbopt.adapters.botorch.mll.log_density", until_the_fifth)
    with pytest.raises(NotPSDError):
        fit_bkb_model(model)
    torch.testing.assert_close(model.posterior(X[:3] + 0.01).mean, before, rtol=0, atol=0)
