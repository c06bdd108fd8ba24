"""Product pools: parts and their names, rows and their numbers, lookups, and what is refused."""

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError
from bkbopt.spaces.pool import EncodedPool
from bkbopt.spaces.product_pool import ProductPool
from bkbopt.spaces.rows import ProductRows
from bkbopt.spaces.stored import encoded_pool

RNG = np.random.default_rng(0)
SOLVENTS = pd.DataFrame({"name": list("abcde"), "polarity": RNG.random(5), "class": ["x", "y", "x", "y", "x"]})
LIGANDS = RNG.random((4, 2))
PARTS: dict[str, Any] = {
    "solvent": bo.Pool(SOLVENTS, id_column="name"),
    "ligand": LIGANDS,
    "T": [20, 60, 80],
    "base": ["K", "Na"],
}


def product(parts: Any = PARTS, **options: Any) -> ProductPool:
    pool = encoded_pool(bo.Pool.product(parts, **options), scale=True, has_kernel=False)
    assert isinstance(pool, ProductPool)
    return pool


def listed() -> pd.DataFrame:
    """The rows of `PARTS`, one by one."""
    rows = itertools.product(SOLVENTS.itertuples(index=False), LIGANDS, PARTS["T"], PARTS["base"])
    columns = ["solvent.polarity", "solvent.class", "ligand.x0", "ligand.x1", "T", "base"]
    return pd.DataFrame([[s[1], s[2], *v, t, b] for s, v, t, b in rows], columns=columns)


SIZES = st.lists(st.integers(1, 10**6), min_size=1, max_size=5).filter(lambda sizes: math.prod(sizes) < 2**63)


@given(sizes=SIZES, data=st.data())
def test_row_numbers_and_entries_are_each_others_inverses(sizes: list[int], data: st.DataObject) -> None:
    rows = ProductRows(tuple(torch.zeros(1, 1).expand(n, 1) for n in sizes))
    entries = [data.draw(st.integers(0, n - 1)) for n in sizes]
    row = int(rows.numbers(torch.tensor([entries]))[0])
    assert row == np.ravel_multi_index(entries, sizes)
    assert rows.entries(torch.tensor([row]))[0].tolist() == entries


def test_rows_points_and_numbers_are_those_of_the_listed_rows() -> None:
    mine, other = product(), EncodedPool(bo.Pool(listed()), scale=True, has_kernel=False)
    assert (len(mine), mine.names, mine.categorical) == (len(other), other.names, other.categorical)
    assert torch.equal(mine.X[:], other.X[:])
    assert torch.equal(mine.table[torch.tensor([7, 3])], other.table[torch.tensor([7, 3])])
    for row in range(len(mine)):
        assert mine.point(row) == other.point(row)
        assert mine.rows_at(mine.X[row]) == [row]
    fixed = {"T": 60.0, "solvent.class": 1.0}
    assert torch.equal(mine.matching(fixed), other.matching(fixed))
    assert mine.rows_like(fixed) == other.rows_like(fixed)
    assert mine.columns is not None
    assert [mine.values_in(j).tolist() for j in range(6)] == [other.values_in(j).tolist() for j in range(6)]


def test_an_unscaled_product_has_the_raw_values() -> None:
    pool = encoded_pool(bo.Pool.product(PARTS), scale=False, has_kernel=False)
    assert torch.equal(pool.X[:], pool.table[:])


def test_parameters_are_labels_and_descriptors_and_lead_back_to_the_row() -> None:
    pool = product()
    row = int(np.ravel_multi_index((3, 2, 1, 0), (5, 4, 3, 2)))
    params = pool.decode(row)
    assert params == {
        "solvent": "d",
        "solvent.polarity": SOLVENTS["polarity"][3],
        "solvent.class": "y",
        "ligand": 2,
        "ligand.x0": LIGANDS[2, 0],
        "ligand.x1": LIGANDS[2, 1],
        "T": 60,
        "base": "K",
    }
    assert type(params["T"]) is int
    point = pool.point(row)
    labels = {"solvent": "d", "ligand": 2, "T": 60, "base": "K"}
    descriptors = {name: value for name, value in params.items() if name not in ("solvent", "ligand")}
    for said in (params, labels, descriptors, {"index": row}):
        assert pool.internal(said) == point
    assert pool.params_of(point) == params
    assert pool.label(row) == ("d", 2, 60, "K")
    assert pool.row_of(("d", 2, 60, "K")) == pool.row_of(["d", 2, 60, "K"]) == pool.row_of(row) == row
    assert pool.row_named(labels) == pool.row_named(params) == row
    assert pool.row_named(descriptors) is None


def test_a_label_stands_for_all_columns_of_its_part_and_a_column_for_itself() -> None:
    pool = product()
    assert pool.fixed({"solvent": "b", "T": 80}) == {
        "solvent.polarity": SOLVENTS["polarity"][1],
        "solvent.class": 1.0,
        "T": 80.0,
    }
    assert [len(entries) for entries in pool.entries_like(pool.fixed({"solvent.class": "x"}))] == [3, 4, 3, 2]


