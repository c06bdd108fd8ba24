"""Rounds a second of every online learner, with the size of its dictionary and its mistakes.

Run it as `python -m benchmarks.learners_speed`. Settings are those of the FORKS paper's first table: budget B = 100 (50
up to 10,000 rows), steps of 0.2, sketches of B, rank B/10, refreshes every 0.3 N rounds, hinge loss. Rows are shuffled
and features are as the data have them. Lengthscales are from the paper's grid of powers of two, one for the learners of
the perceptron's kind, and one for learners on features and second-order ones: those whose mistakes are nearest to the
printed ones. Squared losses use labels -1 and +1.

A round predicts a row and learns it. Time is that of `progressive` on the whole stream, checks of the input included
and compilation not, the best of the runs. The learners whose rounds grow with the stream are timed on its first rows
only, as "rows" says. "aim" is the range of the C++ program of the FORKS authors on a machine with two cores, over data
sets; "to aim" is our rounds a second of processor time over its upper end.

Then PKAWV with Taylor features runs through a long synthetic stream in chunks; its memory is measured.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.arguments import Arguments
from benchmarks.report import DATA, Clock, MemoryWatch, measuring, print_table
from bkbopt import learners as bl
from bkbopt.learners import OnlineLearner

__all__ = ["Stream", "cases", "load_stream", "main", "measure", "synthetic_stream"]

Array = npt.NDArray[np.float64]
#: Of expansions, and of learners on features.
LENGTHSCALES = {"codrna": (8.0, 64.0), "ijcnn1": (8.0, 64.0), "german": (0.5, 16.0)}
HEADER = ("learner", "rows", "m", "mistakes %", "rounds/s", "by cpu", "aim from", "to", "to aim")


@dataclass(frozen=True)
class Stream:
    """Rows `X (n, d)` with labels `y (n,)` -1 or +1, and the lengthscales of expansions and of learners on features."""

    name: str
    X: Array
    y: Array
    lengthscales: tuple[float, float]

    @property
    def budget(self) -> int:
        """B of the paper."""
        return 50 if len(self.X) <= 10_000 else 100


def load_stream(folder: Path, name: str, rows: int | None = None) -> Stream:
    """The data set shuffled and cut to `rows`."""
    with np.load(folder / f"{name}.npz") as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(np.float64)
    order = np.random.default_rng(0).permutation(len(X))[:rows]
    return Stream(name, X[order], y[order], LENGTHSCALES[name])


def synthetic_stream(rows: int, d: int = 8) -> Stream:
    """Labels of two noisy waves, where there are no data."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (rows, d))
    y = np.where(np.sin(4.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=rows) > 0.0, 1.0, -1.0)
    return Stream("synthetic", X, y, (1.0, 1.0))


@dataclass(frozen=True)
class Case:
    """A learner, the rows that it is timed on (None: all) and the aim."""

    name: str
    make: Callable[[], OnlineLearner]
    rows: int | None = None
    aim: tuple[float, float] | None = None


def cases(stream: Stream) -> list[Case]:
    """Every learner at the paper's settings for this stream."""
    B, n = stream.budget, len(stream.X)
    short, own = ({"lengthscale": lengthscale} for lengthscale in stream.lengthscales)
    sketched = {"budget": B, "refresh_every": max(1, int(0.3 * n)), **own}
    newton = {"loss": "squared_hinge", **own}
    growing = 2_000
    return [
        Case("FORKS", lambda: bl.FORKS.paper(**sketched), aim=(160e3, 250e3)),
        Case("SkeGD", lambda: bl.SkeGD.paper(**sketched), aim=(190e3, 310e3)),
        Case("NOGD", lambda: bl.NOGD.paper(budget=B, **own), aim=(190e3, 310e3)),
        Case("FOGD", lambda: bl.FOGD.paper(frequencies=2 * B, **own)),
        Case("RBP", lambda: bl.RBP.paper(budget=B, **short), aim=(250e3, 370e3)),
        Case("Forgetron", lambda: bl.Forgetron.paper(budget=B, **short)),
        Case("BPA-S", lambda: bl.BPAS.paper(budget=B, **short), aim=(350e3, 560e3)),
        Case("Projectron", lambda: bl.Projectron.paper(budget=B, eta=0.0, **short), aim=(440e3, 760e3)),
        Case("Projectron++", lambda: bl.ProjectronPP.paper(budget=B, **short)),
        Case("BOGD", lambda: bl.BOGD.paper(budget=B, ridge=1.0 / n**2, **short), aim=(90e3, 200e3)),
        Case("PROS-N-KONS", lambda: bl.ProsNKONS.paper(**newton), aim=(3e3, 3e3)),
        Case("PROS-N-KONS, m <= 100", lambda: bl.ProsNKONS.paper(max_dictionary=100, **newton), aim=(3e3, 3e3)),
        Case("PKAWV, Taylor M = 2", lambda: bl.PKAWV.paper(features="taylor", degree=2, **own)),
        Case("PKAWV, Nystrom", lambda: bl.PKAWV.paper(features="nystrom", **own), 10_000),
        Case("kernel perceptron", lambda: bl.KernelPerceptron.paper(**short), 20_000),
        Case("KOGD", lambda: bl.KOGD.paper(**short), 20_000),
        Case("NORMA, window B", lambda: bl.KOGD.paper(window=B, ridge=0.01, **short)),
        Case("Kernel-AWV", lambda: bl.KernelAWV.paper(**own), growing),
        Case("kernel ridge", lambda: bl.OnlineKRR.paper(**own), growing),
        Case("KONS", lambda: bl.KONS.paper(**newton), growing),
        Case("Sketched-KONS", lambda: bl.SketchedKONS.paper(**newton), growing),
    ]


