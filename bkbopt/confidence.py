"""Schedules of beta, the width of the confidence bounds.

| symbol  | units | meaning                                                                      |
| ------- | ----- | ---------------------------------------------------------------------------- |
| beta    | -     | multiplies a posterior standard deviation (y), as in mean + beta * stddev    |
| radius  | y     | what the papers write as beta: it multiplies sqrt(leverage); beta = radius / sqrt(lam) |
| lam     | y^2   | noise variance = ridge                                                       |
| xi      | y     | noise standard deviation (sub-Gaussian)                                      |
| F       | -     | bound of the RKHS norm of f; the kernel carries the unit of y                |
| kappa2  | y^2   | sup k(x, x)                                                                  |
| d_eff   | -     | effective dimension, Tr K (K + lam I)^-1 over all evaluations                |

A schedule is a callable `(ScheduleContext) -> float`. Fitting the kernel or the noise voids every guarantee named here.
"""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from bkbopt._support.checks import check_count, check_number
from bkbopt.errors import ArgumentError, ArgumentTypeError

__all__ = [
    "Batch",
    "Chowdhury",
    "Confidence",
    "Constant",
    "Practical",
    "ScheduleContext",
    "Srinivas",
    "Theorem2",
    "as_confidence",
    "theorem1_qbar",
]


@dataclass(frozen=True)
class ScheduleContext:
    """Inputs of a schedule of beta.

    Attributes:
        t: evaluations so far.
        dim: encoded columns.
        n_arms: size of the finite pool, or None.
        lam: noise variance, y squared.
        kappa2: largest prior variance k(x, x) of an evaluated point and, over a pool, of an arm, y squared.
        effective_dimension: an upper bound of d_eff for any set of inducing points (for Fourier features: d_eff of
            their own kernel). It is the sum of the leverages, the contribution of a point's residual bounded by 1.
        log_growth: an upper bound of logdet(I + K / lam), such as the running sum of log(1 + 3 leverage) over the
            evaluations.
        batch: number of pending (hallucinated) evaluations.
        batch_leverage: sum of the leverages of the pending evaluations.
        leverage_sum: `effective_dimension` without the bound of 1, which is Equation 5 of BKB's paper. The two differ
            where the budget of inducing points binds. Values below `effective_dimension` are replaced by it.

    Example:
        >>> from bkbopt.confidence import Practical, ScheduleContext
        >>> now = ScheduleContext(t=200, dim=3, n_arms=1000, lam=0.01, kappa2=1.0, effective_dimension=25.0)
        >>> round(Practical()(now), 3)
        1.354
    """

    t: int
    dim: int
    n_arms: int | None
    lam: float
    kappa2: float
    effective_dimension: float
    log_growth: float = 0.0
    batch: int = 0
    batch_leverage: float = 0.0
    leverage_sum: float = 0.0


@runtime_checkable
class Confidence(Protocol):
    """A schedule of beta."""

    def __call__(self, context: ScheduleContext) -> float:
        """beta, which multiplies a standard deviation."""


@dataclass(frozen=True)
class Constant:
    """The same beta at every step.

    Example:
        >>> from bkbopt.confidence import Constant, ScheduleContext
        >>> now = ScheduleContext(t=200, dim=3, n_arms=1000, lam=0.01, kappa2=1.0, effective_dimension=25.0)
        >>> round(Constant(2.0)(now), 2)
        2.0
    """

    beta: float

    def __post_init__(self) -> None:
        """Check the number."""
        _check_numbers(beta=self.beta)

    def __call__(self, context: ScheduleContext) -> float:
        """See `Confidence`."""
        return self.beta


