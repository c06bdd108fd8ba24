"""Time of suggestions in large batches, and beside many running trials.

Run it as `python -m benchmarks.crowds`. With `--against` a checkout of another version of bkbopt is measured in the
same run: the processes of both alternate, so that the load of the machine affects both.

- pool, start_up: picks of a plate of 384 from a pool of 100,000 rows and ten columns, and of a million, after 768
  values and before the first one;
- tell: learning the values of a plate, beside one pass over its features;
- box: asks for 100 points in a box of six floats after 300 values;
- sampler: `study.ask()` with `BKBSampler` while 100 and 1,000 trials run;
- turn, pool_turn: a tell and an ask in turns while 100 and 1,000 trials run, in such a box after 1,000 values and in
  such a pool after 768;
- pending: asks beside 10,000 pending points and 50 values, with the memory.

Every measurement is a process of its own with one thread (`benchmarks/crowd_parts.py`). Times are those of the
processor, medians over the repeats.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks import crowd_parts
from benchmarks.arguments import Arguments
from benchmarks.in_turns import Measure, add_options, measured, print_compared

__all__ = ["SIZES", "main", "measure"]

#: Title and sizes of each part: arms, picks, trials that run, pending points; with `--quick` the first size.
SIZES: dict[str, tuple[str, tuple[int, ...]]] = {
    "pool": ("pool of {:,}", (100_000, 1_000_000)),
    "start_up": ("pool of {:,}", (100_000, 1_000_000)),
    "tell": ("pool of {:,}", (100_000,)),
    "box": ("box", (100,)),
    "sampler": ("Optuna", (100, 1_000)),
    "turn": ("box", (100, 1_000)),
    "pool_turn": ("pool of 100,000", (100, 1_000)),
    "pending": ("box", (10_000,)),
}


def measure(part: str, size: int, checkout: Path) -> dict[str, float]:
    """The numbers of a part; see `in_turns.measured`."""
    return measured(Path(crowd_parts.__file__).resolve(), [part, str(size)], checkout)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure everything, and print a table."""
    parser = Arguments(__doc__)
    add_options(parser)
    parser.option("--parts", tuple(SIZES), choices=SIZES, help="what to measure")
    parser.add_argument("--size", type=int, help="one size for all parts")
    options = parser.parse_args(arguments)
    measures = list[tuple[str, Measure]]()
    for part in options.parts:
        title, sizes = SIZES[part]
        for size in (options.size,) if options.size else sizes[: 1 if options.quick else None]:
            measures.append((title.format(size), partial(measure, part, size)))
    print_compared("What suggestions cost: processor time of one thread, medians", measures, options)


if __name__ == "__main__":
    main()
