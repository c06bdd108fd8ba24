"""Compiled passes over the bounds of a part's rows; see `parts.py` for the table of symbols."""

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import compiled

__all__ = ["GROUP", "best_bounds", "fold", "raise_tops"]

#: Rows of a group.
GROUP = 256

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@compiled
def _keep_best(rows: Ints, bounds: Floats, n: int, most: int) -> float:
    """Move the `most` largest of the first `n` bounds, with their rows, to the front; return a bound of the others."""
    least = np.sort(bounds[:n])[n - most]
    k = 0
    for strictly in (True, False):  # equal ones fill the room that is left
        for i in range(k, n):
            if k < most and (bounds[i] > least if strictly else bounds[i] == least):
                rows[i], rows[k] = rows[k], rows[i]
                bounds[i], bounds[k] = bounds[k], bounds[i]
                k += 1
    return least


@compiled
def best_bounds(
    mu: Singles,
    sd: Singles,
    version: npt.NDArray[np.uint8],
    groups: tuple[Floats, Floats, Floats],
    closed: npt.NDArray[np.bool_],
    width: Floats,
    current: int,
    above: float,
    rows: Ints,
    bounds: Floats,
) -> tuple[int, int, float]:
    """Put rows with the largest bounds mu + width sd into `rows` and `bounds`, which are filled to half at most.

    Left out are rows of the `current` version, closed ones, and bounds of `above` or less. Returns how many were put
    there, how many there are in all, and a bound of the rest.
    """
    top, most_sd, at = groups
    widest, most = width.max(), len(rows) // 2
    n, n_above, least, rest = 0, 0, above, -np.inf
    for g in range(len(top)):
        if top[g] + most_sd[g] * max(widest - at[g], 0.0) <= above:
            continue
        highest, largest = -np.inf, 0.0
        for i in range(g * GROUP, min((g + 1) * GROUP, len(mu))):
            m, s, v = np.float64(mu[i]), np.float64(sd[i]), version[i]
            highest, largest = max(highest, m + s * widest), max(largest, s)
            bound = m + s * width[v]
            if not bound > above or v == current or (len(closed) > 0 and closed[i]):
                continue
            n_above += 1
            if not bound > least:
                continue
            rows[n], bounds[n] = i, bound
            n += 1
            if n == len(rows):
                least = rest = _keep_best(rows, bounds, n, most)
                n = most
        top[g], most_sd[g], at[g] = highest, largest, widest
    if n > most:
        rest = _keep_best(rows, bounds, n, most)
        n = most
    return n, n_above, rest


@compiled
def raise_tops(groups: tuple[Floats, Floats, Floats], rows: Ints, mu: Singles, sd: Singles) -> None:
    """Raise the groups' values so that they hold for `rows` that have changed."""
    top, most_sd, at = groups
    for i in rows:
        g = i // GROUP
        most_sd[g] = max(most_sd[g], np.float64(sd[i]))
        top[g] = max(top[g], np.float64(mu[i]) + np.float64(sd[i]) * at[g])


@compiled
def fold(mu: Singles, sd: Singles, version: npt.NDArray[np.uint8], growth: Floats, drift: Floats) -> None:
    """Write all bounds in terms of the last version, which becomes number 0; rounded up."""
    for i in range(len(mu)):
        v = version[i]
        s = np.float64(sd[i]) * growth[v]
        m = np.float64(mu[i]) + s * drift[v]
        sd[i] = np.nextafter(np.float32(s), np.float32(np.inf))
        mu[i] = np.nextafter(np.float32(m), np.float32(np.inf))
        version[i] = 0
