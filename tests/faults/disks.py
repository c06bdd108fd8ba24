"""Disks that are full, folders and files that may not be used, are gone, or are others than they were.

Each case makes a log, spoils something, and expects an answer that is typed and says what to do; the optimizer in
memory and the file have to be as they were, and where the damage is made good the same call has to work. Outcomes:

| outcome           | meaning                                                                          |
| ----------------- | -------------------------------------------------------------------------------- |
| refused, then fine | a `BkbError` or `OSError`; nothing changed; made good, the call works           |
| as it should be   | what the case says held, see its name                                            |
| left out: ...     | what it needs is not here                                                        |
| FAILED ...        | anything else                                                                    |
"""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bkbopt as bo
from bkbopt._support import sqlite
from bkbopt.errors import BkbError, StateFileError, StorageError
from bkbopt.optimizer import log_file
from tests.faults import disk_errors
from tests.faults.power_loss import digest, memory_folder
from tests.faults.processes import ended, forked, in_child, warm
from tests.faults.rows import FAILED, Row

__all__ = ["CASES", "outcome", "rows"]

SPACE = {"x": (0.0, 1.0)}
MANY = 2000
NOBODY = 65534
THEN_FINE, AS_IT_SHOULD, LEFT_OUT = "refused, then fine", "as it should be", "left out"

Case = Callable[[Path], str]
CASES: dict[str, Case] = {}


def case(name: str) -> Callable[[Case], Case]:
    """Enter a function, from a folder to an outcome, into `CASES`; it runs in a process of its own."""

    def entered(function: Case) -> Case:
        CASES[name] = function
        return function

    return entered


def made(path: Path, n: int = 3) -> bo.Optimizer:
    """An optimizer with a log of so many trials."""
    opt = bo.Optimizer(SPACE, seed=0, n_startup_trials=10**6, storage=path)
    for i in range(n):
        opt.tell(opt.ask(), float(i))
    return opt


def many(opt: bo.Optimizer) -> list[bo.Trial] | bo.Trial:
    return opt.tell([{"x": i / MANY} for i in range(MANY)], [1.0] * MANY)


def _state(opt: bo.Optimizer) -> tuple[list[bo.Trial], str | None]:
    """What memory and, where it can be read, the file hold."""
    path = Path(opt.storage or "")
    return list(opt._core.log), digest(path) if os.access(path, os.R_OK) else None


def refused(opt: bo.Optimizer, call: Callable[[], Any], words: str = "") -> str | None:
    """What is wrong with the answer of a call; None where it is an error with these words, and nothing changed."""
    before = _state(opt)
    try:
        call()
    except (BkbError, OSError) as error:
        if words not in str(error):
            return f"{FAILED}: said {error}"
    else:
        return f"{FAILED}: nothing was refused"
    return None if _state(opt) == before else f"{FAILED}: something changed"


def goes_on(opt: bo.Optimizer, call: Callable[[], Any]) -> str:
    """Whether a call works, and the file has what the optimizer has."""
    call()
    opt.tell(opt.ask(), 0.5)
    same = bo.Optimizer.load(opt.storage or "").trials == opt.trials
    return THEN_FINE if same else f"{FAILED}: the file has other trials"


def unprivileged(work: Callable[[], str]) -> str:
    """`work`, done as a user whom permissions bind."""

    def done() -> str:
        if os.getuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return work()

    return str(in_child(done))


# -- no room -----------------------------------------------------------------------------------------------------------


