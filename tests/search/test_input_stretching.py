"""Stretched ends: found by evidence where the effect is logarithmic, as a function of the log alone."""

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bkbopt as bo
from bkbopt.kernels import matern52
from bkbopt.search import input_stretching
from bkbopt.search.designer import Designer
from bkbopt.search.input_stretching import FIRST, stretches_of
from bkbopt.search.options import Options
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.search.trials.evaluations import Evaluation, Point, Problem
from bkbopt.search.trials.states import COMPLETE
from bkbopt.spaces.encoding import Encoding
from bkbopt.spaces.pool import EncodedPool, Pool
from bkbopt.spaces.space import Float, Int, Space
from bkbopt.spaces.stretched import Stretch
from tests.sweeps import slow_but

SPACE = Space.parse(
    {"x": Float(0.0, 1.0), "rate": Float(1e-5, 1.0), "momentum": Float(0.0, 0.9999), "n": Int(1, 10**5)}
)
X, RATE, MOMENTUM, N = SPACE.keyed
Loss = Callable[[Point], float]
LOSSES: dict[str, Loss] = {
    RATE: lambda p: (math.log10(p[RATE]) + 3.0) ** 2,
    MOMENTUM: lambda p: (math.log10(1.0 - p[MOMENTUM]) + 2.5) ** 2,
    N: lambda p: (math.log10(p[N]) - 2.0) ** 2,
}


def near_an_end(key: str, n: int, seed: int = 0) -> list[Point]:
    """Points as of a search that has come near the best value of one parameter; the others are even."""
    rng = np.random.default_rng(seed)
    points = list(SPACE.internal(SPACE.decode(SPACE.sample(n, rng))))
    close = 10.0 ** -rng.uniform(0.0, 4.0, n)
    at = {RATE: close, MOMENTUM: 1.0 - close, N: np.ceil(1e5 * close)}[key]
    return [{**point, key: float(value)} for point, value in zip(points, at, strict=True)]


def evaluations(points: list[Point], *losses: Loss, noise: float = 0.1) -> list[Evaluation]:
    rng = np.random.default_rng(1)
    return [
        Evaluation(
            i,
            COMPLETE,
            point,
            SPACE,
            (float(i), i),
            tuple(loss(point) + (point[X] - 0.3) ** 2 + noise * rng.standard_normal() for loss in losses),
        )
        for i, point in enumerate(points)
    ]


def found(trials: list[Evaluation], n_objectives: int = 1, **options: Any) -> dict[str, Stretch]:
    encoding = Encoding(tuple(SPACE.keyed.items()))
    return stretches_of(trials, encoding, ModelOptions(bo.BKB(), **options), (-1.0,) * n_objectives)


@pytest.mark.parametrize("key", LOSSES)
def test_an_end_is_stretched_where_the_effect_is_logarithmic(key: str) -> None:
    by = found(evaluations(near_an_end(key, 60), LOSSES[key]))
    assert {name: stretch.is_low for name, stretch in by.items()} == {key: key != MOMENTUM}


@pytest.mark.parametrize("key", LOSSES)
@pytest.mark.parametrize("seed", slow_but({0}, range(4)))
def test_no_end_is_stretched_where_the_effect_is_smooth(key: str, seed: int) -> None:
    low, high = SPACE.keyed[key].low, SPACE.keyed[key].high  # type: ignore[union-attr]

    def smooth(point: Point) -> float:  # best at the end near which the points are
        u = (point[key] - low) / (high - low)
        return 3.0 * (1.0 - u if key == MOMENTUM else u)

    assert found(evaluations(near_an_end(key, 60, seed), smooth)) == {}


@pytest.mark.parametrize("seed", slow_but([0, 4, 14], range(30)))
def test_no_end_is_stretched_for_draws_from_a_stationary_kernel(seed: int) -> None:
    # Of these 30 draws, 4, 14 and 26 are promising under the stationary kernel.
    points, rng = near_an_end(RATE, 40, seed), np.random.default_rng(100 + seed)
    X = Encoding(tuple(SPACE.keyed.items())).encode(points)
    kernel = matern52(4, lengthscale=[1.0, 0.3, 1.0, 1.0])
    draw = np.linalg.cholesky(kernel(X, X).numpy() + 1e-8 * np.eye(40)) @ rng.standard_normal(40)
    values = iter(draw + 2.0 * X[:, 1].numpy())  # the best points are near the end
    assert found(evaluations(points, lambda _: float(next(values)))) == {}


