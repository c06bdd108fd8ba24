"""Choose and tune a classifier in an Optuna study, with BKBSampler and with TPE, where every evaluation is noisy.

A trial chooses a model, a support-vector machine or boosted trees, and the settings of this model. It draws fresh rows
for training and for testing, and returns the error. The best of many such errors is biased by its noise. BKBSampler's
answer is the setting with the best posterior mean; TPE's is the study's best trial, as is usual. Both answers are
trained again on many draws and measured on rows that no trial has seen.

With `--data FOLDER` the data are codrna.npz there: whether a genome segment is a non-coding RNA
(59,535 rows, 8 columns). Without it they are scikit-learn's records of tumours (569 rows, 30 columns).

    python examples/optuna_sampler.py [--data FOLDER] [--trials 300] [--seed 0] [--out out] [--smoke]
"""

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from optuna.samplers import TPESampler
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bkbopt import plots
from bkbopt.adapters.optuna import BKBSampler

Params = Mapping[str, Any]
BLUE, ORANGE = "#0072b2", "#e69f00"
#: After so many trials the answer is noted for the picture.
LOOKS = (25, 50, 75, 100, 150, 200, 300, 450, 600, 1000)


@dataclass(frozen=True)
class Data:
    """Rows for the search, X (n, d) with labels y (n,), held-out rows for the end, and the sizes of a draw."""

    title: str
    X: np.ndarray
    y: np.ndarray
    X_kept: np.ndarray
    y_kept: np.ndarray
    n_train: int
    n_test: int


def load(folder: Path | None) -> Data:
    """The shuffled data, with a part held out."""
    if folder is None:
        title, (X, y) = "tumours", load_breast_cancer(return_X_y=True)
        n_kept, n_train, n_test = 200, 150, 100
    else:
        with np.load(folder / "codrna.npz") as file:
            title, X, y = "cod-RNA", file["X"].astype(float), file["y"]
        n_kept, n_train, n_test = 20_000, 300, 300
    order = np.random.default_rng(0).permutation(len(X))
    kept, rows = order[:n_kept], order[n_kept:]
    return Data(title, X[rows], y[rows], X[kept], y[kept], n_train, n_test)


def suggest(trial: optuna.Trial) -> None:
    """A conditional space: each model has parameters of its own."""
    if trial.suggest_categorical("model", ["svm", "trees"]) == "svm":
        trial.suggest_float("C", 1e-2, 1e4, log=True)
        trial.suggest_float("gamma", 1e-4, 1e1, log=True)
        trial.suggest_categorical("class_weight", [None, "balanced"])
    else:
        trial.suggest_int("n_estimators", 5, 100, log=True)
        trial.suggest_float("learning_rate", 1e-2, 1.0, log=True)
        trial.suggest_int("max_depth", 1, 6)
        trial.suggest_float("subsample", 0.3, 1.0)


def make_model(params: Params, seed: int) -> Any:
    settings = {name: value for name, value in params.items() if name != "model"}
    if params["model"] == "svm":
        return make_pipeline(StandardScaler(), SVC(**settings))
    return GradientBoostingClassifier(**settings, random_state=seed)


def trained(data: Data, params: Params, draw: int) -> tuple[Any, np.ndarray]:
    """A model trained on the rows of a draw, and the rows of that draw to test on."""
    rows = np.random.default_rng(draw).permutation(len(data.X))[: data.n_train + data.n_test]
    train, test = rows[: data.n_train], rows[data.n_train :]
    return make_model(params, draw).fit(data.X[train], data.y[train]), test


