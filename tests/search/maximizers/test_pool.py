"""The lazy argmax over a pool is the argmax: compared with full evaluation on the same run."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import bkbopt as bo
from bkbopt.errors import SpaceExhaustedError
from bkbopt.posterior import gaussian_state
from bkbopt.posterior.features import nystrom
from bkbopt.posterior.model import Model
from bkbopt.search.criteria.acquisition import LogEI
from bkbopt.search.criteria.criterion import ACQUISITIONS, rule_of
from bkbopt.search.designer import Designer
from bkbopt.search.maximizers import pool as pool_maximizer
from bkbopt.search.maximizers import versions
from bkbopt.search.maximizers.pool import PoolMaximizer, joint_sample
from bkbopt.search.maximizers.versions import MAX_VERSIONS
from bkbopt.search.options import Options
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.search.trials.evaluations import Evaluation, Problem
from bkbopt.search.trials.states import COMPLETE, RUNNING
from bkbopt.spaces.pool import EncodedPool, Pool
from tests.sweeps import slow_but, sweep


def full_argmax(X: Tensor, model: Model, beta: float, excluded: Tensor | None = None) -> tuple[int, float]:
    mean, variance = model(X)
    scores = mean + beta * variance.sqrt()
    if excluded is not None:
        scores = scores.masked_fill(excluded, -math.inf)
    return int(scores.argmax()), float(scores.max())


def bump(X: Tensor) -> Tensor:
    return torch.sin(5.0 * X[:, 0]) + torch.cos(4.0 * X[:, 1])


@pytest.mark.parametrize("seed", slow_but({0, 1}, range(4)))
@pytest.mark.parametrize("resample", ["delayed", "every"])
def test_lazy_argmax_equals_full_evaluation_at_every_step(seed: int, resample: str) -> None:
    rng = np.random.default_rng(seed)
    X = torch.as_tensor(rng.random((1500, 2)))
    bkb = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04, resample=resample, seed=seed)
    search = PoolMaximizer(X)
    pending: list[int] = []
    bkb.observe(X[:1], bump(X[:1]))
    for step in range(150 if resample == "delayed" else 40):
        model = bkb.fantasy(X[pending]) if pending else bkb.model
        beta = 1.0 + rng.random()  # changes at every step
        choice = search.argmax(model, beta)
        index, score = full_argmax(X, model, beta)
        assert choice.index == index
        # The same formula on rows in another batch: rounding only.
        assert choice.score == pytest.approx(score, rel=1e-9)
        pending.append(choice.index)
        while len(pending) > step % 4:  # up to three stay pending, told in random order
            i = pending.pop(int(rng.integers(len(pending))))
            bkb.observe(X[[i]], bump(X[[i]]) + 0.2 * float(rng.standard_normal()))


SURROGATES: dict[str, Any] = {
    "bkb": lambda: bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04),
    "small bkb": lambda: bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04, max_inducing=12),
    "exact": lambda: bo.ExactGP(bo.kernels.rbf(2, 0.3), noise=0.04),
    "fourier": lambda: bo.FourierGP(bo.kernels.rbf(2, 0.3), noise=0.04),
    "learner": lambda: bo.LearnerSurrogate(bo.kernels.rbf(2, 0.3), noise=0.04, learner="pkawv"),
}


@pytest.mark.parametrize("names", [("bkb", "exact"), ("small bkb", "fourier", "learner")])
def test_one_maximizer_may_serve_several_surrogates_in_turn(names: tuple[str, ...]) -> None:
    rng = np.random.default_rng(5)
    X = torch.as_tensor(rng.random((500, 2)))
    surrogates, search = [SURROGATES[name]() for name in names], PoolMaximizer(X)
    for surrogate in surrogates:
        surrogate.observe(X[:3], bump(X[:3]))
    for _ in range(40):
        surrogate = surrogates[rng.integers(len(surrogates))]
        pending = X[rng.integers(500, size=int(rng.integers(0, 4)))]
        model = surrogate.fantasy(pending) if len(pending) else surrogate.model
        excluded = torch.as_tensor(rng.random(500) < 0.1)
        choice = search.argmax(model, 2.0, excluded)
        assert choice.index == full_argmax(X, model, 2.0, excluded)[0]
        if rng.random() < 0.6:
            # A value of less weight than what was counted makes V smaller; a learner weighs all values alike.
            weight = None if "learner" in names else [float(rng.uniform(0.3, 3.0))]
            surrogate.observe(X[[choice.index]], bump(X[[choice.index]]), weight)
        if rng.random() < 0.3:
            surrogate.fantasy(X[rng.integers(500, size=5)])  # someone reads


def test_few_arms_are_computed_again() -> None:
    X = torch.as_tensor(np.random.default_rng(0).random((20_000, 2)))
    bkb, search = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04), PoolMaximizer(X)
    bkb.observe(X[:1], bump(X[:1]))
    steps = 150
    for _ in range(steps):
        choice = search.argmax(bkb.model, 2.0)
        bkb.observe(X[[choice.index]], bump(X[[choice.index]]))
    # A scan a step would be 150 scans and 3,000,000 arms.
    assert search.n_scans < steps / 2
    assert search.n_refreshed / steps < 0.05 * len(X)


def test_the_pool_is_scanned_within_an_epoch_once_arms_computed_alone_have_cost_as_much() -> None:
    X = torch.as_tensor(np.random.default_rng(0).random((3000, 2)))
    bkb, search = bo.BKB(bo.kernels.rbf(2, 0.2), noise=0.04, leverage_budget=1e9, seed=0), PoolMaximizer(X)
    bkb.observe(X[:60], bump(X[:60]))
    epochs = set()
    for _ in range(40):
        model = bkb.model
        epochs.add(model.epoch)
        index = search.argmax(model, 2.0).index
        assert index == full_argmax(X, model, 2.0)[0]
        bkb.observe(X[[index]], bump(X[[index]]))
    assert search.n_scans > len(epochs)


def test_bounds_are_carried_over_appended_features_and_folded_when_versions_are_many() -> None:
    X = torch.as_tensor(np.random.default_rng(0).random((2000, 2)))
    bkb, search = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.1, leverage_budget=1e9, seed=0), PoolMaximizer(X)
    bkb.observe(X[:1], bump(X[:1]))
    sizes, growth = set(), 1.0
    for _ in range(2 * MAX_VERSIONS):
        model = bkb.model
        index = search.argmax(model, 1.0).index
        assert index == full_argmax(X, model, 1.0)[0]
        bkb.observe(X[[index]], bump(X[[index]]))
        sizes.add(len(model.w))
        growth = max(growth, model.growth)
    assert growth > 1.0  # so that some features were seen by data of before
    assert search.n_scans < len(sizes)


def test_folding_changes_no_bound() -> None:
    X = torch.as_tensor(np.random.default_rng(1).random((300, 2)))
    bkb, search = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.1, leverage_budget=1e9, seed=0), PoolMaximizer(X)
    bkb.observe(X[:40], bump(X[:40]))
    for _ in range(12):
        index = search.argmax(bkb.model, 1.0).index
        bkb.observe(X[[index]], bump(X[[index]]) + 0.3)
    cache = search._cache
    assert cache is not None
    assert len(cache.versions) > 3
    before = cache.bounds(2.0)
    cache.fold()
    np.testing.assert_allclose(cache.bounds(2.0), before, rtol=1e-12)


def test_ties_go_to_the_lowest_index() -> None:
    X = torch.as_tensor(np.random.default_rng(1).random((30, 2))).repeat(3, 1)  # each arm three times
    gp = bo.ExactGP(bo.kernels.rbf(2, 0.3), noise=0.04)
    gp.observe(X[:5], bump(X[:5]))
    assert PoolMaximizer(X).argmax(gp.model, 2.0).index < 30
    far = torch.full((4, 2), 1e6, dtype=torch.float64)  # prior everywhere: all scores are the same
    assert PoolMaximizer(far).argmax(gp.model, 2.0).index == 0


def test_duplicate_rows_change_nothing_but_the_index() -> None:
    X = torch.as_tensor(np.random.default_rng(2).random((40, 2)))
    double = X.repeat_interleave(2, 0)
    bkb = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04)
    bkb.observe(X[:1], bump(X[:1]))
    one, two = PoolMaximizer(X), PoolMaximizer(double)
    for _ in range(30):
        a, b = one.argmax(bkb.model, 2.0), two.argmax(bkb.model, 2.0)
        assert b.index == 2 * a.index
        bkb.observe(X[[a.index]], bump(X[[a.index]]))


def test_excluded_arms_are_never_chosen() -> None:
    rng = np.random.default_rng(3)
    X = torch.as_tensor(rng.random((60, 2)))
    bkb, search = bo.BKB(bo.kernels.rbf(2, 0.3), noise=0.04), PoolMaximizer(X)
    bkb.observe(X[:1], bump(X[:1]))
    excluded = torch.zeros(60, dtype=torch.bool)
    for _ in range(60):
        choice = search.argmax(bkb.model, 2.0, excluded)
        assert not excluded[choice.index]
        assert choice.index == full_argmax(X, bkb.model, 2.0, excluded)[0]
        excluded[choice.index] = True
        bkb.observe(X[[choice.index]], bump(X[[choice.index]]))
    with pytest.raises(SpaceExhaustedError, match="all 60 arms"):
        search.argmax(bkb.model, 2.0, excluded)


def test_scan_is_the_model_on_all_rows() -> None:
    X = torch.as_tensor(np.random.default_rng(4).random((3000, 2)))
    for surrogate in (bo.BKB(bo.kernels.matern52(2), noise=0.04), bo.ExactGP(bo.kernels.matern52(2), noise=0.04)):
        surrogate.observe(X[:40], bump(X[:40]))
        mean, variance = PoolMaximizer(X).scan(surrogate.model)
        exact_mean, exact_variance = surrogate.model(X)
        torch.testing.assert_close(mean, exact_mean, rtol=1e-8, atol=1e-8)
        # The collapsed form subtracts from k(x, x) = 1: rounding is relative to that.
        torch.testing.assert_close(variance, exact_variance, rtol=0.0, atol=1e-9)


def test_other_acquisitions_take_the_argmax_of_a_scan() -> None:
    rng = np.random.default_rng(6)
    X = torch.as_tensor(rng.random((200, 2)))
    gp, search = bo.ExactGP(bo.kernels.rbf(2, 0.3), noise=0.04), PoolMaximizer(X)
    gp.observe(X[:10], bump(X[:10]))
    excluded = torch.zeros(200, dtype=torch.bool)

    def row(rule: Any) -> int:
        return next(rule.build(gp.model, 2.0, 0.5, rng).ranked(search, excluded))

    assert row(ACQUISITIONS["logei"]) == int(LogEI(0.5)(*gp.model(X)).argmax())
    assert row(ACQUISITIONS["ucb"]) == full_argmax(X, gp.model, 2.0)[0]
    assert row(rule_of(lambda mean, variance: variance - mean)) == int((gp.model(X)[1] - gp.model(X)[0]).argmax())
    excluded[:199] = True
    assert [row(rule) for rule in ACQUISITIONS.values()] == [199] * 3


@pytest.mark.parametrize("form", ["arms", "arms that change"])
def test_designers_choice_is_the_argmax_over_the_open_arms(form: str) -> None:
    """With pending trials, failures, and pools that are replaced: what is chosen has the largest score."""
    rng = np.random.default_rng(8)
    arms = rng.random((400, 2))
    pool = EncodedPool(Pool(arms), scale=True, has_kernel=False)
    options = Options(ModelOptions(bo.BKB()), n_startup_trials=4, avoid_duplicates=True)
    designer = Designer(Problem(pool=pool), options, seed=0)
    for number in range(40):
        suggestion = designer.suggest(number=number)[0]
        pool = designer.problem.pool
        assert pool is not None
        if designer.has_models:
            X = pool.X
            pending = designer.history.encode([e.point for _, e in sorted(designer.history.running.items())])
            posteriors = designer.models.posteriors(pending, len(X))
            taken = {bytes(x.numpy()) for x in torch.cat([designer.history.X, pending])}
            excluded = torch.tensor([bytes(x.numpy()) in taken for x in X])
            assert suggestion.index == full_argmax(X, posteriors.models[0], posteriors.betas[0], excluded)[0]
        running = Evaluation(number, RUNNING, suggestion.point)
        designer.update([running])
        while len(designer.history.running) > number % 4:
            first = min(designer.history.running)
            point = designer.history.running[first].point
            y = float(np.sin(5.0 * point["x0"]) + point["x1"])
            designer.update([Evaluation(first, COMPLETE, point, order=(float(number), first), values=(y,))])
        if form == "arms that change" and number % 10 == 9:
            arms = np.concatenate([arms[100:], rng.random((80, 2))])
            designer.set_problem(Problem(pool=pool.replaced(Pool(arms))))


@pytest.mark.parametrize(("make", "joint"), sweep([bo.BKB, bo.ExactGP], [pool_maximizer.JOINT, 0]))
def test_thompson_samples_have_the_posterior_moments_jointly(
    make: Any, joint: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_maximizer, "JOINT", joint)
    rng = np.random.default_rng(7)
    X = torch.as_tensor(rng.random((20, 2)))
    surrogate, search = make(bo.kernels.rbf(2, 0.3), noise=0.04), PoolMaximizer(X)
    surrogate.observe(X[:8], bump(X[:8]))
    samples = torch.stack([joint_sample(search, surrogate.model, rng) for _ in range(2000)])
    covariance = surrogate.model.covariance(X)
    variance = covariance.diagonal()
    # Six standard errors of a mean and of a covariance over 2,000 samples.
    assert bool(((samples.mean(0) - surrogate.model(X)[0]).abs() <= 6.0 * (variance / 2000).sqrt() + 1e-12).all())
    error = 6.0 * ((torch.outer(variance, variance) + covariance**2) / 2000).sqrt()
    assert bool(((torch.cov(samples.T) - covariance).abs() <= error).all())


def without_correlations(search: PoolMaximizer, model: Model, rng: np.random.Generator) -> Tensor:
    """A draw of each arm's value by itself."""
    mean, variance = model(search.X)
    return mean + variance.sqrt() * torch.as_tensor(rng.standard_normal(len(mean)))


