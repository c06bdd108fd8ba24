"""The problems with several outcomes are those of the literature, and the comparison on them counts what it says."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from botorch.test_functions import DTLZ2, ZDT1, ZDT2, BraninCurrin, VehicleSafety
from botorch.test_functions.base import MultiObjectiveTestProblem
from botorch.test_functions.synthetic import WeldedBeamSO
from scipy.optimize import minimize

from benchmarks import outcome_botorch, pareto
from benchmarks.outcome_peers import Loop, drive
from benchmarks.outcomes import CONSTRAINED, FRONTS, ConstrainedProblem, FrontProblem, OutcomeProblem, noisy
from tests.sweeps import slow_but

ZDT = {"zdt1": ZDT1(dim=6), "zdt2": ZDT2(dim=6)}
PAIRS = [
    # These peers take the longest.
    pytest.param(peer, problem, marks=[pytest.mark.slow] if peer in ("logcei", "qlognehvi", "qlognei") else [])
    for peer in pareto.PEERS
    for problem in ("zdt2", "gardner2-noisy")
    if peer != "bkbopt" and pareto.suits(peer, problem)
]


@pytest.mark.parametrize("name", ZDT)
def test_the_true_front_leaves_nothing_missing(name: str) -> None:
    problem, oracle = FRONTS[name], ZDT[name]
    assert isinstance(problem, FrontProblem)
    assert problem.volumes[1] == ("far", (11.0, 11.0), pytest.approx(oracle.max_hv, rel=1e-12))
    front = oracle.gen_pareto_front(2_001).numpy()
    measures = problem.measure(front, front[:1])
    assert list(measures) == ["named, near", "tried, near", "named, far", "tried, far"]
    # Steps of 1/2,000 leave half of that between themselves and the front, of an area of at least 0.54.
    assert 0 < measures["tried, far"] < measures["tried, near"] < 1e-3
    assert measures["named, far"] > 0.05
    on_front = np.zeros((3, 6))
    on_front[:, 0] = [0.0, 0.5, 1.0]
    np.testing.assert_array_equal(problem.value(on_front), oracle.gen_pareto_front(3))


@pytest.mark.parametrize(
    ("name", "oracle"),
    [("dtlz2", DTLZ2(dim=6, num_objectives=2)), ("branin-currin", BraninCurrin()), ("vehicle-safety", VehicleSafety())],
)
def test_reference_points_and_volumes_of_the_other_fronts_are_botorchs(
    name: str, oracle: MultiObjectiveTestProblem
) -> None:
    problem = FRONTS[name]
    assert isinstance(problem, FrontProblem)
    ((side, reference, whole),) = problem.volumes
    assert (side, whole) == ("near", pytest.approx(oracle.max_hv, rel=1e-12))
    assert reference == pytest.approx(oracle.ref_point.tolist(), rel=1e-7)  # single precision there
    assert np.array(problem.bounds).T.tolist() == oracle.bounds.tolist()
    low, high = np.array(problem.bounds).T
    x = np.random.default_rng(0).uniform(low, high, size=(20, problem.dim))
    np.testing.assert_array_equal(problem.value(x), oracle.evaluate_true(torch.as_tensor(x)))


def test_nothing_near_the_front_is_all_missing_and_dominated_points_do_not_count() -> None:
    problem = FRONTS["zdt1"]
    one = problem.measure(np.array([[0.1, 0.6]]), np.array([[0.5, 3.0]]))
    assert one["named, near"] == 1.0
    assert one["tried, near"] == pytest.approx(1 - 1.0 * 0.5 / (1.21 - 1 / 3))
    assert one["named, far"] == pytest.approx(1 - 10.5 * 8 / (121 - 1 / 3))
    assert problem.measure(np.array([[0.1, 0.6], [0.2, 0.7]]), np.empty((0, 2))) == {
        **one,
        "named, near": 1.0,
        "named, far": 1.0,
    }


def critical_load(x: np.ndarray) -> np.ndarray:
    """The beam's as Coello Coello and Mezura-Montes (2002) write it."""
    _, _, t, b = x.T
    inertia = np.sqrt(t**2 * b**6 / 36)
    return 4.013 * 30e6 * inertia / 14**2 * (1 - t / (2 * 14) * math.sqrt(30e6 / (4 * 12e6)))


def test_the_welded_beam_is_botorchs_but_for_the_buckling_load() -> None:
    problem = CONSTRAINED["welded-beam"]
    low, high = np.array(problem.bounds).T
    x = np.random.default_rng(0).uniform(low, high, size=(50, 4))
    ours, beam = problem.value(x), WeldedBeamSO()
    np.testing.assert_array_equal(ours[:, 0], beam.evaluate_true(torch.as_tensor(x)))
    units = np.array([13_600, 30_000, 1, 5, 0.25, 6_000])
    theirs = -beam.evaluate_slack_true(torch.as_tensor(x)).numpy() / units
    np.testing.assert_allclose(ours[:, 1:6], theirs[:, :5], rtol=1e-14)
    np.testing.assert_allclose(ours[:, 6], 1 - critical_load(x) / 6_000, rtol=1e-12, atol=1e-12)
    # BoTorch multiplies by six where the others divide. When this fails, its own constraint can be used.
    np.testing.assert_allclose(1 - theirs[:, 5], 36 * (1 - ours[:, 6]), rtol=1e-12)


