"""The timing of the learners runs to its end at a tiny size, and leaves none of them out."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import learners_speed
from bkbopt import learners
from bkbopt.learners import OnlineLearner

TINY = ["--rows", "260", "--seconds", "0", "--long", "300"]


def test_every_learner_has_a_row() -> None:
    stream = learners_speed.synthetic_stream(50)
    made = {type(case.make()) for case in learners_speed.cases(stream)}
    exported = [getattr(learners, name) for name in learners.__all__]
    kinds = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, OnlineLearner)}
    assert made == kinds - {OnlineLearner}


def test_program_prints_every_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(learners_speed, "DATA", tmp_path / "nowhere")
    learners_speed.main(TINY)
    out = capsys.readouterr().out
    assert "synthetic: 260 rows, d = 8, B = 50" in out
    assert "PKAWV, Taylor M = 2, 300 rows of d = 18" in out
    for case in learners_speed.cases(learners_speed.synthetic_stream(50)):
        assert f"  {case.name} " in out


def test_data_sets_are_shuffled_with_their_labels(tmp_path: Path) -> None:
    X = np.arange(40.0).reshape(20, 2)
    y = np.where(np.arange(20) % 3 == 0, 1.0, -1.0)
    np.savez(tmp_path / "german.npz", X=X.astype(np.float32), y=y.astype(np.float32))
    stream = learners_speed.load_stream(tmp_path, "german", 15)
    assert (len(stream.X), stream.budget) == (15, 50)
    rows = (stream.X[:, 0] / 2.0).astype(int)
    assert len(set(rows)) == 15
    assert rows.tolist() != sorted(rows)
    np.testing.assert_array_equal(stream.X, X[rows])
    np.testing.assert_array_equal(stream.y, y[rows])


def test_a_prediction_of_zero_counts_as_a_mistake() -> None:
    stream = learners_speed.synthetic_stream(40)
    case = learners_speed.Case("first row only", learners.RBP, 1)
    row = learners_speed.measure(case, stream, 0.0)
    assert row[learners_speed.HEADER.index("mistakes %")] == 100.0
