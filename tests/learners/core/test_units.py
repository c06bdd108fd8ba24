"""Units from the first rows: exact however rows are cut, and the learner of the paper on scaled rows afterwards."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bkbopt.errors import ArgumentTypeError, StateFileError
from bkbopt.learners import BPAS, FOGD, KOGD, KONS, PKAWV, KernelAWV, OnlineLearner
from bkbopt.learners.core.units import FIRST_ROWS, Units
from tests.learners.everyone import LABELS, NUMBERS, N, X, file_of
from tests.learners.streams import margins

#: Columns whose sizes and places have nothing in common.
RAW = X * np.array([1e-3, 1.0, 1e4]) + np.array([5.0, -1e3, 2e6])
TARGETS = 1e5 + 300.0 * NUMBERS
LABELS_OF_ZEROS = np.zeros(FIRST_ROWS)

#: By default, but for budgets that fill up; products of blocks are rounded as they are cut in the last two only.
EXACT = {"KOGD": KOGD, "BPAS": lambda: BPAS(budget=30), "FOGD": lambda: FOGD(frequencies=20)}
ROUNDED = {"KONS": KONS, "PKAWV": PKAWV}


def targets(learner: OnlineLearner) -> np.ndarray:
    return TARGETS if learner.loss == "squared" else LABELS


@pytest.mark.parametrize("name", [*EXACT, *ROUNDED])
def test_calls_of_any_size_are_the_whole_stream(name: str, tmp_path: Path) -> None:
    make = {**EXACT, **ROUNDED}[name]
    y = targets(make())
    whole, cut, single = make(), make(), make()
    at_once = margins(whole, RAW, y)
    classes = None if whole.loss == "squared" else ["no", "yes"]
    edges = [0, 1, 3, 4, 60, 127, 128, 129, 200, N]
    parts = np.concatenate([margins(cut, RAW[a:b], y[a:b], classes=classes) for a, b in pairwise(edges)])
    for x, target in zip(RAW, y, strict=True):
        single.learn_one(x, target)
    if name in EXACT:
        np.testing.assert_array_equal(parts, at_once)
        assert file_of(single, tmp_path) == file_of(cut, tmp_path) == file_of(whole, tmp_path)
        return
    # Products of one row and of many are rounded differently; targets have six digits before the point.
    scale = 300.0 if classes is None else 1.0
    np.testing.assert_allclose(parts, at_once, rtol=0, atol=1e-9 * scale)
    Z = X[:20]  # in the learner's units
    np.testing.assert_allclose(single._raw(Z), whole._raw(Z), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [*EXACT, *ROUNDED])
def test_after_the_first_rows_it_is_the_papers_learner_on_scaled_rows(name: str) -> None:
    learner = {**EXACT, **ROUNDED}[name]()
    y = targets(learner)
    p = margins(learner, RAW, y)
    first = RAW[:FIRST_ROWS]
    Z = (RAW - first.mean(0)) / first.std(0)
    lengthscale = np.sqrt(3.0 if learner.loss == "squared" else 1.5)
    fixed = {**learner.get_params(), "scale": False, "lengthscale": lengthscale}
    if learner.loss == "squared":
        centre, unit = y[:FIRST_ROWS].mean(), y[:FIRST_ROWS].std()
        expected = type(learner)(**fixed).progressive(Z, (y - centre) / unit) * unit + centre
    else:
        expected = margins(type(learner)(**fixed), Z, y)
    # Means and deviations are those of columns brought to size one first, which rounds differently.
    scale = 300.0 if learner.loss == "squared" else 1.0
    np.testing.assert_allclose(p[FIRST_ROWS:], expected[FIRST_ROWS:], rtol=0, atol=1e-7 * scale)


def test_lengthscale_without_scaling_is_the_size_of_the_cloud() -> None:
    learner = KernelAWV(scale=False).fit(X, NUMBERS)
    spread = np.sqrt(X[:FIRST_ROWS].var(0).sum())
    same = KernelAWV.paper(lengthscale=spread).fit(X, NUMBERS)
    # The spread is rounded in another order.
    np.testing.assert_allclose(learner.predict(X), same.predict(X), rtol=0, atol=1e-10)


@pytest.mark.parametrize("at", [(40,), (7, 100)])
def test_few_far_values_among_the_first_rows_do_not_set_the_units(at: tuple[int, ...]) -> None:
    rows, y = X.copy(), NUMBERS.copy()
    rows[list(at), 1], y[list(at)] = 1e9, -1e7
    units = Units(3, standardise=True, targets=True)
    units.store(rows[:FIRST_ROWS], y[:FIRST_ROWS])
    others = np.delete(np.arange(FIRST_ROWS), at)
    # A far value counts as the largest or the least of the others.
    assert units.s[1] == pytest.approx(X[others, 1].std(), rel=0.1)
    assert units.c[1] == pytest.approx(X[others, 1].mean(), abs=0.1 * X[:, 1].std())
    assert units.s_y == pytest.approx(NUMBERS[others].std(), rel=0.1)
    assert units.lengthscale == pytest.approx(np.sqrt(3.0), rel=1e-12)
    learner = KernelAWV()
    p = learner.progressive(np.delete(rows, at, axis=0)[:FIRST_ROWS], np.delete(y, at)[:FIRST_ROWS])
    assert np.var(p[64:] - np.delete(y, at)[64:FIRST_ROWS]) < 0.5 * np.var(NUMBERS)


def test_three_far_values_of_128_and_long_tails_count() -> None:
    rows = X[:FIRST_ROWS].copy()
    rows[[5, 50, 90], 1] = 1e9
    rows[:, 2] = np.exp(3.0 * rows[:, 2])
    units = Units(3, standardise=True, targets=False)
    units.store(rows, LABELS_OF_ZEROS)
    np.testing.assert_allclose(units.s, rows.std(0), rtol=1e-12)
    np.testing.assert_allclose(units.c, rows.mean(0), rtol=1e-12)


def test_unit_of_a_column_that_mostly_has_one_value_is_the_distance_of_the_others() -> None:
    rows = np.zeros((FIRST_ROWS, 3))
    rows[::10, 0] = 5.0
    rows[3::40, 1] = [2.0, 4.0, 2.0, 4.0]
    rows[:64, 2] = 7.0  # half of them: a standard deviation
    units = Units(3, standardise=True, targets=False)
    units.store(rows + 100.0, LABELS_OF_ZEROS)
    np.testing.assert_allclose(units.s, [5.0, 10.0**0.5, 3.5], rtol=1e-12)
    deviations = rows.std(0) / units.s
    assert units.lengthscale == pytest.approx(np.linalg.norm(deviations), rel=1e-12)


def test_units_of_columns_and_targets_change_no_prediction() -> None:
    # Powers of two, and shifts that keep all digits, change no bit; the centre hangs on how sums are rounded.
    near = KernelAWV().progressive(X, NUMBERS)
    far = KernelAWV().progressive(X * 2.0**20, 2.0**8 * NUMBERS) / 2.0**8
    np.testing.assert_array_equal(far, near)


def test_column_that_was_constant_takes_its_unit_from_the_first_difference() -> None:
    rows, y = np.column_stack([X, np.full(N, 7.0)]), LABELS
    rows[150:, 3] += 1e6 * np.sign(X[150:, 0])
    learner = KOGD().fit(rows[:150], y[:150])
    # Before a difference was learnt, one of any size looks like the first.
    np.testing.assert_array_equal(
        learner.decision_function(np.column_stack([X[:9], np.full(9, 8.0)])),
        learner.decision_function(np.column_stack([X[:9], np.full(9, 1e9)])),
    )
    learner.partial_fit(rows[150:], y[150:])
    units = learner._after_rows().units
    assert units is not None
    assert units.s[3] == 1e6
    whole = KOGD().fit(rows, y)
    np.testing.assert_array_equal(learner.decision_function(rows), whole.decision_function(rows))


def test_targets_that_were_constant_take_their_unit_from_the_first_difference() -> None:
    y = np.full(N, 20.0)
    y[200:] += 5.0 * NUMBERS[200:]
    learner = KernelAWV()
    p = learner.progressive(X, y)
    np.testing.assert_array_equal(p[:201], [0.0] + [20.0] * 200)
    assert np.abs(p[220:] - y[220:]).mean() < np.abs(y[220:] - 20.0).mean()


def test_columns_of_any_size_have_units() -> None:
    rows = X * np.array([1e-300, 1e200, 1e300])
    assert np.isfinite(margins(KOGD(), rows, LABELS)).all()
    np.testing.assert_allclose(margins(KOGD(), rows, LABELS), margins(KOGD(), X, LABELS), rtol=0, atol=1e-10)


def test_support_is_given_back_in_units_of_the_rows() -> None:
    learner = BPAS(budget=30).fit(RAW, LABELS)
    nearest = np.abs((learner.support_[:, None] - RAW[None]) / RAW.std(0)).max(2).min(1)
    # Two roundings, of values a thousand deviations from zero.
    assert nearest.max() < 1e-12
    weights = KernelAWV().fit(RAW, TARGETS)
    units = weights._after_rows().units
    assert units is not None
    assert units.slope == pytest.approx(TARGETS[:FIRST_ROWS].std())


@pytest.mark.parametrize("n", [1, 5, 64, 127, 128, 200])
def test_saved_in_the_first_rows_or_later_it_goes_on(n: int, tmp_path: Path) -> None:
    for make in (*EXACT.values(), *ROUNDED.values()):
        y = targets(make())
        learner = make().partial_fit(RAW[:n], y[:n])
        learner.save(tmp_path / "state")
        loaded = OnlineLearner.load(tmp_path / "state").partial_fit(RAW[n:], y[n:])
        assert file_of(loaded, tmp_path) == file_of(learner.partial_fit(RAW[n:], y[n:]), tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"s": np.full(3, -1.0)}, "'s' to be finite numbers from 0"),
        ({"first": None}, "the first rows to be those of 40 rows"),
        ({"first": {"X": X[:39].copy(), "y": np.zeros(39)}}, "the first rows to be those of 40 rows"),
        ({"first": {"X": X[:40].copy(), "y": np.full(40, 2.0)}}, "the classes of the first rows to be whole numbers"),
        ({"lengthscale": 0.0}, "'lengthscale' to be a finite number"),
    ],
)
def test_units_of_a_file_are_checked(change: dict[str, object], message: str) -> None:
    saved = KOGD().fit(X[:40], LABELS[:40]).state_dict()
    saved["learnt"]["units"].update(change)  # type: ignore[index]
    with pytest.raises(StateFileError, match=message):
        OnlineLearner.from_state(saved)


def test_scale_is_true_or_false() -> None:
    with pytest.raises(ArgumentTypeError, match=r"^scale: expected True or False, got 'yes' of type str"):
        KOGD(scale="yes").fit(X, LABELS)  # type: ignore[arg-type]


def test_marks_are_powers_of_two() -> None:
    units, marks = Units(3, standardise=True, targets=False), []
    for t in range(FIRST_ROWS + 9):
        if units.store(X[t : t + 1], np.zeros(1)) is not None:
            marks.append(t + 1)
    assert marks == [1, 2, 4, 8, 16, 32, 64, 128]
    assert units.valid_until(3, 50) == 50


def test_first_difference_of_a_constant_column_that_overflows_is_a_finite_unit() -> None:
    rows = np.column_stack([X[:, 0], np.where(np.arange(N) < FIRST_ROWS + 5, 1.7e308, -1.7e308)])
    assert np.isfinite(KOGD().fit(rows, LABELS).decision_function(rows)).all()
