"""Importances by the model against Sobol indices in closed form, and in Optuna's own functions."""

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.importance import get_param_importances
from optuna.trial import TrialState, create_trial

from bkbopt.adapters.optuna import BKBImportanceEvaluator, BKBSampler, optimizer_of
from bkbopt.errors import ArgumentError, ArgumentTypeError
from tests.adapters.optuna.studies import several

D = optuna.distributions
START = datetime(2026, 1, 1)


def sampled_at_random(objective: Any, n_trials: int) -> optuna.Study:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=n_trials)
    return study


def importances(study: optuna.Study, **options: Any) -> dict[str, float]:
    return get_param_importances(study, evaluator=BKBImportanceEvaluator(), **options)


def test_importances_are_total_sobol_indices() -> None:
    def ishigami(trial: optuna.Trial) -> float:
        x, y, z, _ = (trial.suggest_float(name, -math.pi, math.pi) for name in "xyzw")
        return math.sin(x) + 7.0 * math.sin(y) ** 2 + 0.1 * z**4 * math.sin(x)

    found = BKBImportanceEvaluator().evaluate(sampled_at_random(ishigami, 300))
    # Ishigami and Homma (1990) with a = 7, b = 0.1. 300 points and a sample of 2,048 leave an error of 0.02.
    exact = {"x": 0.558, "y": 0.442, "z": 0.244, "w": 0.0}
    assert found == pytest.approx(exact, abs=0.03)
    assert list(found) == ["x", "y", "z", "w"]


def test_trials_near_the_optimum_do_not_hide_an_important_parameter() -> None:
    study = optuna.create_study(sampler=BKBSampler(seed=0))
    study.optimize(lambda t: 2.0 * t.suggest_float("x", 0, 1) + t.suggest_float("y", 0, 1), n_trials=40)
    # Variances of 4 / 12 and 1 / 12; the model of a plane is exact but for its prior.
    assert importances(study) == pytest.approx({"x": 0.8, "y": 0.2}, abs=0.01)


def test_parameters_that_only_some_trials_have_are_included_and_fixed_ones_have_none() -> None:
    def branches(trial: optuna.Trial) -> float:
        trial.suggest_float("fixed", 1.0, 1.0)
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            return trial.suggest_float("x", 0.0, 1.0)
        return 5.0 + 0.1 * trial.suggest_float("slight", 0.0, 1.0)

    found = importances(sampled_at_random(branches, 60))
    assert list(found)[:2] == ["kind", "x"]
    assert found["x"] > 10.0 * found["slight"]
    assert found["fixed"] == 0.0


def test_some_parameters_have_the_same_importance_as_among_all() -> None:
    study = sampled_at_random(lambda t: t.suggest_float("x", 0, 1) * t.suggest_float("y", 0, 2), 30)
    evaluator = BKBImportanceEvaluator()
    assert evaluator.evaluate(study, ["y"]) == {"y": evaluator.evaluate(study)["y"]}
    assert evaluator.evaluate(study, []) == {}


def test_a_target_is_explained_in_place_of_the_values() -> None:
    study = several(["minimize", "maximize"])
    rng = np.random.default_rng(0)
    for x, y in rng.random((40, 2)):
        took = timedelta(seconds=10.0 * x)
        trial = create_trial(
            values=[y, -y],
            params={"x": x, "y": y},
            distributions={name: D.FloatDistribution(0.0, 1.0) for name in "xy"},
        )
        trial.datetime_start, trial.datetime_complete = START, START + took
        study.add_trial(trial)

    def seconds(trial: optuna.trial.FrozenTrial) -> float:
        assert trial.duration is not None
        return trial.duration.total_seconds()

    assert importances(study, target=seconds)["x"] == pytest.approx(1.0, abs=1e-3)
    assert importances(study, target=lambda t: t.values[0])["y"] == pytest.approx(1.0, abs=1e-3)
    opt = optimizer_of(study, target=seconds)
    # 40 values without noise determine a line but for the least noise that a fit may find.
    assert opt.predict([{"x": 0.3, "y": 0.9}])[0][0] == pytest.approx(3.0, abs=0.01)
    assert study.trials[0].values != opt.trials[0].values


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0, 2.0], [math.inf, math.inf]])
def test_values_that_explain_nothing_give_no_importance(values: list[float]) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda t: values[t.number] + 0.0 * t.suggest_float("x", 0, 1), n_trials=len(values))
    assert BKBImportanceEvaluator().evaluate(study) == {"x": 0.0}


