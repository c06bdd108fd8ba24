"""Measurements in processes of their own, of this version and of another one in turns.

The processes of both alternate, so that the load of the machine affects both alike.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import bkbopt
from benchmarks.arguments import Arguments
from benchmarks.report import conditions, print_table

__all__ = ["Measure", "add_options", "measured", "print_compared"]

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
HEADER = ("measure", "this version", "other", "other / this")

Numbers = dict[str, float]
#: Measures a checkout.
Measure = Callable[[Path], Numbers]


def add_options(parser: Arguments) -> None:
    """The options of `print_compared`."""
    parser.add_argument("--against", type=Path, help="another checkout of bkbopt, measured in turns with this one")
    parser.option("--repeats", 3, quick=1, help="processes a measurement")


def measured(script: Path, arguments: Sequence[str], checkout: Path) -> Numbers:
    """The numbers that a script prints, in a process with one thread that imports bkbopt from the checkout.

    The script imports nothing from `benchmarks`, which another checkout may lack. It prints a JSON object with the
    place of its `package` and its `numbers`.

    Raises:
        SystemExit: the process failed, or had another package.
    """
    environment = {**os.environ, **dict.fromkeys(THREADS, "1"), "PYTHONPATH": str(checkout)}
    # -P: the folder of the file is no place to import from.
    line = [sys.executable, "-P", str(script), *arguments]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} of {checkout} failed:\n{done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    if not Path(found["package"]).is_relative_to(checkout):
        raise SystemExit(f"--against: expected a checkout with a folder bkbopt, got {checkout}")
    return dict(found["numbers"])


def print_compared(title: str, measures: Sequence[tuple[str, Measure]], options: argparse.Namespace) -> None:
    """A row for each number, its median over the repeats; of another version also relative to this one.

    Args:
        title: of the table.
        measures: with a title each.
        options: see `add_options`.
    """
    checkouts = [Path(bkbopt.__file__).resolve().parents[1]]
    checkouts += [] if options.against is None else [options.against.resolve()]
    print(conditions(1))
    rows = [row for name, measure in measures for row in _compared(name, measure, checkouts, options.repeats)]
    print_table(title, HEADER if options.against else HEADER[:2], rows)
    print(conditions(1))


def _compared(title: str, measure: Measure, checkouts: Sequence[Path], repeats: int) -> list[tuple[object, ...]]:
    runs: list[list[Numbers]] = [[] for _ in checkouts]
    for _ in range(repeats):
        for checkout, kept in zip(checkouts, runs, strict=True):
            kept.append(measure(checkout))
    rows = list[tuple[object, ...]]()
    for name in runs[0][0]:
        numbers = [statistics.median(run[name] for run in kept) for kept in runs]
        rows.append((f"{title}, {name}", *numbers, *(n / numbers[0] for n in numbers[1:])))
        print(f"  {rows[-1][0]} {' '.join(f'{n:.4g}' for n in numbers)}", file=sys.stderr, flush=True)
    return rows
