"""The learners one after the other."""

import pytest

from tests.learners.everyone import LEARNERS, Factory


@pytest.fixture(params=LEARNERS)
def make(request: pytest.FixtureRequest) -> Factory:
    return LEARNERS[request.param]
