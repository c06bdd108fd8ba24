# %% [markdown]
# # A replacement for `SingleTaskGP` at thousands of observations
#
# BoTorch's `SingleTaskGP` is exact: each step of its fit costs the cube of the number of observations. `BKBModel` is a
# subclass of `SingleTaskGP` with the same arguments, transforms, likelihoods and acquisition functions; it replaces the
# algebra. This notebook uses it instead of the exact model at a few thousand observations, measures the loss of
# accuracy, and then uses its cheap fantasies for a step by knowledge gradient.

# %%
import os
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from botorch.acquisition import PosteriorMean, qKnowledgeGradient, qLogNoisyExpectedImprovement
from botorch.exceptions.warnings import BotorchWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.test_functions import Branin, Hartmann
from gpytorch.mlls import ExactMarginalLogLikelihood
from linear_operator.utils.warnings import NumericalWarning

from bkbopt.adapters.botorch import BKBModel
from bkbopt.plots.style import MAP, ORANGE, SERIES, log_ticks

SMOKE = os.environ.get("BKBOPT_SMOKE") == "1"  # a run of seconds, with fewer observations
warnings.simplefilter("ignore", BotorchWarning)
warnings.simplefilter("ignore", NumericalWarning)  # GPyTorch's, about jitter in the exact model
_ = torch.manual_seed(0)

# %% [markdown]
# ## One changed line
#
# The data are noisy values of Hartmann's function with six inputs, at random points.

# %%
FUNCTION, NOISE_SD, DIM = Hartmann(6, negate=True).to(torch.float64), 0.1, 6
N = 600 if SMOKE else 5000


def observations(n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, DIM, generator=generator, dtype=torch.float64)
    noise = NOISE_SD * torch.randn(n, generator=generator, dtype=torch.float64)
    return X, (FUNCTION(X) + noise)[:, None]


def fitted(model_class, X, Y):
    model = model_class(X, Y)  # SingleTaskGP before, BKBModel now
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model.eval()


X, Y = observations(N)
start = time.perf_counter()
model = fitted(BKBModel, X, Y)
with torch.no_grad():
    best = X[model.posterior(X).mean.argmax()]
print(f"fit and posterior at {N} observations: {time.perf_counter() - start:.1f} s")
print(
    f"{model.inducing_points.shape[-2]} inducing points; true value at the largest posterior mean: "
    f"{FUNCTION(best[None]).item():.2f}; maximum: {FUNCTION.optimal_value:.2f}"
)

# %% [markdown]
# ## The cost of a fit
#
# The figure shows the seconds of a fit and of a posterior at a hundred new points. The exact model is fitted at the
# smaller sizes only; the thin line extrapolates its time by the cube.

# %%
SIZES = (100, 200, 400) if SMOKE else (250, 500, 1000, 2000, 5000)
PATIENCE = 1000
new = torch.rand(100, DIM, dtype=torch.float64)


def seconds(model_class, n):
    X, Y = observations(n)
    start = time.perf_counter()
    model = fitted(model_class, X, Y)
    with torch.no_grad():
        posterior = model.posterior(new)
        posterior.mean, posterior.variance
    return time.perf_counter() - start


spent = {
    "BKBModel": {n: seconds(BKBModel, n) for n in SIZES},
    "SingleTaskGP": {n: seconds(SingleTaskGP, n) for n in SIZES if n <= PATIENCE},
}
last = max(spent["SingleTaskGP"])
estimate = {n: spent["SingleTaskGP"][last] * (n / last) ** 3 for n in SIZES if n >= last}
fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
for (name, times), series in zip(spent.items(), SERIES, strict=False):
    ax.plot(list(times), list(times.values()), series.line, marker=series.marker, color=series.colour, label=name)
ax.plot(list(estimate), list(estimate.values()), ":", color=SERIES[1].colour, label="SingleTaskGP, extrapolated")
ax.set(xscale="log", yscale="log", xlabel="observations", ylabel="fit and posterior (s)")
ax.set_xticks(SIZES, [str(n) for n in SIZES])
ax.xaxis.minorticks_off()
log_ticks(ax.yaxis)
ax.grid(alpha=0.3)
_ = ax.legend(frameon=False)

# %% [markdown]
# ## The loss of accuracy
#
# The exact model can be *evaluated* once at all observations if it need not be fitted: it takes the hyper-parameters
# that `BKBModel` has found. Then the two models differ by the approximation only.

