"""Noisy test problems with one difficulty each: valleys, ridges, wells, plateaus, integers; many on rotated axes.

Every function has its minimum, unless said otherwise 0, at one point that is known exactly, well inside the box and off
its centre. Rotations and minimisers are functions of dimension and seed, so that there are several functions of a kind.
The noise is that of `benchmarks.functions`. R is a rotation, o the minimiser, z = R (x - o).

Sources: the kinds are those of the BBOB functions (Hansen, Finck, Ros and Auger, "Real-parameter black-box
optimization benchmarking 2009: noiseless functions definitions", INRIA RR-6829): ellipsoid f10, Rosenbrock f9, sharp
ridge f13, Rastrigin f15, step ellipsoid f7, Gallagher's peaks f21. Ackley (1987), Griewank (1981) and Schwefel (1981)
are as in `benchmarks.functions`. Mixed integers follow Tusar, Brockhoff and Hansen, "Mixed-integer benchmark problems
for single- and bi-objective optimization" (GECCO 2019): some coordinates of such a function have 5 to 20 levels.
Constants differ where noise of 0.1 IQR would hide the difficulty of a function; each docstring says so.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.functions import SCHWEFEL_MINIMIZER, Array, Problem, schwefel

__all__ = [
    "Maker",
    "MixedProblem",
    "bowl",
    "gallagher",
    "mirrored_schwefel",
    "mixed_bowl",
    "mixed_ripples",
    "ridge",
    "ripples",
    "rotated_ackley",
    "rotated_griewank",
    "rotated_rastrigin",
    "rotation",
    "steps",
    "valley",
]

SIDE = 5.0  # boxes are [-5, 5]^d
Maker = Callable[[int, int], Problem]

# A tag keeps the random numbers of the constructions apart from other uses of the same small seeds.
STREAM = 7_005


@dataclass(frozen=True)
class MixedProblem(Problem):
    """A problem some of whose coordinates are integers, or the index of a choice whose order means nothing.

    `kinds` has one word a coordinate: "float", "int" or "choice"; the bounds of the last two are whole numbers and
    belong to the box.
    """

    kinds: tuple[str, ...]

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n points (n, d), uniform over the box in the floats and over the levels in the others."""
        points = super().sample(n, rng)
        for j, kind in enumerate(self.kinds):
            if kind != "float":
                low, high = self.bounds[j]
                points[:, j] = rng.integers(int(low), int(high), size=n, endpoint=True)
        return points


def rotation(dim: int, rng: np.random.Generator) -> Array:
    """Return an orthogonal matrix (d, d), uniform (Haar), by the QR decomposition of a Gaussian matrix."""
    q, r = np.linalg.qr(rng.standard_normal((dim, dim)))
    return np.asarray(q * np.sign(np.diag(r)))


def _spread(condition: float, dim: int) -> Array:
    """From 1 to `condition`, (d,), evenly on a log scale."""
    return np.asarray(condition ** np.linspace(0.0, 1.0, dim))


def _start(kind: int, dim: int, seed: int) -> tuple[np.random.Generator, Array]:
    """The generator of a construction, and a minimiser: coordinates of either sign between 1 and 4 from the centre."""
    rng = np.random.default_rng([STREAM, kind, dim, seed])
    return rng, rng.choice([-1.0, 1.0], dim) * rng.uniform(0.2 * SIDE, 0.8 * SIDE, dim)


def _problem(name: str, best: Array, function: Callable[[Array], Array], minimum: float = 0.0) -> Problem:
    bounds = ((-SIDE, SIDE),) * len(best)
    return Problem(name, bounds, minimum, (tuple(float(b) for b in best),), function)


def _rotated(name: str, kind: int, dim: int, seed: int, of_z: Callable[[Array], Array]) -> Problem:
    """The problem of a function of z = R (x - o) whose only minimum, 0, is at z = 0."""
    rng, best = _start(kind, dim, seed)
    basis = rotation(dim, rng).T
    return _problem(name, best, lambda x: of_z((x - best) @ basis))


def bowl(dim: int, seed: int, condition: float = 1e3) -> Problem:
    """Return a rotated quadratic, sum_i c_i z_i^2, its curvatures c_i from 1 to `condition`."""
    curvatures = _spread(condition, dim)
    return _rotated(f"bowl{dim}", 1, dim, seed, lambda z: np.asarray(z**2 @ curvatures))


def valley(dim: int, seed: int) -> Problem:
    """Return log(1 + Rosenbrock's function) of w = 1 + z / 2: a curved valley that runs along no axis.

    The logarithm is ours. The values of Rosenbrock's function span five orders of magnitude over the box, and noise of
    a tenth of their IQR would hide the floor of the valley.
    """

    def of_z(z: Array) -> Array:
        w = 1 + z / 2
        inner, after = w[..., :-1], w[..., 1:]
        return np.log1p((100 * (after - inner**2) ** 2 + (inner - 1) ** 2).sum(-1))

    return _rotated(f"valley{dim}", 2, dim, seed, of_z)


