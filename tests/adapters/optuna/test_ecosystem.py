"""The sampler with Optuna's other features, and its options."""

import logging
import math
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import PartialFixedSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState

import bkbopt as bo
from bkbopt.adapters.optuna import BKBSampler, optimizer_of
from bkbopt.errors import BkbError
from bkbopt.search import choosing
from tests.adapters.optuna.studies import new_study, objective
from tests.sweeps import slow_but

experimental = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


# -- other samplers, queues, ask and tell --------------------------------------------------------------------------


@experimental
def test_fixed_parameters_stay_fixed_and_the_others_are_optimized() -> None:
    study = new_study(n_startup_trials=5)
    study.optimize(objective, n_trials=8)
    study.sampler = PartialFixedSampler({"x": -1.0, "kind": "b"}, study.sampler)
    study.optimize(objective, n_trials=12)
    late = [trial.params for trial in study.trials[8:]]
    assert {(params["x"], params["kind"]) for params in late} == {(-1.0, "b")}
    # With these two fixed, n is all that is left, and its best value has been found.
    assert min(abs(params["n"] - 3) for params in late) == 0


@experimental
def test_all_parameters_may_be_fixed() -> None:
    study = new_study()
    study.optimize(objective, n_trials=6)
    study.sampler = PartialFixedSampler({"x": 0.5, "n": 2, "kind": "a"}, study.sampler)
    study.optimize(objective, n_trials=2)
    assert [trial.params for trial in study.trials[6:]] == [{"x": 0.5, "n": 2, "kind": "a"}] * 2


def test_queued_trials_are_evaluated_first() -> None:
    study = new_study()
    study.enqueue_trial({"x": 0.25, "n": 1, "kind": "b"})
    study.enqueue_trial({"x": -0.75})
    study.optimize(objective, n_trials=10)
    assert study.trials[0].params == {"x": 0.25, "n": 1, "kind": "b"}
    assert study.trials[1].params["x"] == -0.75
    study.enqueue_trial({"n": 5})
    study.optimize(objective, n_trials=2)
    assert study.trials[10].params["n"] == 5
    assert study.trials[11].state == TrialState.COMPLETE


def test_a_study_is_driven_by_ask_and_tell() -> None:
    study = new_study()
    for _ in range(10):
        trial = study.ask()
        study.tell(trial, objective(trial))
    by_number = study.ask()
    study.tell(by_number.number, objective(by_number))
    assert study.tell(study.ask(), state=TrialState.FAIL).state == TrialState.FAIL
    reference = new_study()
    reference.optimize(objective, n_trials=11)
    assert [trial.params for trial in study.trials[:11]] == [trial.params for trial in reference.trials]


def test_fixed_distributions_give_what_suggest_gives() -> None:
    space = {
        "x": FloatDistribution(-2.0, 2.0),
        "n": IntDistribution(0, 6),
        "kind": CategoricalDistribution(["a", "b"]),
    }
    asked, optimized = new_study(), new_study()
    for _ in range(9):
        trial = asked.ask(space)
        asked.tell(trial, objective(trial))
    optimized.optimize(objective, n_trials=9)
    assert [trial.params for trial in asked.trials] == [trial.params for trial in optimized.trials]


def test_callbacks_and_stop_work() -> None:
    study = new_study()
    study.optimize(objective, n_trials=30, callbacks=[lambda study, trial: study.stop() if trial.number == 7 else None])
    assert len(study.trials) == 8


def past(n: int) -> list[FrozenTrial]:
    rng = np.random.default_rng(0)
    distribution = FloatDistribution(0.0, 1.0)
    return [
        optuna.create_trial(params={"x": x}, distributions={"x": distribution}, value=(x - 0.3) ** 2)
        for x in rng.random(n)
    ]


def test_past_data_replace_the_start() -> None:
    study = new_study(n_startup_trials=5)
    study.add_trials(past(12))
    x = study.ask().suggest_float("x", 0.0, 1.0)
    assert x == pytest.approx(0.3, abs=0.1)
    assert len(study.sampler.diagnostics) == 1


def test_trials_added_in_the_middle_are_learnt_from() -> None:
    study = new_study()
    study.optimize(lambda trial: 5.0 + trial.suggest_float("x", 0.0, 1.0), n_trials=8)
    study.add_trials(past(12))
    for trial in past(3):
        study.add_trial(trial)
    xs = [study.ask().suggest_float("x", 0.0, 1.0) for _ in range(2)]
    assert min(abs(x - 0.3) for x in xs) < 0.2


def test_copied_studies_are_followed() -> None:
    study = new_study()
    study.optimize(objective, n_trials=8)
    storage = optuna.storages.InMemoryStorage()
    optuna.copy_study(
        from_study_name=study.study_name, from_storage=study._storage, to_storage=storage, to_study_name="copy"
    )
    copied = optuna.load_study(study_name="copy", storage=storage, sampler=study.sampler)
    fresh = optuna.load_study(study_name="copy", storage=storage, sampler=BKBSampler(seed=0, n_startup_trials=5))
    x = copied.ask().suggest_float("x", -2.0, 2.0)
    copied.tell(8, state=TrialState.FAIL)
    assert -2.0 <= x <= 2.0
    assert fresh.ask().suggest_float("x", -2.0, 2.0) != x


