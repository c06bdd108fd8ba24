"""The root of the explained variance that follows single values, against dense formulas in numpy."""

import pickle

import numpy as np
import pytest
import torch

from bkbopt.kernels import matern52, rbf
from bkbopt.posterior.explained import LONGEST
from bkbopt.posterior.features import Nystrom
from bkbopt.posterior.gaussian_state import FEW, GaussianState

LAM = 0.01
VALUES = torch.tensor(np.random.default_rng(4).standard_normal(3 * LONGEST + 9))
WEIGHTS = np.random.default_rng(5).uniform(0.2, 3.0, len(VALUES)).tolist()


def problem(m: int = 24) -> tuple[Nystrom, torch.Tensor]:
    """Features of `m` random points, and those of as many points as there are values."""
    rng = np.random.default_rng(m)
    features = Nystrom.from_points(matern52(2, 0.4), torch.tensor(rng.random((m, 2))))
    return features, features(torch.tensor(rng.random((len(VALUES), 2))))


def start(Z: torch.Tensor) -> GaussianState:
    """The state of the first ten points, with one value each."""
    return GaussianState.from_data(Z[:10], torch.ones(10, dtype=torch.float64), VALUES[:10], LAM)


def dense(features: Nystrom, state: GaussianState) -> np.ndarray:
    """W (I - lam V^-1) W^T from V itself."""
    W, V = features.W.numpy(), state.V.numpy()
    return np.asarray(W @ (np.eye(len(V)) - LAM * np.linalg.inv(V)) @ W.T)


def root(features: Nystrom, state: GaussianState) -> np.ndarray:
    assert state.explained is not None
    return state.explained.upper(features.W)


def test_it_follows_values_through_several_sequences() -> None:
    features, Z = problem()
    state, lengths = start(Z), set()
    for i in range(10, len(VALUES)):
        state = state.update(Z[i], float(VALUES[i]), WEIGHTS[i])
        R = root(features, state)
        assert state.explained is not None
        lengths.add(state.explained.length)
        assert not np.tril(R, -1).any()
        # W has a norm of 1e2, so that rounding is relative to 1e4.
        np.testing.assert_allclose(R.T @ R, dense(features, state), rtol=0.0, atol=1e-9)
    assert lengths == set(range(LONGEST + 1))


@pytest.mark.parametrize("group", [1, 7, LONGEST, LONGEST + 1, len(VALUES)])
def test_its_bits_do_not_depend_on_how_values_are_grouped_or_roots_asked_for(group: int) -> None:
    features, Z = problem()
    one_by_one, grouped = start(Z), start(Z)
    for i in range(10, len(VALUES)):
        one_by_one = one_by_one.update(Z[i], float(VALUES[i]), WEIGHTS[i])
        root(features, one_by_one)
    for i in range(10, len(VALUES), group):
        rows = list(range(i, min(i + group, len(VALUES))))
        grouped, _ = grouped.update_in_turn(Z, rows, VALUES[rows].tolist(), [WEIGHTS[row] for row in rows])
    np.testing.assert_array_equal(root(features, grouped), root(features, one_by_one))
    again = pickle.loads(pickle.dumps(grouped))
    np.testing.assert_array_equal(root(features, again), root(features, one_by_one))


def test_hallucinated_points_leave_the_root_of_the_observations() -> None:
    features, Z = problem()
    state = start(Z).update(Z[10], 1.0)
    before = root(features, state).copy()
    for i in (11, 12):
        branch = state.hallucinate(Z[i : i + 1]).hallucinate(Z[13:14])
        R = root(features, branch)
        np.testing.assert_allclose(R.T @ R, dense(features, branch), rtol=0.0, atol=1e-9)  # as above
        np.testing.assert_array_equal(root(features, state), before)


def test_a_few_hallucinated_points_continue_the_sequence() -> None:
    features, Z = problem()
    state = start(Z).update(Z[10], 1.0)
    before = root(features, state).copy()
    few = state.hallucinate(Z[11 : 11 + FEW])
    after_few = root(features, few).copy()
    for branch in (few.hallucinate(Z[20:21]), few.hallucinate(Z[21 : 21 + FEW])):
        R = root(features, branch)
        np.testing.assert_allclose(R.T @ R, dense(features, branch), rtol=0.0, atol=1e-9)  # as above
        assert branch.explained is not None
        assert branch.explained.length > 1 + FEW
    np.testing.assert_array_equal(root(features, few), after_few)
    np.testing.assert_array_equal(root(features, state), before)


def test_inducing_points_in_the_span_of_others_are_no_obstacle() -> None:
    points = torch.tensor(np.random.default_rng(1).random((20, 2)))
    features = Nystrom.from_points(rbf(2, 0.3), torch.cat([points, points[:5]]))
    assert features.size <= 20
    Z = features(torch.tensor(np.random.default_rng(2).random((len(VALUES), 2))))
    state = start(Z)
    for i in range(10, 20):
        state = state.update(Z[i], float(VALUES[i]))
    K, R = features.kernel(points, features.S).numpy(), root(features, state)
    # In the kernel's terms, in which W's norm of 1e3 cancels.
    np.testing.assert_allclose(K @ R.T @ R @ K.T, K @ dense(features, state) @ K.T, rtol=0.0, atol=1e-9)
