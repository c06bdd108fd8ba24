"""Fixtures of the sampler: storages, and workers in processes of their own."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

ROOT = Path(__file__).resolve().parents[3]
WORKER = Path(__file__).with_name("worker.py")


@pytest.fixture(autouse=True, scope="module")
def _quiet(quiet_optuna: None) -> None:
    """Every test of the sampler keeps Optuna quiet."""


@pytest.fixture
def open_storage(tmp_path: Path) -> Iterator[Callable[..., BaseStorage]]:
    """Opens the file `name` of the test's folder as a storage: "sqlite" or "journal"."""
    databases: list[RDBStorage] = []

    def open_(kind: str, name: str = "study") -> BaseStorage:
        path = tmp_path / f"{name}.{kind}"
        if kind == "journal":
            return JournalStorage(JournalFileBackend(str(path)))
        # SQLite lets one write at a time; the others wait as long as a slow machine may need.
        waiting = {"connect_args": {"timeout": 120}}
        databases.append(RDBStorage(f"sqlite:///{path}", engine_kwargs=waiting))
        return databases[-1]

    yield open_
    for database in databases:
        database.engine.dispose()


class Worker:
    """A process of its own that has imported everything and waits for `go`."""

    def __init__(self, job: dict[str, Any]) -> None:
        # The folder of a program is searched for imports, and not the one it is started in.
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER)],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        pickle.dump(job, self.stdin)
        self.stdin.flush()

    def ready(self) -> "Worker":
        assert self.line() == "ready"
        return self

    def line(self) -> str:
        return self.stdout.readline().decode().strip()

    def go(self) -> None:
        self.stdin.write(b"go\n")
        self.stdin.flush()

    def output(self) -> str:
        output, _ = self.process.communicate(timeout=300)
        assert self.process.returncode == 0, output.decode()
        return output.decode()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.stdin.close()
        self.stdout.close()


@pytest.fixture
def start_worker() -> Iterator[Callable[..., Worker]]:
    """Starts a worker on a study: `do` names a function of worker.py, `more` are its arguments."""
    workers: list[Worker] = []

    def start(do: str, storage: BaseStorage, options: dict[str, Any] | None = None, **more: Any) -> Worker:
        workers.append(Worker({"do": do, "storage": storage, "options": options or {}, **more}))
        return workers[-1]

    yield start
    for worker in workers:
        worker.close()


@pytest.fixture
def floats() -> dict[str, BaseDistribution]:
    """Two floats and an integer."""
    return {
        "x": optuna.distributions.FloatDistribution(-1.0, 1.0),
        "rate": optuna.distributions.FloatDistribution(1e-3, 1.0, log=True),
        "n": optuna.distributions.IntDistribution(0, 9),
    }
