"""What every online learner keeps to. A new one joins by a line in `LEARNERS`."""

import copy
import pickle
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from bkbopt import learners
from bkbopt.errors import ArgumentError, ArgumentTypeError, KernelError, NotReadyError, StateFileError
from bkbopt.learners import (
    BOGD,
    BPAS,
    FOGD,
    FORKS,
    KOGD,
    KONS,
    NOGD,
    PKAWV,
    RBP,
    Forgetron,
    KernelAWV,
    KernelPerceptron,
    OnlineKRR,
    OnlineLearner,
    Projectron,
    ProjectronPP,
    ProsNKONS,
    SkeGD,
    SketchedKONS,
    get_loss,
)
from tests.learners.streams import surface

Factory = Callable[..., OnlineLearner]


def made(cls: type[OnlineLearner], **fixed: object) -> Factory:
    return lambda **more: cls(**{**fixed, **more})


#: Small budgets: what happens when one is full is what the tests are to meet.
LEARNERS: dict[str, Factory] = {
    "KONS": made(KONS),
    "KONS, squared": made(KONS, loss="squared"),
    "SketchedKONS": made(SketchedKONS, gamma=0.2),
    "ProsNKONS": made(ProsNKONS),
    "ProsNKONS, no restart": made(ProsNKONS, loss="logistic", restart=False, max_dictionary=20),
    "ProsNKONS, absolute": made(ProsNKONS, loss="absolute"),
    "OnlineKRR": made(OnlineKRR),
    "KernelAWV": made(KernelAWV),
    "PKAWV": made(PKAWV),
    "PKAWV, ridge": made(PKAWV, forward=False, degree=3),
    "PKAWV, nystrom": made(PKAWV, features="nystrom"),
    "KernelPerceptron": made(KernelPerceptron),
    "KOGD": made(KOGD),
    "RBP": made(RBP, budget=20, seed=0),
    "Forgetron": made(Forgetron, budget=20),
    "BPAS": made(BPAS, budget=20),
    "Projectron": made(Projectron, budget=20),
    "ProjectronPP": made(ProjectronPP, budget=20),
    "BOGD": made(BOGD, budget=20, seed=0),
    "FOGD": made(FOGD, frequencies=30, seed=0),
    "NOGD": made(NOGD, budget=20),
    "SkeGD": made(SkeGD, budget=20, seed=0),
    "FORKS": made(FORKS, budget=20, seed=0),
}
#: Learners without a `kernel` that may be anything: Taylor and Fourier features are those of one kernel.
OWN_KERNEL = {"PKAWV", "PKAWV, ridge", "FOGD"}

N = 240
X, NUMBERS, SIGNS = surface(N, seed=8)
LABELS = np.where(SIGNS > 0.0, "yes", "no")


@pytest.fixture(params=LEARNERS)
def make(request: pytest.FixtureRequest) -> Factory:
    return LEARNERS[request.param]


def classifies(make: Factory) -> bool:
    return get_loss(make().loss).task == "classification"


def targets(make: Factory) -> np.ndarray:
    return LABELS if classifies(make) else NUMBERS


def told(make: Factory, n: int = N, **more: object) -> OnlineLearner:
    return make(**more).partial_fit(X[:n], targets(make)[:n])


def margins(learner: OnlineLearner, X: np.ndarray, y: np.ndarray, **more: object) -> np.ndarray:
    """Progressive predictions before they become labels."""
    return learner.progressive(X, y, decision=True, **more)  # type: ignore[arg-type]


def file_of(learner: OnlineLearner, path: Path) -> bytes:
    """All that a learner is, as bytes: the same state gives the same file."""
    learner.save(path / "state")
    return (path / "state").read_bytes()


def test_list_names_every_learner() -> None:
    exported = {c for c in vars(learners).values() if isinstance(c, type) and issubclass(c, OnlineLearner)}
    assert exported - {OnlineLearner} == {type(make()) for make in LEARNERS.values()}


