"""Several classes, one against the rest, and probabilities."""

import copy
from pathlib import Path

import numpy as np
import pytest

from bkbopt.errors import NotReadyError
from bkbopt.learners import BPAS, FOGD, FORKS, KOGD, KONS, KernelAWV, OnlineLearner, ProsNKONS, SketchedKONS
from bkbopt.learners.core.probabilities import RECENT, Recent, logistic, softmax
from tests.learners.everyone import CLASSIFIERS, LABELS, LEARNERS, NUMBERS, X, file_of
from tests.sweeps import slow_but

#: Three classes along a noisy surface, the third of which turns up in row 5 or so.
THREE = np.where(NUMBERS < -0.4, "low", np.where(NUMBERS > 0.5, "high", "mid"))


@pytest.mark.parametrize(
    "kind", slow_but({KONS, BPAS, FORKS}, sorted({type(LEARNERS[n]()) for n in CLASSIFIERS}, key=str))
)
def test_three_classes_are_learnt_in_one_pass(kind: type[OnlineLearner]) -> None:
    model = kind().fit(X, THREE)
    commonest = max(np.mean(label == THREE) for label in set(THREE))
    assert list(model.classes_) == ["high", "low", "mid"]
    assert model.score(X, THREE) > commonest + 0.05


@pytest.mark.parametrize("make", [lambda: KOGD.paper(lengthscale=0.5), KOGD], ids=["paper", "default"])
def test_each_class_has_the_learner_of_two_classes_that_began_with_it(make: object) -> None:
    model = make().fit(X, THREE)  # type: ignore[operator]
    first = {label: int(np.argmax(label == THREE)) for label in model.classes_}
    units = model._after_rows().units
    Z = X if units is None else units.scaled_rows(X)
    length = model._lengthscale
    for k, label in enumerate(model.classes_):
        # The first two share one learner, which began with the stream.
        start = first[label] if first[label] == max(first.values()) else 0
        rows, own = Z[start:], np.where(THREE[start:] == label, 1, -1)
        alone = KOGD.paper(lengthscale=length).partial_fit(rows, own, classes=[-1, 1])
        np.testing.assert_array_equal(model.decision_function(X)[:, k], alone.decision_function(Z))


def test_classes_may_turn_up_row_by_row_or_be_announced(tmp_path: Path) -> None:
    model, single = BPAS(), BPAS()
    whole = model.progressive(X, THREE)
    announced = BPAS().partial_fit(X, THREE, classes=["high", "low", "mid"])
    guesses = []
    for x, label in zip(X, THREE, strict=True):
        guesses.append(single.predict_one(x) if guesses or single.__dict__.get("n_rounds_") else label)
        single.learn_one(x, label)
    late = max(int(np.argmax(label == THREE)) for label in set(THREE)) + 1
    np.testing.assert_array_equal(guesses[late:], whole[late:])
    np.testing.assert_array_equal(single.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(announced.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("labels", [[2**64 - 1, 2**64 - 3, -1], [2**63 + 1, 2**63 + 3, 1]], ids=str)
def test_whole_numbers_beyond_those_with_a_sign_stay_different_labels(labels: list[int]) -> None:
    y = [labels[i % 3] for i in range(12)]
    one, hashed = KONS(), KONS()
    for x, label in zip(X[:12], y, strict=True):
        one.learn_one(x, label)
        hashed.learn_one(x, np.uint64(label) if label >= 0 else label)
    assert (
        one.classes_.tolist() == hashed.classes_.tolist() == KONS().fit(X[:12], y).classes_.tolist() == sorted(labels)
    )


def test_class_that_was_only_announced_is_never_predicted() -> None:
    model = KONS().partial_fit(X, LABELS, classes=["maybe", "no", "yes"])
    assert (model.decision_function(X)[:, 0] == -np.inf).all()
    assert (model.predict_proba(X)[:, 0] == 0.0).all()
    two = KONS().fit(X, LABELS)
    np.testing.assert_array_equal(model.predict(X), two.predict(X))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1:], two.predict_proba(X), rtol=1e-12)


def test_progressive_margins_of_a_class_are_there_after_its_first_row() -> None:
    model = KOGD()
    F = model.progressive(X, THREE, decision=True)
    for k, label in enumerate(model.classes_):
        start = int(np.argmax(label == THREE))
        assert np.isfinite(F[start + 1 :, k]).all()
    assert np.isneginf(F).any()


