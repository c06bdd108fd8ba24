"""Fantasies with many pending points, which follow from the posterior some values ago, the *anchor*.

| symbol | shape  | units | meaning                                                                           |
| ------ | ------ | ----- | --------------------------------------------------------------------------------- |
| X      | (p, d) | enc.  | pending points, and those told since the anchor, in the order of their trials     |
| y      | (k,)   | y     | values told since the anchor, with weights (k,), in the order in which they came  |
| V      | (r, r) | y^2   | matrix of the state, which counts the data up to the anchor and all of X          |
| w      | (r,)   | -     | weights of the mean, of the data up to the anchor and y                           |

A value changes V as the pending point did that it belongs to. So V stays as it is when a trial is told, and one more
point is counted when one is asked for. A fantasy from the latest posterior would count all pending points anew after
each value. The weight of a value in V is one until the next anchor.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from bkbopt._support.threads import small_work
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.linalg import compiles
from bkbopt.posterior.model import Model
from bkbopt.surrogates.epochs import new_epoch
from bkbopt.surrogates.pending import Counted, Fantasy, count_all

__all__ = ["Anchor"]

Count = Callable[[Fantasy, Tensor], Fantasy]


class Anchor:
    """The posterior at an anchor, with the points counted that have been asked for since.

    Args:
        posterior: the posterior at the anchor.
        count: counts pending points, as for `count_all`.
        count_beyond: the same with inducing points beyond the budget.
        as_model: a fantasy as a `Model`.
        place: sets the epoch of a model with some pending points.
    """

    def __init__(
        self,
        posterior: Fantasy,
        count: Count,
        count_beyond: Count,
        as_model: Callable[[Fantasy], Model],
        place: Callable[[Model, Tensor], Model],
    ) -> None:
        self._counts, self._as_model = (count, count_beyond), as_model
        posterior = replace(posterior, seen=posterior.seen.kept())
        self._kept: tuple[Counted[Fantasy], ...] = (Counted(posterior.X, posterior),)
        #: The state before the values told since, these with their weights and features, and the state with them.
        self._told: tuple[GaussianState, list[tuple[float, float]], Tensor, GaussianState] | None = None
        self._place = place

    @torch.no_grad()
    def fantasy(
        self,
        X: Tensor,
        rows: Sequence[int],
        y: Sequence[float],
        weight: Sequence[float],
        *,
        beyond_budget: bool = False,
    ) -> Model:
        """The posterior with the points `X (p, d)` counted, some of whose `rows (k,)` have values `y (k,)`.

        It depends on the arguments and the anchor only; see `Surrogate.fantasy` for `beyond_budget`.
        """
        X = X.to(self._kept[0].X.device)
        with small_work():
            self._kept = count_all(self._kept, X, self._counts[beyond_budget], beyond_budget=beyond_budget)
            known = self._kept[-1].value
            if rows:
                known = known.with_data(self._with_values(known, rows, y, weight))
            model = self._as_model(known)
            if beyond_budget:  # in a box, where few suggestions use bounds of an epoch, and finding it costs more
                return model.placed(new_epoch())
            is_pending = torch.ones(len(X), dtype=torch.bool)
            is_pending[rows] = False
            return self._place(model, X[is_pending])

    def _with_values(
        self, known: Fantasy, rows: Sequence[int], y: Sequence[float], weight: Sequence[float]
    ) -> GaussianState:
        """The state of the data with the values `y (k,)`, on the features of the fantasy; it continues the last one."""
        Z, state, done, told = known.rows(rows), known.observed, 0, list(zip(y, weight, strict=True))
        if self._told is not None:
            before, values, features, after = self._told
            n = len(values)
            if before is state and values == told[:n] and torch.equal(features, Z[:n]):
                state, done = after, n
        if done < len(Z):
            if compiles(len(state.w), Z):
                some = list(range(done, len(Z)))
                state, _ = state.update_in_turn(Z, some, list(y[done:]), list(weight[done:]))
            else:
                for z, value, a in zip(Z[done:], y[done:], weight[done:], strict=True):
                    state = state.update(z, value, a)
        self._told = known.observed, told, Z, state
        return state
