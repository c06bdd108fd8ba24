# %% [markdown]
# # How it scales: inducing points, time and memory
#
# An exact Gaussian process (GP) keeps every distinct point: after $t$ of them the time of a step and the memory are of
# the order $t^2$. BKB keeps $m$ inducing points, and a step takes time of the order $m^2$. The cost therefore depends
# on how $m$ grows. This notebook shows when $m$ is nearly constant, when it is not, and what the limit `max_inducing`
# does in that case.

# %%
import os
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

import bkbopt as bo
from bkbopt import plots
from bkbopt.plots.style import BLUE, GREY, SERIES, log_ticks

SMOKE = os.environ.get("BKBOPT_SMOKE") == "1"  # a run of seconds, with smaller sizes

# %% [markdown]
# ## The effective dimension
#
# An observation that the others already predict adds little information. Its *leverage* is the posterior variance at
# its point, once it is told, over the noise variance. It lies between 0 and 1, and is the weight of the observation in
# its own prediction. The sum of the leverages of all observations is the **effective dimension**: about this many
# numbers summarise the data. BKB samples inducing points by leverage, so that $m$ follows the effective dimension up to
# a factor.
#
# Below, values at random points are told to a BKB without a limit on $m$. The six cases differ in the kernel, the noise
# and the number of columns. (The values themselves do not matter here: leverages depend on the points only.)

# %%
CASES = {
    # name: columns, kernel (prior variance 1), noise variance, values
    "smooth, noisy, 2-D": (2, bo.kernels.rbf(2, lengthscale=0.5), 0.1, 10_000),
    "smooth, precise, 2-D": (2, bo.kernels.rbf(2, lengthscale=0.5), 1e-4, 10_000),
    "smooth, noisy, 6-D": (6, bo.kernels.rbf(6, lengthscale=1.0), 0.1, 10_000),
    "rough, noisy, 2-D": (2, bo.kernels.matern52(2, lengthscale=0.1), 0.1, 1000),
    "rough, noisy, 6-D": (6, bo.kernels.matern52(6, lengthscale=0.5), 0.1, 1000),
    "rough, precise, 2-D": (2, bo.kernels.matern52(2, lengthscale=0.1), 1e-4, 1000),
}
CHECKPOINTS = (10, 30, 100, 300) if SMOKE else (10, 30, 100, 300, 1000, 3000, 10_000)


def growth(dim, kernel, noise, most):
    """Values told, inducing points and effective dimension at the checkpoints up to `most`."""
    X = np.random.default_rng(0).random((most, dim))
    surrogate, told, rows = bo.BKB(kernel, noise, max_inducing=None, seed=0), 0, []
    for t in CHECKPOINTS:
        if t <= most:
            surrogate.observe(X[told:t], np.zeros(t - told))
            told = t
            rows.append((t, len(surrogate.inducing), surrogate.effective_dimension()))
    return np.array(rows)


grown = {name: growth(*case) for name, case in CASES.items()}
pd.DataFrame(
    {
        name: {
            "values told": rows[-1, 0],
            "inducing points": rows[-1, 1],
            "effective dimension": rows[-1, 2],
            "exponent of the growth of m in t": np.log(rows[-1, 1] / rows[-3, 1]) / np.log(rows[-1, 0] / rows[-3, 0]),
        }
        for name, rows in grown.items()
    }
).T.round(2)

# %%
fig, ax = plt.subplots(figsize=(8, 5), layout="constrained")
ax.plot([10, CHECKPOINTS[-1]], [10, CHECKPOINTS[-1]], color=GREY, linewidth=1)
ax.annotate("m = t", (CHECKPOINTS[-1], CHECKPOINTS[-1]), (-28, -2), textcoords="offset points", color=GREY, ha="right")
for (name, rows), series in zip(grown.items(), SERIES, strict=True):
    ax.plot(rows[:, 0], rows[:, 1], series.line, marker=series.marker, color=series.colour, label=name)
ax.set(xscale="log", yscale="log", xlabel="values told, t", ylabel="inducing points, m")
log_ticks(ax.xaxis)
log_ticks(ax.yaxis)
ax.grid(alpha=0.3)
_ = ax.legend(frameon=False)

# %% [markdown]
# With a smooth kernel and some noise the curves flatten: new values add less and less information. A rougher kernel, a
# shorter lengthscale, more relevant columns or less noise raise them. In the worst case each value is informative and
# $m$ is $t$. Then BKB saves nothing, and the exact GP is the right tool while $t$ is small.
#
# ## A search needs fewer inducing points than random sampling
#
# The points above were random. A search concentrates on good values, and so on a small part of the space. Here it
# chooses from a pool of random points, in the smooth and noisy case with more columns.

# %%
DIM, KERNEL, NOISE, _ = CASES["smooth, noisy, 6-D"]
STEPS = 150 if SMOKE else 1000
rng = np.random.default_rng(1)
POOL = rng.random((2000, DIM))
bumps = torch.as_tensor(rng.random((80, DIM)))
values = KERNEL(torch.as_tensor(POOL), bumps).numpy() @ rng.standard_normal(80)
values /= values.std()