@dataclass(frozen=True)
class Practical:
    """The default: beta = scale * sqrt(log(1 + d_eff)), between `low` and `high`.

    It grows with d_eff as in the theorems, but without their constants, and has no guarantee. With it and fitted
    models, every second suggestion from the 300th trial on has 0.4 of it, and most suggestions beside five or more
    running trials maximise the posterior mean, as with a beta of zero. With several objectives the factors are 0.4, 1
    and 2.5, and under noisy constraints every fourth suggestion maximises the posterior mean.

    Example:
        >>> from bkbopt.confidence import Practical, ScheduleContext
        >>> now = ScheduleContext(t=200, dim=3, n_arms=1000, lam=0.01, kappa2=1.0, effective_dimension=25.0)
        >>> round(Practical(high=3.0)(now), 2)
        1.35
    """

    scale: float = 0.75
    low: float = 1.0
    high: float = 2.0

    def __post_init__(self) -> None:
        """Check the numbers."""
        _check_numbers(scale=self.scale, low=self.low, high=self.high)
        if self.low > self.high:
            raise ArgumentError(f"low: expected a number <= high = {self.high!r}, got {self.low!r}.")

    def __call__(self, context: ScheduleContext) -> float:
        """See `Confidence`."""
        return min(max(self.scale * math.sqrt(math.log1p(context.effective_dimension)), self.low), self.high)


@dataclass(frozen=True)
class Theorem2:
    """BKB's confidence (Calandriello et al. 2019, Theorem 2).

    Args:
        norm_bound: F >= ||f|| in the RKHS of the kernel.
        noise_std: xi, units of y.
        delta: probability that the guarantee fails.
        epsilon: accuracy of the dictionary, in (0, 1).
        form: "printed" is the theorem's formula, with its sum of leverages (Eq. 5) unclamped; it drops a term that
            matters while kappa2 t < 3.5. "safe", the default, corrects that: 1 + log(1 + kappa2 t / lam) replaces
            log(kappa2 t), sqrt(eps / (1 - eps)) replaces 1 / sqrt(1 - eps), and `effective_dimension`, a smaller bound
            of d_eff that holds for any dictionary, replaces the sum. "running" uses the running sum of
            log(1 + 3 leverage), which is tighter still (for epsilon <= 1/2).

    Raises:
        ArgumentError: delta or epsilon is not strictly between 0 and 1, `norm_bound` or `noise_std` is negative, the
            form is unknown, or "running" is used with epsilon above 1/2.

    Example:
        >>> from bkbopt.confidence import ScheduleContext, Theorem2
        >>> now = ScheduleContext(t=200, dim=3, n_arms=1000, lam=0.01, kappa2=1.0, effective_dimension=25.0)
        >>> round(Theorem2(norm_bound=2.0, noise_std=0.1)(now), 2)
        32.68
    """

    norm_bound: float = 1.0
    noise_std: float = 1.0
    delta: float = 0.1
    epsilon: float = 0.5
    form: str = "safe"

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check_numbers(norm_bound=self.norm_bound, noise_std=self.noise_std)
        _check_probability("delta", self.delta)
        _check_probability("epsilon", self.epsilon)
        if self.form not in ("printed", "safe", "running"):
            raise ArgumentError(f'form: expected "printed", "safe" or "running", got {self.form!r}.')
        if self.form == "running" and self.epsilon > 0.5:
            raise ArgumentError(f'epsilon: form="running" needs epsilon <= 1/2, got {self.epsilon!r}.')

    def __call__(self, context: ScheduleContext) -> float:
        """See `Confidence`."""
        p, eps, xi, F = context, self.epsilon, self.noise_std, self.norm_bound
        alpha = (1.0 + eps) / (1.0 - eps)
        t = max(p.t, 1)
        log_delta = -math.log(self.delta)  # 1 / delta may be infinite
        if self.form == "printed":
            leverage_sum = max(p.leverage_sum, p.effective_dimension)
            gain = alpha * max(math.log(p.kappa2 * t), 0.0) * leverage_sum
            radius = 2.0 * xi * math.sqrt(gain + log_delta) + (1.0 + 1.0 / math.sqrt(1.0 - eps)) * math.sqrt(p.lam) * F
        else:
            gain = alpha * (1.0 + math.log1p(p.kappa2 * t / p.lam)) * p.effective_dimension
            if self.form == "running":
                gain = min(gain, p.log_growth)  # both bound logdet(I + K / lam)
            bias = (1.0 + math.sqrt(eps / (1.0 - eps))) * math.sqrt(p.lam) * F
            radius = xi * math.sqrt(gain + 2.0 * log_delta) + bias
        return radius / math.sqrt(p.lam)


