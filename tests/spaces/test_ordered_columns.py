"""Ordered categoricals of a table are ranks: one numeric column, in which neighbours are alike."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import bkbopt as bo
from bkbopt.errors import ArgumentError
from bkbopt.optimizer.log import log_schema
from bkbopt.optimizer.translation.description import describe, read_candidates
from bkbopt.spaces.stored import encoded_pool

ORDER = ["XS", "S", "M", "L", "XL"]


def sizes(values: str = "L S M L XL", order: list[str] | None = None) -> pd.DataFrame:
    own = values.split()
    return pd.DataFrame(
        {"size": pd.Categorical(own, order or ORDER, ordered=True), "dose": np.arange(len(own)) / 4.0},
    )


def in_file(frame: pd.DataFrame, folder: Path) -> Any:
    pytest.importorskip("pyarrow")
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    frame.to_parquet(path, row_group_size=2)
    return path


def in_arrow(frame: pd.DataFrame, folder: Path) -> Any:
    arrow = pytest.importorskip("pyarrow")
    pieces = [arrow.Table.from_pandas(frame.iloc[some], preserve_index=False) for some in (slice(2), slice(2, None))]
    return arrow.concat_tables(pieces)


def in_product(frame: pd.DataFrame, folder: Path) -> bo.Pool:
    return bo.Pool.product({"part": frame})


Makes = Callable[[pd.DataFrame, Path], Any]
MAKES: dict[str, Makes] = {"frame": lambda frame, _: frame, "file": in_file, "arrow": in_arrow, "product": in_product}
IN = pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)


def pool_of(given: Any, **options: Any) -> Any:
    return encoded_pool(
        given if isinstance(given, bo.Pool) else bo.Pool(given), scale=True, has_kernel=False, **options
    )


def column(pool: Any) -> list[float]:
    """The first encoded column."""
    encoded: list[float] = pool.X[torch.arange(len(pool))][:, 0].tolist()
    return encoded


# -- encoding ----------------------------------------------------------------------------------------------------------


@IN
def test_ordered_categories_are_equal_steps_from_zero_to_one(make: Makes, tmp_path: Path) -> None:
    pool = pool_of(make(sizes(), tmp_path))
    assert column(pool) == [0.75, 0.25, 0.5, 0.75, 1.0]
    assert pool.categorical == ()
    assert pool.n_codes == {}
    name = pool.names[0]
    assert [pool.decode(row)[name] for row in range(5)] == ["L", "S", "M", "L", "XL"]
    assert pool.rows_of(pool.encode([pool.internal(pool.decode(2))])).tolist() == [2]


def test_a_series_of_ordered_categories_is_a_part_of_ranks() -> None:
    pool = pool_of(bo.Pool.product({"size": sizes("XL XS M")["size"], "dose": [1.0, 2.0]}))
    assert column(pool) == [1.0, 1.0, 0.0, 0.0, 0.5, 0.5]
    assert pool.categorical == ()
    assert pool.decode(2)["size"] == "XS"


def test_where_nothing_is_scaled_the_ranks_are_encoded() -> None:
    assert column(encoded_pool(bo.Pool(sizes()), scale=False, has_kernel=True)) == [3.0, 1.0, 2.0, 3.0, 4.0]


def test_ordered_bins_and_a_single_category_are_encoded() -> None:
    bins = pd.cut(np.array([0.5, 1.5, 0.7]), [0.0, 1.0, 2.0, 3.0])
    same = pd.Categorical(["a"] * 3, ordered=True)
    assert pool_of(pd.DataFrame({"bin": bins, "same": same})).X.tolist() == [[0.0, 0.0], [0.5, 0.0], [0.0, 0.0]]


def test_categories_without_an_order_stay_choices() -> None:
    pool = pool_of(sizes().assign(size=pd.Categorical(["L", "S", "M", "L", "XL"])))
    assert pool.categorical == (0,)
    assert column(pool) == [0.0, 1.0, 2.0, 0.0, 3.0]


# -- later pools -------------------------------------------------------------------------------------------------------


@IN
def test_later_pools_keep_the_ranks_and_may_append_categories(make: Makes, tmp_path: Path) -> None:
    first = pool_of(make(sizes(), tmp_path))
    again = pool_of(make(sizes("S XL XXL", ["S", "XL", "XXL"]), tmp_path), like=first)
    assert column(again) == [0.25, 1.0, 1.25]
    text = pool_of(make(sizes("S XL M").astype({"size": str}), tmp_path), like=first)
    assert column(text) == [0.25, 1.0, 0.5]


@IN
@pytest.mark.parametrize(
    "later", [sizes("S L", ["L", "S"]), sizes("S X", ["S", "X", "L"]), sizes("S L X", ["S", "L", "X"])]
)
def test_another_order_and_a_new_word_without_rank_are_refused(
    make: Makes, later: pd.DataFrame, tmp_path: Path
) -> None:
    first = pool_of(make(sizes(), tmp_path))
    if len(later) == 3:
        later = later.astype({"size": str})
    with pytest.raises(
        ArgumentError, match=r"expected the ordered categories .*'XL'\) in column .*size'.* got \('S', |L'"
    ):
        pool_of(make(later, tmp_path), like=first)


def test_a_later_column_of_numbers_is_refused_with_the_types_of_both() -> None:
    first, codes = pool_of(sizes()), sizes().assign(size=sizes()["size"].cat.codes)
    with pytest.raises(ArgumentError, match=r"first pool, \['size \(categorical\)', 'dose'\], got \['size', 'dose'\]"):
        pool_of(codes, like=first)


def test_parts_of_a_file_agree_on_the_order(tmp_path: Path) -> None:
    in_file(sizes(), tmp_path)
    in_file(sizes("XS M"), tmp_path)
    assert column(pool_of(tmp_path)) == [0.75, 0.25, 0.5, 0.75, 1.0, 0.0, 0.5]
    in_file(sizes("XS M", ORDER[::-1]), tmp_path)
    with pytest.raises(ArgumentError, match="expected the ordered categories"):
        pool_of(tmp_path)


# -- logs and runs -----------------------------------------------------------------------------------------------------


@IN
def test_a_log_keeps_the_ranks(make: Makes, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    given = make(sizes(), folder)
    opt = bo.Optimizer(given, storage=tmp_path / "log.db", seed=0)
    for trial in opt.ask(3):
        opt.tell(trial, float(trial.index or 0))
    again = bo.Optimizer.open(tmp_path / "log.db", pool=given)
    assert again.pool is not None
    assert opt.pool is not None
    assert column(again.pool) == column(opt.pool)
    assert [trial.params for trial in again.trials] == [trial.params for trial in opt.trials]
    assert again.recommend() == opt.recommend()


def test_bins_in_a_log_become_text_that_keeps_its_order(tmp_path: Path) -> None:
    frame = pd.DataFrame({"bin": pd.cut(np.array([0.5, 1.5, 0.7]), [0.0, 1.0, 2.0, 3.0]), "x": [1.0, 2.0, 3.0]})
    with pytest.raises(ArgumentError, match=r"as by frame\['bin'\]\.cat\.rename_categories\(str\)"):
        bo.Optimizer(frame, storage=tmp_path / "log.db")
    opt = bo.Optimizer(frame.assign(bin=frame["bin"].cat.rename_categories(str)), storage=tmp_path / "log.db")
    assert column(opt.pool) == [0.0, 0.5, 0.0]


@IN
def test_the_choices_of_an_older_log_stay_without_order(make: Makes, tmp_path: Path) -> None:
    unordered = pool_of(make(sizes().astype({"size": str}), tmp_path))
    old = describe(unordered)
    text = log_schema.from_json(log_schema.to_json(old.text))
    again: Any = read_candidates(
        type(old)(text, old.rows), bo.Pool(sizes()) if make is not in_product else make(sizes(), tmp_path), True
    )
    assert again.categorical == (0,)
    assert column(again) == column(unordered) == [0.0, 1.0, 2.0, 0.0, 3.0]


def test_values_between_two_neighbours_are_expected_between_theirs() -> None:
    frame = sizes(" ".join(ORDER * 4))
    opt = bo.Optimizer(frame, direction="maximize", seed=0)
    for row in range(0, 20, 2):
        opt.tell({"index": row}, {"XS": 0.0, "S": 1.0, "M": 2.0, "L": 3.0, "XL": 4.0}[frame["size"][row]])
    assert opt.recommend().params["size"] == "XL"
    assert opt.predict([{"size": "M", "dose": 0.1}])[0] == pytest.approx([2.0], abs=0.2)
