"""Keys of rows, by which equal points are found."""

from typing import cast

import numpy as np
from torch import Tensor

__all__ = ["row_keys"]


def row_keys(X: Tensor) -> list[bytes]:
    """A hashable key for each row of `X (n, d)`; equal rows have equal keys (0.0 and -0.0 are equal).

    Example:
        >>> import torch
        >>> from bkbopt._support.row_keys import row_keys
        >>> keys = row_keys(torch.tensor([[0.0, 1.0], [-0.0, 1.0], [0.5, 1.0]]))
        >>> keys[0] == keys[1], keys[0] == keys[2]
        (True, False)
    """
    A = X.detach().cpu().numpy() + 0.0
    if not A.shape[1]:
        return [b""] * len(A)
    rows = np.ascontiguousarray(A).view(np.dtype((np.void, A.itemsize * A.shape[1])))  # one value a row
    return cast(list[bytes], rows[:, 0].tolist())
