"""A kernel smoother of the last rows."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bkbopt._support.state_forms import Floats, Form
from bkbopt.learners import OnlineLearner
from bkbopt.learners.numerics.losses import Array

__all__ = ["RecentMean"]


@dataclass(kw_only=True, eq=False)
class RecentMean(OnlineLearner):
    """Nadaraya-Watson on the last `window` rows: p = sum_i k(x, x_i) y_i / (lam + sum_i k(x, x_i)).

    Args:
        kernel: None for the Gaussian, a kernel of `bkbopt.kernels`, or a callable.
        lengthscale: of the Gaussian.
        scale: whether features and targets are standardised by the first rows.
        window: number of rows that are kept.
        lam: weight of the value 0.

    Example:
        >>> RecentMean.paper(lam=1.0).partial_fit([[0.0]], [3.0]).predict([[0.0]])
        array([1.5])
    """

    kernel: Any = None
    lengthscale: float | Literal["scale"] = "scale"
    scale: bool = True
    window: int = 50
    lam: float = 0.1

    def _check(self, d: int) -> None:
        self._window, self._lam = self.window, self.lam

    def _start(self, d: int) -> None:
        self._X, self._y = np.empty((0, d)), np.empty(0)

    def _stream(self, X: Array, y: Array) -> Array:
        out = np.empty(len(X))
        for t in range(len(X)):
            out[t] = self._raw(X[t : t + 1])[0]
            self._X = np.concatenate([self._X, X[t : t + 1]])[-self._window :]
            self._y = np.append(self._y, y[t])[-self._window :]
        return out

    def _raw(self, X: Array) -> Array:
        K = self._gram(X, self._X)
        return (K @ self._y) / (self._lam + K.sum(1))

    def _state(self) -> dict[str, object]:
        return {"X": self._X, "y": self._y}

    def _form(self) -> Form:
        return Form({"X": Floats(("rows", "d")), "y": Floats(("rows",))})

    def _restore(self, state: dict[str, Any]) -> None:
        self._X, self._y = state["X"], state["y"]
