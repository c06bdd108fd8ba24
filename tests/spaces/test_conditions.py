"""Parameters that are active only at some values of others."""

import copy
import itertools
import json
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.spaces.encoding import Encoding
from bkbopt.spaces.space import Categorical, Float, Int, Ordinal, Space

SVM = {
    "degree": Int(2, 5, when={"kernel": "poly"}),  # a child may come before its parents
    "model": ["svm", "gp", "tree"],
    "kernel": Categorical(["linear", "poly", "rbf"], when={"model": ["svm", "gp"]}),
    "gamma": Float(1e-3, 1.0, log=True, when={"kernel": ("poly", "rbf"), "model": "svm"}),
    "depth": Int(1, 6, when={"model": "tree"}),
    "leaf": Ordinal([1, 2, 4], when={"depth": [3, 4, 5, 6]}),
    "x": (0.0, 1.0),
    "k": 3,
}
SPACE = Space.parse(SVM)
POINTS = [
    {"model": "svm", "kernel": "poly", "degree": 3, "gamma": 0.1, "x": 0.5, "k": 3},
    {"model": "svm", "kernel": "linear", "x": 0.5, "k": 3},
    {"model": "gp", "kernel": "rbf", "x": 0.5, "k": 3},
    {"model": "gp", "kernel": "poly", "degree": 2, "x": 0.5, "k": 3},
    {"model": "tree", "depth": 2, "x": 0.5, "k": 3},
    {"model": "tree", "depth": 3, "leaf": 4, "x": 0.5, "k": 3},
]

# ---------------------------------------------------------------- random conditional spaces

names = [f"p{i}" for i in range(6)]


@st.composite
def discrete_spaces(draw):
    """Small conditional spaces: each parameter may be under any of those before it."""
    spec = {}
    for i, name in enumerate(names[: draw(st.integers(1, 6))]):
        parents = draw(st.lists(st.sampled_from(names[:i]), unique=True, max_size=2)) if i else []
        when = {}
        for parent in parents:
            values = [spec[parent].value(k) for k in range(spec[parent].n_values)] if spec[parent].n_values > 1 else [7]
            when[parent] = draw(st.lists(st.sampled_from(values), min_size=1, unique=True))
        make = draw(st.sampled_from([Int, Categorical, Ordinal]))
        n = draw(st.integers(1, 3))
        if make is Int:
            spec[name] = Int(7, 6 + n, when=when or None)
        else:
            spec[name] = make([7, *"abc"][:n], when=when or None)
    order = draw(st.permutations(list(spec)))
    return Space(tuple((name, spec[name]) for name in order))


def every_point(space):
    """All points, by trying every combination of values of all parameters."""
    found = []
    values = [[p.external(number) for number in p.internal_values] for _, p in space.items]
    for row in itertools.product(*values):
        point = dict(zip(space.names, row, strict=True))
        active = set()
        for _ in space.names:
            active = {
                name
                for name, p in space.items
                if all(parent in active and point[parent] in allowed for parent, allowed in (p.when or {}).items())
            }
        point = {name: value for name, value in point.items() if name in active}
        if point not in found:
            found.append(point)
    return found


@given(discrete_spaces())
@settings(max_examples=60)
def test_points_of_a_conditional_space_are_those_found_by_trying_all(space):
    expected = every_point(space)
    assert space.cardinality == len(expected)
    X = space.all_points(len(expected))
    decoded = space.decode(X)
    assert len(decoded) == len(expected)
    assert all(point in expected for point in decoded)
    assert torch.equal(space.encode(decoded), X)
    assert torch.equal(space.snap(X), X)
    assert len(set(map(tuple, X.tolist()))) == len(expected)
    for point in expected:
        assert space.active(point) == tuple(point)


def test_canonical_points_of_a_conditional_space_have_constants_where_a_parameter_is_not_active():
    under = {"kind": ["a", "b"]}
    space = Space.parse({"x": Float(-1.0, 7.0), "kind": ["a", "b", "c"], "y": Float(2.0, 9.0, when=under)})
    X = torch.tensor(np.random.default_rng(0).uniform(-0.1, 2.4, (50, 3)))
    found = space.canonical(X)
    assert torch.equal(found, space.encode(space.decode(X)))
    assert len(set(found[found[:, 1] == 2.0, 2].tolist())) == 1