# -- scikit-learn ----------------------------------------------------------------------------------------------------

#: Checks of scikit-learn that a learner fails by default, and why.
EXPECTED = {
    "PKAWV": {
        "check_regressors_train": "its rows have ten features of variance one; a Taylor basis of degree two covers "
        "rows within one or two lengthscales of zero",
    },
    "ProsNKONS": {
        "check_classifiers_train": "after three hundred rows the dictionary still grows, and every growth is a restart "
        "from zero",
    },
}


@pytest.mark.parametrize("cls", sorted({type(m()) for m in LEARNERS.values()}, key=lambda c: c.__name__))
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_pass(cls: type[OnlineLearner]) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    estimator = cls(seed=0) if cls is FOGD else cls()  # type: ignore[call-arg]
    expected = EXPECTED.get(cls.__name__, {})
    results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert set(expected) == {r["check_name"] for r in results if r["status"] == "xfail"}


#: Learners of either task that reach an R^2 of a half in one pass over the hundred or so rows of that check; gradient
#: descent with a budget of as many terms, sketches of them and clipped Newton steps need more.
QUICK_REGRESSORS = {KOGD, FOGD}


@pytest.mark.slow
@pytest.mark.parametrize("cls", [KONS, SketchedKONS, ProsNKONS, KOGD, BOGD, FOGD, NOGD, SkeGD, FORKS])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_pass_for_regressions_too(cls: type[OnlineLearner]) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    results = check_estimator(cls(loss="squared"), on_fail=None, on_skip=None)  # type: ignore[call-arg]
    failed = {r["check_name"] for r in results if r["status"] == "failed"}
    assert failed == (set() if cls in QUICK_REGRESSORS else {"check_regressors_train"})


def test_grid_search_and_pipelines_take_learners() -> None:
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = make_pipeline(StandardScaler(), PKAWV(features="nystrom"))
    search = GridSearchCV(pipeline, {"pkawv__lam": [0.1, 1.0]}, cv=2).fit(X, NUMBERS)
    assert search.best_score_ > 0.8


def test_unknown_parameter_is_refused_and_none_is_set() -> None:
    model = KONS()
    with pytest.raises(ArgumentError, match="lam: expected one of the parameters loss, kernel"):
        model.set_params(C=3.0, lam=1.0)
    assert model.C == 1.0


def test_score_is_accuracy_or_r_squared(make: Factory) -> None:
    from sklearn.metrics import accuracy_score, r2_score

    model, y = told(make, 150), targets(make)
    direct = (accuracy_score if classifies(make) else r2_score)(y, model.predict(X))
    assert model.score(X, y) == pytest.approx(direct, abs=1e-12)


def test_score_of_equal_targets_is_all_or_nothing() -> None:
    model = KernelAWV().fit(X, np.zeros(N))
    assert (model.score(X, np.zeros(N)), model.score(X, np.ones(N))) == (1.0, 0.0)


def test_regressions_have_no_decision_function() -> None:
    assert not hasattr(KernelAWV(), "decision_function")
    assert hasattr(KONS(), "decision_function")
    assert not hasattr(KONS(loss="squared"), "decision_function")


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
    np.testing.assert_allclose(a._raw(X) * a._sign, b._raw(X) * b._sign, atol=1e-10)
    assert a.n_rounds_ == b.n_rounds_ == N


def test_fit_forgets_what_was_learnt_before(make: Factory) -> None:
    y = targets(make)
    model = told(make).fit(X[:50], y[:50])
    np.testing.assert_array_equal(model.predict(X), make().fit(X[:50], y[:50]).predict(X))
    assert model.n_rounds_ == 50


def test_predictions_change_nothing(make: Factory, tmp_path: Path) -> None:
    model = told(make, 100)
    before = file_of(model, tmp_path)
    model.predict(X)
    model.predict_one(X[0])
    model.score(X, targets(make))
    assert file_of(model, tmp_path) == before


