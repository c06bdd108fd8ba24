"""Time and regret in combinatorial libraries that are not listed, beside a listed pool and other searches.

Run it as `python -m benchmarks.product_pool`. The black box is a sum of smooth functions of the descriptors of each
part and of products of such functions of each two parts, with noise, in interquartile ranges of its values at random
rows. Its least value is found by computing all rows.

At 10^6 rows an optimizer over an array of the rows makes one run. At each of its steps two other optimizers over the
product of the same rows get the same log: one searches the rows as a list made on demand, the other by parts, as in
larger products:

- same: how often they choose the row of the listed pool;
- gap: the largest score minus the score of the row, in standard deviations there, on average;
- ms: processor time of an ask, median and most; scans of all rows are among them;
- MB: memory growth of the process from making the pool and asking.

At 10^9 rows, three lists of 1,000 entries: the regret of what each search recommends, and of its last 50 trials, beside
random rows, and Optuna's genetic algorithm (NSGA-II) and TPE with one categorical parameter a part. Then the processor
time of an ask, and how often a search from many more starts finds a row with a larger score.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import optuna
import torch
from numpy.typing import NDArray

import bkbopt as bo
from benchmarks.arguments import Arguments
from benchmarks.report import measuring, print_table, rss_mb
from benchmarks.samplers import quiet_optuna
from bkbopt.search.candidates.base import Scope
from bkbopt.search.candidates.product import ProductCandidates
from bkbopt.search.designer import Designer
from bkbopt.search.maximizers.product import N_CLIMBS, N_RANDOM, ProductMaximizer
from bkbopt.spaces.product_pool import ProductPool

__all__ = ["Library", "compare_with_listed", "main", "regrets"]

Floats = NDArray[np.float64]

NAMES, COLUMNS = ("acid", "amine", "solvent"), (3, 4, 3)
NOISE = 0.1
RANK = 2
LAST = 50
THOROUGH = 20


@dataclass(frozen=True)
class Library:
    """Three lists with descriptors, and the black box.

    Attributes:
        tables: descriptors of each part, (n, 3 or 4).
        own: each part's own contribution, (n,).
        shared: functions of each part whose products with those of another part enter the value, (3, n, RANK) twice.
        scale: the interquartile range of the values at random rows.
        best: the least value.
    """

    tables: tuple[Floats, ...]
    own: tuple[Floats, ...]
    shared: Floats
    scale: float
    best: float

    @classmethod
    def make(cls, n: int, seed: int) -> "Library":
        """Lists of `n` entries."""
        rng = np.random.default_rng([seed, 11])
        tables = tuple(rng.random((n, d)) for d in COLUMNS)
        own = tuple(_smooth(table, 1, rng)[:, 0] for table in tables)
        shared = np.stack([np.stack([_smooth(tables[p], RANK, rng), _smooth(tables[q], RANK, rng)]) for p, q in PAIRS])
        raw = cls(tables, own, shared, 1.0, 0.0)
        values = raw.values(rng.integers(n, size=(20_000, 3)))
        scale = float(np.subtract(*np.quantile(values, [0.75, 0.25])))
        return replace(raw, scale=scale, best=raw.least() / scale)

    @property
    def parts(self) -> dict[str, Any]:
        """The arguments of `Pool.product`."""
        return dict(zip(NAMES, self.tables, strict=True))

    @property
    def n(self) -> int:
        """Entries of each part."""
        return len(self.own[0])

    def entries(self, rows: Sequence[int]) -> NDArray[np.int64]:
        """The entries (k, 3) of rows."""
        return np.array(np.unravel_index(rows, (self.n,) * 3)).T

    def noisy(self, row: int, rng: np.random.Generator) -> float:
        """A value of a row with noise."""
        return float(self.values(self.entries([row]))[0] + NOISE * rng.standard_normal())

    def values(self, e: NDArray[np.int64]) -> Floats:
        """Values of the rows with entries `e (n, 3)`, less the least one."""
        total = sum(own[e[:, p]] for p, own in enumerate(self.own))
        for (p, q), (A, B) in zip(PAIRS, self.shared, strict=True):
            total = total + (A[e[:, p]] * B[e[:, q]]).sum(1)
        return np.asarray(total / self.scale - self.best, dtype=np.float64)

    def least(self) -> float:
        """The least value of all rows, before it is scaled."""
        (A01, B01), (A02, B02), (A12, B12) = self.shared
        of_last = A12 @ B12.T + self.own[1][:, None] + self.own[2]  # (n, n): parts 1 and 2
        least = np.inf
        for i in range(len(self.own[0])):
            rows = of_last + (B01 @ A01[i])[:, None] + B02 @ A02[i]
            least = min(least, float(rows.min()) + float(self.own[0][i]))
        return least


PAIRS = ((0, 1), (0, 2), (1, 2))


def _smooth(X: Floats, k: int, rng: np.random.Generator) -> Floats:
    """`k` smooth functions of the rows of X with several hills, (n, k)."""
    omega, phase = rng.normal(0.0, 3.0, (X.shape[1], 12)), rng.uniform(0.0, 2.0 * np.pi, 12)
    return np.asarray(np.cos(X @ omega + phase) @ rng.normal(0.0, 0.4, (12, k)))


# -- beside the listed rows --------------------------------------------------------------------------------------------


@dataclass
class _Way:
    """One way to search the same rows.

    Attributes:
        name: of the way.
        opt: the optimizer.
        held: memory that it took, MB.
        gaps: of each step, standard deviations.
        seconds: of each step.
        rows: the choices.
    """

    name: str
    opt: bo.Optimizer
    held: float
    gaps: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    @property
    def designer(self) -> Designer:
        """The optimizer's designer, told of all trials."""
        return self.opt._core.update()


