"""Coordinate perturbations: when they are due, and when they cost too much."""

import torch

from bkbopt.search.perturbations import (
    AFFORDABLE,
    FIRST_PERTURBATION,
    FIRST_PERTURBATION_OF_CHOICES,
    is_affordable,
    perturbation_is_due,
)


def test_perturbations_are_as_many_as_three_square_roots() -> None:
    due = [t for t in range(1, 1001) if perturbation_is_due(t, choices=False)]
    assert due[0] > FIRST_PERTURBATION
    assert len(due) == 94 - 21  # the whole parts of 3 sqrt(1000) and 3 sqrt(50)
    early = [t for t in range(1, 51) if perturbation_is_due(t, choices=True)]
    assert early[0] > FIRST_PERTURBATION_OF_CHOICES


def test_perturbations_wait_while_they_have_cost_more_than_their_part() -> None:
    numbers = list(range(400, 600))
    due = torch.tensor([perturbation_is_due(t, choices=False) for t in numbers])
    assert int(due.sum()) > 10
    # The others have lost one in all, perturbations a little less, or a little more, than what they may.
    for factor, expected in ((0.99, True), (1.01, False)):
        losses = torch.where(due, factor * AFFORDABLE / due.sum(), 1.0 / (~due).sum())
        assert is_affordable(602, numbers, losses, choices=False) is expected


def test_every_fourth_perturbation_is_made_whatever_it_costs() -> None:
    due = [t for t in range(400, 1000) if perturbation_is_due(t, choices=False)]
    numbers = list(range(200, 400))
    dear = torch.tensor([perturbation_is_due(t, choices=False) for t in numbers]).double()
    made = [is_affordable(t, numbers, dear, choices=False) for t in due]
    assert made[:8].count(True) == made[1:9].count(True) == 2


def test_perturbations_are_affordable_where_none_was_made() -> None:
    assert is_affordable(602, [], torch.zeros(0), choices=False)
    assert is_affordable(602, [1, 2, 3], torch.zeros(3), choices=False)