def test_progress_bar_changes_no_prediction(make: Factory, capsys: pytest.CaptureFixture[str]) -> None:
    y = targets(make)
    with_bar = margins(make(), X, y, progress=True)
    assert "240" in capsys.readouterr().err
    np.testing.assert_allclose(with_bar, margins(make(), X, y), atol=1e-10)


def test_data_of_the_caller_are_not_changed(make: Factory) -> None:
    points, y = X.copy(), targets(make).copy()
    points.flags.writeable = False
    make().progressive(points, y)
    np.testing.assert_array_equal(points, X)


# -- labels ----------------------------------------------------------------------------------------------------------

CLASSIFIERS = [name for name, factory in LEARNERS.items() if classifies(factory)]
REGRESSIONS = [name for name, factory in LEARNERS.items() if not classifies(factory)]


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("pair", [(-1, 1), (0, 1), (2.0, 7.0), (False, True), ("b", "a")])
def test_any_two_labels_give_the_same_decisions(name: str, pair: tuple[object, object]) -> None:
    plus = LABELS == "yes"
    model = LEARNERS[name]()
    decisions = margins(model, X, np.where(plus, pair[1], pair[0]))
    reference = margins(LEARNERS[name](), X, np.where(plus, 1, -1))
    assert list(model.classes_) == sorted(pair)  # type: ignore[type-var]
    np.testing.assert_allclose(decisions, -reference if pair[0] == "b" else reference, atol=1e-12)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("first", ["no", "yes"])
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


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_third_label_is_refused(name: str, tmp_path: Path) -> None:
    model = told(LEARNERS[name], 60)
    before = file_of(model, tmp_path)
    for call in (lambda: model.learn_one(X[0], "maybe"), lambda: model.partial_fit(X[:3], ["no", "maybe", "yes"])):
        with pytest.raises(ArgumentError, match=r"one of the two labels \['no', 'yes'\], got \['maybe'\]"):
            call()
    with pytest.raises(ArgumentError, match="numbers and strings together"):
        model.learn_one(X[0], 1)
    assert file_of(model, tmp_path) == before


@pytest.mark.parametrize("name", REGRESSIONS)
@pytest.mark.parametrize("y", [["yes", "no"], [True, False], [None, 1.0], [{}, 1.0]])
def test_labels_for_a_regression_are_refused(name: str, y: list[object], tmp_path: Path) -> None:
    model = told(LEARNERS[name], 40)
    before = file_of(model, tmp_path)
    with pytest.raises((ArgumentTypeError, ArgumentError), match=r"y: expected (real numbers for|finite)"):
        model.partial_fit(X[:2], y)
    assert file_of(model, tmp_path) == before


@pytest.mark.parametrize("y", [[0.5, 1.0], [np.nan, 1.0], [None, "a"], [1j, 2j]])
def test_what_cannot_be_a_label_is_refused(y: list[object]) -> None:
    with pytest.raises(ArgumentError, match=r"Unknown label type|expected labels|Complex data"):
        KONS().fit(X[:2], y)


# -- rows ------------------------------------------------------------------------------------------------------------

BAD_ROWS = {
    "NaN": [[0.0, np.nan, 1.0]],
    "infinity": [[0.0, np.inf, 1.0]],
    "two features": [[0.0, 1.0]],
    "a row": [0.0, 1.0, 2.0],
    "ragged": [[0.0, 1.0, 2.0], [1.0]],
    "words": [["a", "b", "c"]],
    "complex": [[1j, 0.0, 0.0]],
    "none": np.zeros((0, 3)),
}


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_bad_rows_are_refused_and_change_nothing(make: Factory, bad: str, tmp_path: Path) -> None:
    model, y = told(make, 60), targets(make)
    before = file_of(model, tmp_path)
    for call in (model.predict, lambda rows: model.partial_fit(rows, y[: len(rows)])):
        with pytest.raises((ArgumentError, ArgumentTypeError), match=r"^X(:| has)"):
            call(BAD_ROWS[bad])
    assert file_of(model, tmp_path) == before