opt = bo.Optimizer(POOL, direction="maximize", seed=0, surrogate=bo.BKB(KERNEL, NOISE), fit=False, beta=2.0)
for _ in range(STEPS):
    trial = opt.ask()
    opt.tell(trial, values[trial.index] + NOISE**0.5 * rng.standard_normal())
survey = bo.BKB(KERNEL, NOISE, seed=0)
survey.observe(POOL[rng.integers(0, len(POOL), STEPS)], np.zeros(STEPS))

fig, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
plots.complexity(opt, ax=left)
left.set_ylim(0, 1.1 * len(survey.inducing))
left.axhline(len(survey.inducing), color=GREY, linestyle=":")
left.annotate(
    "m for the same number of random points",
    (0, len(survey.inducing)),
    (4, -12),
    textcoords="offset points",
    color=GREY,
)
_ = plots.ask_time(opt, ax=right)
print(f"{len(survey.inducing)} inducing points for random points, {len(opt.surrogate.inducing)} for the search")
print(f"regret of the recommendation: {values.max() - values[opt.recommend().index]:.3f} standard deviations")

# %% [markdown]
# ## Time and memory of a step
#
# One step learns a value and computes the mean and variance at 500 candidates. All three surrogates receive random
# points, which is the worst case. With the rough kernel BKB reaches its limit: a draw of inducing points then fills
# four fifths of `max_inducing`, and the rest is for points that are added before the next draw. Memory is that of the
# surrogate's arrays.

# %%
SMOOTH, ROUGH = bo.kernels.rbf(4, lengthscale=0.7), bo.kernels.matern52(4, lengthscale=0.3)
CONTESTANTS = {
    "BKB, smooth and noisy": (lambda: bo.BKB(SMOOTH, 0.1, seed=0), 8000),
    "BKB, rough and precise (m at its limit)": (lambda: bo.BKB(ROUGH, 0.01, seed=0), 8000),
    "exact GP": (lambda: bo.ExactGP(ROUGH, 0.01), 2000),
}
SIZES = (100, 200, 400) if SMOKE else (125, 250, 500, 1000, 2000, 4000, 8000)
X = np.random.default_rng(2).random((SIZES[-1] + 100, 4))
CANDIDATES = np.random.default_rng(3).random((500, 4))


def bytes_of(surrogate):
    """Memory of its arrays at any depth, each counted once."""
    seen, parts, arrays = set(), [surrogate], {}
    while parts:
        part = parts.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, torch.Tensor):
            arrays[part.untyped_storage().data_ptr()] = part.untyped_storage().nbytes()
        elif isinstance(part, np.ndarray):
            arrays[part.ctypes.data] = part.nbytes
        elif isinstance(part, dict | list | tuple):
            parts += part.values() if isinstance(part, dict) else part
        elif type(part).__module__.startswith("bkbopt"):
            parts += vars(part).values()
    return sum(arrays.values())


def step_costs(surrogate, most, steps=15):
    """Seconds of the fastest step (load only adds to a time), megabytes and inducing points, for each size."""
    told, rows = 0, []
    for t in (t for t in SIZES if t <= most):
        surrogate.observe(X[told:t], np.zeros(t - told))
        seconds = []
        for i in range(t, t + steps):
            start = time.perf_counter()
            surrogate.observe(X[i : i + 1], [0.0])
            surrogate.posterior(CANDIDATES).variance  # and with it the mean
            seconds.append(time.perf_counter() - start)
        told = t + steps
        rows.append((t, min(seconds), bytes_of(surrogate) / 1e6, len(surrogate.inducing)))
    return np.array(rows)


costs = {name: step_costs(make(), most) for name, (make, most) in CONTESTANTS.items()}
pd.DataFrame(
    {
        name: {"values told": r[-1, 0], "inducing points": r[-1, 3], "ms a step": 1e3 * r[-1, 1], "MB": r[-1, 2]}
        for name, r in costs.items()
    }
).T.round(1)

# %%
fig, axes = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
for ax, column, scale, label in ((axes[0], 1, 1e3, "time of a step (ms)"), (axes[1], 2, 1.0, "arrays (MB)")):
    for (name, rows), series in zip(costs.items(), SERIES, strict=False):
        ax.plot(rows[:, 0], scale * rows[:, column], series.line, marker=series.marker, color=series.colour, label=name)
    ax.set(xscale="log", yscale="log", xlabel="values told, t", ylabel=label)
    ax.set_xticks(SIZES, [str(t) for t in SIZES])
    ax.xaxis.minorticks_off()
    log_ticks(ax.yaxis)
    ax.grid(alpha=0.3)
_ = fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)

