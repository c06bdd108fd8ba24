"""Constraints on parameters as text: the same search as with functions, kept in logs, and changed in all processes."""

import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bkbopt as bo
from bkbopt.errors import ArgumentError, ArgumentTypeError, StateFileError, StorageError
from bkbopt.optimizer.log.log_file import LogFile
from bkbopt.optimizer.log.log_schema import checksum

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0), "kind": ["a", "b"], "z": bo.Float(0.0, 1.0, when={"kind": "b"})}
RULES = ["x + y <= 1", "kind == 'a' or z >= x"]
FRAME = pd.DataFrame({"a": np.linspace(0, 1, 60), "b c": np.arange(60) % 7, "kind": ["u", "v", "w"] * 20})
OF_FRAME = "`b c` <= 4 and kind in ['u', 'v']"


def holds(params: Mapping[str, Any]) -> bool:
    inside: bool = params["x"] + params["y"] <= 1 and (params["kind"] == "a" or params["z"] >= params["x"])
    return inside


def run(opt: bo.Optimizer, n: int, loss: Callable[[Mapping[str, Any]], float]) -> list[dict[str, Any]]:
    trials = []
    for _ in range(n):
        trials.append(opt.ask())
        opt.tell(trials[-1], loss(trials[-1].params))
    return [dict(trial.params) for trial in trials]


def loss(params: Mapping[str, Any]) -> float:
    return float((params.get("x", 0.0) - 0.7) ** 2 + (params.get("y", 0.0) - 0.6) ** 2 + params.get("z", 0.3) ** 2)


def column(params: Mapping[str, Any]) -> float:
    return float((params["a"] - 0.3) ** 2)


def test_rules_give_the_search_of_a_function_with_the_same_answers() -> None:
    by_text = run(bo.Optimizer(SPACE, seed=0, n_startup_trials=5, feasible=RULES), 12, loss)
    assert by_text == run(bo.Optimizer(SPACE, seed=0, n_startup_trials=5, feasible=holds), 12, loss)
    assert all(map(holds, by_text))


def test_rules_of_a_pool_are_about_its_columns() -> None:
    by_text = run(bo.Optimizer(FRAME, seed=0, n_startup_trials=4, feasible=OF_FRAME), 8, column)
    by_function = bo.Optimizer(
        FRAME, seed=0, n_startup_trials=4, feasible=lambda p: p["b c"] <= 4 and p["kind"] in ("u", "v")
    )
    assert by_text == run(by_function, 8, column)


@pytest.mark.parametrize(("rule", "expected"), [("flag", True), ("not flag", False), ("flag in [False]", False)])
def test_columns_of_flags_are_choices(rule: str, expected: bool) -> None:
    table = pd.DataFrame({"flag": [True, False] * 10, "a": np.arange(20.0)})
    opt = bo.Optimizer(table, feasible=rule, seed=0)
    assert {opt.ask().params["flag"] for _ in range(3)} == {expected}
    product = bo.Pool.product({"p": table, "q": [1.0, 2.0]})
    opt = bo.Optimizer(product, feasible=rule.replace("flag", "`p.flag`"), seed=0)
    assert {opt.ask().params["p.flag"] for _ in range(3)} == {expected}


def test_a_log_keeps_its_rules(tmp_path: Path) -> None:
    opt = bo.Optimizer(SPACE, seed=0, n_startup_trials=5, feasible=RULES, storage=tmp_path / "log")
    run(opt, 8, loss)
    for again in (bo.Optimizer.load(tmp_path / "log"), bo.Optimizer.load(tmp_path / "log", feasible=RULES)):
        assert again.options["feasible"] == RULES
        assert again.ask().params == bo.Optimizer.load(tmp_path / "log").ask().params
    same = bo.Optimizer(SPACE, storage=tmp_path / "log")
    assert same.options["feasible"] == RULES
    assert all(map(holds, run(same, 6, loss)))


def test_rules_of_a_table_are_in_its_log(tmp_path: Path) -> None:
    run(bo.Optimizer(FRAME, seed=0, feasible=OF_FRAME, storage=tmp_path / "log"), 3, column)
    opt = bo.Optimizer.open(tmp_path / "log", pool=FRAME)
    assert opt.options["feasible"] == [OF_FRAME]
    assert {row["kind"] for row in run(opt, 12, column)} <= {"u", "v"}


