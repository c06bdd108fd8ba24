"""Outcome constraints as users write them."""

import math
from typing import Any

import pytest

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer.arguments.outcome_constraints import as_limits
from bkbopt.optimizer.log.limits import Limit

INF = math.inf


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], {}),
        (["heat"], {"heat": Limit(-INF, 0.0)}),
        ("heat <= 70", {"heat": Limit(-INF, 70.0)}),
        (["heat<=70."], {"heat": Limit(-INF, 70.0)}),
        (["70 >= heat"], {"heat": Limit(-INF, 70.0)}),
        (["purity >= 0.9"], {"purity": Limit(0.9, INF)}),
        (["0.9 <= purity"], {"purity": Limit(0.9, INF)}),
        (["6.5 <= ph <= 7"], {"ph": Limit(6.5, 7.0)}),
        (["7 >= ph >= 6.5"], {"ph": Limit(6.5, 7.0)}),
        (["ph >= 6.5", "ph <= 7"], {"ph": Limit(6.5, 7.0)}),
        (["ph <= 7", "ph >= 6.5"], {"ph": Limit(6.5, 7.0)}),
        (["peak load <= 1e3", "`n` >= -2"], {"peak load": Limit(-INF, 1e3), "n": Limit(-2.0, INF)}),
        ({"a <= b": (None, 0.0), "c": (1, 2.5), "d": [3.0, None]},
         {"a <= b": Limit(-INF, 0.0), "c": Limit(1.0, 2.5), "d": Limit(3.0, INF)}),
    ],
    ids=str,
)  # fmt: skip
def test_limits_are_read_from_text_and_from_dicts(given: Any, expected: dict[str, Limit]) -> None:
    assert as_limits(given) == expected
    assert list(as_limits(given)) == list(expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["heat < 70"], r"got 'heat < 70' with '<'; write <=, or for a name with such a sign a dict"),
        (["heat == 70"], r"with '=='; write 'name', 'name <= number', 'name >= number' or"),
        (["heat = 70"], r"with '='; write"),
        (["heat <= cold"], r"got 'heat <= cold' with something else; measured differences"),
        (["1 <= 2"], r"with something else"),
        (["heat <= inf"], r"with something else"),
        (["1 <= heat >= 2"], r"with something else"),
        (["a <= 1 <= b"], r"with something else"),
        (["1 <= a <= 2 <= 3"], r"with something else"),
        (["<= 3"], r"with no name"),
        (["9 <= heat <= 7"], r"expected limits of 'heat' that some value satisfies, got 9.0 and 7.0"),
        (["heat >= 9", "heat <= 7"], r"expected limits of 'heat' that some value satisfies"),
        (["heat", "heat"], r"expected distinct names, got 'heat' twice"),
        (["heat <= 3", "heat <= 4"], r"expected distinct names, got 'heat' twice"),
        (["1 <= heat <= 3", "heat >= 0"], r"expected distinct names, got 'heat' twice"),
        (["1 <= heat <= 3", "heat (low)"], r"expected no name 'heat \(low\)' beside one with two limits; rename it"),
        ({"heat": (math.nan, None)}, r"expected limits of 'heat' that some value satisfies"),
        ({"heat": (math.inf, None)}, r"expected limits of 'heat' that some value satisfies"),
        ({"heat": (10**400, None)}, r"expected limits of 'heat' that some value satisfies"),
    ],
    ids=str,
)
def test_constraints_that_are_none_are_refused(given: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=rf"^constraints: .*{message}"):
        as_limits(given)


@pytest.mark.parametrize(
    "given", [3, None, [1], [("heat", 3.0)], {"heat": 60}, {"heat": (None, "70")}, {"heat": (True, None)}, {1: (0, 1)}]
)
def test_constraints_of_another_type_are_refused(given: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^constraints: expected "):
        as_limits(given)
