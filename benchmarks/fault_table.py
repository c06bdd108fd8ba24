"""What comes of kills, power cuts, full disks and other faults injected into logs and states, as a Markdown table.

Run it as `python -m benchmarks.fault_table`, or `make faults`. A harness is a module of tests/faults whose
`rows(quick)` gives rows; each is registered below by one line. Ends with 1 if an outcome must not be.
"""

import importlib
import os
import sys
import time
from collections.abc import Iterable, Sequence

from benchmarks.arguments import Arguments
from tests.faults.rows import Row

__all__ = ["HARNESSES", "main", "rows_of"]

#: Modules of tests/faults by the name that `--only` takes.
HARNESSES = {
    "kills": "tests.faults.kills",
    "power": "tests.faults.power_loss",
    "disks": "tests.faults.disks",
    "crowds": "tests.faults.crowds",
    "logs": "tests.faults.crafted_logs",
    "interrupts": "tests.faults.interrupts",
    "learners": "tests.faults.learner_states",
    "numerics": "tests.faults.numerics",
}


def rows_of(name: str, *, quick: bool) -> Iterable[Row]:
    """Run a harness."""
    rows: Iterable[Row] = importlib.import_module(HARNESSES[name]).rows(quick)
    return rows


def _line(row: Row) -> str:
    cells = (row.injected, row.how_often, row.outcome)
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Arguments(__doc__)
    parser.option("--only", tuple(HARNESSES), choices=HARNESSES, help="harnesses; with --quick a slice of each")
    options = parser.parse_args(arguments)
    failed = False
    print("| what was injected | how often | outcome |\n| --- | --- | --- |", flush=True)
    for name in options.only:
        start = time.monotonic()
        for row in rows_of(name, quick=options.quick):
            print(_line(row), flush=True)
            failed = failed or bool(row.failures)
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    # Processes are forked, and pools of threads do not survive that.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