# %%
exact = SingleTaskGP(X, Y).eval()
exact.load_state_dict(model.state_dict(), strict=False)
test = torch.rand(1000, DIM, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
truth = FUNCTION(test)
rows = {}
with torch.no_grad():
    for name, candidate in (("SingleTaskGP, exact", exact), ("BKBModel", model)):
        start = time.perf_counter()
        posterior = candidate.posterior(test[:, None])
        mean, sd = posterior.mean.flatten(), posterior.variance.sqrt().flatten()
        error = mean - truth
        rows[name] = {
            "error of the mean": error.square().mean().sqrt().item(),
            "median sd": sd.median().item(),
            "truth within 2 sd (%)": 100 * (error.abs() <= 2 * sd).double().mean().item(),
            "log density of the truth": torch.distributions.Normal(mean, sd).log_prob(truth).mean().item(),
        }
        rows[name]["sd"] = sd
ratio = rows["BKBModel"].pop("sd") / rows["SingleTaskGP, exact"].pop("sd")
accuracy = pd.DataFrame(rows).T
print(f"sd / exact sd: smallest {ratio.min():.2f}, median {ratio.median():.2f}, largest {ratio.max():.2f}")
accuracy.round(3)

# %% [markdown]
# With noise as small as here, six inputs require more inducing points than `max_inducing` allows. The error of the mean
# is a little larger and the standard deviation is larger, because the variance that the inducing points do not explain
# stays in the posterior. A larger `max_inducing` brings both nearer to the exact ones, at the cost of time.
#
# Acquisition functions work without changes:

# %%
bounds = torch.tensor([[0.0] * DIM, [1.0] * DIM], dtype=torch.float64)
with torch.no_grad():
    baseline = X[model.posterior(X).mean[:, 0].topk(100).indices]  # candidates for the best point so far
start = time.perf_counter()
acquisition = qLogNoisyExpectedImprovement(model, X_baseline=baseline, prune_baseline=True)
point, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=2 if SMOKE else 4, raw_samples=32 if SMOKE else 128)
print(
    f"qLogNoisyExpectedImprovement took {time.perf_counter() - start:.1f} s; true value of its proposal: "
    f"{FUNCTION(point).item():.2f}; median over the observed points: {FUNCTION(X).median():.2f}"
)

# %% [markdown]
# ## Fantasies
#
# A plant has run for a long time near its usual settings. There are thousands of noisy records (of Branin's function
# with a minus sign, on the unit square), all from one corner of the possible settings. Where should the next
# experiments be?
#
# A *fantasy* is the model conditioned on a value that has not been measured: `fantasize` samples such values from the
# posterior, and conditions on each. For `BKBModel` this is a rank-one update in closed form, whatever the number of
# past observations.

# %%
branin, PLANT_NOISE = Branin(negate=True).to(torch.float64), 5.0
N_PLANT = 600 if SMOKE else 5000
SIDE = 11 if SMOKE else 17
GRID = torch.cartesian_prod(*[torch.linspace(0, 1, SIDE, dtype=torch.float64)] * 2)


def plant(U):
    """Yield without noise; the best is -0.40, at three places."""
    return branin(U * 15 + torch.tensor([-5.0, 0.0], dtype=torch.float64))


def history(seed):
    generator = torch.Generator().manual_seed(seed)
    spread = 0.08 * torch.randn(N_PLANT, 2, generator=generator, dtype=torch.float64)
    U = (torch.tensor([0.4, 0.6], dtype=torch.float64) + spread).clamp(0, 1)
    return U, (plant(U) + PLANT_NOISE * torch.randn(len(U), generator=generator, dtype=torch.float64))[:, None]


U, yields = history(0)
plant_model = fitted(BKBModel, U, yields)
start = time.perf_counter()
with torch.no_grad():
    fantasies = plant_model.fantasize(GRID[:, None], SobolQMCNormalSampler(torch.Size([256]), seed=0))
print(f"{fantasies.batch_shape.numel()} models of {N_PLANT + 1} observations in {time.perf_counter() - start:.2f} s")
with torch.no_grad():
    now = plant_model.posterior(GRID[:, None])
    # Each fantasy at its own point: the average mean equals the model's mean, and the variance is smaller.
    then = fantasies.posterior(GRID[:, None])
    drift = (then.mean.mean(0) - now.mean).abs().max() / now.variance.sqrt().max()
    shrunk = (then.variance[0] < now.variance).all()
print(f"average mean: differs by at most {drift:.1e} of the largest sd; all variances smaller: {bool(shrunk)}")

# %% [markdown]
# ## A step by knowledge gradient
#
# Which measurement raises the best posterior mean most, in expectation over its result? The knowledge gradient averages
# the best means of the fantasies and subtracts the current best mean; here it is computed on a grid. It is zero where a
# measurement would change nothing, and also where the change would not affect the best mean.


# %%
N_FANTASIES = 8
sampler = SobolQMCNormalSampler(torch.Size([N_FANTASIES]), seed=0)


def knowledge_gradient(model):
    """Expected rise of the best posterior mean on the grid by a measurement at each of its points."""
    with torch.no_grad():
        best = model.posterior(GRID[:, None]).mean.max()
        gains = []
        for points in GRID.split(32):  # in parts, since all at once take gigabytes
            fantasies = model.fantasize(points[:, None], sampler)
            means = fantasies.posterior(GRID[:, None, None, None]).mean.reshape(len(GRID), N_FANTASIES, len(points))
            gains.append(means.amax(0).mean(0) - best)
        return torch.cat(gains)


gain = knowledge_gradient(plant_model)
step = GRID[gain.argmax()]
answer = GRID[now.mean.flatten().argmax()]

