"""Observations against a dictionary of lists."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bkbopt.posterior.observations import Observations

points = st.tuples(st.sampled_from([0.0, -0.0, 1.0, 1e-300, 2.5]), st.sampled_from([0.0, -1.0, 3.0]))
values = st.floats(-1e6, 1e6)
tables = st.lists(st.tuples(points, values), min_size=1, max_size=60)


def filled(rows: list[tuple[tuple[float, float], float]], split: int = 0) -> Observations:
    """The rows, added in one call, or in two."""
    obs = Observations(2)
    X = torch.tensor([x for x, _ in rows], dtype=torch.float64)
    y = torch.tensor([v for _, v in rows], dtype=torch.float64)
    for part in (slice(None, split), slice(split, None)):
        if len(y[part]):
            obs.add(X[part], y[part])
    return obs


@given(tables, st.integers(0, 60))
def test_counts_and_sums_are_those_of_the_values_grouped_by_point(
    rows: list[tuple[tuple[float, float], float]], split: int
) -> None:
    obs = filled(rows, split)
    groups: dict[tuple[float, float], list[float]] = {}
    for x, v in rows:
        groups.setdefault(x, []).append(v)  # a dictionary, too, takes 0.0 and -0.0 for one key
    assert len(obs) == len(groups)
    assert obs.total == len(rows)
    assert [tuple(x) for x in obs.X.tolist()] == list(groups)  # in order of arrival
    assert obs.n.tolist() == [len(g) for g in groups.values()]
    # Sums differ by the order of addition only; a sum may cancel to nothing, so the tolerance is one of the largest.
    np.testing.assert_allclose(obs.s, [sum(g) for g in groups.values()], rtol=1e-13, atol=1e-7 * 1e-2)
    np.testing.assert_allclose(obs.Y2, sum(v * v for _, v in rows), rtol=1e-12)


@given(tables)
def test_find_returns_the_row_that_add_returned(rows: list[tuple[tuple[float, float], float]]) -> None:
    obs = Observations(2)
    for x, v in rows:
        at = obs.add(torch.tensor([x], dtype=torch.float64), torch.tensor([v], dtype=torch.float64))
        assert obs.find(torch.tensor(x, dtype=torch.float64)) == int(at[0])
    assert obs.find(torch.tensor([9.0, 9.0], dtype=torch.float64)) is None


@given(tables, st.lists(st.floats(0.01, 100.0), min_size=60, max_size=60))
def test_weights_count_as_so_many_evaluations(
    rows: list[tuple[tuple[float, float], float]], weights: list[float]
) -> None:
    obs = Observations(2)
    X, y = (torch.tensor(part, dtype=torch.float64) for part in zip(*rows, strict=True))
    a = torch.tensor(weights[: len(rows)], dtype=torch.float64)
    at = obs.add(X, y, a)
    for i in range(len(obs)):
        own = at == i
        assert float(obs.n[i]) == pytest.approx(float(a[own].sum()), rel=1e-12)
        # Sums may cancel to nothing.
        assert float(obs.s[i]) == pytest.approx(float((a * y)[own].sum()), rel=1e-12, abs=1e-6)
        assert float(obs.repeats[i]) == float(own.sum()) - 1.0
    assert pytest.approx(float((a * y * y).sum()), rel=1e-12) == obs.Y2


def test_growth_keeps_every_point() -> None:
    obs = Observations(1)
    X = torch.arange(1000, dtype=torch.float64)[:, None]
    for x in X.split(7):
        obs.add(x, x[:, 0] * 2.0)
    assert torch.equal(obs.X, X)
    assert torch.equal(obs.s, 2.0 * X[:, 0])


def test_the_callers_tensors_are_neither_kept_nor_changed() -> None:
    X, y = torch.ones(2, 2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    obs = Observations(2)
    obs.add(X, y)
    assert torch.equal(X, torch.ones(2, 2, dtype=torch.float64))
    X.zero_()
    assert obs.X.tolist() == [[1.0, 1.0]]


@given(tables, st.integers(1, 4))
def test_a_weight_is_a_number_of_evaluations(rows: list[tuple[tuple[float, float], float]], weight: int) -> None:
    X = torch.tensor([x for x, _ in rows], dtype=torch.float64)
    y = torch.tensor([v for _, v in rows], dtype=torch.float64)
    weighted, repeated = Observations(2), filled(rows * weight)
    weighted.add(X, y, torch.full_like(y, weight))
    assert torch.equal(weighted.X, repeated.X)
    assert torch.equal(weighted.n, repeated.n)
    # The same sums in another order, of values of up to 1e6.
    np.testing.assert_allclose(weighted.s, repeated.s, rtol=1e-13, atol=1e-7)
    np.testing.assert_allclose(weighted.Y2, repeated.Y2, rtol=1e-12, atol=1e-300)  # squares may be subnormal


@given(tables, tables)
def test_restoring_undoes_all_additions(
    kept: list[tuple[tuple[float, float], float]], taken_back: list[tuple[tuple[float, float], float]]
) -> None:
    obs, expected = filled(kept), filled(kept)
    restore = obs.checkpoint()
    obs.add(
        torch.tensor([x for x, _ in taken_back], dtype=torch.float64),
        torch.tensor([v for _, v in taken_back], dtype=torch.float64),
    )
    restore()
    for one, other in ((obs.X, expected.X), (obs.n, expected.n), (obs.s, expected.s), (obs.repeats, expected.repeats)):
        assert torch.equal(one, other)
    assert (obs.total, obs.Y2) == (expected.total, expected.Y2)
    new = torch.tensor([[9.0, 9.0]], dtype=torch.float64)
    assert obs.add(new, torch.ones(1, dtype=torch.float64)).tolist() == [len(expected)]


@given(tables)
def test_one_by_one_is_the_same_as_together(rows: list[tuple[tuple[float, float], float]]) -> None:
    obs, together = Observations(2), filled(rows)
    for i, (x, v) in enumerate(rows):
        at = obs.add_one(torch.tensor([x], dtype=torch.float64), v, 1.0)
        assert at == together.find(torch.tensor(rows[i][0], dtype=torch.float64))
    assert torch.equal(obs.X, together.X)
    assert torch.equal(obs.repeats, together.repeats)
    assert torch.equal(obs.n, together.n)
    assert torch.equal(obs.s, together.s)
    np.testing.assert_allclose(obs.Y2, together.Y2, rtol=1e-12)  # a sum in another order
