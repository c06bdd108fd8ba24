# %% [markdown]
# # Ask and tell: from a first loop to a stopping rule
#
# A machine has settings. Each evaluation of a setting returns a noisy number and costs time or money. Which settings
# are best? `bkbopt` proposes settings (`ask`) and receives the results (`tell`). The rest of this notebook uses these
# two calls for batches, results that arrive late or never, earlier data, constraints, saving and loading, and a
# stopping rule.

# %%
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import bkbopt as bo
from bkbopt import plots
from bkbopt.plots.style import BLUE, GREY, ORANGE, log_ticks

SMOKE = os.environ.get("BKBOPT_SMOKE") == "1"  # a run of seconds, with fewer repetitions
N_RUNS, N_TRIALS = (2, 25) if SMOKE else (12, 40)

# %% [markdown]
# ## A first loop
#
# An espresso machine has a temperature (°C), a grinder with integer steps, and three roasts. Tasters score how far a
# cup is from good; lower scores are better, and the scores are noisy. A formula plus noise stands in for the tasters,
# so that the answers can be checked against the truth. The optimizer sees the noisy scores only.

# %%
SPACE = {"temperature": bo.Float(80.0, 100.0), "grind": bo.Int(1, 30), "roast": ["light", "medium", "dark"]}
NOISE_SD = 0.3


def true_points(p):
    """The score without noise: the best temperature depends on the roast. The best score is 0."""
    best = {"light": 94.0, "medium": 92.0, "dark": 89.0}[p["roast"]]
    return ((p["temperature"] - best) / 5) ** 2 + ((p["grind"] - 14) / 8) ** 2 + (p["roast"] != "medium")


rng = np.random.default_rng(0)


def taste(p):
    return true_points(p) + NOISE_SD * rng.standard_normal()


opt = bo.Optimizer(SPACE, seed=0)
for _ in range(N_TRIALS):
    trial = opt.ask()
    opt.tell(trial, taste(trial.params))
choice = opt.recommend()
print(f"use {dict(choice.params)}: {choice.mean:.2f} ± {2 * choice.std:.2f} points expected")
print(f"its true value: {true_points(choice.params):.2f} points")

# %%
plots.overview(opt, value_names="score")

# %% [markdown]
# The upper panels show the progress of the search and the importance of each setting. The lower panels show the
# posterior over the two most important settings, and the number of inducing points in the model (a subset of the
# evaluated points). Trials that differ more in the third setting are drawn fainter.
#
# ## Take the recommendation, not the best value
#
# `opt.best_trial` is the trial with the best observed value. The best of many noisy values is biased: it was selected
# partly for its noise. `opt.recommend()` is the evaluated point with the best *pessimistic value*: the posterior mean,
# which also uses the values nearby, plus one standard deviation. The next cell repeats the search with several seeds,
# and compares the value reported for each of the two points with its true value. It also records the regret
# certificates after every fifth value, for a later section.

# %%
rows, looks = [], []
for seed in range(N_RUNS):
    rng = np.random.default_rng(1000 + seed)
    run = bo.Optimizer(SPACE, seed=seed)
    for t in range(1, N_TRIALS + 1):
        trial = run.ask()
        run.tell(trial, taste(trial.params))
        if t >= 10 and t % 5 == 0:
            certificate = run.regret_certificate()
            looks.append((seed, t, certificate.bound, certificate.confidence_gap, true_points(certificate.params)))
    best, choice = run.best_trial, run.recommend()
    rows.append((best.value, true_points(best.params), choice.mean, true_points(choice.params)))
answers = pd.DataFrame(
    np.array(rows).mean(axis=0).reshape(2, 2),
    index=["best observed value", "recommendation"],
    columns=["reported value", "true value"],
)
answers["bias"] = answers["reported value"] - answers["true value"]
answers.round(2)