def test_several_ends_are_stretched() -> None:
    rng = np.random.default_rng(5)
    points = [{**point, MOMENTUM: 1.0 - 10.0 ** -rng.uniform(0.0, 4.0)} for point in near_an_end(RATE, 90)]
    both = evaluations(points, lambda p: LOSSES[RATE](p) + LOSSES[MOMENTUM](p))
    assert found(both).keys() == {RATE, MOMENTUM}


def test_an_end_far_from_the_best_points_is_not_stretched() -> None:
    assert found(evaluations(near_an_end(RATE, 60), lambda p: (math.log10(p[RATE]) + 0.2) ** 2)) == {}


def test_the_evidence_of_several_objectives_is_added() -> None:
    points, plain = near_an_end(RATE, 40), lambda p: 1e6 * p[X]
    alone = evaluations(points, LOSSES[RATE])
    assert found(alone).keys() == {RATE}
    assert found(evaluations(points, plain, LOSSES[RATE]), 2).keys() == {RATE}


def test_losses_over_decades_hide_no_end() -> None:
    decades = evaluations(near_an_end(RATE, 60), lambda p: 10.0 ** (2.0 * LOSSES[RATE](p)))
    assert found(decades).keys() == {RATE}


def test_values_that_are_not_finite_do_not_count() -> None:
    trials = evaluations(near_an_end(RATE, 60), LOSSES[RATE])
    trials[3] = Evaluation(3, COMPLETE, trials[3].point, SPACE, (3.0, 3), (-math.inf,))
    assert found(trials).keys() == {RATE}
    assert found(trials[: FIRST - 1]) == {}


def test_known_noise_is_used() -> None:
    trials = evaluations(near_an_end(RATE, 60), LOSSES[RATE])
    known = [Evaluation(e.number, COMPLETE, e.point, SPACE, e.order, e.values, (0.1,)) for e in trials]
    assert found(known).keys() == {RATE}
    assert found(known[:30] + trials[30:]).keys() == {RATE}


def test_noise_that_contradicts_the_statement_that_there_is_none_is_fitted() -> None:
    points = near_an_end(RATE, 40, seed=3)[:30]
    trials = evaluations([*points, *points[:10]], LOSSES[RATE], noise=0.3)  # repeats show the noise
    assert found(trials, deterministic=True) == found(trials) != {}


# -- in a designer -----------------------------------------------------------------------------------------------------


def designer(spec: Any = SPACE, **options: Any) -> Designer:
    space = spec if isinstance(spec, Space) else None
    problem = Problem(space=space, pool=None if space is not None else spec)
    return Designer(problem, Options(ModelOptions(options.pop("surrogate", bo.BKB()), **options)), seed=0)


def scale_of(designer: Designer, key: str) -> str:
    return type(dict(designer.history.encoding.parameters)[key]).__name__


