"""`BKBModel`: a `SingleTaskGP` with the BKB posterior, whose predictions cost depends on the inducing points only.

Transforms, several outputs, noise, posteriors and state dicts are the code of `SingleTaskGP`. Replaced are the
prediction in evaluation mode, conditioning and fantasies (in closed form), and fitting, so that no n x n matrix is
built.
"""

from dataclasses import replace
from typing import Any, Self, cast

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import OutcomeTransform
from botorch.models.utils import add_output_dim, gpt_posterior_settings, multioutput_to_batch_mode_transform
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.transformed import TransformedPosterior
from botorch.sampling.base import MCSampler
from botorch.utils.datasets import SupervisedDataset
from botorch.utils.types import DEFAULT, _DefaultType
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, Likelihood
from gpytorch.means import Mean
from gpytorch.mlls import MarginalLogLikelihood
from gpytorch.module import Module
from gpytorch.settings import prior_mode
from linear_operator.operators import DiagLinearOperator
from torch import Tensor

from bkbopt._support.checks import check_count, check_number
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
from bkbopt.adapters.botorch.fit import fit_likelihood
from bkbopt.adapters.botorch.outcomes import posterior_of
from bkbopt.adapters.botorch.prediction import Options, Prediction, learn
from bkbopt.adapters.botorch.training_data import SharedDataGP

__all__ = ["BKBModel"]


