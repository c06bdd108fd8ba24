import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from bkbopt.errors import ArgumentError
from bkbopt.spaces import parsing
from bkbopt.spaces.space import Categorical, Column, Float, Int, Ordinal, Space

EPS = 2.0**-52

# ---------------------------------------------------------------- forms of a space


def test_space_is_read_from_a_dict_of_all_forms():
    space = Space.parse(
        {
            "pair": (0.0, 2.0),
            "list": ["a", "b"],
            "set": {3, 1, 2},
            "float": Float(1e-3, 1, log=True),
            "int": Int(1, 5),
            "text": "fixed",
            "number": 7,
            "real": 0.5,
            "flag": True,
            "none": None,
        }
    )
    assert space.names == ("pair", "list", "set", "float", "int", "text", "number", "real", "flag", "none")
    assert space.parameters["pair"] == Float(0.0, 2.0)
    assert space.parameters["set"] == Categorical([1, 2, 3])
    assert space.columns == (
        Column("pair", "float", None),
        Column("list", "categorical", 2),
        Column("set", "categorical", 3),
        Column("float", "float", None),
        Column("int", "int", 5),
    )
    assert (space.dim, space.categorical, space.numeric) == (5, (1, 2), (0, 3, 4))
    (params,) = space.decode(torch.zeros(1, 5))
    assert params == {
        "pair": 0.0, "list": "a", "set": 1, "float": 1e-3, "int": 1,
        "text": "fixed", "number": 7, "real": 0.5, "flag": True, "none": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "spec", [[(0.0, 1.0), (-5.0, 10.0)], [[0, 1], [-5, 10]], ((0.0, 1.0), (-5.0, 10)), np.array([[0, 1], [-5, 10]])]
)
def test_list_of_pairs_names_its_parameters_by_number(spec):
    assert Space.parse(spec) == Space.parse({"x0": (0.0, 1.0), "x1": (-5.0, 10.0)})


def test_parse_returns_a_space_as_it_is():
    space = Space.parse([(0.0, 1.0)])
    assert Space.parse(space) is space


def test_set_of_choices_has_one_order():
    assert Space.parse({"a": {"b", "a", "c"}}) == Space.parse({"a": ["a", "b", "c"]})


def test_parameters_are_read_only():
    with pytest.raises(TypeError):
        Space.parse([(0.0, 1.0)]).parameters["x0"] = Float(0, 2)


@pytest.mark.parametrize("value", [np.int64(3), np.float64(0.25), np.bool_(True), np.str_("a")])
def test_numpy_scalars_fix_python_values(value):
    (params,) = Space.parse({"p": value}).decode(torch.zeros(1, 0))
    assert type(params["p"]) is type(value.item())
    assert params["p"] == value.item()


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_non_finite_numbers_may_be_fixed_values(value):
    (params,) = Space.parse({"p": value}).decode(torch.zeros(1, 0))
    assert repr(params["p"]) == repr(value)


def test_bounds_may_be_numpy_scalars_and_whole_floats():
    assert Float(np.float32(0.5), np.int64(2)) == Float(0.5, 2.0)
    assert Int(np.int32(1), 1e3) == Int(1, 1000)


def test_space_without_free_parameters_has_one_point():
    space = Space.parse({"a": 1, "b": (2.0, 2.0), "c": Float(3, 3, step=1), "d": Int(4, 4, log=True), "e": ["only"]})
    assert (space.dim, space.cardinality, space.is_discrete) == (0, 1, True)
    expected = [{"a": 1, "b": 2.0, "c": 3.0, "d": 4, "e": "only"}]
    assert space.decode(space.all_points(1)) == expected
    assert space.encode([{}, *expected]).shape == (2, 0)
    assert space.neighbours(torch.zeros(1, 0))[0].shape == (0, 0)
    assert space.sample(3, np.random.default_rng(0)).shape == (3, 0)


def test_empty_batches_are_welcome():
    space = Space.parse({"a": (0.0, 1.0), "b": ["x", "y"], "c": Int(1, 9, log=True)})
    none = torch.zeros(0, 3, dtype=torch.float64)
    assert space.encode([]).shape == none.shape
    assert space.decode(none) == []
    assert space.snap(none).shape == none.shape


def test_a_range_is_a_parameter_of_whole_numbers():
    assert Space.parse({"n": range(1, 10, 2)}) == Space.parse({"n": Int(1, 9, step=2)})
    assert Space.parse({"n": range(10, 1, -4)}) == Space.parse({"n": Int(2, 10, step=4)})
    assert Space.parse({"n": range(3, 4)}) == Space.parse({"n": 3})
    with pytest.raises(
        ArgumentError, match=r"parameter 'n': expected a range with at least one value, got range\(3, 3\)"
    ):
        Space.parse({"n": range(3, 3)})


