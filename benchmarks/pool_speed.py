"""Time and regret of our loop over a finite pool, beside the paper's Algorithm 1.

Run it as `python -m benchmarks.pool_speed`. Kernel (RBF, lengthscale 0.8), noise (sd 0.3, lam 0.09), qbar 2, beta, the
first arm and the noise of each step are the same on all sides:

- core: `BKB` and `PoolMaximizer` alone;
- optimizer: `Optimizer` with everything it reports;
- baseline: Algorithm 1, which recomputes the posterior of all arms at every step, in the form that is fastest here;
- literal: the same as printed, the features of all arms at once, with as many threads as ours has.

The forms of Algorithm 1 differ in the block size of the pool and in the threads of BLAS, and do the same arithmetic.
Each is timed at ten steps of our own run, with the data of the step and a dictionary of that step's size; each timed
step also stands for the steps between. The fastest is the baseline, and is run in full.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

import bkbopt as bo
from benchmarks.algorithm1 import (
    Array,
    PoolProblem,
    RBFPool,
    draw_dictionary,
    make_pool_problem,
    nystrom_posterior,
    run_algorithm1,
)
from benchmarks.arguments import Arguments
from benchmarks.report import MB, Clock, MemoryWatch, limited_threads, measuring, print_table
from bkbopt.kernels import rbf
from bkbopt.posterior.model import Model
from bkbopt.search.maximizers.pool import Argmax, PoolMaximizer

__all__ = ["Form", "Outcome", "choices_that_agree", "main", "run_core", "run_literal", "run_optimizer", "time_forms"]

LAM, QBAR = 0.09, 2.0
BLOCKS = (None, 256, 512, 1_024, 2_048, 4_096)
N_SAMPLED = 10


class Form(NamedTuple):
    """A form of the literal step: the rows of a block (None: the whole pool at once) and the threads of BLAS."""

    block_rows: int | None
    threads: int

    def __str__(self) -> str:
        rows = "whole pool" if self.block_rows is None else f"blocks of {self.block_rows:,}"
        return f"{rows}, {self.threads} thread(s)"


@dataclass(frozen=True)
class Outcome:
    """Record of a run: arms, rewards and m (each (n_steps,)), cumulative regret and seconds, by part where known."""

    name: str
    arms: Array
    rewards: Array
    m: Array
    regret: float
    wall: float
    cpu: float
    n_draws: int | None = None
    n_scans: int | None = None
    n_refreshed: int | None = None
    parts: dict[str, float] = field(default_factory=dict)


def _outcome(
    problem: PoolProblem, name: str, arms: Iterable[int], rewards: Iterable[float], **kwargs: object
) -> Outcome:
    chosen = np.array(list(arms), dtype=np.int64)
    regret = float((problem.f.max() - problem.f[chosen]).sum())
    return Outcome(name=name, arms=chosen, rewards=np.array(list(rewards)), regret=regret, **kwargs)  # type: ignore[arg-type]


def _start(problem: PoolProblem, seed: int) -> tuple[int, np.random.Generator]:
    """The first arm and the generator of the noise, both as in `run_algorithm1`."""
    return int(np.random.default_rng([seed, 0]).integers(len(problem.f))), np.random.default_rng([seed, 1])


class _TimedBKB(bo.BKB):
    """BKB that times its draws."""

    def __init__(self, problem: PoolProblem, seed: int) -> None:
        kernel = rbf(problem.X.shape[1], problem.lengthscale)
        super().__init__(kernel, LAM, qbar=QBAR, max_inducing=None, seed=seed)
        self.drawing = 0.0

    def _draw(self, latest: int, most: int | None = None) -> None:
        start = time.perf_counter()
        super()._draw(latest, most)
        self.drawing += time.perf_counter() - start


class _TimedSearch(PoolMaximizer):
    """A pool search that times its stages."""

    def __init__(self, X: Tensor) -> None:
        super().__init__(X)
        self.seconds = {"scan": 0.0, "refine": 0.0}

    def _scanned(self, model: Model) -> tuple[Tensor, Tensor]:
        start = time.perf_counter()
        try:
            return super()._scanned(model)
        finally:
            self.seconds["scan"] += time.perf_counter() - start

    def _refine(self, *args: object) -> Argmax | None:
        start = time.perf_counter()
        try:
            return super()._refine(*args)  # type: ignore[arg-type]
        finally:
            self.seconds["refine"] += time.perf_counter() - start


def run_core(problem: PoolProblem, n_steps: int, beta: float, seed: int) -> Outcome:
    """Run surrogate and pool search alone, each stage timed."""
    arm, noise = _start(problem, seed)
    X = torch.as_tensor(problem.X)
    arms, rewards, m, observing, clock = [], [], [], 0.0, Clock()
    with clock:
        surrogate, search = _TimedBKB(problem, seed), _TimedSearch(X)
    for t in range(n_steps):
        arms.append(arm)
        rewards.append(problem.pull(arm, noise))
        m.append(0 if t == 0 else len(surrogate.inducing))
        with clock:
            start = time.perf_counter()
            surrogate.observe(X[arm : arm + 1], [rewards[-1]])
            observing += time.perf_counter() - start
            arm = search.argmax(surrogate.model, beta).index
    parts = {**search.seconds, "draw": surrogate.drawing, "observe": observing - surrogate.drawing}
    return _outcome(
        problem,
        "core",
        arms,
        rewards,
        m=np.array(m),
        wall=clock.wall,
        cpu=clock.cpu,
        n_draws=surrogate.n_draws,
        n_scans=search.n_scans,
        n_refreshed=search.n_refreshed,
        parts={**parts, "rest": clock.wall - sum(parts.values())},
    )


def run_optimizer(problem: PoolProblem, n_steps: int, beta: float, seed: int) -> Outcome:
    """Run the whole optimizer by ask and tell; the first arm is told as past data, so that all start alike."""
    arm, noise = _start(problem, seed)
    arms, rewards, clock = [arm], [problem.pull(arm, noise)], Clock()
    kernel = rbf(problem.X.shape[1], problem.lengthscale)
    with clock:
        surrogate = bo.BKB(kernel, LAM, qbar=QBAR, max_inducing=None)
        opt = bo.Optimizer(
            bo.Pool(problem.X),
            direction="maximize",
            seed=seed,
            n_startup_trials=1,
            surrogate=surrogate,
            beta=beta,
            fit=False,
        )
        opt.tell({"index": arm}, rewards[0])
    for _ in range(n_steps - 1):
        with clock:
            trial = opt.ask()
        assert trial.index is not None
        arms.append(trial.index)
        rewards.append(problem.pull(trial.index, noise))
        with clock:
            opt.tell(trial, rewards[-1])
    m = np.array([0, *(d.n_inducing for d in opt.diagnostics)])
    return _outcome(problem, "optimizer", arms, rewards, m=m, wall=clock.wall, cpu=clock.cpu)


def run_literal(problem: PoolProblem, n_steps: int, beta: float, seed: int, form: Form) -> Outcome:
    """Run Algorithm 1 in the given form."""
    with limited_threads(form.threads), Clock() as clock:
        run = run_algorithm1(problem, n_steps, lam=LAM, qbar=QBAR, beta=beta, seed=seed, block_rows=form.block_rows)
    return _outcome(problem, "baseline", run.arms, run.rewards, m=run.m, wall=clock.wall, cpu=clock.cpu)


def time_forms(problem: PoolProblem, ours: Outcome, beta: float, threads: int) -> dict[Form, Outcome]:
    """Time the literal step in every form at some steps of our run, at its data and its m."""
    pool, n_arms, every = RBFPool(problem.X, problem.lengthscale), len(problem.f), -(-len(ours.arms) // N_SAMPLED)
    steps = []
    for t in range(every // 2 + 1, len(ours.arms), every):
        counts = np.bincount(ours.arms[:t], minlength=n_arms).astype(np.float64)
        sums = np.bincount(ours.arms[:t], ours.rewards[:t], minlength=n_arms)
        pulled = np.flatnonzero(counts)
        chosen = np.random.default_rng(t).choice(pulled, min(int(ours.m[t]), len(pulled)), replace=False)
        steps.append((np.sort(chosen), counts, sums, int(ours.arms[t - 1])))

    def time_form(form: Form) -> Outcome:
        coins, clock = np.random.default_rng(0), Clock()
        with limited_threads(form.threads):
            for dictionary, counts, sums, latest in steps:
                with clock:
                    mean, leverage = nystrom_posterior(pool, dictionary, counts, sums, LAM, block_rows=form.block_rows)
                    np.argmax(mean + beta * np.sqrt(LAM * leverage))
                    draw_dictionary(counts, leverage, QBAR, latest, coins)
        nothing = np.zeros(0)
        return Outcome("literal, sampled", nothing, nothing, ours.m, np.nan, every * clock.wall, every * clock.cpu)

    return {form: time_form(form) for form in (Form(block, n) for n in sorted({1, threads}) for block in BLOCKS)}


def choices_that_agree(problem: PoolProblem, n_steps: int, beta: float, seed: int) -> tuple[int, int]:
    """Number of choices of the lazy search that equal the argmax over all arms computed in full, and their total."""
    arm, noise = _start(problem, seed)
    X = torch.as_tensor(problem.X)
    surrogate, search, agree = _TimedBKB(problem, seed), PoolMaximizer(X), 0
    for _ in range(n_steps):
        surrogate.observe(X[arm : arm + 1], [problem.pull(arm, noise)])
        arm = search.argmax(surrogate.model, beta).index
        with torch.no_grad():
            mean, variance = surrogate.model(X)
        agree += arm == int((mean + beta * variance.sqrt()).argmax())
    return agree, n_steps


def _speed_row(o: Outcome, beta: float, baseline: Outcome) -> tuple[object, ...]:
    """A row of the speed table; the speeds are in multiples of the baseline's."""
    refreshed = None if o.n_refreshed is None else o.n_refreshed / len(o.arms)
    times = (o.wall, o.cpu, baseline.wall / o.wall, baseline.cpu / o.cpu)
    regret = None if np.isnan(o.regret) else o.regret
    return (o.name, beta, *times, float(o.m.mean()), int(o.m[-1]), o.n_draws, o.n_scans, refreshed, regret)


