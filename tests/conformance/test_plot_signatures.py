"""The signatures of all public functions of `bkbopt.plots` keep to the convention in the text of the package."""

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

import pytest

from bkbopt import Optimizer, errors, plots

POSITIONAL, KEYWORD = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
EXPORTED = {name: getattr(plots, name) for name in plots.__all__}
FUNCTIONS: dict[str, Callable[..., Any]] = {name: one for name, one in EXPORTED.items() if inspect.isfunction(one)}
#: Where a picture is drawn -> what is returned.
RETURNED = {"ax": "Axes", "figure": "Figure"}


def parameters_of(function: Callable[..., Any], *kinds: Any) -> list[Parameter]:
    """The parameters of these kinds, or all of them, in order."""
    found = inspect.signature(function).parameters.values()
    return [parameter for parameter in found if not kinds or parameter.kind in kinds]


def where_of(function: Callable[..., Any]) -> list[str]:
    """Which of `ax` and `figure` are parameters."""
    return [parameter.name for parameter in parameters_of(function) if parameter.name in RETURNED]


PICTURES = {name: function for name, function in FUNCTIONS.items() if where_of(function)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_data_come_first_and_options_are_keywords(name: str) -> None:
    first, *others = parameters_of(FUNCTIONS[name], POSITIONAL)
    options = parameters_of(FUNCTIONS[name], KEYWORD)
    assert first.default is Parameter.empty
    assert (first.name == "opt") == (first.annotation is Optimizer)
    assert len(others) <= 2
    assert all(parameter.default in (Parameter.empty, None) for parameter in others)
    assert all(parameter.default is not Parameter.empty for parameter in options)
    assert [first, *others, *options] == parameters_of(FUNCTIONS[name])  # neither *args nor **kwargs


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_drawn_on_is_the_first_keyword_and_what_is_returned(name: str) -> None:
    options, where = parameters_of(FUNCTIONS[name], KEYWORD), where_of(FUNCTIONS[name])
    returned = inspect.signature(FUNCTIONS[name]).return_annotation
    assert [returned] * len(where) == [RETURNED[one] for one in where]
    assert bool(where) == (returned in RETURNED.values())
    if where:
        assert (options[0].name, options[0].annotation, options[0].default) == (where[0], f"{returned} | None", None)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_of_things_begin_with_n_and_names_of_values_are_last(name: str) -> None:
    for parameter in parameters_of(FUNCTIONS[name]):
        assert parameter.name.startswith("n_") == (parameter.annotation is int), parameter
    names = [parameter.name for parameter in parameters_of(FUNCTIONS[name])]
    named = [one for one in names if one in ("value_name", "value_names")]
    assert names[len(names) - len(named) :] == named
    assert len(named) <= 1


def test_a_parameter_of_several_functions_has_one_meaning() -> None:
    found: dict[str, set[tuple[Any, Any]]] = {}
    for function in EXPORTED.values():
        for parameter in parameters_of(function):
            # Of what is positional some is required in one function and not in another.
            annotation = parameter.annotation if parameter.kind is KEYWORD else None
            found.setdefault(parameter.name, set()).add((parameter.kind, str(annotation)))
    assert {name: meanings for name, meanings in found.items() if len(meanings) > 1} == {}


@pytest.mark.parametrize("name", PICTURES)
def test_axes_and_figures_without_a_keyword_are_refused_with_the_keyword(name: str) -> None:
    figures = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed; the extra plots brings it")
    figure = figures.Figure()
    (keyword,) = where_of(PICTURES[name])
    for i in range(len(parameters_of(PICTURES[name], POSITIONAL)) + 1):
        for given in (figure, figure.add_subplot()):
            message = (
                rf"{keyword}: expected .*, got {type(given).__name__} as argument {i + 1} of {name}; pass {keyword}=\."
            )
            with pytest.raises(errors.ArgumentTypeError, match=message):
                PICTURES[name](*[None] * i, given)