# %% [markdown]
# Time and memory of the exact GP grow quadratically. BKB's memory grows linearly, since it keeps $m$ features for every
# distinct point; its time hardly grows once $m$ is constant. (Times depend on the machine and its load, memory does
# not.)
#
# ## What the limit costs
#
# Where the effective dimension is larger than `max_inducing`, BKB samples four fifths as many inducing points, and the
# features no longer explain the whole prior variance. The unexplained part is the residual: the error of the mean
# grows, and the band widens nearly everywhere. We compare with the exact GP, on a function drawn from the prior with
# the rough kernel.

# %%
N, BUDGETS = (300, (25, 75, 300)) if SMOKE else (1000, (25, 50, 100, 200, 400, 800))
rng = np.random.default_rng(4)
T = torch.as_tensor(np.vstack([X[:N], CANDIDATES]))
root = torch.linalg.cholesky(ROUGH(T, T) + 1e-10 * torch.eye(len(T), dtype=torch.float64)).numpy()
function = root @ rng.standard_normal(len(T))
told, truth = function[:N] + 0.1 * rng.standard_normal(N), function[N:]
exact = bo.ExactGP(ROUGH, 0.01)
exact.observe(X[:N], told)
reference = exact.posterior(CANDIDATES)

rows = []
for budget in BUDGETS:
    surrogate = bo.BKB(ROUGH, 0.01, max_inducing=budget, seed=0)
    surrogate.observe(X[:N], told)
    p = surrogate.posterior(CANDIDATES)
    ratio = (p.stddev / reference.stddev).numpy()
    error = np.abs(p.mean.numpy() - truth)
    rows.append(
        (
            len(surrogate.inducing),
            ratio.min(),
            np.median(ratio),
            ratio.max(),
            (error**2).mean() ** 0.5,
            (error <= 2 * p.stddev.numpy()).mean(),
        )
    )
budgets = pd.DataFrame(
    rows,
    index=pd.Index(BUDGETS, name="max_inducing"),
    columns=["m", "sd / exact sd: min", "median", "max", "error of the mean", "truth within 2 sd"],
)
budgets.round(2)

# %%
fig, ax = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
ax.fill_between(
    budgets["m"],
    budgets["sd / exact sd: min"],
    budgets["max"],
    color=BLUE,
    alpha=0.2,
    linewidth=0,
    label="range over candidates",
)
ax.plot(budgets["m"], budgets["median"], "o-", color=BLUE, label="median candidate")
ax.axhline(1.0, color="black", linewidth=0.8)
ax.set(xscale="log", yscale="log", xlabel="inducing points, m", ylabel="sd / exact sd")
ax.set_xticks(budgets["m"], [str(m) for m in budgets["m"]])
ax.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
ax.minorticks_off()
ax.grid(alpha=0.3)
_ = ax.legend(frameon=False)

# %% [markdown]
# With a small limit the band of this function is too wide nearly everywhere, so that a search explores more than
# necessary. The variance is never smaller than the residual. Near the inducing points the band can be too narrow, and
# with less noise it is; `python -m benchmarks.dtc_variance` measures this. In practice:
#
# - **Look** at `plots.complexity(opt)`. If the number of inducing points stays well below four fifths of
#   `max_inducing`, nothing needs to be done. (If it stays there, the effective dimension in the plot is a bound.)
# - **If it stays at this limit**, raise `max_inducing` as far as time allows, or drop columns that do not matter
#   (`plots.importance`). Also check whether the noise is really as small as its fitted value.
# - **With a few hundred evaluations in all** and little noise, `surrogate="exact"` costs only a few milliseconds more.
#
# ## Checks

# %%
flat, steep = grown["smooth, noisy, 2-D"], grown["rough, precise, 2-D"]
assert flat[-1, 1] < 3 * flat[2, 1]  # while t grew from 100 to the last checkpoint
assert steep[-1, 1] > 0.9 * steep[-1, 0]  # nearly every value
for rows in grown.values():  # m follows the effective dimension
    assert (rows[:, 2] < 1.2 * rows[:, 1]).all()
    assert (rows[:, 1] < 4 * rows[:, 2]).all()
assert len(opt.surrogate.inducing) < 0.6 * len(survey.inducing)
assert all((rows[:, 3] <= bo.BKB().max_inducing).all() for name, rows in costs.items() if name.startswith("BKB"))
exact_memory, bkb_memory = costs["exact GP"][:, 2], costs["BKB, rough and precise (m at its limit)"][:, 2]
assert exact_memory[-1] / exact_memory[-2] > 3.5  # twice the values, four times the memory
if not SMOKE:
    assert bkb_memory[-1] / bkb_memory[-2] < 2.2  # twice the values, twice the memory
    by_time = {name: dict(rows[:, :2]) for name, rows in costs.items()}
    assert by_time["exact GP"][2000] > 3 * by_time["BKB, rough and precise (m at its limit)"][2000]
assert budgets["sd / exact sd: min"].min() > 0.85  # never much too narrow
assert budgets["median"].is_monotonic_decreasing
assert budgets["truth within 2 sd"].min() > 0.9
