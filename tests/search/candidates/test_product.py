"""Products too large to be listed: results of the search over their parts, compared with the exact argmax."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import bkbopt as bo
from bkbopt.errors import ArgumentError, SpaceExhaustedError
from bkbopt.kernels import matern52
from bkbopt.search.candidates import product as product_candidates
from bkbopt.search.candidates.base import Scope, Shared
from bkbopt.search.candidates.listed import PoolCandidates
from bkbopt.search.candidates.product import ProductCandidates, candidates_of_pool
from bkbopt.search.choosing import LARGE_BATCH
from bkbopt.search.criteria.criterion import Criterion, UpperBound, rule_of
from bkbopt.search.designer import Designer
from bkbopt.search.maximizers import product as product_maximizer
from bkbopt.search.maximizers.pool import PoolMaximizer
from bkbopt.search.maximizers.product import CROSS, ProductMaximizer
from bkbopt.search.options import Options
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.search.trials.evaluations import Evaluation, Problem
from bkbopt.spaces import product_pool
from bkbopt.spaces.product_pool import ProductPool
from bkbopt.spaces.rows import ProductRows
from tests.search.logs import LIBRARY, pool_of

RNG = np.random.default_rng(3)
PARTS = {"a": RNG.random((9, 2)), "b": RNG.random((8, 2)), "c": [0.0, 0.3, 1.0]}


def small() -> ProductPool:
    pool = pool_of(bo.Pool.product(PARTS))
    assert isinstance(pool, ProductPool)
    return pool


def library() -> ProductPool:
    pool = pool_of(LIBRARY)
    assert isinstance(pool, ProductPool)
    return pool


def model_of(pool: ProductPool, n: int = 25) -> Any:
    surrogate = bo.BKB(matern52(pool.dim, 0.7), 1e-3)
    X = pool.X[torch.from_numpy(np.random.default_rng(1).integers(len(pool), size=n))]
    surrogate.observe(X, torch.sin(5.0 * X).sum(1))
    return surrogate.model


def scope(pool: ProductPool, taken: Tensor | None = None, **options: Any) -> Scope:
    nothing = pool.X[torch.zeros(0, dtype=torch.int64)]
    return Scope(
        options.pop("incumbents", nothing), np.random.default_rng(0), nothing if taken is None else taken, **options
    )


def designer(pool: ProductPool, feasible: Callable[[Any], bool] | None = None, **options: Any) -> Designer:
    return Designer(
        Problem(pool=pool, feasible=feasible), Options(ModelOptions(bo.BKB()), **{"n_startup_trials": 3, **options}), 0
    )


def followed(pool: ProductPool, n: int = 20, **options: Any) -> Designer:
    mine = designer(pool, **options)
    rows = np.random.default_rng(2).integers(len(pool), size=n).tolist()
    values = [float(torch.sin(4.0 * pool.X[row]).sum()) for row in rows]
    mine.update(
        Evaluation(i, "COMPLETE", pool.point(row), None, (float(i), i), (values[i],)) for i, row in enumerate(rows)
    )
    return mine


@pytest.mark.parametrize("beta", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("excluded", [0, 40])
def test_the_search_finds_the_argmax_of_products_that_are_no_longer_than_its_cross(beta: float, excluded: int) -> None:
    # 216 rows: the best 20 entries of each part are all of them, so that the cross is the whole product.
    pool = small()
    criterion = UpperBound.over(model_of(pool), beta)
    ranked = torch.argsort(criterion(pool.X[:]), descending=True)
    closed = ranked[:excluded]
    mask = torch.zeros(len(pool), dtype=torch.bool)
    mask[closed] = True
    exact = PoolMaximizer(pool.X).argmax(criterion.model, beta, mask)
    found = ProductCandidates(pool, None).best(criterion, scope(pool, pool.X[closed]))
    assert found is not None
    assert found.index == exact.index
    assert torch.equal(found.x, pool.X[exact.index])
    assert found.point == pool.point(exact.index)


def test_a_search_ends_on_a_row_that_no_line_through_it_has_a_better_one_than() -> None:
    pool = library()
    score = UpperBound.over(model_of(pool), 2.0)
    search = ProductMaximizer(pool.X)
    usable = lambda row: row % 3 != 0  # noqa: E731
    found = search.best(score, torch.tensor([12, 345_678]), usable)
    assert found is not None
    assert usable(found.row)
    assert found.score == pytest.approx(float(score(pool.X[found.row][None])[0]), rel=1e-12)
    for p in range(4):
        line = search.line(found.row, p)
        scores = score(pool.X[line])
        assert float(scores[[usable(row) for row in line.tolist()]].max()) <= found.score + 1e-12


def test_a_cross_finds_maxima_that_no_line_contains() -> None:
    # One step along either part is worse, and one along both better.
    rows = ProductRows((torch.arange(30.0)[:, None], torch.arange(30.0)[:, None]))

    def score(X: Tensor) -> Tensor:
        x, y = X.double().unbind(1)
        return -((x - y) ** 2) * 10.0 + x

    found = ProductMaximizer(rows).best(score, torch.tensor([0]), lambda row: True)
    assert found is not None
    assert found.row == 30 * 29 + 29


def test_a_cross_of_many_parts_has_the_parts_whose_second_entries_are_best() -> None:
    weights = 2.0 ** -torch.randperm(20, generator=torch.Generator().manual_seed(0)).double()
    rows = ProductRows(tuple(torch.arange(2.0)[:, None] for _ in weights))
    search = ProductMaximizer(rows)
    climb = search.climbed(lambda X: X.double() @ weights, 0, lambda row: True)
    assert climb is not None
    cross = search.cross(climb)
    assert len(cross) == CROSS
    varies = rows.entries(cross).amin(0) == 0
    assert set(torch.nonzero(varies)[:, 0].tolist()) == set(weights.argsort()[:13].tolist())


def test_a_climb_goes_along_lines_until_no_line_has_a_better_row() -> None:
    # A ridge along the diagonal: each line leads 50 entries further, and ten of them in turn to its end.
    rows = ProductRows((torch.arange(500.0)[:, None], torch.arange(500.0)[:, None]))

    def score(X: Tensor) -> Tensor:
        x, y = X.double().unbind(1)
        return x + y - 0.01 * (x - y) ** 2

    climb = ProductMaximizer(rows).climbed(score, 0, lambda row: True)
    assert climb is not None
    assert climb.row == len(rows) - 1


def test_lines_are_the_rows_that_differ_in_one_part() -> None:
    pool = small()
    search = ProductMaximizer(pool.X)
    for row, p in itertools.product((0, 100, 215), range(3)):
        entries = pool.X.entries(torch.tensor([row]))[0]
        others = pool.X.entries(search.line(row, p))
        assert others[:, p].tolist() == list(range(pool.X.sizes[p]))
        assert (others != entries).any(0).nonzero()[:, 0].tolist() == [p]


def test_the_choice_is_the_argmax_at_every_step_of_a_search() -> None:
    # 15,625 rows, of which the search scores a part; a harder criterion than one model: that of a whole run.
    parts = {name: np.random.default_rng(i).random((25, 2)) for i, name in enumerate("abc")}
    pool = pool_of(bo.Pool.product(parts))
    assert isinstance(pool, ProductPool)
    mine, other, log = designer(pool), designer(pool), []
    other.candidates._pool = ProductCandidates(pool, None)
    for t in range(20):
        suggestion, by_parts = (one.suggest()[0] for one in (mine, other))
        assert by_parts.index == suggestion.index
        value = float(torch.sin(6.0 * pool.X[suggestion.index or 0]).sum())
        log.append(Evaluation(t, "COMPLETE", suggestion.point, None, (float(t), t), (value,)))
        for one in (mine, other):
            one.update(log)


@pytest.mark.parametrize("rule", ["ucb", "logei", "thompson"])
def test_suggestions_are_feasible_and_new(rule: str) -> None:
    pool = library()
    dose = pool.names[0]

    def feasible(point: Any) -> bool:
        return bool(point[dose] < 0.5)

    mine = followed(pool, feasible=feasible, rule=rule_of(rule), avoid_duplicates=True)
    suggestions = mine.suggest(2)
    assert len({s.index for s in suggestions}) == 2
    for s in suggestions:
        assert s.index is not None
        assert s.point == pool.point(s.index)
        assert feasible(s.point)


def test_few_rows_with_the_fixed_values_are_searched_exactly() -> None:
    pool = library()
    candidates = ProductCandidates(pool, None)
    fixed = pool.fixed({"acid": 5, "step": 1})
    some = candidates.restricted(fixed)
    criterion = UpperBound.over(model_of(pool), 1.0)
    rows = torch.from_numpy(pool.X.combined([entries.numpy() for entries in pool.entries_like(fixed)]))
    best = int(rows[criterion(pool.X[rows]).argmax()])
    choice = some.best(criterion, scope(pool))
    assert choice is not None
    assert (choice.index, some.n_arms, candidates.n_arms) == (best, len(rows), len(pool))
    assert candidates.restricted(fixed) is some  # it keeps bounds


def test_no_row_is_left_when_all_with_the_fixed_values_are_taken() -> None:
    pool = library()
    fixed = pool.point(123_456)
    mine = followed(pool, avoid_duplicates=True)
    assert mine.suggest(fixed=fixed)[0].index == 123_456
    assert [s.index for s in mine.suggest(2, fixed=fixed)] == [123_456]
    with pytest.raises(SpaceExhaustedError, match="pool: all arms with the fixed values have been proposed"):
        mine.suggest(fixed=fixed, running={99: fixed})


def test_entries_with_equal_descriptors_are_different_rows_each_of_which_is_proposed_once() -> None:
    entries = np.linspace(0.0, 1.0, 150)[:, None]
    twice = np.concatenate([entries[:1], entries])  # the first two entries are equal
    pool = pool_of(bo.Pool.product({"a": twice, "b": entries, "c": entries}))
    assert isinstance(pool, ProductPool)
    mine = followed(pool, avoid_duplicates=True)
    twins = pool.rows_at(pool.X[4_321])
    assert len(twins) == 2
    fixed = pool.point(4_321)
    assert [s.index for s in mine.suggest(5, fixed=fixed)] == twins
    candidates = ProductCandidates(pool, None)
    x = pool.X[4_321][None]
    rows = [*range(0, len(pool), 997), *twins]
    for taken, each_row, closed in ((x, False, twins), (x, True, twins[:1]), (torch.cat([x, x]), True, twins)):
        found = candidates._closed(taken, each_row)
        assert [row for row in rows if row in found] == closed
        assert [row for row, shut in zip(rows, found.among(torch.tensor(rows)).tolist(), strict=True) if shut] == closed


def test_a_constraint_that_nothing_meets_is_named() -> None:
    with pytest.raises(ArgumentError, match="feasible: expected points to propose, but none of 10000 random ones"):
        designer(library(), lambda point: False).suggest()


def test_remembered_results_of_a_constraint_change_no_suggestion() -> None:
    pool = library()

    def few(point: Any) -> bool:
        return hash(point[pool.names[0]]) % 7 == 0

    knows, fresh = followed(pool, feasible=few), followed(pool, feasible=few)
    knows.suggest(3, number=50)
    assert [s.index for s in knows.suggest(3, number=90)] == [s.index for s in fresh.suggest(3, number=90)]


def test_suggestions_beside_many_running_ones_share_their_random_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    real = ProductMaximizer.sample

    def sample(self: Any, rng: Any, n: int) -> Tensor:
        drawn.append(n)
        return real(self, rng, n)

    monkeypatch.setattr(ProductMaximizer, "sample", sample)
    suggestions = followed(library()).suggest(25)
    assert len(drawn) == LARGE_BATCH + 2
    assert len({s.index for s in suggestions}) > 15


def test_kinds_of_candidates_follow_from_the_number_of_rows() -> None:
    assert isinstance(candidates_of_pool(library(), None), ProductCandidates)
    assert isinstance(candidates_of_pool(small(), None), PoolCandidates)


def test_a_report_has_the_bound_of_the_best_row_that_is_found() -> None:
    pool = small()
    model = model_of(pool)
    candidates = ProductCandidates(pool, None)
    exact = PoolCandidates(pool, None).upper_bound(model, 2.0, pool.X[:3])
    assert candidates.upper_bound(model, 2.0, pool.X[:3]) == pytest.approx(exact, rel=1e-9)
    points, usable = candidates.spread(pool.X[:2], np.random.default_rng(0))
    assert len(points) == product_candidates.SPREAD + 2 * (9 + 8 + 3)
    assert all(map(usable, range(len(points))))


def test_where_no_model_is_needed_random_rows_are_those_of_a_list() -> None:
    pool = small()
    for seed in range(5):
        mine, other = ProductCandidates(pool, None), PoolCandidates(pool, None)
        taken = pool.X[:100]
        choices = [one.random(np.random.default_rng(seed), taken) for one in (mine, other)]
        assert choices[0] is not None
        assert choices[1] is not None
        assert choices[0].index == choices[1].index


def test_closed_rows_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = small()
    candidates = ProductCandidates(pool, None)
    looked_up = []
    real = product_pool.ProductPool.entries_at

    def entries_at(self: Any, X: Tensor) -> Any:
        looked_up.append(len(X))
        return real(self, X)

    monkeypatch.setattr(product_pool.ProductPool, "entries_at", entries_at)
    for n in (5, 7, 7, 9):
        candidates.random(np.random.default_rng(0), pool.X[:n])
    assert looked_up == [5, 2, 2]


def test_scores_are_computed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = small()
    search, rows = ProductMaximizer(pool.X), torch.arange(len(pool))
    whole = search.scores(lambda X: X.sum(1), rows)
    monkeypatch.setattr(product_maximizer, "BLOCK", 7)
    assert torch.equal(search.scores(lambda X: X.sum(1), rows), whole)


def test_no_perturbations_are_made_of_a_product() -> None:
    assert ProductCandidates(library(), None).coordinate_perturbation is None


def beside(pool: ProductPool, criterion: Criterion, taken: Tensor | None = None) -> Scope:
    nothing = pool.X[torch.zeros(0, dtype=torch.int64)]
    return scope(pool, taken, incumbents=pool.X[:1], shared=Shared((1, 2, 3), (), (), lambda: (criterion, nothing)))


@pytest.mark.parametrize("excluded", [0, 40, 200])
def test_what_a_batch_shares_has_the_best_rows_that_are_open(excluded: int) -> None:
    pool = small()
    criterion = UpperBound.over(model_of(pool), 1.0)
    ranked = torch.argsort(criterion(pool.X[:]), descending=True)
    found = ProductCandidates(pool, None).best(criterion, beside(pool, criterion, pool.X[ranked[:excluded]]))
    assert found is not None
    assert found.index == int(ranked[excluded])


def test_a_shared_search_is_no_worse_than_a_whole_one_where_nothing_is_pending() -> None:
    pool = library()
    criterion = UpperBound.over(model_of(pool), 1.0)
    whole, shared = (
        ProductCandidates(pool, None).best(criterion, each)
        for each in (scope(pool, incumbents=pool.X[:1]), beside(pool, criterion))
    )
    assert whole is not None
    assert shared is not None
    assert float(criterion(shared.x[None])[0]) >= float(criterion(whole.x[None])[0]) - 1e-9


def test_a_warm_designer_picks_what_a_cold_one_picks() -> None:
    pool = library()
    warm = followed(pool, avoid_duplicates=True)
    picks = warm.suggest(75)
    running = {pick.number: pick.point for pick in picks[:-1]}
    cold = followed(pool, avoid_duplicates=True)
    assert cold.suggest(number=picks[-1].number, running=running)[0].index == picks[-1].index


@pytest.mark.parametrize("avoid", [False, True])
def test_rows_that_are_one_point_are_not_listed_however_many_they_are(avoid: bool) -> None:
    # Every point is 10^12 rows, and a list of them would take terabytes.
    entries = np.repeat(np.linspace(0.0, 1.0, 10), 10_000)[:, None]
    pool = pool_of(bo.Pool.product({"a": entries, "b": entries, "c": entries}))
    assert isinstance(pool, ProductPool)
    mine = followed(pool, avoid_duplicates=avoid)
    assert len(mine.suggest(25)) == 25
    held = {name: pool.point(12_345)[name] for name in pool.names[:2]}
    rows = [s.index for s in mine.suggest(3, fixed=held)]
    assert all(row is not None and pool.point(row).items() >= held.items() for row in rows)
    x = pool.X[12_345][None]
    candidates = ProductCandidates(pool, None)
    assert 12_345 in candidates._closed(x, False)
    assert 12_345 not in candidates._closed(x, True)
    closed = candidates._closed(torch.cat([x, x]), True)
    assert [row in closed for row in range(9_999, 10_003)] == [False, True, True, False]  # the first two of its rows
