"""Forked processes, which start at once and may be killed.

What such a process has done it says in a file of its own, a line of JSON for each call that has returned
(`Acknowledgements`): what stands there was promised to a user.
"""

import contextlib
import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

__all__ = ["HANG", "Acknowledgements", "acknowledged", "ended", "forked", "in_child", "killed", "warm"]

#: Seconds after which a process that does not end is taken to hang.
HANG = 300.0


def warm() -> None:
    """Import what an optimizer needs, so that the copies need not; one thread, since pools do not survive a fork."""
    import bkbopt.optimizer.optimizer  # noqa: F401

    torch.set_num_threads(1)


def forked(work: Callable[[], Any]) -> int:
    """The id of a copy of this process that does `work`; its status is 1 where that raised."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest may have threads; the copy does not use them
        pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001  # it must not go on as a copy of the tests
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def ended(pid: int, seconds: float = HANG) -> int:
    """The exit status of a process, negative where a signal ended it.

    Raises:
        TimeoutError: it hangs; it was killed.
    """
    deadline = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise TimeoutError(f"process {pid} did not end within {seconds:g} s")
        time.sleep(0.002)


def killed(pid: int) -> bool:
    """Kill a process at once; whether that is what ended it."""
    os.kill(pid, signal.SIGKILL)
    return ended(pid) == -signal.SIGKILL


def in_child(work: Callable[[], Any]) -> Any:
    """The result of `work` in a copy of this process; an error's text begins with "FAILED"."""
    reading, writing = os.pipe()

    def said() -> None:
        try:
            found = work()
        except BaseException as error:
            found = f"FAILED: {type(error).__name__}: {error}"
            raise
        finally:
            with open(writing, "w") as file:
                json.dump(found, file)

    pid = forked(said)
    os.close(writing)
    with open(reading) as file:
        text = file.read()
    ended(pid)
    return json.loads(text) if text else "FAILED: it said nothing"


class Acknowledgements:
    """A file of lines, each on the disk when `add` returns."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def add(self, what: str, **more: Any) -> None:
        """Record a call that has returned."""
        os.write(self.descriptor, json.dumps({"what": what, **more}).encode() + b"\n")
        os.fsync(self.descriptor)


def acknowledged(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a file of acknowledgements."""
    for line in path.read_bytes().split(b"\n")[:-1] if path.exists() else ():
        yield json.loads(line)
