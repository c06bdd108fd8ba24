"""Noisy test problems with several outcomes: objectives in conflict, or one objective under measured constraints.

An outcome vector holds the objectives, all to be minimised, and then the constraints, at most zero where feasible. The
noise is Gaussian: on an objective a tenth of its interquartile range over uniform points of the box, as elsewhere in
these benchmarks, on a constraint a fiftieth, since feasible regions are narrow. The noise of a trial is decided by the
seed and the trial's number alone. A problem also measures the quality of a run, in noise-free outcomes.

Sources: Zitzler, Deb and Thiele (2000) for ZDT1 and ZDT2, Deb et al. (2005) for DTLZ2, Belakaria et al. (2019) for
Branin and Currin, Tanabe and Ishibuchi (2020) for vehicle safety, all as BoTorch has them; Gardner et al. (2014),
second simulation: minimise sin(x) + y where sin(x) sin(y) <= -0.95; Coello Coello and Mezura-Montes (2002) for the
welded beam; Gramacy et al. (2016); Letham et al. (2019) for Hartmann's function within the unit ball; Lemonge et al.
(2010) for the speed reducer. Their minima and maxima were found by 150 runs of SLSQP. BoTorch 0.18 multiplies the
beam's critical load by six where the literature divides by six: the buckling constraint is then idle and the minimum
1.587, not 1.7249. All else of `WeldedBeamSO` is used as it is, on the usual box, with each constraint divided by its
limit.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from botorch.test_functions import DTLZ2, ZDT1, ZDT2, BraninCurrin, VehicleSafety
from botorch.test_functions.synthetic import (
    ConstrainedGramacy,
    ConstrainedHartmann,
    ConstrainedSyntheticTestFunction,
    SpeedReducer,
    WeldedBeamSO,
)
from botorch.utils.multi_objective.hypervolume import Hypervolume
from botorch.utils.multi_objective.pareto import is_non_dominated
from numpy.typing import ArrayLike

from benchmarks.functions import IQR_POINTS, IQR_STREAM, NOISE_STREAM, Array

__all__ = ["CONSTRAINED", "FRONTS", "ConstrainedProblem", "FrontProblem", "OutcomeProblem", "noisy"]

OBJECTIVE_NOISE = 0.1
CONSTRAINT_NOISE = 0.02


@dataclass(frozen=True)
class OutcomeProblem(ABC):
    """A box, and a function from its points (n, d) to outcomes (n, k): objectives, then constraints."""

    name: str
    bounds: tuple[tuple[float, float], ...]
    function: Callable[[Array], Array]
    n_constraints: int = 0
    noisy: bool = False

    @property
    def dim(self) -> int:
        """The number of dimensions d."""
        return len(self.bounds)

    @property
    @abstractmethod
    def n_objectives(self) -> int:
        """How many of the outcomes are objectives; they come first."""

    @abstractmethod
    def measure(self, tried: Array, named: Array) -> dict[str, float]:
        """Quality of a run, by noise-free outcomes of the points tried (n, k) and of those finally recommended (m, k).

        Smaller is better, and zero cannot be beaten. The keys are the titles of columns.
        """

    @cached_property
    def noise_sd(self) -> Array:
        """Standard deviation of the noise on each outcome, (k,), in the outcome's units."""
        low, high = np.array(self.bounds).T
        points = np.random.default_rng([IQR_STREAM, self.dim]).uniform(low, high, size=(IQR_POINTS, self.dim))
        lower, upper = np.quantile(self.value(points), [0.25, 0.75], axis=0)
        share = np.full(len(lower), CONSTRAINT_NOISE)
        share[: self.n_objectives] = OBJECTIVE_NOISE
        return np.asarray(self.noisy * share * (upper - lower))

    def value(self, x: ArrayLike) -> Array:
        """Return the noise-free outcomes (n, k) at the points x (n, d)."""
        return np.asarray(self.function(np.asarray(x, dtype=np.float64).reshape(-1, self.dim)), dtype=np.float64)

    def observe(self, x: ArrayLike, seed: int, trial: int) -> Array:
        """Return the outcomes (k,) at x (d,), with noise that is a function of the seed and the trial's number only."""
        truth = self.value(x)[0]
        return truth + self.noise_sd * np.random.default_rng([NOISE_STREAM, seed, trial]).standard_normal(len(truth))


