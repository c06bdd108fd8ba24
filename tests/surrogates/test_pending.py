"""Pending points: counted in steps that depend on the list alone, and appended by the rule on exact residuals."""

import itertools
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bkbopt as bo
from bkbopt import BKB
from bkbopt.kernels import gram, matern52
from bkbopt.posterior.features import Nystrom
from bkbopt.posterior.gaussian_state import GaussianState
from bkbopt.surrogates.pending import STEPS, Counted, count_all, extension_by

KERNEL = matern52(3, [0.3, 0.4, 0.6], 2.0)
NOISE = 0.05


def points(n: int, seed: int) -> torch.Tensor:
    return torch.as_tensor(np.random.default_rng(seed).random((n, 3)))


def fitted(**options: object) -> BKB:
    gp = BKB(KERNEL, NOISE, **options)
    X = points(40, 0)
    gp.observe(X, torch.sin(5.0 * X[:, 0]))
    return gp


def unseen(S: torch.Tensor, X: torch.Tensor) -> np.ndarray:
    """k(x, x) less its projection on the span of S, by numpy's least squares, for every row of X."""
    K, k = gram(KERNEL, S).numpy(), KERNEL(S, X).numpy()
    return KERNEL.diag(X).numpy() - (k * np.linalg.lstsq(K, k, rcond=None)[0]).sum(0)


# -- steps -----------------------------------------------------------------------------------------------------------

#: Steps with the numbers that they took.
Steps = tuple[tuple[float, ...], ...]
NOTHING: Counted[Steps] = Counted(torch.zeros(0, 1).double(), ())


def as_list(numbers: list[float]) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)[:, None]


def steps_of(p: int) -> Steps:
    taken: Steps = ()

    def count(known: Steps, X: torch.Tensor) -> Steps:
        return (*known, tuple(X[:, 0].tolist()))

    taken = count_all((NOTHING,), torch.arange(float(p))[:, None].double(), count)[-1].value
    assert [x for step in taken for x in step] == list(range(p))
    return taken


