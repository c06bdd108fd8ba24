"""Benefit and cost of early coordinate perturbations: studies that differ in the trial of the first one.

Run it as `python -m benchmarks.early_perturbations [--studies 100] [--noisy 30] [--pairs 15]`. Three parts, one thread:

- a space with few values: a float, an integer from 0 to 6 and two categories, no noise: in how many studies of 20 and
  of 40 trials the best values of integer and category were not found;
- the same under noise: regret of the recommendation after 40 trials, and of the average trial;
- spaces of floats: the difference that early perturbations make, in pairs with one seed, on Branin, Hartmann-6 and
  Ackley-10.

Wide steps are early in all of them. Perturbations of a coordinate are by default early in the first kind of space only:
`perturbations.FIRST_PERTURBATION_OF_CHOICES` and `FIRST_PERTURBATION` are what this program changes.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import bkbopt as bo
from benchmarks.comparison import with_error
from benchmarks.peers import run_peer
from benchmarks.report import conditions, limited_threads, print_table
from benchmarks.sample_efficiency import TRIALS, problem_named
from bkbopt.search import perturbations

__all__ = ["first_perturbation_at", "loss", "main", "study"]

SPACE = {"x": bo.Float(-2.0, 2.0), "n": bo.Int(0, 6), "kind": ["a", "b"]}
EARLY, LATE = 10, 50
FLOATS = ("branin", "hartmann6", "ackley10")
NOISE_SD = 0.5
#: Above this regret n or kind is not at its best value: each costs at least 0.2.
MISSED = 0.1


def loss(params: Any) -> float:
    """Best, 0, at x = 1, n = 3 and kind "a"."""
    return (params["x"] - 1.0) ** 2 + 0.2 * abs(params["n"] - 3) + float(params["kind"] == "b")


@contextmanager
def first_perturbation_at(trial: int) -> Iterator[None]:
    """Perturbations after that trial, in all spaces."""
    before = perturbations.FIRST_PERTURBATION, perturbations.FIRST_PERTURBATION_OF_CHOICES
    perturbations.FIRST_PERTURBATION = perturbations.FIRST_PERTURBATION_OF_CHOICES = trial
    try:
        yield
    finally:
        perturbations.FIRST_PERTURBATION, perturbations.FIRST_PERTURBATION_OF_CHOICES = before


def study(n_trials: int, noise_sd: float, seed: int) -> tuple[list[float], float]:
    """The noise-free regrets of the trials, and that of the recommendation."""
    rng = np.random.default_rng([7, seed])
    opt = bo.Optimizer(SPACE, n_startup_trials=5, seed=seed)
    bo.minimize(lambda params: loss(params) + noise_sd * rng.standard_normal(), opt, n_trials)
    return [loss(trial.params) for trial in opt.trials], loss(opt.recommend().params)


def print_choices(studies: int, noisy: int) -> None:
    """The two parts on the space with few values."""
    missed, regrets = [], []
    for first in (LATE, EARLY):
        with first_perturbation_at(first):
            runs = [np.minimum.accumulate(study(40, 0.0, seed)[0]) for seed in range(studies)]
            missed.append((first, *(sum(bool(run[n - 1] >= MISSED) for run in runs) for n in (20, 40))))
            ends = [study(40, NOISE_SD, seed) for seed in range(noisy)]
        average = [float(np.mean(trials)) for trials, _ in ends]
        regrets.append((first, with_error([end for _, end in ends]), with_error(average)))
    title = f"few values, no noise: of {studies} studies those that missed the best integer or category"
    print_table(title, ("perturbed after", "20 trials", "40 trials"), missed)
    title = f"few values, noise sd {NOISE_SD}: regret after 40 trials, {noisy} studies"
    print_table(title, ("perturbed after", "recommended", "average trial"), regrets)


def print_floats(pairs: int) -> None:
    """Spaces of floats: early minus late."""
    rows = []
    for name in FLOATS:
        problem, differences = problem_named(name), []
        for seed in range(100, 100 + pairs):
            pair = []
            for first in (LATE, EARLY):
                with first_perturbation_at(first):
                    run = run_peer("bkbopt", problem, TRIALS[name], seed)
                recommended = (problem.value(run.recommended[-1:])[0] - problem.minimum) / problem.iqr
                pair.append((float(recommended), float((run.f_true.mean() - problem.minimum) / problem.iqr)))
            differences.append(np.array([pair[0], pair[1] - np.array(pair[0])]).T)
        late, change = (np.array(differences)[:, :, i] for i in (0, 1))
        rows.append((name, *(with_error(side[:, i]) for i in (0, 1) for side in (late, change))))
    header = ("problem", "recommended, late", "early - late", "average, late", "early - late")
    print_table(f"floats: regret / IQR, {pairs} pairs", header, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the studies and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--noisy", type=int, default=30)
    parser.add_argument("--pairs", type=int, default=15)
    options = parser.parse_args(arguments)
    print(conditions(1))
    with limited_threads(1):
        print_choices(options.studies, options.noisy)
        if options.pairs:
            print_floats(options.pairs)


if __name__ == "__main__":
    main()
