"""Scaling of values: equivariance, round trips, extreme magnitudes."""

import math
import sys

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from bkbopt.search.quantities.scaling import FIRST, MOST, NOISE_BOUNDS, WINSOR, Scaler

VALUES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30).map(lambda v: torch.tensor(v, dtype=torch.float64))


def mean_of(scaler: Scaler, v: float) -> float:
    """One posterior mean in the user's units."""
    return float(scaler.means(torch.tensor([v], dtype=torch.float64))[0])


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
    assert mean_of(down, 0.3) == -mean_of(up, 0.3)
    assert down.rise(0.0, 0.3) == up.rise(0.0, 0.3)


@given(VALUES, st.sampled_from([-1.0, 1.0]))
def test_mean_undoes_transform_above_the_floor(y: torch.Tensor, sign: float) -> None:
    scaler = Scaler.from_values(y, sign)
    for value, v in zip(y.tolist(), scaler.transform(y).tolist(), strict=True):
        if (sign * value - scaler.origin) / scaler.unit >= scaler.floor:
            assert mean_of(scaler, v) == pytest.approx(value, rel=1e-9, abs=1e-9 * scaler.unit)


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
    assert mean_of(scaler, float(v[3])) == pytest.approx(float(y[3]), rel=1e-12)
    assert float(scaler.transform(y.new_tensor([outlier]))[0]) < float(v.min())


@pytest.mark.parametrize("value", [0.0, 5.0, -1e300, 1e-300, 5e-324])
def test_constant_values_become_zero(value: float) -> None:
    y = torch.full((4,), value, dtype=torch.float64)
    scaler = Scaler.from_values(y, 1.0)
    assert scaler.transform(y).tolist() == [0.0] * 4
    assert mean_of(scaler, 0.0) == value
    assert math.isfinite(scaler.rise(0.0, 1.0))


@pytest.mark.parametrize("unit", [1e300, 1e-300, 1.7e308, 1e-320])
def test_extreme_magnitudes_stay_finite(unit: float) -> None:
    y = torch.tensor([-1.0, -0.5, 0.2, 1.0], dtype=torch.float64) * unit
    scaler = Scaler.from_values(y, -1.0)
    v = scaler.transform(y)
    assert bool(torch.isfinite(v).all())
    assert float(v.std(correction=0)) == pytest.approx(1.0, rel=1e-3)  # 1e-320 has only a few digits
    assert math.isfinite(mean_of(scaler, 0.5))
    assert 0.0 < scaler.rise(0.0, 0.5) < math.inf


OFFSETS = [1e12, -1e12, 1e15, 1e300]


@pytest.mark.parametrize("offset", OFFSETS)
def test_an_offset_changes_nothing(offset: float) -> None:
    # Multiples of the distance of doubles around the offset, so that nothing is rounded.
    step = math.ulp(2.0 * abs(offset))
    steps = torch.tensor([0.0, 3.0, 5.0, 9.0, 10.0, 2.0], dtype=torch.float64)
    y = steps * step
    scaler = Scaler.from_values(offset + y, 1.0)
    plain = Scaler.from_values(y, 1.0).transform(y)
    # The mean is taken of other numbers, with other roundings.
    torch.testing.assert_close(scaler.transform(offset + y), plain, rtol=1e-14, atol=1e-14)
    assert scaler.means(plain).tolist() == (offset + y).tolist()
    assert scaler.rise(0.0, 1.0) == pytest.approx(float(steps.std(correction=0)) * step, rel=1e-14)


@pytest.mark.parametrize("outlier", [-1e10, -1e300, -1.7e308])
@pytest.mark.parametrize("share", [1, 6])
def test_outliers_do_not_merge_the_other_values(outlier: float, share: int) -> None:
    y = torch.cat(
        [torch.linspace(-1.0, 1.0, 14, dtype=torch.float64), torch.full((share,), outlier, dtype=torch.float64)]
    )
    for winsorised in (True, False):  # of several objectives too
        scaler = Scaler.from_values(y, 1.0, winsorised=winsorised)
        v = scaler.transform(y)
        assert float(v[13] - v[0]) > 0.5
        assert float(v[14:].max()) < float(v[0])
        assert mean_of(scaler, float(v[3])) == pytest.approx(float(y[3]), rel=1e-12)


def test_the_search_that_has_converged_keeps_its_bad_regions() -> None:
    first = torch.linspace(-1.0, 0.9, FIRST, dtype=torch.float64)
    y = torch.cat([first, 1.0 + 1e-9 * torch.linspace(0.0, 1.0, 200, dtype=torch.float64)])
    v = Scaler.from_values(y, 1.0).transform(y)
    assert float(v.diff()[: FIRST - 1].min()) > 0.0


