"""Learners in two stages: gradient descent up to B terms, then a linear learner on features of these terms.

| symbol    | shape  | units | meaning                                                                  |
| --------- | ------ | ----- | ------------------------------------------------------------------------ |
| landmarks | (m, d) | as X  | points of the first stage, kept in the learner's `Support`               |
| M         | (k, m) | 1/y   | z(x) = M k(landmarks, x)                                                 |
| w         | (k,)   | y     | f(x) = w.z(x), an expansion with weights M^T w                           |
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from bkbopt._support.checks import check_number, check_size
from bkbopt._support.state_forms import Count, Floats, Form, Maybe
from bkbopt.errors import ArgumentError, NotReadyError
from bkbopt.learners.core.hypothesis import Hypothesis
from bkbopt.learners.expansions.descent import kogd
from bkbopt.learners.expansions.expansion import ExpansionLearner, check_step, some_terms
from bkbopt.learners.features.sketched import SketchedFeatures
from bkbopt.learners.numerics._loops_kernel import Block
from bkbopt.learners.numerics.losses import Array, Indices
from bkbopt.learners.on_features._loops_features import landmark_predictions

__all__ = ["TwoStageLearner"]


@dataclass(kw_only=True, eq=False)
class TwoStageLearner(ExpansionLearner):
    """Base class: the first stage, the switch, and features of landmarks.

    Args:
        loss: "hinge", "squared_hinge", "logistic", "squared" or "absolute".
        budget: B.
        rank: number of features k, or below 1 a fraction of B; the papers have B/10.
        step: the learning rate of gradient descent, positive.
        kernel, lengthscale, scale: see `OnlineLearner`.

    Attributes:
        switched_at_: number of rows learnt in the first stage; None during that stage.
        dictionary_size_, support_, weights_: the terms of the first stage, then the landmarks (see `ExpansionLearner`).
    """

    loss: str = "hinge"
    budget: int = 100
    rank: float = 0.5
    step: float = 0.2
    _PAPER: ClassVar[dict[str, Any]] = {"rank": 0.1}

    def _check(self, d: int) -> None:
        self._budget = check_size("budget", self.budget)
        self._step = check_step(self.step)
        rank = check_number("rank", self.rank, 0.0, "a number of features, or a part of the budget", strict=True)
        # The product may be a rounding below a whole number.
        self._k = max(1, int(rank * self._budget + 1e-9)) if rank < 1.0 else check_size("rank", rank)
        if self._k > self._max_features():
            raise ArgumentError(f"rank: expected at most {self._max_features()} features, got {self._k}.")

    def _max_features(self) -> int:
        """The largest number k of features."""
        return self._max_terms()

    def _max_terms(self) -> int:
        return self._budget

    def _start(self, d: int) -> None:
        super()._start(d)
        self._M: Array = np.empty((0, 0))
        self._w: Array = np.empty(0)
        self.switched_at_: int | None = None

    @abstractmethod
    def _switch(self, points: Array, a: Array) -> Indices:
        """Set `_M` and `_w` from the first stage's terms, `points (B, d)` with weights `a (B,)`.

        Returns which of the points are the landmarks, positions `(m,)`.
        """

    @abstractmethod
    def _second_stage(self, block: Block, start: int, p: Array) -> None:
        """Learn the rows from `start` on."""

    def _rounds(self, block: Block, p: Array) -> None:
        t = self._first_stage(block, p) if self.switched_at_ is None else 0
        if t < len(block.X):
            self._second_stage(block, t, p)

    def _first_stage(self, block: Block, p: Array) -> int:
        """Learn rows until the block ends or all terms are there; return the next row."""
        t, loss = 0, self._loss.code
        while True:
            t = kogd(block, self._support, self._t, t, len(self._support.weights), loss, self._step, 0.0, 0, p)
            if self.dictionary_size_ == self._max_terms():
                chosen = self._switch(self._scaled_points(), self._weights())
                self._keep_landmarks(chosen)
                self.switched_at_ = self._t + t
                return t
            if t == len(block.X):
                return t
            self._grow()

    def _may_fail(self, n: int) -> bool:
        # The switch factors matrices, which fails if numbers overflow floating point.
        return super()._may_fail(n) or (self.switched_at_ is None and self.dictionary_size_ + n >= self._max_terms())

    def _keep_landmarks(self, chosen: Indices) -> None:
        """Keep these terms of the support as landmarks."""
        self._support = some_terms(self._support, chosen, len(chosen))

    def _bound(self) -> float:
        """Predictions of the second stage are clipped to [-bound, bound]."""
        return np.inf

    def _raw_block(self, X: Array) -> Array:
        if self.switched_at_ is None:
            return super()._raw_block(X)
        p = np.empty(len(X))
        landmark_predictions(self._as_block(X, p), self._support, self._M, self._w, self._bound(), p)
        return p

    def _weights(self) -> Array:
        return super()._weights() if self.switched_at_ is None else self._M.T @ self._w

    def hypothesis(self) -> Hypothesis:
        """See `ExpansionLearner`."""
        basis = None if self.switched_at_ is None else self._M.T.copy()
        return Hypothesis(self._scaled_points().copy(), self._weights(), basis)

    @property
    def feature_map_(self) -> SketchedFeatures:
        """The second stage's features as a `FeatureMap`.

        Raises:
            NotReadyError: the learner is in its first stage.
        """
        if getattr(self, "switched_at_", None) is None:
            raise NotReadyError(
                "feature_map_: expected a learner in its second stage, got one in its first; learn more."
            )
        return SketchedFeatures(
            self._gram.kernel, torch.from_numpy(self._scaled_points()), torch.from_numpy(self._M.T.copy())
        )

    def _state(self) -> dict[str, object]:
        return {**super()._state(), "second": None if self.switched_at_ is None else self._second_stage_state()}

    def _second_stage_state(self) -> dict[str, object]:
        """The state of the second stage."""
        return {"M": self._M.copy(), "w": self._w.copy(), "switched_at": self.switched_at_}

    def _form(self) -> Form:
        return super()._form().extended({"second": Maybe(self._second_stage_form())})

    def _second_stage_form(self) -> Form:
        """The form of `_second_stage_state`; "n" is the number of landmarks."""
        parts = {"M": Floats(("k", "n")), "w": Floats(("k",)), "switched_at": Count(1, "t")}
        return Form(parts, {"k": self._k})

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        if state["second"] is not None:
            self._restore_second_stage(state["second"])
            self._keep_landmarks(np.arange(self._M.shape[1]))

    def _restore_second_stage(self, second: dict[str, Any]) -> None:
        """The inverse of `_second_stage_state`."""
        self._M, self._w, self.switched_at_ = second["M"], second["w"], second["switched_at"]
