"""What to evaluate next, from the data alone: the search by a global model, with leaps between basins now and then.

Two kinds of step:

- *global*: the maximiser of the acquisition under the surrogate of all data;
- *leap*: from the best point x* by posterior mean, the best in expected improvement of a few random points that differ
  from x* in one parameter.

A posterior that has seen one basin at length and the rest of the space here and there is sure that nothing is better
elsewhere: in most of the space it has only its prior to go by, and the best values found lie several prior standard
deviations up. On functions with many basins such a search settles in a good one and stays. The basins of a black box
are often shifted in one or a few parameters only, and a leap that lands in a better one is noticed by the global steps
at once. Step t is a leap where the whole part of 3 sqrt(t) grows, past the first 50: about 9 times in 100 steps, 74
in 1,000, and their share of the regret goes to zero. Where a parameter has few values, leaps begin after 10 steps: a
search that likes one of the values has no reason to try the next, and from few points a fit may take the parameter for
irrelevant. Along continua the neighbours of good points are tried anyway.

Nothing is remembered between two calls. A proposal is a function of data, pending and failed points, the step's number
and the generator, so that it can be repeated from a log of trials in another process.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from bkbopt.confidence import Confidence
from bkbopt.posterior.model import Model
from bkbopt.search.acquisition import UCB, Acquisition, LogEI, Thompson
from bkbopt.search.box_candidates import BoxDomain
from bkbopt.search.fitted_model import FittedModel
from bkbopt.search.pool_candidates import PoolDomain

__all__ = ["N_GOOD", "acquisition_of", "choose", "leap_is_due", "lower_bound", "propose"]

#: Observed points with the best posterior means that searches start from, and that lower bounds look at.
N_GOOD, N_LCB = 5, 64
#: No leaps in the first steps, when the global search itself goes everywhere; and in how many where a parameter has
#: few values.
FIRST_LEAP, FIRST_LEAP_OF_CHOICES = 50, 10
#: About LEAPS * sqrt(t) leaps in t steps.
LEAPS = 3.0


def propose(
    modelling: FittedModel,
    domain: BoxDomain | PoolDomain,
    *,
    acquisition: str,
    confidence: Confidence,
    rng: np.random.Generator,
    pending: Tensor,
    failed: Tensor,
    step: int,
    leaps: bool = True,
    all_open: bool = True,
) -> tuple[Tensor, dict[str, Any]]:
    """The next point `(d,)`, and the fields of `Diagnostics` that describe the model it came from.

    Args:
        modelling: the surrogate with its data; it has at least one value, and was refitted if that was due.
        domain: where to search.
        acquisition: "ucb", "logei" or "thompson", of the global steps.
        confidence: the schedule of beta.
        rng: of this proposal; it is the only source of randomness.
        pending: (p, d) points that are being evaluated.
        failed: (f, d) points that gave no value.
        step: number of trials before this one, whatever became of them.
        leaps: whether there are leaps; there are none on grids and pools, without fitting, or by Thompson sampling.
        all_open: whether every point may be proposed, again if need be; if not, there is no bound on the regret.
    """
    surrogate = modelling.surrogate
    model = surrogate.hallucinate(pending, failed, modelling.lie() if len(failed) else 0.0)
    progress = modelling.progress(domain.n_arms, len(pending))
    beta = confidence(progress)
    good = modelling.best_points(N_GOOD)
    report = {
        "m": len(surrogate.inducing),
        "effective_dimension": progress.effective_dimension,
        "beta": beta,
        "noise_sd": modelling.scaler.width(surrogate.noise**0.5),
    }
    incumbent = float(modelling.surrogate.model(good[:1])[0][0])
    due = leaps and modelling.fit and acquisition != "thompson" and leap_is_due(step, domain.has_choices)
    leap = LogEI(incumbent) if due else None
    usable = away_from(failed, modelling) if len(failed) else None
    x, leapt = choose(model, domain, acquisition_of(acquisition, beta, incumbent), leap, good, rng, pending, usable)
    if leapt:
        return x, report
    if acquisition == "ucb" and all_open and not len(pending) and not len(failed):
        mean, variance = model(x[None])
        gap = float(mean[0] + beta * variance[0].sqrt()) - lower_bound(modelling, beta)[1]
        report["regret_bound"] = modelling.scaler.width(max(gap, 0.0))
    return x, report


def choose(
    model: Model,
    domain: BoxDomain | PoolDomain,
    acquisition: Acquisition | Thompson,
    leap: Acquisition | None,
    good: Tensor,
    rng: np.random.Generator,
    pending: Tensor,
    usable: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, bool]:
    """The next point `(d,)`, and whether it is a leap.

    Args:
        model: posterior with pending and failed points counted.
        domain: where to search.
        acquisition: of a global step.
        leap: what ranks leaps, if this step is to be one; it is not on grids and pools, which are searched whole.
        good: (k, d) the best points known so far, best first; leaps start from the first.
        rng: of this choice.
        pending: (p, d) points that are being evaluated.
        usable: which of the points `(n, d)` a leap may go to, (n,) of bool; by default to all.
    """
    if leap is not None and isinstance(domain, BoxDomain) and domain.n_arms is None:
        x = domain.leap(model, leap, good[0], rng, pending, usable)
        if x is not None:
            return x, True
    return domain.suggest(model, acquisition, good, rng, pending), False


def leap_is_due(step: int, choices: bool) -> bool:
    """Whether the trial after `step` others is a leap; `choices`: whether a parameter has few values."""
    first = FIRST_LEAP_OF_CHOICES if choices else FIRST_LEAP
    return step > first and math.floor(LEAPS * step**0.5) > math.floor(LEAPS * (step - 1) ** 0.5)


def away_from(failed: Tensor, modelling: FittedModel) -> Callable[[Tensor], Tensor]:
    """Whether each of some points `(n, d)` is more like a point with a value than like one of `failed (f, d)`.

    A global step weighs what failed points are imagined to have returned against all else. A leap compares a few
    points, all of which may have failed neighbours.
    """
    kernel, told = modelling.surrogate.kernel, modelling.surrogate.observations.X
    return lambda X: kernel(X, told).amax(1) > kernel(X, failed).amax(1)


def lower_bound(modelling: FittedModel, beta: float) -> tuple[Tensor, float]:
    """The observed point `(d,)` with the largest lower confidence bound, among the best by posterior mean."""
    X = modelling.best_points(N_LCB)
    mean, variance = modelling.surrogate.model(X)
    lcb = mean - beta * variance.sqrt()
    i = int(lcb.argmax())
    return X[i], float(lcb[i])


def acquisition_of(name: str, beta: float, incumbent: float) -> Acquisition | Thompson:
    """The acquisition of a name; `incumbent` is the best posterior mean of an observed point."""
    if name == "ucb":
        return UCB(beta)
    if name == "thompson":
        return Thompson()
    return LogEI(incumbent)
