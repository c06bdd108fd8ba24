"""Large batches in a box: what suggestions share, and where greedy ones go."""

from dataclasses import replace
from typing import cast

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree

import bkbopt as bo
from bkbopt.search.candidates.base import Scope, Shared
from bkbopt.search.candidates.box import N_NEAR, BoxCandidates
from bkbopt.search.criteria.criterion import Criterion, UpperBound, rule_of
from bkbopt.spaces.encoding import Encoding
from tests.search.candidates.boxes import candidates


def shared(*numbers: int, earlier: Criterion | None = None, finished: UpperBound | None = None) -> Shared:
    """What suggestions share where the points have these seeds."""
    greedy = None if finished is None else lambda: finished
    return Shared(numbers, (), (), lambda: (cast(Criterion, earlier), torch.zeros(0, 2)), greedy)


def test_shared_starts_follow_from_their_numbers_whatever_was_shared_before() -> None:
    gp = bo.BKB(bo.kernels.rbf(2, 0.2), noise=0.01)
    gp.observe([[0.5, 0.5], [0.2, 0.7]], [1.0, 0.8])
    criterion = UpperBound.over(gp.model, 2.0)
    used, fresh = (candidates({"x": (0.0, 1.0), "y": (0.0, 1.0)}) for _ in range(2))
    assert isinstance(used, BoxCandidates)
    assert isinstance(fresh, BoxCandidates)
    first = used._best_of_shared(criterion, shared(0, 1))
    second = used._best_of_shared(criterion, shared(0, 2))
    assert first is not None
    assert second is not None
    assert torch.equal(second, fresh._best_of_shared(criterion, shared(0, 2)))  # type: ignore[arg-type]
    assert not torch.equal(first, second)


