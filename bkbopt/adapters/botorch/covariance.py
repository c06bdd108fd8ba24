"""The joint covariance of many points, of which most callers want the diagonal only.

| symbol | shape       | units     | meaning                                                          |
| ------ | ----------- | --------- | ---------------------------------------------------------------- |
| X      | (..., q, d) | model's   | points                                                           |
| P      | (..., q, k) | y         | root of what the features leave uncertain                        |
| Q      | (..., q, r) | y         | features, and what the points conditioned on explain             |

    cov(x, x') = k(x, x') + P(x) . P(x') - Q(x) . Q(x')

GPyTorch's own lazy kernel would do for one model. Of a batch of models it takes one by indexing the kernel, and in that
`active_dims` and batch dimensions of size one go wrong.
"""

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self, cast

import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.kernels import Kernel as Module
from linear_operator.operators import LinearOperator, to_linear_operator
from torch import Tensor

__all__ = ["JointCovariance", "part_of", "some_of"]

_ALL = slice(None, None, None)


def part_of(module: Module, index: tuple[int | slice, ...]) -> Module:
    """A copy of the GPyTorch kernel for a part of its batch; only the last entries of `index` may concern it."""
    part = copy.deepcopy(module)
    for kernel in part.modules():
        sizes = getattr(kernel, "_batch_shape", ())  # of its own parameters, where `batch_shape` is of its parts too
        if len(sizes):
            own = tuple(
                i if size > 1 else (0 if isinstance(i, int) else _ALL)
                for i, size in zip(index[-len(sizes) :], sizes, strict=True)
            )
            for parameter in kernel.parameters(recurse=False):
                parameter.data = parameter.data[own]
            kernel.batch_shape = torch.empty(sizes, device="meta")[own].shape
    return part


def some_of(distribution: MultivariateNormal, dim: int, outputs: Sequence[int]) -> MultivariateNormal:
    """The joint distribution of those of several independent outputs, which are dimension `dim` of its batch."""
    mean, covariance, before = distribution.mean, distribution.lazy_covariance_matrix, [_ALL] * dim
    parts = [MultivariateNormal(mean.select(dim, i), covariance[(*before, i)]) for i in outputs]
    return parts[0] if len(parts) == 1 else MultitaskMultivariateNormal.from_independent_mvns(parts)


class JointCovariance(LinearOperator):  # type: ignore[misc]  # linear_operator has no types
    """See the module's table; leading dimensions of `X`, `P` and `Q` are alike, and those of `kernel` the last of them.

    Computed in float64, and given in the dtype of `X`.
    """

    def __init__(self, X: Tensor, P: Tensor, Q: Tensor, kernel: Module) -> None:
        super().__init__(X, P, Q, kernel=kernel)
        self.X, self.P, self.Q, self.kernel = X, P, Q, kernel

    def _size(self) -> torch.Size:
        return torch.Size((*self.X.shape[:-1], self.X.shape[-2]))

    def _transpose_nonbatch(self) -> Self:
        return self

    def _diagonal(self) -> Tensor:
        prior = self.kernel(self.X.double(), diag=True)
        return cast(Tensor, (prior + self.P.square().sum(-1) - self.Q.square().sum(-1)).to(self.X.dtype))

    @cached_property
    def _dense(self) -> Tensor:
        prior = self.kernel(self.X.double()).to_dense()
        return cast(Tensor, (prior + self.P @ self.P.mT - self.Q @ self.Q.mT).to(self.X.dtype))

    def to_dense(self) -> Tensor:
        """The matrix `(..., q, q)`."""
        return self._dense

    def _matmul(self, rhs: Tensor) -> Tensor:
        return self._dense @ rhs

    def _expand_batch(self, batch_shape: torch.Size) -> Self:
        X, P, Q = (T.expand(*batch_shape, *T.shape[-2:]) for T in (self.X, self.P, self.Q))
        return type(self)(X, P, Q, kernel=self.kernel)

    def _unsqueeze_batch(self, dim: int) -> LinearOperator:
        # The kernel's own batch dimensions cannot be moved.
        if len(self.kernel.batch_shape):
            return to_linear_operator(self._dense.unsqueeze(dim))
        return super()._unsqueeze_batch(dim)

    def _permute_batch(self, *dims: int) -> LinearOperator:
        if len(self.kernel.batch_shape):
            return to_linear_operator(self._dense.permute(*dims, -2, -1))
        return super()._permute_batch(*dims)

    def _getitem(self, row_index: Any, col_index: Any, *batch_indices: Any) -> LinearOperator:
        index = tuple(batch_indices)
        plain = all(isinstance(i, int | slice) for i in (row_index, col_index, *index))
        if not (plain and row_index == _ALL and col_index == _ALL):
            return to_linear_operator(self._dense[(*index, row_index, col_index)])
        return type(self)(self.X[index], self.P[index], self.Q[index], kernel=part_of(self.kernel, index))

    def _get_indices(self, row_index: Any, col_index: Any, *batch_indices: Any) -> Tensor:
        return self._dense[(*batch_indices, row_index, col_index)]
