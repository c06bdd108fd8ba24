"""The paper's Algorithm 1 as printed, on a finite pool: the baseline for faster code.

Source: Calandriello, Carratino, Lazaric, Valko and Rosasco, "Gaussian Process Optimization with Adaptive Sketching:
Scalable and No Regret" (COLT 2019), Algorithm 1 and Equation 4 (with a misprint in the mean corrected).

| symbol | meaning |
| --- | --- |
| A, d, u, m, r | arms, dimensions, arms pulled so far, arms in the dictionary, numerical rank of the dictionary |
| counts, sums (A,) | how often each arm was pulled, and the sum of its rewards |
| root W (m, r) | thin pseudo-inverse root of the dictionary's kernel matrix; an arm's features are z = W^T k_S(x) |
| V (r, r) | Z^T diag(counts) Z + lam I over the pulled arms |
| leverage | the posterior variance divided by lam (the papers' sigma-tilde squared); no units |

After every single pull the dictionary is drawn anew, its kernel matrix is decomposed, *all* arms are embedded, V is
rebuilt, and the mean and leverage of *all* arms are computed: O((A + u) m^2 + m^3) a step, as in the paper's section
3.2. Nothing is carried over from one step to the next but the counts, the sums and the leverage scores.

Within these limits the arithmetic is optimised, so that the comparison is fair: repeated pulls cost nothing; kernels,
features and variances are matrix products (the squared distance's norms are part of the product, the whitening is a
product with an inverted m x m factor and not a triangular solve over the pool); exponentials are taken in place; and
the pool is processed in blocks that fit the processor's cache, which halves the time against holding all features at
once (`block_rows`, None for the whole pool in one block). The caller decides on the number of threads: at these sizes
one is often the fastest.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from bkbopt.errors import ArgumentError

__all__ = [
    "PoolProblem",
    "PoolRun",
    "RBFPool",
    "draw_dictionary",
    "make_pool_problem",
    "nystrom_posterior",
    "run_algorithm1",
]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Beta = float | Callable[[int, float], float]

BLOCK_ROWS = 2_048
N_CENTRES = 300


@dataclass(frozen=True)
class PoolProblem:
    """A bandit over a finite pool: arms X (A, d), noise-free rewards f (A,), Gaussian noise of deviation noise_sd."""

    X: Array
    f: Array
    noise_sd: float
    lengthscale: float

    def pull(self, arm: int, rng: np.random.Generator) -> float:
        """Return one noisy reward of the arm; it takes exactly one normal draw from `rng`."""
        return float(self.f[arm] + self.noise_sd * rng.standard_normal())


@dataclass(frozen=True)
class PoolRun:
    """Record of a run over a pool, step by step: all arrays are (n_steps,).

    `m` is the dictionary's size when the arm was chosen, and `regret` the cumulative noise-free regret.
    """

    arms: Indices
    rewards: Array
    m: Indices
    regret: Array


class RBFPool:
    """Arms X (A, d) prepared so that a block of the kernel exp(-|x - x'|^2 / (2 lengthscale^2)) is one matrix product.

    The exponent is x.x' - |x|^2/2 - |x'|^2/2 in units of the lengthscale: with the norms as two further columns it is
    the product of `left` (A, d + 2) with `right` (A, d + 2) transposed. The columns are centred first, which leaves
    the distances alone and keeps the cancellation small.
    """

    def __init__(self, X: Array, lengthscale: float) -> None:
        scaled = (X - X.mean(axis=0)) / lengthscale
        halves = -0.5 * (scaled**2).sum(axis=1, keepdims=True)
        ones = np.ones_like(halves)
        self.left = np.hstack([scaled, halves, ones])
        self.right = np.hstack([scaled, ones, halves])

    def __len__(self) -> int:
        return len(self.left)

    def kernel(self, rows: Indices | slice, columns: Indices, out: Array | None = None) -> Array:
        """Return the kernel matrix of the arms `rows` (n) with the arms `columns` (m), (n, m), in `out` if given."""
        exponents = np.matmul(self.left[rows], self.right[columns].T, out=out)
        np.minimum(exponents, 0.0, out=exponents)  # rounding can lift a zero distance above zero
        return np.asarray(np.exp(exponents, out=exponents))


def thin_root(gram: Array) -> Array:
    """Return W (m, r) with W W^T the pseudo-inverse of gram (m, m), r its numerical rank.

    Eigenvalues at or below m * eps * (the largest one) are cut off: they are rounding errors, and dividing by them
    makes the norms of the features larger than the kernel allows.
    """
    values, vectors = scipy.linalg.eigh(gram, driver="evd", check_finite=False)
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def nystrom_posterior(
    pool: RBFPool,
    dictionary: Indices,
    counts: Array,
    sums: Array,
    lam: float,
    *,
    block_rows: int | None = BLOCK_ROWS,
) -> tuple[Array, Array]:
    """Return mean (A,) and leverage (A,) of all arms by Equation 4, computed from scratch.

    `dictionary` (m,) indexes the inducing arms; `counts` and `sums` (A,) hold the pulls and the sums of rewards; `lam`
    is the noise variance. The variance in the rewards' units is lam times the leverage.
    """
    root = thin_root(pool.kernel(dictionary, dictionary))
    rank = root.shape[1]
    pulled = np.flatnonzero(counts)
    features = pool.kernel(pulled, dictionary) @ root
    V = (features.T * counts[pulled]) @ features
    V.flat[:: rank + 1] += lam
    factor = scipy.linalg.cholesky(V, lower=True, check_finite=False)
    weights = scipy.linalg.cho_solve((factor, True), features.T @ sums[pulled], check_finite=False)
    whiten = scipy.linalg.solve_triangular(factor, np.eye(rank), lower=True, check_finite=False).T

    n = len(pool)
    block = min(block_rows or n, n)
    mean, leverage = np.empty(n), np.empty(n)
    kernel_buffer = np.empty((block, len(dictionary)))
    feature_buffer, white_buffer = np.empty((block, rank)), np.empty((block, rank))
    for start in range(0, n, block):
        rows = slice(start, min(start + block, n))
        size = rows.stop - rows.start
        K = pool.kernel(rows, dictionary, out=kernel_buffer[:size])
        Z = np.matmul(K, root, out=feature_buffer[:size])
        white = np.matmul(Z, whiten, out=white_buffer[:size])
        np.matmul(Z, weights, out=mean[rows])
        residual = np.maximum(1.0 - np.einsum("ij,ij->i", Z, Z), 0.0)
        np.add(residual / lam, np.einsum("ij,ij->i", white, white), out=leverage[rows])
    return mean, leverage


def draw_dictionary(counts: Array, leverage: Array, qbar: float, latest: int, rng: np.random.Generator) -> Indices:
    """Return the arms (m,) of a new dictionary: a pulled arm enters with probability min(1, qbar * pulls * leverage).

    An empty draw gives the latest arm alone.
    """
    pulled = np.flatnonzero(counts)
    kept = pulled[rng.random(len(pulled)) < qbar * counts[pulled] * leverage[pulled]]
    return kept if len(kept) else np.array([latest])


def run_algorithm1(
    problem: PoolProblem,
    n_steps: int,
    *,
    lam: float,
    qbar: float,
    beta: Beta,
    seed: int,
    first_arm: int | None = None,
    block_rows: int | None = BLOCK_ROWS,
) -> PoolRun:
    """Run Algorithm 1 for n_steps pulls and return its record.

    `lam` is the noise variance, `qbar` the oversampling of the dictionary, and `beta` multiplies the posterior's
    standard deviation in the rewards' units (it is the paper's beta-tilde divided by sqrt(lam)): a constant, or a
    callable of (the number of pulls so far, the sum of leverages over all those pulls). The first arm is uniform unless
    given. Ties go to the lowest index. The noise comes from `default_rng([seed, 1])`, one draw a step, and all else
    from `default_rng([seed, 0])`, so that another algorithm can be run with the same noise.

    Raises:
        ArgumentError: n_steps is below 1, or lam or qbar is not positive.
    """
    if n_steps < 1 or lam <= 0 or qbar <= 0:
        raise ArgumentError(
            f"n_steps, lam, qbar: expected at least 1, above 0 and above 0, got {n_steps}, {lam} and {qbar}"
        )
    coins, noise = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    pool = RBFPool(problem.X, problem.lengthscale)
    counts, sums, leverage = np.zeros(len(pool)), np.zeros(len(pool)), np.empty(len(pool))
    arms, sizes = np.empty(n_steps, dtype=np.int64), np.empty(n_steps, dtype=np.int64)
    rewards = np.empty(n_steps)
    dictionary = np.empty(0, dtype=np.int64)
    for t in range(n_steps):
        if t == 0:
            arm = int(coins.integers(len(pool))) if first_arm is None else first_arm
        else:
            mean, leverage = nystrom_posterior(pool, dictionary, counts, sums, lam, block_rows=block_rows)
            width = beta(t, float(counts @ leverage)) if callable(beta) else beta
            arm = int(np.argmax(mean + width * np.sqrt(lam * leverage)))
        sizes[t] = len(dictionary)
        arms[t], rewards[t] = arm, problem.pull(arm, noise)
        counts[arm] += 1
        sums[arm] += rewards[t]
        # The coins use the leverage from before this pull (the paper's section 3.1); at the first pull there is none.
        dictionary = np.array([arm]) if t == 0 else draw_dictionary(counts, leverage, qbar, arm, coins)
    regret = np.cumsum(problem.f.max() - problem.f[arms])
    return PoolRun(arms=arms, rewards=rewards, m=sizes, regret=regret)


def make_pool_problem(
    n_arms: int, d: int = 6, lengthscale: float = 0.8, noise_sd: float = 0.3, seed: int = 0
) -> PoolProblem:
    """Return a bandit with arms uniform in the unit cube (n_arms, d) and rewards that the RBF kernel can express.

    f is a draw of the Gaussian process with that kernel, projected on the span of the kernel at 300 random centres (so
    it lies in the kernel's Hilbert space), and scaled to unit standard deviation over the arms.
    """
    rng = np.random.default_rng([seed, n_arms, d])
    arms, centres = rng.random((n_arms, d)), rng.random((N_CENTRES, d))
    both = RBFPool(np.vstack([centres, arms]), lengthscale)
    columns = np.arange(N_CENTRES)
    root = thin_root(both.kernel(columns, columns))
    weights = root @ rng.standard_normal(root.shape[1])
    blocks = range(N_CENTRES, len(both), BLOCK_ROWS)
    f = np.concatenate([both.kernel(slice(start, start + BLOCK_ROWS), columns) @ weights for start in blocks])
    return PoolProblem(X=arms, f=f / f.std(), noise_sd=noise_sd, lengthscale=lengthscale)
