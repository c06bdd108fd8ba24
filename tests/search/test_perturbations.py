"""Perturbations: when they are due, which are wide steps, and when they cost too much."""

import itertools

import torch

from bkbopt.search.perturbations import (
    AFFORDABLE,
    FIRST_PERTURBATION,
    FIRST_PERTURBATION_OF_CHOICES,
    FIRST_WIDE_STEP,
    Perturbations,
)

COORDINATE = Perturbations(choices=False, wide=False)
BOTH = Perturbations(choices=False, wide=True)


def test_perturbations_are_as_many_as_three_square_roots() -> None:
    due = [t for t in range(1, 1001) if COORDINATE.is_due(t)]
    assert due[0] > FIRST_PERTURBATION
    assert len(due) == 94 - 21  # the whole parts of 3 sqrt(1000) and 3 sqrt(50)
    early = [t for t in range(1, 51) if Perturbations(choices=True, wide=False).is_due(t)]
    assert early[0] > FIRST_PERTURBATION_OF_CHOICES


def test_every_second_perturbation_is_a_wide_step_and_those_begin_early() -> None:
    due = [t for t in range(1, 1001) if BOTH.is_due(t)]
    late = [t for t in due if t > FIRST_PERTURBATION]
    assert late == [t for t in range(1, 1001) if COORDINATE.is_due(t)]
    assert all(BOTH.is_wide(t) != BOTH.is_wide(after) for t, after in itertools.pairwise(late))
    early = [t for t in due if t <= FIRST_PERTURBATION]
    assert early[0] > FIRST_WIDE_STEP
    assert all(map(BOTH.is_wide, early))
    assert not any(map(COORDINATE.is_wide, due))


def test_perturbations_wait_while_they_have_cost_more_than_their_part() -> None:
    numbers = list(range(400, 600))
    due = torch.tensor([COORDINATE.is_due(t) for t in numbers])
    assert int(due.sum()) > 10
    # The others have lost one in all, perturbations a little less, or a little more, than what they may.
    for factor, expected in ((0.99, True), (1.01, False)):
        losses = torch.where(due, factor * AFFORDABLE / due.sum(), 1.0 / (~due).sum())
        assert COORDINATE.is_affordable(602, numbers, losses) is expected


def test_early_wide_steps_count_as_perturbations() -> None:
    numbers = list(range(20, 50))
    losses = torch.tensor([float(BOTH.is_due(t)) for t in numbers])
    assert int(losses.sum()) > 2
    assert not BOTH.is_affordable(602, numbers, losses)


def test_perturbations_that_are_made_whatever_they_cost_are_wide_steps() -> None:
    latest = list(range(1000, 1200))
    dear = torch.tensor([float(BOTH.is_due(t)) for t in latest])
    made = [t for t in range(200, 1000) if BOTH.is_due(t) and BOTH.is_affordable(t, latest, dear)]
    assert made
    assert all(map(BOTH.is_wide, made))


def test_every_fourth_perturbation_is_made_whatever_it_costs() -> None:
    due = [t for t in range(400, 1000) if COORDINATE.is_due(t)]
    numbers = list(range(200, 400))
    dear = torch.tensor([COORDINATE.is_due(t) for t in numbers]).double()
    made = [COORDINATE.is_affordable(t, numbers, dear) for t in due]
    assert made[:8].count(True) == made[1:9].count(True) == 2


def test_perturbations_are_affordable_where_none_was_made() -> None:
    assert COORDINATE.is_affordable(602, [], torch.zeros(0))
    assert COORDINATE.is_affordable(602, [1, 2, 3], torch.zeros(3))
