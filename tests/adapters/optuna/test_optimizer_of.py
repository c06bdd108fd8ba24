"""A study as an optimizer: the sampler's model, the study's trials, and every picture."""

import copy
import logging
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

import bkbopt as bo
from bkbopt.adapters.optuna import BKBSampler, optimizer_of
from bkbopt.errors import ArgumentError, ArgumentTypeError
from tests.adapters.optuna.studies import bowl, new_study, several

D = optuna.distributions


def branches(trial: optuna.Trial) -> float:
    """Two branches with parameters of their own, one of which has a switch below it."""
    if trial.suggest_categorical("kind", ["line", "bowl"]) == "line":
        return trial.suggest_float("slope", 0.0, 1.0) + 0.1 * trial.number
    deep = trial.suggest_int("depth", 1, 2) == 2
    return (trial.suggest_float("x", -2.0, 2.0) - 0.3) ** 2 - (trial.suggest_float("y", 0.0, 1.0) if deep else 0.2)


def same_choice(study: optuna.Study, opt: bo.Optimizer) -> bool:
    return bool(opt.recommend() == study.sampler.recommend(study))  # type: ignore[attr-defined]


@pytest.mark.parametrize("options", [{"seed": None}, {"acquisition": "logei", "beta": 2.0, "max_inducing": 6}])
def test_an_optimizer_of_a_study_has_the_model_of_its_sampler(options: dict[str, Any]) -> None:
    study = new_study(**options)
    study.optimize(bowl, n_trials=9)
    assert same_choice(study, opt := optimizer_of(study))
    assert opt.n_startup_trials == 5


def test_attributes_that_a_log_can_store_come_along(tmp_path: Path) -> None:
    study = new_study()
    study.optimize(bowl, n_trials=3)
    trial = study.ask({"x": D.FloatDistribution(-2.0, 2.0)})
    trial.set_user_attr("host", "a1")
    trial.set_user_attr("scores", (1, 2.5))
    trial.set_user_attr("model", object())
    study.tell(trial, 1.0)
    opt = optimizer_of(study)
    assert opt.trials[-1].user_attrs == {"host": "a1", "scores": [1, 2.5]}
    opt.save(tmp_path / "log.db")
    assert bo.Optimizer.load(tmp_path / "log.db").trials[-1].user_attrs == opt.trials[-1].user_attrs


def test_conditions_are_those_that_hold_in_all_trials() -> None:
    study = new_study()
    study.optimize(branches, n_trials=20)
    opt = optimizer_of(study)
    assert opt.space is not None
    assert {name: parameter.when for name, parameter in opt.space.items} == {
        "kind": None,
        "slope": {"kind": ("line",)},
        "depth": {"kind": ("bowl",)},
        "x": {"kind": ("bowl",)},
        "y": {"depth": (2,)},
    }
    assert same_choice(study, opt)


def test_parameters_that_come_and_go_together_without_a_reason_have_no_condition() -> None:
    study = new_study()
    for params in ({"x": 0.1}, {"x": 0.4, "m": 1, "n": 1}, {"x": 0.8, "m": 2, "n": 2}):
        ranges = {name: D.FloatDistribution(0, 1) if name == "x" else D.IntDistribution(1, 2) for name in params}
        study.add_trial(optuna.create_trial(params=params, distributions=ranges, value=params["x"]))
    opt = optimizer_of(study)
    assert opt.space is not None
    assert not opt.space.is_conditional
    assert opt.n_complete == 3


def depends_on_a_float(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 0.0, 1.0)
    return x + (trial.suggest_float("late", 0.0, 1.0) if x > 0.5 else 0.0)


def test_trials_without_a_parameter_that_depends_on_a_float_are_recommended_as_they_are() -> None:
    study = new_study()
    study.optimize(depends_on_a_float, n_trials=20)
    opt = optimizer_of(study)
    assert opt.recommend().params.keys() == {"x"}
    assert same_choice(study, opt)
    assert opt.regret_certificate().params == opt.recommend().params
    opt.enqueue({"x": 0.9})
    assert opt.ask().params.keys() == {"x", "late"}


def test_a_later_space_with_conditions_completes_trials_that_lack_a_parameter() -> None:
    study = new_study()
    study.optimize(depends_on_a_float, n_trials=20)
    opt = optimizer_of(study)
    x = opt.recommend().params["x"]
    opt.set_space({"x": (0.0, 1.0), "is_late": ["yes", "no"], "late": bo.Float(0.0, 1.0, when={"is_late": "yes"})})
    best = opt.recommend()
    assert best.params == {"x": x, "is_late": "yes", "late": 0.5}
    assert opt.predict(best.params)[0].tolist() == [best.mean]
    assert opt.enqueue(best.params).params == best.params


def test_fronts_have_trials_without_a_parameter_that_depends_on_a_float() -> None:
    study = several(["minimize", "minimize"])
    study.optimize(lambda trial: (depends_on_a_float(trial), (trial.params["x"] - 0.3) ** 2), n_trials=20)
    front = optimizer_of(study).recommend_front()
    assert min(point.params["x"] for point in front) < 0.3
    assert front == study.sampler.recommend_front(study)  # type: ignore[attr-defined]


