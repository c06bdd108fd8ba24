"""What every feature map keeps to. One that is defined elsewhere joins by a line in `MAPS`, or runs this suite."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bkbopt.kernels import Kernel, SphericalKernel, SumKernel, gram, matern52, rbf
from bkbopt.learners.features import QuadratureFourier, SketchedFeatures, Taylor
from bkbopt.learners.features.map_states import map_from_state, map_to_state
from bkbopt.posterior.features import FeatureMap, Nystrom, RandomFourier, Spherical, WideFourier, WithoutResidual
from bkbopt.posterior.features.explicit import Joined
from tests.conformance.suites import check_complete, implementations, joined

KERNEL, GAUSSIAN = matern52(2, [0.4, 0.9], 3.0), rbf(2, [0.5, 0.8], 2.0)
BOWL = SphericalKernel.start(2)


def points(n: int, seed: int = 0) -> Tensor:
    return torch.as_tensor(np.random.default_rng(seed).random((n, 2)))


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


NYSTROM = Nystrom.from_points(KERNEL, points(12))
#: Maps with the kernels that they are of.
MAPS: dict[str, tuple[FeatureMap, Kernel]] = {
    "Nystrom": (NYSTROM, KERNEL),
    "without residual": (WithoutResidual(NYSTROM), KERNEL),
    "spherical": (Spherical(BOWL), BOWL),
    "joined": (Joined((Spherical(BOWL), WideFourier.from_kernel(KERNEL, 9, rng()))), SumKernel((BOWL, KERNEL))),
    "random Fourier": (RandomFourier.from_kernel(KERNEL, 9, rng()), KERNEL),
    "wide Fourier": (WideFourier.from_kernel(KERNEL, 9, rng()), KERNEL),
    "quadrature": (QuadratureFourier.from_kernel(GAUSSIAN, 5), GAUSSIAN),
    "Taylor": (Taylor(2, 3, 0.8), rbf(2, 0.8)),
    "sketched": (SketchedFeatures(KERNEL, points(9), 0.9 * Nystrom.from_points(KERNEL, points(9)).W), KERNEL),
}
#: Those without a residual whose prior variance is that of the kernel in the mean only, or less.
OTHER_VARIANCE = {"without residual", "joined", "wide Fourier"}
#: Those whose features and residual covariance make up the whole kernel.
WHOLE = {"Nystrom", "spherical", "Taylor"}


def test_every_feature_map_of_the_package_is_a_subject() -> None:
    every = implementations(FeatureMap)
    subjects = {type(features).__name__ for features, _ in MAPS.values()}
    check_complete(every, subjects | joined("test_feature_maps", every), {})


@pytest.fixture(params=MAPS)
def features(request: pytest.FixtureRequest) -> FeatureMap:
    return MAPS[request.param][0]


def test_features_are_doubles_and_as_many_as_the_size(features: FeatureMap) -> None:
    assert isinstance(features, FeatureMap)
    for X in (points(7, 2), points(0)):
        Z = features(X)
        assert (Z.shape, Z.dtype) == ((len(X), features.size), torch.float64)
        assert features.residual(X, Z).shape == (len(X),)
        assert features.residual_covariance(X, Z).shape == (len(X), len(X))


def test_features_are_those_of_their_point_alone(features: FeatureMap) -> None:
    X = points(7, 2)
    # Products of other shapes round differently.
    torch.testing.assert_close(torch.cat([features(x) for x in X.split(1)]), features(X), rtol=1e-12, atol=1e-13)


def test_residuals_are_the_diagonal_of_their_covariance_and_not_negative(features: FeatureMap) -> None:
    X = torch.cat([points(12), points(7, 2)])  # some of them are inducing points
    Z = features(X)
    residual = features.residual(X, Z)
    assert float(residual.min()) >= 0.0
    torch.testing.assert_close(features.residual_covariance(X, Z).diagonal(), residual, rtol=0.0, atol=1e-12)


def test_residual_covariance_is_positive_semidefinite(features: FeatureMap) -> None:
    X = torch.cat([points(12), points(7, 2)])
    assert float(torch.linalg.eigvalsh(features.residual_covariance(X, features(X)))[0]) > -1e-12


def test_features_and_residuals_are_differentiable(features: FeatureMap) -> None:
    X = points(3, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda T: (features(T), features.residual(T, features(T))), (X,))


def test_a_map_is_restored_from_its_state_or_given_again(features: FeatureMap) -> None:
    state = map_to_state(features)
    restored: Any = map_from_state(state, features if state == {"form": None} else None)
    assert type(restored) is type(features)
    assert torch.equal(restored(points(5, 2)), features(points(5, 2)))


@pytest.mark.parametrize("name", sorted(MAPS.keys() - OTHER_VARIANCE))
def test_features_and_residual_have_the_prior_variance(name: str) -> None:
    features, kernel = MAPS[name]
    for X in (points(6, 2), 100.0 * points(6, 2)):
        Z = features(X)
        torch.testing.assert_close((Z * Z).sum(1) + features.residual(X, Z), kernel.diag(X), rtol=1e-14, atol=0.0)


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_features_and_residual_covariance_make_up_the_kernel(name: str) -> None:
    features, kernel = MAPS[name]
    X = points(8, 2)
    Z = features(X)
    torch.testing.assert_close(Z @ Z.T + features.residual_covariance(X, Z), gram(kernel, X), rtol=0.0, atol=1e-12)
