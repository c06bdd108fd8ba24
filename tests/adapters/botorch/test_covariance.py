"""A part of a joint covariance equals that part of the whole, in every form, and only this part is computed."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("botorch", reason="the BoTorch adapter needs botorch")

from botorch.acquisition import qLogNoisyExpectedImprovement
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.acquisition.objective import GenericMCObjective
from botorch.models import ModelListGP
from botorch.models.transforms.outcome import Standardize
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.kernels import Kernel, LinearKernel, MaternKernel, RBFKernel, ScaleKernel
from linear_operator.operators import LinearOperator

from bkbopt.adapters.botorch.covariance import JointCovariance
from tests.sweeps import sweep

pytestmark = [
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning"),
    # Samples of several outputs go through linear_operator's sparse products, which torch has deprecated.
    pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning"),
    pytest.mark.filterwarnings("ignore:torch.sparse.SparseTensor:UserWarning"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning"),
]

D = 3
F64 = torch.float64
Data = Callable[..., tuple[Tensor, Tensor, Tensor]]
Pair = Callable[..., tuple[Any, Any]]

#: Parts of a matrix of twelve rows: few rows, many, one, some in another order, a block, columns, and an entry.
PARTS: dict[str, Any] = {
    "last": (..., slice(-2, None), slice(None)),
    "many": (..., slice(1, None), slice(None)),
    "one": (..., 3, slice(1, None)),
    "picked": (..., torch.tensor([7, 0, 4]), slice(None)),
    "block": (..., slice(2, 4), slice(5, 11, 2)),
    "columns": (..., slice(None), slice(-3, None)),
    "entry": (..., 4, 9),
}
# Covariances here are of order one, and both ways to compute them round relatively to that; 2e-15 was seen. What leaves
# in float32 was computed in float64, and may be rounded to the neighbouring number.
TOLERANCE = {torch.float64: 1e-13, torch.float32: 2e-7}


def lazy(model: Any, points: Tensor, **options: Any) -> LinearOperator:
    """The joint covariance of the points, of several outputs one after the other, not evaluated yet."""
    covariance = model.posterior(points, **options).distribution.lazy_covariance_matrix
    return covariance.base_linear_op if model.num_outputs > 1 else covariance


def part_of(covariance: LinearOperator, name: str) -> Tensor:
    part = covariance[PARTS[name]]
    return part if isinstance(part, Tensor) else part.to_dense()


def assert_parts(make: Callable[[], LinearOperator], dtype: torch.dtype = F64) -> None:
    whole = make().to_dense()
    assert whole.dtype == dtype
    for name, index in PARTS.items():
        part, expected = part_of(make(), name), whole[index]
        assert part.shape == expected.shape
        assert part.dtype == dtype
        torch.testing.assert_close(part, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    torch.testing.assert_close(
        make().diagonal(), whole.diagonal(dim1=-2, dim2=-1), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
    )


@pytest.mark.parametrize(
    ("dtype", "batch", "m", "standardize", "fixed", "most"),
    sweep([F64, torch.float32], [(), (2,)], [1, 2], [False, True], [False, True], [12, 300], together=2),
    ids=str,
)
def test_parts_are_those_of_the_whole(
    dtype: torch.dtype,
    batch: tuple[int, ...],
    m: int,
    standardize: bool,
    fixed: bool,
    most: int,
    data: Data,
    pair: Pair,
) -> None:
    X, Y, Yvar = data(30, D, m, batch, dtype=dtype)
    scale = Standardize(m, batch_shape=torch.Size(batch)) if standardize else None
    model, _ = pair(X, Y, Yvar if fixed else None, max_inducing=most, outcome_transform=scale)
    for points in (torch.rand(12, D, dtype=dtype), torch.rand(3, *[1] * len(batch), 12, D, dtype=dtype)):
        for options in ({}, {"observation_noise": True}):
            assert_parts(lambda points=points, options=options: lazy(model, points, **options), dtype)


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("batch", [(), (2,)], ids=["single", "batch"])
def test_parts_of_a_conditioned_model_are_those_of_the_whole(
    batch: tuple[int, ...], m: int, data: Data, pair: Pair
) -> None:
    X, Y, _ = data(30, D, m, batch)
    model, _ = pair(X, Y, max_inducing=12)
    X_new, Y_new, _ = data(2, D, m, batch, seed=4)
    model = model.condition_on_observations(X_new, Y_new)
    fantasies = model.fantasize(X_new, SobolQMCNormalSampler(torch.Size([4]), seed=0))
    for known in (model, fantasies):
        assert_parts(lambda known=known: lazy(known, torch.rand(12, D, dtype=F64, generator=seeded(2))))


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("name", ["scaled Matern", "RBF + linear"])
def test_parts_of_a_batch_are_those_of_the_whole(name: str, m: int, data: Data, pair: Pair) -> None:
    X, Y, _ = data(30, D, m)
    kernel: Kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=D))
    if name == "RBF + linear":  # one of them the same for all outputs
        kernel = RBFKernel(active_dims=[0, 2], batch_shape=torch.Size([1] if m > 1 else [])) + LinearKernel()
    model, _ = pair(X, Y, max_inducing=12, covar_module=kernel)
    points = torch.rand(4, 3, 12, D, dtype=F64)
    whole = lazy(model, points).to_dense()
    for index in ((1,), (slice(1, 3),), (slice(None), 2), (-1, slice(0, 2))):
        part = lazy(model, points)[index]
        assert part.shape == whole[index].shape
        torch.testing.assert_close(part.to_dense(), whole[index], rtol=1e-13, atol=1e-13)
        rows = part[..., -2:, :].to_dense()
        torch.testing.assert_close(rows, whole[index][..., -2:, :], rtol=1e-13, atol=1e-13)
    picked = lazy(model, points)[torch.tensor([3, 0])]
    torch.testing.assert_close(picked.to_dense(), whole[[3, 0]], rtol=1e-13, atol=1e-13)
    order = [*range(1, whole.ndim - 2), 0, whole.ndim - 2, whole.ndim - 1]  # moves the outputs' dimension too
    for moved, expected in (
        (lazy(model, points).unsqueeze(1), whole.unsqueeze(1)),
        (lazy(model, points).unsqueeze(-3), whole.unsqueeze(-3)),
        (lazy(model, points).permute(order), whole.permute(order)),
    ):
        assert moved.shape == expected.shape
        torch.testing.assert_close(moved[..., -2:, :].to_dense(), expected[..., -2:, :], rtol=1e-13, atol=1e-13)


def test_rows_are_as_precise_where_there_is_hardly_any_noise(data: Data, pair: Pair) -> None:
    X, Y, _ = data(200, D)
    model, theirs = pair(X, Y, torch.full_like(Y, 1e-4), outcome_transform=None)
    points = torch.cat([X[:20], torch.rand(20, D, dtype=F64)])
    rows = lazy(model, points)[..., -3:, :].to_dense()
    # Prior variances are one, and K + noise has a condition number of 1e6; variances go down to 1e-5.
    torch.testing.assert_close(rows, lazy(theirs, points)[..., -3:, :].to_dense(), rtol=0.0, atol=5e-12)
    torch.testing.assert_close(rows, lazy(model, points).to_dense()[..., -3:, :], rtol=0.0, atol=5e-13)


@pytest.mark.parametrize(("conditioned", "m"), sweep([True, False], [2, 1]), ids=str)
def test_gradients_of_parts_through_the_points(conditioned: bool, m: int, data: Data, pair: Pair) -> None:
    X, Y, _ = data(40, D, m)
    model = pair(X, Y, max_inducing=12)[0].requires_grad_(False)
    if conditioned:
        model = model.condition_on_observations(*data(2, D, m, seed=4)[:2])
    known = torch.rand(2, 6, D, dtype=F64)

    def function(points: Tensor) -> tuple[Tensor, ...]:
        covariance = lazy(model, torch.cat([known, points], -2))
        return tuple(part_of(covariance, name) for name in ("last", "many", "block"))

    assert torch.autograd.gradcheck(function, (torch.rand(2, 2, D, dtype=F64, requires_grad=True),))


def forbid_wholes(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on a joint covariance can give its rows only."""

    def whole(self: JointCovariance) -> Tensor:
        raise AssertionError("the whole covariance was computed")

    for name in ("_dense", "_explained"):
        monkeypatch.setattr(JointCovariance, name, property(whole))


