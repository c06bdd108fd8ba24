"""Linear bandits on features: ridge regression with upper bounds or Thompson sampling, and random projections.

| symbol | shape  | units     | meaning                                                                |
| ------ | ------ | --------- | ---------------------------------------------------------------------- |
| Z      | (n, r) | y         | features of the arms                                                   |
| A      | (r, r) | y squared | sum of z z^T over all arms pulled, + lam I                             |
| w      | (r,)   | -         | A^-1 sum of y z                                                        |
"""

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bkbopt._support.checks import check_number, check_size
from bkbopt._support.state_forms import Floats, Form, Number
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.learners.bandits.linear import LinearBandit, check_sums
from bkbopt.learners.features.map_states import FORMS
from bkbopt.learners.numerics.losses import Array
from bkbopt.posterior.gaussian_state import GaussianState

__all__ = ["CBRAP", "FeatureBandit"]

#: Number of rounds after which all is computed from scratch, so that rounding errors do not accumulate.
REFACTOR_EVERY = 512
#: Largest number of features; their matrix takes 0.8 GB.
MOST_FEATURES = 10_000


@dataclasses.dataclass(kw_only=True, eq=False)
class RidgeBandit(LinearBandit):
    """Base class: ridge regression on features, O(r^2) a round and an arm.

    Args:
        lam: noise variance = ridge, y squared.
        beta: "ucb" adds this many posterior standard deviations; "thompson" samples with this many.
        policy, seed: see `LinearBandit`.
    """

    lam: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        self.lam = check_number("lam", self.lam, 0.0, "a positive ridge", strict=True)
        self.beta = check_number("beta", self.beta, 0.0, "a number of standard deviations >= 0")

    @abstractmethod
    def _features(self, X: Tensor) -> Tensor:
        """Features `(n, r)` of the arms `X (n, d)`."""

    @abstractmethod
    def _size(self, d: int) -> int:
        """The number of features r of arms of `d` features; `ArgumentError` if the map fails for them."""

    def _start(self, d: int) -> None:
        r = self._size(d)
        nothing = torch.zeros(0, r, dtype=torch.float64)
        self._ridge = GaussianState.from_data(nothing, nothing.new_zeros(0), nothing.new_zeros(0), self.lam)

    def _learn(self, x: Array, y: float) -> None:
        ridge = self._ridge.update(self._features(torch.tensor(x[None]))[0], y)
        check_sums(torch.cat([ridge.V, ridge.b[None], ridge.w[None]]).numpy(), x, y)
        self._ridge = ridge.refactor() if (self.n_rounds_ + 1) % REFACTOR_EVERY == 0 else ridge

    def _bounds(self, X: Array) -> tuple[Array, Array]:
        Z = self._features(torch.tensor(X))
        sd = (self.lam * self._ridge.leverage(Z)).sqrt()
        return (Z @ self._ridge.w).numpy(), self.beta * sd.numpy()

    def _draw(self, X: Array) -> Array:
        Z = self._features(torch.tensor(X))
        e = torch.as_tensor(self._rng.standard_normal(len(self._ridge.w)))
        w = self._ridge.w + self.beta * math.sqrt(self.lam) * (self._ridge.root.T @ e)
        return (Z @ w).numpy()

    def _state(self) -> dict[str, object]:
        return {name: getattr(self._ridge, name) for name in ("lam", "V", "root", "b", "w")}

    def _form(self, d: int) -> Form:
        r = self._size(d)
        matrices = {"V": Floats((r, r), tensor=True), "root": Floats((r, r), tensor=True)}
        vectors = {"b": Floats((r,), tensor=True), "w": Floats((r,), tensor=True)}
        return Form({"lam": Number(self.lam, self.lam), **matrices, **vectors})

    def _restore(self, state: dict[str, Any]) -> None:
        self._ridge = GaussianState(**state)


def _check_features(r: int) -> int:
    """Refuse more features than `MOST_FEATURES`, whose matrix of all pairs is stored."""
    if r > MOST_FEATURES:
        raise ArgumentError(
            f"features, projection: expected at most {MOST_FEATURES} features, got {r}; their matrix would have "
            f"{8e-9 * r * r:.3g} GB."
        )
    return r


