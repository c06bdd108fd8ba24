"""Scaling of values: equivariance, round trips, extreme magnitudes."""

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from bkbopt.search.scaling import FIRST, WINSOR, Scaler

VALUES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30).map(lambda v: torch.tensor(v, dtype=torch.float64))


def test_standardised_values_have_mean_zero_and_deviation_one() -> None:
    y = torch.randn(500, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 3.0 + 7.0
    v = Scaler.from_values(y, 1.0).transform(y)
    assert float(v.mean()) == pytest.approx(0.0, abs=1e-12)
    assert float(v.std(correction=0)) == pytest.approx(1.0, rel=1e-12)


@given(VALUES, st.sampled_from([1e-300, 1e-9, 1.0, 1e9, 1e297]))
def test_units_do_not_matter(y: torch.Tensor, unit: float) -> None:
    # Values that are the same up to rounding have no scale of their own, and their differences no stable digits.
    spread = float(y.max() - y.min())
    assume(spread > 1e-3 * float(y.abs().max()))
    a, b = (Scaler.from_values(z, -1.0).transform(z) for z in (y, y * unit))
    # Dividing by the largest value costs a few roundings, which the spread magnifies up to a thousandfold; a
    # denormal result of y * unit has fewer digits.
    assume(bool(((y * unit).abs() > 1e-290).logical_or(y == 0).all()))
    torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@given(VALUES)
def test_directions_mirror_each_other(y: torch.Tensor) -> None:
    down, up = Scaler.from_values(y, -1.0), Scaler.from_values(-y, 1.0)
    assert torch.equal(down.transform(y), up.transform(-y))
    assert down.mean(0.3) == -up.mean(0.3)
    assert down.width(0.3) == up.width(0.3)


@given(VALUES, st.sampled_from([-1.0, 1.0]))
def test_mean_undoes_transform_above_the_floor(y: torch.Tensor, sign: float) -> None:
    scaler = Scaler.from_values(y, sign)
    for value, v in zip(y.tolist(), scaler.transform(y).tolist(), strict=True):
        if (sign * value - scaler.origin) / scaler.unit >= scaler.floor:
            assert scaler.mean(v) == pytest.approx(value, rel=1e-9, abs=1e-9 * scaler.unit)


def test_bad_outliers_are_pulled_up_and_good_ones_are_not() -> None:
    y = torch.cat([torch.linspace(-1.0, 1.0, 99, dtype=torch.float64), torch.tensor([1e6], dtype=torch.float64)])
    v = Scaler.from_values(y, -1.0).transform(y)  # minimised: the outlier is bad
    assert float(v[:99].std()) > 0.5
    robust = 1.0 / 1.349  # the quartiles of an even spread on [-1, 1] are about 1 apart
    assert float(v.min() - v[:99].median()) == pytest.approx(-WINSOR * robust / float(y[:99].std()), rel=0.1)
    v = Scaler.from_values(y, 1.0).transform(y)  # maximised: the outlier is the best there is
    assert float(v[-1]) > 9.0


def test_late_values_around_the_best_do_not_cut_off_the_bad_regions() -> None:
    first = torch.linspace(-1.0, 1.0, FIRST, dtype=torch.float64)
    y = torch.cat([first, 1.0 + 1e-3 * torch.linspace(0.0, 1.0, 200, dtype=torch.float64)])
    v = Scaler.from_values(y, 1.0).transform(y)
    assert float(v.diff()[: FIRST - 1].min()) > 0.0


@pytest.mark.parametrize("outlier", [1e9, 1e150, 1e300, 1.7e308])
def test_terrible_value_does_not_set_the_unit(outlier: float) -> None:
    y = torch.linspace(-1.0, 1.0, 20, dtype=torch.float64)
    scaler = Scaler.from_values(torch.cat([y, y.new_tensor([outlier])]), -1.0)
    v = scaler.transform(y)
    assert float(v.max() - v.min()) > 1.0
    assert scaler.mean(float(v[3])) == pytest.approx(float(y[3]), rel=1e-12)
    assert float(scaler.transform(y.new_tensor([outlier]))[0]) < float(v.min())


@pytest.mark.parametrize("value", [0.0, 5.0, -1e300, 1e-300, 5e-324])
def test_constant_values_become_zero(value: float) -> None:
    y = torch.full((4,), value, dtype=torch.float64)
    scaler = Scaler.from_values(y, 1.0)
    assert scaler.transform(y).tolist() == [0.0] * 4
    assert scaler.mean(0.0) == value
    assert math.isfinite(scaler.width(1.0))


@pytest.mark.parametrize("unit", [1e300, 1e-300, 1.7e308, 1e-320])
def test_extreme_magnitudes_stay_finite(unit: float) -> None:
    y = torch.tensor([-1.0, -0.5, 0.2, 1.0], dtype=torch.float64) * unit
    scaler = Scaler.from_values(y, -1.0)
    v = scaler.transform(y)
    assert bool(torch.isfinite(v).all())
    assert float(v.std(correction=0)) == pytest.approx(1.0, rel=1e-3)  # 1e-320 has only a few digits
    assert math.isfinite(scaler.mean(0.5))
    assert 0.0 < scaler.width(0.5) < math.inf


def test_noise_variance_follows_the_scale() -> None:
    y = torch.tensor([1.0, 2.0, 4.0, 9.0], dtype=torch.float64)
    scaler = Scaler.from_values(y, 1.0)
    # A standard deviation in the user's units is the width of the scaled one.
    assert scaler.width(scaler.noise(0.5) ** 0.5) == pytest.approx(0.5, rel=1e-12)


def test_identity_only_flips_the_sign() -> None:
    y = torch.tensor([1.0, -1e300, 3e-300], dtype=torch.float64)
    assert torch.equal(Scaler.identity(-1.0).transform(y), -y)
    assert Scaler.identity(-1.0).mean(2.0) == -2.0
    assert Scaler.identity(-1.0).width(2.0) == 2.0
