"""Pools: valid inputs, encoding, added and removed arms."""

import copy
import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError
from bkbopt.spaces.parameters import Float, Int
from bkbopt.spaces.pool import EncodedPool, Pool, as_pool
from bkbopt.spaces.stored_rows import hashes_of
from tests.spaces.sample_pools import ARMS, BAD_POOLS, BAD_REPLACEMENTS, TABLE, WORDS, encoded, read_only


def words(arms: Any = WORDS) -> EncodedPool:
    return encoded(arms, has_kernel=True)


# -- encoding ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        np.asfortranarray,
        read_only,
        pd.DataFrame,
        torch.as_tensor,
        np.ndarray.tolist,
        lambda A: np.repeat(A, 2, axis=0)[::2],
        lambda A: torch.as_tensor(A).requires_grad_(),
    ],
)
def test_every_form_of_an_array_is_the_same_pool_and_stays_as_it_was(form: Any) -> None:
    before = ARMS.copy()
    pool = encoded(form(ARMS))
    assert torch.equal(pool.X, encoded(ARMS).X)
    assert not pool.X.requires_grad
    assert list(pool.decode(7).values()) == ARMS[7].tolist()
    assert np.array_equal(ARMS, before)


def test_a_pool_is_shown_by_the_type_of_its_arms_and_its_options() -> None:
    assert repr(Pool(np.zeros((1000, 3)))) == "Pool(ndarray)"
    assert repr(Pool(pd.DataFrame({"id": [1], "x": [2.0]}), id_column="id", columns=["x"])) == (
        "Pool(DataFrame, id_column='id', columns=('x',))"
    )


def test_columns_are_scaled_to_the_unit_interval_where_asked() -> None:
    low, high = ARMS.min(0), ARMS.max(0)
    assert torch.equal(encoded(ARMS).X, torch.as_tensor((ARMS - low) / (high - low)))
    assert torch.equal(encoded(ARMS, scale=False).X, torch.as_tensor(ARMS))
    assert torch.equal(encoded(ARMS).table, torch.as_tensor(ARMS))


def test_float32_gives_the_pool_of_the_same_numbers_in_float64() -> None:
    single = ARMS.astype(np.float32)
    assert torch.equal(encoded(single).X, encoded(single.astype(np.float64)).X)


def test_a_tensor_of_any_type_of_numbers_is_a_pool() -> None:
    rounded = torch.as_tensor(ARMS).bfloat16()
    assert torch.equal(encoded(rounded).X, encoded(rounded.double()).X)
    whole = torch.arange(12).reshape(4, 3)
    assert torch.equal(encoded(whole.to(torch.int16)).X, encoded(whole).X)


def test_changing_the_callers_array_or_frame_changes_nothing() -> None:
    mine, frame = ARMS.copy(), TABLE.copy()
    pool, table = encoded(mine), encoded(frame)
    mine[:] = 0.0
    frame.loc[:, "dose"] = 0.0
    assert torch.equal(pool.X, encoded(ARMS).X)
    assert table.decode(3) == TABLE.iloc[3].to_dict()


def test_scaling_makes_units_irrelevant() -> None:
    shifted = ARMS * [1e6, 1e-6, 1.0] + [0.0, 5.0, -3.0]
    # A range is computed from rounded sums.
    torch.testing.assert_close(encoded(shifted).X, encoded(ARMS).X, rtol=0, atol=1e-9)


def test_constant_column_is_harmless() -> None:
    X = encoded(np.column_stack([ARMS, np.full(60, 7.0)])).X
    assert torch.equal(X[:, 3], torch.zeros(60, dtype=torch.float64))