def compare_with_listed(n: int, steps: int, seed: int) -> list[list[object]]:
    """One row of the table for each way; see the module's text."""
    library = Library.make(n, seed)
    rng = np.random.default_rng([seed, 12])
    told = rng.integers(n**3, size=20).tolist()
    values = [library.noisy(row, rng) for row in told]

    def listed() -> bo.Optimizer:
        rows = np.indices((n, n, n)).reshape(3, -1)
        return bo.Optimizer(np.hstack([table[rows[p]] for p, table in enumerate(library.tables)]), seed=seed)

    def product() -> bo.Optimizer:
        return bo.Optimizer(bo.Pool.product(library.parts), seed=seed)

    def by_parts() -> bo.Optimizer:
        opt = product()
        assert isinstance(opt.pool, ProductPool)
        opt._core.designer.candidates._pool = ProductCandidates(opt.pool, None)
        return opt

    _ours()(Library.make(4, seed), 14, seed)  # what is loaded at the first model counts for none of them
    ways = []
    for name, make in (("product, by its parts", by_parts), ("product, as a list", product), ("listed rows", listed)):
        before = rss_mb()
        opt = make()
        opt.tell_rows(told, values)
        opt._core.update().suggest()
        ways.append(_Way(name, opt, rss_mb() - before))
    for _ in range(steps):
        _step(ways)
        row = ways[-1].rows[-1]
        value = library.noisy(row, rng)
        for way in ways:
            way.opt.tell_rows([row], [value])
    return [
        [
            way.name,
            f"{sum(np.equal(way.rows, ways[-1].rows))}/{steps}",
            float(np.mean(way.gaps)),
            1e3 * float(np.median(way.seconds)),
            1e3 * max(way.seconds),
            round(way.held),
        ]
        for way in reversed(ways)
    ]


@torch.no_grad()
def _step(ways: Sequence[_Way]) -> None:
    """Ask all ways with the same log; the last one is exact."""
    for way in ways:
        designer = way.designer
        begin = time.process_time()
        suggestion = designer.suggest()[0]
        way.seconds.append(time.process_time() - begin)
        assert suggestion.index is not None
        way.rows.append(suggestion.index)
    designer, pool = ways[-1].designer, ways[-1].opt.pool
    assert pool is not None
    posteriors = designer.models.posteriors(designer.history.X[:0], designer.candidates.n_arms())
    mean, variance = posteriors.models[0](pool.X[torch.tensor([way.rows[-1] for way in ways])])
    scores = mean + posteriors.betas[0] * variance.sqrt()
    for way, gap in zip(ways, ((scores[-1] - scores) / variance[-1].sqrt()).tolist(), strict=True):
        way.gaps.append(0.0 if way.rows[-1] == ways[-1].rows[-1] else gap)


# -- beside other searches ---------------------------------------------------------------------------------------------


#: From a library, a number of trials and a seed to the rows tried, what each told, and the row recommended.
Search = Callable[[Library, int, int], tuple[list[int], int]]


def _ours(**options: Any) -> Search:
    def search(library: Library, n_trials: int, seed: int) -> tuple[list[int], int]:
        rng, rows = np.random.default_rng([seed, 13]), []
        opt = bo.Optimizer(bo.Pool.product(library.parts), seed=seed, **options)
        for _ in range(n_trials):
            trial = opt.ask()
            assert trial.index is not None
            rows.append(trial.index)
            opt.tell(trial, library.noisy(trial.index, rng))
        index = opt.recommend().index
        assert index is not None
        return rows, index

    return search


def _random(library: Library, n_trials: int, seed: int) -> tuple[list[int], int]:
    rng = np.random.default_rng([seed, 13])
    rows = np.random.default_rng([seed, 14]).integers(library.n**3, size=n_trials).tolist()
    return rows, rows[int(np.argmin([library.noisy(row, rng) for row in rows]))]


def _optuna(make: Callable[[int], optuna.samplers.BaseSampler]) -> Search:
    def search(library: Library, n_trials: int, seed: int) -> tuple[list[int], int]:
        rng, rows, told = np.random.default_rng([seed, 13]), [], []
        study = optuna.create_study(sampler=make(seed))
        for _ in range(n_trials):
            trial = study.ask()
            entries = [trial.suggest_categorical(name, range(library.n)) for name in NAMES]
            rows.append(int(np.ravel_multi_index(entries, (library.n,) * 3)))
            told.append(library.noisy(rows[-1], rng))
            study.tell(trial, told[-1])
        return rows, rows[int(np.argmin(told))]

    return search


