"""The protocol of surrogates, and their base class: argument checks, default kernel, seed, pending points, epochs."""

import contextlib
import copy
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.arrays import as_points, as_values, check_noise
from bkbopt._support.checks import check_count
from bkbopt._support.row_keys import row_keys
from bkbopt._support.showing import shown_call
from bkbopt._support.threads import small_work
from bkbopt.errors import ArgumentError, ArgumentTypeError, NotReadyError
from bkbopt.kernels import ARDKernel, CallableKernel, Kernel, as_kernel, matern52
from bkbopt.kernels.base import placed
from bkbopt.posterior.model import Model, Posterior
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates.anchors import Anchor
from bkbopt.surrogates.epochs import Epochs, new_epoch
from bkbopt.surrogates.pending import Counted, count_all

__all__ = ["BULK", "MakesSurrogate", "Surrogate", "SurrogateBase"]

T = TypeVar("T")

#: More points than this in one call are learnt together, not one by one.
BULK = 64


class Surrogate(Protocol):
    """The interface that the search needs of a surrogate.

    Points are encoded. A surrogate does not distinguish minimisation from maximisation.
    """

    observations: Observations
    noise: float
    fixed_noise: bool
    #: Whether values may have weights, that is, known noise variances of their own.
    takes_weights: bool
    #: Whether the search may choose a structured kernel (`fit_structure`) if the user gave none.
    takes_structure: bool
    #: Whether the mean is that of a regression on all values, for which `Model.left_out` holds.
    is_regression: bool
    rng: np.random.Generator

    @property
    def kernel(self) -> Kernel:
        """The kernel; `NotReadyError` before it is known (see `has_kernel`)."""

    @property
    def has_kernel(self) -> bool:
        """Whether the kernel is known: one was given, or the first observation has set the dimension."""

    def observe(self, X: object, y: object, weight: object = None, *, in_turn: bool = False) -> None:
        """Learn the values `y (n,)` of the points `X (n, d)`, with noise variances `noise` / `weight (n,)`.

        With `in_turn` the posterior is bit for bit that of one call for each value.
        """

    def posterior(self, X: object) -> Posterior:
        """The posterior at the points `X (n, d)`, given the observations."""

    @property
    def model(self) -> Model:
        """The posterior given the observations, immutable; `NotReadyError` before the first observation."""

    def fantasy(self, pending: Tensor, *, beyond_budget: bool = False) -> Model:
        """The *fantasy*: the posterior as if each point of `pending (p, d)` had been evaluated at its posterior mean.

        It depends on the arguments and the observations, in their order, only; the surrogate is unchanged.

        Args:
            pending: the points.
            beyond_budget: whether pending points may be inducing points beyond the budget. Their variances then fall
                also where the budget binds, but epochs end when one of them is observed.
        """

    def anchor(self) -> Anchor | None:
        """The posterior, from which fantasies will follow after other values; None if they follow from the latest."""

    def check_kernel(self, kernel: Kernel) -> None:
        """Raise `ArgumentError` for a kernel that this class of surrogate cannot use."""

    def rebuild(self, observations: Observations, kernel: Kernel, noise: float) -> None:
        """Replace data and hyper-parameters, and recompute the posterior from scratch."""

    def fitted(self) -> Tensor:
        """Posterior mean at the unique observed points, (u,), units of y."""

    @property
    def inducing(self) -> Tensor:
        """Inducing points (m, d)."""

    def effective_dimension(self) -> float:
        """An upper bound of d_eff = Tr K (K + lam I)^-1; equal to d_eff if every point is an inducing point.

        It is `leverage_sum` with the term of each point's residual, n residual / lam, replaced by 1 where it is larger.
        """

    def leverage_sum(self) -> float:
        """Sum of the leverages of all evaluations (Calandriello et al. 2019, Eq. 5).

        Where the budget of inducing points binds, it may be many times `effective_dimension`. For a dictionary of
        accuracy eps <= 1/2 the two are equal, since n residual is then at most lam eps / (1 - eps) for every point.
        """

    @property
    def log_growth(self) -> float:
        """An upper bound of logdet(I + K / lam) over all evaluations; infinite if none is known."""

    def of_limits(self) -> "Surrogate":
        """The surrogate, without data, of constraints and failing: probabilities follow from its variances."""

    def bind_objects(self, objects: list[object]) -> None:
        """Interpret points as indices into `objects`, on which the kernel is evaluated."""

    def options(self) -> dict[str, object]:
        """The constructor's arguments except the kernel, and `needs_kernel`: whether the user gave a kernel."""


