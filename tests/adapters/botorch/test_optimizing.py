"""`optimize_acqf` and its variants on a `BKBModel`: results are in the bounds, and no worse than random candidates."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

pytest.importorskip("botorch", reason="the BoTorch adapter needs botorch")

from botorch.acquisition import (
    LogExpectedImprovement,
    qKnowledgeGradient,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
    qLowerBoundMaxValueEntropy,
)
from botorch.optim import (
    optimize_acqf,
    optimize_acqf_discrete,
    optimize_acqf_discrete_local_search,
    optimize_acqf_mixed,
)
from botorch.sampling import SobolQMCNormalSampler

from bkbopt.adapters.botorch import BKBModel

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.BotorchWarning")

D = 3
F64 = torch.float64
BOUNDS = torch.tensor([[0.0] * D, [1.0, 0.8, 0.5]], dtype=F64)
SEARCH = {"num_restarts": 3, "raw_samples": 24, "options": {"maxiter": 40, "batch_limit": 3}}


@pytest.fixture(scope="module")
def model(data_: Callable[..., tuple[Tensor, Tensor, Tensor]]) -> BKBModel:
    X, Y, _ = data_(1000, D)
    model = BKBModel(X, Y, max_inducing=50)
    with torch.no_grad():
        model.covar_module.lengthscale = 0.6
        model.likelihood.noise = 0.05
    return model.eval().requires_grad_(False)


@pytest.fixture
def baseline(model: BKBModel) -> Tensor:
    return model.train_inputs[0][:10]


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def sampler(n: int = 16) -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([n]), seed=3)


def at_random(n: int, q: int) -> Tensor:
    u = torch.rand(n, q, D, generator=torch.Generator().manual_seed(1), dtype=F64)
    return BOUNDS[0] + u * (BOUNDS[1] - BOUNDS[0])


def assert_inside(X: Tensor) -> None:
    assert bool(((BOUNDS[0] <= X) & (BOUNDS[1] >= X)).all())


@pytest.mark.parametrize("q", [1, 3])
def test_a_joint_search_beats_random_candidates(q: int, model: BKBModel, baseline: Tensor) -> None:
    function = qLogNoisyExpectedImprovement(model, baseline, sampler(), prune_baseline=True)
    X, value = optimize_acqf(function, BOUNDS, q=q, **SEARCH)
    assert X.shape == (q, D)
    assert_inside(X)
    torch.testing.assert_close(function(X)[0], value, rtol=1e-9, atol=1e-9)
    assert float(value) >= float(function(at_random(100, q)).max())


@pytest.mark.parametrize("cached", [True, False])
def test_a_sequential_batch_beats_random_batches(cached: bool, model: BKBModel, baseline: Tensor) -> None:
    function = qLogNoisyExpectedImprovement(model, baseline, sampler(), prune_baseline=True, cache_root=cached)
    X, values = optimize_acqf(function, BOUNDS, q=3, sequential=True, **SEARCH)
    assert (X.shape, values.shape) == ((3, D), (3,))
    assert_inside(X)
    assert len(torch.unique(X, dim=0)) == 3
    assert float(function(X)) >= float(function(at_random(100, 3)).max())


def test_a_sequential_batch_of_gibbon_has_different_points(model: BKBModel) -> None:
    # Each point of the batch conditions the model on the ones before.
    function = qLowerBoundMaxValueEntropy(model, at_random(50, 1)[:, 0], num_mv_samples=5)
    X, values = optimize_acqf(function, BOUNDS, q=3, sequential=True, **SEARCH)
    assert_inside(X)
    assert float(torch.pdist(X).min()) > 1e-3
    assert bool(torch.isfinite(values).all())


def test_a_one_shot_look_ahead_beats_random_candidates(model: BKBModel) -> None:
    function = qKnowledgeGradient(model, num_fantasies=4, sampler=sampler(4))
    X, value = optimize_acqf(function, BOUNDS, q=2, return_full_tree=True, **SEARCH)
    assert X.shape == (2 + 4, D)
    assert_inside(X)
    assert float(value) >= float(function(at_random(100, 2 + 4)).max())


@pytest.mark.parametrize("q", [1, 3])
def test_a_search_among_choices_takes_the_best_of_them(q: int, model: BKBModel) -> None:
    choices = at_random(60, 1)[:, 0]
    function = qLogExpectedImprovement(model, 3.5, sampler())
    X, values = optimize_acqf_discrete(function, q=q, choices=choices, unique=True)
    assert all(any(torch.equal(x, choice) for choice in choices) for x in X)
    assert len(torch.unique(X, dim=0)) == q
    one_by_one = function(choices[:, None])
    torch.testing.assert_close(values.reshape(-1)[0], one_by_one.max(), rtol=1e-9, atol=1e-9)


def test_a_local_search_among_choices_ends_at_the_best_of_its_neighbours(model: BKBModel) -> None:
    levels = [torch.linspace(float(low), float(high), 5, dtype=F64) for low, high in BOUNDS.T]
    function = LogExpectedImprovement(model, 3.5)
    X, value = optimize_acqf_discrete_local_search(
        function, q=1, discrete_choices=levels, num_restarts=5, raw_samples=40
    )
    grid = torch.cartesian_prod(*levels)
    assert any(torch.equal(X[0], row) for row in grid)
    neighbours = grid[(grid != X[0]).sum(-1) == 1]
    assert float(value) >= float(function(neighbours[:, None]).max())


def test_a_mixed_search_beats_random_candidates(model: BKBModel) -> None:
    fixed = [{0: 0.0}, {0: 0.5}, {0: 1.0}]
    function = qLogExpectedImprovement(model, 3.5, sampler())
    X, value = optimize_acqf_mixed(function, BOUNDS, q=1, fixed_features_list=fixed, **SEARCH)
    assert_inside(X)
    assert float(X[0, 0]) in {0.0, 0.5, 1.0}
    candidates = at_random(150, 1)
    candidates[..., 0] = torch.tensor([0.0, 0.5, 1.0], dtype=F64).repeat(50)[:, None]
    assert float(value) >= float(function(candidates).max())


def test_a_search_keeps_linear_constraints_and_fixed_features(model: BKBModel) -> None:
    function = LogExpectedImprovement(model, 3.5)
    constraint = (torch.tensor([0, 1]), torch.tensor([-1.0, -1.0], dtype=F64), -0.9)  # x0 + x1 <= 0.9
    X, value = optimize_acqf(
        function, BOUNDS, q=1, inequality_constraints=[constraint], fixed_features={2: 0.25}, **SEARCH
    )
    assert_inside(X)
    assert float(X[0, 0] + X[0, 1]) <= 0.9 + 1e-6  # the tolerance of SLSQP
    assert float(X[0, 2]) == 0.25
    candidates = at_random(300, 1)
    candidates[..., 2] = 0.25
    allowed = candidates[candidates[:, 0, :2].sum(-1) <= 0.9]
    assert float(value) >= float(function(allowed).max())