SEARCHES: dict[str, Search] = {
    "bkbopt": _ours(),
    "bkbopt, no row twice": _ours(duplicates="avoid"),
    "random rows": _random,
    "genetic (NSGA-II)": _optuna(lambda seed: optuna.samplers.NSGAIISampler(population_size=20, seed=seed)),
    "TPE": _optuna(lambda seed: optuna.samplers.TPESampler(seed=seed)),
}


def regrets(n: int, n_trials: int, seeds: int) -> list[list[object]]:
    """One row of the table for each search: regrets and their errors, and seconds a trial."""
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in SEARCHES}
    for seed in range(seeds):
        library = Library.make(n, seed)
        for name, search in SEARCHES.items():
            begin = time.process_time()
            rows, recommended = search(library, n_trials, seed)
            seconds = (time.process_time() - begin) / n_trials
            last = library.values(library.entries(rows[-LAST:])).mean()
            found[name].append((float(library.values(library.entries([recommended]))[0]), float(last), seconds))
    table = []
    for name, results in found.items():
        means = np.mean(results, axis=0)
        errors = np.std(results, axis=0) / max(seeds - 1, 1) ** 0.5
        table.append([name, f"{means[0]:.2f} ± {errors[0]:.2f}", f"{means[1]:.2f} ± {errors[1]:.2f}", 1e3 * means[2]])
    return table


@torch.no_grad()
def is_found(opt: bo.Optimizer, seed: int) -> bool:
    """Whether a search from `THOROUGH` times as many random rows, and the best of these, finds no better row."""
    designer, pool = opt._core.update(), opt.pool
    assert isinstance(pool, ProductPool)
    nothing = designer.history.X[:0]
    posteriors = designer.models.posteriors(nothing, len(pool))
    criterion = posteriors.criterion(designer.options.rule, np.random.default_rng(seed))
    good = posteriors.incumbents()
    usual = ProductCandidates(pool, None).best(criterion, Scope(good, np.random.default_rng(seed), nothing))
    assert usual is not None
    search = ProductMaximizer(pool.X)
    rows = search.sample(np.random.default_rng([seed, 1]), THOROUGH * N_RANDOM)
    starts = rows[search.scores(criterion, rows).topk(THOROUGH * N_CLIMBS).indices]
    thorough = search.best(criterion, starts, lambda _: True)
    assert thorough is not None
    return thorough.score <= float(criterion(usual.x[None])[0]) + 1e-9


def times(n: int, n_trials: int, batch: int) -> list[list[object]]:
    """Time and quality of the asks of one optimizer."""
    library = Library.make(n, 0)
    rng = np.random.default_rng(0)
    opt = bo.Optimizer(bo.Pool.product(library.parts), seed=0, duplicates="avoid")
    seconds, found = [], []
    for t in range(n_trials):
        begin = time.process_time()
        trial = opt.ask()
        seconds.append(time.process_time() - begin)
        assert trial.index is not None
        opt.tell(trial, library.noisy(trial.index, rng))
        if t % 10 == 0 and t > n_trials // 4:
            found.append(is_found(opt, t))
    begin = time.process_time()
    picks = opt.ask(batch)
    a_pick = (time.process_time() - begin) / batch
    half = 1e3 * np.array(seconds[n_trials // 2 :])
    return [
        [f"ask, trials {n_trials // 2} to {n_trials}, ms, median", float(np.median(half))],
        ["the longest of these, ms", float(half.max())],
        [f"ask({batch}), ms a pick", 1e3 * a_pick],
        [f"different rows among these {len(picks)}", len({trial.index for trial in picks})],
        [f"asks at which {THOROUGH} times the starts find no better row", f"{sum(found)}/{len(found)}"],
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = Arguments(__doc__)
    parser.option("--steps", 60, quick=8, help="steps beside the listed rows")
    parser.option("--trials", 200, quick=25, help="trials at 10^9 rows")
    parser.option("--seeds", 3, quick=1, help="libraries at 10^9 rows")
    options = parser.parse_args(arguments)
    n_small, n_large, batch = (20, 120, 24) if options.quick else (100, 1000, 384)
    steps, trials, seeds = options.steps, options.trials, options.seeds
    with measuring(1), quiet_optuna():
        print_table(
            f"{n_small**3:,} rows, {steps} steps after 20 random rows",
            ["way", "same", "gap, sd", "ms, median", "ms, most", "MB"],
            compare_with_listed(n_small, steps, 0),
        )
        print_table(f"{n_large**3:,} rows", ["what", "value"], times(n_large, trials, batch))
        print_table(
            f"{n_large**3:,} rows, {trials} trials, {seeds} libraries: regret in interquartile ranges",
            ["search", "recommended", f"last {min(LAST, trials)}", "ms a trial"],
            regrets(n_large, trials, seeds),
            note="mean ± standard error",
        )


if __name__ == "__main__":
    main()
