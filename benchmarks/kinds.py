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
from benchmarks.in_turns import add_options, measured, print_compared

__all__ = ["main"]


def _measure(kind: str, trials: int, checkout: Path) -> dict[str, float]:
    return measured(Path(kind_parts.__file__).resolve(), [kind, str(trials)], checkout)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each kind, and print a table."""
    parser = Arguments(__doc__)
    add_options(parser)
    parser.option("--trials", 200, quick=60, help="trials of a run")
    parser.option("--kinds", tuple(kind_parts.KINDS), choices=kind_parts.KINDS, help="kinds of problems")
    options = parser.parse_args(arguments)
    print_compared(
        f"An ask and a tell, runs of {options.trials} trials: ms of processor time, medians of {options.repeats} runs",
        [(kind, partial(_measure, kind, options.trials)) for kind in options.kinds],
        options,
    )


if __name__ == "__main__":
    main()
