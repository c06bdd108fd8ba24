"""Streams that tests of several learners share."""

import numpy as np

from bkbopt.learners import OnlineLearner

Array = np.ndarray


def surface(n: int, seed: int) -> tuple[Array, Array, Array]:
    """Rows `(n, 3)` in a cube, noisy values of a smooth function there, and labels -1, +1 of its noisy sign."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 3))
    f = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    numbers = f + 0.1 * rng.standard_normal(n)
    return X, numbers, np.where(f + 0.2 * rng.standard_normal(n) > 0.0, 1.0, -1.0)


def normal_rows(n: int, repeats: bool = False) -> tuple[Array, Array]:
    """Normal rows `(n, 3)` with labels -1, +1; the first is -1, as the first label is inside, whichever it is.

    With `repeats` some points come again, with either label: distances of zero, and weights that cancel.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    if repeats:
        X[::7] = X[rng.integers(20, size=len(X[::7]))]
    y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n) > 0.0, 1.0, -1.0)
    y[0] = -1.0
    return X, y


def margins(learner: OnlineLearner, X: Array, y: Array, **more: object) -> Array:
    """Progressive predictions, before they become labels where there are labels."""
    return learner.progressive(X, y, decision=True, **more)  # type: ignore[arg-type]


ARMS_D = 8


def arms_and_values(n: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Arms `(n, ARMS_D)` in the unit ball with a falling spectrum, noisy values, and theta with norm one."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(ARMS_D)
    theta /= np.linalg.norm(theta)
    X = rng.standard_normal((n, ARMS_D)) * 0.5 ** np.arange(ARMS_D)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    return X, X @ theta + 0.1 * rng.standard_normal(n), theta
