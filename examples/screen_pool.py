"""Screen a fixed pool of real rows: find the best ones with few noisy measurements, by ask and tell in batches.

With `--data FOLDER` the pool is cadata.npz there: 20,640 blocks of California of the census of 1990, each described by
its income, age, rooms, population and place. A measurement is the block's median house value with an error; the hits
are the blocks in the top 1 %. Without it the pool is scikit-learn's handwritten digits: a measurement is an annotation
whether an image shows a three, with 10 % errors; the hits are the threes.

    python examples/screen_pool.py [--data FOLDER] [--trials N] [--seed 0] [--out out] [--smoke]
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import hypergeom, rankdata
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import bkbopt as bo
from bkbopt import plots
from bkbopt.plots.style import legend_below

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"
#: Largest batch that we could measure at once.
MAX_BATCH = 32


@dataclass(frozen=True)
class Library:
    """A pool with known truth: its rows `X (n, d)`, the true values `(n,)`, and which rows are the hits `(n,)`."""

    title: str
    X: np.ndarray
    truth: np.ndarray
    hit: np.ndarray
    hit_name: str
    measure: Callable[[int, np.random.Generator], float]
    trials: int
    map_xy: np.ndarray
    map_labels: tuple[str, str]


def california(folder: Path) -> Library:
    """Blocks of California; columns by rank, since rooms and people have long tails."""
    with np.load(folder / "cadata.npz") as file:
        X, y = file["X"].astype(float), file["y"].astype(float)
    hit = y >= np.quantile(y, 0.99)
    noise_sd = 30_000.0
    return Library(
        title="California housing",
        X=rankdata(X, axis=0) / len(X),
        truth=y,
        hit=hit,
        # The census cut values off, so that many blocks share the largest.
        hit_name=f"blocks worth ${y[hit].min():,.0f} (the top 1 % and its ties)",
        measure=lambda i, rng: float(y[i] + noise_sd * rng.standard_normal()),
        trials=3000,
        map_xy=X[:, [7, 6]],
        map_labels=("longitude (degrees)", "latitude (degrees)"),
    )


def threes() -> Library:
    """Images of digits by their first eight principal components."""
    X, digit = load_digits(return_X_y=True)
    Z = PCA(8, random_state=0).fit_transform(X / 16.0)
    three = digit == 3

    def measure(i: int, rng: np.random.Generator) -> float:
        return float(three[i] != (rng.random() < 0.1))

    return Library(
        title="handwritten digits",
        X=Z,
        truth=three.astype(float),
        hit=three,
        hit_name="images of a three",
        measure=measure,
        trials=500,
        map_xy=Z[:, :2],
        map_labels=("first principal component", "second principal component"),
    )


@dataclass
class Record:
    """Record of a run: the rows in the order of measurement, and the seconds of each (ask and tell)."""

    rows: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)


def screen(library: Library, n_trials: int, seed: int) -> tuple[bo.Optimizer, Record]:
    """Measure `n_trials` rows without repeats, in batches of the useful size."""
    rng = np.random.default_rng(seed)
    opt = bo.Optimizer(library.X, direction="maximize", duplicates="avoid", seed=seed, n_startup_trials=20)
    record, size, size_from, shown = Record(), 1, 0, 0
    print("ms: an ask and a tell; inducing: inducing points of the model; batch: rows measured at once")
    print(f"{'measured':>9} {'hits':>6} {'by chance':>10} {'ms each':>8} {'inducing':>9} {'batch':>6}")
    while len(record.rows) < n_trials:
        done = len(record.rows)
        if done >= 1.2 * size_from:  # it changes slowly, and asking for it costs about as much as a batch
            size, size_from = opt.useful_workers(limit=MAX_BATCH), done
        start = time.perf_counter()
        batch = opt.ask(min(size, n_trials - done))
        asked = time.perf_counter() - start
        values = [library.measure(trial.index, rng) for trial in batch]  # here a laboratory would work in parallel
        start = time.perf_counter()
        for trial, value in zip(batch, values, strict=True):
            opt.tell(trial, value)
        record.seconds += [(asked + time.perf_counter() - start) / len(batch)] * len(batch)
        record.rows += [trial.index for trial in batch]
        record.batches.append(len(batch))
        if len(record.rows) >= shown + n_trials / 10:
            shown = len(record.rows)
            print_progress(library, opt, record)
    return opt, record


def print_progress(library: Library, opt: bo.Optimizer, record: Record) -> None:
    n = len(record.rows)
    hits = int(library.hit[record.rows].sum())
    ms = 1e3 * np.median(record.seconds[-max(n // 10, 1) :])
    m = opt.diagnostics[-1].n_inducing or 0
    print(f"{n:9d} {hits:6d} {n * library.hit.mean():10.1f} {ms:8.1f} {m:9d} {record.batches[-1]:6d}", flush=True)


def report(library: Library, opt: bo.Optimizer, record: Record) -> None:
    """Print the hits beside those of random screening, the recommendation, and the time at both ends."""
    n, tenth = len(record.rows), max(len(record.rows) // 10, 1)
    hits, total = int(library.hit[record.rows].sum()), int(library.hit.sum())
    chance = hypergeom(len(library.X), total, n)
    choice = opt.recommend()
    print(f"\n{library.title}: {n} of {len(library.X)} rows measured in {len(record.batches)} batches")
    print(f"  hits                  {library.hit_name}: {total} rows")
    print(f"  found                 {hits} ({100 * hits / total:.1f} % of them), hit rate {100 * hits / n:.1f} %")
    print(
        f"  random screening      {chance.mean():.1f} +- {2 * chance.std():.1f} (expected, 2 sd), "
        f"hit rate {100 * total / len(library.X):.1f} %"
    )
    print(f"  enrichment            {hits / chance.mean():.1f} times")
    places = 0 if abs(choice.mean) > 1000.0 else 2
    print(
        f"  recommended row       {choice.index}: posterior {choice.mean:,.{places}f} +- {2 * choice.std:,.{places}f} "
        f"(2 sd), truth {library.truth[choice.index]:,.{places}f}"
    )
    # Rows with nearly equal descriptors differ in truth, and without repeats the model takes that for noise.
    mean, sd = opt.predict_encoded(opt.pool.X[record.rows])
    beyond = np.mean(np.abs(mean - library.truth[record.rows]) > 2 * sd)
    print(f"  rows beyond 2 sd      {100 * beyond:.0f} % of those measured; fitted noise {opt.noise_std:,.{places}f}")
    for name, part in (("first", record.seconds[:tenth]), ("last", record.seconds[-tenth:])):
        median, mean = 1e3 * np.median(part), 1e3 * np.mean(part)
        label = f"{name} {tenth} asks + tells"
        print(f"  {label:<21} {median:.1f} ms each (median), {mean:.1f} ms (mean, with the fits)")


def draw_hits(ax: Axes, library: Library, record: Record) -> None:
    n = np.arange(1, len(record.rows) + 1)
    chance = hypergeom(len(library.X), int(library.hit.sum()), n)
    mean, spread = chance.mean(), 2.0 * chance.std()
    ax.plot(n, np.cumsum(library.hit[record.rows]), color=BLUE, linewidth=2, label="BKB")
    ax.plot(n, mean, color=GREY, linewidth=2, label="random screening (expected, 2 sd)")
    ax.fill_between(n, mean - spread, mean + spread, color=GREY, alpha=0.25, linewidth=0)
    ax.axhline(library.hit.sum(), color="black", linestyle=":", label=f"all {library.hit.sum()} hits")
    ax.set(xlabel="rows measured", ylabel="hits found", title=f"Hits: {library.hit_name}", ylim=(0, None))
    ax.title.set_fontsize("medium")
    legend_below(ax)
    ax.grid(alpha=0.3)


def draw_time(ax: Axes, record: Record) -> None:
    plots.ask_time(record.seconds, ax=ax)
    ax.set(xlabel="rows measured", ylabel="ask and tell (ms a row)", title="Cost of a suggestion (mean of its batch)")


def draw_map(ax: Axes, library: Library, record: Record) -> None:
    xy, rows = library.map_xy, np.array(record.rows)
    hit = library.hit[rows]
    ax.plot(*xy.T, ".", color="#bbbbbb", markersize=2, label="pool", rasterized=True)
    ax.plot(*xy[rows[~hit]].T, "x", color=BLUE, markersize=4, alpha=0.6, label="measured, no hit")
    ax.plot(*xy[rows[hit]].T, "o", color=ORANGE, markersize=4, alpha=0.6, label="measured, hit")
    ax.set(xlabel=library.map_labels[0], ylabel=library.map_labels[1], title="Where it looked")
    legend_below(ax, ncols=3)


def draw(library: Library, record: Record, path: Path) -> None:
    figure = Figure(figsize=(15, 4.6), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    draw_hits(first, library, record)
    draw_time(second, record)
    draw_map(third, library, record)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Screen a fixed pool of real rows for the best ones.")
    parser.add_argument("--data", type=Path, help="folder with cadata.npz; without it, scikit-learn's digits")
    parser.add_argument("--trials", type=int, help="rows to measure (default 3000 of California's, 500 of the digits)")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default 0)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture (default out)")
    parser.add_argument("--smoke", action="store_true", help="a run of seconds that shows only that it runs")
    args = parser.parse_args()
    if args.data is not None and not (args.data / "cadata.npz").is_file():
        parser.error(f"--data: expected a folder with cadata.npz, found none in {args.data}")
    return args


def main() -> None:
    args = arguments()
    library = california(args.data) if args.data is not None else threes()
    n_trials = args.trials or (60 if args.smoke else library.trials)
    opt, record = screen(library, min(n_trials, len(library.X)), args.seed)
    report(library, opt, record)
    path = args.out / "screen_pool.png"
    draw(library, record, path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
