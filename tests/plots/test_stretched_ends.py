"""Ranges with a stretched end have axes on the scale on which they are searched."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt import plots
from bkbopt.plots.coordinates import coordinates_of


@pytest.fixture(scope="module")
def opt() -> bo.Optimizer:
    opt, rng = (
        bo.Optimizer({"rate": (1e-6, 1.0), "momentum": (0.0, 0.9999), "n": bo.Int(1, 5000)}, seed=0),
        np.random.default_rng(0),
    )
    close = 10.0 ** -rng.uniform(0.0, 4.0, (80, 2))
    points = [
        {"rate": a, "momentum": 0.9999 - 0.9999 * b, "n": int(n)}
        for (a, b), n in zip(close, rng.integers(1, 5000, 80), strict=True)
    ]
    losses = [(math.log10(p["rate"]) + 2.5) ** 2 + (math.log10(1.0 - p["momentum"]) + 2.0) ** 2 for p in points]
    opt.tell(points, losses)
    assert {name: by.is_low for name, by in opt.stretched_ends.items()} == {"rate": True, "momentum": False}
    return opt


def test_values_of_an_axis_are_evenly_spaced_for_the_model(opt: bo.Optimizer) -> None:
    coordinates = coordinates_of(opt)
    center = coordinates.center(None)
    for dimension in coordinates.dimensions(50)[:2]:
        U = center.repeat(50, 1)
        U[:, dimension.column] = torch.from_numpy(dimension.codes(dimension.values))
        codes = coordinates.encoded(U)[:, dimension.column]
        # A code of 1e-6 has an error of 1e-16, and the reach is a ten-thousandth of the range.
        np.testing.assert_allclose(codes, np.linspace(0.0, 1.0, 50), atol=1e-12)


@pytest.mark.parametrize("name", ["rate", "momentum"])
def test_the_axis_shows_the_end_at_full_width(name: str, opt: bo.Optimizer) -> None:
    ax = plots.posterior_slice(opt, name, n=40)
    assert ax.get_xscale() == "function"
    low, high = ax.get_xlim()
    ticks = [tick for tick in ax.get_xticks() if low <= tick <= high]
    places = ax.transAxes.inverted().transform(ax.transData.transform([(tick, 0.0) for tick in ticks]))[:, 0]
    assert len(ticks) >= 4
    assert np.diff(places).max() < 0.5
    best = 10.0**-2.5 if name == "rate" else 0.99
    (at,) = ax.transAxes.inverted().transform(ax.transData.transform([(best, 0.0)]))[:, 0]
    assert 0.2 < at < 0.8  # on a linear axis it is within a hundredth of the end
    plt.close(ax.figure)


def test_pictures_of_two_parameters_have_both_axes(opt: bo.Optimizer) -> None:
    ax = plots.posterior_contour(opt, "rate", "momentum", n=15)
    assert (ax.get_xscale(), ax.get_yscale()) == ("function", "function")
    plt.close(ax.figure)
