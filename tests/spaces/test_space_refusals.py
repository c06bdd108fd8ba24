import json
import math

import numpy as np
import optuna
import pytest
import torch

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.space import Categorical, Float, Int, Ordinal, Space


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Float(1, 0), ArgumentError, r"low <= high.*low=1\.0, high=0\.0"),
        (lambda: Float(math.nan, 1), ArgumentError, "low: expected a finite number, got nan"),
        (lambda: Float(0, math.inf), ArgumentError, "high: expected a finite number, got inf"),
        (lambda: Float(0, 10**400), ArgumentError, "high: expected a finite number, got a whole number of 1329 bits"),
        (lambda: Float(-(10**400), 0), ArgumentError, "low: expected a finite number"),
        (lambda: Float(-1e308, 1e308), ArgumentError, "high - low is finite"),
        (lambda: Float(1e-200, 1e200, log=True), ArgumentError, "high / low is finite"),
        (lambda: Float(0, 1, log=True), ArgumentError, "low: expected a positive number with log=True, got 0"),
        (lambda: Float(1, 2, log=True, step=0.5), ArgumentError, "not both, got step=0.5"),
        (lambda: Float(0, 1, step=0), ArgumentError, "step: expected a positive number, got 0"),
        (lambda: Float(0, 0, step=0), ArgumentError, "step: expected a positive number, got 0"),
        (lambda: Float(0, 1, step=-0.1), ArgumentError, r"step: expected a positive number, got -0\.1"),
        (lambda: Float(0, 0, step=-0.1), ArgumentError, r"step: expected a positive number, got -0\.1"),
        (lambda: Float(0, 1, step=2), ArgumentError, r"step: expected at most high - low = 1\.0, got 2\.0"),
        (lambda: Float(0, 1, step=math.nan), ArgumentError, "step: expected a finite number"),
        (lambda: Float(1e9, 1e9 + 1, step=1e-7), ArgumentError, "leave step out"),
        (lambda: Float(0, 1, step=1e-300), ArgumentError, "leave step out"),
        (lambda: Float("0", 1), ArgumentTypeError, "low: expected a number, got '0' of type str"),
        (lambda: Float(0, True), ArgumentTypeError, "high: expected a number, got True of type bool"),
        (lambda: Float(0, np.bool_(True)), ArgumentTypeError, "high: expected a number"),
        (lambda: Float(0, 1j), ArgumentTypeError, "high: expected a number"),
        (lambda: Float(None, 1), ArgumentTypeError, "low: expected a number, got None"),
        (lambda: Float(0.1, 1, log=1), ArgumentTypeError, "log: expected True or False, got 1"),
        (lambda: Int(2, 1), ArgumentError, "low <= high.*low=2, high=1"),
        (lambda: Int(0.5, 1), ArgumentError, r"low: expected a whole number, got 0\.5"),
        (lambda: Int(0, math.nan), ArgumentError, "high: expected a whole number, got nan"),
        (lambda: Int(0, math.inf), ArgumentError, "high: expected a whole number, got inf"),
        (lambda: Int(0, 10**5000), ArgumentError, "high: .*range of doubles, got a whole number of 16610 bits"),
        (lambda: Int(False, 1), ArgumentTypeError, "low: expected a number, got False"),
        (lambda: Int(0, "9"), ArgumentTypeError, "high: expected a number, got '9'"),
        (lambda: Int(0, 9, log=True), ArgumentError, "low: expected a positive number with log=True, got 0"),
        (lambda: Int(1, 9, log=True, step=2), ArgumentError, "step 1 with log=True, got 2"),
        (lambda: Int(1, 9, step=0), ArgumentError, "step: expected a positive number, got 0"),
        (lambda: Int(1, 9, step=-1), ArgumentError, "step: expected a positive number, got -1"),
        (lambda: Int(1, 9, step=9), ArgumentError, "step: expected at most high - low = 8, got 9"),
        (lambda: Int(0, 10**300), ArgumentError, "larger step, a Float"),
        (lambda: Int(1, 10**14, log=True), ArgumentError, "larger step, a Float"),
        (lambda: Int(1, 10**20, log=True), ArgumentError, "larger step, a Float"),
        (lambda: Int(1, 10**300, log=True), ArgumentError, "larger step, a Float"),
        (lambda: Int(2**60, 2**60 + 5), ArgumentError, "the difference from low"),
        (lambda: Int(2**53 + 1, 2**53 + 1), ArgumentError, "doubles can tell apart"),
        (lambda: Int(-(2**54), 1 - 2**54), ArgumentError, "doubles can tell apart"),
        (lambda: Categorical([]), ArgumentError, "choices: expected at least one value"),
        (lambda: Categorical(["a", "b", "a"]), ArgumentError, "choices: expected distinct values, got 'a' twice"),
        (lambda: Categorical([math.nan, float("nan")]), ArgumentError, "got nan twice"),
        (lambda: Categorical([[1], [2], [1]]), ArgumentError, r"got \[1\] twice"),
        (lambda: Categorical([np.int64(1), 1]), ArgumentError, "got 1 twice"),
        (lambda: Categorical("abc"), ArgumentTypeError, "choices: expected a list of values, got 'abc'"),
        (lambda: Categorical({"a": 1}), ArgumentTypeError, "choices: expected a list of values"),
        (lambda: Categorical(3), ArgumentTypeError, "choices: expected a list of values, got 3"),
        (lambda: Ordinal([]), ArgumentError, "values: expected at least one value"),
        (lambda: Ordinal(["a", "a"]), ArgumentError, "values: expected distinct values, got 'a' twice"),
        (lambda: Ordinal("abc"), ArgumentTypeError, "values: expected a list of values, got 'abc'"),
        (lambda: Ordinal({1, 2}), ArgumentTypeError, "values: expected a list, in order, got a set"),
    ],
)
def test_parameter_refuses(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ({"x": (0.0, 1.0)}, r"^items: expected a tuple of pairs .* of type dict: .* with Space\.parse"),
        ([(0.0, 1.0)], r"^items: expected a tuple of pairs .* of type list: .* with Space\.parse"),
        (("x",), r"^items: expected a tuple of pairs .* of type tuple: .* with Space\.parse"),
        ((("x", (0.0, 1.0)),), r"^items: expected for 'x' a Float, .* of type tuple: Space\.parse reads other forms"),
    ],
)
def test_other_forms_than_pairs_of_names_and_parameters_are_for_parse(items: object, message: str) -> None:
    with pytest.raises(ArgumentTypeError, match=message):
        Space(items)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ({}, ArgumentError, "at least one parameter"),
        ([], ArgumentError, "at least one parameter"),
        (None, ArgumentTypeError, "expected a dict of parameters .* got None of type NoneType"),
        ("x", ArgumentTypeError, "expected a dict of parameters"),
        ({1: (0.0, 1.0)}, ArgumentTypeError, "names that are strings, got 1"),
        ({"lr": (1.0, 0.0)}, ArgumentError, "parameter 'lr': expected low <= high"),
        ({"lr": ("a", "b")}, ArgumentTypeError, "parameter 'lr': low: expected a number, got 'a'"),
        ({"lr": (0, 1, 2)}, ArgumentError, r"parameter 'lr': expected a pair \(low, high\), got \(0, 1, 2\)"),
        ({"lr": []}, ArgumentError, "parameter 'lr': choices: expected at least one value"),
        ({"lr": object}, ArgumentTypeError, "parameter 'lr': expected a Float, Int"),
        ({"lr": {"low": 0}}, ArgumentTypeError, "parameter 'lr': expected a Float, Int"),
        ({"lr": 1j}, ArgumentTypeError, "parameter 'lr': expected a Float, Int"),
        ({"lr": b"ab"}, ArgumentTypeError, "parameter 'lr': expected a Float, Int"),
        (
            {"lr": np.array(["a", "b"])},
            ArgumentTypeError,
            r"'lr': expected a list .* got ndarray; pass bo\.Categorical",
        ),
        ({"lr": (c for c in "ab")}, ArgumentTypeError, r"got generator; pass .* if they have an order, bo\.Ordinal"),
        ([(0.0, 1.0), 3], ArgumentTypeError, r"parameter 'x1': expected a pair \(low, high\), got 3"),
        ((0, 1), ArgumentTypeError, r"parameter 'x0': expected a pair \(low, high\), got 0"),
        ([(0.0, 1.0), (0, math.nan)], ArgumentError, "parameter 'x1': high: expected a finite number"),
        (np.zeros(3), ArgumentTypeError, "parameter 'x0': expected a pair"),
        ({"lr": optuna.distributions.FloatDistribution(0, math.inf)}, ArgumentError, "parameter 'lr': high"),
    ],
)
def test_parse_refuses_and_names_the_parameter(spec, error, message):
    with pytest.raises(error, match=message):
        Space.parse(spec)


