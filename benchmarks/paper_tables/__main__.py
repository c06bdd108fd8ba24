"""The tables and figures of the papers on online kernel learning: ours beside what they print.

Run it as `python -m benchmarks.paper_tables`. The parts:

- table1, table2, table3: FORKS (Zhang et al. 2024) against budgeted learners, and on the adversarial streams;
- kuairec: its figure 3, where the folder has the data as a file `kuairec` in LIBSVM's format;
- figures: figures 2 and 4 of PKAWV (Jezequel et al. 2019), losses and times of ridge regression on features;
- figure3: its greedy adversary;
- two-losses: the counter-example of KONS (Calandriello et al. 2017); bounds: its regret beside its bounds.

Mistakes are counted in two ways. "mistakes %" are those of all rounds, where a prediction of zero is a mistake. "as
program" is how the authors' program counts: for NOGD, SkeGD and FORKS only the rounds after the first stage, divided by
all rounds; for PROS-N-KONS a prediction of zero is the label -1. "apart" is the second less the printed figure.
"one width" is the count of the program where each learner takes the width that FORKS has: the paper does not say
whether widths were chosen for each learner.

Rows named "program" differ from the text of the paper as the authors' program does. FORKS and SkeGD are refreshed after
so many rounds with a loss, not rounds; FORKS weighs slopes by 0.2 and has a ridge of 0.05 (its step of 0.2, divided
out); PROS-N-KONS samples with squared weights; FOGD's features are not normalised, so that its step is 2 B times the
step. Times are seconds of processor time of one thread, checks of the input included and compilation not.

Each run is kept as a file of `--out`; a program that was stopped goes on, and nothing is computed twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.arguments import Arguments
from benchmarks.comparison import source_digest
from benchmarks.paper_tables.kons import print_bounds, print_two_losses
from benchmarks.paper_tables.pkawv import figure3, print_figures
from benchmarks.paper_tables.runs import Kept
from benchmarks.paper_tables.streams import WIDTHS, print_streams
from benchmarks.report import DATA, measuring

__all__ = ["DATA", "PARTS", "Setting", "main"]


@dataclass(frozen=True)
class Setting:
    """What every part needs to know; `rows` None is all of them."""

    folder: Path
    kept: Kept
    seeds: int
    rows: int | None
    limit: float
    widths: tuple[float, ...]
    only: tuple[str, ...]


def _streams(table: str, setting: Setting) -> None:
    print_streams(table, setting.folder, setting.kept, setting.seeds, setting.rows, setting.widths, setting.only)


PARTS: dict[str, Callable[[Setting], None]] = {
    **{table: partial(_streams, table) for table in ("table1", "table2", "table3", "kuairec")},
    "figures": lambda s: print_figures(s.folder, s.kept, s.limit, s.rows),
    "figure3": lambda s: figure3(s.kept, min(s.seeds, 5), min(s.rows or 80, 80)),
    "two-losses": lambda s: print_two_losses(s.kept, min(s.rows or 2_000, 2_000)),
    "bounds": lambda s: print_bounds(s.folder, s.kept, min(s.rows or 2_000, 2_000)),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing and print the tables."""
    parser = Arguments(__doc__)
    parser.option("--data", DATA, help="folder of the data sets")
    parser.option("--parts", tuple(PARTS), choices=PARTS, help="what to print")
    parser.add_argument("--streams", nargs="+", metavar="STREAM", help="of the tables, these only: german codrna-1 ...")
    parser.option("--seeds", 20, quick=2, help="permutations of a stream")
    parser.option("--rows", None, quick=1_000, help="rows of a stream at most")
    parser.option("--limit", 20.0, help="seconds a learner of figures 2 and 4, in the paper 300")
    parser.option("--out", Path("out/paper_tables"), help="folder of the results: no run is repeated")
    options = parser.parse_args(arguments)
    seeds, rows = options.seeds, options.rows
    widths = WIDTHS[2::3] if options.quick else WIDTHS
    only = tuple(options.streams or ())
    if not options.data.is_dir():
        print(f"{options.data}: no such folder; say with --data where the data sets are. Nothing was run.")
        return
    with measuring(1):
        setting = Setting(options.data, Kept(options.out, source_digest()), seeds, rows, options.limit, widths, only)
        for part in options.parts:
            PARTS[part](setting)


if __name__ == "__main__":
    main()
