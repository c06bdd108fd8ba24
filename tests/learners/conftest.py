"""The learners one after the other."""

import pytest

from tests.learners.everyone import LEARNERS, SPOKESMEN, Factory
from tests.sweeps import slow_but


@pytest.fixture(params=LEARNERS)
def make(request: pytest.FixtureRequest) -> Factory:
    return LEARNERS[request.param]


@pytest.fixture(params=slow_but(SPOKESMEN, LEARNERS))
def base(request: pytest.FixtureRequest) -> Factory:
    """For what the base class does alone, before a learner's own code is reached or after it: two speak for all."""
    return LEARNERS[request.param]
