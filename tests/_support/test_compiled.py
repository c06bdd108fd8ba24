"""Compiled loops: each has floating-point flags of its own, whoever calls it first."""

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
