"""A lazy joint posterior covariance: only the requested parts of the matrix are computed.

| symbol | shape       | units     | meaning                                                          |
| ------ | ----------- | --------- | ---------------------------------------------------------------- |
| X      | (..., q, d) | model's   | points                                                           |
| S      | (..., m, d) | model's   | inducing points                                                  |
| K      | (..., q, m) | y squared | k(X, S)                                                          |
| C      | (..., m, r) | 1/y       | see `bkbopt.posterior.collapsed.Collapsed`                       |
| A      | (..., q, p) | y         | root of the covariance explained by the points conditioned on    |

    cov(x, x') = k(x, x') - k(x, S) C C^T k(S, x') - A(x) . A(x')

The whole matrix and its diagonal need the product K C. A few rows do not: ((k(x, S) C) C^T) k(S, X) does not multiply
the other points by C. Noisy acquisition functions need only the rows of the few new points at every step, of a matrix
that also contains a hundred known points. Both ways have the same rounding error, that of k(x, x').

GPyTorch's lazy kernel tensor would suffice for one model. For a batch of models it indexes the kernel, which gives
wrong results with `active_dims` and with batch dimensions of size one.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, cast

from gpytorch.kernels import Kernel as Module
from linear_operator.operators import LinearOperator, to_linear_operator
from torch import Size, Tensor, empty

from bkbopt.kernels import gram

__all__ = ["JointCovariance", "ModuleKernel"]

_ALL = slice(None, None, None)


@dataclass(frozen=True)
class ModuleKernel:
    """A GPyTorch kernel, with batch dimensions, as a `Kernel`: a float64 copy without gradients."""

    module: Module

    @classmethod
    def frozen(cls, module: Module) -> "ModuleKernel":
        """The kernel with its present hyper-parameters."""
        return cls(copy.deepcopy(module).double().eval().requires_grad_(False))

    def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
        """K `(..., n1, n2)`; for `X2` without batch dimensions all batches are computed at once."""
        if X1.ndim > 2 and X2.ndim == 2 and not len(self.module.batch_shape):
            K = self(X1.reshape(-1, X1.shape[-1]), X2)
            return K.reshape(*X1.shape[:-1], len(X2))
        return cast(Tensor, self.module(X1, X2).to_dense())

    def diag(self, X: Tensor) -> Tensor:
        """k(x, x) `(..., n)`."""
        return cast(Tensor, self.module(X, diag=True))

    def part(self, index: tuple[int | slice, ...]) -> "ModuleKernel":
        """The kernel of a part of the batch; the last entries of `index` apply to the kernel's batch dimensions."""
        if not len(self.module.batch_shape):
            return self
        part = copy.deepcopy(self.module)
        for kernel in part.modules():
            # `_batch_shape` is that of the kernel's own parameters; `batch_shape` includes its parts.
            sizes = cast(Size, getattr(kernel, "_batch_shape", Size()))
            if len(sizes):
                own = _own(index, sizes)
                for parameter in kernel.parameters(recurse=False):
                    parameter.data = parameter.data[own]
                kernel.batch_shape = empty(sizes, device="meta")[own].shape
        return ModuleKernel(part)


def _own(index: tuple[int | slice, ...], sizes: Size) -> tuple[int | slice, ...]:
    """The last entries of a batch index, for a tensor with batch shape `sizes` whose dimensions of size 1 broadcast."""
    ends = zip(index[len(index) - len(sizes) :], sizes, strict=True)
    return tuple(i if size > 1 else (0 if isinstance(i, int) else _ALL) for i, size in ends)


