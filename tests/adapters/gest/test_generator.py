"""`BKBGenerator`: gest-api's contract, and the same suggestions as an `Optimizer` that is told the same."""

import copy
import importlib
import itertools
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("gest_api", reason="gest-api is not installed")

from gest_api.vocs import VOCS, ContinuousVariable, DiscreteVariable
from hypothesis import given, settings
from hypothesis import strategies as st

import bkbopt as bo
from bkbopt.adapters.gest import BKBGenerator
from bkbopt.errors import ArgumentError, ArgumentTypeError, TrialStateError

MIXED = {"x": [0.0, 1.0], "n": ContinuousVariable(domain=[1, 9], dtype=int), "q": {0.5, 1, 4}, "k": {"slow", "fast"}}
SPACE = {
    "x": bo.Float(0.0, 1.0),
    "n": bo.Int(1, 9),
    "q": bo.Ordinal([0.5, 1, 4]),
    "k": bo.Categorical(["fast", "slow"]),
}
#: gest-api's tests of its example that hold for any generator; the others look at that one's attributes and limits.
OF_ANY = (
    "test_gen_fails_without_variable",
    "test_gen_fails_without_objective",
    "test_gen_has_constant_alpha",
    "test_suggest_default_single_point",
)


def vocs(**more: Any) -> VOCS:
    return VOCS(**{"variables": {"x": [0.0, 1.0]}, "objectives": {"f": "MINIMIZE"}, **more})


def loss(point: dict[str, Any]) -> float:
    return (point["x"] - 0.3) ** 2 + point["n"] / 20 + point["q"] / 10 + (point["k"] == "slow")


def states(generator: BKBGenerator) -> list[str]:
    return [trial.state for trial in generator.optimizer.trials]


@pytest.mark.parametrize("name", OF_ANY)
def test_gest_apis_own_test_holds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = importlib.import_module("gest_api.tests.test_generator")
    monkeypatch.setattr(theirs, "RandomGenerator", BKBGenerator)
    getattr(theirs, name)()


# -- suggestions -----------------------------------------------------------------------------------------------------


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """Variables of all kinds."""
    low = draw(st.floats(-1e3, 1e3))
    kinds = {
        "float": st.just([low, low + draw(st.floats(1e-3, 1e3))]),
        "int": st.just(ContinuousVariable(domain=[-3, draw(st.integers(-2, 40))], dtype=int)),
        "numbers": st.sets(st.integers(-5, 5) | st.floats(-5.0, 5.0), min_size=1, max_size=6),
        "words": st.sets(st.text(max_size=3), min_size=1, max_size=4),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=4))
    return {f"{kind} {i}": draw(kinds[kind]) for i, kind in enumerate(chosen)}


