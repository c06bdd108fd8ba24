"""One interface to run sequential optimisers on a noisy problem, and the optimisers that we compare with.

`PEERS` maps a name to a callable (problem, n_trials, seed) -> Run. An optimiser joins the comparison by one entry; with
`run_loop` it supplies only `ask`, `tell` and `recommend`. Every run has one thread, so that several runs can go side by
side in separate processes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
import torch
from numpy.typing import NDArray

import bkbopt as bo
from benchmarks.botorch_model import fitted, quiet_botorch
from benchmarks.functions import Array, Problem
from benchmarks.report import Clock, limited_threads
from benchmarks.samplers import N_STARTUP, SAMPLERS, floats, point, quiet_optuna
from bkbopt.errors import ArgumentError

if TYPE_CHECKING:
    from botorch.models import SingleTaskGP

__all__ = ["PEERS", "Loop", "Optimiser", "Run", "ours", "run_loop", "run_peer"]

CHECKPOINT_EVERY = 10


@dataclass(frozen=True)
class Run:
    """Record of one optimiser on one problem with one seed, n trials.

    `xs` (n, d) are the points tried, `ys_noisy` (n,) what the optimiser was told, `f_true` (n,) the noise-free values,
    and `recommended` (c, d) the points it recommended after `checkpoints` (c,) trials, all in the problem's units.
    `seconds_per_trial` and `cpu_per_trial` (n,) are the time spent in asking and telling, the function's own excluded.
    """

    name: str
    problem: str
    seed: int
    xs: Array
    ys_noisy: Array
    f_true: Array
    checkpoints: NDArray[np.int64]
    recommended: Array
    seconds_per_trial: Array
    cpu_per_trial: Array


@dataclass(frozen=True)
class Loop:
    """An optimiser that minimises: `ask()` gives a point (d,), `tell(x, y)` takes a value, `recommend()` names a point.

    Points are in the problem's units. `recommend` is called after `tell`, at checkpoints only and outside the clock.
    """

    ask: Callable[[], Array]
    tell: Callable[[Array, float], None]
    recommend: Callable[[], Array]


Optimiser = Callable[[Problem, int, int], Run]


def run_loop(name: str, problem: Problem, n_trials: int, seed: int, loop: Loop) -> Run:
    """Drive `loop` for n_trials and return the run; trial i of a seed has the same noise for every optimiser."""
    xs, ys, clocks, recommended = [], [], [], []
    checkpoints = [*range(CHECKPOINT_EVERY, n_trials, CHECKPOINT_EVERY), n_trials]
    for trial in range(n_trials):
        with Clock() as clock:
            x = loop.ask()
        y = problem.observe(x, seed, trial)
        with clock:
            loop.tell(x, y)
        clocks.append(clock)
        xs.append(x)
        ys.append(y)
        if trial + 1 in checkpoints:
            recommended.append(loop.recommend())
    points = np.array(xs)
    return Run(
        name=name,
        problem=problem.name,
        seed=seed,
        xs=points,
        ys_noisy=np.array(ys),
        f_true=problem.value(points),
        checkpoints=np.array(checkpoints, dtype=np.int64),
        recommended=np.array(recommended),
        seconds_per_trial=np.array([clock.wall for clock in clocks]),
        cpu_per_trial=np.array([clock.cpu for clock in clocks]),
    )


def _random(problem: Problem, n_trials: int, seed: int) -> Run:
    """Uniform random search; it recommends the best point observed."""
    rng = np.random.default_rng(seed)
    seen: list[tuple[float, Array]] = []
    loop = Loop(
        ask=lambda: problem.sample(1, rng)[0],
        tell=lambda x, y: seen.append((y, x)),
        recommend=lambda: min(seen, key=lambda pair: pair[0])[1],
    )
    return run_loop("random", problem, n_trials, seed, loop)


def _optuna(name: str) -> Optimiser:
    """Return an optimiser that runs one of Optuna's samplers by ask and tell; it recommends `study.best_trial`."""

    def run(problem: Problem, n_trials: int, seed: int) -> Run:
        space, asked = floats(problem.bounds), list[optuna.Trial]()

        with quiet_optuna():
            study = optuna.create_study(sampler=SAMPLERS[name](seed))

            def ask() -> Array:
                asked.append(study.ask(space))
                return point(asked[-1].params)

            def tell(x: Array, y: float) -> None:
                study.tell(asked[-1], y)

            loop = Loop(ask=ask, tell=tell, recommend=lambda: point(study.best_trial.params))
            return run_loop(name, problem, n_trials, seed, loop)

    return run


