"""Ridge leverage score sampling of a dictionary (Calandriello et al. 2019, Algorithm 1), with a budget.

| symbol   | shape | units | meaning                                                              |
| -------- | ----- | ----- | -------------------------------------------------------------------- |
| leverage | (u,)  | -     | posterior variance / lam of each unique observed point               |
| n        | (u,)  | -     | evaluations of each, by weight                                       |
| pulls    | (u,)  | -     | evaluations of each, by number: n where none has a weight            |
| p        | (u,)  | -     | inclusion probabilities                                              |
| scale    | -     | -     | lam of the sampling / lam of the posterior, >= 1                     |

The paper flips a coin for every pull, with probability min(1, qbar leverage), and takes a point that any of its coins
shows: p = 1 - (1 - min(1, qbar leverage))^n, `BKB(coins="pull")`. One coin a unique point with n times the
probability, p = min(1, qbar n leverage), is that of the authors' code and our default, `coins="arm"`. It includes each
point at least as often, up to 1 / (1 - 1 / e) = 1.58 times, where qbar n leverage = 1 and n is large. Theorem 1 holds
for it by the paper's proof, with the pulls of a point taken together: the bound of each term, alpha / qbar, is the
same, and the sum of the probabilities is no larger than that of the paper's. Both are 1 where qbar leverage >= 1, and
all but equal where qbar n leverage is small or, as at the theorem's qbar, large.

With little noise the scores ask for nearly every point. The budget then raises the lam of the *sampling*, and never
that of the posterior, until the expected size fits.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

__all__ = ["Draw", "draw_rls", "draw_uniform"]


@dataclass(frozen=True)
class Draw:
    """Indices of the points drawn, in increasing order, and the scale of the sampling's lam."""

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
    """Draw each unique point with probability min(1, qbar n leverage), or by a coin for each of its pulls.

    Args:
        leverage_at: scale -> leverage (u,) with the sampling's lam at scale * lam.
        n: counts (u,).
        qbar: oversampling; at least 1.
        budget: largest size of the dictionary, or None.
        rng: source of u random numbers, one a point in any case.
        pulls: how many coins each point has (u,), each of probability min(1, qbar (n / pulls) leverage); None for one.

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
        # The expected size falls monotonically in the scale: bracket, then bisect in the logarithm to 2 %.
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
        # Bernoulli sizes scatter around their mean; the points that were closest to being left out go.
        rows = rows[torch.argsort((p - thrown)[rows], descending=True, stable=True)[:budget]].sort().values
    return Draw(rows, scale)


def draw_uniform(u: int, size: int, rng: np.random.Generator) -> Draw:
    """`size` of `u` points, uniformly without replacement: the heuristic that RLS sampling is compared with.

    Example:
        >>> import numpy as np
        >>> from bkbopt.surrogates.sampling import draw_uniform
        >>> len(draw_uniform(u=100, size=10, rng=np.random.default_rng(0)).rows)
        10
    """
    rows = np.sort(rng.choice(u, size=min(size, u), replace=False))
    return Draw(torch.as_tensor(rows, dtype=torch.int64), 1.0)
