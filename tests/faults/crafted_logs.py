"""Damaged and crafted log files of many optimizers: opening one either raises our error or gives a working optimizer.

`findings(n, seed)` makes `n` such files, one after the other in child processes with a limit on memory and time, and
reads each as `hostile_reading.py` says. File i depends on the seed and i only, so that a finding can be made again:

    python -m tests.faults.crafted_logs 10000
    python -m tests.faults.crafted_logs 1 --first 4711
"""

import argparse
import json
import os
import random
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.rows import FAILED, Row

ROOT = Path(__file__).resolve().parents[2]
#: Seconds for one file, and those after which a child counts as stuck.
SECONDS, STUCK = 5.0, 60.0
#: Outcomes that are as they should be.
GOOD = ("refused", "works", "refused at the first write")


@dataclass(frozen=True)
class Found:
    """Outcome of one file."""

    number: int
    injected: str
    outcome: str
    detail: str


def originals(folder: Path, names: Collection[str] | None = None) -> None:
    """Intact logs in a folder, all or those of some names, each with its expected content."""
    from tests.faults.crafted_originals import CASES, given, made

    folder.mkdir(exist_ok=True)
    for name in CASES if names is None else names:
        path = folder / f"{name}.db"
        if not path.exists():
            opt = made(name)
            opt.save(path)
            path.with_suffix(".json").write_text(json.dumps(known(type(opt).load(path, **given(name)))))


def known(opt: Any) -> str:
    """The content of a log: its trials and the next one."""
    trials = [repr(trial) for trial in opt.trials]
    asked = opt.ask()
    return repr((trials, asked.id, asked.index, asked.params))


def findings(n: int, seed: int, first: int = 0, folder: Path | None = None) -> Iterator[Found]:
    """Outcomes of the files number `first`, `first` + 1, ..."""
    with tempfile.TemporaryDirectory() as made:
        place = Path(made) / "originals" if folder is None else folder
        if not place.exists():
            originals(place)
        at = first
        while at < first + n:
            for found in _from_child(place, seed, at, first + n):
                yield found
                at = found.number + 1


def _from_child(folder: Path, seed: int, first: int, end: int) -> Iterator[Found]:
    command = [sys.executable, "-m", "tests.faults.hostile_reading", str(folder), str(seed), str(first), str(end)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error::RuntimeWarning"}
    child = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stderr is not None
    at, injected, last = first, "?", time.monotonic() + STUCK
    os.set_blocking(child.stdout.fileno(), False)
    rest = b""
    try:
        while at < end:
            ready, _, _ = select.select([child.stdout], [], [], 1.0)
            data = child.stdout.read() if ready else None
            if data is None:
                if time.monotonic() - last > STUCK:
                    child.kill()
                    yield Found(at, injected, "stuck", "")
                    return
                continue
            if not data:
                error = child.stderr.read().decode("utf-8", "replace")[-400:]
                yield Found(at, injected, "the process died", f"{child.wait()}: {error}")
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                last, message = time.monotonic(), json.loads(line)
                injected = message[1]
                if len(message) > 2:
                    yield Found(*message)
                    at = message[0] + 1
    finally:
        child.kill()
        child.stdout.close()
        child.stderr.close()
        child.wait()


def rows(quick: bool) -> Iterator[Row]:
    """A line for each kind of file."""
    counts: dict[str, Counter[str]] = {}
    for found in findings(300 if quick else 10_000, 0):
        outcome = found.outcome if found.outcome in GOOD else f"{FAILED}: {found.outcome}"
        counts.setdefault(found.injected, Counter())[outcome] += 1
    for injected, outcomes in sorted(counts.items()):
        yield Row(f"log file: {injected}", outcomes, unit="files")


def crafted(folder: Path, target: Path, seed: int, number: int) -> tuple[str, str, str]:
    """Make file `number`; the original's name, what was injected, and details."""
    from tests.faults.crafted_injections import INJECTIONS

    rng = random.Random(f"{seed} {number}")
    names = sorted(path.stem for path in folder.glob("*.db"))
    name = rng.choice(names)
    kinds, weights = zip(*((kind, weight) for kind, (weight, _) in INJECTIONS.items()), strict=True)
    (kind,) = rng.choices(kinds, weights)
    target.write_bytes((folder / f"{name}.db").read_bytes())
    other = folder / f"{rng.choice(names)}.db"
    return name, kind, INJECTIONS[kind][1](target, other, rng)


def main() -> int:
    """Print the rows and the findings."""
    parser = argparse.ArgumentParser()
    parser.add_argument("n", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    own = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    for found in findings(own.n, own.seed, own.first, own.folder):
        counts[found.injected, found.outcome] += 1
        if found.outcome not in GOOD or own.n == 1:
            print(found, flush=True)
    for (injected, outcome), times in sorted(counts.items()):
        print(f"{injected:40} {times:7} {outcome}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
