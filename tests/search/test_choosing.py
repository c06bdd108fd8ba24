"""Which pending points are proposed again, and what the suggestions of a large batch share."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from torch import Tensor

import bkbopt as bo
from bkbopt.confidence import Constant
from bkbopt.search import choosing
from bkbopt.search.candidates.base import Choice, Scope
from bkbopt.search.candidates.box import BoxCandidates
from bkbopt.search.choosing import (
    BATCH_BUDGET,
    CHECKED,
    EXPLORING,
    FIRST_NARROW,
    LARGE_BATCH,
    NARROW,
    WIDE,
    is_exploring_costly,
    width_of,
)
from bkbopt.search.criteria.criterion import Criterion, UpperBound
from bkbopt.search.criteria.expected import SURE, Expected
from bkbopt.search.maximizers.pool import PoolMaximizer
from bkbopt.search.options import Options
from bkbopt.search.perturbations import WIDE_BETA
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.search.trials.evaluations import Point, Request

ARMS = np.linspace(0.0, 1.0, 30)[:, None]
BEST = 12


def told(noise: float, repeats: int, **options: object) -> bo.Optimizer:
    """One row is far better than the others; it has been evaluated `repeats` times, the others once."""
    rng = np.random.default_rng(0)
    opt = bo.Optimizer(ARMS, direction="maximize", seed=0, **{"n_startup_trials": 5, **options})
    for row in [*range(30), *[BEST] * (repeats - 1), 0]:
        opt.tell({"index": row}, 10.0 * (row == BEST) + noise * float(rng.standard_normal()))
    return opt


@pytest.mark.parametrize("repeats", [1, 6])
def test_a_batch_repeats_a_row_until_it_would_tell_as_much_as_was_known(repeats: int) -> None:
    opt = told(0.5, repeats)
    pool, objective = opt.pool, opt._core.update().models.objectives[0]
    assert pool is not None
    leverages = objective.pending_leverages(pool.X[:]).tolist()
    rows = [trial.index for trial in opt.ask(25)]
    copies = Counter(rows)
    for row, n in copies.items():
        assert (n - 1) * leverages[row or 0] < BATCH_BUDGET
    assert rows[0] == BEST
    assert copies[BEST] == math.ceil(BATCH_BUDGET / leverages[BEST])
    assert len(copies) > 2


def screened(noise: float, n: int, **options: object) -> tuple[bo.Optimizer, set[int | None]]:
    """A pool of 500 rows, of which `n` have been evaluated once, and these rows."""
    rng = np.random.default_rng(0)
    rows = rng.random((500, 3))
    opt = bo.Optimizer(rows, seed=0, **options)
    for row in range(n):
        opt.tell({"index": row}, float(((rows[row] - 0.4) ** 2).sum() + noise * rng.standard_normal()))
    return opt, set(range(n))


def test_a_batch_repeats_one_row_at_most_while_no_repeat_has_shown_whether_there_is_noise() -> None:
    opt, known = screened(0.1, 60)
    chosen = [trial.index for trial in opt.ask(40)]
    assert len(set(chosen) - known) >= 39
    assert opt._core.update().models.objectives[0].noisiness.is_noisy()


@pytest.mark.parametrize("noise", [1e-3, 0.1])
def test_a_batch_repeats_rows_where_the_noise_matters_only(noise: float) -> None:
    opt, known = screened(noise, 100)
    for row in (0, 1):  # repeats show that there is noise
        opt.tell({"index": row}, opt.trials[row].values[0] + noise)
    chosen = [trial.index for trial in opt.ask(40)]
    assert opt._core.update().models.objectives[0].noisiness.is_noisy()
    assert (len(set(chosen) - known) >= 39) == (noise == 1e-3)


def test_with_the_users_own_kernel_and_noise_a_batch_follows_the_bounds_alone() -> None:
    opt = told(0.1, 1, fit=False, surrogate=bo.BKB(bo.kernels.rbf(1, 0.02), noise=0.01))
    assert {trial.index for trial in opt.ask(25)} == {BEST}


def test_when_every_row_has_spent_its_budget_rows_are_repeated_all_the_same() -> None:
    rows = [trial.index for trial in told(0.5, 1).ask(70)]
    assert len(rows) == 70
    assert len(set(rows)) == 30


def requests(running: int) -> list[Request]:
    """Requests for the trials 0 to 1,999, each beside as many running ones."""
    point: Point = {}
    return [Request(number, None, {}, (point,) * running, tuple(range(running)), (0, 0)) for number in range(2_000)]


@pytest.mark.parametrize("running", [LARGE_BATCH, 99])
def test_one_suggestion_in_the_number_of_workers_explores(running: int) -> None:
    options = Options(ModelOptions(bo.BKB()))
    exploring = sum(width_of(options, request) == 1.0 for request in requests(running))
    expected = 2_000 / (running + 1)
    assert abs(exploring - expected) < 4.0 * math.sqrt(expected)  # four standard deviations of a binomial number


@pytest.mark.parametrize("running", [0, 99])
def test_another_attempt_at_a_trial_explores(running: int) -> None:
    again = [replace(request, entropy=(0, 1)) for request in requests(running)]
    assert all(width_of(Options(ModelOptions(bo.BKB())), request) == 1.0 for request in again)


def test_wide_steps_of_a_large_batch_search_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[tuple[float, bool]]()
    best = BoxCandidates.best

    def watched(self: BoxCandidates, criterion: Criterion, scope: Scope) -> Choice | None:
        assert isinstance(criterion, UpperBound)
        assert scope.shared is not None
        seen.append((criterion.acquisition.beta, scope.shared.finished is not None))
        return best(self, criterion, scope)

    opt = bo.Optimizer([(0.0, 1.0)] * 2, seed=0, n_startup_trials=5)
    for trial in opt.ask(30):
        opt.tell(trial, trial.params["x0"])
    opt.ask(LARGE_BATCH)
    monkeypatch.setattr(BoxCandidates, "best", watched)
    opt.ask(60)
    assert any(beta >= WIDE_BETA for beta, _ in seen)
    assert all(greedy == (beta == 0.0) for beta, greedy in seen)


def test_without_noise_no_greedy_suggestion_is_a_known_point() -> None:
    """The search for the maximiser returns known points, too."""
    opt = bo.Optimizer([(0.0, 1.0)], seed=0, n_startup_trials=10, deterministic=True)
    known = set[float]()
    for count in (25, 40, 40):
        trials = opt.ask(count)
        asked = [trial.params["x0"] for trial in trials]
        assert not known & set(asked[LARGE_BATCH:])
        known |= set(asked)
        for trial, x in zip(trials, asked, strict=True):
            opt.tell(trial, (x - 0.37) ** 2)


@pytest.mark.parametrize("running", [0, LARGE_BATCH - 1])
def test_every_second_suggestion_of_a_long_search_is_narrow(running: int) -> None:
    widths = np.array([width_of(Options(ModelOptions(bo.BKB())), request) for request in requests(running)])
    assert (widths[:FIRST_NARROW] == 1.0).all()
    assert (widths[FIRST_NARROW::2] == NARROW).all()
    assert (widths[FIRST_NARROW + 1 :: 2] == 1.0).all()


def test_late_suggestions_that_would_explore_at_too_large_a_cost_are_narrow() -> None:
    options = Options(ModelOptions(bo.BKB()))
    widths = np.array([width_of(options, request, is_costly=lambda: True) for request in requests(0)])
    assert (widths[:FIRST_NARROW] == 1.0).all()
    assert (widths[FIRST_NARROW:] == NARROW).all()


@pytest.mark.parametrize(
    ("odd_row", "in_pool", "costly"), [(0, True, True), (1, True, False), (0, False, False)]
)  # row 0 is as far below row 1 as the others, and row 1 is the best one
def test_exploring_a_pool_is_costly_where_odd_trials_have_been_worse_than_even_ones(
    odd_row: int, in_pool: bool, costly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "FIRST_NARROW", 20)
    opt, rng = bo.Optimizer(ARMS, direction="maximize", seed=0, n_startup_trials=5), np.random.default_rng(0)
    for number in range(120):
        row = number % 30 if number < 30 else (odd_row if number % 2 else 1)
        opt.tell({"index": row}, 10.0 * (row == 1) + 0.1 * rng.standard_normal())
    models = opt._core.update().models
    numbers = range(121, 161, 2)
    found = [is_exploring_costly(number, models, len(ARMS) if in_pool else None) for number in numbers]
    assert found == [costly and number // 2 % EXPLORING != 0 for number in numbers]


@pytest.mark.parametrize("running", [0, 99])
def test_with_several_objectives_every_second_suggestion_is_narrow_and_every_fourth_wide(running: int) -> None:
    widths = np.array([width_of(Options(ModelOptions(bo.BKB())), request, 2) for request in requests(running)])
    assert (widths[::2] == NARROW).all()
    assert (widths[1::4] == 1.0).all()
    assert (widths[3::4] == WIDE).all()


@pytest.mark.parametrize("running", [0, LARGE_BATCH - 1])
def test_under_noisy_constraints_every_fourth_suggestion_is_greedy(running: int) -> None:
    options = Options(ModelOptions(bo.BKB()))
    widths = np.array([width_of(options, request, noisily_limited=True) for request in requests(running)])
    others = np.array([width_of(options, request) for request in requests(running)])
    greedy = np.arange(len(widths)) % CHECKED == 0
    assert (widths[greedy] == 0.0).all()
    assert (widths[~greedy] == others[~greedy]).all()


def test_a_suggestion_for_the_recommendation_has_the_best_mean_of_the_surely_feasible_points() -> None:
    """The border of the feasible region is at x = 0.5, known with noise; the objective increases with x."""
    opt = bo.Optimizer([(0.0, 1.0)], direction="maximize", constraints=["c"], seed=0, perturbations=False)
    rng = np.random.default_rng(0)
    grid = np.linspace(0.0, 1.0, 2_001)
    checked = 0
    for number in range(33):
        points = [{"x0": float(x)} for x in grid]
        due = number > 10 and number % CHECKED == 0
        means, sure = (opt.predict(points)[0], opt.feasibility(points) >= SURE) if due else (grid, grid < 0.0)
        trial = opt.ask()
        x = trial.params["x0"]
        if sure.any():
            assert x == pytest.approx(grid[sure][means[sure].argmax()], abs=2e-3)
            checked += 1
        noise = 0.05 * rng.standard_normal(2)
        opt.tell(trial, x + noise[0], constraints={"c": x - 0.5 + noise[1]})
    assert checked >= 5


def test_a_row_that_is_surely_infeasible_is_not_measured_again() -> None:
    """The best feasible row is soon known, and no other feasible one can gain anything."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    opt = bo.Optimizer(X, direction="maximize", constraints=["c"], seed=0, perturbations=False)
    known = set[int]()
    for _ in range(50):
        trial = opt.ask()
        assert trial.index is not None
        if trial.index in known and opt.n_complete > 12:
            assert opt.feasibility({"index": trial.index}) > 1e-3
        known.add(trial.index)
        noise = rng.standard_normal(2)
        opt.tell(
            trial, X[trial.index, 0] + 0.05 * noise[0], constraints={"c": X[trial.index].sum() - 1 + 0.03 * noise[1]}
        )
    assert len(known) < 40  # the others are repeats


