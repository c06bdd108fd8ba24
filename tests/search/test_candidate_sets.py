"""The candidate sets of a problem, and how long they are kept."""

from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.search.candidates.base import CandidateSet
from bkbopt.search.designer import Designer


def known(where: Any) -> Designer:
    """The designer of an optimizer that knows eight values."""
    opt = bo.Optimizer(where, seed=0, n_startup_trials=4)
    for trial in opt.ask(8):
        opt.tell(trial, sum(float(v) for v in trial.params.values() if not isinstance(v, str)))
    return opt._core.update()


@torch.no_grad()
def in_turn(designer: Designer) -> list[CandidateSet]:
    request = designer._request(None, None, None, designer.problem.space, (0, 0))
    posteriors = designer.models.posteriors(designer.history.X[:0], designer.candidates.n_arms())
    criterion = posteriors.criterion(designer.options.rule, np.random.default_rng(0))
    return [candidates for candidates, _ in designer.candidates.in_turn(posteriors, criterion, request)]


CONDITIONAL = {"x": (0.0, 1.0), "kind": ["a", "b"], "z": bo.Float(0.0, 1.0, when={"kind": "a"})}


@pytest.mark.parametrize("where", [np.random.default_rng(0).random((20, 2)), {"x": (0.0, 1.0)}, CONDITIONAL])
def test_sets_are_kept_until_the_problem_changes(where: Any) -> None:
    designer = known(where)
    first, second = in_turn(designer), in_turn(designer)
    assert len(first) == (2 if where is CONDITIONAL else 1)
    assert all(a is b for a, b in zip(first, second, strict=True))
    designer.candidates.forget()
    assert not set(map(id, first)) & set(map(id, in_turn(designer)))


@pytest.mark.parametrize(
    ("where", "n_arms"),
    [
        (np.random.default_rng(0).random((20, 2)), 20),
        ({"x": bo.Int(1, 5), "kind": ["a", "b"]}, 10),
        ({"x": (0.0, 1.0)}, None),
        (CONDITIONAL, None),
    ],
)
def test_points_of_pools_and_grids_are_counted(where: Any, n_arms: int | None) -> None:
    assert known(where).candidates.n_arms() == n_arms
