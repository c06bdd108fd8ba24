# %% [markdown]
# # Variance starvation
#
# A Gaussian process (GP) quantifies its uncertainty. Far from all data its band is as wide as the prior's, and a search
# explores where the band is wide. The exact GP becomes too slow after some thousand observations. Most
# approximations describe functions by a few features, and with some of them the band becomes narrow where nothing was
# ever observed. This is *variance starvation*; it makes a search stop exploring.
#
# This notebook draws Figure 1 of the paper on BKB (Calandriello et al. 2019), compares other posteriors with it,
# measures which of them are overconfident and where, and then runs a search with each.

# %%
import os
import warnings
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from botorch.models import SingleTaskVariationalGP
from botorch.optim.fit import fit_gpytorch_mll_scipy
from gpytorch.kernels import RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean
from gpytorch.mlls import VariationalELBO

import bkbopt as bo
from bkbopt import plots
from bkbopt.plots.style import BLUE, ORANGE, SERIES

SMOKE = os.environ.get("BKBOPT_SMOKE") == "1"  # a run of seconds, with fewer repetitions
N_DRAWS, N_SEARCHES = (2, 3) if SMOKE else (12, 24)

# %% [markdown]
# ## One formula
#
# All posteriors below have the same form. A point $x$ has features $z(x)$, and linear regression learns the functions
# in their span. The features explain a part of the prior variance; the rest is the residual:
#
# $$\operatorname{variance}(x) = \underbrace{k(x,x) - \|z(x)\|^2}_{\text{residual: not explained by the features}}
# + \underbrace{\lambda\, z(x)^\top V^{-1} z(x)}_{\text{not yet determined by the data}}$$
#
# Features made from inducing points vanish far away from these points. There the second term is zero because the
# features vanish, *not* because of the data. With the residual the variance is again that of the prior; without it, the
# variance is zero.
#
# ## The experiment
#
# Functions are drawn from a Gaussian process on [0, 1] and observed, with noise, on the left half only. Kernel and
# numbers of observations are the paper's. The paper does not state the noise; we use a tenth of the prior's standard
# deviation. Every method is given the kernel and the noise, so that no error comes from a bad fit.

# %%
KERNEL = bo.kernels.rbf(1, lengthscale=200**-0.5)  # exp(-100 r^2), with prior variance 1
NOISE_SD = 0.1
SIZES = (6, 63, 215)
GRID = np.linspace(0.0, 1.0, 201)
SEEN, FAR = GRID <= 0.5, GRID >= 0.8


def draw_function(rng, x):
    """Values of one function of the prior at the points x."""
    T = torch.as_tensor(x[:, None])
    eigenvalues, U = np.linalg.eigh(KERNEL(T, T).numpy())
    return U @ (np.sqrt(eigenvalues.clip(0.0)) * rng.standard_normal(len(x)))


@dataclass
class Data:
    """A function on the grid, the points at which it was observed, and the observed values."""

    f: np.ndarray
    x: np.ndarray
    y: np.ndarray


def draw_data(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 0.5, max(SIZES))
    values = draw_function(rng, np.concatenate([GRID, x]))
    return Data(values[: len(GRID)], x, values[len(GRID) :] + NOISE_SD * rng.standard_normal(len(x)))


draws = [draw_data(seed) for seed in range(N_DRAWS)]

# %% [markdown]
# ## Figure 1
#
# The panels show BKB after each of the three numbers of observations, with a new set of inducing points at every
# observation as in the paper's Algorithm 1. An optimizer without fits wraps the surrogate, so that
# `plots.posterior_slice` can draw it. The dotted lines are the band of the exact GP.

# %%
shown = draws[0]
fig, axes = plt.subplots(1, 3, figsize=(13, 4.3), sharey=True, layout="constrained")
for ax, t in zip(axes, SIZES, strict=True):
    bkb = bo.BKB(KERNEL, NOISE_SD**2, resample="every")
    opt = bo.Optimizer({"x": (0.0, 1.0)}, direction="maximize", surrogate=bkb, fit=False, seed=0)
    opt.tell([{"x": v} for v in shown.x[:t]], shown.y[:t])
    plots.posterior_slice(opt, "x", ax=ax, at={}, width=3.0)
    exact = bo.ExactGP(KERNEL, NOISE_SD**2)
    exact.observe(shown.x[:t, None], shown.y[:t])
    p = exact.posterior(GRID[:, None])
    for sign in (-3.0, 3.0):
        ax.plot(GRID, p.mean + sign * p.stddev, ":", color="black", linewidth=1)
    ax.plot(GRID, shown.f, "--", color="black", linewidth=1.2)
    ax.set(title=f"{t} observations, {len(opt.surrogate.inducing)} inducing points", ylim=(-4.5, 4.5))
    ax.set_ylabel("value" if ax is axes[0] else "")
    ax.get_legend().remove()
