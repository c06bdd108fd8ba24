"""Encoded columns of points whose parameters and ranges differ, and spaces inside of them."""

import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bkbopt.errors import ArgumentError
from bkbopt.spaces.encoding import Encoding, merged, real_numbers, whole_numbers
from bkbopt.spaces.space import Categorical, Float, Int, Ordinal, Space

SPACE = Space.parse(
    {
        "x": Float(-1.0, 3.0),
        "rate": Float(1e-4, 1.0, log=True),
        "share": Float(0.1, 0.9, step=0.2),
        "n": Int(1, 41, step=4),
        "width": Int(1, 1000, log=True),
        "kind": Categorical(["a", "b", None]),
        "size": Ordinal(["S", "M", "L", "XL"]),
        "k": 7,
    }
)


def keyed(parameters):
    return {parameter.column_key(name): parameter for name, parameter in parameters.items()}


def encoding_of(space):
    return Encoding(tuple(keyed(space.parameters).items()))


def internal(space, params):
    return {p.column_key(n): p.internal(params[n]) for n, p in space.items}


@st.composite
def numbers(draw, kinds=("float", "float log", "float step", "int", "int log")):
    """A numeric parameter of some kind, small enough for doubles to hold its whole numbers."""
    kind = draw(st.sampled_from(kinds))
    if kind == "float":
        low = draw(st.floats(-1e6, 1e6))
        return Float(low, low + draw(st.floats(1e-3, 1e6)))
    if kind == "float log":
        low = 10.0 ** draw(st.floats(-12, 6))
        return Float(low, low * draw(st.floats(1.1, 1e12)), log=True)
    if kind == "float step":
        step, low = draw(st.integers(1, 500)) / 100, draw(st.integers(-5000, 5000)) / 100
        return Float(low, low + step * draw(st.floats(1.01, 300)), step=step)
    if kind == "int":
        low, step = draw(st.integers(-(10**12), 10**12)), draw(st.integers(1, 50))
        return Int(low, low + step * draw(st.integers(1, 10**9)), step=step)
    low = draw(st.integers(1, 10**6))
    return Int(low, low + draw(st.integers(1, 10**6)), log=True)


#: Two parameters that share a column.
pairs = st.sampled_from([("float", "float step"), ("float log",), ("int",), ("int log",)]).flatmap(
    lambda kinds: st.tuples(numbers(kinds), numbers(kinds))
)
parameters = numbers() | st.integers(1, 6).flatmap(
    lambda n: st.sampled_from([Categorical(list("abcdef")[:n]), Ordinal(list("abcdef")[:n])])
)
spaces = st.lists(parameters, min_size=1, max_size=6).map(
    lambda ps: Space.parse({f"p{i}": parameter for i, parameter in enumerate(ps)})
)
seeds = st.integers(0, 2**32)


@given(spaces, seeds)
def test_codes_are_those_of_the_space_to_the_last_bit(space, seed):
    assume(space.dim > 0)
    params = space.decode(space.sample(17, np.random.default_rng(seed)))
    points = [internal(space, row) for row in params]
    X = encoding_of(space).encode(points)
    assert torch.equal(X, space.encode(params))
    assert torch.equal(X, torch.cat([encoding_of(space).encode([point]) for point in points]))


@given(spaces, spaces, seeds)
def test_columns_of_a_space_are_recoded_as_its_points_are_one_by_one(space, other, seed):
    wide = keyed(other.parameters)
    for key, parameter in keyed(space.parameters).items():
        wide[key] = merged(wide[key], parameter) if key in wide else parameter
    encoding, U = Encoding(tuple(wide.items())), space.sample(17, np.random.default_rng(seed))
    assert torch.equal(encoding.recoded(space, U), encoding.encode(space.internal(space.decode(U))))


@given(spaces, seeds)
def test_internal_form_gives_the_value_back(space, seed):
    for params in space.decode(space.sample(5, np.random.default_rng(seed))):
        for name, parameter in space.items:
            again = parameter.external(parameter.internal(params[name]))
            assert type(again) is type(params[name])
            assert again == params[name]