def test_bad_row_among_good_ones_is_refused_before_any_is_learnt(make: Factory, tmp_path: Path) -> None:
    points = X.copy()
    points[130, 1] = np.nan
    model = told(make, 60)
    before = file_of(model, tmp_path)
    with pytest.raises(ArgumentError, match="NaN or infinity in row 130"):
        model.progressive(points, targets(make))
    fresh = make()
    with pytest.raises(ArgumentError, match="row 130"):
        fresh.fit(points, targets(make))
    assert file_of(model, tmp_path) == before
    assert set(vars(fresh)) == set(fresh.get_params())


def test_targets_that_do_not_fit_are_refused(make: Factory, tmp_path: Path) -> None:
    model, y = told(make, 60), targets(make)
    before = file_of(model, tmp_path)
    for bad in (y[:5], np.stack([y, y], 1), None):
        with pytest.raises(ArgumentError, match=r"^y(:| should be)"):
            model.partial_fit(X, bad)
    assert file_of(model, tmp_path) == before


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_targets_must_be_finite(bad: float) -> None:
    with pytest.raises(ArgumentError, match=r"y: expected finite values, got .* at position 2"):
        KernelAWV().fit(X[:4], [0.0, 1.0, bad, 2.0])


def test_predictions_before_anything_was_learnt_are_refused(make: Factory) -> None:
    for call in (make().predict, make().predict_one):
        with pytest.raises(NotReadyError, match="at least one learnt row"):
            call(X if call.__name__ == "predict" else X[0])


def test_column_of_targets_is_taken_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="column-vector y"):
        model = KernelAWV().fit(X, NUMBERS[:, None])
    np.testing.assert_array_equal(model.predict(X), KernelAWV().fit(X, NUMBERS).predict(X))


