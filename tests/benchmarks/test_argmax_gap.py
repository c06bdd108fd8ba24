"""The benchmark of the search over a box."""

import numpy as np
import pytest

from benchmarks import argmax_gap
from bkbopt.search.maximizers.box import SearchSettings


def test_a_table_is_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(argmax_gap, "PROBLEMS", {"Hartmann-6": argmax_gap.hartmann})
    argmax_gap.main(["--trials", "20", "--seeds", "1"])
    out = capsys.readouterr().out
    assert "after 20 trials, beta 3, 1 seeds" in out
    assert "Hartmann-6" in out


def test_a_poor_search_leaves_more_than_the_usual_one() -> None:
    opt = argmax_gap.studied(argmax_gap.ripples, 30, 0)
    poor = SearchSettings(n_raw=1, n_local=1, n_starts=1, max_iterations=1, n_scans=0)
    usual, bad = argmax_gap.gap(opt, 3.0, 0)[0], argmax_gap.gap(opt, 3.0, 0, poor)[0]
    assert 0.0 <= usual < bad
    assert bad > argmax_gap.FOUND


def test_functions_are_about_one_in_size() -> None:
    X = np.random.default_rng(0).random((200, argmax_gap.D))
    for function in argmax_gap.PROBLEMS.values():
        assert 0.1 < np.std([function(x) for x in X]) < 1.0
