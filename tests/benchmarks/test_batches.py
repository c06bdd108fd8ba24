"""The comparison of batches asks before it tells, counts what happened, and averages it as it says."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import batches
from benchmarks.batch_peers import BATCHERS, BatchLoop, can_run
from benchmarks.batch_problems import BOXES, TARGETS, Target, of_box, of_data, of_rows
from benchmarks.batches import Cell, Job, cells_of, jobs_of, run_batches
from benchmarks.functions import PROBLEMS, Array
from benchmarks.samplers import quiet_optuna
from tests.sweeps import slow_but

BRANIN = of_box(PROBLEMS["branin"])


def small_pool() -> Target:
    rows = np.random.default_rng(0).random((60, 2))
    return replace(of_rows("line", rows, rows.sum(axis=1)), lengthscale=0.8)


#: BoTorch's loop takes seconds, and our variants differ from `bkb` by an option.
every_peer = pytest.mark.parametrize("name", slow_but({"random", "bkb", "bkb_known", "cmaes", "tpe_liar"}, BATCHERS))


@every_peer
@pytest.mark.parametrize("where", ["box", "pool"])
def test_every_optimiser_gives_places_of_its_target(name: str, where: str) -> None:
    if not can_run(name, 4, is_box=where == "box", has_kernel=where == "pool"):
        pytest.skip(f"{name} has no form for a {where}")
    target = BRANIN if where == "box" else small_pool()
    with quiet_optuna(), torch.random.fork_rng():
        loop = BATCHERS[name](target, 4, 0)
        for first in (0, 4, 8, 12):
            places = loop.ask(4)
            assert len(places) == 4 or name == "bkb_useful"
            loop.tell(places, target.observe(places, 0, first))
        best = loop.recommend()
    assert len(best) == 1
    for place in (*places, *best):
        if where == "box":
            assert ((place >= np.array(BRANIN.bounds)[:, 0]) & (place <= np.array(BRANIN.bounds)[:, 1])).all()
        else:
            assert 0 <= place < 60


def test_a_seed_decides_our_run() -> None:
    first, again, other = (run_batches(BRANIN, BATCHERS["bkb"](BRANIN, 6, s), 18, 6, s) for s in (1, 1, 2))
    assert first["regret"] == again["regret"]
    assert first["recommended"] == again["recommended"]
    assert first["regret"] != other["regret"]


def test_cma_es_learns_when_a_generation_is_complete() -> None:
    # Branin has d = 2: a generation of 6. In batches of 4 the first one ends within the second batch.
    loop = BATCHERS["cmaes"](BRANIN, 4, 0)
    centre = loop.recommend()
    for _ in range(2):
        places = loop.ask(4)
        assert (loop.recommend() == centre).all()
        loop.tell(places, BRANIN.value(places))
    assert (loop.recommend() != centre).any()


def told_by(calls: list[tuple[str, int]]) -> BatchLoop:
    """A loop that goes down the rows of a pool, and notes its calls; it recommends the last one told."""
    at = [0]

    def ask(n: int) -> Array:
        calls.append(("ask", n))
        return np.arange(at[0], at[0] + n)

    def tell(places: Array, values: Array) -> None:
        calls.append(("tell", len(values)))
        at[0] += len(places)

    return BatchLoop(ask, tell, lambda: np.array([at[0] - 1]))


def test_a_batch_is_asked_whole_and_the_last_one_may_be_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "CHECKPOINTS", (2, 6, 10, 100))
    target = replace(of_rows("line", np.zeros((30, 1)), np.arange(30.0)), scale=2.0, noise_sd=0.0)
    calls: list[tuple[str, int]] = []
    record = run_batches(target, told_by(calls), 11, 4, seed=0)
    assert calls == [("ask", 4), ("tell", 4), ("ask", 4), ("tell", 4), ("ask", 3), ("tell", 3)]
    assert record["batches"] == [4, 4, 3]
    assert record["regret"] == [i / 2.0 for i in range(11)]
    assert record["checkpoints"] == [2, 6, 10, 11]
    # No batch ends by 2, the first one ends by 6 and the second one by 10.
    assert record["recommended"] == [None, 1.5, 3.5, 5.0]


def test_all_optimisers_meet_the_same_noise() -> None:
    target = replace(BRANIN, value=lambda places: np.zeros(len(places)))
    places = np.zeros((6, 2))
    together = target.observe(places, 3, 10)
    apart = np.concatenate([target.observe(places[:2], 3, 10), target.observe(places[2:], 3, 12)])
    np.testing.assert_array_equal(together, apart)
    assert len(set(together)) == 6
    problem = PROBLEMS["branin"]
    expected = problem.observe(problem.minimizers[0], 3, 10) - float(problem.value(problem.minimizers[0]))
    assert together[0] == pytest.approx(expected, rel=1e-9)  # rounding of the value that was added


def record(regret: list[float], found: float | None, n: int, q: int) -> dict[str, object]:
    sizes = [q] * (n // q)
    return {"regret": regret, "batches": sizes, "checkpoints": [n], "recommended": [found], "seconds": [0.5]}


def test_batches_are_compared_over_the_same_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "SKIPPED", 2)
    alone, by_twos = [4.0, 2.0, 2.0, 1.0, 1.0, 0.0], [4.0, 4.0, 3.0, 3.0, 2.0, 1.0]
    cells = cells_of("line", {("bkb", 1): [record(alone, 0.1, 6, 1)], ("bkb", 2): [record(by_twos, 0.2, 6, 2)] * 2})
    assert [(c.q, len(c.average)) for c in cells] == [(1, 1), (2, 2)]
    twos = cells[1]
    assert twos.ratio == pytest.approx(17.0 / 10.0)
    assert twos.ratio_after == pytest.approx(3.0 / 1.0)  # the last two of six: the first four are two batches
    assert cells[0].ratio_after == 1.0
    assert (cells[0].batches, twos.batches) == (6, 3)
    assert twos.ms == pytest.approx(500.0 / 6)


def test_batches_of_our_own_size_are_compared_with_ours_one_by_one() -> None:
    runs = {("bkb", 1): [record([1.0] * 12, 0.1, 12, 1)], ("bkb_useful", 6): [record([3.0] * 12, 0.1, 12, 2)]}
    assert [(c.ratio, c.ratio_after, c.batches) for c in cells_of("line", runs)] == [(1.0, 1.0, 12), (3.0, 3.0, 6)]


def test_nothing_is_averaged_where_no_batches_are_left() -> None:
    cells = cells_of("line", {("bkb", 10): [record([1.0] * 30, None, 30, 10)]})
    assert (cells[0].after, cells[0].recommended) == ([], [])
    assert (cells[0].ratio, cells[0].ratio_after, cells[0].found) == (None, None, None)


def test_pools_have_a_floor_for_batches_of_different_rows(capsys: pytest.CaptureFixture[str]) -> None:
    target = replace(of_rows("line", np.zeros((30, 1)), np.arange(30.0)[::-1]), scale=2.0)
    runs = {("bkb", q): [record([1.0] * 12, 0.0, 12, q)] for q in (1, 4)}
    batches.print_cells(target, cells_of("line", runs))
    assert capsys.readouterr().out.endswith("the best q: 1: 0.0000, 4: 0.7500\n")


def test_the_summary_has_geometric_means_of_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    def cell(peer: str, problem: str, average: float) -> Cell:
        return Cell(peer, problem, 10, 100, [average], [average], [1.0], [0.5], [0.2 * average], 1.0, 10)

    batches.print_summary([cell("bkb", "a", 1.0), cell("bkb", "b", 4.0), cell("tpe", "a", 3.0), cell("tpe", "b", 3.0)])
    ours, theirs = (line.split() for line in capsys.readouterr().out.splitlines()[3:5])
    assert ours == ["100", "10", "bkb", "2", "2", "4", "1", "1", "1"]
    assert theirs == ["100", "10", "tpe", "2", "3", "6", "1.5", "1.5", "1.5"]


def test_pools_of_real_data_have_rows_by_rank_and_means_of_near_rows(tmp_path: Path) -> None:
    X = np.exp(5.0 * np.random.default_rng(0).random((400, 3)))
    np.savez(tmp_path / "casp.npz", X=X, y=X[:, 0])
    np.savez(tmp_path / "cadata.npz", X=X, y=X[:, 0])
    casp, smooth, cadata = (of_data(tmp_path, name) for name in ("casp", "casp-smooth", "cadata"))
    assert casp.dim == 3
    assert sorted(casp.pool[:, 1]) == [(i + 1) / 400 for i in range(400)]
    every = np.arange(400)
    assert float(casp.value(every).min()) == casp.minimum == X[:, 0].min()
    assert cadata.minimum == -X[:, 0].max()  # of houses a high value is good
    assert np.corrcoef(casp.value(every), smooth.value(every))[0, 1] > 0.9
    assert smooth.value(every).std() < casp.value(every).std()


def test_optimisers_have_no_runs_that_they_cannot_make() -> None:
    jobs = jobs_of(list(BATCHERS), ["hartmann6", "cadata", "gp-pool"], (1, 10, 100), seeds=2, trials=3_000)
    names = {(job.peer, job.problem) for job in jobs}
    assert ("cmaes", "cadata") not in names
    assert ("cmaes", "hartmann6") in names
    assert {job.problem for job in jobs if job.peer == "bkb_known"} == {"gp-pool"}
    assert {(job.n_trials, job.q) for job in jobs if job.problem == "gp-pool" and job.peer == "bkb"} == {
        (1_094, 1),
        (1_094, 20),
    }
    assert {(job.n_trials, job.q) for job in jobs if job.peer == "qlognei"} == {(300, 1), (300, 10)}
    assert {job.q for job in jobs if job.peer == "bkb_useful"} == {100}
    assert {job.seed for job in jobs} == {0, 1}
    assert set(batches.PROBLEMS) <= set(TARGETS)
    assert set(BOXES) <= set(TARGETS)


def test_files_tell_batches_apart(tmp_path: Path) -> None:
    names = [Job("bkb", "branin", 10, 0, q).path(tmp_path, "abc").name for q in (1, 10)]
    assert names == ["bkb-abc_branin-q1_10_0.json", "bkb-abc_branin-q10_10_0.json"]


@pytest.mark.slow
def test_nothing_is_computed_twice_and_missing_data_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--quick", "--peers", "random", "bkb", "--seeds", "1", "--trials", "14", "--batches", "1", "7"]
    options = [*few, "--data", str(tmp_path), "--out", str(tmp_path / "runs"), "--jobs", "1"]
    batches.main(options)
    out = capsys.readouterr().out
    assert f"{tmp_path} has no cadata.npz" in out
    assert "4 runs, 0 of them done before" in out
    batches.main(options)
    out = capsys.readouterr().out
    assert "4 runs, 4 of them done before" in out
    assert "hartmann6 (box, d = 6, noise sd 0.1): regret / IQR" in out
    assert "all problems" in out