def test_a_narrow_suggestion_maximises_the_bound_with_a_smaller_beta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "FIRST_NARROW", 20)
    opt = bo.Optimizer(np.linspace(0.0, 1.0, 50)[:, None], seed=0, n_startup_trials=5, perturbations=False)
    rng = np.random.default_rng(0)
    for row in rng.permutation(30)[:20]:
        opt.tell({"index": row}, float(np.sin(9.0 * row / 50)) + 0.1 * rng.standard_normal())
    mean, std = opt.predict([{"index": row} for row in range(50)])
    first = opt.ask()
    whole = float(opt.diagnostics[-1].beta or 0.0) / NARROW
    assert first.index == int(np.argmin(mean - NARROW * whole * std))
    assert first.index != int(np.argmin(mean - whole * std))
    assert opt.diagnostics[-1].confidence_gap is None  # the maximised bound is not that of the schedule


def test_a_narrow_suggestion_of_several_objectives_has_a_smaller_beta_for_each() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=["minimize", "maximize"], seed=0, n_startup_trials=4)
    for trial in opt.ask(8):
        opt.tell(trial, [trial.params["x"], np.sin(5.0 * trial.params["x"])])
    core = opt._core.update()
    whole, narrow = (core.models.posteriors(core.history.X[:0], None, width=width).betas for width in (1.0, NARROW))
    assert narrow == tuple(NARROW * beta for beta in whole)