@pytest.mark.parametrize("known", [0, 1])
@pytest.mark.parametrize("announced", [None, ["a", "b", "c", "d"]])
def test_before_the_second_class_a_stream_knows_what_rows_one_by_one_do(
    known: int, announced: list[str] | None
) -> None:
    rows, y = X[:8], np.array(list("ccbcabca"))
    whole, single = KOGD(), KOGD()
    for model in (whole, single):
        for k in range(known):
            model.partial_fit(rows[k : k + 1], y[k : k + 1], announced)
    F = copy.deepcopy(whole).progressive(rows[known:], y[known:], classes=announced, decision=True)
    predicted = whole.progressive(rows[known:], y[known:], classes=announced)
    if not known:
        assert np.isneginf(F[0]).all()
        assert predicted[0] == whole.classes_[0] == "a"  # undecided, and not the label to come
    for t in range(known, 8):
        learnt = np.isin(whole.classes_, y[:t])
        np.testing.assert_array_equal(np.isfinite(F[t - known]), learnt)
        if t > 0:
            assert predicted[t - known] == single.predict_one(rows[t])
        single.partial_fit(rows[t : t + 1], y[t : t + 1], announced)


def test_the_label_of_one_row_is_of_pythons_own_types() -> None:
    for labels, kind in ((["no", "yes"], str), ([3, 7], int), ([False, True], bool)):
        model = KOGD().partial_fit(X, np.array(labels)[(X[:, 0] > 0.0).astype(int)])
        label = model.predict_one(X[0])
        assert type(label) is kind  # as the keys of predict_proba_one are; json takes no other
        assert label in model.predict_proba_one(X[0])


