"""Shared code of the comparisons of optimisers: each run has its own process, is saved as a file and never repeated.

Files of our own optimisers carry a digest of the package's source, so that results of another version of the code are
never mixed in.
"""

import ast
import functools
import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import bkbopt

__all__ = [
    "NOT_SEARCH",
    "OURS",
    "Job",
    "keep",
    "records_of",
    "run_all",
    "source_digest",
    "standard_error",
    "with_error",
]

#: Optimisers whose results belong to one version of the package.
OURS = (
    "bkbopt", "bkb", "bkb_spherical", "bkb_beta1", "bkb_beta3", "bkb_thompson", "bkb_useful", "bkb_known",
)  # fmt: skip
#: Parts of the package that a search with the default surrogate does not load.
NOT_SEARCH = ("plots", "adapters/shell", "adapters/botorch", "adapters/gest")


@dataclass(frozen=True)
class Job:
    """One run: an optimiser on a problem with a seed."""

    peer: str
    problem: str
    n_trials: int
    seed: int

    @property
    def title(self) -> str:
        """The problem's name in file names."""
        return self.problem

    def path(self, out: Path, digest: str) -> Path:
        """The file of its result."""
        peer = f"{self.peer}-{digest}" if self.peer in OURS else self.peer
        return out / f"{peer}_{self.title}_{self.n_trials}_{self.seed}.json"


def source_digest(without: Collection[str] = (), root: Path | None = None) -> str:
    """A short digest of the package's code; comments, docstrings and layout do not count.

    Args:
        without: parts of the package (paths below its folder) that the runs do not load, such as `NOT_SEARCH`.
        root: the package's folder; that of the imported package by default.
    """
    root, digest = root or Path(bkbopt.__file__).parent, hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if not any(name.is_relative_to(part) for part in without):
            digest.update(str(name).encode())
            digest.update(_code_of(path.read_text()))
    return digest.hexdigest()[:10]


@functools.cache  # the programs of one process share it: to parse the package takes more than a second
def _code_of(source: str) -> bytes:
    """The code of a module, without comments, docstrings and layout."""
    return ast.dump(_without_docstrings(ast.parse(source))).encode()


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        may_have_one = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if may_have_one and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return tree


def keep(record: Mapping[str, object], path: Path) -> None:
    """Write a result atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(record))
    os.replace(draft, path)


def records_of(jobs: Sequence[Job], out: Path, digest: str) -> list[dict[str, Any]]:
    """The saved results, in the order of the jobs."""
    paths = [job.path(out, digest) for job in jobs]
    return [json.loads(path.read_text()) for path in paths if path.exists()]


def run_all(jobs: Sequence[Job], run: Callable[[Any, Path], None], out: Path, digest: str, processes: int) -> None:
    """Run the missing jobs by `run(job, path)`, several processes at a time, and print the progress."""
    missing = [job for job in jobs if not job.path(out, digest).exists()]
    print(f"{len(jobs)} runs, {len(jobs) - len(missing)} of them done before", flush=True)
    if processes == 1:
        for done, job in enumerate(missing, start=1):
            run(job, job.path(out, digest))
            _say(done, len(missing), job)
        return
    # Processes are started afresh: a fork of one that has used threads may hang.
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(run, job, job.path(out, digest)): job for job in missing}
        for done, future in enumerate(as_completed(running), start=1):
            future.result()
            _say(done, len(missing), running[future])


def _say(done: int, of: int, job: Job) -> None:
    print(f"  {done}/{of} {job.peer} on {job.problem}, seed {job.seed}", flush=True)


def standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean; nan for a single value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def with_error(values: Sequence[float]) -> str:
    """Mean +- standard error, as text."""
    return f"{np.mean(values):.4f} +- {standard_error(values):.4f}"
