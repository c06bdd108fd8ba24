"""Penalties at the optimizer: named, and left out of models, residuals and pictures, with their values in the log."""

import numpy as np
import pytest

import bkbopt as bo

PENALTY = 1e10


def searched(directions: list[str] | None = None) -> bo.Optimizer:
    """An optimizer after 25 trials, with penalties where x > 0.6."""
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, directions=directions, seed=0)
    for trial in opt.ask(10) + [opt.ask() for _ in range(15)]:
        x, y = trial.params["x"], trial.params["y"]
        values = [(x - 0.5) ** 2 + y, (y - 1.0) ** 2 + x]
        told = [PENALTY, PENALTY] if x > 0.6 else values
        opt.tell(trial, told[0] if directions is None else told)
    return opt


@pytest.fixture(scope="module")
def opt() -> bo.Optimizer:
    return searched()


def test_trials_with_penalties_are_named_and_keep_their_values(opt: bo.Optimizer) -> None:
    wrong = [trial.id for trial in opt.trials if trial.params["x"] > 0.6]
    assert [trial.id for trial in opt.penalties] == wrong
    assert len(wrong) >= 3
    assert {trial.state for trial in opt.penalties} == {"COMPLETE"}
    assert (opt.trials_dataframe()["value"] == PENALTY).sum() == len(wrong)
    assert bo.Optimizer({"x": (0.0, 1.0)}).penalties == []


def test_residuals_are_those_of_the_other_values(opt: bo.Optimizer) -> None:
    ids = {trial.id for trial in opt.trials} - {trial.id for trial in opt.penalties}
    assert {residual.id for residual in opt.residuals()} == ids
    assert max(abs(residual.score) for residual in opt.residuals()) < 10.0


def test_penalties_that_leave_no_trial_are_values() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=["minimize", "minimize"], seed=0)
    points = [{"x": i / 10} for i in range(11)]
    values = [[PENALTY, x] if (x := p["x"]) > 0.45 else [x**2, PENALTY] for p in points]
    opt.tell(points, values)
    assert opt.penalties == []
    assert np.isfinite(opt.predict(points)[0]).all()
    opt.tell([{"x": 0.45}, {"x": 0.46}, {"x": 0.44}], [[0.3, 0.4]] * 3)  # up to the next mark there is such a trial
    assert len(opt.penalties) == 11
    assert {point.params["x"] for point in opt.recommend_front()} <= {0.44, 0.45, 0.46}


def test_pictures_show_penalties_as_failures(opt: bo.Optimizer) -> None:
    plots = pytest.importorskip("bkbopt.plots")
    figure = plots.overview(opt)
    progress = figure.axes[0]
    assert f"and {len(opt.penalties)} penalties" in progress.get_xlabel()
    assert np.abs(progress.get_ylim()).max() < 10.0
    front = plots.pareto(searched(["minimize", "minimize"]))
    assert np.abs([*front.get_xlim(), *front.get_ylim()]).max() < 10.0
