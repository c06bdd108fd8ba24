"""Ours by their defaults, and those of scikit-learn and river by theirs, as functions of a stream.

All predict a row before they learn it. Ours get the stream in one call, the others row by row. Theirs get standardised
columns (and targets), which they need: by scikit-learn's `StandardScaler.partial_fit`, or river's scaler. Nystroem and
RBFSampler are fitted to the first 128 rows, with `gamma="scale"` or the default that comes nearest, and `SGDClassifier`
learns their 100 features.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.learner_accuracy.sets import Array, Stream
from bkbopt import learners as bl
from bkbopt.learners import OnlineLearner

__all__ = ["Model", "models_of_classes", "models_of_numbers"]

#: Rows to which features are fitted.
FIRST = 128
#: Rows that learners get whose rounds grow with the stream.
GROWING = 2_000


@dataclass(frozen=True)
class Model:
    """A name, what predicts and learns a stream, and on how many rows at most."""

    name: str
    run: Callable[[Stream], Array]
    rows: int | None = None


def _of_paper(kind: Any, **params: object) -> OnlineLearner:
    """As in the paper, but with a bounded dictionary."""
    limit = {"max_dictionary": 200} if "max_dictionary" in kind().get_params() else {}
    return kind.paper(**{**limit, **params})


def ours(kind: Callable[..., OnlineLearner], *, paper: bool, **params: object) -> Callable[[Stream], Array]:
    """Predictions before learning; with `paper` by the papers' parameters, once the defaults of this package."""

    def run(stream: Stream) -> Array:
        learner = _of_paper(kind, **params) if paper else kind(**params)
        return learner.progressive(stream.X, stream.y)

    return run


def by_sklearn(make: Callable[[Array], tuple[Any, Any]], *, labels: bool) -> Callable[[Stream], Array]:
    """(first rows) -> features and a model of scikit-learn, row by row."""

    def run(stream: Stream) -> Array:
        from sklearn.preprocessing import StandardScaler

        X, y = stream.X, stream.y
        scaler, of_y = StandardScaler(), StandardScaler()
        features, model = make(StandardScaler().fit_transform(X[:FIRST]))
        classes = {"classes": np.unique(y)} if labels else {}
        p = np.full(len(y), y[0], dtype=y.dtype) if labels else np.zeros(len(y))
        for t in range(len(y)):
            row, target = X[t : t + 1], y[t : t + 1]
            if t:
                out = model.predict(features(scaler.transform(row)))
                p[t] = out[0] if labels else of_y.inverse_transform(out[:, None])[0, 0]
            Z = features(scaler.partial_fit(row).transform(row))
            if not labels:
                target = of_y.partial_fit(target[:, None]).transform(target[:, None])[:, 0]
            model.partial_fit(Z, target, **classes)
        return p

    return run


def by_river(make: Callable[[], Any], *, labels: bool) -> Callable[[Stream], Array]:
    """A model of river behind its scaler, row by row."""

    def run(stream: Stream) -> Array:
        model, out = make(), []
        names = [f"x{j}" for j in range(stream.X.shape[1])]
        for row, target in zip(stream.X.tolist(), stream.y.tolist(), strict=True):
            x = dict(zip(names, row, strict=True))
            guess = model.predict_one(x)
            out.append(target if guess is None else guess)
            model.learn_one(x, target)
        return np.array(out)

    return run


def _plain(model: Callable[[], Any]) -> Callable[[Array], tuple[Any, Any]]:
    return lambda first: (lambda Z: Z, model())


def _nystroem(model: Callable[[], Any]) -> Callable[[Array], tuple[Any, Any]]:
    def make(first: Array) -> tuple[Any, Any]:
        from sklearn.kernel_approximation import Nystroem

        size = min(100, len(first))
        return Nystroem(n_components=size, random_state=0).fit(first).transform, model()

    return make