# %% [markdown]
# ## Batches: pending trials count
#
# With several machines, ask for several trials at once. A trial that was asked and not yet told is *pending*. The
# posterior variance treats pending trials as evaluated, so that the next proposal is a different point. The cell below
# tells a few values in one dimension and then asks for a batch. A large `beta` makes the search explore, so that the
# effect is visible.

# %%
line = bo.Optimizer({"x": (0.0, 1.0)}, seed=1, n_startup_trials=5, beta=3.0)
for x in (0.05, 0.2, 0.45, 0.7, 0.95):
    line.tell({"x": x}, np.sin(7 * x) + 0.05 * rng.standard_normal())
fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
plots.posterior_slice(line, "x", ax=ax)
batch = line.ask(4)
for number, trial in enumerate(batch):
    x = trial.params["x"]
    ax.axvline(x, color=ORANGE, linestyle="--", linewidth=1.2)
    ax.annotate(f"{number + 1}", (x, 0.94 - 0.08 * number), xycoords=("data", "axes fraction"), bbox={"fc": "white"})
_ = ax.set_title("Four pending trials, numbered in the order of their proposal")

# %% [markdown]
# Results may arrive in any order, at any time, or never. A trial without a value is marked as *failed*: the search
# learns where trials fail and avoids these regions, and no invented value enters the data. `useful_workers` returns the
# number of trials that are worth running in parallel now. It is small while each result changes the posterior much, and
# grows later.

# %%
first, second, third, fourth = batch
line.tell(third, np.sin(7 * third.params["x"]))  # results arrive in any order
line.fail(first)  # no value
line.tell(fourth.id, np.sin(7 * fourth.params["x"]))  # the id is enough
pending = [trial for trial in line.trials if trial.state == "RUNNING"]
print(f"pending: {[trial.id for trial in pending]}; useful workers now: {line.useful_workers(limit=16)}")

# %% [markdown]
# ## Use earlier data
#
# Points that were never asked for can be told too, one by one or as a table. The model treats them like all others.

# %%
rng = np.random.default_rng(7)
notebook = pd.DataFrame(
    {
        "temperature": rng.uniform(85, 99, 15),
        "grind": rng.integers(5, 25, 15),
        "roast": rng.choice(["light", "medium", "dark"], 15),
    }
)
notebook["points"] = [taste(p) for p in notebook.to_dict("records")]
informed = bo.Optimizer(SPACE, seed=0)
informed.tell(notebook, "points")
print(f"{len(informed.trials)} trials; first proposal: {dict(informed.ask().params)}")

# %% [markdown]
# There are more values than the start-up design has points, so the model chooses the very first trial.
#
# ## Constraints and failures
#
# There are three kinds of constraints. A *known* constraint is a function of the settings; infeasible settings are
# never proposed. A *measured* constraint is a limit of a quantity that is told beside the value, as
# `constraints=["bitterness <= 3"]` (the guide has an example). An *unknown* constraint shows only through failed
# trials. Here fine grinds must not be hot (known), and the grinder jams at its coarsest steps (unknown).


# %%
def allowed(p):
    return p["temperature"] <= 96 or p["grind"] >= 8


def jams(p):
    return p["grind"] > 24


careful = bo.Optimizer(SPACE, seed=3, feasible=allowed)
for _ in range(30):
    trial = careful.ask()
    if jams(trial.params):
        careful.fail(trial)
    else:
        careful.tell(trial, taste(trial.params))
failed = [trial.id for trial in careful.trials if trial.state == "FAIL"]
print(f"infeasible trials: {sum(not allowed(trial.params) for trial in careful.trials)}; failed: {failed}")

# %% [markdown]
# ## Save and load
#
# One file holds the options and the log of all trials; models and random numbers are derived from them. A loaded
# optimizer continues bit for bit as the saved one would, in a new process or on another day.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "espresso.db"
    opt.save(path)
    again = bo.Optimizer.load(path)
same = [dict(again.ask().params) == dict(opt.ask().params) for _ in range(3)]
print(f"the next three asks are the same: {same}")

