"""BKBModel: a `SingleTaskGP` whose posterior is BKB's, at a cost set by the inducing points and not by the data.

Everything that BoTorch asks of a model (transforms, several outputs, noise, posteriors, states) is `SingleTaskGP`'s own
code. What is replaced is the prediction in evaluation mode, conditioning and fantasies, which follow from it in closed
form, and fitting, which must not touch an n x n matrix.
"""

import copy
from collections.abc import Callable
from typing import Any, Self

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import OutcomeTransform
from botorch.models.utils import multioutput_to_batch_mode_transform
from botorch.posteriors import GPyTorchPosterior, TransformedPosterior
from botorch.utils.types import DEFAULT, _DefaultType
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, Likelihood
from gpytorch.means import Mean
from gpytorch.mlls import MarginalLogLikelihood
from gpytorch.module import Module
from gpytorch.settings import prior_mode
from torch import Tensor

from bkbopt.adapters.botorch.checks import check_finite, check_noise, check_points, check_targets, check_training_data
from bkbopt.adapters.botorch.fit import fit_likelihood
from bkbopt.adapters.botorch.prediction import Options, Prediction, learn
from bkbopt.surrogates.checks import check_count, check_number

__all__ = ["BKBModel"]


class BKBModel(SingleTaskGP):
    """BKB as a BoTorch model, for thousands of noisy observations; a drop-in for `SingleTaskGP`.

    With at most `max_inducing` different training points the posterior is the exact one. With more, inducing points
    are drawn by ridge leverage scores (Calandriello et al. 2019, Algorithm 1), and the variance is the DTC form, which
    does not starve: far from the inducing points it is the prior's.

    `fit_gpytorch_mll` works with any exact marginal log-likelihood around this model, BoTorch's usual one included, and
    never builds an n x n matrix; see `fit_bkb_model`.

    Args:
        train_X: (batch_shape) x n x d training inputs.
        train_Y: (batch_shape) x n x m training outputs, modelled independently.
        train_Yvar: (batch_shape) x n x m noise variances, if they are known; observations are weighted by them.
        likelihood: a Gaussian likelihood; by default `SingleTaskGP`'s.
        covar_module: any GPyTorch kernel; by default `SingleTaskGP`'s.
        mean_module: prior mean; a constant by default.
        outcome_transform: `Standardize` by default, None for none.
        input_transform: of the inputs.
        qbar: oversampling of the inducing points, >= 1.
        max_inducing: largest number of inducing points, or None for no limit.
        seed: of their draw, which depends on data, hyper-parameters and this seed only.

    Raises:
        InputDataError: NaN or infinity in the training data, or at points whose posterior is asked for.
        BotorchTensorDimensionError: shapes that do not fit each other, or the model.
        UnsupportedError: a likelihood without a noise variance.
        ArgumentError: `qbar`, `max_inducing` or `seed` is out of range (a ValueError).
    """

    def __init__(
        self,
        train_X: Tensor,
        train_Y: Tensor,
        train_Yvar: Tensor | None = None,
        likelihood: Likelihood | None = None,
        covar_module: Module | None = None,
        mean_module: Mean | None = None,
        outcome_transform: OutcomeTransform | _DefaultType | None = DEFAULT,
        input_transform: InputTransform | None = None,
        *,
        qbar: float = 2.0,
        max_inducing: int | None = 300,
        seed: int = 0,
    ) -> None:
        if max_inducing is not None:
            max_inducing = check_count("max_inducing", max_inducing, 1, "a whole number >= 1, or None")
        qbar, seed = check_number("qbar", qbar, 1.0, "a number >= 1"), check_count("seed", seed, 0)
        check_training_data(train_X, train_Y, train_Yvar)
        if likelihood is not None and not hasattr(likelihood, "noise"):
            raise UnsupportedError(
                f"likelihood: expected a Gaussian one with a noise variance, got {type(likelihood).__name__}."
            )
        self._options = Options(qbar, max_inducing, seed)
        self._dim = train_X.shape[-1]
        #: Inputs, original inputs and targets that the model was conditioned on, next to its training data.
        self._given: tuple[Tensor, Tensor, Tensor] | None = None
        self._inputs: tuple[Tensor, ...] | None = None
        self._targets: Tensor | None = None
        self._original: Tensor | None = None
        super().__init__(
            train_X, train_Y, train_Yvar, likelihood, covar_module, mean_module, outcome_transform, input_transform
        )

    # -- prediction ----------------------------------------------------------------------------------------------

    def __call__(self, *args: Tensor, **kwargs: Any) -> MultivariateNormal:
        """The prior in training mode, as GPyTorch has it, else the BKB posterior at `X (..., q, d)`."""
        if self.training or prior_mode.on() or self.train_inputs is None or self.train_targets is None:
            return super().__call__(*args, **kwargs)
        (X,) = args
        self._check_points(X)
        mean, covariance = self.prediction(X)
        return MultivariateNormal(mean + self.mean_module(X), covariance)

    @property
    def prediction(self) -> Prediction:
        """What was learnt from the training data with the hyper-parameters of now."""
        theta = torch.cat([p.detach().double().reshape(-1) for p in self.parameters()] or [torch.zeros(0)])
        known = self.prediction_strategy
        if known is None or not torch.equal(known.theta, theta):
            with torch.no_grad():
                (X,) = self.train_inputs
                R = self.train_targets - self.mean_module(X)
                self.prediction_strategy = learn(self.covar_module, X, R, self.noise_of(R), theta, self._options)
        return self.prediction_strategy

    @property
    def inducing_points(self) -> Tensor:
        """Inducing points `(batch_shape) x (m) x n_inducing x d`, after the input transform."""
        self.eval()
        return self.prediction.inducing

    def noise_of(self, targets: Tensor) -> Tensor:
        """The noise variance of each of the training targets `(..., n)`."""
        noise: Tensor = self.likelihood.noise
        return noise.expand(targets.shape)

    def _check_points(self, X: Tensor) -> None:
        (known,) = self.train_inputs
        if X.ndim < 2 or X.shape[-1] != known.shape[-1]:
            raise BotorchTensorDimensionError(
                f"X: expected points of shape (batch_shape) x q x {known.shape[-1]}, got shape {tuple(X.shape)}."
            )
        if not bool(torch.isfinite(X).all()):
            bad = int((~torch.isfinite(X)).any(-1).sum())
            raise InputDataError(
                f"X: expected finite coordinates, got NaN or infinity in {bad} of {X[..., 0].numel()} points; "
                "leave them out, since a posterior there would be NaN."
            )

    # -- conditioning --------------------------------------------------------------------------------------------

    def condition_on_observations(self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **kwargs: Any) -> "BKBModel":
        """This model conditioned on new observations, in closed form: a new model, at a cost that n does not enter.

        Args:
            X: (batch_shape) x n' x d new inputs.
            Y: (batch_shape') x n' x m new outputs; leading dimensions that `X` lacks are batches of fantasies.
            noise: noise variances with the shape of `Y`, after the outcome transform.
            kwargs: none are known.
        """
        self.eval()
        if hasattr(self, "outcome_transform"):
            Y, _ = self.outcome_transform(Y, X=X)
        if fantasize_flag.off():
            self._validate_tensor_args(X=X, Y=Y, Yvar=noise, strict=False)
        inputs = self.transform_inputs(X)
        if self._num_outputs > 1:
            inputs, targets, noise = multioutput_to_batch_mode_transform(
                train_X=inputs, train_Y=Y, num_outputs=self._num_outputs, train_Yvar=noise
            )
        else:
            targets, noise = Y.squeeze(-1), None if noise is None else noise.squeeze(-1)
        return self._with_given(inputs, X, targets, noise)

    def get_fantasy_model(self, inputs: Tensor, targets: Tensor, **kwargs: Any) -> "BKBModel":
        """GPyTorch's form of `condition_on_observations`: inputs transformed, targets without an output dimension."""
        return self._with_given(inputs, inputs, targets, kwargs.get("noise"))

    def _with_given(self, X: Tensor, original: Tensor, targets: Tensor, noise: Tensor | None) -> "BKBModel":
        self._check_points(X)
        prediction = self.prediction
        fantasy = {} if noise is None else {"noise": noise}
        likelihood = self.likelihood.get_fantasy_likelihood(**fantasy)
        if noise is None:
            noise = self.likelihood.noise
        new = self._twin()
        new.likelihood = likelihood
        new.prediction_strategy = prediction.conditioned(X, targets - self.mean_module(X), noise.expand(targets.shape))
        given = (X, original, targets)
        if self._given is not None:
            joined = [
                _joined(old, added, dim) for old, added, dim in zip(self._given, given, (-2, -2, -1), strict=True)
            ]
            given = (joined[0], joined[1], joined[2])
        new._given = given
        new._aug_batch_shape = torch.broadcast_shapes(targets.shape[:-1], self._aug_batch_shape)
        new._input_batch_shape = new._aug_batch_shape[: -1 if self._num_outputs > 1 else None]
        return new

    def absorbed(self) -> Self:
        """A copy that has what this model was conditioned on among its training data, and may draw it as inducing.

        Conditioning costs the cube of the number of points added; after a few hundred this is the cheaper form.
        """
        new = self._twin()
        new._join()
        new.prediction_strategy = None
        return new

    def _twin(self) -> Self:
        """A copy whose parameters are its own, on the same data: those may be large, or part of a graph."""
        shared = [*self._inputs, self._targets, self._original, *(self._given or ())]
        return copy.deepcopy(self, {id(tensor): tensor for tensor in shared if tensor is not None})

    # -- training data -------------------------------------------------------------------------------------------
    # What a model was conditioned on is joined with its training data only when somebody asks: thousands of fantasies
    # share one set of data, and none of their predictions needs it.

    @property
    def train_inputs(self) -> tuple[Tensor, ...] | None:
        """Training inputs `(batch_shape) x (m) x n x d`, with those that the model was conditioned on."""
        if self._given is None or self._inputs is None:
            return self._inputs
        X = _joined(self._inputs[0], self._given[0], -2)
        return (X.expand(*self._aug_batch_shape, *X.shape[-2:]),)

    @train_inputs.setter
    def train_inputs(self, value: tuple[Tensor, ...] | None) -> None:
        self._join()
        self._inputs = value

    @property
    def train_targets(self) -> Tensor | None:
        """Training targets `(batch_shape) x (m) x n`, with those that the model was conditioned on."""
        if self._given is None or self._targets is None:
            return self._targets
        return _joined(self._targets, self._given[2], -1)

    @train_targets.setter
    def train_targets(self, value: Tensor | None) -> None:
        self._join()
        self._targets = value

    @property
    def _original_train_inputs(self) -> Tensor | None:
        if self._given is None or self._original is None:
            return self._original
        return _joined(self._original, self._given[1], -2).detach()

    @_original_train_inputs.setter
    def _original_train_inputs(self, value: Tensor | None) -> None:
        self._join()
        self._original = value

    def _join(self) -> None:
        inputs, targets, original = self.train_inputs, self.train_targets, self._original_train_inputs
        self._given = None
        self._inputs, self._targets, self._original = inputs, targets, original

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Self:
        self.prediction_strategy = None
        return super()._apply(fn)

    # -- fitting -------------------------------------------------------------------------------------------------

    def custom_fit(self, mll: MarginalLogLikelihood, **kwargs: Any) -> MarginalLogLikelihood:
        """What `fit_gpytorch_mll` calls for this model; see `fit_bkb_model`."""
        fit_likelihood(mll, **kwargs)
        return mll.eval()


def _joined(old: Tensor, new: Tensor, dim: int) -> Tensor:
    """Both along `dim`, -1 or -2, with their leading dimensions broadcast."""
    batch = torch.broadcast_shapes(old.shape[:dim], new.shape[:dim])
    return torch.cat([tensor.expand(*batch, *tensor.shape[dim:]) for tensor in (old, new)], dim)