@pytest.fixture
def unwarned(monkeypatch):
    """A process that has not warned yet."""
    monkeypatch.setattr(parsing, "_has_warned", False)


@pytest.mark.parametrize("spec", [{"n": (1, 10)}, [(0.0, 1.0), (np.int64(1), 10)]])
def test_two_ints_bound_real_numbers_with_a_warning_that_comes_once(spec, unwarned):
    with pytest.warns(UserWarning, match=r"'(n|x1)': .* range of real numbers; write bo\.Int\(1, 10\)") as caught:
        spaces = [Space.parse(spec) for _ in range(2)]
    assert len(caught) == 1
    assert [space.items[-1][1] for space in spaces] == [Float(1.0, 10.0)] * 2


def test_a_list_of_two_floats_is_two_choices_with_a_warning_that_comes_once(unwarned):
    with pytest.warns(UserWarning, match=r"'x': \[0.0, 1.0\] is a set of two choices; write \(0.0, 1.0\)") as caught:
        spaces = [Space.parse({"x": [0.0, 1.0]}) for _ in range(2)]
    assert len(caught) == 1
    assert [space.items[0][1] for space in spaces] == [Categorical([0.0, 1.0])] * 2


@pytest.mark.parametrize("choices", [[1, 2], [1.0, 0.5], [0.0, 0.5, 1.0], [0.0, "a"], Categorical([0.0, 1.0])])
def test_other_lists_are_choices_without_a_warning(choices, unwarned):
    assert isinstance(Space.parse({"x": choices}).items[0][1], Categorical)


@pytest.mark.parametrize("spec", [{"n": (1, 10.0)}, np.array([[1, 10]]), [[1, 10]]])
def test_other_bounds_come_without_a_warning(spec, unwarned):
    assert Space.parse(spec).items[0][1] == Float(1.0, 10.0)


# ---------------------------------------------------------------- ordinals


def test_ordinals_are_encoded_as_equal_steps():
    space = Space.parse({"batch": Ordinal([16, 32, 64]), "size": Ordinal(["S", "M", "L", "XL", None])})
    assert space.columns == (Column("batch", "ordinal", 3), Column("size", "ordinal", 5))
    assert (space.categorical, space.numeric, space.cardinality) == ((), (0, 1), 15)
    X = space.encode([{"batch": 64, "size": "M"}, {"batch": 16, "size": None}])
    assert X.tolist() == [[1.0, 0.25], [0.0, 1.0]]
    assert space.decode(X + 0.1) == [{"batch": 64, "size": "M"}, {"batch": 16, "size": None}]


def test_neighbours_of_a_long_ordinal_are_near_in_its_order():
    space = Space.parse({"p": Ordinal([2**k for k in range(51)])})
    values = [p["p"] for p in space.decode(space.neighbours(torch.tensor([[0.5]]))[0])]
    assert values == [2**k for k in (20, 23, 24, 26, 27, 30)]


def test_numbers_stand_for_the_ordinal_values_that_equal_them():
    space = Space.parse({"p": Ordinal([16, 32, "big"]), "q": Ordinal([1, 1.0])})
    assert space.encode([{"p": 32.0, "q": 1.0}]).tolist() == [[0.5, 1.0]]
    for bad in ({"p": 33.0}, {"p": "16"}, {"q": Fraction(1)}, {"p": True}):
        with pytest.raises(ArgumentError, match="expected one of"):
            space.encode([{"p": 16, "q": 1} | bad])


def test_a_single_ordinal_value_is_fixed():
    assert Space.parse({"p": Ordinal(["only"])}).decode(torch.zeros(1, 0)) == [{"p": "only"}]


def test_ordinals_differ_by_order_and_from_categories():
    assert Ordinal([1, 2]) == Ordinal((1, 2))
    assert len({Ordinal([1, 2]), Ordinal([2, 1]), Categorical([1, 2])}) == 3


# ---------------------------------------------------------------- values


