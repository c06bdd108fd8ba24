"""Lazy imports: names of a package that are imported when they are first used (PEP 562)."""

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping

__all__ = ["lazy"]


def lazy(
    package: str, homes: Mapping[str, str], submodules: Iterable[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names are imported when they are first used.

    A package assigns both at run time; under `TYPE_CHECKING` it imports the names, so that type checkers and editors
    know their types and report names that do not exist.

    Args:
        package: the package's `__name__`.
        homes: for each name, the module that defines it, as a path relative to the package.
        submodules: names of modules directly in the package.
    """
    known = frozenset({*homes, *submodules})

    def get(name: str) -> object:
        module = sys.modules[package]
        if name not in known:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        home = importlib.import_module(f"{package}.{homes.get(name, name)}")
        value = getattr(home, name) if name in homes else home
        setattr(module, name, value)  # later look-ups do not call this function
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *known})

    return get, names