@pytest.mark.parametrize(
    "options",
    [Options(ModelOptions(bo.BKB()), schedule=Constant(2.0)), Options(ModelOptions(bo.BKB(), fit=False))],
    ids=["a schedule of the user's", "a kernel of the user's"],
)
def test_what_the_user_chose_is_followed_in_long_searches_and_large_batches_too(options: Options) -> None:
    assert not options.varies_width
    assert all(width_of(options, request) == 1.0 for running in (0, 99) for request in requests(running))


@pytest.mark.parametrize(("beta", "greedy"), [(None, True), (2.0, False)])
def test_large_batches_leave_the_bound_under_the_default_schedule_only(beta: float | None, greedy: bool) -> None:
    opt = bo.Optimizer([(0.0, 1.0)] * 2, seed=0, n_startup_trials=5, beta=beta, perturbations=False)
    for trial in opt.ask(5):
        opt.tell(trial, trial.params["x0"])
    opt.ask(LARGE_BATCH + 8)
    betas = [record.beta for record in opt.diagnostics[-8:]]
    if greedy:
        assert betas.count(0.0) >= 4  # about one in eight explores
    else:
        assert betas == [2.0] * 8


def over_rows(n: int, constraints: list[str]) -> bo.Optimizer:
    """An optimizer over 200 rows of the unit square, of which the first n have values without noise."""
    X = np.random.default_rng(0).random((200, 2))
    options = {"n_startup_trials": 5, "perturbations": False, "deterministic": True}
    opt = bo.Optimizer(X, direction="maximize", constraints=constraints, seed=0, **options)
    for row in range(n):
        limits = {name: float(0.6 - X[row, 0]) for name in constraints}
        opt.tell({"index": row}, float(-((X[row] - 0.5) ** 2).sum()), constraints=limits)
    return opt


