"""What all functions that draw do with their arguments; their convention is in the text of the package."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from bkbopt._support.settings import in_usual_settings
from bkbopt.errors import ArgumentTypeError

__all__ = ["picture"]

F = TypeVar("F", bound=Callable[..., Any])
#: The argument that says where to draw -> what it is.
WHERE = {"ax": "matplotlib Axes", "figure": "a matplotlib figure"}


def picture(function: F) -> F:
    """Decorate a function that draws: it runs with `usual_settings`, and refuses Axes and figures without a keyword.

    Elsewhere they are positional, and what stands in their place here may be optional: it would be drawn wrongly, or
    refused as something else.
    """
    (keyword,) = WHERE.keys() & inspect.signature(function).parameters
    computed = in_usual_settings(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for i, given in enumerate(args, start=1):
            if hasattr(given, "add_artist"):
                raise ArgumentTypeError(
                    f"{keyword}: expected {WHERE[keyword]} as a keyword argument, got {type(given).__name__} as "
                    f"argument {i} of {function.__name__}; pass {keyword}=."
                )
        return computed(*args, **kwargs)

    return cast(F, call)
