"""Keys of rows."""

import numpy as np
import torch

from bkbopt._support.row_keys import row_keys


def test_row_keys_tell_apart_what_differs_in_the_last_bit() -> None:
    X = torch.tensor([[1.0], [np.nextafter(1.0, 2.0)], [1.0], [0.0], [-0.0]], dtype=torch.float64)
    a, b, c, zero, negative_zero = row_keys(X)
    assert a == c != b
    assert zero == negative_zero


def test_rows_without_columns_are_equal() -> None:
    assert row_keys(torch.zeros(3, 0, dtype=torch.float64)) == [b""] * 3
