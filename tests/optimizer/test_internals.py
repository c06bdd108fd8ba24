"""Modules above the optimizer use its public names, and functions of its package, but none of its attributes."""

import ast
from pathlib import Path

import bkbopt as bo
from bkbopt.optimizer.designers.locking import HasLog

ROOT = Path(bo.__file__).parent
#: Attributes and methods of an optimizer that are for modules of its package.
INTERNAL = {name for name in {*dir(bo.Optimizer), *HasLog.__annotations__} if name[0] == "_" and name[:2] != "__"}
ABOVE = sorted(path for room in ("adapters", "analysis", "plots") for path in (ROOT / room).rglob("*.py"))


def taken(tree: ast.Module) -> set[str]:
    """The internal names that are read of another object, but those that an own class of the module has, too."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in INTERNAL]
    is_own = {id(node): ast.unparse(node.value) == "self" for node in found}
    return {node.attr for node in found if not is_own[id(node)]} - {node.attr for node in found if is_own[id(node)]}


def test_an_internal_name_is_noticed() -> None:
    assert {"_aims", "_core", "_lock", "_describe"} <= INTERNAL
    assert taken(ast.parse("opt._core.log")) == {"_core"}
    assert taken(ast.parse("self._lock, sampler._lock, opt.trials")) == set()


def test_modules_above_read_no_internal_name() -> None:
    found = {path.relative_to(ROOT).as_posix(): taken(ast.parse(path.read_text(encoding="utf-8"))) for path in ABOVE}
    assert len(found) > 50
    assert {name: taken for name, taken in found.items() if taken} == {}
