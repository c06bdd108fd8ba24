"""Constraints on parameters as text: they agree with Python's own evaluation, and what is none is refused."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bkbopt.errors import ArgumentError
from bkbopt.spaces.rules import FUNCTIONS, LONGEST, Rules, are_rules

VALUES = {
    "x": None,
    "y": None,
    "n": (1, 2, 4),
    "kind": ("fast", "slow"),
    "flag": (False, True),
    "depth": None,
    "batch size": None,
    "lambda": None,
    "part.rate": None,
    "part.on": (False, True),
    "drop-out": None,
    "\u00b5": None,  # the micro sign, which Python's parser turns into a letter
    "mixed": ("a", 1, None, True),
}
POINT = {"x": 0.3, "y": 0.4, "n": 2, "kind": "fast", "flag": True, "batch size": 16, "lambda": 0.5, "\u00b5": 2.0}


def holds(rule: Any, **params: Any) -> bool:
    return Rules.of(rule, VALUES)({**POINT, **params})


Both = tuple[str, str]


def both(ours: str, theirs: str | None = None) -> Any:
    """Put parts into a form of a rule, and into one of Python: powers are those of floats."""
    return lambda *parts: (ours.format(*(p for p, _ in parts)), (theirs or ours).format(*(p for _, p in parts)))


def words(*texts: str) -> st.SearchStrategy[Both]:
    return st.sampled_from([(text, text) for text in texts])


def numbers(depth: int) -> st.SearchStrategy[Both]:
    leaves = words("x", "y", "n", "2", "0.5", "1e-3")
    if not depth:
        return leaves
    part = numbers(depth - 1)
    return st.one_of(
        leaves,
        st.builds(both("({} {} {})"), part, words("+", "-", "*", "/", "//", "%"), part),
        st.builds(both("({} ** {})", "power({}, {})"), part, part),
        st.builds(both("(-{})"), part),
        st.builds(both("{}({})"), words(*sorted(FUNCTIONS.keys() - {"max", "min"})), part),
        st.builds(both("{}({}, {})"), words("max", "min"), part, part),
    )


def conditions(depth: int) -> st.SearchStrategy[Both]:
    leaves = st.one_of(
        st.builds(both("{} {} {}"), numbers(2), words("<", "<=", ">", ">=", "==", "!="), numbers(2)),
        st.builds(both("{} <= {} < {}"), numbers(1), numbers(1), numbers(1)),
        words("kind == 'fast'", "'slow' != kind", "kind not in ('slow',)", "flag", "not flag", "n in [2, 3]"),
    )
    if not depth:
        return leaves
    part = conditions(depth - 1)
    return st.one_of(leaves, st.builds(both("({} {} {})"), part, words("and", "or"), part))


@given(conditions(2), st.floats(-3, 3), st.floats(0, 2), st.sampled_from([1, 2, 4]), st.booleans())
def test_a_rule_has_the_value_that_python_gives_it(rule: Both, x: float, y: float, n: int, flag: bool) -> None:
    ours, theirs = (f"{text} or x != x" for text in rule)  # a rule needs a parameter, which the sample may lack
    params = {**POINT, "x": x, "y": y, "n": n, "flag": flag}
    try:
        expected = bool(
            eval(theirs, {**FUNCTIONS, "power": math.pow}, {k: params[k] for k in ("x", "y", "n", "kind", "flag")})
        )
    except (ArithmeticError, ValueError):
        expected = False
    assert Rules.of(ours, VALUES)(params) is expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("`batch size` * n <= 32", True),
        ("`lambda` > 0.5", False),
        ("\u00b5 == 2", True),
        ("0.2 <= y - x <= 0.3  # a comment", False),
        ("x +\n y <= 1", True),
        ("mixed == None", True),
        ("mixed in [1, 'a']", False),
        ("kind == 'a `quoted` word' or flag", None),
        ("+".join(["x"] * 500) + " <= 150.1", True),
    ],
)
def test_names_between_backticks_chains_and_lists(rule: str, expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(ArgumentError, match="expected a value of 'kind'"):
            holds(rule)
    else:
        assert holds(rule, mixed=None) is expected


@pytest.mark.parametrize(
    "rule", ["x <= 1  # it's\n and y <= 0.1", "x <= 1 # `no name\r\nand y <= 0.1", "(x <= 1 # )\n) and y <= 0.1"]
)
def test_a_comment_ends_with_its_line(rule: str) -> None:
    assert not holds(rule)
    assert holds(rule, y=0.0)


def test_a_line_break_between_quotes_is_one_of_the_choice() -> None:
    rules = Rules.of("kind == 'a\nb'", {"kind": ("a\nb", "a b")})
    assert [rules({"kind": kind}) for kind in ("a\nb", "a b")] == [True, False]


def test_names_between_backticks_hide_no_other_name() -> None:
    values: dict[str, None] = dict.fromkeys(["a b", "__0__", "___0_", "_0_"])
    for name in list(values)[1:]:
        rules = Rules.of(f"`a b` < {name}", values)
        assert rules.names == {"a b", name}
        assert rules({**dict.fromkeys(values, 0.0), name: 1.0})


def test_names_that_differ_before_they_are_normalised_are_two() -> None:
    micro, mu = "\u00b5", "\u03bc"
    for name, other in ((micro, mu), (mu, micro)):
        assert Rules.of(f"{name} <= 1", {micro: None, mu: None})({name: 0.0, other: 2.0})
        assert Rules.of(f"{name} <= 1", {other: None}).names == {other}
    with pytest.raises(ArgumentError, match="expected names of parameters"):
        Rules.of("\ufb01 <= 1", {"\U0001d41f\U0001d422": None, "\uff46\uff49": None})  # three forms of "fi"


def test_true_is_not_the_number_one_among_choices() -> None:
    assert holds("mixed == 1", mixed=1)
    assert not holds("mixed == 1", mixed=True)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("depth <= 3", True),
        ("not depth <= 3", True),
        ("depth != 3", True),
        ("1 <= depth <= 3", True),
        ("x > 1 and depth <= 3", False),  # x = 0.3 breaks the rule whatever the depth
        ("depth <= 3 and x > 1", False),
        ("depth <= 3 and x < 1", True),
        ("depth <= 3 or x > 1", True),
        ("not (depth <= 3 or x < 1)", False),
        ("1 < x < depth", False),
        ("kind == 'fast' and not (flag and depth > 3)", True),
        ("kind == 'slow' and not (flag and depth > 3)", False),
        ("depth in [1, 2]", True),
        ("log(depth) + x <= -9", True),
    ],
)
def test_comparisons_with_an_inactive_parameter_are_neither_true_nor_false(rule: str, expected: bool) -> None:
    assert "depth" not in POINT
    assert holds(rule) is expected


@pytest.mark.parametrize("rule", ["1 / x >= 0", "log(x) <= 1", "exp(1e6 * (1 - x)) > 0", "(-1 - x) ** 0.5 < 9"])
def test_a_rule_without_a_value_does_not_hold(rule: str) -> None:
    assert not holds(rule, x=0.0)


def test_all_rules_of_a_list_must_hold() -> None:
    rules = Rules.of(["x <= 1", " y <= 1 "], VALUES)
    assert rules.texts == ("x <= 1", "y <= 1")
    assert rules.names == {"x", "y"}
    assert [rules({"x": a, "y": b}) for a, b in [(0, 0), (2, 0), (0, 2)]] == [True, False, False]
    assert rules == Rules.of(["x <= 1", "y <= 1"], VALUES) != Rules.of(["y <= 1", "x <= 1"], VALUES)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("x + y - 1", r"expected a comparison, as 'x \+ y <= 1', in place of 'x \+ y - 1'"),
        ("0.5", "expected a comparison"),
        ("", "expected a comparison, as 'x \\+ y <= 1', got the rule ''"),
        ("1 <= 2", "expected parameters .*, found none"),
        ("kindd == 'fast'", "not 'kindd', got the rule .*; do you mean 'kind'\\?$"),
        ("max <= 1", r"max is a function: max\(...\)"),
        ("kind == 'fats'", r"expected a value of 'kind' \(of \['fast', 'slow'\]\), not 'fats'"),
        ("kind <= 'slow'", "expected == or != for 'kind'"),
        ("kind == x", "expected a value of 'kind', in place of 'x'"),
        ("x == 'a'", "expected a number, or a parameter with choices, .* in place of \"'a'\""),
        ("kind in 'fast'", "expected a list behind in"),
        ("x is None", "in place of is"),
        ("x = 1", "write == for =$|write == for =\\."),
        ("x <= 1 && y <= 1", "write and for &"),
        ("(x <= 1) & (y <= 1)", "expected and, or, not"),
        ("x <= 1 | y <= 1", "expected and, or, not"),
        ("!flag", "write not for !"),
        ("x => 1", "write >= for =>"),
        ("x =< 1", "write <= for =<"),
        ("x <> 1", "write != for <>"),
        ("part.rate < 1", "expected a number, in place of 'part.rate', .*; write `part.rate` between backticks"),
        ("part.on", "expected a comparison, .*; write `part.on` between backticks"),
        ("drop-out < 1", "not 'out', .*; write `drop-out` between backticks"),
        ("x ^ 2 <= 1", r"expected \*\* for powers"),
        ("batch size <= 3", "write `batch size` between backticks"),
        ("lambda <= 3", "write `lambda` between backticks"),
        ("sin(x) <= 1", "expected functions among abs, .*, in place of 'sin\\(x\\)'"),
        ("max(x) <= 1", "expected two arguments or more of max"),
        ("abs(x, y) <= 1", "expected one argument of abs"),
        ("x.real <= 1", "expected a number, in place of 'x.real'"),
        ("().__class__ == x", "expected a number"),
        ("[i for i in x]", "expected a comparison"),
        ("x <= 1, y <= 1", "expected a comparison"),
        ("x <= (y := 1)", "expected a number"),
        ("'a' * 10 ** 9 == kind", "expected a value of 'kind'"),
        ("x <= " + "-" * 200 + "1", "levels of brackets"),
        ("x <= " + "-" * 3000 + "1", "nested too deeply|levels of brackets"),
        ("x <= 1" + " " * LONGEST, None),
        ("x <= 1 + " + "1 + " * LONGEST + "1", "characters at most"),
        ("x <= 1\0", "null"),
        ("x <= 1e999 ** 1", None),
        ("x <= 'a", "expected a comparison"),
        ("kind == {[1]: 2}", "expected a value of 'kind', in place of"),
        ("kind == '\ud800'", "surrogate"),
        ("q" * 5000 + " <= 1", "expected names of parameters"),
        ("x <= 1j", "which are no numbers"),
    ],
)
def test_what_is_no_rule_is_refused_with_what_to_write(rule: str, message: str | None) -> None:
    if message is None:
        assert holds(rule)
    else:
        with pytest.raises(ArgumentError, match=message) as caught:
            holds(rule)
        assert str(caught.value).startswith("feasible: expected ")
        assert len(str(caught.value)) < 500


def test_large_powers_and_products_take_no_time_or_memory() -> None:
    assert not holds("9 ** 9 ** 9 > x")
    assert holds("*".join(["floor(x)"] * 1000) + " > 1e308", x=1e300)  # infinite, as a product of doubles is
    assert not holds("*".join(["floor(x)"] * 1000) + " + exp(x) > 1", x=1e300)


def test_a_number_that_may_be_in_a_list_is_computed_once() -> None:
    calls: list[str] = []

    class Point(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            calls.append(name)
            return super().__getitem__(name)

    rules = Rules.of("x not in [1, 2, 3, y]", VALUES)
    assert rules(Point(POINT))
    assert calls == ["x", "y"]


def test_long_texts_are_refused_before_they_are_searched() -> None:
    with pytest.raises(ArgumentError, match="characters at most, got 4000006"):
        holds('"' + '\\"' * 2_000_000 + " <= x")


@pytest.mark.parametrize(
    ("given", "expected"), [("x", True), ([], True), (["x"], True), (len, False), ([1], False), (None, False)]
)
def test_rules_are_text_or_lists_of_text(given: Any, expected: bool) -> None:
    assert are_rules(given) is expected


def test_parameters_without_names_are_said_to_have_none() -> None:
    with pytest.raises(ArgumentError, match="this search has none with names"):
        Rules.of("x <= 1", {})