@pytest.mark.parametrize("several", [False, True], ids=["one", "list"])
def test_noisy_expected_improvement_computes_the_rows_of_the_new_points_only(
    several: bool, data: Data, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y, _ = data(60, D, 2)
    model = pair(X, Y[:, :1], max_inducing=12)[0].requires_grad_(False)
    options: dict[str, Any] = {}
    if several:
        model = ModelListGP(model, pair(X, Y[:, 1:], max_inducing=12)[0].requires_grad_(False))
        options["objective"] = GenericMCObjective(lambda Z, X=None: Z[..., 0] + Z[..., 1])
    function = qLogNoisyExpectedImprovement(model, X[:20], sampler(), prune_baseline=False, **options)
    points = torch.rand(4, 2, D, dtype=F64)
    expected = function(points)
    forbid_wholes(monkeypatch)
    assert torch.equal(function(points), expected)


def test_noisy_hypervolume_improvement_computes_the_rows_of_the_new_points_only(
    data: Data, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y, _ = data(60, D, 2)
    model = pair(X, Y, max_inducing=12)[0].requires_grad_(False)
    reference = torch.tensor([1.5, 1.5], dtype=F64)
    function = qLogNoisyExpectedHypervolumeImprovement(model, reference, X[:20], sampler(), prune_baseline=False)
    points = torch.rand(4, 2, D, dtype=F64)
    expected = function(points)
    forbid_wholes(monkeypatch)
    assert torch.equal(function(points), expected)


def sampler() -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([16]), seed=11)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
