"""Problems of the comparison of batches: noisy functions over boxes and pools of real data, all to be minimised.

| name                | places           | what it is                                                             |
| ------------------- | ---------------- | ---------------------------------------------------------------------- |
| hartmann6           | box, 6-D         | smooth, six wells                                                      |
| ackley10-off        | box, 10-D        | a cone under ripples, its minimum off the box's centre                 |
| rastrigin10-rotated | box, 10-D        | a bowl under deep ripples that are no sum over columns                 |
| rosenbrock6         | box, 6-D         | a curved valley                                                        |
| casp, cadata        | 10,000 rows      | real targets as they are: much of them the columns do not explain      |
| ...-smooth          | the same rows    | the mean target of the ten nearest rows                                |
| gp-pool             | 10,000 rows, 6-D | a function of an RBF kernel, lengthscale 0.8, unit sd, noise sd 0.3    |

The noise has a standard deviation of a tenth of the interquartile range (IQR) of the true values over the places, but
in `gp-pool`, the problem on which Calandriello et al. (ICML 2020) compare batches. Rows are a random part of the data's
that is the same in all runs, with columns replaced by ranks because of long tails. The optimum is a low RMSD of a
protein's structure (casp), and a high value of houses (cadata).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import rankdata

from benchmarks import structured_functions as structured
from benchmarks.algorithm1 import make_pool_problem
from benchmarks.functions import NOISE_SHARE, NOISE_STREAM, PROBLEMS, Array, Problem, off_centre, rosenbrock

__all__ = ["BOXES", "POOLS", "TARGETS", "Target", "of_box", "of_data"]

N_ROWS = 10_000
N_NEAREST = 10
# A tag keeps the choice of rows apart from other uses of the same small seeds.
ROWS_STREAM = 7_011


@dataclass(frozen=True)
class Target:
    """A noisy function to minimise over the points of a box, or over the rows of a pool.

    A *place* is a point (d,) in the box's own units, or the number of a row.

    Attributes:
        name: what it is called.
        bounds: (low, high) of each of d columns; None over a pool.
        rows: the pool, (A, d), columns in [0, 1]; None over a box.
        value: places, (n, d) or (n,), to noise-free values (n,).
        minimum: the smallest of them.
        scale: the unit of regret.
        noise_sd: standard deviation of the noise.
        unit: what `scale` is: the interquartile range of the values, or their standard deviation.
        lengthscale: of the RBF kernel that the function is made of; None for other functions.
    """

    name: str
    bounds: tuple[tuple[float, float], ...] | None
    rows: Array | None
    value: Callable[[Any], Array]
    minimum: float
    scale: float
    noise_sd: float
    unit: str = "IQR"
    lengthscale: float | None = None

    @property
    def dim(self) -> int:
        """The number of columns d."""
        return len(self.bounds) if self.bounds is not None else self.pool.shape[1]

    @property
    def pool(self) -> Array:
        """The rows of a pool, (A, d)."""
        assert self.rows is not None
        return self.rows

    def from_unit(self, U: Array) -> Array:
        """Points (n, d) of the box at the points U (n, d) of the unit cube."""
        low, high = np.array(self.bounds).T
        return np.asarray(low + U * (high - low))

    def observe(self, places: Array, seed: int, first: int) -> Array:
        """Noisy values (n,) of evaluations `first`, `first` + 1, ...; the noise is that of seed and number alone."""
        numbers = range(first, first + len(places))
        noise = [np.random.default_rng([NOISE_STREAM, seed, number]).standard_normal() for number in numbers]
        return np.asarray(self.value(places) + self.noise_sd * np.array(noise))


def of_box(problem: Problem) -> Target:
    """A test function over its box."""
    return Target(problem.name, problem.bounds, None, problem.value, problem.minimum, problem.iqr, problem.noise_sd)


def of_rows(name: str, rows: Array, values: Array) -> Target:
    """A pool whose rows (A, d) have the given noise-free values (A,)."""
    lower, upper = np.quantile(values, [0.25, 0.75])
    scale = float(upper - lower)
    return Target(name, None, rows, lambda places: values[places], float(values.min()), scale, NOISE_SHARE * scale)


@lru_cache
def of_data(folder: Path, name: str) -> Target:
    """A pool of real data.

    Args:
        folder: with `casp.npz` and `cadata.npz`, arrays X (A, d) and y (A,).
        name: of the data, with "-smooth" for the mean target of the nearest rows, by Euclidean distance of ranks.
    """
    data = name.removesuffix("-smooth")
    with np.load(folder / f"{data}.npz") as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(np.float64)
    chosen = np.random.default_rng(ROWS_STREAM).permutation(len(y))[:N_ROWS]
    rows = rankdata(X[chosen], axis=0) / len(chosen)
    values = -y[chosen] if data == "cadata" else y[chosen]
    if name != data:
        values = values[cKDTree(rows).query(rows, N_NEAREST)[1]].mean(axis=1)
    return of_rows(name, rows, values)


def _gp_pool() -> Target:
    problem = make_pool_problem(N_ROWS)
    values = -problem.f
    at = float(values.min())
    return Target("gp-pool", None, problem.X, lambda p: values[p], at, 1.0, problem.noise_sd, "sd", problem.lengthscale)


BOXES: dict[str, Callable[[], Problem]] = {
    "hartmann6": lambda: PROBLEMS["hartmann6"],
    "ackley10-off": lambda: off_centre(PROBLEMS["ackley10"]),
    "rastrigin10-rotated": lambda: structured.rotated_rastrigin(10, seed=0),
    "rosenbrock6": lambda: rosenbrock(6),
}
#: Pools of real data.
POOLS = ("casp", "casp-smooth", "cadata", "cadata-smooth")

#: Made when asked for; the argument is the folder of the data.
TARGETS: dict[str, Callable[[Path], Target]] = {
    **{name: lambda _, make=make: of_box(make()) for name, make in BOXES.items()},  # type: ignore[misc]
    **{name: lambda folder, name=name: of_data(folder, name) for name in POOLS},  # type: ignore[misc]
    "gp-pool": lambda _: _gp_pool(),
}
