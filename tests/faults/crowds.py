"""Many processes and threads on one log, and long runs.

| outcome         | meaning                                                                                      |
| --------------- | -------------------------------------------------------------------------------------------- |
| exact           | each call is in the log once: no trial is missing, none is there twice, values are theirs    |
| FAILED ...      | anything else, or a process that hangs                                                       |

A row of a long run says its figures.
"""

import contextlib
import functools
import gc
import os
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bkbopt as bo
from bkbopt.errors import BkbError
from tests.faults.processes import HANG, Acknowledgements, acknowledged, ended, forked, warm
from tests.faults.rows import FAILED, Row
from tests.memory import memory_folder

__all__ = ["forks", "forks_beside_a_thread", "makers", "processes", "readers", "rows", "soak", "threads"]

#: More start-up trials than there will be trials: no model.
NO_MODEL = 10**6
#: Asks that are timed at a time.
ASKS = 20
GRID = {"i": bo.Int(0, 99), "j": bo.Int(0, 99)}


def value_of(trial: bo.Trial) -> float:
    """The value of a trial."""
    return float(trial.params["i"]) / 3.0 - trial.params["j"] / 7.0


def opened(path: Path | None, startup: int = NO_MODEL, space: Any = None) -> bo.Optimizer:
    """An optimizer that proposes nothing twice."""
    return bo.Optimizer(
        GRID if space is None else space, seed=0, n_startup_trials=startup, duplicates="avoid", storage=path
    )


def work(path: Path, notes: Path, n: int, startup: int) -> None:
    """Ask and tell this number of times."""
    opt, said = opened(path, startup), Acknowledgements(notes)
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, value_of(trial))
        said.add("told", id=trial.id, params=trial.params)


@contextlib.contextmanager
def load(busy: int) -> Iterator[None]:
    """Processes that only compute, as load."""

    def spin() -> None:
        while True:
            pass

    pids = [forked(spin) for _ in range(busy)]
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def all_end(pids: Sequence[int], seconds: float = 10.0 * HANG) -> str | None:
    """Errors of processes; None where all ended well."""
    try:
        statuses = [ended(pid, seconds) for pid in pids]
    except TimeoutError as error:
        return f"{FAILED}: {error}"
    return None if not any(statuses) else f"{FAILED}: exit statuses {statuses}"


def exact(trials: Sequence[bo.Trial], said: Sequence[dict[str, Any]], n: int) -> str:
    """Whether these are the expected number of trials, each acknowledged once, without repeated points."""
    if [trial.id for trial in trials] != list(range(n)) or sorted(line["id"] for line in said) != list(range(n)):
        return f"{FAILED}: {len(trials)} trials and {len(said)} acknowledgements instead of {n}"
    if any(trials[line["id"]].params != line["params"] for line in said):
        return f"{FAILED}: a trial has other parameters"
    if any(trial.values != (value_of(trial),) for trial in trials):
        return f"{FAILED}: a trial has another value"
    points = {tuple(trial.params.values()) for trial in trials}
    return "exact" if len(points) == n else f"{FAILED}: {n - len(points)} points twice"


def processes(folder: Path, count: int, each: int, *, startup: int = NO_MODEL, busy: int = 0) -> Row:
    """Processes that ask and tell on one file."""
    warm()
    folder.mkdir()
    path, notes = folder / "run.db", [folder / f"notes-{i}" for i in range(count)]
    opened(path, startup)
    start = time.monotonic()
    with load(busy):
        wrong = all_end([forked(functools.partial(work, path, note, each, startup)) for note in notes])
    said = [line for note in notes for line in acknowledged(note)]
    outcome = wrong or exact(bo.Optimizer.open(path).trials, said, count * each)
    words = f"{count} processes, {each} ask and tell each, on one file"
    words += " with a model" if startup < NO_MODEL else ""
    words += f", beside {busy} busy processes" if busy else ""
    seconds = (time.monotonic() - start) / (count * each)
    return Row(words, {f"{outcome}, {1000 * seconds:.0f} ms a trial": 1}, count * each, "trials")


