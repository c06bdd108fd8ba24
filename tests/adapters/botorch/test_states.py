"""States, copies, dtypes, new data, and hyper-parameters changed by hand."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("botorch", reason="the BoTorch adapter needs botorch")

from botorch.models.transforms.input import Normalize, Warp
from botorch.models.transforms.outcome import Log
from botorch.sampling import SobolQMCNormalSampler

from bkbopt.adapters.botorch import BKBModel

pytestmark = pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")

D = 3
F64 = torch.float64
Data = Callable[..., tuple[Tensor, Tensor, Tensor]]
Pair = Callable[..., tuple[Any, Any]]
POINTS = torch.rand(5, D, generator=torch.Generator().manual_seed(7), dtype=F64)


def options() -> dict[str, dict[str, Any]]:
    bounds = torch.tensor([[0.0] * D, [1.0] * D], dtype=F64)
    return {
        "default": {},
        "few inducing points": {"max_inducing": 10},
        "transforms": {"input_transform": Warp(d=D, indices=[0], bounds=bounds), "outcome_transform": Log()},
        "normalize": {"input_transform": Normalize(D), "max_inducing": 10},
    }


def predicted(model: Any, points: Tensor = POINTS) -> list[Tensor]:
    posterior = model.posterior(points)
    return [posterior.mean.detach(), posterior.variance.detach()]


def assert_same(one: list[Tensor], other: list[Tensor]) -> None:
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def new(data: Data, pair: Pair, name: str, m: int = 2, fixed: bool = False) -> Any:
    X, Y, Yvar = data(40, D, m)
    return pair(X, Y, Yvar if fixed else None, **options()[name])[0]


@pytest.mark.parametrize("name", options())
@pytest.mark.parametrize("fixed", [False, True], ids=["inferred", "Yvar"])
def test_a_state_gives_the_same_posterior_in_a_model_of_the_same_data(
    name: str, fixed: bool, data: Data, pair: Pair
) -> None:
    model = new(data, pair, name, fixed=fixed)
    before = predicted(model)
    X, Y, Yvar = data(40, D, 2)
    other = BKBModel(X, Y, Yvar if fixed else None, **options()[name])
    other.posterior(POINTS)  # what it has learnt by then has to go
    other.load_state_dict(model.state_dict(), keep_transforms=False)
    assert_same(predicted(other), before)
    kept = BKBModel(X, Y, Yvar if fixed else None, **options()[name])
    kept.load_state_dict(model.state_dict())
    # Here BoTorch untransforms the targets and transforms them again, which rounds them.
    for one, expected in zip(predicted(kept), before, strict=True):
        torch.testing.assert_close(one, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", options())
def test_a_state_loaded_back_changes_nothing(name: str, data: Data, pair: Pair, shift: Callable[..., None]) -> None:
    model = new(data, pair, name)
    before, state = predicted(model), copy.deepcopy(model.state_dict())
    shift(model, 5)
    assert not torch.equal(predicted(model)[0], before[0])
    model.load_state_dict(state, keep_transforms=False)
    assert_same(predicted(model), before)


def test_a_copy_has_data_of_its_own(data: Data) -> None:
    X, Y, _ = data(10, D)
    model = BKBModel(X, Y).eval()
    before = model.posterior(X[:2]).mean
    other = copy.deepcopy(model)
    for own, theirs in ((model.train_inputs[0], other.train_inputs[0]), (model.train_targets, other.train_targets)):
        assert torch.equal(own, theirs)
        theirs.zero_()
        assert bool(own.any())
    assert torch.equal(model.posterior(X[:2]).mean, before)


@pytest.mark.parametrize("name", options())
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))], ids=["copy", "pickle"]
)
@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used"])
def test_copies_have_the_same_posterior_and_a_life_of_their_own(
    name: str, copied: Callable[[Any], Any], used: bool, data: Data, pair: Pair, shift: Callable[..., None]
) -> None:
    model = new(data, pair, name, fixed=True)
    if used:
        model.posterior(POINTS)
    other = copied(model)
    before = predicted(model)
    assert_same(predicted(other), before)
    shift(other, 3)
    assert not torch.equal(predicted(other)[0], before[0])
    assert_same(predicted(model), before)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))], ids=["copy", "pickle"]
)
def test_fantasy_models_can_be_copied(copied: Callable[[Any], Any], data: Data, pair: Pair) -> None:
    model = new(data, pair, "few inducing points")
    X_new = torch.rand(2, D, dtype=F64)
    fantasies = model.fantasize(X_new, SobolQMCNormalSampler(torch.Size([3]), seed=0))
    other = copied(fantasies)
    assert_same(predicted(other), predicted(fantasies))
    assert torch.equal(other.train_targets, fantasies.train_targets)
    again = other.condition_on_observations(X_new, torch.rand(2, 2, dtype=F64))
    assert again.batch_shape == torch.Size([3])


@pytest.mark.parametrize("fixed", [False, True], ids=["inferred", "Yvar"])
@pytest.mark.parametrize("name", ["default", "normalize"])
def test_a_model_can_change_its_dtype(name: str, fixed: bool, data: Data, pair: Pair) -> None:
    model = new(data, pair, name, fixed=fixed)
    before = predicted(model)
    model.to(torch.float32)
    after = predicted(model, POINTS.float())
    assert {value.dtype for value in after} == {torch.float32}
    for one, other in zip(after, before, strict=True):
        # Data and hyper-parameters are rounded to 6e-8, and the condition number is up to 1e3.
        torch.testing.assert_close(one.double(), other, rtol=1e-3, atol=1e-4)
    model.double()
    assert {value.dtype for value in predicted(model)} == {F64}
    model.train()  # BoTorch takes back the inputs before their transform, which have to follow
    assert model.train_inputs[0].dtype == F64


def test_a_fantasy_model_can_change_its_dtype(data: Data, pair: Pair) -> None:
    fantasies = new(data, pair, "default").fantasize(POINTS[:2], SobolQMCNormalSampler(torch.Size([3]), seed=0))
    before = predicted(fantasies)
    after = predicted(fantasies.float(), POINTS.float())
    assert after[0].dtype == torch.float32
    torch.testing.assert_close(after[0].double(), before[0], rtol=1e-3, atol=1e-4)


# -- no stale predictions ------------------------------------------------------------------------------------------


def test_a_hyper_parameter_changed_by_hand_changes_the_posterior(data: Data, pair: Pair) -> None:
    X, Y, _ = data(40, D)
    ours, theirs = pair(X, Y)
    for name in ("covar_module.raw_lengthscale", "likelihood.noise_covar.raw_noise", "mean_module.raw_constant"):
        before = predicted(ours)
        for model in (ours, theirs):
            with torch.no_grad():
                dict(model.named_parameters())[name].mul_(1.5).add_(0.1)
        assert not torch.equal(predicted(ours)[0], before[0])
        theirs.train()
        theirs.eval()  # which is how SingleTaskGP is told
        for one, other in zip(predicted(ours), predicted(theirs), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_a_fantasy_model_follows_its_hyper_parameters_too(data: Data, pair: Pair) -> None:
    X, Y, _ = data(40, D)
    ours, _ = pair(X[:38], Y[:38], outcome_transform=None)
    fantasies = ours.condition_on_observations(X[38:], Y[38:])
    whole, _ = pair(X, Y, outcome_transform=None)
    for model in (fantasies, whole):
        model.covar_module.lengthscale = 0.7
    for one, other in zip(predicted(fantasies), predicted(whole), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_known_noise_changed_by_hand_changes_the_posterior(data: Data, pair: Pair) -> None:
    X, Y, Yvar = data(40, D)
    model, _ = pair(X, Y, Yvar, outcome_transform=None)
    model.posterior(POINTS)
    model.likelihood.noise_covar.noise = 4.0 * Yvar[:, 0]
    expected, _ = pair(X, Y, 4.0 * Yvar, outcome_transform=None)
    assert_same(predicted(model), predicted(expected))


def test_new_training_data_replace_the_old(data: Data, pair: Pair) -> None:
    X, Y, _ = data(60, D)
    model, _ = pair(X[:40], Y[:40], outcome_transform=None, max_inducing=10)
    expected, _ = pair(X[20:], Y[20:], outcome_transform=None, max_inducing=10)
    model.posterior(POINTS)
    model.set_train_data(X[20:], Y[20:, 0])
    assert_same(predicted(model), predicted(expected))
    more, _ = pair(X, Y, outcome_transform=None, max_inducing=10)
    model.set_train_data(inputs=X, strict=False)
    model.set_train_data(targets=Y[:, 0], strict=False)
    assert_same(predicted(model), predicted(more))
    model.train_targets = 2.0 * Y[:, 0]  # by assignment, as BoTorch itself does here and there
    assert not torch.equal(predicted(model)[0], predicted(more)[0])


def test_new_training_data_replace_those_of_fantasies(data: Data, pair: Pair) -> None:
    X, Y, _ = data(42, D)
    model, _ = pair(X[:40], Y[:40], outcome_transform=None)
    fantasies = model.condition_on_observations(X[40:], Y[40:])
    fantasies.set_train_data(X[:40], Y[:40, 0], strict=False)
    assert_same(predicted(fantasies), predicted(model))


@pytest.mark.parametrize("name", options())
def test_training_and_evaluation_may_alternate(name: str, data: Data, pair: Pair) -> None:
    model = new(data, pair, name)
    before = predicted(model)
    inputs = model.train_inputs[0]
    for _ in range(2):
        model.train()
        model.eval()
        assert_same(predicted(model), before)
        assert torch.equal(model.train_inputs[0], inputs)


def test_predictions_are_learnt_once(data: Data, pair: Pair) -> None:
    model = new(data, pair, "normalize")
    model.posterior(POINTS)
    known = model.prediction
    model.posterior(POINTS)
    model.eval().fantasize(POINTS[:2], SobolQMCNormalSampler(torch.Size([2])))
    assert model.prediction is known


def test_moving_a_fantasy_model_to_where_it_is_changes_nothing(data: Data, pair: Pair) -> None:
    # BoTorch does so inside its look-ahead functions, where gradients have to come through.
    model = new(data, pair, "few inducing points").requires_grad_(False)
    X_new = torch.rand(2, D, dtype=F64, requires_grad=True)
    fantasies = model.fantasize(X_new, SobolQMCNormalSampler(torch.Size([3]), seed=0))
    known, given = fantasies.prediction, fantasies._given
    fantasies.to(POINTS)
    assert fantasies.prediction is known
    assert all(one is other for one, other in zip(fantasies._given, given, strict=True))
    (gradient,) = torch.autograd.grad(fantasies.posterior(POINTS).mean.sum(), X_new)
    assert bool((gradient != 0.0).all())
