"""The losses against numerical derivatives and their own definitions of the constants."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bkbopt.errors import ArgumentError
from bkbopt.learners import LOSSES, Loss, get_loss
from bkbopt.learners.numerics.losses import loss_slope

ALL = list(LOSSES.values())
BOUNDS = (0.3, 1.0, 1.7, 3.0)


def targets(loss: Loss, C: float, n: int = 21) -> np.ndarray:
    return np.array([-1.0, 1.0]) if loss.task == "classification" else np.linspace(-C, C, n)


def grid(loss: Loss, C: float) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of targets and predictions up to C."""
    y, p = np.meshgrid(targets(loss, C), np.linspace(-C, C, 41))
    return y.ravel(), p.ravel()


@pytest.mark.parametrize("loss", ALL, ids=lambda x: x.name)
@given(p=st.floats(-4.0, 4.0), label=st.sampled_from([-1.0, 1.0]), number=st.floats(-3.0, 3.0))
def test_slope_is_the_derivative(loss: Loss, p: float, label: float, number: float) -> None:
    y = label if loss.task == "classification" else number
    kink = abs(y * p - 1.0) if loss.task == "classification" else abs(y - p)
    if kink < 1e-4:
        return  # hinge and absolute loss have no derivative there
    h = 1e-5
    ys, ps = np.array([y, y]), np.array([p - h, p + h])
    low, high = loss.value(ys, ps)
    # Central differences: h^2 times a third derivative below one, and rounding of about 1e-15 / h.
    assert loss.slope(np.array([y]), np.array([p]))[0] == pytest.approx((high - low) / (2.0 * h), abs=1e-8)


@pytest.mark.parametrize("loss", ALL, ids=lambda x: x.name)
@given(p=st.floats(-1e3, 1e3), y=st.floats(-1e3, 1e3))
def test_compiled_slopes_are_the_same(loss: Loss, p: float, y: float) -> None:
    y = math.copysign(1.0, y) if loss.task == "classification" else y
    slope = loss.slope(np.array([y]), np.array([p]))[0]
    # One or two roundings apart, and for the logistic loss an exponential.
    assert loss_slope(loss.code, y, p) == pytest.approx(slope, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("C", BOUNDS)
@pytest.mark.parametrize("loss", ALL, ids=lambda x: x.name)
def test_lipschitz_constant_bounds_every_slope(loss: Loss, C: float) -> None:
    y, p = grid(loss, C)
    assert np.abs(loss.slope(y, p)).max() <= loss.lipschitz(C) * (1.0 + 1e-12)


@pytest.mark.parametrize("C", BOUNDS)
@pytest.mark.parametrize("loss", ALL, ids=lambda x: x.name)
def test_curvature_holds_between_all_predictions(loss: Loss, C: float) -> None:
    y, a = grid(loss, C)
    for b in np.linspace(-C, C, 31):
        step = loss.slope(y, a) * (b - a)
        lower = loss.value(y, a) + step + 0.5 * loss.curvature(C) * step**2
        assert (loss.value(y, np.full_like(a, b)) - lower).min() >= -1e-12


@pytest.mark.parametrize("C", BOUNDS)
@pytest.mark.parametrize(("name", "factor"), [("squared", 1.001), ("squared_hinge", 1.001), ("logistic", 1.05)])
def test_curvature_could_not_be_larger(name: str, factor: float, C: float) -> None:
    loss = get_loss(name)
    # That of the logistic loss is reached where a and b are one point, and a grid comes near that only.
    sigma = factor * loss.curvature(C)
    worst = math.inf
    for y in targets(loss, C, 2):
        a, b = np.meshgrid(np.linspace(-C, C, 801), np.linspace(-C, C, 801))
        step = loss.slope(np.full_like(a, y), a) * (b - a)
        gap = loss.value(np.full_like(a, y), b) - loss.value(np.full_like(a, y), a) - step - 0.5 * sigma * step**2
        worst = min(worst, float(gap.min()))
    assert worst < 0.0


@pytest.mark.parametrize("name", ["hinge", "absolute"])
def test_losses_without_curvature_have_shrinking_steps(name: str) -> None:
    loss = get_loss(name)
    assert loss.curvature(1.0) == 0.0
    assert loss.step_weight(2.0, 16) == pytest.approx(1.0 / (1.0 * 2.0 * 4.0))


def test_curved_losses_step_by_their_curvature() -> None:
    assert get_loss("squared").step_weight(1.0, 9) == 0.125


@pytest.mark.parametrize("name", ["mse", None, 3])
def test_unknown_loss_is_refused_with_the_names(name: object) -> None:
    with pytest.raises(ArgumentError, match=r"loss: expected one of squared, .*absolute, got"):
        get_loss(name)
