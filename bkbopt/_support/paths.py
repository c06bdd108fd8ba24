"""Paths as users write them."""

import os

__all__ = ["at_home", "names_folder"]


def at_home(path: str | os.PathLike[str]) -> str:
    """The path as text, with a leading `~` as the home folder, as in a shell."""
    return os.path.expanduser(os.fspath(path))


def names_folder(path: str) -> bool:
    """Whether a path can only be that of a folder, by its end; `os.path.realpath` takes "runs.db/" for "runs.db"."""
    return os.path.basename(path) in ("", os.curdir, os.pardir)
