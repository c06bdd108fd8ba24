"""A closed loop in BoTorch on thousands of past observations: the usual loop with another model class.

The past observations are noisy values of Hartmann's six-dimensional function at random points. In every round a model
is fitted to all data, qLogNoisyExpectedImprovement proposes a batch of four points, and these are evaluated.
`SingleTaskGP` would need minutes a round here. The answer is the evaluated point with the best posterior mean; the loop
uses noisy values only, and the report has the values without noise.

    python examples/botorch_model.py [--past 2000] [--rounds 5] [--seed 0] [--out out] [--smoke]
"""

import argparse
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from botorch.acquisition import qLogNoisyExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models.gpytorch import GPyTorchModel
from botorch.optim import optimize_acqf
from botorch.test_functions import Hartmann
from gpytorch.mlls import ExactMarginalLogLikelihood
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor
from tqdm import tqdm

from bkbopt.adapters.botorch import BKBModel
from bkbopt.plots.style import legend_below

DIM, NOISE_SD, BATCH = 6, 0.1, 4
BOUNDS = torch.tensor([[0.0] * DIM, [1.0] * DIM], dtype=torch.float64)
FUNCTION = Hartmann(DIM, negate=True).to(torch.float64)
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"


def observe(X: Tensor, generator: torch.Generator) -> Tensor:
    """Noisy values (n, 1) at the points X (n, 6)."""
    return (FUNCTION(X) + NOISE_SD * torch.randn(len(X), generator=generator, dtype=X.dtype))[:, None]


def fitted(X: Tensor, Y: Tensor) -> GPyTorchModel:
    model = BKBModel(X, Y)  # SingleTaskGP(X, Y) before: the one line that differs
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def propose(model: GPyTorchModel, X: Tensor, restarts: int, raw_samples: int) -> Tensor:
    """The next batch (4, 6)."""
    acquisition = qLogNoisyExpectedImprovement(model, X_baseline=X, prune_baseline=True)
    batch, _ = optimize_acqf(acquisition, BOUNDS, q=BATCH, num_restarts=restarts, raw_samples=raw_samples)
    return batch


def answer(model: GPyTorchModel, X: Tensor) -> Tensor:
    """The evaluated point (1, 6) with the best posterior mean."""
    with torch.no_grad():
        return X[model.posterior(X).mean.argmax()][None]


@dataclass
class Loop:
    """Record of a run: the data, the last model, true values of batches and answers, and seconds."""

    X: Tensor
    Y: Tensor
    model: GPyTorchModel
    n_past: int
    batches: list[Tensor] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def run(n_past: int, n_rounds: int, seed: int, restarts: int, raw_samples: int) -> Loop:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n_past, DIM, generator=generator, dtype=torch.float64)
    Y = observe(X, generator)
    start = time.perf_counter()
    loop = Loop(X, Y, fitted(X, Y), n_past)
    loop.answers.append(float(FUNCTION(answer(loop.model, X))))
    for _ in tqdm(range(n_rounds), desc="rounds"):
        batch = propose(loop.model, loop.X, restarts, raw_samples)
        loop.X = torch.cat([loop.X, batch])
        loop.Y = torch.cat([loop.Y, observe(batch, generator)])
        loop.model = fitted(loop.X, loop.Y)
        loop.batches.append(FUNCTION(batch))
        loop.answers.append(float(FUNCTION(answer(loop.model, loop.X))))
        loop.seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
    return loop


def report(loop: Loop, Z: Tensor) -> None:
    """Print the rounds, and how often the truth lies within two posterior deviations at fresh points Z."""
    past = FUNCTION(loop.X[: loop.n_past])
    print(f"{loop.n_past:,} past observations, noise sd {NOISE_SD}; the best value is {FUNCTION.optimal_value:.3f}")
    print(f"  best of the past, without noise  {past.max():.3f}")
    print(f"  the model's answer from the past {loop.answers[0]:.3f}")
    print("  per round: values without noise of the four proposed points, and of the model's answer; seconds")
    for i, (batch, value, seconds) in enumerate(zip(loop.batches, loop.answers[1:], loop.seconds, strict=True), 1):
        values = " ".join(f"{v:.3f}" for v in batch)
        print(f"  round {i}: batch {values}; answer {value:.3f}; {seconds:.1f} s")
    posterior = loop.model.posterior(Z)
    inside = (FUNCTION(Z) - posterior.mean[:, 0]).abs() <= 2.0 * posterior.variance[:, 0].sqrt()
    print(f"  {loop.model.inducing_points.shape[-2]} inducing points for {len(loop.X):,} observations")
    print(f"  truth within 2 sd at {len(Z)} random points: {100.0 * inside.double().mean():.1f} %")


def draw_rounds(ax: Axes, loop: Loop) -> None:
    """True values of the batches, and of the answer after each round."""
    past = FUNCTION(loop.X[: loop.n_past])
    rounds = np.arange(len(loop.answers))
    ax.axhline(FUNCTION.optimal_value, color="black", linewidth=1, linestyle="--", label="best value of the function")
    ax.axhline(float(past.max()), color=GREY, linewidth=1, label=f"best of the {loop.n_past:,} past points")
    for i, batch in enumerate(loop.batches, 1):
        ax.plot([i] * len(batch), batch, ".", color=BLUE, markersize=8, label="proposed" if i == 1 else None)
    ax.plot(rounds, loop.answers, color=ORANGE, marker="o", markersize=4, label="answer (best posterior mean)")
    ax.set(xlabel="round", ylabel="value without noise", title="What was proposed, and the answer", xticks=rounds)
    legend_below(ax)


def draw_predictions(ax: Axes, loop: Loop, Z: Tensor) -> None:
    """Prediction against truth at fresh points, with two posterior deviations."""
    with torch.no_grad():
        posterior = loop.model.posterior(Z)
        mean, sd, truth = posterior.mean[:, 0], posterior.variance[:, 0].sqrt(), FUNCTION(Z)
    ax.errorbar(truth, mean, 2.0 * sd, fmt=".", color=BLUE, ecolor=BLUE, alpha=0.5, linewidth=0.8)
    ends = [float(truth.min()), float(truth.max())]
    ax.plot(ends, ends, color="black", linewidth=1)
    ax.set(xlabel="value without noise", ylabel="posterior mean", title="Predictions at random points (2 sd)")


def draw(loop: Loop, Z: Tensor, path: Path) -> None:
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    first, second = figure.subplots(1, 2)
    draw_rounds(first, loop)
    draw_predictions(second, loop, Z[:150])
    for ax in (first, second):
        ax.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description="BoTorch's loop on thousands of past observations.")
    parser.add_argument("--past", type=int, help="past observations (default 2000)")
    parser.add_argument("--rounds", type=int, help="rounds of four evaluations (default 5)")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default 0)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture (default out)")
    parser.add_argument("--smoke", action="store_true", help="a run of seconds that shows only that it runs")
    args = parser.parse_args()
    n_past, n_rounds = args.past or (60 if args.smoke else 2000), args.rounds or (2 if args.smoke else 5)
    loop = run(n_past, n_rounds, args.seed, *((2, 16) if args.smoke else (6, 128)))
    Z = torch.rand(1_000, DIM, generator=torch.Generator().manual_seed(args.seed + 1), dtype=torch.float64)
    report(loop, Z)
    path = args.out / "botorch_model.png"
    draw(loop, Z, path)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