def test_other_rules_than_those_of_a_log_are_refused(tmp_path: Path) -> None:
    bo.Optimizer(SPACE, feasible=RULES, storage=tmp_path / "log")
    bo.Optimizer(SPACE, feasible=holds, storage=tmp_path / "function")
    bo.Optimizer(SPACE, storage=tmp_path / "none")
    with pytest.raises(ArgumentError, match=r"feasible is \[.*\] in the log and \[\"x <= 1\"\] here; set_space"):
        bo.Optimizer(SPACE, feasible="x <= 1", storage=tmp_path / "log")
    with pytest.raises(ArgumentError, match=r"feasible is \[.*\] in the log and a function here"):
        bo.Optimizer(SPACE, feasible=holds, storage=tmp_path / "log")
    with pytest.raises(ArgumentError, match=r"feasible is \[.*\] in the log and none here"):
        bo.Optimizer(SPACE, feasible=[], storage=tmp_path / "log")
    with pytest.raises(ArgumentError, match=r"feasible is a function in the log and \[\"x <= 1\"\] here"):
        bo.Optimizer(SPACE, feasible="x <= 1", storage=tmp_path / "function")
    for name, made_with in (("log", r"\['x \+ y"), ("function", "a function"), ("none", "none")):
        with pytest.raises(ArgumentError, match=rf"feasible: expected what the log was made with \({made_with}.* text"):
            bo.Optimizer.open(tmp_path / name, feasible="x <= 1")
    with pytest.raises(ArgumentError, match="got a function; leave rules out"):
        bo.Optimizer.open(tmp_path / "log", feasible=holds)


@pytest.mark.parametrize("with_file", [False, True])
def test_set_space_checks_the_rules_and_takes_others(with_file: bool, tmp_path: Path) -> None:
    opt = bo.Optimizer(SPACE, seed=0, feasible=RULES, storage=tmp_path / "log" if with_file else None)
    run(opt, 3, loss)
    with pytest.raises(ArgumentError, match=r"not 'y', got the rule 'x \+ y <= 1'\. Pass feasible= with"):
        opt.set_space({"x": (0.0, 1.0), "kind": ["a"]})
    assert list(opt.space.names) == list(SPACE)
    assert opt.options["feasible"] == RULES
    opt.set_space({**SPACE, "y": (0.0, 0.5)})
    assert opt.options["feasible"] == RULES
    opt.set_space({"x": (0.0, 1.0), "w": (0.0, 1.0)}, feasible="w <= x")
    assert all(point["w"] <= point["x"] for point in run(opt, 6, loss))
    opt.set_space(opt.space, feasible=lambda p: p["w"] > p["x"])
    assert opt.options["feasible"] is True
    assert all(point["w"] > point["x"] for point in run(opt, 4, loss))
    opt.set_space(opt.space, feasible=[])
    assert opt.options["feasible"] is False


def test_set_pool_keeps_the_rules_or_takes_others() -> None:
    opt = bo.Optimizer(FRAME, seed=0, feasible=OF_FRAME)
    opt.set_pool(FRAME[:40])
    assert {row["kind"] for row in run(opt, 8, column)} <= {"u", "v"}
    opt.set_pool(FRAME, feasible="kind == 'w'")
    assert {row["kind"] for row in run(opt, 4, column)} == {"w"}


def test_other_processes_follow_the_rules_of_the_log(tmp_path: Path) -> None:
    one = bo.Optimizer(SPACE, seed=0, feasible=RULES, storage=tmp_path / "log")
    other = bo.Optimizer.open(tmp_path / "log")
    one.set_space(SPACE, feasible="x >= 0.9")
    assert all(point["x"] >= 0.9 for point in run(other, 3, loss))
    one.set_space({"x": (0.0, 1.0), "v": (0.0, 1.0)}, feasible="v >= 0.8")
    assert all(point["v"] >= 0.8 for point in run(other, 3, loss))
    assert other.options["feasible"] == ["v >= 0.8"]
    one.set_space(one.space, feasible=lambda p: p["v"] < 0.1)
    with pytest.raises(ArgumentError, match="the function that another process has set in place of rules"):
        other.ask()
    assert bo.Optimizer.open(tmp_path / "log", feasible=lambda p: p["v"] < 0.1).ask().params["v"] < 0.1
    one.set_space(one.space, feasible="v <= 0.5")
    assert other.ask().params["v"] <= 0.5


def before_next_transaction(monkeypatch: pytest.MonkeyPatch, call: Callable[[], None]) -> None:
    """Make a call of another process just before the next write to a log."""
    begin = LogFile.transaction

    def racing(file: LogFile) -> Any:
        monkeypatch.setattr(LogFile, "transaction", begin)
        call()
        return begin(file)

    monkeypatch.setattr(LogFile, "transaction", racing)


