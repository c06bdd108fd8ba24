"""The tables of the papers: what they count is true, streams are as described, and the slice on real data runs."""

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.paper_tables import __main__ as program
from benchmarks.paper_tables import kons, pkawv, runs, sets, streams
from benchmarks.paper_tables.printed import TABLES
from benchmarks.paper_tables.programs import ProgramFORKS
from bkbopt import learners as bl

SPARSE = "+1 1:0.5 3:-1\n-1 2:0.25\n+1 1:1\n"


def waves(n: int = 400, d: int = 3) -> sets.Data:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n, d))
    return X, np.where(np.sin(4.0 * X[:, 0]) + X[:, 1] > 0.2 * rng.normal(size=n), 1.0, -1.0)


@pytest.mark.slow
@pytest.mark.skipif(not program.DATA.is_dir(), reason=f"the data sets are not there: {program.DATA}")
def test_quick_tables_stand_beside_the_printed_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--quick", "--rows", "300", "--data", str(program.DATA), "--out", str(tmp_path)]
    options += ["--parts", "table1", "table3", "bounds", "--streams", "german", "german-2"]
    program.main(options)
    out = capsys.readouterr().out
    assert "FORKS, table1, german: 300 rounds, d = 24, B = 50, 2 permutation(s)" in out
    assert "FORKS, table3, german-2: 300 rounds, d = 24, B = 200" in out
    for mean, sd, _ in (*TABLES["table1"]["german"].values(), *TABLES["table3"]["german-2"].values()):
        assert f"{mean:.3f} +- {sd:.3f}" in out
    assert "german, 300 rows" in out
    written = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    program.main(options)
    assert capsys.readouterr().out.splitlines()[1:] == out.splitlines()[1:]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == written


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.main(["--data", str(tmp_path / "nowhere")])
    assert "nowhere: no such folder" in capsys.readouterr().out


def test_parts_without_their_data_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.main(["--data", str(tmp_path), "--out", str(tmp_path), "--parts", "table2", "kuairec", "figures"])
    out = capsys.readouterr().out
    assert "left out of table2: codrna-1, german-1" in out
    assert "left out of kuairec: kuairec" in out
    assert "left out of figure 2: susy" in out


@pytest.mark.parametrize("table", TABLES)
def test_printed_figures_name_learners_that_are_run(table: str) -> None:
    for stream, figures in TABLES[table].items():
        made = streams.makers(streams.Stream(table, stream, "german", 50, lambda data, seed: data), 100)
        assert set(figures) == {name for name in made if "," not in name}
        assert all(0.0 < mean < 50.0 and sd > 0.0 and seconds > 0.0 for mean, sd, seconds in figures.values())


