"""Calls of an optimizer interrupted by `KeyboardInterrupt` or `MemoryError` at any line, and the state after them.

A *scene* is an optimizer at some moment and a call of it, see `interrupted_scenes.py`. The call is played once to list
the lines of bkbopt's own code (and of `contextlib`, whose frames stand between ours) that it runs; then again and again
from the same log, each time ended at one of these lines. After that

- the log has all of the call's effect or none, in memory and in the file;
- nothing is locked: another optimizer on the file asks at once, and no transaction is open;
- what is asked next, and once more after a value was told, is to the last bit what a new optimizer on that log asks;
- settings of torch are what they were, and no file is left beside the log.

    python -m tests.faults.interrupts 2000
"""

import argparse
import contextlib
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import bkbopt as bo
from bkbopt._support import sqlite as support
from bkbopt.errors import BkbError
from bkbopt.optimizer.log import log_file
from tests.faults.interrupted_scenes import SCENES, Scene, told
from tests.faults.rows import FAILED, Row

PACKAGE = str(Path(bo.__file__).parent)
#: Files whose lines are tried one by one; of the others each line is tried where it is first run, and once more.
DENSE = ("logged_designer.py", "log_file.py", "trials.py", "history.py", "models.py", "sqlite.py", "locks.py")
#: Most runs of one line that are tried.
MOST = 6
THREADS = 2

Line = tuple[str, int]


