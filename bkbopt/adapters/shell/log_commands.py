"""Commands that need the log only; they import neither torch nor NumPy, and take a tenth of a second."""

import argparse
import csv
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import IO

from bkbopt.adapters.shell.rows import Row, aims_of, aims_row, as_cell, finished, point
from bkbopt.adapters.shell.usage import by_name, check_other_file
from bkbopt.adapters.shell.writing import add_attrs, check_outcome, finish, lose, running
from bkbopt.errors import ArgumentError
from bkbopt.optimizer.log.aims import Aims
from bkbopt.optimizer.log.attributes import checked_attrs
from bkbopt.optimizer.log.log_file import LogFile
from bkbopt.optimizer.log.log_labels import labelled
from bkbopt.optimizer.log.log_rows import Described
from bkbopt.optimizer.log.log_schema import CHECKSUM, COLUMNS, checked, from_json
from bkbopt.optimizer.log.trial_tables import table_of
from bkbopt.optimizer.log.trials import Outcome, Trial, check_stds, utc_now
from bkbopt.search.trials.states import COMPLETE, FAIL, RUNNING, WAITING

__all__ = ["export", "fail", "objectives", "recover", "set_attrs", "show", "tell"]

#: Endings of tables in other formats than CSV.
OTHER_TABLES = (".xlsx", ".xls", ".ods", ".parquet", ".json")

#: Indices of columns in a row of the log.
CONSTRAINTS, DIAGNOSTICS, ASKED_AT, TOLD_AT, SEEN_AT = map(
    COLUMNS.split(", ").index, ("constraints", "diagnostics", "asked_at", "told_at", "seen_at")
)


def tell(args: argparse.Namespace, number: int, values: list[float | None], limits: dict[str, float]) -> Iterator[Row]:
    """Report the outcome of a trial."""
    file = LogFile(args.state)
    aims = aims_of(file)
    outcome = check_outcome(aims, values, limits, args.std, attrs=by_name("--user-attr", args.user_attr))
    check_stds([outcome], takes_weights=file.options["surrogate"]["class"] != "LearnerSurrogate")
    yield finished(aims, finish(file, number, outcome, "tell", replacing=args.replace))


def objectives(state: str) -> tuple[str, ...]:
    """The names of a log's objectives; empty if they have none."""
    return aims_of(LogFile(state)).objectives


def fail(args: argparse.Namespace) -> Iterator[Row]:
    """Report that a trial gave no value."""
    file = LogFile(args.state)
    outcome = Outcome(is_lost=args.lost, user_attrs=checked_attrs(by_name("--user-attr", args.user_attr)))
    yield finished(aims_of(file), finish(file, args.id, outcome, "fail"))


def set_attrs(args: argparse.Namespace) -> Iterator[Row]:
    """Keep attributes with a trial."""
    file = LogFile(args.state)
    yield finished(aims_of(file), add_attrs(file, args.id, checked_attrs(by_name("NAME=VALUE", args.attrs))))


# -- reading -----------------------------------------------------------------------------------------------------------


def show(args: argparse.Namespace) -> Iterator[Row]:
    """A summary of a log, or all trials."""
    file = LogFile(args.state)
    aims = aims_of(file)
    if args.trials:
        for trial in _trials(file):
            times = {"asked_at": trial.asked_at, "told_at": trial.told_at}
            yield finished(aims, trial) | {k: None if at is None else at.isoformat() for k, at in times.items()}
        return
    yield aims_row(aims) | _summary(file)


