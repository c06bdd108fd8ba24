"""Acquisitions against mpmath's arithmetic of sixty digits; what all of them keep to is in `tests/conformance`."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from scipy.stats import norm

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.search.criteria.acquisition import (
    CONSTRAINT_FLOOR,
    SMALLEST_GAIN,
    UCB,
    VARIANCE_FLOOR,
    CheckedAcquisition,
    LogEI,
    LogFeasibility,
    LogGain,
)

# Dense around the seams at -1 and -1000, and out to where everything but a logarithm underflows.
SCORES = np.unique(
    np.concatenate(
        [
            np.linspace(-12.0, 12.0, 97),
            [-1e4, -5e3, -1001.0, -1000.0, -999.0, -300.0, -40.0, -1.0 - 1e-9, -1.0 + 1e-9, 20.0, 38.0, 40.0],
        ]
    )
)


def log_h(e: float) -> tuple[float, float]:
    """log(pdf(e) + e cdf(e)) and its derivative cdf / h, to 60 digits."""
    with mpmath.workdps(60):
        x = mpmath.mpf(e)
        cdf = mpmath.erfc(-x / mpmath.sqrt(2)) / 2
        h = mpmath.npdf(x) + x * cdf
        return float(mpmath.log(h)), float(cdf / h)


def log_ei(e: torch.Tensor) -> torch.Tensor:
    return LogEI(0.0)(e, torch.ones_like(e))


def test_logei_is_mpmaths_over_its_whole_range() -> None:
    values = log_ei(torch.as_tensor(SCORES)).numpy()
    expected = np.array([log_h(e)[0] for e in SCORES])
    # Down to -1000 the cancellation in 1 - a M(a) = 1 / a^2 costs at most six digits of a term beside a^2 / 2.
    np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-13)


def test_gradient_of_logei_is_mpmaths_and_finite() -> None:
    e = torch.as_tensor(SCORES).requires_grad_()
    (gradient,) = torch.autograd.grad(log_ei(e).sum(), e)
    expected = np.array([log_h(v)[1] for v in SCORES])
    assert bool(torch.isfinite(gradient).all())
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


@pytest.mark.parametrize("exponent", [-1e6, -1e100, 1e6, 1e100])
def test_logei_is_finite_far_outside(exponent: float) -> None:
    e = torch.tensor([exponent], dtype=torch.float64, requires_grad=True)
    value = log_ei(e)
    (gradient,) = torch.autograd.grad(value.sum(), e)
    assert bool(torch.isfinite(value).all())
    assert bool(torch.isfinite(gradient).all())
    assert float(gradient) > 0.0


def test_logei_rises_with_the_mean_and_with_the_variance() -> None:
    grid = torch.cat([-torch.logspace(4, -3, 3000), torch.logspace(-3, 1.6, 1000)]).double()
    values = log_ei(grid)
    assert bool((values.diff() > 0.0).all())
    below = torch.full((200,), -3.0, dtype=torch.float64)
    assert bool((LogEI(0.0)(below, torch.logspace(-4, 3, 200).double()).diff() > 0.0).all())


def test_exp_of_logei_is_the_expected_improvement() -> None:
    rng = np.random.default_rng(0)
    mean, variance = rng.standard_normal(50), rng.uniform(0.1, 4.0, 50)
    sd = np.sqrt(variance)
    e = (mean - 0.7) / sd
    expected = sd * (norm.pdf(e) + e * norm.cdf(e))
    values = LogEI(0.7)(torch.as_tensor(mean), torch.as_tensor(variance)).exp()
    np.testing.assert_allclose(values, expected, rtol=1e-11)


def test_ucb_is_the_mean_plus_beta_standard_deviations() -> None:
    mean, variance = torch.tensor([1.0, 2.0]).double(), torch.tensor([4.0, 0.25]).double()
    assert UCB(3.0)(mean, variance).tolist() == [7.0, 3.5]


def torchs_log_ei(mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
    sd = variance.sqrt()
    e = (mean - 0.3) / sd
    pdf = torch.exp(-0.5 * e * e) / math.sqrt(2.0 * math.pi)
    return torch.log(sd * (pdf + e * torch.special.ndtr(e)))


def torchs_log_gain(mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
    gain = mean + 1.5 * variance.sqrt() - 0.8
    return torch.log(SMALLEST_GAIN * torch.nn.functional.softplus(gain / SMALLEST_GAIN))


def torchs_log_feasibility(mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
    return torch.special.log_ndtr((mean - 0.2 - 2.0 * CONSTRAINT_FLOOR) / variance.sqrt())


@pytest.mark.parametrize(
    ("acquisition", "expected"),
    [
        (UCB(1.5), lambda mean, variance: mean + 1.5 * variance.sqrt()),
        (LogEI(0.3), torchs_log_ei),
        (LogFeasibility(0.2), torchs_log_feasibility),
        (LogGain(UCB(1.5), 0.8), torchs_log_gain),
    ],
)
def test_scores_and_slopes_are_those_of_torchs_functions(acquisition: Any, expected: Any) -> None:
    rng = np.random.default_rng(0)
    mean, variance = (
        torch.as_tensor(v).requires_grad_(True) for v in (rng.standard_normal(40), rng.uniform(0.1, 4.0, 40))
    )
    scores = expected(mean, variance)
    slopes = torch.autograd.grad(scores.sum(), (mean, variance))
    found, *of_parts = acquisition.with_slopes(mean.detach(), variance.detach())
    torch.testing.assert_close(found, scores.detach(), rtol=1e-12, atol=0.0)
    torch.testing.assert_close(tuple(of_parts), slopes, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("below", [-9.9e4, -1.1e5, -1e6, -1e8, -1e14])
def test_slopes_of_logei_are_mpmaths_far_below_the_incumbent_too(below: float) -> None:
    """The expansion h(e) = pdf(e) (1 / e^2 - 3 / e^4 + ...) gives cdf / h = -e (1 + 2 / e^2 - ...)."""
    sd = 1e-7
    mean, variance = torch.tensor([below * sd]).double(), torch.tensor([sd * sd]).double()
    _, by_mean, by_variance = LogEI(0.0).with_slopes(mean, variance)
    # Above -1e5 the difference of the logarithms, of 5e9 each, is rounded by 1e-6.
    assert float(by_mean) == pytest.approx(-below / sd, rel=3e-6)
    assert float(by_variance) == pytest.approx(below * below / (2.0 * sd * sd), rel=3e-6)


def test_loggain_is_the_logarithm_of_a_gain_and_below_zero_decreases_with_the_bound() -> None:
    """log(s softplus(gain / s)), by mpmath with 400 digits."""
    gains = [1.0, 0.1, 1e-3, 0.0, -1e-4, -0.029, -0.031, -2.0, -300.0]
    bounds = torch.tensor(gains, dtype=torch.float64) + 3.0
    scores = LogGain(UCB(0.0), 3.0)(bounds, torch.ones(len(gains), dtype=torch.float64)).tolist()
    with mpmath.workdps(400):
        s = mpmath.mpf(SMALLEST_GAIN)
        expected = [
            float(mpmath.log(s * mpmath.log1p(mpmath.exp((mpmath.mpf(bound) - 3) / s)))) for bound in bounds.tolist()
        ]
    # Sums of numbers up to 3e5.
    assert scores == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert scores[0] == pytest.approx(0.0, abs=1e-12)


def test_ucb_has_a_floor_of_the_variance() -> None:
    assert UCB(2.0)(torch.zeros(1), torch.zeros(1)).item() == pytest.approx(2.0 * math.sqrt(VARIANCE_FLOOR))


BAD_SCORES: dict[str, tuple[Any, type[Exception], str]] = {
    "a column": (lambda m, v: m[:, None], ArgumentError, r"scores of shape \(3,\), got shape \(3, 1\); return"),
    "a number": (lambda m, v: m.mean(), ArgumentError, r"scores of shape \(3,\), got shape \(\)"),
    "too few": (lambda m, v: m[:2], ArgumentError, r"got shape \(2,\)"),
    "NaN": (lambda m, v: torch.log(m), ArgumentError, r"got NaN for mean -1 and variance 0.5; clamp"),
    "NaN of arrays": (lambda m, v: np.where(m < 0.0, np.nan, m), ArgumentError, r"got NaN for mean -1 and"),
    "nothing": (lambda m, v: None, ArgumentTypeError, "real scores, got NoneType without"),
    "text": (lambda m, v: ["good"] * len(m), ArgumentTypeError, "real scores, got list without"),
    "complex": (lambda m, v: m * 1j, ArgumentTypeError, "got ndarray without real numbers"),
}


@pytest.mark.parametrize("name", BAD_SCORES)
def test_scores_that_cannot_be_compared_are_refused(name: str) -> None:
    function, error, message = BAD_SCORES[name]
    mean, variance = torch.tensor([1.0, -1.0, 2.0]).double(), torch.tensor([1.0, 0.5, 2.0]).double()
    acquisition = CheckedAcquisition(function)
    for _ in range(2):  # and again, in the same words
        with pytest.raises(error, match=r"^acquisition: expected .*" + message):
            acquisition(mean, variance)


def test_a_function_of_torch_keeps_its_derivatives_and_one_of_numpy_gets_arrays() -> None:
    mean = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    variance = torch.tensor([4.0, 0.25], dtype=torch.float64)
    of_torch = CheckedAcquisition(lambda m, v: m + 3.0 * v.sqrt())(mean, variance)
    of_numpy = CheckedAcquisition(lambda m, v: m + np.float64(3.0) * np.sqrt(v))(mean, variance)
    assert of_torch.requires_grad
    assert not of_numpy.requires_grad
    assert of_torch.tolist() == of_numpy.tolist() == [7.0, 3.5]


def test_infinite_scores_are_compared() -> None:
    scores = CheckedAcquisition(lambda m, v: torch.log(m))(torch.tensor([0.0, torch.inf]), torch.ones(2))
    assert scores.tolist() == [-torch.inf, torch.inf]