def bells(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    return torch.exp(-(torch.cdist(A, B) ** 2))


@settings(max_examples=20)
@given(problems(), st.integers(1, 3))
def test_suggestions_are_scalars_within_the_vocs_with_constants_and_ids(variables: dict[str, Any], n: int) -> None:
    stated = VOCS(variables=variables, objectives={"f": "MAXIMIZE"}, constants={"alpha": 0.5, "mode": "test"})
    generator = BKBGenerator(stated, seed=0, n_startup_trials=2, surrogate=bo.BKB(bells, noise=0.1), fit=False)
    ids = []
    for _ in range(3):
        points = generator.suggest(n)
        assert len(points) == n
        for point in points:
            assert list(point) == [*stated.variable_names, "alpha", "mode", "_id"]
            assert (point["alpha"], point["mode"]) == (0.5, "test")
            ids.append(point["_id"])
            for name, variable in stated.variables.items():
                if isinstance(variable, DiscreteVariable):
                    assert point[name] in variable.values
                else:
                    assert variable.domain[0] <= point[name] <= variable.domain[1]
                    assert type(point[name]) is (float if variable.dtype is None else int)
        generator.ingest([{**point, "f": float(i)} for i, point in enumerate(points)])
    assert ids == list(range(3 * n))
    assert generator.returns_id  # frameworks carry ids where this says so


def test_changes_of_a_list_that_is_a_constant_stay_with_the_caller() -> None:
    stated = vocs(constants={"shape": [1, 2]})
    generator = BKBGenerator(stated, seed=0)
    generator.suggest(1)[0]["shape"].append(3)
    stated.constants["shape"].value.append(4)
    assert generator.suggest(1)[0]["shape"] == [1, 2]
    assert generator.vocs.constants["shape"].value == [1, 2]


def test_suggest_without_a_number_gives_a_batch() -> None:
    generator = BKBGenerator(vocs(), batch_size=3, seed=0)
    assert len(generator.suggest()) == len(generator.suggest(None)) == 3
    assert generator.suggest(0) == []
    assert [point["_id"] for point in generator.suggest(2)] == [6, 7]


def test_suggestions_are_those_of_an_optimizer_told_the_same() -> None:
    stated = VOCS(
        variables=MIXED,
        objectives={"f": "MAXIMIZE"},
        constraints={"c": ["GREATER_THAN", 0.2], "d": ["BOUNDS", -1.0, 2.0], "e": ["LESS_THAN", 8.5]},
        constants={"alpha": 1.0},
        observables=["o"],
    )
    generator = BKBGenerator(stated, seed=3, n_startup_trials=4, beta=1.5)
    names = ["c", "d (low)", "d (high)", "e"]
    opt = bo.Optimizer(SPACE, direction="maximize", constraints=names, seed=3, n_startup_trials=4, beta=1.5)
    past = {"x": 0.9, "n": 2, "q": 1, "k": "slow"}
    generator.ingest([{**past, "f": -1.5, "c": 0.9, "d": 1.0, "e": 2.0, "o": "text"}])
    opt.tell(past, -1.5, constraints={"c": 0.2 - 0.9, "d (low)": -2.0, "d (high)": -1.0, "e": -6.5})
    for step in range(5):
        points, trials = generator.suggest(2), opt.ask(2)
        assert [{k: p[k] for k in MIXED} for p in points] == [trial.params for trial in trials]
        results = []
        for point, trial in reversed(list(zip(points, trials, strict=True))):
            c, d, e = point["x"], point["q"] - 1.5, float(point["n"])
            results.append({**point, "f": -loss(point), "c": c, "d": d, "e": e, "o": None})
            if step == 2:
                results[-1]["f"] = math.nan
                opt.fail(trial)
                continue
            limits = {"c": -1.0 * (c - 0.2), "d (low)": -1.0 * (d + 1.0), "d (high)": d - 2.0, "e": e - 8.5}
            opt.tell(trial, -loss(point), constraints=limits)
        generator.ingest(results)
    assert generator.optimizer.recommend() == opt.recommend()


def test_maximising_is_minimising_the_negative() -> None:
    runs = []
    for direction, sign in (("MINIMIZE", 1.0), ("MAXIMIZE", -1.0)):
        generator = BKBGenerator(vocs(objectives={"f": direction}), seed=1, n_startup_trials=3)
        for _ in range(8):
            (point,) = generator.suggest(1)
            generator.ingest([{**point, "f": sign * math.sin(9.0 * point["x"])}])
        runs.append([trial.params for trial in generator.optimizer.trials])
    assert runs[0] == runs[1]


def test_several_objectives_are_those_of_an_optimizer_told_the_same() -> None:
    pytest.importorskip("botorch", reason="BoTorch, which several objectives need, is not installed")
    generator = BKBGenerator(vocs(objectives={"a": "MINIMIZE", "b": "MAXIMIZE"}), seed=0, n_startup_trials=3)
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=["minimize", "maximize"], seed=0, n_startup_trials=3)
    for _ in range(6):
        (point,), trial = generator.suggest(1), opt.ask()
        assert point["x"] == trial.params["x"]
        values = (point["x"] ** 2, -((point["x"] - 1.0) ** 2))
        generator.ingest([{**point, "b": values[1], "a": values[0]}])
        opt.tell(trial, values)
    assert [trial.values for trial in generator.optimizer.best_trials] == [trial.values for trial in opt.best_trials]
    assert generator.optimizer.objectives == ("a", "b")


