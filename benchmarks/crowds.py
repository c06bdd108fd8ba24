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
from benchmarks.in_turns import HEADER, compared, measured, versions
from benchmarks.report import conditions, print_table

__all__ = ["SIZES", "main", "measure"]

#: Sizes of each part: arms, picks, trials that run, pending points.
SIZES: dict[str, tuple[int, ...]] = {
    "pool": (100_000, 1_000_000),
    "start_up": (100_000, 1_000_000),
    "tell": (100_000,),
    "box": (100,),
    "sampler": (100, 1_000),
    "turn": (100, 1_000),
    "pool_turn": (100, 1_000),
    "pending": (10_000,),
}
QUICK = {
    "pool": (100_000,),
    "start_up": (100_000,),
    "sampler": (100,),
    "turn": (100,),
    "pool_turn": (100,),
    "pending": (1_000,),
}
TITLES = {
    "pool": "pool of {:,}",
    "start_up": "pool of {:,}",
    "tell": "pool of {:,}",
    "box": "box",
    "sampler": "Optuna",
    "turn": "box",
    "pool_turn": "pool of 100,000",
}


def measure(part: str, size: int, checkout: Path) -> dict[str, float]:
    """The numbers of a part; see `in_turns.measured`."""
    return measured(Path(crowd_parts.__file__).resolve(), [part, str(size)], checkout)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure everything, and print a table."""
    parser = Arguments(__doc__)
    parser.add_argument("--against", type=Path, help="another checkout of bkbopt, measured in turns with this one")
    parser.option("--repeats", 3, quick=1, help="processes a measurement")
    parser.option("--parts", tuple(SIZES), choices=SIZES, help="what to measure")
    parser.add_argument("--size", type=int, help="one size for all parts")
    options = parser.parse_args(arguments)
    sizes = {**SIZES, **QUICK} if options.quick else SIZES
    checkouts, rows = versions(options.against), list[tuple[object, ...]]()
    print(conditions(1))
    for part in options.parts:
        for size in (options.size,) if options.size else sizes[part]:
            title = TITLES.get(part, "box").format(size)
            rows += compared(partial(measure, part, size), checkouts, options.repeats, title)
    header = HEADER[len(checkouts) - 1]
    print_table("What suggestions cost: processor time of one thread, medians", header, rows)
    print(conditions(1))


if __name__ == "__main__":
    main()
