"""Linear bandits, which BKB's paper compares with: exact on features, sketched (SOFUL) and randomly projected (CBRAP).

| symbol | shape  | units     | meaning                                                                |
| ------ | ------ | --------- | ---------------------------------------------------------------------- |
| X      | (n, d) | as given  | arms                                                                   |
| S      | (m, d) | as X      | sketch: 0 <= X^T X - S^T S <= rho I over all arms pulled               |
| rho    | -      | X squared | sum of what the sketch has shrunk                                      |
| lam    | -      | X squared | ridge                                                                  |
| b      | (d,)   | X y       | sum of y x                                                             |
| theta  | (d,)   | y / X     | (S^T S + lam I)^-1 b                                                   |

All choose an arm by `select`, and learn its value by `learn_one`. "ucb" takes the largest upper bound, "thompson" the
largest value of one draw of theta.
"""

import math
from abc import ABC, abstractmethod
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from bkbopt.checks import check_count, check_number
from bkbopt.errors import ArgumentError
from bkbopt.learners.losses import Array
from bkbopt.learners.rows import as_row, as_rows
from bkbopt.states import GaussianState

__all__ = ["CBRAP", "SOFUL", "FeatureBandit", "FrequentDirections", "LinearBandit"]


class FrequentDirections:
    """A sketch of `size` rows of a growing matrix (Liberty 2013; Ghashami et al. 2016); see the module's table.

    O(m d) a row on average: 2 m rows are kept before they are cut to m.
    """

    def __init__(self, size: int, d: int) -> None:
        self.size, self.rho = check_count("size", size), 0.0
        self._rows, self._n = np.zeros((2 * self.size, d)), 0

    @property
    def S(self) -> Array:
        """The sketch, at most 2 m - 1 rows."""
        return self._rows[: self._n]

    def add(self, x: Array) -> None:
        """One more row `x (d,)` of the matrix."""
        self._rows[self._n] = x
        self._n += 1
        if self._n == len(self._rows):
            _, sigma, Vt = np.linalg.svd(self._rows, full_matrices=False)
            # With no more directions than rows wanted nothing is lost.
            shrunk = float(sigma[self.size] ** 2) if len(sigma) > self.size else 0.0
            kept = np.sqrt(np.maximum(sigma[: self.size] ** 2 - shrunk, 0.0))
            self._rows[:] = 0.0
            self._rows[: len(kept)] = kept[:, None] * Vt[: self.size]
            self.rho += shrunk
            self._n = self.size


class LinearBandit(ABC):
    """Base class: arms checked, the choice by one of the two rules.

    Args:
        policy: "ucb" or "thompson".
        seed: of the draws of "thompson".
    """

    def __init__(self, policy: Literal["ucb", "thompson"], seed: int | None) -> None:
        if policy not in ("ucb", "thompson"):
            raise ArgumentError(f'policy: expected "ucb" or "thompson", got {policy!r}.')
        self.policy = policy
        self._rng = np.random.default_rng(None if seed is None else check_count("seed", seed, 0))
        self._d: int | None = None
        self.n_rounds_ = 0

    def select(self, X: object) -> int:
        """Which of the arms `X (n, d)` to pull."""
        arms = self._arms(X)
        if self.policy == "thompson":
            return int(np.argmax(self._draw(arms)))
        mean, width = self._bounds(arms)
        return int(np.argmax(mean + width))

    def bounds(self, X: object) -> tuple[Array, Array]:
        """Estimates and half-widths of their confidence intervals, each `(n,)`, of the arms `X (n, d)`, units of y."""
        return self._bounds(self._arms(X))

    def learn_one(self, x: object, y: object) -> None:
        """Learn the value `y` of the arm `x (d,)`.

        Raises:
            ArgumentError: another number of features, or not finite; nothing is learnt then.
            ArgumentTypeError: not numbers.
        """
        row = as_row(x, None, self._d, type(self).__name__)[0]
        value = check_number("y", y, -math.inf, "a finite number")
        self._ready(len(row))
        self._learn(row, value)
        self.n_rounds_ += 1

    def _arms(self, X: object) -> Array:
        arms = as_rows(X, None, self._d, type(self).__name__)
        self._ready(arms.shape[1])
        return arms

    def _ready(self, d: int) -> None:
        if self._d is None:
            self._start(d)
            self._d = d

    @abstractmethod
    def _start(self, d: int) -> None:
        """Allocate for arms of `d` features."""

    @abstractmethod
    def _learn(self, x: Array, y: float) -> None:
        """Learn a checked row."""

    @abstractmethod
    def _bounds(self, X: Array) -> tuple[Array, Array]:
        """See `bounds`."""

    @abstractmethod
    def _draw(self, X: Array) -> Array:
        """Values `(n,)` of the arms under one draw of theta."""


