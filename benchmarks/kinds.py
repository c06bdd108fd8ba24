"""Time of a suggestion by kind of problem: floats, integers, choices, branches, constraints, failures, objectives.

Run it as `python -m benchmarks.kinds [--quick] [--against CHECKOUT] [--trials 200] [--repeats 3] [--kinds ...]`. With
`--against` a checkout of another version of bkbopt is measured in the same run. Every measurement is a run of the
`Optimizer` in a process of its own with one thread (`benchmarks/kind_parts.py`); times are those of the processor.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks import kind_parts
from benchmarks.in_turns import HEADER, compared, measured, versions
from benchmarks.report import conditions, print_table

__all__ = ["main"]


def _measure(kind: str, trials: int, checkout: Path) -> dict[str, float]:
    return measured(Path(kind_parts.__file__).resolve(), [kind, str(trials)], checkout)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each kind, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one repeat of 60 trials")
    parser.add_argument("--against", type=Path, help="another checkout of bkbopt, measured in turns with this one")
    parser.add_argument("--trials", type=int, help="trials of a run (default 200)")
    parser.add_argument("--repeats", type=int, help="processes a measurement (default 3)")
    parser.add_argument("--kinds", nargs="+", choices=list(kind_parts.KINDS), default=list(kind_parts.KINDS))
    options = parser.parse_args(arguments)
    trials, repeats = options.trials or (60 if options.quick else 200), options.repeats or (1 if options.quick else 3)
    checkouts, rows = versions(options.against), list[tuple[object, ...]]()
    for kind in options.kinds:
        rows += compared(partial(_measure, kind, trials), checkouts, repeats, kind)
    title = f"An ask and a tell in runs of {trials} trials: milliseconds of processor time, medians of {repeats} runs"
    print_table(title, HEADER[len(checkouts) - 1], rows)
    print(conditions(1))


if __name__ == "__main__":
    main()
