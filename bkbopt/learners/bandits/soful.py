"""Sketched OFUL: a linear bandit whose confidence ellipsoid comes from a frequent-directions sketch.

| symbol | shape  | units     | meaning                                                                |
| ------ | ------ | --------- | ---------------------------------------------------------------------- |
| S      | (k, d) | as X      | sketch: 0 <= X^T X - S^T S <= rho I over all arms pulled               |
| rho    | -      | X squared | sum of all that the sketch has subtracted                              |
| lam    | -      | X squared | ridge                                                                  |
| b      | (d,)   | X y       | sum of y x                                                             |
| V      | (d, d) | X squared | S^T S + lam I                                                          |
| theta  | (d,)   | y / X     | V^-1 b                                                                 |
| s, U   | k      | X^2, -    | squared singular values of S and its right vectors                     |
"""

import dataclasses
import math
from typing import Any

import numpy as np

from bkbopt._support.checks import check_number, check_size
from bkbopt._support.state_forms import Floats, Form, Number
from bkbopt.errors import ArgumentError, NotReadyError
from bkbopt.learners.bandits.linear import LinearBandit, check_sums
from bkbopt.learners.numerics.growing import GrowingRows, finite
from bkbopt.learners.numerics.losses import Array

__all__ = ["SOFUL", "FrequentDirections"]

#: Largest absolute entries of a row that is added, since squares of singular values are compared, and of the sketch's
#: rows, which have the length of many together.
LONGEST, LONGEST_OF_MANY = 1e140, 1e150


class FrequentDirections:
    """A sketch of `size` rows of a growing matrix (Liberty 2013; Ghashami et al. 2016); see the module's table.

    O(m d) a row on average: up to 2 m - 1 rows are kept, and 2 m are reduced to m.
    """

    def __init__(self, size: int, d: int) -> None:
        self.size, self.rho = check_size("size", size), 0.0
        self._rows = GrowingRows(d)

    @property
    def S(self) -> Array:
        """The sketch, at most 2 m - 1 rows."""
        return self._rows.rows

    def add(self, x: Array) -> None:
        """Add the row `x (d,)` of the matrix.

        Raises:
            ArgumentError: its squares would overflow; nothing is added then.
        """
        if not (np.abs(x) <= LONGEST).all():
            raise ArgumentError(f"x: expected an arm of numbers up to {LONGEST:g}, got {x.tolist()}; scale the arms.")
        if self._rows.n + 1 < 2 * self.size:
            self._rows.append(x[None])
            return
        _, sigma, Vt = np.linalg.svd(finite(np.vstack([self.S, x])), full_matrices=False)
        # With at most `size` directions nothing is lost.
        shrunk = float(sigma[self.size] ** 2) if len(sigma) > self.size else 0.0
        kept = np.sqrt(np.maximum(sigma[: self.size] ** 2 - shrunk, 0.0))
        self._rows.n = 0
        self._rows.append(np.zeros((self.size, len(x))))
        self.S[: len(kept)] = kept[:, None] * Vt[: self.size]
        self.rho += shrunk

    def state_dict(self) -> dict[str, object]:
        """For a state file, in copies."""
        return {"rows": self.S.copy(), "rho": self.rho}

    def form(self) -> Form:
        """The form of `state_dict`, for rows of "d" features."""
        return Form(
            {"rows": Floats(("n", "d"), -LONGEST_OF_MANY, LONGEST_OF_MANY), "rho": Number(0.0)},
            {"n": 2 * self.size - 1},
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of `state_dict`, for a new sketch."""
        self._rows.append(state["rows"])
        self.rho = state["rho"]


@dataclasses.dataclass(eq=False)
class SOFUL(LinearBandit):
    """Sketched OFUL (Kuzborskij, Cella and Cesa-Bianchi 2019): confidence ellipsoids from a frequent-directions sketch.

    O(m d) an arm, and O(m^2 d) a round. Directions outside the sketch have the variance of lam I, so that variances do
    not starve. The radius grows with rho / lam, and with it the regret, if m is too small: watch
    `rho_`.

    Args:
        sketch: m, rows of the sketch; with m = d nothing is lost, and this is OFUL.
        lam: ridge, positive.
        norm: bound S of |theta|.
        noise_std: sub-Gaussian constant R of the noise, units of y.
        delta: probability with which the ellipsoid may fail.
        policy, seed: see `LinearBandit`.

    Attributes:
        rho_: sum of all that the sketch has subtracted.
        theta_: the estimate `(d,)`.
        radius_: of the ellipsoid, in units of the norm of V; with probability 1 - delta it holds in all rounds.

    Example:
        >>> from bkbopt.learners import SOFUL
        >>> bandit = SOFUL(sketch=2, noise_std=0.1)
        >>> for value in (1.0, 0.9, 1.1):
        ...     bandit.learn_one([1.0, 0.0, 0.0], value)
        >>> bandit.select([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
        0
    """

    sketch: int
    _: dataclasses.KW_ONLY
    lam: float = 1.0
    norm: float = 1.0
    noise_std: float = 1.0
    delta: float = 0.1

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        self.sketch = check_size("sketch", self.sketch)
        self.lam = check_number("lam", self.lam, 0.0, "a positive ridge", strict=True)
        self.norm = check_number("norm", self.norm, 0.0, "a bound >= 0")
        self.noise_std = check_number("noise_std", self.noise_std, 0.0, "a standard deviation >= 0")
        self.delta = check_number("delta", self.delta, 0.0, "a probability between 0 and 1", strict=True)
        if self.delta >= 1.0:
            raise ArgumentError(f"delta: expected a probability between 0 and 1, got {self.delta!r}.")

    def _start(self, d: int) -> None:
        self._sketch, self._b = FrequentDirections(self.sketch, d), np.zeros(d)
        self._factors: tuple[Array, Array] | None = None

    def _learn(self, x: Array, y: float) -> None:
        with np.errstate(over="ignore"):
            b = self._b + y * x
        check_sums(b, x, y)
        self._sketch.add(x)
        self._b, self._factors = b, None

    def _spectrum(self) -> tuple[Array, Array]:
        """s `(k,)` and U `(k, d)` of the module's table."""
        if self._factors is None:
            _, sigma, Vt = np.linalg.svd(finite(self._sketch.S), full_matrices=False)
            self._factors = sigma**2, Vt
        return self._factors

    @property
    def rho_(self) -> float:
        """See the class."""
        return self._sketch.rho if self._d is not None else 0.0

    @property
    def theta_(self) -> Array:
        """V^-1 b with V^-1 = (I - U^T diag(s / (s + lam)) U) / lam; `NotReadyError` before the first arm."""
        if self._d is None:
            raise NotReadyError(f"{type(self).__name__}: expected arms first; call select, bounds or learn_one.")
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
        noise = self.noise_std * math.sqrt(excess * (logdet - 2.0 * math.log(self.delta)))
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

    def _state(self) -> dict[str, object]:
        return {"sketch": self._sketch.state_dict(), "b": self._b.copy()}

    def _form(self, d: int) -> Form:
        return Form({"sketch": FrequentDirections(self.sketch, d).form(), "b": Floats(("d",))})

    def _restore(self, state: dict[str, Any]) -> None:
        self._sketch.load_state_dict(state["sketch"])
        self._b = state["b"]