def _fourier(model: Callable[[], Any]) -> Callable[[Array], tuple[Any, Any]]:
    def make(first: Array) -> tuple[Any, Any]:
        from sklearn.kernel_approximation import RBFSampler

        return RBFSampler(gamma="scale", random_state=0).fit(first).transform, model()

    return make


def models_of_classes(*, paper: bool = False) -> list[Model]:
    """Ours for labels."""
    every = [bl.FOGD, bl.NOGD, bl.SkeGD, bl.FORKS, bl.ProsNKONS, bl.BPAS, bl.ProjectronPP, bl.Projectron]
    every += [bl.RBP, bl.Forgetron, bl.BOGD]
    growing = [bl.KernelPerceptron, bl.KOGD, bl.SketchedKONS, bl.KONS]
    own = [Model(c.__name__, ours(c, paper=paper)) for c in every]
    own.insert(5, Model("ProsNKONS, 500 points", ours(bl.ProsNKONS, paper=paper, max_dictionary=500)))
    return [*own, *(Model(c.__name__, ours(c, paper=paper), GROWING) for c in growing)]


def others_of_classes() -> list[Model]:
    """Of scikit-learn and river."""
    from river import linear_model as rl
    from river import multiclass, preprocessing, tree
    from sklearn.linear_model import SGDClassifier

    def sgd() -> Any:
        return SGDClassifier(random_state=0)

    def aggressive() -> Any:
        return SGDClassifier(penalty=None, learning_rate="pa1", eta0=1.0, random_state=0)

    def scaled(model: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: preprocessing.StandardScaler() | multiclass.OneVsRestClassifier(model())

    return [
        Model("SGDClassifier", by_sklearn(_plain(sgd), labels=True)),
        Model("SGD, Nystroem", by_sklearn(_nystroem(sgd), labels=True)),
        Model("SGD, RBFSampler", by_sklearn(_fourier(sgd), labels=True)),
        Model("passive-aggressive", by_sklearn(_plain(aggressive), labels=True)),
        Model("river LogisticRegression", by_river(scaled(rl.LogisticRegression), labels=True)),
        Model("river ALMA", by_river(scaled(rl.ALMAClassifier), labels=True)),
        Model("river HoeffdingTree", by_river(tree.HoeffdingTreeClassifier, labels=True)),
    ]


def models_of_numbers(*, paper: bool = False) -> list[Model]:
    """Ours for numbers."""
    squared = [bl.FOGD, bl.NOGD, bl.SkeGD, bl.FORKS, bl.ProsNKONS, bl.BOGD]

    def of(kind: type[OnlineLearner], rows: int | None = None) -> Model:
        return Model(kind.__name__, ours(kind, paper=paper, loss="squared"), rows)

    own = [Model("PKAWV", ours(bl.PKAWV, paper=paper)), *map(of, squared)]
    exact = [Model(c.__name__, ours(c, paper=paper), GROWING) for c in (bl.KernelAWV, bl.OnlineKRR)]
    return [*own, *exact, *(of(kind, GROWING) for kind in (bl.KOGD, bl.KONS, bl.SketchedKONS))]


def others_of_numbers() -> list[Model]:
    """Of scikit-learn and river."""
    from river import linear_model as rl
    from river import preprocessing, tree
    from sklearn.linear_model import SGDRegressor

    def sgd() -> Any:
        return SGDRegressor(random_state=0)

    def linear() -> Any:
        scaled = preprocessing.StandardScaler() | rl.LinearRegression()
        return preprocessing.TargetStandardScaler(regressor=scaled)

    return [
        Model("SGDRegressor", by_sklearn(_plain(sgd), labels=False)),
        Model("SGD, Nystroem", by_sklearn(_nystroem(sgd), labels=False)),
        Model("SGD, RBFSampler", by_sklearn(_fourier(sgd), labels=False)),
        Model("river LinearRegression", by_river(linear, labels=False)),
        Model("river HoeffdingTree", by_river(tree.HoeffdingTreeRegressor, labels=False)),
    ]