ax.plot([], [], "--", color="black", linewidth=1.2, label="the function")
ax.plot([], [], ":", color="black", linewidth=1, label="band of the exact GP")
_ = fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)

# %% [markdown]
# Where nothing was observed the band has the width of the prior, at any number of observations. Where there are data
# its width follows that of the exact GP, and the number of inducing points stops growing: it depends on the
# complexity of the function on the observed half, not on the number of observations.
#
# ## Eight posteriors on the same data
#
# | name | features | residual kept |
# | --- | --- | --- |
# | exact GP | all observations | there is none |
# | BKB | inducing points sampled by leverage | yes |
# | BKB's points, SoR | the same | no: the *subset of regressors* |
# | uniform points | a fixed number of observations, drawn uniformly | yes |
# | uniform points, SoR | the same | no |
# | Fourier, few | random cosines, as many features as there are uniform points | there is none |
# | Fourier, many | ten times as many | there is none |
# | variational | inducing points by BoTorch's greedy rule, the rest by gradients on the evidence bound | yes |
#
# Random cosines do not vanish anywhere, and their prior variance is the kernel's. But a few of them span a much smaller
# set of functions than the kernel does, and the data soon determine a function within *this* set.

# %%
BUDGET = 20


def uniform(seed, budget=BUDGET, **options):
    return bo.BKB(KERNEL, NOISE_SD**2, dictionary="uniform", max_inducing=budget, seed=seed, **options)