def ridge(dim: int, seed: int) -> Problem:
    """Return the sharp ridge z_1^2 + 10 (z_2^2 + ... + z_d^2)^(1/2): not differentiable along the way to the minimum.

    BBOB has 100 instead of 10; then the noise is as large as the whole range along the ridge.
    """

    def of_z(z: Array) -> Array:
        return np.asarray(z[..., 0] ** 2 + 10 * np.sqrt((z[..., 1:] ** 2).sum(-1)))

    return _rotated(f"ridge{dim}", 3, dim, seed, of_z)


def rotated_rastrigin(dim: int, seed: int) -> Problem:
    """Return Rastrigin's function of z: a bowl under ripples whose grid is rotated, some 10^d wells."""

    def of_z(z: Array) -> Array:
        return np.asarray((z**2 + 10 * (1 - np.cos(2 * math.pi * z))).sum(-1))

    return _rotated(f"rastrigin{dim}-rotated", 4, dim, seed, of_z)


def rotated_ackley(dim: int, seed: int) -> Problem:
    """Return Ackley's function of 2 z: a cone under ripples as deep as the spread of most values, on rotated axes.

    The usual box is +-32.768; on +-10 there is a slope to follow nearly everywhere.
    """

    def of_z(z: Array) -> Array:
        cone = 20 * (1 - np.exp(-0.4 * np.sqrt((z**2).mean(-1))))
        return np.asarray(cone + math.e - np.exp(np.cos(4 * math.pi * z).mean(-1)))

    return _rotated(f"ackley{dim}-rotated", 5, dim, seed, of_z)


def rotated_griewank(dim: int, seed: int) -> Problem:
    """Return Griewank's function of 10 z: on +-50 its wells are deep, while on the usual +-600 it is a plain bowl."""
    periods = np.sqrt(np.arange(1.0, dim + 1))

    def of_z(z: Array) -> Array:
        return np.asarray(1 + (z**2).sum(-1) / 40 - np.cos(10 * z / periods).prod(-1))

    return _rotated(f"griewank{dim}-rotated", 6, dim, seed, of_z)


def ripples(dim: int, seed: int) -> Problem:
    """Return a sum of one function g a coordinate, each with about ten wells: some 10^d in all, on no regular grid.

    g(u) = a u^2 + sum of b_k (1 - cos(w_k u)) over three frequencies w_k, u = x_j - o_j. Frequencies and depths are
    drawn for each coordinate. All terms are zero at u = 0 and one of them is positive elsewhere.
    """
    rng, best = _start(7, dim, seed)
    weights = rng.uniform(0.1, 0.3, dim)
    frequencies = 2 * math.pi * rng.uniform([[0.9], [0.5], [0.2]], [[1.1], [0.8], [0.4]], (3, dim))
    depths = rng.uniform([[1.0], [0.5], [0.5]], [[1.5], [1.0], [1.0]], (3, dim))

    def value(x: Array) -> Array:
        u = (x - best)[..., None, :]
        waves = (depths * (1 - np.cos(frequencies * u))).sum(-2)
        return np.asarray((weights * (x - best) ** 2 + waves).sum(-1))

    return _problem(f"ripples{dim}", best, value)


def mirrored_schwefel(dim: int, seed: int) -> Problem:
    """Return Schwefel's function with some axes reversed, so that the best well is near an arbitrary corner.

    It is a sum over the coordinates. Its box is the usual [-500, 500]^d, where no other well is lower.
    """
    rng = np.random.default_rng([STREAM, 8, dim, seed])
    signs = rng.permutation(np.where(np.arange(dim) % 2 == 0, 1.0, -1.0))
    plain = schwefel(dim)
    best = tuple(float(sign * SCHWEFEL_MINIMIZER) for sign in signs)
    return Problem(f"schwefel{dim}-mirrored", plain.bounds, 0.0, (best,), lambda x: plain.function(signs * x))


