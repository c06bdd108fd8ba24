"""The default kernel: stationary, with one lengthscale for each column (automatic relevance determination, ARD).

| symbol  | shape   | units     | meaning                                                            |
| ------- | ------- | --------- | ------------------------------------------------------------------ |
| A       | (n, d)  | -         | numeric columns over their lengthscales                            |
| r2      | (n, m)  | -         | squared distances of rows of A                                     |
| G       | (n, n)  | y squared | dK / d log lengthscale_j = G (A_aj - A_bj)^2                       |

A call of a GPyTorch kernel has an overhead of about half a millisecond, a call of this one some tens of microseconds
(`benchmarks/kernel_overhead.py` prints the ratio).
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from bkbopt.errors import ArgumentError
from bkbopt.kernels.base import ByTheta, Floats, NormalPrior, Pullback, Sloped, check_columns, placed, selected, spread

__all__ = ["ARDKernel", "matern", "matern52", "rbf"]

FORMS = ("matern12", "matern32", "matern52", "rbf")
#: Forms by their smoothness nu.
MATERN = {0.5: "matern12", 1.5: "matern32", 2.5: "matern52"}
#: Distance from the origin, in lengthscales, beyond which squared distances are sums of squared differences. The
#: expanded square is faster, but rounded in units of the square of this distance: by 2e-9 here. Points of the unit cube
#: are nearer, unless eight lengthscales are at their lower limit.
FAR = 3e3
#: Standard deviation of the normal prior on the logarithms of the lengthscales.
LENGTHSCALE_SCALE = math.sqrt(3.0)
#: Mean and standard deviation of the normal prior on the logarithm of the prior variance, on standardised y.
HEIGHT_PRIOR = (0.0, 0.5)


@dataclass(frozen=True)
class ARDKernel:
    """A stationary kernel with one lengthscale a column, and a Hamming distance for categories.

    k(x, x') = outputscale * shape(r) * exp(-sum_c [x_c != x'_c] / hamming_c),
    r^2 = sum_j (x_j - x'_j)^2 / lengthscale_j^2 over the numeric columns that are not inactive.

    Args:
        log_lengthscale: logarithm of the lengthscales of the active numeric columns, (d_numeric,).
        log_outputscale: logarithm of the prior variance (y squared), a scalar.
        log_hamming: logarithm of the Hamming lengthscales of the categorical columns, (d_categorical,).
        categorical: indices of the categorical columns, which hold integer codes.
        form: "matern52", "matern32", "matern12" or "rbf".
        prior_loc: mean of the normal prior on `log_lengthscale`.
        inactive: indices of the numeric columns without effect, which have no lengthscale.
        height_prior: mean and standard deviation of the normal prior on `log_outputscale`.

    Raises:
        ArgumentError: an unknown form.

    Example:
        >>> import torch
        >>> from bkbopt.kernels import matern52
        >>> kernel = matern52(2, lengthscale=[0.5, 2.0])
        >>> kernel.lengthscale, kernel.form
        (tensor([0.5000, 2.0000], dtype=torch.float64), 'matern52')
        >>> kernel(torch.zeros(1, 2).double(), torch.eye(2).double())  # the longer lengthscale changes k less
        tensor([[0.1387, 0.8286]], dtype=torch.float64)
    """

    log_lengthscale: Tensor
    log_outputscale: Tensor
    log_hamming: Tensor
    categorical: tuple[int, ...] = ()
    form: str = "matern52"
    prior_loc: float = 0.0
    inactive: tuple[int, ...] = ()
    height_prior: tuple[float, float] = HEIGHT_PRIOR

    def __post_init__(self) -> None:
        """Check the form."""
        if self.form not in FORMS:
            raise ArgumentError(f"form: expected one of {', '.join(FORMS)}, got {self.form!r}.")

    @property
    def dim(self) -> int:
        """Number of columns."""
        return len(self.log_lengthscale) + len(self.categorical) + len(self.inactive)

    @functools.cached_property
    def numeric(self) -> tuple[int, ...]:
        """Indices of the columns that have a lengthscale, in the order of the lengthscales."""
        others = {*self.categorical, *self.inactive}
        return tuple(j for j in range(self.dim) if j not in others)

    @property
    def lengthscale(self) -> Tensor:
        """Lengthscales of the active numeric columns, (d_numeric,), in units of the encoded columns."""
        return self.log_lengthscale.exp()

    @property
    def outputscale(self) -> Tensor:
        """Prior variance, y squared."""
        return self.log_outputscale.exp()

    def __call__(self, X1: Tensor, X2: Tensor) -> Tensor:
        """See `Kernel`."""
        K = self._numeric_part(X1, X2)
        return K * self._alike(X1, X2) if self.categorical else K

    def _alike(self, X1: Tensor, X2: Tensor) -> Tensor:
        """exp(-sum_c [x_c != x'_c] / hamming_c) `(n, m)`; needs at least one categorical column."""
        factors = [
            torch.where(X1[:, j, None] != X2[None, :, j], torch.exp(-torch.exp(-log_h)), 1.0)
            for j, log_h in zip(self.categorical, self.log_hamming, strict=True)
        ]
        return functools.reduce(torch.mul, factors)

    def _squares(self, A: Tensor, B: Tensor) -> Tensor:
        """Squared distances `(n, m)` of the rows of `A` and `B`."""
        b2 = (B * B).sum(1)
        if self.form == "matern12" or (len(B) and float(b2.detach().max()) > FAR**2):
            return _distances(A, B).square()
        return torch.addmm((A * A).sum(1, keepdim=True) + b2, A, B.T, alpha=-2.0)

    def diag(self, X: Tensor) -> Tensor:
        """See `Kernel`."""
        return self.outputscale.expand(X.shape[0])

    def by_theta(self, U: Tensor) -> ByTheta:
        """See `ClosedFormKernel`."""
        from bkbopt.kernels._loops import by_categories, radial_by_scales, radial_gram, times_categories

        points, form = selected(U, self.numeric).contiguous().numpy(), FORMS.index(self.form)
        codes, c = selected(U, self.categorical).T.contiguous().numpy(), len(self.numeric)

        def at(theta: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
            A, by_category, height = points * np.exp(-theta[:c]), np.exp(-theta[c:-1]), math.exp(theta[-1])
            B, K, factor = np.ascontiguousarray(A.T), np.empty((len(A), len(A))), None
            radial_gram(A, B, form, height, K)
            if len(codes):
                factor = np.ones_like(K)
                times_categories(codes, np.exp(-by_category), factor)

            def pullback(M: Floats) -> Floats:
                M = M if factor is None else M * factor
                out = np.empty(c + 1)
                radial_by_scales(A, B, form, height, M, out)
                if factor is None:
                    return out
                by_hamming = np.empty(len(codes))
                by_categories(codes, M * K, False, by_hamming)
                return np.concatenate([out[:-1], by_category * by_hamming, out[-1:]])

            return (K if factor is None else K * factor), pullback

        return at

    def sloped(self, X2: Tensor) -> Sloped:
        """See `ClosedFormKernel`."""
        from bkbopt.kernels._loops import radial_by_points

        scale = torch.exp(-self.log_lengthscale)
        B = (selected(X2, self.numeric) * scale).T.contiguous()

        def at(X1: Tensor) -> tuple[Tensor, Pullback]:
            A = (selected(X1, self.numeric) * scale).contiguous()
            K, G = self._with_slopes(A, B, X1, X2)

            def pullback(M: Tensor) -> Tensor:
                out = torch.empty_like(A)
                radial_by_points(A.numpy(), B.numpy(), G.numpy(), M.numpy(), out.numpy())
                return spread(out * scale, X1, self.numeric)

            return K, pullback

        return at

    def _with_slopes(self, A: Tensor, B: Tensor, X1: Tensor, X2: Tensor) -> tuple[Tensor, Tensor]:
        """K and G for points in CPU memory; see the module's table."""
        from bkbopt.kernels._loops import radial

        K, G = X1.new_empty(len(X1), len(X2)), X1.new_empty(len(X1), len(X2))
        radial(A.numpy(), B.numpy(), FORMS.index(self.form), float(self.outputscale), K.numpy(), G.numpy())
        if self.categorical:
            factor = self._alike(X1, X2)
            return K * factor, G * factor
        return K, G

    def _numeric_part(self, X1: Tensor, X2: Tensor) -> Tensor:
        check_columns(X1, X2, self.dim)
        if not self.numeric:
            return self.outputscale.expand(X1.shape[0], X2.shape[0])
        scale = torch.exp(-self.log_lengthscale)
        A, B = (selected(X, self.numeric) * scale for X in (X1, X2))
        if self.form == "matern12":
            return self.outputscale * torch.exp(-_distances(A, B))
        # Of the matrix of some points the smallest eigenvalues count (see `thin_root`), so it has no expanded squares.
        r2 = _distances(A, A).square() if X1 is X2 and not A.requires_grad else self._squares(A, B)
        if r2.requires_grad:
            return self.outputscale * self._shape(r2)
        return self._shape_in_place(r2).mul_(self.outputscale)

    def _shape(self, r2: Tensor) -> Tensor:
        if self.form == "rbf":
            return torch.exp(-0.5 * r2.clamp_min(0.0))
        # The lower bound of r2 keeps the gradient of the square root finite; its effect on k is below rounding.
        a = (r2.clamp_min(1e-30) * (5.0 if self.form == "matern52" else 3.0)).sqrt()
        poly = 1.0 + a + a * a / 3.0 if self.form == "matern52" else 1.0 + a
        return poly * torch.exp(-a)

    def _shape_in_place(self, r2: Tensor) -> Tensor:
        """`_shape` with one temporary instead of six, so that blocks of a pool stay in the CPU's cache."""
        if self.form == "rbf":
            return r2.clamp_min_(0.0).mul_(-0.5).exp_()
        a = r2.clamp_min_(0.0).mul_(5.0 if self.form == "matern52" else 3.0).sqrt_()
        e = torch.exp(-a)
        if self.form == "matern52":
            return torch.addcmul(a, a, a, value=1.0 / 3.0).add_(1.0).mul_(e)
        return a.add_(1.0).mul_(e)

    def to(self, device: torch.device) -> "ARDKernel":
        """The same kernel with its numbers on `device`."""
        return placed(self, device)

    @property
    def theta(self) -> Tensor:
        """Log lengthscales, log Hamming lengthscales and log outputscale, (d + 1,)."""
        return torch.cat([self.log_lengthscale, self.log_hamming, self.log_outputscale.reshape(1)])

    def with_theta(self, theta: Tensor) -> "ARDKernel":
        """See `FittableKernel`."""
        k, c = len(self.log_lengthscale), len(self.categorical)
        return replace(self, log_lengthscale=theta[:k], log_hamming=theta[k : k + c], log_outputscale=theta[k + c])

    @property
    def prior(self) -> NormalPrior:
        """Normal densities on the logarithms.

        Lengthscales have the log-normal density of Hvarfner et al. (2024, https://arxiv.org/abs/2402.02229): location
        sqrt(2) + log(d)/2, scale sqrt(3), so that they grow with the dimension as typical distances do. It is a density
        of the lengthscale, not of its logarithm. Its mode, on the logarithm, is therefore the location minus 3 (the
        square of the scale); `prior_loc` is that mode. Hamming lengthscales: location 0, scale 1. Outputscale:
        `height_prior`.
        """
        loc, scale = torch.zeros_like(self.theta), torch.ones_like(self.theta)
        c = len(self.log_lengthscale)
        loc[:c], scale[:c] = self.prior_loc, LENGTHSCALE_SCALE
        loc[-1], scale[-1] = self.height_prior
        return NormalPrior.independent(loc, scale)

    def log_prior(self) -> Tensor:
        """See `FittableKernel`."""
        return self.prior.log_density(self.theta)


def usual_lengthscale(n: int) -> float:
    """The lengthscale at which a fit begins, for `n` columns with one."""
    return 0.5 * math.sqrt(max(n, 1))


def prior_mode(n: int) -> float:
    """The mode of the prior on the logarithm of a lengthscale, for `n` columns with one; see `ARDKernel.prior`."""
    return math.sqrt(2.0) + 0.5 * math.log(max(n, 1)) - 3.0


def _distances(A: Tensor, B: Tensor) -> Tensor:
    """Distances `(n, m)` for exp(-r), which is not smooth at r = 0, where the expanded square is only good to 1e-8."""
    return torch.cdist(A, B, compute_mode="donot_use_mm_for_euclid_dist")


def matern52(
    dim: int,
    lengthscale: float | Sequence[float] | None = None,
    outputscale: float = 1.0,
    categorical: Sequence[int] = (),
    inactive: Sequence[int] = (),
) -> ARDKernel:
    """The default kernel: ARD Matern-5/2 on the numeric columns, Hamming distance on the `categorical` ones.

    Args:
        dim: number of encoded columns.
        lengthscale: one number, or one for each active numeric column; by default 0.5 * sqrt(number of these).
        outputscale: prior variance, y squared.
        categorical: columns that hold category codes.
        inactive: numeric columns on which the kernel does not depend.

    Raises:
        ArgumentError: a scale is not positive and finite, or the number of lengthscales does not fit.

    Example:
        >>> import torch
        >>> from bkbopt.kernels import matern52
        >>> X = torch.tensor([[0.0, 1.0], [0.5, 1.0], [0.5, 0.0]], dtype=torch.float64)
        >>> matern52(2, lengthscale=0.5, categorical=[1])(X, X)
        tensor([[1.0000, 0.5240, 0.1928],
                [0.5240, 1.0000, 0.3679],
                [0.1928, 0.3679, 1.0000]], dtype=torch.float64)
    """
    return _ard("matern52", dim, lengthscale, outputscale, categorical, inactive)


def matern(
    dim: int,
    nu: float,
    lengthscale: float | Sequence[float] | None = None,
    outputscale: float = 1.0,
    categorical: Sequence[int] = (),
    inactive: Sequence[int] = (),
) -> ARDKernel:
    """ARD Matern kernel of smoothness `nu`: 2.5 is the default kernel, 1.5 and 0.5 are for rougher functions.

    Args:
        dim: number of encoded columns.
        nu: smoothness, 0.5, 1.5 or 2.5.
        lengthscale: as in `matern52`, like the others.
        outputscale: prior variance, y squared.
        categorical: columns that hold category codes.
        inactive: numeric columns on which the kernel does not depend.

    Raises:
        ArgumentError: another `nu`, or what `matern52` refuses.

    Example:
        >>> import torch
        >>> from bkbopt.kernels import matern
        >>> X = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
        >>> matern(1, nu=0.5, lengthscale=1.0)(X, X)  # exp(-r)
        tensor([[1.0000, 0.3679],
                [0.3679, 1.0000]], dtype=torch.float64)
    """
    if nu not in MATERN:
        raise ArgumentError(f"nu: expected one of {', '.join(map(str, MATERN))}, got {nu!r}.")
    return _ard(MATERN[nu], dim, lengthscale, outputscale, categorical, inactive)


def rbf(
    dim: int,
    lengthscale: float | Sequence[float] | None = None,
    outputscale: float = 1.0,
    categorical: Sequence[int] = (),
    inactive: Sequence[int] = (),
) -> ARDKernel:
    """ARD Gaussian kernel exp(-r^2 / 2); the arguments are those of `matern52`.

    Example:
        >>> import torch
        >>> from bkbopt.kernels import rbf
        >>> X = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
        >>> rbf(1, lengthscale=1.0, outputscale=4.0)(X, X)
        tensor([[4.0000, 2.4261],
                [2.4261, 4.0000]], dtype=torch.float64)
    """
    return _ard("rbf", dim, lengthscale, outputscale, categorical, inactive)


def _ard(
    form: str,
    dim: int,
    lengthscale: float | Sequence[float] | None,
    outputscale: float,
    categorical: Sequence[int],
    inactive: Sequence[int],
) -> ARDKernel:
    if len(set(categorical) & set(range(dim))) < len(categorical):
        raise ArgumentError(f"categorical: expected different columns from 0 to {dim - 1}, got {list(categorical)}.")
    if len(set(inactive) & set(range(dim)) - set(categorical)) < len(inactive):
        raise ArgumentError(
            f"inactive: expected different numeric columns from 0 to {dim - 1}, got {list(inactive)}; a column cannot "
            f"be among `categorical`, too."
        )
    n = dim - len(categorical) - len(inactive)
    if lengthscale is None:
        lengthscale = usual_lengthscale(n)
    values = torch.as_tensor(lengthscale, dtype=torch.float64).reshape(-1)
    if len(values) == 1:
        values = values.expand(n)
    if len(values) != n:
        raise ArgumentError(
            f"lengthscale: expected one value or {n} (one for each active numeric column), got {len(values)}."
        )
    if not bool((torch.isfinite(values) & (values > 0)).all()):
        raise ArgumentError(f"lengthscale: expected positive finite values, got {lengthscale!r}.")
    if not (math.isfinite(outputscale) and outputscale > 0):
        raise ArgumentError(f"outputscale: expected a positive finite variance, got {outputscale!r}.")
    return ARDKernel(
        log_lengthscale=values.log(),
        log_outputscale=torch.tensor(math.log(outputscale), dtype=torch.float64),
        log_hamming=torch.zeros(len(categorical), dtype=torch.float64),
        categorical=tuple(categorical),
        form=form,
        prior_loc=prior_mode(n),
        inactive=tuple(inactive),
    )
