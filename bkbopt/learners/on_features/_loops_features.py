"""The rounds of linear learners on features of a block: Fourier features, and maps of a few kernel values.

| symbol    | shape  | units   | meaning                                                            |
| --------- | ------ | ------- | ------------------------------------------------------------------ |
| omega     | (d, D) | turns   | frequencies over 2 pi: omega.x = 1 is a whole turn                 |
| landmarks | m      | -       | a `Support` whose weights are not used                             |
| M         | (r, m) | 1/y     | the map: z(x) = M k(landmarks, x)                                  |
| w         | (r,)   | y       | weights, changed in place                                          |
| inverse   | (r, r) | -       | A^-1 of online Newton steps, changed in place                      |

`p (b,)` receives the predictions made before learning.
"""

import math

import numpy as np

from bkbopt._support.compiled import compiled, fast, fused
from bkbopt.learners.numerics._loops_kernel import Block, Support, axpy, inner, kernel_row, product
from bkbopt.learners.numerics.losses import Array, growth, loss_slope

__all__ = [
    "fourier_descent",
    "fourier_predictions",
    "landmark_descent",
    "landmark_newton",
    "landmark_predictions",
]


@fused
def sine(r: float) -> float:
    """sin(2 pi r) for abs(r) <= 1/4, by Taylor's series: the first term left out is below 2e-17."""
    x = 6.283185307179586 * r
    s = x * x
    p = -1.0 / 25852016738884976640000.0
    p = p * s + 1.0 / 51090942171709440000.0
    p = p * s - 1.0 / 121645100408832000.0
    p = p * s + 1.0 / 355687428096000.0
    p = p * s - 1.0 / 1307674368000.0
    p = p * s + 1.0 / 6227020800.0
    p = p * s - 1.0 / 39916800.0
    p = p * s + 1.0 / 362880.0
    p = p * s - 1.0 / 5040.0
    p = p * s + 1.0 / 120.0
    p = p * s - 1.0 / 6.0
    return x + x * s * p


@fused
def fourier_row(omega: Array, height: float, x: Array, z: Array) -> None:
    """z = sqrt(height / D) [cos, sin](2 pi omega.x); the turns are reduced exactly, without branches."""
    D = omega.shape[1]
    for j in range(D):
        z[j] = 0.0
    for i in range(x.shape[0]):
        for j in range(D):
            z[j] += omega[i, j] * x[i]
    factor = math.sqrt(height / D)
    for j in range(D):
        turn = z[j] - np.rint(z[j])
        # sin(2 pi t) = sin(2 pi (1/2 - t)) folds a half turn into a quarter, cos(2 pi t) = sin(2 pi (1/4 - |t|)).
        folded = math.copysign(0.25 - abs(abs(turn) - 0.25), turn)
        z[D + j] = factor * sine(folded)
        z[j] = factor * sine(0.25 - abs(turn))


@compiled
def fourier_predictions(X: Array, omega: Array, height: float, w: Array, p: Array) -> None:
    """Predict only."""
    z = np.empty(w.shape[0])
    for t in range(X.shape[0]):
        fourier_row(omega, height, X[t], z)
        p[t] = inner(z, w, w.shape[0])


@compiled
def fourier_descent(
    X: Array, y: Array, omega: Array, height: float, w: Array, loss: int, step: float, p: Array
) -> None:
    """Gradient descent on Fourier features (Lu et al. 2016)."""
    z = np.empty(w.shape[0])
    for t in range(X.shape[0]):
        fourier_row(omega, height, X[t], z)
        p[t] = inner(z, w, w.shape[0])
        g = loss_slope(loss, y[t], p[t])
        if g != 0.0:
            axpy(w, -step * g, z, w.shape[0])


@compiled
def feature_map(block: Block, t: int, landmarks: Support, M: Array, k: Array, z: Array) -> None:
    """z = M k(landmarks, x_t)."""
    kernel_row(block, t, landmarks, k)
    product(M, k, z)


@compiled
def landmark_predictions(block: Block, landmarks: Support, M: Array, w: Array, clip: float, p: Array) -> None:
    """Predict only, between -clip and clip."""
    k, z = np.empty(landmarks.weights.shape[0]), np.empty(M.shape[0])
    for t in range(block.X.shape[0]):
        feature_map(block, t, landmarks, M, k, z)
        p[t] = min(max(inner(z, w, w.shape[0]), -clip), clip)


@compiled
def landmark_descent(
    block: Block,
    landmarks: Support,
    M: Array,
    w: Array,
    loss: int,
    step: float,
    start: int,
    stop: int,
    p: Array,
) -> None:
    """Gradient descent on z(x), rows start to stop.

    Steps are limited to 1/|z|^2, above which the squared loss diverges: sketched features can be long.
    """
    k, z = np.empty(landmarks.weights.shape[0]), np.empty(M.shape[0])
    for t in range(start, stop):
        feature_map(block, t, landmarks, M, k, z)
        p[t] = inner(z, w, w.shape[0])
        g = loss_slope(loss, block.y[t], p[t])
        if g != 0.0:
            length = inner(z, z, z.shape[0])
            axpy(w, -g * (step if step * length <= 1.0 else 1.0 / length), z, w.shape[0])


@compiled
def landmark_newton(
    block: Block,
    landmarks: Support,
    M: Array,
    w: Array,
    inverse: Array,
    loss: int,
    weight: float,
    clip: float,
    start: int,
    stop: int,
    p: Array,
) -> None:
    """Online Newton steps on z(x) with predictions between -clip and clip, rows start to stop.

    A grows by c z z^T with c = `growth(weight, g)`. The projection to |w.z| <= clip is applied even if the slope is
    zero. After a step v = A^-1 z is updated by (A + c z z^T)^-1 z = v / (1 + c q), q = z.v.
    """
    r = M.shape[0]
    k, z, v = np.empty(landmarks.weights.shape[0]), np.empty(r), np.empty(r)
    for t in range(start, stop):
        feature_map(block, t, landmarks, M, k, z)
        product(inverse, z, v)
        q, raw = inner(z, v, r), inner(z, w, r)
        p[t] = min(max(raw, -clip), clip)
        g = loss_slope(loss, block.y[t], p[t])
        if q <= 0.0:
            continue
        c = growth(weight, g)
        beyond = raw - p[t]
        if beyond == 0.0 and g == 0.0:
            continue
        axpy(w, -(beyond / q + g / (1.0 + c * q)), v, r)
        if c > 0.0:
            rank_one(inverse, -c / (1.0 + c * q), v)


@fast
def rank_one(A: Array, factor: float, v: Array) -> None:
    """Add factor v v^T, symmetric to the last bit."""
    for i in range(v.shape[0]):
        for j in range(v.shape[0]):
            A[i, j] += factor * (v[i] * v[j])
