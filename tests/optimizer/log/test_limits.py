"""Limits of measured quantities, and their excesses."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bkbopt.optimizer.log.limits import FREE, Limit, excesses, limits_of, stored, texts

numbers = st.floats(allow_nan=False, allow_infinity=False)
limits = st.one_of(
    st.just(Limit()),
    st.just(FREE),
    st.builds(lambda high: Limit(-math.inf, high), numbers),
    st.builds(lambda low: Limit(low, math.inf), numbers),
    st.builds(lambda pair: Limit(*sorted(pair)), st.tuples(numbers, numbers)),
)


@given(limits, numbers)
def test_a_value_is_within_its_limits_where_no_excess_is_positive(limit: Limit, value: float) -> None:
    found = excesses({"q": limit}, {"q": value})
    assert all(math.isfinite(excess) for excess in found.values())
    assert limit.holds(value) == all(excess <= 0.0 for excess in found.values())


@given(st.dictionaries(st.text(), limits, max_size=4))
def test_limits_are_read_as_they_were_kept(given: dict[str, Limit]) -> None:
    kept = json.loads(json.dumps(stored(given)))
    assert limits_of(kept) == given
    assert list(limits_of(kept)) == list(given)


def test_constraints_without_limits_of_their_own_are_kept_as_names_as_in_earlier_logs() -> None:
    assert stored({"a": Limit(), "b": Limit(-math.inf, 0.0)}) == ["a", "b"]
    assert excesses({}, {"a": 0.1}) == {"a": 0.1}


def test_the_text_of_limits_is_that_of_the_user() -> None:
    given = {"a": Limit(), "b": Limit(-math.inf, 30.0), "c": Limit(1e-9, math.inf), "d": Limit(0.1, 2.0), "e": FREE}
    assert texts(stored(given)) == ("a", "b <= 30", "c >= 1e-09", "0.1 <= d <= 2", "e")


@pytest.mark.parametrize(
    "kept",
    [
        "ab",
        {},
        None,
        [1],
        [["a"]],
        [["a", 1.0]],
        [["a", 1.0, 2.0, 3.0]],
        [["a", 2.0, 1.0]],
        [["a", "1", None]],
        [["a", True, None]],
        [[1, None, 1.0]],
        ["a", ["a", None, 1.0]],
        [["a", math.nan, None]],
        [["a", math.inf, None]],
        [["a", None, -math.inf]],
    ],
    ids=str,
)
def test_an_entry_of_a_log_that_is_none_is_refused(kept: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        limits_of(kept)
