"""Paths as users write them."""

import os

__all__ = ["at_home"]


def at_home(path: str | os.PathLike[str]) -> str:
    """The path as text, with a leading `~` as the home folder, as in a shell."""
    return os.path.expanduser(os.fspath(path))