@pytest.mark.parametrize(
    "name", slow_but({"gardner2"}, ["gardner2", "welded-beam", "gramacy", "speed-reducer", "hartmann-ball"])
)
def test_the_minimum_is_feasible_and_no_local_search_leads_below_it(name: str) -> None:
    problem = CONSTRAINED[name]
    assert isinstance(problem, ConstrainedProblem)
    best = problem.value(problem.minimizer)[0]
    assert best[0] == pytest.approx(problem.minimum, abs=1e-8)
    if name == "hartmann-ball":  # the minimiser is in the ball
        assert best[1] == pytest.approx(math.hypot(*problem.minimizer) - 1.0, abs=1e-12)
        assert best[1] < 0
    else:
        assert best[1:].max() == pytest.approx(0.0, abs=1e-8)  # a constraint is active there
    low, high = np.array(problem.bounds).T
    # In the unit cube, with outcomes divided by their spreads: SLSQP does not scale.
    scales = noisy(problem).noise_sd

    def outcomes(z: np.ndarray) -> np.ndarray:
        return (problem.value(low + z * (high - low)) / scales)[0]

    rng = np.random.default_rng(0)
    for sign, extreme in ((1, problem.minimum), (-1, problem.maximum)):
        found = [
            minimize(
                lambda z, sign=sign: sign * outcomes(z)[0],
                rng.uniform(size=problem.dim),
                method="SLSQP",
                bounds=[(0, 1)] * problem.dim,
                constraints={"type": "ineq", "fun": lambda z: -np.clip(outcomes(z)[1:], -1e3, 1e3)},
                options={"maxiter": 300},
            )
            for _ in range(20)
        ]
        ends = [sign * r.fun * scales[0] for r in found if r.success and outcomes(r.x)[1:].max() <= 1e-4]
        assert (min(ends) if sign > 0 else max(ends)) == pytest.approx(extreme, rel=1e-4)


def test_infeasible_points_count_as_the_worst_feasible_one() -> None:
    problem = CONSTRAINED["gardner2"]
    middle = (problem.minimum + problem.maximum) / 2  # type: ignore[attr-defined]
    tried = np.array([[-9.0, 0.1], [middle, 0.0]])
    expected = {"named": 1.0, "best tried": pytest.approx(0.5), "named infeasible": 1.0}
    assert problem.measure(tried, tried[:1]) == expected
    assert problem.measure(tried, tried[1:]) == {"named": pytest.approx(0.5), "best tried": pytest.approx(0.5)} | {
        "named infeasible": 0.0
    }
    assert problem.measure(tried, np.empty((0, 2)))["named infeasible"] == 1.0


def test_noise_is_a_share_of_the_spread_and_follows_the_seed_and_the_trial() -> None:
    quiet, loud = FRONTS["zdt1"], FRONTS["zdt1-noisy"]
    x = np.full(6, 0.5)
    np.testing.assert_array_equal(quiet.observe(x, 0, 0), quiet.value(x)[0])
    assert loud.noise_sd[0] == pytest.approx(0.05, rel=0.02)  # the first objective is uniform
    seen = np.array([loud.observe(x, 0, trial) for trial in range(400)]) - loud.value(x)
    np.testing.assert_allclose(seen.std(axis=0), loud.noise_sd, rtol=0.15)
    np.testing.assert_array_equal(loud.observe(x, 3, 7), loud.observe(x, 3, 7))
    gardner = CONSTRAINED["gardner2-noisy"]
    assert 0.01 < gardner.noise_sd[1] < 0.03  # less than the depth of the feasible region, 0.05


def test_a_run_is_measured_at_its_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.outcome_peers.CHECKPOINTS", (2, 9))
    problem, told = CONSTRAINED["gardner2-noisy"], []
    x = np.array(problem.minimizer)  # type: ignore[attr-defined]
    record = drive(
        lambda given, seed: Loop(lambda: x, lambda at, seen: told.append(seen), lambda: x[None]), problem, 3, 5
    )
    assert record["checkpoints"] == [2, 3]
    assert record["seconds"] == sorted(record["seconds"])
    np.testing.assert_array_equal(told, [problem.observe(x, 5, trial) for trial in range(3)])


@pytest.mark.parametrize(("name", "problem"), PAIRS)
def test_a_seed_decides_the_run_and_only_tried_points_are_named(
    name: str, problem: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("botorch.acquisition.multi_objective.logei._load_attempted", True)  # it compiles a kernel
    monkeypatch.setattr(outcome_botorch, "RESTARTS", 1)
    monkeypatch.setattr(outcome_botorch, "RAW_SAMPLES", 16)
    tried: list[np.ndarray] = []
    named: list[np.ndarray] = []

    def make(given: OutcomeProblem, seed: int) -> Loop:
        loop = pareto.PEERS[name](given, seed)

        def tell(x: np.ndarray, seen: np.ndarray) -> None:
            tried.append(x)
            loop.tell(x, seen)

        def at_the_end() -> np.ndarray:
            named.extend(loop.named())
            return loop.named()

        return Loop(loop.ask, tell, at_the_end)

    expected = torch.get_rng_state()
    for seed in (1, 1, 2):
        drive(make, pareto.PROBLEMS[problem], 11, seed)
    np.testing.assert_array_equal(tried[:11], tried[11:22])
    assert not np.array_equal(tried[:11], tried[22:])
    assert all(any(np.array_equal(point, x) for x in tried) for point in named)
    assert torch.equal(torch.get_rng_state(), expected)
    assert capfd.readouterr() == ("", "")


def test_nothing_is_computed_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--peers", "random", "nsga2", "logcei", "--problems", "zdt1", "gardner2", "--seeds", "2"]
    options += ["--trials", "5", "--jobs", "1", "--out", str(tmp_path)]
    pareto.main(options)
    assert "10 runs, 0 of them done before" in capsys.readouterr().out  # logcei is not for zdt1
    written = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(written) == 10
    pareto.main(options)
    out = capsys.readouterr().out
    assert "10 runs, 10 of them done before" in out
    assert "gardner2, d = 2, 1 constraint(s)" in out
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == written