def test_trials_keep_their_numbers_states_and_times() -> None:
    study = new_study()
    running = study.ask({"x": D.FloatDistribution(0, 1)})
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    study.tell(study.ask({"x": D.FloatDistribution(0, 1)}), state=TrialState.FAIL)
    study.enqueue_trial({"x": 0.5})
    opt = optimizer_of(study)
    assert [trial.state for trial in opt.trials] == ["RUNNING", *["COMPLETE"] * 3, "FAIL", "WAITING"]
    assert [dict(trial.params) for trial in opt.trials] == [trial.params for trial in study.trials]
    assert opt.trials[0].params == running.params
    ended = study.trials[1].datetime_complete
    assert ended is not None
    assert opt.trials[1].told_at == ended.astimezone(UTC)


def test_values_are_in_the_order_of_completion() -> None:
    study = new_study()
    first, second = (study.ask({"x": D.FloatDistribution(0, 1)}) for _ in range(2))
    study.tell(second, 2.0)
    study.tell(first, 1.0)
    assert optimizer_of(study).observed()[1].tolist() == [2.0, 1.0]


def test_trials_from_elsewhere_may_have_times_of_a_time_zone() -> None:
    study = new_study()
    study.optimize(bowl, n_trials=6)
    elsewhere = copy.deepcopy(study.trials[0])
    elsewhere.datetime_complete = datetime.now(UTC) - timedelta(days=1)
    study.add_trial(elsewhere)
    opt = optimizer_of(study)
    assert same_choice(study, opt)
    assert opt.observed()[1][0] == elsewhere.value  # the first one to be completed


def test_ranges_are_the_latest_and_earlier_values_are_learnt() -> None:
    study = new_study()
    for number in range(8):
        high = 4.0 if number < 4 else 1.0
        study.tell(trial := study.ask({"x": D.FloatDistribution(0.0, high)}), (trial.params["x"] - 0.5) ** 2)
    opt = optimizer_of(study)
    assert opt.space == bo.Space.parse({"x": (0.0, 1.0)})
    assert opt.n_complete == 8
    assert same_choice(study, opt)


def test_a_value_outside_of_its_range_is_learnt_as_the_sampler_learns_it() -> None:
    study = new_study()
    study.enqueue_trial({"x": 7.0, "y": 0.5})
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(bowl, n_trials=7)
    opt = optimizer_of(study)
    assert opt.trials[0].params["x"] == 7.0
    assert same_choice(study, opt)


@pytest.mark.parametrize("choices", [["a", "b", "a", "c"], [1, True, 2, 1.0]], ids=str)
def test_a_study_with_a_choice_listed_twice_has_it_once(choices: list[Any]) -> None:
    study = new_study()
    study.optimize(lambda trial: (trial.suggest_categorical("kind", choices) == choices[1]) + bowl(trial), n_trials=9)
    opt = optimizer_of(study)
    assert opt.space is not None
    assert opt.space.parameters["kind"] == bo.Categorical(list(dict.fromkeys(choices)))
    assert same_choice(study, opt)


def test_a_choice_of_an_added_trial_is_the_one_that_it_is_equal_to() -> None:
    study = new_study()
    space = {"kind": D.CategoricalDistribution([1, 0, "x"])}
    for value, kind in enumerate([True, 1.0, False, "x"]):
        study.add_trial(optuna.create_trial(params={"kind": kind}, distributions=space, value=value))
    opt = optimizer_of(study)
    assert [repr(trial.params["kind"]) for trial in opt.trials] == ["1", "1", "0", "'x'"]
    assert same_choice(study, opt)


def test_a_sampler_without_recommendations_is_not_advised(caplog: pytest.LogCaptureFixture) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(bowl, n_trials=3)
    study.tell(study.ask({name: D.FloatDistribution(0, 1) for name in "xy"}), state=TrialState.PRUNED)
    with caplog.at_level(logging.WARNING, logger="bkbopt"):
        optimizer_of(study)
    assert [record.getMessage()[-18:] for record in caplog.records] == ["are of the others."]


