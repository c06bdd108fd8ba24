"""Compiled loops: each has floating-point flags of its own, whoever calls it first."""

import ast
from pathlib import Path

import bkbopt
from bkbopt._support.compiled import compiled, fused

#: Its square is rounded by 2^-60, which a fused multiply-add keeps.
X = 1.0 + 2.0**-30


@compiled
def plain(x: float) -> float:
    return x * x - 1.0


@fused
def calls_plain(x: float) -> float:
    return plain(x)


@fused
def with_fused(x: float) -> float:
    return x * x - 1.0


@compiled
def calls_fused(x: float) -> float:
    return with_fused(x)


def test_a_plain_loop_that_a_fused_one_calls_first_is_not_fused() -> None:
    assert calls_plain(X) == X * X - 1.0
    assert plain(X) == X * X - 1.0


def test_a_fused_loop_that_a_plain_one_calls_first_is_what_it_is_by_itself() -> None:
    assert calls_fused(X) == with_fused(X)


def test_inlined_loops_are_called_by_loops_with_the_same_flags_only() -> None:
    """Code that is inlined takes the flags of its caller, so a caller with others would change what it computes."""
    seen = 0
    for path in Path(bkbopt.__file__).parent.rglob("*.py"):
        functions = [f for f in ast.parse(path.read_text()).body if isinstance(f, ast.FunctionDef)]
        kinds = {f.name: {d.id for d in f.decorator_list if isinstance(d, ast.Name)} for f in functions}
        inlined_here = {name for name, kind in kinds.items() if "inlined" in kind}
        assert all(name.startswith("_") for name in inlined_here), f"{path}: other files could call it"
        for f in functions:
            called = {c.func.id for c in ast.walk(f) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)}
            if called & inlined_here:
                assert kinds[f.name] & {"fused", "inlined"}, f"{path}: {f.name} calls {called & inlined_here}"
                seen += 1
    assert seen > 5
