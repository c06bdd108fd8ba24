"""Probabilities of classes from margins.

| symbol | shape  | meaning                                                                          |
| ------ | ------ | -------------------------------------------------------------------------------- |
| F      | (n, K) | margins of K classes, one against the rest; of two classes they are 0 and f      |
| k      | (n,)   | the classes of the rows                                                          |
| a      | -      | slope: P(class k) is proportional to exp(a F_k)                                  |

The logistic loss has probabilities of its own, 1 / (1 + exp(-f)); with more than two classes they are divided by their
sum. Margins of the other losses are no log odds, nor are those that Newton learners and FORKS clip: with the default
bound of 1 the logistic loss's own would lie between 0.27 and 0.73. A slope is fitted to these by maximum likelihood, on
the predictions of the last thousand rows, made before learning them (temperature scaling, Guo et al. 2017). With one
slope for all classes and no offset, the most probable class is the predicted one.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from bkbopt._support.state_forms import Floats, Form, Ints
from bkbopt.learners.numerics.losses import Array, Indices

__all__ = ["Recent", "logistic", "softmax"]

#: Rows to which the slope is fitted.
RECENT = 1000
#: Newton steps of the slope's logarithm, the bound of this, and the step that ends them, whose square is a rounding.
_STEPS = 60
_LARGEST = 20.0 * math.log(2.0)
_NEAR = 1e-8


class Recent:
    """Predicted margins of the last rows, and the numbers of their classes."""

    def __init__(self) -> None:
        self._F, self._k, self._n = np.zeros((RECENT, 1)), np.zeros(RECENT, dtype=np.int64), 0
        #: The slope, once it has been fitted to these rows.
        self._slope: float | None = None

    def add(self, raw: Array, codes: npt.NDArray[Any]) -> None:
        """Add the predictions `raw`, `(n,)` of two classes or `(n, K)`, of rows of these classes `(n,)`."""
        self._slope = None
        columns = 1 if raw.ndim == 1 else raw.shape[1]
        if columns != self._F.shape[1]:
            self._F, self._n = np.zeros((RECENT, columns)), 0
        start, n = self._n % RECENT, len(raw)
        if n == 1 and columns == 1:
            self._F[start, 0], self._k[start] = raw[0], codes[0]
        else:
            raw, codes = raw[-RECENT:].reshape(-1, columns), codes[-RECENT:]
            # Rows before the first one of a class have no margin for it.
            begun = len(raw) - int(np.argmin(np.append(np.isfinite(raw[::-1]).all(1), False)))
            raw, codes = raw[begun:], codes[begun:]
            n = len(raw)
            here = min(n, RECENT - start)
            self._F[start : start + here], self._k[start : start + here] = raw[:here], codes[:here]
            self._F[: n - here], self._k[: n - here] = raw[here:], codes[here:]
        # Only the position in the ring, and whether it is full, matter, so the count stays small.
        self._n = start + n if self._n < RECENT else RECENT + (start + n) % RECENT

    @property
    def rows(self) -> tuple[Array, Indices]:
        """F and k, from the oldest row on."""
        order = (np.arange(self._n - min(self._n, RECENT), self._n)) % RECENT
        return self._F[order], self._k[order]

    def slope(self) -> float:
        """a of the module's table; 1 before there are rows."""
        if self._slope is None:
            F, k = self.rows
            F = np.column_stack([np.zeros(len(F)), F[:, 0]]) if F.shape[1] == 1 else F
            self._slope = _fitted_slope(F, k) if len(F) else 1.0
        return self._slope

    def state_dict(self) -> dict[str, object]:
        """For a state file."""
        F, k = self.rows
        return {"F": F, "k": k}

    @staticmethod
    def form(classes: int) -> Form:
        """The form of `state_dict` for a learner with this number of classes."""
        columns = 1 if classes <= 2 else classes
        return Form({"F": Floats(("recent", columns)), "k": Ints(("recent",), max(classes, 1))}, {"recent": RECENT})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of `state_dict`, for a new one."""
        self.add(state["F"] if state["F"].shape[1] > 1 else state["F"][:, 0], state["k"])


def _fitted_slope(F: Array, k: Indices) -> float:
    """The a > 0 with the greatest likelihood; the true class has weight (n + 1) / (n + K), the others share the rest.

    As with Platt (1999), that keeps a finite if all predictions were right.
    """
    n, K = F.shape
    size = float(np.abs(F).max())
    if size == 0.0:
        return 1.0
    F = np.ascontiguousarray(((F - F.max(1, keepdims=True)) / size).T)
    others = 1.0 / (n + K)
    aim = others * float(F.sum()) + ((n + 1.0) / (n + K) - others) * float(F[k, np.arange(n)].sum())
    # The derivative of the likelihood falls in a, so its zero is between two powers of two.
    low, high = -_LARGEST, _LARGEST
    if _derivatives(F, aim, low)[0] <= 0.0:
        return math.exp(low) / size
    u = 0.0
    for _ in range(_STEPS):
        first, second = _derivatives(F, aim, u)
        low, high = (u, high) if first > 0.0 else (low, u)
        old, u = u, u - first / second if second < 0.0 else high
        if not low < u < high:
            u = 0.5 * (low + high)
        if abs(u - old) < _NEAR:
            break
    return math.exp(u) / size


def _derivatives(F: Array, aim: float, u: float) -> tuple[float, float]:
    """The derivative in a of the likelihood at a = exp(u), for margins `F (K, n)`, and that derivative's own in u."""
    a = math.exp(u)
    P = np.exp(a * F)
    P /= P.sum(0)
    Q = P * F
    means = Q.sum(0)
    return aim - float(means.sum()), -a * (float((Q * F).sum()) - float(means @ means))


def softmax(F: Array, a: float) -> Array:
    """Probabilities `(n, K)` in proportion to exp(a F); zero for margins of minus infinity."""
    P = np.exp(a * (F - F.max(1, keepdims=True)))
    return P / P.sum(1, keepdims=True)


def logistic(F: Array) -> Array:
    """1 / (1 + exp(-F)) `(n, K)` over their sums."""
    P = np.exp(-np.logaddexp(0.0, -F))
    return P / P.sum(1, keepdims=True)
