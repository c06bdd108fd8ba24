"""`set_space` with other lists of values and with new parameters: what the model keeps of the past."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.kernels import matern52
from bkbopt.optimizer.log.log_file import LogFile
from bkbopt.optimizer.log.log_rows import Described, put_space
from tests.sweeps import slow_but

LISTS: dict[str, tuple[Any, Any]] = {
    "permuted choices": (["a", "b", "c"], ["c", "a", "b"]),
    "more choices": (["a", "b", "c"], ["a", "b", "c", "d"]),
    "choices before the others": (["b", "c"], ["a", "b", "c"]),
    "a value above": (bo.Ordinal(["a", "b"]), bo.Ordinal(["a", "b", "c"])),
    "a value below": (bo.Ordinal(["b", "c"]), bo.Ordinal(["a", "b", "c"])),
    "a value in between": (bo.Ordinal(["a", "c"]), bo.Ordinal(["a", "b", "c"])),
    "another order": (bo.Ordinal(["a", "b", "c"]), bo.Ordinal(["c", "a", "b"])),
    "a choice that was fixed": (bo.Categorical(["b"]), ["a", "b", "c"]),
}


def space(k: Any, **more: Any) -> dict[str, Any]:
    return {"x": (0.0, 1.0), "k": k, **more}


def value(p: Any) -> float:
    return (p["x"] - 0.4) ** 2 + {"a": 0.0, "b": 1.0, "c": 2.0, "d": 3.0}[p["k"]]


def points(k: Any, n: int = 12) -> list[dict[str, Any]]:
    listed = getattr(k, "listed", k)
    return [{"x": i / n, "k": listed[i % len(listed)]} for i in range(n)]


def optimizer(k: Any, storage: Path | None = None, **options: Any) -> bo.Optimizer:
    return bo.Optimizer(space(k), seed=0, n_startup_trials=4, storage=storage, **options)


def surrogate(k: Any) -> bo.BKB:
    """One with hyper-parameters that are given, for the columns of a space with `k` in it."""
    categorical = [] if isinstance(k, bo.Ordinal) else [1]
    return bo.BKB(matern52(2, 0.5, categorical=categorical), noise=1e-4)


def run(opt: bo.Optimizer, n: int, f: Any = value) -> None:
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, f(trial.params))


def predicted(opt: bo.Optimizer, at: list[dict[str, Any]]) -> Any:
    return np.stack(opt.predict(at))


# -- lists that change -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in LISTS if "fixed" not in name])  # a kernel is for all columns
def test_predictions_are_those_of_an_optimizer_that_had_the_new_list_from_the_start(name: str) -> None:
    old, new = LISTS[name]
    told = points(old)
    moved, fresh = (optimizer(k, surrogate=surrogate(new), fit=False) for k in (old, new))
    fresh.tell(told, [value(p) for p in told])
    moved.tell(told[:8], [value(p) for p in told[:8]])
    moved.set_space(space(new))
    moved.tell(told[8:], [value(p) for p in told[8:]])
    assert predicted(moved, points(new, 30)) == pytest.approx(predicted(fresh, points(new, 30)), abs=1e-9)


@pytest.mark.parametrize("name", LISTS)
def test_points_of_the_new_space_are_recoded_as_they_are_encoded(name: str) -> None:
    old, new = LISTS[name]
    opt = optimizer(old)
    opt.tell(points(old), list(map(value, points(old))))
    opt.set_space({"k": new, "x": (0.25, 3.0), "depth": bo.Int(1, 4, when={"k": ["a", "b"]}), "share": 0.5})
    assert opt.space is not None
    U = opt.space.sample(40, np.random.default_rng(0))
    X = opt.recode(U)
    assert X.shape[1] > 2
    assert torch.equal(X, opt.encode(opt.space.decode(U)))


@pytest.mark.parametrize("name", LISTS)
def test_a_fitted_model_keeps_what_it_knows(name: str) -> None:
    old, new = LISTS[name]
    opt = optimizer(old)
    told = points(old, 24)
    opt.tell(told, [value(p) for p in told])
    opt.set_space(space(new))
    means, _ = opt.predict(told)
    assert means == pytest.approx([value(p) for p in told], abs=0.05)
    assert value(opt.recommend().params) == pytest.approx(min(value(p) for p in told), abs=0.01)


def test_a_choice_that_was_removed_stays_in_the_model_and_is_not_proposed() -> None:
    opt, kept = optimizer(["a", "b", "c"]), optimizer(["a", "b", "c"])
    for each in (opt, kept):
        run(each, 16)
    opt.set_space(space(["c", "b"]))
    assert opt.surrogate.observations.total == 16
    assert len(np.unique(opt.observed()[0][:, 1])) == len({t.params["k"] for t in opt.trials}) == 3
    run(opt, 8)
    assert {t.params["k"] for t in opt.trials[16:]} <= {"b", "c"}
    assert opt.recommend().params["k"] == "b"
    with pytest.raises(bo.errors.ArgumentError, match=r"'k'.*'c', 'b'"):
        opt.predict({"x": 0.4, "k": "a"})


def test_choices_come_back_as_they_went() -> None:
    opt, kept = (optimizer(["a", "b"], surrogate=surrogate(["a"]), fit=False) for _ in range(2))
    for each in (opt, kept):
        run(each, 10)
    before = predicted(opt, points(["a", "b"]))
    opt.set_space(space(["b"]))
    opt.set_space(space(["a", "b"]))
    assert predicted(opt, points(["a", "b"])).tolist() == before.tolist()
    assert [t.params for t in opt.ask(3)] == [t.params for t in kept.ask(3)]


#: Changes of which the fast suite writes no log: in a file they are like others.
LIKE_OTHERS = ("more choices", "a value above", "a value below", "another order")


@pytest.mark.parametrize(
    "name",
    slow_but({*LISTS, "a choice less", "a value less"} - {*LIKE_OTHERS}, [*LISTS, "a choice less", "a value less"]),
)
def test_a_log_with_changed_lists_is_continued_to_the_last_bit(name: str, tmp_path: Path) -> None:
    less = {"a choice less": (["a", "b", "c"], ["c", "b"])}
    less["a value less"] = bo.Ordinal(["a", "b", "c"]), bo.Ordinal(["a", "c"])  # type: ignore[assignment]
    old, new = {**LISTS, **less}[name]
    first = optimizer(old, tmp_path / "log")
    run(first, 6)
    first.ask()  # running
    first.set_space(space(new))
    run(first, 3)
    again = bo.Optimizer.open(tmp_path / "log")
    first.save(tmp_path / "copy")
    copied = bo.Optimizer.load(tmp_path / "copy")
    at = points(new, 7)
    assert predicted(again, at).tolist() == predicted(copied, at).tolist() == predicted(first, at).tolist()
    assert [t.params for t in again.trials] == [t.params for t in first.trials]
    asked = [t.params for t in copied.ask(3)]
    assert [t.params for t in again.ask(3)] == asked
    first.set_space(space(old))  # by one process, for all
    run(again, 1)
    assert again.space == first.space


def test_queued_and_running_trials_of_another_list_keep_their_choices() -> None:
    opt = optimizer(["a", "b"])
    run(opt, 5)
    running = opt.ask()
    queued = [opt.enqueue({"k": k}) for k in ("a", "b")]
    opt.set_space(space(["c", "b"]))
    trial = opt.ask()
    assert (trial.id, trial.params["k"]) == (queued[1].id, "b")  # "a" waits for a space with it
    assert opt.tell(running, 1.0).params == running.params
    opt.set_space(space(["b", "c", "a"]))
    trial = opt.ask()
    assert (trial.id, trial.params["k"]) == (queued[0].id, "a")


def test_a_discrete_space_counts_points_by_their_values() -> None:
    opt = bo.Optimizer({"k": ["a", "b", "c"], "n": bo.Int(0, 1)}, seed=0, n_startup_trials=2, duplicates="avoid")
    for k in "ac":
        opt.tell([{"k": k, "n": n} for n in (0, 1)], [1.0, 2.0])
    opt.set_space({"k": ["d", "c", "b"], "n": bo.Int(0, 1)})
    assert {tuple(t.params.values()) for t in opt.ask(4)} == {("d", 0), ("d", 1), ("b", 0), ("b", 1)}
    with pytest.raises(bo.errors.SpaceExhaustedError):
        opt.ask()


def test_conditions_on_a_list_that_changes_hold_by_value() -> None:
    def tree(kinds: list[str]) -> dict[str, Any]:
        return {"kind": kinds, "x": (0.0, 1.0), "rate": bo.Float(0.0, 1.0, when={"kind": "slow"})}

    def f(p: Any) -> float:
        return (p["x"] - 0.3) ** 2 + (abs(p["rate"] - 0.7) if p["kind"] == "slow" else 0.5)

    opt = bo.Optimizer(tree(["fast", "slow"]), seed=0, n_startup_trials=5)
    run(opt, 25, f)
    opt.set_space(tree(["none", "slow", "fast"]))
    at = [dict(t.params) for t in opt.trials]
    assert opt.predict(at)[0] == pytest.approx([f(p) for p in at], abs=0.1)
    run(opt, 6, f)
    assert all(("rate" in t.params) == (t.params["kind"] == "slow") for t in opt.trials)
    assert opt.recommend().params["kind"] == "slow"


# -- parameters that are new -------------------------------------------------------------------------------------------

WIDER = {"x": (0.0, 1.0), "k": ["new", "old"], "z": (0.0, 2.0)}
PAST = {"z": 0.5, "k": "old"}


def bowl(p: Any) -> float:
    return (p["x"] - 0.4) ** 2 + (p.get("z", 0.5) - 0.5) ** 2 + (p.get("k", "old") == "new")


def line(storage: Path | None = None, n: int = 12, **options: Any) -> bo.Optimizer:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, n_startup_trials=4, storage=storage, **options)
    run(opt, n, bowl)
    return opt


def test_stated_values_count_as_if_they_had_been_told() -> None:
    moved = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, surrogate=bo.BKB(noise=1e-4), n_startup_trials=0)
    fresh = bo.Optimizer(WIDER, seed=0, surrogate=bo.BKB(noise=1e-4), n_startup_trials=0)
    xs = [i / 12 for i in range(12)]
    moved.tell([{"x": x} for x in xs], [bowl({"x": x}) for x in xs])
    moved.set_space(WIDER, past=PAST)
    fresh.tell([{"x": x, **PAST} for x in xs], [bowl({"x": x}) for x in xs])
    assert (moved.observed()[0] == fresh.observed()[0]).all()
    at = [{"x": x, "k": k, "z": z} for x in (0.1, 0.4) for k in ("new", "old") for z in (0.0, 0.5, 2.0)]
    assert predicted(moved, at).tolist() == predicted(fresh, at).tolist()
    assert [t.params for t in moved.ask(3)] == [t.params for t in fresh.ask(3)]
    assert moved.recommend() == fresh.recommend()
    assert moved.best_trial.params.keys() == {"x"}  # what was evaluated


def test_stated_values_are_in_the_log(tmp_path: Path) -> None:
    first = line(tmp_path / "log")
    other = bo.Optimizer.open(tmp_path / "log")
    running = first.ask()
    first.set_space(WIDER, past=PAST)
    first.set_space(WIDER, past=PAST)  # as it is: nothing happens, and so in a program that runs again
    first.set_space(WIDER)
    first.tell(running, 0.3)
    run(first, 3, bowl)
    at = [{"x": 0.4, "k": "old", "z": z} for z in (0.0, 0.5, 2.0)]
    again = bo.Optimizer.open(tmp_path / "log")
    first.save(tmp_path / "copy")
    copied = bo.Optimizer.load(tmp_path / "copy")
    assert predicted(other, at).tolist() == predicted(first, at).tolist()  # which had read trials of the first space
    assert predicted(again, at).tolist() == predicted(copied, at).tolist() == predicted(first, at).tolist()
    assert copied.recommend() == first.recommend()
    assert [t.params for t in again.ask(2)] == [t.params for t in copied.ask(2)]
    # With the arguments of the first call the log is found again.
    assert bo.Optimizer({"x": (0.0, 1.0)}, seed=0, n_startup_trials=4, storage=tmp_path / "log").space == first.space


def test_stated_values_keep_their_place_when_ranges_move_on() -> None:
    opt = line(n=6)
    opt.set_space(WIDER, past=PAST)
    opt.set_space({**WIDER, "z": (1.0, 2.0), "k": ["new"]})
    X, _ = opt.observed()
    assert X[:, 1:].tolist() == [[1.0, 0.25]] * 6  # behind the choice that is left, and a quarter of the way to 2
    opt.set_space(WIDER)
    assert (opt.observed()[0][:, 1:] == opt.encode([{"x": 0.0, **PAST}])[:, 1:]).all()


def test_stated_values_of_conditional_parameters_are_those_of_trials_in_which_they_are_active() -> None:
    opt = bo.Optimizer({"k": ["a", "b"], "x": (0.0, 1.0)}, seed=0)
    opt.tell([{"k": k, "x": x} for k in "ab" for x in (0.1, 0.7)], [1.0, 2.0, 3.0, 4.0])
    opt.set_space({"k": ["a", "b"], "x": (0.0, 1.0), "z": bo.Float(0.0, 1.0, when={"k": "b"})}, past={"z": 0.25})
    told = [
        {"k": "a", "x": 0.1},
        {"k": "a", "x": 0.7},
        {"k": "b", "x": 0.1, "z": 0.25},
        {"k": "b", "x": 0.7, "z": 0.25},
    ]
    assert (opt.observed()[0] == opt.encode(told)).all()


def test_a_parameter_of_another_kind_is_new() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "z": 7}, seed=0)
    opt.tell({"x": 0.5, "z": 7}, 1.0)
    opt.set_space({"x": (0.0, 1.0), "z": (0.0, 10.0)}, past={"z": 7.0})
    assert opt.recommend().params == {"x": 0.5, "z": 7.0}


@pytest.mark.parametrize("past", [[1.0], {"x": 0.5}, {"z": "wide"}, {"z": [1]}, {"q": 1.0}])
def test_a_file_with_values_of_the_past_that_do_not_fit_is_refused(past: Any, tmp_path: Path) -> None:
    opt = line(tmp_path / "log", n=1)
    opt.set_space(WIDER, past=PAST)
    file = LogFile(tmp_path / "log")
    with file.transaction() as writer:
        put_space(writer.connection, 1, Described({**file.spaces[1].text, "past": past}))
    with pytest.raises(bo.errors.StateFileError, match="past"):
        bo.Optimizer.open(tmp_path / "log")


@pytest.mark.parametrize(
    ("past", "words"),
    [
        (3, "past: expected a dict of parameters, got int"),
        ({"y": 1.0}, r"past: expected names among 'k', 'w', 'x', 'z', got 'y'"),
        ({"x": 0.5}, r"past: expected parameters that are new in this space \('k', 'w', 'z'\), got 'x'"),
        ({"z": 3.0}, r"'z'.*expected .*got 3.0"),
        ({"k": "none"}, "'k'.*expected one of 'new', 'old'"),
        ({"w": 0.5}, "past: expected a value of 'k' too, since 'w' is conditional on it"),
        ({"w": 0.5, "k": "old"}, "past: expected parameters that can be active together"),
    ],
)
def test_values_of_the_past_that_do_not_belong_to_new_parameters_are_refused(past: Any, words: str) -> None:
    opt = line(n=5)
    before = predicted(opt, [{"x": 0.3}])
    with pytest.raises((bo.errors.ArgumentError, bo.errors.ArgumentTypeError), match=words):
        opt.set_space({**WIDER, "w": bo.Float(0.0, 1.0, when={"k": "new"})}, past=past)
    assert opt.space == bo.Space.parse({"x": (0.0, 1.0)})
    assert predicted(opt, [{"x": 0.3}]).tolist() == before.tolist()


def test_without_stated_values_the_model_assumes_the_middle_and_the_first_choice() -> None:
    opt = line(n=5)
    opt.set_space(WIDER)
    assert (opt.observed()[0][:, 1:] == opt.encode([{"x": 0.0, "k": "new", "z": 1.0}])[:, 1:]).all()


# -- recommendations ---------------------------------------------------------------------------------------------------


def check_recommended(opt: bo.Optimizer) -> dict[str, Any]:
    """The recommended parameters, which can be predicted as they are, told and asked for."""
    best = opt.recommend()
    mean, std = opt.predict(best.params)
    assert (mean[0], std[0]) == (best.mean, best.std)
    queued = opt.enqueue(best.params)
    trial = opt.ask()
    assert (trial.id, trial.params) == (queued.id, best.params)
    return dict(best.params)


@pytest.mark.usefixtures("few_draws")
def test_a_recommended_point_of_the_past_has_the_values_that_are_assumed() -> None:
    opt = line()
    x = opt.recommend().params["x"]
    new = {"n": bo.Int(0, 4), "s": bo.Ordinal(["S", "M", "L"]), "rate": bo.Float(1e-2, 1.0, log=True), "c": "fixed"}
    opt.set_space({**WIDER, **new})
    found = check_recommended(opt)
    assert found == {
        "x": x,
        "k": "new",
        "z": 1.0,
        "n": 2,
        "s": "M",
        "rate": pytest.approx(0.1),
        "c": "fixed",
    }
    assert opt.best_trial.params.keys() == {"x"}
    assert opt.regret_certificate().params == found


def test_values_that_are_assumed_are_those_of_the_space_nearest_to_mid_range() -> None:
    opt = line()
    opt.set_space({"x": (0.0, 1.0), "n": bo.Int(0, 3), "s": bo.Ordinal([1, 2, 4, 8])})
    best = opt.recommend().params
    assert (best["n"] in (1, 2), best["s"] in (2, 4)) == (True, True)
    check_recommended(opt)


def test_an_assumed_choice_brings_the_parameters_under_it() -> None:
    opt = line()
    under = {"a": bo.Float(0.0, 1.0, when={"k": "new"}), "b": bo.Float(0.0, 1.0, when={"k": "old"})}
    opt.set_space({"x": (0.0, 1.0), "k": ["new", "old"], **under})
    assert check_recommended(opt).keys() == {"x", "k", "a"}


def test_points_that_lack_new_parameters_come_before_those_outside_and_behind_those_inside() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
    opt.tell([{"x": i / 10} for i in range(11)], [i / 10 for i in range(11)])
    opt.set_space({"x": (0.45, 1.0), "k": ["a", "b"]})
    assert check_recommended(opt) == {"x": 0.5, "k": "a"}
    assert [point.params for point in opt.recommend_front()] == [{"x": 0.5, "k": "a"}]
    opt.tell({"x": 0.9, "k": "b"}, 5.0)
    assert opt.recommend().params == {"x": 0.9, "k": "b"}
    # Where an earlier trial is taken to have been at the same point, the later one counts.
    opt.tell({"x": 0.5, "k": "a"}, 0.5)
    assert check_recommended(opt) == {"x": 0.5, "k": "a"}
    opt.set_space({"x": (2.0, 3.0), "k": ["a", "b"], "z": (0.0, 1.0)})
    assert opt.recommend().params.keys() == {"x", "k", "z"}  # the best of all, where it was evaluated
    assert opt.recommend().params["x"] < 2.0


def test_a_front_of_the_past_is_completed() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=["minimize", "maximize"], seed=0)
    opt.tell([{"x": i / 4} for i in range(5)], [[i / 4, i / 4] for i in range(5)])
    opt.set_space({"x": (0.0, 1.0), "z": (0.0, 1.0)}, past={"z": 1.0})
    assert [point.params for point in opt.recommend_front()] == [{"x": i / 4, "z": 1.0} for i in range(5)]
    opt.set_space({"x": (0.0, 1.0), "z": (0.0, 1.0), "k": ["a", "b"]})
    front = opt.recommend_front()
    assert [point.params for point in front] == [{"x": i / 4, "z": 1.0, "k": "a"} for i in range(5)]
    means, stds = opt.predict([point.params for point in front])
    assert [(point.means, point.stds) for point in front] == list(
        zip(map(tuple, means.tolist()), map(tuple, stds.tolist()), strict=True)
    )


@pytest.mark.usefixtures("few_draws")
def test_a_recommended_point_of_the_past_has_the_mean_without_the_parameters_that_were_removed() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "z": (0.0, 1.0)}, seed=0)
    points = [{"x": i / 4, "z": j / 4} for i in range(5) for j in range(5)]
    opt.tell(points, [(p["x"] - 0.25) ** 2 + (p["z"] - 1.0) ** 2 for p in points])
    opt.set_space({"x": (0.0, 1.0)})  # z, whose best value is 1, is taken to be 0.5
    assert check_recommended(opt) == {"x": 0.25}
    assert opt.recommend().mean == pytest.approx(0.25, abs=0.05)
    assert opt.regret_certificate().bound > 0.0  # at z = 1 the point were better than all of the space


def test_a_front_of_the_past_has_the_means_without_the_parameters_that_were_removed() -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0), "z": (0.0, 1.0)}, directions=["minimize", "minimize"], seed=0)
    points = [{"x": i / 4, "z": j / 4} for i in range(5) for j in range(5)]
    opt.tell(points, [[(p["x"] - p["z"]) ** 2 + p["z"], 1.0 - p["z"] + p["x"]] for p in points])
    opt.set_space({"x": (0.0, 1.0)})
    front = opt.recommend_front()
    means, stds = opt.predict([point.params for point in front])
    assert [(point.means, point.stds) for point in front] == list(
        zip(map(tuple, means.tolist()), map(tuple, stds.tolist()), strict=True)
    )
    assert not any((mine < other).all() for mine in means for other in means)
