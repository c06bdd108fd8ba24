"""Noisy test problems for optimisers: standard functions to minimise, on their natural boxes.

The noise is Gaussian, and its standard deviation is a tenth of the function's interquartile range over uniform points
of the box, so that "noisy" means the same on every problem. The noise of a trial is decided by the seed and the
trial's number alone: two optimisers that run with the same seed get the same noise.

Sources: Dixon and Szego (1978) for Branin, Hartmann and Shekel; Ackley (1987); Levy and Montalvo (1985); Rastrigin
(1974); Schwefel (1981). Constants are those in common use (Surjanovic and Bingham's collection, and BoTorch).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from bkbopt.errors import ArgumentError

if TYPE_CHECKING:
    from botorch.test_functions.synthetic import SyntheticTestFunction

__all__ = [
    "PROBLEMS",
    "Array",
    "Problem",
    "ackley",
    "from_botorch",
    "levy",
    "off_centre",
    "random_peaks",
    "rastrigin",
    "rosenbrock",
    "schwefel",
]

Array = NDArray[np.float64]

NOISE_SHARE = 0.1
IQR_POINTS = 100_000
# Tags keep the streams of noise and of the quantiles' points apart from other uses of the same small seeds.
NOISE_STREAM = 7_001
IQR_STREAM = 7_002
GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class Problem:
    """A function to minimise over a box, and the noise that its observations carry.

    `bounds` holds one pair (low, high) a dimension, `function` maps points (..., d) of the box to values (...),
    `minimum` is the function's noise-free minimum over the box and `minimizers` the known points (k, d) that reach it.
    """

    name: str
    bounds: tuple[tuple[float, float], ...]
    minimum: float
    minimizers: tuple[tuple[float, ...], ...]
    function: Callable[[Array], Array]

    @property
    def dim(self) -> int:
        """The number of dimensions d."""
        return len(self.bounds)

    @property
    def low(self) -> Array:
        """Lower corner of the box, (d,)."""
        return np.array([low for low, _ in self.bounds])

    @property
    def high(self) -> Array:
        """Upper corner of the box, (d,)."""
        return np.array([high for _, high in self.bounds])

    @cached_property
    def iqr(self) -> float:
        """Interquartile range of the noise-free function over uniform points of the box, in the function's units."""
        rng = np.random.default_rng([IQR_STREAM, self.dim])
        lower, upper = np.quantile(self.value(self.sample(IQR_POINTS, rng)), [0.25, 0.75])
        return float(upper - lower)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the observation noise, in the function's units."""
        return NOISE_SHARE * self.iqr

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n uniform points of the box, (n, d)."""
        return rng.uniform(self.low, self.high, size=(n, self.dim))

    def value(self, x: ArrayLike) -> Array:
        """Return the noise-free values (...) at the points x (..., d), given in the box's own units.

        Raises:
            ArgumentError: the last axis of x does not have d entries.
        """
        points = np.asarray(x, dtype=np.float64)
        if points.ndim == 0 or points.shape[-1] != self.dim:
            raise ArgumentError(f"x: expected {self.dim} coordinates on the last axis, got the shape {points.shape}")
        return np.asarray(self.function(points), dtype=np.float64)

    def observe(self, x: ArrayLike, seed: int, trial: int) -> float:
        """Return one noisy value at x (d,); the noise is a function of the seed and the trial's number only."""
        noise = np.random.default_rng([NOISE_STREAM, seed, trial]).standard_normal()
        return float(self.value(x) + self.noise_sd * noise)


def _branin(x: Array) -> Array:
    first, second = x[..., 0], x[..., 1]
    valley = second - 5.1 / (4 * math.pi**2) * first**2 + 5 / math.pi * first - 6
    return np.asarray(valley**2 + 10 * (1 - 1 / (8 * math.pi)) * np.cos(first) + 10)


def _bumps(x: Array, centres: Array, steepness: Array, heights: Array) -> Array:
    """Minus a weighted sum of Gaussian bumps: x (..., d), centres and steepness (k, d), heights (k,)."""
    squares = (x[..., None, :] - centres) ** 2
    return np.asarray(-np.exp(-(squares * steepness).sum(-1)) @ heights)


_HARTMANN6_CENTRES = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
_HARTMANN6_STEEPNESS = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_HARTMANN6_HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])


def _hartmann6(x: Array) -> Array:
    return _bumps(x, _HARTMANN6_CENTRES, _HARTMANN6_STEEPNESS, _HARTMANN6_HEIGHTS)


_SHEKEL_CENTRES = np.array(
    [
        [4, 4, 4, 4],
        [1, 1, 1, 1],
        [8, 8, 8, 8],
        [6, 6, 6, 6],
        [3, 7, 3, 7],
        [2, 9, 2, 9],
        [5, 3, 5, 3],
        [8, 1, 8, 1],
        [6, 2, 6, 2],
        [7, 3.6, 7, 3.6],
    ]
)
_SHEKEL_WIDTHS = np.array([0.1, 0.2, 0.2, 0.4, 0.4, 0.6, 0.3, 0.7, 0.5, 0.5])


def _shekel(x: Array) -> Array:
    squares = ((x[..., None, :] - _SHEKEL_CENTRES) ** 2).sum(-1)
    return np.asarray(-(1 / (squares + _SHEKEL_WIDTHS)).sum(-1))


def _ackley(x: Array) -> Array:
    radius = np.sqrt((x**2).mean(-1))
    ripple = np.cos(2 * math.pi * x).mean(-1)
    return np.asarray(20 + math.e - 20 * np.exp(-0.2 * radius) - np.exp(ripple))