@contextmanager
def mounted(folder: Path) -> Iterator[bool]:
    """A disk of a megabyte in memory; False where that is not allowed."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    is_there = (
        shutil.which("mount") is not None and not subprocess.run(words, capture_output=True, check=False).returncode
    )
    try:
        yield is_there
    finally:
        if is_there:
            subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


def _filled(folder: Path, free: int) -> Path:
    filler = folder / "filler"
    with open(filler, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            file.truncate(max(file.tell() - free, 0))
    return filler


def _full(call: Callable[[bo.Optimizer, Path], Any], free: int) -> Case:
    def tried(folder: Path) -> str:
        disk = folder / "disk"
        with mounted(disk) as is_there:
            if not is_there:
                return f"{LEFT_OUT}: no disk may be mounted"
            opt = made(disk / "run.db")
            filler = _filled(disk, free)
            wrong = refused(opt, lambda: call(opt, disk))
            filler.unlink()
            outcome = wrong or goes_on(opt, lambda: call(opt, disk))
            opt._core.leave_file()
            return outcome

    return tried


case("full disk (1 MB, mounted): ask")(_full(lambda opt, _: opt.ask(), 0))
case("full disk (1 MB, mounted): tell of many, which ends half-way")(_full(lambda opt, _: many(opt), 50_000))
case("full disk (1 MB, mounted): save")(_full(lambda opt, disk: opt.save(disk / "copy.db"), 8_000))


@case("full disk (1 MB, mounted): a new log")
def _full_at_start(folder: Path) -> str:
    disk = folder / "disk"
    with mounted(disk) as is_there:
        if not is_there:
            return f"{LEFT_OUT}: no disk may be mounted"
        filler = _filled(disk, 4096)
        try:
            made(disk / "run.db")
        except StorageError:
            filler.unlink()
        opt = made(disk / "run.db")
        outcome = goes_on(opt, opt.ask)
        opt._core.leave_file()
        return outcome


@case("largest file size (RLIMIT_FSIZE): tell of many")
def _limited(folder: Path) -> str:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    opt, limits = made(folder / "run.db"), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(opt.storage or "") + 20_000, limits[1]))
    wrong = refused(opt, lambda: many(opt))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    return wrong or goes_on(opt, lambda: many(opt))


# -- permissions -------------------------------------------------------------------------------------------------------


def _forbidden(target: str, mode: int, call: Callable[[bo.Optimizer], Any]) -> Case:
    def tried(folder: Path) -> str:
        place = folder / "place"
        place.mkdir()
        os.chown(place, NOBODY, NOBODY) if os.getuid() == 0 else None

        def work() -> str:
            opt = made(place / "run.db")
            spoilt = place if target == "folder" else place / "run.db"
            good = spoilt.stat().st_mode
            opt._core.file.close()  # a file that is open may be written whatever its permissions are
            spoilt.chmod(mode)
            wrong = refused(opt, lambda: call(opt))
            spoilt.chmod(good)
            return wrong or goes_on(opt, lambda: call(opt))

        return unprivileged(work)

    return tried


case("folder that may not be written: ask")(_forbidden("folder", 0o555, lambda opt: opt.ask()))
case("folder that may not be written: tell")(_forbidden("folder", 0o555, lambda opt: opt.tell({"x": 0.5}, 1.0)))
case("folder that may not be entered: tell")(_forbidden("folder", 0o000, lambda opt: opt.tell({"x": 0.5}, 1.0)))
case("file that may not be written: ask")(_forbidden("file", 0o444, lambda opt: opt.ask()))
case("file that may not be written: tell")(_forbidden("file", 0o444, lambda opt: opt.tell({"x": 0.5}, 1.0)))
case("file that may not be read: tell")(_forbidden("file", 0o000, lambda opt: opt.tell({"x": 0.5}, 1.0)))


@case("file and folder that may not be written: reading works")
def _read_only(folder: Path) -> str:
    opt = made(folder / "run.db")
    trials = opt.trials
    os.chmod(folder / "run.db", 0o444)
    os.chmod(folder, 0o555)

    def work() -> str:
        found = bo.Optimizer.open(folder / "run.db")
        return AS_IT_SHOULD if found.trials == trials and found.n_complete == 3 else f"{FAILED}: other trials"

    outcome = unprivileged(work)
    os.chmod(folder, 0o755)
    return outcome


@case("two users share a file of mode 666: both ask and tell")
def _shared(folder: Path) -> str:
    if os.getuid():
        return f"{LEFT_OUT}: only root can be two users"
    os.umask(0o022)
    os.chmod(folder, 0o777)
    path = folder / "run.db"
    opt = made(path, 0)
    os.chmod(path, 0o666)
    opt.tell(opt.ask(), 1.0)

    def work() -> str:
        goes_on(other := bo.Optimizer.open(path), other.ask)
        return AS_IT_SHOULD

    outcome = unprivileged(work)
    goes_on(opt, opt.ask)
    return outcome


@case("permissions, owner and symbolic link: kept by tell and by save")
def _kept(folder: Path) -> str:
    path, link = folder / "run.db", folder / "link.db"
    opt = made(path)
    link.symlink_to(path)
    os.chmod(path, 0o640)
    if os.getuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    before = path.stat()
    opt.tell(opt.ask(), 1.0)
    through = bo.Optimizer.open(link)
    through.tell(through.ask(), 2.0)
    bo.Optimizer.load(path).save(link)
    after = path.stat()
    if (before.st_mode, before.st_uid, before.st_gid) != (after.st_mode, after.st_uid, after.st_gid):
        return f"{FAILED}: {oct(after.st_mode)}, {after.st_uid}"
    names = {"run.db", "link.db", "run.db.lock"}
    return AS_IT_SHOULD if link.is_symlink() and set(os.listdir(folder)) == names else f"{FAILED}: the link is gone"


# -- files that are gone, or others ------------------------------------------------------------------------------------


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


@case("save over the log of a process that was killed half-way")
def _saved_over(folder: Path) -> str:
    path = folder / "run.db"
    made(path, 200)._core.leave_file()

    def cut_off() -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("UPDATE log SET params = params || '  '")
        os.kill(os.getpid(), signal.SIGKILL)

    ended(forked(cut_off))
    if not (folder / "run.db-journal").exists():
        return f"{FAILED}: the case is none: there is no journal"
    other = made(folder / "other.db", 7)
    other.save(path)
    found = bo.Optimizer.open(path)
    return AS_IT_SHOULD if found.trials == other.trials else f"{FAILED}: other trials"


@case("save over a log while another process changes it")
def _saved_over_running(folder: Path) -> str:
    path = folder / "run.db"
    mine, other = made(path, 3), made(folder / "other.db", 7)

    def tells() -> None:
        opt = bo.Optimizer.open(path)
        try:
            while True:
                many(opt)
        except StorageError as error:
            if "removed or replaced" not in str(error):
                raise

    pid = forked(tells)
    while len(bo.Optimizer.open(path).trials) < MANY:
        pass
    other.save(path)
    status, found = ended(pid), bo.Optimizer.open(path)
    if status or found.trials != other.trials:
        return f"{FAILED}: status {status}, or other trials"
    return refused(mine, mine.ask, "removed or replaced") or AS_IT_SHOULD


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


# -- all ---------------------------------------------------------------------------------------------------------------


def outcome(name: str, folder: Path) -> str:
    """What becomes of a case."""
    warm()
    folder.mkdir()
    folder.chmod(0o755)
    return str(in_child(lambda: CASES[name](folder))).replace(str(folder), "")


def rows(quick: bool) -> Iterator[Row]:
    """A row a case, and those of errors of the disk at every call."""
    with tempfile.TemporaryDirectory(prefix="disks-", dir=memory_folder()) as name:
        os.chmod(name, 0o755)
        for i, what in enumerate(CASES):
            yield Row(what, {outcome(what, Path(name) / str(i)): 1})
    yield from disk_errors.rows(quick)
