"""Kernel online row sampling (Calandriello et al. 2017, Algorithm 1): a dictionary that only grows, in one pass.

| symbol | shape  | units     | meaning                                                                         |
| ------ | ------ | --------- | ------------------------------------------------------------------------------- |
| I      | (m,)   | -         | the dictionary: rows of the stream that were accepted                           |
| p      | (m,)   | -         | their probabilities of being accepted; 1/p is the weight in the estimator       |
| L      | (m, m) | y         | Cholesky factor of K_II + alpha diag(p)                                         |
| alpha  | -      | y squared | ridge of the leverage scores                                                    |
| c      | -      | y squared | k(x, x) - |L^-1 k_I(x)|^2, residual of a new row                                |
| score  | -      | -         | (1 + eps) c / (c + alpha), estimate of the row's online ridge leverage score    |

With beta >= 6 log(2 n / delta) / eps^2 every score of n rows lies between the true one and (1 + eps) / (1 - eps) times
it, with probability 1 - delta, and m is at most 3 beta (1 + eps) / (1 - eps) times the online effective dimension.
(The paper's 3 log(n / delta) / eps^2 is too small for its own union bound.)
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bkbopt._support.checks import check_number, check_size
from bkbopt._support.compiled import compiled, fast
from bkbopt._support.state_forms import Floats, Form
from bkbopt.errors import ArgumentError
from bkbopt.kernels import Kernel
from bkbopt.learners.numerics.losses import Array, Indices

__all__ = ["KORS", "KorsDraw", "draw_kors"]

Bools = npt.NDArray[np.bool_]
_BLOCK = 256
_NO_LIMIT = 2**62


class Sampler(NamedTuple):
    """The state of KORS for compiled loops: arrays with room for more than m points, `size (1,)` = m, and constants."""

    L: Array
    p: Array
    size: Indices
    limit: int
    alpha: float
    beta: float
    eps: float
    power: float


@compiled
def offer(kors: Sampler, k: Array, prior: float, uniform: float, v: Array) -> tuple[float, bool]:
    """Offer a row with kernel values `k (m,)` and k(x, x) = `prior`: its probability, and whether it was accepted.

    The arrays must have room for it. `v` is working memory of the length of `k`.
    """
    m = kors.size[0]
    if m >= kors.limit:
        return 0.0, False
    c = residual(kors.L, m, k, prior, v)
    p = min(1.0, kors.beta * (1.0 + kors.eps) * c / (c + kors.alpha))  # the score is Eq. 4, in closed form
    if uniform >= p:
        return p, False
    border(kors.L, m, v, c, kors.alpha * p**kors.power)
    kors.p[m] = p
    kors.size[0] = m + 1
    return p, True


@fast
def residual(L: Array, m: int, k: Array, prior: float, v: Array) -> float:
    """k(x, x) - |v|^2, at least 0, and v = L^-1 k, for the first m rows of the factor and m kernel values `k`."""
    left = prior
    for i in range(m):
        total = 0.0
        for j in range(i):
            total += L[i, j] * v[j]
        v[i] = (k[i] - total) / L[i, i]
        left -= v[i] * v[i]
    return max(left, 0.0)


@compiled
def border(L: Array, m: int, v: Array, left: float, ridge: float) -> None:
    """Border the factor by a point with this v, residual `left` and diagonal entry k(x, x) + `ridge`."""
    for j in range(m):
        L[m, j] = v[j]
    L[m, m] = math.sqrt(left + ridge)


@compiled
def offer_block(kors: Sampler, K: Array, diagonal: Array, uniforms: Array, accepted: Bools) -> None:
    """Offer the rows of a block, one after the other; the arguments are those of `KORS.select`.

    The arrays must have room for all of them.
    """
    b, m = K.shape[0], kors.size[0]
    place = np.arange(m + b)  # the columns of K of the dictionary's points
    k, v = np.empty(m + b), np.empty(m + b)
    for t in range(b):
        m = kors.size[0]
        for j in range(m):
            k[j] = K[t, place[j]]
        accepted[t] = offer(kors, k, diagonal[t], uniforms[t], v)[1]
        if accepted[t]:
            place[m] = K.shape[1] - b + t


@dataclass
class KORS:
    """A sampler and its state, in numpy; kernel values are passed in blocks.

    Args:
        alpha: ridge of the scores, y squared; small values give large dictionaries.
        oversampling: beta, a factor of the scores.
        eps: accuracy aimed at, in (0, 1).
        limit: largest size of the dictionary, or None.

    Raises:
        ArgumentError: an argument out of range.

    Example:
        >>> import numpy as np
        >>> from bkbopt.learners.numerics.kors import KORS
        >>> sampler = KORS(alpha=0.1)
        >>> twice = np.ones((2, 2))  # kernel values of a point and its repeat
        >>> sampler.select(twice, np.ones(2), np.array([0.99, 0.99]))
        array([ True, False])
    """

    alpha: float = 1.0
    oversampling: float = 1.0
    eps: float = 0.5
    limit: int | None = None
    #: Exponent of p in the diagonal of the factor; published programs have 2 by mistake.
    power: ClassVar[float] = 1.0
    L: Array = field(init=False, repr=False)
    p: Array = field(init=False, repr=False)
    _size: Indices = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the arguments and allocate."""
        self.alpha = check_number("alpha", self.alpha, 0.0, "a positive finite ridge (y squared)", strict=True)
        factor = check_number("oversampling", self.oversampling, 0.0, "a positive finite factor", strict=True)
        self.oversampling = factor
        self.eps = check_number("eps", self.eps, 0.0, "a number between 0 and 1", strict=True)
        if self.eps >= 1.0:
            raise ArgumentError(f"eps: expected a number between 0 and 1, got {self.eps}.")
        if self.limit is not None:
            self.limit = check_size("limit", self.limit)
        self.L, self.p, self._size = np.zeros((16, 16)), np.zeros(16), np.zeros(1, dtype=np.int64)

    @property
    def m(self) -> int:
        """The size of the dictionary."""
        return int(self._size[0])

    def sampler(self, room: int = 1) -> Sampler:
        """The state for compiled loops, which change it in place, with room for `room` more points."""
        limit = _NO_LIMIT if self.limit is None else self.limit
        if min(self.m + room, limit) > len(self.p):
            self._reserve(max(2 * self.m, self.m + room))
        return Sampler(self.L, self.p, self._size, limit, self.alpha, self.oversampling, self.eps, self.power)

    def select(self, K: Array, diagonal: Array, uniforms: Array) -> Bools:
        """Offer a block of rows, one after the other: which of them are accepted `(b,)`.

        Args:
            K: kernel values `(b, m + b)` of the rows with the dictionary, in its order, and with the block itself.
            diagonal: k(x, x) of the rows, `(b,)`.
            uniforms: one uniform number a row, `(b,)`; a row with a score of at least one is always accepted.
        """
        accepted = np.zeros(len(K), dtype=np.bool_)
        offer_block(self.sampler(len(K)), K, diagonal, uniforms, accepted)
        return accepted

    def _reserve(self, capacity: int) -> None:
        """Make room for a dictionary of that size."""
        more = 0, capacity - self.m
        self.L, self.p = np.pad(self.L[: self.m, : self.m], more), np.pad(self.p[: self.m], more)

    def state_dict(self) -> dict[str, object]:
        """The state beyond the arguments, for a state file."""
        return {"L": np.ascontiguousarray(self.L[: self.m, : self.m]), "p": self.p[: self.m]}

    def form(self, size: str = "m") -> Form:
        """The form of `state_dict`; `size` is the symbol of the dictionary's size."""
        parts = {"p": Floats((size,), 0.0, 1.0), "L": Floats((size, size), diagonal=0.0)}
        return Form(parts, {} if self.limit is None else {size: self.limit})

    def load_state_dict(self, state: dict[str, Array]) -> None:
        """The inverse of `state_dict`."""
        m = len(state["p"])
        self._size[0] = 0
        self._reserve(max(16, m))
        self.L[:m, :m], self.p[:m], self._size[0] = state["L"], state["p"], m


