"""The streams: real tables shuffled, and river's streams in their order, with drift."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["CLASSES", "NUMBERS", "Stream", "load", "right", "synthetic"]

Array = np.ndarray


@dataclass(frozen=True)
class Stream:
    """Rows `X (n, d)` with targets `y (n,)` in the order in which they come."""

    name: str
    X: Array
    y: Array


def _shuffled(name: str, X: Array, y: Array, rows: int) -> Stream:
    order = np.random.default_rng(0).permutation(len(X))[:rows]
    return Stream(name, np.asarray(X, dtype=np.float64)[order], y[order])


def _file(name: str, stem: str, *, labels: bool) -> Callable[[Path | None, int], Stream | None]:
    def read(folder: Path | None, rows: int) -> Stream | None:
        if folder is None or not (folder / f"{stem}.npz").is_file():
            return None
        with np.load(folder / f"{stem}.npz") as file:
            y = file["y"].astype(int) if labels else file["y"].astype(np.float64)
            return _shuffled(name, file["X"], y, rows)

    return read


def _sklearn(loader: str, name: str) -> Callable[[Path | None, int], Stream]:
    def read(_: Path | None, rows: int) -> Stream:
        from sklearn import datasets

        return _shuffled(name, *getattr(datasets, loader)(return_X_y=True), rows)

    return read


def _river(name: str, make: Callable[[int], Iterable[Any]]) -> Callable[[Path | None, int], Stream]:
    def read(_: Path | None, rows: int) -> Stream:
        taken = list(islice(make(rows), rows))
        names = sorted(taken[0][0])
        X = np.array([[float(x[key]) for key in names] for x, _ in taken])
        labels = np.array([y for _, y in taken])
        return Stream(name, X, labels.astype(int) if labels.dtype == bool else labels)

    return read


def _sea(rows: int) -> Iterable[Any]:
    from river.datasets import synth

    old, new = synth.SEA(variant=0, seed=1), synth.SEA(variant=2, seed=2)
    return synth.ConceptDriftStream(old, new, position=rows // 2, width=rows // 50 + 1, seed=3)


def _hyperplane(_: int) -> Iterable[Any]:
    from river.datasets import synth

    return synth.Hyperplane(seed=1, n_drift_features=5, mag_change=0.002)


def _blobs(_: int) -> Iterable[Any]:
    from river.datasets import synth

    drift = {"n_centroids": 20, "n_drift_centroids": 20, "change_speed": 0.2}
    return synth.RandomRBFDrift(seed_model=1, seed_sample=1, n_classes=4, n_features=6, **drift)


def _shipped(name: str) -> Callable[[int], Iterable[Any]]:
    def make(_: int) -> Iterable[Any]:
        from river import datasets

        return getattr(datasets, name)()  # type: ignore[no-any-return]

    return make


#: Streams of labels; river's last three drift: at once, slowly, and the four classes' centres all the time.
CLASSES: dict[str, Callable[[Path | None, int], Stream | None]] = {
    "cancer": _sklearn("load_breast_cancer", "cancer"),
    "german": _file("german", "german_numer", labels=True),
    "spambase": _file("spambase", "spambase", labels=True),
    "codrna": _file("codrna", "codrna", labels=True),
    "ijcnn1": _file("ijcnn1", "ijcnn1", labels=True),
    "digits": _sklearn("load_digits", "digits"),
    "phishing": _river("phishing", _shipped("Phishing")),
    "segments": _river("segments", _shipped("ImageSegments")),
    "bananas": _river("bananas", _shipped("Bananas")),
    "SEA": _river("SEA", _sea),
    "plane": _river("plane", _hyperplane),
    "blobs": _river("blobs", _blobs),
}
#: Streams of numbers.
NUMBERS: dict[str, Callable[[Path | None, int], Stream | None]] = {
    "diabetes": _sklearn("load_diabetes", "diabetes"),
    "abalone": _file("abalone", "abalone", labels=False),
    "casp": _file("casp", "casp", labels=False),
    "cadata": _file("cadata", "cadata", labels=False),
    "trump": _river("trump", _shipped("TrumpApproval")),
}


def load(
    kinds: dict[str, Callable[[Path | None, int], Stream | None]], folder: Path | None, rows: int, skip: int = 0
) -> list[Stream]:
    """The available streams with more than `skip` rows, cut to `rows`."""
    found = [read(folder, rows) for read in kinds.values()]
    return [stream for stream in found if stream is not None and len(stream.y) > skip]


def synthetic(rows: int, *, labels: bool) -> Stream:
    """A small synthetic stream, for tests."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3)) * np.array([1.0, 100.0, 0.01])
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] / 100.0
    return Stream("waves", X, np.digitize(f, [-0.5, 0.5]) if labels else 1000.0 * f + rng.normal(size=rows))


def right(stream: Stream, p: Array) -> float:
    """Percentage of labels that were right, or 100 R^2."""
    y = stream.y[: len(p)]
    if y.dtype.kind != "f":
        return 100.0 * float(np.mean(p == y))
    with np.errstate(over="ignore", invalid="ignore"):
        return 100.0 * (1.0 - float(np.mean((p - y) ** 2) / np.var(y)))