@pytest.mark.slow
def test_a_run_ends_at_the_constrained_optimum() -> None:
    stated = VOCS(
        variables={"x": [0.0, 1.0], "y": [0.0, 1.0]},
        objectives={"f": "MINIMIZE"},
        constraints={"c": ["GREATER_THAN", 0.5], "d": ["BOUNDS", 0.1, 0.4], "e": ["LESS_THAN", 1.2]},
    )
    generator = BKBGenerator(stated, seed=0)
    for _ in range(24):
        (point,) = generator.suggest(1)
        x, y = point["x"], point["y"]
        generator.ingest([{**point, "f": (x - 0.3) ** 2 + (y - 0.6) ** 2, "c": x, "d": y, "e": x + y}])
    best = generator.optimizer.best_trial
    assert best.params["x"] >= 0.5
    assert 0.1 <= best.params["y"] <= 0.4
    assert best.value == pytest.approx(0.08, abs=0.01)  # at x = 0.5, y = 0.4
    late = generator.optimizer.trials[-10:]
    assert sum(trial.is_feasible for trial in late) >= 5


def test_fewer_points_than_asked_for_are_an_error_that_loses_none() -> None:
    generator = BKBGenerator(vocs(variables={"x": {1, 2, 3, 4, 5}}), seed=0, duplicates="avoid", batch_size=2)
    first = generator.suggest(2)
    with pytest.raises(ArgumentError, match=r"num_points: expected at most 3, since no other points are left, got 4\."):
        generator.suggest(4)
    again = pickle.loads(pickle.dumps(generator))
    rest = generator.suggest(2) + generator.suggest()  # of a batch of two one is left
    assert again.suggest(3) == rest
    assert sorted(point["x"] for point in first + rest) == [1, 2, 3, 4, 5]
    with pytest.raises(ArgumentError, match="num_points: expected at most 0"):
        generator.suggest()
    generator.ingest([{**point, "f": 0.0} for point in first + rest])
    assert states(generator) == ["COMPLETE"] * 5


# -- results ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, None, math.inf, -math.inf, np.float64("nan"), 10**400, "left out"])
@pytest.mark.parametrize("name", ["f", "c"])
def test_an_evaluation_without_a_finite_output_has_failed(name: str, bad: Any) -> None:
    generator = BKBGenerator(vocs(constraints={"c": ["LESS_THAN", 1.0]}), seed=0)
    first, second = generator.suggest(2)
    row = {**first, "f": 0.5, "c": 0.5, name: bad}
    if bad == "left out":
        del row[name]
        if name == "c":
            with pytest.raises(ArgumentError, match="expected the constraint 'c' in point 1, which has objectives"):
                generator.ingest([{**second, "f": 0.1, "c": 0.2}, row])
            assert states(generator) == ["RUNNING", "RUNNING"]
            return
    generator.ingest([row, {**second, "f": 0.1, "c": 0.2}])
    assert states(generator) == ["FAIL", "COMPLETE"]


def test_a_failed_evaluation_may_lack_all_outputs() -> None:
    generator = BKBGenerator(vocs(constraints={"c": ["LESS_THAN", 1.0]}), seed=0)
    generator.ingest(generator.suggest(1))
    assert states(generator) == ["FAIL"]


def test_points_without_an_id_are_past_data_or_complete_a_pending_suggestion() -> None:
    generator = BKBGenerator(VOCS(variables=MIXED, objectives={"f": "MINIMIZE"}), seed=0)
    (point,) = generator.suggest(1)
    del point["_id"]
    past = {"x": 0.25, "n": 3.0, "q": np.float64(4.0), "k": np.str_("slow")}  # as tables have them
    generator.ingest([{**past, "f": 1.0}, {**point, "_id": math.nan, "f": 2.0}, {**past, "_id": None, "f": 3.0}])
    trials = generator.optimizer.trials
    assert [trial.value for trial in trials] == [2.0, 1.0, 3.0]
    assert trials[1].params == trials[2].params == {"x": 0.25, "n": 3, "q": 4, "k": "slow"}


