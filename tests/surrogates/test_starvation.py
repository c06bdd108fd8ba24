"""Figure 1 of Calandriello et al. (2019): variances with and without starvation far from the data."""

import numpy as np
import pytest
import torch

from bkbopt import BKB, ExactGP, FourierGP
from bkbopt.kernels import gram, rbf

# k = exp(-100 r^2), data on [0, 0.5] only, and nothing known on [0.8, 1].
KERNEL, XI, LAM = rbf(1, 200.0**-0.5), 0.1, 0.01
GRID = torch.linspace(0.0, 1.0, 201, dtype=torch.float64)[:, None]
UNKNOWN = GRID[:, 0] >= 0.8


def data(t: int, seed: int) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    """t points, their noisy values, and the function on the grid."""
    rng = np.random.default_rng(seed)
    X = torch.as_tensor(0.5 * rng.random((t, 1)))
    both = torch.cat([X, GRID])
    e, U = np.linalg.eigh(gram(KERNEL, both).numpy())
    f = U @ (np.sqrt(np.maximum(e, 0.0)) * rng.standard_normal(len(e)))
    return X, f[:t] + XI * rng.standard_normal(t), f[t:]


@pytest.mark.parametrize("t", [6, 63, 215])
def test_sor_starves_where_dtc_and_the_exact_gp_do_not(t: int) -> None:
    inside: dict[str, list[float]] = {"dtc": [], "sor": []}
    for seed in range(3):
        X, y, f = data(t, seed)
        gps = {"exact": ExactGP(KERNEL, LAM)}
        gps |= {v: BKB(KERNEL, LAM, qbar=2.0, resample="every", variance=v, seed=seed) for v in ("dtc", "sor")}  # type: ignore[misc]
        for name, gp in gps.items():
            for part in np.array_split(np.arange(t), 1 if name == "exact" else min(t, 63)):
                gp.observe(X[part], y[part])
            posterior = gp.posterior(GRID)
            sd = float(posterior.stddev[UNKNOWN].mean())
            assert sd < 2.5e-3 if name == "sor" else sd == pytest.approx(1.0, abs=1e-3)
            if name in inside:
                inside[name].append(
                    float((np.abs(f - posterior.mean.numpy()) <= 3.0 * posterior.stddev.numpy()).mean())
                )
    assert np.mean(inside["dtc"]) > 0.97
    assert max(inside["sor"]) < 0.85


def test_few_fourier_features_starve() -> None:
    X, y, _ = data(215, 0)
    starved = []
    for seed in range(5):
        gp = FourierGP(KERNEL, LAM, n_frequencies=3, seed=seed)
        gp.observe(X, y)
        starved.append(float(gp.posterior(GRID).stddev[UNKNOWN].mean()))
    assert np.median(starved) < 0.2
    many = FourierGP(KERNEL, LAM, n_frequencies=600)
    many.observe(X, y)
    assert float(many.posterior(GRID).stddev[UNKNOWN].mean()) > 0.95
