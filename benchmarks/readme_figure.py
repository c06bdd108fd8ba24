"""The README's figure: time of a suggestion, and regret, as an Optuna study grows.

Run it as `python -m benchmarks.readme_figure`, after

    python -m benchmarks.optuna_speed --json out/optuna_speed.json
    python -m benchmarks.optuna_quality --trials 1000 --out out/optuna_quality

It computes nothing itself: it draws the saved results of these two, those of our own sampler only if they are of the
present code. Left: a warm ask and tell on six floats, median. Right: the noise-free regret of the recommended point,
geometric mean over the test functions that all samplers at that number of trials have, with standard errors of the
seeds.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.arguments import Arguments
from benchmarks.comparison import Job, records_of
from benchmarks.optuna_quality import Result, geometric_mean, results_of
from benchmarks.tasks import DEVELOPMENT, TASKS
from bkbopt.plots.style import SERIES, legend_below, log_ticks, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["kept_results", "main"]

#: Samplers by their line, so that one has the same line on both sides.
STYLES = dict(zip(("bkb", "tpe", "gp_sampler", "cmaes", "random"), SERIES, strict=False))
NAMES = {"bkb": "BKBSampler", "tpe": "TPE", "gp_sampler": "GPSampler", "cmaes": "CMA-ES", "random": "random search"}
#: Trials of the runs that are looked for; GPSampler's are shorter.
LENGTHS = (300, 1_000, 5_000)


def kept_results(folder: Path, seeds: int = 10) -> list[Result]:
    """Saved results of `optuna_quality` for all samplers, on the problems whose minimum is known."""
    results = []
    for name in DEVELOPMENT:
        if (task := TASKS[name]()).minimum is None:
            continue
        records: dict[str, list[Mapping[str, Any]]] = {}
        for peer in NAMES:
            jobs = [Job(peer, name, n, seed) for seed in range(seeds) for n in LENGTHS]
            if found := records_of(jobs, folder):
                records[peer] = list(found)
        if records:
            results += results_of(task, records)
    return results


def draw_speed(ax: "Axes", rows: Sequence[Mapping[str, Any]]) -> None:
    """Milliseconds a suggestion against finished trials."""
    for sampler in STYLES:
        mine = sorted((r["finished"], r["warm"]) for r in rows if r["sampler"] == sampler and r["space"] == "6 floats")
        if mine:
            _line(ax, sampler, [n for n, _ in mine], [ms for _, ms in mine])
    ax.set(xscale="log", yscale="log", xlabel="finished trials", ylabel="time of a suggestion (ms)")


def draw_quality(ax: "Axes", results: Sequence[Result]) -> None:
    """Regret of the recommendation against trials."""
    by_peer: dict[str, list[tuple[int, float, float]]] = {}
    for checkpoint in sorted({r.checkpoint for r in results}):
        here = {(r.peer, r.problem): r for r in results if r.checkpoint == checkpoint}
        peers = {peer for peer, _ in here}
        common = [p for p in DEVELOPMENT if all((peer, p) in here for peer in peers)]
        for peer in peers if common else ():
            mean, error = geometric_mean([here[peer, p].mean("recommended") for p in common])
            by_peer.setdefault(peer, []).append((checkpoint, mean, error))
    for peer, style in STYLES.items():
        if peer in by_peer:
            n, mean, error = zip(*by_peer[peer], strict=True)
            _line(ax, peer, n, mean)
            ax.errorbar(n, mean, yerr=error, fmt="none", ecolor=style.colour, capsize=2.0, linewidth=1.0)
    ax.set(xscale="log", yscale="log", xlabel="trials", ylabel="regret of the recommendation / IQR")


def _line(ax: "Axes", sampler: str, x: Sequence[float], y: Sequence[float]) -> None:
    style = STYLES[sampler]
    ax.plot(x, y, style.line, marker=style.marker, color=style.colour, label=NAMES[sampler], markersize=5.0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw it."""
    parser = Arguments(__doc__, quick=False)
    parser.option("--speed", Path("out/optuna_speed.json"), help="what optuna_speed kept")
    parser.option("--quality", Path("out/optuna_quality"), help="what optuna_quality kept")
    parser.option("--to", Path("docs/images/optuna.png"), help="the picture")
    options = parser.parse_args(arguments)
    figure = new_figure(8.4, 3.9)
    left, right = figure.subplots(1, 2)
    draw_speed(left, json.loads(options.speed.read_text()))
    draw_quality(right, kept_results(options.quality))
    for ax in (left, right):
        ax.grid(alpha=0.25)
        for axis in (ax.xaxis, ax.yaxis):
            log_ticks(axis)
        legend_below(ax)
    options.to.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.to, dpi=150)
    print(f"written: {options.to}")


if __name__ == "__main__":
    main()
