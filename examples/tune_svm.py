"""Tune a support-vector classifier on handwritten digits, where every evaluation is noisy.

One evaluation draws a fresh split of the digits, trains on a part and returns the accuracy on another. The best of many
such values is biased by its noise, so the answer is the setting with the best posterior mean. This setting and the best
of as many random settings are measured again at the end, on the same fresh splits.

    python examples/tune_svm.py [--trials 120] [--seed 0] [--out out] [--smoke]
"""

import argparse
import functools
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import bkbopt as bo
from bkbopt import plots

SPACE = bo.Space.parse(
    {
        "C": bo.Float(1e-2, 1e3, log=True),
        "gamma": bo.Float(1e-4, 1e1, log=True),
        "kernel": bo.Categorical(["rbf", "poly", "sigmoid", "linear"]),
        "class_weight": bo.Categorical([None, "balanced"]),
    }
)
N_TRAIN, N_TEST = 300, 150
#: Distance of the titles, points: trials on the upper edge of the space are drawn in full.
ABOVE = 11.0

Params = Mapping[str, Any]
Objective = Callable[[Params], float]
#: Incumbents as (number of trials, setting): from that trial on, the setting was the one to recommend.
Steps = list[tuple[int, Params]]


@functools.cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images of 8 x 8 pixels as rows, and their digits."""
    return load_digits(return_X_y=True)


def accuracy(params: Params, split: int) -> float:
    """Accuracy on the test rows of a stratified split with this number."""
    X, y = digits()
    X_train, X_test, y_train, y_test = train_test_split(
        X / 16.0, y, train_size=N_TRAIN, test_size=N_TEST, stratify=y, random_state=split
    )
    return float(SVC(**params).fit(X_train, y_train).score(X_test, y_test))


def on_fresh_splits(first: int) -> Objective:
    """The noisy objective: every call uses a new split, with numbers from `first` on."""
    splits = itertools.count(first)
    return lambda params: accuracy(params, next(splits))


def with_bkb(n_trials: int, seed: int) -> tuple[bo.Optimizer, Steps]:
    """Tune; also returns the recommended setting after each trial that changed it."""
    steps: Steps = []

    def watch(opt: bo.Optimizer, trial: bo.Trial) -> None:
        # Before the model takes over, the best observed setting is all that is known.
        in_use = trial.id + 1 >= opt.n_startup_trials
        params = opt.recommend().params if in_use else opt.best_trial.params
        if not steps or params != steps[-1][1]:
            steps.append((trial.id + 1, params))

    objective = on_fresh_splits(first=100_000 * seed)
    opt = bo.minimize(
        objective, SPACE, n_trials, direction="maximize", seed=seed, callbacks=[watch], show_progress_bar=True
    )
    return opt, steps


def with_random_search(n_trials: int, seed: int) -> tuple[Steps, float]:
    """As many random settings, measured with equal noise: the best observed after each trial, and its value."""
    settings = SPACE.decode(SPACE.sample(n_trials, np.random.default_rng(seed)))
    objective = on_fresh_splits(first=100_000 * seed + 30_000)
    steps: Steps = []
    best = -np.inf
    for i, params in enumerate(settings):
        value = objective(params)
        if value > best:
            best = value
            steps.append((i + 1, params))
    return steps, best


class Judge:
    """Mean accuracy of settings over splits that no search has used, the same splits for every setting."""

    def __init__(self, n_splits: int, seed: int) -> None:
        self.splits = range(100_000 * seed + 60_000, 100_000 * seed + 60_000 + n_splits)
        self._known: dict[tuple[Any, ...], np.ndarray] = {}

    def __call__(self, params: Params) -> np.ndarray:
        """Accuracies on all splits, (n_splits,)."""
        key = tuple(params.values())
        if key not in self._known:
            self._known[key] = np.array([accuracy(params, split) for split in self.splits])
        return self._known[key]


def plus_minus(values: np.ndarray) -> str:
    """Mean and two standard errors."""
    return f"{values.mean():.4f} +- {2.0 * values.std(ddof=1) / len(values) ** 0.5:.4f}"


def as_text(params: Params) -> str:
    return f"C={params['C']:.3g} gamma={params['gamma']:.3g} {params['kernel']} class_weight={params['class_weight']}"


def report(opt: bo.Optimizer, random_steps: Steps, random_best: float, judge: Judge) -> None:
    """Print the settings found, and their accuracy on fresh splits."""
    choice, best, random_params = opt.recommend(), opt.best_trial, random_steps[-1][1]
    ours, theirs = judge(choice.params), judge(random_params)
    print(f"\nBKB, {len(opt.trials)} trials")
    print(f"  recommended           {as_text(choice.params)}")
    print(f"  posterior accuracy    {choice.mean:.4f} +- {2.0 * choice.std:.4f} (2 sd)")
    print(f"  best observed         {best.value:.4f} at {as_text(best.params)}")
    print(f"random search, {len(opt.trials)} trials")
    print(f"  chosen                {as_text(random_params)}")
    print(f"  best observed         {random_best:.4f}")
    print(f"measured again on the same {len(judge.splits)} fresh splits (mean +- 2 standard errors)")
    print(f"  BKB's recommendation  {plus_minus(ours)}")
    print(f"  random search's best  {plus_minus(theirs)}")
    print(f"  difference            {plus_minus(ours - theirs)}")


def answers(steps: Steps, n_trials: int, judge: Judge) -> np.ndarray:
    """Error in percent of a search's answer after each trial, (n_splits, n_trials)."""
    starts = [i for i, _ in steps] + [n_trials + 1]
    lengths = np.diff([1, *starts[1:]])
    return 100.0 * (1.0 - np.repeat([judge(params) for _, params in steps], lengths, axis=0).T)


