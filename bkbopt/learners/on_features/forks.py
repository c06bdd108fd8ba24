"""FORKS and SkeGD: linear learners on features from sketches of the kernel matrix, which grow with the stream.

| symbol  | shape    | units | meaning                                                                        |
| ------- | -------- | ----- | ------------------------------------------------------------------------------ |
| points  | (t, d)   | as X  | all points in the sketches: those of the first stage, and one for each refresh |
| E, e    | k        | -,y^2 | leading eigenpairs of the sketch Phi_pp (see `features/sketched.py`)  |
| inverse | (k, k)   | -     | A^-1 of the online Newton steps                                                |
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from bkbopt._support.checks import check_number, check_size
from bkbopt._support.state_forms import Count, Floats, Form
from bkbopt.errors import ArgumentError
from bkbopt.learners.expansions.expansion import rows_of
from bkbopt.learners.features.sketched import Eigenpairs, Sketches, sketch_map
from bkbopt.learners.numerics._loops_kernel import Block
from bkbopt.learners.numerics.growing import finite
from bkbopt.learners.numerics.losses import Array, Indices
from bkbopt.learners.on_features._loops_features import landmark_descent, landmark_newton
from bkbopt.learners.on_features.stages import TwoStageLearner

__all__ = ["FORKS", "SkeGD"]

DECOMPOSITIONS = ("eigen", "exact")
#: Largest size of a sketch in multiples of the number of points; a larger one would save no time.
LARGEST_SKETCH = 4


@dataclass(kw_only=True, eq=False)
class _Sketched(TwoStageLearner):
    sketch: int | None = None
    sample: int | None = None
    blocks: int = 1
    refresh_every: int | None = 10_000
    decomposition: Literal["eigen", "exact"] = "eigen"
    seed: int | None = 0

    def _max_terms(self) -> int:
        return 2 * self._budget

    def _max_features(self) -> int:
        if self._sample is not None:
            return self._sample
        return min(max(self._s_p // 5, self._k), self._max_terms())

    def _check(self, d: int) -> None:
        self._budget, self._blocks = check_size("budget", self.budget), check_size("blocks", self.blocks)
        whole = max(self._budget // self._blocks, 1) * self._blocks
        self._s_p = whole if self.sketch is None else check_size("sketch", self.sketch)
        if self._s_p % self._blocks:
            raise ArgumentError(f"sketch: expected a multiple of the {self.blocks} blocks, got {self.sketch}.")
        if self._s_p > LARGEST_SKETCH * self._max_terms():
            raise ArgumentError(
                f"sketch, blocks: expected a sketch of at most {LARGEST_SKETCH} times the buffer's {self._max_terms()} "
                f"points, got one of {self._s_p} dimensions, which would be larger than what it sketches."
            )
        self._sample = None if self.sample is None else check_size("sample", self.sample)
        if self._sample is not None and self._sample > self._max_terms():
            raise ArgumentError(f"sample: expected at most the buffer's {self._max_terms()} points, got {self.sample}.")
        super()._check(d)
        if self._k > self._s_p:
            raise ArgumentError(f"rank: expected at most the sketch's {self._s_p} dimensions, got {self._k}.")
        self._every = None if self.refresh_every is None else check_size("refresh_every", self.refresh_every)
        if self.decomposition not in DECOMPOSITIONS:
            raise ArgumentError(
                f"decomposition: expected one of {', '.join(DECOMPOSITIONS)}, got {self.decomposition!r}."
            )
        self._decomposition = self.decomposition

    def _start(self, d: int) -> None:
        super()._start(d)
        self._since, self.n_refreshes_ = 0, 0

    def _switch(self, points: Array, a: Array) -> Indices:
        K = self._gram(points, points)
        self._sketches = Sketches.draw(K, self._s_p, self._max_features(), self._blocks, self._rng)
        self._sketched = points
        self._factors = Eigenpairs.of(self._sketches.Phi_pp, self._k)
        self._set_map()
        # By default the hypothesis is carried over: the best fit by the new features.
        self._fit_weights(K[:, self._sketches.sampled], K @ a)
        return self._sketches.sampled

    def _set_map(self) -> None:
        self._M = np.ascontiguousarray(sketch_map(self._sketches.Phi_pm, self._factors.root).T)

    def _fit_weights(self, K: Array, f: Array) -> None:
        """Set w to the least-squares fit of values `f (t,)` at points with kernel values `K (t, m)` to landmarks."""
        self._w = np.asarray(np.linalg.lstsq(finite(K @ self._M.T), finite(f), rcond=None)[0], np.float64)

    def _refresh(self, x: Array) -> None:
        """Insert the row `x (d,)` of a block in the sketches and compute the map again."""
        x = rows_of(self._gram, x[:, None])
        psi, kappa = self._gram(x, self._sketched)[0], float(self._gram.diag(x)[0])
        self._sketches, s, v = self._sketches.insert(psi, kappa, self._rng)
        self._sketched = np.vstack([self._sketched, x])
        self._since, self.n_refreshes_ = 0, self.n_refreshes_ + 1
        if self._decomposition == "exact":
            self._factors = Eigenpairs.of(self._sketches.Phi_pp, self._k)
        else:
            self._factors = self._factors.update(s, v, kappa)
        self._set_map()

    def _second_stage(self, block: Block, start: int, p: Array) -> None:
        t = start
        while t < len(p):
            stop = len(p)
            if self._every is not None:
                stop = min(stop, t + self._every - self._since)
            self._run(block, t, stop, p)
            self._since += stop - t
            t = stop
            if self._since == self._every:
                self._refresh_and_refit(block.X[t - 1])

    @abstractmethod
    def _run(self, block: Block, start: int, stop: int, p: Array) -> None:
        """Learn the rows from `start` to `stop` with the present map."""

    @abstractmethod
    def _refresh_and_refit(self, x: Array) -> None:
        """Refresh with the row `x (d,)` of a block, and set w."""

    def _may_fail(self, n: int) -> bool:
        # A refresh may fail as well.
        return super()._may_fail(n) or (self._every is not None and self._since + n >= self._every)

    def _second_stage_state(self) -> dict[str, object]:
        sketches = {"sketched": self._sketched, "factors": vars(self._factors), "sketches": vars(self._sketches)}
        return {**super()._second_stage_state(), "since": self._since, **sketches}

    def _second_stage_form(self) -> Form:
        s, k = self._s_p, self._k
        since = Count(0, "t" if self._every is None else self._every - 1)
        parts = {"since": since, "sketched": Floats(("q", "d")), "factors": Eigenpairs.form(s, k)}
        parts["sketches"] = Sketches.form(s, self._blocks)
        sizes = {"k": k, "n": self._max_features()}
        return super()._second_stage_form().extended(parts, sizes, {**sizes, "q": self._max_terms()})

    def _restore_second_stage(self, second: dict[str, Any]) -> None:
        super()._restore_second_stage(second)
        self._since, self._sketched = second["since"], second["sketched"]
        self.n_refreshes_ = len(self._sketched) - self._max_terms()
        self._factors, self._sketches = Eigenpairs(**second["factors"]), Sketches(**second["sketches"])


@dataclass(kw_only=True, eq=False)
class SkeGD(_Sketched):
    """Gradient descent on sketched features (Zhang and Liao 2019), in the form to which FORKS is compared.

    As `FORKS`, but with first-order steps, w moves by -step l' z(x), and without the reset: after a refresh w is the
    least-squares fit, on all sketched points, of the old hypothesis by the new features. If step |z(x)|^2 exceeds one,
    as can happen with sketched features, the step is 1 / |z(x)|^2.

    Args and attributes: see `FORKS`.

    Example:
        >>> import numpy as np
        >>> from bkbopt.learners import SkeGD
        >>> X = np.random.default_rng(0).standard_normal((600, 2))
        >>> y = np.where(X[:, 0] * X[:, 1] > 0.0, "same", "other")
        >>> wrong = SkeGD(budget=30, rank=15, seed=0).progressive(X, y) != y
        >>> bool(wrong[300:].sum() < wrong[:300].sum())
        True
    """

    def _run(self, block: Block, start: int, stop: int, p: Array) -> None:
        landmark_descent(block, self._support, self._M, self._w, self._loss.code, self._step, start, stop, p)

    def _refresh_and_refit(self, x: Array) -> None:
        old = self._weights()
        self._refresh(x)
        K = self._gram(self._sketched, self._scaled_points())
        self._fit_weights(K, K @ old)


@dataclass(kw_only=True, eq=False)
class FORKS(_Sketched):
    """Fast second-order online kernel learning by incremental sketching (Zhang et al. 2024).

    1. Kernel gradient descent until there are 2 B terms.
    2. Sketches of their kernel matrix give a map to k features; online Newton steps on them, with
       A = alpha I + curvature sum l'^2 z z^T and predictions clipped to -clip, clip.
    3. After every `refresh_every` rounds the last point enters the sketches; the map is renewed, A = alpha I, w = 0, so
       that the next prediction is zero. A zero has no label: do not count it as a correct prediction.

    Args:
        loss: "squared_hinge", "logistic" or "squared" (with curvature, hence logarithmic regret), "hinge" or
            "absolute".
        budget: B.
        rank: number of features k, or below 1 a fraction of B; the paper has B/10.
        step: the learning rate of the first stage, positive.
        sketch: size s_p of the sparse-sign sketch, a multiple of `blocks`; None for B.
        sample: number s_m of landmarks; None for s_p/5, but at least k.
        blocks: number D of non-zero signs in a row of the sketch.
        refresh_every: rounds between refreshes; the paper has 0.3 times the length of the stream. None for none.
        decomposition: how the leading eigenpairs are updated: "exact", from scratch, as in the paper; or "eigen", by a
            symmetric update of rank two. Up to the first refresh both predict the same. An update lacks eigenpairs that
            were cut off before it: later 93 to 98 % of the signs agree, with as many mistakes. The same holds for the
            paper's own update, TISVD (`benchmarks/paper_tables/tisvd.py`).
        alpha: the ridge of A, positive.
        curvature: weight of the squared slopes in A; the paper has 0.5 for all losses. "auto" is the loss's second
            derivative, 2, for losses that are quadratic between the bounds of predictions, "squared" and, with a clip
            of at most 1, "squared_hinge"; for others it is 1/4 with labels and 1/2 with numbers. With 0.5 the squared
            loss diverges where alpha is small: the first step is 1/alpha times the slope, and nothing bounds it.
        clip: bound C of the predictions, for regression in standard deviations of the targets with `scale=True`,
            otherwise in their units; None for 4 with labels, and for none with numbers.
        seed: of the sketches.
        kernel, lengthscale, scale: see `OnlineLearner`.

    Attributes:
        switched_at_: number of rows learnt in the first stage; None during that stage.
        n_refreshes_: number of refreshes of the map.
        dictionary_size_, support_, weights_: the terms of the first stage, then the landmarks (see `ExpansionLearner`).
        feature_map_: the features of the second stage.

    Example:
        >>> import numpy as np
        >>> from bkbopt.learners import FORKS
        >>> X = np.random.default_rng(0).standard_normal((600, 2))
        >>> y = np.where(X[:, 0] * X[:, 1] > 0.0, "same", "other")
        >>> wrong = FORKS(budget=30, rank=15, seed=0).progressive(X, y) != y
        >>> bool(wrong[300:].sum() < wrong[:300].sum())
        True
    """

    loss: str = "squared_hinge"
    alpha: float = 1.0
    curvature: float | Literal["auto"] = "auto"
    clip: float | None = None
    _PAPER: ClassVar[dict[str, Any]] = {"rank": 0.1, "loss": "hinge", "alpha": 0.01, "clip": 1.0, "curvature": 0.5}
    _CLIPS: ClassVar[bool] = True

    def _check(self, d: int) -> None:
        super()._check(d)
        self._alpha = check_number("alpha", self.alpha, 0.0, "a positive ridge", strict=True)
        self._curvature = self._clip = None
        if not isinstance(self.curvature, str):
            self._curvature = check_number("curvature", self.curvature, 0.0, "a weight >= 0")
        elif self.curvature != "auto":
            raise ArgumentError(f'curvature: expected a weight >= 0, or "auto", got {self.curvature!r}.')
        if self.clip is not None:
            self._clip = check_number("clip", self.clip, 0.0, "a positive bound", strict=True)

    def _bound(self) -> float:
        return self._loss.bound if self._clip is None else self._clip

    def _slope_weight(self) -> float:
        """The weight of squared slopes in A; infinite for the loss's second derivative."""
        return self._loss.slope_weight(self._bound()) if self._curvature is None else self._curvature

    def _switch(self, points: Array, a: Array) -> Indices:
        chosen = super()._switch(points, a)
        self._inverse = np.eye(len(self._w)) / self._alpha
        return chosen

    def _run(self, block: Block, start: int, stop: int, p: Array) -> None:
        rule = self._loss.code, self._slope_weight(), self._bound()
        landmark_newton(block, self._support, self._M, self._w, self._inverse, *rule, start, stop, p)

    def _refresh_and_refit(self, x: Array) -> None:
        self._refresh(x)
        self._w, self._inverse = np.zeros(self._k), np.eye(self._k) / self._alpha

    def _second_stage_state(self) -> dict[str, object]:
        return {**super()._second_stage_state(), "inverse": self._inverse.copy()}

    def _second_stage_form(self) -> Form:
        return super()._second_stage_form().extended({"inverse": Floats(("k", "k"))})

    def _restore_second_stage(self, second: dict[str, Any]) -> None:
        super()._restore_second_stage(second)
        self._inverse = second["inverse"]
