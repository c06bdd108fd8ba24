"""Predictions of constraints, and what points may be."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, NotReadyError

BOX = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def searched(noise: float, **options: object) -> tuple[bo.Optimizer, list[dict[str, float]]]:
    rng = np.random.default_rng(0)
    opt = bo.Optimizer(BOX, constraints=["g", "h"], seed=0, **options)  # type: ignore[arg-type]
    points = [{"x": float(x), "y": float(y)} for x, y in rng.random((40, 2))]
    limits = {
        "g": [100.0 * (p["x"] - 0.5) + 100.0 * noise * rng.standard_normal() for p in points],
        "h": [p["y"] - 0.6 + noise * rng.standard_normal() for p in points],
    }
    opt.tell(points, [p["x"] for p in points], constraints=limits)
    return opt, points


def test_constraints_are_predicted_by_name_in_the_users_units() -> None:
    opt, _ = searched(0.05)
    fresh = [{"x": x, "y": y} for x in (0.1, 0.5, 0.9) for y in (0.2, 0.6)]
    found = opt.predict_constraints(fresh)
    assert list(found) == ["g", "h"]
    for name, truth in (("g", [100.0 * (p["x"] - 0.5) for p in fresh]), ("h", [p["y"] - 0.6 for p in fresh])):
        mean, std = found[name]
        assert mean.shape == std.shape == (6,)
        assert bool((np.abs(mean - truth) < 4.0 * std).all())
        assert 0.0 < std.max() < (5.0 if name == "g" else 0.05)  # smaller than the noise of a single value


@pytest.mark.parametrize("surrogate", [bo.ExactGP, bo.BKB])
@pytest.mark.parametrize("seed", [1, 2])
def test_exact_values_beside_noisy_ones_are_predicted_as_by_a_gaussian_process(surrogate: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, G, noise = rng.random((30, 2)), rng.random((60, 2)), rng.choice([0.0, 0.3], 30, p=[0.3, 0.7])
    y = np.sin(4.0 * X.sum(1)) + noise * rng.standard_normal(30)
    # scikit-learn's kernel matrix of exact values is singular without a little noise.
    oracle = GaussianProcessRegressor(Matern(0.5, nu=2.5), alpha=np.maximum(noise, 1e-5) ** 2, optimizer=None)
    mean, std = oracle.fit(X, y).predict(G, return_std=True)
    every = {} if surrogate is bo.ExactGP else {"qbar": 1e9, "max_inducing": None}
    model = surrogate(bo.kernels.matern52(2, 0.5), noise=0.04, **every)
    opt = bo.Optimizer(BOX, surrogate=model, fit=False, seed=0)
    opt.tell([dict(zip("xy", row, strict=True)) for row in X.tolist()], y, std=noise)
    found, deviation = opt.predict([dict(zip("xy", row, strict=True)) for row in G.tolist()])
    # In the model exact values have a thousandth of the standard deviation of the others.
    assert float((np.abs(found - mean) / std).max()) < 1e-4
    assert deviation == pytest.approx(std, rel=1e-2)


def test_feasibility_is_the_product_of_the_probabilities_that_the_constraints_are_at_most_zero() -> None:
    opt, points = searched(0.3)
    expected = np.prod([norm.cdf(-mean / std) for mean, std in opt.predict_constraints(points).values()], axis=0)
    # Rounding; the logarithm of a small probability has a larger error.
    assert opt.feasibility(points) == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert int(((expected > 0.05) & (expected < 0.95)).sum()) >= 5


def test_feasibility_is_that_of_the_noise_free_value_and_not_of_a_measurement() -> None:
    opt = bo.Optimizer(BOX, constraints=["g"], seed=0)
    points = [{"x": x, "y": 0.5} for x in np.tile([0.2, 0.8], 100).tolist()]
    measured = np.array([p["x"] - 0.5 for p in points]) + np.random.default_rng(0).standard_normal(200)
    opt.tell(points, [0.0, 1.0] * 100, constraints={"g": measured})
    assert opt.feasibility(points[:2]) == pytest.approx([1.0, 0.0], abs=0.05)
    assert [np.mean(measured[i::2] <= 0.0) for i in (0, 1)] == pytest.approx([0.5, 0.5], abs=0.2)


def test_without_noise_feasibility_at_told_points_is_certain() -> None:
    opt, points = searched(0.0)
    points = [p for p in points if abs(p["x"] - 0.5) > 0.001]  # the noise variance has a lower limit
    assert len(points) == 39
    truth = [float(p["x"] <= 0.5 and p["y"] <= 0.6) for p in points]
    assert opt.feasibility(points) == pytest.approx(truth, abs=1e-6)


def test_a_single_point_may_be_a_dict() -> None:
    opt, points = searched(0.05)
    (alone,), among = opt.feasibility(points[3]), opt.feasibility(points)[3]
    assert alone == pytest.approx(among, rel=1e-9)  # sums of another order
    (alone,), among = opt.predict_constraints(points[3])["g"][0], opt.predict_constraints(points)["g"][0][3]
    assert alone == pytest.approx(among, rel=1e-9)


def test_points_are_encoded_from_all_that_can_be_predicted() -> None:
    opt = bo.Optimizer(BOX, seed=0)
    one, two = {"x": 0.25, "y": 0.5}, {"x": 0.75, "y": 0.0}
    expected = torch.tensor([[0.25, 0.5], [0.75, 0.0]], dtype=torch.float64)
    assert torch.equal(opt.encode(one), expected[:1])
    for points in ([one, two], pd.DataFrame([one, two]), iter([one, two])):
        assert torch.equal(opt.encode(points), expected)


def test_without_constraints_all_points_are_feasible() -> None:
    opt = bo.Optimizer(BOX, seed=0)
    opt.tell({"x": 0.1, "y": 0.2}, 1.0)
    assert opt.predict_constraints({"x": 0.5, "y": 0.5}) == {}
    assert opt.feasibility([{"x": 0.5, "y": 0.5}] * 2).tolist() == [1.0, 1.0]


def test_before_the_first_value_there_is_no_prediction() -> None:
    opt = bo.Optimizer(BOX, constraints=["g"], seed=0)
    for call in (opt.predict_constraints, opt.feasibility):
        with pytest.raises(NotReadyError):
            call({"x": 0.5, "y": 0.5})


def test_a_constraint_without_a_value_has_no_probability() -> None:
    opt = bo.Optimizer(BOX, constraints=["g", "h"], seed=0)
    opt.tell({"x": 0.1, "y": 0.2}, 1.0, constraints={"g": -1.0})
    with pytest.raises(NotReadyError, match="at least one value of each constraint, got none of 'h'"):
        opt.feasibility({"x": 0.5, "y": 0.5})
    assert list(opt.predict_constraints({"x": 0.5, "y": 0.5})) == ["g"]


def test_a_constraint_that_was_always_zero_is_probably_satisfied() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, constraints=["flag"], seed=0)
    points = [{"x": i / 40} for i in range(12)]
    opt.tell(points, [float(i) for i in range(12)], constraints={"flag": [0.0] * 12})
    assert opt.feasibility(points) == pytest.approx([1.0] * 12, abs=1e-6)
    assert opt.feasibility({"x": 0.9})[0] > 0.8  # far away it is less certain


@pytest.mark.parametrize("params", [None, 3], ids=str)
def test_points_that_are_none_are_an_error(params: object) -> None:
    opt, _ = searched(0.05)
    for call in (opt.predict, opt.predict_constraints, opt.feasibility):
        with pytest.raises(ArgumentTypeError, match="params: expected a dict, got"):
            call(params)  # type: ignore[arg-type]


@pytest.mark.parametrize("space", [{"x": (0.0, 1.0)}, np.eye(3), bo.Pool.product({"x": [0.1, 0.5, 0.9]})], ids=str)
def test_a_trial_in_place_of_its_parameters_is_refused_with_a_hint(space: Any) -> None:
    opt = bo.Optimizer(space, seed=0)
    trial = opt.tell(opt.ask(), 1.0)
    calls = (opt.predict, opt.feasibility, opt.enqueue, lambda t: opt.ask(fixed=t), lambda t: opt.predict([t]))
    for call in calls:
        with pytest.raises(ArgumentTypeError, match=r"got a Trial \(pass its params\)"):
            call(trial)
    assert len(opt.trials) == 1


def by_choices() -> bo.Optimizer:
    opt = bo.Optimizer({"x": (0.0, 1.0), "kind": ["a", "b", "c"]}, seed=0)
    opt.tell([{"x": 0.1, "kind": "a"}, {"x": 0.9, "kind": "c"}], [1.0, 2.0])
    return opt


def by_text() -> bo.Optimizer:
    opt = bo.Optimizer(pd.DataFrame({"x": [0.0, 0.5, 1.0] * 2, "kind": ["a", "b", "c", "a", "c", "b"]}), seed=0)
    opt.tell_rows([0, 4], [1.0, 2.0])
    return opt


@pytest.mark.parametrize("make", [by_choices, by_text])
@pytest.mark.parametrize("code", [3.0, -1.0, 0.5])
def test_codes_of_no_choice_are_refused(make: Any, code: float) -> None:
    opt = make()
    X = torch.tensor([[0.5, 2.0], [0.5, code]], dtype=torch.float64)
    for call in (opt.predict_encoded, opt.feasibility_encoded):
        with pytest.raises(ArgumentError, match=rf"^X: .* from 0 to 2, in column 1, got {code} in row 1; see encode"):
            call(X)
        call(X[:1])


def test_numbers_of_no_object_are_refused() -> None:
    kernel = bo.BKB(kernel=lambda A, B: np.equal.outer(A, B).astype(float))
    opt = bo.Optimizer(["ant", "bee"], surrogate=kernel, seed=0)
    opt.tell({"arm": "bee"}, 1.0)
    with pytest.raises(ArgumentError, match=r"from 0 to 1, in column 0, got 2\.0 in row 0"):
        opt.predict_encoded(torch.tensor([[2.0]]))


def test_points_may_be_the_rows_of_a_data_frame() -> None:
    opt = bo.Optimizer({"kind": ["a", "b"], "x": bo.Float(0.0, 1.0, when={"kind": "a"})}, seed=0)
    points: list[dict[str, Any]] = [{"kind": "a", "x": 0.25}, {"kind": "b"}, {"kind": "a", "x": 0.75}]
    opt.tell(points, [0.3, 0.1, 0.2])
    frame = pd.DataFrame(points)  # with a gap where x does not exist
    assert np.array_equal(opt.predict(frame), opt.predict(points))
    with pytest.raises(ArgumentError, match="who"):
        opt.predict(frame.assign(who="me"))


@pytest.mark.parametrize("space", [{"x": (0.0, 1.0)}, np.eye(3), bo.Pool.product({"x": [0.1, 0.5, 0.9]})], ids=str)
def test_a_row_of_a_data_frame_is_refused_with_a_hint(space: Any) -> None:
    opt = bo.Optimizer(space, seed=0)
    opt.tell(opt.ask(), 1.0)
    row = pd.DataFrame([dict(opt.trials[0].params)]).iloc[0]
    for call in (opt.predict, opt.feasibility, opt.enqueue):
        with pytest.raises(ArgumentTypeError, match=r"got a Series \(pass dict\(row\) of a row\)"):
            call(row)
    opt.predict(dict(row))


def test_points_explain_nothing_of_a_plateau_and_something_of_a_slope() -> None:
    for slope in (0.0, 1.0):
        opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
        with pytest.raises(NotReadyError, match="explains_nothing: expected at least one value"):
            _ = opt.explains_nothing
        opt.tell([{"x": i / 19} for i in range(20)], [3.0 + slope * i for i in range(20)])
        assert opt.explains_nothing == (slope == 0.0)


def test_failures_shorten_the_start_up() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    assert opt.n_startup_values == opt.n_startup_trials == 10
    for _ in range(6):
        opt.fail(opt.ask())
    for i in range(7):
        opt.tell(opt.ask(), float(i))
    assert (opt.n_startup_values, opt.n_startup_trials) == (7, 10)
