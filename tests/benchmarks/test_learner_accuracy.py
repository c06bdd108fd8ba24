"""The comparison of accuracies runs to its end at a tiny size, and leaves no learner out."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("river")
from benchmarks.learner_accuracy import __main__ as program
from benchmarks.learner_accuracy import defaults, models, sets
from benchmarks.learner_accuracy.picture import draw
from bkbopt import learners
from bkbopt.learners import KOGD, OnlineLearner


def test_every_learner_has_a_row() -> None:
    names = {model.name.split(",")[0] for model in (*models.models_of_classes(), *models.models_of_numbers())}
    exported = [getattr(learners, name) for name in learners.__all__]
    kinds = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, OnlineLearner)}
    assert {kind.__name__ for kind in kinds - {OnlineLearner}} == names


@pytest.mark.slow
def test_program_prints_both_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "DATA", tmp_path / "nowhere")
    for task, labels in (("CLASSES", True), ("NUMBERS", False)):
        waves = {"waves": lambda _, rows, labels=labels: sets.synthetic(rows, labels=labels)}
        monkeypatch.setattr(program, task, waves)
    program.main(["--rows", "20"])
    out = capsys.readouterr().out
    assert "Labels, % right, by default" in out
    assert "Numbers, 100 R^2, by default" in out
    for model in (*models.models_of_classes(), *models.others_of_classes(), *models.others_of_numbers()):
        assert f"  {model.name} " in out


def test_predictions_of_others_come_before_the_row_is_learnt() -> None:
    stream = sets.synthetic(40, labels=True)
    changed = sets.Stream("changed", stream.X, np.where(np.arange(40) < 39, stream.y, 2 - stream.y))
    for model in models.others_of_classes():
        np.testing.assert_array_equal(model.run(changed)[:39], model.run(stream)[:39])


def test_shares_are_those_of_the_rows_that_were_used() -> None:
    stream = sets.synthetic(50, labels=True)
    half = models.Model("half", lambda s: np.where(np.arange(len(s.y)) % 2 == 0, s.y, -1), 20)
    assert program.measured(half, stream)[::2] == (50.0, True)
    assert program.measured(half, stream, 19)[0] == 0.0
    assert program.measured(half, stream, 20)[0] is None
    numbers = sets.synthetic(50, labels=False)
    assert sets.right(numbers, np.full(50, numbers.y.mean())) == pytest.approx(0.0, abs=1e-9)


def test_table_that_a_learner_refuses_has_no_figure() -> None:
    stream = sets.synthetic(30, labels=True)
    refusing = models.Model("refusing", models.ours(lambda: KOGD(step=-1.0), paper=False))
    assert program.measured(refusing, stream)[0] is None


def test_picture_is_drawn(tmp_path: Path) -> None:
    draw(models.models_of_classes(), [sets.synthetic(60, labels=True)], tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_streams_of_river_are_there_in_their_order() -> None:
    for name in ("phishing", "SEA", "blobs", "trump"):
        read = {**sets.CLASSES, **sets.NUMBERS}[name]
        stream = read(None, 30)
        assert stream is not None
        assert stream.X.shape[0] == 30


@pytest.mark.slow
def test_tables_behind_the_defaults_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    streams = [sets.synthetic(60, labels=True)]
    defaults.lengthscales("By lengthscale", streams, (KOGD,))
    defaults.several(150)
    out = capsys.readouterr().out
    assert "KOGD" in out
    assert "FOGD" in out
    assert "MB of A and u" in out