def test_trials_without_a_finite_target_are_left_out() -> None:
    study = sampled_at_random(lambda t: t.suggest_float("x", 0, 1) + 3.0 * t.suggest_float("y", 0, 1), 40)
    found = importances(study, target=lambda t: t.params["x"] if t.number % 4 else math.nan)
    assert found["x"] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("kind", [bool, np.bool_, np.float32, np.int64])
def test_targets_are_numbers_of_any_kind_and_booleans(kind: Callable[[bool], Any]) -> None:
    study = sampled_at_random(lambda t: t.suggest_float("x", 0, 1) + t.suggest_float("y", 0, 1), 30)
    assert importances(study, target=lambda t: kind(t.params["x"] > 0.5))["x"] > 0.9


def test_a_target_beyond_the_largest_double_counts_as_infinite() -> None:
    study = sampled_at_random(lambda t: t.suggest_float("x", 0, 1), 3)
    assert optimizer_of(study, target=lambda t: 10**400 if t.number else 1).n_complete == 1


@pytest.mark.parametrize("given", ["a", None, timedelta(1), np.timedelta64(1, "s"), 1j])
def test_targets_that_are_no_numbers_are_refused(given: Any) -> None:
    study = sampled_at_random(lambda t: t.suggest_float("x", 0, 1), 3)
    with pytest.raises(ArgumentTypeError, match="target: expected a number for trial 0, got "):
        importances(study, target=lambda t: given)


def test_parameters_are_uniform_in_their_own_scales_and_latest_ranges() -> None:
    def digits(trial: optuna.Trial) -> float:
        high = 1.0 if trial.number % 2 or trial.number > 55 else 2.0
        return math.log10(trial.suggest_float("x", 1e-4, 1.0, log=True)) + 4.0 * trial.suggest_float("y", 0.0, high)

    # Both have a range of 4: by a uniform x, or by the first range of y, the shares are unequal.
    assert importances(sampled_at_random(digits, 60)) == pytest.approx({"x": 0.5, "y": 0.5}, abs=0.01)


def test_a_study_without_parameters_has_no_importances() -> None:
    assert importances(sampled_at_random(lambda t: float(t.number), 3)) == {}


def test_refusals_name_the_argument() -> None:
    evaluator, study = BKBImportanceEvaluator(), optuna.create_study()
    with pytest.raises(ArgumentError, match="study: expected a complete trial, got none"):
        evaluator.evaluate(study)
    study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=3)
    with pytest.raises(ArgumentTypeError, match="study: expected a study of Optuna, got list"):
        evaluator.evaluate([])  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="params: expected a list of names, or None, got 'x'"):
        evaluator.evaluate(study, "x")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"params: expected names of complete trials' parameters, \['x'\], got"):
        evaluator.evaluate(study, ["x", "z"])
    with pytest.raises(ArgumentTypeError, match="target: expected a number for trial 0, got 'a'"):
        evaluator.evaluate(study, target=lambda t: "a")  # type: ignore[arg-type, return-value]
    fronts = several(["minimize", "minimize"])
    fronts.optimize(lambda t: (t.suggest_float("x", 0, 1), 0.0), n_trials=2)
    with pytest.raises(ArgumentError, match="target: expected a function of trials, since the study has 2 objectives"):
        evaluator.evaluate(fronts)


def test_failed_and_pruned_trials_are_not_explained_and_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        if trial.number % 3 == 1:
            raise optuna.TrialPruned
        return math.nan if trial.number % 3 == 2 else x + 0.1 * trial.suggest_float("y", 0, 1)

    study = sampled_at_random(objective, 60)
    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL}
    caplog.clear()
    assert importances(study)["x"] == pytest.approx(1.0 / 1.01, abs=0.01)
    assert not caplog.records
