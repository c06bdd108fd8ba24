"""Conformance suites, for implementations of a protocol that are defined elsewhere."""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["suite"]


def suite(module: ModuleType, fixture: str) -> dict[str, Callable[..., Any]]:
    """The tests of `module` that take `fixture`, by name.

    A module of tests runs them on an implementation of its own by `globals().update(suite(...))` and a fixture of that
    name.
    """
    tests = {name: test for name, test in vars(module).items() if name.startswith("test_")}
    return {name: test for name, test in tests.items() if fixture in inspect.signature(test).parameters}
