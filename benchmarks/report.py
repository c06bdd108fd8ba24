"""Shared by the programs: aligned tables, conditions of a run, thread limits, clocks and memory."""

import os
import platform
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import numpy as np
import scipy
import torch
from threadpoolctl import threadpool_limits

import bkbopt

__all__ = ["DATA", "MB", "Clock", "MemoryWatch", "conditions", "limited_threads", "measuring", "print_table", "rss_mb"]

#: The folder of data sets, NAME.npz with arrays X (n, d) and y (n,), where it is there.
DATA = Path("../shared/data")
MB = 2**20


class Clock:
    """Adds up the wall-clock and processor seconds spent in its `with` blocks, which must not nest.

    On a machine under load, processor time on one thread varies less.
    """

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def __enter__(self) -> "Clock":
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.wall += time.perf_counter() - self._start[0]
        self.cpu += time.process_time() - self._start[1]


@contextmanager
def limited_threads(n: int) -> Iterator[None]:
    """Limit torch and the BLAS of numpy and scipy to n threads, and give both their settings back."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        with threadpool_limits(limits=n):
            yield
    finally:
        torch.set_num_threads(before)


def conditions(threads: int) -> str:
    """One line: versions, threads, processors and the load of the machine."""
    others = (sys.modules[name] for name in ("optuna", "botorch") if name in sys.modules)
    packages = (f", {package.__name__} {package.__version__}" for package in (bkbopt, torch, np, scipy, *others))
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    where = f"{threads} thread(s) for torch and for BLAS; {os.cpu_count()} processors{load}"
    return f"python {platform.python_version()}{''.join(packages)}; {where}"


@contextmanager
def measuring(threads: int) -> Iterator[None]:
    """`limited_threads`; the conditions are printed before and after, since the load may change."""
    with limited_threads(threads):
        print(conditions(threads), flush=True)
        yield
        print(conditions(threads))


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]], note: str = "") -> None:
    """Print a title, aligned columns (the first to the left, numbers to four digits) and a note."""
    cells = [list(header), *([_text(value) for value in row] for row in rows)]
    widths = [max(len(row[j]) for row in cells) for j in range(len(header))]
    print(f"\n{title}")
    for row in cells:
        padded = [c.ljust(w) if j == 0 else c.rjust(w) for j, (c, w) in enumerate(zip(row, widths, strict=True))]
        print("  " + "  ".join(padded).rstrip())
    if note:
        print(f"  {note}")
    sys.stdout.flush()


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1_000 else f"{value:.4g}"
    return "-" if value is None else str(value)


def rss_mb() -> float:
    """Memory that the process holds now, MB; its peak where the system does not report it."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize() / MB
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / MB if sys.platform == "darwin" else peak / 1024


class MemoryWatch:
    """The most memory held in its `with` block, MB, looked at by `read` every few milliseconds in a thread."""

    def __init__(self, read: Callable[[], float] = rss_mb) -> None:
        self._read = read

    def __enter__(self) -> "MemoryWatch":
        self.before = self.peak = self._read()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.005):
            self.peak = max(self.peak, self._read())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()
        self.peak = max(self.peak, self._read())
