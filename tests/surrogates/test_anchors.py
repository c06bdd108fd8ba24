"""Fantasies from an anchor: the posterior of all values, with the points counted that were asked for since."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor

from bkbopt import BKB, ExactGP
from bkbopt.kernels import matern52
from bkbopt.posterior.model import Model
from bkbopt.surrogates.anchors import Anchor

KERNEL, NOISE = matern52(2, 0.3), 0.05
GRID = torch.as_tensor(np.random.default_rng(9).random((50, 2)))
POINTS = torch.as_tensor(np.random.default_rng(8).random((200, 2)))
VALUES = torch.sin(5.0 * POINTS[:, 0]) + POINTS[:, 1]
#: A dictionary of all points; of a few, too few for compiled loops; the default one.
MAKERS = {
    "all": lambda: BKB(KERNEL, NOISE, qbar=1e12, max_inducing=None),
    "few": lambda: BKB(KERNEL, NOISE, max_inducing=6),
    "default": lambda: BKB(KERNEL, NOISE),
}


def learnt(name: str, n: int) -> BKB:
    gp = MAKERS[name]()
    gp.observe(POINTS[:n], VALUES[:n], in_turn=True)
    return gp


def anchored(name: str, n: int) -> Anchor:
    anchor = learnt(name, n).anchor()
    assert anchor is not None
    return anchor


def predicted(model: Model, X: Tensor = GRID) -> tuple[Tensor, Tensor]:
    return model(X)


def assert_equal(a: Model, b: Model) -> None:
    """To the last bit, also the predictor that a search uses."""
    for one, other in ((a, b), (a.collapse(), b.collapse())):
        for x, y in zip(one(GRID), other(GRID), strict=True):
            assert torch.equal(x, y)


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_a_fantasy_is_the_exact_posterior_where_all_points_are_inducing(weight: float) -> None:
    """The mean is that of all values with their weights, the variance that of all points with weights of one."""
    told = [40, 44, 41]
    model = anchored("all", 40).fantasy(POINTS[40:60], [0, 4, 1], VALUES[told].tolist(), [weight] * 3)
    gp, both = ExactGP(KERNEL, NOISE), ExactGP(KERNEL, NOISE)
    gp.observe(POINTS[:40], VALUES[:40])
    gp.observe(POINTS[told], VALUES[told], torch.full((3,), weight))
    both.observe(POINTS[:60], VALUES[:60])
    expected = gp.posterior(GRID).mean, both.posterior(GRID).variance
    for one in (model, model.collapse()):
        for found, right in zip(one(GRID), expected, strict=True):
            # Points with a residual below a thousandth of the noise are no inducing points.
            np.testing.assert_allclose(found, right, atol=1e-3 * NOISE)


@pytest.mark.parametrize("name", MAKERS)
def test_without_values_since_it_is_the_fantasy_of_the_surrogate(name: str) -> None:
    gp = learnt(name, 60)
    anchor, X = gp.anchor(), POINTS[60:140]
    assert anchor is not None
    for beyond in (True, False):
        assert_equal(anchor.fantasy(X, [], [], [], beyond_budget=beyond), gp.fantasy(X, beyond_budget=beyond))


@pytest.mark.parametrize("name", MAKERS)
def test_it_depends_on_its_arguments_and_not_on_those_of_earlier_calls(name: str) -> None:
    """Points are added, told, and leave, as trials do that fail; a new anchor gives the same to the last bit."""
    warm, rng = anchored(name, 50), np.random.default_rng(0)
    rows, told = list(range(50, 100)), list[int]()
    for step in range(12):
        for row in rng.choice([r for r in rows if r not in told], 2, replace=False).tolist():
            told.append(row)
        if step % 4 == 3:
            rows.remove(next(r for r in rows if r not in told))
        rows.append(100 + step)
        arguments = POINTS[rows], [rows.index(row) for row in told], VALUES[told].tolist(), [1.0] * len(told)
        assert_equal(warm.fantasy(*arguments), anchored(name, 50).fantasy(*arguments))


def test_an_anchor_does_not_follow_the_surrogate() -> None:
    gp = learnt("default", 50)
    anchor = gp.anchor()
    assert anchor is not None
    gp.observe(torch.cat([POINTS[:20], POINTS[100:150]]), torch.cat([VALUES[:20], VALUES[100:150]]), in_turn=True)
    assert_equal(anchor.fantasy(POINTS[50:90], [], [], []), anchored("default", 50).fantasy(POINTS[50:90], [], [], []))


def test_a_value_changes_the_mean_and_no_variance() -> None:
    anchor, X = anchored("default", 50), POINTS[50:90]
    before, after = anchor.fantasy(X, [], [], []), anchor.fantasy(X, [7], [3.0], [1.0])
    assert torch.equal(predicted(before)[1], predicted(after)[1])
    assert not torch.equal(predicted(before)[0], predicted(after)[0])
    assert float(after(X[7:8])[0][0]) > float(before(X[7:8])[0][0])


@pytest.mark.parametrize("name", MAKERS)
def test_an_epoch_lasts_while_points_are_added_or_told_and_ends_when_one_leaves(name: str) -> None:
    gp = learnt(name, 50)
    anchor = gp.anchor()
    assert anchor is not None
    first = anchor.fantasy(POINTS[60:100], [], [], [])
    gp.observe(POINTS[63:64], VALUES[63:64])
    more = anchor.fantasy(POINTS[60:101], [3], VALUES[63:64].tolist(), [1.0])
    assert first.epoch == more.epoch
    # Variances grow by the square of the growth at most, but for rounding.
    assert bool((more(GRID)[1] <= first(GRID)[1] * (more.growth / first.growth) ** 2 * (1.0 + 1e-9)).all())
    assert anchor.fantasy(POINTS[60:100], [3], VALUES[63:64].tolist(), [1.0]).epoch != more.epoch


@pytest.mark.parametrize("name", MAKERS)
def test_other_values_of_the_same_points_are_learnt_anew(name: str) -> None:
    warm, X = anchored(name, 50), POINTS[50:90]
    for y, weight in (([1.0, 2.0], [1.0, 1.0]), ([1.0, 3.0], [1.0, 1.0]), ([1.0, 3.0], [0.5, 1.0]), ([1.0], [0.5])):
        arguments = X, [4, 7][: len(y)], y, weight
        assert_equal(warm.fantasy(*arguments), anchored(name, 50).fantasy(*arguments))


def test_a_draw_of_the_surrogate_changes_nothing_that_an_anchor_counts() -> None:
    """Where the budget binds, a draw sets the lam of the sampling, by which points are appended."""
    gp, same = (BKB(KERNEL, NOISE, max_inducing=30) for _ in range(2))
    for one in (gp, same):
        one.observe(POINTS[:50], VALUES[:50], in_turn=True)
    (anchor, other), scale, X = (gp.anchor(), same.anchor()), gp.sampling_scale, POINTS[60:100]
    assert anchor is not None
    assert other is not None
    gp.observe(POINTS[50:], VALUES[50:], in_turn=True)
    assert gp.sampling_scale > 1.5 * scale
    fantasy = anchor.fantasy(X, [], [], [])
    assert fantasy.features.size > len(same.inducing)
    assert_equal(fantasy, other.fantasy(X, [], [], []))


def test_a_copy_of_an_anchor_gives_the_same() -> None:
    anchor = anchored("default", 50)
    anchor.fantasy(POINTS[50:90], [0], [1.0], [1.0])
    arguments = POINTS[50:95], [0, 3], [1.0, 2.0], [1.0, 1.0]
    assert_equal(copy.deepcopy(anchor).fantasy(*arguments), anchor.fantasy(*arguments))


def test_surrogates_without_a_dictionary_have_none() -> None:
    assert ExactGP(KERNEL, NOISE).anchor() is None
