"""Fantasies: pending points counted for the variance, not for the mean, as a pure function of data and pending list."""

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bkbopt import BKB, ExactGP, FourierGP, LearnerSurrogate
from bkbopt.errors import NotReadyError
from bkbopt.kernels import CallableKernel, matern52
from bkbopt.posterior.features import Nystrom, RandomFourier
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.posterior.model import Model
from bkbopt.posterior.observations import Observations
from bkbopt.surrogates import Surrogate
from bkbopt.surrogates.epochs import Epochs

KERNEL, NOISE = matern52(2, 0.2), 0.05
MAKERS: dict[str, Callable[[], Surrogate]] = {
    "exact": lambda: ExactGP(KERNEL, NOISE),
    "bkb, all points": lambda: BKB(KERNEL, NOISE, qbar=1e12, max_inducing=None),
    "bkb": lambda: BKB(KERNEL, NOISE),
    "bkb, small": lambda: BKB(KERNEL, NOISE, max_inducing=10),
    "fourier": lambda: FourierGP(KERNEL, NOISE, n_frequencies=40),
    "pkawv": lambda: LearnerSurrogate(KERNEL, NOISE, learner="pkawv"),
}


def random_points(n: int, seed: int) -> Tensor:
    return torch.as_tensor(np.random.default_rng(seed).random((n, 2)))


@pytest.fixture(params=MAKERS)
def gp(request: pytest.FixtureRequest) -> Surrogate:
    """A surrogate that knows thirty points."""
    made: Surrogate = MAKERS[request.param]()
    X = random_points(30, 0)
    made.observe(X, torch.sin(5.0 * X[:, 0]))
    return made


XS = random_points(60, 1)
POOL = random_points(60, 2)


def close(a: Model, b: Model, tol: float = 1e-9) -> None:
    for one, two in zip(a(XS), b(XS), strict=True):
        np.testing.assert_allclose(one, two, rtol=0.0, atol=tol)


def parts(model: Model) -> list[Tensor]:
    """All that a model computes with."""
    features = model.features
    held = [features.omega] if isinstance(features, RandomFourier) else []
    held += [features.S, features.W] if isinstance(features, Nystrom) else []
    return [model.w, model.root, *held, *([] if model.V is None else [model.V])]


def same(a: Model, b: Model) -> bool:
    return all(torch.equal(one, two) for one, two in zip(parts(a), parts(b), strict=True))


# -- a pure function -------------------------------------------------------------------------------------------------

#: Rows of the pool: what is observed next, or a list that is pending.
OBSERVED = st.lists(st.integers(0, 59), min_size=1, max_size=3)
PENDING = st.one_of(
    st.lists(st.integers(0, 59), max_size=12),
    st.tuples(st.integers(0, 3), st.integers(0, 45)).map(lambda cut: list(range(cut[0], sum(cut)))),
)
HISTORIES = st.lists(st.tuples(st.booleans(), OBSERVED, PENDING), max_size=8)


def values(rows: list[int]) -> Tensor:
    return torch.sin(7.0 * POOL[rows][:, 0])


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=10)
@given(history=HISTORIES, last=PENDING)
def test_a_fantasy_is_the_same_whatever_was_asked_for_before(
    name: str, history: list[tuple[bool, list[int], list[int]]], last: list[int]
) -> None:
    gp, fresh = MAKERS[name](), MAKERS[name]()
    for one in (gp, fresh):
        one.observe(POOL[:3], values([0, 1, 2]))
    for observes, rows, pending in history:
        if observes:
            for one in (gp, fresh):
                one.observe(POOL[rows], values(rows))
        else:
            gp.fantasy(POOL[pending])
    assert same(gp.fantasy(POOL[last]), fresh.fantasy(POOL[last]))
    # Nothing of the surrogate was changed by it either.
    assert same(gp.model, fresh.model)
    assert torch.equal(gp.inducing, fresh.inducing)
    assert torch.equal(gp.fitted(), fresh.fitted())
    assert gp.effective_dimension() == fresh.effective_dimension()
    assert gp.rng.bit_generator.state == fresh.rng.bit_generator.state


def test_nothing_pending_is_the_model() -> None:
    for make in MAKERS.values():
        gp = make()
        with pytest.raises(NotReadyError):
            gp.fantasy(POOL[:0])
        gp.observe(POOL[:9], values(list(range(9))))
        assert same(gp.fantasy(POOL[:0]), gp.model)


