"""Hard data: repeats, extreme noise and extreme values leave finite means, and variances that are not negative."""

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.conformance.surrogate_subjects import FACTORIES, KERNEL, MORE_FACTORIES, XS, Factory, healthy

rng = np.random.default_rng(3)
HARD: dict[str, tuple[np.ndarray, np.ndarray]] = {
    "one point": (np.full((1, 2), 0.5), np.ones(1)),
    "equal points": (np.full((80, 2), 0.5), rng.standard_normal(80)),
    "duplicates": (np.repeat(rng.random((10, 2)), 8, axis=0), rng.standard_normal(80)),
    "near duplicates": (rng.random((10, 2)).repeat(8, axis=0) + 1e-9 * rng.random((80, 2)), rng.standard_normal(80)),
    "constant y": (rng.random((80, 2)), np.full(80, 7.0)),
    "zero y": (rng.random((80, 2)), np.zeros(80)),
    "on a line": (np.linspace(0.0, 1.0, 80)[:, None] * [[1.0, 1.0]], rng.standard_normal(80)),
    "far apart": (np.arange(160.0).reshape(80, 2) * 100.0, rng.standard_normal(80)),
    "huge y": (rng.random((80, 2)), 1e150 * rng.standard_normal(80)),
    "tiny y": (rng.random((80, 2)), 1e-150 * rng.standard_normal(80)),
}


#: What is hardest at a tiny noise, in bulk and one by one, and nothing to learn at a large one.
CASES = [*((name, 1e-12, True) for name in HARD), ("near duplicates", 1e-12, False), ("duplicates", 1e6, False)]
SWEEP = [(name, noise, bulk) for name in HARD for noise in (1e-12, 1e-6, 1.0, 1e6) for bulk in (True, False)]


def survives(factory: Factory, name: str, noise: float, bulk: bool) -> None:
    X, y = HARD[name]
    gp = factory(KERNEL, noise)
    for part in np.array_split(np.arange(len(y)), 1 if bulk else len(y)):
        gp.observe(X[part], y[part])
    healthy(gp)
    model = gp.fantasy(torch.as_tensor(X[:12]))
    for v in model(torch.as_tensor(XS)):
        assert bool(torch.isfinite(v).all())
    # The mean of many repeats is theirs where the noise permits. A learner that goes once through its stream does not
    # average; the exact ones keep a row for every repeat, and a matrix of equal rows is singular at such a noise.
    if name in ("equal points", "one point") and noise <= 1e-6 and getattr(gp, "learner", "pkawv") == "pkawv":
        assert float(gp.fitted()[0]) == pytest.approx(y.mean(), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("name", ["ExactGP", "BKB", "BKB, small budget", "FourierGP", "forks, second stage"])
def test_hard_data_leave_finite_means_and_variances_that_are_not_negative(
    name: str, case: tuple[str, float, bool]
) -> None:
    survives(FACTORIES[name], *case)


@pytest.mark.slow
@pytest.mark.parametrize("case", SWEEP, ids=str)
@pytest.mark.parametrize("name", [*FACTORIES, *MORE_FACTORIES])
def test_hard_data_are_survived_by_all_options(name: str, case: tuple[str, float, bool]) -> None:
    survives((FACTORIES | MORE_FACTORIES)[name], *case)


def test_a_kernel_that_vanishes_at_the_first_point_is_survived() -> None:
    def linear(A: Tensor, B: Tensor) -> Tensor:
        return A @ B.T

    X = np.vstack([np.zeros((1, 2)), np.eye(2), np.ones((1, 2))])
    y = X @ [2.0, -1.0]
    for name in ("ExactGP", "BKB", "BKB, every"):
        gp = FACTORIES[name](linear, 1e-6)
        for x, v in zip(X, y, strict=True):
            gp.observe(x[None], v)
            healthy(gp)
        np.testing.assert_allclose(gp.posterior(XS).mean, XS @ [2.0, -1.0], rtol=1e-4, atol=1e-4)
