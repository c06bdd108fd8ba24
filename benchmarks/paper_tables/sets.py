"""The streams of the papers: data sets from files of ours or LIBSVM's, scaled or not, and the adversarial streams."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["LIBSVM_NAMES", "Array", "Data", "adversarial", "available", "load", "permuted", "scaled", "shrunk"]

Array = npt.NDArray[np.float64]
Data = tuple[Array, Array]

#: Files in LIBSVM's format, as it names them, for sets that stand beside the others where a user has them.
LIBSVM_NAMES = {
    "german": ("german.numer_scale",),
    "svmguide3": ("svmguide3",),
    "spambase": ("spambase",),
    "codrna": ("cod-rna",),
    "codrna-test": ("cod-rna.t",),
    "w7a": ("w7a",),
    "ijcnn1": ("ijcnn1", "ijcnn1.t"),
    "casp": ("casp",),
    "susy": ("SUSY",),
    "kuairec": ("kuairec",),
}
ENDINGS = ("", ".bz2", ".gz")


def _libsvm_files(folder: Path, name: str) -> list[Path] | None:
    """The files of a set, or None if one is not there."""
    found = []
    for stem in LIBSVM_NAMES.get(name, ()):
        path = next((p for ending in ENDINGS if (p := folder / (stem + ending)).is_file()), None)
        if path is None:
            return None
        found.append(path)
    return found or None


def available(folder: Path, name: str) -> bool:
    """Whether the folder has the set in either form."""
    return (folder / f"{name}.npz").is_file() or _libsvm_files(folder, name) is not None


@lru_cache(maxsize=2)
def load(folder: Path, name: str) -> Data:
    """Rows `X (n, d)` and targets `y (n,)` of a set, in the order of the file; two classes are -1 and +1.

    Raises:
        FileNotFoundError: the folder has neither `name.npz` nor the files in LIBSVM's format.
    """
    path = folder / f"{name}.npz"
    if path.is_file():
        with np.load(path) as file:
            X, y = file["X"].astype(np.float64), file["y"].astype(np.float64)
    else:
        files = _libsvm_files(folder, name)
        if files is None:
            wanted = " and ".join(LIBSVM_NAMES.get(name, (name,)))
            raise FileNotFoundError(f"{folder}: expected {name}.npz, or {wanted} in LIBSVM's format (also .bz2, .gz).")
        from sklearn.datasets import load_svmlight_files

        parts = load_svmlight_files([str(file) for file in files])
        X = np.vstack([part.toarray() for part in parts[::2]])
        y = np.concatenate(parts[1::2])
    labels = np.unique(y)
    return X, (np.where(y == labels[-1], 1.0, -1.0) if len(labels) == 2 else y)


def permuted(data: Data, seed: int | None, rows: int | None = None) -> Data:
    """The rows in the order of permutation `seed`, cut to `rows`; seed None is that on which widths are chosen."""
    order = np.random.default_rng([0] if seed is None else [1, seed]).permutation(len(data[1]))[:rows]
    return data[0][order], data[1][order]


def scaled(data: Data) -> Data:
    """Each column, and the targets, on [-1, 1]; constant columns are 0."""

    def unit(A: Array) -> Array:
        low, high = A.min(axis=0), A.max(axis=0)
        width = np.where(high > low, high - low, 1.0)
        return np.where(high > low, 2.0 * (A - low) / width - 1.0, 0.0)

    return unit(data[0]), unit(data[1])


def shrunk(data: Data) -> Data:
    """Each column, and the targets, over the largest absolute value: within [-1, 1], and zeros stay."""

    def unit(A: Array) -> Array:
        largest = np.abs(A).max(axis=0)
        return A / np.where(largest > 0.0, largest, 1.0)

    return unit(data[0]), unit(data[1])


def adversarial(data: Data, seed: int | None, repeats: int, blocks: int = 500) -> Data:
    """Blocks of one row each, `repeats` times over, with labels turned in the second, fourth, ... block."""
    X, y = permuted(data, seed, blocks)
    turned = np.where(np.arange(len(y)) % 2 == 1, -y, y)
    return np.repeat(X, repeats, axis=0), np.repeat(turned, repeats)
