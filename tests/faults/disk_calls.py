"""Disk calls of a program, recorded or made to fail by `disk_calls.c` (LD_PRELOAD)."""

import ctypes
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

__all__ = ["Call", "Kind", "arm", "calls", "missing", "read", "run"]

HEAD = struct.Struct("<7q")


class Kind(IntEnum):
    """What is asked; the numbers are those of `disk_calls.c`."""

    ANY = 0
    WRITE = 1
    TRUNCATE = 2
    SYNC = 3
    CREATE = 4
    UNLINK = 5
    RENAME = 6
    LOCK = 7


@dataclass(frozen=True)
class Call:
    """A call that a program has made.

    Attributes:
        kind: what was asked.
        path: of the file; of a folder that is synchronised, its own.
        offset: of a write; the new size where a file is cut.
        content: bytes that were written.
        to: the new name of a renamed file.
        known: whether there was such a file.
    """

    kind: Kind
    path: str
    offset: int
    content: bytes
    to: str
    known: bool


def missing() -> str | None:
    """Reason why calls cannot be recorded here; None where they can."""
    if not sys.platform.startswith("linux"):
        return "calls are recorded by LD_PRELOAD, which is Linux's"
    return None if shutil.which("gcc") else "there is no gcc to compile disk_calls.c"


def run(program: list[str], folder: Path, record: Path | None, beside: Path, seconds: float = 300.0) -> str:
    """Run Python with arguments, in front of the files of a folder; its output.

    Args:
        program: arguments of Python.
        folder: whose calls are recorded.
        record: file to record them in, None for none.
        beside: folder for the compiled library.
        seconds: after which it is taken to hang.

    Raises:
        AssertionError: it failed; the text is its output.
    """
    library = beside / "disk_calls.so"
    if not library.exists():
        source = str(Path(__file__).with_suffix(".c"))
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), source, "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library), "FAULT_FOLDER": str(folder), "OMP_NUM_THREADS": "1"}
    if record is not None:
        environment["FAULT_RECORD"] = str(record)
    done = subprocess.run(
        [sys.executable, *program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    if done.returncode:
        raise AssertionError(f"{program} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def read(record: Path) -> Iterator[Call]:
    """The calls of a record, in order."""
    content, at = record.read_bytes(), 0
    while at < len(content):
        kind, inode, offset, length, n_path, n_to, _ = HEAD.unpack_from(content, at)
        at += HEAD.size
        path, to = content[at : at + n_path], content[at + n_path : at + n_path + n_to]
        at += n_path + n_to
        size = length if kind == Kind.WRITE else 0
        yield Call(Kind(kind), path.decode(), offset, content[at : at + size], to.decode(), inode != 0)
        at += size


def arm(kind: Kind, n: int, error: int, *, once: bool = False) -> None:
    """Within a program started by `run`: the n-th call of that kind from now on fails, optionally all later ones too.

    Where `n` is 0, none does. `Kind.ANY` counts all calls that may change something.
    """
    ctypes.CDLL(None).fault_arm(int(kind), ctypes.c_long(n), error, int(once))


def calls() -> int:
    """How many calls of the armed kind there were."""
    count: int = ctypes.CDLL(None).fault_calls()
    return count
