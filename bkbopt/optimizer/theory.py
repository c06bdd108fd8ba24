"""The preset of an optimizer for which the theorems of BKB's paper hold."""

from typing import Any

from bkbopt._support.checks import check_count, check_number
from bkbopt.confidence import Theorem2, theorem1_qbar
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer.arguments.option_types import Direction
from bkbopt.optimizer.optimizer import Optimizer
from bkbopt.surrogates import BKB

__all__ = ["theory"]


def theory(
    space_or_pool: Any,
    *,
    kernel: object,
    noise: float,
    norm_bound: float,
    horizon: int,
    delta: float = 0.1,
    epsilon: float = 0.5,
    form: str = "safe",
    direction: Direction = "minimize",
    seed: int | None = None,
) -> Optimizer:
    """An optimizer for which Theorems 1 and 2 of Calandriello et al. (2019) hold: nothing is fitted or scaled.

    Args:
        space_or_pool: a pool (the theorems' setting), or a space, where the maximisation is not exact.
        kernel: the kernel of the RKHS that contains f, in the user's units.
        noise: noise variance xi^2 = lam, y squared.
        norm_bound: F >= ||f|| in the RKHS of the kernel; it has no unit, since the kernel's unit is y squared.
        horizon: T, planned number of evaluations.
        delta: probability of failure, half of it for the dictionary and half for the noise.
        epsilon: accuracy of the dictionary, in (0, 1).
        form: form of Theorem 2's radius; see `bkbopt.confidence.Theorem2`.
        direction: "minimize" or "maximize".
        seed: seed of all random numbers.

    Raises:
        ArgumentError: a number is out of range.
        ArgumentTypeError: an argument has the wrong type.

    Returns:
        An `Optimizer` with Algorithm 1's schedule (a new dictionary at every step, qbar of Theorem 1), the first point
        at random, and the theorem's radius. The regret bound then holds with probability 1 - delta.

    There are three differences from the paper. qbar and the radius get delta / 2 each, so that both hold together with
    probability 1 - delta. The radius has the "safe" form, since the printed one drops a term (`form="printed"` gives
    it). A draw of the dictionary makes one random decision for each point, not for each evaluation, which includes each
    point at least as often; for this qbar nearly all probabilities are 1 either way. For a small qbar they differ;
    `BKB(coins="pull")` draws as in the paper.

    Example:
        >>> import numpy as np
        >>> import bkbopt as bo
        >>> arms = np.linspace(0.0, 1.0, 20)[:, None]
        >>> opt = bo.theory(arms, kernel=bo.kernels.rbf(1, 0.2), noise=0.01, norm_bound=2.0, horizon=50, seed=0)
        >>> for _ in range(3):
        ...     trial = opt.ask()
        ...     told = opt.tell(trial, (trial.params["x0"] - 0.3) ** 2)
        >>> opt.diagnostics[-1].beta > 2.0
        True
    """
    lam = check_number("noise", noise, 0.0, "a positive finite variance (y squared)", strict=True)
    norm_bound = check_number("norm_bound", norm_bound, 0.0, "a number >= 0")
    horizon = check_count("horizon", horizon, 1)
    if not 0.0 < check_number("delta", delta, 0.0, "a number strictly between 0 and 1") < 1.0:
        raise ArgumentError(f"delta: expected a number strictly between 0 and 1, got {delta!r}.")
    if kernel is None:
        raise ArgumentTypeError("kernel: expected a kernel of bkbopt or GPyTorch, or a callable, got None.")
    surrogate = BKB(kernel, lam, qbar=theorem1_qbar(horizon, delta / 2.0, epsilon), resample="every", max_inducing=None)
    beta = Theorem2(norm_bound=norm_bound, noise_std=lam**0.5, delta=delta / 2.0, epsilon=epsilon, form=form)
    return Optimizer(
        space_or_pool, direction=direction, seed=seed, n_startup_trials=1, surrogate=surrogate, beta=beta, fit=False
    )
