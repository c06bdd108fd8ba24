"""Real models to tune, on scikit-learn's data: gradient boosting, a multilayer perceptron, a support vector machine.

All spaces are mixed and conditional. One evaluation trains on one of `N_SPLITS` fixed random splits of the data and
returns the loss on the rest: below 0.2 s on one thread. The split of a trial depends on the seed and the trial's number
alone. The noise is therefore a draw from a finite set, and the true value of a setting, the mean over all splits, is
known exactly. The smallest true value is not known.

`python -m benchmarks.tuning` computes the interquartile ranges over random settings, and the noise near the best of
them, which are constants below.
"""

import functools
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from benchmarks.samplers import quiet_optuna

__all__ = ["N_SPLITS", "TUNING", "Tuning", "describe", "diabetes", "digits", "split_of", "tumours"]

Params = Mapping[str, Any]
Array = NDArray[Any]

N_SPLITS = 40
# Tags keep these streams apart from other uses of the same small seeds.
NOISE_STREAM, SPLIT_STREAM = 7_003, 7_004


@dataclass(frozen=True)
class Tuning:
    """A model to tune.

    `suggest` asks a trial for its parameters; `loss` maps parameters and the number of a split to the loss on its test
    rows. `iqr` is the interquartile range of the true values of random settings and `noise_sd` the standard deviation
    over splits at the best of them, both in units of the loss.
    """

    name: str
    suggest: Callable[[optuna.Trial], None]
    loss: Callable[[Params, int], float]
    iqr: float
    noise_sd: float
    note: str

    def observe(self, params: Params, seed: int, number: int) -> float:
        """Loss on the split of trial `number` of this seed."""
        split = np.random.default_rng([NOISE_STREAM, seed, number]).integers(N_SPLITS)
        return self.loss(params, int(split))

    def losses(self, params: Params) -> Array:
        """Losses on all splits, (N_SPLITS,)."""
        return np.array([self.loss(params, split) for split in range(N_SPLITS)])

    def truth(self, params: Params) -> float:
        """Mean loss over all splits."""
        return float(self.losses(params).mean())


def split_of(n: int, n_train: int, n_test: int, number: int) -> tuple[Array, Array]:
    """Rows to train and to test on."""
    rows = np.random.default_rng([SPLIT_STREAM, number]).permutation(n)
    return rows[:n_train], rows[n_train : n_train + n_test]


def suggest_boosting(trial: optuna.Trial) -> None:
    """Trees grown to a depth or to a number of leaves, each with its own parameter; features all or a part."""
    trial.suggest_int("n_estimators", 5, 80, log=True)
    trial.suggest_float("learning_rate", 1e-2, 1.0, log=True)
    trial.suggest_float("subsample", 0.2, 1.0)
    trial.suggest_int("min_samples_leaf", 1, 50, log=True)
    if trial.suggest_categorical("growth", ["depth", "leaves"]) == "depth":
        trial.suggest_int("max_depth", 1, 8)
    else:
        trial.suggest_int("max_leaf_nodes", 2, 64, log=True)
    if trial.suggest_categorical("features", ["all", "part"]) == "part":
        trial.suggest_float("max_features", 0.1, 1.0)


@functools.cache
def diabetes() -> tuple[Array, Array]:
    X, y = load_diabetes(return_X_y=True)
    return X, (y - y.mean()) / y.std()


def boosting_loss(params: Params, split: int) -> float:
    """Root mean squared error in standard deviations of the target: trained on 200 patients, tested on the others."""
    X, y = diabetes()
    train, test = split_of(len(X), 200, len(X) - 200, split)
    # The choices of a branch are known to the search only; a tree of so many leaves has no limit of its depth.
    settings = {"max_depth": None, **{k: v for k, v in params.items() if k not in ("growth", "features")}}
    model = GradientBoostingRegressor(**settings, random_state=split).fit(X[train], y[train])
    return float(np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)))


def suggest_mlp(trial: optuna.Trial) -> None:
    """One to three layers with a width each; two solvers with a rate each, one of them with momentum."""
    for layer in range(trial.suggest_int("layers", 1, 3)):
        trial.suggest_int(f"width{layer}", 4, 64, log=True)
    trial.suggest_categorical("activation", ["relu", "tanh", "logistic"])
    trial.suggest_float("alpha", 1e-6, 1.0, log=True)
    trial.suggest_int("batch_size", 16, 128, log=True)
    trial.suggest_int("max_iter", 2, 15)
    if trial.suggest_categorical("solver", ["adam", "sgd"]) == "adam":
        trial.suggest_float("adam_rate", 1e-4, 1e-1, log=True)
    else:
        trial.suggest_float("sgd_rate", 1e-3, 1.0, log=True)
        trial.suggest_float("momentum", 0.0, 0.98)


