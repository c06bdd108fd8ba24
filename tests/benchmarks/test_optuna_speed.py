"""The timing of Optuna's samplers meets the studies that it says, and prints every table."""

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from benchmarks import optuna_speed
from benchmarks.optuna_speed import SPACES, Cost, costs_by_size, make_study, measure, objective, params_at

every_space = pytest.mark.parametrize("name", SPACES)


@every_space
def test_points_of_the_cube_are_valid_and_cover_the_ranges(name: str) -> None:
    space = SPACES[name]
    for u in [np.zeros(len(space)), np.ones(len(space)), *np.random.default_rng(0).random((200, len(space)))]:
        for key, value in params_at(space, u).items():
            assert space[key]._contains(space[key].to_internal_repr(value))
    low, high = (params_at(space, np.full(len(space), u)) for u in (0.0, 1.0))
    for key, distribution in space.items():
        if isinstance(distribution, optuna.distributions.CategoricalDistribution):
            assert (low[key], high[key]) == (distribution.choices[0], distribution.choices[-1])
        else:
            assert (low[key], high[key]) == pytest.approx((distribution.low, distribution.high), rel=1e-14)


@every_space
def test_studies_have_the_trials_that_were_asked_for(name: str) -> None:
    study = make_study(SPACES[name], finished=21, running=7)
    states = [trial.state for trial in study.trials]
    assert (states.count(TrialState.COMPLETE), states.count(TrialState.RUNNING)) == (21, 7)
    for trial in study.trials:
        assert set(trial.params) == {key for key in SPACES[name] if optuna_speed.is_active(key, trial.params)}
    again = make_study(SPACES[name], finished=21, running=7)
    assert [t.params for t in study.trials] == [t.params for t in again.trials]
    assert [t.value for t in study.trials] == [t.value for t in again.trials]


def test_the_objective_is_a_bowl_with_noise() -> None:
    space = SPACES["6 floats"]
    rng = np.random.default_rng(0)
    centre, corner = np.linspace(0.3, 0.7, 6), np.zeros(6)
    values = {
        u: [objective(space, params_at(space, p), rng) for _ in range(50)]
        for u, p in (("centre", centre), ("corner", corner))
    }
    assert np.std(values["centre"]) == pytest.approx(optuna_speed.NOISE_SD, rel=0.4)  # four standard errors
    assert np.mean(values["corner"]) > np.mean(values["centre"]) + 1.0


def test_parameters_of_other_models_do_not_exist() -> None:
    study = make_study(SPACES["3 branches"], finished=30)
    names = {frozenset(trial.params) for trial in study.trials}
    assert frozenset({"model", "svm.cost", "svm.width"}) in names
    assert len(names) == 3


@pytest.mark.parametrize("sampler", optuna_speed.NAMES)
def test_a_measurement_has_every_number(sampler: str) -> None:
    cost = measure(sampler, "6 floats", finished=15, running=3, steps=2, threads=1)
    assert 0.0 < cost.warm <= cost.longest
    assert cost.cold > 0.0
    assert cost.most >= cost.held


def test_a_sampler_above_the_limit_is_not_asked_at_larger_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(sampler: str, space: str, finished: int, running: int) -> Cost:
        ms = 11_000.0 if sampler == "gp_sampler" and finished >= 300 else 10.0
        return Cost(99_000.0, ms, ms, 1.0, 2.0)

    costs = costs_by_size("6 floats", ["bkb", "gp_sampler"], [100, 300, 1_000], run)
    assert list(costs) == [("bkb", 100), ("gp_sampler", 100), ("bkb", 300), ("gp_sampler", 300), ("bkb", 1_000)]


def test_no_step_follows_one_above_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optuna_speed, "LIMIT_S", 0.0)
    cost = measure("tpe", "6 floats", finished=15, running=0, steps=2, threads=1)
    assert cost.warm == cost.longest > 0.0


@pytest.mark.slow
def test_every_table_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def here(repeats: int, *arguments: object) -> Cost:
        return measure(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(optuna_speed, "in_fresh_processes", here)
    options = ["--sizes", "12", "16", "--samplers", "bkb", "tpe", "--steps", "1", "--running", "4", "--threads", "1"]
    optuna_speed.main(options)
    out = capsys.readouterr().out
    for title in ("6 floats, warm", "6 floats, cold", "6 floats: memory", "10 mixed, warm", "with 4 running ones"):
        assert title in out
    assert "TPE / BKB" in out
    assert "TPE (liar)" in out


@pytest.mark.slow
def test_a_measurement_runs_in_a_process_of_its_own() -> None:
    cost = optuna_speed.in_fresh_processes(1, "tpe", "10 mixed", 12, 0, 1, 1)
    assert cost.cold > 0.0
