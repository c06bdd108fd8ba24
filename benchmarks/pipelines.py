"""More models to tune, on scikit-learn's data: one of six classifiers, forests, boosting, and three linear models.

They are as those of `benchmarks/tuning.py`: mixed and conditional spaces, one of 40 splits a trial, at most 0.2 s on
one thread.

`python -m benchmarks.pipelines` computes the constants in `PIPELINES`.
"""

import sys
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import optuna
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectKBest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import ElasticNet, LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

from benchmarks.tuning import Tuning, describe, diabetes, digits, split_of, tumours

__all__ = ["PIPELINES"]

Params = Mapping[str, Any]

SCALERS = {"none": lambda: None, "range": MinMaxScaler, "deviation": StandardScaler}


def _without(params: Params, *names: str) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name not in names}


def suggest_classifier(trial: optuna.Trial) -> None:
    """A scaling, a reduction of the columns, and one of six classifiers, each with parameters of its own."""
    trial.suggest_categorical("scaling", list(SCALERS))
    if trial.suggest_categorical("reduction", ["none", "components", "columns"]) != "none":
        trial.suggest_int("kept", 2, 60, log=True)
    model = trial.suggest_categorical("model", ["logistic", "neighbours", "svm", "forest", "bayes", "discriminant"])
    if model in ("logistic", "svm"):
        trial.suggest_float(f"{model}_C", 1e-4, 1e3, log=True)
    if model == "svm":
        trial.suggest_float("gamma", 1e-5, 1e1, log=True)
    if model == "neighbours":
        trial.suggest_int("n_neighbors", 1, 50, log=True)
        trial.suggest_categorical("weights", ["uniform", "distance"])
        trial.suggest_float("p", 1.0, 3.0)
    if model == "forest":
        trial.suggest_int("n_estimators", 5, 50, log=True)
        trial.suggest_int("max_depth", 1, 12)
        trial.suggest_float("max_features", 0.05, 1.0)
    if model == "bayes":
        trial.suggest_float("var_smoothing", 1e-9, 1.0, log=True)
    if model == "discriminant":
        trial.suggest_float("shrinkage", 0.0, 1.0)


def classifier_loss(params: Params, split: int) -> float:
    """Share of images classified wrongly: trained on 300, tested on 500 others."""
    X, y = digits()
    train, test = split_of(len(X), 300, 500, split)
    own = _without(params, "scaling", "reduction", "kept", "model", "logistic_C", "svm_C")
    makers = {
        "logistic": lambda: LogisticRegression(C=params["logistic_C"], max_iter=60),
        "neighbours": lambda: KNeighborsClassifier(**own),
        "svm": lambda: SVC(C=params["svm_C"], max_iter=5_000, **own),
        "forest": lambda: RandomForestClassifier(random_state=split, **own),
        "bayes": lambda: GaussianNB(**own),
        "discriminant": lambda: LinearDiscriminantAnalysis(solver="lsqr", **own),
    }
    reductions = {
        "none": lambda: None,
        "components": lambda: PCA(params["kept"], random_state=split),
        "columns": lambda: SelectKBest(k=params["kept"]),
    }
    model = make_pipeline(SCALERS[params["scaling"]](), reductions[params["reduction"]](), makers[params["model"]]())
    return _wrong(model, X, y, train, test)