SPACE = Space.parse({"x": (0.0, 1.0), "n": Int(1, 9, step=2), "s": Float(0, 1, step=0.5), "c": ["a", "b"], "fix": 3})
GOOD = {"x": 0.5, "n": 3, "s": 0.5, "c": "a", "fix": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": 1.1}, r"parameter 'x' in row 1: expected a number in \[0\.0, 1\.0\], got 1\.1"),
        ({"x": math.nan}, r"'x'.*got nan"),
        ({"x": math.inf}, r"'x'.*got inf"),
        ({"x": 10**400}, r"'x'.*got a whole number of 1329 bits"),
        ({"x": "0.5"}, r"'x'.*got '0\.5'"),
        ({"x": None}, r"'x'.*got None"),
        ({"x": True}, r"'x'.*got True"),
        ({"x": 0.5j}, r"'x'.*got 0\.5j"),
        ({"x": torch.tensor([0.5])}, r"'x'.*got tensor"),
        ({"n": 4}, r"'n'.*expected a whole number in \[1, 9\] that is 1 plus a multiple of 2, got 4"),
        ({"n": 0}, r"'n'.*got 0"),
        ({"n": 11}, r"'n'.*got 11"),
        ({"n": 3.5}, r"'n'.*got 3\.5"),
        ({"n": math.nan}, r"'n'.*got nan"),
        ({"n": -math.inf}, r"'n'.*got -inf"),
        ({"n": np.bool_(True)}, r"'n'.*got .*True"),
        ({"n": "3"}, r"'n'.*got '3'"),
        ({"s": 0.6}, r"'s'.*that is 0\.0 plus a multiple of 0\.5, got 0\.6"),
        ({"s": 1.5}, r"'s'.*got 1\.5"),
        ({"s": -0.5}, r"'s'.*got -0\.5"),
        ({"s": math.nan}, r"'s'.*got nan"),
        ({"s": "x"}, r"'s'.*got 'x'"),
        ({"c": "d"}, r"'c'.*expected one of 'a', 'b' .*got 'd'"),
        ({"c": ["a"]}, r"'c'.*got \['a'\]"),
        ({"fix": 4}, r"'fix'.*expected the fixed value 3, got 4"),
        ({"more": 1}, r"values for 'c', 'fix', 'n', 's', 'x' in row 1, got unknown 'more'"),
    ],
)
def test_encode_refuses_and_names_the_parameter(change, message):
    with pytest.raises(ArgumentError, match=message):
        SPACE.encode([GOOD, GOOD | change])


