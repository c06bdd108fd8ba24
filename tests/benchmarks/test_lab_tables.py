"""The benchmark of laboratory tables, on a small one."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
from benchmarks import lab_tables
from benchmarks.lab_tables import Table


def data(folder: Path) -> Path:
    place = folder / "dataset_hplc"
    place.mkdir()
    columns = [{"name": "flow", "type": "continuous"}, {"name": "ligand", "type": "categorical"}]
    (place / "config.json").write_text(json.dumps({"parameters": columns, "default_goal": ["minimize", "maximize"]}))
    lines = [f"{flow},{ligand},{(flow - 3) ** 2 + ligand}.5,9.0" for flow in range(10) for ligand in range(4)]
    (place / "data.csv").write_text("\n".join([*lines, "3,0,1.5,9.0", "3,0,,9.0"]))
    return folder


def test_the_first_measurement_counts_averaged_over_equal_rows_and_is_maximised(tmp_path: Path) -> None:
    table = Table.read(data(tmp_path), "hplc")
    assert table.X.shape == (40, 2)
    assert table.X.loc[12].tolist() == [3.0, "0"]
    assert table.y[12] == table.y.max() == -1.0
    assert table.y[13] == -1.5
    assert table.encoded().shape == (40, 5)
    np.testing.assert_array_equal(table.encoded()[12], [3 / 9, 1.0, 0.0, 0.0, 0.0])


def test_another_order_keeps_rows_and_values_together(tmp_path: Path) -> None:
    table = Table.read(data(tmp_path), "hplc")
    other = table.shuffled(1)
    assert other.X.index.tolist() == list(range(40))
    assert not other.X.equals(table.X)
    value_of = dict(zip(map(tuple, table.X.to_numpy()), table.y, strict=True))
    assert [value_of[tuple(row)] for row in other.X.to_numpy()] == other.y.tolist()


def test_regret_is_that_of_the_best_row_so_far(tmp_path: Path) -> None:
    table = Table.read(data(tmp_path), "hplc")
    unit = -1.0 - np.median(table.y)
    np.testing.assert_allclose(table.regrets([13, 14, 12]), [0.5 / unit, 0.5 / unit, 0.0], rtol=1e-12)


@pytest.mark.parametrize("name", list(lab_tables.SEARCHES))
def test_a_search_evaluates_different_rows(tmp_path: Path, name: str) -> None:
    rows = lab_tables.SEARCHES[name](Table.read(data(tmp_path), "hplc"), 13, 0)
    assert len(set(rows)) == len(rows) == 13


def test_the_program_prints_both_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab_tables.main(["--data", str(data(tmp_path)), "--quick", "--trials", "14", "--searches", "bkbopt", "random"])
    out = capsys.readouterr().out
    assert "hplc  40 x 2" in out
    assert "best 1 %" in out
