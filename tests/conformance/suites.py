"""Conformance suites: their subjects, and their use for implementations of a protocol that are defined elsewhere.

A suite lists its subjects, and the names that it leaves out with a reason for each. `check_complete` compares the two
with what the package has, so that a new class joins or is left out on purpose.
"""

import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import bkbopt

__all__ = ["check_complete", "classes", "implementations", "joined", "suite"]

#: What needs an extra of the package.
EXTRAS = ("adapters", "plots")


def suite(module: ModuleType, fixture: str) -> dict[str, Callable[..., Any]]:
    """The tests of `module` that take `fixture`, by name.

    A module of tests runs them on an implementation of its own by `globals().update(suite(...))` and a fixture of that
    name.
    """
    tests = {name: test for name, test in vars(module).items() if name.startswith("test_")}
    return {name: test for name, test in tests.items() if fixture in inspect.signature(test).parameters}


def check_complete(every: Collection[str], subjects: Collection[str], exempt: Mapping[str, str]) -> None:
    """Assert that each name of `every` is a subject, or left out for a reason, and that there are no others."""
    assert all(exempt.values())
    assert set(subjects) & set(exempt) == set()
    assert {*subjects, *exempt} == set(every)


@functools.cache
def classes() -> tuple[type, ...]:
    """All classes of the package that can be made, but those of adapters and plots."""
    modules = [
        importlib.import_module(f"bkbopt.{info.name}")
        for info in pkgutil.iter_modules(bkbopt.__path__, "")
        if info.name not in (*EXTRAS, "__main__")
    ]
    for package in [module for module in modules if hasattr(module, "__path__")]:
        below = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        modules += [importlib.import_module(info.name) for info in below]
    found = (
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    )
    return tuple(cls for cls in found if not inspect.isabstract(cls) and not getattr(cls, "_is_protocol", False))


def implementations(protocol: type) -> dict[str, type]:
    """The classes of the package that have all members of a protocol, by name."""
    members = _members(protocol)
    return {cls.__name__: cls for cls in classes() if all(_has(cls, member) for member in members)}


def _members(protocol: type) -> set[str]:
    own = [base for base in protocol.__mro__ if getattr(base, "_is_protocol", False) and base.__module__ != "typing"]
    found = {name for base in own for name, value in vars(base).items() if isinstance(value, FunctionType | property)}
    return found - {"__init__", "__subclasshook__"}  # which Python gives to protocols


def _has(cls: type, member: str) -> bool:
    return hasattr(cls, member) or (is_dataclass(cls) and member in {field.name for field in fields(cls)})


def joined(module: str, names: Collection[str]) -> set[str]:
    """Those of the `names` that a file of tests has which runs the suite of a module, such as "test_kernels"."""
    files = (path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("test_*.py"))
    texts = [text for text in files if f"suite({module}, " in text]
    return {name for name in names if any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts)}