@pytest.mark.parametrize("name", ["x", "n", "s", "c"])
def test_encode_refuses_missing_names(name):
    point = {key: value for key, value in GOOD.items() if key != name}
    with pytest.raises(ArgumentError, match=rf"expected values for [^:]*'x', got nothing for '{name}'$"):
        SPACE.encode([point])
    with pytest.raises(ArgumentError, match=f"in row 1, got nothing for '{name}'"):
        SPACE.encode([GOOD, point])


def test_the_row_of_a_value_is_named_among_several():
    pool = bo.Optimizer([[0.0], [1.0]], seed=0)
    for wrong, message in (({"x0": "a"}, r"^params: row 1: "), ({"x1": 0.0}, "in row 1, got unknown 'x1'")):
        with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
            pool.tell([{"x0": 0.0}, wrong], [1.0, 2.0])
        with pytest.raises((ArgumentError, ArgumentTypeError)) as caught:
            pool.tell(wrong, 1.0)
        assert "row" not in str(caught.value).replace("a row", "")


def test_both_names_of_a_misspelt_one_are_named():
    misspelt = {{"n": "N"}.get(key, key): value for key, value in GOOD.items()}
    with pytest.raises(ArgumentError, match=r", got unknown 'N' and nothing for 'n'$"):
        SPACE.encode([misspelt])


def test_encode_lets_fixed_values_be_left_out():
    short = {key: value for key, value in GOOD.items() if key != "fix"}
    assert torch.equal(SPACE.encode([short]), SPACE.encode([GOOD]))


