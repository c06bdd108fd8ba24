"""Restarts: which trials they are, where there are some, and that they are searches of their own."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bkbopt as bo
from bkbopt.search import restarts
from bkbopt.search.choosing import LARGE_BATCH
from bkbopt.search.designer import Designer
from bkbopt.search.options import Options
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.search.restarts import (
    GROWTH,
    IF_SETTLED,
    LAST,
    LENGTH,
    MOST_RUNNING,
    MOST_STARTUP,
    first_of,
    is_needed,
    is_settled,
    seed_of,
    unknown_share,
)
from bkbopt.search.trials.evaluations import Evaluation, Problem, Suggestion
from bkbopt.search.trials.states import COMPLETE, FAIL, PRUNED
from bkbopt.spaces.space import Space

FIRST_OF_ALL = restarts.FIRST
Function = Callable[[np.ndarray], float]
CUBE = Space.parse({f"x{j}": bo.Float(0.0, 1.0) for j in range(4)})
OPTIONS = Options(ModelOptions(bo.BKB()))
#: The first trial of the first restart in these tests; a log of 300 trials would take long to fit.
FIRST = 40
DEEP, SHALLOW = np.full(4, 0.25), np.full(4, 0.75)
#: The best point of the well at `SHALLOW`, to four digits: the other well pulls it from there.
BOTTOM = np.full(4, 0.7472)


@pytest.fixture(autouse=True)
def _early_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts, "FIRST", FIRST)
    monkeypatch.setattr(restarts, "IF_SETTLED", -LENGTH)


def wells(x: np.ndarray) -> float:
    """Two wells, of which the one at `DEEP` is twice as deep as that at `SHALLOW`, and wider."""
    deep, shallow = (float(((x - centre) ** 2).sum()) for centre in (DEEP, SHALLOW))
    return -2.0 * float(np.exp(-deep / 0.2)) - float(np.exp(-shallow / 0.08))


def bowl(x: np.ndarray) -> float:
    return float(((x - DEEP) ** 2).sum())


def evaluation(number: int, x: np.ndarray, function: Function, space: Space = CUBE) -> Evaluation:
    value = function(x) + 0.01 * float(np.random.default_rng(number).standard_normal())
    point = dict(zip(space.keyed, x.tolist(), strict=True))
    return Evaluation(number, COMPLETE, point, space, (float(number), number), (value,))


def settled(function: Function = wells) -> list[Evaluation]:
    """The trials before the first restart, of a search that has settled at `SHALLOW`."""
    rng = np.random.default_rng(0)
    near = np.clip(SHALLOW + 0.1 * rng.standard_normal((FIRST, 4)), 0.0, 1.0)
    return [evaluation(number, x, function) for number, x in enumerate(near)]


def exact(function: Function = wells, near: int = 1) -> list[Evaluation]:
    """Trials without noise; of the last ones, `LAST` and one more, one of `near` is at the best point of a well."""
    rng, settled_from = np.random.default_rng(0), FIRST - LAST - 1
    numbers = np.arange(FIRST)
    spread = np.where((numbers < settled_from) | (numbers % near > 0), 0.1, 1e-4)
    points = np.clip(BOTTOM + spread[:, None] * rng.standard_normal((FIRST, 4)), 0.0, 1.0)
    log = [evaluation(number, x, function) for number, x in enumerate(points)]
    return [replace(e, values=(function(x),)) for e, x in zip(log, points, strict=True)]


def designer(log: list[Evaluation], options: Options = OPTIONS, problem: Problem | None = None) -> Designer:
    made = Designer(problem or Problem(space=CUBE), options, 5)
    made.update(log)
    return made


def suggested(log: list[Evaluation], number: int = FIRST, **more: Any) -> Suggestion:
    return designer(log).suggest(number=number, **more)[0]


def is_near(point: Mapping[str, float], centre: np.ndarray, distance: float = 0.3) -> bool:
    return float(np.linalg.norm(np.array(list(point.values())) - centre)) < distance


def test_restarts_are_longer_and_longer_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts, "FIRST", FIRST_OF_ALL)
    monkeypatch.setattr(restarts, "IF_SETTLED", IF_SETTLED)
    begun = [t for t in range(9_000) if first_of(t) == t]
    assert begun == [IF_SETTLED, FIRST_OF_ALL, FIRST_OF_ALL * GROWTH, FIRST_OF_ALL * GROWTH**2]
    for first in begun:
        assert [t for t in range(first - 5, first + LENGTH + 5) if first_of(t) == first] == list(
            range(first, first + LENGTH)
        )
    assert sum(first_of(t) is not None for t in range(9_000)) == 4 * LENGTH


def test_a_restart_finds_the_basin_that_a_settled_search_has_missed() -> None:
    log = settled()
    search = designer(log)
    for number in range(FIRST, FIRST + LENGTH // 2):
        point = search.suggest(number=number)[0].point
        log.append(evaluation(number, np.array(list(point.values())), wells))
        search.update(log[-1:])
    after = search.suggest(number=FIRST + LENGTH, fixed=None)[0]
    best = min(log, key=lambda e: e.values[0])
    assert is_near(best.point, DEEP)
    assert is_near(after.point, DEEP)
    without = designer(settled(), replace(OPTIONS, restarts=False)).suggest(number=FIRST)[0]
    assert is_near(without.point, SHALLOW)


def test_a_restart_suggests_what_a_new_search_of_its_trials_suggests() -> None:
    rng = np.random.default_rng(1)
    log = settled() + [evaluation(number, rng.random(4), wells) for number in range(FIRST, FIRST + 13)]
    for number in (FIRST, FIRST + 1, FIRST + 9, FIRST + 10, FIRST + 13):
        of_its_own = new_search(log[FIRST:number]).suggest(number=number - FIRST + 1)[0]
        assert suggested(log[:number], number).point == of_its_own.point


def new_search(trials: list[Evaluation]) -> Designer:
    search = Designer(Problem(space=CUBE), replace(OPTIONS, perturbations=True, restarts=False), seed_of(5, FIRST))
    search.update(replace(e, number=e.number - FIRST + 1) for e in trials)
    return search


def test_a_batch_of_a_restart_is_one_of_the_new_search() -> None:
    log, count = settled(), 2 * LARGE_BATCH
    batch = designer(log).suggest(count, number=FIRST)
    assert [found.point for found in batch] == [found.point for found in new_search([]).suggest(count, number=1)]
    log += [evaluation(found.number, np.array(list(found.point.values())), wells) for found in batch]
    later = designer(log).suggest(count, number=FIRST + count)
    anew_later = new_search(log[FIRST:]).suggest(count, number=count + 1)
    assert [found.point for found in later] == [found.point for found in anew_later]


def test_half_of_a_restart_at_least_searches_what_its_start_up_trials_have_found() -> None:
    options, rng = replace(OPTIONS, n_startup_trials=FIRST), np.random.default_rng(2)
    own = [evaluation(number, rng.random(4), wells) for number in range(FIRST, FIRST + MOST_STARTUP)]
    for n, is_informed in ((MOST_STARTUP - 1, False), (MOST_STARTUP, True)):
        found = designer(settled() + own[:n], options).suggest(number=FIRST + n)[0]
        assert (found.diagnostics.n_inducing is not None) is is_informed


def test_suggestions_of_a_restart_follow_from_the_log() -> None:
    log = settled()
    warm = designer(log)
    for number in range(FIRST, FIRST + 12):
        point = warm.suggest(number=number)[0].point
        assert number % 4 or suggested(log, number).point == point
        log.append(evaluation(number, np.array(list(point.values())), wells))
        warm.update(log)
    later = FIRST + 12
    assert warm.suggest(3, number=later) == designer(log[::-1]).suggest(3, number=later)
    late = replace(evaluation(later + 5, DEEP, wells), number=FIRST - 1, order=(later + 5.0, FIRST - 1))
    log = [e for e in log if e.number != FIRST - 1]
    warm = designer(log)
    warm.suggest(number=later)
    warm.update([late])  # a trial from before the restart ends after its first trials
    assert warm.suggest(3, number=later) == designer([*log, late]).suggest(3, number=later)


def test_whether_there_is_a_restart_is_decided_by_the_trials_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    log = settled() + [evaluation(number, rng.random(4), wells) for number in range(FIRST, FIRST + 40)]
    before, after = (
        unknown_share(search.models, search.history, CUBE) for search in (designer(log[:FIRST]), designer(log))
    )
    assert before > after
    monkeypatch.setattr(restarts, "UNKNOWN", (before + after) / 2)
    assert suggested(log, FIRST + 40).point == new_search(log[FIRST:]).suggest(number=41)[0].point


def test_it_is_decided_again_when_earlier_trials_end_late() -> None:
    log, rng = settled(), np.random.default_rng(4)
    own = [evaluation(number, rng.random(4), wells) for number in range(FIRST, FIRST + 6)]
    search = designer([*log[:8], *own])  # too few of the earlier trials have ended for a model
    search.suggest(number=FIRST + 6)
    late = [replace(e, order=(FIRST + 10.0 + e.number, e.number)) for e in log[8:]]
    search.update(late)
    assert search.suggest(number=FIRST + 6) == designer([*log[:8], *own, *late]).suggest(number=FIRST + 6)
    assert search.suggest(number=FIRST + 6)[0].point == new_search(own).suggest(number=7)[0].point


def test_what_is_reported_of_a_restart_counts_all_values_and_has_no_gap() -> None:
    log = settled()
    log += [evaluation(n, np.random.default_rng(n).random(4), wells) for n in range(FIRST, FIRST + 12)]
    found = suggested(log, FIRST + 12)
    assert found.number == found.diagnostics.trial == FIRST + 12
    assert found.diagnostics.n_values == FIRST + 12
    assert found.diagnostics.n_inducing is not None
    assert found.diagnostics.n_inducing <= 12
    assert found.diagnostics.confidence_gap is None


def anew(log: list[Evaluation], options: Options = OPTIONS, problem: Problem | None = None, **more: Any) -> bool:
    """Whether trial `FIRST` is part of a restart: then the suggestion is not that of a search without them."""
    with_restarts = designer(log, options, problem).suggest(number=FIRST, **more)
    without = designer(log, replace(options, restarts=False), problem).suggest(number=FIRST, **more)
    return with_restarts[0].point != without[0].point


def test_a_search_of_which_most_is_known_does_not_begin_anew() -> None:
    assert anew(settled())
    assert not anew(settled(bowl))
    for function, little in ((wells, True), (bowl, False)):
        search = designer(settled(function))
        assert is_needed(FIRST, search.models, search.history, CUBE) is little


# -- settled searches --------------------------------------------------------------------------------------------------


def is_begun_early(log: list[Evaluation]) -> bool:
    """Whether a restart begins at trial `len(log)`, `IF_SETTLED` here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restarts, "FIRST", FIRST_OF_ALL)
        patch.setattr(restarts, "IF_SETTLED", len(log))
        search = designer(log)
        needed = is_needed(len(log), search.models, search.history, CUBE)
        found = search.suggest(number=len(log))[0].point
        without = designer(log, replace(OPTIONS, restarts=False)).suggest(number=len(log))[0].point
        assert needed is (found != without)
        return needed