@dataclass(frozen=True)
class Srinivas:
    """GP-UCB on a finite pool, Bayesian: beta^2 = 2 log(A t^2 pi^2 / (6 delta)) (Srinivas et al. 2010, Theorem 1).

    Raises:
        ArgumentError: delta is not strictly between 0 and 1.

    Example:
        >>> from bkbopt.confidence import ScheduleContext, Srinivas
        >>> now = ScheduleContext(t=200, dim=3, n_arms=1000, lam=0.01, kappa2=1.0, effective_dimension=25.0)
        >>> round(Srinivas(delta=0.05)(now), 2)
        6.48
    """

    delta: float = 0.1

    def __post_init__(self) -> None:
        """Check the range."""
        _check_probability("delta", self.delta)

    def __call__(self, context: ScheduleContext) -> float:
        """See `Confidence`; for a space that is not finite A is that of a grid of 100 values a column."""
        arms = context.n_arms if context.n_arms is not None else 100.0 ** min(context.dim, 100)
        return math.sqrt(2.0 * (math.log(arms * max(context.t, 1) ** 2 * math.pi**2 / 6.0) - math.log(self.delta)))


@dataclass(frozen=True)
class Chowdhury:
    """IGP-UCB (Chowdhury and Gopalan 2017): beta = F + xi / sqrt(lam) sqrt(2 (gamma + 1 + log(1 / delta))).

    The paper has lam = 1 + 2 / T and does not divide by sqrt(lam); without the division the width would depend on the
    unit of y. gamma, the information gain so far, is at most d_eff (1 + log(1 + kappa2 t / lam)) / 2. The surrogate's
    effective dimension is an upper bound of d_eff, also with few inducing points. The paper's posterior is exact. With
    inducing points the mean is confined to their span, which adds a bias; `epsilon` includes it as in `Theorem2`.

    Args:
        norm_bound: F >= ||f|| in the RKHS of the kernel.
        noise_std: xi, units of y.
        delta: probability that the guarantee fails.
        epsilon: accuracy of the dictionary, in [0, 1); F is multiplied by 1 + sqrt(eps / (1 - eps)). The default, 0, is
            right for the exact GP (`surrogate="exact"`), and for `BKB` as long as every point is an inducing point.

    Raises:
        ArgumentError: delta is not strictly between 0 and 1, epsilon is not in [0, 1), or `norm_bound` or `noise_std`
            is negative.

    Example:
        >>> from bkbopt.confidence import Chowdhury, ScheduleContext
        >>> now = ScheduleContext(t=200, dim=3, n_arms=1000, lam=0.01, kappa2=1.0, effective_dimension=25.0)
        >>> round(Chowdhury(norm_bound=2.0, noise_std=0.1)(now), 2)
        18.71
    """

    norm_bound: float = 1.0
    noise_std: float = 1.0
    delta: float = 0.1
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check_numbers(norm_bound=self.norm_bound, noise_std=self.noise_std)
        _check_probability("delta", self.delta)
        if check_number("epsilon", self.epsilon, 0.0, "a number from 0 to below 1") >= 1.0:
            raise ArgumentError(f"epsilon: expected a number from 0 to below 1, got {self.epsilon!r}.")

    def __call__(self, context: ScheduleContext) -> float:
        """See `Confidence`."""
        p, eps = context, self.epsilon
        gamma = 0.5 * p.effective_dimension * (1.0 + math.log1p(p.kappa2 * max(p.t, 1) / p.lam))
        width = math.sqrt(2.0 * (gamma + 1.0 - math.log(self.delta)))
        bias = (1.0 + math.sqrt(eps / (1.0 - eps))) * self.norm_bound
        return bias + self.noise_std / math.sqrt(p.lam) * width


