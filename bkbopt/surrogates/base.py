"""The protocol of a surrogate, and what all of ours share: checked input, the default kernel, seeds, pending points."""

import contextlib
import copy
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.arrays import as_points, as_values, check_noise
from bkbopt._support.threads import small_work
from bkbopt.errors import ArgumentError, ArgumentTypeError, NotReadyError
from bkbopt.kernels import ARDKernel, CallableKernel, Kernel, as_kernel, matern52
from bkbopt.posterior.model import Model, Posterior
from bkbopt.posterior.observations import Observations, row_keys
from bkbopt.surrogates.epochs import Epochs, new_epoch
from bkbopt.surrogates.pending import Counted, count_all

__all__ = ["Surrogate", "SurrogateBase"]

T = TypeVar("T")


class Surrogate(Protocol):
    """What the optimizer asks of a surrogate. Points are encoded; the surrogate does not know a direction."""

    observations: Observations
    noise: float
    fixed_noise: bool
    #: Whether values may have weights, that is, known noise of their own.
    takes_weights: bool
    #: Whether the search may give it a kernel with structure (`fit_structure`) where the user gave none.
    takes_structure: bool
    rng: np.random.Generator

    @property
    def kernel(self) -> Kernel:
        """The kernel; `NotReadyError` while it is not known."""
        ...

    @property
    def has_kernel(self) -> bool:
        """Whether the kernel is known."""
        ...

    def observe(self, X: object, y: object, weight: object = None, *, in_turn: bool = False) -> None:
        """Learn the values `y (n,)` of the points `X (n, d)`, with noise of variance `noise` / `weight (n,)`.

        With `in_turn` the posterior is that of a call for each value, to the last bit.
        """
        ...

    def posterior(self, X: object) -> Posterior:
        """The posterior at the points `X (n, d)`, given what was observed."""
        ...

    @property
    def model(self) -> Model:
        """The posterior given what was observed, frozen; `NotReadyError` before the first observation."""
        ...

    def fantasy(self, pending: Tensor) -> Model:
        """The posterior with the points `pending (p, d)` counted as evaluated at their posterior mean.

        A function of what was observed and of `pending`, in their order; it changes nothing of either.
        """
        ...

    def check_kernel(self, kernel: Kernel) -> None:
        """Refuse a kernel that this kind of surrogate has no use for, with `ArgumentError`."""
        ...

    def rebuild(self, observations: Observations, kernel: Kernel, noise: float) -> None:
        """Replace data and hyper-parameters, and compute everything anew."""
        ...

    def fitted(self) -> Tensor:
        """Posterior mean at the unique observed points, (u,), units of y."""
        ...

    @property
    def inducing(self) -> Tensor:
        """Inducing points (m, d)."""
        ...

    def effective_dimension(self) -> float:
        """A bound of d_eff = Tr K (K + lam I)^-1 from above, and d_eff itself where every point is inducing.

        It is `leverage_sum` with what the features do not see of a point, n residual / lam, counted as 1 at most.
        """
        ...

    def leverage_sum(self) -> float:
        """Sum of the leverages of all evaluations (Calandriello et al. 2019, Eq. 5), unclamped.

        Under a budget that binds it is any number of times `effective_dimension`; under a dictionary whose accuracy is
        eps <= 1/2 they are the same, since no point then has more than lam eps / (1 - eps) unseen.
        """
        ...

    def bind_objects(self, objects: list[object]) -> None:
        """Take points for numbers into `objects`, which the kernel compares."""
        ...

    def options(self) -> dict[str, object]:
        """The constructor's arguments but the kernel, and whether one of the user's is needed (`needs_kernel`)."""
        ...


