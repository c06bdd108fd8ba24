"""A box of floats, integers and categories."""

from collections.abc import Callable, Sequence, Set
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bkbopt.errors import ArgumentError, SpaceExhaustedError
from bkbopt.posterior.model import Model
from bkbopt.posterior.observations import row_keys
from bkbopt.search.acquisition import UCB, Acquisition, Thompson
from bkbopt.search.box_maximizer import BoxMaximizer
from bkbopt.search.candidates import Feasibility, Params
from bkbopt.search.pool_maximizer import PoolMaximizer, argmax_of
from bkbopt.spaces.space import Space

__all__ = ["BoxDomain"]

#: Discrete spaces up to this many points are searched exactly, as a pool.
GRID_LIMIT = 20_000
#: Random points tried before a feasible set is called empty.
TRIES = 10_000
#: Random points that compete to be a leap.
N_LEAPS = 8


class BoxDomain:
    """See `Domain`. A space of one point (everything fixed) has one constant column, so that models have something.

    Args:
        space: the parameters.
        feasible: the user's constraint.
        seed: of the scrambled Sobol sequence of the initial design.
    """

    def __init__(self, space: Space, feasible: Callable[[Params], bool] | None, seed: int) -> None:
        self.space = space
        self.n_started = 0
        self._feasible = Feasibility(feasible, self.describe)
        self._blocked: set[bytes] = set()
        self._sobol = torch.quasirandom.SobolEngine(self.dim, scramble=True, seed=seed)
        self._grid: PoolMaximizer | None = None
        if space.is_discrete and space.cardinality <= GRID_LIMIT:
            self._grid = PoolMaximizer(self._padded(space.all_points(GRID_LIMIT)))
            self._closed = torch.zeros(len(self._grid.X), dtype=torch.bool)
            self._rows = {key: i for i, key in enumerate(row_keys(self._grid.X))}
        else:
            self._box = BoxMaximizer(space)

    @property
    def dim(self) -> int:
        """See `Domain`."""
        return max(self.space.dim, 1)

    @property
    def categorical(self) -> tuple[int, ...]:
        """See `Domain`."""
        return self.space.categorical

    @property
    def n_arms(self) -> int | None:
        """See `Domain`."""
        return None if self._grid is None else len(self._grid.X)

    @property
    def is_discrete(self) -> bool:
        """See `Domain`."""
        return self.space.is_discrete

    @property
    def has_choices(self) -> bool:
        """See `Domain`."""
        return self._grid is not None or self._box.has_choices

    def encode(self, params: Sequence[Params]) -> Tensor:
        """See `Domain`."""
        return self._padded(self.space.encode(params))

    def describe(self, x: Tensor, given: Params | None = None) -> tuple[Params, int | None]:
        """See `Domain`."""
        params = self.space.decode(x[None, : self.space.dim])[0]
        if given is not None:
            params |= {c.name: float(given[c.name]) for c in self.space.columns if c.n_values is None}
        return params, None

    def block(self, x: Tensor) -> None:
        """See `Domain`."""
        key = row_keys(x[None])[0]
        self._blocked.add(key)
        if self._grid is not None and key in self._rows:
            self._closed[self._rows[key]] = True

    def _padded(self, X: Tensor) -> Tensor:
        return X if self.space.dim else X.new_zeros(len(X), 1)

    def _canonical(self, X: Tensor) -> Tensor:
        """The points `(n, d)` as they would come back through their parameters, so that one point has one key."""
        return self.encode(self.space.decode(X))

    def _open(self, x: Tensor, busy: Set[bytes] = frozenset()) -> bool:
        key = row_keys(x[None])[0]
        return key not in self._blocked and key not in busy and self._feasible(x)

    def startup(self, rng: np.random.Generator, pending: Tensor) -> Tensor:
        """See `Domain`: a scrambled Sobol sequence."""
        busy = set(row_keys(pending))
        if self._grid is not None and bool(self._closed.any()):
            return self._any(rng, busy)
        for _ in range(100):
            unit = self._sobol.draw(1, dtype=torch.float64)
            self.n_started += 1
            x = self._canonical(self.space.from_unit(unit[:, : self.space.dim]))[0]
            if self._open(x, busy):
                return x
        return self._any(rng, busy)

    def suggest(
        self, model: Model, acquisition: Acquisition | Thompson, good: Tensor, rng: np.random.Generator, pending: Tensor
    ) -> Tensor:
        """See `Domain`."""
        busy = set(row_keys(pending))
        if self._grid is not None:
            while not bool(self._closed.all()):
                x = self._grid.X[argmax_of(self._grid, model, acquisition, self._unavailable(busy), rng)]
                if self._feasible(x):
                    return x
                self.block(x)
            raise self._exhausted()
        for candidate in self._box.ranked(model, acquisition, good, rng, self._feasible):
            x = self._canonical(candidate[None])[0]
            if self._open(x, busy):
                return x
        return self._any(rng, busy)

    def leap(
        self,
        model: Model,
        acquisition: Acquisition,
        center: Tensor,
        rng: np.random.Generator,
        pending: Tensor,
        usable: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor | None:
        """The best of a few random points `(d,)` that differ from `center (d,)` in one column; None if none is open.

        They are few on purpose: of many, an acquisition takes one that hardly differs from the centre. On a line, where
        a random point is all that a leap could be, there are none: a search sees the line whole.
        """
        if self.dim == 1:
            return None
        X = self._canonical(self._box.leaps(center, N_LEAPS, rng))
        if usable is not None:
            X = X[usable(X)]
        busy = set(row_keys(torch.cat([pending, center[None]])))
        for i in torch.argsort(acquisition(*model(X)), descending=True, stable=True):
            if self._open(X[i], busy):
                return X[i]
        return None

    def _unavailable(self, busy: set[bytes]) -> Tensor:
        """Rows of the grid that may not be chosen: closed or busy, or only closed where that is all of them."""
        rows = [self._rows[key] for key in busy if key in self._rows]
        taken = self._closed.clone()
        taken[rows] = True
        return self._closed if bool(taken.all()) else taken

    def upper_bound(self, model: Model, beta: float, good: Tensor) -> tuple[Tensor, float]:
        """The point with the largest upper confidence bound that a search finds, feasible or not, and that bound."""
        acquisition = UCB(beta)
        if self._grid is not None:
            mean, variance = self._grid.scan(model)
            scores = acquisition(mean, variance)
            i = int(scores.argmax())
            return self._grid.X[i], float(scores[i])
        rng = np.random.default_rng(0)  # a report must not move the optimizer's own stream
        x = next(self._box.ranked(model, acquisition, good, rng, lambda _: True))
        return x, float(acquisition(*model(x[None]))[0])

    def _any(self, rng: np.random.Generator, busy: set[bytes]) -> Tensor:
        """A random point that is open, and not busy if possible; an error where none is open, or none can be found."""
        if self._grid is not None:
            rows = rng.permutation(torch.nonzero(~self._closed)[:, 0].numpy())
            free = rows[~self._unavailable(busy).numpy()[rows]]
            for i in [*free, *rows]:
                if self._feasible(self._grid.X[i]):
                    return self._grid.X[i]
            raise self._exhausted()
        if len(self._blocked) >= self.space.cardinality:
            raise self._exhausted()
        for _ in range(TRIES // 100):
            for x in self._canonical(self.space.sample(100, rng)):
                if self._open(x, busy):
                    return x
        raise ArgumentError(
            f"feasible: expected points to propose, but none of {TRIES} random ones was feasible and new; "
            "check the constraint, or narrow the space to where it can hold."
        )

    def state_dict(self) -> dict[str, object]:
        """See `Domain`."""
        closed = None if self._grid is None else self._closed.clone()
        return {"space": self.space.to_dict(), "n_started": self.n_started, "closed": closed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `Domain`; the initial design goes on where it was."""
        self._sobol.fast_forward(state["n_started"])
        self.n_started = state["n_started"]
        if self._grid is not None:
            self._closed = state["closed"]

    def _exhausted(self) -> SpaceExhaustedError:
        return SpaceExhaustedError(
            f"space: all {self.space.cardinality} points have been proposed, have failed or are infeasible; "
            'stop here, or allow repeats with duplicates="allow".'
        )
