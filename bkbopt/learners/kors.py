"""Kernel online row sampling (Calandriello et al. 2017, Algorithm 1): a dictionary in one pass, that only grows.

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
(The paper's 3 log(n / delta) / eps^2 does not survive its own union bound.)
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bkbopt._support.checks import check_number, check_size
from bkbopt.errors import ArgumentError
from bkbopt.kernels import Kernel
from bkbopt.learners.states import Floats as FloatArray
from bkbopt.learners.states import Form

__all__ = ["KORS", "KorsDraw", "draw_kors"]

Floats = npt.NDArray[np.float64]
_BLOCK = 256


@dataclass
class KORS:
    """A sampler and its state: numpy inside, fed with blocks of kernel values.

    Args:
        alpha: ridge of the scores, y squared; small values ask for large dictionaries.
        beta: oversampling.
        eps: accuracy aimed at, in (0, 1).
        limit: largest size of the dictionary, or None.

    Raises:
        ArgumentError: an argument out of range.

    Example:
        >>> import numpy as np
        >>> from bkbopt.learners.kors import KORS
        >>> sampler = KORS(alpha=0.1)
        >>> twice = np.ones((2, 2))  # kernel values of a point and its repeat
        >>> sampler.select(twice, np.ones(2), np.array([0.99, 0.99]))
        array([ True, False])
    """

    alpha: float = 1.0
    beta: float = 1.0
    eps: float = 0.5
    limit: int | None = None
    #: Of p in the diagonal of the factor; published programs have 2 by mistake.
    power: ClassVar[float] = 1.0
    m: int = field(init=False, default=0)
    L: Floats = field(init=False, repr=False)
    p: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the arguments and allocate."""
        self.alpha = check_number("alpha", self.alpha, 0.0, "a positive finite ridge (y squared)", strict=True)
        self.beta = check_number("beta", self.beta, 0.0, "a positive finite factor", strict=True)
        self.eps = check_number("eps", self.eps, 0.0, "a number between 0 and 1", strict=True)
        if self.eps >= 1.0:
            raise ArgumentError(f"eps: expected a number between 0 and 1, got {self.eps}.")
        if self.limit is not None:
            self.limit = check_size("limit", self.limit)
        self.L, self.p = np.zeros((16, 16)), np.zeros(16)

    def select(self, K: Floats, diagonal: Floats, uniforms: Floats) -> npt.NDArray[np.bool_]:
        """Offer a block of rows, one after the other: which of them are accepted `(b,)`.

        Args:
            K: kernel values `(b, m + b)` of the rows with the dictionary, in its order, and with the block itself.
            diagonal: k(x, x) of the rows, `(b,)`.
            uniforms: one uniform number a row, `(b,)`; a row with a score of at least one is accepted whatever it is.
        """
        from bkbopt.learners import _loops_kors as loops

        accepted = np.zeros(len(K), dtype=np.bool_)
        place = np.arange(self.m, dtype=np.int64)
        limit, t = -1 if self.limit is None else self.limit, 0
        while t < len(K):
            if self.m == len(self.p):
                self.reserve(2 * self.m)
            place = np.concatenate([place, np.zeros(len(self.p) - len(place), dtype=np.int64)])
            t, self.m = loops.select(
                K,
                diagonal,
                uniforms,
                t,
                place,
                self.L,
                self.p,
                self.m,
                limit,
                self.alpha,
                self.beta,
                self.eps,
                self.power,
                accepted,
            )
        return accepted

    def reserve(self, capacity: int) -> None:
        """Make room for a dictionary of that size."""
        L, p = np.zeros((capacity, capacity)), np.zeros(capacity)
        L[: self.m, : self.m], p[: self.m] = self.L[: self.m, : self.m], self.p[: self.m]
        self.L, self.p = L, p

    def state_dict(self) -> dict[str, object]:
        """The state beyond the arguments, for a state file."""
        return {"L": np.ascontiguousarray(self.L[: self.m, : self.m]), "p": self.p[: self.m]}

    def form(self, size: str = "m") -> Form:
        """What `state_dict` has to be; `size` is the symbol of the dictionary's size."""
        parts = {"p": FloatArray((size,), 0.0, 1.0), "L": FloatArray((size, size), diagonal=0.0)}
        return Form(parts, {} if self.limit is None else {size: self.limit})

    def load_state_dict(self, state: dict[str, Floats]) -> None:
        """The inverse of `state_dict`."""
        m = len(state["p"])
        self.m = 0
        self.reserve(max(16, m))
        self.L[:m, :m], self.p[:m], self.m = state["L"], state["p"], m


@dataclass(frozen=True)
class KorsDraw:
    """Rows of the stream that were accepted `(m,)`, in order, and their probabilities `(m,)`."""

    rows: Tensor
    probabilities: Tensor


def draw_kors(kernel: Kernel, X: Tensor, sampler: KORS, rng: np.random.Generator) -> KorsDraw:
    """Feed the rows `X (n, d)` to `sampler`: those that it accepted.

    Args:
        kernel: the kernel of the scores.
        X: the stream.
        sampler: an empty one; it is changed.
        rng: source of one uniform number a row.

    Example:
        >>> import numpy as np
        >>> import torch
        >>> from bkbopt.learners.kors import KORS, draw_kors
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
