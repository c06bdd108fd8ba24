"""Restarts: phases of a search whose suggestions know only the trials of the phase.

| symbol | units | meaning                                                                              |
| ------ | ----- | ------------------------------------------------------------------------------------ |
| t      | -     | number of the suggested trial                                                        |
| v(x)   | y^2   | posterior variance of the objective, given the trials before the phase               |
| u      | -     | mean of v(x) / k(x, x) over the space: the share of the prior variance that is left  |
| y      | y     | values in the order of their trials, larger is better                                |

The basin in which a search ends is often decided by its first trials. On Hartmann's function, the best value is then
four to five of the model's standard deviations above the mean in every other basin, so that neither a larger beta nor a
perturbation leads away. A new search, from start-up points of its own, finds the best basin as often as the first one
did. So `LENGTH` successive trials, from trial `FIRST` on, and again whenever the number of trials is `GROWTH` times as
large, are suggested by a designer that is given only these trials. The models of the whole search learn them with all
others, so that it goes on in the better one of the two basins.

Most functions do not need this, and 60 trials of a new search are expensive. There is a restart only where the trials
have left most of the space unknown, u > `UNKNOWN`. Where the kernel is a sum, it explains local optima as detail beside
a trend, and the trend leads to the best basin.

Without noise a search may be *settled* much earlier: its last values are equal to the best one, and so would be the
next. A settled search is begun anew from trial `IF_SETTLED` on, too, and where u > `UNKNOWN_IF_SETTLED`.

Nor is there one while the points explain nothing of the values. The figures are in docs/design/perturbations.md.
"""

import numpy as np

from bkbopt.kernels.structured import SumKernel
from bkbopt.search.models import Models
from bkbopt.search.options import Options
from bkbopt.search.trials.evaluations import Request
from bkbopt.search.trials.history import History
from bkbopt.search.trials.states import FAIL
from bkbopt.spaces.space import Space

__all__ = [
    "GROWTH",
    "LENGTH",
    "MOST",
    "MOST_RUNNING",
    "MOST_STARTUP",
    "can_begin_anew",
    "first_of",
    "is_needed",
    "is_settled",
    "seed_of",
    "unknown_share",
]

#: Number of the first trial of the first restart, ratio of these numbers for successive restarts, and length of each.
FIRST, GROWTH, LENGTH = 300, 5, 60
#: Number of the first trial of the restart of a settled search.
IF_SETTLED = 100
#: A search is settled if in its last trials, so many, the best value has grown by at most a share of the spread, and at
#: least half of the values are within another share of it. The spread is the interquartile range of the first values.
LAST, GAIN, NEAR = 20, 1e-4, 1e-3
#: Largest number of start-up trials of a restart: the rest of its trials has to search what they have found.
MOST_STARTUP = LENGTH // 2
#: Number of running trials beside which there is no restart: of a larger batch all would be start-up points. With a
#: smaller one batches would be of both searches, and a restart that knows points of the settled search stays there.
MOST_RUNNING = LENGTH // 3
#: Smallest u of a space that counts as little known, and that where the search is settled.
UNKNOWN, UNKNOWN_IF_SETTLED = 0.4, 0.1
#: Smallest share of the trials before a restart that have values: without values it would consist of start-up points.
MOST = 0.9
#: Number of random points over which u is averaged; its standard error is below 0.02.
N_POINTS = 256
#: Seed of these points.
STREAM = 4_002


def first_of(number: int) -> int | None:
    """Number of the first trial of the phase that trial `number` belongs to; None outside of the phases."""
    if IF_SETTLED <= number < IF_SETTLED + LENGTH:
        return IF_SETTLED
    first = FIRST
    while first + LENGTH <= number:
        first *= GROWTH
    return first if first <= number else None


def can_begin_anew(options: Options, history: History, request: Request) -> bool:
    """Whether the trial of the request may be part of a restart, wherever it may be useful.

    A new search would propose known points of a discrete space again. Beside many running trials it would consist of
    start-up points. Pools have untried rows in its place, see `perturbations.py`.
    """
    space, are_wanted = request.space, options.restarts and options.perturbs
    if space is None or space.is_conditional or space.is_discrete or history.is_conditional:
        return False
    return are_wanted and not request.fixed and len(request.running) < MOST_RUNNING


def unknown_share(models: Models, history: History, space: Space) -> float:
    """u of a space that is continuous in part; 0 with limits or several objectives, for sums, and for flat models."""
    if not (models.ready and models.is_plain) or models.is_flat:
        return 0.0
    surrogate, embedding = models.objectives[0].surrogate, history.encoding.embedding(space.keyed, {})
    if embedding.space is None or isinstance(surrogate.kernel, SumKernel):
        return 0.0
    X = embedding(embedding.space.sample(N_POINTS, np.random.default_rng(STREAM)))
    variance = surrogate.posterior(X).variance
    return float((variance / surrogate.kernel.diag(X.to(variance.device))).mean())


def is_settled(models: Models, history: History) -> bool:
    """Whether values of a single objective without noise are equal to the best one, so that further ones would be."""
    if not (models.ready and models.is_plain and models.objectives[0].is_noiseless):
        return False
    (sign,) = history.problem.signs
    y = sign * np.array([e.values[0] for e in history.finished if e.values and e.state != FAIL])
    y, best = y[np.isfinite(y)], y[np.isfinite(y)].max()
    with np.errstate(over="ignore"):  # of values near the largest double
        spread = np.subtract(*np.percentile(y[:LAST], (75, 25)))
        is_done = best - y[:-LAST].max(initial=-np.inf) <= GAIN * spread
        return bool(is_done and np.mean(y[-LAST:] >= best - NEAR * spread) >= 0.5)


def is_needed(first: int, models: Models, history: History, space: Space) -> bool:
    """Whether the restart at trial `first` may find a better basin, given the trials before it."""
    settled = is_settled(models, history)
    if first == IF_SETTLED and not settled:
        return False
    return unknown_share(models, history, space) > (UNKNOWN_IF_SETTLED if settled else UNKNOWN)


def seed_of(seed: int, first: int) -> int:
    """The seed of a restart that begins with trial `first`, from that of the search."""
    return int(np.random.SeedSequence([seed, first]).generate_state(1)[0])
