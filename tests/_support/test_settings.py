"""Settings of torch and NumPy that a program has changed: suggestions and predictions are as without them."""

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt._support.settings import usual_settings
from bkbopt.learners import KernelAWV


@contextlib.contextmanager
def half_precision() -> Iterator[None]:
    torch.set_default_dtype(torch.float16)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


CHANGED = {
    "another device": lambda: torch.device("meta"),  # in place of "cuda": its tensors have no numbers at all
    "inference mode": torch.inference_mode,
    "half precision": half_precision,
    "errors of NumPy": lambda: np.errstate(all="raise"),
}


def searched() -> list[dict[str, object]]:
    opt = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0), "kind": ["a", "b"]}, seed=0, n_startup_trials=5)
    for _ in range(24):  # from 20 values on a fit compares structures of the kernel
        trial = opt.ask()
        opt.tell(trial, (trial.params["x"] - 0.3) ** 2 + trial.params["y"])
    return [trial.params for trial in opt.trials] + [opt.recommend().params]


def sampled() -> list[dict[str, object]]:
    optuna = pytest.importorskip("optuna", reason="optuna is not installed; the extra optuna brings it")
    from bkbopt.adapters.optuna import BKBSampler

    study = optuna.create_study(sampler=BKBSampler(seed=0, n_startup_trials=3))
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0) ** 2 + trial.suggest_int("n", 1, 4), n_trials=8)
    return [trial.params for trial in study.trials]


def adopted() -> dict[str, float]:
    optuna = pytest.importorskip("optuna", reason="optuna is not installed; the extra optuna brings it")
    from bkbopt.adapters.optuna import BKBImportanceEvaluator

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda t: 2.0 * t.suggest_float("x", 0.0, 1.0) + t.suggest_float("y", 0.0, 1.0), n_trials=20)
    return BKBImportanceEvaluator().evaluate(study)


def predicted() -> list[float]:
    X = np.random.default_rng(0).random((40, 3))
    return KernelAWV().fit(X, 1e-300 * X.sum(1)).predict(X).tolist()  # their squares underflow


@pytest.mark.parametrize("change", CHANGED)
@pytest.mark.parametrize("run", [searched, sampled, adopted, predicted])
def test_changed_settings_change_nothing(run, change):
    expected = run()
    with CHANGED[change]():
        assert run() == expected


@pytest.mark.parametrize("change", CHANGED)
def test_the_settings_of_the_program_are_in_force_again_after_a_call(change):
    def settings():
        return torch.empty(0).device, torch.is_inference_mode_enabled(), torch.get_default_dtype(), np.geterr()

    usual = settings()
    with CHANGED[change]():
        changed = settings()
        assert changed != usual
        with usual_settings():
            assert settings() == usual
        assert settings() == changed
