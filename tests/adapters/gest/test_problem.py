"""Translation of a VOCS into a space and options, and refusals."""

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gest_api", reason="gest-api is not installed")

from gest_api.vocs import (
    VOCS,
    BaseConstraint,
    BaseVariable,
    BoundsConstraint,
    ContextualVariable,
    ContinuousVariable,
    DiscreteVariable,
    GreaterThanConstraint,
    LessThanConstraint,
)
from hypothesis import given
from hypothesis import strategies as st

import bkbopt as bo
from bkbopt.adapters.gest.problem import problem_of
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer.arguments.outcome_constraints import as_limits

X = {"x": [0.0, 1.0]}
F = {"f": "MINIMIZE"}
numbers = st.floats(-1e6, 1e6)


@pytest.mark.parametrize(
    ("variable", "parameter"),
    [
        ([0, 2], bo.Float(0.0, 2.0)),
        (ContinuousVariable(domain=[0, 2], dtype="float32"), bo.Float(0.0, 2.0)),
        (ContinuousVariable(domain=[0, 9], dtype=int), bo.Int(0, 9)),
        (ContinuousVariable(domain=[0, 9], dtype=np.uint8), bo.Int(0, 9)),
        ({8, 1, 2.5}, bo.Ordinal([1, 2.5, 8])),
        ({10**400, 1}, bo.Ordinal([1, 10**400])),  # beyond doubles
        ({"b", "a"}, bo.Categorical(["a", "b"])),
        ({True, False}, bo.Categorical([False, True])),
        ({1, "auto"}, bo.Categorical([1, "auto"])),
        ({1.0, math.inf}, bo.Categorical([1.0, math.inf])),
        (DiscreteVariable(values={"b", "a"}, dtype="U1"), bo.Categorical(["a", "b"])),
    ],
)
def test_variables_become_parameters(variable: Any, parameter: Any) -> None:
    assert problem_of(VOCS(variables={"v": variable}, objectives=F)).space.parameters["v"] == parameter


def test_objectives_keep_their_names_order_and_directions() -> None:
    problem = problem_of(VOCS(variables=X, objectives={"gain": "MAXIMIZE", "cost": "MINIMIZE"}))
    assert list(problem.directions.items()) == [("gain", "maximize"), ("cost", "minimize")]


@given(numbers, numbers, numbers)
def test_limits_hold_where_gest_api_says_that_constraints_do(value: float, low: float, width: float) -> None:
    high = low + abs(width) + 1.0
    for constraint in (LessThanConstraint(value=low), GreaterThanConstraint(value=low)):
        limits = as_limits(problem_of(VOCS(variables=X, objectives=F, constraints={"c": constraint})).limits)
        assert list(limits) == ["c"]
        if value != low:  # on the bound gest-api says no, and the optimizer yes
            assert limits["c"].holds(value) == constraint.check(value)
    bounds = BoundsConstraint(range=[low, high])
    limits = as_limits(problem_of(VOCS(variables=X, objectives=F, constraints={"c": bounds})).limits)
    assert list(limits) == ["c"]
    assert limits["c"].holds(value) == bounds.check(value)


def test_infinite_bounds_are_no_constraints() -> None:
    given = {"c": ["LESS_THAN", math.inf], "d": ["BOUNDS", -math.inf, 1.0], "e": ["GREATER_THAN", -math.inf]}
    assert problem_of(VOCS(variables=X, objectives=F, constraints=given)).limits == {"d": (None, 1.0)}


def test_constants_are_kept_and_observables_are_no_limits() -> None:
    problem = problem_of(VOCS(variables=X, objectives=F, constants={"a": "text", "b": [1, 2]}, observables={"o"}))
    assert problem.constants == {"a": "text", "b": [1, 2]}
    assert "o" not in {*problem.directions, *problem.limits}
    assert problem.observables == ("o",)


def test_one_output_may_be_objective_constraint_and_observable() -> None:
    problem = problem_of(VOCS(variables=X, objectives=F, constraints={"f": ["LESS_THAN", 3.0]}, observables=["f"]))
    assert list(problem.directions) == ["f"]
    assert problem.limits == {"f": (None, 3.0)}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"variables": {}}, "vocs: expected at least one variable, got none"),
        ({"objectives": {}}, "vocs: expected at least one objective, got none"),
        ({"objectives": {"f": "EXPLORE"}}, "objective 'f': expected \"MINIMIZE\" or .*got a ExploreObjective"),
        ({"variables": {"x": "CONTEXTUAL"}}, "variable 'x': expected a continuous or .*got a ContextualVariable"),
        ({"variables": {"x": ContextualVariable(domain=[0, 1])}}, "variable 'x': expected .*got a ContextualVariable"),
        ({"variables": {"x": BaseVariable()}}, "variable 'x': expected a continuous or .*got a BaseVariable"),
        ({"variables": {"x": [0.0, math.inf]}}, "variable 'x': high: expected a finite number, got inf"),
        ({"variables": {"x": ContinuousVariable(domain=[0.5, 2], dtype=int)}}, "variable 'x': low: expected a whole"),
        ({"variables": {"x": ContinuousVariable(domain=[0, 1], dtype=("f8", (3,)))}}, "'x': expected a scalar.*\\(3,"),
        ({"variables": {"x": ContinuousVariable(domain=[0, 1], dtype="U3")}}, "'x': expected a dtype of floats or int"),
        ({"variables": {"x": ContinuousVariable(domain=[0, 1], dtype="flaot")}}, "'x': expected a dtype of NumPy, got"),
        ({"constraints": {"c": BaseConstraint()}}, "constraint 'c': expected \"LESS_THAN\", .*got a BaseConstraint"),
        ({"constraints": {"c": ["LESS_THAN", math.nan]}}, "constraint 'c': expected a bound that can be satisfied"),
        ({"constraints": {"c": ["LESS_THAN", -math.inf]}}, "constraint 'c': expected a bound that can be satisfied"),
        ({"constants": {"x": 1.0}}, "vocs: expected distinct names of variables, constants and outputs.*got 'x' twice"),
        ({"observables": ["x"]}, "vocs: expected distinct names .*got 'x' twice"),
        ({"constants": {"_id": 1}}, "vocs: expected distinct names .*none of them '_id', got '_id' twice"),
    ],
)
def test_unsupported_parts_of_a_vocs_raise_argument_errors(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        problem_of(VOCS(**{"variables": X, "objectives": F, **given}))


def test_a_dict_is_no_vocs() -> None:
    with pytest.raises(ArgumentTypeError, match=r"vocs: expected a gest_api.vocs.VOCS, got dict\."):
        problem_of({"variables": X, "objectives": F})
