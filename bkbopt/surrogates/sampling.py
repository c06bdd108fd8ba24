"""Ridge leverage score sampling of a dictionary (Calandriello et al. 2019, Algorithm 1), with a budget.

| symbol   | shape | units | meaning                                                              |
| -------- | ----- | ----- | -------------------------------------------------------------------- |
| leverage | (u,)  | -     | posterior variance / lam of each unique observed point               |
| n        | (u,)  | -     | summed weights of each point's evaluations                           |
| pulls    | (u,)  | -     | number of each point's evaluations (pulls); n if there are no weights |
| p        | (u,)  | -     | inclusion probabilities                                              |
| scale    | -     | -     | lam of the sampling / lam of the posterior, >= 1                     |

The paper flips one coin for each pull (evaluation), with probability min(1, qbar leverage), and includes a point if at
least one of its coins succeeds: p = 1 - (1 - min(1, qbar leverage))^n, `BKB(coins="pull")`. The authors' code, and our
default `coins="arm"`, flips one coin for each unique point (arm): p = min(1, qbar n leverage). This includes each point
at least as often, at most 1 / (1 - 1 / e) = 1.58 times as often (where qbar n leverage = 1 and n is large). Theorem 1
holds for it by the paper's proof, with the pulls of a point taken together: each term has the same bound alpha / qbar,
and the sum of the probabilities is no larger than the paper's sum over pulls. The two probabilities are both 1 where
qbar leverage >= 1, and nearly equal where qbar n leverage is small or, as for the theorem's qbar, large.

With little noise nearly every point has a high leverage. A budget for the size then raises the lam of the *sampling*,
not that of the posterior, until the expected size is within the budget.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

__all__ = ["Draw", "draw_rls", "draw_uniform"]


@dataclass(frozen=True)
class Draw:
    """Indices of the drawn points, in increasing order, and the scale: lam of the sampling / lam."""

    rows: Tensor
    scale: float


def draw_rls(
    leverage_at: Callable[[float], Tensor],
    n: Tensor,
    qbar: float,
    budget: int | None,
    rng: np.random.Generator,
    pulls: Tensor | None = None,
) -> Draw:
    """Draw each unique point with probability min(1, qbar n leverage), or with a coin for each of its pulls.

    Args:
        leverage_at: maps a scale to the leverages (u,) for the sampling's lam = scale * lam.
        n: counts (u,).
        qbar: oversampling; at least 1.
        budget: largest size of the dictionary, or None.
        rng: generator of the random numbers; u are always drawn, one for each point.
        pulls: number of coins of each point (u,), each with probability min(1, qbar (n / pulls) leverage); None for
            one coin.

    Example:
        >>> import numpy as np
        >>> import torch
        >>> from bkbopt.surrogates.sampling import draw_rls
        >>> leverage = torch.tensor([1.0, 0.5, 1e-6], dtype=torch.float64)
        >>> rng = np.random.default_rng(0)
        >>> draw_rls(lambda scale: leverage / scale, n=torch.ones(3), qbar=2.0, budget=None, rng=rng).rows
        tensor([0, 1])
    """

    def probabilities(scale: float) -> Tensor:
        if pulls is None:
            return (qbar * n * leverage_at(scale)).clamp_max(1.0)
        each = (qbar * (n / pulls) * leverage_at(scale)).clamp_max(1.0)
        return -torch.expm1(pulls * torch.log1p(-each))

    scale = 1.0
    p = probabilities(scale)
    if budget is not None and float(p.sum()) > budget:
        # The expected size decreases with the scale: bracket, then bisect in the logarithm to 2 %.
        low, high = 1.0, 4.0
        while float(probabilities(high).sum()) > budget and high < 1e30:
            low, high = high, 4.0 * high
        while high > 1.02 * low:
            scale = (low * high) ** 0.5
            if float(probabilities(scale).sum()) > budget:
                low = scale
            else:
                high = scale
        scale = high
        p = probabilities(scale)
    thrown = torch.as_tensor(rng.random(len(p)), device=p.device)
    rows = torch.nonzero(thrown < p)[:, 0]
    if budget is not None and len(rows) > budget:
        # The random size may exceed its mean; the points with the smallest p - thrown are left out.
        rows = rows[torch.argsort((p - thrown)[rows], descending=True, stable=True)[:budget]].sort().values
    return Draw(rows, scale)


def draw_uniform(u: int, size: int, rng: np.random.Generator) -> Draw:
    """`size` of `u` points, uniformly without replacement: a heuristic to compare leverage score sampling with.

    Example:
        >>> import numpy as np
        >>> from bkbopt.surrogates.sampling import draw_uniform
        >>> len(draw_uniform(u=100, size=10, rng=np.random.default_rng(0)).rows)
        10
    """
    rows = np.sort(rng.choice(u, size=min(size, u), replace=False))
    return Draw(torch.as_tensor(rows, dtype=torch.int64), 1.0)
