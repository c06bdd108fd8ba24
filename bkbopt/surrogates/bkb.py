"""BKB: the posterior of budgeted kernelised bandits (Calandriello et al. 2019), updated in O(m^2) per observation.

| symbol     | shape  | units | meaning                                                                     |
| ---------- | ------ | ----- | --------------------------------------------------------------------------- |
| S          | (m, d) | enc.  | dictionary: inducing points, drawn from the observed ones by leverage       |
| Z          | (u, r) | y     | Nystrom features of the unique observed points                              |
| lam        | scalar | y^2   | noise variance = ridge                                                      |
| leverage   | (u,)   | -     | posterior variance / lam                                                    |
| scale      | scalar | -     | lam of the sampling / lam, > 1 only where the budget `max_inducing` binds   |
| C          | scalar | -     | budget: the dictionary is drawn anew when 1 + sum of residual / lam > C     |

The *leverage* of a point is its posterior variance / lam. A *draw* samples the dictionary anew by leverage. Between two
draws a point that the next draw would include with probability one is appended to the dictionary at once (an exact
Gram-Schmidt step, O(u r)). All other points are rank-one updates, O(r^2).

The rule for the time of the next draw is BBKB's, with residuals in place of leverages. BBKB keeps its variances fixed
within a batch and therefore counts whole leverages. Here variances are updated after each observation, and only the
dictionary is out of date. If the error of its projection P on the old points, ||Phi (I - P) Phi^T||, is at most
lam eps / (1 - eps), new points increase the error by at most the sum of their residuals. The budget therefore counts
residual / lam. A point with which the sum would exceed it is appended if there is room, and adds nothing to the sum.
"""

import copy
import functools
import math
from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor

from bkbopt._support.checks import check_choice, check_count, check_number
from bkbopt._support.row_keys import row_keys
from bkbopt._support.threads import small_work, threads_for
from bkbopt.errors import ArgumentError
from bkbopt.kernels import gram
from bkbopt.posterior.features import Extension, Nystrom, WithoutResidual
from bkbopt.posterior.features.table import FeatureTable
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.linalg import compiles
from bkbopt.posterior.model import Model
from bkbopt.surrogates.anchors import Anchor
from bkbopt.surrogates.base import BULK, SurrogateBase, not_ready
from bkbopt.surrogates.leverages import Leverages, bounded_dimension, sum_of_leverages
from bkbopt.surrogates.pending import Fantasy, Seen, extension_by
from bkbopt.surrogates.sampling import draw_rls, draw_uniform

__all__ = ["BKB", "DRAW_FRACTION"]

#: Number of rank-one steps between two factorisations of V, which remove accumulated rounding errors.
REFACTOR_EVERY = 512
#: Number of random inducing points for the leverages of the first draw of a call with more than `BULK` points.
SEED_SIZE = 256
#: Fraction of `max_inducing` that a draw may fill; the rest is for points appended before the next draw.
DRAW_FRACTION = 0.8
#: Largest size of the dictionary of a fantasy beyond the budget, relative to `max_inducing`.
WITH_PENDING = 1.125
#: No point with a residual below this fraction of k(x, x) is appended. Each Gram-Schmidt step multiplies the rounding
#: error of the features by the root of k(x, x) / residual; a draw computes them anew.
RANK_TOLERANCE = 1e-8


