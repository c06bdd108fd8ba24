"""Confidence widths: each formula against its source, and their coverage; all schedules are in `tests/conformance`."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from bkbopt import BKB, ExactGP, confidence
from bkbopt.confidence import (
    Batch,
    Chowdhury,
    Constant,
    Practical,
    ScheduleContext,
    Srinivas,
    Theorem2,
    as_confidence,
    theorem1_qbar,
)
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.kernels import gram, rbf
from tests.conformance.test_schedules import SCHEDULES
from tests.sweeps import slow_but

P = ScheduleContext(t=40, dim=3, n_arms=500, lam=0.04, kappa2=2.0, effective_dimension=7.5, log_growth=31.0)
XI, F, DELTA, EPS = 0.2, 1.7, 0.05, 0.25


def test_printed_form_is_theorem_2_divided_by_the_root_of_lam() -> None:
    alpha = (1.0 + EPS) / (1.0 - EPS)
    radius = 2.0 * XI * math.sqrt(alpha * math.log(2.0 * 40) * 7.5 + math.log(1.0 / DELTA))
    radius += (1.0 + 1.0 / math.sqrt(1.0 - EPS)) * math.sqrt(0.04) * F
    assert Theorem2(F, XI, DELTA, EPS, "printed")(P) == pytest.approx(radius / 0.2, rel=1e-14)


def test_safe_form_bounds_the_log_determinant_by_the_effective_dimension() -> None:
    alpha = (1.0 + EPS) / (1.0 - EPS)
    growth = alpha * (1.0 + math.log(1.0 + 2.0 * 40 / 0.04)) * 7.5
    radius = XI * math.sqrt(growth + 2.0 * math.log(1.0 / DELTA))
    radius += (1.0 + math.sqrt(EPS / (1.0 - EPS))) * math.sqrt(0.04) * F
    assert Theorem2(F, XI, DELTA, EPS)(P) == pytest.approx(radius / 0.2, rel=1e-14)


def test_printed_form_takes_the_sum_of_leverages_unclamped_and_no_other_schedule_does() -> None:
    coarse = replace(P, leverage_sum=300.0)  # the residuals of few inducing points
    alpha = (1.0 + EPS) / (1.0 - EPS)
    radius = 2.0 * XI * math.sqrt(alpha * math.log(2.0 * 40) * 300.0 + math.log(1.0 / DELTA))
    radius += (1.0 + 1.0 / math.sqrt(1.0 - EPS)) * math.sqrt(0.04) * F
    assert Theorem2(F, XI, DELTA, EPS, "printed")(coarse) == pytest.approx(radius / 0.2, rel=1e-14)
    for schedule in SCHEDULES.values():
        is_printed = isinstance(schedule, Theorem2) and schedule.form == "printed"
        assert (schedule(coarse) == schedule(P)) != is_printed


def test_running_form_takes_the_running_sum() -> None:
    radius = XI * math.sqrt(31.0 + 2.0 * math.log(1.0 / DELTA))
    radius += (1.0 + math.sqrt(EPS / (1.0 - EPS))) * math.sqrt(0.04) * F
    assert Theorem2(F, XI, DELTA, EPS, "running")(P) == pytest.approx(radius / 0.2, rel=1e-14)


def test_srinivas_and_chowdhury_are_their_papers() -> None:
    expected = math.sqrt(2.0 * math.log(500 * 40**2 * math.pi**2 / (6.0 * DELTA)))
    assert Srinivas(DELTA)(P) == pytest.approx(expected, rel=1e-14)
    gamma = 0.5 * 7.5 * (1.0 + math.log(1.0 + 2.0 * 40 / 0.04))
    expected = F + XI / 0.2 * math.sqrt(2.0 * (gamma + 1.0 + math.log(1.0 / DELTA)))
    assert Chowdhury(F, XI, DELTA)(P) == pytest.approx(expected, rel=1e-14)


def test_chowdhurys_norm_counts_the_bias_of_an_approximate_posterior_as_theorem_2_does() -> None:
    exact, approximate = Chowdhury(F, XI, DELTA)(P), Chowdhury(F, XI, DELTA, EPS)(P)
    assert approximate - exact == pytest.approx(math.sqrt(EPS / (1.0 - EPS)) * F, rel=1e-12)
    # What is left of Theorem 2 without noise is the same.
    assert Chowdhury(F, 0.0, DELTA, EPS)(P) == pytest.approx(Theorem2(F, 0.0, DELTA, EPS)(P), rel=1e-14)


def test_srinivas_takes_a_box_for_a_grid_and_survives_many_dimensions() -> None:
    box = ScheduleContext(t=1, dim=2, n_arms=None, lam=1.0, kappa2=1.0, effective_dimension=1.0)
    assert Srinivas(DELTA)(box) == pytest.approx(math.sqrt(2.0 * math.log(1e4 * math.pi**2 / (6.0 * DELTA))), rel=1e-14)
    huge = ScheduleContext(t=10**6, dim=10_000, n_arms=None, lam=1.0, kappa2=1.0, effective_dimension=1.0)
    assert math.isfinite(Srinivas(DELTA)(huge))


def test_practical_width_grows_between_its_limits() -> None:
    def at(d_eff: float) -> float:
        return Practical(scale=1.0, low=0.7, high=2.0)(
            ScheduleContext(t=1, dim=1, n_arms=None, lam=1.0, kappa2=1.0, effective_dimension=d_eff)
        )

    assert at(0.0) == 0.7
    assert at(5.0) == pytest.approx(math.sqrt(math.log(6.0)), rel=1e-14)
    assert at(1e9) == 2.0


def test_batch_widens_by_the_leverages_in_flight_up_to_the_budget() -> None:
    def at(leverages: float) -> float:
        p = ScheduleContext(1, 1, None, 1.0, 1.0, 1.0, batch=3, batch_leverage=leverages)
        return Batch(Constant(2.0), leverage_budget=4.0)(p)

    assert at(0.0) == 2.0
    assert at(0.5) == pytest.approx(2.0 * math.sqrt(1.5), rel=1e-14)
    assert at(100.0) == 4.0


def test_widths_are_finite_with_the_smallest_probability() -> None:
    delta = math.ulp(0.0)
    for make in (Theorem2, Srinivas, Chowdhury):
        assert make(delta=0.1)(P) < make(delta=delta)(P) < 100.0 * make(delta=0.1)(P)
    assert theorem1_qbar(100) < theorem1_qbar(100, delta=delta) < 100.0 * theorem1_qbar(100)


def test_theorem1_qbar_is_its_formula() -> None:
    assert theorem1_qbar(1000, 0.1) == pytest.approx(72.0 * math.log(4e4), rel=1e-14)
    assert theorem1_qbar(50, 0.2, 0.25) == pytest.approx(6.0 * (5.0 / 3.0) * math.log(1000.0) / 0.0625, rel=1e-14)


@pytest.mark.parametrize("epsilon", [1e-160, 1e-200, 5e-324])
def test_an_oversampling_that_is_infinite_is_refused(epsilon: float) -> None:
    assert math.isfinite(theorem1_qbar(1000, 0.1, 1e-150))
    with pytest.raises(ArgumentError, match=rf"^epsilon: expected .* finite oversampling, got {epsilon!r}; pass 0.5"):
        theorem1_qbar(1000, 0.1, epsilon)


# -- coverage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", slow_but({8}, [8, 40]))
def test_safe_confidence_covers_functions_of_the_space(runs: int) -> None:
    """With probability 1 - delta the bands hold everywhere at every step; there are no failures in 40 runs."""
    kernel, noise_std, delta = rbf(1, 0.15), 0.3, 0.1
    lam = noise_std**2
    grid = torch.linspace(0.0, 1.0, 60, dtype=torch.float64)[:, None]
    missed = dict.fromkeys(("safe", "running"), 0)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        centres = torch.as_tensor(rng.random((8, 1)))
        a = torch.as_tensor(rng.standard_normal(8))
        a = a * float(rng.uniform(0.5, 3.0)) / float((a @ gram(kernel, centres) @ a).sqrt())
        norm = float((a @ gram(kernel, centres) @ a).sqrt())
        f = kernel(grid, centres) @ a
        bkb = BKB(kernel, lam, qbar=theorem1_qbar(60, delta / 2.0), resample="every", seed=seed)
        schedules = {form: Theorem2(norm, noise_std, delta / 2.0, form=form) for form in missed}
        covered = dict.fromkeys(missed, True)
        for _ in range(60):
            i = int(rng.integers(60))
            bkb.observe(grid[i : i + 1], float(f[i]) + noise_std * rng.standard_normal())
            p = ScheduleContext(bkb.observations.total, 1, 60, lam, 1.0, bkb.effective_dimension(), bkb.log_growth)
            posterior = bkb.posterior(grid)
            for form, schedule in schedules.items():
                covered[form] &= bool(((f - posterior.mean).abs() <= schedule(p) * posterior.stddev + 1e-12).all())
        for form in missed:
            missed[form] += not covered[form]
    assert missed == {"safe": 0, "running": 0}


@pytest.mark.parametrize("runs", slow_but({20}, [20, 60]))
def test_confidence_of_the_exact_gp_covers_draws_of_its_prior(runs: int) -> None:
    # Srinivas' schedule is Bayesian: f is drawn from the prior, and all arms are covered at all steps. With probability
    # 1 - delta at least; the largest deviation in 60 runs is 0.91 of the width, in the first 20 it is 0.73.
    kernel, lam = rbf(1, 0.15), 0.04
    grid = torch.linspace(0.0, 1.0, 50, dtype=torch.float64)[:, None]
    e, U = np.linalg.eigh(gram(kernel, grid).numpy())
    missed = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        f = torch.as_tensor(U @ (np.sqrt(np.maximum(e, 0.0)) * rng.standard_normal(50)))
        gp, covered = ExactGP(kernel, lam), True
        for t in range(1, 41):
            i = int(rng.integers(50))
            gp.observe(grid[i : i + 1], float(f[i]) + 0.2 * rng.standard_normal())
            posterior = gp.posterior(grid)
            beta = Srinivas(0.1)(ScheduleContext(t, 1, 50, lam, 1.0, effective_dimension=0.0))  # which it does not use
            covered &= bool(((f - posterior.mean).abs() <= beta * posterior.stddev + 1e-9).all())
        missed += not covered
    assert missed == 0


# -- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, math.nan, 2])
@pytest.mark.parametrize("make", [Theorem2, Srinivas, Chowdhury])
def test_probabilities_outside_the_open_unit_interval_are_refused(make: type, value: float) -> None:
    with pytest.raises(ArgumentError, match=r"^delta: expected a number strictly between 0 and 1, got"):
        make(delta=value)
    with pytest.raises(ArgumentError, match=r"^delta: "):
        theorem1_qbar(10, value)
    with pytest.raises(ArgumentError, match=r"^epsilon: "):
        Theorem2(epsilon=value)
    with pytest.raises(ArgumentError, match=r"^epsilon: "):
        theorem1_qbar(10, 0.1, value)


def test_unknown_form_and_unfit_epsilon_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r'^form: expected "printed", "safe" or "running", got \'loose\''):
        Theorem2(form="loose")
    with pytest.raises(ArgumentError, match=r"^epsilon: form=\"running\" needs epsilon <= 1/2, got 0.6"):
        Theorem2(form="running", epsilon=0.6)


@pytest.mark.parametrize("value", [1.0, -0.1, math.nan])
def test_chowdhurys_accuracy_outside_of_zero_to_one_is_refused(value: float) -> None:
    with pytest.raises(ArgumentError, match=r"^epsilon: expected a number from 0 to below 1, got"):
        Chowdhury(epsilon=value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(-1.0), r"^beta: expected a number >= 0, got -1\.0"),
        (lambda: Practical(scale=-1.0), r"^scale: expected a number >= 0"),
        (lambda: Practical(low=3.0, high=2.0), r"^low: expected a number <= high = 2\.0, got 3\.0"),
        (lambda: Theorem2(norm_bound=-5.0), r"^norm_bound: expected a number >= 0"),
        (lambda: Chowdhury(noise_std=-1.0), r"^noise_std: expected a number >= 0"),
        (lambda: Batch(Constant(1.0), 0.5), r"^leverage_budget: expected a number >= 1"),
        (lambda: theorem1_qbar(-1), r"^horizon: expected a whole number >= 1, got -1"),
    ],
)
def test_numbers_that_would_turn_or_narrow_the_bound_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize("bad", [2.0, None, Srinivas])
def test_batch_refuses_what_is_no_schedule(bad: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^inner: expected a schedule such as Constant\(2\.0\), got"):
        Batch(bad)


def test_as_confidence_takes_none_numbers_and_schedules() -> None:
    assert as_confidence(None) == Practical()
    assert as_confidence(2) == Constant(2.0)
    assert as_confidence(np.float32(0.5)) == Constant(0.5)
    schedule = Srinivas()
    assert as_confidence(schedule) is schedule
    assert as_confidence(max_of_two) is max_of_two


def max_of_two(progress: confidence.ScheduleContext) -> float:
    return 2.0


@pytest.mark.parametrize("bad", [-1.0, math.inf, math.nan])
def test_as_confidence_refuses_bad_numbers(bad: float) -> None:
    with pytest.raises(ArgumentError, match=r"^beta: expected a number >= 0, a schedule"):
        as_confidence(bad)


@pytest.mark.parametrize("bad", ["2", True, 1j, Srinivas, [1.0]])
def test_as_confidence_refuses_bad_types(bad: object) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^beta: expected a number >= 0, a schedule"):
        as_confidence(bad)