def test_rules_that_are_set_during_another_call_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = bo.Optimizer(SPACE, seed=0, feasible=RULES, storage=tmp_path / "log")
    other = bo.Optimizer.open(tmp_path / "log")
    before_next_transaction(monkeypatch, lambda: one.set_space(SPACE, feasible="y <= 0.25"))
    other.set_space({"x": (0.0, 3.0), "y": (0.0, 1.0)})
    for opt in (one, other, bo.Optimizer.open(tmp_path / "log")):
        assert opt.options["feasible"] == ["y <= 0.25"]


def test_a_function_of_one_process_does_not_become_that_of_the_log_with_a_space(tmp_path: Path) -> None:
    one = bo.Optimizer(SPACE, seed=0, storage=tmp_path / "log")
    other = bo.Optimizer.open(tmp_path / "log", feasible=lambda p: p["x"] < 0.5)
    other.set_space({"x": (0.0, 2.0)})
    assert other.ask().params["x"] < 0.5
    assert one.ask().params["x"] >= 0.0
    assert other.options["feasible"] is True
    assert one.options["feasible"] is False


@pytest.mark.parametrize("kept", [RULES, lambda p: p["x"] < 0.5, None])
@pytest.mark.parametrize("given", ["x > 0.5", lambda p: p["x"] > 0.5, []])
def test_a_refused_change_leaves_the_constraint(
    kept: Any, given: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt = bo.Optimizer(SPACE, seed=0, feasible=kept, storage=tmp_path / "log")
    before = opt.options["feasible"]

    def refused(*_: Any) -> None:
        raise StorageError("storage: the disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(LogFile, "_commit", refused)
        with pytest.raises(StorageError):
            opt.set_space({"x": (0.0, 2.0)}, feasible=given)
    assert opt.options["feasible"] == before
    assert kept is None or all((kept if callable(kept) else holds)(point) for point in run(opt, 4, loss))
    with monkeypatch.context() as patch:
        patch.setattr(LogFile, "_commit", refused)
        with pytest.raises(StorageError):
            opt.set_space({"x": (0.0, 2.0)}, feasible=given)
    bo.Optimizer.open(tmp_path / "log", feasible=kept).set_space({"x": (0.0, 3.0)}, feasible=lambda p: p["x"] < 0.1)
    if callable(kept):  # a log knows that there is a function, not which
        assert opt.ask().params["x"] < 0.5
    else:
        with pytest.raises(ArgumentError, match="another process has set"):
            opt.ask()


def test_a_process_without_the_function_that_another_one_has_set_may_tell_and_set_another(tmp_path: Path) -> None:
    one = bo.Optimizer(SPACE, seed=0, feasible=RULES, storage=tmp_path / "log")
    other = bo.Optimizer.open(tmp_path / "log")
    trial = other.ask()
    one.set_space(SPACE, feasible=lambda p: p["x"] < 0.1)
    other.tell(trial, 1.0)
    assert other.best_trial.values == (1.0,)
    assert other.options["feasible"] is True
    with pytest.raises(ArgumentError, match="another process has set"):
        other.ask()
    other.set_space(SPACE, feasible=lambda p: p["x"] < 0.1)
    assert other.ask().params["x"] < 0.1
    one.set_space(SPACE, feasible=[])
    assert other.options["feasible"] is False


def test_rules_are_read_again_for_the_choices_of_the_space_of_another_process(tmp_path: Path) -> None:
    one = bo.Optimizer({"m": [1, "a"], "x": (0.0, 1.0)}, seed=0, feasible="m == 1", storage=tmp_path / "log")
    other = bo.Optimizer.open(tmp_path / "log")
    one.set_space({"m": bo.Categorical([1.0, 2.0]), "x": (0.0, 1.0)})
    assert [opt.ask().params["m"] for opt in (one, other)] == [1.0, 1.0]


def test_the_rules_of_a_log_are_not_given_up_for_the_function_of_a_product(tmp_path: Path) -> None:
    parts = {"a": [1.0, 2.0], "b": [1.0, 2.0]}
    bo.Optimizer(bo.Pool.product(parts), feasible="a < 2", storage=tmp_path / "log")
    product = bo.Pool.product(parts, feasible=lambda p: p["b"] < 2)
    with pytest.raises(ArgumentError, match="expected a product without a function, since the log has rules"):
        bo.Optimizer.open(tmp_path / "log", pool=product)


@pytest.mark.parametrize(
    ("kept", "given"), [("x <= 0.5", (" x <= 0.5 ",)), (" x <= 0.5", " x <= 0.5"), (["x <= 0.5"], "x <= 0.5"), ([], [])]
)
def test_the_rules_of_a_log_may_be_given_in_any_form(kept: Any, given: Any, tmp_path: Path) -> None:
    made = bo.Optimizer(SPACE, feasible=kept, storage=tmp_path / "log")
    for opt in (made, bo.Optimizer.open(tmp_path / "log", feasible=given)):
        assert opt.options["feasible"] == (["x <= 0.5"] if kept else False)


def test_an_earlier_space_of_the_log_may_be_given_with_rules_about_the_last_one(tmp_path: Path) -> None:
    opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0, storage=tmp_path / "log")
    opt.set_space({"x": (0.0, 1.0), "y": (0.0, 1.0)}, feasible="y >= 0.9")
    assert bo.Optimizer({"x": (0.0, 1.0)}, storage=tmp_path / "log").ask().params["y"] >= 0.9


@pytest.mark.parametrize("kept", [[], ["x <= "], ["q <= 1"], [1], "x <= 1", None, 1])
def test_a_log_with_invalid_rules_is_refused(kept: Any, tmp_path: Path) -> None:
    bo.Optimizer(SPACE, feasible=RULES, storage=tmp_path / "log")
    with sqlite3.connect(tmp_path / "log") as connection:
        cells = ("feasible", json.dumps(kept))
        connection.execute(
            "UPDATE options SET value = ?, checksum = ? WHERE name = ?", (cells[1], checksum(cells), cells[0])
        )
    with pytest.raises(StateFileError, match=r"feasible=|invalid rules"):
        bo.Optimizer.open(tmp_path / "log")


def test_one_objective_of_several_has_the_rules() -> None:
    opt = bo.Optimizer(SPACE, directions=["minimize", "minimize"], seed=0, feasible=RULES)
    for _ in range(4):
        trial = opt.ask()
        opt.tell(trial, [loss(trial.params), 1.0])
    assert opt.single_objective(0).options["feasible"] == RULES


def test_queued_points_wait_while_the_rules_refuse_them() -> None:
    opt = bo.Optimizer(SPACE, seed=0)
    opt.enqueue({"x": 0.9, "y": 0.9, "kind": "a"})
    opt.enqueue({"x": 0.9, "kind": "a"})
    opt.set_space(SPACE, feasible="x <= 0.5")
    assert opt.ask().params["x"] <= 0.5
    assert [trial.state for trial in opt.trials] == ["WAITING", "WAITING", "RUNNING"]
    opt.set_space(SPACE, feasible=[])
    assert [trial.params["x"] for trial in opt.ask(2)] == [0.9, 0.9]


def test_rules_that_are_set_while_another_process_asks_hold_for_its_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = bo.Optimizer(SPACE, seed=0, storage=tmp_path / "log")
    other = bo.Optimizer.open(tmp_path / "log")
    before_next_transaction(monkeypatch, lambda: one.set_space(SPACE, feasible="x >= 0.99"))
    assert other.ask().params["x"] >= 0.99


def test_infeasible_points_are_not_queued() -> None:
    opt = bo.Optimizer(SPACE, feasible=RULES)
    with pytest.raises(ArgumentError, match="expected a feasible point"):
        opt.enqueue({"x": 0.9, "y": 0.9, "kind": "a"})


def test_what_is_neither_text_nor_a_function_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match=r"feasible: expected a callable .* or text as 'x \+ y <= 1'"):
        bo.Optimizer(SPACE, feasible=3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match=r"a list of such text, got \['x <= 1', 2\] of type list"):
        bo.Optimizer(SPACE, feasible=["x <= 1", 2])  # type: ignore[list-item]
    for empty in ("", " "):
        with pytest.raises(ArgumentError, match="expected a comparison"):
            bo.Optimizer(SPACE, feasible=empty)
    with pytest.raises(ArgumentError, match="this search has none with names"):
        bo.Optimizer(
            [object(), object()], feasible="x <= 1", surrogate=bo.BKB(lambda A, B: np.eye(len(A), len(B)), 0.1)
        )


def test_rules_beside_the_function_of_a_product_are_refused() -> None:
    product = bo.Pool.product({"a": [1.0, 2.0], "b": [1.0, 2.0]}, feasible=lambda p: p["a"] < 2)
    with pytest.raises(ArgumentError, match="expected a function, since the product has one"):
        bo.Optimizer(product, feasible="b < 2")
    opt = bo.Optimizer(bo.Pool.product({"a": [1.0, 2.0], "b": [1.0, 2.0]}), feasible="b < 2 and a < 2", seed=0)
    assert opt.ask().params == {"a": 1.0, "b": 1.0}