@given(discrete_spaces(), st.integers(0, 2**32))
@settings(max_examples=60)
def test_samples_snapped_points_and_neighbours_are_points(space, seed):
    rng = np.random.default_rng(seed)
    expected = every_point(space)
    X = space.sample(5, rng)
    assert torch.equal(space.encode(space.decode(X)), X)
    for x in X:
        near = space.neighbours(x[None])[0]
        assert all(point in expected for point in space.decode(near))
        assert not bool((near == x).all(1).any())
        assert torch.equal(space.snap(near), near)
    assert torch.equal(space.neighbours(X)[0], torch.cat([space.neighbours(x[None])[0] for x in X]))


@given(discrete_spaces(), st.data())
@settings(max_examples=60)
def test_settings_split_the_points_into_branches(space, data):
    found = space.settings(10_000)
    count = 0
    for setting in found:
        free = space.free_in(setting)
        count += math.prod(parameter.n_values for parameter in free.values())
        assert not set(free) & set(setting)
    assert count == space.cardinality
    assert space.settings(len(found)) == found
    assert len(found) == 1 or space.settings(len(found) - 1) is None
    # Held values keep the settings at which they are active and the same.
    (point,) = space.internal([data.draw(st.sampled_from(every_point(space)))])
    held = {key: point[key] for key in data.draw(st.sets(st.sampled_from(sorted(point))))}
    kept = [
        s for s in found if held.keys() <= s.keys() | space.free_in(s).keys() and {**s, **held}.items() >= s.items()
    ]
    assert space.settings(10_000, held) == kept
    assert kept


@given(discrete_spaces(), st.integers(0, 2**32))
@settings(max_examples=60)
def test_descriptions_copies_and_internal_points_come_back(space, seed):
    assert Space.from_dict(json.loads(json.dumps(space.to_dict()))) == space
    assert pickle.loads(pickle.dumps(space)) == space == copy.deepcopy(space)
    points = space.decode(space.sample(5, np.random.default_rng(seed)))
    assert space.external(space.internal(points)) == points


# ---------------------------------------------------------------- points


def test_points_have_their_active_parameters_only():
    X = SPACE.encode(POINTS)
    assert SPACE.decode(X) == [pytest.approx(point) for point in POINTS]
    assert [SPACE.active(point) for point in POINTS] == [
        tuple(name for name in SPACE.names if name in point) for point in POINTS
    ]
    fewer = [{name: value for name, value in point.items() if name != "k"} for point in POINTS]
    assert torch.equal(SPACE.encode(fewer), X)
    assert SPACE.internal(fewer) == SPACE.internal(POINTS)


def test_inactive_columns_hold_the_constant_of_an_encoding_without_them():
    points = SPACE.internal(POINTS)
    items = {p.column_key(name): p for name, p in SPACE.items}
    assert torch.equal(Encoding(tuple(items.items())).encode(points), SPACE.encode(POINTS))
    assert SPACE.encode(POINTS)[4].tolist() == [0.5, 2.0, 0.0, 0.5, 0.2, 0.5, 0.5]


def test_a_space_says_what_its_conditions_are():
    assert SPACE.is_conditional
    assert SPACE.switches == ("model", "kernel", "depth")
    assert SPACE.conditions == {
        "degree": {"kernel": (1.0,)},
        "kernel": {"model": (0.0, 1.0)},
        "gamma": {"kernel": (1.0, 2.0), "model": (0.0,)},
        "depth": {"model": (2.0,)},
        "leaf": {"depth": (3.0, 4.0, 5.0, 6.0)},
    }
    plain = Space.parse({"x": (0.0, 1.0), "n": Int(1, 5)})
    assert (plain.is_conditional, plain.switches, plain.conditions) == (False, (), {})
    assert plain.settings(1) == [{}]
    assert list(plain.free_in({})) == ["x (float)", "n (int)"]
    assert plain.active({}) == ("x", "n")