def _wrong(model: Any, X: Any, y: Any, train: Any, test: Any) -> float:
    """Share of the test rows classified wrongly by a model trained on others."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # few iterations are meant
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)  # constant columns of images
        model.fit(X[train], y[train])
        return float(np.mean(model.predict(X[test]) != y[test]))


def suggest_forest(trial: optuna.Trial) -> None:
    """Random forests or extremely randomised trees, with samples of the rows or without."""
    trial.suggest_categorical("kind", ["random", "extra"])
    trial.suggest_int("n_estimators", 3, 40, log=True)
    trial.suggest_categorical("criterion", ["gini", "entropy"])
    trial.suggest_int("max_depth", 1, 16)
    trial.suggest_int("min_samples_leaf", 1, 40, log=True)
    trial.suggest_float("max_features", 0.02, 1.0, log=True)
    if trial.suggest_categorical("bootstrap", [True, False]):
        trial.suggest_float("max_samples", 0.1, 1.0)


def forest_loss(params: Params, split: int) -> float:
    """Share of images classified wrongly: trained on 300, tested on 500 others."""
    X, y = digits()
    train, test = split_of(len(X), 300, 500, split)
    kind = {"random": RandomForestClassifier, "extra": ExtraTreesClassifier}[params["kind"]]
    return _wrong(kind(**_without(params, "kind"), random_state=split), X, y, train, test)


def suggest_histogram(trial: optuna.Trial) -> None:
    """Boosting of trees on binned columns: eight numbers, four of them over decades."""
    trial.suggest_float("learning_rate", 5e-3, 1.0, log=True)
    trial.suggest_int("max_iter", 3, 40, log=True)
    trial.suggest_int("max_leaf_nodes", 2, 32, log=True)
    trial.suggest_int("min_samples_leaf", 1, 40)
    trial.suggest_float("l2_regularization", 1e-6, 1e2, log=True)
    trial.suggest_int("max_bins", 4, 64)
    trial.suggest_float("max_features", 0.1, 1.0)
    trial.suggest_int("max_depth", 1, 8)


def histogram_loss(params: Params, split: int) -> float:
    """Logarithmic loss on tumours: trained on 200, tested on the others."""
    X, y = tumours()
    train, test = split_of(len(X), 200, len(X) - 200, split)
    model = HistGradientBoostingClassifier(**params, early_stopping=False, random_state=split).fit(X[train], y[train])
    return float(log_loss(y[test], model.predict_proba(X[test])[:, 1]))


def suggest_descent(trial: optuna.Trial) -> None:
    """A linear classifier by stochastic gradient descent: a loss, a penalty and a schedule of the rate."""
    trial.suggest_categorical("scaling", list(SCALERS))
    trial.suggest_categorical("loss", ["hinge", "log_loss", "modified_huber", "squared_hinge"])
    if trial.suggest_categorical("penalty", ["l1", "l2", "elasticnet"]) == "elasticnet":
        trial.suggest_float("l1_ratio", 0.0, 1.0)
    trial.suggest_float("alpha", 1e-7, 1.0, log=True)
    if trial.suggest_categorical("learning_rate", ["optimal", "constant", "invscaling"]) != "optimal":
        trial.suggest_float("eta0", 1e-4, 1e1, log=True)
    trial.suggest_int("max_iter", 1, 30, log=True)
    trial.suggest_categorical("average", [True, False])


def descent_loss(params: Params, split: int) -> float:
    """Share of images classified wrongly: trained on 300, tested on 500 others."""
    X, y = digits()
    train, test = split_of(len(X), 300, 500, split)
    settings = {"eta0": 0.01, "power_t": 0.5, **_without(params, "scaling")}
    model = make_pipeline(SCALERS[params["scaling"]](), SGDClassifier(**settings, tol=None, random_state=split))
    return _wrong(model, X, y, train, test)


def suggest_ridge(trial: optuna.Trial) -> None:
    """Ridge regression with one of four kernels, which have parameters of their own."""
    trial.suggest_float("alpha", 1e-5, 1e2, log=True)
    kernel = trial.suggest_categorical("kernel", ["linear", "rbf", "laplacian", "poly"])
    if kernel != "linear":
        trial.suggest_float("gamma", 1e-4, 1e1, log=True)
    if kernel == "poly":
        trial.suggest_int("degree", 2, 4)
        trial.suggest_float("coef0", 0.0, 2.0)
    trial.suggest_categorical("target", ["as it is", "logarithm", "root"])


def ridge_loss(params: Params, split: int) -> float:
    """Root mean squared error in standard deviations of the target: trained on 150 patients, tested on the others."""
    return _error(params, split, KernelRidge(**_without(params, "target")))


def suggest_elastic(trial: optuna.Trial) -> None:
    """Squares and products of the columns or only these, and a penalty between that of the lasso and that of ridge."""
    if trial.suggest_int("degree", 1, 2) == 2:
        trial.suggest_categorical("interaction_only", [True, False])
    trial.suggest_float("alpha", 1e-4, 1e1, log=True)
    trial.suggest_float("l1_ratio", 0.0, 1.0)
    trial.suggest_int("max_iter", 1, 60, log=True)
    trial.suggest_categorical("selection", ["cyclic", "random"])
    trial.suggest_categorical("target", ["as it is", "logarithm", "root"])


def elastic_loss(params: Params, split: int) -> float:
    """Root mean squared error in standard deviations of the target: trained on 150 patients, tested on the others."""
    columns = PolynomialFeatures(params["degree"], interaction_only=params.get("interaction_only", False))
    own = _without(params, "degree", "interaction_only", "target")
    return _error(params, split, make_pipeline(columns, StandardScaler(), ElasticNet(**own, random_state=split)))


def _error(params: Params, split: int, model: Any) -> float:
    X, y = diabetes()
    train, test = split_of(len(X), 150, len(X) - 150, split)
    shifted = y - y.min() + 0.2
    forward, backward = {
        "as it is": (None, None),
        "logarithm": (np.log, lambda z: np.exp(np.minimum(z, 5.0))),
        "root": (np.sqrt, lambda z: np.square(np.maximum(z, 0.0))),
    }[params["target"]]
    whole = TransformedTargetRegressor(model, func=forward, inverse_func=backward, check_inverse=False)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # few iterations and singular kernels are meant
        whole.fit(10.0 * X[train], shifted[train])
        error = float(np.sqrt(np.mean((whole.predict(10.0 * X[test]) - shifted[test]) ** 2)))
    return min(error, 10.0)


PIPELINES = {
    tuning.name: tuning
    for tuning in (
        Tuning("classifier", suggest_classifier, classifier_loss, 0.3697, 0.0090, "4 to 7 of 15 mixed parameters"),
        Tuning("forest", suggest_forest, forest_loss, 0.2868, 0.0125, "7 or 8 of 8 mixed parameters"),
        Tuning("histogram", suggest_histogram, histogram_loss, 0.3422, 0.0204, "8 numbers"),
        Tuning("descent", suggest_descent, descent_loss, 0.1388, 0.0116, "7 to 9 of 9 mixed parameters"),
        Tuning("ridge", suggest_ridge, ridge_loss, 1.0694, 0.0161, "3 to 6 of 6 mixed parameters"),
        Tuning("elastic", suggest_elastic, elastic_loss, 0.1727, 0.0152, "6 or 7 of 7 mixed parameters"),
    )
}

if __name__ == "__main__":
    describe(PIPELINES, *(int(argument) for argument in sys.argv[1:]))