def test_a_search_without_noise_that_has_settled_begins_anew_early() -> None:
    assert is_begun_early(exact())
    assert not is_begun_early(settled())  # with noise its values may be improved by more of them


def test_a_search_without_noise_that_still_improves_or_explores_does_not_begin_anew_early() -> None:
    better = DEEP + 0.1
    log = [*exact()[:-1], replace(evaluation(FIRST - 1, better, wells), values=(wells(better),))]
    turned = [replace(e, number=n, order=(float(n), n)) for n, e in enumerate(exact()[::-1])]
    for trials in (log, exact(near=2), turned):  # of the last one all but the last trials are near the best point
        search = designer(trials)
        assert search.models.objectives[0].is_noiseless
        assert not is_settled(search.models, search.history)
    assert not is_begun_early(log)


def test_a_settled_search_of_which_most_is_known_does_not_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    search = designer(exact())
    assert is_settled(search.models, search.history)
    share = unknown_share(search.models, search.history, CUBE)
    for limit, begins in ((share - 0.01, True), (share + 0.01, False)):
        monkeypatch.setattr(restarts, "UNKNOWN_IF_SETTLED", limit)
        assert is_begun_early(exact()) is begins


@pytest.mark.filterwarnings("error")
def test_values_near_the_largest_number_are_compared() -> None:
    log = [replace(e, values=(1e308 * np.sign(e.values[0] + 0.8) - 1e307 * e.values[0],)) for e in exact()]
    search = designer(log)
    assert is_settled(search.models, search.history)