def test_settings_hold_switches_that_are_active():
    found = SPACE.settings(12)
    assert [list(setting.values()) for setting in found[:4]] == [[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [1.0, 0.0]]
    assert len(found) == 12
    assert SPACE.settings(11) is None
    assert list(SPACE.free_in(found[1])) == ["degree (int)", "gamma (float, log)", "x (float)", "k (int)"]


def test_held_values_choose_the_settings():
    at = SPACE.fixed({"leaf": 2})
    assert [list(setting.values()) for setting in SPACE.settings(100, at)] == [[2.0, d] for d in (3.0, 4.0, 5.0, 6.0)]
    at = SPACE.fixed({"kernel": "rbf"})
    assert [list(setting.values()) for setting in SPACE.settings(100, at)] == [[0.0, 2.0], [1.0, 2.0]]
    assert SPACE.fixed({"gamma": 0.1, "x": 1}) == {"gamma (float, log)": 0.1, "x (float)": 1.0}


def test_many_independent_switches_are_counted_without_listing_them():
    spec = {f"s{i}": [True, False] for i in range(40)} | {f"c{i}": Int(1, 5, when={f"s{i}": True}) for i in range(40)}
    assert Space.parse(spec).cardinality == 6**40
    assert Space.parse(spec).settings(1000) is None
    under_one = {"root": ["on", "off"]} | {
        name: (Categorical(p, when={"root": "on"}) if isinstance(p, list) else p) for name, p in spec.items()
    }
    assert Space.parse(under_one).cardinality == 6**40 + 1
    of_all = {f"s{i}": [True, False] for i in range(40)} | {"c": Int(1, 5, when={f"s{i}": True for i in range(40)})}
    assert Space.parse(of_all).cardinality == 2**40 + 4


def test_a_continuum_that_is_never_active_adds_no_points():
    space = Space.parse(
        {"a": ["u", "v"], "b": Categorical(["u", "v"], when={"a": "u"}), "c": Float(0, 1, when={"a": "v", "b": "u"})}
    )
    assert space.cardinality == 3
    assert SPACE.cardinality == math.inf


def test_parameters_that_become_active_among_neighbours_are_mid_range():
    (x,) = SPACE.encode(POINTS[4:5])
    near = SPACE.decode(SPACE.neighbours(x[None])[0])
    assert {"model": "svm", "kernel": "linear", "x": 0.5, "k": 3} in near
    assert {"model": "tree", "depth": 4, "leaf": 2, "x": 0.5, "k": 3} in near


def test_conditions_may_be_on_fixed_parameters_and_steps():
    space = Space.parse(
        {"model": "svm", "c": Float(0, 1, step=0.25), "x": Float(0, 1, when={"model": "svm", "c": 0.5})}
    )
    assert space.encode([{"c": 0.5, "x": 0.1}, {"c": 0.25}]).tolist() == [[0.5, 0.1], [0.25, 0.5]]
    assert space.internal([{"c": 0.25}]) == [{"model of ('svm',)": 0.0, "c (float)": 0.25}]


def test_a_condition_is_shown_and_compared():
    assert (
        repr(Float(0.0, 1.0, when={"a": "b"})) == "Float(low=0.0, high=1.0, log=False, step=None, when={'a': ('b',)})"
    )
    assert repr(Ordinal([1, 2])) == "Ordinal(values=(1, 2))"
    for make in (lambda **k: Float(0, 1, **k), lambda **k: Categorical(["a", "b"], **k)):
        assert make(when={"a": ["b"]}) == make(when={"a": "b"})
        assert make(when={"a": "b"}) != make()


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("when", "error", "message"),
    [
        ("svm", ArgumentTypeError, "when: expected a dict such as"),
        ({}, ArgumentError, "when: expected the name of a parameter and its values, got an empty dict"),
        ({"a": []}, ArgumentError, "when: expected at least one value of 'a'"),
        ({1: "a"}, ArgumentTypeError, "when: expected names of parameters, got 1"),
    ],
)
def test_a_parameter_refuses_what_is_no_condition(when, error, message):
    for make in (lambda: Float(0, 1, when=when), lambda: Int(0, 1, when=when), lambda: Ordinal([1, 2], when=when)):
        with pytest.raises(error, match=message):
            make()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"x": {"modle": "a"}}, r"parameter 'x': when: expected names of other parameters \('m', 'n'\), got 'modle'"),
        ({"x": {"x": 0.5}}, "parameter 'x': when: expected other parameters, got 'x' itself; leave it out"),
        ({"x": {"n": 0.5}}, "'x': when: .* at most 1000 values, got 'n', a number in .*; make 'n' an Int, Ordinal"),
        ({"x": {"m": "c"}}, "'x': when: expected values that 'm' can have, one of 'a', 'b'.*, got 'c'; leave it out"),
        ({"x": {"m": ["a", True]}}, "got True"),
        ({"x": {"m": range(2, 4)}}, r"got range\(2, 4\); pass a list of its values\.$"),
        ({"x": {"m": lambda m: m == "a"}}, r"got <function .*; pass a list of its values\.$"),
        ({"m": {"y": 1}, "y": {"m": "a"}}, "expected conditions .* got a circle: 'm' under 'y' under 'm'; remove one"),
        ({"x": {"m": "a"}, "m": {"y": 1}, "y": {"m": "a"}}, "a circle: 'm' under 'y' under 'm'"),
    ],
)
def test_a_space_refuses_conditions_that_cannot_be(spec, message):
    made = {
        "x": Float(0, 1, when=spec.get("x")),
        "m": Categorical(["a", "b"], when=spec.get("m")),
        "n": Float(0, 1),
    } | ({"y": Int(1, 2, when=spec["y"])} if "y" in spec else {})
    with pytest.raises(ArgumentError, match=message):
        Space.parse(made)


