"""Optuna's own tests of samplers, every case of them: with the model from the first trial; slow with other options."""

from collections.abc import Callable

import pytest
from optuna.samplers import BaseSampler
from optuna.testing import pytest_samplers
from optuna.testing.pytest_samplers import BasicSamplerTestCase, MultiObjectiveSamplerTestCase, RelativeSamplerTestCase

from bkbopt.adapters.optuna import BKBSampler

Factory = Callable[[], BaseSampler]


@pytest.mark.slow
class TestDefaults(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Factory:
        return lambda: BKBSampler(seed=0)


class TestModelFromTheFirstTrial(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Factory:
        return lambda: BKBSampler(seed=0, n_startup_trials=0)


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