def makers(folder: Path, count: int, rounds: int) -> Row:
    """Processes that make the same new file at once, and ask and tell once."""
    warm()
    folder.mkdir()
    outcomes: dict[str, int] = {}
    for i in range(rounds):
        path, notes = folder / f"{i}.db", [folder / f"notes-{i}-{j}" for j in range(count)]
        wrong = all_end([forked(functools.partial(work, path, note, 1, NO_MODEL)) for note in notes])
        said = [line for note in notes for line in acknowledged(note)]
        outcome = wrong or exact(opened(path).trials, said, count)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return Row(f"{count} processes make the same new file at once", outcomes, unit="files")


def readers(folder: Path, each: int) -> Row:
    """Four writers, and four readers that see only consistent states."""
    warm()
    folder.mkdir()
    path, notes = folder / "run.db", [folder / f"notes-{i}" for i in range(4)]
    opened(path)
    writers = [forked(functools.partial(work, path, note, each, NO_MODEL)) for note in notes]
    pids = [forked(functools.partial(_read, path, 4 * each, anew)) for anew in (False, False, True, True)]
    wrong = all_end([*writers, *pids])
    said = [line for note in notes for line in acknowledged(note)]
    outcome = wrong or exact(bo.Optimizer.open(path).trials, said, 4 * each)
    return Row(f"4 writers and 4 readers on one file, {each} ask and tell each", {outcome: 1}, 4 * each, "trials")


def _read(path: Path, n: int, anew: bool) -> None:
    """Read until all trials are told; `anew` opens the file each time."""
    opt, before, deadline = bo.Optimizer.open(path), 0, time.monotonic() + 5.0 * HANG
    while before < n:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{before} of {n} trials after {5.0 * HANG:g} s")
        opt = bo.Optimizer.open(path) if anew else opt
        trials = opt.trials
        told = [trial for trial in trials if trial.values]
        if len(told) < before or [trial.id for trial in trials] != list(range(len(trials))):
            raise AssertionError("a reader saw trials go, or ids with gaps")
        if any(trial.value != value_of(trial) for trial in told):
            raise AssertionError("a reader saw another value")
        before = len(told)


