"""The comparison of early with late perturbations changes what it says, and prints its tables."""

import pytest

from benchmarks import early_perturbations
from bkbopt.search import perturbations


def test_the_best_point_has_no_loss_and_every_other_value_costs() -> None:
    assert early_perturbations.loss({"x": 1.0, "n": 3, "kind": "a"}) == 0.0
    for other in ({"x": 1.0, "n": 2, "kind": "a"}, {"x": 1.0, "n": 3, "kind": "b"}):
        assert early_perturbations.loss(other) > early_perturbations.MISSED


def test_the_first_perturbation_is_moved_and_moved_back() -> None:
    before = perturbations.FIRST_PERTURBATION, perturbations.FIRST_PERTURBATION_OF_CHOICES
    with early_perturbations.first_perturbation_at(20):
        for choices in (False, True):
            schedule = perturbations.Perturbations(choices, wide=False)
            assert next(t for t in range(30) if schedule.is_due(t)) > 20
    assert before == (perturbations.FIRST_PERTURBATION, perturbations.FIRST_PERTURBATION_OF_CHOICES)


@pytest.mark.slow
def test_every_table_is_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_perturbations, "FLOATS", ("branin",))
    monkeypatch.setitem(early_perturbations.TRIALS, "branin", 15)
    early_perturbations.main(["--studies", "1", "--noisy", "2", "--pairs", "2"])
    out = capsys.readouterr().out
    for title in ("few values, no noise: of 1 studies", "few values, noise sd 0.5", "floats: regret / IQR, 2 pairs"):
        assert title in out
