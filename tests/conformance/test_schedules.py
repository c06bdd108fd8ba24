"""What every schedule of beta keeps to.

One of `bkbopt.confidence` joins by itself if its arguments have defaults, options and others by a line in `SCHEDULES`.
"""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bkbopt as bo
from bkbopt import confidence
from bkbopt.confidence import (
    Batch,
    Chowdhury,
    Confidence,
    Constant,
    ScheduleContext,
    Srinivas,
    Theorem2,
    as_confidence,
    beta_of,
)
from bkbopt.optimizer.translation.description import describe_schedule, read_schedule
from tests.conformance.suites import check_complete

NOW = ScheduleContext(t=40, dim=3, n_arms=500, lam=0.04, kappa2=2.0, effective_dimension=7.5, log_growth=31.0)
#: Other classes of the module.
EXEMPT = {"Confidence": "the protocol", "ScheduleContext": "what schedules are called with"}
PUBLIC: dict[str, Any] = {
    name: value for name in confidence.__all__ if isinstance(value := getattr(confidence, name), type)
}
SCHEDULES: dict[str, Confidence] = {
    "Constant": Constant(1.5),
    "Theorem2": Theorem2(1.7, 0.2),
    "Theorem2, printed": Theorem2(1.7, 0.2, form="printed"),
    "Theorem2, running": Theorem2(1.7, 0.2, form="running"),
    "Chowdhury, few inducing points": Chowdhury(1.7, 0.2, epsilon=0.25),
    "Batch": Batch(Constant(1.0)),
    "Batch of a batch": Batch(Batch(Srinivas(delta=0.2), leverage_budget=4.0)),
}
SCHEDULES |= {name: cls() for name, cls in PUBLIC.items() if name not in SCHEDULES.keys() | EXEMPT.keys()}


def test_every_public_schedule_is_a_subject_and_can_be_saved() -> None:
    check_complete(PUBLIC, {type(schedule).__name__ for schedule in SCHEDULES.values()}, EXEMPT)
    assert {describe_schedule(schedule)["class"] for schedule in SCHEDULES.values()} == PUBLIC.keys() - EXEMPT.keys()


@pytest.fixture(params=SCHEDULES)
def schedule(request: pytest.FixtureRequest) -> Confidence:
    return SCHEDULES[request.param]


@pytest.mark.parametrize("c", [1e-3, 10.0])
def test_widths_have_no_unit(schedule: Confidence, c: float) -> None:
    """Everything measured in other units of y gives the same multiple of a standard deviation."""
    other = replace(NOW, lam=NOW.lam * c**2, kappa2=NOW.kappa2 * c**2)
    # The noise is measured in y. The norm keeps its number, since the kernel changes too.
    scaled = (
        replace(schedule, noise_std=schedule.noise_std * c) if isinstance(schedule, Theorem2 | Chowdhury) else schedule
    )
    if isinstance(schedule, Theorem2) and schedule.form == "printed":
        # kappa2 t in its logarithm has a unit: an erratum of the paper, which the safe form mends.
        assert scaled(other) != pytest.approx(schedule(NOW), rel=1e-3)
    else:
        assert scaled(other) == pytest.approx(schedule(NOW), rel=1e-12)


def test_widths_are_finite_at_the_first_step_and_never_shrink_with_what_is_learnt(schedule: Confidence) -> None:
    widths = [
        schedule(ScheduleContext(t, 2, 100, 0.1, 1.0, d, g, batch_leverage=g))
        for t, d, g in [(0, 0.0, 0.0), (1, 0.9, 1.0), (10, 5.0, 8.0), (10_000, 50.0, 200.0)]
    ]
    assert all(math.isfinite(w) and w >= 0.0 for w in widths)
    assert widths == sorted(widths)
    assert isinstance(schedule, Confidence)


def test_width_is_a_number_that_the_search_takes(schedule: Confidence) -> None:
    assert beta_of(as_confidence(schedule), NOW) == schedule(NOW)


def test_schedule_is_read_back_from_a_log_or_given_again(schedule: Confidence) -> None:
    saved = json.loads(json.dumps(describe_schedule(schedule)))
    read = read_schedule(saved, schedule if saved["class"] is None else None)
    assert read == schedule
    assert read(NOW) == schedule(NOW)


def test_an_optimizer_asks_the_schedule_with_the_state_of_its_search(schedule: Confidence) -> None:
    heard: list[ScheduleContext] = []

    def heeded(context: ScheduleContext) -> float:
        heard.append(context)
        return schedule(context)

    arms = np.random.default_rng(0).random((20, 2))
    gp = bo.ExactGP(bo.kernels.rbf(2, 0.4, 2.0), noise=0.04)
    opt = bo.Optimizer(arms, surrogate=gp, beta=heeded, fit=False, n_startup_trials=2, seed=0)
    opt.tell([{"index": i} for i in (0, 5, 5)], [0.3, -0.2, 0.1])
    assert opt.beta == schedule(heard[-1])
    now = heard[-1]
    assert (now.t, now.dim, now.n_arms, now.lam, now.batch, now.batch_leverage) == (3, 2, 20, 0.04, 0, 0.0)
    assert now.kappa2 == pytest.approx(2.0)
    assert 0.0 < now.effective_dimension < 2.0
    assert now.leverage_sum >= now.effective_dimension
    opt.ask()
    opt.ask()
    assert heard[-1].batch == 1
    assert heard[-1].batch_leverage > 0.0


CONTEXTS = st.builds(
    ScheduleContext,
    t=st.integers(0, 10**9),
    dim=st.integers(1, 10**4),
    n_arms=st.none() | st.integers(1, 10**12),
    lam=st.floats(1e-12, 1e12),
    kappa2=st.floats(1e-12, 1e12),
    effective_dimension=st.floats(0.0, 1e6),
    log_growth=st.floats(0.0, 1e8),
    batch=st.integers(0, 1000),
    batch_leverage=st.floats(0.0, 1e6),
    leverage_sum=st.floats(0.0, 1e9),
)


@given(CONTEXTS)
def test_widths_are_finite_and_not_negative_wherever_a_search_is(context: ScheduleContext) -> None:
    for name, schedule in SCHEDULES.items():
        width = schedule(context)
        assert math.isfinite(width), name
        assert width >= 0.0, name


@given(CONTEXTS, st.integers(0, 10**6), st.floats(0.0, 1e3), st.floats(0.0, 1e3))
def test_widths_do_not_shrink_with_evaluations_and_dimensions(
    context: ScheduleContext, t: int, d: float, growth: float
) -> None:
    later = replace(
        context,
        t=context.t + t,
        effective_dimension=context.effective_dimension + d,
        leverage_sum=context.leverage_sum + d,
        log_growth=context.log_growth + growth,
    )
    for name, schedule in SCHEDULES.items():
        assert schedule(later) >= schedule(context) * (1.0 - 1e-15), name
