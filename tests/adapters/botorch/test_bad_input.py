"""Invalid input of a `BKBModel`: the types and texts of its errors, and an unchanged state; also under `python -O`."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("botorch", reason="the BoTorch adapter needs botorch")

from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.models.transforms.input import ChainedInputTransform, Normalize, Warp
from botorch.models.transforms.outcome import Log
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.likelihoods import StudentTLikelihood

from bkbopt.adapters.botorch import BKBModel
from bkbopt.errors import ArgumentError, ArgumentTypeError

pytestmark = [
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning"),
    pytest.mark.filterwarnings("ignore:.*StudentT.*"),
]

D = 3
F64 = torch.float64
NAN, INF = float("nan"), float("inf")
ROOT = Path(__file__).resolve().parents[3]
Data = Callable[..., tuple[Tensor, Tensor, Tensor]]


def spoilt(T: Tensor, value: float) -> Tensor:
    """A copy with `value` in its second row."""
    out = T.clone()
    out[..., 1, 0] = value
    return out


# -- construction --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("name", ["train_X", "train_Y", "train_Yvar"])
def test_data_that_are_not_finite_are_refused(name: str, value: float, data: Data) -> None:
    given = dict(zip(("train_X", "train_Y", "train_Yvar"), data(10, D), strict=True))
    given[name] = spoilt(given[name], value)
    with pytest.raises(InputDataError, match=rf"^{name}: expected finite .*NaN or infinity in 1 of 10 rows"):
        BKBModel(**given)


@pytest.mark.parametrize("name", ["train_X", "train_Y", "train_Yvar"])
def test_data_that_require_gradients_are_refused(name: str, data: Data) -> None:
    given = dict(zip(("train_X", "train_Y", "train_Yvar"), data(10, D), strict=True))
    given[name] = given[name].requires_grad_()
    with pytest.raises(InputDataError, match=rf"^{name}: expected a tensor without gradients"):
        BKBModel(**given)


@pytest.mark.parametrize("value", [-1e-3])
def test_noise_variances_that_are_negative_are_refused(value: float, data: Data) -> None:
    X, Y, Yvar = data(10, D)
    with pytest.raises(InputDataError, match=rf"^train_Yvar: expected positive variances .* got {value:g}\."):
        BKBModel(X, Y, spoilt(Yvar, value))


BAD_SHAPES: dict[str, tuple[Callable[..., tuple[Tensor, ...]], str]] = {
    "X of one dimension": (lambda X, Y, V: (X[:, 0], Y), r"train_X: expected at least one point.*\(10,\)"),
    "no points": (lambda X, Y, V: (X[:0], Y[:0]), r"train_X: expected at least one point.*\(0, 3\)"),
    "Y without outputs": (lambda X, Y, V: (X, Y[:, 0]), r"train_Y: expected shape 10 x m.*\(10,\)"),
    "Y too short": (lambda X, Y, V: (X, Y[:9]), r"train_Y: expected shape 10 x m.*\(9, 1\)"),
    "Y of no output": (lambda X, Y, V: (X, Y[:, :0]), r"train_Y: expected shape 10 x m.*\(10, 0\)"),
    "Y of another batch": (lambda X, Y, V: (X.expand(2, 10, D), Y), r"train_Y: expected shape 2 x 10 x m"),
    "Yvar without outputs": (lambda X, Y, V: (X, Y, V[:, 0]), r"train_Yvar: .*shape \(10, 1\), got shape \(10,\)"),
    "Yvar of more outputs": (lambda X, Y, V: (X, Y, V.repeat(1, 2)), r"train_Yvar: .*got shape \(10, 2\)"),
}


@pytest.mark.parametrize("name", BAD_SHAPES)
def test_data_of_shapes_that_do_not_fit_are_refused(name: str, data: Data) -> None:
    spoil, message = BAD_SHAPES[name]
    with pytest.raises(BotorchTensorDimensionError, match=message):
        BKBModel(*spoil(*data(10, D)))


@pytest.mark.parametrize("wrong", [[[0.5, 0.5]], torch.ones(10, D, dtype=torch.int64), None])
def test_data_that_are_no_tensors_of_floats_are_refused(wrong: Any, data: Data) -> None:
    X, Y, _ = data(10, D)
    with pytest.raises(InputDataError, match="train_X: expected a floating-point tensor, got"):
        BKBModel(wrong, Y)
    with pytest.raises(InputDataError, match="train_Y: expected a floating-point tensor, got"):
        BKBModel(X, wrong)


def test_data_of_different_dtypes_are_refused(data: Data) -> None:
    X, Y, _ = data(10, D)
    with pytest.raises(InputDataError, match="same dtype"):
        BKBModel(X, Y.float())


def test_values_without_a_logarithm_are_refused(data: Data) -> None:
    X, Y, _ = data(10, D)
    for value in (-1.0, 0.0):
        with pytest.raises(InputDataError):
            BKBModel(X, spoilt(Y, value), outcome_transform=Log())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_inducing": 0}, ArgumentError, "max_inducing: expected a whole number >= 1, or None, got 0"),
        ({"max_inducing": 2.5}, ArgumentError, "max_inducing: "),
        ({"max_inducing": "many"}, ArgumentTypeError, "max_inducing: "),
        ({"qbar": 0.5}, ArgumentError, "qbar: expected a number >= 1, got 0.5"),
        ({"qbar": NAN}, ArgumentError, "qbar: "),
        ({"seed": -1}, ArgumentError, "seed: expected a whole number >= 0, got -1"),
        ({"seed": None}, ArgumentTypeError, "seed: "),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], error: type[Exception], message: str, data: Data) -> None:
    X, Y, _ = data(10, D)
    with pytest.raises(error, match=message):
        BKBModel(X, Y, **options)


def test_likelihoods_that_are_not_gaussian_are_refused(data: Data) -> None:
    X, Y, _ = data(10, D)
    with pytest.raises(UnsupportedError, match=r"likelihood: expected a GaussianLikelihood or .* got StudentT"):
        BKBModel(X, Y, likelihood=StudentTLikelihood())


# -- calls of a model, which a refusal leaves as it was ------------------------------------------------------------


@pytest.fixture(params=["inferred", "Yvar", "transforms", "fantasies"])
def model(request: pytest.FixtureRequest, data: Data) -> Any:
    X, Y, Yvar = data(10, D, 2)
    if request.param == "Yvar":
        return BKBModel(X, Y, Yvar).eval()
    if request.param == "transforms":
        bounds = torch.tensor([[0.0] * D, [1.0] * D], dtype=F64)
        # Warping would bring infinity back into the cube.
        inputs = ChainedInputTransform(first=Normalize(D), second=Warp(d=D, indices=[0, 1, 2], bounds=bounds))
        return BKBModel(X, Y, input_transform=inputs, outcome_transform=Log()).eval()
    made = BKBModel(X, Y).eval()
    return made.condition_on_observations(X[:2], Y[:2]) if request.param == "fantasies" else made


POINTS = torch.full((4, D), 0.5, dtype=F64)


def snapshot(model: Any) -> list[Any]:
    posterior = model.posterior(POINTS)
    return [posterior.mean, posterior.variance, model.train_targets, *model.train_inputs, *model.state_dict().values()]


def refuses(model: Any, call: Callable[[], Any], error: type[Exception], message: str) -> None:
    before = snapshot(model)
    with pytest.raises(error, match=message):
        call()
    after = snapshot(model)
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_points_that_are_not_finite_are_refused(value: float, model: Any) -> None:
    X = spoilt(POINTS, value)
    for call in (
        lambda: model.posterior(X),
        lambda: model.posterior(X, output_indices=[1]),
        lambda: model.condition_on_observations(X, torch.ones(4, 2, dtype=F64)),
        lambda: model.fantasize(X, SobolQMCNormalSampler(torch.Size([2]))),
    ):
        refuses(model, call, InputDataError, "^X: expected finite points, got NaN or infinity in 1 of 4 rows")


@pytest.mark.parametrize("shape", [(D,), (4, D + 1), (4, D - 1)])
def test_points_of_another_dimension_are_refused(shape: tuple[int, ...], model: Any) -> None:
    X = torch.full(shape, 0.5, dtype=F64)
    message = rf"X: expected points of shape \(batch_shape\) x q x (3|d), got shape \({shape[0]},"
    if hasattr(model, "input_transform") and len(shape) > 1:
        message = "shape|dimension"  # BoTorch's transform looks at the columns before the model does
    refuses(model, lambda: model.posterior(X), BotorchTensorDimensionError, message)
    values = torch.ones(shape[0], 2, dtype=F64)
    refuses(model, lambda: model.condition_on_observations(X, values), BotorchTensorDimensionError, message)


def test_points_that_are_no_tensor_are_refused(model: Any) -> None:
    refuses(
        model, lambda: model.posterior([[0.5] * D]), InputDataError, "X: expected a floating-point tensor, got list"
    )


def test_points_of_another_batch_are_refused(data: Data) -> None:
    X, Y, _ = data(10, D, 1, (2,))
    model = BKBModel(X, Y).eval()
    points = torch.rand(3, 4, D, dtype=F64)
    refuses_batch = r"X: expected leading dimensions that broadcast with \(2,\).*got \(3,\)"
    with pytest.raises(BotorchTensorDimensionError, match=refuses_batch):
        model.posterior(points)


@pytest.mark.parametrize("indices", [[2], [0, -3], []])
def test_outputs_that_are_not_there_are_refused(indices: list[int], model: Any) -> None:
    refuses(model, lambda: model.posterior(POINTS, output_indices=indices), InputDataError, "output_indices: expected")


@pytest.mark.parametrize(
    ("noise", "error", "message"),
    [
        (torch.full((4, 2), -0.1, dtype=F64), InputDataError, "expected variances >= 0, got -0.1"),
        (torch.full((4, 2), NAN, dtype=F64), InputDataError, "expected finite variances"),
        (torch.full((3, 2), 0.1, dtype=F64), BotorchTensorDimensionError, r"expected .*\(4, 2\), got shape \(3, 2\)"),
        (torch.full((4, 3), 0.1, dtype=F64), BotorchTensorDimensionError, r"expected .*\(4, 2\), got shape \(4, 3\)"),
        (torch.tensor(0.1, dtype=F64), BotorchTensorDimensionError, r"expected .*got shape \(\)"),
    ],
)
def test_noise_to_add_that_makes_no_sense_is_refused(
    noise: Tensor, error: type[Exception], message: str, model: Any
) -> None:
    refuses(model, lambda: model.posterior(POINTS, observation_noise=noise), error, "observation_noise: " + message)


VALUES = torch.full((4, 2), 2.0, dtype=F64)


@pytest.mark.parametrize(
    ("Y", "error", "message"),
    [
        (spoilt(VALUES, NAN), InputDataError, "Y: expected finite values, got NaN or infinity in 1 of 4 rows"),
        (spoilt(VALUES, INF), InputDataError, "Y: expected finite values"),
        (VALUES[:, :1], BotorchTensorDimensionError, r"Y: expected shape \(batch_shape\) x 4 x 2.*\(4, 1\)"),
        (VALUES[:3], BotorchTensorDimensionError, r"Y: expected shape \(batch_shape\) x 4 x 2.*\(3, 2\)"),
        (VALUES[:, 0], BotorchTensorDimensionError, r"Y: expected shape \(batch_shape\) x 4 x 2.*\(4,\)"),
        ([2.0] * 4, InputDataError, "Y: expected a floating-point tensor, got list"),
    ],
)
def test_values_that_do_not_fit_are_refused(Y: Any, error: type[Exception], message: str, model: Any) -> None:
    refuses(model, lambda: model.condition_on_observations(POINTS, Y, noise=0.1 * VALUES), error, message)


@pytest.mark.parametrize(
    ("noise", "error", "message"),
    [
        (0.0 * VALUES, InputDataError, "noise: expected positive variances .* got 0"),
        (-1.0 * VALUES, InputDataError, "noise: expected positive variances .* got -2"),
        (spoilt(VALUES, NAN), InputDataError, "noise: expected finite variances"),
        (VALUES[:3], BotorchTensorDimensionError, r"noise: expected .*\(4, 2\), got shape \(3, 2\)"),
    ],
)
def test_noise_that_does_not_fit_is_refused(noise: Tensor, error: type[Exception], message: str, model: Any) -> None:
    refuses(model, lambda: model.condition_on_observations(POINTS, VALUES, noise=noise), error, message)


def test_values_need_their_noise_where_the_model_knows_it(data: Data) -> None:
    X, Y, Yvar = data(10, D, 2)
    model = BKBModel(X, Y, Yvar).eval()
    call = lambda: model.condition_on_observations(POINTS, VALUES)  # noqa: E731
    refuses(model, call, InputDataError, "noise: expected the noise variances of the new observations.*got None")


def test_values_of_another_batch_are_refused(model: Any) -> None:
    X, Y = POINTS.expand(3, 4, D), VALUES.expand(2, 4, 2)
    message = r"Y: expected leading dimensions that broadcast with \(3,\).*got \(2,\)"
    refuses(model, lambda: model.condition_on_observations(X, Y), BotorchTensorDimensionError, message)


def test_keywords_that_are_not_known_are_refused(model: Any) -> None:
    call = lambda: model.condition_on_observations(POINTS, VALUES, noise=VALUES, nose=VALUES)  # noqa: E731
    refuses(model, call, UnsupportedError, "expected X, Y and noise, got .*nose")


def test_values_without_a_logarithm_cannot_be_conditioned_on(data: Data) -> None:
    X, Y, _ = data(10, D, 2)
    model = BKBModel(X, Y, outcome_transform=Log()).eval()
    call = lambda: model.condition_on_observations(POINTS, -VALUES)  # noqa: E731
    refuses(model, call, InputDataError, "Y: expected finite values after the outcome transform")


def test_new_training_data_that_are_not_finite_are_refused(model: Any) -> None:
    X, targets = model.train_inputs[0], model.train_targets
    refuses(model, lambda: model.set_train_data(inputs=spoilt(X, NAN)), InputDataError, "inputs: expected finite")
    bad = targets.clone()
    bad[..., 0] = INF
    refuses(model, lambda: model.set_train_data(X, bad), InputDataError, "targets: expected finite")


def test_new_training_data_of_another_shape_are_refused_as_a_whole(data: Data) -> None:
    X, Y, _ = data(10, D)
    model = BKBModel(X, Y).eval()
    # The inputs fit and would be taken before the targets are looked at.
    refuses(model, lambda: model.set_train_data(0.5 * X, Y[:5, 0]), RuntimeError, "shape of targets")


def test_training_data_of_which_one_half_was_replaced_are_refused_at_prediction(data: Data) -> None:
    X, Y, Yvar = data(10, D)
    model = BKBModel(X, Y).eval()
    model.set_train_data(inputs=X[:5], strict=False)
    with pytest.raises(BotorchTensorDimensionError, match=r"train_inputs: expected as many points .* 10, got 5"):
        model.posterior(POINTS)
    model.set_train_data(targets=Y[:5, 0], strict=False)
    model.posterior(POINTS)
    known = BKBModel(X, Y, Yvar).eval()
    known.set_train_data(X[:5], Y[:5, 0], strict=False)
    with pytest.raises(BotorchTensorDimensionError, match="likelihood: expected a noise variance for each of the 5"):
        known.posterior(POINTS)


@pytest.mark.slow
def test_refusals_do_not_hang_on_assertions() -> None:
    code = """
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from bkbopt.adapters.botorch import BKBModel
assert False, "python -O leaves this out"
X, Y = torch.rand(10, 2, dtype=torch.float64), torch.rand(10, 1, dtype=torch.float64)
model = BKBModel(X, Y)
nan = torch.full_like(X[:1], float("nan"))
for call, error in (
    (lambda: BKBModel(X, Y / 0.0 * 0.0), InputDataError),
    (lambda: BKBModel(X, Y[:5]), BotorchTensorDimensionError),
    (lambda: BKBModel(X, Y, -Y), InputDataError),
    (lambda: BKBModel(X, Y, max_inducing=0), ValueError),
    (lambda: model.posterior(nan), InputDataError),
    (lambda: model.posterior(X[:, :1]), BotorchTensorDimensionError),
    (lambda: model.condition_on_observations(nan, Y[:1]), InputDataError),
    (lambda: model.condition_on_observations(X[:1], Y), BotorchTensorDimensionError),
    (lambda: model.set_train_data(targets=Y[:, 0] * float("nan")), InputDataError),
):
    try:
        call()
    except error:
        continue
    raise SystemExit(f"not refused: {error}")
"""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    result = subprocess.run(
        [sys.executable, "-O", "-W", "ignore", "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
