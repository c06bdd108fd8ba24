"""Processes that use one log are killed at random moments (SIGKILL), and the log is checked.

A worker asks, tells, fails and queues in a loop, and writes down each call that has returned. After a kill the log has
to open, to hold all that was written down with its exact values, and nothing that nobody did; the next ask has to work;
and beside the log there may be `<log>.lock` only, once it was opened (before, the journal of a change that the kill cut
off: `<log>-journal`). Outcomes:

| outcome    | meaning                                                        |
| ---------- | -------------------------------------------------------------- |
| intact     | all of that holds                                              |
| FAILED ... | it does not, or a worker ended before it was killed            |
"""

import contextlib
import functools
import json
import os
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import bkbopt as bo
from bkbopt.adapters.shell import main as shell
from tests.faults.processes import Acknowledgements, acknowledged, forked, killed, warm
from tests.faults.rows import FAILED, Row

__all__ = ["Loops", "check", "loops", "rows", "shells"]

SPACE = {"x": (0.0, 1.0), "k": bo.Int(0, 9), "c": bo.Categorical(["red", "green"])}
SPACE_FILE = """
seed = 0
n_startup_trials = 1000000

[space]
x = { type = "float", low = 0.0, high = 1.0 }
"""
#: More start-up trials than there will be trials: no model.
NO_MODEL = 10**6
#: Seconds after its start until which a process may be killed; it opens the log in the first 0.05.
LONGEST = 0.15


def value_of(params: Mapping[str, Any]) -> float:
    """The value that workers tell; a file that holds another one was damaged."""
    return float(params["x"]) / 3.0 + params["k"] - (0.1 if params["c"] == "red" else 0.0)


@dataclass(frozen=True)
class Loops:
    """Python loops at one log.

    Attributes:
        folder: of the log and of the acknowledgements.
        startup: number of start-up trials.
    """

    folder: Path
    startup: int = NO_MODEL
    notes: list[Path] = field(default_factory=list)

    @property
    def path(self) -> Path:
        """Of the log, in a folder where nothing else is made."""
        return self.folder / "log" / "run.db"

    def opened(self) -> bo.Optimizer:
        """The optimizer, made where there is none."""
        return bo.Optimizer(SPACE, seed=0, n_startup_trials=self.startup, storage=self.path)

    def start(self, seed: int) -> int:
        """Start a worker, and return its process id."""
        notes = self.folder / f"notes-{len(self.notes)}"
        self.notes.append(notes)
        return forked(functools.partial(_work, self, seed, notes))


def _work(run: Loops, seed: int, notes: Path) -> None:
    rng, said = np.random.default_rng(seed), Acknowledgements(notes)
    opt = run.opened()
    while True:
        step = rng.integers(10)
        if step == 0:
            queued = opt.enqueue({"k": int(rng.integers(10))})
            said.add("queued", id=queued.id, params=queued.params)
        elif step == 1:
            past = {"x": float(rng.random()), "k": 3, "c": "green"}
            said.add("told", id=opt.tell(past, value_of(past)).id, params=past, value=value_of(past))
        elif step == 2:
            opt.heartbeat(_asked(opt, said, 2))
        else:
            _finish(opt, said, _asked(opt, said, 1 + int(step == 3)), fails=step == 4)


def _asked(opt: bo.Optimizer, said: Acknowledgements, n: int) -> list[bo.Trial]:
    trials = opt.ask(n)
    for trial in trials:
        said.add("asked", id=trial.id, params=trial.params)
    return trials


def _finish(opt: bo.Optimizer, said: Acknowledgements, trials: Sequence[bo.Trial], *, fails: bool) -> None:
    if fails:
        opt.fail(list(trials))
    else:
        opt.tell(list(trials), [value_of(trial.params) for trial in trials])
    for trial in trials:
        said.add("failed" if fails else "told", id=trial.id, params=trial.params, value=value_of(trial.params))


