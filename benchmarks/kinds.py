"""Time of a suggestion by kind of problem: floats, integers, choices, branches, constraints, failures, objectives.

Run it as `python -m benchmarks.kinds`. With `--against` a checkout of another version of bkbopt is measured in the same
run. Every measurement is a run of the `Optimizer` in a process of its own with one thread (`benchmarks/kind_parts.py`);
times are those of the processor.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks import kind_parts
from benchmarks.arguments import Arguments
from benchmarks.in_turns import HEADER, compared, measured, versions
from benchmarks.report import conditions, print_table

__all__ = ["main"]


def _measure(kind: str, trials: int, checkout: Path) -> dict[str, float]:
    return measured(Path(kind_parts.__file__).resolve(), [kind, str(trials)], checkout)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each kind, and print a table."""
    parser = Arguments(__doc__)
    parser.add_argument("--against", type=Path, help="another checkout of bkbopt, measured in turns with this one")
    parser.option("--trials", 200, quick=60, help="trials of a run")
    parser.option("--repeats", 3, quick=1, help="processes a measurement")
    parser.option("--kinds", tuple(kind_parts.KINDS), choices=kind_parts.KINDS, help="kinds of problems")
    options = parser.parse_args(arguments)
    trials, repeats = options.trials, options.repeats
    checkouts, rows = versions(options.against), list[tuple[object, ...]]()
    for kind in options.kinds:
        rows += compared(partial(_measure, kind, trials), checkouts, repeats, kind)
    title = f"An ask and a tell in runs of {trials} trials: milliseconds of processor time, medians of {repeats} runs"
    print_table(title, HEADER[len(checkouts) - 1], rows)
    print(conditions(1))


if __name__ == "__main__":
    main()