SPEED_HEADER = (
    "run", "beta", "wall s", "cpu s", "speed (wall)", "speed (cpu)", "mean m", "last m", "draws", "scans",
    "refreshed/step", "regret",
)  # fmt: skip


def _print_parts(title: str, core: Outcome) -> None:
    parts = [(name, s, 100 * s / core.wall, 1e3 * s / len(core.arms)) for name, s in core.parts.items()]
    print_table(f"{title}: where the core's time goes", ("stage", "wall s", "%", "ms/step"), parts)


def compare_speed(n_arms: int, n_steps: int, betas: Sequence[float], threads: int, d: int = 6) -> None:
    """Print the time of ours and of the baseline, and of the forms that the baseline was chosen from."""
    problem, rows, form_rows, cores = make_pool_problem(n_arms, d), [], [], []
    run_core(problem, min(n_steps, 30), betas[0], seed=1)  # warms up both libraries
    for beta in betas:
        core, optimizer = (run(problem, n_steps, beta, 0) for run in (run_core, run_optimizer))
        forms = time_forms(problem, core, beta, threads)
        best = min(forms, key=lambda form: forms[form].wall)
        baseline = run_literal(problem, n_steps, beta, 0, best)
        outcomes = (core, optimizer, baseline, forms[Form(None, threads)])
        rows += [_speed_row(o, beta, baseline) for o in outcomes]
        form_rows += [
            (n, beta, *(forms[Form(block, n)].wall for block in BLOCKS), best if n == best.threads else None)
            for n in sorted({1, threads})
        ]
        cores.append(core)
    title, note = f"{n_arms:,} arms, d = {d}, {n_steps:,} steps", "speed: the baseline's time divided by the row's"
    print_table(title, SPEED_HEADER, rows, note)
    blocks = ("whole pool" if block is None else f"{block:,} rows" for block in BLOCKS)
    form_header = ("threads", "beta", *blocks, "baseline")
    print_table(f"{n_arms:,} arms: wall s of the forms of Algorithm 1, sampled", form_header, form_rows)
    _print_parts(f"{n_arms:,} arms, beta {betas[0]:g}", cores[0])


