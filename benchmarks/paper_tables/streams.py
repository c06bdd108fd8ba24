"""Tables 1, 2 and 3 of FORKS, and its comparison on KuaiRec: mistakes of budgeted learners on streams of two classes.

Settings are those of the paper's text. Kernel widths are not printed there, but for their grid 2^-5 ... 2^7; here a
width is that of `WIDTHS` with the fewest mistakes in the first `TUNING_ROWS` rows of one permutation (adversarial
streams: one draw, whole) that no table uses. Of equal ones it is the largest. The rule is the same for all learners.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper_tables.printed import TABLES
from benchmarks.paper_tables.programs import ProgramFORKS, ProgramProsNKONS, ProgramSkeGD
from benchmarks.paper_tables.runs import Kept, margins, mean_sd, settings_of
from benchmarks.paper_tables.sets import Array, Data, adversarial, available, load, permuted
from benchmarks.report import Clock, print_table
from bkbopt import learners as bl
from bkbopt.learners import OnlineLearner
from bkbopt.learners.on_features.stages import TwoStageLearner

__all__ = ["WIDTHS", "Stream", "makers", "print_streams", "result", "streams_of", "width_of"]

WIDTHS = tuple(2.0**e for e in range(-3, 8))
TUNING_ROWS = 10_000
_ADVERSARIAL = "B = 200; sketches of 150, 30 landmarks, rank 20, refreshed every 0.005 (N - B) rounds; 500 blocks of"
NOTES = {
    "table1": "B = 50 up to 10,000 rows, else 100; sketches of B, rank B/10, refreshed every 0.3 N rounds.",
    "table2": f"{_ADVERSARIAL} 10.",
    "table3": f"{_ADVERSARIAL} 20.",
    "kuairec": "sketches of 0.75 B, rank B/10, refreshed every 0.005 (N - B) rounds; width 25; the order of the file.",
}
HEADER = ("learner", "width", "mistakes %", "as program", "paper", "apart", "one width", "cpu s", "paper s", "m")

Maker = Callable[[float, int], OnlineLearner]


@dataclass(frozen=True)
class Stream:
    """One column of a table: `draw(data, seed)` gives the rows of a seed, None being that for widths."""

    table: str
    name: str
    source: str
    budget: int
    draw: Callable[[Data, int | None], Data]
    loss: str = "hinge"
    widths: tuple[float, ...] = WIDTHS


def streams_of(table: str, folder: Path, rows: int | None, widths: tuple[float, ...] = WIDTHS) -> list[Stream]:
    """The columns of a table for which the folder has the data, cut to `rows` (adversarial ones to as many blocks)."""
    if table == "kuairec":
        return [
            Stream(table, f"kuairec, {loss}, B = {budget}", "kuairec", budget, partial(_in_order, rows), loss, (25.0,))
            for loss in ("hinge", "squared_hinge")
            for budget in (100, 200, 300, 400, 500)
            if available(folder, "kuairec")
        ]
    found = []
    for name in TABLES[table]:
        source = name.split("-")[0]
        if not available(folder, source):
            continue
        if table == "table1":
            n = len(load(folder, source)[1])
            found.append(
                Stream(table, name, source, 50 if n <= 10_000 else 100, partial(_shuffled, rows), widths=widths)
            )
        else:
            repeats = 10 if table == "table2" else 20
            blocks = 500 if rows is None else max(1, rows // repeats)
            found.append(Stream(table, name, source, 200, partial(_attacked, repeats, blocks), widths=widths))
    return found


def _in_order(rows: int | None, data: Data, seed: int | None) -> Data:
    return data[0][:rows], data[1][:rows]


def _shuffled(rows: int | None, data: Data, seed: int | None) -> Data:
    return permuted(data, seed, min(rows or len(data[1]), TUNING_ROWS) if seed is None else rows)


def _attacked(repeats: int, blocks: int, data: Data, seed: int | None) -> Data:
    return adversarial(data, seed, repeats, blocks)


def makers(stream: Stream, n: int) -> dict[str, Maker]:
    """(width, seed) -> learner, for those of the table, at the paper's settings for `n` rounds."""
    B, loss = stream.budget, stream.loss
    sketched: dict[str, Any] = {"budget": B, "loss": loss, "refresh_every": max(1, math.floor(0.3 * n))}
    if stream.table != "table1":
        sketch, every = round(0.75 * B), max(1, math.floor(0.005 * (n - B)))
        sketched |= {"sketch": sketch, "sample": max(sketch // 5, B // 10), "refresh_every": every}
    # KuaiRec's limit is the paper's; the other keeps narrow widths within seconds.
    limit = 100 if stream.table == "kuairec" else 500
    newton = {"loss": loss, "curvature": 1.0 / 16.0, "max_dictionary": limit}
    known: dict[str, Maker] = {
        "RBP": lambda w, s: bl.RBP.paper(budget=B, lengthscale=w, seed=s),
        "BPA-S": lambda w, s: bl.BPAS.paper(budget=B, lengthscale=w),
        "Projectron": lambda w, s: bl.Projectron.paper(budget=B, eta=0.0, lengthscale=w),
        "BOGD": lambda w, s: bl.BOGD.paper(budget=B, loss=loss, ridge=1.0 / n**2, lengthscale=w, seed=s),
        "FOGD": lambda w, s: bl.FOGD.paper(frequencies=2 * B, loss=loss, lengthscale=w, seed=s),
        "FOGD, program": lambda w, s: bl.FOGD.paper(frequencies=2 * B, loss=loss, step=0.4 * B, lengthscale=w, seed=s),
        "NOGD": lambda w, s: bl.NOGD.paper(budget=B, loss=loss, lengthscale=w),
        "SkeGD": lambda w, s: bl.SkeGD.paper(**sketched, lengthscale=w, seed=s),
        "SkeGD, program": lambda w, s: ProgramSkeGD.paper(**sketched, lengthscale=w, seed=s),
        "PROS-N-KONS": lambda w, s: bl.ProsNKONS.paper(**newton, lengthscale=w, seed=s),
        "PROS-N-KONS, program": lambda w, s: ProgramProsNKONS.paper(**newton, lengthscale=w, seed=s),
        "FORKS": lambda w, s: bl.FORKS.paper(**sketched, lengthscale=w, seed=s),
        "FORKS, program": lambda w, s: ProgramFORKS.paper(**sketched, lengthscale=w, seed=s),
    }
    if stream.table == "table1":
        del known["PROS-N-KONS, program"]  # the costliest of all, and no figure of this table hangs on it
    printed = TABLES.get(stream.table, {}).get(stream.name) or TABLES["table2"]["german-1"]
    return {name: maker for name, maker in known.items() if _printed_name(name) in printed}


def _printed_name(name: str) -> str:
    """The paper's name of a learner, without what we say of its variant."""
    return name.partition(",")[0]


def result(learner: OnlineLearner, data: Data) -> dict[str, Any]:
    """Results of one run: mistakes in percent counted both ways, seconds, and the size of the dictionary."""
    X, y = data
    clock = Clock()
    with clock:
        p = margins(learner, X, y)
    # A prediction of zero has no sign and is counted as a mistake.
    wrong = p * y <= 0.0
    counted = wrong.copy()
    if isinstance(learner, TwoStageLearner):
        counted[: len(y) if learner.switched_at_ is None else learner.switched_at_] = False
    elif isinstance(learner, bl.ProsNKONS):
        counted = np.where(p == 0.0, y > 0.0, wrong)
    m = 2 * learner.frequencies if isinstance(learner, bl.FOGD) else learner.dictionary_size_
    return {
        "all": 100.0 * float(wrong.mean()),
        "program": 100.0 * float(counted.mean()),
        "wall": clock.wall,
        "cpu": clock.cpu,
        "m": m,
    }


def width_of(stream: Stream, data: Data, name: str, kept: Kept) -> float:
    """The width that this learner takes on this stream, by the rule above."""
    if len(stream.widths) == 1:
        return stream.widths[0]

    def mistakes(width: float) -> float:
        learner = makers(stream, len(data[1]))[name](width, 0)
        settings = {"stream": stream.name, "rows": len(data[1]), "learner": settings_of(learner), "use": "width"}
        return float(kept(f"width {stream.name} {name}", settings, lambda: result(learner, data))["all"])

    return min(reversed(stream.widths), key=mistakes)


def _kept_runs(stream: Stream, data: Data, name: str, width: float, seeds: Iterable[int], kept: Kept) -> list[Any]:
    runs = []
    for seed in seeds:
        rows = stream.draw(data, seed)
        learner = makers(stream, len(rows[1]))[name](width, seed)
        settings = {"stream": stream.name, "rows": len(rows[1]), "learner": settings_of(learner), "seed": seed}
        run = partial(result, learner, rows)
        runs.append(kept(f"{stream.table} {stream.name} {name} {seed}", settings, run))
    return runs


def _row(stream: Stream, name: str, width: float, runs: list[Any], alike: list[Any]) -> tuple[object, ...]:
    columns = {key: [float(run[key]) for run in runs] for key in runs[0]}
    one_width = mean_sd([float(run["program"]) for run in alike])
    printed = TABLES.get(stream.table, {}).get(stream.name, {}).get(_printed_name(name))
    paper = f"{printed[0]:.3f} +- {printed[1]:.3f}" if printed else None
    apart = f"{np.mean(columns['program']) - printed[0]:+.2f}" if printed else None
    counts = mean_sd(columns["all"]), mean_sd(columns["program"])
    seconds = float(np.mean(columns["cpu"])), printed[2] if printed else None
    return name, width, *counts, paper, apart, one_width, *seconds, round(float(np.mean(columns["m"])))


def _constant_row(y: Array) -> tuple[object, ...]:
    """Mistakes of a constant label: figures near it show that nothing was learnt."""
    share = 100.0 * float(np.mean(y > 0.0))
    return "the commoner label", None, f"{min(share, 100.0 - share):.3f}", *[None] * (len(HEADER) - 3)


def print_streams(
    table: str,
    folder: Path,
    kept: Kept,
    seeds: int,
    rows: int | None,
    widths: tuple[float, ...] = WIDTHS,
    only: Sequence[str] = (),
) -> None:
    """Run what is missing of a table, and print it: a block a stream."""
    streams = streams_of(table, folder, rows, widths)
    streams = [stream for stream in streams if not only or stream.name in only]
    missing = [] if only else sorted(set(TABLES.get(table, {})) - {stream.name for stream in streams})
    for stream in streams:
        data = load(folder, stream.source)
        tuning = stream.draw(data, None)
        X, y = stream.draw(data, 0)
        learners, lines = makers(stream, len(tuning[1])), [_constant_row(y)]
        one_width = width_of(stream, tuning, "FORKS", kept)
        for name, make in learners.items():
            margins(make(1.0, 0), tuning[0][:600], tuning[1][:600])  # compiles
            width = width_of(stream, tuning, name, kept)
            runs, alike = (_kept_runs(stream, data, name, w, range(seeds), kept) for w in (width, one_width))
            lines.append(_row(stream, name, width, runs, alike))
        n, d = X.shape
        title = f"FORKS, {table}, {stream.name}: {n:,} rounds, d = {d}, B = {stream.budget}, {seeds} permutation(s)"
        print_table(title, HEADER, lines, NOTES[table])
    if missing or not streams:
        print(f"  not there, and left out of {table}: {', '.join(missing) or table}", flush=True)
