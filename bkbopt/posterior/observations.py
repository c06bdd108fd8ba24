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

from bkbopt._support.row_keys import row_keys

__all__ = ["Observations"]


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
        self._sums = torch.zeros(3, 16, dtype=torch.float64, device=device)  # repeats, n and s

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
        return self._sums[0, : len(self)]

    @property
    def n(self) -> Tensor:
        """Sum of the weights of each unique point's evaluations (u,)."""
        return self._sums[1, : len(self)]

    @property
    def s(self) -> Tensor:
        """Weighted sum of the values of each unique point (u,), units of y."""
        return self._sums[2, : len(self)]

    @property
    def within(self) -> float:
        """Y2 - sum s_i^2 / n_i: the sum of squares of the values around the means of their points, y squared."""
        return max(self.Y2 - float((self.s * self.s / self.n).sum()), 0.0)

    def find(self, x: Tensor) -> int | None:
        """Index of the point `x (d,)` among the unique ones, or None."""
        return self._index.get(row_keys(x[None])[0])

    def row_of(self, key: bytes) -> int | None:
        """`find` for the key of a point, see `row_keys`."""
        return self._index.get(key)

    def add(self, X: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """Add evaluations `y (n,)` of the points `X (n, d)`; returns the index of each among the unique points.

        An evaluation with a weight of `weight (n,)` has noise variance lam / weight.
        """
        u, places, new = len(self), list[int](), list[int]()
        for i, key in enumerate(row_keys(X)):
            at = self._index.setdefault(key, len(self._index))
            if at == u + len(new):
                new.append(i)
            places.append(at)
        self._reserve(len(self))
        self._X[u : len(self)] = X[new].to(self._X.device)
        rows, repeated = torch.tensor(places, dtype=torch.int64, device=self._X.device), torch.ones(len(y))
        repeated[new] = 0.0
        weight = torch.ones_like(y) if weight is None else weight
        self._sums.index_add_(1, rows, torch.stack([repeated.to(y), weight, weight * y]))
        self.total += len(y)
        self.Y2 += float(weight * y @ y)
        return rows

    def add_one(self, x: Tensor, y: float, weight: float) -> int:
        """`add` for one evaluation of the point `x (1, d)`; returns its index among the unique points."""
        key, repeated = row_keys(x)[0], 1.0
        at = self._index.get(key)
        if at is None:
            at, repeated = len(self._index), 0.0
            self._index[key] = at
            self._reserve(at + 1)
            self._X[at] = x[0]
        self._count(at, repeated, y, weight)
        return at

    def repeat(self, at: int, y: float, weight: float) -> None:
        """`add_one` for the unique point `at`."""
        self._count(at, 1.0, y, weight)

    def _count(self, at: int, repeated: float, y: float, weight: float) -> None:
        if self._sums.is_cpu:
            sums = self._sums.numpy()  # a call of torch for a few numbers is mostly overhead
            sums[0, at] += repeated
            sums[1, at] += weight
            sums[2, at] += weight * y
        else:
            self._sums[:, at].add_(self._sums.new_tensor([repeated, weight, weight * y]))
        self.total += 1
        self.Y2 += weight * y * y

    def to(self, device: torch.device | None) -> "Observations":
        """The same observations on a `device`; these where they are there already, or it is None."""
        if device is None or device == self._X.device:
            return self
        other = copy.deepcopy(self)
        for name in ("_X", "_sums"):
            setattr(other, name, getattr(self, name).to(device))
        return other

    def checkpoint(self) -> Callable[[], None]:
        """Return a function that restores the observations as they are at this call."""
        u, total, Y2 = len(self), self.total, self.Y2
        sums = self._sums[:, :u].clone()

        def restore() -> None:
            for key in list(self._index)[u:]:
                del self._index[key]
            self._sums.zero_()[:, :u] = sums
            self.total, self.Y2 = total, Y2

        return restore

    def _reserve(self, size: int) -> None:
        while size > len(self._X):
            self._X = torch.cat([self._X, torch.zeros_like(self._X)])
            self._sums = torch.cat([self._sums, torch.zeros_like(self._sums)], 1)
