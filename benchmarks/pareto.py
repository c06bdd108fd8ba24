"""Error with several objectives or measured constraints: ours beside BoTorch and Optuna at equal trials.

Run it as `python -m benchmarks.pareto`. The problems and their sources are in `benchmarks/outcomes.py`, the optimisers
in `outcome_peers.py` and `outcome_botorch.py`: BoTorch's qLogNoisyExpectedHypervolumeImprovement, and under constraints
LogConstrainedExpectedImprovement or, where `--peers` asks for it, qLogNoisyExpectedImprovement, three times as slow;
Optuna's NSGA-II and GPSampler. All get the same noise at trial i of a seed.

- two or three objectives: the share of the true front's hypervolume that is missing below a reference point near the
  front, and for ZDT1 and ZDT2 below (11, 11), far from it;
- constraints: regret as a share of the feasible values' range; an infeasible point counts as 1, the worst feasible one.

*named* is the recommendation, a front or one point: ours by `recommend_front()` or `recommend()`; Optuna's by the
values observed; BoTorch's by the posterior where there is noise, feasible with probability 0.9, by the values observed
where there is none. *tried* are all trials of the run. Both are judged by their noise-free outcomes.

BoTorch compiles a kernel on first use, which takes half a minute; it is kept below `--out`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.arguments import Arguments
from benchmarks.comparison import Job, Record, add_options, grouped, records_by, run_all, standard_error
from benchmarks.outcome_botorch import BOTORCH
from benchmarks.outcome_peers import OURS_AND_OPTUNA, Loop, drive
from benchmarks.outcomes import CONSTRAINED, FRONTS, OutcomeProblem
from benchmarks.report import print_table

__all__ = ["PEERS", "PROBLEMS", "main", "run_job", "suits"]

PROBLEMS: dict[str, OutcomeProblem] = {**FRONTS, **CONSTRAINED}
PEERS: dict[str, Callable[[OutcomeProblem, int], Loop]] = {**OURS_AND_OPTUNA, **BOTORCH}
#: The order in which the optimisers run: the cheap ones first.
ORDER = ("random", "nsga2", "bkbopt", "gp_sampler", "logcei", "qlognehvi")
QUICK_PROBLEMS = ("zdt1", "gardner2-noisy")


def suits(peer: str, problem: str) -> bool:
    """Whether an optimiser is for problems of this kind: BoTorch has an acquisition for each."""
    return peer in OURS_AND_OPTUNA or (peer == "qlognehvi") == (problem in FRONTS)


def run_job(job: Job) -> Record:
    """The run of a job."""
    return drive(PEERS[job.peer], PROBLEMS[job.problem], job.n_trials, job.seed)


def print_problem(name: str, records: Mapping[str, Sequence[Mapping[str, list[float]]]]) -> None:
    """One table a problem: a row an optimiser and checkpoint, a column a measure."""
    everything = [record for kept in records.values() for record in kept]
    measures = [key for key in everything[0] if key not in ("checkpoints", "seconds")]
    rows = []
    for checkpoint in sorted({c for record in everything for c in record["checkpoints"]}):
        for peer, kept in records.items():
            found = [(r, r["checkpoints"].index(checkpoint)) for r in kept if checkpoint in r["checkpoints"]]
            if found:
                cells = [_text([r[measure][at] for r, at in found]) for measure in measures]
                ms = 1e3 * float(np.median([r["seconds"][at] for r, at in found])) / checkpoint
                rows.append((int(checkpoint), peer, len(found), *cells, ms))
    problem = PROBLEMS[name]
    what = "share of the hypervolume missing" if name in FRONTS else "regret / range of the feasible values"
    print_table(
        f"{name}, d = {problem.dim}, {problem.n_constraints} constraint(s): {what}, mean +- standard error",
        ("trials", "optimiser", "seeds", *measures, "ms/trial"),
        rows,
    )


def _text(values: Sequence[float]) -> str:
    """Mean +- standard error to two or three digits: measures of one table differ by orders of magnitude."""
    return f"{np.mean(values):.3g} +- {standard_error(values):.2g}"


def print_results(jobs: Sequence[Job], out: Path) -> None:
    """Print the tables of the saved results."""
    for name, mine in grouped(jobs, lambda job: job.problem).items():
        if records := records_by(lambda job: job.peer, mine, out):
            print_problem(name, records)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing and print the tables."""
    parser = Arguments(__doc__)
    parser.option("--peers", ORDER, choices=PEERS, help="optimisers")
    parser.option("--problems", tuple(PROBLEMS), quick=QUICK_PROBLEMS, choices=PROBLEMS, help="see outcomes.py")
    parser.option("--seeds", 5, quick=1, help="runs of each")
    parser.option("--trials", 100, quick=25, help="trials of a run")
    add_options(parser, "pareto")
    options = parser.parse_args(arguments)
    jobs = [
        Job(peer, problem, options.trials, seed)
        for peer in options.peers
        for seed in range(options.seeds)
        for problem in options.problems
        if suits(peer, problem)
    ]
    # Not the common folder of torch: a lock that a stopped process left there makes the next one wait for ever.
    os.environ.setdefault("TORCH_EXTENSIONS_DIR", str((options.out / "torch_extensions").resolve()))
    run_all(jobs, run_job, options)
    print_results(jobs, options.out)


if __name__ == "__main__":
    main()
