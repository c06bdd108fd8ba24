"""The benchmark of product pools."""

import itertools

import numpy as np
import pytest

from benchmarks import product_pool


@pytest.mark.slow
def test_tables_are_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    searches = {name: product_pool.SEARCHES[name] for name in ("bkbopt", "random rows", "TPE")}
    monkeypatch.setattr(product_pool, "SEARCHES", searches)
    monkeypatch.setattr(product_pool, "compare_with_listed", lambda n, steps, seed: [["listed rows"] * 6])
    product_pool.main(["--quick"])
    out = capsys.readouterr().out
    assert "1,728,000 rows, 25 trials, 1 libraries" in out
    assert "ask(24), ms a pick" in out


def test_a_product_that_is_read_as_a_list_makes_the_choices_of_the_listed_rows() -> None:
    table = {row[0]: row for row in product_pool.compare_with_listed(7, 3, 0)}
    assert table["product, as a list"][1] == table["listed rows"][1] == "3/3"
    assert table["product, as a list"][2] == 0.0


def test_the_least_value_is_that_of_all_rows() -> None:
    library = product_pool.Library.make(6, 1)
    values = library.values(np.array(list(itertools.product(range(6), repeat=3))))
    assert values.min() == pytest.approx(0.0, abs=1e-12)
    assert library.entries([7])[0].tolist() == [0, 1, 1]
