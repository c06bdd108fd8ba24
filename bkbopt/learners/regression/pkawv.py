"""PKAWV: ridge regression and its forward variant on projections of the kernel's space (Jezequel et al. 2019).

| symbol | shape  | units     | meaning                                                               |
| ------ | ------ | --------- | --------------------------------------------------------------------- |
| Z      | (n, r) | y         | features of the rows: Taylor, Nystrom on a fixed or a growing set     |
| S      | (m, d) | as X      | inducing points                                                       |
| W      | (m, r) | 1/y       | root with W^T k(S, S) W = I, z(x) = W^T k_S(x)                        |

Features that are known beforehand make the whole stream one regression, learnt in blocks by matrix products. With KORS
the set of inducing points grows: a new point adds one direction to the features, orthogonal to the others, which do not
change. The new column for all earlier rows, needed by the second algorithm of the paper, is computed from the rows,
which are stored.
"""

import copy
import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from bkbopt._support.checks import check_count, check_flag, check_number, check_size
from bkbopt._support.state_forms import Form, Number, Part
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.learners.base import OnlineLearner
from bkbopt.learners.core.algorithm import in_blocks
from bkbopt.learners.core.hypothesis import Hypothesis
from bkbopt.learners.core.rows import as_rows
from bkbopt.learners.features.taylor import Taylor
from bkbopt.learners.numerics.gram import Gram, GramKernel
from bkbopt.learners.numerics.kors import KORS
from bkbopt.learners.numerics.losses import Array
from bkbopt.learners.numerics.nystrom import GrowingNystrom
from bkbopt.learners.numerics.ridge import Ridge, one_thread
from bkbopt.posterior.features.base import FeatureMap
from bkbopt.posterior.features.nystrom import Nystrom

__all__ = ["PKAWV"]

_BLOCK = 256


