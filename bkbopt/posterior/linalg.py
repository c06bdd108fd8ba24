"""Dense linear algebra for nearly singular kernel matrices: the jitter policy, thin roots, rank-one steps.

| symbol | shape  | meaning                                                                       |
| ------ | ------ | ----------------------------------------------------------------------------- |
| A      | (m, m) | symmetric positive (semi-)definite matrix                                     |
| L      | (m, m) | lower Cholesky factor, A = L L^T                                              |
| W      | (m, r) | thin root of a pseudo-inverse, W^T K W = I_r, r = numerical rank of K         |
| G      | (m, m) | root of an inverse, G^T G = A^-1; not triangular after rank-one steps         |

Inverses are stored as roots G: quadratic forms z^T A^-1 z = |G z|^2 are then never negative, and a rank-one change of A
costs two matrix-vector products and one outer product.
"""

import contextlib
import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bkbopt._support.compiled import compiled
from bkbopt._support.threads import small_work
from bkbopt.errors import KernelError

__all__ = [
    "append_to_inverse_root",
    "append_to_thin_root",
    "block_update_inverse_root",
    "compiles",
    "difference_root",
    "downdate_inverse_root",
    "eigh",
    "in_memory",
    "inverse_and_logdet",
    "inverse_of_lower",
    "inverse_root",
    "safe_cholesky",
    "thin_root",
    "update_inverse_root",
]

#: Jitter values that are tried in turn, as multiples of the mean diagonal. A matrix that needs more is not positive
#: definite up to rounding, and is refused.
JITTERS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)

#: Features for which compiled loops are faster than calls of torch, most of whose time is overhead. With fewer there is
#: too little work to be worth the import of numba, half a second; with more, BLAS has the faster products.
LEAST_COMPILED, MOST_COMPILED = 16, 512


def compiles(size: int, A: Tensor) -> bool:
    """Whether compiled loops are for so many features, where `A` is."""
    return LEAST_COMPILED <= size <= MOST_COMPILED and in_memory(A)


def in_memory(A: Tensor) -> bool:
    """Whether compiled loops can read `A`: doubles in CPU memory, without a gradient."""
    return A.device.type == "cpu" and A.dtype == torch.float64 and not A.requires_grad


