"""Draws of hyper-parameters: they follow the posterior density, keep fixed ones, and make posteriors."""

import math

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.kernels import CallableKernel, FittableKernel, ScaledKernel, matern52
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates import hyperparameters
from bkbopt.surrogates.fit import FitSettings, LogPosterior, fit_data, fit_hyperparameters
from bkbopt.surrogates.hyperparameters import Hyperparameters, draw_hyperparameters, posterior_under


def data(n: int = 30, dim: int = 1) -> Observations:
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.random((n, dim)))
    obs = Observations(dim)
    obs.add(X, torch.sin(6.0 * X[:, 0]) + 0.1 * torch.as_tensor(rng.standard_normal(n)))
    return obs


def test_draws_have_the_moments_of_the_density_on_a_grid() -> None:
    obs = data()
    kernel, noise = fit_hyperparameters(obs, matern52(1), 0.01, fit_noise=False, with_mean=True)
    draws = draw_hyperparameters(obs, kernel, noise, 400, np.random.default_rng(1), fit_noise=False)
    found = np.array([h.kernel.theta.numpy() for h in draws if isinstance(h.kernel, FittableKernel)])
    settings = FitSettings()
    target = LogPosterior(
        fit_data(obs, settings, np.random.default_rng(0)),
        kernel,
        noise,
        False,
        settings.mean_precision,
        settings,
        hyperparameters.PRIOR_POWER,
    )
    lengths, scales = np.linspace(-3.0, 3.0, 41), np.linspace(-4.0, 5.0, 41)
    log_density = np.array([[target.over_means(np.array([a, b]))[0] for b in scales] for a in lengths])
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    for column, (axis, grid) in enumerate(((1, lengths), (0, scales))):
        marginal = density.sum(axis)
        mean = float(marginal @ grid)
        sd = math.sqrt(float(marginal @ (grid - mean) ** 2))
        # 400 draws out of as many proposals: an effective number of a hundred, at six and four standard errors.
        assert abs(found[:, column].mean() - mean) < 0.6 * sd
        assert 0.7 * sd < found[:, column].std() < 1.4 * sd


def test_fixed_hyperparameters_are_the_same_in_all_draws() -> None:
    obs, rng = data(), np.random.default_rng(0)
    foreign = CallableKernel(matern52(1))
    draws = draw_hyperparameters(obs, foreign, 0.02, 5, rng, fit_noise=False)
    assert {(id(h.kernel), h.noise) for h in draws} == {(id(foreign), 0.02)}
    assert len({h.mean for h in draws}) == 5
    scaled = ScaledKernel(foreign, torch.zeros((), dtype=torch.float64))
    noises = {h.noise for h in draw_hyperparameters(obs, scaled, 0.02, 5, rng)}
    assert len(noises) > 1


@pytest.mark.parametrize("inducing", [0, 20])
def test_the_posterior_of_a_draw_is_that_of_a_gp_on_the_values_less_the_mean(
    inducing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hyperparameters, "EXACT", 0 if inducing else 400)
    obs, kernel = data(), matern52(1, 0.5)
    gp = bo.ExactGP(kernel, 0.02)
    gp.observe(obs.X, obs.s / obs.n - 0.3)
    model = posterior_under(Hyperparameters(kernel, 0.02, 0.3), obs, obs.X[:inducing], np.random.default_rng(0))
    X = torch.linspace(0.0, 1.0, 9, dtype=torch.float64)[:, None]
    # Exact up to rounding; twenty inducing points on a line see a smooth kernel to a thousandth.
    for found, expected in zip(model(X), (gp.posterior(X).mean, gp.posterior(X).variance), strict=True):
        torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-2 if inducing else 1e-9)
