"""Objectives of extreme scale: an affine change of the values changes no suggestion, and all results are finite."""

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bkbopt as bo
from bkbopt.kernels import matern52
from tests.faults.numerics import (
    KINDS,
    OPTIONS,
    TRIALS,
    Kind,
    numbers_of,
    optimized,
    outcome,
    plain,
    regret,
    run,
    sampled,
    suits,
    values_of,
)
from tests.sweeps import slow_but

pytestmark = pytest.mark.usefixtures("quiet_optuna")

LARGEST = sys.float_info.max
FAR = {"x": 0.9, "y": 0.1}
#: Powers of two, whose products with the values are exact; the second leaves them just above the subnormal doubles.
FACTORS = [2.0**1020, 2.0**-1000]


def scaled(offset: float, factor: float) -> Kind:
    return Kind(lambda params, i, rng: offset + factor * plain(params))


def asked(opt: bo.Optimizer) -> list[dict[str, Any]]:
    return [dict(trial.params) for trial in opt.trials]


def sd_far_away(opt: bo.Optimizer) -> float:
    return float(opt.predict(FAR)[1][0])


@pytest.fixture(scope="module")
def unscaled() -> bo.Optimizer:
    """The search that others are compared with."""
    return optimized(KINDS["plain"], 0)


# -- an affine change of the objective ---------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", slow_but(FACTORS[1:], FACTORS))  # a study below takes the other one
def test_a_power_of_two_as_unit_changes_nothing_to_the_last_bit(unscaled: bo.Optimizer, factor: float) -> None:
    opt = optimized(scaled(0.0, factor), 0)
    assert asked(opt) == asked(unscaled)
    ours, theirs = opt.recommend(), unscaled.recommend()
    assert ours.params == theirs.params
    assert (ours.mean, ours.std) == (factor * theirs.mean, factor * theirs.std)
    assert opt.regret_certificate().bound == factor * unscaled.regret_certificate().bound


def test_a_power_of_two_as_unit_changes_nothing_in_a_study() -> None:
    one, other = sampled(KINDS["plain"], 0, 16), sampled(scaled(0.0, FACTORS[0]), 0, 16)
    assert [trial.params for trial in one.trials] == [trial.params for trial in other.trials]


def test_the_units_of_a_constraint_and_of_known_noise_change_nothing() -> None:
    def case(factor: float) -> bo.Optimizer:
        kind = Kind(
            lambda params, i, rng: factor * plain(params),
            limit=lambda params, i, rng: factor * (params["x"] - 0.25),
            std=lambda i: factor * 0.125 * (i % 2),
        )
        return optimized(kind, 0, 16)

    one, other = case(1.0), case(FACTORS[1])
    assert asked(one) == asked(other)
    assert one.recommend().params == other.recommend().params


@pytest.mark.parametrize("unit", slow_but([LARGEST / 5.0], [1e300, 1e-300, LARGEST / 5.0]))
def test_other_units_change_rounding_only(unscaled: bo.Optimizer, unit: float) -> None:
    opt = optimized(scaled(0.0, unit), 0)
    # Gradient searches over the square stop at slightly different points, which later trials differ by in turn.
    ours, theirs = (np.array([list(params.values()) for params in asked(o)]) for o in (opt, unscaled))
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-3)
    assert sd_far_away(opt) / unit == pytest.approx(sd_far_away(unscaled), rel=1e-3)


@pytest.mark.parametrize("offset", slow_but([1e12], [1e12, -1e12]))
def test_an_offset_of_a_trillion_leaves_the_search_as_it_was(unscaled: bo.Optimizer, offset: float) -> None:
    opt = optimized(scaled(offset, 1.0), 0)
    # Values are rounded to 1.2e-4, and a basin's bottom is flat: sqrt(1.2e-4 / 4) = 0.005 in x.
    assert regret(opt.recommend().params) < regret(unscaled.recommend().params) + 0.005
    assert opt.recommend().mean - offset == pytest.approx(unscaled.recommend().mean, abs=0.005)
    # Rounding is noise of 1e-4, where the plain objective has next to none; kernels are fitted as closely as that.
    assert sd_far_away(opt) == pytest.approx(sd_far_away(unscaled), rel=0.02)
    assert opt.regret_certificate().confidence_gap == pytest.approx(
        unscaled.regret_certificate().confidence_gap, rel=0.1
    )


@pytest.mark.parametrize("offset", slow_but([-1e15], [1e15, -1e15]))
def test_an_offset_of_1e15_leaves_what_its_doubles_can_tell_apart(offset: float) -> None:
    # Values are multiples of 0.125.
    assert regret(optimized(scaled(offset, 1.0), 0).recommend().params) < 0.125
    # With one form of kernel: so much rounding may decide which structure the default one has.
    opt, plain = (optimized(kind, 0, surrogate=bo.BKB(matern52(2))) for kind in (scaled(offset, 1.0), KINDS["plain"]))
    assert sd_far_away(opt) == pytest.approx(sd_far_away(plain), rel=0.5)


# -- what cannot be seen beside an outlier -----------------------------------------------------------------------------


def test_outliers_of_any_size_have_the_same_effect() -> None:
    """Also where there are too many for the quartiles."""

    def case(value: float) -> bo.Optimizer:
        return optimized(Kind(lambda params, i, rng: value if i % 3 == 1 else plain(params)), 0, 14)

    opt = case(1e10)
    assert asked(opt) == asked(case(LARGEST))
    good = [trial.params for trial in opt.trials if trial.id % 3 != 1]
    # A third of the values is wrong, so the others are not fitted closely; as one number they would have one mean.
    assert np.ptp(opt.predict(good)[0]) > 0.2 * np.ptp([plain(params) for params in good])