class JointCovariance(LinearOperator):  # type: ignore[misc]  # linear_operator has no types
    """See the module's table.

    Leading dimensions of `X`, `K` and `A` broadcast to `batch`; those of `C` and `kernel` are its last dimensions. The
    matrix is computed in float64 and returned in the dtype of `X`.
    """

    def __init__(self, X: Tensor, K: Tensor, A: Tensor, C: Tensor, *, kernel: ModuleKernel, batch: Size) -> None:
        super().__init__(X, K, A, C, kernel=kernel, batch=batch)
        self.X, self.K, self.A, self.C, self.kernel, self.batch = X, K, A, C, kernel, batch

    def _size(self) -> Size:
        q = self.X.shape[-2]
        return Size((*self.batch, q, q))

    def _transpose_nonbatch(self) -> Self:
        return self

    @cached_property
    def _explained(self) -> Tensor:
        return self.K @ self.C

    def _shaped(self, entries: Tensor, dims: int) -> Tensor:
        """Entries with `dims` dimensions besides the batch, expanded to the batch and in the dtype of `X`."""
        return entries.expand(*self.batch, *entries.shape[entries.ndim - dims :]).to(self.X.dtype)

    def _diagonal(self) -> Tensor:
        variance = self.kernel.diag(self.X.double()) - self._explained.square().sum(-1)
        return self._shaped(variance - self.A.square().sum(-1), 1)

    @cached_property
    def _dense(self) -> Tensor:
        P = self._explained
        return self._shaped(gram(self.kernel, self.X.double()) - P @ P.mT - self.A @ self.A.mT, 2)

    def to_dense(self) -> Tensor:
        """The matrix `(..., q, q)`."""
        return self._dense

    def _block(self, rows: Any, columns: Any) -> Tensor:
        (x, k, a), (y, K, A) = ([T[..., i, :] for T in (self.X.double(), self.K, self.A)] for i in (rows, columns))
        if 2 * k.shape[-2] < self.K.shape[-2]:
            explained = ((k @ self.C) @ self.C.mT) @ K.mT
        else:
            P = self._explained
            explained = P[..., rows, :] @ P[..., columns, :].mT
        return self._shaped(self.kernel(x, y) - explained - a @ A.mT, 2)

    def _matmul(self, rhs: Tensor) -> Tensor:
        return self._dense @ rhs

    def _getitem(self, row_index: Any, col_index: Any, *batch_indices: Any) -> LinearOperator:
        if not all(isinstance(i, int | slice) for i in batch_indices):
            return to_linear_operator(self._dense[(*batch_indices, row_index, col_index)])
        part = self if all(i == _ALL for i in batch_indices) else self._part(batch_indices)
        if isinstance(row_index, slice) and isinstance(col_index, slice) and row_index == col_index == _ALL:
            return part
        return to_linear_operator(part._block(row_index, col_index))

    def _get_indices(self, row_index: Any, col_index: Any, *batch_indices: Any) -> Tensor:
        return self._dense[(*batch_indices, row_index, col_index)]

    def _part(self, index: tuple[int | slice, ...]) -> Self:
        C = self.C[_own(index, self.C.shape[:-2])]
        return self._moved(lambda T: T[index], C, self.kernel.part(index))

    def _moved(self, move: Callable[[Tensor], Tensor], C: Tensor, kernel: ModuleKernel) -> Self:
        X, K, A = (move(T.expand(*self.batch, *T.shape[-2:])) for T in (self.X, self.K, self.A))
        return type(self)(X, K, A, C, kernel=kernel, batch=X.shape[:-2])

    def _expand_batch(self, batch_shape: Size) -> Self:
        return type(self)(self.X, self.K, self.A, self.C, kernel=self.kernel, batch=Size(batch_shape))

    def _rearranged(self, move: Callable[[Tensor], Tensor]) -> LinearOperator:
        # Batch dimensions of the kernel itself cannot be moved.
        if self.C.ndim > 2 or len(self.kernel.module.batch_shape):
            return to_linear_operator(move(self._dense))
        return self._moved(move, self.C, self.kernel)

    def _unsqueeze_batch(self, dim: int) -> LinearOperator:
        return self._rearranged(lambda T: T.unsqueeze(dim))

    def _permute_batch(self, *dims: int) -> LinearOperator:
        return self._rearranged(lambda T: T.permute(*dims, -2, -1))
