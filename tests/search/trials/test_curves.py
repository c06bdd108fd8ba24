"""Estimates of the final values of pruned trials."""

import math

import numpy as np
import pytest

from bkbopt.search.trials.curves import FinalValues


def estimates_of(v: list[float], y: list[float], asked: list[float], sign: float = -1.0) -> list[float]:
    known = FinalValues(sign, [{3: value} for value in v], y)
    return [known({3: value}) for value in asked]


def test_where_final_values_increase_with_intermediate_ones_the_estimate_interpolates_them() -> None:
    v, y = [4.0, 1.0, 2.0, 9.0], [40.0, 10.0, 20.0, 90.0]
    assert estimates_of(v, y, [*v, 3.0, 6.5]) == pytest.approx([*y, 30.0, 65.0])


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_estimates_never_decrease_and_are_not_better_than_the_best_final_value(sign: float) -> None:
    rng = np.random.default_rng(1)
    v = rng.normal(size=30)
    y = v + rng.normal(size=30)
    asked = np.linspace(-9.0, 9.0, 200)
    estimates = np.array(estimates_of(v.tolist(), y.tolist(), asked.tolist(), sign))
    assert bool((np.diff(estimates) >= 0.0).all())
    assert sign * estimates.max() <= (sign * y).max() if sign > 0 else estimates.min() >= y.min()


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_beyond_the_poorest_value_the_slope_is_that_of_a_regression_with_one_pair_of_slope_one(
    n: int, sign: float
) -> None:
    rng = np.random.default_rng(3)
    v, pruned = rng.uniform(size=n), rng.uniform(size=7) - sign * 2.0
    y = 5.0 + 2.0 * v + 0.1 * rng.normal(size=n)
    known = FinalValues(sign, [{3: x} for x in [*v, *pruned]], [*y, *[math.nan] * 7])
    # The pair as data: its weight in a least-squares problem through the means is one.
    far = math.sqrt(np.mean((np.append(v, pruned) - v.mean()) ** 2))
    A, b = np.append(v - v.mean(), far), np.append(y - y.mean(), far)
    slope = np.linalg.lstsq(A[:, None], b, rcond=None)[0].item()
    poorest = v.min() if sign > 0 else v.max()
    assert known({3: poorest - 3.0 * sign}) == pytest.approx(known({3: poorest}) - 3.0 * sign * slope)


def test_few_good_complete_trials_leave_the_estimates_of_poor_ones_their_distances() -> None:
    # The pairs, which differ by noise, have a negative slope.
    good, poor = [{1: 3.0}, {1: 3.1}, {1: 3.2}], [{1: 20.0}, {1: 50.0}]
    known = FinalValues(-1.0, [*good, *poor], [0.2, 0.1, 0.0, math.nan, math.nan])
    near, far = (known(curve) for curve in poor)
    assert 16.0 < near < 20.0
    assert far - near == pytest.approx(30.0, rel=0.01)


def test_trials_that_were_pruned_later_count_with_their_estimates() -> None:
    # Complete trials have values 0, ..., 3 at both steps; those pruned at step 2 were the poor ones of step 1.
    complete = [{1: float(i), 2: float(i)} for i in range(4)]
    later = [{1: 10.0 + i, 2: 20.0 + i} for i in range(4)]
    alone = FinalValues(-1.0, complete, [0.0, 1.0, 2.0, 3.0])
    known = FinalValues(-1.0, [*complete, *later], [0.0, 1.0, 2.0, 3.0, *[math.nan] * 4])
    assert [alone({2: value}) for value in (20.0, 23.0)] == pytest.approx([20.0, 23.0])
    assert alone({1: 11.0}) == pytest.approx(11.0)
    assert known({1: 11.0}) == pytest.approx(21.0)


def test_trials_that_were_pruned_earlier_do_not_count() -> None:
    complete = [{step: i / 11.0 + 10.0 * (6 - step) for step in range(7)} for i in range(12)]
    y = [i / 11.0 for i in range(12)]
    early = [{0: curve[0] + 3.0} for curve in complete[:4]]
    alone, known = FinalValues(-1.0, complete, y), FinalValues(-1.0, [*complete, *early], [*y, *[math.nan] * 4])
    asked = {step: 1.5 + 10.0 * (6 - step) for step in range(4)}
    assert alone(asked) == pytest.approx(1.5)
    assert known(asked) == alone(asked)


