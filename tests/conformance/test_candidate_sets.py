"""What every set of candidates keeps to: pools, grids, boxes, products. Another one joins by a line in `SETS`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

import bkbopt as bo
from bkbopt.search.candidates.base import CandidateSet, Choice, Feasible, Scope
from bkbopt.search.candidates.box import candidates_of
from bkbopt.search.candidates.listed import PoolCandidates
from bkbopt.search.candidates.product import ProductCandidates
from bkbopt.search.criteria.criterion import UpperBound
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.base import Point
from bkbopt.spaces.encoding import Encoding
from bkbopt.spaces.pool import Pool
from bkbopt.spaces.product_pool import ProductPool
from bkbopt.spaces.stored import encoded_pool
from tests.conformance.suites import check_complete, implementations, joined
from tests.spaces.stored_sources import mapped


@dataclass(frozen=True)
class Made:
    """A set of candidates, and what it is compared with.

    Attributes:
        candidates: the set.
        has: whether a choice is a point of the set, the same in all its forms.
        X: some points of the set, (n, d).
        categorical: columns of codes.
    """

    candidates: CandidateSet
    has: Callable[[Choice], bool]
    X: Tensor
    categorical: tuple[int, ...]


#: Makes a set with a constraint, if there are files in a folder.
Make = Callable[[Path, Feasible | None], Made]
#: The first parameter of all sets has values that are even on [0, 1].
ARMS = np.random.default_rng(0).random((60, 3))
TABLE = pd.DataFrame({"dose": ARMS[:, 0], "steps": np.arange(60) % 7, "solvent": ["water", "oil", "acid"] * 20})
PARTS = {"a": ARMS[:12, :2], "b": ARMS[20:29], "c": [0.0, 0.3, 1.0]}
MIXED = {"x": (0.0, 1.0), "rate": bo.Float(1e-4, 1.0, log=True), "n": bo.Int(1, 5), "kind": ["a", "b", "c"]}
WIDE = {**MIXED, "x": (-1.0, 2.0)}
GRID = {"x": bo.Float(0.0, 1.0, step=0.125), "n": bo.Int(1, 4), "kind": ["a", "b"]}
LATTICE = {f"x{j}": bo.Float(0.0, 1.0, step=0.01) for j in range(4)}


def pool_of(arms: Any) -> Arms:
    return encoded_pool(arms if isinstance(arms, Pool) else Pool(arms), scale=True, has_kernel=False)


def of_pool(pool: Arms, candidates: CandidateSet, fixed: Point) -> Made:
    def has(choice: Choice) -> bool:
        assert choice.index is not None
        row = torch.equal(pool.X[choice.index], choice.x) and pool.point(choice.index) == choice.point
        return row and torch.equal(pool.encode([choice.point])[0], choice.x) and fixed.items() <= choice.point.items()

    rows = np.random.default_rng(1).permutation(len(pool))
    like = [row for row in rows.tolist() if fixed.items() <= pool.point(row).items()]
    return Made(candidates, has, pool.X[torch.tensor(like[:30])], pool.categorical)


def listed(arms: Any, fixed: Any = None) -> Make:
    def make(folder: Path, feasible: Feasible | None) -> Made:
        pool = pool_of(mapped(folder / "rows.f8", arms(folder)) if callable(arms) else arms)
        every = PoolCandidates(pool, feasible)
        held = pool.fixed(fixed or {})
        return of_pool(pool, every.restricted(held) if fixed else every, held)

    return make


def product(fixed: Any = None) -> Make:
    def make(folder: Path, feasible: Feasible | None) -> Made:
        pool = pool_of(Pool.product(PARTS))
        assert isinstance(pool, ProductPool)
        every = ProductCandidates(pool, feasible)  # as if it were too large to be listed
        held = pool.fixed(fixed or {})
        return of_pool(pool, every.restricted(held) if fixed else every, held)

    return make


def space(wide: Any, narrow: Any = None, fixed: Point | None = None) -> Make:
    def make(folder: Path, feasible: Feasible | None) -> Made:
        encoding = Encoding(tuple(bo.Space.parse(wide).keyed.items()))
        embedding = encoding.embedding(bo.Space.parse(narrow or wide).keyed, fixed or {})

        def has(choice: Choice) -> bool:
            # The embedding of a range in a wider one is computed by another way than the codes: a few roundings.
            inside = bool(embedding.holds(choice.x[None])) and choice.index is None
            return inside and torch.allclose(encoding.encode([choice.point])[0], choice.x, rtol=0.0, atol=1e-14)

        X = embedding(embedding.sample(30, np.random.default_rng(1)))
        return Made(candidates_of(embedding, feasible), has, X, encoding.categorical)

    return make


SETS: dict[str, Make] = {
    "pool": listed(TABLE),
    "pool on disk": listed(lambda folder: ARMS),
    "arms with a fixed value": listed(TABLE, {"solvent": "oil"}),
    "grid": space(GRID),
    "box": space(MIXED),
    "box inside of wider ranges": space(
        WIDE, {"x": (0.0, 1.0), "kind": ["a", "b", "c"]}, {"rate (float, log)": 0.01, "n (int)": 3.0}
    ),
    "lattice that is not listed": space(LATTICE),
    "product": product(),
    "product with a fixed value": product({"c": 0.3}),
}


def test_every_set_of_candidates_is_a_subject(tmp_path: Path) -> None:
    every = implementations(CandidateSet)
    subjects = {type(make(tmp_path, None).candidates).__name__ for make in SETS.values()}
    check_complete(every, subjects | joined("test_candidate_sets", every), {})


@pytest.fixture(params=SETS)
def make(request: pytest.FixtureRequest) -> Make:
    return SETS[request.param]


def bound_of(made: Made) -> UpperBound:
    gp = bo.ExactGP(bo.kernels.matern52(made.X.shape[1], 0.7, categorical=made.categorical), noise=1e-2)
    gp.observe(made.X[:12], torch.sin(5.0 * made.X[:12]).sum(1))
    return UpperBound.over(gp.model, 1.5)


def scope(made: Made, taken: Tensor | None = None, seed: int = 0) -> Scope:
    nothing = made.X[:0]
    return Scope(made.X[:2], np.random.default_rng(seed), nothing if taken is None else taken)


def same(a: Choice | None, b: Choice | None) -> bool:
    assert a is not None
    assert b is not None
    return torch.equal(a.x, b.x) and a.point == b.point and a.index == b.index


def test_the_best_point_is_one_of_the_set_and_the_same_for_the_same_seed(make: Make, tmp_path: Path) -> None:
    made = make(tmp_path, None)
    bound = bound_of(made)
    choice = made.candidates.best(bound, scope(made))
    assert choice is not None
    assert made.has(choice)
    assert same(choice, make(tmp_path, None).candidates.best(bound, scope(made)))
    assert same(choice, made.candidates.best(bound, scope(made)))  # with what the first search has kept


def test_no_point_has_a_larger_score_than_the_best_one(make: Make, tmp_path: Path) -> None:
    made = make(tmp_path, None)
    bound = bound_of(made)
    choice = made.candidates.best(bound, scope(made))
    assert choice is not None
    # Scores of points in other batches are rounded differently.
    assert float(bound(choice.x[None])) >= float(bound(made.X).max()) - 1e-9


def test_points_that_are_taken_are_not_chosen_again(make: Make, tmp_path: Path) -> None:
    made = make(tmp_path, None)
    bound, taken = bound_of(made), made.X[:3]
    for _ in range(4):
        for choice in (
            made.candidates.best(bound, scope(made, taken)),
            made.candidates.random(np.random.default_rng(len(taken)), taken),
        ):
            assert choice is not None
            assert float((taken - choice.x).abs().amax(1).min()) > 1e-13
            taken = torch.cat([taken, choice.x[None]])


def test_random_points_are_of_the_set_and_follow_from_the_seed(make: Make, tmp_path: Path) -> None:
    made = make(tmp_path, None)
    drawn = [made.candidates.random(np.random.default_rng(seed), made.X[:2]) for seed in range(10)]
    for seed, choice in enumerate(drawn):
        assert choice is not None
        assert made.has(choice)
        assert same(choice, make(tmp_path, None).candidates.random(np.random.default_rng(seed), made.X[:2]))
    assert len({tuple(choice.x.tolist()) for choice in drawn if choice is not None}) > 3


def test_points_keep_to_the_constraint(make: Make, tmp_path: Path) -> None:
    def feasible(point: Point) -> bool:
        return next(iter(point.values())) < 0.6

    made = make(tmp_path, feasible)
    bound = bound_of(made)
    choices = [made.candidates.best(bound, scope(made))]
    choices += [made.candidates.random(np.random.default_rng(seed), made.X[:2]) for seed in range(5)]
    for choice in choices:
        assert choice is not None
        assert made.has(choice)
        assert feasible(choice.point)


def test_a_choice_stays_in_the_set_where_it_is_moved_off_the_ends(make: Make, tmp_path: Path) -> None:
    made = make(tmp_path, None)
    choice = made.candidates.random(np.random.default_rng(0), made.X[:0])
    assert choice is not None
    moved = made.candidates.off_ends(choice, Scope(choice.x[None], np.random.default_rng(0), choice.x[None]))
    assert made.has(moved)
    if made.candidates.is_listed:
        assert moved is choice


def test_upper_bound_is_at_least_that_of_any_point(make: Make, tmp_path: Path) -> None:
    made = make(tmp_path, None)
    bound = bound_of(made)
    found = made.candidates.upper_bound(bound.model, 1.5, made.X[:3])
    assert found >= float(bound(made.X).max()) - 1e-7  # rounding of the collapsed predictor


def test_a_list_is_used_up_by_its_points(make: Make, tmp_path: Path) -> None:
    made = make(tmp_path, None)
    if not made.candidates.is_listed:
        pytest.skip("its points are not counted")
    bound, taken, n_arms = bound_of(made), made.X[:0], made.candidates.n_arms
    assert n_arms is not None
    while (choice := made.candidates.best(bound, scope(made, taken))) is not None:
        taken = torch.cat([taken, choice.x[None]])
        assert len(taken) <= n_arms
    assert len(taken) >= len(made.X.unique(dim=0))
    assert made.candidates.random(np.random.default_rng(0), taken) is None