@dataclass(frozen=True)
class KorsDraw:
    """Rows of the stream that were accepted `(m,)`, in order, and their probabilities `(m,)`."""

    rows: Tensor
    probabilities: Tensor


def draw_kors(kernel: Kernel, X: Tensor, sampler: KORS, rng: np.random.Generator) -> KorsDraw:
    """Offer the rows `X (n, d)` to `sampler`, and return those that it accepted.

    Args:
        kernel: the kernel of the scores.
        X: the stream.
        sampler: an empty one; it is changed.
        rng: source of one uniform number a row.

    Example:
        >>> import numpy as np
        >>> import torch
        >>> from bkbopt.learners.numerics.kors import KORS, draw_kors
        >>> from bkbopt.kernels import rbf
        >>> X = torch.linspace(0.0, 1.0, 500, dtype=torch.float64)[:, None]
        >>> draw = draw_kors(rbf(1, lengthscale=0.3), X, KORS(alpha=0.1), np.random.default_rng(0))
        >>> len(draw.rows) < 50
        True
    """
    rows: list[int] = []
    for a in range(0, len(X), _BLOCK):
        B = X[a : a + _BLOCK]
        K = kernel(B, torch.cat([X[rows], B])).contiguous().numpy()
        accepted = sampler.select(K, kernel.diag(B).contiguous().numpy(), rng.random(len(B)))
        rows.extend((a + np.flatnonzero(accepted)).tolist())
    return KorsDraw(torch.tensor(rows, dtype=torch.int64), torch.from_numpy(sampler.p[: sampler.m].copy()))
