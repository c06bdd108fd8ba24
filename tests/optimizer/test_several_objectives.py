"""Several objectives and outcome constraints in typical use."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from botorch.utils.multi_objective.hypervolume import Hypervolume
from botorch.utils.multi_objective.pareto import is_non_dominated

import bkbopt as bo
from bkbopt.errors import ArgumentError, NotReadyError

BOX = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def two(p: Any) -> list[float]:
    """To minimize and to maximize; the front has y = 0."""
    return [p["x"] ** 2 + p["y"], -((p["x"] - 1.0) ** 2) - p["y"]]


def run(opt: bo.Optimizer, n: int, f: Any, limits: Any = None) -> None:
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, f(trial.params), constraints=None if limits is None else limits(trial.params))


# -- several objectives --------------------------------------------------------------------------------------------


def test_best_trials_are_those_that_no_other_dominates() -> None:
    opt = bo.Optimizer(BOX, directions=["minimize", "maximize"], seed=0)
    values = [[1.0, 1.0], [2.0, 2.0], [2.0, 1.5], [0.5, 0.5], [1.0, 1.0], [3.0, 1.0]]
    opt.tell([{"x": i / 10, "y": 0.0} for i in range(6)], values)
    assert [t.id for t in opt.best_trials] == [0, 1, 3, 4]  # equal ones are both there
    assert opt.trials[1].values == (2.0, 2.0)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_front_and_hypervolume_are_botorchs(k: int) -> None:
    rng = np.random.default_rng(k)
    Y = rng.integers(0, 6, size=(30, k)).astype(float)  # with ties
    directions = ["minimize", "maximize", "minimize"][:k]
    signs = torch.tensor([1.0 if d == "maximize" else -1.0 for d in directions], dtype=torch.float64)
    opt = bo.Optimizer(BOX, directions=directions, seed=0)
    opt.tell([{"x": float(a), "y": float(b)} for a, b in rng.random((30, 2))], Y if k > 1 else Y[:, 0])
    G = signs * torch.as_tensor(Y)
    assert {t.values for t in opt.best_trials} == {tuple(row) for row in Y[is_non_dominated(G).numpy()].tolist()}
    reference = [4.0, 1.0, 5.0][:k]
    expected = Hypervolume(signs * torch.tensor(reference, dtype=torch.float64)).compute(G[is_non_dominated(G)])
    assert opt.hypervolume(reference) == pytest.approx(expected, rel=1e-12)


def test_hypervolume_of_two_rectangles_is_their_union() -> None:
    opt = bo.Optimizer(BOX, directions=["minimize", "maximize"], seed=0)
    opt.tell([{"x": 0.1, "y": 0.1}, {"x": 0.2, "y": 0.2}], [[1.0, 1.0], [2.0, 3.0]])
    # Up to (4, 0): 3 by 1 and 2 by 3, which share 2 by 1.
    assert opt.hypervolume([4.0, 0.0]) == pytest.approx(7.0, rel=1e-12)
    assert opt.hypervolume([0.5, 0.0]) == 0.0


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_hypervolume_up_to_the_front_itself_is_zero_without_a_sign(direction: str, k: int) -> None:
    opt = bo.Optimizer(BOX, directions=[direction] * k, seed=0)
    opt.tell(opt.ask(), [1.0] * k if k > 1 else 1.0)
    assert math.copysign(1.0, opt.hypervolume([1.0] * k)) == 1.0
    assert opt.hypervolume([1.0] * k) == 0.0


@pytest.mark.parametrize("reference", [[1.0], [1.0, 2.0, 3.0], [1.0, math.nan], [-math.inf, 0.0]], ids=str)
def test_a_reference_that_is_none_is_refused_in_terms_of_the_objectives(reference: list[float]) -> None:
    opt = bo.Optimizer(BOX, directions=["minimize", "maximize"], seed=0)
    opt.tell(opt.ask(), [1.0, 1.0])
    message = r"^reference: expected 2 finite numbers, one for each objective, got \[[^;]*\]\.$"
    with pytest.raises(ArgumentError, match=message):
        opt.hypervolume(reference)


def test_a_value_of_several_that_is_not_finite_is_refused_as_a_single_one() -> None:
    several, single = bo.Optimizer(BOX, directions=["minimize", "maximize"], seed=0), bo.Optimizer(BOX, seed=0)
    for opt, value in ((several, [1.0, math.nan]), (single, math.nan)):
        with pytest.raises(
            ArgumentError, match=r'^value: expected finite .* or fail that trial, as invalid="fail" does'
        ):
            opt.tell(opt.ask(), value)
        assert opt.trials[0].state == "RUNNING"


def test_without_a_feasible_trial_there_is_no_hypervolume() -> None:
    opt = bo.Optimizer(BOX, directions=["minimize", "maximize"], constraints=["g"], seed=0)
    opt.tell(opt.ask(), [1.0, 1.0], constraints={"g": 1.0})
    with pytest.raises(NotReadyError, match=r"^hypervolume: expected at least one feasible trial, got none"):
        opt.hypervolume([2.0, 0.0])


def test_front_is_covered_better_than_at_random() -> None:
    opt = bo.Optimizer(BOX, directions=["minimize", "maximize"], seed=0, n_startup_trials=8)
    run(opt, 25, two)
    random = bo.Optimizer(BOX, directions=["minimize", "maximize"], seed=0, n_startup_trials=25)
    run(random, 25, two)
    best = 5.0 / 6.0 + 1.0  # the area under the front up to (1, -2), by hand: 2 - int (1 - sqrt(a))^2 da
    assert random.hypervolume([1.0, -2.0]) < opt.hypervolume([1.0, -2.0]) <= best + 1e-9
    assert opt.hypervolume([1.0, -2.0]) > 0.95 * best


def test_prediction_has_a_column_for_each_objective_in_the_users_units() -> None:
    opt = bo.Optimizer(BOX, directions=["minimize", "maximize"], seed=0, n_startup_trials=5)
    run(opt, 12, lambda p: [1e3 * v for v in two(p)])
    X, y = opt.observed()
    mean, std = opt.predict([t.params for t in opt.trials])
    assert y.shape == mean.shape == std.shape == (12, 2)
    assert np.array_equal(opt.predict_encoded(X), (mean, std))
    assert np.abs(mean - y).max() < 100.0
    assert opt.direction == "minimize"
    assert opt.directions == ("minimize", "maximize")


def test_directions_of_several_objectives_mirror_each_other() -> None:
    a = bo.Optimizer(BOX, directions=["minimize", "maximize"], seed=0, n_startup_trials=5)
    b = bo.Optimizer(BOX, directions=["maximize", "minimize"], seed=0, n_startup_trials=5)
    run(a, 10, two)
    run(b, 10, lambda p: [-v for v in two(p)])
    assert [t.params for t in a.trials] == [t.params for t in b.trials]
    assert [t.id for t in a.best_trials] == [t.id for t in b.best_trials]


def test_single_direction_in_a_list_is_a_single_objective() -> None:
    opt = bo.Optimizer(BOX, directions=["maximize"], seed=0)
    assert opt.tell(opt.ask(), 2.0).value == 2.0
    assert opt.best_trials == [opt.best_trial]


def test_before_the_first_value_there_is_no_front() -> None:
    opt = bo.Optimizer(BOX, directions=["minimize", "maximize"], seed=0)
    opt.fail(opt.ask())
    for call in (lambda: opt.best_trials, lambda: opt.hypervolume([1.0, 1.0]), lambda: opt.predict([])):
        with pytest.raises(NotReadyError, match="at least one value"):
            call()


def test_several_objectives_of_the_whole_loop() -> None:
    opt = bo.minimize(
        lambda p: (two(p), {"g": 0.3 - p["x"]}),
        BOX,
        14,
        directions=["minimize", "maximize"],
        constraints=["g"],
        seed=0,
        n_startup_trials=6,
        show_progress_bar=False,
    )
    assert len(opt.trials) == 14
    assert all(t.params["x"] >= 0.3 for t in opt.best_trials)


# -- constraints ---------------------------------------------------------------------------------------------------


def bowl(p: Any) -> float:
    return (p["x"] - 0.8) ** 2 + (p["y"] - 0.8) ** 2


def heat(p: Any) -> dict[str, float]:
    """Feasible below the line x + y = 1; the best feasible point is (0.5, 0.5), of value 0.18."""
    return {"heat": p["x"] + p["y"] - 1.0}


def test_constrained_optimum_is_found_and_recommended() -> None:
    opt = bo.Optimizer(BOX, constraints=["heat"], seed=0, n_startup_trials=8)
    run(opt, 24, bowl, heat)
    assert opt.best_trial.is_feasible
    assert opt.best_trial.value == pytest.approx(0.18, abs=0.02)
    choice = opt.recommend()
    assert heat(choice.params)["heat"] <= 0.02  # expected to be feasible
    assert bowl(choice.params) == pytest.approx(0.18, abs=0.03)


def test_best_and_recommended_trials_are_feasible_even_where_others_are_better() -> None:
    opt = bo.Optimizer(BOX, constraints=["heat", "weight"], direction="maximize", seed=0)
    told = [(0.1, 5.0, -1.0, 1.0), (0.5, 3.0, -1.0, -1.0), (0.9, 1.0, -1.0, -1.0), (0.3, 9.0, 2.0, -1.0)]
    for x, value, a, b in told:
        opt.tell({"x": x, "y": 0.5}, value, constraints={"heat": a, "weight": b})
    assert opt.best_trial.id == 1
    assert opt.best_trials == [opt.best_trial]
    assert opt.recommend().params["x"] in (0.5, 0.9)
    assert opt.trials[0].constraints == {"heat": -1.0, "weight": 1.0}


def test_without_a_feasible_trial_the_nearest_is_recommended() -> None:
    opt = bo.Optimizer(BOX, constraints=["heat"], seed=0, n_startup_trials=3)
    for x in (0.1, 0.5, 0.9):
        opt.tell({"x": x, "y": 0.5}, x, constraints={"heat": 2.0 - x})
    with pytest.raises(NotReadyError, match=r"at least one feasible trial.*recommend"):
        _ = opt.best_trial
    assert opt.recommend().params["x"] == 0.9
    opt.ask()


def test_run_that_gives_the_constraints_only_is_learnt_from() -> None:
    opt = bo.Optimizer(BOX, constraints=["heat"], seed=0, n_startup_trials=6)
    run(opt, 8, bowl, heat)
    trial = opt.ask()
    told = opt.tell(trial, None, constraints={"heat": 3.0})
    assert (told.state, told.value, told.values, dict(told.constraints)) == ("COMPLETE", None, (), {"heat": 3.0})
    assert opt.n_complete == 8
    assert len(opt.observed()[1]) == 8
    assert all(opt.ask().params != trial.params for _ in range(3))
    several = bo.Optimizer(BOX, directions=["minimize", "minimize"], constraints=["heat"], seed=0)
    assert several.tell(several.ask(), None, constraints={"heat": 1.0}).values == ()


def test_only_constraints_and_no_value_leave_nothing_to_read() -> None:
    opt = bo.Optimizer(BOX, constraints=["heat"], seed=0, n_startup_trials=2)
    for trial in opt.ask(4):
        opt.tell(trial, None, constraints=heat(trial.params))
    with pytest.raises(NotReadyError):
        opt.recommend()
    assert len({tuple(t.params.values()) for t in [*opt.ask(3), *opt.trials]}) == 7


def test_constraint_of_a_failed_trial_is_none() -> None:
    opt = bo.Optimizer(BOX, constraints=["heat"], seed=0)
    rows = [{"x": 0.1, "y": 0.1}, {"x": 0.2, "y": 0.2}]
    first, second = opt.tell(rows, [1.0, 2.0], constraints={"heat": [math.nan, -1.0]}, invalid="fail")
    assert (first.state, dict(first.constraints), second.state) == ("FAIL", {}, "COMPLETE")


def test_constraints_may_be_told_in_part_but_not_under_other_names() -> None:
    opt = bo.Optimizer(BOX, constraints=["heat", "weight"], seed=0)
    a, b = opt.ask(2)
    assert dict(opt.tell(a, 1.0, constraints={"weight": np.float32(0.5)}).constraints) == {"weight": 0.5}
    with pytest.raises(ArgumentError, match=r"constraints: expected names among \('heat', 'weight'\), got 'mass'"):
        opt.tell(b, 1.0, constraints={"mass": 1.0})
    with pytest.raises(ArgumentError, match=r"constraints=\[\.\.\.\]"):
        bo.Optimizer(BOX).tell({"x": 0.5, "y": 0.5}, 1.0, constraints={"heat": 1.0})


def test_pool_with_constraints_recommends_an_arm_that_is_expected_to_be_feasible() -> None:
    X = np.linspace(0.0, 1.0, 30)[:, None]
    opt = bo.Optimizer(X, constraints=["g"], direction="maximize", seed=0, n_startup_trials=5)
    run(opt, 20, lambda p: p["x0"], lambda p: {"g": p["x0"] - 0.5})
    assert opt.recommend().params["x0"] == X[14, 0]  # the last at or below one half