def test_observables_are_attributes_of_the_trials() -> None:
    generator = BKBGenerator(vocs(observables=["seconds", "image"]), seed=0)
    first, second, third = generator.suggest(3)
    generator.ingest(
        [
            {**first, "f": 1.0, "seconds": np.float64(2.5), "image": object(), "other": 7},
            {**second, "f": 2.0, "image": np.zeros(2)},
            {**third, "seconds": 0.1},
        ]
    )
    trials = generator.optimizer.trials
    assert [dict(trial.user_attrs) for trial in trials] == [{"seconds": 2.5}, {"image": [0.0, 0.0]}, {"seconds": 0.1}]
    assert states(generator) == ["COMPLETE", "COMPLETE", "FAIL"]


def as_text(number: float) -> float:
    return float(f"{number:.6g}")


@pytest.mark.parametrize(
    "as_given", [float, np.float64, np.float32, np.array, torch.tensor, as_text], ids=lambda f: f.__name__
)
def test_values_may_be_scalars_of_any_library_and_a_little_rounded(as_given: Any) -> None:
    generator = BKBGenerator(vocs(variables={"x": [0.1, 0.7], "n": {0.1, 0.3}}), seed=0)
    (point,) = generator.suggest(1)
    given = {name: as_given(point[name]) for name in ("x", "n")}
    generator.ingest([{**given, "_id": as_given(float(point["_id"])), "f": as_given(0.5)}])
    assert generator.optimizer.trials[0].values == (0.5,)


def test_results_with_an_id_need_no_variables() -> None:
    generator = BKBGenerator(vocs(), seed=0)
    generator.ingest([{"_id": point["_id"], "f": 1.0} for point in generator.suggest(2)])
    assert states(generator) == ["COMPLETE"] * 2


def test_nothing_to_ingest_changes_nothing() -> None:
    generator = BKBGenerator(vocs(), seed=0)
    generator.ingest([])
    assert states(generator) == []


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"_id": 7}, ArgumentError, "expected the '_id' of a suggestion, got 7 in point 1; leave it out"),
        ({"_id": -1}, ArgumentError, "expected the '_id' of a suggestion, got -1"),
        ({"_id": "a"}, ArgumentError, "expected the '_id' of a suggestion, got 'a'"),
        (
            {"_id": 0},
            ArgumentError,
            "expected 'x' as suggested with '_id' 0, 0.\\d+, got 0.\\d+ in point 1; leave",
        ),
        ({"x": 0.123}, ArgumentError, "expected 'x' as suggested with '_id' 1"),
        ({"x": 10**400}, ArgumentError, "expected 'x' as suggested .* got a whole number of 1329 bits"),
        ({"_id": None, "x": 1.5}, ArgumentError, "expected for 'x' a number in \\[0.0, 1.0\\], got 1.5 in point 1"),
        ({"f": "low"}, ArgumentTypeError, "expected a number for 'f', got 'low' in point 1"),
        ({"f": [0.5]}, ArgumentTypeError, "expected a number for 'f', got \\[0.5\\] in point 1"),
    ],
)
def test_a_refusal_says_why_and_changes_nothing(change: dict[str, Any], error: type, message: str) -> None:
    generator = BKBGenerator(vocs(), seed=0)
    good, bad = generator.suggest(2)
    with pytest.raises(error, match=message):
        generator.ingest([{**good, "f": 0.5}, {**bad, "f": 0.5, **change}])
    assert states(generator) == ["RUNNING"] * 2


def test_a_point_that_was_not_suggested_needs_all_variables() -> None:
    generator = BKBGenerator(VOCS(variables=MIXED, objectives={"f": "MINIMIZE"}), seed=0)
    with pytest.raises(ArgumentError, match="expected all variables in a point without '_id', got point 0 without 'n'"):
        generator.ingest([{"x": 0.5, "f": 1.0}])


