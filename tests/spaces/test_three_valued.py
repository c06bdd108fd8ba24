"""Combinations of conditions that may be neither true nor false: Kleene's tables, as SQL has them."""

import itertools
from typing import Any

import pytest

from bkbopt.spaces.three_valued import combined, if_active, inverted

#: In ascending order.
ORDER = [False, None, True]


def given(answer: Any) -> Any:
    return lambda params: answer


@pytest.mark.parametrize("answers", list(itertools.product(ORDER, repeat=3)))
def test_and_is_the_smallest_of_the_answers_and_or_the_largest(answers: tuple[Any, ...]) -> None:
    reads, places = list(map(given, answers)), list(map(ORDER.index, answers))
    assert combined(reads, False)({}) is ORDER[min(places)]
    assert combined(reads, True)({}) is ORDER[max(places)]


@pytest.mark.parametrize("answer", ORDER)
def test_the_negation_of_neither_is_neither(answer: Any) -> None:
    assert inverted(given(answer))({}) is ORDER[2 - ORDER.index(answer)]


def test_what_comes_after_the_answer_that_decides_is_not_read() -> None:
    assert combined([given(None), given(False), lambda params: 1 / 0], False)({}) is False
    assert combined([given(None), given(True), lambda params: 1 / 0], True)({}) is True


def test_a_parameter_that_is_missing_is_inactive() -> None:
    assert if_active(lambda params: params["x"] < 1)({"x": 2}) is False
    assert if_active(lambda params: params["x"] < 1)({}) is None