# -- plots and importances -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished() -> optuna.Study:
    study = new_study()

    def with_steps(trial: optuna.Trial) -> float:
        value = objective(trial)
        trial.report(value + 1.0, step=0)
        trial.report(value, step=1)
        if trial.number == 9:
            raise optuna.TrialPruned
        return value

    study.optimize(with_steps, n_trials=15)
    study.ask().suggest_float("x", -2.0, 2.0)
    return study


PLOTS = (
    "plot_contour",
    "plot_edf",
    "plot_intermediate_values",
    "plot_optimization_history",
    "plot_parallel_coordinate",
    "plot_param_importances",
    "plot_rank",
    "plot_slice",
    "plot_timeline",
)


@experimental
@pytest.mark.filterwarnings("ignore:.*set_ticklabels:UserWarning", "ignore:.*tight_layout:UserWarning")
@pytest.mark.parametrize("name", slow_but(["plot_contour", "plot_param_importances"], PLOTS))
def test_optunas_plots_draw_the_study(name: str, finished: optuna.Study) -> None:
    import optuna.visualization.matplotlib as plots

    mpl.use("Agg")
    try:
        drawn = np.ravel(getattr(plots, name)(finished))
        assert any(axes.has_data() for axes in drawn)
    finally:
        mpl.pyplot.close("all")


@experimental
def test_the_front_of_two_objectives_is_drawn() -> None:
    from optuna.visualization.matplotlib import plot_hypervolume_history, plot_pareto_front

    mpl.use("Agg")
    study = optuna.create_study(directions=["minimize"] * 2, sampler=BKBSampler(seed=0, n_startup_trials=4))
    study.optimize(lambda trial: (objective(trial), -trial.params["x"]), n_trials=8)
    try:
        assert plot_pareto_front(study).has_data()
        assert plot_hypervolume_history(study, [10.0, 10.0]).has_data()
    finally:
        mpl.pyplot.close("all")


def test_importances_name_every_parameter(finished: optuna.Study) -> None:
    assert optuna.importance.get_param_importances(finished).keys() == {"x", "n", "kind"}


def test_the_data_frame_has_every_trial(finished: optuna.Study) -> None:
    frame = finished.trials_dataframe()
    assert len(frame) == 16
    assert {"params_x", "params_n", "params_kind"} <= set(frame.columns)


# -- options in Optuna's manner ------------------------------------------------------------------------------------


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """What Optuna or the sampler has logged as a warning."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    optuna.logging.enable_propagation()
    optuna.logging.disable_default_handler()
    with caplog.at_level(logging.WARNING):
        yield lambda: [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    optuna.logging.enable_default_handler()
    optuna.logging.disable_propagation()
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def late_parameter(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 0.0, 1.0)
    return x + (trial.suggest_float("late", 0.0, 1.0) if trial.number == 8 else 0.0)


def test_independent_sampling_is_warned_of(warned: Callable[[], list[str]]) -> None:
    new_study(n_startup_trials=5).optimize(late_parameter, n_trials=10)
    assert len(warned()) == 1
    for word in ("late", "8", "warn_independent_sampling", "no earlier trial has it"):
        assert word in warned()[0]


def test_the_warning_says_that_a_range_has_changed(warned: Callable[[], list[str]]) -> None:
    study = new_study(n_startup_trials=5)
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=8)
    study.optimize(lambda trial: trial.suggest_float("x", 5.0, 6.0), n_trials=1)
    assert len(warned()) == 1
    assert "the proposed point has no value in its range" in warned()[0]


def test_the_warning_says_that_no_trial_of_a_branch_had_the_parameter(warned: Callable[[], list[str]]) -> None:
    """Trial 8 is the first with these parameters: `late` is not known to have values where `kind` has another one."""
    study = new_study(n_startup_trials=5)
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=8)

    def later(trial: optuna.Trial) -> float:
        trial.suggest_categorical("kind", ["a", "b"])
        return trial.suggest_float("x", 0.0, 1.0) + trial.suggest_float("late", 0.0, 1.0)

    study.optimize(later, n_trials=3)
    told = [message for message in warned() if "'late' of trial 8" not in message and "'kind'" not in message]
    assert told
    assert all("'late'" in message and "or is on a branch that had none" in message for message in told)


def test_the_warning_of_independent_sampling_can_be_switched_off(warned: Callable[[], list[str]]) -> None:
    new_study(n_startup_trials=5, warn_independent_sampling=False).optimize(late_parameter, n_trials=10)
    assert warned() == []


@pytest.mark.parametrize("n_startup_trials", [0, 1, 5])
def test_the_start_of_a_study_is_not_warned_of(n_startup_trials: int, warned: Callable[[], list[str]]) -> None:
    study = new_study(n_startup_trials=n_startup_trials, independent_sampler=RandomSampler(seed=0))
    study.optimize(objective, n_trials=8)
    assert warned() == []


class Recording(RandomSampler):
    """Gives the middle of every range and remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(seed=0)
        self.calls: list[tuple[str, int]] = []

    def reseed_rng(self) -> None:
        self.calls.append(("reseed", -1))

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self.calls.append(("before", trial.number))

    def after_trial(self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Any) -> None:
        self.calls.append(("after", trial.number))

    def sample_independent(self, study: optuna.Study, trial: FrozenTrial, name: str, distribution: Any) -> float:
        self.calls.append((name, trial.number))
        return 0.5 * (distribution.low + distribution.high)