def _suggest_qlognei(model: "SingleTaskGP", problem: Problem, xs: list[Array], seed: int) -> Array:
    """Return the maximiser (d,) of the noisy expected improvement over the points tried so far."""
    from botorch.acquisition.logei import qLogNoisyExpectedImprovement
    from botorch.optim.optimize import optimize_acqf
    from botorch.sampling.normal import SobolQMCNormalSampler

    acquisition = qLogNoisyExpectedImprovement(
        model,
        X_baseline=torch.tensor(np.array(xs)),
        sampler=SobolQMCNormalSampler(torch.Size([256]), seed=seed),
        prune_baseline=True,
    )
    candidate, _ = optimize_acqf(
        acquisition,
        bounds=_corners(problem),
        q=1,
        num_restarts=10,
        raw_samples=512,
        options={"batch_limit": 5, "maxiter": 200},
    )
    return np.asarray(candidate[0].detach().numpy())


def _corners(problem: Problem) -> torch.Tensor:
    return torch.tensor(np.array([problem.low, problem.high]))


def _qlognei(problem: Problem, n_trials: int, seed: int) -> Run:
    """BoTorch's noisy expected improvement with its tutorials' settings; it recommends the best posterior mean.

    A `SingleTaskGP` with unknown noise, refitted after every trial; 10 scrambled Sobol points to start with; 256
    quasi-random posterior samples; 10 restarts from 512 raw samples.
    """
    from botorch.utils.sampling import draw_sobol_samples

    start = draw_sobol_samples(_corners(problem), N_STARTUP, q=1, seed=seed)[:, 0].numpy()
    xs: list[Array] = []
    ys: list[float] = []
    models: list[SingleTaskGP] = []

    def tell(x: Array, y: float) -> None:
        xs.append(x)
        ys.append(y)
        if len(xs) >= N_STARTUP:
            Y = -torch.tensor(ys, dtype=torch.float64)[:, None]
            models[:] = [fitted(torch.tensor(np.array(xs)), Y, _corners(problem))]

    def ask() -> Array:
        if not models:
            return np.asarray(start[len(xs)])
        return _suggest_qlognei(models[0], problem, xs, seed + len(xs))

    def recommend() -> Array:
        if not models:
            return xs[int(np.argmin(ys))]
        with torch.no_grad():
            mean = models[0].posterior(torch.tensor(np.array(xs))).mean
        return xs[int(mean.argmax())]

    with torch.random.fork_rng(), quiet_botorch():
        torch.manual_seed(seed)
        return run_loop("qlognei", problem, n_trials, seed, Loop(ask=ask, tell=tell, recommend=recommend))


def ours(problem: Problem, seed: int, **options: Any) -> Loop:
    """Our optimiser, by default with its defaults; it recommends the observed point with the best posterior mean."""
    opt = bo.Optimizer(list(problem.bounds), seed=seed, n_startup_trials=N_STARTUP, **options)
    asked: list[bo.Trial] = []

    def ask() -> Array:
        asked.append(opt.ask())
        return point(asked[-1].params)

    def tell(x: Array, y: float) -> None:
        opt.tell(asked[-1], y)

    return Loop(ask, tell, lambda: point(opt.recommend().params))


PEERS: dict[str, Optimiser] = {
    "random": _random,
    "tpe": _optuna("tpe"),
    "gp_sampler": _optuna("gp_sampler"),
    "cmaes": _optuna("cmaes"),
    "qlognei": _qlognei,
    "bkbopt": lambda problem, n, seed: run_loop("bkbopt", problem, n, seed, ours(problem, seed)),
}


def run_peer(name: str, problem: Problem, n_trials: int, seed: int) -> Run:
    """Run the optimiser called `name` on one thread and return its record.

    Raises:
        ArgumentError: `name` is not in `PEERS`, or n_trials is below 1.
    """
    if name not in PEERS:
        raise ArgumentError(f"name: expected one of {sorted(PEERS)}, got {name!r}")
    if n_trials < 1:
        raise ArgumentError(f"n_trials: expected at least 1, got {n_trials}")
    with limited_threads(1):
        return PEERS[name](problem, n_trials, seed)
