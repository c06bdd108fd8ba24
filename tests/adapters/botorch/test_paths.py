"""Sample paths: their moments are those of the posterior, and they cost the inducing points, not the data."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("botorch", reason="the BoTorch adapter needs botorch")

from botorch.acquisition.thompson_sampling import PathwiseThompsonSampling
from botorch.exceptions.errors import UnsupportedError
from botorch.generation import MaxPosteriorSampling
from botorch.models.transforms.input import Normalize, Warp
from botorch.models.transforms.outcome import Log
from botorch.optim import optimize_acqf
from botorch.sampling.pathwise import draw_matheron_paths
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

from bkbopt.adapters.botorch import BKBModel

pytestmark = [
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning"),
    # A joint covariance of hundreds of points is singular to rounding.
    pytest.mark.filterwarnings("ignore::linear_operator.utils.warnings.NumericalWarning"),
]

D = 2
F64 = torch.float64
Data = Callable[..., tuple[Tensor, Tensor, Tensor]]
Pair = Callable[..., tuple[Any, Any]]
PATHS = 1024


def options() -> dict[str, dict[str, Any]]:
    bounds = torch.tensor([[0.0] * D, [1.0] * D], dtype=F64)
    return {
        "default": {},
        "plain": {"outcome_transform": None},
        "few inducing points": {"max_inducing": 8},
        "input transforms": {"input_transform": Normalize(D), "max_inducing": 8},
        "warped": {"input_transform": Warp(d=D, indices=[0], bounds=bounds)},
        "scaled Matern": {"covar_module": ScaleKernel(MaternKernel(2.5, ard_num_dims=D)), "max_inducing": 8},
        "RBF": {"covar_module": RBFKernel(ard_num_dims=D)},
    }


#: All points and few of them, one output and two, transforms of inputs and values and a scale, in three cases.
FAST = {(1, "plain"), (2, "input transforms"), (1, "scaled Matern")}


def assert_moments(samples: Tensor, posterior: Any) -> None:
    """Mean and covariance of `samples (N, q, m)` are those of the posterior, up to the scatter of N samples.

    Paths of the prior are sums of 1,024 random features, so that their own covariance is off by about
    1 / sqrt(1024) of the prior variance once and for all; they change with every draw, not with every path.
    """
    mean, variance = posterior.mean.detach(), posterior.variance.detach()
    n = len(samples)
    # Five standard errors in a dozen places: once in 100,000 runs, and the seeds are fixed.
    assert float(((samples.mean(0) - mean) / (variance / n).sqrt()).abs().max()) < 5.0
    # A variance scatters by sqrt(2 / n), 4 %, to which the features add their 3 % of the *prior* variance.
    torch.testing.assert_close(samples.var(0), variance, rtol=5.0 * (2.0 / n) ** 0.5, atol=0.05 * float(variance.max()))


@pytest.mark.parametrize(
    ("m", "name"),
    [pytest.param(m, name, marks=() if (m, name) in FAST else pytest.mark.slow) for m in (1, 2) for name in options()],
)
def test_paths_have_the_moments_of_the_posterior(m: int, name: str, data: Data, pair: Pair) -> None:
    X, Y, _ = data(40, D, m)
    model = pair(X, Y, **options()[name])[0].requires_grad_(False)
    torch.manual_seed(0)
    paths = draw_matheron_paths(model, torch.Size([PATHS]))
    points = torch.rand(6, D, dtype=F64)
    values = paths(points)
    values = values[..., None] if m == 1 else values.mT
    assert values.shape == (PATHS, 6, m)
    assert_moments(values, model.posterior(points))


def test_paths_have_the_covariance_of_the_posterior(data: Data, pair: Pair) -> None:
    X, Y, _ = data(40, D)
    model = pair(X, Y, max_inducing=8)[0].requires_grad_(False)
    torch.manual_seed(0)
    points = torch.rand(6, D, dtype=F64)
    values = draw_matheron_paths(model, torch.Size([PATHS]))(points)
    expected = model.posterior(points).distribution.covariance_matrix
    # As above; a covariance scatters by at most sqrt(2 / n) of the larger variance.
    torch.testing.assert_close(
        torch.cov(values.T), expected, rtol=0.0, atol=(5.0 * (2.0 / PATHS) ** 0.5 + 0.05) * float(expected.max())
    )


def test_paths_through_a_logarithm_have_its_moments(data: Data, pair: Pair) -> None:
    X, Y, _ = data(40, D)
    model = pair(X, Y, outcome_transform=Log())[0].requires_grad_(False)
    torch.manual_seed(0)
    points = torch.rand(6, D, dtype=F64)
    values = draw_matheron_paths(model, torch.Size([PATHS]))(points)
    assert bool((values > 0.0).all())
    posterior = model.posterior(points)
    spread = (posterior.variance / PATHS).sqrt()
    assert bool(((values.mean(0)[:, None] - posterior.mean).abs() < 5.0 * spread + 0.01 * posterior.mean).all())


@pytest.mark.parametrize("m", [1, 2])
def test_paths_of_a_conditioned_model_follow_what_it_was_given(m: int, data: Data, pair: Pair) -> None:
    X, Y, _ = data(40, D, m)
    model = pair(X, Y)[0].requires_grad_(False)
    X_new, Y_new = X[:3] + 0.02, Y[:3] + 0.5
    conditioned = model.condition_on_observations(X_new, Y_new)
    torch.manual_seed(0)
    values = draw_matheron_paths(conditioned, torch.Size([PATHS]))(X_new)
    assert_moments(values[..., None] if m == 1 else values.mT, conditioned.posterior(X_new))
    assert bool((model.posterior(X_new).mean < values.mean(0).reshape(m, 3).T).all())


def test_paths_of_a_batch_of_models_are_theirs(data: Data, pair: Pair) -> None:
    X, Y, _ = data(30, D, 1, (2,))
    model = pair(X, Y, max_inducing=8)[0].requires_grad_(False)
    torch.manual_seed(0)
    points = torch.rand(6, D, dtype=F64)
    values = draw_matheron_paths(model, torch.Size([PATHS]))(points)
    assert values.shape == (PATHS, 2, 6)
    posterior = model.posterior(points)
    for i in range(2):
        error = (values[:, i].mean(0) - posterior.mean[i, :, 0]) / (posterior.variance[i, :, 0] / PATHS).sqrt()
        assert float(error.abs().max()) < 5.0


def test_paths_are_functions(data: Data, pair: Pair) -> None:
    X, Y, _ = data(40, D)
    model = pair(X, Y, max_inducing=8)[0].requires_grad_(False)
    paths = draw_matheron_paths(model, torch.Size([3]))
    points = torch.rand(6, D, dtype=F64)
    torch.testing.assert_close(paths(points)[:, 2:4], paths(points[2:4]), rtol=1e-10, atol=1e-10)
    torch.manual_seed(1)
    one = draw_matheron_paths(model, torch.Size([3]))(points)
    torch.manual_seed(1)
    assert torch.equal(draw_matheron_paths(model, torch.Size([3]))(points), one)
    assert torch.autograd.gradcheck(paths, (points[:2].requires_grad_(),))


def test_paths_refuse_another_update(data: Data, pair: Pair) -> None:
    X, Y, _ = data(20, D)
    model, _ = pair(X, Y)
    with pytest.raises(UnsupportedError, match="update_strategy: expected"):
        draw_matheron_paths(model, torch.Size([1]), update_strategy=lambda **_: None)


def many(data: Data, n: int, m: int = 1) -> BKBModel:
    X, Y, _ = data(n, D, m)
    model = BKBModel(X, Y, max_inducing=50)
    with torch.no_grad():
        model.covar_module.lengthscale = 0.5
        model.likelihood.noise = 0.05
    return model.eval().requires_grad_(False)


def thompson(model: BKBModel) -> None:
    """A batch by each of BoTorch's two ways of Thompson sampling."""
    bounds = torch.tensor([[0.0] * D, [1.0] * D], dtype=F64)
    torch.manual_seed(0)
    X, value = optimize_acqf(PathwiseThompsonSampling(model), bounds, q=1, num_restarts=2, raw_samples=64)
    assert bool(((X >= 0.0) & (X <= 1.0)).all())
    assert bool(torch.isfinite(value))
    candidates = torch.rand(500, D, dtype=F64)
    chosen = MaxPosteriorSampling(model, replacement=False)(candidates, num_samples=8)
    assert chosen.shape == (8, D)
    assert len(torch.unique(chosen, dim=0)) == 8
    # What has the largest sample has a large mean: the best eight of 500 are well above the middle.
    middle = model.posterior(candidates).mean.median()
    assert bool((model.posterior(chosen).mean > middle).all())


def test_thompson_sampling_runs_on_100000_observations(data: Data) -> None:
    model = many(data, 100_000)
    thompson(model)
    assert len(model.inducing_points) <= 50
    # A path holds its random features and the inducing points, and no observation.
    paths = draw_matheron_paths(model, torch.Size([4]))
    sizes = [T.numel() for T in [*paths.parameters(), *paths.buffers(), paths.paths["update_paths"].weight]]
    assert max(sizes) < 100_000
