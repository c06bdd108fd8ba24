"""Every state of the disk after a power cut, built from the recorded calls of a log's process.

A program makes a log, changes it in all ways and saves copies, and says after each call that has returned what the file
holds (`MARK`). Its calls of the operating system are recorded. For a power cut after each of them the disk is put
together as it may then be:

- what was synchronised is there;
- of the writes and cuts since then any subset is, in any combination of files;
- a write may be torn: any subset of its sectors is there, and a sector that was never written holds zeros or rubbish;
- names that were made, renamed or removed are so up to some moment since the folder was last synchronised.

Every such disk has to hold all that had been said, exactly, and at most the one change that was under way.
"""

import contextlib
import hashlib
import itertools
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import bkbopt as bo
from tests.faults import disk_calls
from tests.faults.disk_calls import Call, Kind
from tests.faults.processes import warm
from tests.faults.rows import FAILED, Row
from tests.memory import memory_folder

__all__ = ["Disk", "cuts", "record", "rows"]

LOG, COPY, MARK = "log.db", "copy.db", "mark"
SPACE = {"x": (0.0, 1.0), "c": bo.Categorical(["red", "green"])}
SECTOR = 512
#: A whole optimizer is opened on one of so many disks, and goes on; of the others the file is read.
EVERY = 25

Names = dict[str, int]
Changes = Sequence[tuple[int, bytes | None]]


# -- what is recorded --------------------------------------------------------------------------------------------------


def work(folder: Path, rows_at_once: int) -> None:
    """Make a log and change it, and print its content after each step."""
    path, copy = folder / LOG, folder / COPY
    with open(folder / MARK, "wb", buffering=0) as marks:

        def said() -> None:
            digests = {file.name: digest(file) for file in (path, copy) if file.exists()}
            marks.write(json.dumps(digests).encode())

        opt = bo.Optimizer(SPACE, seed=0, n_startup_trials=10**6, storage=path)
        said()
        for step in _steps(opt, copy, rows_at_once):
            step()
            said()


def _steps(opt: bo.Optimizer, copy: Path, rows_at_once: int) -> Iterator[Any]:
    rng = np.random.default_rng(0)
    points = [{"x": float(x), "c": "red"} for x in rng.random(rows_at_once)]
    yield opt.ask
    yield lambda: opt.tell(0, 0.25)
    yield lambda: opt.save(copy)
    yield lambda: opt.ask(3)
    yield lambda: opt.enqueue({"x": 0.5})
    yield lambda: opt.tell([1, 2], [1.0, 2.0])
    yield lambda: opt.fail(3)
    yield opt.ask
    yield lambda: opt.heartbeat(4)
    yield lambda: opt.tell(points, rng.random(rows_at_once))
    yield lambda: opt.save(copy)
    yield lambda: opt.set_space({"x": (0.0, 2.0), "c": SPACE["c"], "k": bo.Int(0, 3)})
    yield lambda: opt.ask(2)
    yield lambda: opt.recover(enqueue=True)
    yield opt.ask


