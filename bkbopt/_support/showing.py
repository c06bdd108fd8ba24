"""Texts that show objects as the calls that make them."""

import inspect
from collections.abc import Mapping

__all__ = ["shown_call"]


def shown_call(kind: type, arguments: Mapping[str, object]) -> str:
    """The constructor's call, with the `arguments` that differ from its defaults; others than its own are left out.

    Example:
        >>> from bkbopt._support.showing import shown_call
        >>> shown_call(complex, {})
        'complex()'
    """
    parameters = inspect.signature(kind).parameters
    given = {name: value for name, value in arguments.items() if name in parameters}
    # Some values, such as arrays, have no single truth when compared: their texts are.
    texts = [f"{name}={value!r}" for name, value in given.items() if repr(value) != repr(parameters[name].default)]
    return f"{kind.__name__}({', '.join(texts)})"
