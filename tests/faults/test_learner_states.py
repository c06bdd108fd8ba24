"""Every state file of a learner or a bandit that loads is one that works; see `learner_states.py`."""

from collections import Counter
from pathlib import Path

import pytest

from tests.faults.damage import DAMAGES
from tests.faults.learner_states import Case, case, outcome, run
from tests.faults.learner_subjects import good_file

#: In this process and without limits, which the whole sweep has.
FEW = 90


def test_few_damaged_files_are_refused_or_work(tmp_path: Path) -> None:
    cases = [case(2, i) for i in range(FEW)]
    results = [(given.subject, given.damage, outcome(given, tmp_path)) for given in cases]
    assert [result for result in results if result[2].startswith("FAILED")] == []
    assert {damage for _, damage, _ in results} == set(DAMAGES)
    kinds = Counter(kind for *_, kind in results)
    assert min(kinds["refused"], kinds["works"]) > FEW // 10  # else the harness tests nothing


def test_failures_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Case("KOGD", "none", good_file("KOGD"))
    assert outcome(given, tmp_path) == "works"

    def broken(*_: object) -> None:
        raise IndexError

    monkeypatch.setattr("bkbopt.learners.expansions.expansion.ExpansionLearner._restore", broken)
    monkeypatch.setattr("bkbopt.errors.StateFileError.__init__", broken)  # what would take an untyped error's place
    assert outcome(given, tmp_path) == "FAILED at load: IndexError in errors.py:reading_state"
    monkeypatch.undo()
    monkeypatch.setattr("bkbopt.learners.expansions.expansion.ExpansionLearner._raw", broken)
    assert outcome(given, tmp_path).startswith("FAILED in use: IndexError")


@pytest.mark.slow
def test_ten_thousand_damaged_files_are_refused_or_work() -> None:
    counts = run(10_000, 0)
    assert sum(counts.values()) == 10_000
    assert {key: count for key, count in counts.items() if key[1].startswith("FAILED")} == {}
