"""The exact, lazy argmax of the upper confidence bound over a finite pool.

| symbol  | shape  | units | meaning                                                                          |
| ------- | ------ | ----- | -------------------------------------------------------------------------------- |
| X       | (A, d) | enc.  | the pool                                                                         |
| mu, sd  | (A,)   | y     | mean and standard deviation of each arm when it was last computed                |
| version | (A,)   | -     | when that was: index into the models of the current epoch                        |
| w_v, g_v |       |       | weights and growth of version v, see `versions.py`                               |

Within an epoch data are only added and features only appended (see `bkbopt.surrogates.epochs`): sd_c <= g_v sd_v, with
g_v = 1 while no feature is appended, and the matrix of version v, with lam for the appended features, is at most
g_v^2 V_c. So, by Cauchy-Schwarz,

    |mu_c - mu_v| <= sd_v / sqrt(lam) * ||w_c - w_v||_v <= g_v sd_v / sqrt(lam) * ||w_c - w_v||_{V_c},
    ucb_c <= mu_v + g_v sd_v (beta_c + ||w_c - w_v||_{V_c} / sqrt(lam)),

an upper bound at O(1) an arm. Only arms whose bound beats the best exact value are computed again, and the result is
the argmax, not an approximation. After `MAX_VERSIONS` models the bounds are written in terms of the last one:
mu_v + g_v sd_v drift_v takes the place of mu_v, and g_v sd_v that of sd_v. A new dictionary starts a new epoch with one
scan of the pool, in blocks that fit the cache: nothing of size A times m is ever stored.

For pools in memory and kernels of the package a step is one call of compiled loops (`_loops_pool.py`). They compute the
mean of an arm first, whose bound mean + g_v sd_v beta needs no products of matrices, and the deviation only of the arms
whose bounds still exceed the best score.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bkbopt._support.threads import small_work, threads_for
from bkbopt.errors import SpaceExhaustedError
from bkbopt.posterior.linalg import in_memory
from bkbopt.posterior.model import Model
from bkbopt.posterior.paths import draw_paths
from bkbopt.search.maximizers.parts import block_rows
from bkbopt.search.maximizers.versions import MAX_VERSIONS, Versions
from bkbopt.spaces.rows import RowSource

if TYPE_CHECKING:
    from bkbopt.posterior._loops import PlainModel
    from bkbopt.search.maximizers._loops_pool import Bounded
    from bkbopt.search.maximizers.parted import PartedMaximizer

__all__ = ["Argmax", "PoolMaximizer", "check_some_open", "joint_sample"]

#: Largest number of arms whose joint sample is drawn by a factorised covariance; it takes about as long as a path.
JOINT = 1000
#: Fraction of the pool from which on a scan costs less than computing the arms alone: it takes one product less an arm.
SCAN_SHARE = 0.25
#: Cost of an arm in compiled loops, and of an arm of a scan, in means: these have two, one and no products of matrices.
ARM_COST, SCAN_COST = 4, 2
#: Slack of the bounds, relative to the largest score: the scan's rounding error. Scores that differ by less than a
#: thousandth of it are tied, and the lowest index wins.
SLACK = 1e-7
NONE_EXCLUDED = np.zeros(0, dtype=np.bool_)


@dataclass(frozen=True)
class Argmax:
    """An arm with its exact score.

    Attributes:
        index: row of the pool.
        score: its upper confidence bound, units of y.
    """

    index: int
    score: float


def check_some_open(excluded: Tensor | None) -> None:
    """Refuse to choose where every arm is `excluded (A,)`.

    Raises:
        SpaceExhaustedError: every arm is excluded.
    """
    if excluded is not None and bool(excluded.all()):
        raise SpaceExhaustedError(f"pool: all {len(excluded)} arms are excluded, so there is none to choose.")


@torch.no_grad()
def joint_sample(search: "PoolMaximizer | PartedMaximizer", model: Model, rng: np.random.Generator) -> Tensor:
    """A joint posterior sample of a pool `(A,)`: exact for up to `JOINT` arms, else a path (see `paths`)."""
    X = search.X
    if len(X) <= JOINT:
        every = X[:]
        with threads_for(len(X) ** 3 / 3.0):
            eps = torch.as_tensor(rng.standard_normal(len(X)), device=X.device)
            return model(every)[0] + model.covariance_root(every) @ eps
    path = draw_paths(model, cast(Tensor, X), rng)  # reads only some of the rows
    with threads_for(2.0 * len(X) * (path.prior.size + model.features.size)):
        return search.scores(lambda X: path(X)[:, 0], path.prior.size)


@dataclass
class _Cache:
    """Means, deviations and versions of the arms; see the module's table."""

    mu: Tensor
    sd: Tensor
    version: Tensor
    versions: Versions

    @classmethod
    def of(cls, model: Model, mean: Tensor, variance: Tensor) -> "_Cache":
        """Those of a scan with `model`."""
        version = torch.zeros(len(mean), dtype=torch.int32, device=mean.device)
        return cls(mean, variance.sqrt_(), version, Versions(model))

    @cached_property
    def plain(self) -> "Bounded":
        """The same memory for compiled loops."""
        from bkbopt.search.maximizers._loops_pool import Bounded

        return Bounded(self.mu.numpy(), self.sd.numpy(), self.version.numpy())

    def bounds(self, beta: float) -> Tensor:
        """Upper bounds of mean + beta * sd under the current model, (A,)."""
        if len(self.versions) == 1:
            return torch.add(self.mu, self.sd, alpha=beta)
        return torch.addcmul(self.mu, self.sd, self.versions.widths(beta).index_select(0, self.version))

    def fold(self) -> None:
        """Write all bounds in terms of the current version, which is then the only one."""
        self.sd.mul_(self.versions.growths().index_select(0, self.version))
        self.mu.addcmul_(self.sd, self.versions.drifts().index_select(0, self.version))
        self.version.zero_()
        self.versions.fold()


