"""Ranges with a stretched end: logarithmic codes of numbers that were given on a linear scale."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bkbopt.spaces.encoding import Encoding
from bkbopt.spaces.space import Categorical, Float, Int, Ordinal, Parameter, Space
from bkbopt.spaces.stretched import Stretch, StretchedAxis, can_be_stretched, like_part, stretched

RANGES: tuple[Parameter, ...] = (
    Float(1e-6, 1.0),
    Float(-3e5, 7.7),
    Float(0.0, 1.0, step=1e-3),
    Int(1, 100_000),
    Int(-70, 10**9, step=10),
)
STRETCHES = tuple(Stretch(is_low, reach) for is_low in (True, False) for reach in (1e-2, 1e-4))
every_range = pytest.mark.parametrize("parameter", RANGES, ids=range(len(RANGES)))
every_stretch = pytest.mark.parametrize("stretch", STRETCHES, ids=["low2", "low4", "high2", "high4"])


def random_codes(n: int) -> torch.Tensor:
    return torch.from_numpy(np.concatenate([[0.0, 1.0], np.random.default_rng(0).random(n)])[:, None])


def test_with_the_lowest_value_as_reach_the_scale_is_that_of_a_logarithm() -> None:
    log = Float(1e-4, 10.0, log=True)
    ours = stretched(Float(1e-4, 10.0), Stretch(True, 1e-4 / (10.0 - 1e-4)))
    values = np.geomspace(1e-4, 10.0, 50)
    # The reach is rounded, relative to 1: by as much the width may be off.
    np.testing.assert_allclose(ours.scale.encoded(values), log.scale.encoded(values), rtol=0, atol=4e-16)


def test_the_upper_end_is_the_lower_one_mirrored() -> None:
    values = np.linspace(0.0, 1.0, 101)
    low, high = (stretched(Float(0.0, 1.0), Stretch(is_low, 1e-2)).scale.encoded for is_low in (True, False))
    np.testing.assert_allclose(high(1.0 - values), 1.0 - low(values), rtol=0, atol=1e-15)


@every_range
@every_stretch
def test_codes_of_decoded_points_are_the_codes_to_the_last_bit(parameter: Parameter, stretch: Stretch) -> None:
    encoding = Encoding((("x", stretched(parameter, stretch)),))
    embedding = encoding.embedding({"x": parameter}, {})
    assert embedding.space is not None
    U = embedding.space.canonical(random_codes(500))
    assert torch.equal(embedding.space.canonical(U), U)
    points = embedding.points(U)
    assert torch.equal(encoding.encode(points), U)
    assert torch.equal(embedding(U), U)
    assert [points[0]["x"], points[1]["x"]] == [
        parameter.first,
        Space((("x", parameter),)).decode(torch.ones(1, 1))[0]["x"],
    ]


@every_range
@every_stretch
def test_a_part_of_a_range_is_on_the_same_scale(parameter: Parameter, stretch: Stretch) -> None:
    assert isinstance(parameter, Float | Int)
    whole, step = stretched(parameter, stretch), parameter.step or 1e-3
    first = parameter.low + (parameter.high - parameter.low) // step // 3 * step
    part = type(parameter)(first, first + 200 * step, step=parameter.step)  # type: ignore[arg-type]
    encoding = Encoding((("x", whole), ("y", Float(0.0, 1.0))))
    embedding = encoding.embedding({"x": part, "y": Float(0.5, 1.0)}, {})
    assert embedding.space is not None
    U = embedding.space.canonical(random_codes(100).repeat(1, 2))
    # A code near 1, less than another one, has an error of 2^-53; a part that is narrow magnifies none of it.
    torch.testing.assert_close(embedding(U), encoding.encode(embedding.points(U)), rtol=0, atol=4e-16)


@every_stretch
def test_the_codes_0_and_1_are_those_of_the_ends(stretch: Stretch) -> None:
    whole = stretched(Float(-1.0, 2.0), stretch)
    np.testing.assert_array_equal(whole.scale.nearest(np.array([0.0, 0.3, 1.0]))[[0, 2]], [-1.0, 2.0])


@every_stretch
def test_a_range_beyond_the_whole_has_finite_codes(stretch: Stretch) -> None:
    # As in a restart, when an earlier trial of a study with another range is finished late.
    encoding = Encoding((("x", stretched(Float(0.0, 1.0), stretch)),))
    embedding = encoding.embedding({"x": Float(-1.0, 2.0)}, {})
    assert embedding.space is not None
    U = embedding.space.canonical(random_codes(100))
    assert torch.isfinite(embedding(U)).all()
    assert {point["x"] for point in embedding.points(U[:2])} == {-1.0, 2.0}


@every_stretch
def test_codes_and_slopes_on_the_linear_scale_are_those_of_the_values(stretch: Stretch) -> None:
    plain, u = Float(-2.0, 5.0), np.linspace(0.0, 1.0, 41)
    codes = stretched(plain, stretch).scale.encoded(-2.0 + 7.0 * u)
    np.testing.assert_allclose(stretch.of_codes(u), codes, rtol=0, atol=1e-12)  # of the sum -2 + 7 u, over the reach
    slopes = (stretch.of_codes(u[1:-1] + 1e-7) - stretch.of_codes(u[1:-1] - 1e-7)) / 2e-7
    np.testing.assert_allclose([stretch.slope(x) for x in u[1:-1]], slopes, rtol=1e-6)  # a difference of second order


@given(st.floats(1e-6, 0.5), st.booleans(), st.integers(100, 10**6))
@settings(max_examples=50)
def test_grid_points_are_the_nearest_ones_to_their_codes(reach: float, is_low: bool, n: int) -> None:
    scale = stretched(Int(0, n - 1), Stretch(is_low, reach)).scale
    positions = np.unique(np.linspace(0, n - 1, 300).astype(np.int64))
    codes = scale.encoded(positions)
    assert (np.diff(codes) > 0.0).all()
    np.testing.assert_array_equal(scale.nearest(codes), positions)


def test_only_long_ranges_on_a_linear_scale_are_stretched() -> None:
    assert all(map(can_be_stretched, (*RANGES, Float(0.0, 1e-279), Float(0.0, 1e300))))
    others = (
        Float(1e-3, 1.0, log=True),
        Float(0.0, 1.0, step=0.1),
        Int(1, 1000, log=True),
        Int(1, 20),
        Int(0, 1 << 45),
        Categorical(["a", "b"]),
        Ordinal(range(1000)),
        Float(0.0, 1e-322),  # the reach would be zero
        Float(0.0, 1e-300),  # matplotlib widens its axis
        Float(-8e307, 8e307),  # positions would overflow
    )
    assert not any(map(can_be_stretched, others))
    assert like_part(RANGES[0], RANGES[0]) is RANGES[0]


@every_stretch
def test_coordinates_on_an_axis_are_a_multiple_of_the_codes_and_go_on_beyond_the_range(stretch: Stretch) -> None:
    parameter, values = Float(-2.0, 5.0), np.linspace(-2.5, 5.5, 81)
    axis = StretchedAxis.of(parameter, stretch)
    c = axis.compressed(values)
    assert (np.diff(c) > 0.0).all()
    np.testing.assert_allclose(axis.spread(c), values, rtol=0, atol=1e-13)
    inside = (values >= -2.0) & (values <= 5.0)
    low, high = axis.compressed(np.array([-2.0, 5.0]))
    codes = stretched(parameter, stretch).scale.encoded(values[inside])
    np.testing.assert_allclose((c[inside] - low) / (high - low), codes, rtol=0, atol=1e-14)