@pytest.mark.parametrize("rows", [GOOD, "abc", 3, None, ["abc"], [GOOD, None]])
def test_encode_refuses_what_is_no_list_of_dicts(rows):
    with pytest.raises(ArgumentTypeError, match=r"params(_list)?: expected"):
        SPACE.encode(rows)


@pytest.mark.parametrize("call", [SPACE.decode, SPACE.canonical, SPACE.snap, SPACE.from_unit, SPACE.neighbours])
@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (torch.zeros(3, 3), ArgumentError, r"expected shape \(n, 4\), got \(3, 3\)"),
        (torch.zeros(4), ArgumentError, r"expected shape \(n, 4\), got \(4,\)"),
        (torch.full((2, 4), math.nan), ArgumentError, r"expected finite numbers, got nan at \[0, 0\]"),
        (torch.full((2, 4), math.inf), ArgumentError, "expected finite numbers, got inf"),
        ([[0.0] * 4], ArgumentTypeError, "expected a tensor of real numbers"),
        (np.array([["a"] * 4]), ArgumentTypeError, "expected a tensor of real numbers"),
        (torch.zeros(1, 4, dtype=torch.complex128), ArgumentTypeError, "expected a tensor of real numbers"),
    ],
)
def test_encoded_points_are_checked(call, X, error, message):
    with pytest.raises(error, match=message):
        call(X)


@pytest.mark.parametrize(("n", "error"), [(-1, ArgumentError), (1.5, ArgumentTypeError), (True, ArgumentTypeError)])
def test_sample_refuses_bad_counts(n, error):
    with pytest.raises(error, match="n: expected"):
        SPACE.sample(n, np.random.default_rng(0))


@pytest.mark.parametrize("limit", [10, math.inf])
def test_all_points_refuses_a_continuum(limit):
    with pytest.raises(ArgumentError, match="got one of inf"):
        SPACE.all_points(limit)


def test_all_points_refuses_more_than_the_limit():
    with pytest.raises(ArgumentError, match="at most 9 points, got one of 10"):
        Space.parse({"p": Int(1, 10)}).all_points(9)


@pytest.mark.parametrize("choice", [(1, 2), [1], print, 1j, np.array([1])])
def test_choices_that_are_no_json_scalars_cannot_be_saved(choice):
    with pytest.raises(ArgumentError, match="parameter 'p': expected choices that can be saved"):
        Space.parse({"p": [choice, "other"]}).to_dict()


def test_choices_without_a_word_in_json_are_saved_as_words():
    space = Space.parse({"p": [math.nan, math.inf, -math.inf, "nan", 1, 1.0, True, None]})
    text = json.dumps(space.to_dict(), allow_nan=False)
    assert Space.from_dict(json.loads(text)) == space


ENTRY = {"name": "p", "type": "float", "low": 0.0, "high": 1.0, "log": False, "step": None}


@pytest.mark.parametrize(
    "description",
    [
        None,
        [],
        {},
        {"parameters": None},
        {"parameters": []},
        {"parameters": [3]},
        {"parameters": [{}]},
        {"parameters": [{"name": "p", "type": "other"}]},
        {"parameters": [ENTRY | {"type": ["float"]}]},
        {"parameters": [ENTRY | {"name": 3}]},
        {"parameters": [ENTRY | {"low": "0"}]},
        {"parameters": [ENTRY | {"low": 2}]},
        {"parameters": [ENTRY | {"more": 2}]},
        {"parameters": [ENTRY, ENTRY]},
        {"parameters": [{key: value for key, value in ENTRY.items() if key != "step"}]},
        {"parameters": [{"name": "p", "type": "categorical", "choices": "ab"}]},
        {"parameters": [{"name": "p", "type": "categorical", "choices": [{"float": "1"}]}]},
        {"parameters": [{"name": "p", "type": "categorical", "choices": [[1]]}]},
        {"parameters": [{"name": "p", "type": "ordinal", "choices": [1, 2]}]},
        {"parameters": [{"name": "p", "type": "ordinal", "values": "ab"}]},
        {"parameters": [ENTRY | {"when": 3}]},
    ],
)
def test_from_dict_refuses_foreign_descriptions(description):
    with pytest.raises((ArgumentError, ArgumentTypeError)):
        Space.from_dict(description)
