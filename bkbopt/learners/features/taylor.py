"""Taylor features of the Gaussian kernel: all monomials up to a degree, with the Gaussian factor in front.

| symbol | shape  | units | meaning                                                                    |
| ------ | ------ | ----- | -------------------------------------------------------------------------- |
| l      | -      | enc.  | lengthscale of the kernel exp(-|x - x'|^2 / (2 l^2))                       |
| M      | -      | -     | degree of the truncation                                                   |
| k      | (d,)   | -     | multi-index, |k| = k_1 + ... + k_d <= M                                    |
| z_k(x) | -      | 1     | prod_i (x_i / l)^k_i / sqrt(k_i!) exp(-x_i^2 / (2 l^2))                    |
| r      | -      | -     | number of features, (M + d) choose d                                       |

The z_k of all degrees are an orthonormal basis of the kernel's feature space, so that the residual is exact:
k(x, x) - |z(x)|^2 is the tail of the exponential series of |x|^2 / l^2, times exp(-|x|^2 / l^2), and at most
(R / l)^(2 (M + 1)) / (M + 1)! for |x| <= R. Inputs should be scaled to a few lengthscales about zero.
Jezequel et al. 2019, section 3.1; Cotter, Keshet and Srebro 2011.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from bkbopt._support.checks import check_count, check_number
from bkbopt.errors import ArgumentError
from bkbopt.kernels import ARDKernel, gram, rbf

__all__ = ["Taylor"]

#: Largest dimension and degree in estimates of the size and in messages.
MOST = 10**9


def _log_size(dim: int, degree: int) -> float:
    """Logarithm of (degree + dim) choose dim."""
    return math.lgamma(degree + dim + 1) - math.lgamma(degree + 1) - math.lgamma(dim + 1)


def _text(number: int) -> str:
    return str(number) if number <= MOST else f"above {MOST}"


@dataclass(frozen=True)
class Taylor:
    """Taylor features of degree M in d dimensions; see the module's table.

    Args:
        dim: d, number of columns.
        degree: M >= 0.
        lengthscale: l, positive.
        max_size: the largest number of features allowed.

    Raises:
        ArgumentError: an argument out of range, or more features than `max_size` (none are computed).

    Example:
        >>> import torch
        >>> from bkbopt.learners.features import Taylor
        >>> features = Taylor(dim=2, degree=4)
        >>> X = torch.tensor([[0.0, 0.0], [0.5, 0.5]], dtype=torch.float64)
        >>> features.size, features.residual(X, features(X)) < 1e-3
        (15, tensor([True, True]))
    """

    dim: int
    degree: int
    lengthscale: float = 1.0
    max_size: int = 10_000

    def __post_init__(self) -> None:
        """Check all arguments, and the size before memory is allocated."""
        object.__setattr__(self, "dim", check_count("dim", self.dim))
        object.__setattr__(self, "degree", check_count("degree", self.degree, 0))
        check_number("lengthscale", self.lengthscale, 0.0, "a positive finite length", strict=True)
        # Numbers of thousands of digits can be neither printed nor converted to floats.
        digits = _log_size(min(self.dim, MOST), min(self.degree, MOST)) / math.log(10.0)
        if digits > 15.0:
            size, memory = f"10^{digits:.0f} or more", f"10^{2.0 * digits - 8.0:.0f}"
        elif self.size > self.max_size:
            size, memory = f"{self.size}", f"{8e-9 * self.size**2:.3g}"
        else:
            return
        raise ArgumentError(
            f"degree: expected a basis of at most {self.max_size} features, but degree {_text(self.degree)} in "
            f"{_text(self.dim)} dimensions gives {size}, and a matrix of {memory} GB; lower the degree, take Nystrom "
            "features, or raise the limit."
        )

    @property
    def size(self) -> int:
        """Number of features r."""
        return math.comb(self.degree + self.dim, self.dim)

    @cached_property
    def kernel(self) -> ARDKernel:
        """The kernel that the features approximate."""
        return rbf(self.dim, self.lengthscale)

    def __call__(self, X: Tensor) -> Tensor:
        """See `FeatureMap`; O(n r)."""
        if X.shape[1] != self.dim:
            raise ArgumentError(f"X: expected {self.dim} columns, as many as the features have, got {X.shape[1]}.")
        U = X / self.lengthscale
        front = torch.exp(-0.5 * (U * U).sum(1, keepdim=True))
        return self._monomials(front, lambda part, i: U[:, i : i + 1] * part).mul_(self._scales.to(X))

    @cached_property
    def _scales(self) -> Tensor:
        """1 / sqrt(k_1! ... k_d!) of every feature `(r,)`, in the order of `__call__`."""
        unit = torch.eye(self.dim, dtype=torch.int64)
        K = self._monomials(torch.zeros_like(unit[:, :1]), lambda part, i: part + unit[:, i : i + 1])
        return torch.exp(-0.5 * torch.lgamma(K.T.contiguous().double() + 1.0).sum(1))

    def _monomials(self, first: Tensor, times: Callable[[Tensor, int], Tensor]) -> Tensor:
        """All monomials up to degree M, one a column, by degree; `first (n, 1)` is that of degree 0.

        `times` multiplies some columns by a coordinate. A monomial of the next degree is a coordinate times one of this
        degree whose first coordinate is not earlier; these are the last columns of this degree.
        """
        degrees, starts = [first], [0] * self.dim
        for _ in range(self.degree):
            parts = [times(degrees[-1][:, start:], i) for i, start in enumerate(starts)]
            degrees.append(torch.cat(parts, 1))
            starts = [0, *itertools.accumulate(part.shape[1] for part in parts[:-1])]
        return torch.cat(degrees, 1)

    def residual(self, X: Tensor, Z: Tensor) -> Tensor:
        """See `FeatureMap`."""
        return (1.0 - (Z * Z).sum(-1)).clamp_min(0.0)

    def residual_covariance(self, X: Tensor, Z: Tensor) -> Tensor:
        """See `FeatureMap`."""
        return gram(self.kernel, X) - Z @ Z.mT
