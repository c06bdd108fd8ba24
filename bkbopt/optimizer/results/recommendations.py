"""Recommendations: evaluated points chosen by the posterior, so that noise does not select lucky values."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from bkbopt._support.row_keys import row_keys
from bkbopt.optimizer.results.lone_values import note_lone_value
from bkbopt.search.completion import assumed
from bkbopt.search.criteria.expected import SURE
from bkbopt.search.criteria.pareto import non_dominated
from bkbopt.search.designer import Designer
from bkbopt.search.models import Models, Posteriors
from bkbopt.search.quantities.holding import at_known
from bkbopt.search.quantities.quantity import Quantity
from bkbopt.search.slices import Slice
from bkbopt.search.trials.evaluations import Point
from bkbopt.search.trials.reports import FrontPoint, Recommendation
from bkbopt.search.trials.states import FAIL
from bkbopt.spaces.space import Space

__all__ = [
    "CAUTION",
    "Belongs",
    "ParamsOf",
    "evaluated_at",
    "feasibilities",
    "finished_only",
    "recommendation",
    "recommendations_after",
    "recommended",
    "recommended_front",
]

#: Number of points, those with the best means, whose lower confidence bounds are compared, and the width of these.
N_BOUNDED, CAUTION = 256, 1.0
#: Decimals of standardised means that a front distinguishes under noise, whose variance is then above 1e-5.
ALIKE = 5
#: Whether an evaluated point belongs to the current space: as it is, with further values for new parameters, or not.
IN, COMPLETED, OUTSIDE = 0, 1, 2
#: Maps a point and its row in the pool to parameters.
ParamsOf = Callable[[Point, int | None], dict[str, Any]]
#: Says whether a point belongs to the current space.
Belongs = Callable[[Point], bool]


def finished_only(designer: Designer) -> tuple[Posteriors, Quantity]:
    """The posteriors without pending points, and the first objective."""
    models, nothing = designer.trained(), designer.history.X[:0]
    posteriors = models.posteriors(nothing, designer.candidates.n_arms())
    return posteriors, models.objectives[0]


def _anywhere(_: Point) -> bool:
    return True


@torch.no_grad()
def recommendation(
    designer: Designer, fixed: Point, params_of: ParamsOf, belongs: Belongs = _anywhere, space: Space | None = None
) -> Recommendation:
    """See `Optimizer.recommend`.

    Args:
        designer: the designer.
        fixed: values to hold; without any the point is one of the evaluated ones.
        params_of: how points are shown.
        belongs: which evaluated points are in the current space; all by default.
        space: the space with fixed values, needed if the problem has none.
    """
    objective = designer.trained().objectives[0]
    if fixed:
        choice = Slice(designer, finished_only(designer)[0], fixed, space).best(SURE)
        found = choice.x, choice.point, choice.index
    else:
        found = recommended(designer, belongs)
        note_lone_value(designer, objective, found[0])
    return _with_mean(designer, objective, found, params_of)


@torch.no_grad()
def recommendations_after(
    designer: Designer, counts: Sequence[int], params_of: ParamsOf, belongs: Belongs
) -> list[Recommendation]:
    """The points that `recommendation` would have recommended after the first so many values of a single objective.

    The trials that ended before the next value are learnt, with their values of constraints. All else is of the
    present: scaling, kernel, noise and limits, the space or pool and `feasible=`, penalties and outliers, and the mean,
    standard deviation and feasibility of each point. So it is no record of what `recommendation` returned then, with
    the hyper-parameters of that time. After all values it is what it returns now, to the last bit. After fewer values
    the posteriors are computed from scratch, and BKB and learners of one pass may differ from those of that time.

    Args:
        designer: the designer.
        counts: numbers of values, from 1 on.
        params_of: how points are shown.
        belongs: which evaluated points are in the current space.
    """
    history, models = designer.history, designer.trained()
    valued = [place for place, e in enumerate(history.finished) if e.values and e.state != FAIL]
    ends, out = [*valued[1:], len(history.finished)], list[Recommendation]()
    for end in (ends[count - 1] for count in counts):
        points = _Evaluated(designer, models if end == ends[-1] else models.of_first(end), belongs, end)
        found = points.complete(next(points.by_rank()))
        out.append(_with_mean(designer, models.objectives[0], found, params_of))
    return out


@torch.no_grad()
def recommended_front(
    designer: Designer, fixed: Point, params_of: ParamsOf, belongs: Belongs = _anywhere, space: Space | None = None
) -> list[FrontPoint]:
    """See `Optimizer.recommend_front`; the arguments are those of `recommendation`."""
    posteriors, _ = finished_only(designer)
    if fixed:
        choices = Slice(designer, posteriors, fixed, space).front(SURE)
        found = [(choice.x, choice.point, choice.index) for choice in choices]
    else:
        points = _Evaluated(designer, designer.trained(), belongs)
        rows = points.front()
        found = list(map(points.complete, rows))
        if points.standing(rows[0]) != OUTSIDE or designer.problem.space is None:
            return _with_means(designer, found, params_of)
    X = torch.stack([x for x, _, _ in found])
    Y = torch.stack([model(X)[0] for model in posteriors.models], 1)
    return _with_means(designer, [found[i] for i in non_dominated(Y.numpy())], params_of)


def _with_mean(
    designer: Designer, objective: Quantity, found: tuple[Tensor, Point, int | None], params_of: ParamsOf
) -> Recommendation:
    """An encoded point, with its parameters and its row in the pool, as a recommendation."""
    x, point, index = found
    mean, std = objective.predict(x[None])
    (feasible,) = feasibilities(designer, x[None])
    return Recommendation(params_of(point, index), index, float(mean[0]), float(std[0]), feasibility=feasible)


def _with_means(
    designer: Designer, found: Sequence[tuple[Tensor, Point, int | None]], params_of: ParamsOf
) -> list[FrontPoint]:
    """Encoded points, with their parameters and their rows in the pool, as points of a front."""
    X = torch.stack([x for x, _, _ in found])
    parts = [objective.predict(X) for objective in designer.trained().objectives]
    means, stds = (torch.stack([part[j] for part in parts], 1).tolist() for j in (0, 1))
    return [
        FrontPoint(params_of(point, index), index, tuple(mean), tuple(std), feasibility=feasible)
        for (_, point, index), mean, std, feasible in zip(found, means, stds, feasibilities(designer, X), strict=True)
    ]


def feasibilities(designer: Designer, X: Tensor) -> list[float | None]:
    """The probabilities that the constraints hold at the points `X (n, d)`; None without constraints."""
    models = designer.trained()
    return models.log_feasibility(X).exp().tolist() if models.constraints else [None] * len(X)


def recommended(designer: Designer, belongs: Belongs) -> tuple[Tensor, Point, int | None]:
    """The recommended point: encoded `(d,)`, its parameters, and its row in the pool."""
    points = _Evaluated(designer, designer.trained(), belongs)
    return points.complete(next(points.by_rank()))


def evaluated_at(designer: Designer, x: Tensor, belongs: Belongs, n: int | None = None) -> tuple[Point, int | None]:
    """The parameters of the evaluated point `x (d,)`, and its row in the pool; with `n` by the first `n` trials.

    Of several trials with this encoded point the first that did not fail gives the parameters, or rather the first one
    that belongs to the current space: others may lack a parameter that is new in it.
    """
    history, pool = designer.history, designer.problem.pool
    trials = (x == history.X[:n]).all(1).nonzero()[:, 0].tolist()
    points = [e.point for e in map(history.finished.__getitem__, trials) if e.state != FAIL]
    point = points[0] if len(points) == 1 else next(filter(belongs, points), points[0])
    return point, None if pool is None else next(iter(pool.each_at(x)), None)


class _Evaluated:
    """The evaluated points, by their rows in `Known`; with `n` those of the first `n` trials, as their models are."""

    def __init__(self, designer: Designer, models: Models, belongs: Belongs, n: int | None = None) -> None:
        self._designer, self._history, self._pool = designer, designer.history, designer.problem.pool
        self._models, self._known, self._belongs, self._n = models, models.known, belongs, n
        self._standing: dict[int, int] = {}

    def by_rank(self) -> Iterator[int]:
        """The rows in the current space or pool, best first; then those that are once completed; then all.

        Rows that are feasible with probability `SURE` come first, then those that are expected to be feasible, each by
        the first objective: its lower confidence bound, or without noise the measured value; then the others by their
        expected violation of the constraints. Of equal violations, as those of flags, the objective decides.
        """
        by_objective = torch.argsort(self._cautious, descending=True, stable=True)
        order = by_objective[torch.argsort(self._rank[by_objective], descending=True, stable=True)].tolist()
        for outermost in (IN, COMPLETED, OUTSIDE):
            for level in self._levels:
                yield from (i for i in order if level[i] and self.standing(i) <= outermost)

    def front(self) -> list[int]:
        """The rows of the Pareto front by posterior means, the best in the first objective first.

        They are as near to the current space or pool as the best row (see `standing`), and feasible with probability
        `SURE` or else expected to be feasible. If there is no such row, the front is the best row.
        """
        best = next(self.by_rank())
        fronts = (self._front_of(level, self.standing(best)) for level in self._levels[:2])
        return next((front for front in fronts if front), [best])

    def _front_of(self, level: Tensor, outermost: int) -> list[int]:
        rows = (level & self._complete).nonzero()[:, 0]
        rows = rows[torch.argsort(self._comparable[rows, 0], descending=True, stable=True)]
        Y = self._comparable[rows]
        # With few values an objective without noise may be fitted with a little, and means of equal values differ.
        noisy = torch.tensor([not quantity.is_noiseless for quantity in self._models.objectives])
        rounded = torch.where(noisy, torch.round(Y, decimals=ALIKE), Y)
        front: list[int] = []
        for i in non_dominated(rounded.numpy(), lambda i: self.standing(int(rows[i])) <= outermost):
            # Of rows that are alike the best in the first objective is kept, of equal ones all.
            if not any(torch.equal(rounded[i], rounded[j]) and not torch.equal(Y[i], Y[j]) for j in front):
                front.append(i)
        return rows[front].tolist()

    @property
    def _comparable(self) -> Tensor:
        """Posterior means (u, k), but measured values where there is no noise: they are equal where values are."""
        means, X = self._known.means, self._known.X
        objectives = enumerate(self._models.objectives)
        columns = [at_known(q, X, q.measured) if q.is_noiseless else means[:, k] for k, q in objectives]
        return torch.stack(columns, 1)

    @cached_property
    def _levels(self) -> list[Tensor]:
        """Masks of the rows that may be recommended, the first one with rows in the current space decides.

        They are the rows that are feasible with probability `SURE`, those that are expected to be feasible, and all: of
        many points near a border of the feasible region, those with the best objective are often just beyond it.
        """
        expected = self._known.feasible
        sure = self._models.log_feasibility(self._known.X, noisy_only=True) >= math.log(SURE)
        return [expected & sure, expected, torch.ones_like(expected)]

    @cached_property
    def _rank(self) -> Tensor:
        best, expected = self._cautious, self._known.feasible
        rank = torch.where(expected, best, best.min() - 1.0 - self._known.violation)
        # Among equal means a point with a complete trial is preferred.
        return torch.where(self._complete, rank, rank.nextafter(rank.new_tensor(-torch.inf)))

    @cached_property
    def _cautious(self) -> Tensor:
        """The first objective (u,), where it is noisy by lower confidence bounds: mean - `CAUTION` sd.

        A late search has many points whose means differ by less than the errors of the model; the certain ones of them
        are the better ones. Points that are not among those with the best means follow by their means. Of points
        without a complete trial the standard deviation is that of the prior, since their values are imputed.
        """
        best, objective = self._comparable[:, 0], self._models.objectives[0]
        if objective.is_noiseless or len(self._history.problem.signs) > 1:
            return best
        expected = self._known.feasible if bool(self._known.feasible.any()) else torch.ones_like(self._known.feasible)
        rows = torch.where(expected, best, -torch.inf).topk(min(N_BOUNDED, len(best))).indices
        X, surrogate = self._known.X[rows], objective.surrogate
        variance = surrogate.posterior(X).variance.cpu()
        prior = surrogate.kernel.diag(X.to(surrogate.observations.X.device)).cpu()
        bounds = best[rows] - CAUTION * torch.where(self._complete[rows], variance, prior).sqrt()
        others = best - best.max() + bounds.min() - 1.0
        return others.scatter(0, rows, bounds)

    @cached_property
    def _complete(self) -> Tensor:
        """A mask of the rows with a complete trial; the value of a pruned trial is imputed."""
        history = self._history
        complete = set(row_keys(history.X[: self._n][[bool(e.values) for e in history.finished[: self._n]]]))
        return torch.tensor([key in complete for key in row_keys(self._known.X)], dtype=torch.bool)

    def standing(self, row: int) -> int:
        """Whether the point belongs to the current space or pool: as it was evaluated, once completed, or not."""
        if row not in self._standing:
            self._standing[row] = self._standing_of(row)
        return self._standing[row]

    def _standing_of(self, row: int) -> int:
        point, index = self._at(row)
        if self._pool is not None:
            feasible = self._designer.problem.feasible
            is_in = index is not None and (feasible is None or feasible(self._pool.point(index)))
            return IN if is_in else OUTSIDE
        return IN if self._belongs(point) else COMPLETED if self._belongs(self._assumed(point)) else OUTSIDE

    def complete(self, row: int) -> tuple[Tensor, Point, int | None]:
        """The point of a row with a value for each parameter, and no others: encoded, `(d,)`, the values, its arm."""
        point, index = self._at(row)
        whole, space = self._assumed(point), self._designer.problem.space
        if space is not None and not whole.keys() <= space.keyed.keys():  # parameters that were removed
            whole = {key: value for key, value in whole.items() if key in space.keyed}
        return self._known.X[row] if whole is point else self._history.encode([whole])[0], whole, index

    def _assumed(self, point: Point) -> Point:
        return assumed(self._designer.problem, self._history.encoding, point)

    def _at(self, row: int) -> tuple[Point, int | None]:
        return evaluated_at(self._designer, self._known.X[row], self._belongs, self._n)
