"""A product pool as JSON values: parts are small beside the rows, so that a log holds them, data frames included."""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bkbopt.errors import ArgumentError, BkbError
from bkbopt.optimizer.log.log_rows import Described
from bkbopt.optimizer.log.log_schema import is_plain, to_json
from bkbopt.spaces.columns import Columns
from bkbopt.spaces.parts import Part, Product
from bkbopt.spaces.pool import Pool
from bkbopt.spaces.product_pool import ProductPool

__all__ = ["describe_product", "read_product"]


def describe_product(pool: ProductPool, columns: dict[str, Any], largest: int) -> Described:
    """A product pool for a log: names and labels of its parts as text, and their tables where they are not too many.

    Args:
        pool: the product.
        columns: its columns as JSON values.
        largest: largest size of tables that are stored, in bytes.

    Raises:
        ArgumentError: labels without a JSON form.
    """
    for part in pool.parts:
        bad = next((v for v in part.labels or () if not is_plain(v)), None)
        if bad is not None:
            raise ArgumentError(f"part {part.name!r}: expected labels of numbers and text in a log, got {bad!r}.")
    parts = [
        {"name": p.name, "n": len(p), "d": len(p.names), "labels": None if p.labels is None else list(p.labels)}
        for p in pool.parts
    ]
    rows = b"".join(np.ascontiguousarray(part.table.numpy(), dtype="<f8").tobytes() for part in pool.parts)
    fingerprint = hashlib.blake2b(to_json(parts).encode(), digest_size=16)
    fingerprint.update(rows)
    text = {**columns, "parts": parts, "n_rows": len(pool), "fingerprint": fingerprint.hexdigest()}
    return Described(text, rows if len(rows) <= largest else None)


def read_product(described: Described, known: Columns, given: Any, scale: bool) -> ProductPool:
    """The product pool of a log with the columns `known`; `given` is what is passed at opening, None or the pool.

    Raises:
        ArgumentError: the parts are not in the log and none, or others, are given.
    """
    if given is None and described.rows is None:
        raise ArgumentError(
            "pool: expected the parts of the log, which are too large to be in it; pass pool= with them."
        )
    pool = Pool(_product(described, known)) if given is None else given
    if not isinstance(pool, Pool) or not isinstance(pool.arms, Product):
        raise ArgumentError(f"pool: expected bo.Pool.product(...) as in the log, got {type(given).__name__}.")
    encoded = ProductPool(replace(pool, arms=pool.arms.undoubted()), scale=scale)
    if encoded.names != known.names:
        raise ArgumentError(f"pool: expected the columns {known.names} of the log, got {encoded.names}.")
    encoded = encoded.with_columns(known)
    if describe_product(encoded, {}, 0).text["fingerprint"] != described.text["fingerprint"]:
        raise ArgumentError(
            "pool: expected the parts of the log, got others, or in another order; pass those, and change them with "
            "set_pool."
        )
    return encoded


def _product(described: Described, known: Columns) -> Product:
    """The parts that the log holds."""
    numbers = torch.from_numpy(np.frombuffer(described.rows or b"", dtype="<f8").astype(np.float64))
    parts, first, at = [], 0, 0
    for own in described.text["parts"]:
        n, d = int(own["n"]), int(own["d"])
        table = numbers[at : at + n * d]
        if n < 1 or d < 1 or len(table) < n * d or first + d > len(known.names):
            raise ValueError(f"a part of {len(table)} numbers where {n} times {d} belong")
        parts.append(_part(own, known, first, table.reshape(n, d)))
        first, at = first + d, at + n * d
    if (first, at) != (len(known.names), len(numbers)) or not parts:
        raise ValueError("parts of a product with other columns")
    try:
        return Product(tuple(parts))
    except BkbError as error:
        raise ValueError(f"no parts of a product ({error})") from error


def _part(own: dict[str, Any], known: Columns, first: int, table: Tensor) -> Part:
    n, d = table.shape
    labels = own["labels"]
    if labels is not None and (len(labels) != n or not all(map(is_plain, labels))):
        raise ValueError("labels of a part that are none")
    if labels is None and d != 1:
        raise ValueError("a list of several columns")
    names, kinds = known.names[first : first + d], known.kinds[first : first + d]
    choices = {j: known.choices[first + j] for j in range(d) if first + j in known.choices}
    fits = bool(torch.isfinite(table).all()) and all(
        bool(((table[:, j] >= 0) & (table[:, j] < len(values)) & (table[:, j] == table[:, j].floor())).all())
        for j, values in choices.items()
    )
    if not isinstance(own["name"], str) or not fits:
        raise ValueError("entries of a part that are none")
    columns = Columns(names, kinds, table.new_zeros(d), table.new_ones(d), choices)
    return Part(own["name"], columns, table, None if labels is None else tuple(labels))