@pytest.mark.parametrize("make", [FOGD, KOGD, ProsNKONS])
def test_progressive_predicts_what_rows_one_by_one_do_and_no_class_before_its_first_row(
    make: type[OnlineLearner],
) -> None:
    rng = np.random.default_rng(0)
    centres = 3.0 * rng.standard_normal((25, 5))
    y = np.array([rng.integers(0, min(25, 2 + t // 8)) for t in range(220)])  # classes turn up one after the other
    rows = centres[y] + 0.3 * rng.standard_normal((220, 5))
    single = make().learn_one(rows[0], y[0])
    ones = []
    for x, label in zip(rows[1:], y[1:], strict=True):
        ones.append(single.predict_one(x))
        single.learn_one(x, label)
    predicted = make().progressive(rows, y)
    np.testing.assert_array_equal(predicted[1:], ones)
    firsts = [t for t in range(1, len(y)) if y[t] not in y[:t]]
    assert len(firsts) > 20
    assert (predicted[firsts] != y[firsts]).all()


@pytest.mark.parametrize("n", [100, 200])
def test_several_classes_are_saved(n: int, tmp_path: Path) -> None:
    for make in (KOGD, FOGD, ProsNKONS, KONS):
        model = make().fit(X[:n], THREE[:n])
        model.save(tmp_path / "state")
        loaded = OnlineLearner.load(tmp_path / "state")
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        model.partial_fit(X[n:], THREE[n:]), loaded.partial_fit(X[n:], THREE[n:])
        assert file_of(loaded, tmp_path) == file_of(model, tmp_path)


# -- probabilities ----------------------------------------------------------------------------------------------------


def test_probabilities_of_the_logistic_loss_are_its_own() -> None:
    model = KOGD(loss="logistic").fit(X, LABELS)
    f = model.decision_function(X)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1.0 / (1.0 + np.exp(-f)), rtol=1e-14)
    three = KOGD(loss="logistic").fit(X, THREE)
    each = 1.0 / (1.0 + np.exp(-three.decision_function(X)))
    np.testing.assert_allclose(three.predict_proba(X), each / each.sum(1, keepdims=True), rtol=1e-14)


@pytest.mark.parametrize("labels", [LABELS, THREE], ids=["two", "three"])
def test_probabilities_of_margins_sum_to_one_and_agree_with_predictions(labels: np.ndarray) -> None:
    model = BPAS().fit(X, labels)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(model.classes_[P.argmax(1)], model.predict(X))
    assert model.predict_proba_one(X[3]) == dict(zip(model.classes_.tolist(), P[3].tolist(), strict=True))


def test_calibrated_probabilities_are_nearer_to_the_truth_than_margins() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 2))
    truth = 1.0 / (1.0 + np.exp(-3.0 * rows[:, 0]))
    y = rng.random(3000) < truth
    model = BPAS().fit(rows[:2000], y[:2000])
    p = model.predict_proba(rows[2000:])[:, 1]
    taken = 1.0 / (1.0 + np.exp(-model.decision_function(rows[2000:])))
    log_loss = [-np.mean(np.where(y[2000:], np.log(q), np.log1p(-q))) for q in (p, taken)]
    assert log_loss[0] < log_loss[1]


@pytest.mark.parametrize("kind", [KONS, SketchedKONS, ProsNKONS, FORKS])
def test_probabilities_go_beyond_the_bound_of_predictions_under_the_logistic_loss(kind: type[OnlineLearner]) -> None:
    rows = np.random.default_rng(0).normal(size=(400, 2))
    y = rows[:, 0] > 0.0
    model = kind(loss="logistic", clip=1.0).fit(rows, y)  # type: ignore[call-arg]
    assert np.abs(model.decision_function(rows)).max() <= 1.0
    P = model.predict_proba(rows)
    assert P.max() > 0.95  # a margin of 1 has 0.73
    np.testing.assert_array_equal(model.classes_[P.argmax(1)], model.predict(rows))
    log_loss, constant = -np.log(P[np.arange(400), y.astype(int)]).mean(), np.log(2.0)
    assert log_loss < 0.4 * constant


def test_slope_is_the_most_likely_one() -> None:
    rng = np.random.default_rng(1)
    f = rng.normal(size=900)
    k = (rng.random(900) < 1.0 / (1.0 + np.exp(-2.5 * f))).astype(np.int64)
    recent = Recent()
    recent.add(f, k)

    def loss(a: float) -> float:
        # A class that it was counts 901 / 902.
        p = softmax(np.column_stack([np.zeros(900), f]), a)
        right, wrong = p[np.arange(900), k], p[np.arange(900), 1 - k]
        return -float(np.sum(901.0 / 902.0 * np.log(right) + np.log(wrong) / 902.0))

    a = recent.slope()
    assert loss(a) < min(loss(0.999 * a), loss(1.001 * a))
    assert a == pytest.approx(2.5, abs=0.4)  # two standard errors and more


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("scale", [0.01, 0.3, 3.0, 30.0, 1e6])
def test_likelihood_of_the_slope_is_flat_at_any_scale_of_the_margins(classes: int, scale: float) -> None:
    rng = np.random.default_rng(classes)
    F = rng.normal(size=(700, classes))
    F[:, 0] = 0.0 if classes == 2 else F[:, 0]
    k = (F + rng.gumbel(size=F.shape)).argmax(1)  # the true slope is 1
    recent = Recent()
    recent.add((F[:, 1] if classes == 2 else F) * scale, k)
    a = recent.slope() * scale
    P = softmax(F, a)
    aim = np.full((700, classes), 1.0 / (700 + classes))
    aim[np.arange(700), k] = 701.0 / (700 + classes)
    assert ((aim - P) * F).sum() == pytest.approx(0.0, abs=1e-8)
    assert a == pytest.approx(1.0, abs=0.25)  # three standard errors and more


def test_slope_is_the_least_one_where_margins_mislead() -> None:
    f = np.random.default_rng(3).normal(size=500)
    recent = Recent()
    recent.add(f, (f < 0.0).astype(np.int64))
    assert recent.slope() == pytest.approx(2.0**-20 / np.abs(f).max(), rel=1e-12)


def test_slope_follows_rows_that_come_after_it_was_read() -> None:
    rng = np.random.default_rng(4)
    f, k = rng.normal(size=300), rng.integers(2, size=300)
    read, unread = Recent(), Recent()
    for a in range(0, 300, 100):
        read.add(f[a : a + 100], k[a : a + 100])
        unread.add(f[a : a + 100], k[a : a + 100])
        before = read.slope()
    assert before == unread.slope()


def test_slope_is_positive_and_finite_where_all_or_nothing_was_right() -> None:
    f, k = np.linspace(-1.0, 1.0, 20), (np.arange(20) >= 10).astype(np.int64)
    for codes in (k, 1 - k):
        recent = Recent()
        recent.add(f, codes)
        assert 0.0 < recent.slope() < 1e4
    assert Recent().slope() == 1.0


def test_last_margins_are_kept_however_they_come() -> None:
    rng = np.random.default_rng(2)
    f, k = rng.normal(size=3210), rng.integers(2, size=3210)
    whole, parts = Recent(), Recent()
    whole.add(f, k)
    for a in range(0, len(f), 70):
        parts.add(f[a : a + 70], k[a : a + 70])
    for one, other, expected in zip(whole.rows, parts.rows, (f[-RECENT:, None], k[-RECENT:]), strict=True):
        np.testing.assert_array_equal(one, expected)
        np.testing.assert_array_equal(other, expected)


def test_logistic_survives_large_margins() -> None:
    np.testing.assert_array_equal(logistic(np.array([[-1e4, 1e4]])), [[0.0, 1.0]])


def test_regressions_have_no_probabilities() -> None:
    assert not hasattr(KernelAWV(), "predict_proba")
    with pytest.raises(NotReadyError):
        KONS().predict_proba(X)
