"""The protocol of a surrogate, and what all of ours share: checked input, the default kernel, seeds."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.arrays import as_points, as_values, check_noise
from bkbopt._support.threads import small_work
from bkbopt.errors import ArgumentTypeError, NotReadyError
from bkbopt.kernels import ARDKernel, CallableKernel, Kernel, as_kernel, matern52
from bkbopt.posterior.model import Model, Posterior
from bkbopt.posterior.observations import Observations

__all__ = ["Surrogate", "SurrogateBase"]


class Surrogate(Protocol):
    """What the optimizer asks of a surrogate. Points are encoded; the surrogate does not know a direction."""

    observations: Observations
    noise: float
    fixed_noise: bool
    rng: np.random.Generator

    @property
    def kernel(self) -> Kernel:
        """The kernel; `NotReadyError` while it is not known."""
        ...

    @property
    def has_kernel(self) -> bool:
        """Whether the kernel is known."""
        ...

    def observe(self, X: object, y: object) -> None:
        """Learn the values `y (n,)` of the points `X (n, d)`."""
        ...

    def posterior(self, X: object) -> Posterior:
        """The posterior at the points `X (n, d)`, given what was observed."""
        ...

    @property
    def model(self) -> Model:
        """The posterior given what was observed, frozen; `NotReadyError` before the first observation."""
        ...

    def hallucinate(self, pending: Tensor, failed: Tensor, lie: float) -> Model:
        """The posterior with `pending (p, d)` counted as evaluated at their mean and `failed (f, d)` at `lie`.

        It serves the search only: `model`, `posterior` and the data stay as they are.
        """
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
        """Sum of the leverages of all evaluations, the estimate of d_eff (Calandriello et al. 2019, Eq. 5)."""
        ...

    def look_up(self, objects: list[object]) -> None:
        """Take points for numbers into `objects`, which the kernel compares."""
        ...

    def options(self) -> dict[str, object]:
        """The constructor's arguments but the kernel, and whether one of the user's is needed (`needs_kernel`)."""
        ...

    def state_dict(self) -> dict[str, object]:
        """The state beyond the constructor's arguments and the kernel, for a state file."""
        ...

    def load_state_dict(self, state: dict[str, object], kernel: Kernel | None) -> None:
        """The inverse of `state_dict`, bit for bit."""
        ...


class SurrogateBase(ABC):
    """Checked input, the default kernel and the seed; a surrogate adds `_learn` and the rest of the protocol."""

    #: Names of the constructor's further arguments, which are attributes too.
    _OPTIONS: tuple[str, ...] = ()

    def __init__(self, kernel: object, noise: float | None, seed: int, device: torch.device | str | None) -> None:
        self.noise = check_noise(noise)
        self.fixed_noise = noise is not None
        self._kernel: Kernel | None = None if kernel is None else as_kernel(kernel)
        self.device = torch.device(device) if device is not None else None
        self.rng = np.random.default_rng(seed)
        self.observations = Observations(0)
        self._epoch = 0

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

    def look_up(self, objects: list[object]) -> None:
        """See `Surrogate`."""
        if not isinstance(self.kernel, CallableKernel):
            raise ArgumentTypeError(
                "kernel: expected a callable (list_a, list_b) -> matrix for a pool of objects, got "
                f"{type(self.kernel).__name__}, which takes vectors."
            )
        self._kernel = CallableKernel(self.kernel.function, objects)

    def options(self) -> dict[str, object]:
        """See `Surrogate`."""
        own = self._kernel is None or isinstance(self._kernel, ARDKernel)
        noise = self.noise if self.fixed_noise else None
        return {"noise": noise, "needs_kernel": not own, **{name: getattr(self, name) for name in self._OPTIONS}}

    def observe(self, X: object, y: object) -> None:
        """Learn the values `y (n,)`, units of y, of the points `X (n, d)`.

        Raises:
            ArgumentError: shapes that do not fit, or values that are not finite.
            ArgumentTypeError: not real numbers.
            KernelError: the kernel is of no use at these points.

        Nothing is learnt then, nor when a kernel of the user raises an error of its own.
        """
        T = as_points(X, self.observations.dim or None, self.device)
        v = as_values(y, len(T), self.device)
        if not len(T):
            return
        with contextlib.ExitStack() as undo:  # after errors of any kind: what others wrote raises what it likes
            undo.callback(self._checkpoint())
            if self._kernel is None:
                self._kernel = matern52(T.shape[1]).to(T.device)
            if not self.observations.dim:
                self.observations = Observations(T.shape[1], self.device)
            with torch.no_grad(), contextlib.nullcontext() if len(T) > 64 else small_work():
                self._learn(T, v)
            undo.pop_all()

    def _checkpoint(self) -> Callable[[], None]:
        """A function that brings back the state of now: a kernel may prove unusable half-way through learning."""
        attributes, rng = vars(self).copy(), self.rng.bit_generator.state
        restore_observations = self.observations.checkpoint()

        def restore() -> None:
            vars(self).update(attributes)
            restore_observations()
            self.rng.bit_generator.state = rng

        return restore

    @abstractmethod
    def _learn(self, X: Tensor, y: Tensor) -> None:
        """Learn checked values `y (n,)` of checked points `X (n, d)`, without gradients."""

    @property
    @abstractmethod
    def model(self) -> Model:
        """The posterior given what was observed, frozen; `NotReadyError` before the first observation."""

    def posterior(self, X: object) -> Posterior:
        """The posterior at the points `X (n, d)`: `.mean` (y), `.variance` (y squared), `.leverage`, `.sample`.

        Differentiable in `X` where it is a tensor that requires gradients.

        Raises:
            NotReadyError: nothing was observed yet.
            ArgumentError: another number of columns, or values that are not finite.
            ArgumentTypeError: not real numbers.
        """
        return self.model.posterior(as_points(X, self.observations.dim or None, self.device))


def not_ready() -> NotReadyError:
    """The error for a posterior before any data."""
    return NotReadyError("posterior: expected at least one observation, got none; call observe first.")
