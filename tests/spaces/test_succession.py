"""Spaces that replace one another: the numbers and the places of listed values."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bkbopt as bo
from bkbopt.spaces.encoding import Encoding, merged
from bkbopt.spaces.space import Space
from bkbopt.spaces.succession import successor

lists = st.lists(
    st.tuples(st.permutations("abcdef"), st.integers(1, 6)).map(lambda drawn: drawn[0][: drawn[1]]),
    min_size=1,
    max_size=5,
)
kinds = st.sampled_from([bo.Categorical, bo.Ordinal])


def chain(kind, listings):
    """The spaces of one parameter with these lists, each as the successor of those before it."""
    spaces = []
    for listed in listings:
        spaces.append(successor(Space.parse({"p": kind(listed), "x": (0.0, 1.0)}), spaces))
    return spaces


def encoding_of(spaces):
    """The columns of the last space, with the numbers of all."""
    wide = dict(spaces[-1].keyed)
    for space in spaces:
        for key, parameter in space.keyed.items():
            wide[key] = merged(wide[key], parameter)
    return Encoding(tuple(wide.items()))


def places(kind, *listings):
    """The places of all values in the column, in the steps of the last list."""
    last = chain(kind, listings)[-1].parameters["p"]
    return dict(zip(last.numbering.values, last.places, strict=True))


@given(kinds, lists)
def test_a_value_has_one_number_under_one_key_in_all_lists(kind, listings):
    spaces, numbers = chain(kind, listings), {}
    for space in spaces:
        for value in space.parameters["p"].listed:
            (point,) = space.internal([{"p": value, "x": 0.5}])
            assert numbers.setdefault(value, point) == point
            assert space.external([point]) == [{"p": value, "x": 0.5}]
    assert len({tuple(point.items()) for point in numbers.values()}) == len(numbers)
    assert len(set(spaces[-1].parameters["p"].places)) == len(numbers)
    # The last space knows values of earlier lists too.
    assert [spaces[-1].external([point])[0]["p"] for point in numbers.values()] == list(numbers)


@given(kinds, lists)
def test_values_of_the_last_list_have_the_codes_of_a_first_list_up_to_the_width_of_the_column(kind, listings):
    spaces, alone = chain(kind, listings), Space.parse({"p": kind(listings[-1]), "x": (0.0, 1.0)})
    if not alone.categorical and len(listings[-1]) == 1:
        return
    params = [{"p": value, "x": 0.5} for value in listings[-1]]
    codes = encoding_of(spaces).encode(spaces[-1].internal(params))
    own = alone.parameters["p"].scale.encoded(np.arange(len(params))) if len(params) > 1 else np.zeros(1)
    column = codes[:, 0].numpy() if codes.shape[1] == 2 else np.zeros(len(params))
    everything = {value for listed in listings for value in listed}
    if kind is bo.Categorical or everything == set(listings[-1]):
        assert column.tolist() == own.tolist()
    else:
        steps = np.diff(column)
        assert steps == pytest.approx(steps[:1].repeat(len(steps)), abs=1e-12)
        assert (steps > 0.0).all()


@given(kinds, lists)
def test_the_last_space_lies_within_the_columns_of_all(kind, listings):
    spaces = chain(kind, listings)
    encoding = encoding_of(spaces)
    embedding = encoding.embedding(spaces[-1].keyed, {})
    U = embedding.sample(20, np.random.default_rng(0))
    points = [embedding.point(u) for u in U]
    assert {params["p"] for params in spaces[-1].external(points)} <= set(listings[-1])
    X = encoding.encode(points)
    torch.testing.assert_close(embedding(U), X, rtol=0, atol=1e-12)
    torch.testing.assert_close(embedding.project(X), U, rtol=0, atol=1e-12)
    assert bool(embedding.holds(X).all())
    gone = [space.internal([{"p": v, "x": 0.5}])[0] for space in spaces for v in space.parameters["p"].listed]
    gone = [point for point in gone if spaces[-1].external([point])[0]["p"] not in listings[-1]]
    assert not bool(embedding.holds(encoding.encode(gone)).any())
    assert embedding.is_whole == (encoding.dim == spaces[-1].dim and not gone)


@pytest.mark.parametrize(
    ("listings", "expected"),
    [
        (([1, 2, 4], [1, 2, 4, 8]), {1: 0, 2: 1, 4: 2, 8: 3}),
        (([1, 2, 4], [1, 2, 3, 4]), {1: 0, 2: 1, 4: 3, 3: 2}),
        (([1, 2, 4, 8], [1, 2, 8]), {1: 0, 2: 1, 4: 1.5, 8: 2}),
        ((["a", "b", "c"], ["a", "d", "c"]), {"a": 0, "b": 0.5, "c": 2, "d": 1}),  # never where another one is
        ((["a", "b", "c", "d"], ["a", "e"]), {"a": 0, "b": 0.25, "c": 0.5, "d": 0.75, "e": 1}),
        (([1, 2, 4], [2, 4, 8]), {1: -1, 2: 0, 4: 1, 8: 2}),  # a step below the lowest
        (([1, 2, 4], [1, 2], [0, 1]), {1: 1, 2: 2, 4: 3, 0: 0}),
        (([1, 2, 4], [4, 1]), {1: 1, 2: 2, 4: 0}),  # the order of the last list counts
        (([1, 2], [3, 4]), {1: -2, 2: -1, 3: 0, 4: 1}),  # nothing says where they belong
        (([1, 2], [2.0, 3]), {1: -1, 2: 0, 3: 1}),  # a number stands for one of another type
    ],
)
def test_a_value_that_left_an_ordered_list_stands_behind_the_one_that_it_followed(listings, expected):
    assert places(bo.Ordinal, *listings) == expected


def test_choices_that_left_a_list_come_after_those_that_are_in_it():
    assert places(bo.Categorical, ["a", "b", "c"], ["c", "d", "a"]) == {"a": 2, "b": 3, "c": 0, "d": 1}
    # 1 and 1.0 are two choices.
    assert chain(bo.Categorical, [[1, 2], [1.0, 2]])[-1].parameters["p"].places == (2, 1, 0)


def test_equal_lists_and_first_lists_need_no_numbers():
    first = Space.parse({"k": ["a", "b"], "s": bo.Ordinal([1, 2]), "x": (0.0, 1.0)})
    assert successor(first, ()) is first
    assert successor(first, [first]) is first
    moved = successor(Space.parse({"k": ["b", "a"]}), [first])
    assert moved.parameters["k"].numbering is not None
    assert moved != Space.parse({"k": ["b", "a"]})
    assert successor(moved, ()) == Space.parse({"k": ["b", "a"]})  # in another log it is a first list
    again = successor(Space.parse({"k": bo.Categorical(["b", "a"], when={"s": 1}), "s": bo.Ordinal([1, 2])}), [moved])
    assert again.parameters["k"].numbering == moved.parameters["k"].numbering


def test_another_kind_is_another_column_and_a_gap_in_between_changes_nothing():
    spaces = [Space.parse({"k": ["a", "b"], "x": (0.0, 1.0)})]
    for spec in ({"k": bo.Ordinal(["a", "b"])}, {"x": (0.0, 1.0)}, {"k": ["b"]}):
        spaces.append(successor(Space.parse(spec), spaces))
    assert spaces[1].internal([{"k": "b"}]) == [{"k in order ('a', 'b')": 1.0}]
    assert spaces[3].internal([{"k": "b"}]) == [{"k of ('a', 'b')": 1.0}]


def test_conditions_hold_by_value():
    first = Space.parse({"k": ["a", "b"], "x": bo.Float(0.0, 1.0, when={"k": "b"})})
    second = successor(Space.parse({"k": ["b", "c"], "x": bo.Float(0.0, 1.0, when={"k": "b"})}), [first])
    old, gone = first.internal([{"k": "b", "x": 0.5}, {"k": "a"}])
    assert second.active_part(old) == old
    assert second.free_in(gone) == {}  # no condition on "a" holds here
    assert second.conditions == {"x": {"k": (1.0,)}}
    assert second.settings(10) == [{"k of ('a', 'b')": 1.0}, {"k of ('a', 'b')": 2.0}]
