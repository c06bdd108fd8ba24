"""Optimizers of every kind for tests of saved logs, and runs of them that are the same in every process."""

from typing import Any

import numpy as np

import bkbopt as bo
from bkbopt import confidence
from bkbopt.kernels import rbf

BOX = {"x": (0.0, 1.0), "rate": bo.Float(1e-4, 1.0, log=True)}
MIXED = {"x": (0.0, 1.0), "n": bo.Int(1, 50, log=True), "kind": ["a", None, True], "step": bo.Float(0.0, 1.0, step=0.1)}
GRID = {"a": bo.Int(0, 9), "b": bo.Int(0, 9), "c": ["u", "v"]}
TREE = {
    "model": ["svm", "forest"],
    "C": bo.Float(0.01, 100.0, log=True, when={"model": "svm"}),
    "trees": bo.Ordinal([10, 30, 100], when={"model": "forest"}),
    "x": (0.0, 1.0),
}
POOL = np.random.default_rng(0).random((120, 2)) * [1.0, 50.0]


def loss(params: Any) -> float:
    """Any function of the parameters, the same in every process, with noise that depends on them only."""
    total = 0.0
    for i, value in enumerate(params.values()):
        number = float(value) if isinstance(value, (int, float)) else float(len(str(value)))
        total += np.sin(3.0 * number + i) + 0.1 * np.sin(1e4 * number)
    return float(total)


def advance(opt: bo.Optimizer, n: int) -> list[str]:
    """Ask `n` times, tell most late and let some fail; what was asked, to the last bit."""
    asked = []
    for _ in range(n):
        trial = opt.ask()
        asked.append(repr((trial.id, trial.index, dict(trial.params))))
        running = [t for t in opt.trials if t.state == "RUNNING"]
        if len(running) > 2:  # the oldest of three comes in; every seventh fails
            first = running[0]
            answer(opt, first)
    return asked


def answer(opt: bo.Optimizer, trial: bo.Trial) -> None:
    """Tell the trial, or fail it, as its number and parameters say."""
    value = loss(trial.params)
    limits = {name: value - 0.2 * i for i, name in enumerate(opt.constraints)}
    several = len(opt.directions) > 1
    if trial.id % 7 == 3:
        opt.fail(trial)
    elif trial.id % 5 == 4 and limits:  # a run that gives the values of the constraints only
        opt.tell(trial, None, constraints=limits)
    else:
        std = [0.1, 0.2] if several and trial.id % 5 == 4 else None
        opt.tell(trial, [value, value**2] if several else value, constraints=limits, std=std)


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "box": (BOX, {}),
    "mixed": (MIXED, {}),
    "grid": (GRID, {"duplicates": "avoid"}),
    "pool": (POOL, {}),
    "box by exact GP": (BOX, {"surrogate": "exact"}),
    "box by Fourier features": (BOX, {"surrogate": bo.FourierGP(n_frequencies=30, seed=5)}),
    "box by PKAWV": (BOX, {"surrogate": "pkawv"}),
    "box by FORKS": (BOX, {"surrogate": bo.LearnerSurrogate(learner="forks", settings={"budget": 4})}),
    "pool by Sketched-KONS": (POOL, {"surrogate": "sketched-kons"}),
    "box every step": (BOX, {"surrogate": bo.BKB(resample="every", qbar=3.0, max_inducing=20, coins="pull")}),
    "box uniform": (BOX, {"surrogate": bo.BKB(dictionary="uniform", max_inducing=15, variance="sor")}),
    "box logei": (BOX, {"acquisition": "logei", "direction": "maximize"}),
    "box thompson": (BOX, {"acquisition": "thompson", "surrogate": "exact"}),
    "box with known noise": (BOX, {"surrogate": bo.BKB(noise=0.3)}),
    "box with own kernel": (BOX, {"surrogate": bo.BKB(rbf(2, 0.7, 3.0))}),
    "box with an inactive column": (BOX, {"surrogate": bo.BKB(rbf(2, 0.7, inactive=[1]))}),
    "mixed logei": (MIXED, {"acquisition": "logei", "surrogate": "exact"}),
    "grid thompson": (GRID, {"acquisition": "thompson"}),
    "pool thompson": (POOL, {"acquisition": "thompson", "duplicates": "avoid"}),
    "pool exact logei": (POOL, {"acquisition": "logei", "surrogate": "exact"}),
    "fixed": (POOL, {"surrogate": bo.BKB(rbf(2, [0.3, 10.0]), noise=0.01), "fit": False, "beta": 2.0}),
    "schedule": (POOL, {"beta": confidence.Srinivas(delta=0.2)}),
    "conditional": (TREE, {}),
    "several objectives": (BOX, {"directions": ["minimize", "maximize"]}),
    "constraints": (BOX, {"constraints": ["heat", "weight"]}),
    "deterministic": (MIXED, {"deterministic": True, "perturbations": False}),
}


def optimizer(name: str) -> bo.Optimizer:
    space, options = CASES[name]
    return bo.Optimizer(space, **{"seed": 11, "n_startup_trials": 6, **options})