@dataclass
class Search:
    """A study, its answers after some of its trials, and its seconds without the evaluations."""

    name: str
    study: optuna.Study
    answer: Callable[[optuna.Study], Params]
    answers: dict[int, Params] = field(default_factory=dict)
    seconds: float = 0.0

    def run(self, data: Data, n_trials: int, seed: int) -> None:
        """Trial i of both searches uses the same draw of rows."""
        evaluating = 0.0

        def objective(trial: optuna.Trial) -> float:
            nonlocal evaluating
            suggest(trial)
            start = time.perf_counter()
            model, test = trained(data, trial.params, 100_000 * seed + trial.number)
            error = 1.0 - model.score(data.X[test], data.y[test])
            evaluating += time.perf_counter() - start
            return float(error)

        def look(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
            if trial.number + 1 in (*LOOKS, n_trials):
                self.answers[trial.number + 1] = self.answer(study)

        start = time.perf_counter()
        self.study.optimize(objective, n_trials, callbacks=[look])
        self.seconds = time.perf_counter() - start - evaluating


class Judge:
    """Errors of settings on the held-out rows, each trained on the same draws, which no trial has used."""

    def __init__(self, data: Data, n_draws: int, seed: int) -> None:
        self.data = data
        self.draws = range(100_000 * seed + 50_000, 100_000 * seed + 50_000 + n_draws)
        self._known: dict[tuple[Any, ...], np.ndarray] = {}

    def __call__(self, params: Params) -> np.ndarray:
        """Errors, (n_draws,)."""
        key = tuple(sorted(params.items()))
        if key not in self._known:
            models = [trained(self.data, params, draw)[0] for draw in self.draws]
            self._known[key] = np.array([1.0 - m.score(self.data.X_kept, self.data.y_kept) for m in models])
        return self._known[key]


def plus_minus(values: np.ndarray) -> str:
    """Mean and two standard errors."""
    return f"{values.mean():.4f} +- {2.0 * values.std(ddof=1) / len(values) ** 0.5:.4f}"


def as_text(params: Params) -> str:
    return " ".join(f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in params.items())


def report(data: Data, searches: list[Search], judge: Judge) -> None:
    """Print both answers, and their errors on the held-out rows."""
    print(f"{data.title}: trials train on {data.n_train} rows and test on {data.n_test}")
    errors = []
    for search in searches:
        study, params = search.study, search.answer(search.study)
        values = np.array([trial.value for trial in study.trials])
        errors.append(judge(params))
        print(f"{search.name}, {len(values)} trials, {search.seconds:.1f} s besides the evaluations")
        print(f"  answer                {as_text(params)}")
        if isinstance(study.sampler, BKBSampler):
            choice = study.sampler.recommend(study)
            print(f"  posterior error       {choice.mean:.4f} +- {2.0 * choice.std:.4f} (2 sd)")
        print(f"  best observed error   {study.best_value:.4f}")
        print(f"  the average trial's   {values.mean():.4f}")
    kept = f"{len(judge.draws)} new draws, tested on {len(data.X_kept):,} rows kept from the searches"
    print(f"both answers trained on the same {kept} (mean +- 2 standard errors)")
    for search, error in zip(searches, errors, strict=True):
        print(f"  {search.name + chr(39) + 's answer':21} {plus_minus(error)}")
    print(f"  difference            {plus_minus(errors[0] - errors[1])}")


def draw_trials(ax: Axes, searches: list[Search], colours: tuple[str, str]) -> None:
    """The value of each trial, and the mean of the last thirty."""
    for search, colour in zip(searches, colours, strict=True):
        values = 100.0 * np.array([trial.value for trial in search.study.trials])
        ax.plot(np.arange(1, len(values) + 1), values, ".", color=colour, alpha=0.25, markersize=4)
        width = min(30, len(values))
        means = np.convolve(values, np.full(width, 1.0 / width), mode="valid")
        ax.plot(np.arange(width, len(values) + 1), means, color=colour, linewidth=2, label=search.name)
    ax.set(xlabel="trials", ylabel="error (%)", title="What the trials returned; mean of the last 30")
    ax.legend(frameon=False)


def draw_answers(ax: Axes, searches: list[Search], judge: Judge) -> None:
    """Error on the held-out rows of the answer of each search, by number of trials."""
    errors = {s.name: 100.0 * np.array([judge(params) for params in s.answers.values()]).T for s in searches}
    looks = list(searches[0].answers)
    plots.convergence(errors, ax=ax, best=False, t=looks, band="standard error", value_name="error on kept rows (%)")
    ax.set(xlabel="trials", title=f"The answer, trained again on {len(judge.draws)} new draws")


def draw(searches: list[Search], judge: Judge, path: Path) -> None:
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    first, second = figure.subplots(1, 2)
    draw_trials(first, searches, (BLUE, ORANGE))
    draw_answers(second, searches, judge)
    first.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Choose and tune a classifier with two of Optuna's samplers.")
    parser.add_argument("--data", type=Path, help="folder with codrna.npz; without it, scikit-learn's tumours")
    parser.add_argument("--trials", type=int, help="trials of each search (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default 0)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture (default out)")
    parser.add_argument("--smoke", action="store_true", help="a run of seconds that shows only that it runs")
    args = parser.parse_args()
    if args.data is not None and not (args.data / "codrna.npz").is_file():
        parser.error(f"--data: expected a folder with codrna.npz, found none in {args.data}")
    args.trials = args.trials or (14 if args.smoke else 300)
    return args


def main() -> None:
    args = arguments()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    data = load(args.data)
    bkb = BKBSampler(seed=args.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # A joint model for each branch of the space: TPE at its best.
        tpe = TPESampler(multivariate=True, group=True, seed=args.seed)
    searches = [
        Search("BKB", optuna.create_study(sampler=bkb), lambda study: bkb.recommend(study).params),
        Search("TPE", optuna.create_study(sampler=tpe), lambda study: study.best_trial.params),
    ]
    for search in searches:
        search.run(data, args.trials, args.seed)
    judge = Judge(data, 5 if args.smoke else 40, args.seed)
    report(data, searches, judge)
    path = args.out / "optuna_sampler.png"
    draw(searches, judge, path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
