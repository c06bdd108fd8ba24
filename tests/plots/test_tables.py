"""Tables of a report: the text of cells, and the description of spaces."""

import re
from typing import Any

import numpy as np
import pytest

import bkbopt as bo

pytest.importorskip("matplotlib", reason="matplotlib is not installed; the extra plots brings it")

from bkbopt.plots import tables


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, ""), (0.1234567, "0.123457"), (12345678, "12345678"), (True, "True"), ("a" * 90, "a" * 79 + "\u2026")],
)
def test_a_cell_has_six_digits_of_a_number_and_the_beginning_of_a_text(value: object, shown: str) -> None:
    assert tables.cell(value) == shown


def test_a_space_is_told_by_its_ranges_and_long_lists_by_their_beginning() -> None:
    space = {"rate": bo.Float(0.1, 1.0, log=True), "many": [f"c{i}" for i in range(30)], "few": bo.Ordinal([1, 2, 4])}
    html = tables.candidates_table(bo.Optimizer(space, seed=0))
    assert "a number in [0.1, 1.0], logarithmic" in html
    assert "c18, c19 and 10 more" in html
    assert "1, 2, 4<" in html
    assert "active where" not in html


def test_a_column_of_a_pool_is_told_by_its_range_and_its_bulk_where_tails_are_compressed() -> None:
    rows = np.stack([np.arange(41.0), np.append(np.arange(40.0), 1000.0)], axis=1)
    html = tables.candidates_table(bo.Optimizer(bo.Pool(rows), seed=0))
    assert "from 0 to 40<" in html
    assert "from 0 to 1000; compressed beyond 20 ± 18<" in html  # from the third value to the third last


def test_a_column_that_nothing_stands_in_is_left_out() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    opt.tell({"x": 0.5}, 1.0)
    plain = tables.trials_table(opt, opt.trials, ["value"], {}, "trials")
    noted = tables.trials_table(opt, opt.trials, ["value"], {0: ["best"]}, "trials")
    assert "note" not in plain
    assert '<td><span class="pill">best</span></td>' in noted
    assert "row of the pool" not in plain


@pytest.mark.parametrize(("feasible", "shown"), [(None, "none"), (lambda p: True, "a function of the parameters")])
def test_options_are_shown_in_words(feasible: Any, shown: str) -> None:
    html = tables.options_table(bo.Optimizer({"x": (0.0, 1.0)}, feasible=feasible, seed=0))
    rows = dict(re.findall(r"<td>(\w+)</td>\s*<td>([^<]*)</td>", html))
    assert rows["feasible"] == shown
    assert (rows["fit"], rows["deterministic"], rows["constraints"]) == ("yes", "no", "none")