class SOFUL(LinearBandit):
    """Sketched OFUL (Kuzborskij, Cella and Cesa-Bianchi 2019): confidence ellipsoids from a frequent-directions sketch.

    O(m d + m^2) an arm. What the sketch does not hold is left to lam I in every direction, so that variances do not
    starve; the radius grows with rho / lam, and with it the regret, where m is too small: watch `rho_`.

    Args:
        sketch: m, rows of the sketch; with d of them nothing is lost, and it is OFUL.
        lam: ridge, positive.
        norm: bound S of |theta|.
        noise_sd: sub-Gaussian constant R of the noise, units of y.
        delta: probability with which the ellipsoid may fail.
        policy, seed: see `LinearBandit`.

    Attributes:
        rho_: sum of what was shrunk.
        radius_: of the ellipsoid, in units of the norm of V; with probability 1 - delta it holds in all rounds.

    Raises:
        ArgumentError: an argument is out of range.

    Example:
        >>> from bkbopt.learners import SOFUL
        >>> bandit = SOFUL(sketch=2, noise_sd=0.1)
        >>> for value in (1.0, 0.9, 1.1):
        ...     bandit.learn_one([1.0, 0.0, 0.0], value)
        >>> bandit.select([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
        0
    """

    def __init__(
        self,
        sketch: int,
        *,
        lam: float = 1.0,
        norm: float = 1.0,
        noise_sd: float = 1.0,
        delta: float = 0.1,
        policy: Literal["ucb", "thompson"] = "ucb",
        seed: int | None = 0,
    ) -> None:
        super().__init__(policy, seed)
        self.sketch = check_count("sketch", sketch)
        self.lam = check_number("lam", lam, 0.0, "a positive ridge", strict=True)
        self.norm = check_number("norm", norm, 0.0, "a bound >= 0")
        self.noise_sd = check_number("noise_sd", noise_sd, 0.0, "a standard deviation >= 0")
        self.delta = check_number("delta", delta, 0.0, "a probability", strict=True)
        if self.delta >= 1.0:
            raise ArgumentError(f"delta: expected a probability below one, got {delta!r}.")

    def _start(self, d: int) -> None:
        self._sketch, self._b = FrequentDirections(self.sketch, d), np.zeros(d)
        self._factors: tuple[Array, Array] | None = None

    def _learn(self, x: Array, y: float) -> None:
        self._sketch.add(x)
        self._b += y * x
        self._factors = None

    def _spectrum(self) -> tuple[Array, Array]:
        """Squared singular values `(k,)` of S and its right vectors `(k, d)`."""
        if self._factors is None:
            _, sigma, Vt = np.linalg.svd(self._sketch.S, full_matrices=False)
            self._factors = sigma**2, Vt
        return self._factors

    @property
    def rho_(self) -> float:
        """See the class."""
        return self._sketch.rho if self._d is not None else 0.0

    @property
    def theta_(self) -> Array:
        """The estimate `(d,)`: V^-1 b with V^-1 = (I - U^T diag(s / (s + lam)) U) / lam."""
        s, U = self._spectrum()
        return (self._b - U.T @ (s / (s + self.lam) * (U @ self._b))) / self.lam

    @property
    def radius_(self) -> float:
        """See the class.

        With V <= X^T X + lam I <= (1 + rho / lam) V, the noise adds R sqrt(1 + rho / lam) times the root of
        2 log(1 / delta) + logdet((V + rho I) / lam), and the ridge S sqrt(lam) (1 + rho / lam).
        """
        excess = 1.0 + self.rho_ / self.lam
        s = self._spectrum()[0] if self._d is not None else np.zeros(0)
        logdet = (self._d or 0) * math.log(excess) + float(np.log1p(s / (self.lam * excess)).sum())
        noise = self.noise_sd * math.sqrt(excess * (logdet - 2.0 * math.log(self.delta)))
        return noise + self.norm * math.sqrt(self.lam) * excess

    def _bounds(self, X: Array) -> tuple[Array, Array]:
        s, U = self._spectrum()
        along = (X @ U.T) ** 2
        squares = np.einsum("ij,ij->i", X, X) - along @ (s / (s + self.lam))
        return X @ self.theta_, self.radius_ * np.sqrt(np.maximum(squares, 0.0) / self.lam)

    def _draw(self, X: Array) -> Array:
        s, U = self._spectrum()
        e = self._rng.standard_normal(X.shape[1])
        shorter = 1.0 / np.sqrt(s + self.lam) - 1.0 / math.sqrt(self.lam)
        return X @ (self.theta_ + self.radius_ * (e / math.sqrt(self.lam) + U.T @ (shorter * (U @ e))))


