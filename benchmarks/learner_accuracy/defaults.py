"""What defaults of the learners rest on: lengthscales in units of the root of d, and what further classes cost.

`--lengthscales` prints the mean over the streams of what was right, by learner and by lengthscale, all else by default;
below -100 counts as -100. `--several` prints the time of the ten digits as ten classes and as two, and which part of it
classes could share in ProsNKONS whose dictionary is full: kernel values with the dictionary, and features from these.
"""

from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np

from benchmarks.learner_accuracy.sets import Array, Stream, right
from benchmarks.report import MB, print_table
from bkbopt import learners as bl
from bkbopt.learners import OnlineLearner
from bkbopt.learners.newton.prosnkons import product

__all__ = ["lengthscales", "several"]

FACTORS = (0.25, 0.35, 0.5, 0.71, 1.0, 1.41)
#: Rows of learners whose rounds grow with the stream.
GROWING = 2_000
OF_CLASSES = (bl.FOGD, bl.NOGD, bl.FORKS, bl.ProsNKONS, bl.BPAS, bl.RBP, bl.BOGD, bl.KOGD, bl.KONS)
OF_NUMBERS = (bl.FOGD, bl.NOGD, bl.FORKS, bl.ProsNKONS, bl.BOGD, bl.KOGD, bl.KernelAWV, bl.PKAWV)


def _score(kind: type[OnlineLearner], stream: Stream, factor: float) -> float:
    labels = stream.y.dtype.kind != "f"
    loss = {} if labels or not hasattr(kind, "loss") or kind in (bl.KernelAWV, bl.PKAWV) else {"loss": "squared"}
    n = GROWING if kind in (bl.KOGD, bl.KONS, bl.KernelAWV) else len(stream.y)
    used = Stream(stream.name, stream.X[:n], stream.y[:n])
    learner = kind(lengthscale=factor * stream.X.shape[1] ** 0.5, **loss)
    return max(right(used, learner.progressive(used.X, used.y)), -100.0)


def lengthscales(title: str, streams: Sequence[Stream], kinds: Sequence[type[OnlineLearner]]) -> None:
    """Print the table of `--lengthscales` for these streams."""
    rows = [(k.__name__, *(f"{np.mean([_score(k, s, f) for s in streams]):.1f}" for f in FACTORS)) for k in kinds]
    print_table(title, ("lengthscale / sqrt d", *map(str, FACTORS)), rows)


def _seconds(kind: type[OnlineLearner], X: Array, y: Array) -> float:
    times = []
    for _ in range(4):  # the first one compiles
        learner, start = kind(), process_time()
        learner.progressive(X, y)
        times.append(process_time() - start)
    return min(times[1:])


def several(n: int) -> None:
    """Print the tables of `--several` for the first n rows."""
    from sklearn.datasets import load_digits

    X, y = (part[:n] for part in load_digits(return_X_y=True))
    rows = []
    for kind in (bl.ProsNKONS, bl.FORKS, bl.NOGD, bl.FOGD, bl.BPAS):
        two, ten = _seconds(kind, X, y > 4), _seconds(kind, X, y)
        rows.append((kind.__name__, two, ten, ten / two))
    print_table("Digits, seconds of processor time", ("learner", "2 classes", "10 classes", "ratio"), rows)
    learnt = bl.ProsNKONS().fit(X, y)._after_rows()
    first: Any = learnt.runs.first
    assert learnt.units is not None
    Z, S, Wt = learnt.units.scaled_rows(X), first._S.rows, np.ascontiguousarray(first._W.T)
    z, times = np.empty(len(Wt)), []
    for _ in range(4):
        start = process_time()
        K = first._gram(Z, S)
        kernel = process_time() - start
        for k in K:
            product(Wt, k, z)
        shared = process_time() - start
        first._copy()._stream(Z, np.where(y == 0, -1.0, 1.0))
        times.append((kernel, shared - kernel, process_time() - start - shared))
    kernel, features, whole = np.min(times[1:], axis=0)
    heads: list[Any] = [first, *learnt.runs.heads]
    own = sum(h._A.nbytes + h._u.nbytes for h in heads) / MB
    alike = sum(h._S.rows.nbytes + h._W.nbytes + h._kors.L.nbytes for h in heads) / MB
    print_table(
        "ProsNKONS with a full dictionary, one class",
        ("kernel s", "features s", "all s", "MB of A and u", "MB of the dictionaries"),
        [(kernel, features, whole, own, alike)],
        "All includes the first two; memory is that of all ten.",
    )
