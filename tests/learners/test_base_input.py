"""Rows and targets that online learners accept and refuse, in all input formats."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from bkbopt.errors import ArgumentError, ArgumentTypeError, NotReadyError
from bkbopt.learners import KONS, PKAWV, KernelAWV, OnlineKRR, OnlineLearner
from tests.learners.everyone import (
    LABELS,
    LEARNERS,
    NAMES,
    NUMBERS,
    REGRESSIONS,
    Factory,
    X,
    as_dict,
    file_of,
    targets,
    told,
)

# -- rows ------------------------------------------------------------------------------------------------------------

HUGE = 10**400
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
def test_bad_rows_are_refused_and_change_nothing(base: Factory, bad: str, tmp_path: Path) -> None:
    model, y = told(base, 60), targets(base)
    before = file_of(model, tmp_path)
    for call in (model.predict, lambda rows: model.partial_fit(rows, y[: len(rows)])):
        with pytest.raises((ArgumentError, ArgumentTypeError), match=r"^X(:| has)"):
            call(BAD_ROWS[bad])
    assert file_of(model, tmp_path) == before


def test_bad_row_among_good_ones_is_refused_before_any_is_learnt(base: Factory, tmp_path: Path) -> None:
    points = X.copy()
    points[130, 1] = np.nan
    model = told(base, 60)
    before = file_of(model, tmp_path)
    with pytest.raises(ArgumentError, match="NaN or infinity in row 130"):
        model.progressive(points, targets(base))
    fresh = base()
    with pytest.raises(ArgumentError, match="row 130"):
        fresh.fit(points, targets(base))
    assert file_of(model, tmp_path) == before
    assert set(vars(fresh)) == set(fresh.get_params())


def test_masked_rows_and_targets_are_missing_ones(base: Factory, tmp_path: Path) -> None:
    model, y = told(base, 60), targets(base)
    before = file_of(model, tmp_path)
    with pytest.raises(ArgumentError, match="X: expected finite values, got NaN or infinity in row 1"):
        model.partial_fit(np.ma.array(X[:3], mask=[[0, 0, 0], [0, 0, 1], [0, 0, 0]]), y[:3])
    with pytest.raises(ArgumentError, match=r"y: expected (finite values, got nan|labels, got None or NaN)"):
        model.partial_fit(X[:3], np.ma.array(y[:3], mask=[0, 1, 0]))
    assert file_of(model, tmp_path) == before


def test_targets_that_do_not_fit_are_refused(base: Factory, tmp_path: Path) -> None:
    model, y = told(base, 60), targets(base)
    before = file_of(model, tmp_path)
    for bad in (y[:5], np.stack([y, y], 1), None):
        with pytest.raises(ArgumentError, match=r"^y(:| should be)"):
            model.partial_fit(X, bad)
    assert file_of(model, tmp_path) == before


@pytest.mark.parametrize(
    ("x", "y", "which"), [([10**400], 1.0, "X"), ({"a": 10**400}, 1.0, "X"), ([1.0], 10**400, "y")]
)
def test_whole_numbers_beyond_the_doubles_are_refused(x: object, y: object, which: str) -> None:
    with pytest.raises(ArgumentError, match=f"{which}: expected numbers within the range of float64"):
        KONS(loss="squared").learn_one(x, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_targets_must_be_finite(bad: float) -> None:
    with pytest.raises(ArgumentError, match=r"y: expected finite values, got .* at position 2"):
        KernelAWV.paper().fit(X[:4], [0.0, 1.0, bad, 2.0])


@pytest.mark.parametrize("name", LEARNERS)
def test_what_follows_from_rows_is_missing_before_the_first_one_by_a_message_that_says_so(name: str) -> None:
    learner = LEARNERS[name]()
    for read in (lambda: learner.dictionary_size_, learner.hypothesis):
        with pytest.raises(
            (AttributeError, ArgumentError), match=r"at least one learnt row first|expansion in its kernel"
        ):
            read()
    assert not hasattr(learner, "dictionary_size_")
    learner.fit(X[:20], (NUMBERS if name in REGRESSIONS else LABELS)[:20])
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(learner, "nothing")  # noqa: B009  # a name that the type checker does not know


@pytest.mark.parametrize("kind", [KernelAWV, OnlineKRR, PKAWV])
def test_targets_have_any_size_since_they_are_scaled_by_the_first_ones(kind: type[OnlineLearner]) -> None:
    small, large = (kind().fit(X[:40], NUMBERS[:40] * 2.0**power).predict(X) for power in (0, 300))
    np.testing.assert_allclose(large, small * 2.0**300, rtol=1e-9, atol=0.0)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_targets_with_powers_beyond_doubles_are_refused_and_large_ones_can_be_saved(name: str, tmp_path: Path) -> None:
    model = LEARNERS[name]().fit(X[:140], NUMBERS[:140])
    before = file_of(model, tmp_path)
    y = np.array([0.0, 1e160, 0.0])
    with pytest.raises(ArgumentError, match=r"^y: expected targets within 1e\+50 .*, got 1e\+160 at position 1"):
        model.partial_fit(X[:3], y)
    assert file_of(model, tmp_path) == before
    model.partial_fit(X[:3], y * 1e-112)
    assert np.isfinite(model.predict(X)).all()
    model.save(tmp_path / "large")
    np.testing.assert_array_equal(OnlineLearner.load(tmp_path / "large").predict(X), model.predict(X))


def test_predictions_before_anything_was_learnt_are_refused(base: Factory) -> None:
    for call in (base().predict, base().predict_one):
        with pytest.raises(NotReadyError, match="at least one learnt row"):
            call(X if call.__name__ == "predict" else X[0])


def test_column_of_targets_is_taken_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="column-vector y"):
        model = KernelAWV.paper().fit(X, NUMBERS[:, None])
    np.testing.assert_array_equal(model.predict(X), KernelAWV.paper().fit(X, NUMBERS).predict(X))


def test_infinities_that_cancel_are_refused_without_a_warning() -> None:
    with pytest.raises(ArgumentError, match="NaN or infinity in row 1"):
        KONS.paper().fit([[0.0, 0.0], [np.inf, -np.inf]], ["no", "yes"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_tensors_of_any_real_type_are_rows_and_targets(dtype: torch.dtype) -> None:
    rows = torch.from_numpy(X > 0.0).to(dtype)
    y = torch.from_numpy(NUMBERS).requires_grad_()
    ours = KernelAWV.paper().fit(rows, y).predict(rows)
    np.testing.assert_array_equal(ours, KernelAWV.paper().fit((X > 0.0).astype(float), NUMBERS).predict(X > 0.0))


def test_more_classes_than_there_can_be_are_refused_by_their_name() -> None:
    with pytest.raises(ArgumentError, match=r"^classes: expected at most 1000 classes, got 1001 labels"):
        KONS.paper().partial_fit(X, LABELS, classes=[f"{k:04d}" for k in range(999)] + ["no", "yes"])


@pytest.mark.parametrize("name", ["csr_array", "dok_array"])  # the second is a mapping too
def test_sparse_rows_are_refused(name: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"sparse matrix; pass X\.toarray"):
        KONS.paper().fit(getattr(scipy.sparse, name)(X), LABELS)


def test_sparse_rows_of_a_pipeline_are_refused_with_the_options_that_make_them_dense() -> None:
    with pytest.raises(ArgumentTypeError, match=r"sparse_output=False, and sparse_threshold=0 of a ColumnTransformer"):
        KONS.paper().fit(scipy.sparse.csr_array(X), LABELS)


def test_columns_without_a_finite_value_are_named_and_not_the_whole_row_is_shown() -> None:
    wide = np.zeros((4, 300))
    wide[2, 7:] = np.nan
    with pytest.raises(ArgumentError, match=r"row 2: nan in column 7, nan in column 8, nan in column 9, 290 more;"):
        KONS.paper().fit(wide, [0, 1, 0, 1])
    frame = pd.DataFrame(X, columns=list(NAMES))
    model = KONS.paper().fit(frame, LABELS)
    bad = frame.assign(age=np.where(np.arange(len(X)) == 5, -np.inf, 0.0))
    with pytest.raises(ArgumentError, match=r"in row 5: -inf in column 'age'; drop"):
        model.predict(bad[list(NAMES[::-1])])
    with pytest.raises(ArgumentError, match=r"in row 0: -inf in column 'age'; drop"):
        model.learn_one(dict(bad.iloc[5]), LABELS[5])


def test_sparse_tensors_are_refused() -> None:
    with pytest.raises(
        ArgumentTypeError, match=r"expected dense tensors, got one of layout torch.sparse_coo; pass its to_de"
    ):
        KONS.paper().fit(torch.from_numpy(X).to_sparse(), LABELS)


@pytest.mark.parametrize("known", [0, 20])
@pytest.mark.parametrize("missing", [pd.NA, pd.NaT, None], ids=repr)
def test_missing_labels_of_pandas_are_refused_as_missing(known: int, missing: object) -> None:
    model = KONS.paper()
    if known:
        model.partial_fit(X[:known], LABELS[:known])
    labels = np.array(["yes", missing, "no"], dtype=object)
    for y in (labels, pd.Series(labels), pd.Series(["yes", None, "no"], dtype="string")):
        with pytest.raises(ArgumentError, match=r"^y: expected labels, got (None or NaN|NaN or infinity) among them"):
            model.partial_fit(X[:3], y)


@pytest.mark.parametrize("convert", [torch.from_numpy, np.ndarray.tolist, pd.DataFrame, np.asfortranarray])
def test_rows_come_in_many_types(convert: Callable[[np.ndarray], object]) -> None:
    ours = KONS.paper().fit(convert(X.copy()), LABELS).decision_function(convert(X.copy()))
    np.testing.assert_array_equal(ours, KONS.paper().fit(X, LABELS).decision_function(X))


# -- dicts and data frames -------------------------------------------------------------------------------------------


def test_dicts_are_rows_whose_first_names_fix_the_order(base: Factory) -> None:
    y, named, plain = targets(base), base(), base()
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
    model = KONS.paper().learn_one(as_dict(X[0]), "no").learn_one(as_dict(X[1]), "yes")
    before = file_of(model, tmp_path)
    for call in (lambda: model.learn_one(row, "no"), lambda: model.predict_one(row)):
        with pytest.raises(ArgumentError, match="expected the features of the first row"):
            call()
    assert file_of(model, tmp_path) == before


@pytest.mark.parametrize("row", [{"height": "tall", "age": 1.0, "weight": 0.0}, {1: 2.0, 3: 4.0, 5: 6.0}])
def test_dicts_hold_numbers_by_name(row: dict[object, object]) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match="expected"):
        KONS.paper().learn_one(row, "no")


def test_dict_after_arrays_is_refused() -> None:
    model = KONS.paper().fit(X, LABELS)
    with pytest.raises(ArgumentError, match="has learnt from arrays so far"):
        model.predict_one(as_dict(X[0]))


def test_columns_of_a_data_frame_may_change_places() -> None:
    frame = pd.DataFrame(X, columns=list(NAMES))
    model = KONS.paper().fit(frame, LABELS)
    np.testing.assert_array_equal(model.predict(frame[list(reversed(NAMES))]), model.predict(X))
    with pytest.raises(ArgumentError, match=r"\['age'\] are missing and \['shoe'\] are new"):
        model.predict(frame.rename(columns={"age": "shoe"}))


def test_a_data_frame_without_a_column_or_with_one_of_text_is_refused_by_its_name() -> None:
    frame = pd.DataFrame(X, columns=list(NAMES))
    model = KONS.paper().fit(frame, LABELS)
    with pytest.raises(ArgumentError, match=r"but \['age'\] are missing\.$"):
        model.predict(frame.drop(columns="age"))
    with pytest.raises(ArgumentError, match=r"'red', in \['shoe', 'hat'\]: encode these, as by scikit-learn's OneHot"):
        KONS.paper().fit(frame.assign(shoe="red", hat=pd.Categorical(["red"] * len(frame))), LABELS)


def test_columns_of_dates_are_named_and_gaps_of_nullable_columns_are_missing_values() -> None:
    frame = pd.DataFrame(X[:3], columns=list(NAMES))
    with pytest.raises(ArgumentTypeError, match=r"not 'Timestamp', in \['born'\]: encode these"):
        KONS.paper().fit(frame.assign(born=pd.Timestamp("2020-01-01")), LABELS[:3])
    gaps = frame.assign(age=pd.array([1, None, 3], dtype="Int64"))
    for rows in (gaps, gaps.astype(object)):
        with pytest.raises(ArgumentError, match=r"^X: expected finite values, got NaN or infinity in row 1: .*impute"):
            KONS.paper().fit(rows, LABELS[:3])
    whole = frame.assign(age=pd.array([1, 2, 3], dtype="Int64"))
    np.testing.assert_array_equal(
        KONS.paper().fit(whole, LABELS[:3]).predict(whole),
        KONS.paper().fit(whole.astype(float), LABELS[:3]).predict(whole),
    )


def test_a_dict_with_text_is_refused_by_the_feature_s_name() -> None:
    with pytest.raises(ArgumentError, match=r"'red'\)?, in \['shoe'\]: encode these, as by scikit-learn's OneHot"):
        KONS.paper().learn_one({"age": 3.0, "shoe": "red"}, 1)


def test_row_of_a_data_frame_is_read_by_its_names() -> None:
    frame = pd.DataFrame(X, columns=list(NAMES))
    model, plain = KONS.paper(), KONS.paper()
    for t in range(20):
        row = frame.iloc[t]
        model.learn_one(row if t % 2 == 0 else row[::-1], LABELS[t])
        plain.learn_one(X[t], LABELS[t])
    assert tuple(model.feature_names_in_) == NAMES
    assert model.predict_one(frame.iloc[30][::-1]) == plain.predict_one(X[30])
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    assert plain.predict_one(frame.iloc[30]) == plain.predict_one(X[30])
    with pytest.raises(ArgumentError, match=r"\['age'\] are missing and \['shoe'\] are new"):
        model.predict_one(frame.iloc[30].rename({"age": "shoe"}))


def test_two_columns_of_one_name_are_refused() -> None:
    frame = pd.DataFrame(X, columns=["age", "height", "age"])
    for call in (lambda: KONS().fit(frame, LABELS), lambda: KONS().learn_one(frame.iloc[0], "no")):
        with pytest.raises(ArgumentError, match=r"^X: expected columns of different names, got 'age' twice"):
            call()
