"""Ax as a client: an experiment whose surrogate is a `BKBModel`, named as its `botorch_model_class`."""

import math

import numpy as np
import pytest

pytest.importorskip("ax", reason="Ax is not installed; the extra `ax` has it")

from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.generation_strategy.generation_strategy import GenerationStep, GenerationStrategy
from ax.generators.torch.botorch_modular.surrogate import SurrogateSpec
from ax.generators.torch.botorch_modular.utils import ModelConfig

from bkbopt.adapters.botorch import BKBModel

# Ax and what it imports warn of deprecations of their own.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

N_START, N_TRIALS, NOISE_SD = 8, 30, 0.1


def strategy() -> GenerationStrategy:
    """Quasi-random points first, then those that Ax makes of a `BKBModel`'s posterior."""
    spec = SurrogateSpec(model_configs=[ModelConfig(botorch_model_class=BKBModel)])
    return GenerationStrategy(
        nodes=[
            GenerationStep(generator=Generators.SOBOL, num_trials=N_START, generator_kwargs={"seed": 0}),
            GenerationStep(
                generator=Generators.BOTORCH_MODULAR, num_trials=-1, generator_kwargs={"surrogate_spec": spec}
            ),
        ]
    )


def value(x: float, y: float) -> float:
    """A bowl; its minimum is 0 at (0.3, -1)."""
    return (x - 0.3) ** 2 * 4.0 + 0.25 * (y + 1.0) ** 2


def test_an_experiment_of_thirty_trials_runs_on_a_bkb_model() -> None:
    rng = np.random.default_rng(0)
    client = Client(random_seed=0)
    client.configure_experiment(
        parameters=[
            RangeParameterConfig(name="x", parameter_type="float", bounds=(-1.0, 1.0)),
            RangeParameterConfig(name="y", parameter_type="float", bounds=(-3.0, 3.0)),
        ]
    )
    client.configure_optimization(objective="-loss")
    client.set_generation_strategy(strategy())
    values = []
    while len(values) < N_TRIALS:
        for index, params in client.get_next_trials(max_trials=2).items():
            values.append(value(float(params["x"]), float(params["y"])))
            client.complete_trial(index, raw_data={"loss": (values[-1] + NOISE_SD * rng.standard_normal(), NOISE_SD)})
    surrogate = client._generation_strategy.adapter.generator.surrogate
    assert type(surrogate.model) is BKBModel
    # The last fit had all but the trials of the last round, or all but one of them.
    assert surrogate.model.num_outputs == 1
    assert surrogate.model.train_targets.shape[-1] >= N_TRIALS - 2
    params, prediction, _, _ = client.get_best_parameterization()
    assert value(float(params["x"]), float(params["y"])) < 0.1
    mean, _ = prediction["loss"]
    assert math.isfinite(mean)
    assert np.mean(values[-10:]) < 0.5 * np.mean(values[:N_START])
