"""Models of a quantity beside many running trials: they follow from an anchor, and a new process finds the same."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.posterior.model import Model
from bkbopt.search.designer import Designer
from bkbopt.search.options import Options
from bkbopt.search.quantities.crowd import BETWEEN_ANCHORS, MANY
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.search.quantities.marked_rows import Failures, Rows
from bkbopt.search.quantities.quantity import Quantity
from bkbopt.search.trials.evaluations import Evaluation, Problem
from tests.search.quantities.made import data, quantity, rows

FIRST = 20
X, Y = data(200)
GRID = X[150:]


def after_fit(n: int) -> Rows:
    """The first n rows; the fit is to the first `FIRST` of them."""
    return replace(rows(X[:n], Y[:n], first=FIRST), mark=FIRST, later=tuple(range(FIRST, n)))


def followed(n: int, surrogate: object = None) -> Quantity:
    made = quantity(bo.BKB() if surrogate is None else surrogate)
    made.follow(after_fit(n))
    return made


def beside(made: Quantity, told: int, last: int) -> Model:
    """The model beside running trials, those whose rows are from `told` to `last`."""
    return made.model(X[told:last], range(told, last), beyond_budget=True)


def assert_equal(a: Model, b: Model) -> None:
    for one, other in zip(a(GRID), b(GRID), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("stop", [FIRST, FIRST + 1, FIRST + BETWEEN_ANCHORS, FIRST + BETWEEN_ANCHORS + 5])
def test_rows_that_come_one_by_one_and_together_give_the_same(stop: int) -> None:
    warm = followed(FIRST)
    for n in range(FIRST, stop + 1):
        warm.follow(after_fit(n))
        beside(warm, n, n + MANY)
    assert_equal(beside(warm, stop, stop + 50), beside(followed(stop), stop, stop + 50))


def test_the_model_is_nearly_that_of_the_latest_posterior() -> None:
    """They have different dictionaries, and approximate one posterior; its prior variance is about 1."""
    made = followed(FIRST + 20)
    found, latest = beside(made, 40, 90), made.model(X[40:90], beyond_budget=True)
    for one, other in zip(found(GRID), latest(GRID), strict=True):
        np.testing.assert_allclose(one, other, atol=0.02)


def test_a_trial_that_is_told_changes_no_variance() -> None:
    made = followed(FIRST)
    before = beside(made, FIRST, 80)(GRID)
    made.follow(after_fit(FIRST + 3))
    mean, variance = beside(made, FIRST + 3, 80)(GRID)
    assert torch.equal(variance, before[1])
    assert not torch.equal(mean, before[0])


def with_failures(n: int, failed: dict[int, int]) -> Rows:
    """`after_fit(n)` with failed trials: their numbers, and the number of rows when each ended."""
    numbers = tuple(failed)
    return replace(after_fit(n), failed=Failures(tuple(failed.values()), numbers, X[list(numbers)]))


def test_a_trial_that_fails_changes_nothing_until_the_next_anchor() -> None:
    made = followed(FIRST + 3)
    before = beside(made, FIRST + 3, 80)
    made.follow(with_failures(FIRST + 3, {60: FIRST + 3}))
    others = [*range(FIRST + 3, 60), *range(61, 80)]
    assert_equal(made.model(X[others], others, beyond_budget=True), before)


def test_trials_that_failed_before_an_anchor_are_not_counted() -> None:
    stop = FIRST + BETWEEN_ANCHORS
    made = quantity(bo.BKB())
    made.follow(with_failures(stop, {5: FIRST, 6: stop - 1}))
    assert_equal(beside(made, stop, stop + 50), beside(followed(stop), stop, stop + 50))


@pytest.mark.parametrize("stop", [FIRST + 6, FIRST + BETWEEN_ANCHORS, FIRST + BETWEEN_ANCHORS + 5])
def test_failures_that_come_one_by_one_and_together_give_the_same(stop: int) -> None:
    failed = {150 + j: n for j, n in enumerate((FIRST, FIRST + 3, FIRST + 3, FIRST + BETWEEN_ANCHORS))}
    warm, cold = followed(FIRST), quantity(bo.BKB())
    for n in range(FIRST, stop + 1):
        warm.follow(with_failures(n, {number: end for number, end in failed.items() if end <= n}))
        beside(warm, n, n + MANY)
    cold.follow(with_failures(stop, {number: end for number, end in failed.items() if end <= stop}))
    assert_equal(beside(warm, stop, stop + 50), beside(cold, stop, stop + 50))


def test_trials_count_in_the_order_of_their_numbers() -> None:
    """A trial that was asked for late and told early keeps its place."""
    made, order = followed(FIRST), [*range(60, 80), *range(20, 60)]
    model = made.model(X[order], order, beyond_budget=True)
    assert_equal(model, beside(followed(FIRST), 20, 80))


def test_values_belong_to_their_points_in_whatever_order_trials_are_told() -> None:
    made, n = quantity(bo.BKB()), FIRST + 6
    made.follow(replace(after_fit(n), later=(99, 20, 70, 21, 98, 22)))
    found, latest = beside(made, n, 65), made.model(X[n:65], beyond_budget=True)
    # As above; two of these values differ by up to 2.
    np.testing.assert_allclose(found(X[FIRST:n])[0], latest(X[FIRST:n])[0], atol=0.02)


@pytest.mark.parametrize(("n_older", "is_anchored"), [(0, False), (MANY - 1, False), (MANY, True)])
def test_models_follow_from_an_anchor_beside_many_trials_that_are_older_than_the_last_value(
    n_older: int, is_anchored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not beside a batch, all of which was suggested after the last value, in one call or in several."""
    space, n = bo.Space.parse({"x": (0.0, 1.0), "y": (0.0, 1.0)}), FIRST + 5
    points = space.internal(space.decode(space.sample(n + 50, np.random.default_rng(0))))
    made = Designer(Problem(space=space), Options(ModelOptions(bo.BKB())), seed=0)
    made.update(Evaluation(i, "COMPLETE", points[i], space, (i, i), (float(Y[i]),)) for i in range(n))
    for i in range(n, n + 50):
        made.update([Evaluation(i, "RUNNING", points[i], space, n_values=n - 1 if i < n + n_older else n)])
    given: list[int] = []
    model = Quantity.model

    def spied(self: Quantity, pending: torch.Tensor, numbers: Sequence[int] = (), **more: bool) -> Model:
        given.extend(numbers)
        return model(self, pending, numbers, **more)

    monkeypatch.setattr(Quantity, "model", spied)
    made.suggest()
    assert given == (list(range(n, n + 50)) if is_anchored else [])


def test_in_a_pool_precise_values_are_counted_as_such() -> None:
    """An anchor would count them with a weight of one, so that variances exceed the bounds of the latest posterior."""
    made, n = quantity(bo.BKB()), FIRST + 5
    std = torch.full((n,), torch.nan, dtype=torch.float64)
    std[FIRST + 2] = 1e-3
    known = replace(after_fit(n), std=std)
    made.follow(known)
    pending, numbers = X[n:75], range(n, 75)
    assert_equal(made.model(pending, numbers), made.model(pending))
    assert not torch.equal(made.model(pending, numbers, beyond_budget=True)(GRID)[1], made.model(pending)(GRID)[1])


@pytest.mark.parametrize("surrogate", [bo.ExactGP(), bo.FourierGP()])
def test_surrogates_without_anchors_count_all_in_the_latest_posterior(surrogate: object) -> None:
    made = followed(FIRST + 5, surrogate=surrogate)
    assert_equal(beside(made, 25, 75), made.model(X[25:75], beyond_budget=True))
