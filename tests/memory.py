"""A folder in memory for the files of tests."""

import os
import shutil

__all__ = ["memory_folder"]

#: Bytes that have to be free: a run of all tests leaves far less behind, but containers may have very little.
LEAST = 2**30


def memory_folder() -> str | None:
    """A folder in memory with room for the files of tests, if there is one: none of them needs a real disk."""
    folder = "/dev/shm"
    return folder if os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > LEAST else None
