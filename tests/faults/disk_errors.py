"""Each call of the operating system fails once, in every kind of change of a log.

The n-th call that may change something on the disk gives an error (and, in half of the cases, all later ones do), for
n = 1, 2, ... until the change gets through. Outcomes of a change:

| outcome                   | meaning                                                                             |
| ------------------------- | ----------------------------------------------------------------------------------- |
| refused, unchanged        | a `BkbError` or `OSError`; file and optimizer are as before, and the call works then |
| done                      | the error did no harm, and what was done is in the file                             |
| refused, and says: is done | a `StorageError` that says that the change was written                             |
| FAILED ...                | anything else                                                                       |
"""

import errno
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bkbopt as bo
from bkbopt._support import sqlite
from bkbopt.errors import BkbError
from bkbopt.optimizer.log import log_file
from tests.faults import disk_calls
from tests.faults.disk_calls import Kind, arm, calls
from tests.faults.power_loss import SPACE, digest
from tests.faults.rows import FAILED, Row
from tests.memory import memory_folder

__all__ = ["rows"]

INJECTED = {
    "full disk: a write is refused (ENOSPC)": (Kind.WRITE, errno.ENOSPC),
    "full disk: any call is refused (ENOSPC)": (Kind.ANY, errno.ENOSPC),
    "broken disk: any call gives an error (EIO)": (Kind.ANY, errno.EIO),
    "locks that fail (ENOLCK)": (Kind.LOCK, errno.ENOLCK),
    "locks that fail (EOPNOTSUPP)": (Kind.LOCK, errno.EOPNOTSUPP),
}
Change = Callable[[], Any]


def _changes(opt: bo.Optimizer, folder: Path, n_rows: int) -> Iterator[Change]:
    points = [{"x": i / n_rows, "c": "red"} for i in range(n_rows)]
    yield opt.ask
    yield lambda: opt.tell({"x": 0.3, "c": "red"}, 1.0)
    yield lambda: opt.tell(points, [1.0] * n_rows)
    yield lambda: opt.enqueue({"x": 0.5})
    yield lambda: opt.set_space({"x": (0.0, 2.0 + len(opt.trials)), "c": SPACE["c"]})
    yield lambda: opt.save(folder / "copy.db")


def _state(opt: bo.Optimizer, path: Path) -> tuple[Any, ...]:
    return opt.trials, digest(path), opt.space


def _one(opt: bo.Optimizer, path: Path, change: Change, kind: Kind, n: int, error: int, once: bool) -> str | None:
    """The outcome of a change whose n-th call fails; None where it has fewer."""
    before, said = _state(opt, path), ""
    arm(kind, n, error, once=once)
    try:
        change()
    except (BkbError, OSError) as refused:
        said = str(refused)
    finally:
        reached = calls() >= n
        arm(kind, 0, 0)
    if not reached:
        return f"{FAILED}: {said}" if said else None
    now = _state(opt, path)
    if [trial.id for trial in bo.Optimizer.load(path).trials] != [trial.id for trial in now[0]]:
        return f"{FAILED}: the file has other trials than the optimizer"
    if not said:
        return "done"
    if now == before:
        return "refused, unchanged"
    return "refused, and says: is done" if "the change was written" in said else f"{FAILED}: changed, but {said}"


def work(folder: Path, most: int, n_rows: int, stride: int) -> list[tuple[str, dict[str, int]]]:
    """The outcomes of each kind of injection; the n-th call is tried for every so many n up to `most`."""
    sqlite.PATIENCE = log_file.PATIENCE = 0.2
    sqlite.STEP = 0.05
    found = []
    for i, (what, (kind, error)) in enumerate(INJECTED.items()):
        outcomes: Counter[str] = Counter()
        path = folder / f"{i}.db"
        for once in (False, True):
            opt = bo.Optimizer(SPACE, seed=0, n_startup_trials=10**6, storage=path)
            for change in _changes(opt, folder, n_rows):
                for n in range(1, most + 1, stride):
                    outcome = _one(opt, path, change, kind, n, error, once)
                    if outcome is None:
                        break
                    outcomes[outcome.replace(str(folder), "")] += 1
        found.append((what, dict(outcomes)))
    return found


def rows(quick: bool) -> Iterator[Row]:
    """A row for each kind of error."""
    if (reason := disk_calls.missing()) is not None:
        yield Row("errors of the disk", {f"left out: {reason}": 1})
        return
    with tempfile.TemporaryDirectory(prefix="errors-", dir=memory_folder()) as name:
        folder = Path(name) / "watched"
        folder.mkdir()
        size = ["30", "20", "6"] if quick else ["60", "300", "1"]
        said = disk_calls.run(["-m", "tests.faults.disk_errors", str(folder), *size], folder, None, Path(name), 1800.0)
    for what, outcomes in json.loads(said.splitlines()[-1]):
        yield Row(what, outcomes, unit="calls")


if __name__ == "__main__":
    print(json.dumps(work(Path(sys.argv[1]), *map(int, sys.argv[2:]))))
