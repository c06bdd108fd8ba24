"""Learners in river: its own checks, pipelines, metrics and data sets."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("river")
from river import checks, compose, datasets, evaluate, metrics, preprocessing, stream

from bkbopt.adapters.river import RiverClassifier, RiverRegressor
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.learners import BPAS, FOGD, FORKS, KOGD, KONS, PKAWV, KernelAWV, OnlineLearner, ProsNKONS

CLASSIFIERS = [BPAS(), FOGD(), KOGD(loss="logistic"), KONS(), FORKS(), ProsNKONS()]
REGRESSORS = [KOGD(loss="squared"), FOGD(loss="squared"), KernelAWV(), PKAWV()]
#: What the checks look at is the wrapper: one learner and a twenty-fourth of the rows are enough to see a fault of it.
FAST = "KOGD"


def named(learners: list[OnlineLearner]) -> list[Any]:
    fast = [pytest.param(one, 24, id=FAST) for one in learners if type(one).__name__ == FAST]
    return fast + [
        pytest.param(one, 1, id=f"{type(one).__name__} with all rows", marks=pytest.mark.slow) for one in learners
    ]


def checks_of(model: Any, part: int) -> Iterator[Callable[[Any], None]]:
    """River's checks; those with data take the first rows only, the given part of them."""
    for check in checks.yield_checks(model):
        if isinstance(check, partial):
            rows = list(check.keywords["dataset"])
            yield partial(check, dataset=rows[: len(rows) // part])
        else:
            yield check


@pytest.mark.filterwarnings("ignore:x. features that the first row had not:UserWarning")
@pytest.mark.parametrize(("learner", "part"), named(CLASSIFIERS))
def test_rivers_own_checks_pass_for_classifiers(learner: OnlineLearner, part: int) -> None:
    for check in checks_of(RiverClassifier(learner), part):
        check(RiverClassifier(learner))


@pytest.mark.filterwarnings("ignore:x. features that the first row had not:UserWarning")
@pytest.mark.parametrize(("learner", "part"), named(REGRESSORS))
def test_rivers_own_checks_pass_for_regressors(learner: OnlineLearner, part: int) -> None:
    for check in checks_of(RiverRegressor(learner), part):
        check(RiverRegressor(learner))


def score(model: Any, data: Any, metric: Any) -> float:
    return float(evaluate.progressive_val_score(data, model, metric).get())


def test_two_classes_of_a_data_set_of_rivers() -> None:
    together = metrics.Accuracy() + metrics.ROCAUC() + metrics.LogLoss()
    evaluate.progressive_val_score(datasets.Phishing().take(800), RiverClassifier(ProsNKONS()), together)
    accuracy, area, loss = together.get()
    assert accuracy > 0.87
    assert area > 0.93
    assert loss < 0.4  # the entropy of a fair coin is 0.69


@pytest.mark.slow
def test_seven_classes_of_a_data_set_of_rivers() -> None:
    assert score(RiverClassifier(FORKS()), datasets.ImageSegments().take(1000), metrics.Accuracy()) > 0.8


def test_numbers_of_a_data_set_of_rivers() -> None:
    constant = score(RiverRegressor(KOGD(loss="squared", step=1e-12)), datasets.TrumpApproval(), metrics.MAE())
    assert score(RiverRegressor(KOGD(loss="squared")), datasets.TrumpApproval(), metrics.MAE()) < constant / 3.0


def test_pipelines_with_scalers_take_learners() -> None:
    unscaled = BPAS(scale=False, lengthscale=3.0)
    model = compose.Pipeline(preprocessing.StandardScaler(), RiverClassifier(unscaled))
    assert score(model, datasets.Phishing(), metrics.Accuracy()) > 0.86


def test_before_the_first_row_nothing_is_predicted() -> None:
    x = {"a": 1.0}
    assert RiverClassifier(BPAS()).predict_one(x) is None
    assert RiverClassifier(BPAS()).predict_proba_one(x) == {}
    assert RiverRegressor(KernelAWV()).predict_one(x) == 0.0


def test_it_predicts_what_the_learner_does() -> None:
    model, learner = RiverClassifier(KONS()), KONS()
    names = None
    for x, y in islice(datasets.Phishing(), 200):
        names = names or sorted(x)
        row = np.array([x[name] for name in names])
        if learner.__dict__.get("n_rounds_"):
            assert model.predict_one(x) == learner.predict_one(row)
            assert model.predict_proba_one(x) == learner.predict_proba_one(row)
        model.learn_one(x, y)
        learner.learn_one(row, y)


def test_missing_features_are_taken_for_their_means_and_new_ones_ignored() -> None:
    model = RiverRegressor(KernelAWV())
    for k in range(20):
        model.learn_one({"a": float(k), "b": float(k % 3)}, 2.0 * k)
    mean = float(np.mean([k % 3 for k in range(20)]))
    full = model.predict_one({"a": 4.0, "b": mean})
    assert model.predict_one({"a": 4.0}) == pytest.approx(full, rel=1e-12)  # the mean is a running one
    assert model.predict_one({"a": 4.0, "b": mean, "new": 9.0}) == full


def test_features_that_are_ignored_are_named_once() -> None:
    model = RiverClassifier(BPAS())
    model.learn_one({"a": 1.0, "b": 0.0}, True)
    model.learn_one({"a": 2.0}, False)
    with pytest.warns(
        UserWarning, match=r"^x: features that the first row had not are ignored, here 'c', 7; give"
    ) as told:
        model.learn_one({"a": 1.0, "c": 3.0, 7: 1.0}, True)
    assert told[0].filename == __file__
    model.learn_one({"a": 1.0, "d": 3.0}, True)
    again = model.clone()
    again.learn_one({"a": 1.0}, True)
    with pytest.warns(UserWarning, match=r"here 0, 1, 2, \.\.\.; give the first row all of them"):
        again.learn_one(dict.fromkeys(range(9), 1.0), True)


@pytest.mark.parametrize("value", ["red", None, math.nan, 10**400])
def test_features_that_are_no_finite_numbers_are_named_and_nothing_is_learnt(value: Any) -> None:
    model = RiverClassifier(KONS())
    for k in range(20):
        model.learn_one({"size": float(k), "hue": float(k % 3), 7: 1.0}, k % 2 == 0)
    row = {"size": 4.0, "hue": 1.0, 7: 1.0}
    before = model.predict_proba_one(row)
    for call in (model.predict_one, model.predict_proba_one, lambda x: model.learn_one(x, True)):
        with pytest.raises((ArgumentError, ArgumentTypeError), match=r"^x: expected finite numbers, got 'hue': .*One"):
            call({**row, "hue": value})
        with pytest.raises((ArgumentError, ArgumentTypeError), match=r"got 7: .*, 'hue': .*, 'size': [^,]*; put"):
            call(dict.fromkeys(row, value))
    assert model.predict_proba_one(row) == before


def test_of_many_features_that_are_no_numbers_three_are_named() -> None:
    with pytest.raises(ArgumentError, match=r"got 0: None, 1: None, 2: None and 7 more; put OneHotEncoder"):
        RiverRegressor(KernelAWV()).learn_one(dict.fromkeys(range(10)), 1.0)


def test_other_errors_of_a_learner_are_its_own() -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=r"^y: expected"):
        RiverRegressor(KernelAWV()).learn_one({"a": 1.0}, math.nan)


def test_categories_that_the_encoder_knows_are_all_learnt() -> None:
    rng = np.random.default_rng(0)
    rows = [{"size": float(n), "shop": "abcd"[k % 4]} for k, n in enumerate(rng.standard_normal(400))]
    y = [bool(x["size"] > 0.0) != (x["shop"] == "c") for x in rows]
    encoder = preprocessing.OneHotEncoder(categories={"shop": set("abcd")})
    model = (compose.Select("size") + (compose.Select("shop") | encoder)) | RiverClassifier(KONS())
    assert score(model, zip(rows, y, strict=True), metrics.Accuracy()) > 0.85


def test_means_of_features_of_any_size_are_finite() -> None:
    model = RiverRegressor(KOGD(loss="squared"))
    for sign in (1.0, -1.0, 1.0):
        model.learn_one({"a": sign * 1.7e308, "b": 1.0}, sign)
    assert math.isfinite(model.predict_one({"b": 1.0}))


def test_names_may_be_of_any_type_as_those_of_rivers_streams_of_arrays() -> None:
    X = np.random.default_rng(0).standard_normal((50, 3))
    numbered, named = RiverClassifier(KONS()), RiverClassifier(KONS())
    for x, y in stream.iter_array(X, X[:, 0] > 0.0):
        letters = dict(zip("abc", x.values(), strict=True))
        assert numbered.predict_one(x) == named.predict_one(letters)
        numbered.learn_one(x, y)
        named.learn_one(letters, y)
    assert numbered.predict_proba_one({2: 0.0, 0: 3.0}) == named.predict_proba_one({"a": 3.0, "c": 0.0})


def test_learner_that_was_given_is_not_changed() -> None:
    learner = BPAS()
    model = RiverClassifier(learner)
    model.learn_one({"a": 1.0}, True)
    assert not hasattr(learner, "n_rounds_")
    assert model.clone().predict_one({"a": 1.0}) is None


@pytest.mark.parametrize(
    ("wrapper", "learner"), [(RiverClassifier, PKAWV()), (RiverRegressor, BPAS()), (RiverRegressor, 3)]
)
def test_learners_of_the_other_task_are_refused(wrapper: Any, learner: object) -> None:
    with pytest.raises(ArgumentTypeError, match=r"learner: expected one of bkbopt\.learners for"):
        wrapper(learner)


# -- data frames -------------------------------------------------------------------------------------------------------


def phishing(n: int) -> tuple[pd.DataFrame, pd.Series]:
    rows = list(islice(datasets.Phishing(), n))
    return pd.DataFrame([x for x, _ in rows], index=range(100, 100 + n)), pd.Series([y for _, y in rows])


def test_frames_are_learnt_and_predicted_as_their_rows_are() -> None:
    X, y = phishing(300)
    many, one = RiverClassifier(FOGD()), RiverClassifier(FOGD())
    for start in (0, 1, 150):
        part = slice(start, {0: 1, 1: 150}.get(start, 300))
        many.learn_many(X[part], y[part])
    for x, label in zip(X.to_dict("records"), y, strict=True):
        one.learn_one(x, label)
    P = many.predict_proba_many(X)
    assert P.index.equals(X.index)
    assert list(P.columns) == [False, True]
    assert P.to_dict("records") == [one.predict_proba_one(x) for x in X.to_dict("records")]
    labels = many.predict_many(X)
    assert labels.index.equals(X.index)
    assert labels.tolist() == [one.predict_one(x) for x in X.to_dict("records")]


def test_empty_cells_and_columns_that_are_missing_are_features_that_rows_lack() -> None:
    X = pd.DataFrame({"a": [1.0, 2.0, math.nan, 4.0], "b": [0.0, 1.0, 5.0, None], "c": [1, 0, 1, 1]})
    y = pd.Series([1.0, 2.0, 3.0, 4.0])
    many, one = RiverRegressor(KernelAWV()), RiverRegressor(KernelAWV())
    many.learn_many(X, y)
    many.learn_many(X[["c"]], y)
    rows = [{k: v for k, v in row.items() if not pd.isna(v)} for row in X.to_dict("records")]
    for x, value in zip([*rows, *({"c": row["c"]} for row in rows)], [*y, *y], strict=True):
        one.learn_one(x, value)
    assert many._means == one._means
    # One call computes the kernel matrix of several rows, which rounds differently.
    assert many.predict_many(X[["a", "c"]]).tolist() == pytest.approx(
        [one.predict_one({k: v for k, v in x.items() if k != "b"}) for x in rows], rel=1e-12
    )


def test_pipelines_of_frames_take_learners() -> None:
    X, y = phishing(600)
    model = compose.Pipeline(preprocessing.StandardScaler(), RiverClassifier(BPAS()))
    for start in range(0, 500, 100):
        model.learn_many(X[start : start + 100], y[start : start + 100])
    assert np.mean(model.predict_many(X[500:]).to_numpy() == y[500:].to_numpy()) > 0.85


def test_before_the_first_row_frames_have_no_predictions() -> None:
    X, y = phishing(3)
    model = RiverClassifier(BPAS())
    model.learn_many(X[:0], y[:0])
    assert model.predict_many(X).tolist() == [None, None, None]
    assert model.predict_proba_many(X).shape == (3, 0)
    assert RiverRegressor(KernelAWV()).predict_many(X).tolist() == [0.0, 0.0, 0.0]
    model.learn_many(X, y)
    assert len(model.predict_many(X[:0])) == len(model.predict_proba_many(X[:0])) == 0


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (["red", 1.0], "'red'"),
        ([1.0, math.inf], "inf"),
        (["1.5", 2.0], "'1.5'"),
        (pd.to_datetime(["2020", "2021"]), "T"),
    ],
)
def test_columns_that_are_no_finite_numbers_are_named_and_nothing_is_learnt(column: Any, told: str) -> None:
    model, frame = RiverRegressor(KernelAWV()), pd.DataFrame({"a": [1.0, 2.0], 7: [3, 4]})
    model.learn_many(frame, pd.Series([0.0, 1.0]))
    before = model.predict_many(frame).tolist()
    bad = frame.assign(a=column)
    for call in (model.predict_many, lambda X: model.learn_many(X, pd.Series([0.0, 1.0]))):
        with pytest.raises(ArgumentError, match=rf"^X: expected finite numbers, got 'a': {told}.*OneHotEncoder"):
            call(bad)
    with pytest.raises(ArgumentError, match=r"^X: expected different names of columns"):
        model.predict_many(pd.concat([frame, frame], axis=1))
    with pytest.raises(ArgumentError, match=r"^y"):
        model.learn_many(frame, pd.Series([0.0]))
    assert model.predict_many(frame).tolist() == before


def test_first_row_of_a_frame_has_all_features() -> None:
    model = RiverRegressor(KernelAWV())
    with pytest.raises(ArgumentError, match=r"^X: expected all features in the first row, got none for 'b'\.$"):
        model.learn_many(pd.DataFrame({"a": [1.0], "b": [math.nan]}), pd.Series([0.0]))
    model.learn_many(pd.DataFrame({"a": [1.0]}), pd.Series([0.0]))
    with pytest.warns(
        UserWarning, match=r"^x: features that the first row had not are ignored, here 'b'; give"
    ) as told:
        model.learn_many(pd.DataFrame({"a": [1.0], "b": [2.0]}), pd.Series([0.0]))
    assert told[0].filename == __file__
