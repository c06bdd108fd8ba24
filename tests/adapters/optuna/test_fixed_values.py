"""Recommendations and suggestions with fixed values: those of an `Optimizer` with these trials, in Optuna's words."""

import copy
from typing import Any

import optuna
import pytest

from bkbopt.adapters.optuna import BKBSampler
from bkbopt.errors import ArgumentError, ArgumentTypeError
from tests.adapters.optuna.studies import new_study, several


def cost(trial: optuna.Trial) -> float:
    """Best at x = 0.8 with the kind "a", and at x = 0.2 with "b", which is worse."""
    kind = trial.suggest_categorical("kind", ["a", "b"])
    x, n = trial.suggest_float("x", 0.0, 1.0), trial.suggest_int("n", 2, 9)
    return (x - (0.8 if kind == "a" else 0.2)) ** 2 + 0.01 * (n - 4) ** 2 + (kind == "b")


def finished(objective: Any = cost, n: int = 30) -> optuna.Study:
    study = new_study()
    for i in range(n):
        study.enqueue_trial({"kind": "ab"[i % 2]})
    study.optimize(objective, n_trials=n)
    return study


@pytest.fixture(scope="module")
def read_only() -> optuna.Study:
    """A finished study for tests that ask for recommendations only."""
    return finished()


@pytest.mark.parametrize(
    ("fixed", "best"),
    [
        ({"kind": "b"}, {"kind": "b", "x": 0.2, "n": 4}),
        ({"kind": "a", "n": 7}, {"kind": "a", "n": 7, "x": 0.8}),
        ({"x": 0.5}, {"kind": "a", "x": 0.5, "n": 4}),
        ({"kind": "b", "x": 0.9, "n": 2}, {"kind": "b", "x": 0.9, "n": 2}),
    ],
)
def test_it_has_the_fixed_values_and_the_best_ones_of_the_others(
    read_only: optuna.Study, fixed: dict[str, Any], best: dict[str, Any]
) -> None:
    found = read_only.sampler.recommend(read_only, fixed=fixed).params
    assert {name: found[name] for name in fixed} == fixed
    assert found["x"] == pytest.approx(best["x"], abs=0.1)
    assert {**found, "x": best["x"]} == {**best}


def test_without_fixed_values_it_is_an_evaluated_point(read_only: optuna.Study) -> None:
    recommend = read_only.sampler.recommend
    assert recommend(read_only, fixed={}) == recommend(read_only, fixed=None) == recommend(read_only)


def test_a_parameter_with_one_value_has_it() -> None:
    study = finished(lambda trial: cost(trial) + trial.suggest_float("c", 2.0, 2.0), n=12)
    assert study.sampler.recommend(study, fixed={"n": 5}).params["c"] == 2.0
    assert study.sampler.recommend(study, fixed={"c": 2.0}).params.keys() == {"kind", "x", "n", "c"}


