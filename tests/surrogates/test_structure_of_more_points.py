"""A structure that few points suggest is kept only if the other points do not contradict it."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from bkbopt.kernels import ARDKernel, RotatedKernel, matern52
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates import structure
from bkbopt.surrogates.fit import Fit, log_evidence
from bkbopt.surrogates.fit_data import FitData
from bkbopt.surrogates.structure import fit_structure

DIAGONAL = torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64) / 2.0**0.5


def as_ridge(search: structure._Search, plain: Fit) -> tuple[float, Fit]:
    """Claims that the function is constant along one diagonal."""
    assert isinstance(plain.kernel, ARDKernel)
    lengths = torch.tensor([-2.0, 3.0], dtype=torch.float64)
    ridge = RotatedKernel(replace(plain.kernel, log_lengthscale=lengths), DIAGONAL)
    return 1.0, replace(plain, kernel=ridge, value=plain.value + 9.0)


@pytest.mark.parametrize("is_ridge", [False, True])
def test_a_structure_that_more_points_contradict_is_not_taken(is_ridge: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X = torch.as_tensor(np.random.default_rng(0).random((300, 2)))
    y = torch.sin(9.0 * X.sum(1)) + (0.0 if is_ridge else 1.0) * torch.sin(13.0 * (X[:, 0] - X[:, 1]))
    observations = Observations(2, X.device)
    observations.add(X, (y - y.mean()) / y.std())
    monkeypatch.setattr(structure._Search, "best", as_ridge)
    kernel, _ = fit_structure(observations, matern52(2), 1e-2, fit_noise=True, rng=np.random.default_rng(1))
    assert isinstance(kernel, RotatedKernel if is_ridge else ARDKernel)


@pytest.mark.parametrize("frequency", [3.0, 20.0])
def test_of_noisy_values_all_count_unless_ripples_are_lost(frequency: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    X = torch.as_tensor(rng.random((2000, 3)))
    y = torch.sin(frequency * X[:, 0]) * torch.cos(frequency * X[:, 1]) + 0.5 * torch.as_tensor(
        rng.standard_normal(2000)
    )
    observations = Observations(3)
    observations.add(X, (y - y.mean()) / y.std())

    def evidence() -> float:
        kernel, noise = fit_structure(observations, matern52(3), 1e-2, fit_noise=True, rng=np.random.default_rng(2))
        return log_evidence(FitData.of(observations), kernel, noise)

    built = evidence()
    monkeypatch.setattr(structure, "MERGED_FROM", math.inf)
    subset = evidence()
    monkeypatch.setattr(structure, "MERGED_FROM", 0.25)
    monkeypatch.setattr(structure, "DOUBT", math.inf)
    merged = evidence()
    if frequency == 3.0:
        assert built == merged > subset
    else:
        assert built == subset > merged + 50.0
