"""What Optuna's log says while loops are compiled."""

import logging
from pathlib import Path

import optuna
import pytest

from bkbopt.adapters.optuna import BKBSampler
from bkbopt.adapters.optuna.sampler import say_once
from tests.fresh_loops import fresh_loop


def test_the_log_of_the_sampler_says_once_that_loops_are_compiled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    say_once.cache_clear()
    # A schedule of beta is called while a suggestion is made.
    sampler = BKBSampler(n_startup_trials=2, seed=0, beta=lambda _: fresh_loop(tmp_path)(0.5))
    study = optuna.create_study(sampler=sampler)
    optuna.logging.set_verbosity(optuna.logging.INFO)
    optuna.logging.enable_propagation()
    try:
        with caplog.at_level(logging.INFO, "optuna.samplers.bkbopt"):
            study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=5)
    finally:
        optuna.logging.disable_propagation()
    # Handlers of several loggers catch each record.
    (said,) = {id(r): r.getMessage() for r in caplog.records if r.name == "optuna.samplers.bkbopt"}.values()
    assert "Compiling loops" in said
