"""What a change of the package does to regret and time of the search.

Run it as `python -m benchmarks.ablation --change FILE OLD NEW`, such as

    --change search/quantities/marked_rows.py "GROWTH = 1.15" "GROWTH = 1.25"

or as `python -m benchmarks.ablation --against CHECKOUT ...`. FILE is a file below `bkbopt/` in which the text OLD is
found once; the package is changed in a temporary copy. `--change` may be given more than once. The runs are those of
`benchmarks.optuna_quality --peers bkb`, by default of the development functions, with and without the change in turns.
They are kept under the digest of the source, so that those of the present version are shared with that program.

A ratio is the geometric mean, over the problems, of the regret with the change divided by that without it (means over
the seeds, units of the IQR), with its standard error over the problems. The seeds are the same, but runs that differ
once soon differ by chance.
"""

import math
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks.arguments import Arguments
from benchmarks.comparison import NOT_SEARCH, Job, records_of, source_digest, standard_error
from benchmarks.mutants.fault import ROOT, Fault
from benchmarks.mutants.runner import copied
from benchmarks.optuna_quality import FLOOR, MEASURES, Result, geometric_mean, results_of
from benchmarks.report import conditions, print_table
from benchmarks.tasks import DEVELOPMENT, TASKS, TUNING

__all__ = ["changed", "main", "n_same", "ratio", "rows_of"]

VERSIONS = ("with", "without")


@contextmanager
def changed(changes: Sequence[Sequence[str]]) -> Iterator[Path]:
    """A folder with the benchmarks and a copy of the package with the `changes`: file, old text, new text.

    Raises:
        SystemExit: the old text is not there exactly once.
    """
    edits = [Fault("--change", *change, tests=()) for change in changes]
    paths = [Path("bkbopt", edit.file) for edit in edits]
    for path in paths:
        if not (ROOT / path).is_file():
            raise SystemExit(f"--change: expected a file below bkbopt/, got {path.relative_to('bkbopt')}")
    loops = any("compiled" in (ROOT / path).read_text(encoding="utf-8") for path in paths)
    with copied(ROOT, compiled=not loops) as folder:
        for path, edit in zip(paths, edits, strict=True):
            try:
                text = edit.sown((folder / path).read_text(encoding="utf-8"))
            except ValueError as error:
                raise SystemExit(str(error)) from None
            (folder / path).write_text(text, encoding="utf-8")
        yield folder


def run(folder: Path, seed: int, arguments: Sequence[str]) -> None:
    """Run the missing studies of a seed with the package in the folder."""
    program = [sys.executable, "-m", "benchmarks.optuna_quality", "--peers", "bkb", "--runs-only"]
    subprocess.run([*program, "--first-seed", str(seed), "--seeds", "1", *arguments], cwd=folder, check=True)


def ratio(with_change: Sequence[float], without: Sequence[float]) -> tuple[float, float]:
    """Geometric mean of the ratios of means over the problems, and its standard error."""
    logs = [math.log(max(a, FLOOR) / max(b, FLOOR)) for a, b in zip(with_change, without, strict=True)]
    centre = math.exp(sum(logs) / len(logs))
    return centre, centre * standard_error(logs)


def rows_of(results: Sequence[Result]) -> list[tuple[object, ...]]:
    """The rows of the table, one for each checkpoint, from results of the peers "with" and "without"."""
    rows = []
    for checkpoint in sorted({r.checkpoint for r in results}):
        here = [r for r in results if r.checkpoint == checkpoint]
        pair = [[r for r in here if r.peer == version] for version in VERSIONS]
        cells: list[object] = []
        for measure in MEASURES:
            means = [[r.mean(measure) for r in one] for one in pair]
            share, error = ratio(*([mean for mean, _ in one] for one in means))
            cells += [*(geometric_mean(one)[0] for one in means), f"{share:.2f} +- {error:.2f}"]
        times = ratio(*([r.ms for r in one] for one in pair))[0]
        rows.append((checkpoint, len(pair[0]), *cells, times))
    return rows


def n_same(pairs: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> int:
    """The number of pairs of runs with the same regrets."""
    return sum(all(a[measure] == b[measure] for measure in MEASURES) for a, b in pairs)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing and print the table."""
    parser = Arguments(__doc__, quick=False)
    text = "what to change; may be given more than once"
    parser.add_argument("--change", nargs=3, action="append", default=[], metavar=("FILE", "OLD", "NEW"), help=text)
    parser.add_argument("--against", type=Path, help="another checkout, which counts as the version with the change")
    functions = [problem for problem in DEVELOPMENT if problem not in TUNING]
    parser.add_argument("--problems", nargs="+", choices=TASKS, metavar="TASK", default=functions, help="see tasks.py")
    parser.option("--trials", 300, help="the length of a study")
    parser.option("--seeds", 4, help="studies of each task and version")
    parser.option("--jobs", 1, help="processes at a time, of one thread each")
    parser.option("--out", Path("out/optuna_quality"), help="folder of the results: no run is repeated")
    options = parser.parse_args(arguments)
    if bool(options.change) == (options.against is not None):
        parser.error("expected --change or --against")
    print(conditions(1))
    out, problems = options.out.resolve(), options.problems
    passed = ["--trials", options.trials, "--jobs", options.jobs, "--out", out, "--problems", *problems]
    other = changed(options.change) if options.against is None else nullcontext(options.against.resolve())
    with other as folder_with_change:
        folders = [folder_with_change, ROOT]
        digests = [source_digest(NOT_SEARCH, folder / "bkbopt") for folder in folders]
        for seed in range(options.seeds):
            for folder in folders:
                run(folder, seed, [str(argument) for argument in passed])
    results: list[Result] = []
    same = 0
    for problem in problems:
        jobs = [Job("bkb", problem, options.trials, seed) for seed in range(options.seeds)]
        both = [records_of(jobs, out, digest) for digest in digests]
        results += results_of(TASKS[problem](), dict(zip(VERSIONS, both, strict=True)))
        same += n_same(zip(*both, strict=True))
    print_table(
        "Regret / IQR with the change and without it: geometric means over the problems",
        ("trials", "problems", *(name for m in MEASURES.values() for name in (m, "without", "ratio")), "time"),
        rows_of(results),
        f"{same} of {len(problems) * options.seeds} runs are the same; time: of a trial, ratio of the medians",
    )


if __name__ == "__main__":
    main()
