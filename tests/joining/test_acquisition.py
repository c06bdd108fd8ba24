"""An acquisition function that is defined outside of the package, in the suite of all acquisition functions."""

import pytest
import torch

from bkbopt.search.criteria.acquisition import Acquisition
from tests.conformance import test_acquisitions
from tests.conformance.suites import suite
from tests.joining.newcomers.acquisition import LogPI

globals().update(suite(test_acquisitions, "acquisition"))


@pytest.fixture
def acquisition() -> Acquisition:
    return LogPI(0.3)


def test_it_is_the_logarithm_of_the_probability() -> None:
    assert LogPI(1.0)(torch.tensor([1.0]), torch.tensor([4.0])).exp().item() == pytest.approx(0.5, abs=1e-7)