def test_infinities_that_cancel_are_refused_without_a_warning() -> None:
    with pytest.raises(ArgumentError, match="NaN or infinity in row 1"):
        KONS().fit([[0.0, 0.0], [np.inf, -np.inf]], ["no", "yes"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_tensors_of_any_real_type_are_rows_and_targets(dtype: torch.dtype) -> None:
    rows = torch.from_numpy(X > 0.0).to(dtype)
    y = torch.from_numpy(NUMBERS).requires_grad_()
    ours = KernelAWV().fit(rows, y).predict(rows)
    np.testing.assert_array_equal(ours, KernelAWV().fit((X > 0.0).astype(float), NUMBERS).predict(X > 0.0))


def test_three_classes_announced_are_refused_by_their_name() -> None:
    with pytest.raises(ArgumentError, match=r"^classes: Only binary classification"):
        KONS().partial_fit(X, LABELS, classes=["no", "yes", "maybe"])


def test_sparse_rows_are_refused() -> None:
    from scipy.sparse import csr_array

    with pytest.raises(ArgumentTypeError, match=r"sparse matrix; pass X\.toarray"):
        KONS().fit(csr_array(X), LABELS)


@pytest.mark.parametrize("convert", [torch.from_numpy, np.ndarray.tolist, pd.DataFrame, np.asfortranarray])
def test_rows_come_in_many_types(convert: Callable[[np.ndarray], object]) -> None:
    ours = KONS().fit(convert(X.copy()), LABELS).decision_function(convert(X.copy()))
    np.testing.assert_array_equal(ours, KONS().fit(X, LABELS).decision_function(X))


# -- dicts and data frames -------------------------------------------------------------------------------------------

NAMES = ("height", "age", "weight")


def as_dict(x: np.ndarray) -> dict[str, float]:
    return dict(zip(NAMES, x.tolist(), strict=True))


def test_dicts_are_rows_whose_first_names_fix_the_order(make: Factory) -> None:
    y, named, plain = targets(make), make(), make()
    for t in range(40):
        row = as_dict(X[t])
        named.learn_one(row if t % 2 == 0 else dict(reversed(row.items())), y[t])
        plain.learn_one(X[t], y[t])
    assert tuple(named.feature_names_in_) == NAMES
    for x in X[40:60]:
        assert named.predict_one(dict(reversed(as_dict(x).items()))) == plain.predict_one(x) == named.predict_one(x)


@pytest.mark.parametrize(
    "row", [{"height": 1.0, "age": 2.0}, {**as_dict(X[0]), "shoe": 3.0}, {"height": 1.0, "age": 2.0, "shoe": 3.0}]
)
def test_other_names_are_refused(row: dict[str, float], tmp_path: Path) -> None:
    model = KONS().learn_one(as_dict(X[0]), "no").learn_one(as_dict(X[1]), "yes")
    before = file_of(model, tmp_path)
    for call in (lambda: model.learn_one(row, "no"), lambda: model.predict_one(row)):
        with pytest.raises(ArgumentError, match="expected the features of the first row"):
            call()
    assert file_of(model, tmp_path) == before


@pytest.mark.parametrize("row", [{"height": "tall", "age": 1.0, "weight": 0.0}, {1: 2.0, 3: 4.0, 5: 6.0}])
def test_dicts_hold_numbers_by_name(row: dict[object, object]) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match="expected"):
        KONS().learn_one(row, "no")


def test_dict_after_arrays_is_refused() -> None:
    model = KONS().fit(X, LABELS)
    with pytest.raises(ArgumentError, match="has learnt from arrays so far"):
        model.predict_one(as_dict(X[0]))


def test_columns_of_a_data_frame_may_change_places() -> None:
    frame = pd.DataFrame(X, columns=list(NAMES))
    model = KONS().fit(frame, LABELS)
    np.testing.assert_array_equal(model.predict(frame[list(reversed(NAMES))]), model.predict(X))
    with pytest.raises(ArgumentError, match=r"\['age'\] are missing and \['shoe'\] are new"):
        model.predict(frame.rename(columns={"age": "shoe"}))


# -- kernels ---------------------------------------------------------------------------------------------------------


def gaussian(A: Tensor, B: Tensor) -> Tensor:
    return torch.exp(-0.5 * torch.cdist(A, B, compute_mode="donot_use_mm_for_euclid_dist") ** 2)


class Breaking:
    """A kernel that returns NaN from its n-th call on."""

    def __init__(self, n: int) -> None:
        self.left = [n]

    def __call__(self, A: Tensor, B: Tensor) -> Tensor:
        self.left[0] -= 1
        return gaussian(A, B) * (1.0 if self.left[0] > 0 else float("nan"))

    def __deepcopy__(self, memo: object) -> "Breaking":
        return self  # copies of the learner count on


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - OWN_KERNEL))
def test_kernel_given_as_a_function_does_what_the_built_in_one_does(name: str) -> None:
    y = targets(LEARNERS[name])
    ours, theirs = margins(LEARNERS[name](), X, y), margins(LEARNERS[name](kernel=gaussian), X, y)
    # Kernel values that differ in the last bits, in recursions with memory.
    np.testing.assert_allclose(theirs, ours, atol=1e-8)


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - OWN_KERNEL))
def test_kernel_that_fails_half_way_leaves_all_as_it_was(name: str) -> None:
    y, kernel = targets(LEARNERS[name]), Breaking(10**9)
    model = LEARNERS[name](kernel=kernel).partial_fit(X[:100], y[:100])
    before = model.predict(X)
    state = copy.deepcopy(model)
    start, rows, labels = kernel.left[0], np.tile(X, (8, 1)), np.tile(y, 8)
    copy.deepcopy(model).partial_fit(rows, labels)
    kernel.left[0] = 2 * (start - kernel.left[0]) // 3
    with pytest.raises(KernelError, match="NaN or infinity"):
        model.partial_fit(rows, labels)
    kernel.left[0] = 10**9
    np.testing.assert_array_equal(model.predict(X), before)
    np.testing.assert_array_equal(margins(model, X, y), margins(state, X, y))


