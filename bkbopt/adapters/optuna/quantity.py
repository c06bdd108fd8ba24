"""One modelled quantity of a study: an objective or a constraint, with its surrogate brought up to date.

What the surrogate is depends on the rows alone, not on when they were seen: hyper-parameters are fitted from scratch at
fixed numbers of rows (the *marks*, each 15 % after the one before), with random numbers that belong to the mark, and
the rows after the last mark are learnt one by one. A process that starts anew needs one fit, and arrives where a
process arrives that has followed the study from its first trial, to the last bit.
"""

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bkbopt.kernels import Kernel
from bkbopt.posterior.observations import Observations
from bkbopt.search.fitted_model import GROWTH, FittedModel
from bkbopt.surrogates import BKB
from bkbopt.surrogates.fit import fit_hyperparameters, log_marginal_likelihood

__all__ = ["ModelOptions", "Quantity", "last_mark"]

#: Noise variance of a deterministic objective, as a share of the variance of its values.
DETERMINISTIC = 1e-6
#: How much better (log likelihood) a model with noise must explain the values than one without.
EVIDENCE = 5.0
#: Unique points up to which noise is tested by fitting without it.
TEST_UP_TO = 400


@dataclass(frozen=True)
class ModelOptions:
    """How every quantity is modelled; see `BKBSampler`."""

    seed: int
    first: int
    qbar: float
    max_inducing: int | None
    kernel: object
    deterministic: bool

    def surrogate(self) -> BKB:
        """A new surrogate without data."""
        return BKB(copy.deepcopy(self.kernel), qbar=self.qbar, max_inducing=self.max_inducing)


def last_mark(n: int, first: int) -> int:
    """The largest mark up to `n` rows; 0 below the first."""
    mark = max(first, 1)
    if n < mark:
        return 0
    while (following := max(mark + 1, math.ceil(GROWTH * mark))) <= n:
        mark = following
    return mark


class Quantity:
    """Values of one quantity over the rows of a history.

    Args:
        options: of the model.
        stream: number of the quantity, which its random numbers depend on.
        sign: +1 if larger is better, -1 if smaller is.
        winsorised: see `FittedModel`.
    """

    def __init__(self, options: ModelOptions, stream: int, sign: float, *, winsorised: bool) -> None:
        self.options, self.stream, self.sign, self._winsorised = options, stream, sign, winsorised
        self._modelling: FittedModel | None = None
        self._built: tuple[int, int] = (-1, -1)
        self._n = 0
        self._noisy: bool | None = None

    def follow(self, X: Tensor, y: Tensor, poor: Tensor, categorical: tuple[int, ...], version: int) -> None:
        """Bring the model up to date with all rows.

        Args:
            X: encoded points (n, d).
            y: values (n,), NaN for pruned trials; infinities are taken for the worst or best finite value.
            poor: last intermediate values of the pruned trials (n,), NaN where there is none.
            categorical: columns that hold category codes.
            version: of the rows; another one voids the model.
        """
        mark = last_mark(len(y), self.options.first)
        if not mark or not bool(torch.isfinite(y[:mark]).any()):
            self._modelling, self._built = None, (-1, -1)
            return
        values = _usable(y, poor, self.sign, mark)
        if self._modelling is None or self._built != (version, mark) or self._n > len(y):
            self._fit(X[:mark], values[:mark], categorical)
            self._built, self._n = (version, mark), mark
        assert self._modelling is not None
        for i in range(self._n, len(y)):
            self._modelling.tell(X[i : i + 1], values[i : i + 1])
        self._n = len(y)

    def _fit(self, X: Tensor, y: Tensor, categorical: tuple[int, ...]) -> None:
        rng = np.random.default_rng([self.options.seed, self.stream, len(y)])
        share = DETERMINISTIC if self.options.deterministic else None
        self._modelling = FittedModel(
            self.options.surrogate(),
            fit=True,
            sign=self.sign,
            categorical=categorical,
            rng=rng,
            winsorised=self._winsorised,
            noise_share=share,
        )
        self._modelling.refit(X, y)
        self._noisy = None

    @property
    def modelling(self) -> FittedModel | None:
        """The model of the rows; None while there are too few of them."""
        return self._modelling

    def is_noisy(self) -> bool:
        """Whether a second evaluation of a point can be expected to give another value.

        Repeats decide where there are any; before that, whether noise explains the values of the last mark much better
        than none.
        """
        modelling = self._modelling
        if modelling is None or self.options.deterministic:
            return False
        obs, kernel, noise = modelling.surrogate.observations, modelling.surrogate.kernel, modelling.surrogate.noise
        if obs.total > len(obs):
            within = obs.Y2 - float((obs.s * obs.s / obs.n).sum())
            return within > 1e-9 * max(obs.Y2, 1e-300)
        if len(obs) > TEST_UP_TO:
            return noise > 1e-3
        if self._noisy is None:
            _, mark = self._built
            fitted = Observations(obs.dim, obs.X.device)
            fitted.add(obs.X[:mark], obs.s[:mark])  # without repeats rows and points are the same
            self._noisy = _evidence(fitted, kernel, noise) > EVIDENCE
        return self._noisy


def _evidence(obs: Observations, kernel: Kernel, noise: float) -> float:
    """Log likelihood of the best model found with noise, less that of the best one without."""
    free, _ = fit_hyperparameters(obs, kernel, DETERMINISTIC, fit_noise=False, with_mean=True)

    def likelihood(kernel: Kernel, noise: float) -> float:
        lam = obs.X.new_tensor(noise)
        with torch.no_grad():
            return float(log_marginal_likelihood(obs.X, obs.n, obs.s / obs.n, 0.0, kernel, lam, 0, 1.0))

    return likelihood(kernel, noise) - likelihood(free, DETERMINISTIC)


def _usable(y: Tensor, poor: Tensor, sign: float, mark: int) -> Tensor:
    """Finite values `(n,)`; what stands in for others depends on the first `mark` rows only.

    A pruned trial counts as its last intermediate value or the poorer quartile of the complete ones, whichever is
    worse: it was stopped for being behind, and its early values are not on the scale of final ones.
    """
    finite = y[:mark][torch.isfinite(y[:mark])]
    low, high = float(finite.min()), float(finite.max())
    quartile = sign * float(torch.quantile(sign * finite, 0.25))
    values = torch.where(torch.isinf(y), y.clamp(low, high), y)
    behind = torch.where(torch.isfinite(poor), poor, torch.full_like(poor, quartile))
    behind = sign * torch.minimum(sign * behind, torch.full_like(poor, sign * quartile))
    return torch.where(torch.isnan(y), behind, values)