@pytest.mark.parametrize("constraints", [[], ["c"]], ids=["no constraint", "a constraint"])
def test_a_greedy_suggestion_is_the_row_with_the_best_mean_of_those_expected_to_be_feasible(
    constraints: list[str],
) -> None:
    """Without noise no row is asked for twice."""
    n, rows = 30, [{"index": row} for row in range(200)]
    opt = over_rows(n, constraints)
    means = opt.predict(rows)[0]
    for limits, _ in (opt.predict_constraints(rows) if constraints else {}).values():
        means[limits > 0.0] = -np.inf
    taken = [*range(n), *(trial.index for trial in opt.ask(LARGE_BATCH))]
    core, greedy = opt._core.update(), 0
    for trial in opt.ask(8):
        request = Request(trial.id, None, {}, ({},) * (len(taken) - n), tuple(range(len(taken) - n)), (core.seed, 0))
        means[taken] = -np.inf
        if width_of(core.options, request) == 0.0:
            assert trial.index == int(np.argmax(means))
            greedy += 1
        taken.append(trial.index)
    assert greedy > 4


def test_a_batch_under_constraints_scores_the_rows_of_a_pool_once_for_all_greedy_suggestions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opt, scored, scores = over_rows(30, ["c"]), list[object](), PoolMaximizer.scores

    def counted(self: PoolMaximizer, score: Any, size: int) -> Tensor:
        if isinstance(score, Expected):
            scored.append(score)
        return scores(self, score, size)

    monkeypatch.setattr(PoolMaximizer, "scores", counted)
    trials = opt.ask(20)
    assert len(scored) == 1
    for trial in trials:
        opt.tell(trial, 0.0, constraints={"c": 1.0})
    opt.ask(10)
    assert len(scored) == 2


def test_greedy_suggestions_of_a_box_leave_places_under_constraints_too() -> None:
    """Large batches near the border of a feasible region are neither copies nor far beyond it."""
    opt = bo.Optimizer([(0.0, 1.0)] * 2, constraints=["c"], seed=0, n_startup_trials=5, perturbations=False)
    rng = np.random.default_rng(0)
    for trial in opt.ask(40):
        x, y = trial.params.values()
        value = (x - 0.2) ** 2 + (y - 0.5) ** 2 + 0.01 * float(rng.standard_normal())
        opt.tell(trial, value, constraints={"c": 0.6 - x + 0.01 * float(rng.standard_normal())})
    points = np.array([list(trial.params.values()) for trial in opt.ask(30)])[LARGE_BATCH:]
    near = (np.abs(points - [0.6, 0.5]) < [0.03, 0.1]).all(axis=1)
    assert near.mean() > 0.6  # some explore or spread
    assert len(np.unique(points, axis=0)) == len(points)


def test_without_a_feasible_point_no_suggestion_is_greedy() -> None:
    opt = bo.Optimizer([(0.0, 1.0)] * 2, constraints=["c"], seed=0, n_startup_trials=5)
    for trial in opt.ask(12):
        opt.tell(trial, trial.params["x0"], constraints={"c": 1.0 + trial.params["x1"]})
    core = opt._core.update()
    pending = core.history.X[:LARGE_BATCH]
    assert not core.models.posteriors(pending, None, width=0.0).is_greedy


