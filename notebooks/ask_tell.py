# %% [markdown]
# # Ask and tell: from a first loop to stopping in time
#
# You have a machine with settings. It answers with a number, the answer is noisy, and an answer costs time or money.
# Which settings are best? `bkbopt` asks for settings to try and is told what came out. This is the whole contract, and
# everything else in this notebook follows from it: several trials at a time, results that come late or never, results
# from before, forbidden settings, a break in the middle, and a reason to stop.

# %%
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import bkbopt as bo
from bkbopt import plots
from bkbopt.plots.style import BLUE, GREY, ORANGE

SMOKE = os.environ.get("BKBOPT_SMOKE") == "1"  # a run of seconds, with fewer repetitions
N_RUNS, N_TRIALS = (2, 25) if SMOKE else (12, 40)

# %% [markdown]
# ## A first loop
#
# An espresso machine has a temperature (°C), a grinder with whole steps, and three roasts. Tasters give points for how
# far a cup is from good; fewer are better, and no two tasters agree. We play the tasters with a formula plus noise, so
# that we can check the answers afterwards; the optimizer sees the noisy points only.

# %%
SPACE = {"temperature": bo.Float(80.0, 100.0), "grind": bo.Int(1, 30), "roast": ["light", "medium", "dark"]}
NOISE_SD = 0.3


def true_points(p):
    """What endless tasting would give: the best temperature depends on the roast. The best is 0."""
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
print(f"endless tasting would give it {true_points(choice.params):.2f}")

# %%
plots.overview(opt, value_name="points")

# %% [markdown]
# Above: how the search went, and which settings matter. Below: the posterior over the two that matter most, with the
# trials, fainter where they differ in the third setting; and how many inducing points the
# model holds, the evaluated points that it rests on.
#
# ## Take the recommendation, not the best value
#
# `opt.best_trial` is the trial with the best value told. Among many noisy values the best one is the luckiest one.
# `opt.recommend()` is the evaluated point with the best *posterior mean*, which also uses the values nearby. We
# repeat the search with several seeds, and compare what each answer claims with what it is worth. (What the model says
# about the rest to gain is noted for later, after every fifth value.)

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
            looks.append((seed, t, certificate.bound, certificate.naive, true_points(certificate.params)))
    best, choice = run.best_trial, run.recommend()
    rows.append((best.value, true_points(best.params), choice.mean, true_points(choice.params)))
answers = pd.DataFrame(
    np.array(rows).mean(axis=0).reshape(2, 2),
    index=["best value told", "recommendation"],
    columns=["claims", "is worth"],
)
answers["claim is off by"] = answers["claims"] - answers["is worth"]
answers.round(2)

# %% [markdown]
# ## Batches: pending trials count
#
# With several machines, ask for several trials. Each trial that was asked and not told is *pending*: the model counts
# it as evaluated, as far as its band is concerned, so that the next one goes elsewhere. Below, one dimension, a few
# values told, and a batch of trials proposed at once. The search is told to be curious, by `beta`, so that one sees it.

# %%
line = bo.Optimizer({"x": (0.0, 1.0)}, seed=1, n_startup_trials=5, beta=3.0)
for x in (0.05, 0.2, 0.45, 0.7, 0.95):
    line.tell({"x": x}, np.sin(7 * x) + 0.05 * rng.standard_normal())
fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
plots.posterior_slice(line, "x", ax)
batch = line.ask(4)
for number, trial in enumerate(batch):
    x = trial.params["x"]
    ax.axvline(x, color=ORANGE, linestyle="--", linewidth=1.2)
    ax.annotate(f"{number + 1}", (x, 0.94 - 0.08 * number), xycoords=("data", "axes fraction"), bbox={"fc": "white"})
_ = ax.set_title("four trials in flight, numbered as they were proposed")

# %% [markdown]
# Results may come in any order, at any time, or not at all. A trial that gave no value is *failed*: the search learns
# where trials fail and keeps away from there, and no invented value enters the data. `useful_workers` says how many
# trials it pays to have in flight now: few while each answer changes the picture, more later.

# %%
first, second, third, fourth = batch
line.tell(third, np.sin(7 * third.params["x"]))  # the last but one comes first
line.fail(first)  # this one broke
line.tell(fourth.id, np.sin(7 * fourth.params["x"]))  # the id is enough
pending = [trial for trial in line.trials if trial.state == "RUNNING"]
print(f"pending: {[trial.id for trial in pending]}; useful workers now: {line.useful_workers(limit=16)}")

# %% [markdown]
# ## What is known already
#
# Tell points that were never asked, one by one or as a table. They count like all others.

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
print(f"{len(informed.trials)} trials, the first of our own is {dict(informed.ask().params)}")

