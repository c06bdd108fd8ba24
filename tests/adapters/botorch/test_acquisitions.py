"""BoTorch's acquisition functions: the values and gradients of `SingleTaskGP`, and a run on 5,000 observations."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("botorch", reason="the BoTorch adapter needs botorch")

from botorch.acquisition import (
    AcquisitionFunction,
    LogExpectedImprovement,
    UpperConfidenceBound,
    qKnowledgeGradient,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
    qLowerBoundMaxValueEntropy,
    qMaxValueEntropy,
    qNegIntegratedPosteriorVariance,
    qUpperConfidenceBound,
)
from botorch.acquisition.cost_aware import InverseCostWeightedUtility
from botorch.acquisition.max_value_entropy_search import qMultiFidelityLowerBoundMaxValueEntropy
from botorch.acquisition.multi_objective.logei import (
    qLogExpectedHypervolumeImprovement,
    qLogNoisyExpectedHypervolumeImprovement,
)
from botorch.acquisition.objective import GenericMCObjective, ScalarizedPosteriorTransform
from botorch.models import AffineFidelityCostModel, SingleTaskGP
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning

from bkbopt.adapters.botorch import BKBModel

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


@dataclass(frozen=True)
class Case:
    """What an acquisition function is made of: models of one and of two outputs, of a positive cost, and the data."""

    one: Any
    two: Any
    cost: Any
    X: Tensor
    best: float
    pending: Tensor
    integration: Tensor

    @property
    def known(self) -> Tensor:
        """A few of the points evaluated: the noisy functions look at all that they are given."""
        return self.X[:20]


def sampler(n: int = 16) -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([n]), seed=11)


def max_value_entropy(cls: Any, case: Case) -> AcquisitionFunction:
    torch.manual_seed(5)  # of the samples of the largest value
    return cls(case.one, case.integration, num_mv_samples=8, **{"num_fantasies": 4} if cls is qMaxValueEntropy else {})


def pruned(case: Case) -> AcquisitionFunction:
    torch.manual_seed(5)  # of the samples by which the baseline is pruned
    return qLogNoisyExpectedImprovement(
        case.one, case.known, sampler(), prune_baseline=True, X_pending=case.pending, cache_root=False
    )


def cost_aware(case: Case, cost: Any) -> AcquisitionFunction:
    utility = InverseCostWeightedUtility(cost_model=cost)
    torch.manual_seed(5)
    return qMultiFidelityLowerBoundMaxValueEntropy(
        case.one, case.integration, num_mv_samples=8, cost_aware_utility=utility
    )


REFERENCE = torch.tensor([1.5, 1.5], dtype=F64)


def hypervolume(case: Case, **options: Any) -> AcquisitionFunction:
    means = case.two.posterior(case.known).mean.detach()
    partitioning = FastNondominatedPartitioning(REFERENCE, means)
    return qLogExpectedHypervolumeImprovement(case.two, REFERENCE, partitioning, sampler(), **options)


def feasible(Y: Tensor) -> Tensor:
    return 3.2 - Y[..., 1]  # at most zero where the second output is at least 3.2


FIRST = GenericMCObjective(lambda Y, X=None: Y[..., 0])
WEIGHTS = ScalarizedPosteriorTransform(torch.tensor([0.7, 0.3], dtype=F64))

#: How each is made, and the number q of points that it takes.
MAKERS: dict[str, tuple[Callable[[Case], AcquisitionFunction], int]] = {
    "UCB": (lambda c: UpperConfidenceBound(c.one, 0.5), 1),
    "UCB of a weighted sum": (lambda c: UpperConfidenceBound(c.two, 0.5, posterior_transform=WEIGHTS), 1),
    "qUCB": (lambda c: qUpperConfidenceBound(c.one, 0.5, sampler()), 3),
    "LogEI": (lambda c: LogExpectedImprovement(c.one, c.best), 1),
    "qLogEI": (lambda c: qLogExpectedImprovement(c.one, c.best, sampler()), 3),
    "qLogEI, pending": (lambda c: qLogExpectedImprovement(c.one, c.best, sampler(), X_pending=c.pending), 2),
    "qLogEI, constrained": (
        lambda c: qLogExpectedImprovement(c.two, c.best, sampler(), objective=FIRST, constraints=[feasible]),
        2,
    ),
    "qLogNEI": (lambda c: qLogNoisyExpectedImprovement(c.one, c.known, sampler(), prune_baseline=False), 2),
    "qLogNEI, pruned and pending": (
        pruned,
        1,
    ),
    "qLogNEI, constrained": (
        lambda c: qLogNoisyExpectedImprovement(
            c.two, c.known, sampler(), objective=FIRST, constraints=[feasible], prune_baseline=False
        ),
        2,
    ),
    "qKnowledgeGradient": (lambda c: qKnowledgeGradient(c.one, num_fantasies=4, sampler=sampler(4)), 2 + 4),
    "qMaxValueEntropy": (lambda c: max_value_entropy(qMaxValueEntropy, c), 1),
    "GIBBON": (lambda c: max_value_entropy(qLowerBoundMaxValueEntropy, c), 1),
    "qNegIntegratedPosteriorVariance": (
        lambda c: qNegIntegratedPosteriorVariance(c.one, c.integration, sampler(1), X_pending=c.pending),
        2,
    ),
    "qLogEHVI": (hypervolume, 2),
    "qLogEHVI, pending": (lambda c: hypervolume(c, X_pending=c.pending), 1),
    "qLogNEHVI": (
        lambda c: qLogNoisyExpectedHypervolumeImprovement(
            c.two, REFERENCE, c.known, sampler(), prune_baseline=False, cache_root=False
        ),
        1,
    ),
    "qLogNEHVI, cached root": (
        lambda c: qLogNoisyExpectedHypervolumeImprovement(c.two, REFERENCE, c.known, sampler(), prune_baseline=False),
        1,
    ),
    "cost-aware, known cost": (
        lambda c: cost_aware(c, AffineFidelityCostModel(fidelity_weights={2: 1.0}, fixed_cost=0.5).double()),
        1,
    ),
    "cost-aware, modelled cost": (lambda c: cost_aware(c, c.cost), 1),
}

#: Here BoTorch does not ask SingleTaskGP for the gradients through its fantasies, and gets a part of them.
PARTIAL = {"qNegIntegratedPosteriorVariance"}


def cases(data: Data, n: int, most: int) -> tuple[Case, Case | None]:
    """The same case with our models, and with `SingleTaskGP`s of the same state where all points are inducing."""
    X, Y, _ = data(n, D, 2)
    ours, theirs = [], []
    for values in (Y[:, :1], Y, 1.0 + X[:, :1] ** 2):
        model = BKBModel(X, values, max_inducing=most)
        with torch.no_grad():
            model.covar_module.lengthscale = 0.6
            model.likelihood.noise = 0.05
        oracle = SingleTaskGP(X, values)
        oracle.load_state_dict(model.state_dict())
        for trained in (model, oracle):
            trained.eval().requires_grad_(False)
        ours.append(model)
        theirs.append(oracle)
    rest = X, float(Y[:, 0].max()), torch.full((1, D), 0.45, dtype=F64), data(30, D, seed=8)[0]
    return Case(*ours, *rest), Case(*theirs, *rest) if n <= most else None


@pytest.fixture(scope="module")
def small(data_: Data) -> tuple[Case, Case]:
    ours, theirs = cases(data_, 40, 300)
    assert theirs is not None
    return ours, theirs


@pytest.fixture(scope="module")
def large(data_: Data) -> Case:
    return cases(data_, 5000, 60)[0]


def evaluate(function: AcquisitionFunction, points: Tensor) -> tuple[Tensor, Tensor]:
    """Values, and their gradient through the points."""
    points = points.clone().requires_grad_()
    values = function(points)
    return values.detach(), torch.autograd.grad(values.sum(), points)[0]


def points_for(q: int, n: int = 4) -> Tensor:
    return torch.rand(n, q, D, generator=torch.Generator().manual_seed(q), dtype=F64)


@pytest.mark.parametrize("name", MAKERS)
def test_values_and_gradients_are_those_of_single_task_gp(name: str, small: tuple[Case, Case]) -> None:
    make, q = MAKERS[name]
    points = points_for(q)
    (ours, our_gradient), (theirs, their_gradient) = (evaluate(make(case), points) for case in small)
    assert bool(torch.isfinite(ours).all())
    # Samples are made by roots of covariances whose condition numbers reach 1e6.
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-8)
    if name in PARTIAL:
        assert torch.autograd.gradcheck(make(small[0]), (points.requires_grad_(),))
    else:
        torch.testing.assert_close(our_gradient, their_gradient, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", MAKERS)
def test_values_and_gradients_are_finite_on_5000_observations(name: str, large: Case) -> None:
    make, q = MAKERS[name]
    values, gradient = evaluate(make(large), points_for(q))
    assert values.shape == torch.Size([4])
    assert bool(torch.isfinite(values).all())
    assert bool(torch.isfinite(gradient).all())
    assert bool((gradient != 0.0).any())
    assert len(large.one.inducing_points) <= 60


def test_a_look_ahead_does_not_copy_the_observations(large: Case) -> None:
    model = large.one.fantasize(points_for(2, 50), sampler(8))
    model.posterior(points_for(1, 50))
    assert model._inputs[0] is large.one._inputs[0]
    assert model._given is not None
    assert model._given[0].shape == torch.Size([50, 2, D])
