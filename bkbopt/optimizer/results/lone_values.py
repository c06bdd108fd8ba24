"""The warning that a recommended point rests on a single value which all others contradict: it may be an error."""

import logging
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from bkbopt._support.row_keys import row_keys
from bkbopt.search.designer import Designer
from bkbopt.search.quantities.quantity import Quantity

__all__ = ["note_lone_value"]

logger = logging.getLogger(__name__)

#: A value is noted if it is more than FAR standard deviations and an interquartile range of all values better than the
#: others lead to expect, of FEWEST points or more; or more than FARTHEST standard deviations. The range tells an error
#: from the next step down a steep function, which a smooth kernel does not expect either (`docs/design/outliers.md`).
FAR, FARTHEST, FEWEST = 8.0, 16.0, 20
#: The noted points of each designer. What is expected of them changes with each further value.
_noted: WeakKeyDictionary[Designer, set[object]] = WeakKeyDictionary()


def note_lone_value(designer: Designer, objective: Quantity, x: Tensor) -> None:
    """Log a warning if the point `x (d,)` was evaluated once and its value is far better than expected.

    There is one warning for each point and designer. There is none for learners of one pass, whose predictions without
    a value are not known, nor for objectives that are stated to have no noise: another measurement gives the same
    value, and rough values are many standard deviations from the predictions under a smooth kernel.
    """
    surrogate = objective.surrogate
    if not surrogate.is_regression or objective.noisiness.fitter.options.deterministic:
        return
    obs = surrogate.observations
    (rows,) = (x.to(obs.X.device) == obs.X).all(1).nonzero(as_tuple=True)
    if len(obs) < FEWEST or len(rows) != 1 or float(obs.repeats[rows]) > 0.0:
        return
    n, v = obs.n[rows], obs.s[rows] / obs.n[rows]
    mean, variance = surrogate.model.left_out(obs.X[rows], v, n, obs)
    score = float((v - mean) / (variance + surrogate.noise / n).sqrt())
    low, high = torch.quantile(obs.s / obs.n, obs.s.new_tensor([0.25, 0.75]))
    is_far = score > (FAR if bool(v - mean > high - low) else FARTHEST)
    noted, (key,) = _noted.setdefault(designer, set()), row_keys(x[None])
    if is_far and key not in noted:
        noted.add(key)
        value, expected = objective.scaler.means(torch.cat([v, mean]).cpu()).tolist()
        logger.warning(
            "recommend: the recommended point rests on a single value, %.5g, where the others lead to expect %.5g: "
            "%.0f standard deviations. Measure the point again; replace a wrong value by tell(trial, value, "
            "replace=True).",
            value,
            expected,
            score,
        )
