"""Ridge leverage score sampling: the probabilities asked for, within the budget."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bkbopt.surrogates.sampling import draw_rls, draw_uniform


def shrinking(leverage: Tensor) -> object:
    """scale -> leverages of points that share nothing: l / (l + scale) with l the prior's odds."""
    odds = leverage / (1.0 - leverage)
    return lambda scale: odds / (odds + scale)


def test_points_whose_probability_reaches_one_are_always_in() -> None:
    leverage = torch.tensor([0.5, 0.1, 0.01], dtype=torch.float64)
    n = torch.tensor([1.0, 5.0, 100.0], dtype=torch.float64)
    for seed in range(50):
        draw = draw_rls(lambda scale: leverage, n, 2.0, None, np.random.default_rng(seed))
        assert draw.rows.tolist() == [0, 1, 2]
        assert draw.scale == 1.0


def test_points_are_drawn_as_often_as_their_probability_says() -> None:
    leverage = torch.tensor([0.05, 0.2, 0.1, 0.0], dtype=torch.float64)
    n = torch.tensor([1.0, 1.0, 4.0, 9.0], dtype=torch.float64)
    rng = np.random.default_rng(0)
    hits = np.zeros(4)
    for _ in range(4000):
        hits[draw_rls(lambda scale: leverage, n, 2.0, None, rng).rows.numpy()] += 1
    p = np.array([0.1, 0.4, 0.8, 0.0])
    # Five standard deviations of a binomial share.
    np.testing.assert_array_less(np.abs(hits / 4000 - p), 5.0 * np.sqrt(p * (1 - p) / 4000) + 1e-12)


def test_points_are_drawn_as_often_as_a_coin_for_each_pull_shows() -> None:
    # p = 0.3, and pulls enough that one coin a point would be sure of all but the first.
    leverage = torch.tensor([0.15, 0.15, 0.05, 0.0, 0.6, 0.3], dtype=torch.float64)
    pulls = torch.tensor([1.0, 4.0, 20.0, 9.0, 2.0, 1.0], dtype=torch.float64)
    # The last but one has leverages beyond 1 / qbar; the last one evaluation of weight 1 / 2.
    n = torch.tensor([1.0, 4.0, 20.0, 9.0, 2.0, 0.5], dtype=torch.float64)
    rng = np.random.default_rng(0)
    hits = np.zeros(6)
    for _ in range(4000):
        hits[draw_rls(lambda scale: leverage, n, 2.0, None, rng, pulls).rows.numpy()] += 1
    p = np.array([0.3, 1.0 - 0.7**4, 1.0 - 0.9**20, 0.0, 1.0, 0.3])
    # Five standard deviations of a binomial share: for six shares one false alarm in 300,000 generators.
    np.testing.assert_array_less(np.abs(hits / 4000 - p), 5.0 * np.sqrt(p * (1 - p) / 4000) + 1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 100), st.floats(1.0, 1000.0))
def test_a_coin_a_point_includes_all_points_of_a_coin_a_pull_and_the_same_at_probability_one(
    seed: int, u: int, qbar: float
) -> None:
    rng = np.random.default_rng(seed)
    leverage = torch.as_tensor(10.0 ** rng.uniform(-6.0, 0.0, u))
    n = torch.as_tensor(rng.integers(1, 50, u).astype(float))
    arm, pull = (
        set(draw_rls(lambda scale: leverage, n, qbar, None, np.random.default_rng(seed), pulls).rows.tolist())
        for pulls in (None, n)
    )
    assert pull <= arm  # by the same random numbers
    assert set(torch.nonzero(qbar * leverage >= 1.0)[:, 0].tolist()) <= pull
    # With one pull each there is one coin either way.
    alone = [draw_rls(lambda s: leverage, n.sign(), 1.5, None, np.random.default_rng(1), p) for p in (None, n.sign())]
    assert torch.equal(alone[0].rows, alone[1].rows)


def test_empty_draw_is_returned_as_such() -> None:
    draw = draw_rls(
        lambda scale: torch.full((5,), 1e-9).double(), torch.ones(5).double(), 1.0, None, np.random.default_rng(0)
    )
    assert draw.rows.tolist() == []


@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.integers(1, 60), st.floats(1.0, 1000.0))
def test_budget_binds_the_size_and_never_lowers_the_scale(seed: int, u: int, budget: int, qbar: float) -> None:
    rng = np.random.default_rng(seed)
    leverage_at = shrinking(torch.as_tensor(rng.uniform(1e-6, 1.0 - 1e-12, u)))
    n = torch.as_tensor(rng.integers(1, 20, u).astype(float))
    draw = draw_rls(leverage_at, n, qbar, budget, rng)  # type: ignore[arg-type]
    assert len(draw.rows) <= budget
    assert draw.scale >= 1.0
    assert draw.rows.tolist() == sorted(set(draw.rows.tolist()))
    expected = float((qbar * n * leverage_at(draw.scale)).clamp_max(1.0).sum())  # type: ignore[operator]
    assert expected <= budget
    if draw.scale > 1.0:
        # The scale is the smallest that fits, to the 2 % of the bisection.
        less = (qbar * n * leverage_at(max(draw.scale / 1.03, 1.0))).clamp_max(1.0)  # type: ignore[operator]
        assert float(less.sum()) > budget


def test_a_draw_above_its_budget_leaves_out_the_points_that_were_closest_to_it() -> None:
    p = torch.full((6,), 0.5, dtype=torch.float64)
    cut = 0
    for seed in range(20):
        coins = np.random.default_rng(seed).random(6)
        drawn = draw_rls(lambda scale: p / scale, torch.ones(6), 1.0, 3, np.random.default_rng(seed))
        assert drawn.scale == 1.0
        assert drawn.rows.tolist() == sorted(i for i in np.argsort(coins)[:3].tolist() if coins[i] < 0.5)
        cut += int((coins < 0.5).sum()) > 3
    assert cut > 0


def test_budget_that_does_not_bind_changes_nothing() -> None:
    leverage = torch.as_tensor(np.random.default_rng(0).random(50) * 0.1)
    n = torch.ones(50, dtype=torch.float64)
    free, bound = (draw_rls(lambda s: leverage, n, 2.0, b, np.random.default_rng(1)) for b in (None, 50))
    assert torch.equal(free.rows, bound.rows)
    assert bound.scale == 1.0


def test_scores_that_no_scale_lowers_still_end_within_the_budget() -> None:
    n = torch.ones(30, dtype=torch.float64)
    draw = draw_rls(lambda scale: torch.ones(30).double(), n, 2.0, 4, np.random.default_rng(0))
    assert len(draw.rows) == 4


@pytest.mark.parametrize("size", [0, 1, 7, 10, 20])
def test_uniform_draw_has_no_repeats_and_at_most_all_points(size: int) -> None:
    rows = draw_uniform(10, size, np.random.default_rng(0)).rows.tolist()
    assert len(rows) == len(set(rows)) == min(size, 10)
    assert set(rows) <= set(range(10))
    assert rows == sorted(rows)


def test_uniform_draw_takes_every_point_equally_often() -> None:
    rng = np.random.default_rng(0)
    hits = np.zeros(8)
    for _ in range(4000):
        hits[draw_uniform(8, 2, rng).rows.numpy()] += 1
    np.testing.assert_allclose(hits / 4000, 0.25, atol=5.0 * (0.25 * 0.75 / 4000) ** 0.5)
