"""Online learners as surrogates: the learner's mean, and the variance of a Gaussian state on the same functions.

| symbol | shape  | units     | meaning                                                                   |
| ------ | ------ | --------- | ------------------------------------------------------------------------- |
| z(x)   | (r,)   | y         | projection on the span of the learner's functions (`spans.py`)            |
| w      | (r,)   | -         | the learner's hypothesis in these coordinates: mean(x) = z(x) . w         |
| V      | (r, r) | y squared | Z^T N Z + lam I, of all observations                                      |
| unit   | -      | y         | a power of two that bounds the values; the learner gets the values / unit |
| prior  | -      | y squared | bound of k(x, x) at the data; the learner's kernel is k / prior            |

    mean(x) = z . w,   variance(x) = k(x, x) - |z|^2 + lam z^T V^-1 z

The matrix of an online Newton method grows with squared slopes. It is not a posterior covariance and is not used here.
With least squares (PKAWV, kernel ridge regression) w is V^-1 Z^T y, and the model is BKB with the learner's dictionary.
With other learners the mean is the result of one pass, while the variance is that of a regression on the same functions
with all data.
"""

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.threads import threads_for
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.kernels import ARDKernel, Kernel, ScaledKernel
from bkbopt.learners.as_surrogate.recipes import is_learner, recipe_of, settings_of
from bkbopt.learners.as_surrogate.spans import RANK_TOLERANCE, Span, project
from bkbopt.posterior.model import Model
from bkbopt.surrogates.base import SurrogateBase, not_ready
from bkbopt.surrogates.bkb import BKB
from bkbopt.surrogates.leverages import bounded_dimension, sum_of_leverages
from bkbopt.surrogates.pending import Fantasy, Seen, extension_by

if TYPE_CHECKING:
    from bkbopt.learners import OnlineLearner
    from bkbopt.learners.core.hypothesis import Hypothesis

__all__ = ["LearnerSurrogate"]

#: Number of steps after which all is computed from scratch, so that rounding errors do not accumulate.
REFACTOR_EVERY = 512
#: With more new rows or functions than this, all is computed from scratch.
BULK = 32


