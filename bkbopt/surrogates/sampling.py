"""Ridge leverage score sampling of a dictionary (Calandriello et al. 2019, Algorithm 1), with a budget.

| symbol   | shape | units | meaning                                                              |
| -------- | ----- | ----- | -------------------------------------------------------------------- |
| leverage | (u,)  | -     | posterior variance / lam of each unique observed point               |
| n        | (u,)  | -     | pulls of each                                                        |
| p        | (u,)  | -     | inclusion probabilities min(1, qbar n leverage)                      |
| scale    | -     | -     | lam of the sampling / lam of the posterior, >= 1                     |

The paper flips a coin for every pull; one coin a unique point with n times the probability includes it at least as
often, and costs nothing for repeats. With little noise the scores ask for nearly every point. The budget then raises
the lam of the *sampling*, and never that of the posterior, until the expected size fits: the residual keeps the
variance honest.
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
    leverage_at: Callable[[float], Tensor], n: Tensor, qbar: float, budget: int | None, rng: np.random.Generator
) -> Draw:
    """Draw each unique point with probability min(1, qbar n leverage).

    Args:
        leverage_at: scale -> leverage (u,) with the sampling's lam at scale * lam.
        n: counts (u,).
        qbar: oversampling; at least 1.
        budget: largest size of the dictionary, or None.
        rng: source of the u coins.

    Example:
        >>> import numpy as np
        >>> import torch
        >>> from bkbopt.surrogates.sampling import draw_rls
        >>> leverage = torch.tensor([1.0, 0.5, 1e-6], dtype=torch.float64)
        >>> rng = np.random.default_rng(0)
        >>> draw_rls(lambda scale: leverage / scale, n=torch.ones(3), qbar=2.0, budget=None, rng=rng).rows
        tensor([0, 1])
    """
    scale = 1.0
    p = _probabilities(leverage_at(scale), n, qbar)
    if budget is not None and float(p.sum()) > budget:
        # The expected size falls monotonically in the scale: bracket, then bisect in the logarithm to 2 %.
        low, high = 1.0, 4.0
        while float(_probabilities(leverage_at(high), n, qbar).sum()) > budget and high < 1e30:
            low, high = high, 4.0 * high
        while high > 1.02 * low:
            scale = (low * high) ** 0.5
            if float(_probabilities(leverage_at(scale), n, qbar).sum()) > budget:
                low = scale
            else:
                high = scale
        scale = high
        p = _probabilities(leverage_at(scale), n, qbar)
    coins = torch.as_tensor(rng.random(len(p)), device=p.device)
    rows = torch.nonzero(coins < p)[:, 0]
    if budget is not None and len(rows) > budget:
        # Bernoulli sizes scatter around their mean; the points that were closest to being left out go.
        rows = rows[torch.argsort((p - coins)[rows], descending=True, stable=True)[:budget]].sort().values
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


def _probabilities(leverage: Tensor, n: Tensor, qbar: float) -> Tensor:
    return (qbar * n * leverage).clamp_max(1.0)
