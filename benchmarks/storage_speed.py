"""Times of a log in a file, beside Optuna's storages on the same disk, as the number of trials grows.

Run it as `python -m benchmarks.storage_speed`: for 100, 1,000 and 10,000 trials of six floats (100,000 with `--full`)
the seconds to open a log, milliseconds of an ask and of a tell, and seconds of an export.

An ask is one of the start-up design, so that the log is timed and not a model; `box_speed` times models. The calls of
our log, of Optuna's SQLite storage and of its journal file alternate. Optuna's studies ask with their random sampler,
and are written by their own bulk method, `add_trials`. A second table has the time of a new process that opens a log
and asks with a model, and of whole commands of the shell.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import optuna

import bkbopt as bo
from benchmarks.arguments import Arguments
from benchmarks.report import measuring, print_table
from benchmarks.samplers import quiet_optuna

__all__ = ["main"]

NAMES = [f"x{j}" for j in range(6)]
SPACE = {name: bo.Float(0.0, 1.0) for name in NAMES}
#: Calls of which the median is taken.
CALLS = 25
#: Commands of the shell of which the median is taken.
COMMANDS = 5
#: Start-up trials, more than any log here has.
STARTUP = 10**9


@dataclass
class Timed:
    """A log or study of so many trials: seconds to open it, then of single calls."""

    open: float
    ask: Callable[[], object]
    tell: Callable[[object], None]
    export: Callable[[], None]
    size: int


def rows_of(n: int) -> list[dict[str, float]]:
    X = np.random.default_rng(0).random((n, len(NAMES)))
    return [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]


def ours(folder: Path, n: int) -> Timed:
    path = folder / f"ours{n}.db"
    rows = rows_of(n)
    bo.Optimizer(SPACE, storage=path, seed=0, n_startup_trials=STARTUP).tell(rows, [sum(r.values()) for r in rows])
    start = time.perf_counter()
    opt = bo.Optimizer.open(path)
    opened = time.perf_counter() - start
    out = folder / "ours.csv"
    return Timed(
        opened,
        opt.ask,
        lambda trial: opt.tell(trial, 1.0) and None,
        lambda: opt.trials_dataframe().to_csv(out),
        path.stat().st_size,
    )


def optunas(folder: Path, n: int, kind: str) -> Timed:
    path = folder / f"optuna{n}.{kind}"

    def storage() -> optuna.storages.BaseStorage:
        if kind == "sqlite":
            return optuna.storages.RDBStorage(f"sqlite:///{path}")
        return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))

    space = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in NAMES}
    study = optuna.create_study(storage=storage(), study_name="s")
    study.add_trials(
        [optuna.trial.create_trial(params=r, distributions=space, value=sum(r.values())) for r in rows_of(n)]
    )
    start = time.perf_counter()
    study = optuna.load_study(storage=storage(), study_name="s", sampler=optuna.samplers.RandomSampler(0))
    study.get_trials(deepcopy=False)
    opened = time.perf_counter() - start
    out = folder / "optuna.csv"
    return Timed(
        opened,
        lambda: study.ask(space),
        lambda trial: study.tell(trial, 1.0) and None,
        lambda: study.trials_dataframe().to_csv(out),
        path.stat().st_size,
    )


def seconds_of(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def time_calls(logs: Sequence[Timed]) -> list[tuple[float, float, float]]:
    """Median seconds of an ask and of a tell, and seconds of an export, of each log; the calls in turns."""
    asks: list[list[float]] = [[] for _ in logs]
    tells: list[list[float]] = [[] for _ in logs]
    for _ in range(CALLS):
        for log, ask, tell in zip(logs, asks, tells, strict=True):
            start = time.perf_counter()
            trial = log.ask()
            between = time.perf_counter()
            log.tell(trial)
            tell.append(time.perf_counter() - between)
            ask.append(between - start)
    return [
        (statistics.median(ask), statistics.median(tell), seconds_of(log.export))
        for log, ask, tell in zip(logs, asks, tells, strict=True)
    ]


def of_processes(path: Path) -> tuple[float, ...]:
    """Seconds of the first ask with a model after opening, and of the commands tell, fail and show."""
    opened = bo.Optimizer(SPACE, storage=path, n_startup_trials=10)
    ids = [trial.id for trial in opened.ask(2 * COMMANDS)]
    first = seconds_of(bo.Optimizer.open(path).ask)
    tells = [command("tell", str(path), str(i), "0.5") for i in ids[:COMMANDS]]
    fails = [command("fail", str(path), str(i)) for i in ids[COMMANDS:]]
    shows = [command("show", str(path)) for _ in range(COMMANDS)]
    return (first, *map(statistics.median, (tells, fails, shows)))


def command(*words: str) -> float:
    """Seconds that a command of the shell takes, Python's start included."""
    line = [sys.executable, "-m", "bkbopt.adapters.shell", *words]
    return seconds_of(lambda: subprocess.run(line, check=True, stdout=subprocess.DEVNULL))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = Arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="100,000 trials too, ours only")
    parser.add_argument("--folder", help="on the disk to be timed; by default that of temporary files")
    options = parser.parse_args(arguments)
    sizes = [100, 1_000] if options.quick else [100, 1_000, 10_000] + [100_000] * options.full
    table, processes = [], []
    with measuring(1), quiet_optuna(), tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        bo.Optimizer(SPACE, storage=folder / "first.db", seed=0).ask()  # torch is imported, and the disk awake
        for n in sizes:
            logs = {"bkbopt": ours(folder, n)}
            if n <= 10_000:
                logs |= {f"Optuna, {kind}": optunas(folder, n, kind) for kind in ("sqlite", "journal")}
            for (who, log), (ask, tell, export) in zip(logs.items(), time_calls(list(logs.values())), strict=True):
                table.append((f"{n:,}", who, log.open, 1e3 * ask, 1e3 * tell, export, log.size / 1e6))
            processes.append((f"{n:,}", *of_processes(folder / f"ours{n}.db")))
    print_table(
        f"Logs of n trials, six floats, on {os.fspath(options.folder or tempfile.gettempdir())}",
        ("n", "log", "open, s", "ask, ms", "tell, ms", "export, s", "MB"),
        table,
        "An ask draws a start-up point (ours) or random values (Optuna's); a tell is on the disk when it returns.",
    )
    print_table("Seconds in a process of its own", ("n", "first ask", "tell", "fail", "show"), processes)


if __name__ == "__main__":
    main()