def test_ingesting_a_suggestion_twice_is_refused() -> None:
    generator = BKBGenerator(vocs(), seed=0)
    (point,) = generator.suggest(1)
    with pytest.raises(ArgumentError, match="expected each trial once, got trial 0 twice"):
        generator.ingest([{**point, "f": 0.5}, {**point, "f": 0.5}])
    generator.ingest([{**point, "f": 0.5}])
    with pytest.raises(TrialStateError, match="trial 0 was told the value 0\\.5 already"):
        generator.ingest([{**point, "f": 0.7}])
    assert [trial.values for trial in generator.optimizer.trials] == [(0.5,)]


@pytest.mark.parametrize("results", [{"x": 0.5, "f": 1.0}, "x", 3, [3]])
def test_what_is_no_list_of_dicts_is_refused(results: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"results: expected a list of dicts, .*got a (dict|str|int)"):
        BKBGenerator(vocs(), seed=0).ingest(results)


# -- the generator itself --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["direction", "directions", "constraints", "space_or_pool"])
def test_options_that_a_vocs_defines_are_refused(name: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"{name}: this argument follows from vocs"):
        BKBGenerator(vocs(), **{name: None})


def test_options_are_checked_by_the_optimizer() -> None:
    with pytest.raises(ArgumentError, match="n_startup_trials"):
        BKBGenerator(vocs(), n_startup_trials=-1)
    with pytest.raises(ArgumentError, match="batch_size"):
        BKBGenerator(vocs(), batch_size=0)


def test_later_changes_of_the_vocs_do_not_matter() -> None:
    stated = vocs()
    generator = BKBGenerator(stated, seed=0)
    stated.variables["x"].domain = [5.0, 6.0]
    assert generator.vocs == vocs()
    assert generator.suggest(1)[0]["x"] <= 1.0


def bell(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    return torch.exp(-((A - B.T) ** 2) / 0.05)


def right_half(params: dict[str, Any]) -> bool:
    return bool(params["x"] > 0.5)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"surrogate": "exact", "acquisition": "logei", "beta": 1.0},
    {"surrogate": bo.BKB(bell), "feasible": right_half},
]


@pytest.mark.parametrize("options", OPTIONS, ids=["default", "names", "objects"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))], ids=["copy", "pickle"])
def test_a_copy_continues_independently_with_the_same_suggestions(copied: Any, options: dict[str, Any]) -> None:
    generator = BKBGenerator(vocs(constants={"a": 1}), n_startup_trials=2, batch_size=2, **options)
    for _ in range(2):
        generator.ingest([{**point, "f": math.sin(9.0 * point["x"])} for point in generator.suggest(2)])
    generator.suggest(1)
    other = copied(generator)
    assert states(other) == states(generator)
    assert other.suggest() == generator.suggest()
    other.ingest([{"x": 0.7, "f": 0.1}])
    assert len(states(other)) == len(states(generator)) + 1


def test_a_copy_before_the_first_trial_has_the_same_seed() -> None:
    generator = BKBGenerator(vocs())
    assert copy.deepcopy(generator).suggest(3) == generator.suggest(3)


def test_generators_on_one_storage_share_the_log(tmp_path: Path) -> None:
    path = str(tmp_path / "log.db")
    first = BKBGenerator(vocs(), seed=0, storage=path)
    others = [copy.deepcopy(first), pickle.loads(pickle.dumps(first)), BKBGenerator(vocs(), seed=0, storage=path)]
    points = [generator.suggest(1)[0] for generator in (first, *others)]
    assert [point["_id"] for point in points] == [0, 1, 2, 3]
    for generator, point in zip(itertools.cycle(others), points, strict=False):
        generator.ingest([{**point, "f": point["x"]}])
    assert states(first) == ["COMPLETE"] * 4


def test_finalize_may_be_called_at_any_time() -> None:
    generator = BKBGenerator(vocs(), seed=0)
    generator.finalize()
    assert len(generator.suggest(1)) == 1