def test_a_data_frame_has_names_choices_and_its_own_types() -> None:
    pool = encoded(TABLE)
    assert pool.names == ("dose", "steps", "solvent", "dry")
    assert (pool.dim, pool.categorical, len(pool)) == (4, (2,), 60)
    assert pool.columns is not None
    assert pool.columns.choices == {2: ("water", "oil", "acid")}
    assert pool.X[:3, 2].tolist() == [0.0, 1.0, 2.0]
    for row in range(10):
        for params in (pool.decode(row), pool.params_of(pool.point(row))):
            assert params == TABLE.iloc[row].to_dict()
            assert [type(value) for value in params.values()] == [float, int, str, bool]


@given(st.integers(0, 59), st.sampled_from(["array", "frame", "words"]))
@settings(max_examples=40)
def test_a_row_its_point_and_its_parameters_are_one(row: int, kind: str) -> None:
    pool = {"array": encoded(ARMS), "frame": encoded(TABLE), "words": words()}[kind]
    row %= len(pool)
    point = pool.point(row)
    assert pool.internal(pool.decode(row)) == pool.internal({"index": row}) == point
    assert torch.equal(pool.encode([point])[0], pool.X[row])
    assert pool.rows_at(pool.X[row]) == [row]
    assert pool.matching(point).nonzero().tolist() == [[row]]
    assert pool.params_of(point) == pool.decode(row)


def test_points_that_are_not_in_the_pool_are_points_all_the_same() -> None:
    pool = encoded(TABLE)
    params = {"dose": 0.123, "steps": 99, "solvent": "oil", "dry": True}
    point = pool.internal(params)
    assert pool.rows_at(pool.encode([point])[0]) == []
    assert not bool(pool.matching(point).any())
    assert pool.params_of(point) == params
    between = pool.internal(params | {"steps": 2.5, "dose": 1})
    assert pool.params_of(between) == params | {"steps": 2.5, "dose": 1.0}
    assert pool.encode([]).shape == (0, 4)


def test_equal_rows_are_one_point() -> None:
    double = np.concatenate([ARMS, ARMS])
    double[0, 0] = double[60, 0] = 0.0
    double[0, 0] *= -1.0
    pool = encoded(double, scale=False)
    assert pool.rows_at(pool.X[5]) == [5, 65]
    assert pool.rows_at(pool.X[0]) == pool.rows_at(pool.X[60]) == [0, 60]
    assert pool.rows_at(pool.X[0] + 1.0) == []


def test_the_rows_of_points_are_all_rows_that_equal_one_of_them() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 4, (300, 3)).astype(float)  # 64 different rows at most
    rows[rows == 0.0] = rng.choice([0.0, -0.0], (rows == 0.0).sum())
    pool = EncodedPool(Pool(rows), scale=False, has_kernel=False)
    X = torch.cat([pool.X[:5], torch.full((1, 3), 9.0).double(), pool.X[7:9]])
    there = (pool.X[:, None] == X[None]).all(2)
    assert sorted(pool.rows_of(X).tolist()) == torch.nonzero(there)[:, 0].tolist()
    assert len(pool.rows_of(X[:0])) == 0


def test_hashes_of_rows_with_few_different_numbers_differ() -> None:
    numbers = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0)  # whose last bits are zeros
    X = torch.tensor(list(itertools.product(numbers, repeat=5)), dtype=torch.float64)
    assert len(np.unique(hashes_of(X))) == len(X)


def test_matching_rows_have_the_values_that_are_held() -> None:
    pool = encoded(TABLE)
    held = pool.fixed({"solvent": "oil", "dry": True})
    expected = (TABLE["solvent"] == "oil") & TABLE["dry"]
    assert pool.matching(held).tolist() == expected.tolist()
    assert bool(pool.matching({}).all())
    assert pool.fixed({"index": 3}) == pool.point(3)
    assert words().matching(words().fixed({"arm": "cat"})).tolist() == [word == "cat" for word in WORDS]


# -- objects -------------------------------------------------------------------------------------------------------


