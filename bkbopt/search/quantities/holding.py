"""Known points, the numbers of quantities there, and where a constraint holds by its values.

| symbol | shape  | units | meaning                                                                |
| ------ | ------ | ----- | ---------------------------------------------------------------------- |
| X      | (n, d) | enc.  | points                                                                 |
| known  | (u, d) | enc.  | unique points with a value of an objective                             |
| zero   | scalar | y     | limit above which the constraint holds, standardised; see `limits.py`  |

A constraint that was measured without noise holds, or not, by the measured value. Its posterior has a small variance
there, since the noise of a fit has a lower limit, so that the probability of a value at the limit would be about 1/2.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from bkbopt._support.row_keys import row_keys
from bkbopt.search.quantities.quantity import Quantity
from bkbopt.search.quantities.scaling import NOISELESS

__all__ = ["at_known", "known_points", "log_probability", "measured_exactly", "violation"]

#: A violation up to this is rounding, standardised units: that of values far from zero.
ROUNDING = 1e-11


def known_points(objectives: Sequence[Quantity]) -> Tensor:
    """The points (u, d) with a value of an objective: those of the first one, then what others have beside them."""
    first, *others = (objective.surrogate.observations for objective in objectives)
    parts, added = [first.X.cpu()], set[bytes]()
    for X in (observations.X.cpu() for observations in others):
        if not torch.equal(X, parts[0]):
            keys = row_keys(X)
            new = [i for i, key in enumerate(keys) if first.row_of(key) is None and key not in added]
            added.update(keys[i] for i in new)
            parts.append(X[new])
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def at_known(quantity: Quantity, known: Tensor, own: Tensor) -> Tensor:
    """The numbers `own (v,)` of the quantity's points at the points `known (u, d)`, (u,); at others its mean."""
    surrogate, n = quantity.surrogate, len(own)
    if torch.equal(surrogate.observations.X.cpu(), known[:n]):  # the first objective, or all points
        return own if n == len(known) else torch.cat([own, surrogate.posterior(known[n:]).mean.cpu()])
    at = _rows(quantity, known)
    numbers, others = own[at], at < 0
    numbers[others] = surrogate.posterior(known[others]).mean.cpu()
    return numbers


def violation(quantity: Quantity, known: Tensor) -> Tensor:
    """The expected violation of a constraint at the points `known (u, d)`, (u,).

    Without noise the measured value decides. With noise it is the larger one of the violations by posterior mean and by
    measured mean plus one standard error. At points without a value of the constraint it is that by posterior mean.
    """
    surrogate, obs = quantity.surrogate, quantity.surrogate.observations.to(known.device)
    fitted, measured, n = quantity.fitted, quantity.measured, obs.n
    if not torch.equal(obs.X, known):
        at = _rows(quantity, known)
        fitted = surrogate.posterior(known).mean.cpu()
        measured, n = torch.where(at >= 0, measured[at], fitted), torch.where(at >= 0, n[at], torch.inf)
    if not quantity.is_noiseless:
        measured = torch.minimum(fitted, measured + (surrogate.noise / n).sqrt())
    missing = quantity.zero - measured
    return torch.where(missing > ROUNDING, missing, 0.0)


def measured_exactly(quantity: Quantity, X: Tensor) -> tuple[Tensor, Tensor]:
    """At which of the points `X (n, d)` a constraint was measured without noise, and where it holds by these values.

    Returns:
        two masks (n,); the second one is False where the first one is.
    """
    exact = holds = torch.zeros(len(X), dtype=torch.bool)
    if quantity.is_noiseless:
        surrogate, at = quantity.surrogate, _rows(quantity, X)
        exact = (at >= 0) & (surrogate.noise <= NOISELESS * surrogate.observations.n.cpu()[at])
        holds = exact & (quantity.zero - quantity.measured[at] <= ROUNDING)
    return exact, holds


def log_probability(quantity: Quantity, X: Tensor, floor: float) -> Tensor:
    """Log probability that a constraint holds at the points `X (n, d)`, (n,); <= 0. Variances are at least `floor`."""
    mean, variance = quantity.model(X[:0])(X)
    log_p = torch.special.log_ndtr((mean - quantity.zero) / variance.clamp_min(floor).sqrt())
    exact, holds = measured_exactly(quantity, X)
    return torch.where(exact, torch.where(holds, 0.0, -torch.inf), log_p)


def _rows(quantity: Quantity, X: Tensor) -> Tensor:
    """Rows (n,) of the points `X (n, d)` among those with a value of the quantity; -1 for others."""
    row_of = quantity.surrogate.observations.row_of
    rows = map(row_of, row_keys(X))
    return torch.tensor([-1 if row is None else row for row in rows], dtype=torch.int64)
