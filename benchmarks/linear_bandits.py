"""Regret and time of BKB on finite pools, beside the linear bandits of its paper.

Run it as `python -m benchmarks.linear_bandits`. Each seed has new arms and a new function; the noise of a step is the
same for all players:

- falling: arms x in the unit ball of 40 dimensions, each coordinate 0.7 times the one before, and values theta.x with
  |theta| = 1. BKB has the linear kernel.
- flat: the same, with coordinates alike.
- kernel: arms in the unit square, values of a function in the space of a Gaussian kernel, with norm one. BKB has that
  kernel, the others its quadrature features (few suffice in two dimensions) or random Fourier features.

"2 sd" explores by two posterior standard deviations, "draw" by one draw of the posterior (Thompson sampling), and
"theorem" by the confidence radius of the method's own theorem, with the bounds on theta and noise known. OFUL is SOFUL
with a sketch of as many rows as dimensions; their ridge is one, that of all others the noise variance. "regret" is
cumulative and noise-free, "last tenth" that of the last tenth of the steps relative to a random arm, and "rho / lam"
the part of the spectrum that the sketch of SOFUL has lost: where it grows, so does its radius.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import bkbopt as bo
from benchmarks.arguments import Arguments
from benchmarks.comparison import standard_error
from benchmarks.report import Clock, measuring, print_table
from bkbopt.confidence import ScheduleContext, Theorem2
from bkbopt.kernels import rbf
from bkbopt.learners import CBRAP, SOFUL, FeatureBandit
from bkbopt.learners.features import QuadratureFourier
from bkbopt.posterior.features import RandomFourier
from bkbopt.search.maximizers.pool import PoolMaximizer

__all__ = ["Problem", "Run", "kernel_players", "kernel_problem", "linear_players", "linear_problem", "main", "play"]

Array = npt.NDArray[np.float64]
NOISE_SD = 0.1
LAM = NOISE_SD**2
DIM = 40
LENGTHSCALE = 0.2
DELTA = 0.1


@dataclass(frozen=True)
class Problem:
    """Arms `X (n, d)` with noise-free values `f (n,)`."""

    X: Array
    f: Array


def linear_problem(n: int, fall: float, seed: int) -> Problem:
    """Arms in the unit ball whose coordinates fall by the factor `fall`; theta points in a direction at random."""
    rng = np.random.default_rng([seed, 0])
    X = rng.standard_normal((n, DIM)) * fall ** np.arange(DIM)
    X /= np.linalg.norm(X, axis=1).max()
    theta = rng.standard_normal(DIM)
    return Problem(X, X @ (theta / np.linalg.norm(theta)))


def kernel_problem(n: int, seed: int) -> Problem:
    """Arms in the unit square; a sum of 30 kernel functions, of norm one."""
    rng = np.random.default_rng([seed, 0])
    X, centres = rng.random((n, 2)), torch.as_tensor(rng.random((30, 2)))
    kernel, a = rbf(2, LENGTHSCALE), torch.as_tensor(rng.standard_normal(30))
    a /= (a @ kernel(centres, centres) @ a).sqrt()
    return Problem(X, (kernel(torch.as_tensor(X), centres) @ a).numpy())


class Player(Protocol):
    """A policy that chooses arms of a fixed pool."""

    def select(self, X: Array) -> int:
        """Which of the arms `X (n, d)` to pull."""
        ...

    def learn_one(self, x: Array, y: float) -> None:
        """Learn the value of an arm."""
        ...


class LinearKernel:
    """k(x, x') = x.x'."""

    def __call__(self, A: Tensor, B: Tensor) -> Tensor:
        return A @ B.T

    def diag(self, A: Tensor) -> Tensor:
        return (A * A).sum(1)


class BKBPlayer:
    """BKB's surrogate with its exact search over the pool: two standard deviations, or its second theorem's radius."""

    def __init__(self, kernel: object, theorem: bool, seed: int) -> None:
        self.surrogate = bo.BKB(kernel, LAM, max_inducing=None, seed=seed)
        self._theorem = Theorem2(1.0, NOISE_SD, DELTA, form="running") if theorem else None
        self._search: PoolMaximizer | None = None

    def select(self, X: Array) -> int:
        if self._search is None:
            arms = torch.as_tensor(X)
            self._search, self._kappa2 = PoolMaximizer(arms), float(self.surrogate.kernel.diag(arms).max())
        if not len(self.surrogate.observations):
            return 0
        return self._search.argmax(self.surrogate.model, self._beta(len(X))).index

    def _beta(self, n_arms: int) -> float:
        if self._theorem is None:
            return 2.0
        s, obs = self.surrogate, self.surrogate.observations
        known = obs.total, obs.dim, n_arms, LAM, self._kappa2
        return self._theorem(ScheduleContext(*known, s.effective_dimension(), s.log_growth))

    def learn_one(self, x: Array, y: float) -> None:
        self.surrogate.observe(x[None], [y])


#: Name, exploration, and a player for a seed.
Players = list[tuple[str, str, Callable[[int], Player]]]


def _identity(X: Tensor) -> Tensor:
    return X


def linear_players(sizes: Sequence[int] = (5, 10, 20)) -> Players:
    """BKB, OFUL, and sketches and projections of these sizes."""
    kernel = LinearKernel()
    known = {"noise_std": NOISE_SD, "norm": 1.0, "delta": DELTA}
    return [
        ("BKB", "2 sd", lambda seed: BKBPlayer(kernel, False, seed)),
        ("ridge regression", "2 sd", lambda seed: FeatureBandit(_identity, lam=LAM, beta=2.0)),
        *((f"CBRAP, m = {m}", "2 sd", lambda seed, m=m: CBRAP(m, lam=LAM, beta=2.0, seed=seed)) for m in sizes),
        ("ridge regression", "draw", lambda seed: FeatureBandit(_identity, lam=LAM, policy="thompson", seed=seed)),
        ("BKB", "theorem", lambda seed: BKBPlayer(kernel, True, seed)),
        ("OFUL", "theorem", lambda seed: SOFUL(DIM, **known)),
        *((f"SOFUL, m = {m}", "theorem", lambda seed, m=m: SOFUL(m, **known)) for m in sizes),
    ]


def kernel_players(order: int = 10, frequencies: int = 50) -> Players:
    """BKB, quadrature features and random Fourier features of the same kernel, as many of either."""
    kernel = rbf(2, LENGTHSCALE)
    quadrature = QuadratureFourier.from_kernel(kernel, order)

    def fourier(seed: int) -> RandomFourier:
        return RandomFourier.from_kernel(kernel, frequencies, np.random.default_rng([seed, 2]))

    ridge = {"lam": LAM}
    draw = {"lam": LAM, "policy": "thompson"}
    return [
        ("BKB", "2 sd", lambda seed: BKBPlayer(kernel, False, seed)),
        (f"quadrature, {quadrature.size}", "2 sd", lambda seed: FeatureBandit(quadrature, beta=2.0, **ridge)),
        (f"random, {2 * frequencies}", "2 sd", lambda seed: FeatureBandit(fourier(seed), beta=2.0, **ridge)),
        (f"quadrature, {quadrature.size}", "draw", lambda seed: FeatureBandit(quadrature, seed=seed, **draw)),
        (f"random, {2 * frequencies}", "draw", lambda seed: FeatureBandit(fourier(seed), seed=seed, **draw)),
        ("BKB", "theorem", lambda seed: BKBPlayer(kernel, True, seed)),
    ]


@dataclass(frozen=True)
class Run:
    """Record of a player: arms `(n_steps,)`, its cumulative regret, seconds of processor time, and the player."""

    arms: npt.NDArray[np.int64]
    regret: float
    last: float
    cpu: float
    player: Player


def play(player: Player, problem: Problem, n_steps: int, seed: int) -> Run:
    """`n_steps` pulls; the noise of step t is that of all players with this seed."""
    noise, clock = np.random.default_rng([seed, 1]).standard_normal(n_steps) * NOISE_SD, Clock()
    arms = np.zeros(n_steps, dtype=np.int64)
    for t in range(n_steps):
        with clock:
            arms[t] = player.select(problem.X)
        y = float(problem.f[arms[t]] + noise[t])
        with clock:
            player.learn_one(problem.X[arms[t]], y)
    gaps = problem.f.max() - problem.f
    last = float(gaps[arms[-max(1, n_steps // 10) :]].mean() / gaps.mean())
    return Run(arms, float(gaps[arms].sum()), last, clock.cpu, player)


def _row(name: str, how: str, runs: Sequence[Run]) -> tuple[object, ...]:
    regrets = [run.regret for run in runs]
    regret = f"{np.mean(regrets):.1f} +- {standard_error(regrets):.1f}"
    lost = [run.player.rho_ / run.player.lam for run in runs if isinstance(run.player, SOFUL)]
    sizes = [len(run.player.surrogate.inducing) for run in runs if isinstance(run.player, BKBPlayer)]
    last, ms = float(np.mean([run.last for run in runs])), 1e3 * float(np.median([run.cpu for run in runs]))
    found = float(np.mean(lost)) if lost else None, float(np.mean(sizes)) if sizes else None
    return name, how, regret, 100.0 * last, ms / len(runs[0].arms), *found


#: (number of arms, seed) -> problem, and who plays it.
PROBLEMS: dict[str, tuple[Callable[[int, int], Problem], Callable[[], Players]]] = {
    "falling": (lambda n, seed: linear_problem(n, 0.7, seed), linear_players),
    "flat": (lambda n, seed: linear_problem(n, 1.0, seed), linear_players),
    "kernel": (kernel_problem, kernel_players),
}
HEADER = ("bandit", "explores by", "regret", "last tenth, %", "ms/step", "rho / lam", "m of BKB")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each problem."""
    parser = Arguments(__doc__)
    parser.option("--problems", tuple(PROBLEMS), choices=PROBLEMS, help="what is played")
    parser.option("--arms", 1_000, quick=200, help="arms of a problem")
    parser.option("--steps", 1_000, quick=200, help="pulls of a run")
    parser.option("--seeds", 5, quick=2, help="problems of each kind, and runs")
    options = parser.parse_args(arguments)
    n, steps, seeds = options.arms, options.steps, options.seeds
    with measuring(1):
        for title in options.problems:
            make, players = PROBLEMS[title]
            rows = []
            for name, how, player in players():
                play(player(0), make(n, 0), 5, 0)  # warms up
                rows.append(_row(name, how, [play(player(s), make(n, s), steps, s) for s in range(seeds)]))
            print_table(f"{title}: {n:,} arms, {steps:,} steps, noise sd {NOISE_SD:g}, {seeds} seeds", HEADER, rows)


if __name__ == "__main__":
    main()