def draw_answers(ax: Axes, searches: dict[str, Steps], judge: Judge, n_trials: int) -> None:
    """Error on fresh splits of each search's answer after every trial."""
    curves = {name: answers(steps, n_trials, judge) for name, steps in searches.items()}
    plots.convergence(curves, ax=ax, best=False, band="standard error", value_name="test error on fresh splits (%)")
    ax.set_title(f"The answer, measured on {len(judge.splits)} fresh splits", pad=ABOVE)
    ax.set_yscale("log")
    ticks = [t for t in (1, 2, 3, 4, 5, 7, 10, 20, 50, 90) if ax.get_ylim()[0] <= t <= ax.get_ylim()[1]]
    ax.set_yticks(ticks, [str(t) for t in ticks])
    ax.set_yticks([], minor=True)


def draw(opt: bo.Optimizer, searches: dict[str, Steps], judge: Judge, path: Path) -> None:
    figure = Figure(figsize=(15, 5.2), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    draw_answers(first, searches, judge, len(opt.trials))
    plots.posterior_contour(opt, "C", "gamma", ax=second, value_name="accuracy")
    plots.posterior_contour(opt, "C", "gamma", ax=third, what="std", value_name="accuracy")
    kernel, weight = (opt.recommend().params[name] for name in ("kernel", "class_weight"))
    second.set_title(f"Posterior: kernel {kernel}, class weight {weight}", pad=ABOVE)
    # The model is Gaussian: far from the trials its mean may lie below 0 or above 1.
    third.set_title("Posterior standard deviation", pad=ABOVE)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Tune a support-vector classifier on handwritten digits.")
    parser.add_argument("--trials", type=int, help="evaluations of each search (default 120)")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default 0)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture (default out)")
    parser.add_argument("--smoke", action="store_true", help="a run of seconds that shows only that it runs")
    args = parser.parse_args()
    args.trials = args.trials or (14 if args.smoke else 120)
    return args


def main() -> None:
    args = arguments()
    opt, steps = with_bkb(args.trials, args.seed)
    random_steps, random_best = with_random_search(args.trials, args.seed)
    judge = Judge(5 if args.smoke else 60, args.seed)
    report(opt, random_steps, random_best, judge)
    path = args.out / "tune_svm.png"
    searches = {"BKB": steps, "random search": random_steps}
    draw(opt, searches, judge, path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
