"""Start-up points in ranges that are narrow beside their values: all values are proposed before a repeat."""

import math
from typing import Any

import pytest

import bkbopt as bo
from bkbopt.errors import SpaceExhaustedError
from bkbopt.search import startup

NEXT = math.nextafter(1.0, 2.0)
LAST = math.nextafter(NEXT, 2.0)


def asked(parameter: Any, n: int, **options: Any) -> list[Any]:
    """The values of a parameter in so many start-up trials, one after the other."""
    opt = bo.Optimizer({"x": parameter}, seed=0, **options)
    found = []
    for i in range(n):
        trial = opt.ask()
        found.append(trial.params["x"])
        opt.tell(trial, float(i))
    return found


@pytest.mark.parametrize("duplicates", ["allow", "avoid"])
@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        (bo.Int(10**12, 10**12 + 5), [10**12 + i for i in range(6)]),
        (
            bo.Float(1.7e9, 1.7e9 + 0.5, step=0.1),
            [1.7e9 + d for d in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)],
        ),
        (bo.Float(1.0, LAST), [1.0, NEXT, LAST]),
    ],
)
def test_each_value_of_a_narrow_range_is_proposed_before_a_repeat(
    parameter: Any, values: list[float], duplicates: str
) -> None:
    assert sorted(asked(parameter, len(values), duplicates=duplicates)) == values


def test_a_continuum_far_from_zero_has_new_points_also_without_duplicates() -> None:
    for duplicates in ("allow", "avoid"):
        assert len(set(asked(bo.Float(1.7e9, 1.7e9 + 0.5), 10, duplicates=duplicates))) == 10


@pytest.mark.parametrize("duplicates", ["allow", "avoid"])
def test_a_continuum_whose_doubles_are_all_taken_repeats_them_after_few_tries(
    duplicates: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_tries, compare = [0], startup.with_values

    def counted(*args: Any) -> Any:
        n_tries[0] += 1
        return compare(*args)

    monkeypatch.setattr(startup, "with_values", counted)
    assert set(asked(bo.Float(1.0, LAST), 9, duplicates=duplicates)) == {1.0, NEXT, LAST}
    assert n_tries[0] < 9 * 4 * startup.FIRST_TRIES


def test_points_that_are_infeasible_do_not_end_the_search_of_a_continuum() -> None:
    space = {"kind": ["a", "b", "c", "d"], "x": bo.Float(0.0, 1.0, when={"kind": "d"})}
    opt = bo.Optimizer(space, seed=0, n_startup_trials=30, feasible=lambda p: p.get("x", 1.0) < 0.002 or "x" not in p)
    opt.tell([{"kind": kind} for kind in "abc"], [1.0, 2.0, 3.0])
    assert opt.ask().params["x"] < 0.002


def test_a_discrete_space_is_exhausted_as_before() -> None:
    with pytest.raises(SpaceExhaustedError):
        asked(bo.Int(10**12, 10**12 + 5), 7, duplicates="avoid")
