"""How far our variance is from the exact one where the limit on inducing points binds.

| symbol | units     | meaning                                                                            |
| ------ | --------- | ---------------------------------------------------------------------------------- |
| DTC    | y squared | ours, Calandriello et al. (2019), Eq. 4: V = Z^T N Z + lam I                        |
| FITC   | y squared | the same with noise lam / n_i + residual_i at point i (Snelson and Ghahramani 2006) |
| unseen | -         | residual / k(x, x) of a test point, what the dictionary cannot see of it            |

A function is drawn from the kernel's Gaussian process and observed; half of the test points are uniform, the others a
tenth of a lengthscale from inducing points. `z^2` is the mean of (f - mean)^2 / variance: 1 where the variance is
right, more where it is too small. Always variance >= residual, so that variance / exact >= unseen. The second table has
`effective_dimension` and `leverage_sum` for few inducing points.

Run it as `python -m benchmarks.dtc_variance`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

import bkbopt as bo
from benchmarks.arguments import Arguments
from benchmarks.report import measuring, print_table
from bkbopt.kernels import ARDKernel, gram, matern52, rbf
from bkbopt.posterior import GaussianState

__all__ = ["CASES", "GROUPS", "Case", "main", "measure"]


@dataclass(frozen=True)
class Case:
    """A kernel on the unit cube and the noise variance."""

    name: str
    kernel: ARDKernel
    noise: float


CASES = (
    Case("Matern-5/2, 2-D, l = 0.1, lam = 1e-4", matern52(2, 0.1), 1e-4),
    Case("Matern-5/2, 2-D, l = 0.1, lam = 1e-2", matern52(2, 0.1), 1e-2),
    Case("Matern-5/2, 6-D, l = 0.5, lam = 1e-2", matern52(6, 0.5), 1e-2),
    Case("RBF, 2-D, l = 0.1, lam = 1e-4", rbf(2, 0.1), 1e-4),
)
#: By the unseen share: near the dictionary, between, and away.
GROUPS = {"near": (0.0, 0.01), "between": (0.01, 0.5), "away": (0.5, 1.1)}
BUDGETS = (30, 100, 300)


@dataclass(frozen=True)
class Prediction:
    """Predictions at the test points: all `(tests,)`."""

    unseen: Tensor
    f: Tensor
    exact: Tensor
    means: dict[str, Tensor]
    variances: dict[str, Tensor]


def _points(case: Case, n: int, seed: int, S: Tensor | None) -> Tensor:
    """`n` uniform points or, with inducing points `S (m, d)`, points a tenth of a lengthscale from them."""
    generator = torch.Generator().manual_seed(seed)
    if S is None:
        return torch.rand(n, case.kernel.dim, generator=generator, dtype=torch.float64)
    step = 0.1 * case.kernel.lengthscale * torch.randn(n, S.shape[1], generator=generator, dtype=torch.float64)
    return S[torch.randint(len(S), (n,), generator=generator)] + step


def measure(case: Case, n: int, max_inducing: int, seed: int) -> Prediction:
    """Learn `n` points of a function with `max_inducing` inducing points and predict n test points three times."""
    kernel, lam = case.kernel, case.noise
    X = _points(case, n, 3 * seed, None)
    dictionary = bo.BKB(kernel, lam, max_inducing=max_inducing, seed=seed)
    dictionary.observe(X, torch.zeros(n))  # it does not depend on the values
    T = torch.cat(
        [_points(case, n - n // 2, 3 * seed + 1, None), _points(case, n // 2, 3 * seed + 2, dictionary.inducing)]
    )
    K = gram(kernel, torch.cat([X, T]))
    L = torch.linalg.cholesky(K + 1e-9 * torch.eye(len(K), dtype=torch.float64))
    draws = torch.randn(2, len(K), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    f = L @ draws[0]
    y = f[:n] + lam**0.5 * draws[1, :n]
    dtc, exact = bo.BKB(kernel, lam, max_inducing=max_inducing, seed=seed), bo.ExactGP(kernel, lam)
    for surrogate in (dtc, exact):
        surrogate.observe(X, y)
    features, obs = dtc.model.features, dtc.observations
    Z, Z_test = features(obs.X), features(T)
    residual = features.residual(T, Z_test)
    weight = obs.n / (1.0 + obs.n * features.residual(obs.X, Z) / lam)  # lam / (lam / n + residual)
    fitc = GaussianState.from_data(Z, weight, weight * obs.s / obs.n, lam)
    ours, truth = dtc.posterior(T), exact.posterior(T)
    return Prediction(
        residual / kernel.diag(T),
        f[n:],
        truth.variance,
        {"exact": truth.mean, "DTC": ours.mean, "FITC": Z_test @ fitc.w},
        {"exact": truth.variance, "DTC": ours.variance, "FITC": residual + lam * fitc.leverage(Z_test)},
    )


def _rows(case: Case, n: int, max_inducing: int, seeds: int) -> list[list[object]]:
    runs = [measure(case, n, max_inducing, seed) for seed in range(seeds)]
    unseen, f, exact = (torch.cat([getattr(run, name) for run in runs]) for name in ("unseen", "f", "exact"))
    rows: list[list[object]] = []
    for group, (low, high) in GROUPS.items():
        inside = (unseen >= low) & (unseen < high)
        if int(inside.sum()) < 20:
            continue
        row: list[object] = [case.name, max_inducing, group, int(inside.sum())]
        for method in ("DTC", "FITC", "exact"):
            mean, variance = (
                torch.cat([getattr(run, name)[method] for run in runs])[inside] for name in ("means", "variances")
            )
            if method != "exact":
                ratio = variance / exact[inside]
                below = float((ratio < 1.0 - 1e-6).double().mean())
                row += [f"{float(ratio.min()):.3f}", f"{float(ratio.median()):.2f}", f"{100.0 * below:.0f} %"]
            miss = f[inside] - mean
            row += [f"{float((miss.square() / variance).mean()):.2f}", f"{float(miss.square().mean().sqrt()):.3f}"]
        rows.append(row)
    return rows


def _dimensions(case: Case, n: int, max_inducing: int) -> list[object]:
    X = _points(case, n, 0, None)
    bkb, exact = bo.BKB(case.kernel, case.noise, max_inducing=max_inducing), bo.ExactGP(case.kernel, case.noise)
    for surrogate in (bkb, exact):
        surrogate.observe(X, torch.zeros(n))
    sizes = (exact.effective_dimension(), bkb.effective_dimension(), bkb.leverage_sum())
    return [case.name, len(bkb.inducing), *(f"{size:.1f}" for size in sizes)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print both tables."""
    parser = Arguments(__doc__)
    parser.option("--points", 1_000, quick=300, help="points that are learnt, and as many to predict")
    parser.option("--seeds", 3, quick=1, help="functions of each case")
    options = parser.parse_args(arguments)
    n, seeds = options.points, options.seeds
    with measuring(1):
        rows = [row for case in CASES for m in BUDGETS if m < n for row in _rows(case, n, m, seeds)]
        header = ["case", "budget", "where", "points"]
        for method in ("DTC", "FITC"):
            header += [f"{method} / exact: min", "median", "below", "z^2", "rmse"]
        print_table("Variance / exact variance, and its calibration", [*header, "exact: z^2", "rmse"], rows)
        dimensions = [_dimensions(case, n, m) for case in CASES for m in (3, *BUDGETS)]
        print_table(
            "Effective dimension", ["case", "inducing", "d_eff", "effective_dimension", "leverage_sum"], dimensions
        )


if __name__ == "__main__":
    main()
