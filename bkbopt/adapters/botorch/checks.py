"""Argument checks of `BKBModel`, with BoTorch's exception types; they run before anything is changed.

Each message names the argument, what was expected and what was given.
"""

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood, Likelihood
from torch import Tensor

__all__ = [
    "check_finite",
    "check_likelihood",
    "check_new_noise",
    "check_noise",
    "check_points",
    "check_same_number",
    "check_targets",
    "check_training_data",
]

NO_BATCH = torch.Size()


def check_points(X: Tensor, dim: int | None, batch_shape: torch.Size = NO_BATCH) -> None:
    """Check finite points `X (batch_shape) x q x dim`, with any number of columns if `dim` is None.

    Args:
        X: the points.
        dim: expected number of columns.
        batch_shape: batch shape of the model; the leading dimensions of `X` have to broadcast with it.

    Raises:
        BotorchTensorDimensionError: the shape is wrong.
        InputDataError: `X` is not a floating-point tensor, or has NaN or infinity.
    """
    _check_tensor("X", X)
    if X.ndim < 2 or (dim is not None and X.shape[-1] != dim):
        raise BotorchTensorDimensionError(
            f"X: expected points of shape (batch_shape) x q x {dim or 'd'}, got shape {tuple(X.shape)}."
        )
    _check_broadcast("X", X.shape[:-2], batch_shape)
    check_finite("X", X, "points")


def check_targets(Y: Tensor, X: Tensor, outputs: int, batch_shape: torch.Size) -> None:
    """Check finite values `Y (batch_shape') x n x outputs` of the points `X (batch_shape) x n x d`.

    Args:
        Y: the values.
        X: their points.
        outputs: expected number of columns of `Y`.
        batch_shape: batch shape of the model; the leading dimensions of all three have to broadcast.

    Raises:
        BotorchTensorDimensionError: the shape is wrong.
        InputDataError: `Y` is not a floating-point tensor, or has NaN or infinity.
    """
    _check_tensor("Y", Y)
    if Y.ndim < 2 or Y.shape[-2:] != (X.shape[-2], outputs):
        raise BotorchTensorDimensionError(
            f"Y: expected shape (batch_shape) x {X.shape[-2]} x {outputs}, a row for each point and a column for "
            f"each output, got shape {tuple(Y.shape)}."
        )
    _check_broadcast("Y", Y.shape[:-2], X.shape[:-2], batch_shape)
    check_finite("Y", Y, "values")


def check_noise(name: str, noise: Tensor, shape: torch.Size, *, zero: str | None = None) -> None:
    """Check finite noise variances that broadcast to `shape`.

    Args:
        name: name of the argument.
        noise: the variances.
        shape: the shape.
        zero: None if they must be positive; where they may be zero what is expected, for messages.

    Raises:
        BotorchTensorDimensionError: the shape is wrong.
        InputDataError: not a floating-point tensor, NaN, infinity, or a variance that is too small.
    """
    _check_tensor(name, noise)
    fits = 2 <= noise.ndim <= len(shape) and all(
        own in (1, other) for own, other in zip(noise.shape[::-1], shape[::-1], strict=False)
    )
    if not fits:
        raise BotorchTensorDimensionError(
            f"{name}: expected noise variances of shape {tuple(shape)}, got shape {tuple(noise.shape)}."
        )
    check_finite(name, noise, "variances")
    if bool((noise <= 0.0).any() if zero is None else (noise < 0.0).any()):
        expected = zero or "positive variances (for exact values 1e-6, for example)"
        raise InputDataError(f"{name}: expected {expected}, got {float(noise.min()):g}.")


def check_new_noise(noise: Tensor | None, Y: Tensor, needed: bool) -> None:
    """Check the noise variances of new observations `Y`; raises the errors of `check_noise`, and one if `needed`."""
    if noise is not None:
        check_noise("noise", noise, Y.shape)
    elif needed:
        raise InputDataError(
            "noise: expected the noise variances of the new observations, since the model was made with train_Yvar, "
            "got None."
        )