def compare_regret(n_arms: int, n_steps: int, beta: float, seeds: int, d: int = 6) -> None:
    """Print the cumulative regret of ours and of Algorithm 1 over problems and seeds."""
    runs: dict[str, Callable[[PoolProblem, int, float, int], Outcome]] = {
        "core": run_core,
        "optimizer": run_optimizer,
        "baseline": lambda p, n, b, s: run_literal(p, n, b, s, Form(1_024, 1)),
    }
    problems = [make_pool_problem(n_arms, d, seed=seed) for seed in range(seeds)]
    regrets = {k: np.array([r(p, n_steps, beta, s).regret for s, p in enumerate(problems)]) for k, r in runs.items()}
    base, rows = regrets["baseline"], []
    for name, own in regrets.items():
        difference = own - base
        error = difference.std(ddof=1) / np.sqrt(seeds) if seeds > 1 else np.nan
        relative = 100 / base.mean()
        rows.append((name, float(own.mean()), float(relative * difference.mean()), float(relative * error)))
    print_table(
        f"{n_arms:,} arms, beta {beta:g}: cumulative regret after {n_steps:,} steps, {seeds} problems and seeds",
        ("run", "mean", "% from baseline", "standard error of it, %"),
        rows,
        "The runs share noise and first arm but not the dictionary's coins, so single runs differ either way.",
    )