class Features(Protocol):
    """What is needed of a feature map: `bkbopt.features` has them."""

    def __call__(self, X: Tensor) -> Tensor:
        """Features `(n, r)` of the arms `X (n, d)`."""
        ...


class FeatureBandit(LinearBandit):
    """Ridge regression on features with upper bounds or Thompson sampling: O(r^2) a round and an arm.

    With random or quadrature Fourier features this is GP-UCB, or Thompson sampling, on a kernel of finite rank.

    Args:
        features: a map of the arms, `QuadratureFourier.from_kernel(...)` say.
        lam: noise variance = ridge, y squared.
        width: "ucb" adds so many posterior standard deviations, "thompson" draws with so many.
        policy, seed: see `LinearBandit`.

    Raises:
        ArgumentError: an argument is out of range.

    Example:
        >>> from bkbopt.features import QuadratureFourier
        >>> from bkbopt.kernels import rbf
        >>> from bkbopt.learners import FeatureBandit
        >>> bandit = FeatureBandit(QuadratureFourier.from_kernel(rbf(1, lengthscale=0.2), order=20), lam=0.01)
        >>> for x, value in ([0.1], 0.5), ([0.5], 1.0), ([0.9], 0.2):
        ...     bandit.learn_one(x, value)
        >>> bandit.select([[0.1], [0.5], [0.9]])
        1
    """

    def __init__(
        self,
        features: Features,
        *,
        lam: float = 1.0,
        width: float = 1.0,
        policy: Literal["ucb", "thompson"] = "ucb",
        seed: int | None = 0,
    ) -> None:
        super().__init__(policy, seed)
        self.lam = check_number("lam", lam, 0.0, "a positive ridge", strict=True)
        self.width = check_number("width", width, 0.0, "a number of standard deviations")
        self.features: Features = features

    def _start(self, d: int) -> None:
        r = self.features(torch.zeros(1, d, dtype=torch.float64)).shape[1]
        nothing = torch.zeros(0, r, dtype=torch.float64)
        self._state = GaussianState.from_data(nothing, nothing.new_zeros(0), nothing.new_zeros(0), self.lam)

    def _learn(self, x: Array, y: float) -> None:
        self._state = self._state.update(self.features(torch.tensor(x[None]))[0], y)

    def _bounds(self, X: Array) -> tuple[Array, Array]:
        Z = self.features(torch.tensor(X))
        sd = (self.lam * self._state.leverage(Z)).sqrt()
        return (Z @ self._state.w).numpy(), self.width * sd.numpy()

    def _draw(self, X: Array) -> Array:
        e = torch.as_tensor(self._rng.standard_normal(len(self._state.w)))
        w = self._state.w + self.width * math.sqrt(self.lam) * (self._state.root.T @ e)
        return (self.features(torch.tensor(X)) @ w).numpy()


class CBRAP(FeatureBandit):
    """Linear bandits on random projections (Yu, Lyu and King 2017): z = P x, P (m, d) with entries N(0, 1/m).

    O(m d + m^2) an arm. z.z' is x.x' in the mean, and its error of order 1 / sqrt(m) costs regret in every round.

    Args:
        projection: m.
        lam: ridge, positive.
        width: the exploration parameter, in units where theta's variance is I.
        policy, seed: see `LinearBandit`; the seed is also that of P.

    Raises:
        ArgumentError: an argument is out of range.

    Example:
        >>> from bkbopt.learners import CBRAP
        >>> bandit = CBRAP(projection=10, lam=0.01)
        >>> for value in (1.0, 0.9, 1.1):
        ...     bandit.learn_one([1.0, 0.0, 0.0], value)
        >>> estimate, width = bandit.bounds([[1.0, 0.0, 0.0]])
        >>> round(float(estimate[0]), 1)
        1.0
    """

    def __init__(
        self,
        projection: int,
        *,
        lam: float = 1.0,
        width: float = 1.0,
        policy: Literal["ucb", "thompson"] = "ucb",
        seed: int | None = 0,
    ) -> None:
        self.projection = check_count("projection", projection)
        super().__init__(self._project, lam=lam, width=width, policy=policy, seed=seed)

    def _project(self, X: Tensor) -> Tensor:
        return X @ self.P_.T

    def _start(self, d: int) -> None:
        self.P_ = torch.as_tensor(self._rng.standard_normal((self.projection, d)) / math.sqrt(self.projection))
        super()._start(d)