def test_of_conditional_parameters_a_branch_with_the_values_is_taken() -> None:
    def branched(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("model", ["tree", "net"]) == "tree":
            return 0.1 * abs(trial.suggest_int("depth", 1, 9) - 3)
        return 1.0 + (trial.suggest_float("rate", 0.0, 1.0) - 0.6) ** 2

    study = new_study()
    for i in range(30):
        study.enqueue_trial({"model": ["tree", "net"][i % 2]})
    study.optimize(branched, n_trials=40)
    net = study.sampler.recommend(study, fixed={"model": "net"}).params
    assert net == {"model": "net", "rate": pytest.approx(0.6, abs=0.1)}
    assert study.sampler.recommend(study, fixed={"depth": 7}).params == {"model": "tree", "depth": 7}
    # No trial had both; the fixed values are kept.
    net = study.sampler.recommend(study, fixed={"model": "net", "depth": 7}).params
    assert net == {"model": "net", "depth": 7, "rate": pytest.approx(0.6, abs=0.1)}


def test_a_front_of_values_that_no_trial_had_together_has_them() -> None:
    study = several(["minimize", "minimize"])

    def branched(trial: optuna.Trial) -> tuple[float, float]:
        kind, x = trial.suggest_categorical("kind", ["a", "b", "c"]), trial.suggest_float("x", 0.0, 1.0)
        return x + (trial.suggest_int("n", 0, 3) if kind == "a" else 0), 1.0 - x

    study.optimize(branched, n_trials=20)
    for kind in "bc":
        front = study.sampler.recommend_front(study, fixed={"kind": kind, "n": 2})
        assert all(point.params["kind"] == kind and point.params["n"] == 2 for point in front)


def test_a_front_of_a_context_has_its_values() -> None:
    study = several(["minimize", "minimize"])

    def objectives(trial: optuna.Trial) -> tuple[float, float]:
        x, shift = trial.suggest_float("x", 0.0, 1.0), trial.suggest_categorical("shift", [0.0, 0.5])
        return (x - 0.2 - shift) ** 2, (x - 0.4 - shift) ** 2

    study.optimize(objectives, n_trials=25)
    sampler = study.sampler
    assert isinstance(sampler, BKBSampler)
    front = sampler.recommend_front(study, fixed={"shift": 0.5})
    x = [point.params["x"] for point in front]
    assert {point.params["shift"] for point in front} == {0.5}
    assert (x[0], x[-1]) == pytest.approx((0.7, 0.9), abs=0.05)
    assert sampler.recommend_front(study, fixed={}) == sampler.recommend_front(study)


@pytest.mark.parametrize(
    ("fixed", "kind", "words"),
    [
        ({"y": 1.0}, ArgumentError, r"names among \['kind', 'n', 'x'\], got 'y'"),
        ({"kind": "c"}, ArgumentError, "'kind' a value of Categorical.*'c'"),
        ({"x": 2.0}, ArgumentError, "'x' a value of FloatDistribution.*2.0"),
        ({"x": "wide"}, ArgumentError, "'x' a value of FloatDistribution.*'wide'"),
        ({"x": None}, ArgumentError, "'x' a value of FloatDistribution.*None"),
        ({"x": 10**400}, ArgumentError, "'x' a value of FloatDistribution.*10"),
        ({"kind": 10**400}, ArgumentError, "'kind' a value of Categorical.*10"),
        ({"n": 2.5}, ArgumentError, "'n' a value of IntDistribution.*2.5"),
        ([("x", 0.5)], ArgumentTypeError, "expected a dict of parameters, got list"),
    ],
)
def test_what_does_not_belong_to_the_study_is_refused(
    read_only: optuna.Study, fixed: Any, kind: type[Exception], words: str
) -> None:
    for _ in range(2):  # a refused call changes nothing
        with pytest.raises(kind, match=f"^fixed: .*{words}"):
            read_only.sampler.recommend(read_only, fixed=fixed)
    assert read_only.sampler.recommend(read_only, fixed={"n": 3}).params["n"] == 3


def test_the_other_parameters_of_an_enqueued_trial_go_with_its_values() -> None:
    def distance(trial: optuna.Trial) -> float:
        return (trial.suggest_float("x", -2.0, 2.0) - trial.suggest_float("y", -2.0, 2.0)) ** 2

    study = new_study()
    study.optimize(distance, n_trials=40)
    for y in (-1.5, -0.2, 0.9, 1.7):
        study.enqueue_trial({"y": y, "unknown": 3})
        study.optimize(distance, n_trials=1)
        params = study.trials[-1].params
        assert params["y"] == y
        assert params["x"] == pytest.approx(y, abs=0.1)  # without it x is 1.4 away on average


@pytest.mark.parametrize("enqueued", [{"n": 99}, {"kind": "c"}])
def test_enqueued_values_outside_of_the_ranges_hold_nothing(enqueued: dict[str, Any]) -> None:
    study = finished(n=12)
    study.enqueue_trial(enqueued)
    study.ask()
    trial = copy.deepcopy(study.trials[-1])
    trial.system_attrs = {}
    assert relative(study) == relative(study, trial) != {}


def test_a_trial_with_all_values_enqueued_needs_no_suggestion() -> None:
    study = finished(n=12)
    study.enqueue_trial({"kind": "a", "x": 0.3, "n": 4})
    study.ask()
    assert relative(study) == {}


def relative(study: optuna.Study, trial: optuna.trial.FrozenTrial | None = None) -> dict[str, Any]:
    """What the sampler suggests for a trial, by default the last one."""
    trial, sampler = trial or study.trials[-1], study.sampler
    return sampler.sample_relative(study, trial, sampler.infer_relative_search_space(study, trial))
