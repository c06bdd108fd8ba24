"""Learners as surrogates: their own mean, a calibrated variance, and their limits."""

from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt import ExactGP, LearnerSurrogate
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.kernels import CallableKernel, matern52, rbf
from bkbopt.learners import BOGD, FOGD, FORKS, LOSSES, NOGD, PKAWV, Forgetron, ProsNKONS
from bkbopt.learners.as_surrogate.recipes import RECIPES
from bkbopt.learners.as_surrogate.spans import project
from bkbopt.optimizer.arguments.searching import as_surrogate
from bkbopt.posterior.observations import Observations

KERNEL, NOISE = matern52(2, 0.4, 2.0), 0.05
SMALL = {"budget": 5, "sketch": 10, "sample": 8, "rank": 5}
EXACT = ("krr", "kernel-awv")


def data(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.sin(5.0 * X[:, 0]) + NOISE**0.5 * rng.standard_normal(n)


XS = np.random.default_rng(9).random((30, 2))


def told(learner: str, kernel: Any = KERNEL, noise: float = NOISE, **more: Any) -> LearnerSurrogate:
    gp = LearnerSurrogate(kernel, noise, learner=learner, **more)
    gp.observe(*data())
    return gp


# -- the mean --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
def test_mean_is_that_of_the_learner_run_on_the_same_stream(name: str) -> None:
    settings = {"clip": 100.0} if name == "forks" or "kons" in name else {}
    gp = told(name, settings=settings)
    X, y = data()
    gp.observe(X[:1], y[:1])  # one more value, learnt one by one
    unit, prior = 2.0, 2.0  # the power of two above the largest value, and k(x, x)
    twin = RECIPES[name].build(matern52(2, 0.4), NOISE / prior, settings, int(np.random.default_rng(0).integers(2**31)))
    twin.partial_fit(np.vstack([X, X[:1]]), np.append(y, y[0]) / unit)
    predictions = twin.predict(XS)
    if name == "kernel-awv":  # its predictions are shrunk by 1 + h
        predictions = RECIPES["krr"].build(matern52(2, 0.4), NOISE / prior, {}, 0).fit(X, y / unit).predict(XS)
        gp = told(name)
    # 1e-9: the weights go through an inverse root whose condition is that of the kernel matrix.
    np.testing.assert_allclose(gp.posterior(XS).mean, unit * predictions, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("name", EXACT)
def test_exact_ridge_regression_is_the_exact_process(name: str) -> None:
    gp, exact = told(name), ExactGP(KERNEL, NOISE)
    exact.observe(*data())
    a, b = gp.posterior(XS), exact.posterior(XS)
    np.testing.assert_allclose(a.mean, b.mean, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(a.variance, b.variance, rtol=0.0, atol=1e-9)
    assert gp.effective_dimension() == pytest.approx(exact.effective_dimension(), rel=1e-9)


def test_pkawv_with_all_points_in_its_dictionary_is_the_exact_process() -> None:
    gp, exact = told("pkawv", settings={"oversampling": 1e12}), ExactGP(KERNEL, NOISE)
    exact.observe(*data())
    assert len(gp.inducing) == 60
    np.testing.assert_allclose(gp.posterior(XS).mean, exact.posterior(XS).mean, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(gp.posterior(XS).variance, exact.posterior(XS).variance, rtol=0.0, atol=1e-9)


def test_pkawv_mean_is_ridge_regression_on_its_own_features() -> None:
    gp = told("pkawv")
    assert 5 < len(gp.inducing) < 60
    # The Gaussian state has it too, from its own sums: V^-1 Z^T y.
    np.testing.assert_allclose(gp.model.w, gp._span.state.w, rtol=0.0, atol=1e-9)  # type: ignore[union-attr]


def test_one_point_is_learnt_as_a_gaussian_process_learns_it() -> None:
    for name in ("pkawv", "krr", "kernel-awv", "kogd", "bogd", "nogd", "forks", "skegd"):
        gp = LearnerSurrogate(KERNEL, NOISE, learner=name)
        gp.observe([[0.5, 0.5]], [3.0])
        assert float(gp.fitted()[0]) == pytest.approx(3.0 * 2.0 / (2.0 + NOISE), rel=1e-12), name


def test_one_point_is_learnt_by_a_newton_step_but_for_what_its_slope_adds() -> None:
    gp = LearnerSurrogate(KERNEL, NOISE, learner="kons")
    gp.observe([[0.5, 0.5]], [3.0])
    y, nu = 3.0 / 4.0, NOISE / 2.0
    # u = 2 y phi / A with A = 2 (1 + nu) + eta (2 y)^2, and eta = 1/8.
    assert float(gp.fitted()[0]) == pytest.approx(4.0 * 2.0 * y / (2.0 * (1.0 + nu) + 0.5 * y**2), rel=1e-12)


# -- the variance ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*RECIPES, "forks, second stage"])
def test_variance_is_that_of_all_points_where_they_are_seen_and_the_prior_where_nothing_is(name: str) -> None:
    gp = told(name) if name in RECIPES else told("forks", settings=SMALL)
    exact = ExactGP(KERNEL, NOISE)
    exact.observe(*data())
    X = np.vstack([XS, data()[0], [[40.0, -3.0]]])
    ratio = gp.posterior(X).variance / exact.posterior(X).variance
    assert float(gp.posterior(X).variance.max()) <= 2.0 + 1e-9
    assert float(ratio[-1]) == pytest.approx(1.0, abs=1e-9)
    if name in ("pkawv", "prosnkons"):  # what KORS allows at eps = 1/2: a factor of (1 + eps) / (1 - eps)
        assert 1.0 / 3.0 <= float(ratio.min()) <= float(ratio.max()) <= 3.0
    elif name == "forks, second stage":  # five functions see little, and most of the prior is left
        assert float(ratio.max()) > 10.0
    else:  # the span is that of all points
        np.testing.assert_allclose(ratio, 1.0, rtol=0.0, atol=1e-7)


def test_features_of_forks_are_replaced_by_the_projection_on_their_span() -> None:
    gp = told("forks", settings=SMALL)
    learner: Any = gp._learner
    assert learner.switched_at_ is not None
    own, features = learner.feature_map_, gp.model.features
    T = torch.as_tensor(XS)
    # The same functions: each of the learner's is a combination of the projection's, and as many.
    assert features.size == own.size == 5
    Z, P = own(T), features(T)
    np.testing.assert_allclose(P @ torch.linalg.lstsq(P, Z).solution, Z, rtol=0.0, atol=1e-8)
    S = features.S
    gram = features.W.T @ KERNEL(S, S) @ features.W
    np.testing.assert_allclose(gram, np.eye(5), rtol=0.0, atol=1e-9)
    # The sketch itself is no projection: somewhere its square exceeds the prior variance, or falls short at its points.
    assert float((P * P).sum(1).max()) <= 2.0 + 1e-9


def test_projection_on_the_span_of_some_functions_has_an_exact_residual() -> None:
    rng = np.random.default_rng(3)
    S, B = torch.as_tensor(rng.random((12, 2))), torch.as_tensor(rng.standard_normal((12, 4)))
    features = project(KERNEL, S, B)
    K, x = KERNEL(S, S), torch.as_tensor(XS)
    k = KERNEL(x, S) @ B
    explained = (k * torch.linalg.solve(B.T @ K @ B, k.T).T).sum(1)
    Z = features(x)
    np.testing.assert_allclose(features.residual(x, Z), 2.0 - explained, rtol=0.0, atol=1e-10)
    assert project(KERNEL, S, torch.cat([B, B], 1)).size == 4  # a function twice is one direction


def test_pending_points_widen_the_span_for_as_long_as_they_are_pending() -> None:
    gp = told("forks", settings=SMALL)
    pending = torch.as_tensor(XS[:4])
    before, size = gp.posterior(XS), len(gp.inducing)
    variance = gp.fantasy(pending)(pending)[1]
    # Each counts as one observation at least: 1/variance >= 1/before + 1/lam.
    bound = 1.0 / (1.0 / before.variance[:4] + 1.0 / NOISE)
    assert bool((variance <= bound + 1e-3 * NOISE).all())
    assert len(gp.inducing) == size
    assert torch.equal(gp.posterior(XS).variance, before.variance)


# -- going on --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pkawv", "kons", "forks", "nogd"])
def test_one_by_one_and_from_scratch_are_one_posterior(name: str) -> None:
    X, y = data()
    gp = LearnerSurrogate(KERNEL, NOISE, learner=name)
    for x, v in zip(X, y, strict=True):
        gp.observe(x[None], [v])
    posterior = gp.posterior(XS)
    mean, variance = posterior.mean.clone(), posterior.variance.clone()
    gp._follow(scratch=True)
    gp._kept = ()  # what a surrogate keeps between observations
    again = gp.posterior(XS)
    # Gram-Schmidt steps against one eigendecomposition.
    np.testing.assert_allclose(mean, again.mean, rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(variance, again.variance, rtol=0.0, atol=1e-8)


def test_larger_values_begin_anew_in_larger_units() -> None:
    gp = LearnerSurrogate(KERNEL, NOISE, learner="kons")
    X, y = data()
    gp.observe(X, y)
    assert gp._unit == 2.0
    gp.observe([[0.5, 0.5]], [100.0])
    assert gp._unit == 128.0
    assert gp._learner is not None
    assert gp._learner.n_rounds_ == 61


def test_kernels_that_are_not_stationary_begin_anew_a_few_times_only() -> None:
    def linear(A: Any, B: Any) -> Any:
        return A @ B.T

    gp, begun = LearnerSurrogate(linear, 1e-2, learner="pkawv"), 0
    for i in range(1, 101):
        before = gp._learner
        gp.observe([[0.1 * i, 0.0]], [0.2 * i])
        begun += gp._learner is not before
    assert begun <= 22  # k(x, x) grows by 1e4, which is 14 doublings, and the values by 1e2, which is 7
    # A ridge of 1e-2 on slopes of which sum x^2 = 3383.5.
    assert float(gp.posterior([[1.0, 0.0]]).mean[0]) == pytest.approx(2.0 * 3383.5 / (3383.5 + 1e-2), rel=1e-6)


def test_rebuild_counts_every_evaluation() -> None:
    X, y = data(20)
    obs = Observations(2)
    for _ in range(3):
        obs.add(torch.as_tensor(X), torch.as_tensor(y))
    gp, exact = LearnerSurrogate(KERNEL, NOISE, learner="krr"), ExactGP(KERNEL, NOISE)
    for one in (gp, exact):
        one.rebuild(obs, rbf(2, 0.3), 0.2)
    np.testing.assert_allclose(gp.posterior(XS).mean, exact.posterior(XS).mean, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(gp.posterior(XS).variance, exact.posterior(XS).variance, rtol=0.0, atol=1e-9)


def test_a_point_with_a_tiny_weight_alone_is_not_learnt() -> None:
    X, y = (torch.as_tensor(part) for part in data())
    weighted, others = Observations(2), Observations(2)
    weighted.add(X, y + 9.0 * (torch.arange(60) == 7), torch.where(torch.arange(60) == 7, 0.01, 1.0))
    others.add(X[torch.arange(60) != 7], y[torch.arange(60) != 7])
    means = []
    for observed in (weighted, others):
        gp = LearnerSurrogate(KERNEL, NOISE, learner="krr")
        gp.rebuild(observed, KERNEL, NOISE)
        means.append(gp.posterior(XS).mean)
    np.testing.assert_allclose(*means, rtol=0.0, atol=1e-9)


def test_learners_begin_anew_with_the_points_in_another_order() -> None:
    gp = told("kons")
    rows = gp._learner._X.rows.copy()  # type: ignore[union-attr]
    gp.rebuild(gp.observations, KERNEL, NOISE)
    again = gp._learner._X.rows  # type: ignore[union-attr]
    # In the order of search points of one region would come together.
    assert not np.array_equal(again, rows)
    np.testing.assert_array_equal(np.unique(again, axis=0), np.unique(rows, axis=0))


def test_log_growth_bounds_the_information_gain_of_the_kernel() -> None:
    gp = told("bogd", settings={"budget": 4})
    K = KERNEL(*(torch.as_tensor(data()[0]),) * 2)
    true = float(torch.linalg.slogdet(torch.eye(60, dtype=torch.float64) + K / NOISE).logabsdet)
    assert gp.log_growth >= true
    assert told("krr").log_growth == pytest.approx(true, rel=1e-9)


@pytest.mark.parametrize("learner", ["pkawv", "kons", "forks"])
def test_values_are_learnt_once_though_an_interrupt_ended_the_first_try(
    learner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data()
    gp, twin = (LearnerSurrogate(KERNEL, NOISE, learner=learner) for _ in range(2))
    gp.observe(X[:50], y[:50])

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LearnerSurrogate, "_follow", stopped)
        with pytest.raises(KeyboardInterrupt):
            gp.observe(X[50:52], y[50:52])
    gp.observe(X[50:52], y[50:52])
    twin.observe(X[:50], y[:50])
    twin.observe(X[50:52], y[50:52])
    torch.testing.assert_close(gp.posterior(XS).mean, twin.posterior(XS).mean, rtol=0.0, atol=0.0)


# -- names and instances ---------------------------------------------------------------------------------------------


def test_the_optimizer_takes_every_learner_by_its_name() -> None:
    for name in RECIPES:
        surrogate = as_surrogate(name, fit=True)
        assert isinstance(surrogate, LearnerSurrogate)
        assert surrogate.options() == LearnerSurrogate(learner=name).options()
    with pytest.raises(ArgumentError, match=r"^surrogate: expected one of bkb, exact, .*forks.*, got 'gp'"):
        bo.Optimizer([(0.0, 1.0)], surrogate="gp")


def test_learners_are_taken_as_they_are_set() -> None:
    gp = as_surrogate(FORKS(loss="squared", budget=20, rank=5), fit=True)
    assert isinstance(gp, LearnerSurrogate)
    assert (gp.learner, gp.settings) == ("forks", {"loss": "squared", "budget": 20, "rank": 5})
    kernel = rbf(1, 0.3)
    assert LearnerSurrogate(learner=PKAWV(kernel=kernel)).kernel is kernel
    assert LearnerSurrogate(learner=ProsNKONS(clip=2.0), settings={"clip": 3.0}).settings == {"clip": 3.0}


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"learner": "gp"}, ArgumentError, r"^learner: expected one of pkawv, .*, got 'gp'"),
    ({"learner": 3}, ArgumentTypeError, r"^learner: expected a name or a learner of bkbopt.learners, got int"),
    ({"learner": Forgetron()}, ArgumentError, r"^learner: expected one that learns numbers.*got Forgetron"),
    ({"learner": FOGD()}, ArgumentError, r"^learner: expected one that learns numbers.*got FOGD"),
    ({"learner": PKAWV().fit([[0.0]], [1.0])}, ArgumentError, r"^learner: expected one that has learnt nothing"),
    ({"learner": PKAWV(lengthscale=2.0)}, ArgumentError, r"^lengthscale: give the surrogate's kernel"),
    ({"learner": NOGD(loss="logistic")}, ArgumentError, r"^settings: expected a loss of numbers.*got 'logistic'"),
    ({"settings": {"ridge": 1.0}}, ArgumentError, r"^settings: expected parameters among .*lam.*, got 'ridge'"),
    ({"settings": {"kernel": None}}, ArgumentError, r"^settings: expected parameters among"),
]


@pytest.mark.parametrize(("options", "error", "message"), REFUSED, ids=[m for *_, m in REFUSED])
def test_invalid_options_of_a_surrogate_are_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        LearnerSurrogate(KERNEL, NOISE, **options)


@pytest.mark.parametrize(("given", "got"), [("forks", "'forks'"), (FORKS(), "a FORKS")])
def test_a_learner_in_the_place_of_the_kernel_is_named(given: Any, got: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"^kernel: expected a kernel, got {got}; pass a learner as learner="):
        LearnerSurrogate(given)


def test_parameters_that_the_learner_refuses_leave_the_surrogate_empty() -> None:
    gp = LearnerSurrogate(KERNEL, NOISE, learner="nogd", settings={"budget": -1})
    with pytest.raises(ArgumentError, match="budget: expected a whole number >= 1, got -1"):
        gp.observe(*data())
    assert len(gp.observations) == 0


def test_kernel_that_raises_an_error_of_its_own_leaves_all_as_it_was() -> None:
    calls = [10**9]

    def kernel(A: Any, B: Any) -> Any:
        calls[0] -= 1
        if calls[0] < 0:
            raise ZeroDivisionError("the kernel's own")
        return KERNEL(A, B)

    gp = told("kons", kernel=kernel)
    before = gp.posterior(XS).mean.clone()
    for allowed in range(6):
        calls[0] = allowed
        with pytest.raises(ZeroDivisionError):
            gp.observe(np.vstack([XS] * 5), np.ones(150))
        calls[0] = 10**9
        assert len(gp.observations) == 60
        assert torch.equal(gp.posterior(XS).mean, before)
    gp.observe(XS, np.ones(30))
    assert gp._learner is not None
    assert gp._learner.n_rounds_ == 90


def test_recipes_name_all_learners_of_numbers_but_those_without_an_expansion() -> None:
    regressions = [name for name, loss in LOSSES.items() if loss.task == "regression"]
    assert regressions == ["squared", "absolute"]
    assert isinstance(RECIPES["bogd"].build(KERNEL, 0.1, {}, 0), BOGD)
    with pytest.raises(ArgumentError, match="hypothesis is an expansion"):
        FOGD(loss="squared").fit([[0.0], [1.0]], [0.0, 1.0]).hypothesis()
    with pytest.raises(ArgumentError, match="hypothesis is an expansion"):
        PKAWV(features="taylor").fit([[0.0], [1.0]], [0.0, 1.0]).hypothesis()


def test_inducing_points_of_the_user_serve_as_well() -> None:
    S = np.random.default_rng(4).random((15, 2))
    gp = told("pkawv", settings={"features": S})
    assert len(gp.inducing) == 15
    assert LearnerSurrogate(learner=PKAWV(features=S)).settings == {"features": S}
    reference = told("pkawv", kernel=CallableKernel(KERNEL), settings={"features": S})
    np.testing.assert_allclose(gp.posterior(XS).mean, reference.posterior(XS).mean, rtol=0.0, atol=1e-9)


def test_constraints_are_modelled_by_bkb_whose_variance_contains_the_error_of_its_mean() -> None:
    """KONS learns the limit in one pass, and took points on its wrong side for feasible with probability one."""
    opt = bo.Optimizer({"x": (0.0, 1.0)}, surrogate="kons", constraints=["c"], seed=0, direction="maximize")
    for x in np.random.default_rng(0).random(25):
        opt.tell({"x": x}, -((x - 0.3) ** 2), constraints={"c": 0.2 - x})
    mean, std = opt.predict_constraints([{"x": x} for x in (0.1, 0.5)])["c"]
    np.testing.assert_allclose(mean, [0.1, -0.3], atol=1e-3)
    assert (std < 1e-2).all()
    np.testing.assert_allclose(opt.feasibility([{"x": 0.1}, {"x": 0.5}]), [0.0, 1.0], atol=1e-6)
    kernel = rbf(2, lengthscale=0.3)
    assert told("kons", kernel).of_limits().kernel is kernel