def test_codes_are_even_in_the_value_or_its_logarithm():
    log = {"b": Float(1e-4, 1, log=True), "d": Int(1, 100, log=True)}
    space = Space.parse({"a": (-1.0, 3.0), "c": Float(0, 1, step=0.25), **log})
    X = space.encode([{"a": 0, "b": 1e-1, "c": 0.75, "d": 10}])
    # Logarithms round: one ulp.
    torch.testing.assert_close(X, torch.tensor([[0.25, 0.75, 0.75, 0.5]], dtype=torch.float64), rtol=EPS, atol=0)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("low", "high"), [(1e-7, 0.3), (0.1, 0.7), (1.0, 1.7e308), (5e-324, 1e-320)])
def test_ends_of_a_float_are_exact(low, high, log):
    space = Space.parse({"p": Float(low, high, log=log)})
    ends = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    assert space.decode(ends) == [{"p": low}, {"p": high}]
    assert torch.equal(space.encode([{"p": low}, {"p": high}]), ends)


def test_steps_are_clean_decimals():
    space = Space.parse({"p": Float(0, 1, step=0.1)})
    values = [p["p"] for p in space.decode(space.all_points(20))]
    assert values == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


def test_step_that_seems_to_miss_high_by_rounding_reaches_it():
    assert Float(0.1, 0.3, step=0.2).n_values == 2
    assert Float(0, 0.3, step=0.1).high == 0.3
    assert Float(0, 0.35, step=0.1).high == 0.3
    assert Float(0, 1.7e308, step=1e308).high == 1e308
    assert Int(1, 10, step=4).high == 9


def test_stepped_float_from_long_decimals_keeps_its_grid_when_rebuilt():
    parameter = Float(0.1 + 0.2, 1.3, step=0.1)
    assert parameter.n_values == 11
    assert Float(parameter.low, parameter.high, step=parameter.step) == parameter


def test_values_near_the_grid_are_on_it_and_others_are_not():
    space = Space.parse({"p": Float(0, 1, step=0.1)})
    assert space.decode(space.encode([{"p": 0.1 + 0.2}, {"p": 1 + 1e-10}])) == [{"p": 0.3}, {"p": 1.0}]
    with pytest.raises(ArgumentError, match=r"plus a multiple of 0\.1"):
        space.encode([{"p": 0.3 + 1e-8}])


@pytest.mark.parametrize(
    ("parameter", "value", "expected"),
    [
        (Float(0.0, 0.3), 0.1 + 0.2, 0.3),
        (Float(0.0, 0.3), -1e-17, 0.0),
        (Float(1e-5, 0.1, log=True), math.exp(math.log(0.1)), 0.1),
        (Float(0.0, 0.3), 0.3 + 1e-10, None),
        (Float(0.0, 0.1), np.float32(0.1), None),  # 1.5e-9 above
        (Float(1e-9, 1.0, log=True), 0.99e-9, None),
        (Float(1e6, 1e6 + 0.01), 1e6 + 0.02, None),
    ],
)
def test_a_bound_that_was_rounded_on_the_way_is_the_bound(parameter, value, expected):
    assert parameter.locate(value) == expected


def test_steps_far_from_zero_accept_sums_done_in_doubles():
    low, step = 1e9 + 0.1, 1e-2
    space = Space.parse({"p": Float(low, low + 10.001, step=step)})
    sums = [low + k * step for k in range(1001)]
    assert sums != [p["p"] for p in space.decode(space.all_points(1001))]
    assert torch.equal(space.encode([{"p": value} for value in sums]), space.all_points(1001))


