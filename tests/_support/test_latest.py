"""What was computed last is kept, and no more of it than stated."""

import pytest

from bkbopt._support.latest import Latest


def test_only_new_keys_are_computed_and_the_oldest_results_are_dropped() -> None:
    computed: list[int] = []
    latest: Latest[int] = Latest(most=2)

    def of(key: int) -> int:
        return latest.of(key, lambda: computed.append(key) or 10 * key)  # type: ignore[func-returns-value]

    assert [of(key) for key in (1, 2, 1, 2, 3, 2, 3, 1)] == [10, 20, 10, 20, 30, 20, 30, 10]
    assert computed == [1, 2, 3, 1]


def test_a_computation_that_fails_leaves_what_is_kept() -> None:
    latest: Latest[int] = Latest()
    assert latest.of("a", lambda: 1) == 1

    def fail() -> int:
        raise ValueError("no result")

    with pytest.raises(ValueError, match="no result"):
        latest.of("b", fail)
    assert latest.of("a", fail) == 1