@functools.cache
def digits() -> tuple[Array, Array]:
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def mlp_loss(params: Params, split: int) -> float:
    """Share of images classified wrongly: trained on 300, tested on 500 others."""
    X, y = digits()
    train, test = split_of(len(X), 300, 500, split)
    settings = {k: params[k] for k in ("activation", "alpha", "batch_size", "max_iter", "solver")}
    model = MLPClassifier(
        [params[f"width{layer}"] for layer in range(params["layers"])],
        learning_rate_init=params[f"{params['solver']}_rate"],
        momentum=params.get("momentum", 0.9),
        random_state=split,
        **settings,
    )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # few epochs are meant
        warnings.simplefilter("ignore", RuntimeWarning)  # a large step overflows
        try:
            model.fit(X[train], y[train])
        except ValueError as error:
            if "non-finite" not in str(error):
                raise
            return 0.9  # a diverged network is worth a guess
        return float(np.mean(model.predict(X[test]) != y[test]))


def suggest_svm(trial: optuna.Trial) -> None:
    """A scaling, some principal components, and a kernel with parameters of its own."""
    trial.suggest_categorical("scaling", ["none", "range", "deviation"])
    trial.suggest_int("components", 2, 30)
    trial.suggest_float("C", 1e-3, 1e3, log=True)
    kernel = trial.suggest_categorical("kernel", ["linear", "poly", "rbf", "sigmoid"])
    if kernel != "linear":
        trial.suggest_float("gamma", 1e-4, 1e1, log=True)
    if kernel == "poly":
        trial.suggest_int("degree", 2, 5)
    if kernel in ("poly", "sigmoid"):
        trial.suggest_float("coef0", -1.0, 1.0)


@functools.cache
def tumours() -> tuple[Array, Array]:
    X, y = load_breast_cancer(return_X_y=True)
    return X / X.max(0), y


def svm_loss(params: Params, split: int) -> float:
    """Share of tumours classified wrongly: trained on 120, tested on the others."""
    X, y = tumours()
    train, test = split_of(len(X), 120, len(X) - 120, split)
    scalers = {"none": None, "range": MinMaxScaler(), "deviation": StandardScaler()}
    settings = {k: v for k, v in params.items() if k not in ("scaling", "components")}
    # Where a kernel is no inner product the solver may not end by itself.
    machine = SVC(**settings, max_iter=20_000)
    model = make_pipeline(scalers[params["scaling"]], PCA(params["components"], random_state=split), machine)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[train], y[train])
    return float(np.mean(model.predict(X[test]) != y[test]))


TUNING = {
    tuning.name: tuning
    for tuning in (
        Tuning("boosting", suggest_boosting, boosting_loss, 0.1374, 0.0159, "7 or 8 of 9 mixed parameters"),
        Tuning("mlp", suggest_mlp, mlp_loss, 0.5678, 0.0127, "8 to 11 of 12 mixed parameters"),
        Tuning("svm", suggest_svm, svm_loss, 0.3221, 0.0104, "4 to 7 of 7 mixed parameters"),
    )
}


def random_settings(tuning: Tuning, n: int) -> list[Params]:
    """Settings as random search draws them."""
    with quiet_optuna():
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        settings: list[Params] = []
        for _ in range(n):
            trial = study.ask()
            tuning.suggest(trial)
            settings.append(trial.params)
    return settings


def describe(tunings: Mapping[str, Tuning], n: int = 120) -> None:
    """Print what is written down of each model, over n random settings."""
    for tuning in tunings.values():
        losses = np.array([tuning.losses(params) for params in random_settings(tuning, n)])
        true = losses.mean(1)
        lower, upper = np.quantile(true, [0.25, 0.75])
        noise = losses[true.argmin()].std(ddof=1)
        print(f"{tuning.name}: IQR {upper - lower:.4f}, noise sd at the best {noise:.4f}, best {true.min():.4f}")


if __name__ == "__main__":
    describe(TUNING, *(int(argument) for argument in sys.argv[1:]))
