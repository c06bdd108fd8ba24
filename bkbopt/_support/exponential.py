"""The exponential function in compiled loops."""

import numpy as np

from bkbopt._support.compiled import fused

__all__ = ["exp_of_negative"]

LOG2_E = 1.4426950408889634
# log(2) = LN2_HIGH + LN2_LOW; LN2_HIGH ends in zero bits, so that n * LN2_HIGH is exact.
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
# Adding this number to a double below 2^51 rounds it to the nearest integer, which is then in the last bits.
ROUNDER = 6755399441055744.0


@fused
def exp_of_negative(x: float) -> float:
    """exp(x) for x <= 0, with an error of at most two units in the last place; exp(-708) = 1e-308 below x = -708.

    The compiler does not vectorise the exponential of the C library, which would take two thirds of the loops' time.
    """
    x = max(x, -708.0)
    shifted = x * LOG2_E + ROUNDER
    n = shifted - ROUNDER
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    # Taylor's series: |r| <= log(2) / 2, and the first term left out is below 2e-16.
    p = 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r * r + r + 1.0
    power = (np.float64(shifted).view(np.int64) + 1023) << 52
    return p * np.int64(power).view(np.float64)
