"""The public names of the package, and which of them have an entry in the reference.

`conf.py` adds entries for names that no page mentions, so that a new class needs no change of a page; a test checks
that no name has two entries.
"""

import importlib
import pkgutil
import re
from pathlib import Path

import bkbopt
from bkbopt import adapters

__all__ = ["ENTRIES", "MACHINERY", "MISSING", "NAMES", "PARTS", "PUBLIC", "modules_on_top"]

REFERENCE = Path(__file__).resolve().parent / "reference"
ENTRY = re.compile(r"^\.\. auto(?:class|data|exception|function):: (\S+)$", re.MULTILINE)
#: Names with an entry, and what they stand for.
NAMES = [name for page in sorted(REFERENCE.glob("*.md")) for name in ENTRY.findall(page.read_text(encoding="utf-8"))]
ENTRIES = {name: getattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in NAMES}

#: Modules on top of the package, and adapters, whose names are not public, or are so in another place.
MACHINERY = {
    "adapters": "a package of packages",
    "adapters.shell": "the command-line tool; its page says how it is called",
    "optimizer": "`Optimizer`, `Trial`, `minimize`, `maximize` and `theory` are bkbopt's",
    "search": "how the optimizer finds what to evaluate",
}
#: Public modules further down.
PARTS = (
    "learners.features",
    "learners.numerics.kors",
    "posterior.features",
    "search.criteria.acquisition",
    "surrogates.sampling",
)


def modules_on_top() -> set[str]:
    """Names of the modules and packages right below `bkbopt` that have no underscore in front, and of the adapters."""
    on_top = {info.name for info in pkgutil.iter_modules(bkbopt.__path__) if not info.name.startswith("_")}
    return on_top | {f"adapters.{info.name}" for info in pkgutil.iter_modules(adapters.__path__)}


def _public_names() -> dict[str, object]:
    """What the public modules export, modules left out."""
    modules = ["bkbopt", *(f"bkbopt.{name}" for name in sorted({*modules_on_top(), *PARTS} - MACHINERY.keys()))]
    found: dict[str, object] = {}
    for name in modules:
        module = importlib.import_module(name)
        found |= {f"{name}.{export}": getattr(module, export) for export in module.__all__}
    return {name: value for name, value in found.items() if not hasattr(value, "__path__") and name not in modules}


PUBLIC = _public_names()


def _missing() -> list[str]:
    """Public names without an entry, one for each object."""
    known, out = {id(value) for value in ENTRIES.values()}, []
    for name, value in PUBLIC.items():
        if id(value) not in known:
            known.add(id(value))
            out.append(name)
    return out


#: Public names without an entry; `conf.py` appends them to the page `reference/parts`.
MISSING = _missing()