class PoolMaximizer:
    """Argmax of mean + beta * stddev over the rows of `X (A, d)`; keeps bounds between calls.

    Attributes:
        n_scans: full passes over the pool so far.
        n_refreshed: arms computed exactly outside of scans so far.
    """

    def __init__(self, X: RowSource) -> None:
        self.X = X
        self.n_scans = 0
        self.n_refreshed = 0
        self._cache: _Cache | None = None
        #: Cost of the arms computed by compiled loops since the last scan, in means.
        self._since_scan = 0
        self._winner = 0
        self._near = X
        readable = isinstance(X, Tensor) and in_memory(X) and X.is_contiguous()
        self._plain_X = cast(Tensor, X).numpy() if readable else None

    @torch.no_grad()
    def argmax(self, model: Model, beta: float, excluded: Tensor | None = None) -> Argmax:
        """The arm with the largest upper confidence bound; ties go to the lowest index.

        Args:
            model: the posterior.
            beta: multiplies the standard deviation.
            excluded: (A,) bool, arms that may not be chosen.

        Raises:
            SpaceExhaustedError: every arm is excluded.
        """
        check_some_open(excluded)
        best = None
        while best is None:
            cache, self._cache = self._up_to_date(model), None  # bounds that an interrupt leaves half-way do not hold
            best = self._refine(cache, model, beta, excluded)
        self._cache = cache
        return best

    @torch.no_grad()
    def scan(self, model: Model) -> tuple[Tensor, Tensor]:
        """Mean and variance, each `(A,)`, of the whole pool, in blocks."""
        mean, variance = self._scanned(model)
        return mean.to(self.X.device), variance.to(self.X.device)

    def _scanned(self, model: Model) -> tuple[Tensor, Tensor]:
        """Mean and variance, computed on the model's device if the rows are a tensor, else where they are read."""
        predict, X = model.collapse(), self._rows_near(model)
        m = model.features.size
        mean, variance = (torch.empty(len(X), dtype=torch.float64, device=X.device) for _ in range(2))
        block = block_rows(m, model.w.device)
        with threads_for(2.0 * len(X) * m * m):
            for i in range(0, len(X), block):
                mean[i : i + block], variance[i : i + block] = predict(X[i : i + block])
        return mean, variance

    def _rows_near(self, model: Model) -> RowSource:
        """The rows on the model's device; they are copied there once."""
        if self._near.device != model.w.device and isinstance(self.X, Tensor):
            self._near = self.X.to(model.w.device)
        return self._near

    @torch.no_grad()
    def scores(self, score: Callable[[Tensor], Tensor], size: int) -> Tensor:
        """Scores `(A,)` of the whole pool, in blocks that fit the cache for models of `size` features."""
        block = block_rows(size)
        return torch.cat([score(self.X[i : i + block]) for i in range(0, len(self.X), block)])

    def _up_to_date(self, model: Model) -> _Cache:
        cache = self._cache
        if cache is None or not cache.versions.holds(model):
            self.n_scans, self._since_scan = self.n_scans + 1, 0
            cache = self._cache = _Cache.of(model, *self._scanned(model))
        elif not cache.versions.ends_with(model):
            if len(cache.versions) >= MAX_VERSIONS:
                cache.fold()
            cache.versions.begin(model)
        return cache

    def _refine_compiled(
        self, cache: _Cache, model: "PlainModel", X: NDArray[np.float64], beta: float, excluded: Tensor | None
    ) -> Argmax | None:
        """`_refine` in compiled loops; None where a scan costs less."""
        from bkbopt.search.maximizers._loops_pool import refine

        closed = NONE_EXCLUDED if excluded is None else excluded.numpy()
        arms, versions = cache.plain, cache.versions.plain()
        # A scan makes all bounds tight. It is due once the arms computed alone, with those of this step, cost as much:
        # later steps are not known, and by this rule both together cost about twice the least possible at most.
        most = max(SCAN_COST * len(X) - self._since_scan, 0) if len(cache.versions) > 1 else len(X)
        index, score, _, _, n, n_means = refine(X, model, beta, arms, versions, closed, self._winner, SLACK, most)
        self.n_refreshed += n
        self._since_scan += ARM_COST * n + n_means
        if index < 0:
            return None
        self._winner = index
        return Argmax(index, score)

    def _refine(self, cache: _Cache, model: Model, beta: float, excluded: Tensor | None) -> Argmax | None:
        """Compute exactly, best bound first, until no remaining bound beats the best exact score.

        None if so many bounds do that a scan costs less.
        """
        if self._plain_X is not None and model.plain is not None:
            return self._refine_compiled(cache, model.plain, self._plain_X, beta, excluded)
        with threads_for(200.0 * len(self.X)):
            bound = cache.bounds(beta)
            if excluded is not None:
                bound.masked_fill_(excluded.to(bound.device), -math.inf)
        with small_work():
            return self._refine_by_torch(cache, model, beta, bound)

    def _refine_by_torch(self, cache: _Cache, model: Model, beta: float, bound: Tensor) -> Argmax | None:
        best, slack, chunk = -math.inf, 0.0, 256
        # The last winner is often nearly the best, and a good first score leaves few bounds above it.
        rows = bound.argmax()[None]
        if math.isfinite(float(bound[self._winner])):
            rows = rows.new_tensor([*{int(rows), self._winner}])
        candidates: Tensor | None = None
        seen: list[tuple[Tensor, Tensor]] = []
        while len(rows):
            mean, variance = model(self._near[rows])
            sd = variance.sqrt()
            scores = mean + beta * sd
            slack = max(slack, SLACK * float((mean.abs() + (1.0 + beta) * sd).max()))
            cache.mu[rows], cache.sd[rows], cache.version[rows] = mean, sd, len(cache.versions) - 1
            bound[rows] = -math.inf
            best = max(best, float(scores.max()))
            seen.append((rows, scores))
            self.n_refreshed += len(rows)
            # `best` only grows, so a row below it now stays below it.
            above = (bound if candidates is None else bound[candidates]) > best - slack
            left = torch.nonzero(above)[:, 0]
            if candidates is None and len(left) > SCAN_SHARE * len(self.X) and len(cache.versions) > 1:
                return None
            candidates = left if candidates is None else candidates[left]
            rows = candidates
            if len(rows) > 2 * chunk:
                rows = rows[bound[rows].topk(chunk).indices]
                chunk *= 2
        all_rows, scores = (torch.cat(parts) for parts in zip(*seen, strict=True))
        tied = scores >= best - 1e-3 * slack
        at = int(torch.where(tied, all_rows, len(self.X)).argmin())
        self._winner = int(all_rows[at])
        return Argmax(self._winner, float(scores[at]))
