"""A copy with one of the objectives: it is an optimizer that was told this objective alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError

NAMED = {"loss": "minimize", "power": "maximize"}
SPACE = {"x": (0.0, 1.0), "kind": ["a", "b"], "y": bo.Float(0.0, 1.0, when={"kind": "b"})}


def measured(params: dict[str, Any]) -> tuple[float, float]:
    x, y = params["x"], params.get("y", 0.5)
    return (x - 0.3) ** 2 + y, x - y


def told(opt: bo.Optimizer, n: int = 14) -> bo.Optimizer:
    """An optimizer with values of trials, some of which failed."""
    for i in range(n):
        trial = opt.ask()
        if i == 3:
            opt.fail(trial)
        else:
            opt.tell(trial, measured(dict(trial.params)), constraints={"heat": trial.params["x"] - 0.8})
    return opt


def of_one(both: bo.Optimizer, k: int, space: Any, **options: Any) -> bo.Optimizer:
    """An optimizer that was told one of the values of the trials of another one."""
    direction = list(NAMED.values())[k]
    opt = bo.Optimizer(space, direction=direction, constraints=both.constraints, seed=0, **options)
    for trial in both.trials:
        point = opt.enqueue(trial.params) if trial.index is None else opt.enqueue({"index": trial.index})
        assert opt.ask().id == point.id
        if trial.values:
            opt.tell(point.id, trial.values[k], constraints=trial.constraints)
        else:
            opt.fail(point.id)
    return opt


@pytest.mark.parametrize(("k", "name"), list(enumerate(NAMED)))
def test_it_is_an_optimizer_that_was_told_one_of_the_values(k: int, name: str) -> None:
    both = told(bo.Optimizer(SPACE, directions=NAMED, constraints=["heat"], seed=0))
    alone, single = of_one(both, k, SPACE), both.single_objective(name)
    points = [{"x": 0.2, "kind": "a"}, {"x": 0.7, "kind": "b", "y": 0.1}]
    np.testing.assert_array_equal(np.array(single.predict(points)), np.array(alone.predict(points)))
    assert single.recommend() == alone.recommend()
    assert single.best_trial.value == alone.best_trial.value
    assert single.feasibility(points).tolist() == alone.feasibility(points).tolist()
    assert (single.direction, single.objectives) == (NAMED[name], (name,))
    assert [trial.state for trial in single.trials] == [trial.state for trial in both.trials]


def test_it_holds_in_a_pool_with_names_of_rows() -> None:
    rows = pd.DataFrame({"name": [f"r{i}" for i in range(40)], "x": np.linspace(0.0, 1.0, 40)})
    both = told(bo.Optimizer(bo.Pool(rows, id_column="name"), directions=NAMED, constraints=["heat"], seed=0))
    alone = of_one(both, 1, bo.Pool(rows, id_column="name"))
    single = both.single_objective(1)
    assert single.recommend() == alone.recommend()
    assert single.recommend().label is not None
    assert [trial.label for trial in single.trials] == [trial.label for trial in both.trials]


def test_it_is_a_copy_in_memory_that_does_not_follow(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    both = told(bo.Optimizer(SPACE, directions=NAMED, constraints=["heat"], seed=0, storage=path))
    both.set_space({**SPACE, "z": (0.0, 2.0)}, past={"z": 0.5})
    single = both.single_objective("loss")
    assert single.storage is None
    assert single.space == both.space
    assert single.trials[0].params == both.trials[0].params
    single.tell({"x": 0.1, "kind": "a", "z": 0.5}, 0.7)
    assert (len(single.trials), len(both.trials), len(bo.Optimizer.open(path).trials)) == (15, 14, 14)
    both.set_space({"x": (0.0, 3.0)})
    assert single.space != both.space
    single.save(tmp_path / "single.db")
    assert bo.Optimizer.load(tmp_path / "single.db").objectives == ("loss",)


def test_known_noise_and_missing_values_stay() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=NAMED, constraints=["heat"], seed=0)
    opt.tell({"x": 0.1}, [1.0, 2.0], std=[0.1, 0.2])
    opt.tell({"x": 0.2}, constraints={"heat": 1.0})
    single = opt.single_objective("power")
    assert [(trial.values, trial.stds) for trial in single.trials] == [((2.0,), (0.2,)), ((), None)]
    assert single.single_objective(0).trials[0].values == (2.0,)
    with pytest.raises(ArgumentError, match="objective: expected a number below 2, got 2"):
        opt.single_objective(2)


def test_a_constraint_or_an_attribute_may_be_the_objective(tmp_path: Path) -> None:
    opt = bo.Optimizer(
        {"x": (0.0, 1.0)}, constraints=["heat <= 30", "purity >= 0.5"], seed=0, storage=tmp_path / "log.db"
    )
    for i in range(12):
        x = opt.ask().params["x"]
        limits = {"heat": 40.0 * x} if i % 4 == 3 else {"heat": 40.0 * x, "purity": x}
        opt.tell(i, 1.0, constraints=limits, user_attrs={"seconds": 10**400 if i == 5 else i, "host": "a"})
    opt.fail(opt.ask(), user_attrs={"seconds": 3})
    for name, direction, value in (("heat", "minimize", 40.0), ("purity", "maximize", 1.0)):
        single = opt.single_objective(name)
        told = [trial for trial in opt.trials if name in trial.constraints]
        assert (single.directions, single.objectives, single.constraints) == ((direction,), (name,), ())
        assert [t.value for t in single.trials if t.values] == [t.constraints[name] for t in told]
        assert single.predict({"x": 0.5})[0] == pytest.approx(0.5 * value, rel=1e-2)  # a model's: not exact
        alone = bo.Optimizer({"x": (0.0, 1.0)}, direction=direction, seed=0)
        for trial in told:
            alone.tell(trial.params, trial.constraints[name])
        at = [{"x": 0.1}, {"x": 0.9}]
        assert single.recommend() == alone.recommend()
        np.testing.assert_array_equal(np.array(single.predict(at)), np.array(alone.predict(at)))
    seconds = opt.single_objective("seconds")
    assert [t.value for t in seconds.trials] == [*map(float, range(5)), None, *map(float, range(6, 12)), None]
    assert opt.trials[0].constraints.keys() == {"heat", "purity"}  # it is a copy
    for name in ("host", "cost"):
        with pytest.raises(ArgumentError, match=rf"^objective: expected .*\('heat', 'purity'\).*, got '{name}'"):
            opt.single_objective(name)


def test_a_copy_with_trials_that_lack_the_quantity_says_why_it_is_not_saved(tmp_path: Path) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    opt.tell({"x": 0.5}, 1.0, user_attrs={"seconds": 3.0})
    opt.tell({"x": 0.6}, 2.0)
    with pytest.raises(ArgumentError, match=r"got trial 1 without any, .* without the quantity of single_objective; "):
        opt.single_objective("seconds").save(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()