class SurrogateBase(ABC, Generic[T]):
    """Checked input, the default kernel, the seed, and which model belongs to which epoch.

    A surrogate adds `_learn`, `_relearn` and the rest of the protocol, and how it counts pending points: `T` is a
    posterior without an epoch, which is never changed in place.
    """

    takes_weights = True
    takes_structure = True
    #: Names of the constructor's further arguments, which are attributes too.
    _OPTIONS: tuple[str, ...] = ()

    def __init__(self, kernel: object, noise: float | None, seed: int, device: torch.device | str | None) -> None:
        self.noise = check_noise(noise)
        self.fixed_noise = noise is not None
        self._kernel: Kernel | None = None if kernel is None else as_kernel(kernel)
        self.device = torch.device(device) if device is not None else None
        self.rng = np.random.default_rng(seed)
        self.observations = Observations(0)
        self._kept: tuple[Counted[T], ...] = ()
        self._epochs = Epochs()

    @property
    def kernel(self) -> Kernel:
        """The kernel, once it is known."""
        if self._kernel is None:
            raise NotReadyError("kernel: none was given and no point was observed yet, so its dimension is not known.")
        return self._kernel

    @property
    def has_kernel(self) -> bool:
        """Whether the kernel is known."""
        return self._kernel is not None

    def bind_objects(self, objects: list[object]) -> None:
        """See `Surrogate`."""
        if not isinstance(self.kernel, CallableKernel):
            raise ArgumentTypeError(
                "kernel: expected a callable (list_a, list_b) -> matrix for a pool of objects, got "
                f"{type(self.kernel).__name__}, which takes vectors."
            )
        self._kernel = CallableKernel(self.kernel.function, objects)

    def check_kernel(self, kernel: Kernel) -> None:
        """See `Surrogate`; any kernel will do."""

    @abstractmethod
    def effective_dimension(self) -> float:
        """See `Surrogate`."""

    def leverage_sum(self) -> float:
        """See `Surrogate`; here nothing is clamped."""
        return self.effective_dimension()

    def options(self) -> dict[str, object]:
        """See `Surrogate`."""
        own = self._kernel is None or isinstance(self._kernel, ARDKernel)
        noise = self.noise if self.fixed_noise else None
        return {"noise": noise, "needs_kernel": not own, **{name: getattr(self, name) for name in self._OPTIONS}}

    def observe(self, X: object, y: object, weight: object = None, *, in_turn: bool = False) -> None:
        """Learn the values `y (n,)`, units of y, of the points `X (n, d)`.

        The noise of a value has the variance `noise` / `weight`, with `weight (n,)` positive and ones by default: a
        value of weight 3 is the mean of three values. With `in_turn` the posterior is that of a call for each value, to
        the last bit; otherwise many values may be learnt together, which is faster and differs by rounding.

        Raises:
            ArgumentError: shapes that do not fit, values that are not finite, or a weight that is not positive.
            ArgumentTypeError: not real numbers.
            KernelError: the kernel is of no use at these points.

        Nothing is learnt then, nor when a kernel of the user raises an error of its own.
        """
        T = as_points(X, self.observations.dim or None, self.device)
        v = as_values(y, len(T), self.device)
        a = torch.ones_like(v) if weight is None else as_values(weight, len(T), self.device, "weight")
        if not len(T):
            return
        if float(a.min()) <= 0.0:
            at = int(a.argmin())
            raise ArgumentError(
                f"weight: expected positive numbers, got {float(a[at])} at position {at}; give noise / (variance of "
                "the value's noise)."
            )
        with contextlib.ExitStack() as undo:  # a user's kernel may raise any error; all of them are undone
            undo.callback(self._checkpoint())
            if self._kernel is None:
                self._kernel = matern52(T.shape[1]).to(T.device)
            if not self.observations.dim:
                self.observations = Observations(T.shape[1], self.device)
            together = len(T) > 64 and not in_turn
            with torch.no_grad(), contextlib.nullcontext() if together else small_work():
                for i in range(0, len(T), 1 if in_turn else len(T)):
                    rows = slice(i, i + 1) if in_turn else slice(None)
                    self._learn(T[rows], v[rows], a[rows])
            undo.pop_all()
        self._kept = ()
        self._epochs.observed(T[a >= 1.0])

    def _checkpoint(self) -> Callable[[], None]:
        """A function that brings back the state of now: a kernel may prove unusable half-way through learning."""
        attributes, rng = vars(self).copy(), self.rng.bit_generator.state
        restore_observations = self.observations.checkpoint()

        def restore() -> None:
            vars(self).update(attributes)
            restore_observations()
            self.rng.bit_generator.state = rng

        return restore

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy that shares what never changes: kernel, features, states."""
        other = memo[id(self)] = copy.copy(self)
        other.observations, other.rng = copy.deepcopy((self.observations, self.rng), memo)
        other._epochs = Epochs()  # its next model may differ from ours
        return other

    @torch.no_grad()
    def rebuild(self, observations: Observations, kernel: Kernel, noise: float) -> None:
        """See `Surrogate`."""
        self.observations, self._kernel, self.noise = observations, kernel, noise
        self._kept, self._epochs = (), Epochs()
        self._relearn()

    @abstractmethod
    def _learn(self, X: Tensor, y: Tensor, weight: Tensor) -> None:
        """Learn checked values `y (n,)` of checked points `X (n, d)` with weights `(n,)`, without gradients."""

    @abstractmethod
    def _relearn(self) -> None:
        """Compute everything anew from `observations`, of which there may be none."""

    @abstractmethod
    def _posterior(self) -> T:
        """The posterior given what was observed; there is something."""

    @abstractmethod
    def _count(self, known: T, X: Tensor) -> T:
        """The posterior `known` with the points `X (q, d)`, q > 0, counted as evaluated at their mean."""

    @abstractmethod
    def _as_model(self, known: T) -> Model:
        """A posterior as a model of any epoch."""

    @property
    def model(self) -> Model:
        """The posterior given what was observed, frozen; `NotReadyError` before the first observation."""
        return self._epochs.place(self._as_model(self._known()), Counter(), self.observations)

    @torch.no_grad()
    def fantasy(self, pending: Tensor) -> Model:
        """See `Surrogate`."""
        self._known()
        with small_work():
            self._kept = count_all(self._kept, pending, self._count)
            model = self._as_model(self._kept[-1].value)
            return self._epochs.place(model, Counter(row_keys(pending)), self.observations)

    def _known(self) -> T:
        if not len(self.observations):
            raise not_ready()
        if not self._kept:
            self._kept = (Counted(self.observations.X[:0], self._posterior()),)
        return self._kept[0].value

    def posterior(self, X: object) -> Posterior:
        """The posterior at the points `X (n, d)`: `.mean` (y), `.variance` (y squared), `.leverage`, `.sample`.

        Differentiable in `X` where it is a tensor that requires gradients.

        Raises:
            NotReadyError: nothing was observed yet.
            ArgumentError: another number of columns, or values that are not finite.
            ArgumentTypeError: not real numbers.
        """
        model = replace(self._as_model(self._known()), epoch=new_epoch())  # reading changes nothing
        return model.posterior(as_points(X, self.observations.dim or None, self.device))


def not_ready() -> NotReadyError:
    """The error for a posterior before any data."""
    return NotReadyError("posterior: expected at least one observation, got none; call observe first.")