@dataclass(frozen=True)
class Batch:
    """The batch variant: another schedule times sqrt(1 + sum of the leverages of pending trials), at most sqrt(C).

    Pending trials shrink the variance but leave the mean unchanged; the factor compensates for that (BBKB's global
    rule).

    Example:
        >>> from bkbopt.confidence import Batch, Constant, ScheduleContext
        >>> four = ScheduleContext(200, 3, 1000, 0.01, 1.0, effective_dimension=25.0, batch=4, batch_leverage=0.44)
        >>> round(Batch(Constant(2.0))(four), 2)
        2.4
    """

    inner: Confidence
    leverage_budget: float = 2.0

    def __post_init__(self) -> None:
        """Check the schedule and the budget."""
        if not isinstance(self.inner, Confidence) or isinstance(self.inner, type):
            raise ArgumentTypeError(f"inner: expected a schedule such as Constant(2.0), got {self.inner!r}.")
        check_number("leverage_budget", self.leverage_budget, 1.0, "a number >= 1")

    def __call__(self, context: ScheduleContext) -> float:
        """See `Confidence`."""
        return self.inner(context) * math.sqrt(min(1.0 + context.batch_leverage, self.leverage_budget))


def theorem1_qbar(horizon: int, delta: float = 0.1, epsilon: float = 0.5) -> float:
    """The oversampling of Theorem 1: 6 alpha log(4 T / delta) / eps^2 (Calandriello et al. 2019).

    Args:
        horizon: T, evaluations planned.
        delta: probability that the dictionary is inaccurate or too large at any time. The paper uses the same delta
            here and in Theorem 2's radius, so that the two together may fail with probability 2 delta. `bkbopt.theory`
            gives half of its delta to each, which adds 6 alpha log(2) / eps^2 to the oversampling as printed.
        epsilon: accuracy in (0, 1).

    Raises:
        ArgumentError: delta or epsilon is not strictly between 0 and 1, epsilon is so small that the oversampling is
            infinite, or no evaluation is planned.

    Example:
        >>> from bkbopt.confidence import theorem1_qbar
        >>> round(theorem1_qbar(horizon=1000, delta=0.1, epsilon=0.5))
        763
    """
    _check_probability("delta", delta)
    _check_probability("epsilon", epsilon)
    check_count("horizon", horizon)
    alpha = (1.0 + epsilon) / (1.0 - epsilon)
    qbar = 6.0 * alpha * (math.log(4.0 * horizon) - math.log(delta)) / epsilon / epsilon  # the square may be zero
    if math.isinf(qbar):
        raise ArgumentError(f"epsilon: expected an accuracy with a finite oversampling, got {epsilon!r}; pass 0.5.")
    return qbar


def as_confidence(beta: object) -> Confidence:
    """A schedule from None (the default, `Practical`), a number >= 0, or a schedule.

    Raises:
        ArgumentError: a number that is negative or not finite.
        ArgumentTypeError: neither a number nor a schedule.

    Example:
        >>> from bkbopt.confidence import as_confidence
        >>> as_confidence(2), as_confidence(None)
        (Constant(beta=2.0), Practical(scale=0.75, low=1.0, high=2.0))
    """
    if beta is None:
        return Practical()
    if isinstance(beta, Confidence) and not isinstance(beta, type):
        return beta
    return Constant(check_number("beta", beta, 0.0, "a number >= 0, a schedule of bkbopt.confidence, or None"))


def beta_of(schedule: Confidence, context: ScheduleContext) -> float:
    """The beta of a schedule, which may be the user's own.

    Raises:
        ArgumentTypeError: the schedule does not return a number.
        ArgumentError: the number is negative or not finite.
    """
    return check_number("beta", schedule(context), 0.0, "a finite number >= 0 from the schedule of beta")


def _check_numbers(**numbers: object) -> None:
    for name, value in numbers.items():
        check_number(name, value, 0.0, "a number >= 0")


def _check_probability(name: str, value: float) -> None:
    check_number(name, value, -math.inf, "a number strictly between 0 and 1")
    if not 0.0 < value < 1.0:
        raise ArgumentError(f"{name}: expected a number strictly between 0 and 1, got {value!r}.")
