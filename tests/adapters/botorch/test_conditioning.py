"""Conditioning and fantasies: `SingleTaskGP`'s, a fit from scratch, the mathematics, and gradients."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("botorch", reason="the BoTorch adapter needs botorch")

from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms.input import Normalize, Round
from botorch.models.transforms.outcome import Log, Standardize
from botorch.sampling import IIDNormalSampler, SobolQMCNormalSampler

from bkbopt.adapters.botorch import BKBModel
from tests.sweeps import sweep

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")

D = 3
F64 = torch.float64
Data = Callable[..., tuple[Tensor, Tensor, Tensor]]
Pair = Callable[..., tuple[Any, Any]]
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "plain": {"outcome_transform": None},
    "transformed": {"input_transform": Normalize(D), "outcome_transform": Log()},
    "rounded": {"input_transform": Round(integer_indices=[0], approximate=False)},
}


def assert_alike(ours: Any, theirs: Any, tolerance: float = 1e-9) -> None:
    # SingleTaskGP updates the factor of a matrix with a condition number of up to 1e4, at each step anew.
    for name in ("mean", "variance"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert one.shape == other.shape
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)
    if hasattr(ours, "distribution"):
        one, other = ours.distribution.covariance_matrix, theirs.distribution.covariance_matrix
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("batch", "m", "fixed", "name"), sweep([(), (2,)], [1, 2], [False, True], OPTIONS, together=2), ids=str
)
def test_conditioning_agrees_with_single_task_gp(
    batch: tuple[int, ...], m: int, fixed: bool, name: str, data: Data, pair: Pair
) -> None:
    X, Y, Yvar = data(20, D, m, batch)
    ours, theirs = pair(X, Y, Yvar if fixed else None, **OPTIONS[name])
    points = torch.rand(3, *[1] * len(batch), 4, D, dtype=F64)
    for q in (1, 3):  # twice, the second time on top of the first
        X_new, Y_new, noise = data(q, D, m, batch, seed=q)
        given = {"noise": noise} if fixed else {}
        ours, theirs = (model.condition_on_observations(X_new, Y_new, **given) for model in (ours, theirs))
        assert isinstance(ours, BKBModel)
        assert (ours.batch_shape, ours.num_outputs) == (theirs.batch_shape, m)
        assert torch.equal(ours.train_inputs[0], theirs.train_inputs[0])
        torch.testing.assert_close(ours.train_targets, theirs.train_targets, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(ours.likelihood.noise, theirs.likelihood.noise, rtol=1e-12, atol=1e-12)
        for options in ({}, {"observation_noise": True}):
            assert_alike(ours.posterior(points, **options), theirs.posterior(points, **options))
    if hasattr(ours, "input_transform"):
        assert torch.equal(ours._original_train_inputs[..., -3:, :], theirs._original_train_inputs[..., -3:, :])


@pytest.mark.parametrize(
    ("batch", "m", "fixed", "name"), sweep([(), (2,)], [1, 2], [False, True], OPTIONS, together=2), ids=str
)
def test_fantasies_agree_with_single_task_gp(
    batch: tuple[int, ...], m: int, fixed: bool, name: str, data: Data, pair: Pair
) -> None:
    X, Y, Yvar = data(20, D, m, batch)
    models = pair(X, Y, Yvar if fixed else None, **OPTIONS[name])
    X_new = torch.rand(6, *[1] * len(batch), 2, D, dtype=F64) if not batch else torch.rand(6, 2, 2, D, dtype=F64)
    ours, theirs = (model.fantasize(X_new, SobolQMCNormalSampler(torch.Size([5]), seed=3)) for model in models)
    assert ours.batch_shape == theirs.batch_shape == torch.Size([5, 6, *batch])
    points = torch.rand(*ours.batch_shape, 4, D, dtype=F64)
    assert_alike(ours.posterior(points), theirs.posterior(points))
    # And fantasies of fantasies, as in a look-ahead of two steps.
    X_next = torch.rand(6, *batch, 1, D, dtype=F64)
    ours, theirs = (
        model.fantasize(X_next.expand(*model.batch_shape, 1, D), SobolQMCNormalSampler(torch.Size([2]), seed=4))
        for model in (ours, theirs)
    )
    assert ours.batch_shape == theirs.batch_shape == torch.Size([2, 5, 6, *batch])
    assert_alike(ours.posterior(points), theirs.posterior(points))


@pytest.mark.parametrize("m", [1, 2])
def test_conditioning_on_many_points_is_a_model_of_all_of_them(m: int, data: Data, pair: Pair) -> None:
    X, Y, Yvar = data(80, D, m)
    ours, _ = pair(X[:60], Y[:60], Yvar[:60], outcome_transform=None)
    _, whole = pair(X, Y, Yvar, outcome_transform=None)
    new = ours.condition_on_observations(X[60:], Y[60:], noise=Yvar[60:])
    for points in (torch.rand(2, 5, D, dtype=F64), torch.rand(140, D, dtype=F64)):
        assert_alike(new.posterior(points), whole.posterior(points))
        assert_alike(new.absorbed().posterior(points), whole.posterior(points))


def test_repeats_and_training_points_may_be_conditioned_on(data: Data, pair: Pair) -> None:
    X, Y, _ = data(20, D)
    models = pair(X, Y)
    X_new = torch.cat([X[:2], X[:1], X[:1]])
    ours, theirs = (model.condition_on_observations(X_new, Y[:4]) for model in models)
    points = torch.cat([X[:3], torch.rand(2, D, dtype=F64)])
    assert_alike(ours.posterior(points), theirs.posterior(points))


def test_given_noise_replaces_the_inferred_one(data: Data, pair: Pair) -> None:
    X, Y, _ = data(20, D, 2)
    ours, theirs = pair(X, Y, outcome_transform=None)
    X_new, Y_new, noise = data(2, D, 2, seed=5)
    Yvar = torch.cat([theirs.likelihood.noise.mT.expand(20, 2), noise]).detach()
    # SingleTaskGP itself takes the given noise for its covariances, and the inferred one for its means.
    whole = SingleTaskGP(torch.cat([X, X_new]), torch.cat([Y, Y_new]), Yvar, outcome_transform=None)
    whole.load_state_dict({key: value for key, value in theirs.state_dict().items() if "noise" not in key})
    conditioned = ours.condition_on_observations(X_new, Y_new, noise=noise)
    assert_alike(conditioned.posterior(X[:3]), whole.posterior(X[:3]))


@pytest.mark.parametrize("shape", [(), (1,)], ids=str)
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
def test_one_noise_variance_is_that_of_all_points_as_for_single_task_gp(
    batch: tuple[int, ...], shape: tuple[int, ...], data: Data, pair: Pair
) -> None:
    X, Y, Yvar = data(20, D, 1, batch)
    models = pair(X, Y, Yvar, outcome_transform=None)
    points, noise = torch.rand(*batch, 4, D, dtype=F64), torch.full(shape, 0.3, dtype=F64)
    assert_alike(*(model.posterior(points, observation_noise=noise) for model in models))
    sampler = SobolQMCNormalSampler(torch.Size([3]), seed=3)
    ours, theirs = (model.fantasize(points, sampler, observation_noise=noise) for model in models)
    assert_alike(ours.posterior(X[..., :3, :]), theirs.posterior(X[..., :3, :]))
    each = models[0].fantasize(points, sampler, observation_noise=noise.expand(4, 1))
    assert torch.equal(ours.posterior(points).mean, each.posterior(points).mean)


def test_values_without_the_batches_of_their_points_hold_for_all_of_them(data: Data, pair: Pair) -> None:
    X, Y, _ = data(15, D, 2)
    ours, _ = pair(X, Y)
    X_new, Y_new, _ = data(2, D, 2, (4,), seed=5)
    new = ours.condition_on_observations(X_new, Y_new[0])
    for i in range(4):
        one = ours.condition_on_observations(X_new[i], Y_new[0]).posterior(X[:3])
        torch.testing.assert_close(new.posterior(X[:3]).mean[i], one.mean, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(new.posterior(X[:3]).variance[i], one.variance, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("fixed", [False, True], ids=["inferred", "Yvar"])
def test_observations_without_the_models_batches_hold_for_all_of_them(
    m: int, fixed: bool, data: Data, pair: Pair
) -> None:
    X, Y, Yvar = data(15, D, m, (2,))
    ours, _ = pair(X, Y, Yvar if fixed else None)
    X_new, Y_new, noise = data(2, D, m, seed=5)
    points = torch.rand(4, D, dtype=F64)
    once = ours.condition_on_observations(X_new, Y_new, noise=noise if fixed else None)
    each = ours.condition_on_observations(
        X_new.expand(2, 2, D), Y_new.expand(2, 2, m), noise=noise.expand(2, 2, m) if fixed else None
    )
    assert once.batch_shape == each.batch_shape == torch.Size([2])
    assert_alike(once.posterior(points), each.posterior(points), 1e-12)
    assert torch.equal(once.train_targets, each.train_targets)


def test_a_list_of_models_has_fantasies(data: Data, pair: Pair) -> None:
    pairs = [pair(*data(12, D, seed=i)[:2]) for i in range(2)]
    X_new = torch.rand(2, D, dtype=F64)
    ours, theirs = (
        ModelListGP(*models).fantasize(X_new, SobolQMCNormalSampler(torch.Size([3]), seed=2))
        for models in zip(*pairs, strict=True)
    )
    points = torch.rand(3, 4, D, dtype=F64)
    torch.testing.assert_close(ours.posterior(points).mean, theirs.posterior(points).mean, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(ours.posterior(points).variance, theirs.posterior(points).variance, rtol=1e-9, atol=1e-9)


def test_no_points_leave_the_posterior_as_it_was(data: Data, pair: Pair) -> None:
    X, Y, _ = data(12, D)
    ours, _ = pair(X, Y)
    new = ours.fantasize(X[:0], SobolQMCNormalSampler(torch.Size([3])))
    assert new.batch_shape == torch.Size([3])
    points = torch.rand(4, D, dtype=F64)
    torch.testing.assert_close(
        new.posterior(points).mean, ours.posterior(points).mean.expand(3, 4, 1), rtol=1e-12, atol=1e-12
    )


# -- what must hold with few inducing points too, where there is no oracle -----------------------------------------


def few(data: Data, pair: Pair, m: int = 1, fixed: bool = False) -> Any:
    X, Y, Yvar = data(80, D, m)
    return pair(X, Y, Yvar if fixed else None, max_inducing=12)[0]


def test_conditioning_follows_from_the_joint_posterior(data: Data, pair: Pair) -> None:
    model = few(data, pair)
    assert len(model.inducing_points) <= 12
    points, X_new = torch.rand(4, D, dtype=F64), torch.rand(3, D, dtype=F64)
    Y_new = torch.rand(3, 1, dtype=F64)
    joint = model.posterior(torch.cat([points, X_new]))
    K, mu = joint.distribution.covariance_matrix, joint.mean[:, 0]
    noise = model.likelihood.noise * model.outcome_transform.stdvs.squeeze() ** 2
    gain = torch.linalg.solve(K[4:, 4:] + noise * torch.eye(3, dtype=F64), K[4:, :4]).mT
    new = model.condition_on_observations(X_new, Y_new).posterior(points)
    # Two ways to solve with a matrix whose condition number is below 1e3.
    torch.testing.assert_close(new.mean[:, 0], mu[:4] + gain @ (Y_new[:, 0] - mu[4:]), rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(new.distribution.covariance_matrix, K[:4, :4] - gain @ K[4:, :4], rtol=1e-11, atol=1e-11)


def test_the_order_of_conditioning_does_not_matter(data: Data, pair: Pair) -> None:
    model = few(data, pair, m=2)
    X_new, Y_new, _ = data(5, D, 2, seed=4)
    points = torch.rand(4, D, dtype=F64)
    at_once = model.condition_on_observations(X_new, Y_new).posterior(points)
    for rows in ([0, 1, 2, 3, 4], [4, 2, 0, 1, 3]):
        new = model
        for i in rows:
            new = new.condition_on_observations(X_new[i : i + 1], Y_new[i : i + 1])
        assert_alike(new.posterior(points), at_once, 1e-11)


@pytest.mark.parametrize("transform", [None, Standardize(1)], ids=["plain", "standardize"])
def test_the_mean_of_fantasies_is_a_martingale(transform: Any, data: Data, pair: Pair) -> None:
    X, Y, _ = data(80, D)
    model = pair(X, Y, max_inducing=12, outcome_transform=transform)[0]
    X_new, points = torch.rand(2, D, dtype=F64), torch.rand(6, D, dtype=F64)
    n = 4000
    fantasies = model.fantasize(X_new, IIDNormalSampler(torch.Size([n]), seed=0)).posterior(points)
    before = model.posterior(points)
    # The means scatter with the variance that the fantasies took away: five standard errors, in six places.
    spread = ((before.variance - fantasies.variance[0]).clamp_min(0.0) / n).sqrt()
    assert bool(((fantasies.mean.mean(0) - before.mean).abs() <= 5.0 * spread + 1e-12).all())
    assert bool((fantasies.variance < before.variance).all())
    # The law of total variance, the variance of a sample variance being 2 / n: five standard errors.
    total = fantasies.variance[0] + fantasies.mean.var(0)
    assert bool(((total - before.variance).abs() <= 5.0 * (2.0 / n) ** 0.5 * before.variance).all())


def test_a_fantasy_model_shares_the_training_data(data: Data, pair: Pair) -> None:
    model = few(data, pair)
    new = model.fantasize(torch.rand(7, 2, D, dtype=F64), SobolQMCNormalSampler(torch.Size([5])))
    assert new._inputs[0] is model._inputs[0]
    assert new._targets is model._targets
    new.posterior(torch.rand(4, D, dtype=F64))
    assert new._given is not None  # nothing has joined them
    assert new.train_inputs[0].shape == torch.Size([5, 7, 82, D])
    assert new.train_targets.shape == torch.Size([5, 7, 82])


def test_conditioning_leaves_the_model_as_it_was(data: Data, pair: Pair) -> None:
    model = few(data, pair, m=2, fixed=True)
    points = torch.rand(4, D, dtype=F64)
    before, state = model.posterior(points), copy.deepcopy(model.state_dict())
    X_new, Y_new, noise = data(5, D, 2, seed=4)
    model.condition_on_observations(X_new, Y_new, noise=noise)
    model.fantasize(X_new, SobolQMCNormalSampler(torch.Size([2])))
    assert torch.equal(model.posterior(points).mean, before.mean)
    assert torch.equal(model.posterior(points).variance, before.variance)
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
    assert model.train_targets.shape == torch.Size([2, 80])


# -- gradients -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [12, 300], ids=["few", "all"])
@pytest.mark.parametrize("m", [1, 2])
def test_gradients_of_the_posterior_through_the_points(most: int, m: int, data: Data, pair: Pair) -> None:
    X, Y, _ = data(40, D, m)
    model = pair(X, Y, max_inducing=most, input_transform=Normalize(D))[0].requires_grad_(False)
    points = torch.rand(2, 2, D, dtype=F64, requires_grad=True)

    def function(points: Tensor) -> tuple[Tensor, ...]:
        posterior = model.posterior(points)
        return posterior.mean, posterior.variance, posterior.distribution.covariance_matrix

    assert torch.autograd.gradcheck(function, (points,))


def test_gradients_of_many_points_at_once_are_those_of_few(data: Data, pair: Pair) -> None:
    X, Y, _ = data(40, D, 2)
    model = pair(X, Y, max_inducing=12)[0].requires_grad_(False)
    weights = torch.randn(260, 260, dtype=F64)
    points = torch.rand(130, D, dtype=F64)
    grads = []
    for split in (130, 65):
        A = points.clone().requires_grad_()
        blocks = [model.posterior(part).variance for part in A.split(split)]
        grads.append(torch.autograd.grad(torch.cat(blocks).sum(), A)[0])
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-10, atol=1e-12)
    lazy = points.clone().requires_grad_()
    (model.posterior(lazy).distribution.covariance_matrix * weights).sum().backward()
    step = 1e-6 * torch.randn_like(points)
    ahead, behind = (
        (model.posterior(points + s).distribution.covariance_matrix * weights).sum() for s in (step, -step)
    )
    # Central differences at a step of 1e-6: a rounding error of 1e-16 * 260 / 1e-6, relative to values of order one.
    torch.testing.assert_close((ahead - behind) / 2.0, (lazy.grad * step).sum(), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(("most", "m"), sweep([12, 300], [1, 2]), ids=str)
def test_gradients_of_a_conditioned_model_through_points_and_data(most: int, m: int, data: Data, pair: Pair) -> None:
    X, Y, _ = data(40, D, m)
    model = pair(X, Y, max_inducing=most)[0].requires_grad_(False)
    points = torch.rand(2, D, dtype=F64, requires_grad=True)
    X_new = torch.rand(2, D, dtype=F64, requires_grad=True)
    Y_new = torch.rand(3, 2, m, dtype=F64, requires_grad=True)  # three fantasies

    def function(points: Tensor, X_new: Tensor, Y_new: Tensor) -> tuple[Tensor, ...]:
        posterior = model.condition_on_observations(X_new, Y_new).posterior(points)
        return posterior.mean, posterior.distribution.covariance_matrix

    assert torch.autograd.gradcheck(function, (points, X_new, Y_new))


def test_a_conditioned_model_can_be_copied_while_gradients_flow(data: Data, pair: Pair) -> None:
    model = few(data, pair).requires_grad_(False)
    X_new = torch.rand(2, D, dtype=F64, requires_grad=True)
    new = model.fantasize(X_new, SobolQMCNormalSampler(torch.Size([3]), seed=0))
    points = torch.rand(4, D, dtype=F64)
    again = new.fantasize(X_new[:1].expand(3, 1, D), SobolQMCNormalSampler(torch.Size([2]), seed=0))
    (gradient,) = torch.autograd.grad(again.posterior(points).mean.sum(), X_new)
    assert bool(torch.isfinite(gradient).all())
    assert bool((gradient != 0.0).all())


@pytest.mark.parametrize("fixed", [False, True], ids=["inferred", "Yvar"])
def test_gradients_of_fantasies_through_their_points(fixed: bool, data: Data, pair: Pair) -> None:
    X, Y, Yvar = data(20, D)
    model = pair(X, Y, Yvar if fixed else None, max_inducing=12)[0].requires_grad_(False)
    sampler = SobolQMCNormalSampler(torch.Size([3]), seed=0)
    points = torch.rand(2, D, dtype=F64)

    def function(X_new: Tensor) -> tuple[Tensor, Tensor]:
        posterior = model.fantasize(X_new, sampler).posterior(points)
        return posterior.mean, posterior.variance

    assert torch.autograd.gradcheck(function, (torch.rand(2, D, dtype=F64, requires_grad=True),))