def test_models_handed_out_stay_as_they_are(gp: Surrogate) -> None:
    models = [gp.model, gp.fantasy(POOL[:9]), gp.fantasy(POOL[:10])]
    before = [[part.clone() for part in parts(model)] for model in models]
    gp.fantasy(POOL[:40])
    gp.observe(POOL[5:20], values(list(range(5, 20))))
    gp.fantasy(POOL[:10])
    for model, kept in zip(models, before, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(parts(model), kept, strict=True))


def test_a_list_that_is_overwritten_later_leaves_no_trace(gp: Surrogate) -> None:
    expected = copy.deepcopy(gp).fantasy(POOL[20:33])
    pending = POOL[:12].clone()
    gp.fantasy(pending)
    pending.copy_(POOL[20:32])
    assert same(gp.fantasy(POOL[20:33]), expected)


def test_copies_go_on_alone(gp: Surrogate) -> None:
    gp.fantasy(POOL[:10])
    other = copy.deepcopy(gp)
    assert other.kernel is gp.kernel
    before = [part.clone() for part in parts(gp.fantasy(POOL[:11]))]
    other.observe(POOL[:3], [1.0, 2.0, 3.0])
    other.fantasy(POOL[:30])
    assert all(torch.equal(a, b) for a, b in zip(parts(gp.fantasy(POOL[:11])), before, strict=True))
    gp.observe(POOL[:3], [1.0, 2.0, 3.0])
    assert same(gp.model, other.model)
    assert same(gp.fantasy(POOL[:30]), other.fantasy(POOL[:30]))
    # One draws while the other does not look.
    assert gp.rng.bit_generator.state == other.rng.bit_generator.state
    assert gp.rng is not other.rng


# -- what it equals --------------------------------------------------------------------------------------------------


