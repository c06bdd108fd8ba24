"""Perturbations: when they are due, which are wide steps, and when they cost too much."""

import itertools

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.search import choosing
from bkbopt.search.candidates.base import Choice, Scope
from bkbopt.search.candidates.box import BoxCandidates
from bkbopt.search.criteria.criterion import Combined, Criterion, UpperBound
from bkbopt.search.perturbations import (
    AFFORDABLE,
    BY_BOUND,
    BY_IMPROVEMENT,
    FIRST_BESIDE_FAILURES,
    FIRST_PERTURBATION,
    ROW_BETA,
    WIDE_BETA,
    Perturbations,
    is_perturbation,
)

COORDINATE = Perturbations(wide=False)
BOTH = Perturbations(wide=True)


def test_perturbations_are_as_many_as_three_square_roots() -> None:
    due = [t for t in range(1, 1001) if COORDINATE.is_due(t)]
    assert due[0] > FIRST_PERTURBATION
    assert len(due) == 94 - 9  # the whole parts of 3 sqrt(1000) and 3 sqrt(10)


def test_where_trials_fail_perturbations_begin_later() -> None:
    opt = bo.Optimizer([(0.0, 1.0)] * 3, seed=0)
    opt.fail(opt.ask())
    for x in np.random.default_rng(0).random((30, 3)):
        opt.tell({f"x{j}": v for j, v in enumerate(x.tolist())}, float(x.sum()))
    designer = opt._core.update()
    posteriors = designer.models.posteriors(designer.history.X[:0], None)
    (candidates,) = designer.candidates.all_with({})
    due = [t for t in range(90) if is_perturbation(t, designer.models, posteriors, candidates)]
    assert due
    assert due[0] > FIRST_BESIDE_FAILURES


def test_every_second_perturbation_is_a_wide_step() -> None:
    due = [t for t in range(1, 1001) if BOTH.is_due(t)]
    assert due == [t for t in range(1, 1001) if COORDINATE.is_due(t)]
    assert all(BOTH.is_wide(t) != BOTH.is_wide(after) for t, after in itertools.pairwise(due))
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


def pool_search(noise_sd: float, **options: object) -> list[tuple[int, bool, bool]]:
    """For each perturbation that is due: its number, whether its row has a value, whether it is the best untried."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    frame = [{"x0": x, "x1": y} for x, y in X.tolist()]
    f = np.sin(6.0 * X[:, 0]) + X[:, 1]
    optimizer = bo.Optimizer(X, direction="maximize", seed=0, **options)  # type: ignore[arg-type]
    rows: list[int] = []
    found = []
    for number in range(40):
        is_due = Perturbations(wide=True).is_due(number)
        prediction = optimizer.predict(frame) if is_due else None
        trial = optimizer.ask()
        assert trial.index is not None
        if prediction is not None:
            mean, std = map(np.asarray, prediction)
            bound = mean + ROW_BETA * std
            bound[rows] = -np.inf
            found.append((number, trial.index in rows, trial.index == int(bound.argmax())))
        value = float(f[trial.index] + noise_sd * rng.standard_normal())
        optimizer.tell(trial, value, **({"constraints": {"g": -1.0}} if "constraints" in options else {}))  # type: ignore[arg-type]
        rows.append(trial.index)
    return found


def test_perturbations_of_a_noisy_pool_are_the_untried_rows_with_the_largest_bounds() -> None:
    found = pool_search(0.3)
    assert len(found) == 9
    assert all(is_best and not is_repeat for _, is_repeat, is_best in found)


KNOWN = bo.BKB(bo.kernels.matern52(2, 0.3), noise=0.09)


@pytest.mark.parametrize(
    ("noise_sd", "options"),
    [(0.3, {"constraints": ["g"]}), (0.3, {"fit": False, "surrogate": KNOWN}), (0.0, {"deterministic": True})],
    ids=["constraint", "known model", "no noise"],
)
def test_other_pools_have_none(monkeypatch: pytest.MonkeyPatch, noise_sd: float, options: dict[str, object]) -> None:
    def untried(*_: object) -> None:
        raise AssertionError("a perturbation")

    monkeypatch.setattr(choosing, "perturbation", untried)
    assert len(pool_search(noise_sd, **options)) == 9
    with pytest.raises(AssertionError, match="a perturbation"):
        pool_search(0.3)


def coordinate_perturbations(monkeypatch: pytest.MonkeyPatch, **options: object) -> set[tuple[type, float | None, int]]:
    """The kinds of criteria that coordinate perturbations were asked for, with their beta and number of candidates."""
    found = set()
    original = BoxCandidates._perturbed

    def record(self: BoxCandidates, criterion: Criterion, n: int, center: torch.Tensor, scope: Scope) -> Choice | None:
        beta = criterion.acquisition.beta if isinstance(criterion, UpperBound) else None
        found.add((type(criterion), beta, n))
        return original(self, criterion, n, center, scope)

    monkeypatch.setattr(BoxCandidates, "_perturbed", record)
    optimizer = bo.Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0, **options)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    for x in rng.random((60, 2)):
        limits = {"constraints": {"g": float(x[0] - 0.8)}} if options else {}
        optimizer.tell(dict(zip("xy", x.tolist(), strict=True)), float(x[0] - x[1]), **limits)  # type: ignore[arg-type]
    for _ in range(12):
        optimizer.ask()
    return found


def test_coordinate_perturbations_are_chosen_by_a_wide_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    assert coordinate_perturbations(monkeypatch) == {(UpperBound, WIDE_BETA, BY_BOUND)}


def test_under_constraints_they_are_the_best_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    assert coordinate_perturbations(monkeypatch, constraints=["g"]) == {(Combined, None, BY_IMPROVEMENT)}