def test_a_parent_of_too_many_values_is_refused():
    with pytest.raises(ArgumentError, match="at most 1000 values, got 'n'"):
        Space.parse({"n": Int(1, 1001), "x": Float(0, 1, when={"n": 3})})
    assert Space.parse({"n": Int(1, 1000), "x": Float(0, 1, when={"n": 3})}).settings(1000) is not None


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"model": "gp", "kernel": "rbf", "gamma": 0.1}, r"nothing for 'gamma', got 0\.1 .*'model' is 'gp'\)"),
        (
            {"model": "tree", "depth": 1, "kernel": "rbf"},
            r"active where 'model' is 'svm' or 'gp'; here 'model' is 'tree'",
        ),
        ({"model": "tree", "depth": 1, "degree": 3}, "nothing for 'degree', got 3 .* here 'kernel' is not there"),
        ({"model": "svm", "kernel": "rbf"}, "got nothing for 'gamma' .*active where 'kernel' is 'poly' or 'rbf'"),
        ({"model": "svm"}, "expected a value for 'kernel', got none .*here 'model' is 'svm'"),
        ({}, "expected a value for 'model', got none"),
        ({"model": "knn"}, "parameter 'model': expected one of 'svm', 'gp', 'tree'"),
        ({"model": "tree", "depth": 1, "nodes": 3}, "got unknown 'nodes'"),
    ],
)
def test_points_that_do_not_meet_the_conditions_are_refused(point, message):
    with pytest.raises(ArgumentError, match=message):
        SPACE.encode([point | {"x": 0.5}])
    with pytest.raises(ArgumentError, match=message):
        SPACE.internal([point | {"x": 0.5}])


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        (3, ArgumentTypeError, "fixed: expected a dict of parameters, got 3"),
        ({"y": 1}, ArgumentError, "fixed: expected names among .*, got 'y'"),
        ({"model": "knn"}, ArgumentError, "fixed: parameter 'model': expected one of"),
        ({"model": "tree", "gamma": 0.1}, ArgumentError, "fixed: expected parameters that can be active together"),
        ({"depth": 2, "kernel": "rbf"}, ArgumentError, "can be active together"),
    ],
)
def test_values_that_cannot_be_held_are_refused(params, error, message):
    with pytest.raises(error, match=message):
        SPACE.fixed(params)