def regression(model: Model, X: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of linear regression on the features of `model`, with its residual on top, at XS."""
    Z, Zs = model.features(X), model.features(XS)
    V = Z.T @ Z + NOISE * torch.eye(Z.shape[1], dtype=torch.float64)
    variance = model.features.residual(XS, Zs) + NOISE * (Zs * torch.linalg.solve(V, Zs.T).T).sum(1)
    return Zs @ torch.linalg.solve(V, Z.T @ y), variance


@pytest.mark.parametrize("count", [1, 4, 8, 45])
@pytest.mark.parametrize("name", [name for name in MAKERS if name != "exact"])
def test_pending_points_are_observations_at_the_mean(name: str, count: int) -> None:
    gp, X = MAKERS[name](), random_points(30, 0)
    y = torch.sin(5.0 * X[:, 0])
    gp.observe(X, y)
    model, pending = gp.fantasy(POOL[:count]), POOL[:count]
    mean, _ = regression(model, X, y)
    if name != "pkawv":  # whose mean is not that of the features
        np.testing.assert_allclose(model(XS)[0], mean, rtol=0.0, atol=1e-9)
    imagined = model.features(pending) @ model.w
    _, variance = regression(model, torch.cat([X, pending]), torch.cat([y, imagined]))
    np.testing.assert_allclose(model(XS)[1], variance, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("count", [1, 8, 45, 130])
def test_with_all_points_as_dictionary_they_are_those_of_the_exact_process(count: int) -> None:
    X, pending = random_points(30, 0), random_points(count, 3)
    y = torch.sin(5.0 * X[:, 0])
    kernel = matern52(2, 0.06)  # so short that no point lies in the others' span but for 1e-3 of the noise
    exact, told = ExactGP(kernel, NOISE), ExactGP(kernel, NOISE)
    bkb = BKB(kernel, NOISE, qbar=1e12, max_inducing=None)
    for gp in (exact, bkb):
        gp.observe(X, y)
    told.observe(torch.cat([X, pending]), torch.cat([y, exact.model(pending)[0]]))
    close(exact.fantasy(pending), told.model, 1e-10)
    close(bkb.fantasy(pending), told.model, 1e-10)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 43])
@pytest.mark.parametrize("max_inducing", [6, 40])
def test_a_collapsed_predictor_that_is_updated_is_the_one_computed_anew(max_inducing: int, count: int) -> None:
    bkb = BKB(matern52(2, 0.3), noise=0.05, max_inducing=max_inducing)
    bkb.observe(random_points(30, 0), np.sin(np.arange(30.0)))
    pending, X = random_points(count, 1), random_points(50, 2)
    for i in range(count):
        updated = bkb.fantasy(pending[: i + 1])
    assert updated.collapse() is updated.collapse()
    anew = replace(updated, collapsed=None)
    for one, other in zip(updated.collapse()(X), anew.collapse()(X), strict=True):
        assert torch.allclose(one, other, rtol=0.0, atol=1e-12)  # rounding of sums of k(x, x) = 1


def test_they_leave_the_mean_and_shrink_the_variance_step_by_step(gp: Surrogate) -> None:
    for p in range(1, 12):
        before, after = gp.fantasy(POOL[: p - 1]), gp.fantasy(POOL[:p])
        # Without a further inducing point the mean stays; with one it moves by what that point says about the data.
        if before.features is after.features:
            np.testing.assert_array_equal(before.w, after.w)
        x = POOL[p - 1 : p]
        # With the budget full the dictionary hardly sees a new point, and its variance falls by little.
        part = 1.0 if getattr(gp, "max_inducing", None) == 10 else 0.9
        assert float(after(x)[1]) < part * float(before(x)[1])


def test_the_same_point_pending_twice_counts_twice(gp: Surrogate) -> None:
    x = POOL[:1]
    prior = float(gp.model(x)[1])
    once, twice = (float(gp.fantasy(x.repeat(k, 1))(x)[1]) for k in (1, 2))
    assert twice < once < prior
    # Where the dictionary covers the point, each evaluation adds 1 / lam to the precision.
    if not isinstance(gp, BKB) or gp.qbar > 1e6:
        assert 1.0 / once == pytest.approx(1.0 / prior + 1.0 / NOISE, rel=1e-3)
        assert 1.0 / twice == pytest.approx(1.0 / prior + 2.0 / NOISE, rel=1e-3)


@pytest.mark.parametrize("pending", [torch.zeros(0, 2).double(), torch.zeros(12, 2).double()])
def test_a_kernel_is_never_asked_about_no_points(pending: Tensor) -> None:
    def kernel(A: Tensor, B: Tensor) -> Tensor:
        assert len(A)
        assert len(B)
        return KERNEL(A, B)

    for gp in (BKB(kernel, NOISE), ExactGP(kernel, NOISE)):
        gp.observe(torch.zeros(30, 2).double(), torch.ones(30))
        gp.fantasy(pending)
        assert len(gp.inducing) == 1


def test_objects_are_compared_by_the_kernel() -> None:
    words = ["a", "ab", "abc", "b", "bc", "c"]
    gp = BKB(CallableKernel(lambda A, B: [[float(len(set(a) & set(b))) for b in B] for a in A]), NOISE)
    gp.bind_objects(words)
    gp.observe([[0.0], [2.0]], [1.0, 2.0])
    pending = torch.tensor([[3.0], [5.0]], dtype=torch.float64)
    assert float(gp.fantasy(pending)(pending)[1].max()) < 0.05


# -- epochs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=10)
@given(history=HISTORIES)
def test_within_an_epoch_features_are_appended_and_variances_grow_as_said_at_most(
    name: str, history: list[tuple[bool, list[int], list[int]]]
) -> None:
    # What the lazy search over a pool relies on.
    gp = MAKERS[name]()
    gp.observe(POOL[:3], values([0, 1, 2]))
    latest: dict[int, Model] = {}
    for observes, rows, pending in history:
        if observes:
            gp.observe(POOL[rows], values(rows), [0.5] * len(rows) if name == "exact" else None)
        shown = [gp.model] if len(pending) == 5 else [gp.fantasy(POOL[pending])]
        if len(rows) == 2:
            shown.append(gp.posterior(POOL).model)
        for model in shown:
            before = latest.get(model.epoch)
            latest[model.epoch] = model
            if before is None or model.V is None:
                continue
            assert before.V is not None
            Z, old, k = model.features(XS), before.features(XS), len(model.w) - len(before.w)
            # Products with more columns round differently: to the last digits of k(x, x) = 1.
            np.testing.assert_allclose(Z[:, : old.shape[1]], old, rtol=0.0, atol=1e-9)
            growth = model.growth / before.growth
            assert growth >= 1.0 if k else growth == 1.0
            V = torch.block_diag(before.V, model.lam * torch.eye(k, dtype=torch.float64))
            assert float(torch.linalg.eigvalsh(growth**2 * model.V - V)[0]) > -1e-9 * float(model.V.diagonal().max())
            # What carries a bound over: mean and standard deviation of any point, by Cauchy-Schwarz.
            (mean, variance), (mean_old, variance_old) = model(XS), before(XS)
            D = model.w - torch.nn.functional.pad(before.w, (0, k))
            drift = growth * (variance_old * (D @ model.V @ D) / model.lam).sqrt()
            assert bool((variance <= growth**2 * variance_old + 1e-9).all())
            assert bool(((mean - mean_old).abs() <= drift + 1e-9).all())


def test_a_feature_with_large_components_of_old_data_raises_variances_by_at_most_the_growth() -> None:
    # Twenty values at a point that the dictionary hardly sees, none of which is worth appending; then one that is.
    gp = BKB(matern52(1, 0.3), 0.1, leverage_budget=1e9, max_inducing=None)
    line = torch.linspace(0.0, 1.0, 200, dtype=torch.float64)[:, None]
    gp.observe([[0.0]], [0.3], [100.0])
    for _ in range(20):
        gp.observe([[0.05]], [0.4], [0.5])
    before = gp.model
    gp.observe([[0.3]], [0.5], [1e-3])
    gp.observe([[0.3]], [0.5], [100.0])
    after = gp.model
    assert len(after.w) == len(before.w) + 1
    raised = float((after(line)[1] / before(line)[1]).max()) ** 0.5
    assert after.epoch == before.epoch
    assert 1.001 < raised <= after.growth / before.growth


@pytest.mark.parametrize("other", ["larger", "turned"])
def test_models_of_other_features_are_of_two_epochs_though_their_inducing_points_agree(other: str) -> None:
    seen, epochs = Observations(2), Epochs()
    seen.add(POOL[:20], values(list(range(20))))
    small, large = (Nystrom.from_points(KERNEL, POOL[:m]) for m in (8, 9))
    turned = Nystrom(KERNEL, small.S, small.W.flip(1))
    models = []
    for features in (small, {"larger": large, "turned": turned}[other]):
        state = GaussianState.from_data(features(seen.X), seen.n, seen.s, NOISE)
        model = Model(features, state.w, state.root, NOISE, V=state.V)
        models.append(epochs.place(model, Counter(), seen))
    assert models[0].epoch != models[1].epoch


@pytest.mark.parametrize("name", ["bkb, small", "fourier"])
def test_a_batch_is_one_epoch_and_taking_a_point_back_begins_another(name: str) -> None:
    gp = MAKERS[name]()
    gp.observe(POOL[:30], values(list(range(30))))
    gp.observe(POOL[:30], values(list(range(30))))
    epochs = [gp.model.epoch, *(gp.fantasy(POOL[30 : 30 + p]).epoch for p in range(4))]
    assert len(set(epochs)) == 1
    gp.posterior(XS)
    gp.fitted()
    draws, before = getattr(gp, "n_draws", 0), gp.fantasy(POOL[30:33])
    gp.observe(POOL[30:31], [0.3])
    after = gp.fantasy(POOL[31:33])
    assert getattr(gp, "n_draws", 0) == draws
    assert before.epoch == after.epoch == epochs[0]
    np.testing.assert_allclose(after(XS)[1], before(XS)[1], rtol=0.0, atol=1e-12)
    assert gp.fantasy(POOL[31:32]).epoch > epochs[0]


def test_half_an_observation_of_a_pending_point_begins_a_new_epoch() -> None:
    gp = MAKERS["fourier"]()  # whose features stay
    gp.observe(POOL[:30], values(list(range(30))))
    for weight, epochs in ((1.0, 1), (0.5, 2)):
        before = gp.fantasy(POOL[30:31])
        gp.observe(POOL[30:31], [0.3], [weight])
        assert len({before.epoch, gp.fantasy(POOL[:0]).epoch}) == epochs


def test_other_data_begin_another_epoch(gp: Surrogate) -> None:
    before = gp.model.epoch
    gp.rebuild(gp.observations, gp.kernel, gp.noise)
    assert gp.model.epoch != before
    assert copy.deepcopy(gp).model.epoch not in (before, gp.model.epoch)
