"""The exact, lazy argmax of the upper confidence bound over a finite pool.

| symbol  | shape  | units | meaning                                                                          |
| ------- | ------ | ----- | -------------------------------------------------------------------------------- |
| X       | (A, d) | enc.  | the pool                                                                         |
| mu, sd  | (A,)   | y     | mean and standard deviation of each arm when it was last computed                |
| version | (A,)   | -     | when that was: index into the models of the current epoch                        |
| w_v     | (r_v,) | -     | weights of version v, followed by zeros for features that were appended since    |
| g_v     | -      | -     | growth: sd_c <= g_v sd_v for the current model c                                 |

Within an epoch data are only added and features only appended (see `bkbopt.surrogates.epochs`): sd_c <= g_v sd_v, with
g_v = 1 while no feature is appended, and the matrix of version v, with lam for the appended features, is at most
g_v^2 V_c. So, by Cauchy-Schwarz,

    |mu_c - mu_v| <= sd_v / sqrt(lam) * ||w_c - w_v||_v <= g_v sd_v / sqrt(lam) * ||w_c - w_v||_{V_c},
    ucb_c <= mu_v + g_v sd_v (beta_c + ||w_c - w_v||_{V_c} / sqrt(lam)),

an upper bound at O(1) an arm. Only arms whose bound beats the best exact value are computed again, and the result is
the argmax, not an approximation. After `MAX_VERSIONS` models the bounds are written in terms of the last one:
mu_v + g_v sd_v drift_v takes the place of mu_v, and g_v sd_v that of sd_v. A new dictionary starts a new epoch with one
scan of the pool, in blocks that fit the cache: nothing of size A times m is ever stored.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.threads import small_work, threads_for
from bkbopt.errors import SpaceExhaustedError
from bkbopt.posterior.model import Model
from bkbopt.posterior.paths import draw_paths
from bkbopt.spaces.rows import RowSource

__all__ = ["Argmax", "PoolMaximizer"]

#: Entries of a block of k(pool, dictionary): half a megabyte of float64, so that it and its temporaries stay in a
#: core's cache; larger blocks took twice the time of a scan.
BLOCK_ENTRIES = 1 << 16
#: Arms up to which a joint sample is made from the factorised covariance: about the time of a path's Fourier features.
JOINT = 1000
#: Versions kept before all bounds are written in terms of the last one: each costs O(r^2) a step.
MAX_VERSIONS = 64
#: Part of the pool from which on a scan costs less than computing so many arms again: it takes one product less an arm.
SCAN_SHARE = 0.25
#: Slack of the bounds, relative to the largest score: the scan's rounding error. Scores that differ by less than a
#: thousandth of it are tied, and the lowest index wins.
SLACK = 1e-7


@dataclass(frozen=True)
class Argmax:
    """An arm with its exact score.

    Attributes:
        index: row of the pool.
        score: its upper confidence bound, units of y.
        mean: its posterior mean, units of y.
        variance: its posterior variance, y squared.
    """

    index: int
    score: float
    mean: float
    variance: float


@dataclass
class _Cache:
    """What is known of the arms; see the module's table.

    Attributes:
        mu: see the table.
        sd: see the table.
        version: see the table.
        last: the model of the last version.
        w: weights of the versions, (versions, r), r features of the last model.
        growth: `Model.growth` of each version, (versions,).
    """

    mu: Tensor
    sd: Tensor
    version: Tensor
    last: Model
    w: Tensor
    growth: Tensor

    @classmethod
    def of(cls, model: Model, mean: Tensor, variance: Tensor) -> "_Cache":
        """What a scan with `model` found."""
        version = torch.zeros(len(mean), dtype=torch.int64, device=mean.device)
        return cls(mean, variance.sqrt_(), version, model, model.w[None], mean.new_tensor([model.growth]))

    def is_of(self, model: Model) -> bool:
        """Whether the model is that of the last version."""
        return self.last.w is model.w and self.last.root is model.root

    def begin(self, model: Model) -> None:
        """A version for a later model of the same epoch."""
        if len(self.w) >= MAX_VERSIONS:
            self._fold()
        old = torch.nn.functional.pad(self.w, (0, len(model.w) - self.w.shape[1]))
        self.w = torch.cat([old, model.w[None]])
        self.growth = torch.cat([self.growth, self.growth.new_tensor([model.growth])])
        self.last = model

    def bounds(self, beta: float) -> Tensor:
        """Upper bounds of mean + beta * sd under the last model, (A,)."""
        if len(self.w) == 1:
            return torch.add(self.mu, self.sd, alpha=beta)
        width = self._growths() * self._drifts().add_(beta)
        return torch.addcmul(self.mu, self.sd, width.index_select(0, self.version))

    def _growths(self) -> Tensor:
        """g_v of every version v, (versions,)."""
        return self.last.growth / self.growth

    def _drifts(self) -> Tensor:
        """||w_c - w_v|| in the metric of V_c / lam for every version v, (versions,)."""
        V = self.last.V
        assert V is not None
        D = self.last.w - self.w
        return ((D @ V) * D).sum(1).clamp_min_(0.0).div_(self.last.lam).sqrt_()

    def _fold(self) -> None:
        """Write all bounds in terms of the last version, which is then the only one."""
        self.sd.mul_(self._growths().index_select(0, self.version))
        self.mu.addcmul_(self.sd, self._drifts().index_select(0, self.version))
        self.version.zero_()
        self.w, self.growth = self.w[-1:], self.growth[-1:]


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
        self._winner = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> "PoolMaximizer":
        """A maximiser of the same arms, which are never changed and so are shared; its bounds start anew."""
        return PoolMaximizer(self.X)

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
        if excluded is not None and bool(excluded.all()):
            raise SpaceExhaustedError(f"pool: all {len(self.X)} arms are excluded, so there is none to choose.")
        best = None
        while best is None:
            cache, self._cache = self._up_to_date(model), None  # bounds that an interrupt leaves half-way do not hold
            with threads_for(200.0 * len(self.X)):
                bound = cache.bounds(beta)
                if excluded is not None:
                    bound.masked_fill_(excluded, -math.inf)
            with small_work():
                best = self._refine(cache, model, beta, bound)
        self._cache = cache
        return best

    @torch.no_grad()
    def scan(self, model: Model) -> tuple[Tensor, Tensor]:
        """Mean and variance, each `(A,)`, of the whole pool, in blocks."""
        predict = model.collapse()
        m = max(model.features.size, 1)
        mean, variance = self.X.new_empty(len(self.X)), self.X.new_empty(len(self.X))
        block = max(256, BLOCK_ENTRIES // m)
        with threads_for(2.0 * len(self.X) * m * m):
            for i in range(0, len(self.X), block):
                mean[i : i + block], variance[i : i + block] = predict(self.X[i : i + block])
        return mean, variance

    @torch.no_grad()
    def scores(self, score: Callable[[Tensor], Tensor], size: int) -> Tensor:
        """Scores `(A,)` of the whole pool, in blocks that fit the cache for models of `size` features."""
        block = max(256, BLOCK_ENTRIES // max(size, 1))
        return torch.cat([score(self.X[i : i + block]) for i in range(0, len(self.X), block)])

    @torch.no_grad()
    def thompson(self, model: Model, rng: np.random.Generator) -> Tensor:
        """A joint posterior sample of the pool `(A,)`: exact up to `JOINT` arms, of more a path (see `paths`)."""
        if len(self.X) <= JOINT:
            with threads_for(len(self.X) ** 3 / 3.0):
                eps = torch.as_tensor(rng.standard_normal(len(self.X)), device=self.X.device)
                return model(self.X[:])[0] + model.covariance_root(self.X[:]) @ eps
        path = draw_paths(model, self.X[:], rng)
        with threads_for(2.0 * len(self.X) * (path.prior.size + model.features.size)):
            return self.scores(lambda X: path(X)[:, 0], path.prior.size)

    def _up_to_date(self, model: Model) -> _Cache:
        cache = self._cache
        if cache is None or cache.last.epoch != model.epoch or model.V is None:
            self.n_scans += 1
            cache = self._cache = _Cache.of(model, *self.scan(model))
        elif not cache.is_of(model):
            cache.begin(model)
        return cache

    def _refine(self, cache: _Cache, model: Model, beta: float, bound: Tensor) -> Argmax | None:
        """Compute exactly, best bound first, until no remaining bound beats the best exact score.

        None where so many bounds do that a scan costs less.
        """
        best, slack, chunk = -math.inf, 0.0, 256
        # The last winner is seldom far from the best, and a good score at once leaves few bounds above it.
        rows = bound.argmax()[None]
        if math.isfinite(float(bound[self._winner])):
            rows = rows.new_tensor([*{int(rows), self._winner}])
        candidates: Tensor | None = None
        seen: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        while len(rows):
            mean, variance = model(self.X[rows])
            sd = variance.sqrt()
            scores = mean + beta * sd
            slack = max(slack, SLACK * float((mean.abs() + (1.0 + beta) * sd).max()))
            cache.mu[rows], cache.sd[rows], cache.version[rows] = mean, sd, len(cache.w) - 1
            bound[rows] = -math.inf
            best = max(best, float(scores.max()))
            seen.append((rows, scores, mean, variance))
            self.n_refreshed += len(rows)
            # `best` only grows, so what falls below it once is never looked at again.
            above = (bound if candidates is None else bound[candidates]) > best - slack
            left = torch.nonzero(above)[:, 0]
            if candidates is None and len(left) > SCAN_SHARE * len(self.X) and len(cache.w) > 1:
                return None
            candidates = left if candidates is None else candidates[left]
            rows = candidates
            if len(rows) > 2 * chunk:
                rows = rows[bound[rows].topk(chunk).indices]
                chunk *= 2
        all_rows, scores, mean, variance = (torch.cat(parts) for parts in zip(*seen, strict=True))
        tied = scores >= best - 1e-3 * slack
        at = int(torch.where(tied, all_rows, len(self.X)).argmin())
        self._winner = int(all_rows[at])
        return Argmax(self._winner, float(scores[at]), float(mean[at]), float(variance[at]))
