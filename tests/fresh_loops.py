"""A compiled loop of the package that no cache has."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import cast

__all__ = ["fresh_loop"]

SOURCE = """
from bkbopt._support.compiled import compiled

@compiled
def twice(x):
    return 2.0 * x
"""


def fresh_loop(folder: Path) -> Callable[[float], float]:
    """The function x -> 2 x, which is compiled at its first call unless the folder has its code."""
    folder.mkdir(exist_ok=True)
    path = folder / "fresh.py"
    if not path.exists():
        path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("bkbopt.fresh", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(Callable[[float], float], module.twice)