def test_suggestions_are_those_of_a_designer_that_reads_the_whole_log_at_once() -> None:
    warm, trials = designer(), list[Evaluation]()
    for number in range(45):
        (suggestion,) = warm.suggest(number=number)
        noise = 0.1 * np.random.default_rng(number).standard_normal()
        loss = LOSSES[RATE](suggestion.point) + (suggestion.point[X] - 0.3) ** 2 + noise
        trials.append(Evaluation(number, COMPLETE, suggestion.point, SPACE, (float(number), number), (loss,)))
        if number in (20, 30, 40):
            cold = designer()
            cold.update(trials[:-1])
            assert cold.suggest(number=number)[0].point == suggestion.point
        warm.update(trials[-1:])
    assert scale_of(warm, RATE) == "StretchedFloat"
    rates = [e.point[RATE] for e in trials[-10:]]
    assert 10.0**-3.5 < np.median(rates) < 10.0**-2.5


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The numbers of the trials of each decision."""
    seen, decide = list[list[int]](), input_stretching.stretches_of

    def watched(trials: list[Evaluation], *others: Any) -> dict[str, Stretch]:
        seen.append([trial.number for trial in trials])
        return decide(trials, *others)

    monkeypatch.setattr(input_stretching, "stretches_of", watched)
    return seen


def test_a_late_trial_leads_to_the_decision_of_the_log_in_order(decided: list[list[int]]) -> None:
    trials, other = evaluations(near_an_end(RATE, 41), LOSSES[RATE]), designer()
    late = designer()
    late.update([*trials[:5], *trials[6:]])
    late.update(trials[5:6])
    assert decided[-1] == list(range(36))
    other.update(trials)
    assert late.suggest(number=50)[0].point == other.suggest(number=50)[0].point
    assert late.history.encoding == other.history.encoding != other.history.plain_encoding


def test_an_interrupted_decision_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    trials, one = evaluations(near_an_end(RATE, 40), LOSSES[RATE]), designer()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(input_stretching, "stretches_of", interrupt)
        with pytest.raises(KeyboardInterrupt):
            one.update(trials)
    one.update([])
    assert scale_of(one, RATE) == "StretchedFloat"


def test_the_decision_is_made_at_marks_and_once(decided: list[list[int]]) -> None:
    one = designer()
    for trial in evaluations(near_an_end(RATE, 40), LOSSES[RATE]):
        one.update([trial])
    assert list(map(len, decided)) == [16, 24, 36]


def test_the_decision_is_by_trials_with_a_value_of_each_objective(decided: list[list[int]]) -> None:
    trials = evaluations(near_an_end(RATE, 60), LOSSES[RATE], LOSSES[RATE])
    seldom = [e if e.number % 3 == 0 else replace(e, values=(), partial=(e.values[0], math.nan)) for e in trials]
    one, other = (Designer(Problem((-1.0, -1.0), space=SPACE), Options(ModelOptions(bo.BKB())), 0) for _ in range(2))
    for trial in seldom:
        one.update([trial])
    assert decided == [list(range(0, 48, 3))]  # at 16 of them, and not at 16 trials
    other.update(seldom)
    assert one.history.encoding == other.history.encoding
    assert one.suggest(number=60)[0].point == other.suggest(number=60)[0].point


@pytest.mark.parametrize(
    "options", [{"surrogate": bo.BKB(matern52(4))}, {"fit": False, "surrogate": bo.BKB(matern52(4), noise=0.1)}]
)
def test_columns_are_as_given_for_a_kernel_of_the_user(options: dict[str, Any]) -> None:
    one = designer(**options)
    one.update(evaluations(near_an_end(RATE, 40), LOSSES[RATE]))
    assert one.history.encoding == one.history.plain_encoding


def test_another_space_has_the_stretches_of_its_own_columns() -> None:
    one = designer()
    one.update(evaluations(near_an_end(RATE, 40), LOSSES[RATE]))
    wider = Space.parse({**SPACE.parameters, "rate": Float(1e-5, 3.0)})
    one.set_problem(Problem(space=wider))
    one.update([])
    assert scale_of(one, RATE) == "StretchedFloat"
    assert 0.0 < one.suggest(number=40)[0].point[RATE] <= 3.0
    logarithmic = Space.parse({**SPACE.parameters, "rate": Float(1e-5, 1.0, log=True)})
    one.set_problem(Problem(space=logarithmic))
    one.update([])
    assert scale_of(one, "rate (float, log)") == "Float"
    one.suggest(number=40)


def test_rows_of_a_pool_are_as_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def decide(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(input_stretching, "stretches_of", decide)
    rows = np.array([list(point.values()) for point in near_an_end(RATE, 40)])
    pool = EncodedPool(Pool(rows), scale=True, has_kernel=False)
    one = designer(pool)
    one.update(Evaluation(i, COMPLETE, pool.point(i), None, (float(i), i), (row[1],)) for i, row in enumerate(rows))
    assert one.models.ready


def test_an_optimizer_names_its_stretched_ends_and_says_when_it_finds_them(caplog: pytest.LogCaptureFixture) -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    trials = evaluations(near_an_end(MOMENTUM, 40), LOSSES[MOMENTUM])
    assert opt.stretched_ends == {}
    with caplog.at_level(logging.INFO, "bkbopt"):
        opt.tell([SPACE.external([trial.point])[0] for trial in trials], [trial.values[0] for trial in trials])
        assert [*opt.stretched_ends] == ["momentum"]
        opt.recommend()
    assert [record.message for record in caplog.records if "logarithmic" in record.message] == [
        "space: by 36 values these ranges are searched on logarithmic scales: momentum (float) from its high end."
    ]
    assert bo.Optimizer(bo.Pool([[0.0], [1.0]]), seed=0).stretched_ends == {}