@pytest.mark.parametrize("unit", [2.0**600, 2.0**-600])
def test_estimates_have_the_unit_of_the_values(unit: float) -> None:
    rng = np.random.default_rng(6)
    v = rng.normal(size=20)
    y, asked = v + 0.3 * rng.normal(size=20), np.linspace(-5.0, 5.0, 30)
    plain = estimates_of(v.tolist(), y.tolist(), asked.tolist())
    scaled = estimates_of((unit * v).tolist(), (unit * y).tolist(), (unit * asked).tolist())
    assert [value / unit for value in scaled] == pytest.approx(plain)


def test_a_steep_step_of_the_regression_gives_finite_estimates() -> None:
    v, y = [0.0, 1.0, 2.0, 3.0, 3.0 + 1e-12], [0.0, 1.0, 2.0, 3.0, 1e308]
    assert 3.0 <= estimates_of(v, y, [3.0 + 5e-13], sign=1.0)[0] <= 1e308


def test_enormous_values_give_finite_estimates() -> None:
    y = [1e308, -1e308, 1e307, 0.0, 1.0]
    assert all(
        math.isfinite(value) for value in estimates_of([1e308, -1e308, 1.0, 2.0, 3.0], y, [1.7e308, -1.7e308, 0.0])
    )


def test_without_any_relation_or_with_the_opposite_one_the_estimate_is_the_mean() -> None:
    y = [1.0, 2.0, 3.0, 6.0]
    assert estimates_of([0.0] * 4, y, [-5.0, 0.0, 5.0]) == pytest.approx([3.0] * 3)
    assert estimates_of([4.0, 3.0, 2.0, 1.0], y, [0.0, 2.5, 9.0]) == pytest.approx([3.0] * 3)


def test_mirrored_values_have_mirrored_estimates() -> None:
    rng = np.random.default_rng(2)
    v, y = rng.normal(size=12), rng.normal(size=12)
    plain = estimates_of(v.tolist(), y.tolist(), v.tolist())
    mirrored = estimates_of((-v).tolist(), (-y).tolist(), (-v).tolist(), sign=1.0)
    assert mirrored == pytest.approx([-value for value in plain])


def test_the_last_step_of_the_pruned_trial_is_compared_with_the_last_value_before_it() -> None:
    # Steps 0, 4 and 8; a trial pruned at step 6 is compared with the values at step 4.
    curves = [{0: 0.0, 8: 50.0 - i, 4: float(i)} for i in range(4)]
    known = FinalValues(-1.0, curves, [10.0 * i for i in range(4)])
    assert known({6: 2.0, 0: 77.0}) == pytest.approx(20.0)


@pytest.mark.parametrize("curve", [{}, {3: math.nan}, {2: 1.0}], ids=["no value", "NaN", "before all others"])
def test_without_a_comparable_value_there_is_no_estimate(curve: dict[int, float]) -> None:
    assert math.isnan(FinalValues(-1.0, [{3: float(i)} for i in range(6)], [float(i) for i in range(6)])(curve))


def test_without_a_trial_that_ran_longer_and_has_values_there_is_no_estimate() -> None:
    assert math.isnan(FinalValues(-1.0, [{2: 4.0}, {2: 7.0}], [math.nan] * 2)({2: 4.0}))
    assert math.isnan(FinalValues(-1.0, [{2: 4.0}, {}], [math.nan, 1.0])({2: 4.0}))


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_values_that_are_not_finite_give_no_pair_and_finite_estimates(value: float) -> None:
    v, y = [float(i) for i in range(6)], [float(i) for i in range(6)]
    expected = estimates_of(v, y, [2.5])
    assert estimates_of([*v, value], [*y, 3.0], [2.5]) == expected
    assert estimates_of([*v, 3.0], [*y, value], [2.5]) == expected


def test_infinite_intermediate_values_have_the_estimate_of_the_extreme_ones() -> None:
    v = [float(i) for i in range(6)]
    assert estimates_of(v, v, [-math.inf, math.inf]) == [0.0, 5.0]