class BKBModel(SharedDataGP):
    """BKB as a BoTorch model for thousands of noisy observations; a replacement for `SingleTaskGP`.

    With at most `max_inducing` distinct training points the posterior is exact. With more, inducing points are drawn by
    ridge leverage scores (Calandriello et al. 2019, Algorithm 1), and the variance has the DTC form, which does not
    starve: far from the inducing points it is the prior variance.

    `fit_gpytorch_mll` with BoTorch's usual `ExactMarginalLogLikelihood` builds no n x n matrix; see `fit_bkb_model`. A
    user's own marginal log likelihood is optimised as it is, on all points, and costs what it does for `SingleTaskGP`.

    Noise variances that are given to a method are known ones, like `train_Yvar`. Where the likelihood learns additional
    noise (`FixedNoiseGaussianLikelihood(..., learn_additional_noise=True)`), that is added to them.

    Args:
        train_X: (batch_shape) x n x d training inputs.
        train_Y: (batch_shape) x n x m training outputs, modelled independently.
        train_Yvar: (batch_shape) x n x m known noise variances, by which observations are weighted; or None. As in
            `SingleTaskGP`, after the outcome transform those below GPyTorch's smallest one (1e-6 in float64) count as
            that, zeros too, with its warning.
        likelihood: a Gaussian likelihood; by default that of `SingleTaskGP`.
        covar_module: any GPyTorch kernel; by default that of `SingleTaskGP`.
        mean_module: prior mean; a constant by default.
        outcome_transform: `Standardize` by default, None for none.
        input_transform: transform of the inputs, or None.
        qbar: oversampling of the inducing points, >= 1; accurate predictive densities need more than a search.
        max_inducing: largest number of inducing points, or None for no limit.
        seed: seed of the draw of inducing points, which depends only on it, the data and the hyper-parameters.

    Raises:
        InputDataError: NaN or infinity in the training data, or at points of a posterior; a negative noise variance;
            training data that require gradients, which would be wrong, since they enter as constants.
        BotorchTensorDimensionError: shapes that do not fit each other, or the model.
        UnsupportedError: a likelihood that is neither `GaussianLikelihood` nor `FixedNoiseGaussianLikelihood`.
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
        qbar: float = 8.0,
        max_inducing: int | None = 1000,
        seed: int = 0,
    ) -> None:
        if max_inducing is not None:
            max_inducing = check_count("max_inducing", max_inducing, 1, "a whole number >= 1, or None")
        qbar, seed = check_number("qbar", qbar, 1.0, "a number >= 1"), check_count("seed", seed, 0)
        check_training_data(train_X, train_Y, train_Yvar)
        check_likelihood(likelihood)
        self._options = Options(qbar, max_inducing, seed)
        self._dim = train_X.shape[-1]
        super().__init__(
            train_X, train_Y, train_Yvar, likelihood, covar_module, mean_module, outcome_transform, input_transform
        )
        check_finite("train_Y", self._targets, "values after the outcome transform")

    @classmethod
    def construct_inputs(cls, training_data: SupervisedDataset, **options: Any) -> dict[str, Any]:
        """The constructor's arguments from a data set; `qbar`, `max_inducing` and `seed` are passed on."""
        own: dict[str, Any] = {name: options.pop(name) for name in ("qbar", "max_inducing", "seed") if name in options}
        return super().construct_inputs(training_data, **options) | own

    # -- prediction ----------------------------------------------------------------------------------------------

    def __call__(self, *args: Tensor, **kwargs: Any) -> MultivariateNormal:
        """In training mode the prior, as in GPyTorch, otherwise the BKB posterior at `X (..., q, d)`."""
        if self.training or prior_mode.on():
            return cast(MultivariateNormal, super().__call__(*args, **kwargs))
        (X,) = args
        X = X.to(self._targets.dtype)
        check_points(X, self._inputs[0].shape[-1], self._aug_batch_shape)
        mean, covariance = self.prediction(X)
        return MultivariateNormal(mean + self.mean_module(X), covariance)

    def posterior(  # type: ignore[override]  # as in the base class
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> GPyTorchPosterior | TransformedPosterior:
        """The joint posterior of the points `X (batch_shape) x q x d`, in the units of `train_Y`.

        Args:
            X: the points.
            output_indices: indices of the outputs to return; by default all. A model of one output ignores them, as
                `SingleTaskGP` does: a `ModelListGP` gives it the index in the list beside noise variances.
            observation_noise: whether to add the noise variance (of known ones the mean), or known variances
                (batch_shape) x q x m to add, after the outcome transform; of a single output also one number.
            posterior_transform: applied to the result.

        Raises:
            InputDataError: NaN or infinity in `X`, a negative noise variance, or an output that does not exist.
            BotorchTensorDimensionError: a shape that does not fit the model.
        """
        # Checked before the input transform, which may remove infinities and change the number of columns.
        check_points(X, None if hasattr(self, "input_transform") else self._dim)
        m = self._num_outputs
        indices = None if output_indices is None or m == 1 else list(output_indices)
        if indices is not None and not (indices and all(-m <= i < m for i in indices)):
            raise InputDataError(f"output_indices: expected indices of the {m} outputs, got {indices}.")
        outputs = None if indices is None else [i % m for i in indices]
        self.eval()
        points = self.transform_inputs(X)
        with gpt_posterior_settings():
            if m > 1:
                points, _ = add_output_dim(points, self._input_batch_shape)
            distribution = self._apply_noise(points, self(points), observation_noise)
        posterior = posterior_of(distribution, points, m, outputs, getattr(self, "outcome_transform", None))
        return posterior if posterior_transform is None else posterior_transform(posterior=posterior, X=points)

    def _apply_noise(
        self, X: Tensor, mvn: MultivariateNormal, observation_noise: bool | Tensor = False
    ) -> MultivariateNormal:
        shape, m = torch.Size((*mvn.batch_shape, *mvn.event_shape)), self._num_outputs
        if isinstance(observation_noise, Tensor):
            if m == 1 and observation_noise.shape in ((), (1,)):  # one for all points, as BoTorch's models take it
                observation_noise = observation_noise.reshape(1, 1)
            expected = shape[:-2] + shape[:-3:-1] if m > 1 else torch.Size((*shape, 1))
            check_noise("observation_noise", observation_noise, expected, zero="variances >= 0")
        learnt = self._learnt_noise
        if learnt is None or observation_noise is False:
            return super()._apply_noise(X, mvn, observation_noise)
        # GPyTorch takes a given variance for the known and for the learnt noise, and adds it twice.
        if isinstance(observation_noise, Tensor):
            noise = (observation_noise.mT if m > 1 else observation_noise[..., 0]) + learnt
        else:
            noise = self.likelihood.noise.mean(-1, keepdim=True)
        return MultivariateNormal(mvn.mean, mvn.lazy_covariance_matrix + DiagLinearOperator(noise.expand(shape)))

    @property
    def _learnt_noise(self) -> Tensor | None:
        """The variance `(..., 1)` that the likelihood learns besides known ones; None if it learns none."""
        additional = getattr(self.likelihood, "second_noise_covar", None)
        return None if additional is None else cast(Tensor, additional.noise)

    @property
    def prediction(self) -> Prediction:
        """The posterior of the training data under the present hyper-parameters; recomputed when they change."""
        theta, known = self._theta(), self.prediction_strategy
        if known is None or not torch.equal(known.theta, theta):
            with torch.no_grad():
                (X,), targets, noise = self.train_inputs, self.train_targets, self.likelihood.noise
                check_same_number(X, targets, noise)
                R = targets - self.mean_module(X)
                known = learn(self.covar_module, X, R, noise, theta, self._options)
            self.prediction_strategy = known
        return known

    def _theta(self) -> Tensor:
        """All numbers, besides the data, on which the prediction depends."""
        numbers = [*self.parameters(), self.likelihood.noise]
        return torch.cat([number.detach().double().reshape(-1) for number in numbers])

    @property
    def inducing_points(self) -> Tensor:
        """Inducing points `(batch_shape) x (m) x n_inducing x d`, after the input transform."""
        self.eval()
        return self.prediction.S

    # -- conditioning --------------------------------------------------------------------------------------------

    def condition_on_observations(self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **kwargs: Any) -> Self:
        """A new model, conditioned on new observations in closed form; the cost does not depend on n.

        Args:
            X: (batch_shape) x n' x d new inputs.
            Y: (batch_shape') x n' x m new outputs; leading dimensions that `X` lacks are batches of fantasies.
            noise: known noise variances with the shape of `Y`, after the outcome transform; needed if the model was
                made with `train_Yvar`.
            kwargs: must be empty.

        Raises:
            InputDataError: NaN or infinity, or a noise variance that is not positive or is missing.
            BotorchTensorDimensionError: shapes that do not fit each other, or the model.
            UnsupportedError: an unknown keyword argument.
        """
        if kwargs:
            raise UnsupportedError(f"condition_on_observations: expected X, Y and noise, got {sorted(kwargs)} as well.")
        m = self._num_outputs
        check_points(X, None if hasattr(self, "input_transform") else self._dim)
        check_targets(Y, X, m, self._input_batch_shape)
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

    def fantasize(self, X: Tensor, sampler: MCSampler, observation_noise: Tensor | None = None, **kwargs: Any) -> Self:
        """BoTorch's fantasies: a model conditioned on noisy values at `X` that are drawn from the posterior.

        Args:
            X: (batch_shape) x n' x d points.
            sampler: the sampler of the values.
            observation_noise: known noise variances (batch_shape) x (1 or n') x m of the values, after the outcome
                transform; of a single output also one number. By default the noise is that of the likelihood, for
                known variances with their mean.
            kwargs: arguments of `condition_on_observations`.

        Raises:
            InputDataError: NaN or infinity in `X`, or a noise variance that is not positive.
            BotorchTensorDimensionError: a shape that does not fit the model.
        """
        if observation_noise is None and self._learnt_noise is not None:
            # BoTorch would give the mean of known and learnt noise as known, to which the learnt noise is then added.
            known = self.likelihood.noise_covar.noise
            known = known.expand(*self._aug_batch_shape, known.shape[-1]).mean(-1, keepdim=True)
            observation_noise = known.mT if self._num_outputs > 1 else known[..., None]
        return super().fantasize(X, sampler, observation_noise, **kwargs)

    def get_fantasy_model(self, inputs: Tensor, targets: Tensor, **kwargs: Any) -> Self:
        """GPyTorch's form of `condition_on_observations`: transformed inputs, targets without an output dimension."""
        return self._with_given(inputs, inputs, targets, kwargs.get("noise"))

    def _with_given(self, X: Tensor, original: Tensor, targets: Tensor, noise: Tensor | None) -> Self:
        X, targets = X.to(self._targets.dtype), targets.to(self._targets.dtype)
        check_points(X, self._inputs[0].shape[-1], self._aug_batch_shape)
        batch = torch.broadcast_shapes(X.shape[:-2], targets.shape[:-1], self._aug_batch_shape)
        targets = targets.expand(*batch, targets.shape[-1])
        new = self._twin()
        if noise is None:
            noise = self.likelihood.noise
            new.likelihood = self.likelihood.get_fantasy_likelihood()
        else:
            own = torch.broadcast_shapes(noise.shape[:-1], self._aug_batch_shape)
            new.likelihood = self.likelihood.get_fantasy_likelihood(noise=noise.expand(*own, noise.shape[-1]))
            learnt = self._learnt_noise
            noise = noise if learnt is None else noise + learnt  # as the new likelihood does
        conditioned = self.prediction.conditioned(X, targets - self.mean_module(X), noise.expand(targets.shape))
        new.prediction_strategy = replace(conditioned, theta=new._theta())
        new._give(X, original, targets)
        new._aug_batch_shape, new._input_batch_shape = batch, batch[: -1 if self._num_outputs > 1 else None]
        return new

    def absorbed(self) -> Self:
        """A copy whose training data include the points conditioned on, which may then become inducing points.

        The cost of conditioning is cubic in the number of added points; from a few hundred on this form is cheaper.
        """
        new = self._twin()
        new._join()
        new.prediction_strategy = None
        return new

    def subset_output(self, idcs: list[int]) -> Self:
        """A model of the outputs `idcs`; that of a conditioned model is the one of `absorbed`."""
        whole = self if self._given is None else self.absorbed()
        return cast(Self, super(BKBModel, whole).subset_output(idcs))

    # -- fitting -------------------------------------------------------------------------------------------------

    def custom_fit(self, mll: MarginalLogLikelihood, **kwargs: Any) -> MarginalLogLikelihood:
        """The fit that `fit_gpytorch_mll` calls for this model; see `fit_bkb_model`."""
        fit_likelihood(mll, **kwargs)
        return mll.eval()
