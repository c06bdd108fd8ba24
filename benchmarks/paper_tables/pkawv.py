"""Figures 2, 3 and 4 of PKAWV (Jezequel et al. 2019) as tables: ridge regression on features, and a greedy adversary.

The paper prints no numbers beside these figures; the statements of its text are below the tables. Settings are its
own: Gaussian kernel of width 1 (4 for SUSY), lam = 1, KORS with mu = beta = 1 and eps = 0.5, FOGD with 1,000 features
and steps of 1/sqrt(n), all columns and targets on [-1, 1].

The paper's adversary is an optimiser of SciPy that is not named. Ours searches at random: the regret is convex in y, so
that y is -1 or +1; x is the best of 500 uniform points, then of 200 around the best so far, four times, ever nearer.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper_tables.runs import Kept, margins, mean_sd, settings_of
from benchmarks.paper_tables.sets import Array, Data, available, load, permuted, scaled, shrunk
from benchmarks.report import Clock, print_table
from bkbopt import learners as bl
from bkbopt.learners import OnlineLearner

__all__ = ["attack", "figure3", "forecasters", "print_figures", "timed"]

Makers = dict[str, Callable[[], OnlineLearner]]
CHECKPOINTS = (1_000, 10_000, 50_000)
#: Exact ridge regression needs t^2 numbers.
EXACT_ROWS = 10_000
#: Our set, figure, kernel width, and how it comes into [-1, 1], which the paper does not say. Where zeros become -1,
#: as in the binary columns of ijcnn1, all points are so far from the origin that Taylor features vanish.
FIGURES: tuple[tuple[str, str, float, Callable[[Data], Data]], ...] = (
    ("codrna", "2", 1.0, scaled),
    ("susy", "2", 4.0, scaled),
    ("casp", "4", 1.0, scaled),
    ("ijcnn1", "4", 1.0, scaled),
    ("ijcnn1", "4", 1.0, shrunk),
)
MOST_TAYLOR = 3_000


def forecasters(n: int, width: float, *, forward: bool) -> Makers:
    """The learners of the figures for `n` rounds; with `forward` the adversary's victims, else ridge regression."""
    exact = bl.KernelAWV if forward else bl.OnlineKRR
    projected = {"lengthscale": width, "forward": forward}
    return {
        "Kernel-AWV" if forward else "kernel ridge": lambda: exact.paper(lengthscale=width),
        "Taylor, M = 2": lambda: bl.PKAWV.paper(degree=2, **projected),
        "Taylor, M = 3": lambda: bl.PKAWV.paper(degree=3, **projected),
        "Taylor, M = 4": lambda: bl.PKAWV.paper(degree=4, **projected),
        "Nystrom": lambda: bl.PKAWV.paper(features="nystrom", **projected),
        "PROS-N-KONS": lambda: bl.ProsNKONS.paper(loss="squared", lengthscale=width),
        "FOGD": lambda: bl.FOGD.paper(loss="squared", frequencies=500, step=1.0 / np.sqrt(n), lengthscale=width),
    }


def timed(learner: OnlineLearner, data: Data, limit: float, chunk: int = 500) -> dict[str, Any]:
    """Mean losses and processor seconds so far, chunk by chunk, until the stream or the time is over."""
    X, y = data
    classes = len(np.unique(y)) == 2
    clock, total = Clock(), 0.0
    record: dict[str, Any] = {"rows": [], "loss": [], "cpu": []}
    for a in range(0, len(X), chunk):
        with clock:
            p = margins(learner, X[a : a + chunk], y[a : a + chunk])
        target = y[a : a + chunk]
        total += float(np.sum(p * target <= 0.0) if classes else np.sum((p - target) ** 2))
        done = min(a + chunk, len(X))
        if done in CHECKPOINTS or done == len(X) or clock.cpu > limit:
            record["rows"].append(done)
            record["loss"].append(total / done)
            record["cpu"].append(clock.cpu)
        if clock.cpu > limit:
            break
    return {**record, "m": 2 * learner.frequencies if isinstance(learner, bl.FOGD) else learner.dictionary_size_}


def _stream(folder: Path, name: str) -> Data:
    """The paper's codrna has 270,000 rows: LIBSVM's test file, or else the two files that we have of the same data."""
    if name != "codrna":
        return load(folder, name)
    if available(folder, "codrna-test"):
        return load(folder, "codrna-test")
    parts = [load(folder, part) for part in ("codrna", "codrna_remaining") if available(folder, part)]
    return np.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def print_figures(folder: Path, kept: Kept, limit: float, rows: int | None) -> None:
    """Figures 2 and 4: losses and times against rows, one order of each set."""
    for name, figure, width, into in FIGURES:
        if not available(folder, name):
            print(f"  not there, and left out of figure {figure}: {name}", flush=True)
            continue
        data = permuted(into(_stream(folder, name)), 0, rows)
        n, d = data[0].shape
        how = "columns stretched to [-1, 1]" if into is scaled else "columns over their largest"
        learners = forecasters(n, width, forward=False)
        lines = [
            _figure_line(f"figure{figure} {name}{' shrunk' * (into is shrunk)} {title}", make(), data, kept, limit)
            for title, make in learners.items()
        ]
        lines = [(title, *line) for title, line in zip(learners, lines, strict=True)]
        kind = "error %" if len(np.unique(data[1])) == 2 else "squared loss x 100"
        print_table(
            f"PKAWV, figure {figure}, {name}: {n:,} rows, d = {d}, {how}; {kind}",
            ("learner", "rows", *(f"after {c:,}" for c in CHECKPOINTS), "at the end", "cpu s", "m"),
            lines,
            f"Stopped after {limit:g} s of processor time or, exact ridge regression, {EXACT_ROWS:,} rows. Bases of "
            f"more than {MOST_TAYLOR:,} features are left out.",
        )