def test_the_independent_sampler_starts_the_study_and_fills_what_the_model_lacks() -> None:
    recording = Recording()
    study = new_study(n_startup_trials=3, independent_sampler=recording, warn_independent_sampling=False)
    study.optimize(late_parameter, n_trials=10)
    assert [trial.params["x"] for trial in study.trials[:3]] == [0.5] * 3
    assert study.trials[8].params["late"] == 0.5
    sampled = [call for call in recording.calls if call[0] in ("x", "late")]
    assert sampled == [("x", 0), ("x", 1), ("x", 2), ("late", 8)]
    for hook in ("before", "after"):
        assert [number for name, number in recording.calls if name == hook] == list(range(10))


def test_reseeding_reaches_the_independent_sampler() -> None:
    recording = Recording()
    BKBSampler(seed=0, independent_sampler=recording).reseed_rng()
    assert recording.calls == [("reseed", -1)]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"seed": -1}, ValueError),
        ({"seed": "0"}, TypeError),
        ({"seed": 0.5}, ValueError),
        ({"n_startup_trials": -1}, ValueError),
        ({"n_startup_trials": 1.5}, ValueError),
        ({"n_startup_trials": "ten"}, TypeError),
        ({"n_startup_trials": None}, TypeError),
        ({"independent_sampler": 3}, TypeError),
        ({"independent_sampler": RandomSampler}, TypeError),
        ({"deterministic_objective": "no"}, TypeError),
        ({"deterministic_objective": None}, TypeError),
        ({"warn_independent_sampling": 2}, TypeError),
        ({"qbar": 0.0}, ValueError),
        ({"qbar": math.nan}, ValueError),
        ({"qbar": "big"}, TypeError),
        ({"max_inducing": 0}, ValueError),
        ({"max_inducing": 2.5}, ValueError),
        ({"beta": -1.0}, ValueError),
        ({"beta": math.nan}, ValueError),
        ({"beta": "wide"}, TypeError),
        ({"acquisition": "ei"}, ValueError),
        ({"acquisition": None}, (TypeError, ValueError)),
        ({"acquisition": []}, (TypeError, ValueError)),
        ({"kernel": "rbf"}, TypeError),
        ({"kernel": 1.0}, TypeError),
        ({"perturbations": "no"}, TypeError),
    ],
    ids=str,
)
def test_a_wrong_option_is_refused_by_its_name(options: dict[str, Any], error: type[Exception]) -> None:
    (name,) = options
    with pytest.raises(error, match=rf"^{name}: expected .*, got ") as caught:
        BKBSampler(**options)
    assert isinstance(caught.value, BkbError)


def test_options_are_given_by_name() -> None:
    with pytest.raises(TypeError, match="positional"):
        BKBSampler(0)
    with pytest.raises(TypeError, match="n_startup"):
        BKBSampler(n_startup=3)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": bo.kernels.matern52(2, 0.4)},
        {"beta": 0.5},
        {"beta": lambda progress: 1.0},
        {"qbar": 1.0, "max_inducing": 4},
        {"max_inducing": None},
        {"deterministic_objective": True},
        {"seed": np.int64(3), "n_startup_trials": np.int64(2)},
    ],
    ids=["kernel", "beta", "schedule", "qbar", "no-cap", "deterministic", "numpy"],
)
def test_options_are_used(options: dict[str, Any]) -> None:
    study = new_study(**options)

    def bowl(trial: optuna.Trial) -> float:
        return (trial.suggest_float("x", -1.0, 1.0) - 0.3) ** 2 + (trial.suggest_float("y", -1.0, 1.0) + 0.2) ** 2

    study.optimize(bowl, n_trials=14)
    assert study.best_value < 0.05  # the centre, which comes first, has 0.13
    if options.get("max_inducing") == 4:
        assert max(record.n_inducing for record in study.sampler.diagnostics) <= 4
    if "beta" in options:
        assert study.sampler.diagnostics[-1].beta == (0.5 if options["beta"] == 0.5 else 1.0)


def test_perturbations_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()
    monkeypatch.setattr(choosing, "is_perturbation", lambda number, *_: asked.append(number) is not None)
    for wanted in (True, False):
        asked.clear()
        study = new_study(perturbations=wanted)
        study.optimize(objective, n_trials=8)
        assert bool(asked) is wanted
        assert optimizer_of(study)._core.designer.options.perturbations is wanted