def threads(folder: Path, count: int, each: int, *, on_disk: bool) -> Row:
    """Threads that share one optimizer."""
    warm()
    folder.mkdir()
    opt = opened(folder / "run.db" if on_disk else None)
    said: list[dict[str, Any]] = []
    errors: list[str] = []

    def asks() -> None:
        try:
            for _ in range(each):
                trial = opt.ask()
                opt.tell(trial, value_of(trial))
                said.append({"id": trial.id, "params": trial.params})
        except (BkbError, OSError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            errors.append(f"{FAILED}: {type(error).__name__}: {error}")

    running = [threading.Thread(target=asks) for _ in range(count)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(HANG)
    outcome = errors[0] if errors else exact(opt.trials, said, count * each)
    if on_disk and bo.Optimizer.load(folder / "run.db").trials != opt.trials:
        outcome = f"{FAILED}: the file has other trials"
    where = "with a file" if on_disk else "in memory"
    return Row(
        f"{count} threads on one optimizer {where}, {each} ask and tell each", {outcome: 1}, count * each, "trials"
    )


def forks(folder: Path, count: int, each: int) -> Row:
    """An open optimizer goes on in its process and in copies of the process."""
    warm()
    folder.mkdir()
    opt, notes = opened(folder / "run.db"), [folder / f"notes-{i}" for i in range(count + 1)]

    def go_on(note: Path) -> None:
        said = Acknowledgements(note)
        for _ in range(each):
            trial = opt.ask()
            opt.tell(trial, value_of(trial))
            said.add("told", id=trial.id, params=trial.params)

    pids = []
    for i in range(count):
        pids.append(forked(functools.partial(go_on, notes[i])))
        trial = opt.ask()
        opt.tell(trial, value_of(trial))
        Acknowledgements(notes[count]).add("told", id=trial.id, params=trial.params)
    go_on(notes[count])
    wrong = all_end(pids)
    said = [line for note in notes for line in acknowledged(note)]
    n = (count + 1) * each + count
    return Row(
        f"fork with an open optimizer: the process and {count} copies go on",
        {wrong or exact(opt.trials, said, n): 1},
        n,
        "trials",
    )


def forks_beside_a_thread(folder: Path, count: int) -> Row:
    """Copies of a process, made while a thread of it asks and tells, go on with its optimizer or open the file anew."""
    warm()
    folder.mkdir()
    path, n, outcomes = folder / "run.db", 0, Counter[str]()
    opt, is_over = opened(path), threading.Event()

    def goes_on() -> None:
        while not is_over.is_set():
            trial = opt.ask()
            opt.tell(trial, value_of(trial))

    def once(anew: bool) -> None:
        mine = bo.Optimizer.open(path) if anew else opt
        trial = mine.ask()
        mine.tell(trial, value_of(trial))

    thread = threading.Thread(target=goes_on)
    thread.start()
    for i in range(count):
        time.sleep(0.01)
        wrong = all_end([forked(functools.partial(once, i % 2 == 0))], HANG)
        outcomes[wrong or "exact"] += 1
    is_over.set()
    thread.join(HANG)
    n = len(opt.trials)
    found = exact(opt.trials, [{"id": trial.id, "params": trial.params} for trial in opt.trials], n)
    outcomes.update([] if found == "exact" else [found])
    return Row("fork while a thread asks and tells: the copy goes on, or opens the file anew", outcomes, unit="forks")


def soak(folder: Path, tells: int, early: int) -> Row:
    """A long run with a model and copies saved: memory, and the time of an ask early and late."""
    warm()
    folder.mkdir()
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0, storage=folder / "run.db")
    seconds: dict[int, float] = {}
    memory: dict[int, float] = {}
    rng = np.random.default_rng(0)
    while (n := len(opt.trials)) < tells:
        if n in (early, tells - ASKS):
            memory[n] = _rss()
            seconds[n] = _median_ask(opt)
            if n == early:  # what the first model needs once is there
                memory[n] = _rss()
        else:
            x, y = rng.random(2)
            opt.tell({"x": float(x), "y": float(y)}, float((x - 0.3) ** 2 + y + 0.1 * rng.standard_normal()))
        if n % (tells // 20) == 0:
            opt.save(folder / "copy.db")
    opt.save(folder / "copy.db")
    (_, first), (late, last) = seconds.items()
    said = (
        f"median ask {1000 * first:.0f} ms at {early:,} and {1000 * last:.0f} ms at {late:,} trials, "
        f"{memory[late] - memory[early]:+.0f} MB of memory in between, {_rss() - memory[early]:+.0f} MB with the model"
    )
    names = sorted(os.listdir(folder))
    fine = bo.Optimizer.load(folder / "copy.db").trials == opt.trials and names == ["copy.db", "run.db", "run.db.lock"]
    words = "a long loop of tells, with asks and 20 copies saved"
    return Row(words, {said if fine else f"{FAILED}: {names}, or other trials": 1}, tells, "tells")


def _median_ask(opt: bo.Optimizer) -> float:
    """Seconds of an ask after all told values are learnt."""
    taken = []
    for _ in range(ASKS):
        start = time.perf_counter()
        trial = opt.ask()
        taken.append(time.perf_counter() - start)
        opt.tell(trial, (trial.params["x"] - 0.3) ** 2 + trial.params["y"])
    return sorted(taken)[ASKS // 2]


def _rss() -> float:
    """MB of memory that this process has."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def rows(quick: bool) -> Iterator[Row]:
    """All harnesses, on a real disk; the long run in memory, since it tests the program."""
    n = 10 if quick else 1
    with (
        tempfile.TemporaryDirectory(prefix="crowds-") as name,
        tempfile.TemporaryDirectory(dir=memory_folder()) as fast,
    ):
        folder = Path(name)
        harnesses: list[Callable[[], Row]] = [
            lambda: processes(folder / "a", 8, 250 // n),
            lambda: processes(folder / "b", 8, 250 // n, busy=10),
            lambda: processes(folder / "c", 4, 20 // n, startup=4),
            lambda: makers(folder / "d", 8, 50 // n),
            lambda: readers(folder / "e", 100 // n),
            lambda: threads(folder / "f", 8, 100 // n, on_disk=True),
            lambda: threads(folder / "g", 8, 100 // n, on_disk=False),
            lambda: forks(folder / "h", 4, 50 // n),
            lambda: forks_beside_a_thread(folder / "j", 100 // n),
            lambda: soak(Path(fast) / "i", 20_000 // n, 2_000 // n),
        ]
        for harness in harnesses:
            yield harness()
