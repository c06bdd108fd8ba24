"""Damaged and crafted state files of online learners and linear bandits, and their outcomes.

`python -m tests.faults.learner_states 10000 0` makes and tries 10,000 of them and prints a table.

A case follows from a seed and its number: a good file and one or two damages. Its outcome is one of

| outcome    | meaning                                                                                         |
| ---------- | ----------------------------------------------------------------------------------------------- |
| refused    | `load` raised a `BkbError` or an `OSError`                                                      |
| works      | it was loaded, predicted, learnt and was saved                                                  |
| refuses    | it was loaded, and a use was refused by a `BkbError`: a parameter out of range, overflow        |
| overflows  | as works, but predictions are not finite: numbers of the file are as large as floats can be     |
| FAILED ... | anything else: an untyped error, more than 5 s of computing, much memory, the process's end     |

Cases run in processes of their own, whose memory is limited and which are ended where a case takes too long.
"""

import contextlib
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bkbopt.errors import BkbError
from tests.faults.damage import DAMAGES, damaged
from tests.faults.learner_subjects import SUBJECTS, good_file
from tests.faults.rows import Row

__all__ = ["Case", "case", "outcome", "rows", "run"]

ROOT = Path(__file__).resolve().parents[2]
#: Seconds of computing that a case may take; seconds until a process that says nothing is ended, first and later.
PATIENCE, START, SILENCE = 5.0, 600.0, 60.0
#: What loading may allocate at its peak: so many times the file, and a little that is needed in any case.
TIMES, SPARE = 12, 1_000_000
#: Address space that a process may take beyond what it has when it begins.
ROOM = 2_000_000_000


class Case(NamedTuple):
    """The intact file's subject, the damage, and the damaged file."""

    subject: str
    damage: str
    content: bytes


def case(seed: int, i: int) -> Case:
    """The case `i`."""
    rng = np.random.default_rng([seed, i])
    names, damages = list(SUBJECTS), list(DAMAGES)
    name, other = names[i % len(names)], names[int(rng.integers(len(names)))]
    damage = damages[int(rng.integers(len(damages)))]
    return Case(name, damage, damaged(good_file(name), good_file(other), damage, rng))


def outcome(given: Case, folder: Path) -> str:
    """Outcome of a case; see the module's table."""
    path, subject = folder / "case", SUBJECTS[given.subject]
    path.write_bytes(given.content)
    began = time.process_time()
    tracemalloc.start()
    try:
        learner = subject.loaded(path)
    except (BkbError, OSError):
        return _in_time("refused", began)
    except Exception as error:  # noqa: BLE001 (untyped errors are what is looked for)
        return f"FAILED at load: {_named(error)}"
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    if peak > TIMES * len(given.content) + SPARE:
        return "FAILED at load: memory"
    try:
        return _in_time(subject.exercised(learner, folder / "again"), began)
    except Exception as error:  # noqa: BLE001
        return f"FAILED in use: {_named(error)}"


def _in_time(result: str, began: float) -> str:
    return result if time.process_time() - began < PATIENCE else "FAILED: slow"


def _named(error: Exception) -> str:
    """Its type, and where in the package it was raised."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "bkbopt" in frame.filename]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else "?"
    return f"{type(error).__name__} in {place}"


def run(n: int, seed: int = 0) -> "Counter[tuple[str, str]]":
    """Try `n` cases: how many had which damage and outcome."""
    return Counter((damage, result) for _, damage, result in results(n, seed))


def rows(quick: bool) -> Iterator[Row]:
    """A line for each kind of damage."""
    found = run(250 if quick else 10_000)
    for damage in sorted({damage for damage, _ in found}):
        outcomes = Counter({result: count for (kind, result), count in found.items() if kind == damage})
        yield Row(f"state file of a learner or bandit: {damage}", outcomes, unit="files")


def results(n: int, seed: int = 0) -> Iterator[tuple[int, str, str]]:
    """The number, damage and outcome of each of `n` cases, from processes that are started anew where one ends."""
    i = 0
    while i < n:
        process = _worker(seed, i, n)
        with contextlib.ExitStack() as end:
            end.enter_context(process)
            end.callback(process.kill)
            patience = START
            while i < n:
                line = _line(process, patience)
                if not line.startswith("case "):
                    yield i, case(seed, i).damage, f"FAILED: {line}"
                    i += 1
                    break
                _, number, damage, result = line.rstrip("\n").split(" ", 3)
                assert int(number) == i
                yield i, damage, result
                i, patience = i + 1, SILENCE


def _worker(seed: int, start: int, stop: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.faults.learner_states", "--worker", str(seed), str(start), str(stop)]
    own = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, cwd=ROOT, env=own, stdout=subprocess.PIPE, text=True)


def _line(process: "subprocess.Popen[str]", patience: float) -> str:
    """The next line of the process; "hung" or "died" where none comes."""
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], patience)[0]:
        return "hung"
    return process.stdout.readline() or f"died with {process.wait()}"


def work(seed: int, start: int, stop: int) -> None:
    """Try the cases from `start` to `stop`, and print a line on each."""
    import torch

    torch.set_num_threads(1)
    for name in SUBJECTS:  # what is compiled, imported and kept is there before memory is counted
        good_file(name)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, size + ROOM))
    with tempfile.TemporaryDirectory() as folder:
        for i in range(start, stop):
            given = case(seed, i)
            print("case", i, given.damage, outcome(given, Path(folder)), flush=True)


def main(arguments: list[str]) -> int:
    """Print a table of `n` cases of a seed; the exit status says whether one of them failed."""
    if arguments[:1] == ["--worker"]:
        work(*(int(number) for number in arguments[1:4]))
        return 0
    n, seed = (int(number) for number in [*arguments, "0"][:2])
    counts: Counter[tuple[str, str]] = Counter()
    for i, damage, result in results(n, seed):
        counts[damage, result] += 1
        if result.startswith("FAILED"):
            print(f"{list(SUBJECTS)[i % len(SUBJECTS)]}, case {i}, {damage}: {result}", flush=True)
    kinds = ("refused", "works", "refuses", "overflows", "FAILED")
    print(f"\n{'damage':<12}" + "".join(f"{kind:>12}" for kind in kinds))
    for damage in [*DAMAGES, "all"]:
        of = [sum(c for (d, r), c in counts.items() if damage in (d, "all") and r.startswith(k)) for k in kinds]
        print(f"{damage:<12}" + "".join(f"{count:>12}" for count in of))
    return int(any(result.startswith("FAILED") for _, result in counts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
