"""Noise that is known of some objectives, as where one is measured and another one computed."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError

BOX = {"x": (0.0, 1.0)}
AIMS = {"yield": "maximize", "cost": "minimize"}
X = [{"x": 0.2}, {"x": 0.4}]
FRAME = pd.DataFrame({"x": [0.2, 0.4], "y": [1.0, 2.0], "sd": [0.1, 0.2], "c": [3.0, 4.0]})
BOTH = [(0.1, None), (0.2, None)]


def optimizer(path: Path | None = None) -> bo.Optimizer:
    return bo.Optimizer(BOX, directions=AIMS, seed=0, storage=path)


@pytest.mark.parametrize(
    ("points", "values", "std", "expected"),
    [
        (X, [[1.0, 3.0], [2.0, 4.0]], [[0.1, None], [0.2, None]], BOTH),
        (X, [[1.0, 3.0], [2.0, 4.0]], np.array([[0.1, np.nan], [0.2, np.nan]]), BOTH),
        (X, [[1.0, 3.0], [2.0, 4.0]], {"yield": [0.1, 0.2], "cost": [None, None]}, BOTH),
        (X, [[1.0, 3.0], [2.0, 4.0]], [[0.1, None], [None, None]], [(0.1, None), None]),
        (X, [{"yield": (1.0, 0.1), "cost": 3.0}, {"yield": (2.0, 0.2), "cost": 4.0}], None, BOTH),
        (X, [{"yield": (1.0, 0.1), "cost": 3.0}, {"yield": 2.0, "cost": (4.0, 0.2)}], None, [(0.1, None), (None, 0.2)]),
        (X, {"yield": ([1.0, 2.0], [0.1, 0.2]), "cost": [3.0, 4.0]}, None, BOTH),
        (X, {"yield": ([1.0, 2.0], [0.1, None]), "cost": [3.0, 4.0]}, None, [(0.1, None), None]),
        (X, {"yield": (np.array([1.0, 2.0]), 0.1), "cost": [3.0, 4.0]}, None, [(0.1, None), (0.1, None)]),
        (X, [[1.0, 3.0], [2.0, 4.0]], [0.1, None], [(0.1, None), (0.1, None)]),
        (FRAME, ["y", "c"], ["sd", None], BOTH),
        (FRAME, {"yield": ("y", "sd"), "cost": "c"}, None, BOTH),
    ],
    ids=str,
)
def test_deviations_are_told_of_some_objectives(points: Any, values: Any, std: Any, expected: Any) -> None:
    told = optimizer().tell(points, values, std=std)
    assert [trial.stds for trial in told] == expected
    assert [trial.values for trial in told] == [(1.0, 3.0), (2.0, 4.0)]


def test_a_single_objective_takes_pairs_of_columns_too() -> None:
    opt = bo.Optimizer(BOX, directions={"loss": "minimize"}, seed=0)
    assert [t.stds for t in opt.tell(X, {"loss": ([1.0, 2.0], [0.1, None])})] == [(0.1,), None]
    assert [t.values for t in opt.tell(X, {"loss": (1.0, 2.0)})] == [(1.0,), (2.0,)]  # two values
    assert [t.stds for t in opt.tell(FRAME[["x", "y", "sd"]], {"loss": ("y", "sd")})] == [(0.1,), (0.2,)]


@pytest.mark.parametrize("first", AIMS)
def test_the_model_of_an_objective_is_that_of_an_optimizer_with_this_one_alone(first: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    points = [{"x": float(x)} for x in rng.random(20)]
    noisy = [np.sin(5.0 * p["x"]) + 0.2 * rng.standard_normal() for p in points]
    exact = [p["x"] ** 2 for p in points]
    # Of the first one, since fits of the others begin at other random numbers.
    names = [first, *(name for name in AIMS if name != first)]
    aims = {name: AIMS[name] for name in names}
    opt = bo.Optimizer(BOX, directions=aims, seed=0, storage=tmp_path / "log.db")
    opt.tell(points, {"yield": (noisy, 0.2), "cost": exact})
    alone = bo.Optimizer(BOX, direction=AIMS[first], seed=0)  # type: ignore[arg-type]
    alone.tell(points, noisy if first == "yield" else exact, std=0.2 if first == "yield" else None)
    at = [{"x": 0.1}, {"x": 0.6}]
    for opened in (opt, bo.Optimizer.load(tmp_path / "log.db")):
        assert opened.trials == opt.trials
        for ours, theirs in zip(opened.predict(at), alone.predict(at), strict=True):
            assert np.array_equal(ours[:, 0], theirs)
        assert opened.single_objective(first).trials[0].stds == ((0.2,) if first == "yield" else None)


def test_tables_have_gaps_where_noise_is_unknown(tmp_path: Path) -> None:
    opt = optimizer(tmp_path / "log.db")
    opt.tell(X, {"yield": ([1.0, 2.0], [0.1, None]), "cost": ([3.0, 4.0], [None, None])})
    table = opt.trials_dataframe()
    assert table["stds_yield"].tolist()[0] == 0.1
    assert table[["stds_yield", "stds_cost"]].isna().to_numpy().tolist() == [[False, True], [True, True]]


def test_a_deviation_that_is_none_is_refused_beside_a_gap() -> None:
    for bad in (-0.1, np.inf):
        with pytest.raises(ArgumentError, match=r"^std: expected "):
            optimizer().tell(X, [[1.0, 3.0], [2.0, 4.0]], std=[[0.1, None], [None, bad]])