@dataclass(frozen=True)
class FrontProblem(OutcomeProblem):
    """Objectives in conflict; `volumes` has the names of reference points, these, and the true front's hypervolumes."""

    volumes: tuple[tuple[str, tuple[float, ...], float], ...] = ()

    @property
    def n_objectives(self) -> int:
        """As many as a reference point has."""
        return len(self.volumes[0][1])

    def measure(self, tried: Array, named: Array) -> dict[str, float]:
        """Shares of the true front's hypervolume that are missing, for each reference point.

        A near one counts only points close to the front; a far one, BoTorch's of ZDT1 and ZDT2, nearly all points.
        """
        return {
            f"{who}, {side}": 1 - self.hypervolume(points, reference) / whole
            for side, reference, whole in self.volumes
            for who, points in (("named", named), ("tried", tried))
        }

    def hypervolume(self, points: Array, reference: tuple[float, ...]) -> float:
        """Volume that the outcomes (n, k) dominate below the reference point (k,)."""
        larger_is_better = -torch.as_tensor(points).reshape(-1, self.n_objectives)
        front = larger_is_better[is_non_dominated(larger_is_better)]
        return float(Hypervolume(-torch.tensor(reference, dtype=torch.float64)).compute(front))


@dataclass(frozen=True)
class ConstrainedProblem(OutcomeProblem):
    """One objective, its `minimum` over the feasible points, reached at `minimizer`, and its maximum over them."""

    minimum: float = 0.0
    minimizer: tuple[float, ...] = ()
    maximum: float = 1.0

    @property
    def n_objectives(self) -> int:
        """One."""
        return 1

    def measure(self, tried: Array, named: Array) -> dict[str, float]:
        """Regrets of the named and of the best point tried, as shares of the feasible values' range.

        An infeasible point counts as the worst feasible one, with regret 1.
        """
        return {
            "named": float(self.regrets(named).min(initial=1.0)),
            "best tried": float(self.regrets(tried).min(initial=1.0)),
            "named infeasible": float(not (named[:, 1:] <= 0).all(-1).any()),
        }

    def regrets(self, outcomes: Array) -> Array:
        """Regrets (n,) of noise-free outcomes (n, k)."""
        regrets = (outcomes[:, 0] - self.minimum) / (self.maximum - self.minimum)
        return np.where((outcomes[:, 1:] <= 0).all(-1), regrets, 1.0)


def noisy(problem: OutcomeProblem) -> OutcomeProblem:
    """The problem with noise on all its outcomes."""
    return replace(problem, name=f"{problem.name}-noisy", noisy=True)


def _zdt1(x: Array) -> Array:
    return np.asarray(ZDT1(dim=x.shape[-1]).evaluate_true(torch.as_tensor(x)))


def _zdt2(x: Array) -> Array:
    return np.asarray(ZDT2(dim=x.shape[-1]).evaluate_true(torch.as_tensor(x)))


def _dtlz2(x: Array) -> Array:
    return np.asarray(DTLZ2(dim=x.shape[-1], num_objectives=2).evaluate_true(torch.as_tensor(x)))


def _branin_currin(x: Array) -> Array:
    return np.asarray(BraninCurrin().evaluate_true(torch.as_tensor(x)))


def _vehicle_safety(x: Array) -> Array:
    return np.asarray(VehicleSafety().evaluate_true(torch.as_tensor(x)))


def _near_and_far(below: float) -> tuple[tuple[str, tuple[float, ...], float], ...]:
    """The volumes of a front from (0, 1) to (1, 0) with the area `below` under it."""
    return tuple((side, (r, r), r**2 - below) for side, r in (("near", 1.1), ("far", 11.0)))


def _gardner(x: Array) -> Array:
    sine = np.sin(x)
    return np.stack([sine[:, 0] + x[:, 1], sine[:, 0] * sine[:, 1] + 0.95], axis=-1)


#: Limits of shear stress (psi), bending stress (psi), weld against bar (in), cost ($), deflection (in) and load (lb).
_BEAM_LIMITS = np.array([13_600.0, 30_000.0, 1.0, 5.0, 0.25, 6_000.0])


