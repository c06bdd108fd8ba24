"""A schedule of beta that is defined outside of the package, in the suite of all schedules."""

import math

import pytest

from bkbopt.confidence import Confidence
from tests.conformance import test_schedules
from tests.conformance.suites import suite
from tests.conformance.test_schedules import NOW
from tests.joining.newcomers.schedule import Growing

globals().update(suite(test_schedules, "schedule"))


@pytest.fixture
def schedule() -> Confidence:
    return Growing(1.5)


def test_it_is_its_formula() -> None:
    assert Growing(1.5)(NOW) == pytest.approx(1.5 * math.sqrt(math.log(41.0)), rel=1e-14)