@dataclasses.dataclass(eq=False)
class FeatureBandit(RidgeBandit):
    """Ridge regression on given features, with upper bounds or Thompson sampling.

    With random or quadrature Fourier features this is GP-UCB, or Thompson sampling, on a kernel of finite rank.

    Args:
        features: a map of arms `(n, d)` to features `(n, r)`, float64 tensors, such as
            `QuadratureFourier.from_kernel(...)`.
        lam, beta, policy, seed: see `RidgeBandit`.

    Example:
        >>> from bkbopt.learners.features import QuadratureFourier
        >>> from bkbopt.kernels import rbf
        >>> from bkbopt.learners import FeatureBandit
        >>> bandit = FeatureBandit(QuadratureFourier.from_kernel(rbf(1, lengthscale=0.2), order=20), lam=0.01)
        >>> for x, value in ([0.1], 0.5), ([0.5], 1.0), ([0.9], 0.2):
        ...     bandit.learn_one(x, value)
        >>> bandit.select([[0.1], [0.5], [0.9]])
        1
    """

    features: Callable[[Tensor], Tensor]

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        if not callable(self.features):
            raise ArgumentTypeError(
                f"features: expected a map of tensors, such as a FeatureMap, got {type(self.features).__name__}."
            )

    def _runs_user_code(self) -> bool:
        return type(self.features) not in FORMS

    def _size(self, d: int) -> int:
        known = getattr(self.features, "size", None)
        if isinstance(known, int):
            _check_features(known)
        try:
            return _check_features(self._features(torch.zeros(1, d, dtype=torch.float64)).shape[1])
        except RuntimeError as error:  # raised by torch for shapes that do not fit
            raise ArgumentError(
                f"features: expected a map of arms with {d} features, got one that fails: {error}"
            ) from error

    def _features(self, X: Tensor) -> Tensor:
        Z = self.features(X)
        if Z.ndim != 2 or len(Z) != len(X) or not bool(torch.isfinite(Z).all()):
            raise ArgumentError(
                f"features: expected finite features of shape ({len(X)}, r) for {len(X)} arms, got shape "
                f"{tuple(Z.shape)}, or NaN or infinity among them; check the map."
            )
        return Z


@dataclasses.dataclass(eq=False)
class CBRAP(RidgeBandit):
    """Linear bandits on random projections (Yu, Lyu and King 2017): z = P x, P (m, d) with entries N(0, 1/m).

    O(m d + m^2) an arm. The expectation of z.z' is x.x'; its error of order 1 / sqrt(m) causes regret in every round.

    Args:
        projection: m.
        lam: ridge, positive.
        beta: the exploration parameter, in units in which theta has variance I.
        policy, seed: see `LinearBandit`; the seed is also that of P.

    Attributes:
        P_: the projection, once arms have been seen.

    Example:
        >>> from bkbopt.learners import CBRAP
        >>> bandit = CBRAP(projection=10, lam=0.01)
        >>> for value in (1.0, 0.9, 1.1):
        ...     bandit.learn_one([1.0, 0.0, 0.0], value)
        >>> estimate, width = bandit.bounds([[1.0, 0.0, 0.0]])
        >>> round(float(estimate[0]), 1)
        1.0
    """

    projection: int

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        self.projection = _check_features(check_size("projection", self.projection))

    def _features(self, X: Tensor) -> Tensor:
        return X @ self.P_.T

    def _size(self, d: int) -> int:
        return self.projection

    def _start(self, d: int) -> None:
        self.P_ = torch.as_tensor(self._rng.standard_normal((self.projection, d)) / math.sqrt(self.projection))
        super()._start(d)

    def _state(self) -> dict[str, object]:
        return {**super()._state(), "P": self.P_}

    def _form(self, d: int) -> Form:
        return super()._form(d).extended({"P": Floats((self.projection, "d"), tensor=True)})

    def _restore(self, state: dict[str, Any]) -> None:
        self.P_ = state["P"]
        super()._restore({name: value for name, value in state.items() if name != "P"})