class Interrupted(Breaking):
    """A kernel during whose n-th call the user presses a key, and that cannot be copied, as those with locks cannot."""

    def __call__(self, A: Tensor, B: Tensor) -> Tensor:
        self.left[0] -= 1
        if self.left[0] <= 0:
            raise KeyboardInterrupt
        return gaussian(A, B)

    def __deepcopy__(self, memo: object) -> "Interrupted":
        raise TypeError("cannot be copied")


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - OWN_KERNEL))
def test_errors_of_the_kernels_own_leave_all_as_it_was(name: str) -> None:
    y, kernel = targets(LEARNERS[name]), Interrupted(10**9)
    model = LEARNERS[name](kernel=kernel).partial_fit(X[:100], y[:100])
    before, fresh = model.predict(X), LEARNERS[name](kernel=kernel)
    rows, labels = np.tile(X, (8, 1)), np.tile(y, 8)
    for learner in (model, fresh):
        kernel.left[0] = 4
        with pytest.raises(KeyboardInterrupt):
            learner.partial_fit(rows, labels)
    kernel.left[0] = 10**9
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.kernel is kernel
    assert set(vars(fresh)) == set(fresh.get_params())


# -- parameters, copies and files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), "one"])
def test_lengthscale_out_of_range_is_refused_when_learning_begins(make: Factory, bad: object) -> None:
    model = make(lengthscale=bad)
    with pytest.raises((ArgumentError, ArgumentTypeError), match=r"^lengthscale: expected a positive finite length"):
        model.fit(X, targets(make))
    assert set(vars(model)) == set(model.get_params())


@pytest.mark.parametrize("name", [name for name, factory in LEARNERS.items() if hasattr(factory(), "seed")])
def test_seed_decides_everything(name: str) -> None:
    y = targets(LEARNERS[name])
    a, b, c = (margins(LEARNERS[name](seed=s), X, y) for s in (3, 3, 4))
    np.testing.assert_array_equal(a, b)
    if name not in {"PKAWV", "PKAWV, ridge"}:  # those draw nothing
        assert (a != c).any()
    with pytest.raises(ArgumentError, match=r"^seed: expected a whole number >= 0, got -1"):
        LEARNERS[name](seed=-1).fit(X, y)


@pytest.mark.parametrize("n", [1, 25, 150])
def test_saved_learner_goes_on_as_if_nothing_had_happened(make: Factory, n: int, tmp_path: Path) -> None:
    y = targets(make)
    model = make().partial_fit(X[:n], y[:n])
    model.save(tmp_path / "learner")
    loaded = OnlineLearner.load(tmp_path / "learner")
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(margins(loaded, X[n:], y[n:]), margins(model, X[n:], y[n:]))
    assert file_of(loaded, tmp_path) == file_of(model, tmp_path)


def test_fresh_learner_can_be_saved(make: Factory, tmp_path: Path) -> None:
    make().save(tmp_path / "learner")
    loaded = OnlineLearner.load(tmp_path / "learner")
    assert loaded.get_params() == make().get_params()
    np.testing.assert_array_equal(margins(loaded, X, targets(make)), margins(make(), X, targets(make)))


def test_copies_and_pickles_go_their_own_way(make: Factory, tmp_path: Path) -> None:
    model, y = told(make, 100), targets(make)
    before = file_of(model, tmp_path)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        other.partial_fit(X, y)
        assert file_of(model, tmp_path) == before


def test_states_in_memory_are_copies(make: Factory) -> None:
    model, y = told(make, 100), targets(make)
    before = model.predict(X)
    OnlineLearner.from_state(model.state_dict()).partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)


def test_decision_function_is_that_of_the_loss_that_was_learnt() -> None:
    model = KONS().fit(X, LABELS)
    before = model.decision_function(X)
    model.set_params(loss="squared")
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert not hasattr(model.fit(X, NUMBERS), "decision_function")


