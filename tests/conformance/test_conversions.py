"""What every conversion between parameters and points keeps to, for spaces and for pools of every kind."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.optimizer.translation.conversion import Conversion, conversion_of
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.pool import Pool
from bkbopt.spaces.space import Space
from bkbopt.spaces.stored import encoded_pool
from tests.conformance.suites import check_complete, implementations

ARMS = np.random.default_rng(0).random((12, 3))
TABLE = pd.DataFrame({"dose": ARMS[:, 0], "steps": np.arange(12) % 5, "solvent": ["water", "oil", "acid"] * 4})
SPACE = {
    "x": (0.0, 1.0),
    "rate": bo.Float(1e-4, 1.0, log=True),
    "n": bo.Int(1, 9, step=2),
    "kind": ["a", None, 3],
    "depth": bo.Int(1, 4, when={"kind": ["a"]}),
}


def pool_of(arms: Any, has_kernel: bool = False) -> Arms:
    return encoded_pool(arms if isinstance(arms, Pool) else Pool(arms), scale=not has_kernel, has_kernel=has_kernel)


CANDIDATES: dict[str, Space | Arms] = {
    "space": Space.parse(SPACE),
    "array": pool_of(ARMS),
    "table": pool_of(TABLE),
    "rows with names": pool_of(Pool(TABLE.assign(name=[f"m{i}" for i in range(12)]), id_column="name")),
    "words": pool_of(["ant", "bee", "cat"], has_kernel=True),
    "objects": pool_of([{"w": "ant"}, {"w": "bee"}], has_kernel=True),
    "product": pool_of(Pool.product({"acid": ARMS[:4, :2], "solvent": ["water", "oil"], "step": [1, 2, 5]})),
}


def test_every_conversion_is_a_subject() -> None:
    subjects = {type(conversion_of(candidates)).__name__ for candidates in CANDIDATES.values()}
    check_complete(implementations(Conversion), subjects, {})


@pytest.fixture(params=CANDIDATES)
def candidates(request: pytest.FixtureRequest) -> Space | Arms:
    return CANDIDATES[request.param]


def rows_of(candidates: Space | Arms) -> list[dict[str, Any]]:
    """The parameters of some points."""
    if isinstance(candidates, Arms):
        return [candidates.decode(row) for row in range(len(candidates))][:5]
    U = candidates.sample(5, np.random.default_rng(0))
    return [dict(row) for row in candidates.decode(U)]


def test_parameters_of_points_are_those_that_the_points_were_made_of(candidates: Space | Arms) -> None:
    conversion, rows = conversion_of(candidates), rows_of(candidates)
    points = conversion.points(rows)
    assert [
        conversion.params(point, conversion.index(point, row)) for point, row in zip(points, rows, strict=True)
    ] == rows
    assert [conversion.params(point, None) for point in points] == rows
    assert all(conversion.holds(point) for point in points)


def test_points_that_are_told_are_the_same(candidates: Space | Arms) -> None:
    conversion, rows = conversion_of(candidates), rows_of(candidates)
    assert conversion.told(rows, []) == conversion.points(rows)


def test_points_of_a_file_are_the_same(candidates: Space | Arms) -> None:
    conversion = conversion_of(candidates)
    points = conversion.points(rows_of(candidates))
    stored = json.loads(json.dumps([conversion.stored(point) for point in points]))
    assert conversion.restored(stored, False) == points


def test_partial_points_of_a_file_are_the_same(candidates: Space | Arms) -> None:
    conversion = conversion_of(candidates)
    parts = [dict(list(point.items())[:1]) for point in conversion.points(rows_of(candidates))]
    stored = json.loads(json.dumps([conversion.stored(part) for part in parts]))
    assert conversion.restored(stored, True) == parts


def test_a_fixed_parameter_is_a_part_of_its_point(candidates: Space | Arms) -> None:
    conversion, rows = conversion_of(candidates), rows_of(candidates)
    for row, point in zip(rows, conversion.points(rows), strict=True):
        name = next(iter(row))
        part = conversion.fixed({name: row[name]}, "fixed")
        assert part
        assert part.items() <= point.items()


def test_rows_of_a_pool_are_found_by_their_points_and_named(candidates: Space | Arms) -> None:
    conversion, rows = conversion_of(candidates), rows_of(candidates)
    indices = [conversion.index(point, row) for point, row in zip(conversion.points(rows), rows, strict=True)]
    assert indices == (list(range(len(rows))) if isinstance(candidates, Arms) else [None] * len(rows))
    assert [conversion.as_named(index, {}) for index in indices] == indices
