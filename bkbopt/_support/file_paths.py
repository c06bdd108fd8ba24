"""Paths as users write them."""

import os

__all__ = ["at_home", "is_of_log", "names_folder"]


def at_home(path: str | os.PathLike[str]) -> str:
    """The path as text, with a leading `~` as the home folder, as in a shell."""
    return os.path.expanduser(os.fspath(path))


def names_folder(path: str) -> bool:
    """Whether a path can only be that of a folder, by its end; `os.path.realpath` takes "runs.db/" for "runs.db"."""
    return os.path.basename(path) in ("", os.curdir, os.pardir)


def is_of_log(path: str, log: str) -> bool:
    """Whether a path is that of a log, or of a file beside it: SQLite's journals, and the locks of asks and of runs.

    SQLite removes a file in place of a journal, and processes take a file in place of a lock.
    """
    own, ends = os.path.realpath(log), ("", "-journal", "-wal", "-shm", ".lock", ".run", ".run.lock")
    there = os.path.exists(path) and os.path.exists(log) and os.path.samefile(path, log)
    return there or os.path.realpath(path) in [own + end for end in ends]
