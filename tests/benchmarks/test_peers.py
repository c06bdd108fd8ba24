"""Every optimiser of the comparison satisfies the same contract, and restores global settings."""

import numpy as np
import optuna
import pytest
import torch

from benchmarks.functions import PROBLEMS
from benchmarks.peers import PEERS, Loop, run_loop, run_peer
from bkbopt.errors import ArgumentError
from tests.sweeps import slow_but

BRANIN = PROBLEMS["branin"]
#: Of the others' seeds and silence they are to be trusted from day to day.
ours_and_one_other = pytest.mark.parametrize("name", slow_but({"bkbopt", "tpe"}, PEERS))


@pytest.mark.parametrize("name", slow_but({*PEERS} - {"qlognei"}, PEERS))
def test_a_run_tells_what_happened(name: str) -> None:
    run = run_peer(name, BRANIN, 13, seed=1)
    assert (run.name, run.problem, run.seed) == (name, "branin", 1)
    assert run.xs.shape == (13, 2)
    assert ((run.xs >= BRANIN.low) & (run.xs <= BRANIN.high)).all()
    np.testing.assert_array_equal(run.f_true, BRANIN.value(run.xs))
    np.testing.assert_array_equal(run.ys_noisy, [BRANIN.observe(x, 1, trial) for trial, x in enumerate(run.xs)])
    assert run.checkpoints.tolist() == [10, 13]
    assert all(any(np.array_equal(point, x) for x in run.xs) for point in run.recommended)
    assert (run.seconds_per_trial > 0).all()


@ours_and_one_other
def test_a_seed_decides_the_run(name: str) -> None:
    first, second = (run_peer(name, BRANIN, 12, seed=2) for _ in range(2))
    np.testing.assert_array_equal(first.xs, second.xs)
    assert not np.array_equal(first.xs, run_peer(name, BRANIN, 12, seed=3).xs)


@ours_and_one_other
def test_a_run_is_silent_and_restores_the_process(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    threads, verbosity = torch.get_num_threads(), optuna.logging.get_verbosity()
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    run_peer(name, BRANIN, 12, seed=0)  # a warning would be an error here, by the test run's settings
    assert capfd.readouterr() == ("", "")
    assert torch.get_num_threads() == threads
    assert optuna.logging.get_verbosity() == verbosity
    assert torch.rand(1) == expected


@pytest.mark.parametrize("name", ["random", "tpe", "gp_sampler", "cmaes"])
def test_the_best_observed_point_is_recommended_where_users_get_it(name: str) -> None:
    run = run_peer(name, BRANIN, 25, seed=0)
    for checkpoint, point in zip(run.checkpoints, run.recommended, strict=True):
        np.testing.assert_array_equal(point, run.xs[np.argmin(run.ys_noisy[:checkpoint])])


def test_the_loop_alternates_asking_and_telling() -> None:
    calls: list[str] = []
    loop = Loop(
        ask=lambda: (calls.append("ask"), np.array([0.0, 1.0]))[1],
        tell=lambda x, y: calls.append("tell"),
        recommend=lambda: (calls.append("recommend"), np.array([0.0, 1.0]))[1],
    )
    run_loop("ours", BRANIN, 11, 0, loop)
    assert calls == ["ask", "tell"] * 10 + ["recommend", "ask", "tell", "recommend"]


def test_unknown_names_and_empty_runs_are_refused() -> None:
    with pytest.raises(ArgumentError, match="expected one of"):
        run_peer("oracle", BRANIN, 10, seed=0)
    with pytest.raises(ArgumentError, match="n_trials"):
        run_peer("random", BRANIN, 0, seed=0)
