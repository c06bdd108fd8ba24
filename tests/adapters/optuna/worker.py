"""Another process on the same study: run as a program with a pickled job on its standard input."""

import json
import pickle
import sys
import time
import warnings
from typing import Any

import optuna
from optuna.distributions import BaseDistribution

from bkbopt.adapters.optuna import BKBSampler

STUDY = "study"


def value(params: dict[str, Any]) -> float:
    return float(sum((float(param) - 0.3) ** 2 for param in params.values()))


def ask(study: optuna.Study, space: dict[str, BaseDistribution]) -> None:
    """Prints the parameters of the next trial."""
    print(json.dumps(study.ask(space).params))


def optimize(study: optuna.Study, space: dict[str, BaseDistribution], n_trials: int, seconds: float) -> None:
    """Evaluates some trials, each of which takes a while, so that those of several workers overlap."""
    for _ in range(n_trials):
        trial = study.ask(space)
        trial.set_user_attr("from", time.time())
        time.sleep(seconds)
        trial.set_user_attr("to", time.time())
        study.tell(trial, value(trial.params))


def hang(study: optuna.Study) -> None:
    """Starts a trial that never ends."""

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0.0, 1.0)
        print("started", flush=True)
        time.sleep(600.0)
        return 0.0

    study.optimize(objective, n_trials=1)


def main() -> None:
    job = pickle.load(sys.stdin.buffer)
    do, storage, options = job.pop("do"), job.pop("storage"), job.pop("options")
    print("ready", flush=True)
    sys.stdin.buffer.readline()
    if do == "serve":
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optuna.storages.run_grpc_proxy_server(storage, **job)
    else:
        jobs = {"ask": ask, "optimize": optimize, "hang": hang}
        study = optuna.load_study(study_name=STUDY, storage=storage, sampler=BKBSampler(**options))
        jobs[do](study, **job)


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    main()