@pytest.mark.parametrize("far", [1e4, 1e300, 1.7e308])
def test_far_values_of_a_limit_stay_on_their_side_of_it(far: float) -> None:
    near = torch.linspace(-1.0, 1.0, 12, dtype=torch.float64)
    for others in (near, near + 3.0, near - 3.0, near - 1.0, near + 1.0):
        for outlier in (far, -far):
            y = torch.cat([others, others.new_tensor([outlier])])
            scaler = Scaler.from_values(y, -1.0, winsorised=False, with_zero=True)
            zero, v = scaler.place(0.0), scaler.transform(y)
            assert (v > zero).tolist() == (y < 0.0).tolist()
            assert float(v[0] - v[11]) > 0.5  # the others are told apart


@pytest.mark.parametrize("shift", [0.0, 3.0, -3.0, 1.0])
def test_later_values_of_a_limit_are_near_the_fitted_ones_or_zero_and_on_their_side_of_it(shift: float) -> None:
    fitted = torch.linspace(-1.0, 1.0, 12, dtype=torch.float64) + shift
    scaler = Scaler.from_values(fitted, -1.0, winsorised=False, with_zero=True)
    low, high = min(float(fitted.min()), 0.0), max(float(fitted.max()), 0.0)
    reach = high - low
    later = fitted.new_tensor([-1e9, low - 1.01 * reach, low - 0.99 * reach, high + 0.99 * reach, 1e9])
    expected = later.clamp(low - reach, high + reach)
    # Sums of a few numbers of this size.
    torch.testing.assert_close(scaler.means(scaler.transform(later)), expected, rtol=1e-12, atol=1e-12)
    assert [scaler.bounded(y) for y in later.tolist()] == pytest.approx(expected.tolist(), rel=1e-12)
    beyond = fitted.new_tensor([-1e-9, 1e-9])
    assert (scaler.transform(beyond) > scaler.place(0.0)).tolist() == [True, False]


def test_after_zeros_alone_any_value_of_a_limit_is_kept() -> None:
    scaler = Scaler.from_values(torch.zeros(10, dtype=torch.float64), -1.0, winsorised=False, with_zero=True)
    assert scaler.bounded(1.0) == 1.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_mean_of_zero_has_no_minus_sign(sign: float) -> None:
    scaler = Scaler.from_values(torch.zeros(5, dtype=torch.float64), sign)
    assert math.copysign(1.0, mean_of(scaler, 0.0)) == math.copysign(1.0, mean_of(scaler, -0.0)) == 1.0


def test_few_values_have_no_quartiles_to_be_far_from() -> None:
    y = torch.tensor([1.0, 2.0, 3.0, -1e10], dtype=torch.float64)
    assert Scaler.from_values(y, 1.0, winsorised=False).floor == -math.inf


def test_later_values_are_bounded() -> None:
    y = torch.linspace(-1.0, 1.0, 20, dtype=torch.float64)
    for winsorised in (True, False):
        v = Scaler.from_values(y, -1.0, winsorised=winsorised).transform(y.new_tensor([1e308, -1e308, 0.0]))
        assert bool((v.abs() <= MOST).all())
        assert v.argsort().tolist() == [0, 2, 1]


def test_values_beyond_the_doubles_become_the_largest_double() -> None:
    y = torch.tensor([-1.7e308, -1.0, 1.0, 1.7e308], dtype=torch.float64)
    scaler = Scaler.from_values(y, -1.0)
    assert mean_of(scaler, 9.0) == -sys.float_info.max
    assert scaler.rise(0.0, 9.0) == sys.float_info.max
    assert float(scaler.widths(*torch.tensor([[9.0], [0.0]]).double())[0]) == sys.float_info.max


@pytest.mark.parametrize("unit", [1e300, 1.0, 1e-300])
def test_noise_is_bounded_on_the_surrogates_scale(unit: float) -> None:
    scaler = Scaler.from_values(torch.tensor([1.0, 2.0, 4.0, 9.0], dtype=torch.float64) * unit, 1.0)
    sds = torch.tensor([0.0, 5e-324, 0.5 * unit, 1.7e308 if unit < 1e300 else math.inf], dtype=torch.float64)
    variances = [scaler.noise(sd) for sd in sds.tolist()]
    assert variances == scaler.noises(sds).tolist()
    assert NOISE_BOUNDS[0] == variances[0] <= variances[1] < variances[2] < variances[3] == NOISE_BOUNDS[1]


def test_noise_variance_follows_the_scale() -> None:
    y = torch.tensor([1.0, 2.0, 4.0, 9.0], dtype=torch.float64)
    scaler = Scaler.from_values(y, 1.0)
    # A standard deviation in the user's units is the width of the scaled one.
    assert scaler.rise(0.0, scaler.noise(0.5) ** 0.5) == pytest.approx(0.5, rel=1e-12)


