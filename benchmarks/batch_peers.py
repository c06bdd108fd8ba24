"""Optimisers that propose batches, ours and others, behind one interface.

`BATCHERS` maps a name to a callable (target, q, seed) -> BatchLoop. All points of a batch are asked for before any of
their values is told.

| name              | what it is                                                                                     |
| ----------------- | ---------------------------------------------------------------------------------------------- |
| random            | uniform places, of a pool without repeats                                                      |
| bkb               | `bo.Optimizer` with its defaults, `ask(q)`                                                     |
| bkb_thompson      | the same with `acquisition="thompson"`                                                         |
| bkb_useful        | the same in batches of `useful_workers()`, q at most                                           |
| bkb_known         | ours with the kernel and the noise that the function was made with, nothing fitted             |
| qlognei           | BoTorch's noisy expected improvement, the points of a batch one after the other                |
| tpe_liar          | Optuna's multivariate TPE that takes running trials for poor ones                              |
| cmaes             | CMA-ES, its population the batch, or the default of 4 + 3 log d where that is larger           |

Random search and TPE recommend the best value observed, CMA-ES the mean of its distribution, as is advised under noise,
the others the evaluated place with the best posterior mean.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import optuna
import torch

import bkbopt as bo
from benchmarks.batch_problems import Target
from benchmarks.botorch_model import fitted, quiet_botorch
from benchmarks.functions import Array
from benchmarks.samplers import N_STARTUP, SAMPLERS, floats, point
from bkbopt.kernels import rbf

__all__ = ["BATCHERS", "BatchLoop", "can_run"]


@dataclass(frozen=True)
class BatchLoop:
    """An optimiser that minimises by batches, of places (n, d) in a box or (n,) in a pool.

    `ask(n)` gives n places, or fewer where it chooses the size of its batches, `tell(places, values)`
    takes their values (n,), and `recommend()` names one place, as an array of length 1.
    """

    ask: Callable[[int], Array]
    tell: Callable[[Array, Array], None]
    recommend: Callable[[], Array]


Batcher = Callable[[Target, int, int], BatchLoop]


class _Seen:
    """Places and values told so far."""

    def __init__(self) -> None:
        self.places: list[Array] = []
        self.values: list[float] = []

    def tell(self, places: Array, values: Array) -> None:
        self.places.extend(places)
        self.values.extend(values.tolist())

    def best(self) -> Array:
        return np.array([self.places[int(np.argmin(self.values))]])


def _random(target: Target, q: int, seed: int) -> BatchLoop:
    rng, seen = np.random.default_rng(seed), _Seen()
    order = None if target.rows is None else rng.permutation(len(target.rows))

    def ask(n: int) -> Array:
        if order is None:
            return target.from_unit(rng.random((n, target.dim)))
        return np.asarray(order[np.arange(len(seen.places), len(seen.places) + n) % len(order)])

    return BatchLoop(ask, seen.tell, seen.best)


def _optimizer(target: Target, seed: int, **options: Any) -> tuple[bo.Optimizer, BatchLoop]:
    """An optimizer of ours, whose parameters are called x0, x1, ..., and a loop over it."""
    where = list(target.bounds) if target.bounds is not None else bo.Pool(target.pool)
    opt = bo.Optimizer(where, seed=seed, **{"n_startup_trials": N_STARTUP, **options})
    asked: list[bo.Trial] = []

    def place(of: Any) -> Any:
        return point(of.params) if target.rows is None else of.index

    def ask(n: int) -> Array:
        asked[:] = opt.ask(n)
        return np.array([place(trial) for trial in asked])

    def tell(places: Array, values: Array) -> None:
        opt.tell(asked, values.tolist())

    return opt, BatchLoop(ask, tell, lambda: np.array([place(opt.recommend())]))


def _ours(target: Target, q: int, seed: int, **options: Any) -> BatchLoop:
    return _optimizer(target, seed, **options)[1]


def _useful(target: Target, q: int, seed: int) -> BatchLoop:
    opt, loop = _optimizer(target, seed)
    return BatchLoop(lambda n: loop.ask(opt.useful_workers(limit=n)), loop.tell, loop.recommend)


def _known(target: Target, q: int, seed: int) -> BatchLoop:
    assert target.lengthscale is not None
    surrogate = bo.BKB(rbf(target.dim, target.lengthscale), target.noise_sd**2, qbar=2.0, max_inducing=None)
    # The prior mean is zero and the arms are as they are: with fit=False values and columns are not scaled.
    return _ours(target, q, seed, n_startup_trials=1, surrogate=surrogate, fit=False)


def _tpe_liar(target: Target, q: int, seed: int) -> BatchLoop:
    assert target.bounds is not None
    space, asked = floats(target.bounds), list[optuna.Trial]()
    study = optuna.create_study(sampler=SAMPLERS["tpe_liar"](seed))

    def ask(n: int) -> Array:
        asked[:] = [study.ask(space) for _ in range(n)]
        return np.array([point(trial.params) for trial in asked])

    def tell(places: Array, values: Array) -> None:
        for trial, value in zip(asked, values.tolist(), strict=True):
            study.tell(trial, value)

    return BatchLoop(ask, tell, lambda: point(study.best_params)[None])


def _cmaes(target: Target, q: int, seed: int) -> BatchLoop:
    """In the unit cube, from its centre with steps of a sixth, as Optuna starts it."""
    from cmaes import CMA

    d = target.dim
    n_population = max(q, 4 + math.floor(3 * math.log(d)))
    corners = np.column_stack([np.zeros(d), np.ones(d)])
    cma = CMA(mean=np.full(d, 0.5), sigma=1 / 6, bounds=corners, seed=seed, population_size=n_population)
    asked: list[Array] = []
    generation: list[tuple[Array, float]] = []

    def ask(n: int) -> Array:
        asked[:] = [cma.ask() for _ in range(n)]
        return target.from_unit(np.array(asked))

    def tell(places: Array, values: Array) -> None:
        # Where batches are no whole part of a generation, the later points of one are from before its beginning.
        generation.extend(zip(asked, values.tolist(), strict=True))
        while len(generation) >= n_population:
            cma.tell(generation[:n_population])
            del generation[:n_population]

    return BatchLoop(ask, tell, lambda: target.from_unit(np.clip(cma.mean, 0.0, 1.0)[None]))


def _qlognei(target: Target, q: int, seed: int) -> BatchLoop:
    """As in `benchmarks.peers`; a batch by `sequential=True` in a box, over the whole pool otherwise, with repeats."""
    from botorch.acquisition.logei import qLogNoisyExpectedImprovement
    from botorch.optim.optimize import optimize_acqf, optimize_acqf_discrete
    from botorch.sampling.normal import SobolQMCNormalSampler

    rng, seen, models = np.random.default_rng(seed), _Seen(), []  # type: ignore[var-annotated]
    cube = torch.tensor([[0.0] * target.dim, [1.0] * target.dim], dtype=torch.float64)
    torch.manual_seed(seed)

    def unit(places: Array) -> Array:
        if target.rows is not None:
            return target.pool[places]
        low, high = np.array(target.bounds).T
        return np.asarray((places - low) / (high - low))

    def ask(n: int) -> Array:
        if not models:
            is_pool = target.rows is not None
            return rng.permutation(len(target.pool))[:n] if is_pool else target.from_unit(rng.random((n, target.dim)))
        acquisition = qLogNoisyExpectedImprovement(
            models[0],
            X_baseline=torch.as_tensor(unit(np.array(seen.places))),
            sampler=SobolQMCNormalSampler(torch.Size([256]), seed=seed + len(seen.places)),
            prune_baseline=True,
        )
        with quiet_botorch():
            if target.rows is not None:
                choices = torch.as_tensor(target.pool)
                found, _ = optimize_acqf_discrete(acquisition, q=n, choices=choices, max_batch_size=512, unique=False)
                return np.array([int((choices == x).all(dim=1).nonzero()[0, 0]) for x in found])
            options = {"batch_limit": 5, "maxiter": 200}
            found, _ = optimize_acqf(
                acquisition, cube, q=n, num_restarts=10, raw_samples=512, options=options, sequential=True
            )
        return target.from_unit(found.detach().numpy())

    def tell(places: Array, values: Array) -> None:
        seen.tell(places, values)
        if len(seen.values) >= N_STARTUP:
            X, Y = (
                torch.as_tensor(unit(np.array(seen.places))),
                -torch.tensor(seen.values, dtype=torch.float64)[:, None],
            )
            with quiet_botorch():
                models[:] = [fitted(X, Y, cube)]

    def recommend() -> Array:
        if not models:
            return seen.best()
        with torch.no_grad():
            mean = models[0].posterior(torch.as_tensor(unit(np.array(seen.places)))).mean
        return np.array([seen.places[int(mean.argmax())]])

    return BatchLoop(ask, tell, recommend)


BATCHERS: dict[str, Batcher] = {
    "random": _random,
    "bkb": _ours,
    "bkb_thompson": partial(_ours, acquisition="thompson"),
    "bkb_useful": _useful,
    "bkb_known": _known,
    "qlognei": _qlognei,
    "tpe_liar": _tpe_liar,
    "cmaes": _cmaes,
}
#: Those that search boxes only.
BOXES_ONLY = ("tpe_liar", "cmaes")
#: The largest batch that slow optimisers are asked for.
LARGEST = {"qlognei": 10}


def can_run(name: str, q: int, *, is_box: bool, has_kernel: bool) -> bool:
    """Whether an optimiser has a form for such a target and batch."""
    if q > LARGEST.get(name, q):
        return False
    return has_kernel if name == "bkb_known" else is_box or name not in BOXES_ONLY
