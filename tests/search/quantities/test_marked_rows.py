"""Rows of a quantity: substitutes for infinite values of constraints."""

import math

import pytest
import torch

from bkbopt.search.quantities.marked_rows import Rows

INF, NAN = math.inf, math.nan


def rows(y: list[float], mark: int) -> Rows:
    values = torch.tensor(y, dtype=torch.float64)
    nothing = torch.full_like(values, NAN)
    return Rows(torch.zeros(len(y), 1).double(), values, nothing, nothing, (), 0, mark)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([-3.0, 5.0, INF, -INF], [-3.0, 5.0, 5.0, -3.0]),
        ([-3.0, -1.0, INF, -INF], [-3.0, -1.0, 3.0, -3.0]),
        ([2.0, 5.0, INF, -INF], [2.0, 5.0, 5.0, -5.0]),
        ([0.0, 0.0, INF, -INF], [0.0, 0.0, 1.0, -1.0]),
        ([INF, -INF, NAN, INF], [1.0, -1.0, NAN, 1.0]),
    ],
)
def test_an_infinite_constraint_is_replaced_on_its_side_of_zero(given: list[float], expected: list[float]) -> None:
    assert rows(given, 4).finite_limits.tolist() == pytest.approx(expected, rel=0.0, abs=0.0, nan_ok=True)


def test_substitutes_follow_from_the_values_up_to_the_mark() -> None:
    assert rows([-3.0, 5.0, INF, 70.0, -80.0], 2).finite_limits.tolist() == [-3.0, 5.0, 5.0, 70.0, -80.0]
