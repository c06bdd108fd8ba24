"""Names of a pool's rows: by a column, or by the index of a data frame."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from bkbopt.errors import ArgumentError
from bkbopt.spaces.pool import Pool
from tests.spaces.sample_pools import ARMS, TABLE, encoded

NAMED = pd.DataFrame({"id": [f"m{i}" for i in range(6)], "dose": ARMS[:6, 0], "steps": [1, 2, 3, 1, 2, 3]})


def test_a_column_that_names_the_rows_is_no_feature() -> None:
    pool = encoded(Pool(NAMED, id_column="id"))
    assert pool.names == ("dose", "steps")
    assert torch.equal(pool.X, encoded(NAMED[["dose", "steps"]]).X)
    assert pool.decode(2) == {"dose": ARMS[2, 0], "steps": 3}
    assert (pool.label(4), pool.row_of("m4"), pool.row_of(4)) == ("m4", 4, 4)
    later = pool.replaced(Pool(NAMED.iloc[::-1]))
    assert (later.names, later.label(0), later.row_of("m4")) == (pool.names, "m5", 1)
    assert pool.replaced(Pool(NAMED[["dose", "steps"]].iloc[2:])).label(0) == 2


def test_rows_have_the_labels_of_their_frame() -> None:
    by_name = encoded(NAMED.set_index("id"))
    assert (by_name.label(1), by_name.row_of("m1"), by_name.row_of(np.int64(1))) == ("m1", 1, 1)
    by_number = encoded(NAMED[["dose", "steps"]].iloc[[5, 0, 3]])
    assert (by_number.label(0), by_number.row_of(5), by_number.row_of(3)) == (5, 0, 2)
    with pytest.raises(
        ArgumentError, match="got 0, which is the label of row 1 in the data frame's index and the number"
    ):
        by_number.row_of(0)  # a trial's `index` would be taken for a label
    named = Pool(NAMED[["dose", "steps"]].iloc[[5, 0, 3]].assign(key=[5, 0, 3]), id_column="key")
    assert encoded(named).row_of(0) == 1
    with pytest.raises(ArgumentError, match=r"rows: expected labels of the pool's rows \(5, 0, 3, ...\), got 1"):
        by_number.row_of(1)
    array = encoded(ARMS)
    assert (array.label(7), array.row_of(7)) == (7, 7)


@pytest.mark.parametrize("label", ["m9", None, 1.5, True, -1, 6, [1]])
def test_labels_that_name_no_row_are_refused(label: Any) -> None:
    for pool in (encoded(NAMED.set_index("id")), encoded(NAMED[["dose", "steps"]]), encoded(ARMS[:6])):
        with pytest.raises(ArgumentError, match=r"expected (labels|a row number)"):
            pool.row_of(label)


def test_a_label_of_several_rows_is_refused() -> None:
    frame = NAMED[["dose", "steps"]].set_index(pd.Index(list("abcabd")))
    pool = encoded(frame)
    assert pool.row_of("c") == 2
    with pytest.raises(ArgumentError, match=r"got 'a', which names the rows \[0, 3\]; tell"):
        pool.row_of("a")


def test_text_that_differs_in_every_row_is_refused_with_a_hint() -> None:
    with pytest.raises(ArgumentError, match=r"'id' are all different; pass bo\.Pool\(frame, id_column='id'\)"):
        encoded(NAMED)
    # Declared categories, the only column there is, and a later pool of few rows are meant so.
    assert encoded(NAMED.astype({"id": "category"})).categorical == (0,)
    assert encoded(NAMED[["id"]]).categorical == (0,)
    assert len(encoded(TABLE).replaced(Pool(TABLE.iloc[:3]))) == 3


@pytest.mark.parametrize("more", [{"operator": "Ann"}, {"operator": "Ann", "dose": 0.5}, {"dose": 0.5}])
def test_a_point_with_the_name_and_other_columns_is_refused_with_the_way_that_works(more: dict[str, Any]) -> None:
    pool = encoded(Pool(NAMED, id_column="id"))
    with pytest.raises(ArgumentError, match=r"of a row is enough: pass only 'id', of a data frame by columns=\['id'\]"):
        pool.internal({"id": pool.label(3), **more})
    with pytest.raises(ArgumentError, match="got unknown 'operator' and nothing for 'dose'"):
        pool.internal({"id": pool.label(3), "operator": "Ann"})
    with pytest.raises(ArgumentError, match=r"nothing for .*'steps'\.$"):
        pool.internal({"dose": 0.5})
    with pytest.raises(ArgumentError, match=r"^fixed: expected columns among \(.*\), or 'id' alone, got 'label'\.$"):
        pool.fixed({"label": pool.label(3)})


@pytest.mark.parametrize(
    ("frame", "id_column", "message"),
    [
        (NAMED, "name", r"id_column: expected one of the columns .*, got 'name'"),
        (ARMS, "id", "id_column: expected a data frame that has it, got ndarray"),
        (NAMED.assign(id="m"), "id", "id_column: expected distinct names in 'id', got 'm' twice"),
        (NAMED.assign(id=["m", None, *"abcd"]), "id", "a name for each row, got none in row 1"),
    ],
)
def test_a_column_that_cannot_name_the_rows_is_refused(frame: Any, id_column: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Pool(frame, id_column=id_column)