def test_points_that_are_no_row_can_be_told_by_their_columns() -> None:
    pool = product()
    point = pool.internal({"solvent": "a", "ligand": 0, "T": 45.5, "base": "K"})
    assert point["T"] == 45.5
    assert pool.rows_at(pool.encode([point])[0]) == []
    assert pool.row_named({"solvent": "a", "ligand": 0, "T": 45.5, "base": "K"}) is None
    assert "solvent" in pool.params_of(point)
    assert "solvent" not in pool.params_of({**point, "solvent.polarity": 9.0})


def test_entries_with_equal_descriptors_are_rows_of_one_point() -> None:
    pool = product({"a": np.array([[1.0], [2.0], [1.0]]), "b": [0, 1]})
    assert pool.rows_at(pool.X[1]) == [1, 5]
    assert pool.rows_of(pool.X[:]).tolist().count(1) == 2


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (range(3), int),
        (np.array([1.5, 2.5]), float),
        (torch.tensor([1, 2]), int),
        (pd.Series([1, 2]), int),
        ((True, False), bool),
        (["u", "w"], str),
        (["u", 1, 2.5], object),
    ],
)
def test_a_list_is_one_column_of_its_values(given: Any, kind: type) -> None:
    pool = product({"x": given})
    assert pool.names == ("x",)
    values = [pool.decode(row)["x"] for row in range(len(pool))]
    assert values == list(given)
    assert all(isinstance(value, kind) for value in values)


def test_a_product_of_one_frame_has_the_points_of_the_frame() -> None:
    frame = SOLVENTS.drop(columns="name")
    mine, other = product({"s": frame}), EncodedPool(bo.Pool(frame), scale=True, has_kernel=False)
    assert torch.equal(mine.X[:], other.X[:])


def test_the_features_of_a_part_may_be_named() -> None:
    frame = pd.DataFrame({"id": ["a", "b"], "dose": [1.0, 2.0], "remark": [None, "late"]})
    pool = bo.Pool.product({"acid": bo.Pool(frame, id_column="id", columns=["dose"])})
    assert encoded_pool(pool, scale=True, has_kernel=False).names == ("acid.dose",)


def test_later_changes_of_the_arguments_have_no_effect() -> None:
    given = LIGANDS.copy()
    pool = bo.Pool.product({"x": given})
    given[:] = 0.0
    assert encoded_pool(pool, scale=False, has_kernel=False).X[0].tolist() == LIGANDS[0].tolist()


def test_other_parts_keep_ranges_and_codes() -> None:
    pool = product()
    more = pd.DataFrame({"name": ["n", "a"], "polarity": [2.0, 0.5], "class": ["z", "x"]})
    new = pool.replaced(bo.Pool.product({**PARTS, "solvent": bo.Pool(more, id_column="name"), "T": [70]}))
    assert pool.columns is not None
    assert new.columns is not None
    assert new.columns.choices[1] == ("x", "y", "z")
    assert torch.equal(new.columns.low, pool.columns.low)
    assert new.point(0)["solvent.class"] == 2.0
    assert new.decode(0)["solvent.class"] == "z"
    assert new.internal({**new.decode(0), "T": 20})["T"] == 20.0  # what an earlier pool had


def test_rows_are_read_by_all_kinds_of_numbers_and_no_others() -> None:
    X = product().X
    for rows in ([3, 5, -1], np.array([3, 5, -1]), torch.tensor([3, 5, -1])):
        assert torch.equal(X[rows], X[:][[3, 5, -1]])
    assert torch.equal(X[np.int64(4)], X[:][4])
    assert X[[]].shape == (0, X.shape[1])
    for beyond in (len(X), [0, len(X)], [-len(X) - 1]):
        with pytest.raises(IndexError, match=f"rows: expected numbers from 0 to {len(X) - 1}, got"):
            X[beyond]


def test_a_large_product_is_never_listed() -> None:
    pool = product({"a": range(2000), "b": range(2000), "c": range(2000)})
    assert (len(pool), pool.is_listed, product().is_listed) == (8 * 10**9, False, True)
    assert pool.decode(8 * 10**9 - 1) == {"a": 1999, "b": 1999, "c": 1999}
    assert pool.rows_at(pool.X[7_123_456_789]) == [7_123_456_789]
    assert len(pool.some_rows(5, np.random.default_rng(0))) == 5
    with pytest.raises(ArgumentError, match=r"pool: expected at most 1,000,000 rows to be listed, got .*8,000,000,000"):
        pool.X[:]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "parts: expected at least one part"),
        ([[1, 2]], "parts: expected a dict from names to lists, got list"),
        ({1: [1]}, "parts: expected names of parts, got 1"),
        ({"index": [1]}, 'another name than "index"'),
        ({"a": []}, "part 'a': expected at least one value"),
        ({"a": [1, 1]}, "part 'a': expected distinct values, got 1 twice"),
        ({"a": ["u", 1, True]}, "part 'a': expected distinct values, got 1 twice"),  # they are equal choices
        ({"a": [1, math.nan]}, "part 'a': expected numbers or text, got nan"),
        ({"a": [1, math.inf]}, "part 'a': expected finite numbers below 1e[+]100, got inf"),
        ({"a": [{1}, {2}]}, "part 'a': expected numbers or text"),
        ({"a": "abc"}, "part 'a': expected a list, an array or a data frame, got str"),
        ({"a": 3}, "part 'a': expected a list, an array or a data frame, got int"),
        ({"a": np.array([[1.0, math.nan]])}, "part 'a': expected finite values"),
        ({"a": np.zeros((0, 2))}, "part 'a': expected at least one arm"),
        ({"a": pd.DataFrame({"b.c": [1.0]}), "a.b": pd.DataFrame({"c": [1.0]})}, "distinct names, got 'a.b.c' twice"),
        ({name: range(10**5) for name in "abcd"}, "product of less than 2.63 rows, got 1e[+]20"),
    ],
)
def test_invalid_products_are_refused(parts: Any, message: str) -> None:
    with pytest.raises(BkbError, match=message):
        bo.Pool.product(parts)