@pytest.mark.parametrize("acquisition", ["ucb", "logei"])
def test_a_shared_start_is_the_best_of_the_shared_points(acquisition: str) -> None:
    gp = bo.BKB(bo.kernels.rbf(2, 0.2), noise=0.01)
    gp.observe([[0.5, 0.5], [0.2, 0.7]], [1.0, 0.8])
    criterion = rule_of(acquisition).build(gp.model, 2.0, 1.0, np.random.default_rng(0))
    box = candidates({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    assert isinstance(box, BoxCandidates)
    U = box.maximizer.everywhere(np.random.default_rng((0, 1)), box.maximizer.settings.n_shared)
    start = box._best_of_shared(criterion, shared(0, 1, earlier=criterion))
    assert start is not None
    assert torch.equal(start[0], U[criterion(box.embedding(U)).argmax()])


def test_a_shared_start_is_feasible() -> None:
    gp = bo.BKB(bo.kernels.rbf(2, 0.2), noise=0.01)
    gp.observe([[0.5, 0.5], [0.2, 0.7]], [1.0, 0.8])
    parameters = bo.Space.parse({"x": (0.0, 1.0), "y": (0.0, 1.0)}).keyed
    embedding = Encoding(tuple(parameters.items())).embedding(parameters, {})
    some = BoxCandidates(embedding, lambda point: point["x (float)"] < 0.1)
    none = BoxCandidates(embedding, lambda point: False)
    start = some._best_of_shared(UpperBound.over(gp.model, 2.0), shared(0, 1))
    assert start is not None
    assert float(start[0, 0]) < 0.1
    assert none._best_of_shared(UpperBound.over(gp.model, 2.0), shared(0, 1)) is None


def in_two_columns() -> tuple[bo.BKB, BoxCandidates]:
    """A posterior with its maximum inside the unit square, and the candidates of the square."""
    gp = bo.BKB(bo.kernels.rbf(2, 0.5), noise=0.04)
    X = np.random.default_rng(0).random((30, 2))
    gp.observe(X, -8.0 * ((X - 0.5) ** 2).sum(axis=1))
    box = candidates({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    assert isinstance(box, BoxCandidates)
    return gp, box


def batch(gp: bo.BKB, box: BoxCandidates, count: int, *, greedy: bool) -> torch.Tensor:
    """The suggestions (count, 2) of a large batch, each pending for those after it."""
    good = gp.observations.X[:5]
    X = torch.zeros(0, 2, dtype=torch.float64)
    finished = UpperBound.over(gp.model, 0.0 if greedy else 1.0)
    for seed in range(count):
        criterion = UpperBound.over(gp.fantasy(X) if greedy else gp.model, finished.acquisition.beta)
        same = shared(0, 1, finished=finished if greedy else None)
        choice = box.best(criterion, Scope(good, np.random.default_rng(seed), good[:0], same))
        assert choice is not None
        X = torch.cat([X, choice.x[None]])
    return X


def test_greedy_suggestions_leave_a_place_when_its_standard_deviation_is_halved() -> None:
    gp, box = in_two_columns()
    X = batch(gp, box, 60, greedy=True)
    for i, x in enumerate(X):
        # A quarter of the variance of each suggestion was left when it was made.
        assert float(gp.fantasy(X[:i])(x[None])[1]) >= 0.25 * float(gp.model(x[None])[1])


def test_three_in_ten_greedy_suggestions_spread_about_the_maximiser_as_far_as_the_noise_allows() -> None:
    gp, box = in_two_columns()
    finished = UpperBound.over(gp.model, 0.0)
    good = gp.observations.X[:5]
    X = []
    for seed in range(30):
        choice = box.best(finished, Scope(good, np.random.default_rng(seed), good[:0], shared(0, 1, finished=finished)))
        assert choice is not None
        X.append(choice.x)
    means = finished(torch.stack(X))
    assert float(means.min()) >= float(means.max()) - 0.2
    assert 3 <= int((means < means.max() - 1e-3).sum()) <= 15  # with a share of 0.3 either has less than 1 %


@pytest.mark.parametrize("spec", ["only choices", "nothing near"])
def test_a_greedy_suggestion_has_a_search_of_its_own_where_there_is_none_to_share(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = {f"k{i}": list("abcdefghij") for i in range(6)}
    box = candidates(letters if spec == "only choices" else {"x": (0.0, 1.0), "y": (0.0, 1.0)})
    assert isinstance(box, BoxCandidates)
    if spec == "nothing near":
        monkeypatch.setattr(box, "_near", lambda criterion, maximised, *_: maximised.U[:0])
    X = box.embedding(box.embedding.sample(12, np.random.default_rng(0)))
    gp = bo.ExactGP(bo.kernels.matern52(X.shape[1], categorical=range(6) if "only" in spec else ()), noise=1e-2)
    gp.observe(X, np.random.default_rng(1).standard_normal(12))
    finished = UpperBound.over(gp.model, 0.0)
    greedy, other = (
        box.best(finished, Scope(X[:3], np.random.default_rng(2), X[:0], same))
        for same in (shared(0, 1, finished=finished), shared(0, 1))
    )
    assert greedy is not None
    assert other is not None
    assert torch.equal(greedy.x, other.x)


def test_the_shared_maximiser_is_feasible() -> None:
    gp, _ = in_two_columns()
    parameters = bo.Space.parse({"x": (0.0, 1.0), "y": (0.0, 1.0)}).keyed
    embedding = Encoding(tuple(parameters.items())).embedding(parameters, {})
    box = BoxCandidates(embedding, lambda point: point["x (float)"] < 0.3)
    good = gp.observations.X[gp.observations.X[:, 0] < 0.3]
    scope = Scope(good, np.random.default_rng(0), good[:0])
    found = box._maximiser(lambda: UpperBound.over(gp.model, 0.0), shared(0, 1), scope)
    assert bool((found.U[:, 0] < 0.3).all())


def test_greedy_suggestions_are_nearly_as_good_as_the_best_place_of_a_grid_that_is_open() -> None:
    gp, box = in_two_columns()
    X = batch(gp, box, 30, greedy=True)
    axis = torch.linspace(0.0, 1.0, 41, dtype=torch.float64)
    G = torch.cartesian_prod(axis, axis)
    mean, before = gp.model(G)
    losses = []
    for i, x in enumerate(X):
        is_open = gp.fantasy(X[:i])(G)[1] >= 0.25 * before
        losses.append(float(mean[is_open].max() - gp.model(x[None])[0]))
    assert max(losses) < 0.2 + 0.15  # the noise of those that spread, and 160 points in place of 1,681
    assert float(np.median(losses)) < 0.1


@pytest.mark.parametrize("n", [1, 5, 40])
def test_greedy_suggestions_pass_over_taken_points_in_the_order_of_the_criterion(n: int) -> None:
    gp, box = in_two_columns()
    finished, good = UpperBound.over(gp.model, 0.0), gp.observations.X[:5]
    same = shared(0, 1, finished=finished)
    scope = Scope(good, np.random.default_rng(3), good[:0], same)
    maximised = box._maximiser(lambda: finished, same, scope)
    U = torch.cat(list(box._near(finished, maximised, 0.25, np.random.default_rng(3))))
    assert len(U) == len(torch.unique(U, dim=0)) == len(maximised.U) + N_NEAR + N_NEAR // 2
    choice = box.best(finished, replace(scope, rng=np.random.default_rng(3), taken=box.embedding(U[:n])))
    assert choice is not None
    assert torch.equal(choice.x, box.embedding(box.space.canonical(U[n : n + 1]))[0])


def test_the_maximiser_is_searched_again_when_trials_have_finished() -> None:
    gp, used = in_two_columns()
    scope = Scope(gp.observations.X[:5], np.random.default_rng(0), gp.observations.X[:0])
    before, same = UpperBound.over(gp.model, 0.0), shared(0, 1)
    first = used._maximiser(lambda: before, same, scope)
    gp.observe([[0.1, 0.1]], [9.0])
    after, later = UpperBound.over(gp.model, 0.0), replace(same, data=(1,))
    second, fresh = (box._maximiser(lambda: after, later, scope) for box in (used, in_two_columns()[1]))
    assert torch.equal(second.U, fresh.U)
    assert not torch.equal(second.U[0], first.U[0])


@pytest.mark.parametrize("what", ["numbers", "good points"])
def test_the_search_for_the_maximiser_follows_from_its_seed_and_its_starts(what: str) -> None:
    gp, used = in_two_columns()
    good = gp.observations.X
    criterion = UpperBound.over(gp.model, 0.0)
    first, second = shared(0, 1), shared(0, 2) if what == "numbers" else shared(0, 1)
    later = Scope(good[:5] if what == "numbers" else good[5:9], np.random.default_rng(0), good[:0])
    used._maximiser(lambda: criterion, first, Scope(good[:5], np.random.default_rng(0), good[:0]))
    again, fresh = (box._maximiser(lambda: criterion, second, later) for box in (used, in_two_columns()[1]))
    assert torch.equal(again.U, fresh.U)


def test_suggestions_of_a_large_batch_maximise_the_users_own_bound() -> None:
    gp, box = in_two_columns()
    bounds = UpperBound.over(gp.model, 1.0)(batch(gp, box, 30, greedy=False))
    assert float(bounds.max() - bounds.min()) < 1e-6  # an ascent of 15 steps


def test_a_batch_is_spread_where_the_dictionary_is_full_too() -> None:
    """Pending points that only the residual knows of would leave the variance, and so the maximiser, as they are."""
    opt = bo.Optimizer(dict.fromkeys("abcdefgh", (0.0, 1.0)), surrogate=bo.BKB(max_inducing=30), seed=0)
    X = np.random.default_rng(0).random((300, 8))
    values = ((X - 0.4) ** 2).sum(1) + 0.3 * np.sin(20.0 * X).sum(1)
    opt.tell([dict(zip("abcdefgh", row, strict=True)) for row in X.tolist()], values.tolist())
    U = np.array([[trial.params[name] for name in "abcdefgh"] for trial in opt.ask(40)])
    assert np.median(cKDTree(U).query(U, 2)[0][:, 1]) > 0.1  # 0.002 within the budget
