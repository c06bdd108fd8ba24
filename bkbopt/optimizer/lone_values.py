"""A word about a recommended point whose single value all others contradict: it may be an error."""

import functools
import logging

import torch
from torch import Tensor

from bkbopt.search.quantities.quantity import Quantity

__all__ = ["note_lone_value"]

logger = logging.getLogger(__name__)

#: A value is noted if it is more than FAR standard deviations better than the others lead to expect, of FEWEST points
#: or more. Without errors four of 264 recommendations were (`docs/design/outliers.md`).
FAR, FEWEST = 8.0, 20


def note_lone_value(objective: Quantity, x: Tensor) -> None:
    """Log a warning, once, if the point `x (d,)` was evaluated once and its value is far better than expected.

    Nothing is said of learners of one pass, of which it is not known what they had predicted without a value.
    """
    surrogate = objective.surrogate
    if not surrogate.is_regression:
        return
    obs = surrogate.observations
    (rows,) = (x.to(obs.X.device) == obs.X).all(1).nonzero(as_tuple=True)
    if len(obs) < FEWEST or len(rows) != 1 or float(obs.repeats[rows]) > 0.0:
        return
    n, v = obs.n[rows], obs.s[rows] / obs.n[rows]
    mean, variance = surrogate.model.left_out(obs.X[rows], v, n, obs)
    score = float((v - mean) / (variance + surrogate.noise / n).sqrt())
    if score > FAR:
        value, expected = objective.scaler.means(torch.cat([v, mean]).cpu()).tolist()
        _warn(
            f"recommend: the recommended point rests on a single value, {value:.5g}, where the others lead to expect "
            f"{expected:.5g}: {score:.0f} standard deviations. Measure the point again; replace a wrong value by "
            "tell(trial, value, replace=True)."
        )


@functools.lru_cache(maxsize=1024)
def _warn(text: str) -> None:
    logger.warning(text)