def test_a_settled_search_finds_the_better_basin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts, "FIRST", FIRST_OF_ALL)
    monkeypatch.setattr(restarts, "IF_SETTLED", FIRST)
    log = exact()
    search = designer(log)
    for number in range(FIRST, FIRST + LENGTH // 2):
        x = np.array(list(search.suggest(number=number)[0].point.values()))
        log.append(replace(evaluation(number, x, wells), values=(wells(x),)))
        search.update(log[-1:])
    assert is_near(min(log, key=lambda e: e.values[0]).point, DEEP)


# -- trials that are no restart ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"fixed": {next(iter(CUBE.keyed)): 0.5}},
        {"running": {900 + i: dict.fromkeys(CUBE.keyed, 0.1 * i) for i in range(MOST_RUNNING)}},
    ],
    ids=["fixed values", "many running trials"],
)
def test_trials_that_are_no_restart(more: dict[str, Any]) -> None:
    assert not anew(settled(), **more)


def test_searches_without_perturbations_or_with_limits_do_not_begin_anew() -> None:
    log = settled()
    assert not anew(log, replace(OPTIONS, perturbations=False))
    limited = [replace(e, constraints={"g": e.values[0] - 0.5}) for e in log]
    assert not anew(limited)
    both = [replace(e, values=(e.values[0], -e.values[0])) for e in log]
    assert not anew(both, problem=Problem((-1.0, -1.0), CUBE))
    crashed = [replace(e, state=FAIL, values=()) if e.point["x0 (float)"] > 0.8 else e for e in log]
    assert not anew(crashed)


def test_studies_most_of_whose_trials_are_pruned_do_not_begin_anew() -> None:
    def pruned(n: int) -> list[Evaluation]:
        return [replace(e, state=PRUNED, values=(), curve={1: e.values[0]}) if e.number < n else e for e in settled()]

    assert anew(pruned(2))
    assert not anew(pruned(20))


def test_grids_do_not_begin_anew() -> None:
    grid = Space.parse({f"x{j}": bo.Float(0.0, 1.0, step=0.05) for j in range(4)})
    log = [replace(e, space=grid, point={k: round(v * 20) / 20 for k, v in e.point.items()}) for e in settled()]
    assert not anew(log, problem=Problem(space=grid))
