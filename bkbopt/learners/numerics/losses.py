"""Losses of one prediction, with the constants that online Newton methods need.

| symbol   | meaning                                                                                              |
| -------- | ---------------------------------------------------------------------------------------------------- |
| y        | target; for margin losses one of -1, +1                                                              |
| p        | prediction, m = y p the margin                                                                       |
| C        | bound on abs(p), and on abs(y) for regression                                                        |
| slope    | the derivative of the loss in p (a subgradient at a kink)                                            |
| sigma    | directional curvature: l(b) >= l(a) + l'(a)(b - a) + (sigma/2) (l'(a)(b - a))^2 for abs(a), abs(b) <= C |

Calandriello et al. 2017 (KONS), Assumption 2. Hinge and absolute loss are piecewise linear: their sigma is zero, and
their regret is not logarithmic.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import compiled
from bkbopt.errors import ArgumentError

__all__ = ["LOSSES", "Array", "Indices", "Loss", "get_loss", "growth", "loss_slope"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Task = Literal["classification", "regression"]
_Pointwise = Callable[[Array, Array], Array]
_Constant = Callable[[float], float]

#: Codes of the losses in compiled loops.
SQUARED, LOGISTIC, HINGE, SQUARED_HINGE, ABSOLUTE = range(5)
#: Default weights of squared slopes, and bound of predictions of labels: see docs/design/learners.md.
OF_LABELS, OF_NUMBERS, MARGIN = 0.25, 0.5, 4.0


@dataclass(frozen=True)
class Loss:
    """A loss with its constants.

    Args:
        name: what users write, `loss="squared_hinge"` say.
        task: whether targets are labels or numbers.
        code: the number that identifies it in compiled loops (see `loss_slope`).
        value: (y, p) -> the loss, elementwise, arrays of one shape.
        slope: (y, p) -> its derivative in p, elementwise.
        lipschitz: C -> the largest absolute slope for abs(p) <= C.
        curvature: C -> sigma of the module's table, 0.0 where there is none.
        weight: default weight of squared slopes in Newton steps, where the loss is not quadratic.
    """

    name: str
    task: Task
    code: int
    value: _Pointwise
    slope: _Pointwise
    lipschitz: _Constant
    curvature: _Constant
    weight: float = OF_LABELS

    @property
    def bound(self) -> float:
        """The default bound C of predictions of Newton learners: none for numbers."""
        return MARGIN if self.task == "classification" else math.inf

    def slope_weight(self, C: float) -> float:
        """The default eta of Newton steps for `growth`: infinite, for the second derivative, where that is exact.

        That is where l(b) = l(a) + l'(a)(b - a) + (b - a)^2 for abs(a), abs(b) <= C and l'(a) not zero.
        """
        is_quadratic = self.name == "squared" or (self.name == "squared_hinge" and C <= 1.0)
        return math.inf if is_quadratic else self.weight

    def step_weight(self, C: float, t: int) -> float:
        """eta_t of online Newton steps: sigma, or 1/(L C sqrt t) where sigma is zero (t = 1, 2, ...)."""
        sigma = self.curvature(C)
        return sigma if sigma > 0.0 else 1.0 / (self.lipschitz(C) * C * math.sqrt(t))


def _squared(y: Array, p: Array) -> Array:
    return (y - p) ** 2


def _squared_slope(y: Array, p: Array) -> Array:
    return 2.0 * (p - y)


def _logistic(y: Array, p: Array) -> Array:
    return np.logaddexp(0.0, -y * p)


def _logistic_slope(y: Array, p: Array) -> Array:
    # 1/(1 + e^m) without overflow.
    return -y * np.exp(-np.logaddexp(0.0, y * p))


def _hinge(y: Array, p: Array) -> Array:
    return np.maximum(0.0, 1.0 - y * p)


def _hinge_slope(y: Array, p: Array) -> Array:
    return np.where(y * p < 1.0, -y, 0.0)


def _squared_hinge(y: Array, p: Array) -> Array:
    return np.maximum(0.0, 1.0 - y * p) ** 2


def _squared_hinge_slope(y: Array, p: Array) -> Array:
    return -2.0 * y * np.maximum(0.0, 1.0 - y * p)


def _absolute(y: Array, p: Array) -> Array:
    return np.abs(y - p)


def _absolute_slope(y: Array, p: Array) -> Array:
    return np.sign(p - y)


def _one(_: float) -> float:
    return 1.0


def _zero(_: float) -> float:
    return 0.0


def _squared_lipschitz(C: float) -> float:
    return 4.0 * C


def _squared_curvature(C: float) -> float:
    return 1.0 / (8.0 * C * C)


def _squared_hinge_lipschitz(C: float) -> float:
    return 2.0 * (1.0 + C)


def _squared_hinge_curvature(C: float) -> float:
    if C <= 1.0:
        return 1.0 / (2.0 * (1.0 + C) ** 2)
    # Beyond the margin the loss is flat, which lowers the curvature.
    return (3.0 * C - 1.0) / (8.0 * C * C * (1.0 + C))


def _logistic_curvature(C: float) -> float:
    # Attained locally at m = -C; exponentially small, so keep C below about 5.
    return math.exp(-C)


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss("squared", "regression", SQUARED, _squared, _squared_slope, _squared_lipschitz, _squared_curvature),
        Loss("logistic", "classification", LOGISTIC, _logistic, _logistic_slope, _one, _logistic_curvature),
        Loss("hinge", "classification", HINGE, _hinge, _hinge_slope, _one, _zero),
        Loss(
            "squared_hinge",
            "classification",
            SQUARED_HINGE,
            _squared_hinge,
            _squared_hinge_slope,
            _squared_hinge_lipschitz,
            _squared_hinge_curvature,
        ),
        Loss("absolute", "regression", ABSOLUTE, _absolute, _absolute_slope, _one, _zero, OF_NUMBERS),
    )
}
"""The losses by name."""


def get_loss(name: object) -> Loss:
    """The loss called `name`.

    Raises:
        ArgumentError: there is none.

    Example:
        >>> from bkbopt.learners import get_loss
        >>> loss = get_loss("squared")
        >>> loss.value(1.0, 0.5), loss.slope(1.0, 0.5), loss.lipschitz(1.0)
        (0.25, -1.0, 4.0)
    """
    loss = LOSSES.get(name) if isinstance(name, str) else None
    if loss is None:
        raise ArgumentError(f"loss: expected one of {', '.join(LOSSES)}, got {name!r}.")
    return loss


@compiled
def loss_slope(code: int, y: float, p: float) -> float:
    """The derivative in the prediction `p` of the loss with this code, for the target `y`, in compiled loops."""
    if code == SQUARED:
        return 2.0 * (p - y)
    if code == LOGISTIC:
        m = y * p
        if m > 0.0:
            e = math.exp(-m)
            return -y * e / (1.0 + e)
        return -y / (1.0 + math.exp(m))
    if code == HINGE:
        return -y if y * p < 1.0 else 0.0
    if code == SQUARED_HINGE:
        return -2.0 * y * max(0.0, 1.0 - y * p)
    # ABSOLUTE
    if p > y:
        return 1.0
    return -1.0 if p < y else 0.0


@compiled
def growth(eta: float, g: float) -> float:
    """The growth of A along phi in an online Newton step: eta g^2, or l'' = 2 if eta is infinite and g is not 0."""
    if g == 0.0:
        return 0.0
    return 2.0 if eta == math.inf else eta * g * g
