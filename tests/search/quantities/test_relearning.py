"""What a quantity has learnt of its rows, and copies of it that have learnt some of them."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.posterior.observations import Observations
from bkbopt.search.quantities.fitting import Fitter, ModelOptions
from bkbopt.search.quantities.quantity import Quantity
from tests.search.quantities.made import data, quantity, rows

N = 60
#: The last ten points are the first ones again.
X = torch.cat([data(N)[0][:50], data(N)[0][:10]])
Y = torch.sin(6.0 * X[:, 0]) + X[:, 1]
NOISE = torch.as_tensor(0.1 * np.random.default_rng(1).standard_normal(N))
KNOWN = torch.where(torch.arange(N) % 2 == 0, 0.1, math.nan)


def without_fit() -> Quantity:
    return quantity(bo.ExactGP(bo.kernels.rbf(2, lengthscale=0.3), 0.01), fit=False)


def limit() -> Quantity:
    return Quantity(Fitter(ModelOptions(bo.ExactGP()), -1.0, winsorised=False, is_limit=True), seed=0, stream=0)


#: Values, what is told with them, and the quantity that learns them.
CASES: dict[str, tuple[Any, dict[str, Any], Callable[[], Quantity]]] = {
    "noise": (Y + NOISE, {}, quantity),
    "larger is better": (Y + NOISE, {}, lambda: quantity(sign=1.0)),
    "known noise": (Y + NOISE, {"std": KNOWN}, quantity),
    "outliers": (torch.where(torch.arange(N) == 37, Y + 30.0, Y + NOISE), {"first": N - 5}, quantity),
    "clipped": (torch.where(torch.arange(N) % 9 == 8, 1e3, Y), {}, quantity),
    "warped": (torch.exp(9.0 * (Y + NOISE)), {}, quantity),
    "pruned": (torch.where(torch.arange(N) % 5 == 4, math.nan, Y), {"estimates": Y + 1.0}, quantity),
    "infinite": (torch.where(torch.arange(N) % 7 == 6, math.inf, Y), {}, quantity),
    "limit": (torch.where(torch.arange(N) % 7 == 6, math.inf, Y - 1.0), {}, limit),
    "no fit": (Y + NOISE, {"std": KNOWN}, without_fit),
}


@pytest.mark.parametrize("case", CASES)
def test_values_and_weights_are_those_that_the_surrogate_has(case: str) -> None:
    y, more, make = CASES[case]
    made, told = make(), rows(X, y, **more)
    made.follow(told)
    known, expected = Observations(2), made.surrogate.observations
    known.add(X, *made.learnt(told))
    assert torch.equal(known.X, expected.X)
    assert torch.equal(known.repeats, expected.repeats)
    torch.testing.assert_close(known.n, expected.n, rtol=1e-12, atol=0.0)
    torch.testing.assert_close(known.s, expected.s, rtol=1e-12, atol=1e-12)
    assert (case == "outliers") == bool(made.outliers)


def test_a_copy_of_all_rows_predicts_the_same_and_one_of_some_rows_what_they_say() -> None:
    y, _, _ = CASES["no fit"]
    made, told = without_fit(), rows(X, y)
    made.follow(told)
    at = data(5, seed=1)[0]
    whole = made.retrained(told, torch.ones(N, dtype=torch.bool))
    for a, b in zip(whole.predict(at), made.predict(at), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)
    some = torch.arange(N) < 20
    half, alone = made.retrained(told, some), without_fit()
    alone.follow(rows(X[some], y[some]))
    for a, b in zip(half.predict(at), alone.predict(at), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(half.fitted, alone.fitted, rtol=1e-9, atol=1e-12)


def test_a_copy_keeps_scaling_kernel_noise_and_limit_and_leaves_the_quantity_as_it_is() -> None:
    y, _, _ = CASES["limit"]
    made, told = limit(), rows(X, y)
    made.follow(told)
    before = made.predict(X), made.fitted.clone(), made.surrogate.observations.total
    copy = made.retrained(told, torch.arange(N) < 7)
    assert copy.surrogate.observations.total == 7
    assert (copy.scaler, copy.surrogate.noise, copy.zero) == (made.scaler, made.surrogate.noise, made.zero)
    assert copy.surrogate.kernel is made.surrogate.kernel
    after = made.predict(X), made.fitted, made.surrogate.observations.total
    assert all(map(torch.equal, before[0], after[0]))
    assert torch.equal(before[1], after[1])
    assert before[2] == after[2]


def test_a_copy_without_rows_has_no_model() -> None:
    made, told = quantity(), rows(X, Y)
    made.follow(told)
    assert not made.retrained(told, torch.zeros(N, dtype=torch.bool)).ready
    assert not quantity().retrained(replace(told, mark=0), torch.ones(N, dtype=torch.bool)).ready