def test_steps_are_large_as_long_as_there_are_so_many_points() -> None:
    assert [len(step) for step in steps_of(3)] == [1, 1, 1]
    assert [len(step) for step in steps_of(1000)] == [512, 128, 128, 128, 32, 32, 32, 8]
    assert [len(step) for step in steps_of(1066)] == [512, 512, 32, 8, 1, 1]
    assert all(large % small == 0 for large, small in itertools.pairwise(STEPS))


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 3)), min_size=1, max_size=8))
def test_cached_steps_equal_fresh_ones(lists: list[tuple[int, int]]) -> None:
    kept: tuple[Counted[Steps], ...] = (NOTHING,)
    for p, other in lists:
        numbers = [float(i) for i in range(p)]
        if p and other:
            numbers[(p * other) // 4] += 0.5  # the lists agree up to here
        counted = [0]

        def count(known: Steps, X: torch.Tensor, counted: list[int] = counted) -> Steps:
            counted[0] += len(X)
            return (*known, tuple(X[:, 0].tolist()))

        shared = max((len(one.X) for one in kept if torch.equal(one.X, as_list(numbers)[: len(one.X)])), default=0)
        kept = count_all(kept, as_list(numbers), count)
        assert [x for step in kept[-1].value for x in step] == numbers
        assert [len(step) for step in kept[-1].value] == [len(step) for step in steps_of(p)]
        assert kept[0] is NOTHING
        assert len(kept) <= 1 + len(STEPS)
        assert counted[0] >= p - shared


def test_a_list_that_grows_costs_its_last_step_only() -> None:
    kept: tuple[Counted[int], ...] = (Counted(torch.zeros(0, 1).double(), 0),)
    calls: list[int] = []
    X = torch.arange(200.0).double()[:, None]
    for p in range(1, 201):
        kept = count_all(kept, X[:p], lambda known, Y: calls.append(len(Y)) or known + len(Y))
        assert kept[-1].value == p
    assert len(calls) <= 2 * 200  # one step a point, and a few where a smaller size makes up a larger one
    assert calls[-1] == 8


# -- inducing points -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("room", "threshold"), [(None, 0.3), (None, 0.0), (7, 0.02), (1, 0.3), (1000, 10.0)])
def test_each_point_is_judged_by_what_those_before_it_leave_unseen(room: int | None, threshold: float) -> None:
    S, X = points(6, 1), points(50, 2)
    features = Nystrom.from_points(KERNEL, S)
    state = GaussianState.from_data(features(S), torch.ones(6).double(), torch.ones(6).double(), NOISE)
    expected: list[int] = []
    for i, x in enumerate(X):
        known = float(state.leverage(features(x[None]))[0])
        left = float(unseen(torch.cat([S, X[expected]]), x[None])[0])
        if len(expected) < (room or 50) and left / NOISE + known > threshold / NOISE:
            expected.append(i)
    more = extension_by(features, state, X, features(X), room, lambda leverage, *_: leverage > threshold / NOISE)
    if not expected:
        assert more is None
        return
    assert more is not None
    assert torch.equal(more.X, X[expected])
    if room is None and threshold == 0.3:
        assert 10 < len(expected) < 40  # the example leaves something out and takes something in
    R = features.residual_covariance(more.X, features(more.X))
    np.testing.assert_allclose(more.root @ R @ more.root.T, np.eye(len(expected)), rtol=0.0, atol=1e-9)


def test_a_point_is_asked_about_with_its_own_leverage_and_residual() -> None:
    S, X = points(6, 1), points(1, 2)
    features = Nystrom.from_points(KERNEL, S)
    state = GaussianState.from_data(features(S), torch.ones(6).double(), torch.ones(6).double(), NOISE)
    asked: list[tuple[float, float, torch.Tensor]] = []
    assert extension_by(features, state, X, features(X), None, lambda *a: bool(asked.append(a))) is None
    leverage, residual, x = asked[0]
    assert torch.equal(x, X)
    # The kernel matrix has a condition number of 1e2.
    assert residual == pytest.approx(float(unseen(S, X)[0]), rel=1e-9)
    assert leverage == pytest.approx(residual / NOISE + float(state.leverage(features(X))[0]), rel=1e-12)


@pytest.mark.parametrize("count", [3, 45, pytest.param(600, marks=pytest.mark.slow)])
def test_every_pending_point_that_a_draw_would_take_for_certain_is_appended(count: int) -> None:
    gp, pending = fitted(max_inducing=None), points(count, 3)
    before = len(gp.inducing)
    model = gp.fantasy(pending)
    assert isinstance(model.features, Nystrom)
    assert before < len(model.features.S) < before + count + (count == 3)
    assert len(gp.inducing) == before
    # With qbar = 2 a leverage above 1 makes the draw certain; what the points say of each other is left out here.
    Z = model.features(gp.observations.X)
    known = GaussianState.from_data(Z, gp.observations.n, gp.observations.s, NOISE)
    residual = unseen(model.features.S, pending)
    leverage = residual / NOISE + known.leverage(model.features(pending)).numpy()
    counted = model(pending)[1].numpy() / NOISE
    assert ((counted < 1.0 + 1e-9) | (leverage < 1.0 + 1e-9) | (residual < 1e-3 * NOISE)).all()


def test_points_beyond_max_inducing_are_not_appended() -> None:
    for options, size in (({"max_inducing": 50}, 50), ({"dictionary": "uniform", "max_inducing": 20}, 20)):
        model = fitted(**options).fantasy(points(200, 3))
        assert model.features.size == size


@pytest.mark.parametrize("count", [1, 5, 12])
def test_pending_points_beyond_the_budget_have_at_most_the_variance_of_one_value(count: int) -> None:
    """Of a full dictionary the residuals would stay, and a batch would have one point many times."""
    gp = fitted(max_inducing=50)
    X, pending = points(400, 6), points(count, 7)
    gp.observe(X, torch.sin(5.0 * X[:, 0]))
    full = gp.fantasy(pending)(pending)[1]
    beyond = gp.fantasy(pending, beyond_budget=True)
    assert gp.sampling_scale > 1.0
    assert (full > 2.0 * NOISE).any()
    assert (beyond(pending)[1] < NOISE * (1.0 + 1e-9)).all()


def test_the_room_beyond_the_budget_is_an_eighth_of_it() -> None:
    assert fitted(max_inducing=40).fantasy(points(200, 3), beyond_budget=True).features.size == 45


def test_fantasies_within_and_beyond_the_budget_do_not_depend_on_one_another() -> None:
    gp, alone, X = fitted(max_inducing=40), fitted(max_inducing=40), points(30, 3)
    gp.fantasy(X[:20])
    one = gp.fantasy(X, beyond_budget=True)
    two = alone.fantasy(X, beyond_budget=True)
    np.testing.assert_array_equal(one(X)[1], two(X)[1])
    np.testing.assert_array_equal(gp.fantasy(X)(X)[1], fitted(max_inducing=40).fantasy(X)(X)[1])


def test_near_duplicates_end_at_the_limit_of_rounding() -> None:
    gp = BKB(KERNEL, 1e-12, max_inducing=None)
    gp.observe(points(5, 0), torch.ones(5))
    x = points(1, 3)
    pending = torch.cat([x + 1e-9 * i for i in range(50)])
    model = gp.fantasy(pending)
    mean, variance = model(torch.cat([pending, points(20, 4)]))
    assert bool(torch.isfinite(mean).all())
    assert float(variance.min()) >= 0.0


def test_a_surrogate_is_pickled_after_the_slopes_of_many_points_were_taken() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "kind": ["a", "b"]}, seed=0, n_startup_trials=4)
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, (trial.params["x"] - 0.3) ** 2 + (trial.params["kind"] == "b"))
    opt.regret_certificate()
    surrogate, X = opt.surrogate, opt.observed()[0]
    assert any("_sloped" in vars(kept.value.collapsed) for kept in surrogate._kept)  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(surrogate))
    for one, other in zip(again.model(X), surrogate.model(X), strict=True):
        assert torch.equal(one, other)
