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
#: C of regressions that need a bound, in standard deviations of the targets.
DEVIATIONS = 3.0
_BLOCK = 256


class Rule(NamedTuple):
    """Loss and constants of online Newton steps, for compiled loops.

    `loss` is its code, `lipschitz` its L at C, `curvature` its sigma at C. `eta` is the weight of squared slopes if
    that is constant, 0 if it falls with the rounds, and infinity for the loss's own second derivative.
    """

    loss: int
    C: float
    alpha: float
    eta: float
    curvature: float
    lipschitz: float


@compiled
def step_weight(rule: Rule, t: int) -> float:
    """The weight eta of the squared slope in round t = 1, 2, ..., for `growth`."""
    return rule.eta if rule.eta > 0.0 else 1.0 / (rule.lipschitz * rule.C * math.sqrt(t))


@dataclass(kw_only=True, eq=False)
class NewtonLearner(OnlineLearner):
    """Base class: the iterate is an expansion in the kernel, and predictions are its values clipped to [-C, C].

    Args:
        loss: "squared", "absolute" (regression), "logistic", "hinge" or "squared_hinge" (labels).
        clip: C, the bound of predictions; for regression in standard deviations of the targets with `scale=True`,
            otherwise in their units. None is 1 for labels. For regression it is no bound where the curvature is "exact"
            and the loss "squared", which need none, and 3 otherwise, with `scale=True` only.
        alpha: ridge A_0 = alpha I.
        curvature: eta, the weight of squared slopes in A. None, as in the papers, is the loss's curvature constant at
            C, or for a loss without curvature 1 / (L C sqrt t). "exact" differs for losses that are quadratic within
            [-C, C]: "squared", and "squared_hinge" where C <= 1. There eta_t g_t^2 = l'' = 2, the second derivative,
            so that the lower bound of the loss on which the regret bound rests is an equality.
        kernel, lengthscale, scale: see `OnlineLearner`.
    """

    loss: str = "squared_hinge"
    clip: float | None = None
    alpha: float = 1.0
    curvature: float | Literal["exact"] | None = "exact"
    _PAPER: ClassVar[dict[str, Any]] = {"clip": 1.0, "curvature": None}
    _CLIPS: ClassVar[bool] = True

    def _check(self, d: int) -> None:
        self._C = self._bound_of_predictions()
        self._alpha = check_number("alpha", self.alpha, 0.0, "a positive finite ridge", strict=True)
        sigma = self._loss.curvature(self._C)
        eta = sigma
        if isinstance(self.curvature, str):
            if self.curvature != "exact":
                raise ArgumentError(f'curvature: expected a positive weight, "exact" or None, got {self.curvature!r}.')
            if self._loss.quadratic(self._C):
                eta = sigma = math.inf
        elif self.curvature is not None:
            eta = check_number("curvature", self.curvature, 0.0, "a positive finite weight, or None", strict=True)
        self._rule = Rule(self._loss.code, self._C, self._alpha, eta, sigma, self._loss.lipschitz(self._C))

    def _bound_of_predictions(self) -> float:
        """C in the learner's units; infinite where predictions are not clipped."""
        if self.clip is not None:
            C = check_number("clip", self.clip, 0.0, "a positive finite bound on predictions, or None", strict=True)
            if 1.0 / LARGEST_BOUND <= C <= LARGEST_BOUND:
                return C
            raise ArgumentError(
                f"clip: expected a bound from 1e-100 to 1e100, whose square is a number, got {self.clip!r}."
            )
        if self._classifies:
            return 1.0
        if self._loss.name == "squared" and self.curvature == "exact":
            return math.inf
        if self.scale:
            return DEVIATIONS
        raise ArgumentError(
            f"clip: expected a bound on predictions in units of the targets, since loss={self.loss!r} with "
            f"curvature={self.curvature!r} needs one and scale=False leaves targets as they are, got None."
        )

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
