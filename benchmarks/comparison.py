"""Shared code of the comparisons of optimisers: each run has its own process, is saved as a file and never repeated.

A program makes a list of jobs, computes the missing ones by `run_all` and reads all by `records_by`. Files of our own
optimisers carry a digest of the package's source, so that results of another version of the code are never mixed in.
"""

import argparse
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
from typing import Any, TypeVar

import numpy as np

import bkbopt
from benchmarks.arguments import Arguments
from benchmarks.report import conditions

__all__ = [
    "NOT_SEARCH",
    "OURS",
    "Job",
    "add_options",
    "grouped",
    "keep",
    "own_digest",
    "records_by",
    "records_of",
    "run_all",
    "source_digest",
    "standard_error",
    "with_error",
]

#: Optimisers whose results belong to one version of the package.
OURS = (
    "bkbopt", "bkb", "bkb_spherical", "bkb_thompson", "bkb_useful", "bkb_known",
)  # fmt: skip
#: Parts of the package that a search with the default surrogate does not load.
NOT_SEARCH = ("plots", "adapters/shell", "adapters/botorch", "adapters/gest")


Record = dict[str, Any]


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
        """The file of its result, of the version of the package that has the digest."""
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


@functools.cache
def own_digest() -> str:
    """The digest of this version."""
    return source_digest(NOT_SEARCH)


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


def records_of(jobs: Sequence[Job], out: Path, digest: str | None = None) -> list[Record]:
    """The saved results, in the order of the jobs; those of this version of the package by default."""
    paths = [job.path(out, digest or own_digest()) for job in jobs]
    return [json.loads(path.read_text()) for path in paths if path.exists()]


J = TypeVar("J", bound=Job)
K = TypeVar("K")


def grouped(jobs: Sequence[J], key: Callable[[J], K]) -> dict[K, list[J]]:
    """The jobs by a key, such as their problem, in their order."""
    groups: dict[K, list[J]] = {}
    for job in jobs:
        groups.setdefault(key(job), []).append(job)
    return groups


def records_by(key: Callable[[J], K], jobs: Sequence[J], out: Path) -> dict[K, list[Record]]:
    """The saved results by a key of their jobs, without groups that have none."""
    return {name: found for name, group in grouped(jobs, key).items() if (found := records_of(group, out))}


def add_options(parser: Arguments, folder: str, processes: int = 2) -> None:
    """The options of `run_all`, with their defaults."""
    parser.option("--jobs", processes, help="processes at a time, of one thread each")
    parser.option("--out", Path("out", folder), help="folder of the results: no run is repeated")
    parser.add_argument("--tables-only", action="store_true", help="run nothing, print what there is")


def run_all(jobs: Sequence[J], run: Callable[[J], Mapping[str, object]], options: argparse.Namespace) -> None:
    """Save the results `run(job)` of the missing jobs, and print the progress, as `add_options` lets a user choose."""
    print(f"{conditions(1)}; {options.jobs} process(es)")
    if options.tables_only:
        return
    missing = [job for job in jobs if not job.path(options.out, own_digest()).exists()]
    print(f"{len(jobs)} runs, {len(jobs) - len(missing)} of them done before", flush=True)
    if options.jobs == 1:
        for done, job in enumerate(missing, start=1):
            _run(run, job, job.path(options.out, own_digest()))
            _say(done, len(missing), job)
        return
    # Processes are started afresh: a fork of one that has used threads may hang.
    with ProcessPoolExecutor(options.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(_run, run, job, job.path(options.out, own_digest())): job for job in missing}
        for done, future in enumerate(as_completed(running), start=1):
            future.result()
            _say(done, len(missing), running[future])


def _run(run: Callable[[J], Mapping[str, object]], job: J, path: Path) -> None:
    keep(run(job), path)


def _say(done: int, of: int, job: Job) -> None:
    print(f"  {done}/{of} {job.peer} on {job.problem}, seed {job.seed}", flush=True)


def standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean; nan for a single value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def with_error(values: Sequence[float]) -> str:
    """Mean +- standard error, as text."""
    return f"{np.mean(values):.4f} +- {standard_error(values):.4f}"