# -- what has to hold --------------------------------------------------------------------------------------------------


def check(run: Loops) -> str:
    """Open the log and check the acknowledged trials; "intact", or the errors."""
    path = run.path
    said = [line for note in run.notes for line in acknowledged(note)]
    beside = {name.removeprefix(path.name) for name in os.listdir(path.parent)}
    if not beside <= {"", ".lock", "-journal"}:
        return f"{FAILED}: files beside the log: {sorted(beside)}"
    try:
        opt = run.opened()  # where the making of the file was cut off, it is made again
    except (bo.errors.BkbError, OSError) as error:
        return f"{FAILED}: {type(error).__name__}: {error}"
    wrong = _wrong(opt.trials, said, in_flight=2 * len(run.notes))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        pages = connection.execute("PRAGMA integrity_check").fetchone()[0]
    if pages != "ok" or wrong:
        return f"{FAILED}: {wrong or pages}"
    asked = opt.ask()
    opt.tell(asked, value_of(asked.params))
    own = Acknowledgements(run.notes[0])
    own.add("told", id=asked.id, params=dict(asked.params), value=value_of(asked.params))
    left = sorted(os.listdir(path.parent))
    return "intact" if left == [path.name, path.name + ".lock"] else f"{FAILED}: files beside the log: {left}"


def _wrong(trials: Sequence[bo.Trial], said: Sequence[Mapping[str, Any]], in_flight: int) -> str | None:
    if [trial.id for trial in trials] != list(range(len(trials))):
        return "ids with gaps"
    first = Counter(line["id"] for line in said if line["what"] == "asked")
    if first and max(first.values()) > 1:
        return "a trial that was asked twice"
    for line in said:
        if line["id"] >= len(trials) or not _holds(trials[line["id"]], line):
            return f"{line} was lost"
    known = {line["id"] for line in said}
    others = [trial for trial in trials if trial.id not in known]
    if len(others) > in_flight:
        return f"{len(others)} trials of {in_flight} kills that nobody acknowledged"
    if any(trial.values and trial.value != value_of(trial.params) for trial in trials):
        return "a value that nobody told"
    return None


def _holds(trial: bo.Trial, line: Mapping[str, Any]) -> bool:
    """Whether a trial equals its acknowledgement, or is a permitted later state of it."""
    match line["what"]:
        case "queued":
            return trial.params.items() >= line["params"].items()
        case "asked":
            return trial.params == line["params"] and trial.state != "WAITING"
        case "told":
            return trial.params == line["params"] and trial.values == (line["value"],)
        case _:
            return trial.params == line["params"] and trial.state == "FAIL"


# -- harnesses ---------------------------------------------------------------------------------------------------------