def test_identity_only_flips_the_sign() -> None:
    y = torch.tensor([1.0, -1e300, 3e-300], dtype=torch.float64)
    assert torch.equal(Scaler.identity(-1.0).transform(y), -y)
    assert mean_of(Scaler.identity(-1.0), 2.0) == -2.0
    assert Scaler.identity(-1.0).rise(0.0, 2.0) == 2.0


WARPED_UNITS = [1e-300, 1.0, 1e297]


def skewed(unit: float = 1.0, offset: float = 0.0) -> torch.Tensor:
    """Losses whose bad values are many times worse than the good ones, which lie close together."""
    return (offset + torch.linspace(0.0, 5.0, 41, dtype=torch.float64).exp()) * unit


@pytest.mark.parametrize("unit", WARPED_UNITS)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_warped_values_keep_their_order_and_come_back(unit: float, sign: float) -> None:
    y = skewed(unit)
    scaler = Scaler.from_values(y, sign, winsorised=False)
    warped = scaler.warped(y)
    assert warped != scaler
    v = warped.transform(y)
    assert bool((sign * v.diff() > 0.0).all())
    assert float(v.mean()) == pytest.approx(0.0, abs=1e-12)
    assert float(v.std(correction=0)) == pytest.approx(1.0, rel=1e-12)
    torch.testing.assert_close(warped.means(v), y, rtol=1e-12, atol=0.0)


def test_warped_values_have_the_slope_one_at_the_best_and_beyond_it() -> None:
    y = skewed()
    warped = Scaler.from_values(y, -1.0).warped(y)
    beyond = warped.transform(torch.tensor([1.0, 0.5, -3.0], dtype=torch.float64))
    assert (warped.scale * warped.unit * beyond.diff()).tolist() == pytest.approx([0.5, 3.5], rel=1e-12)
    near = warped.transform(y.new_tensor([1.0, 1.0 + 1e-6]))
    assert warped.scale * warped.unit * float(near.diff()) == pytest.approx(-1e-6, rel=1e-5)


def test_warped_values_are_linear_in_the_logarithm_of_the_distance_from_the_best() -> None:
    y = skewed()
    warped = Scaler.from_values(y, -1.0, winsorised=False).warped(y)
    # Distances from the best value in units of the spread of the best quarter, plus one: the best is no infinity.
    distance = (y - 1.0) / float(torch.quantile(y, 0.25) - 1.0)
    v = warped.transform(y)
    slope = (v - v[0])[1:] / torch.log1p(distance)[1:]
    assert float(slope.std() / slope.mean().abs()) < 1e-12


@pytest.mark.parametrize("warps", [False, True])
def test_slopes_widths_and_rises_are_those_of_the_map(warps: bool) -> None:
    y = skewed(offset=7.0)
    scaler = Scaler.from_values(y, -1.0)
    scaler = (scaler.warped(y) if warps else scaler).shifted(0.3)
    v = scaler.transform(torch.linspace(8.0, 70.0, 9, dtype=torch.float64)).requires_grad_(True)
    (slope,) = torch.autograd.grad(-scaler.means(v).sum(), v)  # minimised: larger v, smaller y
    with torch.no_grad():
        torch.testing.assert_close(scaler.widths(torch.full_like(v, 0.2), v), 0.2 * slope)
        torch.testing.assert_close(scaler.log_slopes(v), (scaler.unit / slope).log())
        gap = torch.linspace(0.0, 3.0, 9, dtype=torch.float64)
        torch.testing.assert_close(scaler.rises(v, gap), scaler.means(v) - scaler.means(v + gap))
        assert scaler.rise(float(v[3]), 0.7) == pytest.approx(
            mean_of(scaler, float(v[3])) - mean_of(scaler, float(v[3]) + 0.7)
        )


def test_values_are_not_warped_where_a_quarter_of_them_are_the_best() -> None:
    y = torch.tensor([2.0] * 9 + [1.0, 1.5], dtype=torch.float64)
    scaler = Scaler.from_values(y, 1.0)
    assert scaler.warped(y) is scaler


def test_warped_means_and_widths_far_below_are_doubles() -> None:
    y = skewed(1e297)
    warped = Scaler.from_values(y, -1.0).warped(y)
    far = torch.tensor([-1e6, -1e3], dtype=torch.float64)
    assert warped.means(far).tolist() == [sys.float_info.max] * 2
    assert warped.widths(torch.ones_like(far), far).tolist() == [sys.float_info.max] * 2
    assert warped.rises(far, -far).tolist() == [sys.float_info.max] * 2
