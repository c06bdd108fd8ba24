"""More points than `max_inducing`: guarantees of BKB for the variance, and of the adapter for the covariance."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("botorch", reason="the BoTorch adapter needs botorch")

from bkbopt.adapters.botorch import BKBModel

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")

D = 3
F64 = torch.float64
Data = Callable[..., tuple[Tensor, Tensor, Tensor]]
Pair = Callable[..., tuple[Any, Any]]


def close_pair(data: Data, pair: Pair, most: int | None = 60, fixed: bool = False, **options: Any) -> tuple[Any, Any]:
    """A model of 250 points that takes `most` of them at most, and the exact one, of lengthscales about one."""
    X, Y, Yvar = data(250, D)
    ours, theirs = pair(X, Y, Yvar if fixed else None, max_inducing=most, outcome_transform=None, **options)
    for model in (ours, theirs):
        with torch.no_grad():
            model.covar_module.lengthscale = 1.0
            if not fixed:
                model.likelihood.noise = 0.05
        model.train()
        model.eval()
    return ours, theirs


@pytest.mark.parametrize("fixed", [False, True], ids=["inferred", "Yvar"])
def test_leverages_are_close_to_the_exact_ones(fixed: bool, data: Data, pair: Pair) -> None:
    ours, theirs = close_pair(data, pair, fixed=fixed, qbar=8.0)
    assert len(ours.inducing_points) <= 60
    points = torch.rand(200, D, dtype=F64)
    ratio = (ours.posterior(points).variance / theirs.posterior(points).variance).detach()
    # Theorem 1 of Calandriello et al. (2019) bounds the ratio from both sides, and neither sign is certain: projected
    # observations may seem to say more about a point than the true ones do. 2 % was seen.
    assert float(ratio.min()) > 1.0 / 1.05
    assert float(ratio.max()) < 1.05


def test_variance_is_never_above_the_prior_nor_below_what_the_inducing_points_leave(data: Data, pair: Pair) -> None:
    ours, _ = close_pair(data, pair, most=15)
    points = torch.cat([torch.rand(100, D, dtype=F64), 3.0 * torch.rand(100, D, dtype=F64)])
    variance = ours.posterior(points).variance[:, 0].detach()
    K = ours.covar_module(ours.inducing_points).to_dense()
    k = ours.covar_module(ours.inducing_points, points).to_dense()
    residual = (1.0 - (k * torch.linalg.solve(K, k)).sum(0)).detach()
    # The prior variance of BoTorch's default kernel is one. 1e-8: the condition number of K times rounding.
    assert float(variance.max()) <= 1.0 + 1e-12
    assert bool((variance >= residual - 1e-8).all())


@pytest.mark.parametrize("most", [1, 15, 60])
def test_variance_far_away_is_the_priors(most: int, data: Data, pair: Pair) -> None:
    # Without its residual a model of few features starves: it would be certain far from them.
    ours, _ = close_pair(data, pair, most=most)
    far = 100.0 + torch.rand(5, D, dtype=F64)
    posterior = ours.posterior(far)
    torch.testing.assert_close(posterior.variance, torch.ones(5, 1, dtype=F64), rtol=0, atol=1e-12)
    torch.testing.assert_close(
        posterior.mean, ours.mean_module.constant.detach().expand(5, 1), rtol=0, atol=1e-12, check_stride=False
    )


@pytest.mark.parametrize("most", [1, 15, 60])
@pytest.mark.parametrize("q", [64, 200], ids=["dense", "lazy"])
def test_joint_covariance_is_positive_semi_definite(most: int, q: int, data: Data, pair: Pair) -> None:
    ours, _ = close_pair(data, pair, most=most)
    X_new, Y_new, _ = data(5, D, seed=3)
    points = torch.cat([torch.rand(q - 20, D, dtype=F64), ours.train_inputs[0][:15], X_new])
    for model in (ours, ours.condition_on_observations(X_new, Y_new)):
        posterior = model.posterior(points)
        K = posterior.distribution.covariance_matrix.detach()
        # Rounding of a sum of q terms of order one.
        assert float(torch.linalg.eigvalsh(K).min()) > -1e-13 * q
        torch.testing.assert_close(K, K.mT, rtol=0, atol=1e-13)
        torch.testing.assert_close(K.diagonal()[:, None], posterior.variance.detach(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("q", [64, 200], ids=["dense", "lazy"])
def test_joint_covariance_holds_for_every_pair(q: int, data: Data, pair: Pair) -> None:
    ours, _ = close_pair(data, pair, most=15)
    points = torch.rand(q, D, dtype=F64)
    K = ours.posterior(points).distribution.covariance_matrix
    i = torch.arange(0, q - 1, 7)
    pairs = ours.posterior(torch.stack([points[i], points[i + 1]], 1)).distribution.covariance_matrix
    torch.testing.assert_close(K[i, i + 1], pairs[:, 0, 1], rtol=1e-9, atol=1e-12)


def test_more_inducing_points_come_closer(data: Data, pair: Pair) -> None:
    points = torch.rand(100, D, dtype=F64)
    errors = []
    for most in (5, 15, 40, 120, None):
        ours, theirs = close_pair(data, pair, most=most, qbar=8.0)
        difference = ours.posterior(points).mean - theirs.posterior(points).mean
        errors.append(float(difference.detach().square().mean().sqrt()))
    assert errors[0] > 3.0 * errors[2] > 3.0 * errors[3]
    assert errors[4] < 0.02  # a tenth of the noise's standard deviation of 0.22


def test_all_points_fit_or_are_drawn(data: Data) -> None:
    X, Y, _ = data(40, D)
    assert len(BKBModel(X, Y, max_inducing=40).inducing_points) == 40
    assert len(BKBModel(X, Y, max_inducing=39).inducing_points) <= 39
    several = BKBModel(X.expand(2, 40, D), Y.expand(2, 40, 1).repeat(1, 1, 2), max_inducing=10)
    assert several.inducing_points.shape[:2] == (2, 2)
    assert several.inducing_points.shape[2] <= 10


@pytest.mark.parametrize("most", [1, 7, 30, 60])
def test_the_number_of_inducing_points_is_used_in_full_where_the_data_ask_for_more(most: int, data: Data) -> None:
    X, Y, _ = data(400, D)
    sizes = [BKBModel(X, Y, max_inducing=most, qbar=1e6, seed=seed).inducing_points.shape[-2] for seed in range(5)]
    assert max(sizes) == most
    # A draw is random, and may fall short of what it aims at: by the square root of it, at most, in these.
    assert min(sizes) >= most - most**0.5


def test_the_draw_depends_on_the_seed_and_on_nothing_else(data: Data) -> None:
    X, Y, _ = data(100, D)
    points = torch.rand(5, D, dtype=F64)

    def mean(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return BKBModel(X, Y, max_inducing=10, seed=seed).posterior(points).mean

    assert torch.equal(mean(0), mean(0))
    assert not torch.equal(mean(0), mean(1))
    state = torch.get_rng_state()
    BKBModel(X, Y, max_inducing=10).posterior(points)
    assert torch.equal(torch.get_rng_state(), state)


def test_observations_of_known_variance_count_by_it(data: Data, pair: Pair) -> None:
    # Observing a point twice, each with variance 2 v, is observing its mean value once with variance v.
    X, Y, Yvar = data(30, D)
    for most in (300, 10):
        once, _ = pair(X, Y, Yvar, outcome_transform=None, max_inducing=most)
        rows = torch.arange(30).repeat(2)
        apart = torch.cat([Y + 0.1, Y - 0.1])
        twice, _ = pair(X[rows], apart, 2.0 * Yvar[rows], outcome_transform=None, max_inducing=most)
        points = torch.rand(5, D, dtype=F64)
        one, other = once.posterior(points), twice.posterior(points)
        if most == 300:
            torch.testing.assert_close(one.mean, other.mean, rtol=1e-10, atol=1e-10)
            torch.testing.assert_close(one.variance, other.variance, rtol=1e-10, atol=1e-10)
        else:  # the scale of lam differs, and with it the draw
            assert len(twice.inducing_points) <= 10
