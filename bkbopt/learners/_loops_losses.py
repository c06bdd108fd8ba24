"""The losses for compiled loops, by their code in `losses.py`; the two are compared by the tests."""

import math

from bkbopt._support.compiled import compiled

__all__ = ["loss_slope", "step_weight"]


@compiled
def loss_slope(code: int, y: float, p: float) -> float:
    """The derivative of the loss in the prediction `p`, for the target `y`."""
    if code == 0:
        return 2.0 * (p - y)
    if code == 1:
        m = y * p
        if m > 0.0:
            e = math.exp(-m)
            return -y * e / (1.0 + e)
        return -y / (1.0 + math.exp(m))
    if code == 2:
        return -y if y * p < 1.0 else 0.0
    if code == 3:
        return -2.0 * y * max(0.0, 1.0 - y * p)
    if p > y:
        return 1.0
    return -1.0 if p < y else 0.0


@compiled
def step_weight(sigma: float, lipschitz: float, C: float, t: int) -> float:
    """Weight of squared slopes in round t = 1, 2, ...: sigma, or where it is zero 1 / (L C sqrt t)."""
    return sigma if sigma > 0.0 else 1.0 / (lipschitz * C * math.sqrt(t))