# %% [markdown]
# ## When to stop
#
# The model can bound the regret of the recommended setting: the difference between its value and the best one.
# `opt.regret_certificate()` returns such a bound for a confidence level, 95 % by default. It samples functions from the
# posterior, together with the fitted kernel and noise, and returns a quantile of their regrets. With a known kernel and
# the width of the theorems (`bo.theory`) the bound is the width of a band, and a guarantee. Here it depends on the
# model, so we count how often it held in the runs above.
#
# The certificate and the diagnostics of each ask also have a `confidence_gap`: the largest upper confidence bound of
# any setting minus the largest lower confidence bound. It costs nothing and shows how the search converges. But the
# width of its bands is chosen for the search, and it ignores the uncertainty of the fit. As a naive bound of the regret
# it fails more often.

# %%
table = pd.DataFrame(looks, columns=["run", "t", "bound", "naive", "missed"])
held, naive_held = table["bound"] >= table["missed"], table["naive"] >= table["missed"]
first = table[table["run"] == 0]

fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.plot(first["t"], first["bound"], "o-", color=BLUE, linewidth=2, label="certificate, 95 %")
ax.plot(first["t"], first["naive"], "o-", color=BLUE, linewidth=1, alpha=0.4, label="naive bound")
ax.plot(first["t"], first["missed"], "o--", color=ORANGE, linewidth=2, label="true regret of the recommendation")
ax.axhline(NOISE_SD, color=GREY, linestyle=":", label="standard deviation of the noise")
ax.set(xlabel="values told", ylabel="regret (points)", yscale="log", title="First run")
log_ticks(ax.yaxis)
ax.grid(alpha=0.3)
fig.legend(loc="outside lower center", ncols=2, frameon=False)
print(
    f"{len(table)} checks in {N_RUNS} runs: the certificate held in {held.mean():.0%}, naive in {naive_held.mean():.0%}"
)

# %% [markdown]
# `minimize` runs the same loop. It accepts the certificate as a stopping rule: here it stops once the bound is at most
# one point. The true regret is much smaller by then, because the bound also covers the other roasts, which have few
# evaluations. The certificate is checked every ten trials, and among many checks some are wrong. If stopping too early
# is expensive, check in a loop of your own with `regret_certificate(confidence=0.99)`, or use the guarantee of
# `bo.theory`.

# %%
rng = np.random.default_rng(2)
LIMIT, ENOUGH = 200, 1.0
stopped = bo.minimize(taste, SPACE, LIMIT, seed=1, stop_at_regret=ENOUGH)
print(f"{len(stopped.trials)} of {LIMIT} trials; certificate {stopped.regret_certificate().bound:.2f} points")
print(f"recommended {dict(stopped.recommend().params)}, true value {true_points(stopped.recommend().params):.2f}")

# %% [markdown]
# ## Checks

# %%
bias = answers["bias"]
assert bias["best observed value"] < -NOISE_SD  # too optimistic by more than the noise
assert abs(bias["recommendation"]) < 0.5 * abs(bias["best observed value"])
assert answers.loc["recommendation", "true value"] < answers.loc["best observed value", "true value"] + 0.05
places = sorted(trial.params["x"] for trial in batch)
assert np.diff(places).min() > 1e-3  # four different points
assert [trial.id for trial in pending] == [second.id]
assert len(informed.trials) == len(notebook) + 1
assert all(allowed(trial.params) for trial in careful.trials)
assert len(failed) < len(careful.trials) / 4
assert not jams(careful.recommend().params)
assert all(same)
assert held.mean() > (0.5 if SMOKE else 0.85)  # the certificates of a run are correlated
assert held[table["t"] >= 20].mean() > 0.95  # with more values behind the fit
assert held.mean() >= naive_held.mean()
assert len(stopped.trials) < LIMIT
assert true_points(stopped.recommend().params) < (3 * NOISE_SD if SMOKE else NOISE_SD)