# %% [markdown]
# With as many values as the start-up design asks for, the very first trial comes from the model.
#
# ## Forbidden settings, and settings that fail
#
# A constraint that you can *state* is a function of the settings; nothing outside of it is ever proposed. One that each
# run *measures* is named by `constraints=` and told beside the value (the README shows it). One that you can only *run
# into* shows by failing trials. Here fine grinds must not be hot, and, what nobody knows, the grinder jams at its
# coarsest steps.


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
print(f"forbidden trials: {sum(not allowed(trial.params) for trial in careful.trials)}; jammed: {failed}")

# %% [markdown]
# ## A break in the middle
#
# One file holds the options and the log of all trials; models and random numbers follow from them. A loaded optimizer
# goes on as if nothing had happened, to the last bit, in a new process or on another day.

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
# At any time the model can say how much there is left to gain: by how much the best setting may be better than the
# recommended one. `opt.regret_certificate()` gives a bound of it that is to hold with a confidence, 95 % where nothing
# else is said. It draws many functions that the values allow, and with them what is fitted, kernel and noise; the bound
# is a quantile of what these functions have to gain. With a known kernel and the theorems' width (`bo.theory`) it is
# the width of a band, and a guarantee. Here it is the model's word, so we look how often it held in the runs above.
#
# Beside it stands its `naive`: the largest value that any setting may still have, by the upper end of its band, against
# the value that one setting has at least, by the lower end. The diagnostics of each ask have it as `regret_bound`. It
# costs nothing and shows how the search settles; but the bands are as wide as a search needs them, the fit is taken for
# certain, and as a bound it fails more often.

# %%
table = pd.DataFrame(looks, columns=["run", "t", "bound", "naive", "missed"])
held, naive_held = table["bound"] >= table["missed"], table["naive"] >= table["missed"]
first = table[table["run"] == 0]

fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.plot(first["t"], first["bound"], "o-", color=BLUE, linewidth=2, label="certificate: no more than this to gain")
ax.plot(first["t"], first["naive"], "o-", color=BLUE, linewidth=1, alpha=0.4, label="naive: ends of the bands")
ax.plot(first["t"], first["missed"], "o--", color=ORANGE, linewidth=2, label="truly to gain over the recommendation")
ax.axhline(NOISE_SD, color=GREY, linestyle=":", label="standard deviation of the noise")
ax.set(xlabel="values told", ylabel="points", yscale="log", title="the first of the runs")
ax.grid(alpha=0.3)
ax.legend(frameon=False)
print(f"{len(table)} looks, {N_RUNS} runs; the certificate held at {held.mean():.0%}, naive at {naive_held.mean():.0%}")

# %% [markdown]
# `minimize` is the same loop written for you. It takes the certificate as a reason to stop: here as soon as the model
# sees no more than one point left to gain. Truly it is much less by then: a bound counts what few looks at the other
# roasts leave open, too. It is looked at every ten trials, and of many looks some are wrong. Where a stop too early is
# dear, look yourself, in a loop as above, with `regret_certificate(confidence=0.99)`; or take the theorems, by
# `bo.theory`.

# %%
rng = np.random.default_rng(2)
LIMIT, ENOUGH = 200, 1.0
stopped = bo.minimize(taste, SPACE, LIMIT, seed=1, stop_at_regret=ENOUGH)
print(f"{len(stopped.trials)} of {LIMIT} trials; certificate {stopped.regret_certificate().bound:.2f} points")
print(f"recommended {dict(stopped.recommend().params)}, truly {true_points(stopped.recommend().params):.2f}")

# %% [markdown]
# ## Checked

# %%
off = answers["claim is off by"]
assert off["best value told"] < -NOISE_SD  # it flatters by more than the noise
assert abs(off["recommendation"]) < 0.5 * abs(off["best value told"])
assert answers.loc["recommendation", "is worth"] < answers.loc["best value told", "is worth"] + 0.05
places = sorted(trial.params["x"] for trial in batch)
assert np.diff(places).min() > 1e-3  # four different points
assert [trial.id for trial in pending] == [second.id]
assert len(informed.trials) == len(notebook) + 1
assert all(allowed(trial.params) for trial in careful.trials)
assert len(failed) < len(careful.trials) / 4
assert not jams(careful.recommend().params)
assert all(same)
assert held.mean() > (0.5 if SMOKE else 0.85)  # the looks of a run go together
assert held[table["t"] >= 20].mean() > 0.95  # once the fit rests on more values
assert held.mean() >= naive_held.mean()
assert len(stopped.trials) < LIMIT
assert true_points(stopped.recommend().params) < (3 * NOISE_SD if SMOKE else NOISE_SD)