def test_files_of_libsvm_are_read_where_ours_are_not(tmp_path: Path) -> None:
    (tmp_path / "ijcnn1").write_text(SPARSE)
    assert not sets.available(tmp_path, "ijcnn1")
    (tmp_path / "ijcnn1.t").write_text("-1 3:2\n")
    X, y = sets.load(tmp_path, "ijcnn1")
    np.testing.assert_array_equal(X, [[0.5, 0.0, -1.0], [0.0, 0.25, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    np.testing.assert_array_equal(y, [1.0, -1.0, 1.0, -1.0])


def test_a_missing_set_is_named_with_its_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"expected susy\.npz, or SUSY in LIBSVM's format"):
        sets.load(tmp_path, "susy")


def test_two_labels_become_minus_and_plus_one(tmp_path: Path) -> None:
    np.savez(tmp_path / "susy.npz", X=np.eye(3), y=np.array([0.0, 1.0, 0.0]))
    np.testing.assert_array_equal(sets.load(tmp_path, "susy")[1], [-1.0, 1.0, -1.0])


def test_permutations_hold_each_row_once_and_no_table_has_that_of_the_widths() -> None:
    data = np.arange(30.0)[:, None], np.arange(30.0)
    orders = [sets.permuted(data, seed)[1].tolist() for seed in (None, *range(20))]
    assert all(sorted(order) == list(range(30)) for order in orders)
    assert len({tuple(order) for order in orders}) == 21
    X, y = sets.permuted(data, 3, 5)
    assert y.tolist() == X[:, 0].tolist() == orders[4][:5]


def test_scaled_columns_reach_both_ends_and_constant_ones_are_zero() -> None:
    X, y = sets.scaled((np.array([[1.0, 7.0], [5.0, 7.0], [2.0, 7.0]]), np.array([0.0, 10.0, 20.0])))
    np.testing.assert_array_equal(X, [[-1.0, 0.0], [1.0, 0.0], [-0.5, 0.0]])
    np.testing.assert_array_equal(y, [-1.0, 0.0, 1.0])


def test_shrunk_columns_keep_their_zeros() -> None:
    X, y = sets.shrunk((np.array([[0.0, -4.0, 0.0], [2.0, 2.0, 0.0]]), np.array([5.0, 10.0])))
    np.testing.assert_array_equal(X, [[0.0, -1.0, 0.0], [1.0, 0.5, 0.0]])
    np.testing.assert_array_equal(y, [0.5, 1.0])


def test_adversarial_blocks_repeat_a_row_and_turn_every_other_label() -> None:
    data = waves()
    X, y = sets.adversarial(data, 0, repeats=10, blocks=40)
    assert X.shape == (400, 3)
    rows, labels = sets.permuted(data, 0, 40)
    np.testing.assert_array_equal(X[::10], rows)
    np.testing.assert_array_equal(X.reshape(40, 10, 3), np.repeat(rows[:, None], 10, axis=1))
    np.testing.assert_array_equal(y.reshape(40, 10), np.outer(labels * (-1.0) ** np.arange(40), np.ones(10)))


def test_mistakes_are_counted_both_ways() -> None:
    X, y = waves()
    found = streams.result(bl.NOGD.paper(budget=30, lengthscale=0.5), (X, y))
    learner = bl.NOGD.paper(budget=30, lengthscale=0.5)
    p = learner.progressive(X, y, decision=True, classes=[-1.0, 1.0])
    assert learner.switched_at_ is not None
    assert 30 <= learner.switched_at_ < 400
    wrong = p * y <= 0.0
    assert found["all"] == pytest.approx(wrong.sum() / 4.0)
    assert found["program"] == pytest.approx(wrong[learner.switched_at_ :].sum() / 4.0)


def test_a_learner_that_stays_in_its_first_stage_has_no_mistakes_in_the_program() -> None:
    found = streams.result(bl.FORKS.paper(budget=400, lengthscale=0.5), waves())
    assert found["all"] > 0.0
    assert found["program"] == 0.0


def test_zero_is_a_label_for_pros_n_kons_in_the_program_only() -> None:
    X, y = np.zeros((2, 1)), np.array([-1.0, -1.0])
    found = streams.result(bl.ProsNKONS.paper(loss="hinge", oversampling=1e-12), (X, y))
    assert (found["all"], found["program"]) == (100.0, 0.0)


def test_widths_are_those_of_the_fewest_mistakes(tmp_path: Path) -> None:
    data = waves()
    stream = streams.Stream("table1", "german", "german", 50, lambda rows, seed: rows, widths=(0.01, 0.5, 100.0))
    kept = runs.Kept(tmp_path, "digest")
    width = streams.width_of(stream, data, "NOGD", kept)
    mistakes = {w: streams.result(streams.makers(stream, 400)["NOGD"](w, 0), data)["all"] for w in stream.widths}
    assert mistakes[width] == min(mistakes.values())
    assert len(list(tmp_path.iterdir())) == 3


def test_kept_runs_are_computed_once_for_each_setting_and_version(tmp_path: Path) -> None:
    calls: list[int] = []

    def compute() -> dict[str, int]:
        calls.append(1)
        return {"value": len(calls)}

    kept = runs.Kept(tmp_path, "a")
    assert [kept("x", {"seed": s}, compute)["value"] for s in (0, 0, 1)] == [1, 1, 2]
    assert runs.Kept(tmp_path, "b")("x", {"seed": 0}, compute)["value"] == 3


def test_refreshes_by_losses_are_those_by_rounds_where_every_round_has_a_loss() -> None:
    X, y = waves()
    # Clipped to a half no margin reaches 1, so that the hinge loss is never zero.
    options = {"budget": 20, "refresh_every": 37, "lengthscale": 0.5, "clip": 0.5}
    p, q = (
        kind(**options, alpha=0.05, curvature=0.2).progressive(X, y, decision=True, classes=[-1.0, 1.0])
        for kind in (bl.FORKS, ProgramFORKS)
    )
    np.testing.assert_array_equal(p, q)


def test_the_programs_weights_are_its_steps_divided_out() -> None:
    X, y = waves()
    learner = ProgramFORKS.paper(budget=20, rank=4, refresh_every=10**6, lengthscale=0.5, clip=0.5)
    learner.partial_fit(X[:200], y[:200], classes=[-1.0, 1.0])
    Z, w = learner.feature_map_(torch.as_tensor(X)).numpy(), learner._w.copy()
    # Its ridge is 0.01; gradients times 0.2 are what the matrix grows by, and what the step takes.
    A = 0.2 * np.linalg.inv(learner._inverse)
    start = learner.switched_at_ or 0
    grown = A - 0.01 * np.eye(4)
    p = learner.progressive(X[200:], y[200:], decision=True)
    assert start < 200
    for t in range(200, 400):
        z = Z[t]
        ahead = z @ w
        w = w - (ahead - np.clip(ahead, -0.5, 0.5)) / (z @ np.linalg.solve(A, z)) * np.linalg.solve(A, z)
        assert p[t - 200] == pytest.approx(np.clip(ahead, -0.5, 0.5), abs=1e-9)
        g = -0.2 * y[t] * z  # below a margin of one, as clipped ones are
        A = A + np.outer(g, g)
        w = w - np.linalg.solve(A, g)
    # What the rounds before had added: the sum of their outer products, each of this weight.
    np.testing.assert_allclose(grown, 0.04 * Z[start:200].T @ Z[start:200], rtol=0.0, atol=1e-9)


def test_refreshes_by_losses_are_rarer_and_the_same_in_pieces() -> None:
    X, y = waves()
    options = {"budget": 20, "refresh_every": 37, "lengthscale": 0.5, "alpha": 0.05, "curvature": 0.2}
    whole, pieces, rounds = ProgramFORKS.paper(**options), ProgramFORKS.paper(**options), bl.FORKS.paper(**options)
    p = whole.progressive(X, y, decision=True, classes=[-1.0, 1.0])
    q = [pieces.progressive(X[a : a + 7], y[a : a + 7], decision=True, classes=[-1.0, 1.0]) for a in range(0, 400, 7)]
    rounds.partial_fit(X, y)
    assert 0 < whole.n_refreshes_ < rounds.n_refreshes_
    # Kernel values of other blocks may differ in their last digits.
    np.testing.assert_allclose(np.concatenate(q), p, rtol=0, atol=1e-10)


def test_the_referee_equals_least_squares_in_the_kernels_space() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, (12, 2)), rng.uniform(-1.0, 1.0, 12)
    referee = pkawv.Referee(2)
    for x, target in zip(X, y, strict=True):
        referee.add(x, target)
    ridge = bl.OnlineKRR.paper()
    ridge.partial_fit(X, y)
    assert referee.minimum == pytest.approx(ridge.regularised_minimum_, rel=1e-10)


def test_the_adversary_obeys_the_bound_of_kernel_awv_and_other_learners_have_more_regret() -> None:
    makers = pkawv.forecasters(12, 1.0, forward=True)
    exact = pkawv.attack(makers["Kernel-AWV"](), 12, 3, 0)
    assert 0.0 < exact["regret"][-1] <= exact["bound"]
    assert pkawv.attack(makers["PROS-N-KONS"](), 12, 3, 0)["regret"][-1] > exact["regret"][-1]


def test_losses_are_means_until_the_time_is_over() -> None:
    X, y = waves()
    learner = bl.PKAWV.paper(degree=2)
    found = pkawv.timed(bl.PKAWV.paper(degree=2), (X, y), limit=1e9, chunk=50)
    assert found["rows"] == [400]
    assert found["loss"][0] == pytest.approx(float(np.mean(learner.progressive(X, y) * y <= 0.0)))
    assert pkawv.timed(bl.PKAWV.paper(degree=2), (X, y), limit=0.0, chunk=50)["rows"] == [50]


def test_schedules_trade_regret_for_size() -> None:
    weights = kons.schedules(100, 5)
    assert [w.sum() for w in weights.values()] == [100.0, 5.0, 100.0]
    assert [(w > 0).sum() for w in weights.values()] == [100, 5, 5]


def test_two_losses_keep_within_the_bound_of_kons() -> None:
    learner = bl.KONS.paper(loss="squared")
    found = kons.two_losses(learner, 200)
    assert found["m"] == 200
    assert 0.0 < found["regret"][-1] <= learner.regret_bound(0.0)
    assert (
        kons.two_losses(bl.SketchedKONS.paper(loss="squared", min_probability=0.0), 200)["regret"][-1]
        > found["regret"][-1]
    )


def test_regret_keeps_within_both_bounds() -> None:
    found = kons.regret(waves(200), 1.0)
    assert found["regret"] <= found["proposition"] <= found["theorem"]
    # |f|^2 + 2 d_eff(1 / (sigma L^2)) log(2 sigma L^2 T) / sigma with sigma = 1/8 and L = 4.
    X = waves(200)[0]
    lam = np.linalg.eigvalsh(np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1)))
    dimension = np.sum(lam / (lam + 0.5))
    assert found["dimension"] == pytest.approx(dimension, rel=1e-9)
    assert found["theorem"] == pytest.approx(found["norm"] ** 2 + 16.0 * dimension * np.log(800.0), rel=1e-9)


def test_the_commoner_label_is_wrong_as_often_as_the_other_comes() -> None:
    row = streams._constant_row(np.array([1.0, -1.0, -1.0, -1.0]))
    assert row[2] == "25.000"
    assert len(row) == len(streams.HEADER)
