"""KONS (Calandriello et al. 2017, ICML): the two losses on one point of its last section, and its regret and bounds.

The paper prints no numbers. Two losses: the same point in each round, squared loss, targets C and -C in turn. The best
fixed prediction is 0, and a dictionary that only adds or reweighs copies of the point cannot have small regret and
small size at once. Schedules of weights show it by the paper's own quantities: R_G = sum_t g^2 / (alpha + sigma sum of
the weights so far g^2), with g^2 = 4 C^2, and R_D as it counts it, sum_t max(w_t - 1, 0).
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper_tables.runs import Kept, margins, settings_of
from benchmarks.paper_tables.sets import Array, Data, available, load, permuted, scaled
from benchmarks.report import print_table
from bkbopt import learners as bl
from bkbopt.learners import OnlineLearner

__all__ = ["print_bounds", "print_two_losses", "schedules", "two_losses", "worst_comparator"]

STREAMS = ("german", "codrna", "ijcnn1", "casp")
SIGMA = 1.0 / 8.0


def two_losses(learner: OnlineLearner, rounds: int) -> dict[str, Any]:
    """Regret against 0 after a quarter, half and all of the rounds, and the size of the dictionary; C = 1."""
    X, y = np.full((rounds, 1), 0.5), np.where(np.arange(rounds) % 2 == 0, 1.0, -1.0)
    p = margins(learner, X, y)
    regret = np.cumsum((p - y) ** 2 - 1.0)
    return {"regret": [float(regret[t - 1]) for t in (rounds // 4, rounds // 2, rounds)], "m": learner.dictionary_size_}


def schedules(rounds: int, size: int) -> dict[str, Array]:
    """Weights `(rounds,)` by which a dictionary of `size` copies may stand for all."""
    first = np.zeros(rounds)
    first[:size] = 1.0
    heavy = first.copy()
    heavy[0] = rounds - size + 1.0
    return {f"all {rounds} copies": np.ones(rounds), f"the first {size} copies": first, "the first one heavy": heavy}


def print_two_losses(kept: Kept, rounds: int) -> None:
    """The counter-example: regret and dictionary of learners, then of schedules of weights."""
    learners: dict[str, OnlineLearner] = {
        "KONS": bl.KONS.paper(loss="squared"),
        **{
            f"Sketched-KONS, gamma = {g:g}": bl.SketchedKONS.paper(loss="squared", min_probability=g)
            for g in (0.3, 0.1, 0.03, 0.0)
        },
        "PROS-N-KONS": bl.ProsNKONS.paper(loss="squared"),
        "KOGD, steps of 1/sqrt(T)": bl.KOGD.paper(loss="squared", step=1.0 / math.sqrt(rounds)),
    }
    lines = []
    for title, learner in learners.items():
        settings = {"rounds": rounds, "learner": settings_of(learner)}
        run = kept(f"two losses {title}", settings, lambda learner=learner: two_losses(learner, rounds))
        lines.append((title, *run["regret"], run["m"]))
    print_table(
        f"KONS, two losses on one point: regret against 0, C = 1, alpha = 1, sigma = 1/8, T = {rounds:,}",
        ("learner", f"t = {rounds // 4:,}", f"t = {rounds // 2:,}", f"t = {rounds:,}", "m"),
        lines,
        "m: copies of the point in A (KONS), in the Nystrom dictionary (PROS-N-KONS), terms (KOGD).",
    )
    rows = []
    for title, w in schedules(rounds, max(1, round(math.log(rounds)))).items():
        newton = float(np.sum(4.0 / (1.0 + SIGMA * 4.0 * np.cumsum(w))))
        rows.append((title, newton, float(np.maximum(w - 1.0, 0.0).sum()), int((w > 0).sum())))
    print_table("KONS, two losses: schedules of weights", ("weights", "R_G", "R_D", "B"), rows)


def worst_comparator(K: Array, y: Array, loss: float, learner: bl.KONS) -> tuple[float, float]:
    """The regret and the norm of that f whose regret comes nearest to its bound.

    Among ridge regressions of ridges 1e-3 to 1e3, shrunk until |f(x_t)| <= 1, as the bound asks for.
    """
    found = []
    for ridge in 10.0 ** np.arange(-3, 4):
        a = np.linalg.solve(K + ridge * np.eye(len(y)), y)
        f = K @ a
        shrink = min(1.0, 1.0 / float(np.abs(f).max()))
        norm = shrink * math.sqrt(max(float(a @ f), 0.0))
        found.append((loss - float(np.sum((shrink * f - y) ** 2)), norm))
    return max(found, key=lambda pair: pair[0] - learner.regret_bound(pair[1]))


def regret(data: Data, width: float) -> dict[str, Any]:
    """KONS with the squared loss on the stream: its loss, the regret and the bounds at the comparator above."""
    X, y = data
    learner = bl.KONS.paper(loss="squared", lengthscale=width)
    p = learner.progressive(X, y)
    loss = float(np.sum((p - y) ** 2))
    square = (X**2).sum(axis=1)
    K = np.exp(-0.5 * np.maximum(square[:, None] + square[None] - 2.0 * X @ X.T, 0.0) / width**2)
    worst, norm = worst_comparator(K, y, loss, learner)
    slopes = SIGMA * 16.0  # sigma L^2, with L = 4 C
    lam = np.linalg.eigvalsh(K)
    dimension = float(np.sum(lam / (lam + 1.0 / slopes)))
    theorem = norm**2 + 2.0 * dimension * math.log(2.0 * slopes * len(y)) / SIGMA
    found = {"loss": loss, "norm": norm, "regret": worst, "proposition": learner.regret_bound(norm)}
    return {**found, "dimension": dimension, "theorem": theorem}


def print_bounds(folder: Path, kept: Kept, rows: int) -> None:
    """The regret of KONS on real streams beside Proposition 1 and Theorem 1."""
    lines = []
    for name in STREAMS:
        if not available(folder, name):
            continue
        X, y = permuted(scaled(load(folder, name)), 0, rows)
        width = math.sqrt(X.shape[1])
        run = kept(f"kons {name}", {"rows": len(y), "width": width}, lambda X=X, y=y, w=width: regret((X, y), w))
        keys = ("loss", "regret", "proposition", "theorem", "norm", "dimension")
        lines.append((f"{name}, {len(y):,} rows", *(run[key] for key in keys)))
    print_table(
        "KONS: regret beside its bounds; squared loss, targets on [-1, 1], C = alpha = 1, width sqrt(d)",
        ("stream", "loss", "regret", "proposition 1", "theorem 1", "|f|", "d_eff"),
        lines,
        "f: that ridge regression, of ridges 1e-3 to 1e3 and shrunk to |f(x)| <= 1, whose regret comes nearest to the "
        "first bound. Proposition 1 without its spare factor of two, as the learner states it.",
    )
