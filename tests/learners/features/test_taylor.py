"""Taylor features against the truncated exponential series, and their error bound."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.kernels import rbf
from bkbopt.learners.features import Taylor
from bkbopt.posterior.features import FeatureMap

shapes = given(dim=st.integers(1, 6), degree=st.integers(0, 5), length=st.floats(0.3, 5.0), seed=st.integers(0, 999))


def points(n: int, dim: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).uniform(-1.0, 1.0, (n, dim)))


@shapes
def test_products_of_features_are_the_truncated_series(dim: int, degree: int, length: float, seed: int) -> None:
    X = points(7, dim, seed)
    features = Taylor(dim, degree, length)
    Z = features(X)
    q = X @ X.T / length**2
    front = torch.exp(-0.5 * (X * X).sum(1) / length**2)
    series = sum(q**j / math.factorial(j) for j in range(degree + 1))
    assert Z.shape == (7, features.size) == (7, math.comb(degree + dim, dim))
    scale = float((front[:, None] * front * series).abs().max())
    torch.testing.assert_close(Z @ Z.T, front[:, None] * front * series, rtol=0.0, atol=1e-13 * scale)


@shapes
def test_error_stays_below_its_bound(dim: int, degree: int, length: float, seed: int) -> None:
    X = points(7, dim, seed)
    features = Taylor(dim, degree, length)
    R = float(X.norm(dim=1).max())
    bound = (R / length) ** (2 * (degree + 1)) / math.factorial(degree + 1)
    error = rbf(dim, length)(X, X) - features(X) @ features(X).T
    assert float(error.abs().max()) <= bound + 1e-14


def test_residual_is_what_the_kernel_has_beyond_the_features() -> None:
    X, features = points(9, 3), Taylor(3, 2, 0.8)
    Z = features(X)
    assert isinstance(features, FeatureMap)
    whole = features.residual_covariance(X, Z)
    torch.testing.assert_close(whole, rbf(3, 0.8)(X, X) - Z @ Z.T, rtol=0.0, atol=1e-14)
    torch.testing.assert_close(whole.diagonal(), features.residual(X, Z), rtol=0.0, atol=1e-14)
    # The part left out is a kernel itself.
    assert float(torch.linalg.eigvalsh(whole)[0]) > -1e-13


@pytest.mark.parametrize(("degree", "size"), [(2, 190), (3, 1330)])
def test_sizes_in_eighteen_dimensions_are_the_papers(degree: int, size: int) -> None:
    assert Taylor(18, degree).size == size


def test_too_many_features_are_refused_with_their_number_before_any_is_made() -> None:
    with pytest.raises(ArgumentError, match=r"at most 10000 features, but degree 8 in 60 dimensions gives 7392009768"):
        Taylor(60, 8)


@pytest.mark.parametrize(
    ("dim", "degree", "message"),
    [
        (300, 300, r"gives 10\^179 or more, and a matrix of 10\^350 GB"),
        (20_000, 20_000, r"gives 10\^12039 or more"),
        (3, 10**400, r"degree above 1000000000 in 3 dimensions gives 10\^26 or more"),
        (18, 10, "gives 13123110, and a matrix of 1.38e\\+06 GB"),
    ],
    ids=["300", "20,000", "beyond floats", "18"],
)
def test_bases_of_any_size_are_refused_with_it(dim: int, degree: int, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Taylor(dim, degree)


def test_rows_of_another_dimension_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^X: expected 3 columns, as many as the features have, got 4"):
        Taylor(3, 2)(points(5, 4))


def test_whole_numbers_may_be_floats() -> None:
    features = Taylor(3.0, 2.0)  # type: ignore[arg-type]
    torch.testing.assert_close(features(points(5, 3)), Taylor(3, 2)(points(5, 3)), rtol=0.0, atol=0.0)


@pytest.mark.parametrize("bad", [{"degree": -1}, {"degree": 1.5}, {"dim": 0}, {"lengthscale": 0.0}])
def test_arguments_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(bad))):
        Taylor(**{"dim": 2, "degree": 2, **bad})  # type: ignore[arg-type]


def test_degree_must_be_a_number() -> None:
    with pytest.raises(ArgumentTypeError, match="degree"):
        Taylor(2, "two")  # type: ignore[arg-type]
