"""Intact logs to be damaged: various optimizers, each with a few trials in all states."""

from typing import Any

import numpy as np

import bkbopt as bo
from bkbopt import confidence
from bkbopt.kernels import rbf

BOX = {"x": (0.0, 1.0), "rate": bo.Float(1e-4, 1.0, log=True)}
MIXED = {"x": (0.0, 1.0), "n": bo.Int(1, 50, log=True), "kind": ["a", None, True], "step": bo.Float(0.0, 1.0, step=0.1)}
TREE = {
    "model": ["svm", "forest"],
    "C": bo.Float(0.01, 100.0, log=True, when={"model": "svm"}),
    "trees": bo.Ordinal([10, 30, 100], when={"model": "forest"}),
    "x": (0.0, 1.0),
}
POOL = np.random.default_rng(0).random((40, 2)) * [1.0, 50.0]
WORDS = ["ant", "bee", "cat", "antelope", "beetle", "catfish", "ape", "bat"]


def letters(A: list[str], B: list[str]) -> list[list[float]]:
    """A kernel of words."""
    return [[len(set(a) & set(b)) / (len(set(a)) * len(set(b))) ** 0.5 for b in B] for a in A]


#: Space or pool, options, and what `load` takes beside the file.
CASES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "box": (BOX, {}, {}),
    "mixed": (MIXED, {"acquisition": "logei"}, {}),
    "grid": ({"a": bo.Int(0, 5), "c": ["u", "v"]}, {"duplicates": "avoid", "beta": 1.5}, {}),
    "conditional": (TREE, {}, {}),
    "objectives": (BOX, {"directions": ["minimize", "maximize"]}, {}),
    "constraints": (BOX, {"constraints": ["heat", "odd 'name\""]}, {}),
    "pool": (POOL, {"beta": confidence.Batch(confidence.Srinivas(delta=0.2))}, {}),
    "queue": (MIXED, {"perturbations": False}, {}),
    "moved": (MIXED, {}, {}),
    "learner": (BOX, {"surrogate": bo.LearnerSurrogate(learner="forks", settings={"budget": 4})}, {}),
    "fourier": (BOX, {"surrogate": bo.FourierGP(n_frequencies=30, seed=5)}, {}),
    "exact": (BOX, {"surrogate": bo.ExactGP(rbf(2, 0.7, 3.0)), "acquisition": "thompson"}, {}),
    "theory": (POOL, {}, {}),
    "words": (bo.Pool(WORDS), {}, {"pool": WORDS}),
}


def given(name: str) -> dict[str, Any]:
    """Arguments of `load` besides the file."""
    more = CASES[name][2]
    return {**more, "surrogate": bo.BKB(kernel=letters, noise=0.1)} if name == "words" else dict(more)


def made(name: str) -> bo.Optimizer:
    """An optimizer with trials in all states."""
    space, options, _ = CASES[name]
    if name == "theory":
        opt = bo.theory(POOL, kernel=rbf(2, [0.3, 10.0]), noise=0.01, norm_bound=2.0, horizon=30, seed=3)
    else:
        if name == "words":
            options = {"surrogate": bo.BKB(kernel=letters, noise=0.1)}
        opt = bo.Optimizer(space, **{"seed": 11, "n_startup_trials": 3, **options})
    for trial in opt.ask(6):
        answer(opt, trial)
    opt.ask(2)
    if name in ("mixed", "queue"):
        for trial, attrs in zip(opt.trials, ({"host": "a1"}, {"scores": [1.0, {"deep": None}]}), strict=False):
            opt.set_user_attr(trial, *attrs.popitem())
    if name == "queue":
        opt.enqueue({"x": 0.125})
        opt.enqueue({})
    if name == "moved":
        opt.enqueue({"n": 7})
        opt.set_space({"x": (0.2, 2.0), "kind": ["a", None, True], "new": bo.Ordinal([1, 2, 4])})
        answer(opt, opt.ask())
    return opt


def answer(opt: bo.Optimizer, trial: bo.Trial) -> None:
    """Tell the trial, or fail it, as its number and parameters say."""
    words = [v if isinstance(v, (int, float)) else len(str(v)) for v in trial.params.values()]
    value = float(sum(np.sin(3.0 * word + i) for i, word in enumerate(words)))
    if trial.id == 3:
        opt.fail(trial)
        return
    limits = {name: value - 0.2 * i for i, name in enumerate(opt.constraints)}
    values = [value * (k + 1) for k in range(len(opt.directions))]
    std = [0.1] * len(values) if trial.id == 4 and opt.surrogate.takes_weights else None
    opt.tell(trial, values if len(values) > 1 else value, constraints=limits, std=std)