def large_pool(n_arms: int, n_steps: int, beta: float, d: int = 6) -> None:
    """Print time a step, memory and stages on a pool where the literal run is out of reach."""
    problem = make_pool_problem(n_arms, d)
    with MemoryWatch() as memory:
        core = run_core(problem, n_steps, beta, seed=0)
    ms = 1e3 / n_steps
    facts = {
        "ms/step": core.wall * ms,
        "cpu ms/step": core.cpu * ms,
        "mean m": float(core.m.mean()),
        "scans": core.n_scans,
        "refreshed/step": (core.n_refreshed or 0) / n_steps,
        "pool MB": problem.X.nbytes / MB,
        "MB before": memory.before,
        "peak MB": memory.peak,
    }
    print_table(
        f"{n_arms:,} arms, d = {d}, beta {beta:g}, {n_steps} steps",
        tuple(facts),
        [tuple(facts.values())],
        "Memory is the whole process's, libraries and problem included.",
    )
    _print_parts(f"{n_arms:,} arms", core)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all tables."""
    parser = Arguments(__doc__)
    parser.option("--threads", 2, help="of ours, and the most of the baseline")
    parser.option("--seeds", 3, help="problems of the regret table")
    parser.option("--steps", 1_000, quick=200, help="pulls of a run")
    parser.option("--betas", (5.0, 3.0, 2.0), help="widths of the confidence bound, in standard deviations")
    parser.option("--arms", (10_000, 100_000), help="pools of the speed table")
    parser.option("--large", 1_000_000, quick=0, help="arms of the large pool; 0 leaves it out")
    options = parser.parse_args(arguments)
    n_steps, smallest = options.steps, min(options.arms)
    with measuring(options.threads):
        for n_arms in options.arms:
            compare_speed(n_arms, n_steps, options.betas, options.threads)
        if options.large:
            large_pool(options.large, min(n_steps, 200), options.betas[0])
        compare_regret(smallest, n_steps, options.betas[0], options.seeds)
        agree, of = choices_that_agree(make_pool_problem(smallest), min(200, n_steps), options.betas[0], seed=0)
        print(f"\n{smallest:,} arms: {agree} of {of} lazy choices equal the argmax computed in full")


if __name__ == "__main__":
    main()