def _figure_line(title: str, learner: OnlineLearner, data: Data, kept: Kept, limit: float) -> tuple[object, ...]:
    X, y = data
    features = _taylor_size(learner, X.shape[1])
    if features > MOST_TAYLOR:
        return None, *[None] * len(CHECKPOINTS), None, None, features
    n = min(len(y), EXACT_ROWS) if isinstance(learner, bl.OnlineKRR) else len(y)
    settings = {"rows": n, "limit": limit, "learner": settings_of(learner)}

    def compute() -> dict[str, Any]:
        margins(type(learner)(**learner.get_params()), X[:64], y[:64])  # compiles
        return timed(learner, (X[:n], y[:n]), limit)

    run = kept(title, settings, compute)
    at = dict(zip(run["rows"], run["loss"], strict=True))
    losses = [100.0 * at[c] if c in at else None for c in CHECKPOINTS]
    return run["rows"][-1], *losses, 100.0 * run["loss"][-1], run["cpu"][-1], run["m"]


def _taylor_size(learner: OnlineLearner, d: int) -> int:
    """Number of Taylor features; 0 for other learners."""
    taylor = isinstance(learner, bl.PKAWV) and learner.features == "taylor"
    return math.comb(d + learner.degree, d) if taylor else 0


class Referee:
    """The least value of sum_s (y_s - f(x_s))^2 + |f|^2 over the kernel's space, and what a further row adds to it."""

    def __init__(self, d: int, width: float = 1.0) -> None:
        self.X, self.y, self.width = np.empty((0, d)), np.empty(0), width
        self.minimum = 0.0

    def _kernel(self, A: Array, B: Array) -> Array:
        return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2) / self.width**2)

    def increases(self, X: Array, y: Array) -> Array:
        """What each row of `X (c, d)` with `y (c,)` would add: (y - p)^2 / (1 + h)."""
        k = self._kernel(X, self.X)
        G = np.linalg.solve(self._kernel(self.X, self.X) + np.eye(len(self.y)), np.column_stack([k.T, self.y]))
        h = 1.0 - np.einsum("ij,ji->i", k, G[:, :-1])
        return (y - k @ G[:, -1]) ** 2 / (1.0 + h)

    def add(self, x: Array, y: float) -> None:
        self.minimum += float(self.increases(x[None], np.array([y]))[0])
        self.X, self.y = np.vstack([self.X, x]), np.append(self.y, y)


def attack(learner: OnlineLearner, n: int, d: int, seed: int) -> dict[str, Any]:
    """The regret after each of `n` rounds against the greedy adversary."""
    rng, referee = np.random.default_rng(seed), Referee(d)
    loss, regret = 0.0, []
    for t in range(n):

        def gains(X: Array, t: int = t) -> Array:
            p = learner.predict(X) if t else np.zeros(len(X))
            return np.array([(y - p) ** 2 - referee.increases(X, np.full(len(X), y)) for y in (-1.0, 1.0)])

        X = rng.uniform(-1.0, 1.0, (500, d))
        for scale in (0.3, 0.1, 0.03, 0.01, 0.0):
            gain = gains(X)
            x = X[int(np.argmax(gain.max(axis=0)))]
            y = (-1.0, 1.0)[int(np.argmax(gain.max(axis=1)))]
            if scale:
                near = np.clip(x + scale * rng.normal(size=(200, d)), -1.0, 1.0)
                X = np.vstack([x, near])
        p = float(learner.progressive(x[None], [y])[0])
        loss += (y - p) ** 2
        referee.add(x, y)
        regret.append(loss - referee.minimum)
    K = referee._kernel(referee.X, referee.X)
    return {"regret": regret, "bound": float(np.linalg.slogdet(np.eye(n) + K)[1])}


def figure3(kept: Kept, seeds: int, n: int = 80, d: int = 5) -> None:
    """Figure 3: the regret of each learner against its own greedy adversary."""
    lines = []
    looks = [n // 4, n // 2, n]
    for title, make in forecasters(n, 1.0, forward=True).items():
        runs = []
        for seed in range(seeds):
            learner = make()
            if "seed" in learner.get_params():
                learner.set_params(seed=seed)
            settings = {"n": n, "d": d, "seed": seed, "learner": settings_of(learner)}
            run = kept(
                f"figure3 {title} {seed}",
                settings,
                lambda learner=learner, seed=seed: attack(learner, n, d, seed),
            )
            runs.append(run)
        bound = mean_sd([run["bound"] for run in runs]) if title == "Kernel-AWV" else None
        lines.append((title, *(mean_sd([run["regret"][t - 1] for run in runs]) for t in looks), bound))
    print_table(
        f"PKAWV, figure 3: regret against a greedy adversary, x in [-1, 1]^{d}, y in [-1, 1]; {seeds} adversaries",
        ("learner", *(f"n = {t}" for t in looks), "bound"),
        lines,
        "Against the regularised least squares of the whole kernel. The paper's text: Kernel-AWV is best, Taylor comes "
        "very close as M grows, PROS-N-KONS is poor, FOGD surprisingly good.",
    )
