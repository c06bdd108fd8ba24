"""Names of a package that are imported when they are first asked for (PEP 562)."""

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping

__all__ = ["lazy"]


def lazy(
    package: str, homes: Mapping[str, str], submodules: Iterable[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names are imported when they are first asked for.

    A package assigns them unless `TYPE_CHECKING`, and imports the names if so: type checkers and editors then know
    what each of them is, and complain of one that there is not.

    Args:
        package: its `__name__`.
        homes: for each name, the module that has it, as a path below the package.
        submodules: names of modules right below the package.
    """
    known = frozenset({*homes, *submodules})

    def get(name: str) -> object:
        module = sys.modules[package]
        if name not in known:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        home = importlib.import_module(f"{package}.{homes.get(name, name)}")
        value = getattr(home, name) if name in homes else home
        setattr(module, name, value)  # from now on it is found without us
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *known})

    return get, names