#: Name -> surrogate for a seed; they share kernel and noise.
METHODS = {
    "exact GP": lambda _: bo.ExactGP(KERNEL, NOISE_SD**2),
    "BKB": lambda seed: bo.BKB(KERNEL, NOISE_SD**2, resample="every", seed=seed),
    "BKB's points, SoR": lambda seed: bo.BKB(KERNEL, NOISE_SD**2, resample="every", variance="sor", seed=seed),
    "uniform points": uniform,
    "uniform points, SoR": lambda seed: uniform(seed, variance="sor"),
    "Fourier, few": lambda seed: bo.FourierGP(KERNEL, NOISE_SD**2, n_frequencies=BUDGET // 2, seed=seed),
    "Fourier, many": lambda seed: bo.FourierGP(KERNEL, NOISE_SD**2, n_frequencies=10 * BUDGET // 2, seed=seed),
}


def posteriors(surrogate, data):
    """Mean and standard deviation on the grid after each number of observations, each (sizes, grid)."""
    start, found = 0, []
    for t in SIZES:
        surrogate.observe(data.x[start:t, None], data.y[start:t])
        start = t
        p = surrogate.posterior(GRID[:, None])
        found.append((p.mean.numpy(), p.stddev.numpy()))
    return tuple(np.stack(part) for part in zip(*found, strict=True))


def variational(data):
    """The same of a variational Gaussian process, fitted anew at each number of observations."""
    found = []
    for t in SIZES:
        kernel, likelihood = RBFKernel().double(), GaussianLikelihood().double()
        kernel.lengthscale, likelihood.noise = 200**-0.5, NOISE_SD**2
        kernel.raw_lengthscale.requires_grad_(False)
        likelihood.raw_noise.requires_grad_(False)
        model = SingleTaskVariationalGP(
            torch.as_tensor(data.x[:t, None]),
            torch.as_tensor(data.y[:t, None]),
            likelihood=likelihood,
            covar_module=kernel,
            mean_module=ZeroMean(),
            inducing_points=min(BUDGET, t),
            learn_inducing_points=False,
        )
        bound = VariationalELBO(likelihood, model.model, num_data=t)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the warning that the limit of iterations was reached
            fit_gpytorch_mll_scipy(bound, options={"maxiter": 100})
        with torch.no_grad():
            p = model.eval().posterior(torch.as_tensor(GRID[:, None]))
        found.append((p.mean[:, 0].numpy(), p.variance[:, 0].sqrt().numpy()))
    return tuple(np.stack(part) for part in zip(*found, strict=True))


#: Name -> means and standard deviations, each (draws, sizes, grid).
found = {
    name: [np.stack(part) for part in zip(*[posteriors(make(i), data) for i, data in enumerate(draws)], strict=True)]
    for name, make in METHODS.items()
}
found["variational"] = [np.stack(part) for part in zip(*map(variational, draws), strict=True)]

# %%
fig, axes = plt.subplots(2, 4, figsize=(13, 6.2), sharex=True, sharey=True, layout="constrained")
for ax, (name, (means, sds)) in zip(axes.flat, found.items(), strict=True):
    mean, sd = means[0, -1], sds[0, -1]
    ax.axvspan(0.0, 0.5, color="#f0f0f0")
    ax.fill_between(GRID, mean - 3 * sd, mean + 3 * sd, color=BLUE, alpha=0.3, linewidth=0, label="mean $\\pm$ 3 sd")
    ax.plot(GRID, mean, color=BLUE, label="posterior mean")
    ax.plot(GRID, shown.f, "--", color="black", linewidth=1.2, label="the function")
    ax.plot(shown.x, shown.y, ".", color=ORANGE, markersize=2, label="observations (shaded half)")
    ax.set(title=name, xlim=(0.0, 1.0), ylim=(-4.5, 4.5))
    ax.set_xticks([0.0, 0.5, 1.0], ["0", "0.5", "1"])
for ax in axes[-1]:
    ax.set_xlabel("x")
for ax in axes[:, 0]:
    ax.set_ylabel("value")
fig.suptitle(f"After {SIZES[-1]} observations")
_ = fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)

# %% [markdown]
# With SoR the band becomes narrow a little way from the last observation, and the function leaves it. The band of few
# Fourier features stays wide on the right and is wrong all the same: the posterior mean is a combination of few
# cosines, and the function is not. Uniform points sometimes leave a part of the *observed* half without a point; the
# residual widens the band there. Such a band slows a search down, but is not wrong.
#
# ## Which posteriors are overconfident, and where
#
# The table averages over all functions drawn. It shows the width of the band far to the right, where the exact one has
# the width of the prior, 1; the fraction of the grid on which the band contains the function, in each half; and the
# width relative to the exact one, point by point.

# %%
truth = np.stack([data.f for data in draws])
exact_sd = found["exact GP"][1][:, -1]


def inside(name, t, where):
    """Fraction of the grid points `where` at which the function lies within three deviations, after SIZES[t] values."""
    mean, sd = found[name]
    return (np.abs(truth - mean[:, t]) <= 3 * sd[:, t])[:, where].mean()


sizes = list(enumerate(SIZES))
measured = pd.DataFrame(
    {
        **{("sd on [0.8, 1]", t): {name: found[name][1][:, i, FAR].mean() for name in found} for i, t in sizes},
        **{("coverage, observed half", t): {name: inside(name, i, SEEN) for name in found} for i, t in sizes},
        **{("coverage, other half", t): {name: inside(name, i, ~SEEN) for name in found} for i, t in sizes},
        ("sd / exact sd", "smallest"): {name: (found[name][1][:, -1] / exact_sd).min() for name in found},
        ("sd / exact sd", "largest"): {name: (found[name][1][:, -1] / exact_sd).max() for name in found},
    }
)
measured.round(2)

# %%
fig, axes = plt.subplots(1, 2, figsize=(12, 4.4), sharey=True, layout="constrained")
panels = {
    "with the residual": ("BKB", "uniform points", "variational"),
    "without the residual": ("BKB's points, SoR", "uniform points, SoR", "Fourier, few", "Fourier, many"),
}
for ax, (title, names) in zip(axes, panels.items(), strict=True):
    ax.axvspan(0.0, 0.5, color="#f0f0f0")
    ax.axhline(1.0, color="black", linewidth=0.8)
    for name, series in zip(names, SERIES, strict=False):
        ratio = np.exp(np.log(found[name][1][:, -1] / exact_sd).mean(axis=0))
        ax.plot(GRID, ratio, color=series.colour, linestyle=series.line, linewidth=2, label=name)
    ax.set(title=title, xlabel="x (observed where shaded)", yscale="log", ylim=(1e-4, 10.0), xlim=(0.0, 1.0))
    ax.grid(alpha=0.3)
    ax.legend(loc="lower left", frameon=False)
_ = axes[0].set_ylabel("sd / exact sd (geometric mean over functions)")

# %% [markdown]
# The table shows two kinds of errors:
#
# - **The band is narrow where nothing was observed** (both SoR rows, other half). More observations do not change this.
# - **The band is narrow around a wrong mean** (few Fourier features, both halves). More observations make it worse:
#   they determine the few coefficients whether or not these can express the function.
# - Posteriors with the residual keep the prior variance far from the data. Their bands are too wide where an inducing
#   point is missing, and hardly ever too narrow, as long as there are as many inducing points as the data require.
#
# The variational process is as well calibrated as BKB, for the same reason: the optimal variational posterior for given
# inducing points has the same formula (Titsias 2009). But each of its fits is an optimisation, where BKB makes a
# rank-one update, and its number of inducing points has to be chosen by hand.
#
# ## More Fourier features

# %%
counts = [10, 100] if SMOKE else [10, 30, 100, 300, 1000]
covered = {"observed half": [], "other half": []}
for count in counts:
    rows = []
    for i, data in enumerate(draws):
        surrogate = bo.FourierGP(KERNEL, NOISE_SD**2, n_frequencies=count // 2, seed=i)
        surrogate.observe(data.x[:, None], data.y)
        p = surrogate.posterior(GRID[:, None])
        rows.append(np.abs(data.f - p.mean.numpy()) <= 3 * p.stddev.numpy())
    covered["observed half"].append(np.stack(rows)[:, SEEN].mean())
    covered["other half"].append(np.stack(rows)[:, ~SEEN].mean())

fig, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
for (name, values), series in zip(covered.items(), SERIES, strict=False):
    ax.plot(counts, 100 * np.array(values), series.line, marker=series.marker, color=series.colour, label=name)
    bkb = 100 * inside("BKB", -1, SEEN if name == "observed half" else ~SEEN)
    ax.axhline(bkb, color=series.colour, linestyle=series.line, linewidth=0.8)
ax.set(xscale="log", xlabel="Fourier features", ylabel="function inside the band (%)", ylim=(0, 105))
ax.grid(alpha=0.3)
_ = ax.legend(frameon=False, loc="lower right", title="thin lines: BKB")

# %% [markdown]
# In one dimension more features solve the problem: with many times as many features as observations the errors are
# small relative to the band. But then the exact GP is cheaper, and the number of features required grows with the
# dimension and with the number of observations. BKB uses as many inducing points as the data require.
#
# ## The effect on a search
#
# A catalogue consists of families of products. Products within a family are similar; products of different families are
# independent. Half of the families were tried before, and their results are known. The other products are tried one by
# one, each time the one with the largest upper confidence bound, mean plus a few deviations (GP-UCB). Which methods try
# the new families?
#
# All methods receive the same functions and the same noise. BKB keeps its inducing points until they are too few, as it
# does by default. Uniform points get as many as BKB ends with, so that their number is not a disadvantage.

# %%
FAMILIES, IN_FAMILY, PAST, STEPS, WIDTH = 10, 21, 100, 40 if SMOKE else 150, 3.0
ARMS = np.concatenate([0.3 * i + np.linspace(0.0, 0.1, IN_FAMILY) for i in range(FAMILIES)])[:, None]
FAMILY = np.repeat(np.arange(FAMILIES), IN_FAMILY)
OLD = np.flatnonzero(FAMILY < FAMILIES // 2)
SEARCHERS = {
    "exact GP": METHODS["exact GP"],
    "BKB": lambda seed: bo.BKB(KERNEL, NOISE_SD**2, seed=seed),
    "BKB's points, SoR": lambda seed: bo.BKB(KERNEL, NOISE_SD**2, variance="sor", seed=seed),
    "uniform points": lambda seed: uniform(seed, budget=45),
    "Fourier, few": METHODS["Fourier, few"],
    "Fourier, many": METHODS["Fourier, many"],
}


@dataclass
class Search:
    """Regret of each step against the best product, the families tried, and the number of inducing points."""

    regrets: np.ndarray
    tried: set
    m: int


def search(surrogate, seed):
    rng = np.random.default_rng(seed)
    f = draw_function(rng, ARMS[:, 0])
    past = rng.choice(OLD, PAST)
    noise = NOISE_SD * rng.standard_normal(PAST + STEPS)
    surrogate.observe(ARMS[past], f[past] + noise[:PAST])
    chosen = []
    for t in range(STEPS):
        p = surrogate.posterior(ARMS)
        arm = int((p.mean + WIDTH * p.stddev).argmax())
        surrogate.observe(ARMS[[arm]], f[[arm]] + noise[PAST + t])
        chosen.append(arm)
    return Search(f.max() - f[chosen], set(FAMILY[chosen]), len(surrogate.inducing))


searches = {name: [search(make(seed), 1000 + seed) for seed in range(N_SEARCHES)] for name, make in SEARCHERS.items()}
new = set(FAMILY) - set(FAMILY[OLD])
late = {name: [s.regrets[-STEPS // 4 :].mean() for s in runs] for name, runs in searches.items()}
costs = pd.DataFrame(
    {
        name: {
            "runs": len(runs),
            "tried a new family": sum(bool(s.tried & new) for s in runs),
            "regret": np.mean([s.regrets.sum() for s in runs]),
            "two standard errors": 2 * np.std([s.regrets.sum() for s in runs], ddof=1) / len(runs) ** 0.5,
            "regret of a late step": np.mean(late[name]),
            "ended at a worse product": sum(regret > 2 * NOISE_SD for regret in late[name]),
            "inducing points": np.mean([s.m for s in runs]),
        }
        for name, runs in searches.items()
    }
).T
costs.round(2)

# %%
regrets = {name: [-s.regrets for s in runs] for name, runs in searches.items()}
fig, ax = plt.subplots(figsize=(8, 5.5), layout="constrained")
plots.regret(regrets, 0.0, ax=ax, kind="cumulative", direction="maximize", band="standard error", value_name="value")
_ = ax.set_xlabel("products tried")

# %% [markdown]
# The searches with variance starvation settle on the best product of the known families: their posteriors predict
# mediocre values for the new families, with small variance. Where the best product is in a new family, their regret
# grows linearly without end. Few Fourier features explore at random, since their error is random, and settle on a wrong
# product in a part of the runs.
#
# Uniform points with the residual explore. But the evaluations concentrate on good products, and so do uniformly drawn
# points; the information on the other families is lost and requires new evaluations. Leverage scores prefer informative
# points, and BKB's regret equals that of the exact GP within the errors.
#
# Two limits of this experiment: on a connected range starvation need not be fatal, because the band of SoR is wide
# close to the data and a search can advance in small steps. And many Fourier features do well here, in one dimension.
#
# ## Checks

# %%
T = len(SIZES)
for name in ("BKB", "uniform points", "variational"):
    assert all(found[name][1][:, t, FAR].mean() > 0.95 for t in range(T)), name  # as wide as the prior
for name in ("BKB's points, SoR", "uniform points, SoR"):
    assert all(found[name][1][:, t, FAR].mean() < 0.02 for t in range(T)), name  # closed
assert all(inside("BKB", t, where) > 0.97 for t in range(T) for where in (SEEN, ~SEEN))
assert all(inside("BKB's points, SoR", t, ~SEEN) < 0.6 for t in range(T))
assert inside("Fourier, few", -1, SEEN) < 0.85  # wrong in the observed half
ratio = found["BKB"][1][:, -1] / exact_sd
assert ratio.min() > 3**-0.5  # Theorem 1's constant for its accuracy 1/2
regret = costs["regret"]
assert regret["BKB"] < 1.3 * regret["exact GP"]
assert regret["BKB"] < 0.7 * regret["uniform points"]
tried = costs["tried a new family"]
assert tried["BKB"] > 2 * tried["BKB's points, SoR"]
assert costs.loc["BKB", "ended at a worse product"] == 0
if not SMOKE:  # the distance from the best product to the known ones is random, and averages out over many runs only
    assert regret["BKB"] < 0.6 * regret["BKB's points, SoR"]
    assert costs.loc["BKB's points, SoR", "ended at a worse product"] > N_SEARCHES / 4
