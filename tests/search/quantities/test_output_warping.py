"""Warped values: those whose noise grows with the distance from the best, in any unit and direction."""

import numpy as np
import pytest
import torch
from torch import Tensor

from bkbopt.kernels import ARDKernel, Kernel, matern52
from bkbopt.posterior.observations import Observations
from bkbopt.search.quantities import output_warping
from bkbopt.search.quantities.output_warping import is_better_warped
from bkbopt.search.quantities.scaling import NOISELESS, Scaler
from bkbopt.surrogates.fit import Fit
from bkbopt.surrogates.structure import fit_structure
from tests.sweeps import slow_but

START = matern52(2), 0.01


def values(kind: str, seed: int, n: int = 120) -> tuple[Tensor, Tensor]:
    """Losses from 0.05 to 1 over a square, with noise that is a fifth of each or the same everywhere; or a sine."""
    rng = np.random.default_rng(seed)
    X, e = torch.as_tensor(rng.random((n, 2))), torch.as_tensor(rng.standard_normal(n))
    if kind == "sine":
        return X, torch.sin(6.0 * X[:, 0]) + X[:, 1] + 0.1 * e
    loss = 0.05 * torch.exp(3.0 * ((X - 0.3).square().sum(1) * 2.0).clamp_max(1.0))
    return X, loss * torch.exp(0.2 * e) if kind == "relative" else loss + 0.1 * e


def fitted(X: Tensor, v: Tensor) -> tuple[Kernel, float]:
    observations = Observations(2)
    observations.add(X, v)
    return fit_structure(observations, *START, fit_noise=True, rng=np.random.default_rng(0))


def warps(X: Tensor, y: Tensor, sign: float = -1.0) -> bool:
    scaler = Scaler.from_values(y, sign)
    return is_better_warped(X, y, scaler, fitted(X, scaler.transform(y)), START, fit_noise=True)


@pytest.mark.parametrize("seed", slow_but({0}, range(3)))
def test_values_are_warped_where_noise_grows_with_them_and_not_where_it_does_not(seed: int) -> None:
    assert warps(*values("relative", seed))
    assert not warps(*values("even", seed))
    assert not warps(*values("sine", seed))


def test_the_evidence_is_that_of_the_values_told() -> None:
    # Of standardised values, without the slopes of the map, warped ones gain 16, and with them 35; 24 are asked for.
    rng = np.random.default_rng(0)
    X, e = torch.as_tensor(rng.random((120, 2))), torch.as_tensor(rng.standard_normal(120))
    assert warps(X, torch.exp(1.5 * X.sum(1) + 0.1 * e))


def test_columns_that_are_inactive_without_warping_are_so_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []

    def fit(_: object, kernel: ARDKernel, noise: float, **__: object) -> Fit:
        seen.append(kernel.inactive)
        return Fit(kernel, noise, 0.0)

    monkeypatch.setattr(output_warping, "fit_from", fit)
    X, y = values("relative", 0)
    one = matern52(2, inactive=[1]), 0.01
    is_better_warped(X, y, Scaler.from_values(y, -1.0), one, START, fit_noise=True)
    assert seen
    assert set(seen) == {(1,)}


@pytest.mark.parametrize("unit", [1e-300, 1e300])
@pytest.mark.parametrize("kind", ["relative", "even"])
def test_units_and_directions_do_not_matter(kind: str, unit: float) -> None:
    X, y = values(kind, 0)
    assert warps(X, y * unit) == warps(X, -y * unit, 1.0) == (kind == "relative")


def test_values_that_cannot_be_warped_are_not() -> None:
    X, _ = values("sine", 0)
    y = torch.ones(120, dtype=torch.float64)
    y[:40] = 0.0  # a third are the best
    assert not warps(X, y)


@pytest.mark.parametrize("n", [8, 20, 60])
def test_few_values_over_decades_are_warped_and_few_of_a_steep_function_are_not(n: int) -> None:
    rng = np.random.default_rng(1)
    X, e = torch.as_tensor(rng.random((n, 2))), torch.as_tensor(rng.standard_normal(n))
    away = (X - 0.3).square().sum(1)
    assert warps(X, 10.0 ** (6.0 * away + 0.1 * e))
    # At 20 and 60 values the logarithm gains more than the margin of many values.
    assert not warps(X, torch.exp(3.0 * away) + 0.1 * e)


@pytest.mark.parametrize("seed", range(3))
def test_values_without_noise_that_have_converged_are_not_warped_unless_they_span_decades(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = torch.as_tensor(np.concatenate([rng.random((30, 2)), 0.3 + 1e-3 * rng.standard_normal((50, 2))]))
    away = (X - 0.3).square().sum(1)
    assert not warps(X, away)
    assert warps(X, 10.0 ** (20.0 * away))


def test_converged_values_without_noise_are_not_warped_to_spikes(monkeypatch: pytest.MonkeyPatch) -> None:
    # A search has found minima of (x - y)^2, to ten digits; their logarithm has a spike at each of them.
    rng = np.random.default_rng(2)
    X = torch.as_tensor(rng.random((40, 2)))
    at = rng.integers(0, 3, 25) / 2.0
    away = 10.0 ** -rng.uniform(2.0, 5.0, (2, 25))
    X[15:, 0] = torch.as_tensor(np.clip(at + (1.0 - 2.0 * at) * away[0], 0.0, 1.0))
    X[15:, 1] = X[15:, 0] + torch.as_tensor(away[1] * rng.choice([-1.0, 1.0], 25))
    y = (X[:, 0] - X[:, 1]).square()
    scaler = Scaler.from_values(y, -1.0)
    kernel, noise = fitted(X, scaler.transform(y))
    assert noise <= NOISELESS
    given = X, y, scaler, (kernel, noise), START
    assert not is_better_warped(*given, fit_noise=True)
    monkeypatch.setattr(output_warping, "SPIKE", 0.0)
    assert is_better_warped(*given, fit_noise=True)