def gallagher(dim: int, seed: int, n_peaks: int = 101) -> Problem:
    """Return Gallagher's function: minus the upper envelope of peaks of different widths, heights and shapes.

    The highest peak, of height 10, is the narrowest along some axes; the others have heights of 1.1 to 9.1 and random
    conditions of 1 to 1,000. All share one rotation, and their axes are shuffled. The minimum is -10. The outer
    transformation of BBOB's f21 is left out.
    """
    rng, best = _start(9, dim, seed)
    basis = rotation(dim, rng).T
    centres = np.vstack([best, rng.uniform(-SIDE, SIDE, (n_peaks - 1, dim))])
    heights = np.append(10.0, np.linspace(1.1, 9.1, n_peaks - 1))
    conditions = np.append(1e3, rng.permutation(1e3 ** np.linspace(0.0, 1.0, n_peaks - 1)))
    shapes = np.array([rng.permutation(_spread(c, dim)) / math.sqrt(c) for c in conditions]) / (2 * dim)
    turned = centres @ basis

    def value(x: Array) -> Array:
        z = x @ basis
        highest = np.zeros(x.shape[:-1])
        # Peak by peak: all at once would take gigabytes where the interquartile range is computed.
        for centre, height, shape in zip(turned, heights, shapes, strict=True):
            np.maximum(highest, height * np.exp(-((z - centre) ** 2 @ shape)), out=highest)
        return -highest

    return _problem(f"gallagher{dim}", best, value, -10.0)


def steps(dim: int, seed: int) -> Problem:
    """Return a rotated quadratic of z rounded to whole numbers, plus 0.01 |z|^2: plateaus, and one minimum.

    Curvatures are from 1 to 100. The smooth remainder is what makes the minimum unique; it is far below the noise.
    """
    curvatures = _spread(100.0, dim)

    def of_z(z: Array) -> Array:
        return np.asarray(np.round(z) ** 2 @ curvatures + 0.01 * (z**2).sum(-1))

    return _rotated(f"steps{dim}", 10, dim, seed, of_z)


#: Levels of the integers, in turn.
LEVELS = (6, 15, 20, 9, 12)
CHOICES = 4


def _mixed(name: str, kind: int, dim: int, seed: int, of_t: Callable[[Array], Array], worst: float) -> MixedProblem:
    """The mixed problem of a function of t, the distance from the minimiser in tenths of each coordinate's range.

    Half of the coordinates, the last of them excepted, are integers, as many are floats, and the last one is a choice.
    A choice moves the minimiser of the floats and adds from 0 (the best one) to `worst`; the others' places are
    shuffled. With the best choice t = 0 is reached, and it is the only point of value 0.
    """
    rng = np.random.default_rng([STREAM, kind, dim, seed])
    n_integers = dim // 2
    n_floats = dim - 1 - n_integers
    levels = np.array([LEVELS[(seed + j) % len(LEVELS)] for j in range(n_integers)])
    low = np.append(np.full(n_floats, -SIDE), np.zeros(n_integers))
    high = np.append(np.full(n_floats, SIDE), levels - 1.0)
    side = rng.choice([-1.0, 1.0], dim - 1) * rng.uniform(0.1, 0.4, dim - 1)
    middle = (low + high) / 2 + side * (high - low)
    middle[n_floats:] = np.round(middle[n_floats:])
    shifts = np.zeros((CHOICES, dim - 1))
    shifts[:, :n_floats] = rng.uniform(-1.0, 1.0, (CHOICES, n_floats))
    extra = rng.permutation(np.linspace(0.0, worst, CHOICES))

    def value(x: Array) -> Array:
        chosen = x[..., -1].astype(np.int64)
        t = 10 * (x[..., :-1] - middle - shifts[chosen]) / (high - low)
        return np.asarray(of_t(t) + extra[chosen])

    choice = int(extra.argmin())
    best = (*(float(b) for b in middle + shifts[choice]), float(choice))
    bounds = (*((float(a), float(b)) for a, b in zip(low, high, strict=True)), (0.0, CHOICES - 1.0))
    kinds = ("float",) * n_floats + ("int",) * n_integers + ("choice",)
    return MixedProblem(name, bounds, 0.0, (best,), value, kinds)


def mixed_bowl(dim: int, seed: int) -> MixedProblem:
    """Return a rotated quadratic, condition 100, of floats, integers of 6 to 20 levels and a choice of four."""
    basis = rotation(dim - 1, np.random.default_rng([STREAM, 11, dim, seed, 1])).T
    curvatures = _spread(100.0, dim - 1)

    def of_t(t: Array) -> Array:
        return np.asarray((t @ basis) ** 2 @ curvatures)

    return _mixed(f"mixed_bowl{dim}", 11, dim, seed, of_t, worst=100.0 * dim)


def mixed_ripples(dim: int, seed: int) -> MixedProblem:
    """Return a bowl with ripples of floats, integers of 6 to 20 levels and a choice of four."""
    frequencies = np.random.default_rng([STREAM, 12, dim, seed, 1]).uniform(0.3, 0.8, dim - 1)

    def of_t(t: Array) -> Array:
        return np.asarray((t**2 + 10 * (1 - np.cos(2 * math.pi * frequencies * t))).sum(-1))

    return _mixed(f"mixed_ripples{dim}", 12, dim, seed, of_t, worst=10.0 * dim)