def _welded_beam(x: Array) -> Array:
    beam, points = WeldedBeamSO(), torch.as_tensor(x)
    constraints = -np.asarray(beam.evaluate_slack_true(points)) / _BEAM_LIMITS
    height, width = x[:, 2], x[:, 3]
    critical = 4.013 * 30e6 * height * width**3 / 6 / 14**2 * (1 - height / 28 * math.sqrt(30e6 / (4 * 12e6)))
    constraints[:, -1] = 1 - critical / 6_000
    return np.concatenate([np.asarray(beam.evaluate_true(points))[:, None], constraints], axis=-1)


def _as_botorch(problem: ConstrainedSyntheticTestFunction) -> Callable[[Array], Array]:
    """A problem of BoTorch, whose constraints are slacks, at least zero where feasible."""

    def outcomes(x: Array) -> Array:
        points = torch.as_tensor(x)
        values, slack = problem.evaluate_true(points), problem.evaluate_slack_true(points)
        return np.asarray(torch.cat([values[:, None], -slack], 1))

    return outcomes


def _catalogue(*problems: OutcomeProblem) -> dict[str, OutcomeProblem]:
    return {each.name: each for problem in problems for each in (problem, noisy(problem))}


#: Problems of two and three objectives, and their noisy versions. The hypervolumes of the fronts of the last two were
#: found by searches, BoTorch's `max_hv`.
FRONTS = _catalogue(
    FrontProblem("zdt1", ((0.0, 1.0),) * 6, _zdt1, volumes=_near_and_far(1 / 3)),
    FrontProblem("zdt2", ((0.0, 1.0),) * 6, _zdt2, volumes=_near_and_far(2 / 3)),
    FrontProblem("dtlz2", ((0.0, 1.0),) * 6, _dtlz2, volumes=(("near", (1.1, 1.1), 1.21 - math.pi / 4),)),
    FrontProblem(
        "branin-currin", ((0.0, 1.0),) * 2, _branin_currin, volumes=(("near", (18.0, 6.0), 59.36011874867746),)
    ),
    FrontProblem(
        "vehicle-safety",
        ((1.0, 3.0),) * 5,
        _vehicle_safety,
        volumes=(("near", (1864.72022, 11.81993945, 0.2903999384), 246.81607081187002),),
    ),
)
#: Problems with constraints, and their noisy versions.
CONSTRAINED = _catalogue(
    ConstrainedProblem(
        "gardner2",
        ((0.0, 6.0),) * 2,
        _gardner,
        n_constraints=1,
        minimum=math.asin(0.95) - 1,
        minimizer=(1.5 * math.pi, math.asin(0.95)),
        maximum=2 * math.pi - math.asin(0.95) + 1,
    ),
    ConstrainedProblem(
        "welded-beam",
        ((0.125, 2.0), (0.1, 10.0), (0.1, 10.0), (0.1, 2.0)),
        _welded_beam,
        n_constraints=6,
        minimum=1.7248523085,
        minimizer=(0.205729639786, 3.470488665628, 9.036623910358, 0.205729639786),
        maximum=19.01858991612,
    ),
    ConstrainedProblem(
        "gramacy",
        ((0.0, 1.0),) * 2,
        _as_botorch(ConstrainedGramacy()),
        n_constraints=2,
        minimum=0.5997880520094527,
        minimizer=(0.19512268850026365, 0.4046653635091891),
        maximum=3**0.5,
    ),
    ConstrainedProblem(
        "hartmann-ball",
        ((0.0, 1.0),) * 6,
        _as_botorch(ConstrainedHartmann(dim=6)),
        n_constraints=1,
        minimum=-3.322368004440182,
        minimizer=(0.20168950752, 0.15001068743, 0.47687395795, 0.27533242694, 0.31165161468, 0.65730053010),
        maximum=-0.0001346019,
    ),
    ConstrainedProblem(
        "speed-reducer",
        ((2.6, 3.6), (0.7, 0.8), (17.0, 28.0), (7.3, 8.3), (7.8, 8.3), (2.9, 3.9), (5.0, 5.5)),
        _as_botorch(SpeedReducer()),
        n_constraints=11,
        minimum=2996.3481649682,
        minimizer=(3.5, 0.7, 17.0, 7.3, 7.8, 3.3502146660964476, 5.286683229757405),
        maximum=6117.381627,
    ),
)