class MakesSurrogate(Protocol):
    """What can stand in for a surrogate, as online learners can."""

    def as_surrogate(self) -> Surrogate:
        """A surrogate without data."""


class SurrogateBase(ABC, Generic[T]):
    """Argument checks, the default kernel, the seed, pending points, and the epochs of models.

    A subclass implements `_learn`, `_relearn`, `_posterior`, `_count`, `_as_model` and the rest of the protocol. `T` is
    its type of a posterior without an epoch number; such posteriors are never changed in place.
    """

    takes_weights = True
    takes_structure = True
    is_regression = True
    #: Names of the subclass's own constructor arguments, which are attributes too.
    _OPTIONS: tuple[str, ...] = ()

    def __init__(self, kernel: object, noise: float | None, seed: int, device: torch.device | str | None) -> None:
        self.noise = check_noise(noise)
        self.fixed_noise = noise is not None
        self.device = torch.device(device) if device is not None else None
        self._kernel: Kernel | None = None if kernel is None else placed(as_kernel(kernel), self.device)
        self.rng = np.random.default_rng(check_count("seed", seed, 0))
        self.observations = Observations(0)
        self._kept: tuple[Counted[T], ...] = ()
        self._epochs = Epochs()

    def __repr__(self) -> str:
        return shown_call(type(self), {"kernel": self._kernel, **self.options()})

    @property
    def kernel(self) -> Kernel:
        """The kernel; `NotReadyError` before it is known (see `has_kernel`)."""
        if self._kernel is None:
            raise NotReadyError("kernel: none was given and no point was observed yet, so its dimension is not known.")
        return self._kernel

    @property
    def has_kernel(self) -> bool:
        """Whether the kernel is known: one was given, or the first observation has set the dimension."""
        return self._kernel is not None

    def bind_objects(self, objects: list[object]) -> None:
        """See `Surrogate`."""
        if not isinstance(self.kernel, CallableKernel):
            raise ArgumentTypeError(
                "kernel: expected a callable (list_a, list_b) -> matrix for a pool of objects, got "
                f"{type(self.kernel).__name__}, which takes vectors."
            )
        self._kernel = as_kernel(self.kernel.function, objects)

    def of_limits(self) -> Surrogate:
        """See `Surrogate`; by default this one."""
        return self

    def check_kernel(self, kernel: Kernel) -> None:
        """See `Surrogate`; by default all kernels are accepted."""

    @abstractmethod
    def fitted(self) -> Tensor:
        """See `Surrogate`."""

    @property
    @abstractmethod
    def inducing(self) -> Tensor:
        """See `Surrogate`."""

    @abstractmethod
    def effective_dimension(self) -> float:
        """See `Surrogate`."""

    def leverage_sum(self) -> float:
        """See `Surrogate`; by default `effective_dimension`, for subclasses without the bound of 1."""
        return self.effective_dimension()

    @property
    def log_growth(self) -> float:
        """See `Surrogate`; by default none is known."""
        return math.inf

    def options(self) -> dict[str, object]:
        """See `Surrogate`."""
        own = self._kernel is None or isinstance(self._kernel, ARDKernel)
        noise = self.noise if self.fixed_noise else None
        return {"noise": noise, "needs_kernel": not own, **{name: getattr(self, name) for name in self._OPTIONS}}

    def observe(self, X: object, y: object, weight: object = None, *, in_turn: bool = False) -> None:
        """Learn the values `y (n,)`, units of y, of the points `X (n, d)`.

        The noise variance of a value is `noise` / `weight`; `weight (n,)` is positive, by default ones. A value of
        weight 3 is equivalent to the mean of three values. With `in_turn` the posterior is bit for bit that of one call
        for each value; otherwise many values may be learnt together, which is faster and differs by rounding errors.

        Raises:
            ArgumentError: shapes that do not fit, values that are not finite, or a weight that is not positive.
            ArgumentTypeError: not real numbers.
            KernelError: the kernel is not usable at these points.

        After an error, also one raised by the user's kernel, the surrogate is unchanged.
        """
        points = as_points(X, self.observations.dim or None, self.device)
        values = as_values(y, len(points), self.device)
        weights = torch.ones_like(values) if weight is None else as_values(weight, len(points), self.device, "weight")
        if not len(points):
            return
        if weight is not None and float(weights.min()) <= 0.0:
            at = int(weights.argmin())
            raise ArgumentError(
                f"weight: expected positive numbers, got {float(weights[at])} at position {at}; give noise / (variance "
                "of the value's noise)."
            )
        restore, learnt = self._checkpoint(), False
        try:
            if self._kernel is None:
                self._kernel = placed(matern52(points.shape[1]), points.device)
            if not self.observations.dim:
                self.observations = Observations(points.shape[1], self.device)
            together = len(points) > BULK and not in_turn
            with torch.no_grad(), contextlib.nullcontext() if together else small_work():
                learn = self._learn_in_turn if in_turn else self._learn
                learn(points, values, weights)
            learnt = True
        finally:  # a user's kernel may raise any error
            if not learnt:
                restore()
        self._kept = ()
        self._epochs.observed(points, weights)

    def _checkpoint(self) -> Callable[[], None]:
        """A function that restores the present state, for kernels that fail in the middle of `observe`."""
        attributes, rng = vars(self).copy(), self.rng.bit_generator.state
        restore_observations = self.observations.checkpoint()

        def restore() -> None:
            vars(self).update(attributes)
            restore_observations()
            self.rng.bit_generator.state = rng

        return restore

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy that shares the immutable parts: kernel, features, states."""
        other = memo[id(self)] = copy.copy(self)
        other.observations, other.rng = copy.deepcopy((self.observations, self.rng), memo)
        other._epochs = Epochs()  # the copies' next models may differ, so they must not share an epoch
        return other

    @torch.no_grad()
    def rebuild(self, observations: Observations, kernel: Kernel, noise: float) -> None:
        """See `Surrogate`."""
        self.observations, self._kernel, self.noise = observations.to(self.device), placed(kernel, self.device), noise
        self._kept, self._epochs = (), Epochs()
        self._relearn()

    @abstractmethod
    def _learn(self, X: Tensor, y: Tensor, weight: Tensor) -> None:
        """Learn checked values `y (n,)` of checked points `X (n, d)` with weights `(n,)`, without gradients."""

    def _learn_in_turn(self, X: Tensor, y: Tensor, weight: Tensor) -> None:
        """`_learn` for each value by itself, to the last bit."""
        for i in range(len(X)):
            self._learn(X[i : i + 1], y[i : i + 1], weight[i : i + 1])

    @abstractmethod
    def _relearn(self) -> None:
        """Recompute the posterior from `observations`, which may be empty."""

    @abstractmethod
    def _posterior(self) -> T:
        """The posterior given the observations, of which there is at least one."""

    @abstractmethod
    def _count(self, known: T, X: Tensor) -> T:
        """The posterior `known` as if the points `X (q, d)`, q > 0, had been evaluated at their mean."""

    def _count_beyond(self, known: T, X: Tensor) -> T:
        """`_count` with inducing points beyond the budget, if there is one."""
        return self._count(known, X)

    @abstractmethod
    def _as_model(self, known: T) -> Model:
        """A posterior as a `Model`; its epoch is set later."""

    @property
    def model(self) -> Model:
        """The posterior given the observations, immutable; `NotReadyError` before the first observation."""
        return self._epochs.place(self._as_model(self._known()), Counter(), self.observations)

    @torch.no_grad()
    def fantasy(self, pending: Tensor, *, beyond_budget: bool = False) -> Model:
        """See `Surrogate`."""
        self._known()
        pending = pending.to(self.observations.X.device)
        with small_work():
            count = self._count_beyond if beyond_budget else self._count
            self._kept = count_all(self._kept, pending, count, beyond_budget=beyond_budget)
            return self._placed(self._as_model(self._kept[-1].value), pending)

    def _placed(self, model: Model, pending: Tensor) -> Model:
        """A model of the observations and `pending (p, d)` with its epoch."""
        return self._epochs.place(model, Counter(row_keys(pending)), self.observations)

    def anchor(self) -> Anchor | None:
        """See `Surrogate`."""
        return None

    def _known(self) -> T:
        if not len(self.observations):
            raise not_ready()
        if not self._kept:
            self._kept = (Counted(self.observations.X[:0], self._posterior()),)
        return self._kept[0].value

    def posterior(self, X: object) -> Posterior:
        """The posterior at the points `X (n, d)`: `.mean` (y), `.variance` (y squared), `.leverage`, `.sample`.

        It is differentiable in `X` if `X` is a tensor that requires gradients.

        Raises:
            NotReadyError: there is no observation yet.
            ArgumentError: the wrong number of columns, or values that are not finite.
            ArgumentTypeError: not real numbers.
        """
        model = self._as_model(self._known()).placed(new_epoch())  # reading changes nothing
        return model.posterior(as_points(X, self.observations.dim or None, self.device))


def not_ready() -> NotReadyError:
    """The error for a posterior before any data."""
    return NotReadyError("posterior: expected at least one observation, got none; call observe first.")
