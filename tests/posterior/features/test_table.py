"""The growing table against plain arrays."""

import copy

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from bkbopt.posterior.features.table import FeatureTable


@given(st.lists(st.booleans(), max_size=80), st.integers(0, 2**32 - 1))
def test_rows_and_columns_in_any_order_equal_plain_arrays(steps: list[bool], seed: int) -> None:
    rng = np.random.default_rng(seed)
    Z, residual = rng.random((2, 1)), rng.random(2)
    table = FeatureTable(torch.tensor(Z), torch.tensor(residual))
    for row in steps:
        if row:
            z, r = rng.random(Z.shape[1]), rng.random()
            table.add_row(torch.tensor(z), torch.tensor(r, dtype=torch.float64))
            Z, residual = np.vstack([Z, z]), np.append(residual, r)
        else:
            c = rng.random(len(Z))
            table.add_column(torch.tensor(c))
            Z, residual = np.column_stack([Z, c]), np.maximum(residual - c * c, 0.0)
    np.testing.assert_array_equal(table.Z, Z)
    np.testing.assert_array_equal(table.residual, residual)


@given(st.lists(st.booleans(), max_size=20), st.lists(st.booleans(), max_size=20))
def test_a_copy_keeps_its_values_while_the_table_grows_and_may_take_its_place(a: list[bool], b: list[bool]) -> None:
    def grow(table: FeatureTable, steps: list[bool], value: float) -> None:
        for row in steps:
            if row:
                table.add_row(table.Z.new_full((table.Z.shape[1],), value), torch.tensor(value).double())
            else:
                table.add_column(table.residual * value)

    table, plain = (FeatureTable(torch.ones(1, 1).double(), torch.ones(1).double()) for _ in range(2))
    grow(table, a, 0.5)
    grow(plain, a, 0.5)
    before = copy.copy(table)
    grow(table, b, 0.25)
    for one, two in ((before.Z, plain.Z), (before.residual, plain.residual)):
        assert torch.equal(one, two)
    grow(before, b, 0.125)
    grow(plain, b, 0.125)
    for one, two in ((before.Z, plain.Z), (before.residual, plain.residual)):
        assert torch.equal(one, two)
