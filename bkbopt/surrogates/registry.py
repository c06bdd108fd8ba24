"""All surrogates: by the names that users write, and by the names of their classes, as in logs.

Those of this package are `NAMED`. A package above this one registers its own when it is imported. `bkbopt.REGISTERED`
names the modules that do; they are imported when the first name is looked up.
"""

import functools
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import bkbopt
from bkbopt.errors import ArgumentError
from bkbopt.surrogates import NAMED
from bkbopt.surrogates.base import Surrogate

__all__ = ["MakesSurrogate", "register", "registered_classes", "surrogate_named"]


class MakesSurrogate(Protocol):
    """What can stand in for a surrogate, as online learners can."""

    def as_surrogate(self) -> Surrogate:
        """A surrogate without data."""
        ...


@dataclass(frozen=True)
class _Kind:
    cls: Any
    make: Callable[[str], Surrogate]


#: By the names that users write.
_KINDS: dict[str, _Kind] = {}


def register(cls: Any, names: Iterable[str], make: Callable[[str], Surrogate]) -> None:
    """Let `make(name)` be what users mean by these names; it gives surrogates of the class `cls` without data."""
    _KINDS.update({name: _Kind(cls, make) for name in names})


for _name in NAMED:
    register(NAMED[_name], [_name], lambda name: NAMED[name]())


@functools.cache
def _all() -> dict[str, _Kind]:
    for module in bkbopt.REGISTERED:
        importlib.import_module(module)
    return _KINDS


def surrogate_named(name: str) -> Surrogate:
    """A surrogate without data, by the name that users write.

    Raises:
        ArgumentError: there is none of that name.
    """
    if name not in _all():
        raise ArgumentError(f"surrogate: expected one of {', '.join(_all())}, or an instance, got {name!r}.")
    return _all()[name].make(name)


def registered_classes() -> dict[str, Any]:
    """The classes of surrogates by their own names."""
    return {kind.cls.__name__: kind.cls for kind in _all().values()}