def test_names_and_labels_are_saved(tmp_path: Path) -> None:
    model = KONS().fit(pd.DataFrame(X, columns=list(NAMES)), LABELS)
    model.save(tmp_path / "learner")
    loaded = KONS.load(tmp_path / "learner")
    assert tuple(loaded.feature_names_in_) == NAMES
    assert loaded.predict_one(as_dict(X[0])) == model.predict_one(X[0])


def test_kernel_of_the_package_is_saved(tmp_path: Path) -> None:
    from bkbopt.kernels import matern52

    model = KernelAWV(kernel=matern52(3, [0.5, 1.0, 2.0], 1.7)).fit(X, NUMBERS)
    model.save(tmp_path / "learner")
    np.testing.assert_array_equal(KernelAWV.load(tmp_path / "learner").predict(X), model.predict(X))


def test_kernel_of_the_user_is_asked_for(tmp_path: Path) -> None:
    model = KernelAWV(kernel=gaussian).fit(X, NUMBERS)
    model.save(tmp_path / "learner")
    with pytest.raises(ArgumentError, match="pass kernel= with the same kernel to load"):
        KernelAWV.load(tmp_path / "learner")
    loaded = KernelAWV.load(tmp_path / "learner", kernel=gaussian)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_file_of_another_learner_is_refused(tmp_path: Path) -> None:
    KONS().fit(X, LABELS).save(tmp_path / "learner")
    with pytest.raises(StateFileError, match="state of a KernelAWV, got that of a KONS"):
        KernelAWV.load(tmp_path / "learner")


# -- streams that mean harm ------------------------------------------------------------------------------------------


def adversarial(kind: str, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets in {-1, 1}."""
    rng = np.random.default_rng(0)
    rows, y = rng.uniform(-1.0, 1.0, (n, 3)), rng.choice([-1.0, 1.0], n)
    if kind == "one point, flipping labels":
        rows, y = np.zeros((n, 3)), np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    elif kind == "repeats in runs":
        rows, y = np.repeat(rows[: n // 10], 10, axis=0), np.repeat(np.resize([1.0, -1.0], n // 10), 10)
    elif kind == "drift":
        rows = rows + 0.05 * np.arange(n)[:, None]
    elif kind == "far away":
        rows = 1e6 * rows
    elif kind == "nearly equal":
        rows = 0.3 + 1e-9 * rows
    elif kind == "squares overflow":
        rows[::3] *= 1e200
    return rows, y


@pytest.mark.parametrize(
    "kind",
    ["noise", "one point, flipping labels", "repeats in runs", "drift", "far away", "nearly equal", "squares overflow"],
)
def test_adversarial_streams_stay_finite(make: Factory, kind: str) -> None:
    rows, y = adversarial(kind)
    model = make()
    predictions = margins(model, rows, y)
    assert np.isfinite(predictions).all()
    assert np.isfinite(model._raw(rows)).all()
    assert np.abs(predictions).max() < 1e3
    # Bounds hold on any stream. That of KONS is for all f, and f = 0 is the easiest to state.
    if isinstance(model, OnlineKRR | PKAWV):
        assert model.regret_ <= model.regret_bound_ + 1e-9 * len(y)
    if isinstance(model, KONS):
        loss = get_loss(model.loss)
        regret = np.sum(loss.value(y, predictions) - loss.value(y, np.zeros(len(y))))
        assert regret <= model.regret_bound(0.0) + 1e-9 * len(y)


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - OWN_KERNEL))
def test_where_zero_lies_makes_no_difference(name: str) -> None:
    # Multiples of 2^-10 keep all their digits when they are moved by 2^30, as time stamps may be; nor does dividing by
    # sqrt(2) lengthscales round, since that is one.
    rows, y, length = np.round(1024.0 * X) / 1024.0, targets(LEARNERS[name]), 0.7071067811865475
    near, far = (margins(LEARNERS[name](lengthscale=length), rows + shift, y) for shift in (0.0, 2.0**30))
    np.testing.assert_array_equal(far, near)