def test_choices_differ_by_type():
    space = Space.parse({"p": [1, True, 1.0, "1", None, math.nan, 0, False]})
    choices = space.parameters["p"].choices
    assert space.encode([{"p": choice} for choice in choices])[:, 0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert space.encode([{"p": float("nan")}, {"p": np.float64(1)}, {"p": np.bool_(False)}])[:, 0].tolist() == [5, 2, 7]
    assert Categorical([1]) != Categorical([True])
    assert Categorical([math.nan]) == Categorical([float("nan")])
    when = [{"p": nan} for nan in (math.nan, float("nan"), np.float32("nan"))]
    assert Float(0.0, 1.0, when=when[0]) == Float(0.0, 1.0, when=when[1]) == Float(0.0, 1.0, when=when[2])
    assert Categorical([1]) != [1]


def test_choices_may_be_any_objects_and_come_back_as_themselves():
    choices = [[64, 32], [64], {"a": 1}, print, (1, [2]), np.array([1, 2]), np.array([1, 2])]
    space = Space.parse({"p": choices})
    decoded = [p["p"] for p in space.decode(space.all_points(10))]
    assert all(a is b for a, b in zip(decoded, choices, strict=True))
    assert space.encode([{"p": c} for c in choices])[:, 0].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert space.encode([{"p": [64]}])[0, 0] == 1
    with pytest.raises(ArgumentError, match="expected one of"):
        space.encode([{"p": np.array([1, 2])}])
    assert hash(space) == hash(Space.parse({"p": choices}))


def test_int_accepts_whole_floats_and_numpy_scalars():
    space = Space.parse({"p": Int(0, 10)})
    X = space.encode([{"p": 3}, {"p": 3.0}, {"p": np.int8(3)}, {"p": np.float32(3)}])
    assert torch.equal(X, X[:1].expand(4, 1))


@pytest.mark.parametrize("scalar", [np.array, torch.tensor])
def test_arrays_and_tensors_without_dimensions_are_numbers(scalar):
    space = Space.parse({"x": (0.0, 1.0), "n": Int(0, 10), "o": Ordinal([1, 2, 4]), "c": [16, 32]})
    given = {"x": scalar(0.5), "n": scalar(3), "o": scalar(4), "c": scalar(32)}
    assert torch.equal(space.encode([given]), space.encode([{"x": 0.5, "n": 3, "o": 4, "c": 32}]))


def test_float_accepts_any_real_number():
    space = Space.parse({"p": (0.0, 1.0)})
    X = space.encode([{"p": Fraction(1, 2)}, {"p": np.float16(0.5)}, {"p": 0.5}])
    assert X.tolist() == [[0.5], [0.5], [0.5]]


def test_huge_integer_ranges_are_exact():
    space = Space.parse({"a": Int(0, 10**12), "b": Int(1, 10**12, log=True), "c": Int(2**60, 2**60 + 2**11, step=2**8)})
    assert space.cardinality == (10**12 + 1) * 10**12 * 9
    params = [{"a": 10**12 - 1, "b": 10**12 - 1, "c": 2**60 + 2**9}, {"a": 123456789012, "b": 2, "c": 2**60}]
    assert space.decode(space.encode(params)) == params


def test_every_value_of_the_largest_log_ints_survives():
    space = Space.parse({"p": Int(1, 9 * 10**12, log=True)})
    values = [{"p": 9 * 10**12 - k} for k in range(2000)] + [{"p": k} for k in range(1, 2000)]
    assert space.decode(space.encode(values)) == values


def test_cardinality_is_infinite_with_a_continuum():
    space = Space.parse({"a": (0.0, 1.0), "b": Int(1, 3)})
    assert space.cardinality == math.inf
    assert not space.is_discrete


def test_neighbours_on_long_grids_step_by_one_two_and_a_tenth():
    space = Space.parse({"p": Int(0, 100)})
    values = [p["p"] for p in space.decode(space.neighbours(torch.tensor([[0.5]]))[0])]
    assert values == [40, 48, 49, 51, 52, 60]
    values = [p["p"] for p in space.decode(space.neighbours(torch.tensor([[0.99]]))[0])]
    assert values == [89, 97, 98, 100]


def test_sample_is_even_over_grid_values():
    space = Space.parse({"a": Int(0, 4), "b": ["x", "y", "z"], "c": Float(0, 1, step=0.5)})
    X = space.sample(30_000, np.random.default_rng(0))
    for j, column in enumerate(space.columns):
        shares = torch.unique(X[:, j], return_counts=True)[1] / len(X)
        assert len(shares) == column.n_values
        # Five standard deviations of a share; the seed is fixed.
        assert float((shares - 1 / column.n_values).abs().max()) < 5 * 0.5 / math.sqrt(len(X))


def test_sample_repeats_with_its_generator():
    space = Space.parse({"a": (0.0, 1.0), "b": ["x", "y", "z"]})
    first = space.sample(5, np.random.default_rng(3))
    assert torch.equal(first, space.sample(5, np.random.default_rng(3)))
    assert not torch.equal(first, space.sample(5, np.random.default_rng(4)))


def test_encoded_points_may_be_float32_arrays_or_need_gradients():
    space = Space.parse({"a": (0.0, 1.0), "b": ["x", "y"]})
    X = torch.tensor([[0.5, 1.0]], dtype=torch.float64)
    read_only = X.numpy().copy()
    read_only.flags.writeable = False
    for same in (X.float(), X.clone().requires_grad_(), np.asfortranarray(X.numpy()), read_only):
        snapped = space.snap(same)
        assert not snapped.requires_grad
        assert snapped.dtype == torch.float64
        assert torch.equal(snapped, X)
        assert space.decode(same) == [{"a": 0.5, "b": "y"}]