class LearnerSurrogate(SurrogateBase[Fantasy]):
    """An online learner as a surrogate: its mean, with the variance of a Gaussian state on its own functions.

    After a refit of the hyper-parameters, or when a value is so large that the unit changes, the learner begins anew.
    It learns the mean of each point as often as the point was evaluated, in random order, and no outliers of the
    optimizer. Before their budget of 100 terms is full, "forks", "skegd", "nogd" and "bogd" equal plain gradient
    descent, "kogd". Pending points widen the span while they are pending, so that their variance falls. Constraints and
    failing are modelled by BKB.

    Args:
        kernel: an `ARDKernel`, a GPyTorch kernel or a callable; ARD Matern-5/2 by default.
        noise: noise variance lam, y squared; 1e-2 by default (to be fitted by the optimizer).
        learner: "pkawv", "kernel-awv", "krr", "kons", "sketched-kons", "prosnkons", "forks", "skegd", "nogd", "kogd" or
            "bogd"; or a learner of `bkbopt.learners` without data, whose non-default parameters are kept (but for
            `scale` and `seed`, since the rows are scaled already, and this class has a seed).
        settings: further parameters of the learner, in units where values lie in [-1, 1] and k(x, x) <= 1.
        seed: of the learner's random numbers.
        device: torch device of all tensors; the learner itself runs on the processor.

    Raises:
        ArgumentError: an unknown learner or parameter, a learner of labels or one with data.
        ArgumentTypeError: an option has the wrong type.

    Example:
        >>> import bkbopt as bo
        >>> model = bo.LearnerSurrogate(learner="pkawv", noise=0.01)
        >>> model.observe([[0.1], [0.5], [0.5]], [1.0, 2.0, 2.2])
        >>> model.posterior([[0.5], [9.0]]).variance
        tensor([0.0050, 1.0000], dtype=torch.float64)
    """

    takes_weights = False
    takes_structure = False
    _OPTIONS = ("learner", "settings")

    def __init__(
        self,
        kernel: object = None,
        noise: float | None = None,
        *,
        learner: "str | OnlineLearner" = "pkawv",
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        device: torch.device | str | None = None,
    ) -> None:
        own: dict[str, Any] = {}
        if isinstance(kernel, str) or is_learner(kernel):
            got = repr(kernel) if isinstance(kernel, str) else f"a {type(kernel).__name__}"
            raise ArgumentTypeError(f"kernel: expected a kernel, got {got}; pass a learner as learner=.")
        if is_learner(learner):
            kernel = getattr(learner, "kernel", None) if kernel is None else kernel
            learner, own = settings_of(learner)
        self._recipe = recipe_of(learner)
        self.learner, self.settings = str(learner), {**own, **(settings or {})}
        self._recipe.check(self.settings)
        self.is_regression = self._recipe.is_regression
        super().__init__(kernel, noise, seed, device)
        self._learner: OnlineLearner | None = None
        self._span: Span | None = None
        self._points = np.zeros((0, 0))
        self._basis: np.ndarray[Any, Any] | None = None
        self._w = torch.zeros(0, dtype=torch.float64)
        self._unit, self._prior, self._steps = 0.0, 0.0, 0

    def of_limits(self) -> BKB:
        """See `Surrogate`: BKB, since the variance does not contain the error of a learner's mean after one pass."""
        return BKB(self.kernel if self.has_kernel else None, device=self.device)

    def check_kernel(self, kernel: Kernel) -> None:
        """See `Surrogate`; settings are checked too, since the search calls this before the first trial."""
        self.try_out(kernel.dim if isinstance(kernel, ARDKernel) else 1)

    def try_out(self, dim: int) -> None:
        """Refuse settings that the learner would refuse at its first point, of `dim` columns.

        Raises:
            ArgumentError, ArgumentTypeError: the learner refuses them.
        """
        self._recipe.try_out(self.settings, dim)

    # -- learning ------------------------------------------------------------------------------------------------

    def _learn(self, X: Tensor, y: Tensor, weight: Tensor) -> None:
        if bool((weight != 1.0).any()):
            raise ArgumentError(
                f"std: expected none with surrogate={self.learner!r}, since an online learner weighs all values alike, "
                "got known noise; use surrogate='bkb' or 'exact'."
            )
        first = not len(self.observations)
        rows = self.observations.add(X, y)
        if not self._units_hold(X, y) or self._learner is None:
            self._begin(*((X, y) if first else self._replayed()))
            return
        self._feed(X, y)
        if self._span is None or len(X) > BULK:
            self._follow(scratch=True)
            return
        for row, x, value in zip(rows.tolist(), X, y.tolist(), strict=True):
            self._span = self._span.observe(row, x, value)
        self._steps += len(X)
        self._follow(scratch=self._steps >= REFACTOR_EVERY)

    def _units_hold(self, X: Tensor, y: Tensor) -> bool:
        """Whether values and prior variances are within the units; if not, the units are raised."""
        unit, prior = self._unit, self._prior
        self._unit = max(unit, _power_above(float(y.abs().max())))
        highest = float(self.kernel.diag(X).max())
        if highest > prior:
            # At least doubled, so that a kernel that is not stationary makes the learner begin anew only a few times.
            self._prior = max(highest, 2.0 * prior)
        return (self._unit, self._prior) == (unit, prior)

    def _replayed(self) -> tuple[Tensor, Tensor]:
        """The mean of each point as often as it was evaluated, in random order."""
        obs = self.observations
        # Weights of evaluations need not be whole numbers. Points with outliers alone have less than a half.
        repeats = obs.n.round().long()
        if not bool(repeats.any()):
            repeats = torch.ones_like(repeats)
        rows = torch.arange(len(obs), device=repeats.device).repeat_interleave(repeats)
        rows = rows[torch.as_tensor(self.rng.permutation(len(rows)), device=rows.device)]
        return obs.X[rows], (obs.s / obs.n)[rows]

    def _begin(self, X: Tensor, y: Tensor) -> None:
        """Build a learner and learn the rows `X (n, d)` with values `y (n,)`, whose units are known."""
        prior = self._prior or 1.0
        kernel = _divided(self.kernel, prior)
        self._learner = self._recipe.build(kernel, self.noise / prior, self.settings, int(self.rng.integers(2**31)))
        self._feed(X, y)
        self._follow(scratch=True)

    def _feed(self, X: Tensor, y: Tensor) -> None:
        assert self._learner is not None
        self._learner.partial_fit(X.cpu().numpy(), (y / (self._unit or 1.0)).cpu().numpy())

    # -- from the learner to the posterior -----------------------------------------------------------------------

    def _follow(self, *, scratch: bool) -> None:
        """Update the span and the weights from the learner's hypothesis."""
        assert self._learner is not None
        learnt = self._learner.hypothesis()
        scratch = scratch or self._span is None or not self._widen_to(learnt)
        if scratch:
            self._span = self._project(learnt)
            self._steps = 0
        self._points, self._basis = learnt.points, learnt.basis
        assert self._span is not None
        features = self._span.features
        P, a = self._tensor(learnt.points), self._tensor(learnt.weights)
        self._w = features.W.T @ (self.kernel(features.S, P) @ a) * ((self._unit or 1.0) / (self._prior or 1.0))

    def _widen_to(self, learnt: "Hypothesis") -> bool:
        """Widen the span by the learner's new functions; False if it has dropped old ones."""
        old, new = self._points, learnt.points
        if learnt.basis is None or self._basis is None:
            same_basis = learnt.basis is self._basis
        else:  # has a row for each point
            same_basis = np.array_equal(learnt.basis, self._basis)
        if not same_basis or len(new) - len(old) > BULK or not np.array_equal(old, new[: len(old)]):
            return False
        obs, span = self.observations, self._span
        assert span is not None
        for x in self._tensor(new[len(old) :]):
            span = span.widen(x, obs.X, obs.n, obs.s)
        self._span = span
        return True

    def _project(self, learnt: "Hypothesis") -> Span:
        obs = self.observations
        # Repeated points would add columns and change nothing.
        S = self._tensor(learnt.points if learnt.basis is not None else np.unique(learnt.points, axis=0))
        B = None if learnt.basis is None else self._tensor(learnt.basis)
        if not len(S):
            S = obs.X[:1]  # the span needs a function, even if its weight is zero
        with threads_for(len(obs) * len(S) ** 2):
            return Span.of(project(self.kernel, S.clone(), B), obs.X, obs.n, obs.s, self.noise)

    def _tensor(self, A: "np.ndarray[Any, Any]") -> Tensor:
        return torch.as_tensor(A, dtype=torch.float64, device=self.device)

    def _relearn(self) -> None:
        """The learner begins anew."""
        self._learner = self._span = None
        self._unit = self._prior = 0.0
        if len(self.observations):
            X, means = self._replayed()
            self._units_hold(X, means)
            self._begin(X, means)

    def _checkpoint(self) -> Callable[[], None]:
        # The learner is changed in place, and an interrupt may end any line.
        restore, kept = super()._checkpoint(), copy.deepcopy(self._learner)

        def restore_both() -> None:
            restore()
            self._learner = kept

        return restore_both

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """See `SurrogateBase`."""
        other = super().__deepcopy__(memo)
        other._learner = copy.deepcopy(self._learner, memo)
        return other

    # -- reading -------------------------------------------------------------------------------------------------

    def _posterior(self) -> Fantasy:
        assert self._span is not None
        return Fantasy.start(self._span.features, Seen.of(self.observations), self._span.Z, self._span.state)

    def _as_model(self, known: Fantasy) -> Model:
        features, state = known.features, known.state
        w = torch.cat([self._w, self._w.new_zeros(features.size - len(self._w))])
        return Model(features, w, state.root, state.lam, V=state.V)

    def _count(self, known: Fantasy, X: Tensor) -> Fantasy:
        """Count pending points; residuals that are not negligible beside the noise widen the span first."""
        Z, kernel = known.features(X), known.features.kernel

        def pays(_: float, residual: float, x: Tensor) -> bool:
            return residual > max(1e-3 * self.noise, RANK_TOLERANCE * float(kernel.diag(x)[0]))

        more = extension_by(known.features, known.state, X, Z, None, pays)
        if more is not None:
            Z = torch.cat([Z, more.columns(X, Z)], 1)
            known = known.append(more)
        return known.count(X, Z)

    @property
    def inducing(self) -> Tensor:
        """Points of the learner's functions (m, d)."""
        if self._span is None:
            raise not_ready()
        return self._span.features.S

    def fitted(self) -> Tensor:
        """Posterior mean at the unique observed points, (u,)."""
        if self._span is None:
            raise not_ready()
        return self._span.Z @ self._w

    def _unseen(self) -> Tensor:
        """n residual / lam of the unique observed points, (u,)."""
        assert self._span is not None
        Z, obs = self._span.Z, self.observations
        return obs.n * self._span.features.residual(obs.X, Z) / self.noise

    def effective_dimension(self) -> float:
        """See `Surrogate`."""
        return 0.0 if self._span is None else bounded_dimension(self._span.state, self._unseen())

    def leverage_sum(self) -> float:
        """See `Surrogate`."""
        return 0.0 if self._span is None else sum_of_leverages(self._span.state, self._unseen())

    @property
    def log_growth(self) -> float:
        """See `Surrogate`; the bound holds for any functions: O(r^3)."""
        return 0.0 if self._span is None else self._span.state.log_determinant() + float(self._unseen().sum())


def _power_above(value: float) -> float:
    """The smallest power of two above `value`, which divides without rounding; 0 for 0."""
    return 2.0 ** min(math.frexp(value)[1], 1023) if value > 0.0 else 0.0


def _divided(kernel: Kernel, prior: float) -> Kernel:
    """k / prior, on the processor."""
    if isinstance(kernel, ARDKernel):
        kernel = kernel.to(torch.device("cpu"))
        return replace(kernel, log_outputscale=kernel.log_outputscale - math.log(prior))
    return ScaledKernel(kernel, torch.tensor(-math.log(prior), dtype=torch.float64))
