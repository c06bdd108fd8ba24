"""A child process that reads crafted logs with limits on memory and time, and prints the outcome of each."""

import contextlib
import json
import os
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import torch

import bkbopt as bo
from bkbopt.errors import (
    ArgumentError,
    BkbError,
    KernelError,
    NotReadyError,
    SpaceExhaustedError,
    StateFileError,
    StorageError,
)
from bkbopt.optimizer.log.log_file import LogFile
from tests.faults.crafted_injections import UNREADABLE
from tests.faults.crafted_logs import SECONDS, crafted, known
from tests.faults.crafted_originals import given
from tests.faults.foreign_files import CANARY

#: Bytes of memory beside what the process needs anyway.
MORE = 400 * 2**20
#: What an optimizer may say that is as it should be.
FINE = (NotReadyError, SpaceExhaustedError)


#: The fault that SQLite may notice when it writes only, and what comes of it: nothing is written then.
HEADER, LATE = "bits flipped in SQLite's header", "refused at the first write"


class TooLongError(BaseException):
    """The time limit of one file is exceeded."""


class Finding(Exception):  # noqa: N818  # no error of its own
    """A violation."""


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """A block of calls on an opened log: any error is a finding, except the allowed ones."""
    try:
        yield
    except FINE:
        return
    except ArgumentError as error:
        if "no feasible point" in str(error) or (name == "recommend" and "several" in str(error)):
            return
        raise Finding(f"{name}: {type(error).__name__}", _where(error)) from error
    except KernelError as error:
        # What a sound optimizer says of a pool some 1e9 of its ranges away, where distances are lost in rounding.
        if "positive semi-definite" not in str(error):
            raise Finding(f"{name}: {type(error).__name__}", _where(error)) from error
    except (StateFileError, StorageError) as error:
        # SQLite looks at some bits of the header when it writes: whether the file may be written, and free pages.
        if name == "ask 1" and any(word in str(error) for word in ("readonly", "malformed")):
            raise Finding(LATE, _where(error)) from error
        raise Finding(f"{name}: {type(error).__name__}", _where(error)) from error
    except (Finding, MemoryError):
        raise
    except Exception as error:  # that is what is looked for
        raise Finding(f"{name}: {type(error).__name__}", _where(error)) from error


def _where(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-3:]
    return f"{str(error)[:300]} at {' < '.join(f'{Path(f.filename).name}:{f.lineno}' for f in reversed(last))}"


def outcome(path: Path, kind: str, name: str, how: str, expected: str) -> tuple[str, str]:
    """Outcome of a file."""
    try:
        _read_without_torch(path)
        try:
            opt = getattr(bo.Optimizer, how)(path, **given(name))
        except (BkbError, OSError) as error:
            return "refused", f"{type(error).__name__}: {str(error)[:300]}"
        except MemoryError as error:
            return "memory", _where(error)
        except Exception as error:  # noqa: BLE001  # that is what is looked for
            return f"load: {type(error).__name__}", _where(error)
        if kind in UNREADABLE and known(bo.Optimizer.load(path, **given(name))) != expected:
            return "other trials", ""
        _use(opt, path, name, how)
    except Finding as finding:
        if finding.args[0] == LATE and (kind != HEADER or how != "open"):
            return f"{LATE}: {kind}", finding.args[1]
        return finding.args[0], finding.args[1]
    except MemoryError as error:
        return "memory", _where(error)
    return "works", ""


def _read_without_torch(path: Path) -> None:
    try:
        file = LogFile(path)
    except (BkbError, OSError):
        return
    for name, call in (("changes", lambda: file.changes(0)), ("entry", lambda: file.entry(0))):
        try:
            call()
        except (StateFileError, OSError):
            continue
        except Exception as error:  # that is what is looked for
            raise Finding(f"{name}: {type(error).__name__}", _where(error)) from error
        finally:
            file.close()


def _use(opt: bo.Optimizer, path: Path, name: str, how: str) -> None:
    with step("trials"):
        before = opt.trials
    asked: list[bo.Trial] = []
    for i in range(2):
        with step(f"ask {i + 1}"):
            asked.append(opt.ask())
    with step("tell"):
        limits = dict.fromkeys(opt.constraints, -1.0)
        for trial in asked[:1]:
            opt.tell(trial, [1.0] * len(opt.directions), constraints=limits) if len(opt.directions) > 1 else opt.tell(
                trial, 1.0, constraints=limits
            )
    with step("predict"):
        opt.predict([trial.params for trial in asked[:1]])
    with step("recommend"):
        opt.recommend()
    with step("ask after tell"):
        opt.ask()
    with step("best"):
        repr(opt), opt._repr_html_(), opt.diagnostics, opt.best_trials, opt.observed()
    with step("trials_dataframe"):
        opt.trials_dataframe()
    with step("save"):
        opt.save(path.with_name("copy.db"))
    with step("load of the copy"):
        again = bo.Optimizer.load(path.with_name("copy.db"), **given(name))
        if repr(again.trials) != repr(opt.trials):
            raise Finding("copy: other trials", "")
    if how == "open":
        with step("open again"):
            again = bo.Optimizer.open(path, **given(name))
            if repr(again.trials) != repr(opt.trials) or len(again.trials) < len(before):
                raise Finding("file: other trials", "")


def _canary_sang(path: Path) -> bool:
    with contextlib.suppress(sqlite3.Error, UnicodeDecodeError), contextlib.closing(sqlite3.connect(path)) as db:
        return bool(db.execute(f"SELECT count(*) FROM {CANARY}").fetchone()[0])
    return False


def one(folder: Path, seed: int, number: int) -> None:
    """Make file `number`, read it, and print the outcome."""
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "runs.db"
        name, kind, detail = crafted(folder, path, seed, number)
        print(json.dumps([number, kind]), flush=True)
        expected = json.loads((folder / f"{name}.json").read_text())
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of this process: others may have the cores
        try:
            result, more = outcome(path, kind, name, "open" if number % 2 else "load", expected)
        except TooLongError as error:
            result, more = "too long", _where(error)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        if time.process_time() - start > SECONDS:
            result = "too long"
        if _canary_sang(path):
            result = "canary"
        print(json.dumps([number, kind, result, f"{name}: {detail[:300]} | {more}"]), flush=True)


def _warm_up(folder: Path) -> None:
    """Import and compile what reading needs, so that it counts as what the process needs anyway."""
    for name in (path.stem for path in sorted(folder.glob("*.db"))):
        with tempfile.TemporaryDirectory() as made:
            path = shutil.copy(folder / f"{name}.db", made)
            result = outcome(Path(path), "", name, "load", "")
            if result[0] != "works":
                raise Finding(f"{name}: {result}")


def _alarm(signum: int, frame: FrameType | None) -> None:
    raise TooLongError


def main(argv: list[str]) -> None:
    """Read the files `first` to `end`."""
    folder, seed, first, end = Path(argv[0]), int(argv[1]), int(argv[2]), int(argv[3])
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    _warm_up(folder)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + MORE, size + MORE))
    signal.signal(signal.SIGPROF, _alarm)
    for number in range(first, end):
        one(folder, seed, number)


if __name__ == "__main__":
    main(sys.argv[1:])