def _levy(x: Array) -> Array:
    w = 1 + (x - 1) / 4
    inner, last = w[..., :-1], w[..., -1]
    middle = ((inner - 1) ** 2 * (1 + 10 * np.sin(math.pi * inner + 1) ** 2)).sum(-1)
    end = (last - 1) ** 2 * (1 + np.sin(2 * math.pi * last) ** 2)
    return np.asarray(np.sin(math.pi * w[..., 0]) ** 2 + middle + end)


def _rastrigin(x: Array) -> Array:
    return np.asarray((x**2 - 10 * np.cos(2 * math.pi * x) + 10).sum(-1))


# Depth of one coordinate's best well, and where it lies: the stationary point of u sin(sqrt(u)) near 421.
_SCHWEFEL_DEPTH = 418.9828872724338
SCHWEFEL_MINIMIZER = 420.968746359982


def _schwefel(x: Array) -> Array:
    return np.asarray((_SCHWEFEL_DEPTH - x * np.sin(np.sqrt(np.abs(x)))).sum(-1))


def ackley(dim: int) -> Problem:
    """Return Ackley's function in `dim` dimensions: a cone under many ripples, its minimum at the box's centre."""
    return Problem(f"ackley{dim}", ((-32.768, 32.768),) * dim, 0.0, ((0.0,) * dim,), _ackley)


def levy(dim: int) -> Problem:
    """Return Levy's function in `dim` dimensions: a bowl with ripples along every axis."""
    return Problem(f"levy{dim}", ((-10.0, 10.0),) * dim, 0.0, ((1.0,) * dim,), _levy)


def rastrigin(dim: int) -> Problem:
    """Return Rastrigin's function in `dim` dimensions: a bowl under a regular grid of deep ripples."""
    return Problem(f"rastrigin{dim}", ((-5.12, 5.12),) * dim, 0.0, ((0.0,) * dim,), _rastrigin)


def schwefel(dim: int) -> Problem:
    """Return Schwefel's function in `dim` dimensions: its best well lies near a corner, far from the second best."""
    return Problem(f"schwefel{dim}", ((-500.0, 500.0),) * dim, 0.0, ((SCHWEFEL_MINIMIZER,) * dim,), _schwefel)


def random_peaks(dim: int, n_peaks: int = 30, width: float = 0.2, seed: int = 0) -> Problem:
    """Return minus the upper envelope of random Gaussian peaks in the unit cube.

    The heights are spread evenly over [0.4, 1] and the peaks have standard deviations in [width / 2, width] times
    sqrt(dim). No peak exceeds its own height, so the minimum is exactly -1, at the centre of the highest peak.
    """
    rng = np.random.default_rng([dim, n_peaks, seed])
    centres = rng.uniform(0.05, 0.95, size=(n_peaks, dim))
    deviations = rng.uniform(width / 2, width, size=n_peaks) * math.sqrt(dim)
    heights = np.linspace(1.0, 0.4, n_peaks)

    def envelope(x: Array) -> Array:
        squares = ((x[..., None, :] - centres) ** 2).sum(-1)
        return np.asarray(-(heights * np.exp(-squares / (2 * deviations**2))).max(-1))

    best = tuple(float(c) for c in centres[0])
    return Problem(f"peaks{dim}", ((0.0, 1.0),) * dim, -1.0, (best,), envelope)


def off_centre(problem: Problem) -> Problem:
    """The problem on a box with one side of each column cut to 30 to 60 % of its distance from zero.

    The fractions are spread by the golden ratio and the sides alternate. The known minimisers must stay inside, which
    those of Ackley (0) and Levy (1) do.
    """
    bounds = []
    for j, (low, high) in enumerate(problem.bounds):
        part = 0.3 + 0.3 * ((j + 1) * GOLDEN % 1.0)
        bounds.append((low * part, high) if j % 2 == 0 else (low, high * part))
    return replace(problem, name=f"{problem.name}-off", bounds=tuple(bounds))


def from_botorch(name: str, function: "SyntheticTestFunction") -> Problem:
    """One of BoTorch's functions with known minimisers as a problem of ours."""

    def values(x: Array) -> Array:
        return np.asarray(function.evaluate_true(torch.as_tensor(x, dtype=torch.float64)).numpy())

    assert function._optimizers is not None
    bounds = tuple((float(low), float(high)) for low, high in function._bounds)
    return Problem(name, bounds, float(function.optimal_value), tuple(function._optimizers), values)


def rosenbrock(dim: int) -> Problem:
    """Return Rosenbrock's function in `dim` dimensions, BoTorch's: a curved valley."""
    from botorch.test_functions.synthetic import Rosenbrock

    return from_botorch(f"rosenbrock{dim}", Rosenbrock(dim))


_BRANIN = Problem(
    name="branin",
    bounds=((-5.0, 10.0), (0.0, 15.0)),
    minimum=0.39788735772973816,
    minimizers=((-math.pi, 12.275), (math.pi, 2.275), (3 * math.pi, 2.475)),
    function=_branin,
)
_HARTMANN6 = Problem(
    name="hartmann6",
    bounds=((0.0, 1.0),) * 6,
    minimum=-3.3223680114155147,
    minimizers=((0.20168951, 0.15001069, 0.47687397, 0.27533243, 0.31165161, 0.65730053),),
    function=_hartmann6,
)
_SHEKEL4 = Problem(
    name="shekel4",
    bounds=((0.0, 10.0),) * 4,
    minimum=-10.536443153483528,
    minimizers=((4.00074686, 3.99950918, 4.00074686, 3.99950918),),
    function=_shekel,
)

PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for problem in (
        _BRANIN,
        _HARTMANN6,
        ackley(10),
        levy(8),
        rastrigin(6),
        schwefel(6),
        _SHEKEL4,
        random_peaks(4),
    )
}