@pytest.mark.slow
def test_joint_draws_and_paths_pay_less_than_draws_of_single_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cumulative regret of Thompson sampling with a known kernel: 600 arms, 60 values, ten functions of the prior.

    Independent draws of single arms are maximal at arms with large deviations, and go on exploring.
    """
    joint = PoolMaximizer.thompson
    ways: dict[str, tuple[Any, int]] = {
        "single": (without_correlations, pool_maximizer.JOINT),
        "joint": (joint, pool_maximizer.JOINT),
        "path": (joint, 0),
    }
    paid: dict[str, list[float]] = {name: [] for name in ways}
    kernel = bo.kernels.matern52(2, 0.3)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = torch.as_tensor(rng.random((600, 2)))
        L = np.linalg.cholesky(kernel(X, X).numpy() + 1e-8 * np.eye(600))
        f = L @ rng.standard_normal(600)
        options: Any = {"surrogate": bo.ExactGP(kernel, 0.01), "fit": False, "acquisition": "thompson"}
        for name, (draw, most) in ways.items():
            monkeypatch.setattr(PoolMaximizer, "thompson", draw)
            monkeypatch.setattr(pool_maximizer, "JOINT", most)
            opt = bo.Optimizer(X.numpy(), direction="maximize", seed=seed, n_startup_trials=1, **options)
            noise, total = np.random.default_rng(seed + 50), 0.0
            for _ in range(60):
                trial = opt.ask()
                assert trial.index is not None
                opt.tell(trial, f[trial.index] + 0.1 * noise.standard_normal())
                total += f.max() - f[trial.index]
            paid[name].append(total)
    for name in ("joint", "path"):
        saved = np.subtract(paid["single"], paid[name])
        # A tenth of what single draws pay; the standard error of the pairs is about half of that.
        assert saved.mean() > 0.1 * np.mean(paid["single"]), paid


def choices(n: int, steps: int, seed: int) -> list[int]:
    """Arms that a run over a pool of `n` arms chooses, each the argmax computed in full."""
    rng = np.random.default_rng(seed)
    X = torch.as_tensor(rng.random((n, 3)))
    bkb, search = bo.BKB(bo.kernels.matern52(3, 0.4), noise=0.04, seed=seed), PoolMaximizer(X)
    bkb.observe(X[:30], bump(X[:30]))
    chosen = []
    for _ in range(steps):
        excluded = torch.as_tensor(rng.random(n) < 0.2)
        model = bkb.model
        chosen.append(search.argmax(model, 3.0, excluded).index)
        assert chosen[-1] == full_argmax(X, model, 3.0, excluded)[0]
        bkb.observe(X[chosen[-1:]], bump(X[chosen[-1:]]) + 0.2 * float(rng.standard_normal()))
    return chosen


def test_compiled_loops_and_torch_choose_the_same_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = choices(1000, 60, seed=2)
    for module in (nystrom, gaussian_state, versions):
        monkeypatch.setattr(module, "compiles", lambda size, A: False)
    assert choices(1000, 60, seed=2) == compiled


def test_bounds_hold_where_only_means_were_computed() -> None:
    X = torch.as_tensor(np.random.default_rng(0).random((1500, 2)))
    bkb, search = bo.BKB(bo.kernels.rbf(2, 0.2), noise=0.1, leverage_budget=1e9, seed=0), PoolMaximizer(X)
    bkb.observe(X[:40], bump(X[:40]))
    n_tightened, growth = 0, 1.0
    for _ in range(40):
        model = bkb.model
        before = search.n_refreshed
        index = search.argmax(model, 2.0).index
        cache = search._cache
        assert cache is not None
        mean, variance = model(X)
        assert bool((cache.bounds(2.0) >= mean + 2.0 * variance.sqrt() - 1e-7).all())
        if len(cache.versions) > 1:  # computed in full or not, an arm is of the current version
            n_tightened += int((cache.version == len(cache.versions) - 1).sum()) - (search.n_refreshed - before)
        bkb.observe(X[[index]], bump(X[[index]]) + 0.3)
        growth = max(growth, model.growth)
    assert n_tightened > 0
    assert growth > 1.0


def test_compiled_widths_are_those_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    X = torch.as_tensor(np.random.default_rng(1).random((300, 2)))
    bkb = bo.BKB(bo.kernels.rbf(2, 0.2), noise=0.1, leverage_budget=1e9, seed=0)
    bkb.observe(X[:40], bump(X[:40]))
    kept = versions.Versions(bkb.model)
    for i in range(40, 50):
        bkb.observe(X[[i]], bump(X[[i]]) + 0.3)
        kept.begin(bkb.model)
    one = kept.widths(2.0)
    assert len(one) == 11
    # The norm of w_c - w_c is a rounding error in both.
    torch.testing.assert_close(one, kept.growths() * (2.0 + kept.drifts()), rtol=1e-10, atol=1e-10)
