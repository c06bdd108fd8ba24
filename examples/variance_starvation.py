"""Variance starvation of approximate posteriors, after Figure 1 of Calandriello et al. (2019).

Functions on [0, 1] are drawn from a Gaussian process and observed, with noise, on [0, 0.5] only. A calibrated posterior
is as wide as the prior on [0.8, 1]. The table gives, averaged over the draws, the posterior standard deviation there
and the part of [0, 1] where the function lies within three standard deviations of the mean.

    python examples/variance_starvation.py [--trials 20] [--seed 0] [--out out] [--smoke]
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

import bkbopt as bo
from bkbopt import plots

# exp(-100 r^2), prior variance 1: the paper's "bandwidth", read as lengthscale 1 / sqrt(200).
KERNEL = bo.kernels.rbf(1, lengthscale=200.0**-0.5)
NOISE_SD = 0.1
BUDGET = 20
GRID = np.linspace(0.0, 1.0, 201)
FAR = GRID >= 0.8
SIZES = (6, 63, 215)

#: Name -> surrogate made with a seed, all with the same kernel and noise.
METHODS: dict[str, Callable[[int], bo.ExactGP | bo.BKB | bo.FourierGP]] = {
    "exact GP": lambda _: bo.ExactGP(KERNEL, NOISE_SD**2),
    "BKB (DTC)": lambda seed: bo.BKB(KERNEL, NOISE_SD**2, resample="every", seed=seed),
    "BKB's points, SoR": lambda seed: bo.BKB(KERNEL, NOISE_SD**2, resample="every", variance="sor", seed=seed),
    "uniform points, DTC": lambda seed: bo.BKB(
        KERNEL, NOISE_SD**2, dictionary="uniform", max_inducing=BUDGET, seed=seed
    ),
    "uniform points, SoR": lambda seed: bo.BKB(
        KERNEL, NOISE_SD**2, dictionary="uniform", max_inducing=BUDGET, variance="sor", seed=seed
    ),
    "Fourier features": lambda seed: bo.FourierGP(KERNEL, NOISE_SD**2, n_frequencies=BUDGET // 2, seed=seed),
}


def draw_function(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Values of one function of the prior at the points `x (n,)`."""
    K = KERNEL(torch.as_tensor(x[:, None]), torch.as_tensor(x[:, None])).numpy()
    eigenvalues, U = np.linalg.eigh(K)
    return U @ (np.sqrt(eigenvalues.clip(0.0)) * rng.standard_normal(len(x)))


@dataclass(frozen=True)
class Draw:
    """One function.

    Attributes:
        f: its values on the grid, (201,).
        x: where it was observed, (215,).
        y: what was observed, (215,).
        found: each method's mean and standard deviation on the grid, after each of `SIZES` observations.
    """

    f: np.ndarray
    x: np.ndarray
    y: np.ndarray
    found: dict[str, list[tuple[np.ndarray, np.ndarray]]]

    def spread(self, name: str, i: int) -> float:
        """Mean posterior standard deviation on [0.8, 1]."""
        return float(self.found[name][i][1][FAR].mean())

    def coverage(self, name: str, i: int) -> float:
        """Part of the grid where the function is within three standard deviations of the mean."""
        mean, sd = self.found[name][i]
        return float((np.abs(self.f - mean) <= 3.0 * sd).mean())


def observe(seed: int) -> Draw:
    """Draw a function, and condition every method on its observations."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 0.5, SIZES[-1])
    values = draw_function(rng, np.concatenate([GRID, x]))
    f, y = values[: len(GRID)], values[len(GRID) :] + NOISE_SD * rng.standard_normal(len(x))
    found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for name, make in METHODS.items():
        surrogate, start, found[name] = make(seed), 0, []
        for size in SIZES:
            surrogate.observe(x[start:size, None], y[start:size])
            start = size
            posterior = surrogate.posterior(GRID[:, None])
            found[name].append((posterior.mean.numpy(), posterior.stddev.numpy()))
    return Draw(f, x, y, found)


def report(draws: list[Draw]) -> None:
    """Print the table."""
    print(f"{len(draws)} draws; after t observations: mean sd on [0.8, 1] (prior 1), part of [0, 1] within 3 sd")
    print(f"{'':20}" + "".join(f"{f'sd t={t}':>10}" for t in SIZES) + "".join(f"{f'in t={t}':>10}" for t in SIZES))
    for name in METHODS:
        spread = [np.mean([d.spread(name, i) for d in draws]) for i in range(len(SIZES))]
        coverage = [np.mean([d.coverage(name, i) for d in draws]) for i in range(len(SIZES))]
        print(f"{name:20}" + "".join(f"{v:10.4f}" for v in spread) + "".join(f"{v:10.3f}" for v in coverage))


def draw(shown: Draw, path: Path) -> None:
    """One panel a method, after the last observation."""
    figure = Figure(figsize=(13, 6.6), layout="constrained")
    for ax, (name, make) in zip(figure.subplots(2, 3, sharey=True).flat, METHODS.items(), strict=True):
        opt = bo.Optimizer({"x": (0.0, 1.0)}, direction="maximize", seed=0, surrogate=make(0), fit=False)
        opt.tell([{"x": x} for x in shown.x], shown.y)
        plots.posterior_slice(opt, "x", ax=ax, at={}, width=3.0)
        ax.get_legend().remove()  # one for all
        ax.plot(GRID, shown.f, "k--", linewidth=1, label="function")
        ax.set(title=name, ylim=(-4.5, 4.5))
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description="Variance starvation of cheap posteriors, and who is free of it.")
    parser.add_argument("--trials", type=int, help="functions drawn (default 20)")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default 0)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture (default out)")
    parser.add_argument("--smoke", action="store_true", help="a run of seconds that shows only that it runs")
    args = parser.parse_args()
    draws = [observe(1000 * args.seed + i) for i in range(args.trials or (2 if args.smoke else 20))]
    report(draws)
    path = args.out / "variance_starvation.png"
    draw(draws[0], path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
