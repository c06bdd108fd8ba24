"""A study with every kind of distribution gives the points of an optimizer; `tests/conformance` has all interfaces."""

import math
from typing import Any

import optuna
import pytest

import bkbopt as bo
from bkbopt.adapters.optuna import BKBSampler
from tests.sweeps import slow_but

pytestmark = pytest.mark.usefixtures("quiet_optuna")

D = optuna.distributions
#: Names are sorted: Optuna's columns are those of the names in order.
DISTRIBUTIONS: dict[str, D.BaseDistribution] = {
    "depth": D.IntDistribution(1, 30),
    "kind": D.CategoricalDistribution(["a", "b", "c"]),
    "rate": D.FloatDistribution(1e-4, 1.0, log=True),
    "size": D.IntDistribution(8, 512, log=True),
    "step": D.FloatDistribution(0.0, 1.0, step=0.25),
    "width": D.IntDistribution(16, 256, step=16),
    "x": D.FloatDistribution(-2.0, 3.0),
}


def value(params: dict[str, Any]) -> float:
    return (
        (params["x"] - 1.0) ** 2
        + abs(math.log10(params["rate"]) + 2.0)
        + 0.1 * params["depth"] * (params["kind"] == "a")
    )


@pytest.mark.parametrize("acquisition", slow_but(["ucb"], ["ucb", "logei", "thompson"]))
@pytest.mark.parametrize("direction", slow_but(["maximize"], ["minimize", "maximize"]))
def test_a_study_and_an_optimizer_go_the_same_way(acquisition: str, direction: str) -> None:
    optimizer = bo.Optimizer(DISTRIBUTIONS, direction=direction, seed=3, acquisition=acquisition)
    study = optuna.create_study(direction=direction, sampler=BKBSampler(seed=3, acquisition=acquisition))
    sign = 1.0 if direction == "minimize" else -1.0
    # Of the first trial of a study no parameter is known before it runs, so it is given the optimizer's point.
    study.enqueue_trial(dict(bo.Optimizer(DISTRIBUTIONS, seed=3).ask().params))
    running: list[tuple[bo.Trial, optuna.Trial]] = []
    for number in range(28):  # some are coordinate perturbations
        running.append((optimizer.ask(), study.ask(DISTRIBUTIONS)))
        ours, theirs = running[-1]
        assert dict(ours.params) == theirs.params, number
        while len(running) > number % 4:  # up to three run at once, and end in another order
            ours, theirs = running.pop(number % len(running))
            if number % 11 == 7:
                optimizer.fail(ours)
                study.tell(theirs, state=optuna.trial.TrialState.FAIL)
            else:
                optimizer.tell(ours, sign * value(ours.params))
                study.tell(theirs, sign * value(theirs.params))
