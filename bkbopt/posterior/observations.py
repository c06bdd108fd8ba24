"""Observations by unique point: counts, sums and the sum of squares, the sufficient statistics of the posterior.

| symbol  | shape  | units     | meaning                                                                     |
| ------- | ------ | --------- | --------------------------------------------------------------------------- |
| X       | (u, d) | encoded   | unique points, in order of arrival                                          |
| repeats | (u,)   | -         | evaluations of each point after the first                                   |
| n       | (u,)   | -         | sum of the weights of a point's evaluations; without weights their number   |
| s       | (u,)   | y         | (weighted) sum of the values of each point                                  |
| Y2      | scalar | y squared | (weighted) sum of the squares of all values                                 |

An evaluation with weight a has noise variance lam / a, and is equivalent to the mean of a evaluations of weight 1.
"""

import copy
from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["Observations", "row_keys"]


def row_keys(X: Tensor) -> list[bytes]:
    """A hashable key for each row of `X (n, d)`; equal rows have equal keys (0.0 and -0.0 are equal).

    Example:
        >>> import torch
        >>> from bkbopt.posterior.observations import row_keys
        >>> keys = row_keys(torch.tensor([[0.0, 1.0], [-0.0, 1.0], [0.5, 1.0]]))
        >>> keys[0] == keys[1], keys[0] == keys[2]
        (True, False)
    """
    A = (X.detach().cpu() + 0.0).numpy()
    return [row.tobytes() for row in A]


class Observations:
    """Unique points with counts and sums; appending is amortised O(d) a point.

    Args:
        dim: number of columns d.
        device: device of the tensors.

    Example:
        >>> import torch
        >>> from bkbopt.posterior.observations import Observations
        >>> seen = Observations(dim=1)
        >>> seen.add(torch.tensor([[0.1], [0.7], [0.1]]), torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))
        tensor([0, 1, 0])
        >>> len(seen), seen.n, seen.s
        (2, tensor([2., 1.], dtype=torch.float64), tensor([4., 2.], dtype=torch.float64))
    """

    def __init__(self, dim: int, device: torch.device | None = None) -> None:
        self.dim = dim
        self.total = 0
        self.Y2 = 0.0
        self._index: dict[bytes, int] = {}
        self._X = torch.zeros(16, dim, dtype=torch.float64, device=device)
        self._repeats = torch.zeros(16, dtype=torch.float64, device=device)
        self._n = torch.zeros(16, dtype=torch.float64, device=device)
        self._s = torch.zeros(16, dtype=torch.float64, device=device)

    def __len__(self) -> int:
        """Number of unique points u."""
        return len(self._index)

    @property
    def X(self) -> Tensor:
        """Unique points (u, d)."""
        return self._X[: len(self)]

    @property
    def repeats(self) -> Tensor:
        """Evaluations of each unique point after the first (u,)."""
        return self._repeats[: len(self)]

    @property
    def n(self) -> Tensor:
        """Sum of the weights of each unique point's evaluations (u,)."""
        return self._n[: len(self)]

    @property
    def s(self) -> Tensor:
        """Weighted sum of the values of each unique point (u,), units of y."""
        return self._s[: len(self)]

    def find(self, x: Tensor) -> int | None:
        """Index of the point `x (d,)` among the unique ones, or None."""
        return self._index.get(row_keys(x[None])[0])

    def add(self, X: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """Add evaluations `y (n,)` of the points `X (n, d)`; returns the index of each among the unique points.

        An evaluation with a weight of `weight (n,)` has noise variance lam / weight.
        """
        rows = torch.empty(len(y), dtype=torch.int64)
        for i, key in enumerate(row_keys(X)):
            at = self._index.get(key)
            if at is None:
                at = self._index[key] = len(self._index)
                self._reserve(at + 1)
                self._X[at] = X[i]
            else:
                self._repeats[at] += 1.0
            rows[i] = at
        rows = rows.to(self._X.device)
        weight = torch.ones_like(y) if weight is None else weight
        self._n.index_add_(0, rows, weight)
        self._s.index_add_(0, rows, weight * y)
        self.total += len(y)
        self.Y2 += float(weight * y @ y)
        return rows

    def to(self, device: torch.device | None) -> "Observations":
        """The same observations on a `device`; these where they are there already, or it is None."""
        if device is None or device == self._X.device:
            return self
        other = copy.deepcopy(self)
        for name in ("_X", "_repeats", "_n", "_s"):
            setattr(other, name, getattr(self, name).to(device))
        return other

    def checkpoint(self) -> Callable[[], None]:
        """Return a function that restores the observations as they are at this call."""
        u, total, Y2 = len(self), self.total, self.Y2
        repeats, n, s = self.repeats.clone(), self.n.clone(), self.s.clone()

        def restore() -> None:
            for key in list(self._index)[u:]:
                del self._index[key]
            for buffer, values in ((self._repeats, repeats), (self._n, n), (self._s, s)):
                buffer.zero_()[:u] = values
            self.total, self.Y2 = total, Y2

        return restore

    def _reserve(self, size: int) -> None:
        if size > len(self._n):
            grow = len(self._n)
            self._X = torch.cat([self._X, self._X.new_zeros(grow, self.dim)])
            self._repeats = torch.cat([self._repeats, self._repeats.new_zeros(grow)])
            self._n = torch.cat([self._n, self._n.new_zeros(grow)])
            self._s = torch.cat([self._s, self._s.new_zeros(grow)])