def eigh(A: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues `(n,)`, ascending, and eigenvectors `(n, n)` of a symmetric matrix.

    Matrices of up to a thousand rows use one thread: little of the work is parallel, and on two busy cores the threads
    waited for each other for 2.5 s where one thread needs 6 ms.
    """
    with small_work() if len(A) <= 1000 else contextlib.nullcontext():
        values, vectors = torch.linalg.eigh(A)
    return values, vectors


def safe_cholesky(A: Tensor, size: float | None = None) -> Tensor:
    """Lower Cholesky factor of the symmetric matrix `A (m, m)`, with bounded jitter.

    Args:
        A: the matrix.
        size: the scale of the jitter; None for the mean of the diagonal. For a difference of larger matrices pass their
            scale, which determines the rounding error.

    Raises:
        KernelError: `A` is not finite, or not positive semi-definite beyond rounding.
    """
    _check_finite(A)
    scale = A.diagonal(dim1=-2, dim2=-1).mean().abs() if size is None else abs(size)
    for jitter in JITTERS:
        B = A if jitter == 0.0 else A + torch.eye(A.shape[-1], dtype=A.dtype, device=A.device) * (jitter * scale)
        L, info = torch.linalg.cholesky_ex(B)
        if int(info.max()) == 0:
            return L
    raise KernelError(
        f"kernel: expected a positive semi-definite matrix, got a {A.shape[-1]} x {A.shape[-1]} one without Cholesky "
        f"factor, even with a jitter of {JITTERS[-1]:g} times its mean diagonal; use a valid kernel or more noise."
    )


def _check_finite(A: Tensor) -> None:
    # A finite sum has finite terms, and takes a twentieth of the time of looking at each.
    if not math.isfinite(float(A.detach().sum())) and not bool(torch.isfinite(A).all()):
        raise KernelError("kernel: expected a matrix of finite values, got NaN or infinity in it; check the kernel.")


def inverse_and_logdet(A: Tensor) -> tuple[Tensor, float]:
    """Inverse `(m, m)` and log determinant of the positive definite `A (m, m)`, contiguous and in CPU memory.

    The inverse takes the memory of `A`: new matrices of a megabyte cost more in page faults than the arithmetic.

    Raises:
        KernelError: see `safe_cholesky`.
    """
    from scipy.linalg import lapack

    diagonal = A.diagonal().clone()
    # The lower triangle is the upper one of the transposed matrix, which LAPACK reads without a copy.
    U, info = lapack.dpotrf(A.numpy().T, lower=0, clean=0, overwrite_a=1)
    logdet = 2.0 * float(np.log(U.diagonal()).sum()) if info == 0 else math.nan
    if not math.isfinite(logdet):
        above = A.triu(1)  # is unchanged
        L = safe_cholesky(above + above.T + torch.diag(diagonal))
        U, logdet = np.asfortranarray(L.numpy().T), 2.0 * float(L.diagonal().log().sum())
    inverse = lapack.dpotri(U, lower=0, overwrite_c=1)[0].T
    _mirror(inverse)
    return torch.from_numpy(inverse), logdet


@compiled
def _mirror(A: npt.NDArray[np.float64]) -> None:
    """Copy the lower triangle to the upper one."""
    for i in range(len(A)):
        for k in range(i):
            A[k, i] = A[i, k]


def inverse_root(A: Tensor) -> Tensor:
    """Root `G (m, m)` of the inverse of the positive definite `A (m, m)`: G^T G = A^-1 (lower triangular)."""
    return inverse_of_lower(safe_cholesky(A))


def inverse_of_lower(L: Tensor) -> Tensor:
    """Inverse of a lower triangular matrix `L (m, m)`; it is lower triangular."""
    eye = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device)
    return torch.linalg.solve_triangular(L, eye, upper=False).contiguous()


def difference_root(R: Tensor, lam: float) -> Tensor:
    """Root `(m, m)` of the inverse of R + lam I, lam > 0, where `R (m, m)` is a difference of larger matrices.

    R is positive semi-definite up to rounding; negative eigenvalues that are not small beside lam are set to zero.
    """
    if len(R) == 1:
        return (R.clamp_min(0.0) + lam).rsqrt()
    L, info = torch.linalg.cholesky_ex(R.diagonal_scatter(R.diagonal() + lam))
    # The pivots of R + lam I are at least lam.
    if int(info) == 0 and float(L.diagonal().min()) ** 2 > 0.5 * lam:
        return inverse_of_lower(L)
    _check_finite(R)
    e, Q = eigh(R)
    return (Q / (e.clamp_min(0.0) + lam).sqrt()).T.contiguous()


def thin_root(K: Tensor) -> Tensor:
    """Thin root `W (m, r)` of the pseudo-inverse of `K (m, m)`: W^T K W = I_r and W W^T = K^+.

    Eigenvalues below c = w_max * m * eps (y squared, w_max the largest eigenvalue) are rounding error and are cut;
    otherwise the residual k(x, x) - |z|^2 of points in the dictionary becomes negative. The cut part counts as
    residual, so posterior variances of points with n evaluations have relative errors of about n c / lam.

    The others have rounding errors of about 2 w_max eps, which are added where that is more than 1e-4 of an eigenvalue.
    A feature of too small an eigenvalue, as of two points 1e-8 apart, would be a tenth too long. Far from both points
    it is as large as the root of k(x, x), so that the residual there would be negative.

    Raises:
        KernelError: `K` is not finite, or has an eigenvalue far below zero (the kernel is not positive definite).
    """
    m = K.shape[0]
    _check_finite(K)
    eigenvalues, U = eigh(K)
    top = float(eigenvalues[-1])
    # Rounding errors are about m * eps * top for kernels computed in float64, and up to 1e-7 * m * top in float32.
    if float(eigenvalues[0]) < -1e-6 * m * max(top, 0.0):
        raise KernelError(
            f"kernel: expected a positive semi-definite matrix, got eigenvalues from {float(eigenvalues[0]):.3g} "
            f"to {top:.3g} on {m} points; use a valid kernel."
        )
    unit = top * torch.finfo(K.dtype).eps
    keep = eigenvalues > m * unit
    w = eigenvalues[keep]
    w = torch.where(w < 2e4 * unit, w + 2.0 * unit, w)
    # Contiguous, as arrays read from a state file: products of arrays with other layouts round differently.
    return (U[:, keep] / w.sqrt()).contiguous()


def append_to_thin_root(W: Tensor, Z: Tensor, root: Tensor) -> Tensor:
    """Thin root after k points X were appended to the dictionary.

    Args:
        W: the old root, (m, r).
        Z: features of the new points under `W`, (k, r).
        root: root of the inverse of their residual covariance k(X, X) - Z Z^T, (k, k).

    The new features are the Gram-Schmidt directions root (k(X, .) - Z z(.)); the old features are unchanged.
    """
    m, r = W.shape
    out = W.new_zeros(m + len(Z), r + len(Z))
    out[:m, :r] = W
    out[:m, r:] = -(W @ Z.T) @ root.T
    out[m:, r:] = root.T
    return out


def append_to_inverse_root(G: Tensor, P: Tensor, root: Tensor) -> Tensor:
    """Root of the inverse of [[A, B], [B^T, C]] from `G (k, m)`, `P` = A^-1 B `(m, q)` and a root of (C - B^T P)^-1."""
    k, m = G.shape
    out = G.new_zeros(k + len(root), m + len(root))
    out[:k, :m] = G
    out[k:, :m] = -root @ P.T
    out[k:, m:] = root
    return out


def update_inverse_root(G: Tensor, u: Tensor, v: Tensor, q: float) -> Tensor:
    """Root of (A + z z^T)^-1 from `G (m, m)`, `u` = G z, `v` = A^-1 z = G^T u and `q` = z^T A^-1 z = |u|^2.

    (I + u u^T)^(-1/2) = I - c u u^T with c = (1 - 1/sqrt(1 + q)) / q.
    """
    # This form of c is the same, and does not lose digits for small q.
    root = (1.0 + q) ** 0.5
    c = 1.0 / (root * (1.0 + root))
    return torch.addr(G, u, v, alpha=-c)


def block_update_inverse_root(G: Tensor, U: Tensor) -> Tensor:
    """Root of (A + Z^T Z)^-1 from `G (m, m)` and `U` = G Z^T `(m, p)`: O(m^2 p + p^3).

    (I + U U^T)^(-1/2) = I - U C U^T, where C has the eigenvectors of U^T U and the eigenvalues c(q) of
    `update_inverse_root`.
    """
    q, Q = eigh(U.T @ U)
    root = (1.0 + q.clamp_min(0.0)).sqrt()
    return G - (U @ (Q / (root * (1.0 + root)))) @ (Q.T @ (U.T @ G))


def downdate_inverse_root(G: Tensor, i: int, delta: float) -> Tensor:
    """Root of (A - delta e_i e_i^T)^-1, 0 < delta < 1 / (A^-1)_ii, which makes the i-th diagonal entry of A smaller.

    Another evaluation of an observed point changes K + lam N^-1 in this way. (I + d u u^T)^(1/2) = I + c u u^T with
    u = G e_i.
    """
    u = G[:, i]
    q = float(u @ u)
    d = delta / (1.0 - delta * q)
    root = (1.0 + d * q) ** 0.5
    c = d / (1.0 + root)
    return torch.addr(G, u, u @ G, alpha=c)
