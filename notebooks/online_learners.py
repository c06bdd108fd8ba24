# %% [markdown]
# # Online learners: mistakes, dictionary size and drift
#
# An online learner predicts each row of a stream before it sees the label, learns from it, and never revisits it. It
# cannot store all rows, so it must choose which to keep; and the distribution may change. `bkbopt.learners` has the
# kernel learners of the papers for this setting. This notebook runs some of them on a stream, measures their mistakes
# and the growth of their dictionaries, changes the distribution half-way, and finally uses learners as surrogates of a
# search.

# %%
import os
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import bkbopt as bo
from bkbopt import plots
from bkbopt.learners import KOGD, PKAWV, RBP, KernelPerceptron, Projectron, ProsNKONS
from bkbopt.plots.style import GREY, SERIES, log_ticks

SMOKE = os.environ.get("BKBOPT_SMOKE") == "1"  # a run of seconds, with shorter streams

# %% [markdown]
# ## The stream
#
# Rows are points of a square. Labels are the two colours of a checkerboard with wavy borders. Noise flips labels near
# the borders, so that some mistakes are unavoidable: those of a predictor that knows the pattern exactly.

# %%
N = 4000 if SMOKE else 20_000
CHUNK = N // 40


def stream(n, seed, shift=0.0):
    """Rows (n, 2), labels -1 or +1, and the labels without noise; `shift` moves the pattern sideways."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    colour = np.sin(4 * X[:, 0] + shift) * np.cos(4 * X[:, 1])
    return X, np.where(colour + 0.2 * rng.standard_normal(n) > 0, 1.0, -1.0), np.where(colour > 0, 1.0, -1.0)


X, y, pattern = stream(N, seed=0)
unavoidable = (y != pattern).mean()
print(f"unavoidable mistakes: {unavoidable:.1%}")

fig, ax = plt.subplots(figsize=(4.2, 4), layout="constrained")
for label, series in zip((-1.0, 1.0), (SERIES[0], SERIES[1]), strict=True):
    rows = X[:1500][y[:1500] == label]
    ax.scatter(*rows.T, s=9, color=series.colour, marker=series.marker, linewidth=0, label=f"label {label:+.0f}")
ax.set(xlabel="first feature", ylabel="second feature", aspect="equal")
_ = fig.legend(loc="outside lower center", ncols=2, frameon=False)

# %% [markdown]
# ## Row by row, or a whole stream
#
# A learner takes rows one by one, in batches, or as a whole stream. `progressive` predicts each row and then learns it.
# The predictions do not depend on the way.

# %%
one, many = Projectron.paper(lengthscale=0.25, eta=0.3), Projectron.paper(lengthscale=0.25, eta=0.3)
one_by_one = []
for x, label in zip(X[:300], y[:300], strict=True):
    one_by_one.append(one.predict_one(x) if one_by_one else None)  # no prediction before the first row
    one.learn_one(x, label)
whole = many.progressive(X[:300], y[:300])
print(f"the same predictions: {bool((np.array(one_by_one[1:]) == whole[1:]).all())}")

# %% [markdown]
# ## Mistakes over time, and dictionary size
#
# | learner | rows in the dictionary | update |
# | --- | --- | --- |
# | `KernelPerceptron` | each misclassified row | adds it |
# | `RBP` | a fixed number of these | adds it, and removes a random one |
# | `Projectron` | those outside the span of the others | adds it, or its projection onto the others |
# | `KOGD` | each row whose margin was too small | a gradient step on the loss |
# | `ProsNKONS` | rows sampled by leverage score | a Newton step on their features |
# | `PKAWV` | rows sampled by leverage score | exact least squares on the labels as numbers |

# %%
WIDTH = 0.25
LEARNERS = {
    "KernelPerceptron": lambda: KernelPerceptron.paper(lengthscale=WIDTH),
    "RBP": lambda: RBP.paper(lengthscale=WIDTH, budget=100),
    "Projectron": lambda: Projectron.paper(lengthscale=WIDTH, eta=0.3),
    "KOGD": lambda: KOGD.paper(lengthscale=WIDTH),
    "ProsNKONS": lambda: ProsNKONS.paper(lengthscale=WIDTH, restart=False, max_dictionary=150),
    "PKAWV": lambda: PKAWV.paper(lengthscale=WIDTH, features="nystrom", lam=0.1, max_features=150),
}


def follow(make, X, y):
    """Mistakes (n,), terms kept after each chunk, and seconds; another learner compiles the loops first."""
    make().progressive(X[:50], y[:50])
    learner, wrong, kept = make(), [], []
    start = time.perf_counter()
    for i in range(0, len(X), CHUNK):
        predicted = learner.progressive(X[i : i + CHUNK], y[i : i + CHUNK])
        wrong.append(np.sign(predicted) != y[i : i + CHUNK])
        kept.append(learner.dictionary_size_)
    return np.concatenate(wrong), np.array(kept), time.perf_counter() - start


def smooth(wrong):
    """Mistakes in percent, by chunk, over windows of three chunks."""
    rates = wrong.reshape(-1, CHUNK).mean(axis=1)
    return 100 * np.convolve(np.pad(rates, 1, mode="edge"), np.full(3, 1 / 3), mode="valid")


still = {name: follow(make, X, y) for name, make in LEARNERS.items()}
late = slice(3 * N // 4, None)
pd.DataFrame(
    {
        name: {
            "mistakes (%)": 100 * wrong.mean(),
            "in the last quarter (%)": 100 * wrong[late].mean(),
            "dictionary size": kept[-1],
            "rows a second": N / seconds,
        }
        for name, (wrong, kept, seconds) in still.items()
    }
).T.round(1)

# %%
rows_seen = np.arange(CHUNK, N + 1, CHUNK)
fig, (left, right) = plt.subplots(1, 2, figsize=(12.5, 4.8), layout="constrained")
for (name, (wrong, kept, _)), series in zip(still.items(), SERIES, strict=True):
    left.plot(rows_seen, smooth(wrong), series.line, color=series.colour, linewidth=2, label=name)
    right.plot(rows_seen, kept, series.line, color=series.colour, linewidth=2)
left.axhline(100 * unavoidable, color=GREY, linewidth=1)
left.annotate("unavoidable", (0, 100 * unavoidable), (0, -14), textcoords="offset points", color=GREY)
left.set(xlabel="rows", ylabel="mistakes (%)", ylim=(0, None))
right.set(xlabel="rows", ylabel="dictionary size", yscale="log")
log_ticks(right.yaxis)
for ax in (left, right):
    ax.grid(alpha=0.3)
_ = fig.legend(loc="outside lower center", ncols=6, frameon=False)

# %% [markdown]
# Second-order learners come close to the unavoidable rate with a small dictionary. `KOGD` comes close too, but keeps a
# large part of all rows, and the cost of a row grows with the dictionary. The perceptron, `RBP` and `Projectron` keep
# rows that were misclassified because of noise, and repeat the noise in their predictions. `Projectron` keeps only as
# many rows as it needs to represent the perceptron's function, and is as accurate; `RBP` removes rows that it needs.
#
# ## Drift
#
# The stream is the same, but half-way the pattern moves sideways, so that many labels change sign.

# %%
X1, y1, _ = stream(N // 2, seed=0)
X2, y2, pattern2 = stream(N // 2, seed=1, shift=np.pi / 2)
moved = {name: follow(make, np.vstack([X1, X2]), np.concatenate([y1, y2])) for name, make in LEARNERS.items()}
before, after = slice(3 * N // 8, N // 2), slice(N // 2, 5 * N // 8)
drift = pd.DataFrame(
    {
        name: {
            "last quarter before (%)": 100 * wrong[before].mean(),
            "first quarter after (%)": 100 * wrong[after].mean(),
            "last quarter after (%)": 100 * wrong[-N // 8 :].mean(),
        }
        for name, (wrong, _, _) in moved.items()
    }
).T
print(f"unavoidable mistakes after the change: {(y2 != pattern2).mean():.1%}")
drift.round(1)

# %%
fig, ax = plt.subplots(figsize=(8, 4.8), layout="constrained")
for (name, (wrong, _, _)), series in zip(moved.items(), SERIES, strict=True):
    ax.plot(rows_seen, smooth(wrong), series.line, color=series.colour, linewidth=2, label=name)
ax.axvline(N // 2, color=GREY, linewidth=1)
ax.annotate("the pattern moves", (N // 2, 1), (-4, 2), textcoords="offset points", color=GREY, ha="right")
ax.set(xlabel="rows", ylabel="mistakes (%)", ylim=(0, None))
ax.grid(alpha=0.3)
_ = fig.legend(loc="outside lower center", ncols=6, frameon=False)

# %% [markdown]
# After the change least squares is at a disadvantage, because it weighs all rows alike: `PKAWV` predicts a compromise
# between the old and the new labels. The perceptron, `RBP` and `Projectron` adapt. `ProsNKONS` and
# `KOGD`, whose losses are zero for large margins, are in between: their mistakes rise at the change, and soon are the
# fewest again.
#
# ## Learners as surrogates of a search
#
# A search needs a mean and a calibrated band. As a surrogate, a learner gives the mean. The band is that of a Gaussian
# posterior on the functions in the span of the learner's features, plus the residual outside the span. So a learner
# that removes rows, or keeps few, does not have a narrower band. On the same noisy values:

# %%
rng = np.random.default_rng(3)
places = rng.uniform(0.0, 0.6, 25)
told = np.sin(9 * places) + 0.15 * rng.standard_normal(25)
kernel, noise = bo.kernels.matern52(1, lengthscale=0.2), 0.15**2
surrogates = {
    "exact GP": bo.ExactGP(kernel, noise),
    "PKAWV": bo.LearnerSurrogate(kernel, noise, learner="pkawv", settings={"kors_ridge": 1e-9}),
    "KOGD": bo.LearnerSurrogate(kernel, noise, learner="kogd"),
}
fig, axes = plt.subplots(1, 3, figsize=(13, 4.2), sharey=True, layout="constrained")
grid = np.linspace(0, 1, 101)[:, None]
seen = {}
for ax, (name, surrogate) in zip(axes, surrogates.items(), strict=True):
    opt = bo.Optimizer({"x": (0.0, 1.0)}, direction="maximize", surrogate=surrogate, fit=False, seed=0)
    opt.tell([{"x": v} for v in places], told)
    plots.posterior_slice(opt, "x", ax=ax, at={})
    ax.get_legend().remove()
    ax.set(title=name, ylabel="value" if ax is axes[0] else "")
    seen[name] = opt.surrogate.posterior(grid)
_ = fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)

# %% [markdown]
# With all points in its dictionary and without its forward term, `PKAWV` equals the exact GP. `KOGD` has made one
# pass of small steps: its mean is flatter, its band not narrower. The next cell runs searches with fitted kernel and
# noise on a noisy function of two parameters, and compares them with BKB. Learners are chosen by name.


# %%
def true_loss(p):
    return np.sin(7 * p["x"]) + 0.5 * (p["x"] - 0.6) ** 2 + 3 * (p["z"] - 0.3) ** 2


xs = np.linspace(0, 1, 10_001)
least = (np.sin(7 * xs) + 0.5 * (xs - 0.6) ** 2).min()
N_TRIALS, N_SEARCHES = (20, 2) if SMOKE else (60, 5)
losses, answers = {}, {}
for name in ("bkb", "pkawv", "prosnkons", "kogd"):
    losses[name], answers[name] = [], []
    for seed in range(N_SEARCHES):
        rng = np.random.default_rng(seed)
        opt = bo.Optimizer({"x": (0.0, 1.0), "z": (0.0, 1.0)}, seed=seed, surrogate=name)
        for _ in range(N_TRIALS):
            trial = opt.ask()
            opt.tell(trial, true_loss(trial.params) + 0.2 * rng.standard_normal())
        losses[name].append([true_loss(trial.params) for trial in opt.trials])
        answers[name].append(true_loss(opt.recommend().params) - least)
searched = pd.DataFrame(
    {
        name: {
            "mean regret of all trials": np.mean(losses[name]) - least,
            "regret of the recommendation": np.mean(answers[name]),
        }
        for name in losses
    }
).T
searched.round(3)

# %%
fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
plots.regret(losses, least, ax=ax, kind="average", value_name="loss")
_ = ax.set_xlabel("trials")

# %% [markdown]
# ## Checks

# %%
mistakes = {name: wrong[late].mean() for name, (wrong, _, _) in still.items()}
kept = {name: sizes for name, (_, sizes, _) in still.items()}
assert (np.array(one_by_one[1:]) == whole[1:]).all()
assert max(mistakes["ProsNKONS"], mistakes["PKAWV"]) < unavoidable + 0.06
assert mistakes["RBP"] > mistakes["ProsNKONS"] + 0.04
assert abs(mistakes["Projectron"] - mistakes["KernelPerceptron"]) < 0.03
assert kept["RBP"].max() <= 100
assert max(kept["ProsNKONS"].max(), kept["PKAWV"].max()) <= 150
assert kept["KernelPerceptron"][-1] > 1.6 * kept["KernelPerceptron"][len(rows_seen) // 2 - 1]  # it keeps growing
assert kept["Projectron"][-1] < 1.2 * kept["Projectron"][len(rows_seen) // 2 - 1]  # it has stopped growing
assert kept["Projectron"][-1] < kept["KernelPerceptron"][-1] / 5
worse = drift["last quarter after (%)"] - drift["last quarter before (%)"]
assert worse["PKAWV"] > 8
assert max(worse["ProsNKONS"], worse["RBP"], worse["KernelPerceptron"]) < 4
assert drift["last quarter after (%)"].idxmin() in {"ProsNKONS", "KOGD"}
difference = (seen["PKAWV"].mean - seen["exact GP"].mean).abs().max()
assert difference < 1e-6
assert (seen["KOGD"].stddev[-20:] > 0.8 * seen["exact GP"].stddev[-20:]).all()  # wide where nothing was told
if not SMOKE:
    average = searched["mean regret of all trials"]
    assert average["pkawv"] < 1.25 * average["bkb"]
    assert searched["regret of the recommendation"].max() < 0.1
