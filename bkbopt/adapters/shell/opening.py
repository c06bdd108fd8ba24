"""The optimizer of a log, with the rows of its pool where these are not in the log."""

import argparse
from typing import TYPE_CHECKING, Any

from bkbopt.errors import ArgumentError, extra
from bkbopt.optimizer.log.aims import Aims

if TYPE_CHECKING:
    from bkbopt import Optimizer

__all__ = ["as_aims", "loaded", "names_of", "opened", "rows_of_file"]


def opened(args: argparse.Namespace) -> "Optimizer":
    """The optimizer of the log, which writes to it."""
    from bkbopt import Optimizer

    return Optimizer.open(args.state, pool=rows_of_file(args.pool))


def loaded(args: argparse.Namespace) -> "Optimizer":
    """The optimizer of the log, in memory only."""
    from bkbopt import Optimizer

    return Optimizer.load(args.state, pool=rows_of_file(args.pool))


def rows_of_file(path: str | None) -> Any:
    """A table in CSV as `pandas.read_csv` reads it; of other files and folders the path. None for None."""
    if path is None or not path.lower().endswith(".csv"):
        return path
    with extra("pandas"):
        import pandas
    try:
        return pandas.read_csv(path)
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ArgumentError(f"--pool: {path}: expected a CSV file in UTF-8, got {error}.") from None


def as_aims(opt: "Optimizer") -> Aims:
    """What the optimizer aims at, for modules of the log."""
    from bkbopt.optimizer.arguments.outcome_constraints import as_limits

    return Aims(opt.directions, as_limits(opt.limits), opt.objectives)


def names_of(opt: "Optimizer") -> tuple[str, ...]:
    """The names of the parameters, of a space or a pool."""
    candidates = opt.pool if opt.space is None else opt.space
    assert candidates is not None
    return candidates.names
