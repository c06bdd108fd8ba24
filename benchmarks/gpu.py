"""Time of a search over a pool on a GPU, beside the processor of the same machine.

Run it as `python -m benchmarks.gpu`. The pool has ten columns; the posterior is that of BKB with `--features` inducing
points, made once and given to both, so that both compute the same. Without such a device the program says so and ends.

- scan: mean and variance of all rows, which a new epoch of the model costs.
- step: the lazy argmax after one more value, within an epoch; the median of `STEPS`.
- largest difference: of the means and of the standard deviations of all rows, relative to the largest of them.

Seconds are wall-clock time after a first run that is not counted. The processor has `--threads` threads, by default all
that torch takes. `--device cpu` runs the program's code where there is no GPU; its ratios then say nothing.
"""

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

import bkbopt as bo
from benchmarks.arguments import Arguments
from benchmarks.report import measuring, print_table
from bkbopt.search.maximizers.pool import PoolMaximizer

__all__ = ["Timed", "compare", "main"]

D = 10
NOISE = 0.01
BETA = 2.0
STEPS, REPEATS = 20, 3


@dataclass(frozen=True)
class Timed:
    """What a pool costs on one device.

    Attributes:
        scan: seconds.
        step: seconds.
        mean: of all rows, (A,), on the CPU.
        sd: of all rows, (A,), on the CPU.
        rows: the choices.
    """

    scan: float
    step: float
    mean: Tensor
    sd: Tensor
    rows: list[int]


def _surrogate(m: int, device: str, seed: int = 0) -> bo.BKB:
    """A surrogate that has seen `m` points, all of which are inducing points."""
    rng = np.random.default_rng(seed)
    X = rng.random((m, D))
    out = bo.BKB(bo.kernels.matern52(D, 0.7), NOISE, qbar=1e6, max_inducing=m, device=device)
    out.observe(X, np.sin(3.0 * X).sum(1))
    return out


def _seconds(call: Callable[[], object], device: str) -> float:
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def measure(X: Tensor, m: int, device: str) -> Timed:
    """Time a pool `X (A, d)` with a model of `m` features on a device."""
    surrogate, search = _surrogate(m, device), PoolMaximizer(X)
    model, rng = surrogate.model, np.random.default_rng(1)
    mean, variance = search.scan(model)  # copies the rows there, and compiles what is compiled
    scan = min(_seconds(lambda: PoolMaximizer._scanned(search, model), device) for _ in range(REPEATS))
    rows, steps = [search.argmax(model, BETA).index], []
    learning = copy.deepcopy(surrogate)
    for _ in range(STEPS):
        x = X[rows[-1]]
        learning.observe(x[None], [float(torch.sin(3.0 * x).sum()) + 0.1 * float(rng.standard_normal())])
        model = learning.model
        steps.append(_seconds(lambda model=model: rows.append(search.argmax(model, BETA).index), device))  # type: ignore[misc]
    return Timed(scan, float(np.median(steps)), mean.cpu(), variance.sqrt().cpu(), rows)


def compare(n: int, m: int, device: str) -> list[object]:
    """One row of the table."""
    X = torch.from_numpy(np.random.default_rng(2).random((n, D)))
    here, there = measure(X, m, "cpu"), measure(X, m, device)
    pairs = ((here.mean, there.mean), (here.sd, there.sd))
    difference = max(float((a - b).abs().max() / a.abs().max()) for a, b in pairs)
    same = sum(a == b for a, b in zip(here.rows, there.rows, strict=True))
    scans = here.scan, there.scan, here.scan / there.scan
    steps = 1e3 * here.step, 1e3 * there.step, here.step / there.step
    return [f"{n:,}", *scans, *steps, difference, f"{same}/{len(here.rows)}"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = Arguments(__doc__)
    parser.option("--rows", (1_000_000, 10_000_000), quick=(100_000,), help="rows of the pool")
    parser.option("--features", 300, quick=50, help="inducing points")
    parser.option("--device", "cuda", help="what the processor is compared with")
    parser.option("--threads", torch.get_num_threads(), help="of the processor")
    options = parser.parse_args(arguments)
    if torch.device(options.device).type == "cuda" and not torch.cuda.is_available():
        print("gpu: torch finds no CUDA device on this machine, so nothing was measured.")
        return
    m, threads = options.features, options.threads
    name = torch.cuda.get_device_name(options.device) if torch.device(options.device).type == "cuda" else options.device
    print(f"the device is {name}")
    with measuring(threads):
        rows = [compare(n, m, options.device) for n in options.rows]
    print_table(
        f"{D} columns of float64, {m} inducing points",
        [
            "rows", "scan, CPU s", f"scan, {options.device} s", "ratio", "step, CPU ms", f"step, {options.device} ms",
            "ratio", "largest difference", "same rows",
        ],
        rows,
    )  # fmt: skip


if __name__ == "__main__":
    main()