@dataclass(kw_only=True, eq=False)
class PKAWV(OnlineLearner):
    """The forward forecaster on projected features: Kernel-AWV's guarantee at a cost a row that does not grow.

    O(r^2) time a row for r features. With the exact features of all rows it predicts as `KernelAWV`. With "nystrom" a
    row that KORS would accept is an inducing point before it is predicted (Algorithm 2): `predict_one` and
    `progressive` predict it so, `predict` does not.

    Args:
        lam: ridge, y squared over the squared norm of f.
        features: "nystrom", with inducing points that KORS selects during the stream; "taylor", which is faster and
            keeps no rows, but less accurate, and for at most thirty columns or so; an array `(m, d)` of inducing
            points, for example from `bkbopt.learners.numerics.kors.draw_kors`; or a `FeatureMap`.
        degree: M of the Taylor features; their number is (M + d) choose d.
        forward: whether predictions are the forward ones; if not, those of ridge regression.
        kors_ridge: mu, y squared; the smaller, the more inducing points.
        oversampling: beta of KORS.
        eps: accuracy of KORS.
        max_features: Taylor bases with more features are refused; KORS stops at this number of inducing points.
        seed: of KORS.
        kernel, lengthscale, scale: see `OnlineLearner`. Taylor features are for the Gaussian only.

    Attributes:
        regret_: sum of squared errors so far, less the least value of sum_s (y_s - z_s.w)^2 + lam |w|^2 over all w.
        regret_bound_: with the forward forecaster on features that do not grow, an upper bound of `regret_`:
            max y^2 log det(I + Z^T Z / lam).

    Example:
        >>> import numpy as np
        >>> from bkbopt.learners import PKAWV
        >>> X = np.random.default_rng(0).random((200, 1))
        >>> y = np.sin(3.0 * X[:, 0])
        >>> learner = PKAWV(lengthscale=0.3, lam=0.01, kors_ridge=0.01).partial_fit(X, y)
        >>> round(float(learner.predict([[0.5]])[0]), 1)
        1.0
    """

    lam: float = 1.0
    features: Any = "nystrom"
    degree: int = 2
    forward: bool = True
    kors_ridge: float = 1.0
    oversampling: float = 1.0
    eps: float = 0.5
    max_features: int = 500
    seed: int | None = 0

    _PAPER: ClassVar[dict[str, Any]] = {"features": "taylor", "max_features": 10_000}

    def _check(self, d: int) -> None:
        self._lam = check_number("lam", self.lam, 0.0, "a positive finite ridge", strict=True)
        limit = check_size("max_features", self.max_features)
        self._map: FeatureMap | None = None
        self._growing: GrowingNystrom | None = None
        self._forward = check_flag("forward", self.forward)
        if isinstance(self.features, str) and self.features == "nystrom":
            what = "a positive finite ridge of KORS (y squared)"
            ridge = check_number("kors_ridge", self.kors_ridge, 0.0, what, strict=True)
            kors = KORS(ridge, self.oversampling, self.eps, limit)
            self._growing = GrowingNystrom(self._gram, d, kors)
        else:
            self._map = _feature_map(self, self._gram, self._lengthscale, d, limit)

    def _start(self, d: int) -> None:
        self._square, self._largest = 0.0, 0.0
        self._ridge = Ridge(self._lam, 0 if self._map is None else self._map.size)

    @property
    def dictionary_size_(self) -> int:
        """Number of features r; with KORS, of inducing points."""
        return self._ridge.r if self._growing is None else self._growing.kors.m

    @property
    def logdet_(self) -> float:
        """log det(I + Z^T Z / lam)."""
        return self._ridge.logdet

    @property
    def regularised_minimum_(self) -> float:
        """The least value of sum_s (y_s - z_s.w)^2 + lam |w|^2 over all w, y squared."""
        return self._ridge.minimum

    @property
    def regret_(self) -> float:
        """See the class."""
        return self._square - self._ridge.minimum

    @property
    def regret_bound_(self) -> float:
        """See the class; infinite where it does not hold."""
        holds = self._forward and self._growing is None
        return self._largest**2 * self._ridge.logdet if holds else float("inf")

    def _stream(self, X: Array, y: Array) -> Array:
        with one_thread(len(X), self._ridge.r):
            if (growing := self._growing) is not None:
                uniforms = self._rng.random(len(X))
                learn = functools.partial(growing.learn, ridge=self._ridge, forward=self._forward)
                out = in_blocks(learn, _BLOCK, X, y, uniforms)
            else:  # with as many rows as features, the rows and a new factor cost about the same
                out = in_blocks(self._block, min(max(self._ridge.r, 128), 512), X, y)
        self._square += float(np.sum((out - y) ** 2))
        self._largest = max(self._largest, float(np.abs(y).max()))
        return out

    def _block(self, X: Array, y: Array) -> Array:
        return self._ridge.learn(self._features(X), y, forward=self._forward)

    def hypothesis(self) -> Hypothesis:
        """The function of ridge regression, which forward predictions shrink; with inducing points only."""
        if self._growing is not None:
            return Hypothesis(self._growing.S.rows.copy(), self._growing.W @ self._ridge.w)
        if isinstance(self._map, Nystrom) and isinstance(self._map.kernel, GramKernel):
            return Hypothesis(self._map.S.numpy().copy(), self._map.W.numpy() @ self._ridge.w)
        return super().hypothesis()

    def _runs_user_code(self) -> bool:
        return super()._runs_user_code() or isinstance(self.features, FeatureMap)

    def _features(self, X: Array) -> Array:
        if self._growing is not None:
            return self._growing.features(X)
        assert self._map is not None
        with torch.no_grad():
            Z = self._map(torch.from_numpy(X)).numpy()
        if Z.shape != (len(X), self._map.size) or not np.isfinite(Z.sum()):
            raise ArgumentError(
                f"features: expected finite features of shape {(len(X), self._map.size)} for {len(X)} rows, got shape "
                f"{Z.shape}, or NaN or infinity among them; check the map."
            )
        return Z

    def _raw(self, X: Array) -> Array:
        return in_blocks(self._raw_block, _BLOCK, X)

    def _raw_block(self, X: Array) -> Array:
        Z = self._features(X)
        p = Z @ self._ridge.w
        return p / (1.0 + self._ridge.leverage(Z)) if self._forward else p

    def _next(self, X: Array) -> Array:
        growing = self._growing
        if growing is None or not growing.would_accept(X, copy.deepcopy(self._rng).random(1)):
            return self._raw(X)
        # The row would become an inducing point first. Few rows do.
        return self._copy()._stream(X, np.zeros(1))

    def _state(self) -> dict[str, object]:
        growing = None if self._growing is None else self._growing.state_dict()
        return {
            "ridge": self._ridge.state_dict(),
            "growing": growing,
            "square": self._square,
            "largest": self._largest,
        }

    def _form(self) -> Form:
        sums: dict[str, Part] = {"square": Number(0.0), "largest": Number(0.0)}
        if self._growing is not None:
            return Form({"ridge": Ridge(self._lam).form(), "growing": self._growing.form(), **sums})
        assert self._map is not None
        r = self._map.size
        return Form({"ridge": Ridge(self._lam).form(), "growing": None, **sums}, {"r": r}, {"r": r})

    def _restore(self, state: dict[str, Any]) -> None:
        self._ridge.load_state_dict(state["ridge"])
        if self._growing is not None:
            self._growing.load_state_dict(state["growing"])
        self._square, self._largest = state["square"], state["largest"]


def _feature_map(learner: PKAWV, kernel: Gram, lengthscale: float, d: int, limit: int) -> FeatureMap:
    """The map given by `features`, if it does not grow."""
    features = learner.features
    if isinstance(features, str):
        if features != "taylor":
            raise ArgumentError(
                f"features: expected 'nystrom', 'taylor', inducing points or a FeatureMap, got {features!r}."
            )
        if learner.kernel is not None:
            raise ArgumentError(
                "features: expected 'nystrom' or inducing points with a kernel of yours, got 'taylor', which is for "
                "the Gaussian (kernel=None)."
            )
        # The Gaussian was made with it, which has checked it.
        return Taylor(d, check_count("degree", learner.degree, 0), lengthscale, limit)
    if isinstance(features, FeatureMap):
        return _checked_map(features, d)
    if features is None:
        raise ArgumentTypeError("features: expected 'nystrom', 'taylor', inducing points or a FeatureMap, got None.")
    return Nystrom.from_points(GramKernel(kernel), torch.from_numpy(as_rows(features, None, d, "features")))


def _checked_map(features: FeatureMap, d: int) -> FeatureMap:
    """The user's map, if it accepts rows of `d` features.

    Raises:
        ArgumentError: it does not.
    """
    try:
        with torch.no_grad():
            features(torch.zeros(1, d, dtype=torch.float64))
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"features: expected a map of rows with {d} features, got one that fails: {error}"
        ) from error
    return features
