"""How many of the best rows of real tables are found in few batches, beside a greedy random forest and random rows.

Run it as `python -m benchmarks.screening`. Each table is written as Parquet to a temporary folder, in random order, and
read from there; values come from the table without noise. Rows have names, and no row is evaluated twice; rows with
equal columns, a quarter of w7a and a third of codrna_remaining, are different candidates.

- casp: 45,730 proteins' structures, 9 columns; wanted are the hundredth with the lowest RMSD.
- w7a: 24,692 texts, 300 columns of zeros and ones; wanted are the 740 of the rare class.
- codrna_remaining: 157,413 pieces of genomes, 8 columns; wanted are those that code for RNA, one in three. More than a
  few per cent of these cannot be found in so few evaluations: `most` is what could be.
- abalone, 4,177 shells, 8 columns, and cadata, 20,640 districts, 8 columns: wanted are the oldest and the cheapest
  hundredth. ijcnn1, 141,691 states of an engine, 22 columns, and spambase, 4,601 messages, 57 columns with long tails:
  wanted are those of class +1.

The forest is scikit-learn's, 100 trees, fitted to all values before each batch, of which it takes the rows with the
best predictions. Its first batch is random, as is that of ours.

- found: wanted rows among those evaluated; recall: their share of all that are wanted.
- s a batch: processor time to ask for a batch and to tell its values, on average; one thread.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bkbopt as bo
from benchmarks.arguments import Arguments
from benchmarks.report import DATA, Clock, measuring, print_table

__all__ = ["SETS", "Library", "Run", "main", "screened"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Library:
    """A table.

    Attributes:
        name: of the set.
        X: columns, (A, d), float32.
        y: values, (A,), to be maximised.
        wanted: which rows are sought, (A,) bool.
    """

    name: str
    X: NDArray[np.float32]
    y: NDArray[np.float64]
    wanted: NDArray[np.bool_]

    @classmethod
    def read(cls, folder: Path, name: str, n: int | None = None) -> "Library":
        """A data set in random order, or `n` rows of it."""
        with np.load(folder / f"{name}.npz") as file:
            order = np.random.default_rng(0).permutation(len(file["y"]))[:n]
            X, y = file["X"][order], file["y"][order].astype(np.float64)
        value, wanted = SETS[name](y)
        return cls(name, X, value, wanted)

    def write(self, folder: Path) -> Path:
        """The columns and a name for each row as a file of Parquet."""
        import pyarrow
        import pyarrow.parquet

        path = folder / f"{self.name}.parquet"
        columns: dict[str, Any] = {f"x{j}": self.X[:, j] for j in range(self.X.shape[1])}
        columns["id"] = [f"r{row}" for row in range(len(self.X))]
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
        return path


def _lowest(y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    wanted = np.zeros(len(y), dtype=np.bool_)
    wanted[np.argsort(y, kind="stable")[: max(len(y) // 100, 1)]] = True
    return -y, wanted


def _highest(y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return _lowest(-y)


def _positive(y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return y, y > 0.0


#: From the values of a data set to values that are maximised and the rows that are wanted.
SETS: dict[str, Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.bool_]]]] = {
    "casp": _lowest,
    "w7a": _positive,
    "codrna_remaining": _positive,
    "abalone": _highest,
    "cadata": _lowest,
    "ijcnn1": _positive,
    "spambase": _positive,
}
#: The sets that are run without `--sets`.
USUAL = ("casp", "w7a", "codrna_remaining")


@dataclass(frozen=True)
class Run:
    """What a screening found.

    Attributes:
        found: wanted rows after each batch.
        seconds: processor time of each batch.
    """

    found: list[int]
    seconds: list[float]


#: From a library, its file, a number of batches, their size and a seed to the rows of each batch and their seconds.
Search = Callable[[Library, Path, int, int, int], tuple[list[Ints], list[float]]]


def screened(search: Search, library: Library, path: Path, batches: int, size: int, seed: int) -> Run:
    """Run a search; no row may be evaluated twice."""
    plates, seconds = search(library, path, batches, size, seed)
    rows = np.concatenate(plates)
    if len(np.unique(rows)) < len(rows):
        raise AssertionError(f"{library.name}: expected different rows, got some twice.")
    return Run(np.cumsum([int(library.wanted[plate].sum()) for plate in plates]).tolist(), seconds)


def _ours(library: Library, path: Path, batches: int, size: int, seed: int) -> tuple[list[Ints], list[float]]:
    pool = bo.Pool(path, id_column="id")
    opt = bo.Optimizer(pool, direction="maximize", seed=seed, duplicates="avoid", n_startup_trials=size)
    plates, seconds = [], []
    for _ in range(batches):
        with Clock() as clock:
            trials = opt.ask(size)
            plate = np.array([trial.index for trial in trials], dtype=np.int64)
            opt.tell(trials, library.y[plate].tolist())
        plates.append(plate)
        seconds.append(clock.cpu)
    return plates, seconds


def _random(library: Library, path: Path, batches: int, size: int, seed: int) -> tuple[list[Ints], list[float]]:
    rows = np.random.default_rng(seed).permutation(len(library.y))[: batches * size]
    return np.split(rows, batches), [0.0] * batches


def _forest(library: Library, path: Path, batches: int, size: int, seed: int) -> tuple[list[Ints], list[float]]:
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(seed)
    open_rows, plates, seconds = np.ones(len(library.y), dtype=np.bool_), list[Ints](), list[float]()
    for number in range(batches):
        with Clock() as clock:
            if number == 0:
                plate = rng.permutation(len(library.y))[:size]
            else:
                rows = np.concatenate(plates)
                forest: Any = RandomForestRegressor(100, random_state=seed, n_jobs=1)
                forest.fit(library.X[rows], library.y[rows])
                plate = np.argsort(-np.where(open_rows, forest.predict(library.X), -np.inf), kind="stable")[:size]
            open_rows[plate] = False
        plates.append(plate)
        seconds.append(clock.cpu)
    return plates, seconds


SEARCHES: dict[str, Search] = {"bkbopt": _ours, "random forest, greedy": _forest, "random rows": _random}


def table(library: Library, path: Path, batches: int, size: int, seeds: int) -> list[list[object]]:
    """One row for each search."""
    n, out = int(library.wanted.sum()), []
    for name, search in SEARCHES.items():
        runs = [screened(search, library, path, batches, size, seed) for seed in range(seeds)]
        found = np.mean([run.found for run in runs], axis=0)
        marks = [found[number] / n for number in _marks(batches)]
        out.append([name, round(float(found[-1]), 1), *marks, float(np.mean([run.seconds for run in runs]))])
    most = [min((number + 1) * size, n) / n for number in _marks(batches)]
    return [*out, ["most", min(batches * size, n), *most, None]]


def _marks(batches: int) -> list[int]:
    """The batches after which recall is printed."""
    return sorted({batches // 4, batches // 2, batches - 1})


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = Arguments(__doc__)
    parser.option("--data", DATA, help="folder with the data sets")
    parser.option("--sets", USUAL, quick=USUAL[:1], choices=SETS, help="tables; with --quick 2,000 rows of each")
    parser.option("--batch", 384, quick=64, help="rows of a batch")
    parser.option("--batches", 8, quick=3, help="batches of a run")
    parser.option("--seeds", 1, help="runs of each search")
    options = parser.parse_args(arguments)
    size, batches, names = options.batch, options.batches, options.sets
    missing = [name for name in names if not (options.data / f"{name}.npz").is_file()]
    if missing:
        print(f"screening: {', '.join(missing)} not found in {options.data}; say where the data are with --data.")
        return
    with measuring(1):
        for name in names:
            library = Library.read(options.data, name, 2_000 if options.quick else None)
            with tempfile.TemporaryDirectory() as folder:
                rows = table(library, library.write(Path(folder)), batches, size, options.seeds)
            marks = [f"recall at {(number + 1) * size:,}" for number in _marks(batches)]
            print_table(
                f"{name}: {len(library.y):,} rows, {int(library.wanted.sum()):,} wanted, {batches} batches of {size}",
                ["search", "found", *marks, "s a batch"],
                rows,
            )


if __name__ == "__main__":
    main()
