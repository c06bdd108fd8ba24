"""A compiled pass over the hashes of rows, which finds those with one of a few given hashes."""

import numpy as np
import numpy.typing as npt

from bkbopt._support.compiled import compiled

__all__ = ["rows_with"]

#: Leading bits of a hash that index a table; the table fits a core's cache.
BITS = 19
#: Up to this many hashes are compared one by one, which costs less than a lookup for each row; rows of a block.
FEW, BLOCK = 4, 1 << 18


@compiled
def _collect(hashes: npt.NDArray[np.uint32], wanted: npt.NDArray[np.uint32], out: npt.NDArray[np.int64]) -> int:
    """Write the rows whose hash is among the sorted `wanted` to `out` until it is full; return how many there are."""
    table = np.zeros(1 << BITS, dtype=np.bool_)
    for w in wanted:
        table[w >> (32 - BITS)] = True
    n = 0
    for i in range(len(hashes)):
        h = hashes[i]
        if table[h >> (32 - BITS)]:
            k = np.searchsorted(wanted, h)
            if k < len(wanted) and wanted[k] == h:
                if n < len(out):
                    out[n] = i
                n += 1
    return n


def rows_with(hashes: npt.NDArray[np.uint32], wanted: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """The rows whose hash is one of the `wanted` ones, which are sorted; in any order."""
    if len(wanted) <= FEW:
        blocks = range(0, len(hashes), BLOCK)
        return np.concatenate(
            [np.zeros(0, dtype=np.int64)]
            + [start + np.flatnonzero(hashes[start : start + BLOCK] == w) for w in wanted for start in blocks]
        )
    out = np.empty(4 * len(wanted) + 64, dtype=np.int64)
    n = _collect(hashes, wanted, out)
    if n > len(out):
        out = np.empty(n, dtype=np.int64)
        _collect(hashes, wanted, out)
    return out[:n]
