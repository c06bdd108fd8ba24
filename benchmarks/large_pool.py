"""Time and memory of a search over the rows of a file, in pools larger than memory.

Run it as `python -m benchmarks.large_pool`. The rows, ten columns of float32, are made by the program and written to a
file in a temporary folder, which is deleted at the end: 40 MB for a million rows. Each size runs in a process of its
own, so that the memory is that of one run. Pages of the file are not counted, since the system decides how many it
caches. The function is smooth in four of the columns, with noise.

- first scan: the first ask after the start-up trials, which computes all rows.
- step: `ask` and `tell` of one trial. Some of them begin a new epoch of the model (a fit, a new dictionary) and scan
  the pool; the worst is one of these.
- a pick: `ask(batch)` divided by its size, with nothing told in between.
- full scan: the posterior of all rows with the last model, the cost of each step without bounds.
- cpu: processor seconds; with one thread they vary less than wall time on a machine under load.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import bkbopt as bo
from benchmarks.arguments import Arguments
from benchmarks.report import MB, Clock, MemoryWatch, limited_threads, measuring, print_table

__all__ = ["main", "measure", "write_rows"]

D = 10
#: Rows that are written at once.
BLOCK = 1 << 20
NOISE = 0.05


def write_rows(path: Path, n: int, seed: int = 0) -> None:
    """Write `n` random rows of ten columns."""
    rng = np.random.default_rng(seed)
    with path.open("wb") as file:
        for start in range(0, n, BLOCK):
            file.write(rng.random((min(BLOCK, n - start), D), dtype=np.float32).data)


def value(params: dict[str, float], rng: np.random.Generator) -> float:
    x = np.array([params[f"x{j}"] for j in range(4)])
    return float(np.cos(3.0 * x).sum() - ((x - 0.6) ** 2).sum() + NOISE * rng.standard_normal())


def own_mb() -> float:
    """Memory of the process without the pages of files, MB."""
    status = Path("/proc/self/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return float(fields["RssAnon"].split()[0]) / 1024


def measure(path: Path, n: int, steps: int, batch: int) -> dict[str, float]:
    """Run a search over a file of `n` rows."""
    rows, rng, clocks = np.memmap(path, np.float32, "r", shape=(n, D)), np.random.default_rng(0), []
    with MemoryWatch(own_mb) as memory:
        start = time.perf_counter()
        opt = bo.Optimizer(bo.Pool(rows), direction="maximize", seed=0, duplicates="avoid")
        opening = time.perf_counter() - start
        for _ in range(10 + steps):
            with Clock() as clock:
                trial = opt.ask()
                opt.tell(trial, value(trial.params, rng))
            clocks.append(clock)
        with Clock() as picking:
            picked = len(opt.ask(batch))
        searched, cpu = [clock.wall for clock in clocks[10:]], [clock.cpu for clock in clocks[10:]]
    search = opt._core.designer.candidates._pool.search  # type: ignore[union-attr]
    model = opt.surrogate.model
    with Clock() as scanning:
        for part in search.parts:
            part.scan(model, int)
    return {
        "opening": opening,
        "first scan": searched[0],
        "median step": float(np.median(searched)),
        "worst step": max(searched[1:]),
        "median cpu": float(np.median(cpu)),
        "mean cpu": float(np.mean(cpu)),
        "scans": search.n_scans,
        "pick": picking.wall / picked,
        "pick cpu": picking.cpu / picked,
        "full scan": scanning.cpu,
        "m": opt.diagnostics[-1].n_inducing or 0,
        "memory": max(memory.peak, own_mb()) - memory.before,
        "total": max(memory.peak, own_mb()),
    }


def _in_a_process(path: Path, n: int, options: argparse.Namespace) -> dict[str, float]:
    arguments = ["--child", str(path), "--rows", str(n), "--steps", str(options.steps)]
    arguments += ["--batch", str(options.batch), "--threads", str(options.threads)]
    command = [sys.executable, "-m", "benchmarks.large_pool", *arguments]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(json.loads(out))


def _row(name: str, f: dict[str, float], batch: int) -> tuple[object, ...]:
    ms = 1e3
    return (
        name, f["opening"], f["first scan"], ms * f["median step"], ms * f["median cpu"], ms * f["mean cpu"],
        f["worst step"], f["scans"], ms * f["pick"], ms * f["pick cpu"], f["full scan"], f["m"], f["memory"],
        f["total"],
    )  # fmt: skip


HEADER = (
    "rows", "open s", "first scan s", "median step ms", "cpu ms", "mean step cpu ms", "worst step s", "scans",
    "pick ms", "cpu ms", "full scan cpu s", "m", "MB added", "MB in all",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = Arguments(__doc__)
    parser.option("--rows", (1_000_000, 10_000_000), quick=(100_000,), help="rows of the pools")
    parser.option("--steps", 120, quick=20, help="asks and tells after ten start-up trials")
    parser.option("--batch", 384, quick=32, help="size of the batch that is asked for at the end")
    parser.option("--threads", 1, help="of torch and BLAS")
    parser.add_argument("--folder", type=Path, help="for the rows; default: the system's folder for temporary files")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    sizes = options.rows
    if options.child is not None:
        with limited_threads(options.threads):
            print(json.dumps(measure(options.child, sizes[0], options.steps, options.batch)))
        return
    found = {}
    with measuring(options.threads):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for n in sizes:
                path = Path(folder) / "rows.f4"
                write_rows(path, n)
                found[n] = _in_a_process(path, n, options)
                print(f"{n:,} rows measured", file=sys.stderr, flush=True)
        table = [_row(f"{n:,}", each, options.batch) for n, each in found.items()]
        if len(found) > 1:
            table.append(_row("100,000,000 (extrapolated)", _extrapolated(found, 100_000_000), options.batch))
        print_table(
            f"{D} columns of float32 in a file, {options.steps} steps, then ask({options.batch})",
            HEADER,
            table,
            f"Memory without the pages of files ({D * 4 * max(sizes) / MB:.0f} MB for {max(sizes):,} rows). "
            "Extrapolated: a straight line through the two largest sizes; not run.",
        )


def _extrapolated(found: dict[int, dict[str, float]], n: int) -> dict[str, float]:
    """By a straight line through the two largest sizes."""
    a, b = sorted(found)[-2:]
    line = {key: found[b][key] + (n - b) / (b - a) * (found[b][key] - found[a][key]) for key in found[b]}
    return line | {key: float("nan") for key in ("scans", "m")}  # these do not depend on the rows


if __name__ == "__main__":
    main()
