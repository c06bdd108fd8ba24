"""Trials on a Ray cluster (here on this machine): `minimize` with an executor over Ray, and Ray Tune.

    pip install ".[ray]"
    python examples/parallel_ray.py [--trials 60] [--workers 4] [--seconds 0.3] [--smoke]

`minimize` keeps the optimizer in this process and sends out evaluations. In Ray Tune the sampler proposes through
Optuna, and Tune manages the trials: logs, checkpoints, resources and restarts.

On your own cluster, connect by `ray.init(address="auto")`, and send this folder with
`runtime_env={"working_dir": "examples"}`; the rest is the same.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import optuna
import ray
from inventory import Simulator, arguments, report
from ray import tune
from ray.tune.search.optuna import OptunaSearch

import bkbopt as bo
from bkbopt.adapters.optuna import BKBSampler

SPACE = {"reorder_at": bo.Int(0, 120), "order": bo.Int(10, 250)}


@ray.remote
def call(f: Callable[[Any], Any], params: dict[str, Any]) -> Any:
    return f(params)


class RayExecutor:
    """The executor that `minimize` needs: `submit` returns a future of `concurrent.futures`."""

    def submit(self, f: Callable[[Any], Any], params: dict[str, Any]) -> Future[Any]:
        return call.remote(f, params).future()


def by_minimize(given: argparse.Namespace) -> None:
    start = time.perf_counter()
    opt = bo.minimize(
        Simulator(given.seconds), SPACE, given.trials, executor=RayExecutor(), n_workers=given.workers, seed=0
    )
    elapsed = time.perf_counter() - start
    choice = opt.recommend()
    report(choice.params, given.trials, given.workers, given.seconds, elapsed)
    print(f"the model says {choice.mean:.2f} +- {2 * choice.std:.2f} (2 sd)")


def by_tune(given: argparse.Namespace, folder: str) -> None:
    simulate = Simulator(given.seconds)

    def trainable(config: dict[str, Any]) -> dict[str, float]:
        return {"cost": simulate(config)}

    start = time.perf_counter()
    results = tune.Tuner(
        trainable,
        # The upper bounds of Tune's integers are left out.
        param_space={"reorder_at": tune.randint(0, 121), "order": tune.randint(10, 251)},
        tune_config=tune.TuneConfig(
            metric="cost",
            mode="min",
            num_samples=given.trials,
            max_concurrent_trials=given.workers,
            reuse_actors=True,  # else each trial starts a process
            search_alg=OptunaSearch(sampler=BKBSampler(seed=0)),
        ),
        run_config=tune.RunConfig(storage_path=folder, verbose=0),
    ).fit()
    elapsed = time.perf_counter() - start
    # Under noise the best result is the luckiest one; a model of all results says which setting is the best.
    opt = bo.Optimizer(SPACE, seed=0)
    opt.tell([result.config for result in results], [result.metrics["cost"] for result in results])
    choice = opt.recommend()
    report(choice.params, len(results), given.workers, given.seconds, elapsed)
    print(f"the model says {choice.mean:.2f} +- {2 * choice.std:.2f} (2 sd)")


def main() -> None:
    given = arguments("A Ray cluster")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    ray.init(num_cpus=given.workers, include_dashboard=False, logging_level="ERROR")
    try:
        print("minimize with an executor over Ray")
        by_minimize(given)
        print("Ray Tune with OptunaSearch(sampler=BKBSampler())")
        with tempfile.TemporaryDirectory() as folder:
            by_tune(given, folder)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
