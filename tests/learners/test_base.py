"""The contract of every online learner, scikit-learn's and our own; the learners are those of `everyone`."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.learners import (
    BOGD,
    FOGD,
    FORKS,
    KOGD,
    KONS,
    NOGD,
    PKAWV,
    KernelAWV,
    OnlineKRR,
    OnlineLearner,
    ProsNKONS,
    SkeGD,
    SketchedKONS,
)
from tests.conformance.suites import classes
from tests.learners.everyone import (
    CLASSIFIERS,
    LABELS,
    LEARNERS,
    NUMBERS,
    REGRESSIONS,
    SPOKESMEN,
    Factory,
    N,
    X,
    classifies,
    exported,
    file_of,
    targets,
    told,
)
from tests.learners.streams import margins
from tests.sweeps import slow_but, sweep


def test_list_names_every_learner() -> None:
    assert set(exported().values()) == {type(make()) for make in LEARNERS.values()}
    assert set(exported().values()) == {cls for cls in classes() if issubclass(cls, OnlineLearner)}


# -- scikit-learn ----------------------------------------------------------------------------------------------------

CLASSES = sorted({type(m()) for m in LEARNERS.values()}, key=lambda c: c.__name__)


# The base class is what they look at: a classification and a regression are enough.
@pytest.mark.parametrize("cls", slow_but({KONS, KernelAWV}, CLASSES))
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_pass_by_default(cls: type[OnlineLearner]) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    results = check_estimator(cls(), on_fail=None, on_skip=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}


@pytest.mark.slow
@pytest.mark.parametrize("cls", [KONS, SketchedKONS, ProsNKONS, KOGD, BOGD, FOGD, NOGD, SkeGD, FORKS])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_pass_for_regressions_too(cls: type[OnlineLearner]) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    results = check_estimator(cls(loss="squared"), on_fail=None, on_skip=None)  # type: ignore[call-arg]
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}


def test_grid_search_and_pipelines_take_learners() -> None:
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = make_pipeline(StandardScaler(), PKAWV.paper(features="nystrom"))
    search = GridSearchCV(pipeline, {"pkawv__lam": [0.1, 1.0]}, cv=2).fit(X, NUMBERS)
    assert search.best_score_ > 0.8


def test_scores_of_scikit_learn_take_margins_and_probabilities() -> None:
    from sklearn.ensemble import StackingClassifier
    from sklearn.metrics import log_loss, roc_auc_score
    from sklearn.model_selection import cross_val_score

    model = KONS().fit(X, LABELS)
    all_rows = [(np.arange(N), np.arange(N))]
    for scoring, expected in (
        ("roc_auc", roc_auc_score(LABELS, model.decision_function(X))),
        ("neg_log_loss", -log_loss(LABELS, model.predict_proba(X))),
    ):
        scores = cross_val_score(KONS(), X, LABELS, scoring=scoring, cv=all_rows)
        assert scores[0] == pytest.approx(expected, rel=1e-12)
    assert StackingClassifier([("kons", KONS())], cv=2).fit(X, LABELS).score(X, LABELS) > 0.8


def test_unknown_parameter_is_refused_and_none_is_set() -> None:
    model = KONS.paper()
    with pytest.raises(ArgumentError, match="lam: expected one of the parameters kernel, lengthscale"):
        model.set_params(clip=3.0, lam=1.0)
    assert model.clip == 1.0


def test_score_is_accuracy_or_r_squared(base: Factory) -> None:
    from sklearn.metrics import accuracy_score, r2_score

    model, y = told(base, 150), targets(base)
    direct = (accuracy_score if classifies(base) else r2_score)(y, model.predict(X))
    assert model.score(X, y) == pytest.approx(direct, abs=1e-12)


def test_score_with_weights_is_that_of_scikit_learn(base: Factory) -> None:
    from sklearn.metrics import accuracy_score, r2_score

    model, y, w = told(base, 150), targets(base), np.arange(N) % 4.0
    direct = (accuracy_score if classifies(base) else r2_score)(y, model.predict(X), sample_weight=w)
    assert model.score(X, y, sample_weight=w) == pytest.approx(direct, abs=1e-12)
    assert model.score(X, y, sample_weight=list(w)) != model.score(X, y)


def test_weights_of_a_score_are_checked() -> None:
    model, w = KONS().fit(X, LABELS), np.arange(N) % 4.0
    for bad in (w[1:], np.zeros(N), -w, np.where(w > 2.0, np.nan, w)):
        with pytest.raises(ArgumentError, match="sample_weight: expected"):
            model.score(X, LABELS, sample_weight=bad)
    with pytest.raises(ArgumentTypeError, match="sample_weight: expected a real number for each row"):
        model.score(X, LABELS, sample_weight=["heavy"] * N)


@pytest.mark.parametrize("cls", [KONS, KernelAWV])
def test_learners_in_pipelines_have_the_same_scores_with_routed_metadata(cls: type[OnlineLearner]) -> None:
    from sklearn import config_context
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    y, w = LABELS if cls is KONS else NUMBERS, np.arange(N) % 4.0
    plain = cross_val_score(make_pipeline(StandardScaler(), cls()), X, y, cv=3)
    with config_context(enable_metadata_routing=True):
        np.testing.assert_array_equal(cross_val_score(make_pipeline(StandardScaler(), cls()), X, y, cv=3), plain)
        weighted = cls().set_score_request(sample_weight=True).set_partial_fit_request(classes=True)  # type: ignore[attr-defined]
        scores = cross_val_score(weighted, X, y, cv=3, params={"sample_weight": w})
    assert (scores != cross_val_score(cls(), X, y, cv=3)).all()


def test_score_of_equal_targets_is_all_or_nothing() -> None:
    model = KernelAWV.paper().fit(X, np.zeros(N))
    assert (model.score(X, np.zeros(N)), model.score(X, np.ones(N))) == (1.0, 0.0)


def test_regressions_have_no_decision_function() -> None:
    assert not hasattr(KernelAWV.paper(), "decision_function")
    assert hasattr(KONS.paper(), "decision_function")
    assert not hasattr(KONS.paper(loss="squared"), "decision_function")
    for model in (KernelAWV(), KernelAWV().fit(X, NUMBERS)):
        with pytest.raises(AttributeError, match="predict_proba: KernelAWV with the squared loss is a regression"):
            model.predict_proba(X)


# -- three ways, one result ------------------------------------------------------------------------------------------


def test_rows_one_by_one_predict_what_the_stream_does(make: Factory) -> None:
    y = targets(make)
    whole = make().progressive(X, y)
    model, single = make(), [whole[0]]
    for t in range(N):
        if t:
            single.append(model.predict_one(X[t]))
        model.learn_one(X[t], y[t])
    if classifies(make):
        # Until the second label is seen, there is only one to predict.
        known = int(np.argmax(y != y[0])) + 1
        np.testing.assert_array_equal(single[known:], whole[known:])
        return
    # Products of one row and of many are rounded differently, and both regressions and Newton steps have memory.
    np.testing.assert_allclose(single, whole, atol=1e-10)


def test_batches_of_any_size_predict_what_the_stream_does(make: Factory) -> None:
    y = targets(make)
    whole, model = margins(make(), X, y), make()
    classes = np.unique(y) if classifies(make) else None
    parts = [margins(model, X[a:b], y[a:b], classes=classes) for a, b in pairwise([0, 1, 2, 7, 20, 133, 134, N])]
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-10)
    if isinstance(model, OnlineKRR | PKAWV):
        at_once = told(make)
        assert model.regret_ == pytest.approx(at_once.regret_, rel=1e-9)  # type: ignore[attr-defined]
        assert model.regret_bound_ == pytest.approx(at_once.regret_bound_, rel=1e-9)  # type: ignore[attr-defined]


def test_learning_without_predicting_leads_to_the_same_state(make: Factory) -> None:
    y, a, b = targets(make), make(), make()
    a.progressive(X, y)
    for chunk in np.array_split(np.arange(N), 9):
        b.partial_fit(X[chunk], y[chunk])
    one, other = (model._raw(X) * model._after_rows().classes.sign for model in (a, b))
    np.testing.assert_allclose(one, other, atol=1e-10)
    assert a.n_rounds_ == b.n_rounds_ == N


def test_fit_forgets_what_was_learnt_before(base: Factory) -> None:
    y = targets(base)
    model = told(base).fit(X[:50], y[:50])
    np.testing.assert_array_equal(model.predict(X), base().fit(X[:50], y[:50]).predict(X))
    assert model.n_rounds_ == 50


def test_predictions_change_nothing(make: Factory, tmp_path: Path) -> None:
    model = told(make, 100)
    before = file_of(model, tmp_path)
    model.predict(X)
    model.predict_one(X[0])
    model.score(X, targets(make))
    assert file_of(model, tmp_path) == before


def test_progress_bar_changes_no_prediction(base: Factory, capsys: pytest.CaptureFixture[str]) -> None:
    y = targets(base)
    with_bar = margins(base(), X, y, progress=True)
    assert "240" in capsys.readouterr().err
    np.testing.assert_allclose(with_bar, margins(base(), X, y), atol=1e-10)


def test_data_of_the_caller_are_not_changed(base: Factory) -> None:
    points, y = X.copy(), targets(base).copy()
    points.flags.writeable = False
    base().progressive(points, y)
    np.testing.assert_array_equal(points, X)


# -- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", slow_but(SPOKESMEN, CLASSIFIERS))
@pytest.mark.parametrize("pair", [(-1, 1), (0, 1), (2.0, 7.0), (False, True), ("b", "a")])
def test_any_two_labels_give_the_same_decisions(name: str, pair: tuple[object, object]) -> None:
    plus = LABELS == "yes"
    model = LEARNERS[name]()
    decisions = margins(model, X, np.where(plus, pair[1], pair[0]))
    reference = margins(LEARNERS[name](), X, np.where(plus, 1, -1))
    assert list(model.classes_) == sorted(pair)  # type: ignore[type-var]
    np.testing.assert_allclose(decisions, -reference if pair[0] == "b" else reference, atol=1e-12)


@pytest.mark.parametrize(("first", "name"), sweep(["yes", "no"], CLASSIFIERS))
def test_labels_may_turn_up_one_after_the_other(name: str, first: str) -> None:
    order = np.argsort(first != LABELS, kind="stable")[N // 4 : -N // 4]
    known, found = LEARNERS[name](), LEARNERS[name]()
    known.partial_fit(X[order], LABELS[order], classes=["no", "yes"])
    for t in order:
        found.learn_one(X[t], LABELS[t])
        if set(LABELS[order[: found.n_rounds_]]) == {first}:
            assert found.predict_one(X[0]) == first
    np.testing.assert_allclose(found.decision_function(X), known.decision_function(X), atol=1e-10)
    np.testing.assert_array_equal(found.predict(X), known.predict(X))


@pytest.mark.parametrize("name", slow_but(SPOKESMEN, CLASSIFIERS))
def test_labels_of_another_kind_are_refused(name: str, tmp_path: Path) -> None:
    model = told(LEARNERS[name], 60)
    before = file_of(model, tmp_path)
    with pytest.raises(ArgumentError, match="numbers and strings together"):
        model.learn_one(X[0], 1)
    assert file_of(model, tmp_path) == before


def test_strings_among_numbers_are_refused_in_one_call_as_in_two() -> None:
    with pytest.raises(ArgumentError, match=r"^y: .*got labels of type int and str; make strings"):
        KONS().fit(X[:2], [1, "1"])
    with pytest.raises(ArgumentError, match=r"^classes: .*got labels of type bool and str; make strings"):
        KONS().partial_fit(X[:2], ["yes", "no"], classes=["yes", "no", True])


@pytest.mark.parametrize("name", slow_but(SPOKESMEN, REGRESSIONS))
@pytest.mark.parametrize("y", [["yes", "no"], [True, False], [None, 1.0], [{}, 1.0]])
def test_labels_for_a_regression_are_refused(name: str, y: list[object], tmp_path: Path) -> None:
    model = told(LEARNERS[name], 40)
    before = file_of(model, tmp_path)
    with pytest.raises((ArgumentTypeError, ArgumentError), match=r"y: expected (real numbers for|finite)"):
        model.partial_fit(X[:2], y)
    assert file_of(model, tmp_path) == before


@pytest.mark.parametrize("announced", [[0, 1, np.nan], [0, 1, 0.5], [[0, 1]], [], 5, [[0], [1, 2]]], ids=str)
def test_invalid_labels_are_refused_in_advance(announced: object) -> None:
    model = KONS()
    with pytest.raises(ArgumentError, match=r"^classes: (expected|Unknown label type)"):
        model.partial_fit(X[:2], [0, 1], classes=announced)
    assert not hasattr(model, "n_rounds_")


def test_numbers_as_labels_are_refused_with_the_loss_that_learns_them() -> None:
    with pytest.raises(ArgumentError, match=r'^y: .* got continuous numbers; .* pass loss="squared" to the learner'):
        KONS().partial_fit(X[:2], [0.5, 1.0])
    assert KONS(loss="squared").partial_fit(X[:2], [0.5, 1.0]).n_rounds_ == 2


@pytest.mark.parametrize(
    "y",
    [[0.5, 1.0], [np.nan, 1.0], [None, "a"], [1j, 2j], np.array([0.5, 1], object), np.array([np.inf, 1], object)],
    ids=str,
)
def test_invalid_labels_are_refused(y: object) -> None:
    with pytest.raises(ArgumentError, match=r"Unknown label type|expected labels|Complex data"):
        KONS.paper().fit(X[:2], y)
