"""Full disks, and folders and files without permissions, removed or replaced.

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
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bkbopt as bo
from bkbopt.errors import StorageError
from tests.faults import disk_errors, files_gone
from tests.faults.disk_cases import (
    AS_IT_SHOULD,
    CASES,
    LEFT_OUT,
    NOBODY,
    THEN_FINE,
    Case,
    case,
    goes_on,
    made,
    many,
    refused,
    unprivileged,
)
from tests.faults.processes import in_child, warm
from tests.faults.rows import FAILED, Row
from tests.memory import memory_folder

__all__ = ["AS_IT_SHOULD", "CASES", "LEFT_OUT", "THEN_FINE", "files_gone", "outcome", "rows"]


# -- no room -----------------------------------------------------------------------------------------------------------


@contextmanager
def mounted(folder: Path) -> Iterator[bool]:
    """A disk of a megabyte in memory; False without the permission to mount it."""
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


def _forbidden(target: str, mode: int, call: Callable[[bo.Optimizer], Any], n: int = 3) -> Case:
    def tried(folder: Path) -> str:
        place = folder / "place"
        place.mkdir()
        os.chown(place, NOBODY, NOBODY) if os.getuid() == 0 else None

        def work() -> str:
            opt = made(place / "run.db", n)
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
case("file that may not be written: the first ask, which makes the lock file")(
    _forbidden("file", 0o444, lambda opt: opt.ask(), n=0)
)
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


# -- all ---------------------------------------------------------------------------------------------------------------


def outcome(name: str, folder: Path) -> str:
    """Outcome of a case."""
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
