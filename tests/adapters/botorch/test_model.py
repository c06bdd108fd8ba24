"""BKBModel where all points are inducing points: everything agrees with `SingleTaskGP`, in every form it takes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("botorch", reason="the BoTorch adapter needs botorch")

from botorch.acquisition.objective import ExpectationPosteriorTransform, ScalarizedPosteriorTransform
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms.input import ChainedInputTransform, InputTransform, Normalize, Round, Warp
from botorch.models.transforms.outcome import ChainedOutcomeTransform, Log, OutcomeTransform, Standardize
from botorch.utils.datasets import SupervisedDataset
from gpytorch.kernels import (
    AdditiveKernel,
    Kernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from gpytorch.means import LinearMean, ZeroMean
from gpytorch.test.model_test_case import BaseModelTestCase
from linear_operator.utils.warnings import NumericalWarning

from bkbopt.adapters.botorch import BKBModel
from tests.sweeps import sweep

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")

D = 3
DTYPES = {"float64": torch.float64, "float32": torch.float32}
# float64: the condition number of K + noise, at most 1e4 here, times the rounding of two ways to solve with it.
# float32: what arrives and leaves is rounded; in between we compute in float64, as the oracle does.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5}


def bounds() -> Tensor:
    return torch.tensor([[0.0] * D, [1.0] * D], dtype=torch.float64)


def transforms(name: str, m: int, batch: tuple[int, ...]) -> dict[str, Any]:
    """The options of a model that has the transforms called `name`."""
    shape = torch.Size(batch)
    inputs: dict[str, InputTransform] = {
        "normalize": Normalize(D),
        "warp": Warp(d=D, indices=[0, 2], bounds=bounds()),
        "round": Round(integer_indices=[0], approximate=False),
        "chained": ChainedInputTransform(first=Normalize(D), second=Warp(d=D, indices=[1], bounds=bounds())),
    }
    outcomes: dict[str, OutcomeTransform] = {
        "standardize": Standardize(m, batch_shape=shape),
        "log": Log(),
        "chained": ChainedOutcomeTransform(log=Log(), scale=Standardize(m, batch_shape=shape)),
    }
    return {"input_transform": inputs.get(name), "outcome_transform": outcomes.get(name)}


TRANSFORMS = ["none", "normalize", "warp", "round", "standardize", "log", "chained"]

Data = Callable[..., tuple[Tensor, Tensor, Tensor]]
Pair = Callable[..., tuple[Any, Any]]


def assert_alike(ours: Any, theirs: Any, tolerance: float, *, joint: bool = True) -> None:
    """Two posteriors have the same shapes, means, variances and, where they are Gaussian, joint covariances."""
    scale = float(theirs.mean.detach().abs().max())
    for name in ("mean", "variance"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert one.shape == other.shape
        torch.testing.assert_close(one.double(), other, rtol=tolerance, atol=tolerance * scale)
    if joint and hasattr(ours, "distribution"):
        one, other = ours.distribution.covariance_matrix, theirs.distribution.covariance_matrix
        torch.testing.assert_close(
            one.double(), other, rtol=tolerance, atol=tolerance * float(other.detach().abs().max())
        )


@pytest.mark.parametrize(
    ("dtype", "batch", "m", "fixed", "name"),
    sweep(DTYPES.values(), [(), (2,)], [1, 2], [False, True], TRANSFORMS, together=2),
    ids=str,
)
def test_agrees_with_single_task_gp(
    dtype: torch.dtype, batch: tuple[int, ...], m: int, fixed: bool, name: str, data: Data, pair: Pair
) -> None:
    X, Y, Yvar = data(20, D, m, batch, dtype=dtype)
    ours, theirs = pair(X, Y, Yvar if fixed else None, **transforms(name, m, batch))
    tolerance = TOLERANCE[dtype]
    assert (ours.num_outputs, ours.batch_shape) == (m, torch.Size(batch))

    points = torch.rand(3, *[1] * len(batch), 4, D, dtype=dtype)
    posterior = ours.posterior(points)
    assert posterior.mean.shape == torch.Size([3, *batch, 4, m])
    assert posterior.mean.dtype == posterior.variance.dtype == dtype
    assert posterior.rsample(torch.Size([5])).shape == torch.Size([5, 3, *batch, 4, m])
    assert_alike(posterior, theirs.posterior(points.double()), tolerance)
    noisy, expected = (model.posterior(X_, observation_noise=True) for model, X_ in both(ours, theirs, points))
    assert_alike(noisy, expected, tolerance)
    noise = 0.1 + torch.rand(3, *batch, 4, m, dtype=dtype)
    noisy, expected = (model.posterior(X_, observation_noise=noise.to(X_)) for model, X_ in both(ours, theirs, points))
    assert_alike(noisy, expected, tolerance)


@pytest.mark.parametrize("m", [1, 2])
def test_noise_variances_of_zero_count_as_the_smallest_as_for_single_task_gp(m: int, data: Data, pair: Pair) -> None:
    X, Y, Yvar = data(20, D, m)
    Yvar[::2] = 0.0
    with pytest.warns(NumericalWarning, match="Rounding small noise values up to 1e-06"):
        ours, theirs = pair(X, Y, Yvar)
    assert bool((ours.likelihood.noise[..., ::2] == 1e-6).all())
    points = torch.rand(4, D, dtype=torch.float64)
    # 1e-8: the condition number of K + noise is 1e7 here.
    assert_alike(ours.posterior(points), theirs.posterior(points), 1e-8)


def both(ours: Any, theirs: Any, points: Tensor) -> list[tuple[Any, Tensor]]:
    return [(ours, points), (theirs, points.double())]


# -- the other arguments of a posterior ----------------------------------------------------------------------------


@pytest.mark.parametrize("indices", [[0], [2, 0], [-1]])
@pytest.mark.parametrize("transform", [None, Standardize(3), Log()], ids=["plain", "standardize", "log"])
def test_output_indices_select_outputs(
    indices: list[int], transform: OutcomeTransform | None, data: Data, pair: Pair
) -> None:
    X, Y, _ = data(15, D, 3)
    ours, theirs = pair(X, Y, outcome_transform=transform)
    points = torch.rand(2, 4, D, dtype=torch.float64)
    # SingleTaskGP refuses one output alone, and does not untransform some of several.
    for options in ({}, {"observation_noise": True}):
        expected = theirs.subset_output([i % 3 for i in indices]).posterior(points, **options)
        assert_alike(ours.posterior(points, output_indices=indices, **options), expected, 1e-10)


def test_posterior_transforms_apply_to_untransformed_outputs(data: Data, pair: Pair) -> None:
    X, Y, _ = data(15, D, 2)
    ours, theirs = pair(X, Y)
    points = torch.rand(2, 4, D, dtype=torch.float64)
    weights = torch.tensor([0.3, -2.0], dtype=torch.float64)
    for transform in (
        ScalarizedPosteriorTransform(weights, offset=1.5),
        ExpectationPosteriorTransform(n_w=2),
    ):
        one, other = (model.posterior(points, posterior_transform=transform) for model in (ours, theirs))
        assert_alike(one, other, 1e-10)
    scalar = ours.posterior(points, posterior_transform=ScalarizedPosteriorTransform(weights, offset=1.5))
    torch.testing.assert_close(scalar.mean[..., 0], ours.posterior(points).mean @ weights + 1.5)


def test_points_of_another_dtype_are_taken_to_the_models(data: Data, pair: Pair) -> None:
    X, Y, _ = data(15, D)
    ours, _ = pair(X, Y)
    points = torch.rand(4, D, dtype=torch.float32)
    one, other = ours.posterior(points), ours.posterior(points.double())
    assert one.mean.dtype == one.distribution.covariance_matrix.dtype == torch.float64
    assert torch.equal(one.mean, other.mean)


# Above 128 points the covariance is lazy; it has to be the same one.
@pytest.mark.parametrize(("q", "m", "fixed"), sweep([128, 129], [1, 2], [False, True], together=2), ids=str)
def test_many_points_at_once_have_the_same_joint_posterior(q: int, m: int, fixed: bool, data: Data, pair: Pair) -> None:
    X, Y, Yvar = data(30, D, m)
    ours, theirs = pair(X, Y, Yvar if fixed else None)
    points = torch.rand(2, q, D, dtype=torch.float64)
    for options in ({}, {"observation_noise": True}):
        assert_alike(ours.posterior(points, **options), theirs.posterior(points, **options), 1e-10)


@pytest.mark.parametrize("m", [1, 2])
def test_many_points_in_single_precision_have_the_same_joint_posterior(m: int, data: Data, pair: Pair) -> None:
    X, Y, _ = data(30, D, m, dtype=torch.float32)
    ours, theirs = pair(X, Y)
    points = torch.rand(150, D)
    for options in ({}, {"observation_noise": True}):
        posterior = ours.posterior(points, **options)
        assert posterior.mean.dtype == posterior.variance.dtype == torch.float32
        assert_alike(posterior, theirs.posterior(points.double(), **options), TOLERANCE[torch.float32])


def test_a_sample_of_many_points_has_the_moments_of_the_posterior(data: Data, pair: Pair) -> None:
    X, Y, _ = data(30, D)
    ours, _ = pair(X, Y)
    posterior = ours.posterior(torch.rand(150, D, dtype=torch.float64))
    torch.manual_seed(0)
    samples = posterior.sample(torch.Size([4000]))
    # A mean of 4,000 samples is off by more than 5 standard errors in one of 150 places once in 10,000 runs.
    error = (samples.mean(0) - posterior.mean).detach() / (posterior.variance.detach() / 4000).sqrt()
    assert float(error.abs().max()) < 5.0


# -- parts of a model ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "fixed", "indices"), sweep([(), (2,)], [False, True], [[1], [2, 0], [0, 1, 2]], together=2), ids=str
)
def test_subset_output_keeps_the_posteriors_of_the_outputs_kept(
    batch: tuple[int, ...], fixed: bool, indices: list[int], data: Data, pair: Pair
) -> None:
    X, Y, Yvar = data(15, D, 3, batch)
    ours, theirs = pair(X, Y, Yvar if fixed else None)
    points = torch.rand(4, *[1] * len(batch), 5, D, dtype=torch.float64)
    before = ours.posterior(points)
    part = ours.subset_output(indices)
    assert part.num_outputs == len(indices)
    posterior = part.posterior(points)
    torch.testing.assert_close(posterior.mean, before.mean[..., indices], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(posterior.variance, before.variance[..., indices], rtol=1e-12, atol=1e-12)
    assert_alike(posterior, theirs.subset_output(indices).posterior(points), 1e-10)
    torch.testing.assert_close(ours.posterior(points).mean, before.mean, rtol=0, atol=0)


@pytest.mark.parametrize("fixed", [False, True], ids=["inferred", "Yvar"])
def test_subset_output_of_a_conditioned_model_keeps_what_it_was_conditioned_on(
    fixed: bool, data: Data, pair: Pair
) -> None:
    X, Y, Yvar = data(15, D, 3)
    new, values = torch.rand(2, D, dtype=torch.float64), torch.rand(2, 3, dtype=torch.float64)
    points = torch.rand(5, D, dtype=torch.float64)
    noise = {"noise": torch.full_like(values, 0.02)} if fixed else {}
    for model in pair(X, Y, Yvar if fixed else None):
        model.posterior(points)  # GPyTorch conditions only models that have predicted
        conditioned = model.condition_on_observations(new, values, **noise)
        whole, part = conditioned.posterior(points), conditioned.subset_output([2, 0]).posterior(points)
        torch.testing.assert_close(part.mean, whole.mean[..., [2, 0]], rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(part.variance, whole.variance[..., [2, 0]], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("fixed", [False, True], ids=["inferred", "Yvar"])
def test_construct_inputs_makes_the_same_model(fixed: bool, data: Data) -> None:
    X, Y, Yvar = data(15, D, 2)
    names = {"feature_names": ["a", "b", "c"], "outcome_names": ["u", "v"]}
    dataset = SupervisedDataset(X, Y, Yvar=Yvar if fixed else None, **names)
    model = BKBModel(**BKBModel.construct_inputs(dataset, max_inducing=5))
    points = torch.rand(4, D, dtype=torch.float64)
    expected = BKBModel(X, Y, Yvar if fixed else None, max_inducing=5).posterior(points)
    assert torch.equal(model.posterior(points).mean, expected.mean)
    assert torch.equal(model.posterior(points).variance, expected.variance)


def test_a_list_of_models_agrees_with_a_list_of_single_task_gps(data: Data, pair: Pair) -> None:
    pairs = [pair(*data(12 + i, D, m, seed=i)[:2]) for i, m in enumerate((1, 2))]
    ours, theirs = (ModelListGP(*models) for models in zip(*pairs, strict=True))
    points = torch.rand(3, 4, D, dtype=torch.float64)
    assert ours.num_outputs == 3
    # Without the covariance of all outputs, for which linear_operator calls what torch has deprecated.
    for options in ({}, {"observation_noise": True}):
        assert_alike(ours.posterior(points, **options), theirs.posterior(points, **options), 1e-10, joint=False)
    parts = [model.subset_output([0, 2]).posterior(points) for model in (ours, theirs)]
    assert_alike(*parts, 1e-10, joint=False)


def test_a_list_of_models_adds_noise_variances_to_those_of_its_outputs(data: Data, pair: Pair) -> None:
    """BoTorch then gives each model the index of its output in the list, which a model of one output ignores."""
    pairs = [pair(*data(12 + i, D, seed=i)[:2]) for i in range(2)]
    ours, theirs = (ModelListGP(*models) for models in zip(*pairs, strict=True))
    points = torch.rand(3, 4, D, dtype=torch.float64)
    noise = 0.1 + torch.rand(3, 4, 2, dtype=torch.float64)
    assert_alike(*(m.posterior(points, observation_noise=noise) for m in (ours, theirs)), 1e-10, joint=False)


# -- kernels, means, several batch dimensions ----------------------------------------------------------------------


def kernels(batch: tuple[int, ...]) -> dict[str, Kernel]:
    shape = torch.Size(batch)
    return {
        "scaled Matern": ScaleKernel(MaternKernel(2.5, ard_num_dims=D, batch_shape=shape), batch_shape=shape),
        "RBF + linear": RBFKernel(batch_shape=shape) + LinearKernel(batch_shape=shape),
        "additive": AdditiveKernel(*[MaternKernel(1.5, active_dims=[i], batch_shape=shape) for i in range(D)]),
        "product": RBFKernel(active_dims=[0], batch_shape=shape) * RQKernel(active_dims=[1, 2], batch_shape=shape),
        "one lengthscale of all": ScaleKernel(RBFKernel(ard_num_dims=D), batch_shape=shape),
        "periodic": PeriodicKernel(ard_num_dims=D, batch_shape=shape),
        "polynomial": PolynomialKernel(2, batch_shape=shape),
        "shared": ScaleKernel(RBFKernel()),
    }


# Dense and lazy covariances, of one output, of two, and of two outputs of a batch.
@pytest.mark.parametrize(("name", "form", "q"), sweep(kernels(()), [((), 1), ((), 2), ((2,), 2)], [4, 130]), ids=str)
def test_any_gpytorch_kernel_agrees(
    name: str, form: tuple[tuple[int, ...], int], q: int, data: Data, pair: Pair
) -> None:
    batch, m = form
    X, Y, _ = data(15, D, m, batch)
    shape = (*batch, m) if m > 1 else batch
    ours, theirs = pair(X, Y, covar_module=kernels(shape)[name])
    points = torch.rand(2, *[1] * len(batch), q, D, dtype=torch.float64)
    # Kernels of low rank, as the linear one: K + noise has a condition number of up to 1e5.
    assert_alike(ours.posterior(points), theirs.posterior(points), 1e-9)


@pytest.mark.parametrize("mean", [ZeroMean(), LinearMean(D)], ids=["zero", "linear"])
def test_any_mean_agrees(mean: torch.nn.Module, data: Data, pair: Pair) -> None:
    X, Y, _ = data(15, D)
    ours, theirs = pair(X, Y, mean_module=mean)
    points = 5.0 * torch.rand(4, D, dtype=torch.float64)
    assert_alike(ours.posterior(points), theirs.posterior(points), 1e-10)
    new = ours.condition_on_observations(X[:2], Y[:2] + 1.0).posterior(points)
    assert_alike(new, theirs.condition_on_observations(X[:2], Y[:2] + 1.0).posterior(points), 1e-9)


def test_several_batch_dimensions_agree(data: Data, pair: Pair) -> None:
    X, Y, Yvar = data(8, D, 2, (2, 3))
    ours, theirs = pair(X, Y, Yvar)
    assert ours.batch_shape == torch.Size([2, 3])
    for shape in ((4, D), (3, 4, D), (5, 1, 1, 4, D)):
        points = torch.rand(shape, dtype=torch.float64)
        assert_alike(ours.posterior(points), theirs.posterior(points), 1e-10)


def test_repeated_points_agree(data: Data, pair: Pair) -> None:
    X, Y, Yvar = data(10, D)
    rows = torch.tensor([*range(10), 0, 0, 0, 5])
    for noise in (None, Yvar[rows]):
        ours, theirs = pair(X[rows], torch.cat([Y, Y[rows[10:]] + 0.3]), noise)
        points = torch.cat([X[:2], torch.rand(3, D, dtype=torch.float64)])
        assert_alike(ours.posterior(points), theirs.posterior(points), 1e-10)
        assert len(ours.inducing_points) == 10


def test_nearly_exact_observations_agree_as_far_as_the_mathematics_allows(data: Data, pair: Pair) -> None:
    X, Y, _ = data(30, D)
    ours, theirs = pair(X, Y, torch.full_like(Y, 1e-6))
    points = torch.rand(5, D, dtype=torch.float64)
    # K + noise has a condition number of about 1e8, which is what rounding is multiplied by.
    assert_alike(ours.posterior(points), theirs.posterior(points), 1e-6)


# -- GPyTorch's own test case --------------------------------------------------------------------------------------


class TestGPyTorchModel(BaseModelTestCase):
    """GPyTorch's test case for models; it is written for unittest, of which it needs two assertions."""

    def assertTrue(self, value: bool) -> None:
        assert value

    def assertGreater(self, one: float, other: float) -> None:
        assert one > other

    def create_model(self, train_x: Tensor, train_y: Tensor, likelihood: Any) -> BKBModel:
        return BKBModel(train_x, train_y[..., None], likelihood=likelihood)

    def create_test_data(self) -> Tensor:
        return torch.rand(50, 1, dtype=torch.float64)

    def create_batch_test_data(self, batch_shape: torch.Size = torch.Size([3])) -> Tensor:  # noqa: B008
        return torch.rand(*batch_shape, 50, 1, dtype=torch.float64)

    def create_likelihood_and_labels(self) -> tuple[Any, Tensor]:
        return None, torch.randn(50, dtype=torch.float64)

    def create_batch_likelihood_and_labels(self, batch_shape: torch.Size = torch.Size([3])) -> tuple[Any, Tensor]:  # noqa: B008
        return None, torch.randn(*batch_shape, 50, dtype=torch.float64)


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("fixed", [False, True], ids=["inferred", "Yvar"])
def test_training_mode_is_the_prior_of_single_task_gp(m: int, fixed: bool, data: Data, pair: Pair) -> None:
    X, Y, Yvar = data(15, D, m)
    ours, theirs = pair(X, Y, Yvar if fixed else None, **transforms("chained", m, ()))
    for model in (ours, theirs):
        model.train()
    one, other = ours(*ours.train_inputs), theirs(*theirs.train_inputs)
    assert torch.equal(one.mean, other.mean)
    assert torch.equal(one.covariance_matrix, other.covariance_matrix)
    assert isinstance(ours, SingleTaskGP)
