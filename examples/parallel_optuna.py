"""Processes that share an Optuna study through its storage; there is no central process, and any may start or stop.

    pip install ".[optuna]"
    python examples/parallel_optuna.py [--trials 60] [--workers 4] [--seconds 0.3] [--smoke]

Trials that run when the last one ends are finished too, so that there are a few more than requested.

The journal file is enough on one machine and on a shared disk. With a database in its place
(`optuna.storages.RDBStorage("postgresql://...")`) the workers may be anywhere.
"""

import argparse
import multiprocessing
import tempfile
import time
from pathlib import Path

import optuna
from inventory import Simulator, arguments, report
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import MaxTrialsCallback

from bkbopt.adapters.optuna import BKBSampler

STUDY = "warehouse"


def open_study(path: str) -> optuna.Study:
    """The study in the journal file, made by the first process; all share one seed, and their proposals differ."""
    storage = JournalStorage(JournalFileBackend(path))
    return optuna.create_study(study_name=STUDY, storage=storage, sampler=BKBSampler(seed=0), load_if_exists=True)


def work(path: str, n_trials: int, seconds: float) -> None:
    """The work of each process: evaluate until the study has this number of finished trials."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    simulate = Simulator(seconds)

    def objective(trial: optuna.Trial) -> float:
        reorder_at, order = trial.suggest_int("reorder_at", 0, 120), trial.suggest_int("order", 10, 250)
        return simulate({"reorder_at": reorder_at, "order": order})

    open_study(path).optimize(objective, callbacks=[MaxTrialsCallback(n_trials)])


def run(given: argparse.Namespace, path: str) -> None:
    start = time.perf_counter()
    processes = multiprocessing.get_context("spawn")
    workers = [processes.Process(target=work, args=(path, given.trials, given.seconds)) for _ in range(given.workers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    elapsed = time.perf_counter() - start
    study = open_study(path)
    choice = study.sampler.recommend(study)
    report(choice.params, len(study.trials), given.workers, given.seconds, elapsed)
    print(f"the model says {choice.mean:.2f} +- {2 * choice.std:.2f} (2 sd)")


def main() -> None:
    given = arguments("Processes on the storage of an Optuna study")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        run(given, str(Path(folder) / "study.journal"))


if __name__ == "__main__":  # worker processes import this file
    main()
