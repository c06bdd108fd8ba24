"""The linear-Gaussian state against ridge regression written out in numpy."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bkbopt.posterior.gaussian_state import FEW, GaussianState

seeds = st.integers(0, 2**32 - 1)
LAM = 0.3


class Problem:
    """Random features of u points, counts and sums, and numpy's answer."""

    def __init__(self, seed: int, u: int = 9, r: int = 4) -> None:
        rng = np.random.default_rng(seed)
        self.Z, self.n = rng.standard_normal((u, r)), rng.integers(1, 5, u).astype(float)
        self.s = rng.standard_normal(u) * self.n
        self.query = torch.tensor(rng.standard_normal((6, r)))
        self.rng = rng

    def state(self) -> GaussianState:
        return GaussianState.from_data(torch.tensor(self.Z), torch.tensor(self.n), torch.tensor(self.s), LAM)


def grown(state: GaussianState, Z: np.ndarray, C: np.ndarray, n: np.ndarray, s: np.ndarray) -> GaussianState:
    """The state with the columns `C` appended to the features `Z`."""
    C = C.reshape(len(Z), -1)
    NC = n[:, None] * C
    return state.append(*(torch.tensor(v) for v in (Z.T @ NC, C.T @ NC, C.T @ s)))


def check(state: GaussianState, Z: np.ndarray, n: np.ndarray, s: np.ndarray, query: torch.Tensor) -> None:
    """V, b, w and leverages are those of ridge regression on the rows `Z` with counts `n` and sums `s`."""
    V = Z.T @ np.diag(n) @ Z + LAM * np.eye(Z.shape[1])
    q = query[:, : Z.shape[1]].numpy()
    # The condition number of V is below 1e4.
    np.testing.assert_allclose(state.V, V, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(state.b, Z.T @ s, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(state.w, np.linalg.solve(V, Z.T @ s), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        state.leverage(query[:, : Z.shape[1]]), (q * np.linalg.solve(V, q.T).T).sum(1), rtol=1e-10
    )


@given(seeds)
def test_state_of_data_is_ridge_regression(seed: int) -> None:
    p = Problem(seed)
    check(p.state(), p.Z, p.n, p.s, p.query)


@given(seeds, st.floats(0.01, 100.0))
def test_update_equals_one_more_row(seed: int, weight: float) -> None:
    p = Problem(seed)
    z = p.rng.standard_normal(4)
    state = p.state().update(torch.tensor(z), 1.7, weight)
    check(state, np.vstack([p.Z, z]), np.append(p.n, weight), np.append(p.s, weight * 1.7), p.query)


@given(seeds, st.integers(1, 3))
def test_append_equals_more_features(seed: int, k: int) -> None:
    p = Problem(seed)
    C = p.rng.standard_normal((len(p.n), k))
    state = grown(p.state(), p.Z, C, p.n, p.s)
    query = torch.cat([p.query, p.query[:, :k] + 1.0], 1)
    check(state, np.column_stack([p.Z, C]), p.n, p.s, query)
    check(state.refactor(), np.column_stack([p.Z, C]), p.n, p.s, query)


@given(seeds, st.lists(st.booleans(), max_size=30))
def test_updates_and_appends_in_any_order_equal_the_state_of_all_data(seed: int, steps: list[bool]) -> None:
    p = Problem(seed, r=1)
    state, Z, n, s = p.state(), p.Z, p.n, p.s
    for grow in steps:
        if grow and Z.shape[1] < 6:
            c = p.rng.standard_normal(len(n))
            state = grown(state, Z, c, n, s)
            Z = np.column_stack([Z, c])
        else:
            z, y = p.rng.standard_normal(Z.shape[1]), p.rng.standard_normal()
            state = state.update(torch.tensor(z), float(y))
            Z, n, s = np.vstack([Z, z]), np.append(n, 1.0), np.append(s, y)
    check(state, Z, n, s, torch.tensor(p.rng.standard_normal((5, 6))))


# Two of ten change the root, three are a factorisation. With 16 and more compiled loops take up to FEW in turn.
@pytest.mark.parametrize(
    ("count", "r"), [(0, 10), (1, 10), (2, 10), (3, 10), (1, 40), (2, 40), (FEW, 40), (FEW + 1, 40)]
)
def test_hallucination_is_an_observation_at_the_mean(count: int, r: int) -> None:
    p = Problem(1, u=2 * r, r=r)
    before = p.state()
    Z = p.rng.standard_normal((count, r))
    mean = Z @ before.w.numpy()
    after = before.hallucinate(torch.tensor(Z))
    check(after, np.vstack([p.Z, Z]), np.append(p.n, np.ones(count)), np.append(p.s, mean), p.query)
    assert after.w is before.w


def test_other_weights_keep_the_covariance_and_belong_to_their_sums() -> None:
    state = Problem(2).state()
    other = state.with_mean(state.w + 1.0)
    assert other.root is state.root
    np.testing.assert_allclose(other.refactor().w, state.w + 1.0, rtol=1e-11)


def test_states_are_not_changed_by_their_updates() -> None:
    p = Problem(3)
    state = p.state()
    kept = [t.clone() for t in (state.V, state.root, state.b, state.w)]
    z = torch.tensor(p.rng.standard_normal(4))
    state.update(z, 1.0)
    state.hallucinate(z[None])
    grown(state, p.Z, p.Z[:, 0] ** 2, p.n, p.s)
    assert copy.deepcopy(state) is state
    assert all(torch.equal(a, b) for a, b in zip(kept, (state.V, state.root, state.b, state.w), strict=True))


def test_effective_dimension_and_log_determinant_are_those_of_the_eigenvalues() -> None:
    p = Problem(4)
    e = np.linalg.eigvalsh(p.Z.T @ np.diag(p.n) @ p.Z)
    assert p.state().effective_dimension() == pytest.approx(float((e / (e + LAM)).sum()), rel=1e-12)
    assert p.state().log_determinant() == pytest.approx(float(np.log1p(e / LAM).sum()), rel=1e-12)
    leverages = p.state().leverage(torch.tensor(p.Z))
    assert p.state().effective_dimension() == pytest.approx(float(p.n @ leverages.numpy()), rel=1e-12)


def test_a_feature_that_the_others_explain_keeps_the_state_finite() -> None:
    p = Problem(5)
    state = grown(p.state(), p.Z, p.Z[:, 0], p.n, p.s)
    twice = torch.cat([p.query, p.query[:, :1]], 1)
    np.testing.assert_allclose(state.root.T @ state.root @ state.V, np.eye(5), rtol=0.0, atol=1e-10)
    assert float(state.leverage(twice).min()) >= 0.0


def test_state_without_features_learns_nothing_and_does_not_fail() -> None:
    p = Problem(6)
    state = GaussianState.from_data(torch.tensor(p.Z[:, :0]), torch.tensor(p.n), torch.tensor(p.s), LAM)
    state = state.update(torch.zeros(0).double(), 1.0).refactor()
    assert state.leverage(p.query[:, :0]).tolist() == [0.0] * 6
    assert state.effective_dimension() == 0.0
    check(grown(state, p.Z[:, :0], p.Z[:, 0], p.n, p.s), p.Z[:, :1], p.n, p.s, p.query)
