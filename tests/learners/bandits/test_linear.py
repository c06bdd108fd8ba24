"""The contract of every linear bandit; a new one joins by a line in `BANDITS`."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bkbopt import learners
from bkbopt._support import files as storage
from bkbopt.errors import ArgumentError, ArgumentTypeError, StateFileError
from bkbopt.kernels import rbf
from bkbopt.learners import CBRAP, SOFUL, FeatureBandit, LinearBandit, OnlineLearner
from bkbopt.learners.features import QuadratureFourier, Taylor
from bkbopt.posterior.features import RandomFourier
from tests.learners.streams import ARMS_D as D
from tests.learners.streams import arms_and_values
from tests.sweeps import slow_but, sweep


@pytest.mark.parametrize("policy", ["ucb", "thompson"])
def test_regret_is_far_below_that_of_chance(policy: str) -> None:
    arms, _, theta = arms_and_values(50)
    rng, values = np.random.default_rng(1), arms @ theta
    for bandit in (
        SOFUL(4, noise_std=0.1, norm=0.2, policy=policy),
        CBRAP(8, lam=0.1, beta=0.5, policy=policy),
    ):
        regret = 0.0
        for _ in range(300):
            i = bandit.select(arms)
            bandit.learn_one(arms[i], values[i] + 0.1 * rng.standard_normal())
            regret += values.max() - values[i]
        # The radius of the theorem explores much at so few rounds, and draws with it more than bounds do.
        assert regret < (0.35 if policy == "ucb" else 0.7) * 300 * (values.max() - values.mean()), type(bandit).__name__


#: One of each, as `make(**more)`; a new one joins by a line here.
BANDITS = {
    "SOFUL": lambda **more: SOFUL(3, noise_std=0.1, **more),
    "CBRAP": lambda **more: CBRAP(5, **more),
    "quadrature": lambda **more: FeatureBandit(QuadratureFourier.from_kernel(rbf(2, 1.0), 5), **more),
    "fourier": lambda **more: FeatureBandit(
        RandomFourier.from_kernel(rbf(D, 1.0), 20, np.random.default_rng(1)), **more
    ),
    "taylor": lambda **more: FeatureBandit(Taylor(D, 2), **more),
}


@pytest.fixture(params=BANDITS)
def make(request: pytest.FixtureRequest) -> Callable[..., LinearBandit]:
    return BANDITS[request.param]


@pytest.fixture(params=slow_but({"CBRAP"}, BANDITS))
def base(request: pytest.FixtureRequest) -> Callable[..., LinearBandit]:
    """For what the base class does alone: one speaks for all."""
    return BANDITS[request.param]


def dim(make: Callable[..., LinearBandit]) -> int:
    return 2 if make is BANDITS["quadrature"] else D


def told(make: Callable[..., LinearBandit], n: int = 30, **more: object) -> LinearBandit:
    bandit, (X, y, _) = make(**more), arms_and_values(n)
    for x, v in zip(X, y, strict=True):
        bandit.learn_one(x[: dim(make)], v)
    return bandit


def choices(bandit: LinearBandit, d: int, n: int = 20) -> list[int]:
    """What it selects, and learns, from now on."""
    X, y, _ = arms_and_values(50, seed=1)
    chosen = []
    for _ in range(n):
        chosen.append(bandit.select(X[:, :d]))
        bandit.learn_one(X[chosen[-1], :d], y[chosen[-1]])
    return chosen


def test_list_names_every_bandit() -> None:
    exported = {c for c in vars(learners).values() if isinstance(c, type) and issubclass(c, LinearBandit)}
    assert exported - {LinearBandit} == {type(make()) for make in BANDITS.values()}


def test_choices_are_the_largest_upper_bound_or_the_largest_value_of_a_draw(
    make: Callable[..., LinearBandit],
) -> None:
    X = arms_and_values(200, seed=1)[0][:, : dim(make)]
    bandit = told(make, 8)
    mean, width = bandit.bounds(X)
    assert bandit.select(X) == int(np.argmax(mean + width)) != int(np.argmax(mean))
    bandit, twin = (told(make, 8, policy="thompson") for _ in range(2))
    chosen = [bandit.select(X) for _ in range(30)]
    assert chosen == [int(np.argmax(twin._draw(X))) for _ in range(30)]
    assert len(set(chosen)) > 3


@pytest.mark.parametrize(("policy", "n"), sweep(["thompson", "ucb"], [30, 0, 1, 5]))
def test_saved_bandit_goes_on_as_if_nothing_had_happened(
    make: Callable[..., LinearBandit], policy: str, n: int, tmp_path: Path
) -> None:
    bandit = told(make, n, policy=policy)
    bandit.save(tmp_path / "bandit")
    loaded = LinearBandit.load(tmp_path / "bandit")
    assert type(loaded) is type(bandit)
    assert loaded.n_rounds_ == n
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "bandit").read_bytes()
    assert choices(loaded, dim(make)) == choices(bandit, dim(make))
    for a, b in zip(loaded.bounds(np.eye(dim(make))), bandit.bounds(np.eye(dim(make))), strict=True):
        np.testing.assert_array_equal(a, b)


def test_states_in_memory_are_copies(make: Callable[..., LinearBandit]) -> None:
    bandit = told(make)
    state, before = bandit.state_dict(), bandit.bounds(np.eye(dim(make)))
    for _ in range(2):
        choices(LinearBandit.from_state(state), dim(make))
    for a, b in zip(bandit.bounds(np.eye(dim(make))), before, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(LinearBandit.from_state(state).bounds(np.eye(dim(make)))[0], before[0])


def test_map_of_the_user_is_asked_for(tmp_path: Path) -> None:
    bandit = FeatureBandit(lambda X: X**2, policy="thompson")
    bandit.learn_one([1.0, 2.0], 3.0)
    bandit.save(tmp_path / "bandit")
    with pytest.raises(ArgumentError, match=r"^features: this state was saved with a feature map of yours; pass feat"):
        LinearBandit.load(tmp_path / "bandit")
    loaded = LinearBandit.load(tmp_path / "bandit", features=lambda X: X**2)
    assert [loaded.select(np.eye(2)) for _ in range(20)] == [bandit.select(np.eye(2)) for _ in range(20)]


def test_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    told(BANDITS["CBRAP"]).save(tmp_path / "bandit")
    with pytest.raises(StateFileError, match="expected the state of a SOFUL, got that of a CBRAP"):
        SOFUL.load(tmp_path / "bandit")
    with pytest.raises(StateFileError, match="expected a saved state of kind 'learner', got one of kind 'bandit'"):
        OnlineLearner.load(tmp_path / "bandit")
    storage.save(tmp_path / "bandit", {"class": "SOFUL", "params": {}}, kind="bandit")
    with pytest.raises(StateFileError, match="expected the state of a bandit to be a dict of class, params"):
        LinearBandit.load(tmp_path / "bandit")


BAD_ROUNDS = {
    "features": ([1.0] * 9, 1.0, ArgumentError, "X has 9 features, but .* is expecting"),
    "NaN": ([math.nan] * D, 1.0, ArgumentError, "X: expected finite values"),
    "words": (["a"] * D, 1.0, ArgumentError, "X: expected numbers"),
    "value": ([1.0] * D, math.nan, ArgumentError, "y: expected a finite number, got nan"),
    "text": ([1.0] * D, "1", ArgumentTypeError, "y: expected a finite number, got '1'"),
}


@pytest.mark.parametrize("bad", BAD_ROUNDS)
def test_bad_input_is_refused_and_changes_nothing(base: Callable[..., LinearBandit], bad: str, tmp_path: Path) -> None:
    bandit = told(base)
    bandit.save(tmp_path / "before")
    x, y, error, message = BAD_ROUNDS[bad]
    with pytest.raises(error, match=message):
        bandit.learn_one(x if bad == "features" else x[: dim(base)], y)
    if y == 1.0:
        with pytest.raises(error, match=message):
            bandit.select([x if bad == "features" else x[: dim(base)]])
    with pytest.raises(ArgumentError, match=r"X: found array with 0 sample"):
        bandit.select(np.zeros((0, dim(base))))
    bandit.save(tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


def test_other_policies_and_seeds_are_refused(base: Callable[..., LinearBandit]) -> None:
    with pytest.raises(ArgumentError, match=r'^policy: expected "ucb" or "thompson", got \'greedy\''):
        base(policy="greedy")
    with pytest.raises(ArgumentError, match=r"^seed: expected a whole number >= 0, got -1"):
        base(seed=-1)


@pytest.mark.parametrize("name", ["SOFUL", "CBRAP"])
def test_arm_and_value_whose_product_overflows_are_refused_and_change_nothing(name: str, tmp_path: Path) -> None:
    bandit, twin = BANDITS[name](), BANDITS[name]()
    row = np.eye(D)[0] + 0.5
    for _ in range(2):  # before the first arm, and after it
        with pytest.raises(ArgumentError, match=r"^x, y: expected an arm and a value whose product"):
            bandit.learn_one(1e139 * row, 1.7e308)
        for one in (bandit, twin):
            one.learn_one(row, 1.0)
            one.save(tmp_path / str(one is twin))
        assert (tmp_path / "True").read_bytes() == (tmp_path / "False").read_bytes()


def test_refused_first_arm_does_not_set_the_number_of_features() -> None:
    bandit = SOFUL(2)
    with pytest.raises(ArgumentError, match=r"^x: expected an arm of numbers up to 1e\+140"):
        bandit.learn_one([1e200, 0.0], 1.0)
    bandit.learn_one([1.0, 0.0, 0.0], 1.0)
    assert bandit.n_rounds_ == 1
