"""A surrogate that is defined outside of the package: the suite of all surrogates, and what it equals at a limit."""

import numpy as np
import pytest

import bkbopt as bo
from tests.conformance import test_surrogates
from tests.conformance.suites import suite
from tests.conformance.surrogate_subjects import KERNEL, NOISE, XS, Factory, data
from tests.joining.newcomers.surrogate import FirstPoints

globals().update(suite(test_surrogates, "factory"))


@pytest.fixture
def factory() -> Factory:
    return FirstPoints


def test_all_points_as_dictionary_are_the_exact_process() -> None:
    ours, exact = FirstPoints(KERNEL, NOISE, size=40), bo.ExactGP(KERNEL, NOISE)
    for gp in (ours, exact):
        gp.observe(*data())
    # A root of k(S, S) of a smooth kernel loses half of the digits.
    np.testing.assert_allclose(ours.posterior(XS).mean, exact.posterior(XS).mean, atol=1e-7)
    np.testing.assert_allclose(ours.posterior(XS).variance, exact.posterior(XS).variance, atol=1e-7)


def test_an_optimizer_takes_it() -> None:
    opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2, {"x": (0.0, 1.0)}, 20, surrogate=FirstPoints(), seed=0)
    assert abs(opt.recommend().params["x"] - 0.3) < 0.05