def margins(learner: OnlineLearner, X: Array, y: Array) -> Array:
    """Predictions before learning, as numbers."""
    kind = {} if isinstance(learner, bl.OnlineKRR | bl.PKAWV) else {"decision": True, "classes": [-1.0, 1.0]}
    return learner.progressive(X, y, **kind)


def measure(case: Case, stream: Stream, seconds: float) -> tuple[object, ...]:
    """A row of the table: fresh learners on the stream until so many seconds have gone."""
    X, y = stream.X[: case.rows], stream.y[: case.rows]
    margins(case.make(), X[:600], y[:600])  # compiles
    wall = cpu = float("inf")
    end = time.perf_counter() + seconds
    while True:
        learner, clock = case.make(), Clock()
        with clock:
            p = margins(learner, X, y)
        wall, cpu = min(wall, clock.wall), min(cpu, clock.cpu)
        if time.perf_counter() > end:
            break
    m = 2 * learner.frequencies if isinstance(learner, bl.FOGD) else learner.dictionary_size_
    # A prediction of zero has no sign and is counted as a mistake.
    mistakes = 100.0 * float(np.mean(p * y <= 0.0))
    low, high = case.aim or (None, None)
    ratio = len(X) / cpu / high if high else None
    return case.name, len(X), m, mistakes, len(X) / wall, len(X) / cpu, low, high, ratio


def million_rows(rows: int, d: int = 18, chunk: int = 50_000) -> None:
    """Print time and memory of PKAWV with Taylor features of degree 2 on a stream made up in chunks."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=d)
    learner, clock = bl.PKAWV.paper(features="taylor", degree=2, lengthscale=4.0), Clock()
    learner.learn_one(np.zeros(d), 0.0)
    error = 0.0
    with MemoryWatch() as memory:
        for a in range(0, rows, chunk):
            X = rng.uniform(-1.0, 1.0, (min(chunk, rows - a), d))
            y = np.tanh(X @ w) + 0.1 * rng.normal(size=len(X))
            with clock:
                p = learner.progressive(X, y)
            error += float(np.sum((p - y) ** 2))
    seconds = clock.wall, clock.cpu
    print_table(
        f"PKAWV, Taylor M = 2, {rows:,} rows of d = {d} in chunks of {chunk:,}",
        ("features", "seconds", "cpu s", "rounds/s", "mean squared error", "MB before", "peak MB"),
        [(learner.dictionary_size_, *seconds, rows / clock.wall, error / rows, memory.before, memory.peak)],
        "Memory is the whole process's; one chunk with its predictions takes "
        f"{chunk * (d + 2) * 8 / 2**20:.0f} MB of it.",
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table a stream, and the long run."""
    parser = Arguments(__doc__)
    parser.add_argument("--data", type=Path, help=f"folder of the data sets (default: {DATA}, if it is there)")
    parser.option("--streams", tuple(LENGTHSCALES), choices=LENGTHSCALES, help="data sets")
    parser.option("--rows", None, quick=20_000, help="rows of a stream at most")
    parser.option("--long", 1_000_000, quick=100_000, help="rows of the long run; 0 leaves it out")
    parser.option("--seconds", 1.0, help="for how long a learner is run again")
    parser.option("--threads", 1, help="of torch and BLAS")
    options = parser.parse_args(arguments)
    folder = options.data or (DATA if DATA.is_dir() else None)
    with measuring(options.threads):
        streams = [load_stream(folder, name, options.rows) for name in options.streams] if folder else []
        for stream in streams or [synthetic_stream(options.rows or 50_000)]:
            title = f"{stream.name}: {len(stream.X):,} rows, d = {stream.X.shape[1]}, B = {stream.budget}"
            table = [measure(case, stream, options.seconds) for case in cases(stream)]
            note = "lengthscales: expansions {:g}, the others {:g}".format(*stream.lengthscales)
            print_table(title, HEADER, table, note)
        if options.long:
            million_rows(options.long)


if __name__ == "__main__":
    main()
