"""BKBModel: a `SingleTaskGP` whose posterior is BKB's, at a cost set by the inducing points and not by the data.

Everything that BoTorch asks of a model (transforms, several outputs, noise, posteriors, states) is `SingleTaskGP`'s own
code. What is replaced is the prediction in evaluation mode, conditioning and fantasies, which follow from it in closed
form, and fitting, which must not touch an n x n matrix.
"""

import copy
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Self, cast

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import OutcomeTransform
from botorch.models.utils import add_output_dim, gpt_posterior_settings, multioutput_to_batch_mode_transform
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.transformed import TransformedPosterior
from botorch.utils.types import DEFAULT, _DefaultType
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, Likelihood
from gpytorch.means import Mean
from gpytorch.mlls import MarginalLogLikelihood
from gpytorch.models import ExactGP
from gpytorch.module import Module
from gpytorch.settings import prior_mode
from torch import Tensor

from bkbopt.adapters.botorch.checks import (
    check_finite,
    check_likelihood,
    check_new_noise,
    check_noise,
    check_points,
    check_same_number,
    check_targets,
    check_training_data,
)
from bkbopt.adapters.botorch.covariance import some_of
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
        UnsupportedError: a likelihood that is neither GPyTorch's Gaussian one nor that of fixed noise.
        ArgumentError: `qbar`, `max_inducing` or `seed` is out of range (a ValueError).
    """

    prediction_strategy: Prediction | None

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
        check_likelihood(likelihood)
        self._options = Options(qbar, max_inducing, seed)
        self._dim = train_X.shape[-1]
        #: Inputs, original inputs and targets that the model was conditioned on, next to its training data.
        self._given: tuple[Tensor, Tensor, Tensor] | None = None
        self._inputs: tuple[Tensor] = (train_X,)
        self._targets = train_Y
        self._original: Tensor | None = None
        super().__init__(
            train_X, train_Y, train_Yvar, likelihood, covar_module, mean_module, outcome_transform, input_transform
        )
        check_finite("train_Y", self._targets, "values after the outcome transform")

    # -- prediction ----------------------------------------------------------------------------------------------

    def __call__(self, *args: Tensor, **kwargs: Any) -> MultivariateNormal:
        """The prior in training mode, as GPyTorch has it, else the BKB posterior at `X (..., q, d)`."""
        if self.training or prior_mode.on():
            return cast(MultivariateNormal, super().__call__(*args, **kwargs))
        (X,) = args
        X = X.to(self._targets.dtype)
        check_points("X", X, self._inputs[0].shape[-1], self._aug_batch_shape)
        mean, covariance = self.prediction(X)
        return MultivariateNormal(mean + self.mean_module(X), covariance)

    def posterior(  # type: ignore[override]  # as the class above
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> GPyTorchPosterior | TransformedPosterior:
        """The joint posterior of the points `X (batch_shape) x q x d`, in the units of `train_Y`.

        Args:
            X: the points.
            output_indices: of several outputs, those that are wanted; by default all.
            observation_noise: whether to add the noise variance, or variances (batch_shape) x q x m to add, after the
                outcome transform.
            posterior_transform: applied to the result.

        Raises:
            InputDataError: NaN or infinity in `X`; a noise variance that is negative; an output that is not there.
            BotorchTensorDimensionError: a shape that does not fit the model.
        """
        # An input transform may let infinity vanish, and may take another number of columns than it gives.
        check_points("X", X, None if hasattr(self, "input_transform") else self._dim)
        m = self._num_outputs
        if output_indices is not None and not all(-m <= i < m for i in output_indices):
            raise InputDataError(f"output_indices: expected indices of the {m} outputs, got {list(output_indices)}.")
        if output_indices is None or m == 1:
            return super().posterior(X, None, observation_noise, posterior_transform)
        posterior = self._posterior_of([i % m for i in output_indices], X, observation_noise)
        return posterior if posterior_transform is None else posterior_transform(posterior=posterior, X=X)

    def _posterior_of(
        self, outputs: list[int], X: Tensor, observation_noise: bool | Tensor
    ) -> GPyTorchPosterior | TransformedPosterior:
        """Of some of several outputs; `SingleTaskGP` can neither take one alone nor untransform them."""
        self.eval()
        with gpt_posterior_settings():
            X, dim = add_output_dim(self.transform_inputs(X), self._input_batch_shape)
            posterior = GPyTorchPosterior(some_of(self._apply_noise(X, self(X), observation_noise), dim, outputs))
        if not hasattr(self, "outcome_transform"):
            return posterior
        transform = cast(OutcomeTransform, self.outcome_transform).subset_output(outputs)
        return cast(GPyTorchPosterior | TransformedPosterior, transform.untransform_posterior(posterior, X=X))

    def _apply_noise(
        self, X: Tensor, mvn: MultivariateNormal, observation_noise: bool | Tensor = False
    ) -> MultivariateNormal:
        if isinstance(observation_noise, Tensor):
            shape = torch.Size((*mvn.batch_shape, *mvn.event_shape))
            shape = shape[:-2] + shape[:-3:-1] if self._num_outputs > 1 else torch.Size((*shape, 1))
            check_noise("observation_noise", observation_noise, shape, zero=True)
        return super()._apply_noise(X, mvn, observation_noise)

    @property
    def prediction(self) -> Prediction:
        """What was learnt from the training data with the hyper-parameters of now."""
        theta, known = self._theta(), self.prediction_strategy
        if known is None or not torch.equal(known.theta, theta):
            with torch.no_grad():
                (X,), targets, noise = self.train_inputs, self.train_targets, self.likelihood.noise
                check_same_number(X, targets, noise)
                R = targets - self.mean_module(X)
                known = learn(self.covar_module, X, R, noise.expand(R.shape), theta, self._options)
            self.prediction_strategy = known
        return known

    def _theta(self) -> Tensor:
        """All numbers that the prediction depends on, next to the data."""
        numbers = [*self.parameters(), self.likelihood.noise]
        return torch.cat([number.detach().double().reshape(-1) for number in numbers])

    @property
    def inducing_points(self) -> Tensor:
        """Inducing points `(batch_shape) x (m) x n_inducing x d`, after the input transform."""
        self.eval()
        return self.prediction.inducing

    # -- conditioning --------------------------------------------------------------------------------------------

    def condition_on_observations(self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **kwargs: Any) -> Self:
        """This model conditioned on new observations, in closed form: a new model, at a cost that n does not enter.

        Args:
            X: (batch_shape) x n' x d new inputs.
            Y: (batch_shape') x n' x m new outputs; leading dimensions that `X` lacks are batches of fantasies.
            noise: noise variances with the shape of `Y`, after the outcome transform; needed where the model was made
                with `train_Yvar`.
            kwargs: none are known.

        Raises:
            InputDataError: NaN or infinity, a noise variance that is not positive, or none where one is needed.
            BotorchTensorDimensionError: shapes that do not fit each other, or the model.
            UnsupportedError: another keyword.
        """
        if kwargs:
            raise UnsupportedError(f"condition_on_observations: expected X, Y and noise, got {sorted(kwargs)} as well.")
        m = self._num_outputs
        check_points("X", X, None if hasattr(self, "input_transform") else self._dim)
        check_targets("Y", Y, X, m, self._input_batch_shape)
        check_new_noise(noise, Y, isinstance(self.likelihood, FixedNoiseGaussianLikelihood))
        noise = None if noise is None else noise.expand(*noise.shape[:-2], *Y.shape[-2:])
        self.eval()
        if hasattr(self, "outcome_transform"):
            Y, _ = self.outcome_transform(Y, X=X)
            check_finite("Y", Y, "values after the outcome transform")
        inputs = self.transform_inputs(X)
        if m > 1:
            X = X.unsqueeze(-3)
            inputs, targets, noise = multioutput_to_batch_mode_transform(inputs, Y, m, noise)
        else:
            targets, noise = Y.squeeze(-1), None if noise is None else noise.squeeze(-1)
        return self._with_given(inputs, X, targets, noise)

    def get_fantasy_model(self, inputs: Tensor, targets: Tensor, **kwargs: Any) -> Self:
        """GPyTorch's form of `condition_on_observations`: inputs transformed, targets without an output dimension."""
        return self._with_given(inputs, inputs, targets, kwargs.get("noise"))

    def _with_given(self, X: Tensor, original: Tensor, targets: Tensor, noise: Tensor | None) -> Self:
        X, targets = X.to(self._targets.dtype), targets.to(self._targets.dtype)
        check_points("X", X, self._inputs[0].shape[-1], self._aug_batch_shape)
        batch = torch.broadcast_shapes(X.shape[:-2], targets.shape[:-1], self._aug_batch_shape)
        targets = targets.expand(*batch, targets.shape[-1])
        new = self._twin()
        if noise is None:
            noise = self.likelihood.noise
            new.likelihood = self.likelihood.get_fantasy_likelihood()
        else:
            own = torch.broadcast_shapes(noise.shape[:-1], self._aug_batch_shape)
            new.likelihood = self.likelihood.get_fantasy_likelihood(noise=noise.expand(*own, noise.shape[-1]))
        conditioned = self.prediction.conditioned(X, targets - self.mean_module(X), noise.expand(targets.shape))
        new.prediction_strategy = replace(conditioned, theta=new._theta())
        new._given = (X, original, targets)
        if self._given is not None:
            old = self._given
            new._given = _joined(old[0], X, -2), _joined(old[1], original, -2), _joined(old[2], targets, -1)
        new._aug_batch_shape, new._input_batch_shape = batch, batch[: -1 if self._num_outputs > 1 else None]
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
        """A copy whose parameters are its own, on the same data, which may be large."""
        return copy.deepcopy(self, {id(tensor): tensor for tensor in self._data()})

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy; data that are part of a graph, as those of fantasies, cannot be copied and are shared."""
        memo.update({id(tensor): tensor for tensor in self._data() if not tensor.is_leaf})
        new = memo[id(self)] = type(self).__new__(type(self))
        new.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return new

    def _data(self) -> list[Tensor]:
        tensors = (*self._inputs, self._targets, self._original, *(self._given or ()))
        return [tensor for tensor in tensors if tensor is not None]

    # -- training data -------------------------------------------------------------------------------------------
    # What a model was conditioned on is joined with its training data only when somebody asks: thousands of fantasies
    # share one set of data, and none of their predictions needs it.

    def set_train_data(
        self, inputs: Tensor | Iterable[Tensor] | None = None, targets: Tensor | None = None, strict: bool = True
    ) -> None:
        """Replace the training data, as GPyTorch has it; what the model was conditioned on is among them.

        Args:
            inputs: as `train_inputs`, so after the input transform in evaluation mode.
            targets: as `train_targets`, so after the outcome transform.
            strict: refuse another shape or dtype than that of the data so far.

        Raises:
            InputDataError: NaN or infinity.
            RuntimeError: another shape or dtype, where `strict`.
        """
        if inputs is not None:
            (X,) = inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
            check_finite("inputs", X, "points")
        if targets is not None:
            check_finite("targets", targets[..., None], "values")
        before = self._given, self._inputs, self._targets, self._original, self.prediction_strategy
        try:
            super().set_train_data(inputs, targets, strict)
        except RuntimeError:
            self._given, self._inputs, self._targets, self._original, self.prediction_strategy = before
            raise

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """Training inputs `(batch_shape) x (m) x n x d`, with those that the model was conditioned on."""
        if self._given is None:
            return self._inputs
        X = _joined(self._inputs[0], self._given[0], -2)
        return (X.expand(*self._aug_batch_shape, *X.shape[-2:]),)

    @train_inputs.setter
    def train_inputs(self, value: tuple[Tensor]) -> None:
        self._join()
        self._inputs, self.prediction_strategy = value, None

    @property
    def train_targets(self) -> Tensor:
        """Training targets `(batch_shape) x (m) x n`, with those that the model was conditioned on."""
        if self._given is None:
            return self._targets
        targets = _joined(self._targets, self._given[2], -1)
        return targets.expand(*self._aug_batch_shape, targets.shape[-1])

    @train_targets.setter
    def train_targets(self, value: Tensor) -> None:
        self._join()
        self._targets, self.prediction_strategy = value, None

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

    def load_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """As `SingleTaskGP.load_state_dict`; in evaluation mode the training inputs are transformed anew."""
        training = self.training
        self.train()
        try:
            super().load_state_dict(*args, **kwargs)
        finally:
            if not training:
                self.eval()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        # BoTorch calls `to` on fantasy models that are where they should be: those have to keep what they know, and
        # must not join their data, as GPyTorch's form of this would.
        before = self._data()
        self._inputs = (fn(self._inputs[0]),)
        self._targets = fn(self._targets)
        self._original = None if self._original is None else fn(self._original)
        if self._given is not None:
            self._given = (fn(self._given[0]), fn(self._given[1]), fn(self._given[2]))
        if any(old is not new for old, new in zip(before, self._data(), strict=True)):
            self.prediction_strategy = None
        return cast(Self, super(ExactGP, self)._apply(fn))  # type: ignore[no-untyped-call]

    # -- fitting -------------------------------------------------------------------------------------------------

    def custom_fit(self, mll: MarginalLogLikelihood, **kwargs: Any) -> MarginalLogLikelihood:
        """What `fit_gpytorch_mll` calls for this model; see `fit_bkb_model`."""
        fit_likelihood(mll, **kwargs)
        return mll.eval()


def _joined(old: Tensor, new: Tensor, dim: int) -> Tensor:
    """Both along `dim`, -1 or -2, with their leading dimensions broadcast."""
    batch = torch.broadcast_shapes(old.shape[:dim], new.shape[:dim])
    return torch.cat([tensor.expand(*batch, *tensor.shape[dim:]) for tensor in (old, new)], dim)
