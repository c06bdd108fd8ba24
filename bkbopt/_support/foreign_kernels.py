"""Wrappers that give GPyTorch kernels and plain callables the interface of `bkbopt.kernels.Kernel`.

| symbol | shape   | units     | meaning                                              |
| ------ | ------- | --------- | ---------------------------------------------------- |
| X1, X2 | (n, d)  | encoded   | points                                               |
| K      | (n1,n2) | y squared | k(X1, X2), checked for shape and finite values       |
| theta  | (p,)    | raw       | GPyTorch's unconstrained parameters, concatenated    |
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from bkbopt._support.foreign_functions import Way, real_tensor, way_of
from bkbopt.errors import KernelError

__all__ = ["CallableKernel", "FittableCallable", "GPyTorchKernel"]


class _Dense(torch.nn.Module):
    """Evaluates a GPyTorch kernel eagerly, so that `functional_call` sees every use of the parameters."""

    def __init__(self, kernel: Any) -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, what: str, X1: Tensor | None = None, X2: Tensor | None = None) -> Tensor:
        if what == "matrix":
            return cast(Tensor, self.kernel(X1, X2).to_dense())
        if what == "diag":
            return cast(Tensor, self.kernel(X1, diag=True))
        lp = torch.zeros((), dtype=torch.float64)
        for _, module, prior, closure, _ in self.kernel.named_priors():
            lp = lp + prior.log_prob(closure(module)).sum()
        return lp


@dataclass(frozen=True)
class GPyTorchKernel:
    """A GPyTorch kernel without batch dimensions as an immutable `FittableKernel`; fits use its priors.

    Example:
        >>> import gpytorch
        >>> import torch
        >>> from bkbopt.kernels import GPyTorchKernel
        >>> kernel = GPyTorchKernel.wrap(gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=2))
        >>> kernel.theta.shape, kernel(torch.zeros(1, 2).double(), torch.zeros(3, 2).double()).shape
        (torch.Size([2]), torch.Size([1, 3]))
    """

    module: _Dense
    theta: Tensor

    @classmethod
    def wrap(cls, kernel: Any) -> "GPyTorchKernel":
        """Wrap a float64 copy of a `gpytorch.kernels.Kernel`; the caller's object is neither kept nor changed."""
        module = _Dense(copy.deepcopy(kernel)).double().eval()
        values = [p.detach().reshape(-1) for p in module.parameters()]
        theta = torch.cat(values) if values else torch.zeros(0, dtype=torch.float64)
        return cls(module, theta)

    def _parameters(self) -> dict[str, Tensor]:
        out, start = {}, 0
        for name, p in self.module.named_parameters():
            out[name] = self.theta[start : start + p.numel()].reshape(p.shape)
            start += p.numel()
        return out

    def _call(self, *args: object) -> Tensor:
        return cast(Tensor, torch.func.functional_call(self.module, self._parameters(), args))

    def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
        """See `Kernel`."""
        return _checked(self._call("matrix", X1, X2), (len(X1), len(X2)), X1)

    def diag(self, X: Tensor) -> Tensor:
        """See `Kernel`."""
        return _checked(self._call("diag", X), (len(X),), X)

    def with_theta(self, theta: Tensor) -> "GPyTorchKernel":
        """See `FittableKernel`."""
        return GPyTorchKernel(self.module, theta)

    def log_prior(self) -> Tensor:
        """Sum of the log densities of the priors registered on the kernel."""
        return self._call("prior")


@dataclass(frozen=True)
class CallableKernel:
    """A plain callable `(A, B) -> K`, on points or, with `objects`, on arbitrary objects of a pool.

    A callable that PyTorch can differentiate receives tensors; another one, of numpy for example, receives arrays.
    Which one it is, its first call decides. With `objects` the points of the surrogate are indices `(n, 1)` into that
    list, and the callable receives lists of objects. Values of the wrong shape, and values that are not real or not
    finite, raise `KernelError`.

    Example:
        >>> import torch
        >>> from bkbopt.kernels import CallableKernel
        >>> def same_length(A, B):
        ...     return [[float(len(a) == len(b)) for b in B] for a in A]
        >>> kernel = CallableKernel(same_length, objects=["ab", "cd", "efg"])
        >>> rows = torch.arange(3.0)[:, None]
        >>> kernel(rows, rows)
        tensor([[1., 1., 0.],
                [1., 1., 0.],
                [0., 0., 1.]])
    """

    function: Callable[[Any, Any], Any]
    objects: Sequence[object] | None = None
    _ways: list[Way] = field(default_factory=list, init=False, repr=False, compare=False)

    def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
        """See `Kernel`; without points the callable is not asked, since a nested list of no rows has no columns."""
        if not len(X1) or not len(X2):
            return X1.new_zeros(len(X1), len(X2))
        return _checked(self.function(*self._passed(X1, X2)), (len(X1), len(X2)), X1)

    def diag(self, X: Tensor) -> Tensor:
        """The callable's own `diag` if it has one, otherwise the diagonals of small blocks of the matrix."""
        if self._own_diag is not None:
            return _checked(self._own_diag(*self._passed(X)), (len(X),), X)
        return torch.cat([self(B, B).diagonal() for B in X.split(32)]) if len(X) else X.new_zeros(0)

    @property
    def _own_diag(self) -> Callable[[Any], Any] | None:
        return getattr(self.function, "diag", None)

    def _passed(self, *points: Tensor) -> list[Any]:
        """The points as the callable gets them."""
        if self.objects is not None:
            return [[self.objects[int(i)] for i in X[:, 0].tolist()] for X in points]
        if not self._ways:
            self._ways.append(way_of(self._whole, points[0][:1], points[-1][:1]))
        return [self._ways[0](X) for X in points]

    def _whole(self, A: Any, B: Any) -> object:
        """The callable with its own `diag`: both have to take the points in the same way."""
        if self._own_diag is not None:
            self._own_diag(A)
        return self.function(A, B)


@dataclass(frozen=True)
class FittableCallable(CallableKernel):
    """A kernel of the user's own with the hyper-parameters of a `bkbopt.kernels.FittableKernel`.

    Its values are checked as those of any callable. Derivatives in closed form, if it has any, are not used.
    """

    @property
    def theta(self) -> Tensor:
        """See `FittableKernel`."""
        return cast(Tensor, self._own.theta)

    def with_theta(self, theta: Tensor) -> "FittableCallable":
        """See `FittableKernel`."""
        other = FittableCallable(self._own.with_theta(theta), self.objects)
        other._ways.extend(self._ways)
        return other

    def log_prior(self) -> Tensor:
        """See `FittableKernel`."""
        return cast(Tensor, self._own.log_prior())

    @property
    def _own(self) -> Any:
        return self.function


def _checked(values: object, shape: tuple[int, ...], X: Tensor) -> Tensor:
    """Returned kernel values in the dtype and on the device of `X`; `KernelError` for a wrong shape or bad values."""
    K = real_tensor(values)
    if K is None:
        raise KernelError("kernel: expected real numbers, got complex or non-numeric values; check what it returns.")
    if K.shape != shape:
        raise KernelError(
            f"kernel: expected values of shape {shape} for that many points, got shape {tuple(K.shape)}; "
            "return k(A, B) with a row for each of A and a column for each of B."
        )
    if not bool(torch.isfinite(K).all()):
        raise KernelError("kernel: expected finite values, got NaN or infinity among them; check the kernel.")
    return K.to(X)