def flags_told(n: int, **more: bo.Float) -> tuple[bo.Optimizer, Callable[[bo.Trial], float]]:
    """An optimizer of 20 flags, most of which should be set, and a number, after `n` noisy values at random points."""
    rng = np.random.default_rng(0)
    weights, names = rng.uniform(-0.3, 1.0, 20), [f"flag{j}" for j in range(20)]
    opt = bo.Optimizer({**{name: [False, True] for name in names}, **more}, seed=0, direction="maximize")

    def value(params: Mapping[str, Any]) -> float:
        flags = float(weights @ [params[name] for name in names])
        return flags - (params.get("x", 0.3) - 0.3) ** 2 + 0.2 * rng.standard_normal()

    for _ in range(n):
        params = dict(zip(names, (bool(flag) for flag in rng.random(20) < 0.7), strict=True))
        opt.tell(params, value(params))
    return opt, lambda trial: value(trial.params)


@pytest.mark.parametrize("q", [1, 10])
@pytest.mark.parametrize("more", [{}, {"x": bo.Float(0.0, 1.0)}])
def test_among_very_many_choices_suggestions_are_new_ones(q: int, more: dict[str, bo.Float]) -> None:
    opt, value = flags_told(0, **more)
    for _ in range(60 // q):
        trials = opt.ask(q)
        opt.tell(trials, [value(trial) for trial in trials])
    n_new = len({tuple(trial.params.values())[:20] for trial in opt.trials})
    # Perturbations of the number leave the choices as they are.
    assert 57 <= n_new < 60 if more else n_new == 60


def test_among_few_choices_known_ones_are_suggested() -> None:
    opt = bo.Optimizer({"x": bo.Float(0.0, 1.0), "n": bo.Int(1, 9), "kind": ["a", "b"]}, seed=0)
    for _ in range(30):
        trial = opt.ask()
        opt.tell(trial, (trial.params["x"] - 0.3) ** 2 + (trial.params["n"] - 4) ** 2 + (trial.params["kind"] == "b"))
    assert Counter((trial.params["n"], trial.params["kind"]) for trial in opt.trials)[4, "a"] > 5


def test_there_late_suggestions_that_exploit_may_repeat_a_point() -> None:
    opt, value = flags_told(FIRST_NARROW)
    known = {tuple(trial.params.values()) for trial in opt.trials}
    repeated = []
    for number in range(FIRST_NARROW, FIRST_NARROW + 24):
        trial = opt.ask()
        if tuple(trial.params.values()) in known:
            repeated.append(number)
        known.add(tuple(trial.params.values()))
        opt.tell(trial, value(trial))
    assert repeated
    assert all(number % 2 == 0 for number in repeated)


def test_with_several_objectives_a_row_that_is_surely_infeasible_is_not_evaluated_again() -> None:
    arms, rng = np.random.default_rng(0).random((40, 2)), np.random.default_rng(1)
    violation = 0.3 - arms[:, 1]
    opt = bo.Optimizer(bo.Pool(arms), directions=["minimize"] * 2, constraints=["c"], seed=1)
    counts = Counter[int]()
    for _ in range(60):
        trial, (e, f, g) = opt.ask(), 0.1 * rng.standard_normal(3)
        assert trial.index is not None
        x, y = arms[trial.index]
        opt.tell(trial, [x**2 + e, 1.0 - x + y + f], constraints={"c": violation[trial.index] + g})
        counts[trial.index] += 1
    # Those within half a standard deviation of the noise may need more values until they are known to be.
    assert max(counts[row] for row in range(40) if violation[row] > 0.05) <= 3
    assert max(counts.values()) > 3


def test_without_noise_a_point_with_a_value_of_any_objective_is_not_evaluated_again() -> None:
    opt = bo.Optimizer(
        {"n": bo.Int(0, 10**5)}, directions=["minimize"] * 2, seed=0, deterministic=True, n_startup_trials=4
    )
    for i in range(36):
        trial = opt.ask()
        x = 1e-5 * trial.params["n"]
        opt.tell(trial, [x if i % 6 == 0 else None, -x])  # both are best at the ends of the range
    assert len({trial.params["n"] for trial in opt.trials}) == 36
