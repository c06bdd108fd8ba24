"""Cases of files that are removed, replaced or locked by others; see `disks`."""

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bkbopt as bo
from bkbopt._support import sqlite
from bkbopt.errors import StateFileError, StorageError
from bkbopt.optimizer.log import log_file
from tests.faults.disk_cases import AS_IT_SHOULD, Case, case, goes_on, made, many, refused
from tests.faults.processes import ended, forked
from tests.faults.rows import FAILED


@case("no such folder: a new log")
def _no_folder(folder: Path) -> str:
    try:
        made(folder / "none" / "run.db")
    except FileNotFoundError as error:
        return AS_IT_SHOULD if "make it first" in str(error) else f"{FAILED}: said {error}"
    return f"{FAILED}: it was made"


def _moved(call: Callable[[bo.Optimizer], Any], away: Callable[[Path], Any], back: Callable[[Path], Any]) -> Case:
    def tried(folder: Path) -> str:
        place = folder / "place"
        place.mkdir()
        opt = made(place / "run.db")
        away(place)
        wrong = refused(opt, lambda: call(opt), "removed or replaced")
        back(place)
        return wrong or goes_on(opt, lambda: call(opt))

    return tried


def _aside(place: Path) -> None:
    (place / "run.db").rename(place / "old.db")


def _put_back(place: Path) -> None:
    (place / "old.db").rename(place / "run.db")


def _another(place: Path) -> None:
    _aside(place)
    made(place / "run.db", 1)


case("file removed: ask")(_moved(lambda opt: opt.ask(), _aside, _put_back))
case("file removed: tell")(_moved(lambda opt: opt.tell({"x": 0.1}, 1.0), _aside, _put_back))
case("file replaced: ask")(_moved(lambda opt: opt.ask(), _another, _put_back))
case("file replaced: tell")(_moved(lambda opt: opt.tell({"x": 0.1}, 1.0), _another, _put_back))
case("folder removed: tell")(
    _moved(
        lambda opt: opt.tell({"x": 0.1}, 1.0),
        lambda place: place.rename(place.parent / "away"),
        lambda place: (place.parent / "away").rename(place),
    )
)


def _half_way(path: Path) -> sqlite3.Connection:
    """A change that is in the file in part, with a journal that would undo it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN")
    connection.execute("UPDATE log SET params = params || '  '")
    return connection


def _saved(folder: Path, then: Callable[[sqlite3.Connection], Any]) -> str:
    """Save over a log that a process has changed half-way, and `then` does something else."""
    path, (reading, writing) = folder / "run.db", os.pipe()
    mine, other = made(path, 0), made(folder / "other.db", 7)
    for each in (mine, other):  # as large as each other: pages of the old one fit into the new one
        many(each)

    def changes() -> None:
        connection = _half_way(path)
        os.write(writing, b"!")
        then(connection)

    pid = forked(changes)
    os.read(reading, 1)
    if not (folder / "run.db-journal").exists():
        return f"{FAILED}: the case is none: there is no journal"
    other.save(path)
    found = bo.Optimizer.open(path).trials  # at once: a journal that was still there would be played back
    ended(pid)
    if found != other.trials or bo.Optimizer.open(path).trials != found:
        return f"{FAILED}: other trials"
    return refused(mine, mine.ask, "removed or replaced") or AS_IT_SHOULD


@case("save over the log of a process that was killed half-way")
def _saved_over(folder: Path) -> str:
    return _saved(folder, lambda _: os.kill(os.getpid(), signal.SIGKILL))


@case("save over a log while another process changes it")
def _saved_over_changing(folder: Path) -> str:
    return _saved(folder, lambda connection: (time.sleep(1.0), connection.execute("COMMIT")))


def _no_log(make: Callable[[Path], Any], *kinds: type[Exception]) -> Case:
    def tried(folder: Path) -> str:
        path = folder / "run.db"
        make(path)
        content = path.read_bytes() if path.is_file() else None
        for call in (bo.Optimizer.open, bo.Optimizer.load, made):
            try:
                call(path)
            except kinds:
                continue
            return f"{FAILED}: opened"
        same = content is None or path.read_bytes() == content
        return AS_IT_SHOULD if same else f"{FAILED}: the file changed"

    return tried


case("a folder, in place of a log: refused")(_no_log(Path.mkdir, StorageError))
case("a text, in place of a log: refused, unchanged")(_no_log(lambda p: p.write_text("x = 1\n" * 99), StateFileError))
case("another database, in place of a log: refused, unchanged")(
    _no_log(lambda p: sqlite3.connect(p).execute("CREATE TABLE t (x)").connection.close(), StateFileError)
)
case("a pipe, in place of a log: refused")(_no_log(os.mkfifo, StorageError, StateFileError))
case("/dev/full, in place of a log: refused")(
    _no_log(lambda p: p.symlink_to("/dev/full"), StorageError, StateFileError)
)
case("a link to itself, in place of a log: refused")(_no_log(lambda p: p.symlink_to(p), StorageError, OSError))

NAMES = ["a b.db", "a?b.db", "a#b.db", "a%41.db", "ü€.db", "a\nb.db", "a'b\".db", "\udcff.db", "x" * 240, "file:a.db"]


@case(f"{len(NAMES)} unusual names of files")
def _names(folder: Path) -> str:
    for i, name in enumerate(NAMES):
        opt = made(folder / name, 2)
        made(folder / name, 1)
        if len(opt.trials) != 3 or len(os.listdir(folder)) != 2 * (i + 1):
            return f"{FAILED}: {name!r}: {os.listdir(folder)}"
    return AS_IT_SHOULD


# -- others that hold the file -----------------------------------------------------------------------------------------


def _held(block: Callable[[bo.Optimizer], Any], call: Callable[[bo.Optimizer], Any]) -> Case:
    def tried(folder: Path) -> str:
        path = folder / "run.db"
        opt = made(path)
        reading, writing = os.pipe()

        def holds() -> None:
            other = bo.Optimizer.open(path)
            with block(other):
                os.write(writing, b"!")
                os.kill(os.getpid(), signal.SIGSTOP)

        pid = forked(holds)
        os.read(reading, 1)
        sqlite.PATIENCE = log_file.PATIENCE = 0.5
        wrong = refused(opt, lambda: call(opt), "another process has held" if block is _asks else "locked by another")
        sqlite.PATIENCE = log_file.PATIENCE = 600.0
        subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -CONT {pid}"])
        outcome = wrong or goes_on(opt, lambda: call(opt))  # it waits
        return outcome if ended(pid) == 0 else f"{FAILED}: the other process failed"

    return tried


def _writes(opt: bo.Optimizer) -> Any:
    return opt._core.file.transaction()


def _asks(opt: bo.Optimizer) -> Any:
    return opt._core.file.asking()


case("stopped process (SIGSTOP) that writes: tell gives up after a while, or waits until it goes on")(
    _held(_writes, lambda opt: opt.tell({"x": 0.2}, 1.0))
)
case("stopped process (SIGSTOP) that asks: ask gives up after a while, or waits until it goes on")(
    _held(_asks, lambda opt: opt.ask())
)
