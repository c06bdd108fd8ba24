"""Functions of choices alone, in spaces that are too large to be listed.

- bits30: a binary quadratic function of 30 flags whose coefficients decay with the distance of the flags, with a
  small price for each flag (Baptista and Poloczek 2018, "Bayesian optimization of combinatorial structures");
- nk20: an NK landscape: the mean of 20 random tables, each of three of the 20 choices of 3 (Kauffman 1989);
- pairs12: the sum of twelve random tables of one choice of 5, and of six of two neighbouring ones;
- pests20: what to do against a pest at each of 20 stages: nothing, or one of four means, whose effect wears off while
  the price falls; after Oh et al. (2019, "Combinatorial Bayesian optimization using the graph Cartesian product").
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["CHOICES", "ChoiceProblem"]

Codes = npt.NDArray[np.int64]

#: Random points from which the interquartile range is computed.
N_RANDOM = 2_000
#: Pests: fields that are simulated, share of infested plants from which a stage counts as lost, and of each means the
#: effect, by how much each use lowers it, and its price.
FIELDS, LOST = 100, 0.1
EFFECT, WEAR, PRICE = (
    np.array([0.6, 0.5, 0.4, 0.3]),
    np.array([14, 29, 43, 71]) / 1_000.0,
    np.array([1.0, 0.8, 0.7, 0.5]),
)
CHEAPER = np.array([0.2, 0.3, 0.3, 0.0])


@dataclass(frozen=True)
class ChoiceProblem:
    """A function of choices.

    Attributes:
        name: what it is called.
        n_choices: the number of values of each parameter.
        value: the function of codes (n,).
    """

    name: str
    n_choices: tuple[int, ...]
    value: Callable[[Codes], float]

    def iqr(self) -> float:
        """Interquartile range of the values of random points."""
        rng = np.random.default_rng(0)
        values = [self.value(np.array([rng.integers(k) for k in self.n_choices])) for _ in range(N_RANDOM)]
        low, high = np.percentile(values, [25, 75])
        return float(high - low)


def _bits(n: int, seed: int) -> ChoiceProblem:
    distance = np.subtract.outer(np.arange(n), np.arange(n))
    Q = np.random.default_rng(seed).standard_normal((n, n)) * np.exp(-(distance**2) / 10.0)
    return ChoiceProblem(f"bits{n}", (2,) * n, lambda x: float(0.1 * x.sum() - x @ Q @ x))


def _nk(n: int, k: int, q: int, seed: int) -> ChoiceProblem:
    rng = np.random.default_rng(seed)
    others = [rng.choice(np.delete(np.arange(n), i), k, replace=False) for i in range(n)]
    tables = rng.random((n, *(q,) * (k + 1)))

    def value(x: Codes) -> float:
        return float(np.mean([tables[(i, x[i], *x[others[i]])] for i in range(n)]))

    return ChoiceProblem(f"nk{n}", (q,) * n, value)


def _pairs(n: int, q: int, seed: int) -> ChoiceProblem:
    rng = np.random.default_rng(seed)
    single, both = rng.standard_normal((n, q)), 0.7 * rng.standard_normal((n // 2, q, q))

    def value(x: Codes) -> float:
        return float(single[np.arange(n), x].sum() + both[np.arange(n // 2), x[::2], x[1::2]].sum())

    return ChoiceProblem(f"pairs{n}", (q,) * n, value)


def _pests(n: int, seed: int) -> ChoiceProblem:
    rng = np.random.default_rng(seed)
    first, growth = rng.beta(1.0, 30.0, FIELDS), 0.35 * rng.beta(1.0, 17.0 / 3.0, (n, FIELDS))

    def value(x: Codes) -> float:
        infested, used, cost = first, np.zeros(4), 0.0
        for stage, choice in enumerate(x):
            if choice > 0:
                means = choice - 1
                infested = infested * (1.0 - max(EFFECT[means] - WEAR[means] * used[means], 0.05))
                cost += 0.5 * PRICE[means] * (1.0 - CHEAPER[means] * used[means] / n)
                used[means] += 1.0
            infested = infested + growth[stage] * (1.0 - infested)
            cost += float((infested > LOST).mean())
        return float(cost)

    return ChoiceProblem(f"pests{n}", (5,) * n, value)


CHOICES: tuple[ChoiceProblem, ...] = (_bits(30, 0), _nk(20, 2, 3, 0), _pairs(12, 5, 0), _pests(20, 0))
