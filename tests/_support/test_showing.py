"""Objects shown as the calls that make them, with the arguments that were given, and records without gaps."""

import pytest

import bkbopt as bo
from bkbopt._support.showing import shortened, shown_call, with_deviation
from bkbopt.adapters.optuna import BKBSampler


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (bo.BKB(), "BKB()"),
        (bo.BKB(noise=0.1, qbar=3, max_inducing=None), "BKB(noise=0.1, qbar=3.0, max_inducing=None)"),
        (bo.FourierGP(n_frequencies=64, seed=3), "FourierGP(n_frequencies=64, seed=3)"),
        (BKBSampler(), "BKBSampler()"),
        (BKBSampler(seed=3, beta=2.0, acquisition="logei"), "BKBSampler(seed=3, beta=2.0, acquisition='logei')"),
    ],
)
def test_surrogates_and_samplers_show_the_arguments_that_differ_from_the_defaults(given: object, text: str) -> None:
    assert repr(given) == text


def test_a_given_kernel_is_shown() -> None:
    kernel = bo.kernels.rbf(2, 0.3)
    assert repr(bo.ExactGP(kernel)) == f"ExactGP(kernel={kernel!r})"


def test_what_is_no_argument_is_left_out() -> None:
    assert shown_call(bo.ExactGP, {"noise": 0.5, "needs_kernel": True}) == "ExactGP(noise=0.5)"


@pytest.mark.parametrize(
    ("mean", "sd", "shown"),
    [
        (84.6924, 0.3621, "84.69 ± 0.36"),
        (7307.918, 2512.3, "7300 ± 2500"),
        (0.5, 0.001234, "0.5000 ± 0.0012"),
        (-0.0012, 0.36, "0.00 ± 0.36"),
        (0.0996, 0.0996, "0.10 ± 0.10"),
        (1234567.8, 0.12, "1.23457e+06 ± 0.12"),
        (3e-12, 2.2e-13, "3e-12 ± 2.2e-13"),
        (1.5e300, 2e299, "1.5e+300 ± 2e+299"),
        (1.7e308, 1.7e308, "1.7e+308 ± 1.7e+308"),
        (-1e300, 5e-324, "-1e+300 ± 4.94066e-324"),
        (0.25, 0.0, "0.25 ± 0"),
    ],
)
def test_a_number_has_the_places_of_its_deviation(mean: float, sd: float, shown: str) -> None:
    assert with_deviation(mean, sd) == shown


def test_long_names_are_shortened_in_the_middle_and_remain_different() -> None:
    names = ["x", "model.encoder.layers.attention.dropout", "a" * 20 + "1" + "b" * 20, "a" * 20 + "2" + "b" * 20]
    assert shortened(names[:2]) == ["x", "model.encod\u2026tion.dropout"]
    assert len(set(shortened(names))) == 4


def test_trials_and_recommendations_show_what_is_known() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    running = opt.ask()
    at = running.asked_at
    assert at is not None
    assert repr(running) == f"Trial(id=0, params={{'x': 0.5}}, state='RUNNING', asked_at={at.isoformat(' ')})"
    told = opt.tell(running, 0.25, std=0.0, user_attrs={"host": ""})
    assert repr(told).startswith(
        "Trial(id=0, params={'x': 0.5}, state='COMPLETE', values=(0.25,), stds=(0.0,), asked_at="
    )
    assert repr(told).endswith(", user_attrs={'host': ''})")
    choice = opt.recommend()
    assert repr(choice) == f"Recommendation(params={{'x': 0.5}}, mean={choice.mean!r}, std={choice.std!r})"
