"""The benchmark of samplers with pruners."""

from pathlib import Path

import numpy as np
import optuna
import pytest

from benchmarks import pruning


def test_a_training_ends_at_the_function_and_starts_far_above() -> None:
    training = pruning.Training("hartmann6", 0)
    x = np.full(6, 0.3)
    curve = training.curve(x)
    assert curve[-1] == training.problem.value(x)
    assert bool((np.diff(curve) < 0.0).all())
    assert 0.4 * training.problem.iqr < curve[0] - curve[-1] < 3.5 * training.problem.iqr


def test_pruned_trials_count_their_own_steps_only() -> None:
    training = pruning.Training("hartmann6", 0)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), pruner=pruning.PRUNERS["median"]())
    study.optimize(training, n_trials=40)
    assert any(trial.state.name == "PRUNED" for trial in study.trials)
    assert training.steps == sum(len(trial.intermediate_values) for trial in study.trials)


@pytest.mark.slow
def test_a_table_has_a_row_for_each_pruner_and_sampler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--problems", "hartmann6", "--steps", "300", "--seeds", "2", "--jobs", "1", "--out", str(tmp_path)]
    pruning.main([*sizes, "--peers", "bkb", "random", "--pruners", "none", "halving"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith(("  none", "  halving"))]
    assert [row[:3] for row in rows] == [[p, s, "2"] for p in ("none", "halving") for s in ("bkb", "random")]
    trials = {tuple(row[:2]): float(row[3]) for row in rows}
    assert trials["none", "bkb"] == 15.0
    assert trials["halving", "random"] > 15.0