def test_internal_form_is_the_number_or_the_index_of_the_choice():
    params = {"x": 0.25, "rate": 0.1, "share": 0.3 + 1e-12, "n": 5.0, "width": 7, "kind": None, "size": "L", "k": 7}
    assert list(internal(SPACE, params).values()) == [0.25, 0.1, 0.3, 5.0, 7.0, 2.0, 2.0, 7.0]


@pytest.mark.parametrize(("name", "value"), [("x", math.nan), ("n", 2), ("kind", "c"), ("size", 3), ("k", 8)])
def test_internal_form_of_a_value_that_is_not_allowed_is_refused(name, value):
    with pytest.raises(ArgumentError, match=r"expected .*, got"):
        SPACE.parameters[name].internal(value)


def test_column_keys_hold_what_makes_another_column():
    assert list(keyed(SPACE.parameters)) == [
        "x (float)",
        "rate (float, log)",
        "share (float)",
        "n (int)",
        "width (int, log)",
        "kind of ('a', 'b', None)",
        "size in order ('S', 'M', 'L', 'XL')",
        "k (int)",
    ]


def test_columns_are_in_the_order_given_and_fixed_parameters_have_none():
    encoding = encoding_of(SPACE)
    assert list(encoding.columns) == list(keyed(SPACE.parameters))[:-1]
    assert (encoding.dim, encoding.categorical) == (7, (5,))


def test_absent_keys_are_constants_and_unknown_ones_are_ignored():
    encoding = encoding_of(SPACE)
    assert encoding.absent.tolist() == [0.5, 0.5, 0.5, 0.5, 0.5, 0.0, 0.5]
    X = encoding.encode([{}, {"x (float)": 3.0, "other (float)": 9.0}])
    assert torch.equal(X[0], encoding.absent)
    assert X[1].tolist() == [1.0, 0.5, 0.5, 0.5, 0.5, 0.0, 0.5]


@pytest.mark.parametrize("parameters", [(), (("k (int)", Int(7, 7)),)])
def test_an_encoding_without_free_parameters_has_a_constant_column(parameters):
    encoding = Encoding(parameters)
    assert (encoding.dim, encoding.categorical, encoding.columns) == (1, (), {})
    assert encoding.encode([{}, {"k (int)": 7.0}]).tolist() == [[0.5], [0.5]]
    assert encoding.encode([]).shape == (0, 1)


def test_values_outside_of_a_column_go_to_the_nearest_it_has():
    encoding = encoding_of(SPACE)
    outside = {
        "x (float)": 5.0,
        "rate (float, log)": 1e-9,
        "share (float)": 0.38,
        "n (int)": 7.5,
        "width (int, log)": 1e6,
    }
    inside = {
        "x (float)": 3.0,
        "rate (float, log)": 1e-4,
        "share (float)": 0.3,
        "n (int)": 9.0,
        "width (int, log)": 1e3,
    }
    assert torch.equal(encoding.encode([outside]), encoding.encode([inside]))


# ---------------------------------------------------------------- ranges that change


@given(pairs, seeds)
def test_merged_ranges_hold_both(pair, seed):
    one, two = pair
    assert one.column_key("p") == two.column_key("p")
    both = merged(one, two)
    assert both.low <= min(one.low, two.low)
    for parameter in (one, two):
        space = Space((("p", parameter),))
        for params in space.decode(space.sample(5, np.random.default_rng(seed))):
            assert both.locate(params["p"]) is not None


@pytest.mark.parametrize(
    ("one", "two", "both"),
    [
        (Int(1, 9, step=4), Int(5, 17, step=4), Int(1, 17, step=4)),
        (Int(1, 9, step=4), Int(2, 10, step=4), Int(1, 10)),
        (Int(1, 9, log=True), Int(5, 20, log=True), Int(1, 20, log=True)),
        (Float(0.0, 1.0, step=0.5), Float(0.0, 2.0, step=0.5), Float(0.0, 2.0)),
        (Float(0.0, 1.0, when={"a": 1}), Float(0.0, 1.0, when={"a": 1}), Float(0.0, 1.0)),
        (Categorical(["a", "b"], when={"a": 1}), Categorical(["a", "b"]), Categorical(["a", "b"])),
        (Ordinal([1, 2]), Ordinal([1, 2], when={"a": 1}), Ordinal([1, 2])),
    ],
)
def test_merged_ranges_are_the_smallest_of_their_kind(one, two, both):
    assert merged(one, two) == both
    assert merged(merged(one, two), two) == both


