"""The comparison of a changed package with the present one."""

import math
from pathlib import Path

import pytest

from benchmarks import ablation
from benchmarks.mutants.fault import ROOT
from benchmarks.optuna_quality import Result

MARKS = "search/quantities/marked_rows.py"


def test_the_changed_package_is_a_copy() -> None:
    before = (ROOT / "bkbopt" / MARKS).read_text()
    changes = [(MARKS, "GROWTH = 1.15", "GROWTH = 2.0"), (MARKS, "WAIT_OF_FAILING = 3, 1", "WAIT_OF_FAILING = 3, 2")]
    with ablation.changed(changes) as folder:
        text = (folder / "bkbopt" / MARKS).read_text()
    assert text == before.replace("GROWTH = 1.15", "GROWTH = 2.0").replace("FAILING = 3, 1", "FAILING = 3, 2")
    assert (ROOT / "bkbopt" / MARKS).read_text() == before
    assert not folder.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            (MARKS, "no such text", ""),
            "expected the text once in bkbopt/search/quantities/marked_rows.py, got it 0 times",
        ),
        ((MARKS, "mark", ""), "got it [1-9][0-9]* times"),
        (("search/none.py", "", ""), "expected a file below bkbopt/, got search/none.py"),
    ],
)
def test_a_change_that_is_not_clear_is_refused(change: tuple[str, str, str], message: str) -> None:
    with pytest.raises(SystemExit, match=message), ablation.changed([change]):
        raise AssertionError("it was made")


def test_a_change_or_another_checkout_has_to_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--change", MARKS, "a", "b", "--against", "elsewhere"]):
        with pytest.raises(SystemExit, match="2"):
            ablation.main(arguments)
        assert "expected --change or --against" in capsys.readouterr().err


def test_ratios_are_geometric_means_over_the_problems() -> None:
    centre, error = ablation.ratio([2.0, 4.0], [1.0, 1.0])
    assert centre == pytest.approx(8.0**0.5)
    # The logarithms are log 2 and 2 log 2, whose standard error is half of their distance.
    assert error == pytest.approx(centre * 0.5 * math.log(2.0))

    def result(version: str, problem: str, regrets: list[float], ms: float) -> Result:
        return Result(version, problem, 100, regrets, regrets, regrets, ms)

    results = [
        result("with", "a", [1.0, 3.0], 4.0),
        result("without", "a", [1.0, 1.0], 2.0),
        result("with", "b", [0.5], 4.0),
        result("without", "b", [0.5], 2.0),
    ]
    (row,) = ablation.rows_of(results)
    assert row[:2] == (100, 2)
    assert row[2:4] == (pytest.approx(1.0), pytest.approx(0.5**0.5))
    assert str(row[4]).startswith("1.41 +- 0.49")
    assert row[-1] == pytest.approx(2.0)


def test_runs_with_the_same_regrets_are_counted() -> None:
    run = {"recommended": [1.0], "average": [2.0], "last_fifth": [3.0], "seconds": [0.1]}
    assert ablation.n_same([(run, run | {"seconds": [0.2]}), (run, run | {"average": [2.1]})]) == 1


@pytest.mark.slow
def test_a_change_without_effect_gives_the_same_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change = [MARKS, "#: Ratio of two marks", "#: The ratio of two marks"]
    small = ["--problems", "branin", "--trials", "14", "--seeds", "2", "--out", str(tmp_path)]
    ablation.main(["--change", *change, *small])
    assert "2 of 2 runs are the same" in capsys.readouterr().out
    assert len(list(tmp_path.iterdir())) == 2  # comments do not count: both versions have one digest
    ablation.main(["--change", MARKS, "GROWTH = 1.15", "GROWTH = 1.3", *small])
    assert "runs are the same" in capsys.readouterr().out
    assert len(list(tmp_path.iterdir())) == 4