class BKB(SurrogateBase[Fantasy]):
    """The BKB posterior: a GP posterior on inducing points whose cost depends on the effective dimension.

    Args:
        kernel: an `ARDKernel`, a GPyTorch kernel or a callable; ARD Matern-5/2 by default.
        noise: noise variance lam, y squared; 1e-2 by default (the optimizer then fits it).
        qbar: oversampling of the dictionary, >= 1. Theorem 1 requires 6 alpha log(4 T / delta) / eps^2
            (`bkbopt.confidence.theorem1_qbar`); 2 works well in practice.
        coins: random decisions ("coins") of a draw. "arm": one for each point, with probability min(1, qbar n leverage)
            after n evaluations, as in the authors' code. "pull": one for each evaluation, as in Algorithm 1, which
            includes points with several evaluations less often (see `bkbopt.surrogates.sampling`).
        resample: "delayed" keeps the dictionary while the sum of residual / lam over the observations since the last
            draw is below `leverage_budget` - 1; "every" draws at each observation (Algorithm 1).
        max_inducing: largest size of the dictionary (an eighth more with pending points), or None. Where it binds, the
            lam of the *sampling* is raised. Far from the dictionary the residual still bounds the variance from below;
            near it the variance can be a tenth of the exact one, and the error of the mean larger than it.
        leverage_budget: C > 1 of delayed resampling; between draws the projection error grows by at most (C - 1) lam.
        dictionary: "rls" (the paper's), or "uniform": `max_inducing` random points, a heuristic for comparison.
        variance: "dtc" (the paper's), or "sor", which drops the residual and starves, for comparison.
        seed: seed of the draws.
        device: torch device of all tensors.

    Raises:
        ArgumentError: an option is out of range.
        ArgumentTypeError: an option has the wrong type.

    Example:
        >>> import bkbopt as bo
        >>> model = bo.BKB(noise=0.01)
        >>> model.observe([[0.1], [0.5], [0.5]], [1.0, 2.0, 2.2])
        >>> model.posterior([[0.5], [9.0]]).variance
        tensor([0.0050, 1.0000], dtype=torch.float64)
    """

    _OPTIONS = ("qbar", "resample", "max_inducing", "leverage_budget", "dictionary", "variance", "coins")

    def __init__(
        self,
        kernel: object = None,
        noise: float | None = None,
        *,
        qbar: float = 2.0,
        resample: str = "delayed",
        max_inducing: int | None = 400,
        leverage_budget: float = 2.0,
        dictionary: str = "rls",
        variance: str = "dtc",
        coins: str = "arm",
        seed: int = 0,
        device: torch.device | str | None = None,
    ) -> None:
        self.resample = check_choice("resample", resample, ("delayed", "every"))
        self.dictionary = check_choice("dictionary", dictionary, ("rls", "uniform"))
        self.variance = check_choice("variance", variance, ("dtc", "sor"))
        self.coins = check_choice("coins", coins, ("arm", "pull"))
        super().__init__(kernel, noise, seed, device)
        self.qbar = check_number("qbar", qbar, 1.0, "a number >= 1")
        self.leverage_budget = check_number("leverage_budget", leverage_budget, 1.0, "a number > 1", strict=True)
        if max_inducing is not None:
            max_inducing = check_count("max_inducing", max_inducing, 1, "a whole number >= 1, or None")
        if dictionary == "uniform" and max_inducing is None:
            raise ArgumentError('max_inducing: expected a number with dictionary="uniform", got None.')
        self.max_inducing = max_inducing
        self.n_draws, self._log_growth = 0, 0.0
        self._features: Nystrom | None = None
        self._table = FeatureTable(torch.zeros(0, 0, dtype=torch.float64), torch.zeros(0, dtype=torch.float64))
        self._state: GaussianState | None = None
        self._scale, self._spent, self._drawn_size, self._steps = 1.0, 0.0, 0, 0

    # -- learning ------------------------------------------------------------------------------------------------

    def _learn(self, X: Tensor, y: Tensor, weight: Tensor) -> None:
        if len(X) > BULK and self.resample != "every":
            self.observations.add(X, y, weight)
            self._relearn()
            return
        with small_work():
            self._learn_in_turn(X, y, weight)

    def _learn_in_turn(self, X: Tensor, y: Tensor, weight: Tensor) -> None:
        """See `SurrogateBase`; evaluations of known points that change no features are learnt in one compiled call."""
        values, weights, keys, done = y.tolist(), weight.tolist(), row_keys(X), 0
        while done < len(values):
            rows = self._next_rows(keys, weights, done)
            if rows:
                some = slice(done, done + len(rows))
                self._learn_rows(rows, values[some], weights[some])
                done += len(rows)
            else:
                self._learn_one(X[done : done + 1], values[done], weights[done])
                done += 1

    def _next_rows(self, keys: list[bytes], weights: list[float], start: int) -> list[int]:
        """Rows of the known points among the next ones, up to the first after which features or V are made anew."""
        state, rows = self._state, list[int]()
        if state is None or self.resample == "every" or not compiles(len(state.w), state.w) or self._draw_is_due():
            return rows
        residual, spent, steps = self._table.residual.numpy(), self._spent, self._steps
        may_append = self._room(len(self._ready().S)) != 0
        for i in range(start, len(keys)):
            row = self.observations.row_of(keys[i])
            if row is None or (may_append and self._is_outside(float(residual[row]), weights[i], self._scale)):
                break
            spent, steps = spent + weights[i] * float(residual[row]) / (self.noise * self._scale), steps + 1
            if 1.0 + spent > self.leverage_budget or steps % REFACTOR_EVERY == 0:
                break
            rows.append(row)
        return rows

    def _learn_rows(self, rows: list[int], y: list[float], weight: list[float]) -> None:
        """`_learn_one` for values of known points that do not change the features."""
        assert self._state is not None
        state, inside = self._state.update_in_turn(self._table.buffer, rows, y, weight)
        residuals = self._table.residual.numpy()[rows].tolist()
        for row, residual, value, a, known in zip(rows, residuals, y, weight, inside, strict=True):
            self.observations.repeat(row, value, a)
            self._log_growth += math.log1p(3.0 * a * (residual / self.noise + known))
            self._spent += a * residual / (self.noise * self._scale)
        self._state, self._steps = state, self._steps + len(rows)

    def _learn_one(self, x: Tensor, y: float, weight: float) -> None:
        """Learn one value `y` of the point `x (1, d)`."""
        unique, row = len(self.observations), self.observations.add_one(x, y, weight)
        if self._state is None or self._features is None:
            self._log_growth += math.log1p(3.0 * weight * float(gram(self.kernel, x)) / self.noise)
            self._build(x)
            return
        is_new = row == unique
        if is_new:
            z, residual = self._features.embedded(x)
        else:
            z, residual = self._table.row(row)
        state, inside = self._state.update_and_leverage(z, y, weight)
        leverage = residual / self.noise + inside
        # The running bound of logdet(I + K / lam) in Theorem 2's "running" form, at eps = 1/2, so alpha = 3.
        self._log_growth += math.log1p(3.0 * weight * leverage)
        if is_new:
            self._table.add_row(z, z.new_tensor(residual))
        if self.resample == "every":
            self._draw(latest=row)  # with the leverages before this evaluation, as in Algorithm 1
            return
        self._state, spent = state, self._spent + weight * residual / (self.noise * self._scale)
        is_over = 1.0 + spent > self.leverage_budget
        may_append = self._room(len(self._features.S)) != 0
        if may_append and self._append_pays(leverage, residual, x, weight, scale=self._scale, is_over=is_over):
            self._append(x, z, residual)
        else:
            self._spent = spent
        self._steps += 1
        if self._steps % REFACTOR_EVERY == 0:
            self._state = self._state.refactor()
        if self._draw_is_due():
            self._draw(latest=row)

    def _checkpoint(self) -> Callable[[], None]:
        restore_rest, table = super()._checkpoint(), copy.copy(self._table)

        def restore() -> None:
            restore_rest()
            self._table = table

        return restore

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """See `SurrogateBase`."""
        other = super().__deepcopy__(memo)
        other._table = copy.deepcopy(self._table, memo)
        return other

    def _ready(self) -> Nystrom:
        if self._features is None:
            raise not_ready()
        return self._features

    # -- the dictionary ------------------------------------------------------------------------------------------

    def _append_pays(
        self, leverage: float, residual: float, x: Tensor, weight: float = 1.0, *, scale: float, is_over: bool = False
    ) -> bool:
        """Whether to append a point: the next draw would include it with probability one, and its residual is large.

        Args:
            leverage: leverage of the point before the observation, variance / lam.
            residual: residual of the point, y squared.
            x: the point, (1, d).
            weight: weight of the observation.
            scale: lam of the sampling / lam.
            is_over: whether the point's residual would exceed the budget; its probability is then ignored.
        """
        scaled = weight * leverage / scale
        pays = (is_over or self.qbar * scaled / (1.0 + scaled) >= 1.0) and self._is_outside(residual, weight, scale)
        return pays and residual > RANK_TOLERANCE * float(self.kernel.diag(x)[0])

    def _is_outside(self, residual: float, weight: float, scale: float) -> bool:
        """Whether a residual is large beside the noise of the sampling."""
        return weight * residual >= 1e-3 * self.noise * scale

    def _room(self, size: int, share: float = 1.0) -> int | None:
        """Number of points that may be appended to `size` points, up to this share of the budget; None for no limit."""
        if self.dictionary == "rls":
            return None if self.max_inducing is None else max(int(share * self.max_inducing) - size, 0)
        return 0

    def _append(self, x: Tensor, z: Tensor, residual: float) -> None:
        obs, Z = self.observations, self._table.Z
        assert self._state is not None
        more = Extension(self._ready(), x, z[None], z.new_tensor([[residual**-0.5]]))
        C = more.columns(obs.X, Z)
        NC = obs.n[:, None] * C
        self._state = self._state.append(Z.T @ NC, C.T @ NC, C.T @ obs.s)
        self._table.add_column(C[:, 0])
        self._features = more.whole()

    def _draw_is_due(self) -> bool:
        m, drawn = len(self._ready().S), self._drawn_size
        is_full = self._room(m) == 0 and m > drawn
        return is_full or 1.0 + self._spent > self.leverage_budget or m > 1.25 * drawn + 8

    def _draw(self, latest: int, most: int | None = None) -> None:
        """Draw the dictionary anew, at most `most` points; if none is drawn, it is the point in row `latest`."""
        assert self._state is not None
        obs = self.observations
        if self.dictionary == "uniform":
            draw = draw_uniform(len(obs), self.max_inducing or 1, self.rng)
        else:
            budgets = [most, self.max_inducing and max(1, int(DRAW_FRACTION * self.max_inducing))]
            budget = min((b for b in budgets if b is not None), default=None)
            pulls = obs.repeats + 1.0 if self.coins == "pull" else None
            with threads_for(len(obs) * len(self._state.w) ** 2):
                draw = draw_rls(Leverages(self._table, self._state), obs.n, self.qbar, budget, self.rng, pulls)
        self._scale = draw.scale
        self.n_draws += 1
        self._build(obs.X[draw.rows] if len(draw.rows) else obs.X[latest : latest + 1])

    def _build(self, S: Tensor) -> None:
        """Recompute everything for a drawn dictionary `S (m, d)`: O(u m^2 + m^3)."""
        obs = self.observations
        with threads_for(len(obs) * len(S) ** 2):
            features = Nystrom.from_points(self.kernel, S.clone())
            self._table = FeatureTable.of(features, obs.X)
            self._state = GaussianState.from_data(self._table.Z, obs.n, obs.s, self.noise)
        self._features = features
        self._drawn_size, self._spent, self._steps = len(S), 0.0, 0

    def _relearn(self) -> None:
        """See `SurrogateBase`; the leverages of the first draw come from the old dictionary, if there is one."""
        observations, self._scale = self.observations, 1.0
        if not len(observations):
            self._features = self._state = None
            self._log_growth = 0.0
            return
        if self._features is None:
            take = min(len(observations), self.max_inducing or SEED_SIZE, SEED_SIZE)
            S = observations.X[draw_uniform(len(observations), take, self.rng).rows]
        else:
            S = self._features.S
        for _ in range(4):
            # With a poor dictionary residuals and leverages are too high, so that a draw includes too many points
            # rather than too few, at most about twice as many as before.
            self._build(S)
            self._draw(latest=len(observations) - 1, most=2 * len(S) + SEED_SIZE)
            before, S = len(S), self._ready().S
            if len(S) <= 1.5 * before:
                break
        # logdet(I + K / lam) <= logdet(I + Q / lam) + Tr(K - Q) / lam with Q = Z Z^T, for any dictionary.
        assert self._state is not None
        self._log_growth = self._state.log_determinant() + float(observations.n @ self._table.residual) / self.noise

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def inducing(self) -> Tensor:
        """Inducing points (m, d)."""
        return self._ready().S

    def fitted(self) -> Tensor:
        """Posterior mean at the unique observed points, (u,): O(u m)."""
        return self._table.Z @ self._known().state.w

    @property
    def sampling_scale(self) -> float:
        """lam of the sampling / lam; above 1 if `max_inducing` binds."""
        return self._scale

    def _unseen(self) -> Tensor:
        """n residual / lam of the unique observed points, (u,)."""
        return self.observations.n * self._table.residual / self.noise

    def effective_dimension(self) -> float:
        """See `Surrogate`: O(m^2 + u)."""
        return 0.0 if self._state is None else bounded_dimension(self._state, self._unseen())

    def leverage_sum(self) -> float:
        """See `Surrogate`: O(m^2 + u)."""
        return 0.0 if self._state is None else sum_of_leverages(self._state, self._unseen())

    @property
    def log_growth(self) -> float:
        """See `Surrogate`."""
        return self._log_growth

    # -- pending points ------------------------------------------------------------------------------------------

    def _posterior(self) -> Fantasy:
        assert self._state is not None
        return Fantasy.start(self._ready(), Seen.of(self.observations), self._table.Z, self._state)

    def anchor(self) -> Anchor | None:
        """See `Surrogate`."""
        within = functools.partial(self._counted, share=1.0, scale=self._scale)  # draws may change the scale
        return Anchor(self._posterior(), within, self._count_beyond, self._as_model, self._placed)

    def _as_model(self, known: Fantasy) -> Model:
        features, state = known.features, known.state
        shown = features if self.variance == "dtc" else WithoutResidual(features)
        return Model(shown, state.w, state.root, state.lam, V=state.V, collapsed=lambda: known.collapsed)

    def _count(self, known: Fantasy, X: Tensor) -> Fantasy:
        """See `SurrogateBase`; pending points with a large residual are appended, or else their variance stays."""
        return self._counted(known, X, 1.0, self._scale)

    def _count_beyond(self, known: Fantasy, X: Tensor) -> Fantasy:
        """See `SurrogateBase`; the lam of the sampling, which is raised so that a draw fits the budget, is lam."""
        return self._counted(known, X, WITH_PENDING, 1.0)

    def _counted(self, known: Fantasy, X: Tensor, share: float, scale: float) -> Fantasy:
        Z, pays = known.features(X), functools.partial(self._append_pays, scale=scale)
        for _ in X:  # each pass appends at least one point
            room = self._room(len(known.features.S), share)
            more = None if room == 0 else extension_by(known.features, known.state, X, Z, room, pays)
            if more is None:
                break
            Z = torch.cat([Z, more.columns(X, Z)], 1)
            known = known.append(more)
        return known.count(X, Z)