@pytest.mark.parametrize("far", slow_but([1e4, -1e300], [1e4, 1e300, -1e300]))
def test_one_far_value_of_a_constraint_leaves_its_edge_visible(far: float) -> None:
    kind = Kind(lambda params, i, rng: plain(params), limit=lambda params, i, rng: far if i == 4 else params["x"] - 0.2)
    # Taken for one number beside the far one, the others said nothing, and this was -1e300's or near x = 0.3.
    assert optimized(kind, 1).recommend().params["x"] <= 0.2


def test_known_noise_beyond_the_doubles_is_as_little_or_as_much_as_there_can_be() -> None:
    def case(std: float) -> bo.Optimizer:
        return optimized(replace(KINDS["plain"], std=lambda i: std), 0, 14)

    assert asked(case(0.0)) == asked(case(1e-300)) == asked(case(1e-160))
    assert asked(case(1e160)) == asked(case(1e300)) == asked(case(LARGEST))
    for std in (0.0, LARGEST):
        assert all(map(math.isfinite, numbers_of(case(std))))


# -- what comes out ----------------------------------------------------------------------------------------------------


FAST = [
    "offset 1e300, scale 1e288",
    "cauchy noise",
    "exp(200 f)",
    "both ends of the doubles",
    "constant largest",
    "two values",
    "one point, noisy values, offset 1e12",
    "std 1e-300 and 1e300",
    "constraint, always far above",
    "two objectives, offset -1e308, scale of the largest double",
]


@pytest.mark.parametrize("name", FAST)
def test_numbers_stay_finite_and_the_optimum_is_found(name: str) -> None:
    assert outcome(KINDS[name], 0, "bkb") == "fine"


@pytest.mark.parametrize("name", ["offset 1e12", "both ends of the doubles"])
def test_a_study_of_extreme_values_goes_on(name: str) -> None:
    assert outcome(KINDS[name], 0, "optuna") == "fine"


@pytest.mark.parametrize("name", slow_but(["zero"], ["zero", "constant -1e300"]))
def test_posterior_samples_of_a_constant_are_drawn(name: str) -> None:
    # Nothing is left of the prior variance, and the covariance of a thousand candidates is rounding error.
    opt = optimized(KINDS[name], 0, 14, acquisition="thompson")
    assert len(opt.trials) == 14


def test_results_are_finite_at_the_largest_doubles() -> None:
    opt = optimized(Kind(lambda params, i, rng: LARGEST * (1.0 if params["x"] > 0.5 else -1.0)), 0, 14)
    assert all(map(math.isfinite, numbers_of(opt)))
    assert opt.regret_certificate().bound <= LARGEST


def test_a_front_has_no_dominated_point_where_sums_are_rounded() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=["maximize", "maximize"], seed=0)
    told = [(1e300, 1.0), (1e300, 2.0), (LARGEST, -LARGEST), (LARGEST, LARGEST / 2.0), (LARGEST, LARGEST)]
    for i, values in enumerate(told):
        opt.tell({"x": i / 10.0}, values)
        assert [trial.values for trial in opt.best_trials] in ([values], [told[1], told[2]])


@pytest.mark.parametrize(
    ("unit", "volume"), [(1e300, LARGEST), (LARGEST / 2.0, LARGEST), (1e150, 4e300), (1e-300, 0.0)]
)
def test_a_hypervolume_is_a_double(unit: float, volume: float) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=["maximize", "minimize"], seed=0)
    opt.tell({"x": 0.5}, [unit, -unit])
    assert opt.hypervolume([-unit, unit]) == pytest.approx(volume, rel=1e-15)


def test_outcomes_are_counted_by_kind() -> None:
    counted = run(range(1), interfaces=())
    assert not counted
    kind = KINDS["plain"]
    assert not suits(replace(kind, std=lambda i: 1.0), "optuna")
    assert suits(kind, "learner")
    assert values_of(kind, FAR, 0, np.random.default_rng(0), -1.0) == [-plain(FAR)]


# -- all of it ---------------------------------------------------------------------------------------------------------

#: Fourier features without a residual fit exact values between noisy ones badly, whatever the scale.
STARVED = {("std 0 and 0.1", "fourier"), ("std 1e-300 and 1e300", "fourier")}


@pytest.mark.slow
@pytest.mark.parametrize("interface", [*OPTIONS, "optuna"])
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_comes_through_every_interface(name: str, interface: str) -> None:
    kind = KINDS[name]
    if (name, interface) in STARVED:
        kind = replace(kind, searched=False)
    if suits(kind, interface):
        assert outcome(kind, 0, interface) == "fine"


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["bkb", "exact"])
@pytest.mark.parametrize("offset", [1e12, 1e15])
def test_regret_under_an_offset_is_that_without_it(offset: float, surrogate: str) -> None:
    seeds = range(8)
    plainly, moved = (
        [regret(optimized(scaled(a, 1.0), seed, TRIALS, surrogate=surrogate).recommend().params) for seed in seeds]
        for a in (0.0, offset)
    )
    # Rounding to 1.2e-4 moves single runs by a few hundredths either way; rounding to 0.125 is half of that on average.
    assert np.mean(moved) < np.mean(plainly) + (0.01 if offset == 1e12 else 0.0625)