def test_objects_are_numbered_in_the_order_of_their_appearance() -> None:
    pool = words(["ant", "bee", "ant", "cow"])
    assert pool.X.tolist() == [[0.0], [1.0], [0.0], [2.0]]
    assert pool.objects == ["ant", "bee", "cow"]
    assert (pool.names, pool.dim, pool.categorical, pool.columns) == (("arm",), 1, (), None)
    assert pool.decode(3) == {"arm": "cow"}
    assert pool.rows_at(pool.X[0]) == [0, 2]


def test_unhashable_objects_are_told_apart_by_identity() -> None:
    one, two = {"w": "ant"}, {"w": "ant"}
    pool = words([one, two, one])
    assert pool.X[:, 0].tolist() == [0.0, 1.0, 0.0]
    assert pool.internal({"arm": two}) == {"arm": 1.0}


def test_new_objects_join_the_old_ones() -> None:
    pool = words()
    later = pool.replaced(Pool([*WORDS[5:], "eel"]))
    assert later.objects == [*WORDS, "eel"]
    assert pool.objects == WORDS
    assert later.X[:, 0].tolist() == [5.0, 6.0, 7.0, 8.0, 9.0]
    # What has left the pool keeps its number and its name.
    assert later.internal({"arm": "ant"}) == {"arm": 0.0}
    assert later.params_of({"arm": 0.0}) == {"arm": "ant"}
    with pytest.raises(ArgumentError, match="an object that is or was in the pool, got 'emu'; add it with set_pool"):
        later.internal({"arm": "emu"})


def test_a_pool_does_not_know_the_objects_of_the_one_that_followed_it() -> None:
    pool = words()
    pool.replaced(Pool([*WORDS, "eel"]))
    with pytest.raises(ArgumentError, match="an object that is or was in the pool, got 'eel'"):
        pool.internal({"arm": "eel"})


# -- pools that change ---------------------------------------------------------------------------------------------


def test_arms_come_and_go_in_the_encoding_of_the_first_pool() -> None:
    first = encoded(ARMS[:30])
    second = first.replaced(Pool(ARMS[10:][::-1]))
    assert torch.equal(second.X[-1], first.X[10])
    assert second.rows_at(first.X[10]) == [49]
    assert second.rows_at(first.X[0]) == []
    assert torch.equal(second.encode([first.point(0)])[0], first.X[0])
    assert torch.equal(first.X, encoded(ARMS[:30]).X)


def test_new_choices_get_codes_behind_the_old_ones() -> None:
    first = encoded(TABLE)
    second = first.replaced(Pool(TABLE.iloc[:4].assign(solvent=["mud", "tar", "oil", "mud"])))
    assert second.X[:, 2].tolist() == [3.0, 4.0, 1.0, 3.0]
    assert second.params_of(first.point(0)) == TABLE.iloc[0].to_dict()
    assert first.categorical == second.categorical


def test_a_copy_of_a_pool_is_the_pool() -> None:
    pool = encoded(TABLE)
    assert copy.deepcopy({"pool": pool})["pool"] is pool


def test_gaps_of_columns_that_are_no_features_are_ignored() -> None:
    gaps = TABLE.assign(remark=[None] * 60, result=[np.nan] * 60)
    assert torch.equal(encoded(Pool(gaps, columns=list(TABLE.columns))).X, encoded(TABLE).X)


@pytest.mark.parametrize("column", ["remark", "result"])
def test_the_message_of_a_gap_says_how_to_leave_the_column_out(column: str) -> None:
    with pytest.raises(ArgumentError, match=rf"column '{column}', row 0; .*: bo\.Pool\(\.\.\., columns=\[\.\.\.\]\)"):
        encoded(TABLE.assign(**{column: [None] * 60}))


# -- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BAD_POOLS)
def test_bad_pool_is_refused(name: str) -> None:
    arms, message = BAD_POOLS[name]
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        encoded(arms)


@pytest.mark.parametrize(
    "name",
    sorted(BAD_POOLS.keys() - {"ragged", "words without a kernel", "numbers without a kernel", "range that overflows"}),
)
def test_bad_arms_are_refused_when_the_pool_is_made(name: str) -> None:
    arms, message = BAD_POOLS[name]
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        Pool(arms)


