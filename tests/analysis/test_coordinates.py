"""Coordinates of points: values along a parameter, and their codes."""

import numpy as np
import pandas as pd
import pytest
import torch

import bkbopt as bo
from bkbopt.analysis.coordinates import coordinates_of
from tests.searched import stretched_told, tailed_searched


@pytest.fixture(scope="module")
def tailed() -> bo.Optimizer:
    return tailed_searched()


def test_values_along_a_range_with_a_stretched_end_are_evenly_spaced_for_the_model() -> None:
    coordinates = coordinates_of(stretched_told())
    center = coordinates.center(None)
    for dimension in coordinates.dimensions(50)[:2]:
        U = center.repeat(50, 1)
        U[:, dimension.column] = torch.from_numpy(dimension.codes(dimension.values))
        codes = coordinates.encoded(U)[:, dimension.column]
        # A code of 1e-6 has an error of 1e-16, and the reach is a ten-thousandth of the range.
        np.testing.assert_allclose(codes, np.linspace(0.0, 1.0, 50), atol=1e-12)


def test_values_along_a_column_with_long_tails_are_evenly_spaced_for_the_model(tailed: bo.Optimizer) -> None:
    for dimension in coordinates_of(tailed).dimensions(50):
        # The smallest and the largest raw value are those of the pool; between them a value is rounded.
        np.testing.assert_allclose(dimension.codes(dimension.values), np.linspace(0.0, 1.0, 50), atol=1e-12)


def test_codes_are_the_encoded_columns(tailed: bo.Optimizer) -> None:
    assert tailed.pool is not None
    first, second = coordinates_of(tailed).dimensions(50)
    X, rows = tailed.pool.X[np.arange(20)], [tailed.pool.decode(row) for row in range(20)]
    assert first.codes([row["x0"] for row in rows]).tolist() == X[:, 0].tolist()
    assert second.codes([row["x1"] for row in rows]).tolist() == X[:, 1].tolist()


def test_codes_are_the_encoded_ranks() -> None:
    order = ["XS", "S", "M", "L", "XL"]
    size = pd.Categorical(["XL", "S", "M", "L"] * 10, order, ordered=True)
    dimension = coordinates_of(bo.Optimizer(pd.DataFrame({"size": size, "dose": range(40)}), seed=0)).dimensions(50)[0]
    assert dimension.values == tuple(order)
    assert dimension.codes(order).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