def test_numbers_beyond_doubles_are_searched_coarsely():
    assert merged(Float(-1e308, 0.0), Float(0.0, 1e308)) == Float(-1e300, 1e300)
    assert merged(Int(0, 2**49), Int(2**51, 2**51 + 4)) == Int(0, 2**51, step=8)
    assert whole_numbers(0, 10**18).n_values <= 2**49
    assert whole_numbers(1, 10**15, log=True) == Float(1.0, 1e15, log=True)
    assert real_numbers(0.0, 1.0, step=1e-300) == Float(0.0, 1.0)
    assert real_numbers(1e-320, 1.0, log=True) == Float(1e-300, 1.0, log=True)


# ---------------------------------------------------------------- spaces inside an encoding

WIDE = {"x": Float(-10.0, 10.0), "rate": Float(1e-6, 10.0, log=True), "n": Int(0, 100), "kind": ["a", "b", "c"]}
NARROW = {"x": Float(-1.0, 1.0), "rate": Float(1e-4, 1.0, log=True), "n": Int(10, 20), "kind": ["a", "b", "c"]}


def test_an_embedded_space_has_the_codes_of_its_points():
    encoding, narrow = encoding_of(Space.parse(WIDE)), Space.parse(NARROW)
    embedding = encoding.embedding(keyed(narrow.parameters), {})
    U = embedding.sample(50, np.random.default_rng(0))
    X = encoding.encode([embedding.point(u) for u in U])
    # The embedding is computed by another way: a few roundings.
    torch.testing.assert_close(embedding(U), X, rtol=0, atol=1e-14)
    torch.testing.assert_close(embedding.project(X), U, rtol=0, atol=1e-12)
    assert not embedding.is_whole


@given(spaces, seeds)
@settings(max_examples=50)
def test_the_space_of_all_columns_is_the_encoding_itself(space, seed):
    assume(space.dim > 0)
    encoding = encoding_of(space)
    embedding = encoding.embedding(keyed(space.parameters), {})
    assert embedding.is_whole
    U = embedding.sample(5, np.random.default_rng(seed))
    assert embedding(U) is U
    assert [embedding.point(u) for u in U] == [internal(space, params) for params in space.decode(U)]


def test_fixed_values_and_absent_ones_do_not_vary():
    encoding = encoding_of(SPACE)
    free = {"x (float)": Float(-1.0, 3.0), "n (int)": Int(9, 9)}
    embedding = encoding.embedding(free, {"kind of ('a', 'b', None)": 1.0})
    X = embedding(torch.tensor([[0.0], [1.0]], dtype=torch.float64))
    assert X.tolist() == [[0.0, 0.5, 0.5, 0.2, 0.5, 1.0, 0.5], [1.0, 0.5, 0.5, 0.2, 0.5, 1.0, 0.5]]
    assert embedding.point(torch.tensor([1.0])) == {
        "x (float)": 3.0,
        "n (int)": 9.0,
        "kind of ('a', 'b', None)": 1.0,
    }


@pytest.mark.parametrize("proposed", [{}, {"n (int)": Int(9, 9)}])
def test_without_anything_that_varies_the_only_point_is_the_base(proposed):
    encoding = encoding_of(SPACE)
    embedding = encoding.embedding(proposed, {"x (float)": 1.0})
    U = embedding.sample(3, np.random.default_rng(0))
    assert torch.equal(embedding(U), embedding.base[None])
    assert torch.equal(embedding.project(embedding(U)), torch.zeros(1, 1, dtype=torch.float64))
    assert embedding.point(U[0]) == {"x (float)": 1.0} | dict.fromkeys(proposed, 9.0)


