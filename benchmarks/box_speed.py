"""Time and memory of an ask and a tell in a box as the number of evaluations grows.

Run it as `python -m benchmarks.box_speed`. Three cases in d = 6:

- smooth: a fixed RBF kernel with lengthscale 1.5 and moderate noise, so that m stays constant;
- rough: a fixed Matern-5/2 kernel with lengthscale 0.3 and little noise, where the effective dimension is large and
  the budget `max_inducing` binds;
- default: the default optimizer, with kernel and noise refitted as the data grow.

Each is measured in windows of real asks and tells at the sizes given. Between the windows the history is filled with
past data: points of the previous window moved by normal steps of 0.02 a column, as a converged run would choose them.
Then follows a true run, in which every point is asked for.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import bkbopt as bo
from benchmarks.arguments import Arguments
from benchmarks.report import Clock, measuring, print_table, rss_mb
from bkbopt.kernels import matern52, rbf
from bkbopt.surrogates import Surrogate

__all__ = ["CASES", "Case", "main", "measure"]

D = 6
NAMES = tuple(f"x{j}" for j in range(D))
FILL_STEP = 0.02
HEADER = ("t", "ask+tell ms", "mean ms", "cpu ms", "longest ms", "m", "d_eff", "unique", "memory MB", "and growth")


@dataclass(frozen=True)
class Case:
    """An optimizer to be measured and the noise of its objective (a standard deviation)."""

    title: str
    noise_sd: float
    surrogate: Callable[[], Surrogate | None]

    def optimizer(self, seed: int) -> bo.Optimizer:
        """The optimizer on the unit cube, without fits where the kernel is given."""
        surrogate = self.surrogate()
        space = {name: bo.Float(0.0, 1.0) for name in NAMES}
        return bo.Optimizer(space, seed=seed, surrogate=surrogate, fit=surrogate is None)


CASES = {
    "smooth": Case(
        "smooth: RBF, lengthscale 1.5, noise sd 0.1", 0.1, lambda: bo.BKB(rbf(D, 1.5), 0.01, max_inducing=None)
    ),
    "rough": Case(
        "rough: Matern-5/2, lengthscale 0.3, noise sd 0.01, max_inducing 150",
        0.01,
        lambda: bo.BKB(matern52(D, 0.3), 1e-4, max_inducing=150),
    ),
    "default": Case("default: kernel and noise fitted, noise sd 0.1", 0.1, lambda: None),
}


def objective(X: np.ndarray) -> np.ndarray:
    """A smooth bowl with a ripple over the unit cube: points (..., d) to values (...), about unit range."""
    centred = X - np.linspace(0.3, 0.7, D)
    return np.asarray((centred**2).sum(-1) + 0.1 * np.sin(6.0 * X.sum(-1)))


@dataclass(frozen=True)
class Window:
    """Real asks and tells in a row: seconds of each by both clocks, and the points asked for (n, d)."""

    wall: list[float]
    cpu: list[float]
    points: np.ndarray


def run_window(opt: bo.Optimizer, n: int, noise_sd: float, rng: np.random.Generator) -> Window:
    """Ask and tell n times."""
    clocks, points = [], []
    for _ in range(n):
        with Clock() as clock:
            trial = opt.ask()
        x = np.array([trial.params[name] for name in NAMES])
        y = float(objective(x) + noise_sd * rng.standard_normal())
        with clock:
            opt.tell(trial, y)
        clocks.append(clock)
        points.append(x)
    return Window([clock.wall for clock in clocks], [clock.cpu for clock in clocks], np.array(points))


def fill(opt: bo.Optimizer, n: int, around: np.ndarray, noise_sd: float, rng: np.random.Generator) -> None:
    """Tell n values of points near `around` (k, d) as past data."""
    X = np.clip(around[rng.integers(len(around), size=n)] + FILL_STEP * rng.standard_normal((n, D)), 0.0, 1.0)
    values = objective(X) + noise_sd * rng.standard_normal(n)
    opt.tell([dict(zip(NAMES, row, strict=True)) for row in X.tolist()], values)


def _row(opt: bo.Optimizer, t: int, window: Window, memory: float) -> tuple[object, ...]:
    last, now = opt.diagnostics[-1], rss_mb()
    wall = [1e3 * s for s in window.wall]
    cpu_ms = 1e3 * statistics.median(window.cpu)
    times = (statistics.median(wall), statistics.mean(wall), cpu_ms, max(wall))
    return (t, *times, last.n_inducing, last.effective_dimension, len(opt.surrogate.observations), now, now - memory)


def measure(case: Case, sizes: Sequence[int], window: int, seed: int = 0) -> list[tuple[object, ...]]:
    """Rows of a table for the numbers of evaluations `sizes`, increasing, in windows of `window` asks and tells."""
    rng, opt = np.random.default_rng([seed, 1]), case.optimizer(seed)
    memory, rows = rss_mb(), []
    recent = run_window(opt, max(sizes[0] - window, 0), case.noise_sd, rng).points[-2 * window :]
    for size in sizes:
        missing = size - window - len(opt.trials)
        if missing > 0:
            fill(opt, missing, recent, case.noise_sd, rng)
        measured = run_window(opt, window, case.noise_sd, rng)
        recent = measured.points
        rows.append(_row(opt, size, measured, memory))
    return rows


def true_run(case: Case, n: int, window: int, seed: int = 0) -> list[tuple[object, ...]]:
    """Rows of a table along a run in which every point is asked for; each row is over the `window` steps before it."""
    rng, opt = np.random.default_rng([seed, 1]), case.optimizer(seed)
    memory, rows = rss_mb(), []
    for t in range(window, n + 1, window):
        measured = run_window(opt, window, case.noise_sd, rng)
        rows.append(_row(opt, t, measured, memory))
    return rows


def _print(title: str, rows: Sequence[tuple[object, ...]]) -> None:
    first, last = rows[0], rows[-1]
    wall, cpu = (float(last[j]) / float(first[j]) for j in (1, 3))  # type: ignore[arg-type]
    note = f"median at t = {last[0]} over median at t = {first[0]}: {wall:.2f} (wall), {cpu:.2f} (cpu); aim at most 2"
    print_table(title, HEADER, rows, note)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table a case, and one of a true run."""
    parser = Arguments(__doc__)
    parser.option("--threads", 1, help="of torch and BLAS")
    parser.option("--sizes", (500, 2_000, 5_000, 10_000), quick=(500, 1_000, 2_000), help="evaluations, increasing")
    parser.option("--window", 60, quick=20, help="asks and tells that are measured at each size")
    parser.option("--cases", tuple(CASES), choices=CASES, help="what to measure")
    parser.option(
        "--true-run", 3_000, quick=500, help="evaluations of the true run, of the first case; 0 leaves it out"
    )
    options = parser.parse_args(arguments)
    window, n_true = options.window, options.true_run
    with measuring(options.threads):
        for name in options.cases:
            _print(f"{CASES[name].title}; windows of {window}", measure(CASES[name], options.sizes, window))
        if n_true:
            case = CASES[options.cases[0]]
            step = max(n_true // 6, 1)
            _print(f"{case.title}; a true run, rows over {step} steps", true_run(case, n_true, step))


if __name__ == "__main__":
    main()
