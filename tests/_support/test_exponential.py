"""The exponential of compiled loops against numpy."""

import numpy as np
import pytest

from bkbopt._support.exponential import exp_of_negative


def test_exponential_is_numpys_to_the_last_places() -> None:
    x = -np.concatenate([np.random.default_rng(0).uniform(0.0, 708.0, 20_000), [0.0, 708.0], 10.0 ** np.arange(-20, 2)])
    ours = np.array([exp_of_negative(v) for v in x])
    # Two units in the last place.
    np.testing.assert_allclose(ours, np.exp(x), rtol=4.5e-16)
    assert exp_of_negative(0.0) == 1.0


@pytest.mark.parametrize("x", [-709.0, -1e300, -np.inf])
def test_exponential_has_a_floor(x: float) -> None:
    assert exp_of_negative(x) == exp_of_negative(-708.0) > 0.0