@pytest.mark.parametrize("arms", [TABLE, ARMS])
def test_columns_that_are_not_there_are_refused_when_the_pool_is_made(arms: Any) -> None:
    with pytest.raises(ArgumentError, match="columns: expected"):
        Pool(arms, columns=["weight"])


def test_a_frame_that_was_changed_after_the_pool_was_made_is_checked_again() -> None:
    frame = TABLE.copy()
    pool = Pool(frame)
    frame.loc[4, "dose"] = np.nan
    with pytest.raises(ArgumentError, match="'dose', row 4"):
        encoded(pool)


@pytest.mark.parametrize("name", BAD_REPLACEMENTS)
def test_a_replacement_of_other_columns_is_refused(name: str) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match="pool"):
        encoded(TABLE).replaced(Pool(BAD_REPLACEMENTS[name]))


@pytest.mark.parametrize("arms", [[], ARMS, {"a": 1}, 3])
def test_objects_are_replaced_by_a_list_only(arms: Any) -> None:
    with pytest.raises(BkbError, match="pool"):
        words().replaced(Pool(arms))


@pytest.mark.parametrize("index", [-1, 60, 1.5, True, "3", None])
def test_bad_row_numbers_are_refused(index: Any) -> None:
    with pytest.raises(ArgumentError, match="index: expected a row number from 0 to 59"):
        encoded(ARMS).internal({"index": index})


ROW = TABLE.iloc[5].to_dict()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (3, "params: expected a dict, got int in row 2"),
        ({}, r"params: expected the columns .* in row 2, got nothing for 'dose', 'dry', 'solvent', 'steps'"),
        (ROW | {"more": 1}, r"params: expected the columns .* in row 2, got unknown 'more': leave it out"),
        (ROW | {"solvent": "mud"}, "params: row 2: expected one of the pool's 'solvent', got 'mud'"),
        (ROW | {"dose": np.nan}, "params: row 2: 'dose': expected a finite number, got nan"),
        (ROW | {"dose": "much"}, "'dose': expected a finite number, got 'much'"),
        (ROW | {"steps": True}, "'steps': expected a finite number, got True"),
    ],
)
def test_parameters_that_do_not_belong_to_the_pool_are_refused(params: Any, message: str) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        encoded(TABLE).internal(params, 2)
    with pytest.raises((ArgumentError, ArgumentTypeError)):
        words().internal(params)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (3, "fixed: expected a dict, got int"),
        ({"day": "mon"}, "fixed: expected columns among .*, got 'day'"),
        ({"solvent": "mud"}, "fixed: expected one of the pool's 'solvent', got 'mud'"),
        ({"steps": 9}, "fixed: expected values that an arm of the pool has, got {'steps': 9}"),
    ],
)
def test_values_that_no_arm_has_cannot_be_held(params: Any, message: str) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        encoded(TABLE).fixed(params)


@pytest.mark.parametrize(
    ("arms", "advice"),
    [
        (["a", "b"], r"or, for choices, the space \{name: list\}"),
        ([True, False], "or, for choices, the space"),
        ([Float(0.0, 1.0), Int(1, 3)], r"or, for a search space, a dict such as \{name: \(low, high\), other"),
        ([(0.0, 1.0, "log-uniform"), (1, 5)], "or, for a search space, a dict"),
        ([{"a": 1.0}, {"a": 2.0}], r"or, since these are dicts, pandas\.DataFrame\(rows\)"),
    ],
)
def test_a_list_of_objects_without_a_kernel_is_refused_with_the_forms_that_are_likely_meant(
    arms: list[Any], advice: str
) -> None:
    with pytest.raises(ArgumentTypeError, match=f"no kernel for them; .*, {advice}"):
        EncodedPool(as_pool(arms), scale=True, has_kernel=False)