fig, axes = plt.subplots(1, 3, figsize=(13, 4.2), sharey=True, layout="constrained")
panels = {
    "posterior mean": now.mean,
    "posterior sd": now.variance.sqrt(),
    "knowledge gradient": gain.clamp(min=0.0),
}
for ax, (name, values) in zip(axes, panels.items(), strict=True):
    drawn = ax.contourf(*[GRID.T.reshape(2, SIDE, SIDE)[i] for i in (0, 1)], values.reshape(SIDE, SIDE), 14, cmap=MAP)
    fig.colorbar(drawn, ax=ax, label=name, shrink=0.82)
    ax.plot(U[:300, 0], U[:300, 1], ".", color="white", markersize=2, label="300 of the records")
    ax.plot(*answer, "*", color=ORANGE, markeredgecolor="black", markersize=15, label="largest posterior mean")
    ax.plot(*step, "X", color="white", markeredgecolor="black", markersize=11, label="largest knowledge gradient")
    ax.set(xlabel="first setting", xlim=(0, 1), ylim=(0, 1), aspect="equal")
axes[0].set_ylabel("second setting")
legend = fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
legend.get_frame().set(facecolor="#cccccc", alpha=1.0)
legend.set_frame_on(True)
print(f"knowledge gradient: {gain.max():.2f} at the best point, {gain.median():.4f} at the median point")

# %% [markdown]
# The uncertainty is largest in the corners. The knowledge gradient is largest elsewhere: where the surface may be
# higher than at any known point. The next cell compares a few such steps with as many random ones;
# `condition_on_observations` adds each value without a new fit.

# %%
STEPS, SEEDS = (2, 1) if SMOKE else (8, 6)


def experiments(seed, by_knowledge):
    """True yield of the best point by the mean, before the first step and after each."""
    generator = torch.Generator().manual_seed(100 + seed)
    model, worth = fitted(BKBModel, *history(seed)), []
    for t in range(STEPS + 1):
        with torch.no_grad():
            worth.append(plant(GRID[model.posterior(GRID[:, None]).mean.argmax()][None]).item())
        if t < STEPS:
            pick = (
                knowledge_gradient(model).argmax()
                if by_knowledge
                else torch.randint(len(GRID), (), generator=generator)
            )
            u = GRID[pick][None]
            value = plant(u) + PLANT_NOISE * torch.randn(1, generator=generator, dtype=torch.float64)
            model = model.condition_on_observations(u, value[:, None])
    return worth


worths = {
    name: np.array([experiments(seed, name == "knowledge gradient") for seed in range(SEEDS)])
    for name in ("knowledge gradient", "random points")
}
best_on_grid = plant(GRID).max().item()
fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for (name, rows), series in zip(worths.items(), SERIES, strict=False):
    ax.plot(best_on_grid - rows.mean(0), series.line, marker=series.marker, color=series.colour, label=name)
ax.set(
    xlabel=f"experiments after {N_PLANT} records",
    ylabel="regret of the largest posterior mean\n(units of the yield)",
    ylim=(0, None),
)
ax.grid(alpha=0.3)
_ = ax.legend(frameon=False, title=f"mean of {SEEDS} histories" if SEEDS > 1 else None)

# %% [markdown]
# BoTorch's own `qKnowledgeGradient` accepts the model too. It uses fantasies in the same way, but maximises the means
# between the grid points as well, so that the gain is smaller. The next cell evaluates it at the chosen point and at a
# point of median gain.

# %%
square = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
_, today = optimize_acqf(PosteriorMean(plant_model), square, q=1, num_restarts=8, raw_samples=128)
own = qKnowledgeGradient(plant_model, num_fantasies=16, current_value=today)
median = GRID[gain.argsort()[len(gain) // 2]]
with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # BoTorch takes the deviation of a single number
    values = [own.evaluate(u[None, None], bounds=square, num_restarts=4, raw_samples=64).item() for u in (step, median)]
print(f"qKnowledgeGradient at the chosen point {values[0]:.2f}, at a median point {values[1]:.2f}")

# %% [markdown]
# ## Checks

# %%
assert isinstance(model, SingleTaskGP)
assert accuracy.loc["BKBModel", "error of the mean"] < 1.4 * accuracy.loc["SingleTaskGP, exact", "error of the mean"]
assert accuracy.loc["BKBModel", "truth within 2 sd (%)"] > 90
assert ratio.min() > 0.8  # not overconfident anywhere
assert FUNCTION(point).item() > FUNCTION(X).median() + 1.0
assert drift < 0.005  # the fantasised values average to nearly nothing
assert shrunk
assert gain.min() > -0.05 * gain.max()  # never negative, up to the error of few samples
assert gain.max() > 20 * gain.median()
assert values[0] > 5 * max(values[1], 0.005)  # BoTorch also ranks the chosen point above the median one
if not SMOKE:
    late = {name: best_on_grid - rows[:, STEPS // 2 :].mean() for name, rows in worths.items()}
    assert late["knowledge gradient"] < 0.75 * late["random points"]
    assert spent["BKBModel"][SIZES[-1]] < estimate[SIZES[-1]] / 10