def loops(folder: Path, kills: int, *, writers: int = 1, startup: int = NO_MODEL, files: int = 1) -> Row:
    """Kill Python loops this number of times; the log is checked when all concurrent ones are killed.

    Args:
        folder: for the logs.
        kills: in all.
        writers: that run at once; one after the other is killed.
        startup: number of start-up trials.
        files: how many logs are begun: with one for each kill, most kills hit the making of the file.
    """
    warm()
    rng = np.random.default_rng(kills + writers)
    outcomes: Counter[str] = Counter()
    here: Loops | None = None
    for i in range(0, kills, writers):
        if here is None or i % max(kills // files, writers) == 0:
            here = Loops(folder / f"{writers}-{startup}-{files}-{i}", startup)
            here.path.parent.mkdir(parents=True)
        early = files >= kills  # it is the making of the file that is to be hit
        pids = [here.start(seed=1000 * i + j) for j in range(writers)]
        for pid in pids:
            time.sleep(float(rng.uniform(0.0, 0.05 if early else LONGEST)))
            if not killed(pid):
                outcomes[f"{FAILED}: a worker ended by itself"] += 1
        found = check(here)
        outcomes[found] += min(writers, kills - i)
    words = "one Python loop" if writers == 1 else f"{writers} Python loops on one log"
    more = " while the file is made" if files >= kills else " with a model" if startup < NO_MODEL else ""
    return Row(f"`kill -9` of {words}{more}", outcomes, unit="kills")


def shells(folder: Path, kills: int) -> Row:
    """Kill the shell's commands, one after the other, on one state."""
    warm()
    rng, outcomes = np.random.default_rng(kills), Counter[str]()
    (folder / "space.toml").write_text(SPACE_FILE)
    path, out = folder / "log" / "state.db", folder / "out"
    path.parent.mkdir()
    shown: dict[int, dict[str, Any]] = {}
    _command(out, None, "init", str(folder / "space.toml"), str(path))
    for _ in range(kills):
        running = [i for i, trial in shown.items() if trial["state"] == "RUNNING"]
        number = running[0] if running and rng.random() < 0.7 else None
        words = ("ask", str(path)) if number is None else ("tell", str(path), str(number), repr(number / 3.0))
        if number is not None and rng.random() < 0.2:
            words = ("fail", str(path), str(number))
        rows = _command(out, float(rng.uniform(0.0, 0.2)), *words)
        outcomes[_after(path, shown, rows, words[0])] += 1
    return Row("`kill -9` of the shell's commands", outcomes, unit="kills")


def _after(path: Path, shown: dict[int, dict[str, Any]], rows: Sequence[Any], command: str) -> str:
    """Outcome of a state whose command was killed; `shown` is the output of `show` before, and is updated."""
    now = {row["id"]: row for row in _command(path.parent.parent / "out", None, "show", str(path), "--trials")}
    before = dict(shown)
    shown.clear()
    shown.update(now)
    left = sorted(name.removeprefix(path.name) for name in os.listdir(path.parent))
    state = {"ask": "RUNNING", "tell": "COMPLETE", "fail": "FAIL"}[command]
    if any(trial != now.get(i) and trial["state"] != "RUNNING" for i, trial in before.items()):
        return f"{FAILED}: a trial changed that was over"
    if len(now) > len(before) + (command == "ask") or sorted(now) != list(range(len(now))):
        return f"{FAILED}: trials that nobody asked"
    if any(now.get(row["id"], {}).get("state") != state for row in rows):
        return f"{FAILED}: {command} printed {rows}, and show says otherwise"
    if any(row["state"] == "COMPLETE" and row["value"] != row["id"] / 3.0 for row in now.values()):
        return f"{FAILED}: a value that nobody told"
    # A journal that was cut off before its header was written undoes nothing; the next change takes its place.
    allowed = {"", ".lock", "-journal"}
    return "intact" if set(left) <= allowed else f"{FAILED}: files beside the state: {left}"


def _command(out: Path, seconds: float | None, *words: str) -> list[dict[str, Any]]:
    """The rows that a command printed, which is killed after so many seconds."""
    pid = forked(functools.partial(_shell, out, words))
    if seconds is None:
        _, status = os.waitpid(pid, 0)
        if status:
            raise AssertionError(f"{words} ended with status {os.waitstatus_to_exitcode(status)}")
    else:
        time.sleep(seconds)
        killed(pid)
    return [json.loads(line) for line in out.read_bytes().split(b"\n")[:-1]]


def _shell(out: Path, words: Sequence[str]) -> None:
    os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 1)
    if shell(list(words)):
        raise AssertionError(f"{words} failed")


def rows(quick: bool) -> Iterator[Row]:
    """All kinds of kills: 500 of Python loops."""
    n = 10 if quick else 1
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        folder = Path(name)
        yield loops(folder, 200 // n)
        yield loops(folder, 200 // n, writers=4)
        yield loops(folder, 60 // n, startup=5, files=2)
        yield loops(folder, 40 // n, files=40 // n)
        yield shells(folder, 60 // n)
