"""A learner that is defined outside of the package, in the suites of all learners."""

import numpy as np
import pytest
import torch

from tests.conformance.suites import suite
from tests.joining.newcomers.learner import RecentMean
from tests.learners import test_base, test_base_input, test_base_states
from tests.learners.everyone import NUMBERS, Factory, X, gaussian, made

for module in (test_base, test_base_input, test_base_states):
    globals().update(suite(module, "make") | suite(module, "base"))


@pytest.fixture
def make() -> Factory:
    return made(RecentMean)


@pytest.fixture
def base() -> Factory:
    return made(RecentMean)


def test_a_prediction_is_the_weighted_mean_of_the_last_rows() -> None:
    learner = RecentMean.paper(window=5, lam=0.5).fit(X[:20], NUMBERS[:20])
    K = gaussian(torch.as_tensor(X[20:30]), torch.as_tensor(X[15:20])).numpy()
    np.testing.assert_allclose(learner.predict(X[20:30]), K @ NUMBERS[15:20] / (0.5 + K.sum(1)), rtol=1e-12)
