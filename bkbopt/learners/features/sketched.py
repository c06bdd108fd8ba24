"""Features from two sketches of a kernel matrix that grow point by point (FORKS, section 3).

| symbol   | shape      | units     | meaning                                                               |
| -------- | ---------- | --------- | --------------------------------------------------------------------- |
| S_p      | (t, s_p)   | -         | sparse signs: a row has one entry +-1/sqrt(D) in each of D blocks     |
| S_m      | (t, s_m)   | -         | column sampling: unit columns, s_m distinct ones of the first points  |
| Phi_pp   | (s_p, s_p) | y squared | S_p^T K S_p                                                           |
| Phi_pm   | (s_p, s_m) | y squared | S_p^T K S_m                                                           |
| E, e     | (s_p, k)   | -, y^2    | leading eigenvectors and eigenvalues of Phi_pp, e >= 0                |
| M        | (s_m, k)   | 1/y       | Phi_pm^+ E diag(e)^1/2                                                |
| z(x)     | (k,)       | y         | M^T k(sampled, x); z(x).z(x') approximates k(x, x')                   |

A point x with psi = k(x, earlier points), rows s of S_p and zero of S_m, v = S_p^T psi, changes them by

    Phi_pm += s psi[sampled]^T          Phi_pp += s v^T + v s^T + k(x, x) s s^T

which has rank two and is symmetric but indefinite. If K has rank k or less and the sampled points span it, the
features are exact; otherwise z(x).z(x) may exceed k(x, x), since they are not a projection.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.state_forms import Floats, Form, Ints
from bkbopt.errors import ArgumentError
from bkbopt.kernels import Kernel
from bkbopt.learners.numerics.growing import finite
from bkbopt.learners.numerics.losses import Array, Indices

__all__ = ["Eigenpairs", "SketchedFeatures", "Sketches", "new_directions", "sketch_map"]

#: Relative size below which a direction lies in the span of the others.
NEGLIGIBLE = 1e-10
#: Largest entry of a matrix that can be factored without overflow.
_HUGE = 1e100


@dataclass(frozen=True)
class Sketches:
    """Both sketches of the kernel matrix of t points; see the module's table.

    Args:
        columns: positions of the entries of S_p's rows, `(t, D)`.
        signs: those entries, `(t, D)`.
        sampled: the points that S_m samples, `(s_m,)`.
        Phi_pp, Phi_pm: the sketches.
    """

    columns: Indices
    signs: Array
    sampled: Indices
    Phi_pp: Array
    Phi_pm: Array

    @classmethod
    def draw(cls, K: Array, s_p: int, s_m: int, blocks: int, rng: np.random.Generator) -> "Sketches":
        """Sketch the kernel matrix `K (t, t)` with random S_p and S_m.

        Raises:
            ArgumentError: `s_p` is no multiple of `blocks`, or `s_m` is larger than t.
        """
        t = len(K)
        if s_p < 1 or blocks < 1 or s_p % blocks:
            raise ArgumentError(f"s_p: expected a multiple of the {blocks} blocks, got {s_p}.")
        if not 1 <= s_m <= t:
            raise ArgumentError(f"s_m: expected from 1 to {t}, the number of points, got {s_m}.")
        columns, signs = _sparse_rows(t, s_p, blocks, rng)
        sampled = np.sort(rng.choice(t, s_m, replace=False))
        half = _times(columns, signs, s_p, K)
        return cls(columns, signs, sampled, _times(columns, signs, s_p, half.T), half[:, sampled])

    @staticmethod
    def form(s_p: int, blocks: int) -> Form:
        """The form of a saved sketch of "q" points, "n" of them sampled."""
        rows = {"columns": Ints(("q", blocks), s_p), "signs": Floats(("q", blocks), -1.0, 1.0)}
        # The memory order that fancy indexing gives.
        Phi_pm = Floats((s_p, "n"), -_HUGE, _HUGE, any_order=True)
        Phi_pp = Floats((s_p, s_p), -_HUGE, _HUGE)
        return Form({**rows, "sampled": Ints(("n",), "q"), "Phi_pp": Phi_pp, "Phi_pm": Phi_pm})

    def insert(self, psi: Array, kappa: float, rng: np.random.Generator) -> tuple["Sketches", Array, Array]:
        """The sketches with one more point, and the s and v of the module's table `(s_p,)`.

        Args:
            psi: kernel values of the new point with the earlier ones, in their order, `(t,)`.
            kappa: k(x, x).
            rng: draws the new row of S_p.
        """
        s_p = len(self.Phi_pp)
        columns, signs = _sparse_rows(1, s_p, self.columns.shape[1], rng)
        s = np.zeros(s_p)
        s[columns[0]] = signs[0]
        v = _times(self.columns, self.signs, s_p, psi[:, None])[:, 0]
        cross = np.outer(s, v)
        grown = replace(
            self,
            columns=np.vstack([self.columns, columns]),
            signs=np.vstack([self.signs, signs]),
            Phi_pp=self.Phi_pp + (cross + cross.T + kappa * np.outer(s, s)),
            Phi_pm=self.Phi_pm + np.outer(s, psi[self.sampled]),
        )
        return grown, s, v


def _sparse_rows(n: int, s_p: int, blocks: int, rng: np.random.Generator) -> tuple[Indices, Array]:
    width = s_p // blocks
    columns = rng.integers(width, size=(n, blocks)) + width * np.arange(blocks)
    signs = (2.0 * rng.integers(2, size=(n, blocks)) - 1.0) / np.sqrt(blocks)
    return columns, signs


def _times(columns: Indices, signs: Array, s_p: int, K: Array) -> Array:
    """S_p^T K `(s_p, n)` for `K (t, n)`."""
    out = np.zeros((s_p, K.shape[1]))
    for c, s in zip(columns.T, signs.T, strict=True):
        np.add.at(out, c, s[:, None] * K)
    return out


@dataclass(frozen=True)
class Eigenpairs:
    """Leading eigenvectors `E (s_p, k)` and eigenvalues `e (k,)` of Phi_pp, negative ones set to zero."""

    E: Array
    e: Array

    @staticmethod
    def form(s: int, k: int) -> Form:
        """The form of saved pairs."""
        return Form({"E": Floats((s, k), -2.0, 2.0), "e": Floats((k,), 0.0, _HUGE)})

    @classmethod
    def of(cls, Phi_pp: Array, k: int) -> "Eigenpairs":
        """From scratch, O(s_p^3)."""
        e, E = np.linalg.eigh(finite(0.5 * (Phi_pp + Phi_pp.T)))
        # Contiguous, as after loading from a state file: products round differently in other layouts.
        return cls(np.ascontiguousarray(E[:, : -k - 1 : -1]), np.maximum(e[: -k - 1 : -1], 0.0))

    def update(self, s: Array, v: Array, kappa: float) -> "Eigenpairs":
        """The pairs of E diag(e) E^T + s v^T + v s^T + kappa s s^T, cut to the same number; O(s_p k^2 + k^3).

        Exact as long as the rank is at most k. Small parts that are cut off in successive updates do not accumulate, so
        `of` the stored sketch is more accurate if updates are rare.
        """
        k = len(self.e)
        G = np.stack([s, v], 1)
        basis = np.hstack([self.E, new_directions(self.E, G)])
        g = basis.T @ G
        H = g @ np.array([[kappa, 1.0], [1.0, 0.0]]) @ g.T
        H[np.arange(k), np.arange(k)] += self.e
        inner = Eigenpairs.of(H, k)
        return Eigenpairs(basis @ inner.E, inner.e)

    @property
    def root(self) -> Array:
        """E diag(e)^1/2 `(s_p, k)`."""
        return self.E * np.sqrt(self.e)


def new_directions(U: Array, D: Array) -> Array:
    """An orthonormal basis of the directions that the columns of `D` add to the span of the orthonormal `U`.

    The factors of an update often have more columns than directions; a plain QR would fill up with arbitrary ones.
    """
    rest = D - U @ (U.T @ D)
    P, size, _ = np.linalg.svd(finite(rest), full_matrices=False)
    P = P[:, size > NEGLIGIBLE * max(float(np.linalg.norm(D)), np.finfo(float).tiny)]
    # Repeated: the first subtraction leaves rounding of the size of D, which is large if `rest` is small.
    Q: Array = np.linalg.qr(P - U @ (U.T @ P))[0]
    return Q


def sketch_map(Phi_pm: Array, root: Array) -> Array:
    """M = Phi_pm^+ root `(s_m, k)`, equation 5."""
    return np.linalg.pinv(finite(Phi_pm), rcond=NEGLIGIBLE) @ root


@dataclass(frozen=True)
class SketchedFeatures:
    """z(x) = M^T k(sampled, x) as a `FeatureMap`; `sampled (s_m, d)`, `M (s_m, k)`.

    Example:
        >>> import torch
        >>> from bkbopt.posterior.features import Nystrom
        >>> from bkbopt.learners.features import SketchedFeatures
        >>> from bkbopt.kernels import rbf
        >>> X = torch.linspace(0.0, 1.0, 40, dtype=torch.float64)[:, None]
        >>> exact = Nystrom.from_points(rbf(1, lengthscale=0.5), X[::8])  # a root in place of sketches
        >>> features = SketchedFeatures(exact.kernel, exact.S, exact.W)
        >>> torch.equal(features(X), exact(X))
        True
    """

    kernel: Kernel
    sampled: Tensor
    M: Tensor

    @property
    def size(self) -> int:
        """Number of features k."""
        return self.M.shape[1]

    def __call__(self, X: Tensor) -> Tensor:
        """See `FeatureMap`."""
        return self.kernel(X, self.sampled) @ self.M

    def residual(self, X: Tensor, Z: Tensor) -> Tensor:
        """See `FeatureMap`. Zero where |z(x)|^2 exceeds k(x, x), which sketches allow."""
        return (self.kernel.diag(X) - (Z * Z).sum(-1)).clamp_min(0.0)

    def residual_covariance(self, X: Tensor, Z: Tensor) -> Tensor:
        """The residuals on a diagonal `(n, n)`, since K - Z Z^T need not be positive semi-definite."""
        return torch.diag(self.residual(X, Z))