def test_pruned_trials_and_infinite_values_have_no_value_and_a_copy_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    study = new_study()
    study.optimize(bowl, n_trials=6)
    for end in ({"state": TrialState.PRUNED}, {"values": float("inf")}):
        study.tell(study.ask({name: D.FloatDistribution(0, 1) for name in "xy"}), **end)
    with caplog.at_level(logging.WARNING, logger="bkbopt"):
        opt = optimizer_of(study)
    (warned,) = [record.getMessage() for record in caplog.records if record.name.startswith("bkbopt")]
    assert "1 of 8 finished trials were pruned, and have no value in the optimizer" in warned
    assert [(trial.state, trial.values) for trial in opt.trials[6:]] == [("COMPLETE", ())] * 2
    assert warned.endswith("study.sampler.recommend(study) estimates their values.")
    assert opt.best_trial.id == study.best_trial.number
    with pytest.raises(ArgumentError, match="save: expected trials with values or constraints, got trial 6 without"):
        opt.save(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.parametrize(
    ("give", "params"),
    [
        (lambda study: study.enqueue_trial({"x": 7.0, "y": 0.5}), r"\{'x': 7\.0, 'y': 0\.5\}"),
        (lambda study: study.tell(study.ask(), state=TrialState.FAIL), r"\{\}"),
        (lambda study: study.ask(), r"\{\}"),
    ],
    ids=["outside", "failed", "running"],
)
def test_a_copy_that_could_not_be_read_is_refused(
    give: Callable[[optuna.Study], object], params: str, tmp_path: Path
) -> None:
    study = new_study()
    study.optimize(bowl, n_trials=6)
    give(study)
    with warnings.catch_warnings(action="ignore"):  # out of range
        study.optimize(bowl, n_trials=1)
    with pytest.raises(
        ArgumentError, match=f"save: expected trials with parameters within their ranges, got trial 6 with {params}, as"
    ):
        optimizer_of(study).save(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_a_copy_of_a_study_goes_on_in_a_file(tmp_path: Path) -> None:
    study = new_study()
    study.optimize(branches, n_trials=12)
    opt = optimizer_of(study)
    opt.save(tmp_path / "copy.db")
    again = bo.Optimizer.open(tmp_path / "copy.db")
    assert again.recommend() == opt.recommend()
    assert again.ask().id == 12


def test_constraints_are_those_of_all_trials() -> None:
    def constrained(trial: optuna.Trial) -> float:
        value = bowl(trial)
        trial.set_constraint("low", 0.5 - trial.params["x"])
        return value

    study = new_study("maximize")
    study.optimize(lambda trial: -constrained(trial), n_trials=10)
    opt = optimizer_of(study)
    assert (opt.constraints, opt.direction) == (("low",), "maximize")
    assert [dict(trial.constraints) for trial in opt.trials] == [dict(trial.constraints) for trial in study.trials]
    assert same_choice(study, opt)


def test_a_study_of_another_sampler_has_a_model_too() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(bowl, n_trials=15)
    mean, std = optimizer_of(study).predict([{"x": 0.2, "y": 0.6}, {"x": 0.9, "y": 0.1}])
    assert mean[0] < mean[1]
    assert (std > 0.0).all()


@pytest.mark.slow
def test_pictures_and_reports_are_drawn_of_a_study(tmp_path: Path) -> None:
    plots = pytest.importorskip("bkbopt.plots")
    study = new_study()
    study.optimize(branches, n_trials=11)
    opt = optimizer_of(study)
    assert len(plots.overview(opt).axes) >= 3
    assert plots.posterior_slice(opt, "kind").has_data()
    assert plots.calibration(opt).has_data()
    assert bo.analysis.variance_shares(opt).keys() == {"kind", "slope", "depth", "x", "y"}
    plots.report(opt, tmp_path / "study.html")
    assert "kind is line" in (tmp_path / "study.html").read_text()


def test_a_report_of_several_objectives_and_pruned_trials_is_written(tmp_path: Path) -> None:
    plots, _ = pytest.importorskip("bkbopt.plots"), pytest.importorskip("botorch")
    study = several(["minimize", "maximize"])
    study.optimize(lambda trial: (bowl(trial), trial.params["x"]), n_trials=8)
    study.tell(study.ask(), state=TrialState.FAIL)
    study.tell(study.ask({name: D.FloatDistribution(0, 1) for name in "xy"}), state=TrialState.PRUNED)
    plots.report(optimizer_of(study), tmp_path / "study.html")
    page = (tmp_path / "study.html").read_text()
    assert "The Pareto front has" in page
    assert "8 complete" in page
    assert "1 without value" in page


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_objectives_have_the_names_of_the_metrics() -> None:
    study = several(["minimize", "maximize"])
    study.optimize(lambda trial: (bowl(trial), trial.params["x"]), n_trials=3)
    assert optimizer_of(study).objectives == ()
    study.set_metric_names(["same", "same"])
    assert optimizer_of(study).objectives == ()
    study.set_metric_names(["cost", "x"])
    assert optimizer_of(study).objectives == ("cost", "x")
    assert optimizer_of(study, target=lambda trial: trial.values[1]).objectives == ()


def test_reading_a_study_changes_nothing_in_it() -> None:
    read, left = new_study(), new_study()
    for study in (read, left):
        study.optimize(bowl, n_trials=7)
    opt = optimizer_of(read)
    opt.ask()
    assert read.ask({"x": D.FloatDistribution(0, 1)}).params == left.ask({"x": D.FloatDistribution(0, 1)}).params


def test_what_is_no_study_with_parameters_is_refused() -> None:
    for recommend in (BKBSampler().recommend, BKBSampler().recommend_front):
        with pytest.raises(ArgumentTypeError, match="study: expected a study of Optuna, got list"):
            recommend([])  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="study: expected a study of Optuna, got BKBSampler"):
        optimizer_of(BKBSampler())  # type: ignore[arg-type]
    study = new_study()
    study.tell(study.ask(), state=TrialState.FAIL)
    with pytest.raises(ArgumentError, match="study: expected a complete or pruned trial with parameters, got none"):
        optimizer_of(study)