def digest(path: Path) -> str:
    """Of all that a log holds; "" of a file without tables."""
    with contextlib.closing(sqlite3.connect(path.as_uri() + "?mode=rw", uri=True)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if not names:
            return ""
        found = [connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall() for name in sorted(names)]
    return hashlib.sha256(repr(found).encode()).hexdigest()


def record(folder: Path, rows_at_once: int) -> list[Call]:
    """The calls of `work`, done in a process of its own."""
    where = folder / "watched"
    where.mkdir(parents=True)
    program = ["-m", "tests.faults.power_loss", str(where), str(rows_at_once)]
    disk_calls.run(program, where, folder / "record", folder)
    return list(disk_calls.read(folder / "record"))


# -- the disk ----------------------------------------------------------------------------------------------------------


@dataclass
class Disk:
    """A folder as the program sees it, and the part of it that is on the disk.

    Attributes:
        folder: its path.
        seen: files by name, as the program sees them.
        safe: files by name, as of the last time the folder was synchronised.
        names: all changes of names since then, each as the names after it.
        content: safe bytes of each file.
        pending: what was written to each file since it was synchronised: places and bytes, None where it was cut.
    """

    folder: str
    seen: Names = field(default_factory=dict)
    safe: Names = field(default_factory=dict)
    names: list[Names] = field(default_factory=list)
    content: list[bytes] = field(default_factory=list)
    pending: list[list[tuple[int, bytes | None]]] = field(default_factory=list)

    def take(self, call: Call) -> None:
        """Replay the program's calls."""
        name = os.path.relpath(call.path, self.folder)
        match call.kind:
            case Kind.CREATE:
                self.content.append(b"")
                self.pending.append([])
                self._rename({**self.seen, name: len(self.content) - 1})
            case Kind.UNLINK if name in self.seen:
                self._rename({other: file for other, file in self.seen.items() if other != name})
            case Kind.RENAME:
                to = os.path.relpath(call.to, self.folder)
                kept = {other: file for other, file in self.seen.items() if other != name}
                self._rename({**kept, to: self.seen[name]})
            case Kind.WRITE:
                self.pending[self.seen[name]].append((call.offset, call.content))
            case Kind.TRUNCATE:
                self.pending[self.seen[name]].append((call.offset, None))
            case Kind.SYNC if name == ".":
                self.safe, self.names = self.seen, []
            case Kind.SYNC:
                file = self.seen[name]
                self.content[file], self.pending[file] = after(self.content[file], self.pending[file]), []

    def _rename(self, names: Names) -> None:
        self.seen = names
        self.names.append(names)

    def cut(self, rng: np.random.Generator, most: int) -> Iterator[dict[str, bytes]]:
        """Files by name as a power cut may leave them: all combinations if there are few, else so many at random."""
        states = [self.safe, *self.names]
        choices: list[tuple[Names, dict[int, Changes]]] = []
        for names in states:
            files = [file for name, file in names.items() if name != MARK and self.pending[file]]
            kinds = [list(_survivors(self.pending[file], rng, most)) for file in files]
            combined = itertools.islice(itertools.product(*kinds), 50 * most)
            choices += [(names, dict(zip(files, chosen, strict=True))) for chosen in combined]
        if len(choices) > most:
            choices = [choices[int(i)] for i in sorted(rng.choice(len(choices), most, replace=False))]
        for names, kept in choices:
            yield {
                name: after(self.content[file], kept.get(file, ()), rng) for name, file in names.items() if name != MARK
            }


def _survivors(pending: Changes, rng: np.random.Generator, most: int) -> Iterator[Changes]:
    """Possible results of writes: all subsets of few, some of many, and torn ones."""
    if len(pending) <= 4:
        yield from (subset for n in range(len(pending) + 1) for subset in itertools.combinations(pending, n))
    else:
        yield from ((), tuple(pending), tuple(pending[:-1]), tuple(pending[1:]))
    for _ in range(max(most // 8, 2)):
        share = float(rng.choice([0.1, 0.5, 0.9]))
        yield tuple(part for change in pending for part in _torn(change) if rng.random() < share)


def _torn(change: tuple[int, bytes | None]) -> Iterator[tuple[int, bytes | None]]:
    offset, content = change
    if content is None:
        yield change
        return
    start = 0
    while start < len(content):
        end = min(start + SECTOR - (offset + start) % SECTOR, len(content))
        yield offset + start, content[start:end]
        start = end


def after(content: bytes, changes: Changes, rubbish: np.random.Generator | None = None) -> bytes:
    """A file after changes; unwritten bytes are zeros or, half of the time, random."""
    if not changes:
        return content
    out = bytearray(content)
    is_rubbish = rubbish is not None and rubbish.random() < 0.5
    for offset, new in changes:
        gap = offset - len(out)
        if gap > 0:
            out += rubbish.bytes(gap) if is_rubbish and rubbish is not None else bytes(gap)
        if new is None:
            del out[offset:]
        else:
            out[offset : offset + len(new)] = new
    return bytes(out)


# -- what has to hold --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cut:
    """A moment of a power cut.

    Attributes:
        said: the last digest of each file that was said, and the next one.
        files: what is on the disk.
    """

    said: dict[str, tuple[str, str]]
    files: dict[str, bytes]


def cuts(calls: Sequence[Call], folder: str, most: int, seed: int = 0) -> Iterator[Cut]:
    """All moments, each with a limited number of possible disks."""
    marks = [json.loads(call.content) for call in calls if Path(call.path).name == MARK and call.content]
    disk, n_said, rng = Disk(folder), 0, np.random.default_rng(seed)
    for call in calls:
        disk.take(call)
        n_said += Path(call.path).name == MARK and bool(call.content)
        now = marks[n_said - 1] if n_said else {}
        following = marks[min(n_said, len(marks) - 1)]
        said = {name: (now.get(name, ""), following.get(name, "")) for name in (LOG, COPY)}
        for files in disk.cut(rng, most):
            yield Cut(said, files)


def check(cut: Cut, folder: Path, *, whole: bool) -> str:
    """Outcome of the files; `whole` opens an optimizer and continues with it."""
    for name, content in cut.files.items():
        (folder / name).write_bytes(content)
    outcome = "intact"
    for name, allowed in cut.said.items():
        path = folder / name
        try:
            found = _found(path, whole=whole)
        except (bo.errors.BkbError, OSError, sqlite3.Error) as error:
            return f"{FAILED}: {name}: {type(error).__name__}: {str(error).replace(str(folder), '')}"
        if found not in allowed:
            return f"{FAILED}: {name} does not hold what was said"
    return outcome


def _found(path: Path, *, whole: bool) -> str:
    """The digest of a log; "" where there is none yet, and one can be made."""
    from bkbopt.optimizer.log.log_file import LogFile

    file = LogFile.existing(path)
    if file is not None:
        file.changes(0)
        file.close()
    found = digest(path) if path.exists() else ""
    if whole and (found or path.name == LOG):
        opt = bo.Optimizer(SPACE, storage=path) if not found else bo.Optimizer.open(path)
        n = len(opt.trials)
        opt.tell(opt.ask(), 1.0)
        if len(bo.Optimizer.load(path).trials) != n + bool(n == len(opt.trials) - 1):
            raise bo.errors.StateFileError("it does not go on")
    return found


def run(folder: Path, most: int, rows_at_once: int) -> Row:
    """Record the calls, and check at most so many disks of each moment."""
    warm()
    calls = record(folder, rows_at_once)
    outcomes: Counter[str] = Counter()
    for i, cut in enumerate(cuts(calls, str(folder / "watched"), most)):
        place = folder / "disk"
        place.mkdir()
        outcomes[check(cut, place, whole=i % EVERY == 0)] += 1
        shutil.rmtree(place)
    marks = sum(bool(call.content) and Path(call.path).name == MARK for call in calls)
    return Row(
        f"power cut after each of {len(calls) - marks} disk operations of a log, and of copies saved of it, "
        "with writes lost, reordered and torn",
        outcomes,
        unit="disks",
    )


def rows(quick: bool) -> Iterator[Row]:
    """The one table row."""
    if (reason := disk_calls.missing()) is not None:
        yield Row("power cut", {f"left out: {reason}": 1})
        return
    with tempfile.TemporaryDirectory(prefix="power-", dir=memory_folder()) as name:
        yield run(Path(name), most=3 if quick else 60, rows_at_once=40 if quick else 6000)


if __name__ == "__main__":
    work(Path(sys.argv[1]), int(sys.argv[2]))
