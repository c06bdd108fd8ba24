"""Regret where points are asked for in batches: ours beside random search, BoTorch's qLogNEI, TPE and CMA-ES.

Run it as `python -m benchmarks.batches`. The problems, boxes and pools, are in `benchmarks/batch_problems.py`, the
optimisers in `benchmarks/batch_peers.py`. The q points of a batch are asked for before any of their values is told, and
the next batch after all are told; evaluation i of a seed has the same noise for all. Optimisers that are slow are given
fewer evaluations and smaller batches (LIMITS, and LARGEST in `batch_peers`), and those that cannot search a pool are
left out there. The problem `gp-pool` has 1,094 evaluations and batches of 1 and 20, as in the paper. `bkb_useful`
chooses the size of its batches, up to the largest q.

- average: noise-free regret of the evaluations so far, on average (cumulative regret divided by their number);
- after 5: the same for the evaluations after the first five batches;
- / q = 1: ratio to the same optimiser without batches, over the same evaluations;
- recommended: regret of the place recommended after the last batch that is complete;
- ms each: processor time of asks and tells on one thread, for each evaluation.

Regret is in units of the interquartile range, in `gp-pool` of the standard deviation. With a folder that lacks the data
the pools of real data are left out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import comparison
from benchmarks.arguments import Arguments
from benchmarks.batch_peers import BATCHERS, BatchLoop, can_run
from benchmarks.batch_problems import BOXES, POOLS, TARGETS, Target
from benchmarks.comparison import Record, add_options, grouped, records_by, run_all, with_error
from benchmarks.optuna_quality import FLOOR
from benchmarks.report import DATA, Clock, limited_threads, print_table
from benchmarks.samplers import quiet_optuna

__all__ = ["CHECKPOINTS", "Cell", "Job", "cells_of", "jobs_of", "main", "run_batches", "run_job"]

#: Numbers of evaluations at which there are tables.
CHECKPOINTS = (100, 300, 1_000, 3_000)
BATCHES = (1, 10, 100, 384)
#: Batches and evaluations of the problem of the paper on batches.
PAPER, PAPER_BATCHES, PAPER_TRIALS = "gp-pool", (1, 20), 1_094
#: Optimisers that are given no more evaluations than these.
LIMITS = {"qlognei": 300}
#: Evaluations are counted after so many batches: the first ones of a large batch know nothing.
SKIPPED = 5
#: Whose runs with q = 1 those of another one are compared with.
ALONE = {"bkb_useful": "bkb"}
ORDER = ("bkb", "random", "bkb_known", "bkb_useful", "bkb_thompson", "cmaes", "tpe_liar", "qlognei")
PROBLEMS = ("hartmann6", "ackley10-off", "rastrigin10-rotated", "rosenbrock6", "casp-smooth", "cadata", PAPER)
QUICK = ("bkb", "random", "cmaes")
QUICK_PROBLEMS = ("hartmann6", "cadata")
HEADER = (
    "evaluations", "optimiser", "q", "batches", "seeds", "average", "/ q = 1", "after 5", "/ q = 1", "recommended",
    "ms each",
)  # fmt: skip
SUMMARY_HEADER = (
    "evaluations", "q", "optimiser", "problems", "average / q = 1", "after 5 / q = 1", "average / bkb", "after 5 / bkb",
    "recommended / bkb",
)  # fmt: skip


@dataclass(frozen=True)
class Job(comparison.Job):
    """One run: an optimiser on a problem with a seed, by batches of q."""

    q: int = 1

    @property
    def title(self) -> str:
        """The problem and the batch, in file names."""
        return f"{self.problem}-q{self.q}"


def run_batches(target: Target, loop: BatchLoop, n: int, q: int, seed: int) -> dict[str, Any]:
    """Drive `loop` for n evaluations in batches of q; the last one may be smaller.

    Returns a dict of `regret` (n numbers, the target's scale, in the order of evaluation), `batches` (their sizes, in
    order), `checkpoints`, and for each of these `recommended`, the regret of the place recommended after the last
    batch that ends by then (None before there is one), and `seconds` of the processor in asking and telling until
    there.
    """
    looks = [*(c for c in CHECKPOINTS if c < n), n]
    values: list[float] = []
    sizes: list[int] = []
    found: dict[int, float | None] = dict.fromkeys(looks)
    spent: dict[int, float] = dict.fromkeys(looks, 0.0)
    clock, done = Clock(), 0
    while done < n:
        with clock:
            places = loop.ask(min(q, n - done))
        told = target.observe(places, seed, done)
        values += target.value(places).tolist()
        with clock:
            loop.tell(places, told)
        sizes.append(len(places))
        done += len(places)
        for look in looks:
            if done <= look < done + q or done == look:
                found[look] = float((target.value(loop.recommend())[0] - target.minimum) / target.scale)
                spent[look] = clock.cpu
    regret = ((np.array(values) - target.minimum) / target.scale).tolist()
    return {
        "regret": regret,
        "batches": sizes,
        "checkpoints": looks,
        "recommended": list(found.values()),
        "seconds": list(spent.values()),
    }


def run_job(data: Path, job: Job) -> Record:
    """The run of a job."""
    target = TARGETS[job.problem](data)
    with quiet_optuna(), limited_threads(1), torch.random.fork_rng():  # BoTorch draws from torch's generator
        return run_batches(target, BATCHERS[job.peer](target, job.q, job.seed), job.n_trials, job.q, job.seed)


@dataclass(frozen=True)
class Cell:
    """Results of an optimiser on a problem, in batches of q after n evaluations, over its runs (one a seed).

    `average` and `after` are regrets of the seeds, the latter without the first batches; `base` and `base_after` are
    those of runs without batches over the same evaluations, and `batches` is how many there were by median. Lists are
    empty where there is nothing to count.
    """

    peer: str
    problem: str
    q: int
    n: int
    average: list[float]
    after: list[float]
    base: list[float]
    base_after: list[float]
    recommended: list[float]
    ms: float
    batches: int

    @property
    def found(self) -> str | None:
        """The regret of the recommended place, as text; None where no batch was complete."""
        return _text(self.recommended)

    @property
    def ratio(self) -> float | None:
        """Average regret relative to that without batches."""
        return _ratio(self.average, self.base)

    @property
    def ratio_after(self) -> float | None:
        """The same after the first batches."""
        return _ratio(self.after, self.base_after)


def _text(values: Sequence[float]) -> str | None:
    return with_error(values) if values else None


def _ratio(above: Sequence[float], below: Sequence[float]) -> float | None:
    if not (above and below):
        return None
    return max(float(np.mean(above)), FLOOR) / max(float(np.mean(below)), FLOOR)


def cells_of(problem: str, records: Mapping[tuple[str, int], Sequence[Mapping[str, Any]]]) -> list[Cell]:
    """The results on a problem after each checkpoint, by optimiser and q."""
    cells = []
    for n in sorted({c for kept in records.values() for record in kept for c in record["checkpoints"]}):
        reached = {key: [r for r in kept if n in r["checkpoints"]] for key, kept in records.items()}
        for (peer, q), kept in reached.items():
            if not kept:
                continue
            alone, at = reached.get((ALONE.get(peer, peer), 1), []), [r["checkpoints"].index(n) for r in kept]
            found = [r["recommended"][k] for r, k in zip(kept, at, strict=True)]
            ms = 1e3 * float(np.median([r["seconds"][k] for r, k in zip(kept, at, strict=True)])) / n
            skipped = max(sum(r["batches"][:SKIPPED]) for r in kept)
            averages = (_averages(kept, 0, n), _averages(kept, skipped, n))
            bases = (_averages(alone, 0, n), _averages(alone, skipped, n))
            found = [f for f in found if f is not None]
            count = int(np.median([np.searchsorted(np.cumsum(r["batches"]), n) + 1 for r in kept]))
            cells.append(Cell(peer, problem, q, n, *averages, *bases, found, ms, count))
    return cells


def _averages(records: Sequence[Mapping[str, Any]], first: int, n: int) -> list[float]:
    """Average regrets of the evaluations from `first` on and before n, one a run."""
    return [float(np.mean(r["regret"][first:n])) for r in records] if first < n else []


def print_cells(target: Target, cells: Sequence[Cell]) -> None:
    """A table for a problem: a row a checkpoint, optimiser and q."""
    rows = []
    for c in cells:
        measures = _text(c.average), c.ratio, _text(c.after), c.ratio_after, c.found
        rows.append((c.n, c.peer, c.q, c.batches, len(c.average), *measures, c.ms))
    where = "box" if target.rows is None else f"{len(target.rows):,} rows"
    noise = target.noise_sd / target.scale
    print_table(
        f"{target.name} ({where}, d = {target.dim}, noise sd {noise:.2g}): regret / {target.unit}",
        HEADER,
        rows,
        _floors(target, sorted({c.q for c in cells})),
    )


def _floors(target: Target, batches: Sequence[int]) -> str:
    """Lower bounds on the cost of batches without repeated rows; empty for a box."""
    if target.rows is None:
        return ""
    regret = (np.sort(target.value(np.arange(len(target.rows)))) - target.minimum) / target.scale
    best = ", ".join(f"{q}: {regret[:q].mean():.4f}" for q in batches)
    return f"lower bound of a batch without repeated rows, the average of the best q: {best}"


def print_summary(cells: Sequence[Cell]) -> None:
    """Geometric means over the problems: regret in batches relative to q = 1, and that of others relative to ours."""
    rows = []
    for n, q, peer in sorted({(c.n, c.q, c.peer) for c in cells}):
        mine = {c.problem: c for c in cells if (c.n, c.q, c.peer) == (n, q, peer)}
        ours = {c.problem: c for c in cells if (c.n, c.q, c.peer) == (n, q, "bkb")}
        common = [problem for problem in mine if problem in ours]
        columns = (
            [c.ratio for c in mine.values()],
            [c.ratio_after for c in mine.values()],
            [_ratio(mine[p].average, ours[p].average) for p in common],
            [_ratio(mine[p].after, ours[p].after) for p in common],
            [_ratio(mine[p].recommended, ours[p].recommended) for p in common],
        )
        rows.append((n, q, peer, len(mine), *map(_geometric, columns)))
    print_table(
        "all problems: geometric means of ratios of regrets",
        SUMMARY_HEADER,
        rows,
        "/ q = 1: what batches cost it; / bkb: how many times ours at the same q, above 1 ours is better",
    )


def _geometric(ratios: Sequence[float | None]) -> float | None:
    logs = [math.log(ratio) for ratio in ratios if ratio is not None]
    return math.exp(sum(logs) / len(logs)) if logs else None


def print_results(jobs: Sequence[Job], out: Path, data: Path) -> None:
    """Print the tables of the saved results."""
    everything: list[Cell] = []
    for problem, mine in grouped(jobs, lambda job: job.problem).items():
        if records := records_by(lambda job: (job.peer, job.q), mine, out):
            cells = cells_of(problem, records)
            print_cells(TARGETS[problem](data), cells)
            everything += cells
    if everything:
        print_summary(everything)


def batches_of(peer: str, problem: str, batches: Sequence[int]) -> Sequence[int]:
    """The batch sizes of an optimiser; only the largest one where it chooses the size."""
    if peer == "bkb_useful":
        return (max(batches),)
    return PAPER_BATCHES if problem == PAPER else batches


def jobs_of(
    peers: Sequence[str], problems: Sequence[str], batches: Sequence[int], seeds: int, trials: int
) -> list[Job]:
    """All runs, ordered by seed, without those that an optimiser does not support."""
    return [
        Job(peer, problem, min(PAPER_TRIALS if problem == PAPER else trials, trials, LIMITS.get(peer, trials)), seed, q)
        for seed in range(seeds)
        for peer in peers
        for problem in problems
        for q in batches_of(peer, problem, batches)
        if can_run(peer, q, is_box=problem in BOXES, has_kernel=problem == PAPER)
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing and print the tables."""
    parser = Arguments(__doc__)
    parser.option("--data", DATA, help="folder with casp.npz and cadata.npz")
    parser.option("--peers", ORDER, quick=QUICK, choices=BATCHERS, help="optimisers, see batch_peers.py")
    parser.option("--problems", PROBLEMS, quick=QUICK_PROBLEMS, choices=TARGETS, help="see batch_problems.py")
    parser.option("--batches", BATCHES, quick=BATCHES[:2], help="sizes of batches")
    parser.option("--seeds", 3, quick=2, help="runs of each")
    parser.option("--trials", max(CHECKPOINTS), quick=60, help="evaluations of a run, of qlognei 300 at most")
    add_options(parser, "batches")
    options = parser.parse_args(arguments)
    problems = options.problems
    if not (options.data / "cadata.npz").is_file():
        print(f"{options.data} has no cadata.npz: pools of real data are left out")
        problems = [problem for problem in problems if problem not in POOLS]
    jobs = jobs_of(options.peers, problems, options.batches, options.seeds, options.trials)
    run_all(jobs, partial(run_job, options.data), options)
    print_results(jobs, options.out, options.data)


if __name__ == "__main__":
    main()
