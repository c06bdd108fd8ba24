"""Points, values and numbers that surrogates accept, and the errors for all others."""

import decimal
import fractions
import math

import numpy as np
import pandas as pd
import pytest
import torch

from bkbopt._support.arrays import DEFAULT_NOISE, as_points, as_values, check_noise
from bkbopt._support.checks import check_count, check_number
from bkbopt.errors import ArgumentError, ArgumentTypeError


@pytest.mark.parametrize(
    "value", [0.5, np.float32(0.5), np.array(0.5), torch.tensor(0.5), decimal.Decimal("0.5"), fractions.Fraction(1, 2)]
)
def test_noise_may_be_any_positive_number(value: object) -> None:
    assert check_noise(value) == 0.5


def test_noise_has_a_default() -> None:
    assert check_noise(None) == DEFAULT_NOISE


@pytest.mark.parametrize("value", [0, 0.0, -1.0, math.nan, math.inf, -math.inf, 10**400, decimal.Decimal("NaN")])
def test_noise_that_is_no_variance_is_refused(value: object) -> None:
    with pytest.raises(ArgumentError, match=r"^noise: expected a positive finite variance \(y squared\), got "):
        check_noise(value)


@pytest.mark.parametrize(
    "value",
    ["1", b"1", True, np.True_, 1j, np.complex64(1), [1.0], np.ones(1), np.ones(2), torch.ones(2), {}, object()],
)
def test_noise_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^noise: expected a positive finite variance .* of type "):
        check_noise(value)


def test_strict_bounds_exclude_the_bound_itself() -> None:
    assert check_number("x", 1.0, 1.0, "a number") == 1.0
    with pytest.raises(ArgumentError, match=r"^x: expected a number, got 1.0"):
        check_number("x", 1.0, 1.0, "a number", strict=True)


def test_counts_are_whole_and_positive() -> None:
    assert check_count("k", 3.0, 1, "a count") == 3
    for bad in (0, -1, 2.5, math.inf):
        with pytest.raises(ArgumentError, match=r"^k: expected a count, got"):
            check_count("k", bad, 1, "a count")


POINTS = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize(
    "X",
    [
        POINTS,
        POINTS.tolist(),
        tuple(map(tuple, POINTS.tolist())),
        POINTS.astype(np.float32),
        POINTS.astype(int),
        POINTS.astype(np.uint8),
        np.asfortranarray(POINTS),
        POINTS[::-1][::-1],
        torch.as_tensor(POINTS),
        torch.as_tensor(POINTS).float(),
        torch.as_tensor(POINTS).int(),
        pd.DataFrame(POINTS, columns=["a", "b"]),
        pd.DataFrame({"a": [0, 2, 4], "b": [1.0, 3.0, 5.0]}),
    ],
    ids=lambda X: f"{type(X).__name__}",
)
def test_points_come_in_many_forms(X: object) -> None:
    T = as_points(X, 2)
    assert T.dtype == torch.float64
    assert T.tolist() == POINTS.tolist()


def test_read_only_arrays_are_taken_and_memory_is_not_shared() -> None:
    X = POINTS.copy()
    X.setflags(write=False)
    T = as_points(X, 2)
    T[0, 0] = 99.0
    assert X[0, 0] == 0.0


def test_masked_numbers_are_missing_ones_and_an_empty_mask_changes_nothing() -> None:
    y = np.array([1, 2, 3])
    assert as_values(np.ma.array(y, mask=[False, False, False])).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ArgumentError, match="y: expected finite values, got nan at position 1"):
        as_values(np.ma.array(y, mask=[False, True, False]))
    with pytest.raises(ArgumentError, match=r"X: expected finite values, got \[nan, 1\.0\] in row 2"):
        as_points(np.ma.array(np.ones((4, 2)), mask=[[0, 0], [0, 0], [1, 0], [0, 1]]), 2)


def test_numbers_below_masks_are_no_data_in_lists_of_masked_arrays_either() -> None:
    row = np.ma.array([1.0, 2.0], mask=[False, True])
    with pytest.raises(ArgumentError, match=r"X: expected finite values, got \[1\.0, nan\] in row 1"):
        as_points([[3.0, 4.0], row], 2)
    with pytest.raises(ArgumentError, match="y: expected finite values, got nan at position 0"):
        as_values([np.ma.masked, 1.0])
    assert as_points([np.ma.array([1.0, 2.0])], 2).tolist() == [[1.0, 2.0]]


def test_one_point_may_be_a_row_where_the_dimension_is_known() -> None:
    assert as_points([1.0, 2.0], 2).shape == (1, 2)
    assert as_values(3.0).tolist() == [3.0]
    assert as_values([[1.0], [2.0]]).tolist() == [1.0, 2.0]
    assert as_values(pd.Series([1, 2])).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("X", "dim", "message"),
    [
        (POINTS, 3, r"^X: expected shape \(n, 3\), got \(3, 2\)"),
        ([1.0, 2.0], None, r"^X: expected shape \(n, d\), got \(2,\)"),
        (np.zeros((2, 2, 2)), None, r"^X: expected shape \(n, d\), got \(2, 2, 2\)"),
        (1.0, 2, r"^X: expected shape \(n, 2\), got \(1,\)"),
        ([[0.0, 1.0], [math.nan, 2.0], [math.inf, 0.0]], 2, r"^X: expected finite values, got \[nan, 2.0\] in row 1"),
        (torch.tensor([[0.0, math.inf]]), 2, r"^X: expected finite values, got \[0.0, inf\] in row 0"),
        ([[1.0], [1.0, 2.0]], None, r"^X: expected numbers in equal rows"),
    ],
)
def test_points_of_the_wrong_shape_or_value_are_refused(X: object, dim: int | None, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        as_points(X, dim)


NOT_NUMBERS = [None, "abc", ["a"], [None, 1.0], [1j], [True, False], torch.tensor([1j]), torch.tensor([True]), {1.0}]


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_values_other_than_real_numbers_are_refused(value: object) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^y: expected real numbers, got"):
        as_values(value)
    with pytest.raises(ArgumentTypeError, match=r"^X: expected real numbers, got"):
        as_points([value] if isinstance(value, list) else value, None)


def test_values_that_can_be_read_only_once_are_refused_with_the_form_to_pass() -> None:
    with pytest.raises(ArgumentTypeError, match=r"^y: expected real numbers, got map; pass list\(y\)"):
        as_values(map(float, [1, 2]), 2)


@pytest.mark.parametrize(("value", "kind"), [(decimal.Decimal("0.5"), "Decimal"), (None, "None"), (pd.NA, "NAType")])
def test_what_is_no_number_is_named(value: object, kind: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"^y: expected real numbers, got {kind} among them; convert all"):
        as_values([1.0, value])


@pytest.mark.parametrize(
    ("y", "n", "message"),
    [
        ([1.0, 2.0], 3, r"^y: expected shape \(3,\), one value for each point, got \(2,\)"),
        (np.zeros((2, 2)), 2, r"^y: expected shape \(2,\), one value for each point, got \(2, 2\)"),
        ([0.0, 1.0, math.nan], None, r"^y: expected finite values, got nan at position 2"),
        ([-math.inf], 1, r"^y: expected finite values, got -inf at position 0"),
    ],
)
def test_values_of_the_wrong_shape_or_value_are_refused(y: object, n: int | None, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        as_values(y, n)