@given(spaces, seeds)
def test_points_are_decoded_together_as_one_by_one(space, seed):
    embedding = encoding_of(space).embedding(keyed(space.parameters), {})
    U = embedding.sample(9, np.random.default_rng(seed))
    assert embedding.points(U) == [embedding.point(u) for u in U]


def test_points_outside_are_projected_on_the_space():
    encoding, narrow = encoding_of(Space.parse(WIDE)), Space.parse(NARROW)
    embedding = encoding.embedding(keyed(narrow.parameters), {})
    (outside,) = encoding.encode([internal(Space.parse(WIDE), {"x": 9.0, "rate": 1e-6, "n": 13, "kind": "b"})])
    point = embedding.point(embedding.project(outside[None])[0])
    assert list(point.values()) == [1.0, pytest.approx(1e-4), 13.0, 1.0]


def test_embedded_points_are_differentiable():
    embedding = encoding_of(Space.parse(WIDE)).embedding(keyed({"x": Float(-1.0, 1.0)}), {})
    U = torch.tensor([[0.3]], dtype=torch.float64, requires_grad=True)
    embedding(U).sum().backward()
    assert U.grad is not None
    # The range takes a tenth of the column.
    assert float(U.grad) == pytest.approx(0.1)


@pytest.mark.parametrize("proposed", [WIDE, NARROW, {"x": Float(-1.0, 1.0)}])
def test_slopes_are_pulled_back_as_by_automatic_differentiation(proposed):
    embedding = encoding_of(Space.parse(WIDE)).embedding(keyed(Space.parse(proposed).parameters), {})
    U = embedding.sample(4, np.random.default_rng(0)).requires_grad_()
    slopes = torch.randn(4, len(embedding.base), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    (expected,) = torch.autograd.grad((embedding(U) * slopes).sum(), U)
    torch.testing.assert_close(embedding.pullback(slopes), expected, rtol=1e-14, atol=0.0)


def test_a_range_that_vanishes_within_its_column_is_a_point_of_it():
    embedding = Encoding((("x (float)", Float(-1e300, 1e300)),)).embedding({"x (float)": Float(0.0, 1e-9)}, {})
    x = torch.tensor([[0.5]], dtype=torch.float64)
    assert torch.equal(embedding(embedding.project(x)), x)


def test_an_embedding_is_made_once_for_the_same_parameters_and_fixed_values():
    parameters = keyed(SPACE.parameters)
    encoding, other = Encoding(tuple(parameters.items())), {**parameters, "x (float)": Float(0.0, 2.0)}
    free = {key: p for key, p in parameters.items() if key != "n (int)"}
    assert encoding.embedding(parameters, {}) is encoding.embedding(dict(parameters), {})
    ranges = [encoding.embedding(some, {}) for some in (parameters, other)]
    assert ranges[0].key != ranges[1].key
    fixed = [encoding.embedding(free, {"n (int)": value}) for value in (1.0, 5.0, 1.0)]
    assert fixed[0] is fixed[2]
    assert fixed[0].key != fixed[1].key
    for value in range(1, 42, 4):  # more than are kept
        for x in np.linspace(-1.0, 3.0, 9):
            there = {key: p for key, p in free.items() if key != "x (float)"}
            found = encoding.embedding(there, {"n (int)": float(value), "x (float)": float(x)})
            assert found.fixed["x (float)"] == x


def test_a_copy_of_an_encoding_does_not_take_a_new_parameter_for_an_old_one_with_its_id():
    encoding = Encoding((("x (float)", Float(0.0, 4.0)),))
    new = Float(1.0, 2.0)
    encoding.embedding({"x (float)": Float(0.0, 4.0)}, {})
    copied = copy.deepcopy(encoding)
    ((names, _, fixed),) = copied._embeddings
    copied._embeddings[names, (id(new),), fixed] = copied._embeddings.popitem()[1]
    assert copied.embedding({"x (float)": new}, {}).low.item() == 0.25