def check_same_number(X: Tensor, targets: Tensor, noise: Tensor) -> None:
    """Check training inputs `(..., n, d)`, targets `(..., n)` and noise variances `(..., n or 1)` for the same n.

    Raises:
        BotorchTensorDimensionError: they have different numbers n, since each can be set separately.
    """
    n = targets.shape[-1]
    if X.shape[-2] != n:
        raise BotorchTensorDimensionError(
            f"train_inputs: expected as many points as there are targets, {n}, got {X.shape[-2]}; see set_train_data."
        )
    if noise.shape[-1] not in (1, n):
        raise BotorchTensorDimensionError(
            f"likelihood: expected a noise variance for each of the {n} targets, got {noise.shape[-1]}; set "
            "likelihood.noise_covar.noise when the training data are replaced."
        )


def check_likelihood(likelihood: Likelihood | None) -> None:
    """Check for a Gaussian likelihood, or None for the default.

    Raises:
        UnsupportedError: another likelihood.
    """
    if likelihood is not None and not isinstance(likelihood, GaussianLikelihood | FixedNoiseGaussianLikelihood):
        raise UnsupportedError(
            "likelihood: expected a GaussianLikelihood or FixedNoiseGaussianLikelihood, got "
            f"{type(likelihood).__name__}."
        )


def check_training_data(train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None) -> None:
    """Check the training data of a model; see `BKBModel` for their shapes.

    Raises:
        BotorchTensorDimensionError: shapes that do not fit each other, or no points.
        InputDataError: not a floating-point tensor, one that requires gradients, NaN or infinity, or a negative noise
            variance.
    """
    data = {"train_X": train_X, "train_Y": train_Y, **({} if train_Yvar is None else {"train_Yvar": train_Yvar})}
    for name, given in data.items():
        _check_tensor(name, given)
        if given.requires_grad:
            raise InputDataError(
                f"{name}: expected a tensor without gradients, since training data enter as constants, got one that "
                f"requires them; pass {name}.detach()."
            )
    if train_X.ndim < 2 or 0 in train_X.shape:
        raise BotorchTensorDimensionError(
            f"train_X: expected at least one point, in shape (batch_shape) x n x d, got shape {tuple(train_X.shape)}."
        )
    if train_Y.ndim != train_X.ndim or train_Y.shape[:-1] != train_X.shape[:-1] or train_Y.shape[-1] < 1:
        expected = " x ".join(str(size) for size in train_X.shape[:-1])
        raise BotorchTensorDimensionError(
            f"train_Y: expected shape {expected} x m, a row for each point of train_X and a column for each output, "
            f"got shape {tuple(train_Y.shape)}."
        )
    check_finite("train_X", train_X, "points")
    check_finite("train_Y", train_Y, "values")
    if train_Yvar is not None:
        if train_Yvar.shape != train_Y.shape:
            raise BotorchTensorDimensionError(
                f"train_Yvar: expected a variance for each value of train_Y, of shape {tuple(train_Y.shape)}, got "
                f"shape {tuple(train_Yvar.shape)}."
            )
        # GPyTorch raises smaller variances than its smallest one to that, and warns.
        expected = "positive variances (or 0, which counts as GPyTorch's smallest one)"
        check_noise("train_Yvar", train_Yvar, train_Y.shape, zero=expected)


def check_finite(name: str, values: Tensor, what: str) -> None:
    """Check that there is neither NaN nor infinity, with which every number of a posterior would be NaN.

    Raises:
        InputDataError: there is NaN or infinity.
    """
    finite = torch.isfinite(values)
    if not bool(finite.all()):
        rows = ~finite.all(-1)
        raise InputDataError(
            f"{name}: expected finite {what}, got NaN or infinity in {int(rows.sum())} of {rows.numel()} rows; leave "
            "these out, since a posterior would be NaN."
        )


def _check_broadcast(name: str, own: torch.Size, *others: torch.Size) -> None:
    try:
        torch.broadcast_shapes(own, *others)
    except RuntimeError as error:
        shapes = " and ".join(str(tuple(other)) for other in others)
        raise BotorchTensorDimensionError(
            f"{name}: expected leading dimensions that broadcast with {shapes}, those of the model and the points, got "
            f"{tuple(own)}."
        ) from error


def _check_tensor(name: str, value: object) -> None:
    if not isinstance(value, Tensor) or not value.is_floating_point():
        got = f"a tensor of {value.dtype}" if isinstance(value, Tensor) else type(value).__name__
        raise InputDataError(f"{name}: expected a floating-point tensor, got {got}.")
