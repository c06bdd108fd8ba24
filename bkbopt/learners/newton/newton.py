"""The base of the online Newton learners in the kernel's space: parameters, weights of slopes, clipped predictions."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from bkbopt._support.checks import check_number
from bkbopt._support.compiled import compiled
from bkbopt.errors import ArgumentError
from bkbopt.learners.base import OnlineLearner
from bkbopt.learners.core.algorithm import in_blocks
from bkbopt.learners.core.hypothesis import Hypothesis
from bkbopt.learners.numerics.losses import Array

__all__ = ["NewtonLearner", "Rule", "step_weight"]

LARGEST_BOUND = 1e100
#: The default weights of losses that are not quadratic are at most this over sqrt t times those of the first rounds.
FALL = 20.0
_BLOCK = 256


class Rule(NamedTuple):
    """Loss and constants of online Newton steps, for compiled loops.

    `loss` is its code, `curvature` its sigma at C. The weight of squared slopes is `eta`, or in late rounds `fall` /
    sqrt t, if that is smaller; where both are infinite it is the loss's own second derivative.
    """

    loss: int
    C: float
    alpha: float
    eta: float
    fall: float
    curvature: float


@compiled
def step_weight(rule: Rule, t: int) -> float:
    """The weight eta of the squared slope in round t = 1, 2, ..., for `growth`."""
    return min(rule.eta, rule.fall / math.sqrt(t))


@dataclass(kw_only=True, eq=False)
class NewtonLearner(OnlineLearner):
    """Base class: the iterate is an expansion in the kernel, and predictions are its values clipped to [-C, C].

    Args:
        loss: "squared", "absolute" (regression), "logistic", "hinge" or "squared_hinge" (labels).
        clip: C, the bound of predictions; for regression in standard deviations of the targets with `scale=True`,
            otherwise in their units. None is 4 for labels, and no bound for regression.
        alpha: ridge A_0 = alpha I.
        curvature: eta, the weight of squared slopes in A. "auto" is the second derivative, eta_t g_t^2 = l'' = 2, for
            losses that are quadratic within [-C, C]: "squared", and "squared_hinge" where C <= 1. There the lower bound
            of the loss on which the regret bound rests is an equality. For other losses "auto" is 1/4 with labels and
            1/2 with numbers, after 400 rows 20 / sqrt t times these, whose bound of the regret is of order sqrt t.
            None is the papers' weight: the loss's curvature constant at C, with a bound of order log t, or for a loss
            without curvature 1 / (L C sqrt t); for regression it needs `clip`.
        kernel, lengthscale, scale: see `OnlineLearner`.
    """

    loss: str = "squared_hinge"
    clip: float | None = None
    alpha: float = 1.0
    curvature: float | Literal["auto"] | None = "auto"
    _PAPER: ClassVar[dict[str, Any]] = {"clip": 1.0, "curvature": None}
    _CLIPS: ClassVar[bool] = True

    def _check(self, d: int) -> None:
        self._C = self._bound_of_predictions()
        self._alpha = check_number("alpha", self.alpha, 0.0, "a positive finite ridge", strict=True)
        sigma, fall = self._loss.curvature(self._C), math.inf
        if isinstance(self.curvature, str):
            if self.curvature != "auto":
                raise ArgumentError(f'curvature: expected a positive weight, "auto" or None, got {self.curvature!r}.')
            eta = self._loss.slope_weight(self._C)
            sigma, fall = (eta if eta == math.inf else sigma), FALL * eta
        elif self.curvature is not None:
            eta = check_number("curvature", self.curvature, 0.0, "a positive finite weight, or None", strict=True)
        else:
            eta = self._loss.step_weight(self._C, 1)
            fall = math.inf if sigma > 0.0 else eta
        self._rule = Rule(self._loss.code, self._C, self._alpha, eta, fall, sigma)

    def _bound_of_predictions(self) -> float:
        """C in the learner's units; infinite where predictions are not clipped."""
        if self.clip is not None:
            C = check_number("clip", self.clip, 0.0, "a positive finite bound on predictions, or None", strict=True)
            if 1.0 / LARGEST_BOUND <= C <= LARGEST_BOUND:
                return C
            raise ArgumentError(
                f"clip: expected a bound from 1e-100 to 1e100, whose square is a number, got {self.clip!r}."
            )
        if self.curvature is None and not self._classifies:
            raise ArgumentError(
                f"clip: expected a bound on predictions, since the weight of slopes that curvature=None stands for "
                f"depends on it for loss={self.loss!r}, got None."
            )
        return self._loss.bound

    @abstractmethod
    def _expansion(self) -> tuple[Array, Array]:
        """Points `(n, d)` and weights `(n,)` of the iterate, which may be views."""

    def hypothesis(self) -> Hypothesis:
        """The iterate before its predictions are clipped."""
        points, weights = self._expansion()
        return Hypothesis(points.copy(), weights.copy())

    def _raw(self, X: Array) -> Array:
        points, weights = self._expansion()
        values = in_blocks(lambda rows: self._gram(rows, points) @ weights, _BLOCK, X)
        return np.clip(values, -self._C, self._C)