def _summary(file: LogFile) -> Row:
    """Counts, ids and the record of the last ask; of the rows only the checksums and the needed columns are read."""
    ids: dict[str, list[int]] = {state: [] for state in (COMPLETE, RUNNING, WAITING, FAIL)}
    #: Trials without and with a value of every constraint; the former count only if there are no others.
    n_feasible, last, n_lost = [0, 0], ("", -1), 0
    with file.fits():
        aims = aims_of(file)
        names = set(aims.constraints)
        for row in file.rows(0):
            number, state = checked(row, CHECKSUM)[:2]
            ids[state].append(number)
            n_lost += state == FAIL and row[SEEN_AT] == row[TOLD_AT]  # as `Entry.is_lost`
            if row[DIAGNOSTICS] is not None:
                last = max(last, (row[ASKED_AT], number))
            if names and state == COMPLETE:
                measured = from_json(row[CONSTRAINTS])
                is_feasible = all(aims.limits[name].holds(value) for name, value in measured.items())
                n_feasible[measured.keys() >= names] += is_feasible
        where = {"space": file.spaces[-1].text.get("parameters"), "arms": _n_arms(file.spaces[-1])}
        rules = file.options["feasible"]
    return {
        **where,
        **({"rules": rules} if isinstance(rules, list) else {}),
        "complete": len(ids[COMPLETE]),
        **({"feasible": n_feasible[1] or n_feasible[0]} if names else {}),
        "running": sorted(ids[RUNNING]),
        "queued": sorted(ids[WAITING]),
        "failed": len(ids[FAIL]) - n_lost,
        "lost": n_lost,
        "last_ask": _last_ask(file, last[1]),
    }


def _last_ask(file: LogFile, number: int) -> Row | None:
    entry, _ = file.entry(number)
    return None if entry is None or entry.diagnostics is None else asdict(entry.diagnostics)


def _trials(file: LogFile) -> list[Trial]:
    """All trials, by id."""
    entries, _ = file.changes(0)
    with file.fits():
        return labelled(sorted(entries, key=lambda entry: entry.trial.id), file.spaces)


def _n_arms(described: Described) -> int | None:
    text = described.text
    if described.is_space:
        return None
    return len(text["rows"]) if "objects" in text else int(text["n_rows"])


def export(args: argparse.Namespace) -> Iterator[Row]:
    """Write the trials as a CSV file."""
    check_other_file("out", args.out, args.state)
    if args.out.lower().endswith(OTHER_TABLES):
        raise ArgumentError(
            f"out: expected the name of a CSV file, got {args.out!r}, whose ending is that of another format; name it "
            "as trials.csv, which spreadsheets open too."
        )
    file = LogFile(args.state)
    trials = _trials(file)
    aims = aims_of(file)
    import io

    if args.out == "-":
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # as in a file, whatever the terminal shows
        _write_table(sys.stdout, trials, aims)
        return
    from bkbopt._support.replacing import replace_atomically

    def write(raw: IO[bytes]) -> None:
        text = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        _write_table(text, trials, aims)
        text.detach()

    replace_atomically(args.out, write)
    yield {"export": args.out, "trials": len(trials)}


def _write_table(out: IO[str], trials: list[Trial], aims: Aims) -> None:
    columns = table_of(trials, len(aims.directions), aims.objectives)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(as_cell, row) for row in zip(*columns.values(), strict=True))
    out.flush()


# -- lost trials -------------------------------------------------------------------------------------------------------


def recover(args: argparse.Namespace) -> Iterator[Row]:
    """Fail running trials without a recent heartbeat, or list them."""
    if args.older_than is None and not args.list:
        args.parser.error("recover: expected --older-than SECONDS or --list")
    file, seconds, now = LogFile(args.state), args.older_than or 0.0, utc_now()
    silent = [entry for entry in running(file) if entry.silence(now) >= seconds]
    if args.list:
        for entry in silent:
            asked = entry.trial.asked_at or now
            yield {
                "id": entry.trial.id,
                "seconds_running": (now - asked).total_seconds(),
                "seconds_silent": entry.silence(now),
                "has_heartbeat": entry.seen_at is not None,
                **point(entry.trial.params, entry.trial.index),
            }
        return
    aims, numbers = aims_of(file), [entry.trial.id for entry in silent]
    for trial in lose(file, numbers, older_than=seconds, enqueue=args.enqueue):
        yield finished(aims, trial)