def test_text_that_differs_in_every_entry_is_refused_in_a_first_pool() -> None:
    message = "part 'a': expected columns of text with repeated values.*id_column='name'"
    with pytest.raises(ArgumentError, match=message):
        encoded_pool(bo.Pool.product({"a": SOLVENTS}), scale=True, has_kernel=False)


def test_a_constraint_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="feasible: expected a callable"):
        bo.Pool.product(PARTS, feasible=3)  # type: ignore[arg-type]


LABELS = {"solvent": "a", "ligand": 0, "T": 20, "base": "K"}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (3, "params: expected a dict, got int"),
        ({"index": 120}, "index: expected a row number from 0 to 119, got 120"),
        ({**LABELS, "x": 1}, "expected parts among 'solvent', 'ligand', 'T', 'base', or columns among .*, got 'x'"),
        ({**LABELS, "solvent": "q"}, r"expected a label of part 'solvent' \('a', 'b', .*got 'q'"),
        ({**LABELS, "ligand": True}, "expected a label of part 'ligand'"),
        ({**LABELS, "base": "Li"}, "expected one of the pool's 'base', got 'Li'"),
        ({**LABELS, "solvent.class": "y"}, "expected the 'solvent.class' that its part's label stands for, got 'y'"),
        ({"solvent": "a", "T": 20, "base": "K"}, "got no 'ligand' and no 'ligand.x0'"),
        ({"solvent": "a", "ligand": 0, "base": "K"}, "or all of its columns, got no 'T'"),
        ({"solvent.class": "x", "ligand": 0, "T": 20, "base": "K"}, "got no 'solvent' and no 'solvent.polarity'"),
    ],
)
def test_parameters_that_are_none_of_the_parts_are_refused(params: Any, message: str) -> None:
    with pytest.raises(BkbError, match=message):
        product().internal(params)


def test_a_label_of_several_entries_is_refused() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=["u", "u"])
    with pytest.raises(ArgumentError, match=r"got 'u', which names the entries \[0, 1\]"):
        product({"a": frame}).row_of(("u",))


@pytest.mark.parametrize("label", [("a", 0, 20), "a", ("a", 0, 25, "K"), 120])
def test_row_numbers_and_labels_that_are_none_are_refused(label: Any) -> None:
    with pytest.raises(ArgumentError, match="expected"):
        product().row_of(label)


def test_fixed_values_that_no_row_has_are_refused() -> None:
    with pytest.raises(ArgumentError, match="fixed: expected values that an arm of the pool has"):
        product().fixed({"T": 21})


def test_a_product_is_replaced_by_a_product_with_its_columns_only() -> None:
    with pytest.raises(ArgumentTypeError, match="pool: expected a product as before, got DataFrame"):
        product().replaced(bo.Pool(listed()))
    with pytest.raises(ArgumentError, match="pool: expected parts with the columns of the first pool"):
        product().replaced(bo.Pool.product({**PARTS, "more": [1, 2]}))
    with pytest.raises(ArgumentError, match=r"part 'T': expected columns whose numbers are below 1e\+100"):
        product({"T": [0.0, 1e-9]}).replaced(bo.Pool.product({"T": [1e99]}))


def test_rows_of_one_point_are_counted_and_looked_up_without_a_list() -> None:
    pool = product({"a": np.array([[1.0], [2.0], [1.0]]), "b": np.zeros((2, 1))})
    rows = pool.each_at(pool.X[1])
    assert ([*rows], len(rows), [row in rows for row in range(6)]) == (
        [0, 1, 4, 5],
        4,
        [row not in (2, 3) for row in range(6)],
    )
    assert "0" not in rows
    large = product({name: np.zeros((100_000, 1)) for name in "abc"})
    assert len(large.each_at(large.X[7])) == 10**15
    assert large.some_rows_of(large.X[[7, 8]]).tolist() == [0, 0]
    assert large.rows_like(large.point(7)) == [0, 1]
    assert not large.each_at(large.X[7] + 0.5)