# -- interrupts --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def traced(seen: Callable[[Line], None]) -> Iterator[None]:
    """A block in which `seen` is called for each executed line of the package; its exceptions are raised there."""

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        if not (file.startswith(PACKAGE) or file == contextlib.__file__):
            return None
        if event == "line":
            seen((file, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


def lines_of(scene: Scene, template: Path, folder: Path) -> list[Line]:
    """The lines that the call runs, in order."""
    lines: list[Line] = []
    with opened(scene, template, folder) as opt, traced(lines.append):
        scene.call(opt)
    return lines


def points_of(lines: list[Line], rng: random.Random) -> list[int]:
    """Positions in the list of lines at which to interrupt: each line once, in some files repeatedly."""
    places: dict[Line, list[int]] = {}
    for i, line in enumerate(lines):
        places.setdefault(line, []).append(i)
    out: set[int] = set()
    for (file, _), at in places.items():
        n = MOST if Path(file).name in DENSE else 2
        out.update([at[0], *rng.sample(at, min(n - 1, len(at)))])
    return sorted(out)


@contextlib.contextmanager
def opened(scene: Scene, template: Path, folder: Path) -> Iterator[bo.Optimizer]:
    """An optimizer on a copy of the scene's log, at its moment."""
    path = folder / "runs.db"
    for old in folder.iterdir():
        old.unlink()
    shutil.copyfile(template, path)
    opt = bo.Optimizer.open(path) if scene.stored else bo.Optimizer.load(path)
    scene.prepare(opt)
    yield opt
    opt._core.leave_file()


def interrupt(
    scene: Scene, template: Path, folder: Path, at: int, error: type[BaseException], ends: tuple[Any, Any]
) -> str | None:
    """Errors after an interrupt of the call at line number `at`; None if there are none, "-" if it was not reached."""
    count, hit = iter(range(10**9)), []

    def seen(line: Line) -> None:
        if next(count) == at:
            sys.settrace(None)
            hit.append(line)
            raise error("injected")

    with opened(scene, template, folder) as opt:
        torch.set_num_threads(THREADS)
        kept: BaseException | None = None
        try:
            with traced(seen):
                scene.call(opt)
        except (KeyboardInterrupt, MemoryError, BkbError) as raised:
            kept = raised  # as an interactive session keeps it: frames and what they hold stay alive
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        if not hit:
            return "-"
        if not isinstance(kept, error):
            return f"it came out as {kept!r}"
        if threads != THREADS or not torch.is_grad_enabled():
            return f"{threads} threads, gradients {torch.is_grad_enabled()}"
        try:
            return _wrong(scene, opt, folder, ends)
        except Exception as other:  # noqa: BLE001  # to be shown with the line
            return f"{type(other).__name__}: {other}"


def plain(opt: bo.Optimizer) -> list[Any]:
    """Trials without times, the space, and the rules."""
    now = [repr(opt.space), repr(opt.pool), repr(opt.options["feasible"])]
    return [repr(replace(t, asked_at=None, told_at=None)) for t in opt.trials] + now


def _wrong(scene: Scene, opt: bo.Optimizer, folder: Path, ends: tuple[Any, Any]) -> str | None:
    path = folder / "runs.db"
    if scene.stored:
        core = opt._core
        assert core.file is not None
        connection = core.file._connection
        if connection is not None and connection.in_transaction:
            return "a transaction is open"
        other = bo.Optimizer.open(path)
        before = plain(other)
        with other._core.file.asking():  # type: ignore[union-attr]  # raises where the lock is held
            pass
        with other._core.file.transaction():  # type: ignore[union-attr]
            pass
        if plain(opt) != before:
            return "memory and file differ"
    if plain(opt) not in ends:
        return "neither before nor after"
    extra = {p.name for p in folder.iterdir()} - {"runs.db", "runs.db.lock", "saved"}
    if extra:
        return f"files are left: {extra}"
    return _asks_differ(opt, folder)


def _asks_differ(opt: bo.Optimizer, folder: Path) -> str | None:
    """Whether a new optimizer on the same log suggests other points."""
    opt.save(folder / "copy")
    fresh = bo.Optimizer.load(folder / "copy")
    for turn in range(2):
        mine, other = opt.ask(), fresh.ask()
        if (mine.id, mine.index, mine.params) != (other.id, other.index, other.params):
            return f"ask {turn + 1} is {mine.params}, of a new one {other.params}"
        a, b = (replace(o.diagnostics[-1], ask_seconds=0.0) for o in (opt, fresh))
        if a != b:
            return f"diagnostics {a}, of a new one {b}"
        told(opt, mine), told(fresh, other)
    return None


# -- all of it ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def impatient() -> Iterator[None]:
    """A block with a short time limit for locks."""
    kept = support.PATIENCE, log_file.PATIENCE
    support.PATIENCE = log_file.PATIENCE = 0.3
    try:
        yield
    finally:
        support.PATIENCE, log_file.PATIENCE = kept


@dataclass(frozen=True)
class Found:
    """State after an interrupt."""

    scene: str
    error: str
    line: str
    at: int
    wrong: str | None


def sweep(scene: Scene, seed: int, limit: int | None = None) -> Iterator[Found]:
    """Interrupt the call of a scene at up to `limit` of its lines."""
    rng = random.Random(f"{seed} {scene.name}")
    with tempfile.TemporaryDirectory() as made_in, impatient():
        template, folder = Path(made_in) / "template.db", Path(made_in) / "work"
        folder.mkdir()
        scene.make().save(template)
        with opened(scene, template, folder) as opt:
            before = plain(opt)
            scene.call(opt)
            ends = (before, plain(opt))
        lines = lines_of(scene, template, folder)  # the second time: the first imports, which runs other lines
        points = points_of(lines, rng)
        if limit is not None and limit < len(points):
            points = sorted(rng.sample(points, limit))
        for at in points:
            error = rng.choice([KeyboardInterrupt, MemoryError])
            file, number = lines[at]
            wrong = interrupt(scene, template, folder, at, error, ends)
            if wrong != "-":
                yield Found(scene.name, error.__name__, f"{Path(file).name}:{number}", at, wrong)


def rows(quick: bool) -> Iterator[Row]:
    """A line for each error, over all scenes."""
    n = -(-(100 if quick else 3_000) // len(SCENES))
    counts: dict[str, Counter[str]] = {}
    for scene in SCENES.values():
        for found in sweep(scene, 0, n):
            outcome = "whole, and goes on" if found.wrong is None else f"{FAILED} in {found.scene}: {found.wrong}"
            counts.setdefault(str(found.error), Counter())[outcome] += 1
    for error, outcomes in sorted(counts.items()):
        yield Row(f"{error} at a line of a call, {len(SCENES)} scenes", outcomes, unit="interrupts")


def main() -> int:
    """Print the findings."""
    parser = argparse.ArgumentParser()
    parser.add_argument("n", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    own = parser.parse_args()
    scenes = [scene for scene in SCENES.values() if own.only in scene.name]
    for scene in scenes:
        counts: Counter[bool] = Counter()
        for found in sweep(scene, own.seed, -(-own.n // len(scenes))):
            counts[found.wrong is None] += 1
            if found.wrong is not None:
                print(f"{found.scene}, {found.error} at {found.line} ({found.at}): {found.wrong[:300]}", flush=True)
        print(f"{scene.name:30} {counts[True]:6} whole, {counts[False]} not", flush=True)
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
