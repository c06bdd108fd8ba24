"""Measurements in processes of their own, of this version and of another one in turns.

The processes of both alternate, so that the load of the machine affects both alike.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import bkbopt

__all__ = ["HEADER", "compared", "measured", "versions"]

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
#: Columns of a table of `compared`, without and with another version.
HEADER = ("measure", "this version"), ("measure", "this version", "other", "other / this")

Numbers = dict[str, float]


def versions(against: Path | None) -> list[Path]:
    """The checkout of this version, and the other one if there is one."""
    here = Path(bkbopt.__file__).resolve().parents[1]
    return [here] if against is None else [here, against.resolve()]


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


def compared(
    measure: Callable[[Path], Numbers], checkouts: Sequence[Path], repeats: int, title: str
) -> list[tuple[object, ...]]:
    """A row for each number, its median over the repeats; of another version also relative to this one.

    Args:
        measure: measures a checkout.
        checkouts: see `versions`.
        repeats: measurements of each checkout.
        title: of the rows.
    """
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
