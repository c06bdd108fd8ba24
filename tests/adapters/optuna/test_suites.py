"""Optuna's own tests of samplers: with the model from the first trial; slow with other options, and in all cases."""

from collections.abc import Callable
from typing import Any

import pytest
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.testing import pytest_samplers
from optuna.testing.pytest_samplers import BasicSamplerTestCase, MultiObjectiveSamplerTestCase, RelativeSamplerTestCase
from optuna.trial import Trial

from bkbopt.adapters.optuna import BKBSampler
from tests.sweeps import sweep

Factory = Callable[[], BaseSampler]
Suggest = Callable[[Trial], float]


def few(test: Any) -> pytest.MarkDecorator:
    """The cases of one of Optuna's tests over pairs of ranges, slow but for a few that have every range of both."""
    (x, xs), (y, ys) = (mark.args for mark in test.pytestmark)
    return pytest.mark.parametrize((x, y), sweep(xs, [*ys[1:], ys[0]]))


@pytest.mark.slow
class TestDefaults(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Factory:
        return lambda: BKBSampler(seed=0)


class TestModelFromTheFirstTrial(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Factory:
        return lambda: BKBSampler(seed=0, n_startup_trials=0)

    @few(RelativeSamplerTestCase.test_sample_relative_numerical)
    def test_sample_relative_numerical(
        self, sampler: Factory, x_distribution: BaseDistribution, y_distribution: BaseDistribution
    ) -> None:
        super().test_sample_relative_numerical(sampler, x_distribution, y_distribution)

    @few(BasicSamplerTestCase.test_combination_of_different_distributions_objective)
    def test_combination_of_different_distributions_objective(
        self, sampler: Factory, suggest_method_x: Suggest, suggest_method_y: Suggest
    ) -> None:
        super().test_combination_of_different_distributions_objective(sampler, suggest_method_x, suggest_method_y)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["logei", "thompson"], indirect=True)
class TestOtherAcquisitions(RelativeSamplerTestCase):
    @pytest.fixture
    def sampler(self, request: pytest.FixtureRequest) -> Factory:
        return lambda: BKBSampler(seed=0, n_startup_trials=0, acquisition=request.param)


def test_no_suite_of_optuna_is_left_out() -> None:
    suites = {name for name in vars(pytest_samplers) if name.endswith("SamplerTestCase") and not name.startswith("_")}
    # The last one is for samplers that refuse several objectives.
    assert suites == {
        "BasicSamplerTestCase",
        "RelativeSamplerTestCase",
        "MultiObjectiveSamplerTestCase",
        "SingleOnlySamplerTestCase",
    }
