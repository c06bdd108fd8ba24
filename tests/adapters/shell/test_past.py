"""Past data from a CSV file: what is told, and what is refused with its line and column."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bkbopt as bo
from tests.adapters.shell.calls import call, refused

HEAD = "rate,width,kind,level,value"


@pytest.fixture
def past(tmp_path: Path) -> Callable[..., str]:
    def write(*lines: str, head: str = HEAD) -> str:
        (tmp_path / "past.csv").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8-sig")
        return str(tmp_path / "past.csv")

    return write


def test_every_line_is_a_trial(state: str, past: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    path = past("0.1,16,fast,1,0.5,Ada", "", "1e-2,32.0,slow,true,-2,Bob", head=HEAD + ",who")
    (told,) = call(capsys, "tell", state, "--from", path)
    assert told == {"from": path, "complete": 2, "failed": 0, "told_before": 0, "ignored_columns": ["who"]}
    trials = bo.Optimizer.load(state).trials
    assert [trial.value for trial in trials] == [0.5, -2.0]
    assert dict(trials[1].params) == {"rate": 0.01, "width": 32, "kind": "slow", "level": True, "threads": 4}
    assert [type(trial.params["level"]) for trial in trials] == [int, bool]


def test_a_table_that_has_grown_is_told_from_where_it_has(
    state: str, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["0.1,16,fast,1,0.5,COMPLETE", "0.1,16,fast,1,0.5,COMPLETE", "1e-2,32,slow,true,,FAIL"]
    head = HEAD + ",state"
    (first,) = call(capsys, "tell", state, "--from", past(*lines, head=head))
    assert (first["complete"], first["failed"], first["told_before"]) == (2, 1, 0)
    # Another value of the same point is no line that was told before, nor is the third of three equal lines.
    lines += ["0.1,16.0,fast,1,0.6,COMPLETE", "1e-1,16,fast,1,0.50,COMPLETE"]
    (told,) = call(capsys, "tell", state, "--from", past(*lines, head=head))
    assert (told["complete"], told["failed"], told["told_before"]) == (2, 0, 3)
    assert [trial.value for trial in bo.Optimizer.load(state).trials] == [0.5, 0.5, None, 0.6, 0.5]
    (again,) = call(capsys, "tell", state, "--from", past(*lines, head=head), "--again")
    assert (again["complete"], again["failed"], again["told_before"]) == (4, 1, 0)


def test_rows_of_a_pool_are_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool, data, search = tmp_path / "pool.csv", tmp_path / "data.csv", tmp_path / "search.db"
    rows = pd.DataFrame({"name": ["a", "b", "c"], "x": [0.1, 0.2, 0.2]})
    rows.to_csv(pool, index=False)
    bo.Optimizer(bo.Pool(rows, id_column="name"), storage=search)
    pd.DataFrame({"name": ["a", "c"], "value": [1.5, 2.5]}).to_csv(data, index=False)
    for before in (0, 2):
        (told,) = call(capsys, "tell", search, "--from", data, "--pool", pool)
        assert (told["complete"], told["told_before"]) == (2 - before, before)


def test_values_may_have_a_column_of_any_name_and_a_known_noise(
    state: str, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = past("0.1,16,fast,1,0.5,0.1", head="rate,width,kind,level,score,std")
    call(capsys, "tell", state, "--from", path, "--value", "score")
    (trial,) = bo.Optimizer.load(state).trials
    assert (trial.value, trial.stds) == (0.5, (0.1,))


def test_a_known_noise_may_be_missing_in_some_lines(
    state: str, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = past("0.1,16,fast,1,0.5,0.1", "0.2,16,fast,1,0.6,", head="rate,width,kind,level,value,std")
    call(capsys, "tell", state, "--from", path)
    assert [trial.stds for trial in bo.Optimizer.load(state).trials] == [(0.1,), None]


def test_names_that_begin_or_end_with_a_blank_survive_an_exported_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space = {"x": (0.0, 1.0), "x ": (0.0, 1.0), " x": (0.0, 1.0), "n\n": ["a ", "b"]}
    opt, again = (bo.Optimizer(space, constraints=["c", "c "], storage=tmp_path / f"{name}.db") for name in "ab")
    for trial in opt.ask(3):
        opt.tell(trial, float(trial.id), constraints={"c": -1.0, "c ": float(trial.id)})
    call(capsys, "export", tmp_path / "a.db", tmp_path / "a.csv")
    (told,) = call(capsys, "tell", tmp_path / "b.db", "--from", tmp_path / "a.csv")
    assert told["ignored_columns"] == []
    for one, other in zip(opt.trials, again.trials, strict=True):
        assert (one.params, one.values, one.constraints) == (other.params, other.values, other.constraints)


def test_names_of_rows_of_a_pool_may_end_with_a_blank_too(
    tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.DataFrame({"id ": ["a", "b"], "dose ": [1.0, 2.0]})
    bo.Optimizer(bo.Pool(frame, id_column="id "), storage=tmp_path / "run.db")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    command = ("tell", tmp_path / "run.db", "--pool", tmp_path / "rows.csv", "--from")
    call(capsys, *command, past("2.0,1", head="dose , loss "), "--value", "loss")
    call(capsys, *command, past("a,1", head="id , loss "), "--value", " loss ")
    assert [trial.label for trial in bo.Optimizer.load(tmp_path / "run.db", pool=frame).trials] == ["b", "a"]


def test_truth_values_may_be_written_as_spreadsheets_do(
    tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    bo.Optimizer({"flag": [True, False], "word": ["TRUE", "no"]}, storage=tmp_path / "run.db")
    call(capsys, "tell", tmp_path / "run.db", "--from", past("TRUE,TRUE,1", "False,no,2", head="flag,word,value"))
    trials = bo.Optimizer.load(tmp_path / "run.db").trials
    assert [dict(trial.params) for trial in trials] == [{"flag": True, "word": "TRUE"}, {"flag": False, "word": "no"}]


def test_a_cell_that_is_the_text_of_two_choices_is_refused(
    tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    bo.Optimizer({"m": [3, "3", "a"]}, storage=tmp_path / "run.db")
    path = past("a,1", "3,1", head="m,value")
    text = refused(capsys, "tell", tmp_path / "run.db", "--from", path)
    assert "line 3, column 'm': expected text of one choice, since that of [3, '3'] is the same, got '3'" in text
    assert not bo.Optimizer.load(tmp_path / "run.db").trials


def test_an_exported_table_is_told_as_it_was(state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        call(capsys, "ask", state)
    call(capsys, "tell", state, 0, 0.5)
    call(capsys, "fail", state, 1)
    call(capsys, "export", state, tmp_path / "out.csv")
    call(capsys, "init", tmp_path / "space.toml", tmp_path / "other")
    (told,) = call(capsys, "tell", tmp_path / "other", "--from", tmp_path / "out.csv")
    assert (told["complete"], told["failed"], told["ignored_columns"]) == (1, 1, [])
    before, after = (bo.Optimizer.load(path).trials for path in (state, tmp_path / "other"))
    assert [(dict(t.params), t.values, t.state) for t in after] == [
        (dict(t.params), t.values, t.state) for t in before if t.state != "RUNNING"
    ]


def test_attributes_of_an_exported_table_are_told_too(
    state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cells have no types: text that is a number is one then."""
    opt = bo.Optimizer.open(state)
    first, second, third = opt.ask(3)
    opt.tell(first, 0.5, user_attrs={"n": 3, "note": "a, b", "scores": [1.0, 2.5], "flag": True, "text": "7"})
    opt.fail(second, user_attrs={"error": "oom"})
    opt.tell(third, 0.25)
    call(capsys, "export", state, tmp_path / "out.csv")
    call(capsys, "init", tmp_path / "space.toml", tmp_path / "other")
    (told,) = call(capsys, "tell", tmp_path / "other", "--from", tmp_path / "out.csv")
    assert told["ignored_columns"] == []
    flat = {"n": 3, "note": "a, b", "scores": [1.0, 2.5], "flag": True, "text": 7}
    assert [dict(trial.user_attrs) for trial in bo.Optimizer.load(tmp_path / "other").trials] == [
        flat,
        {"error": "oom"},
        {},
    ]


def test_a_column_that_is_read_as_something_else_is_no_attribute(
    tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    bo.Optimizer({"user_attrs_a": (0.0, 1.0)}, storage=log, seed=0)
    file = past("0.5,2.0,3", head="user_attrs_a,user_attrs_b,user_attrs_c")
    call(capsys, "tell", log, "--from", file, "--value", "user_attrs_b")
    (trial,) = bo.Optimizer.load(log).trials
    assert (trial.params, trial.value, trial.user_attrs) == ({"user_attrs_a": 0.5}, 2.0, {"c": 3})


@pytest.mark.parametrize("end", ["COMPLETE", "FAIL"])
def test_an_attribute_that_no_log_can_hold_is_refused_with_its_line(
    end: str, state: str, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"0.1,16,fast,1,0.5,{end},1", f'0.2,16,fast,1,0.5,{end},"[{{""float"":""nan""}}]"']
    text = refused(capsys, "tell", state, "--from", past(*lines, head=HEAD + ",state,user_attrs_a"))
    assert "line 3: user_attrs: expected numbers" in text
    assert "for 'a'" in text
    assert not bo.Optimizer.load(state).trials


def test_conditional_parameters_constraints_and_several_objectives_have_their_columns(
    tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("botorch")
    (tmp_path / "space.toml").write_text(
        'directions = ["minimize", "maximize"]\nconstraints = ["heat"]\n[space]\nkind = ["a", "b"]\n'
        'x = { type = "float", low = 0, high = 1, when = { kind = "b" } }\n'
    )
    log = tmp_path / "log"
    call(capsys, "init", tmp_path / "space.toml", log)
    call(capsys, "tell", log, "--from", past("a,,1,2,-1", "b,0.5,3,4,1", head="kind,x,values_0,values_1,heat"))
    trials = bo.Optimizer.load(log).trials
    assert [dict(trial.params) for trial in trials] == [{"kind": "a"}, {"kind": "b", "x": 0.5}]
    assert [(trial.values, trial.is_feasible) for trial in trials] == [((1.0, 2.0), True), ((3.0, 4.0), False)]


def test_an_empty_cell_is_the_choice_none_where_its_parameter_is_active(
    tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    space = {"kind": ["forest", "line"], "features": bo.Categorical(["sqrt", None], when={"kind": "forest"})}
    log = tmp_path / "log"
    bo.Optimizer(space, storage=log, seed=0)
    points = [{"kind": "forest", "features": None}, {"kind": "line"}, {"kind": "forest", "features": "sqrt"}]
    call(capsys, "tell", log, "--from", past("forest,,1", "line,,2", "forest,sqrt,3", head="kind,features,value"))
    assert [dict(trial.params) for trial in bo.Optimizer.load(log).trials] == points


def test_blanks_may_be_part_of_a_choice(
    tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    space, log = {"mark": [" ", "a", " a"], "x": (0.0, 1.0)}, tmp_path / "log"
    bo.Optimizer(space, storage=log, seed=0)
    points = [{"mark": " ", "x": 0.1}, {"mark": " a", "x": 0.2}, {"mark": "a", "x": 0.3}, {"mark": "a", "x": 0.4}]
    call(capsys, "tell", log, "--from", past(" ,0.1,1", " a,0.2,2", "a, 0.3 ,3", " a ,0.4, 4 ", head="mark,x,value"))
    assert [dict(trial.params) for trial in bo.Optimizer.load(log).trials] == points
    call(capsys, "export", log, tmp_path / "out.csv")
    bo.Optimizer(space, storage=tmp_path / "other", seed=0)
    call(capsys, "tell", tmp_path / "other", "--from", tmp_path / "out.csv")
    assert [dict(trial.params) for trial in bo.Optimizer.load(tmp_path / "other").trials] == points


def test_an_empty_cell_is_the_choice_of_no_text_where_its_parameter_is_active(
    tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    space = {"kind": ["forest", "line"], "mode": bo.Categorical(["", "wide"], when={"kind": "forest"})}
    log = tmp_path / "log"
    bo.Optimizer(space, storage=log, seed=0)
    points = [{"kind": "forest", "mode": ""}, {"kind": "line"}, {"kind": "forest", "mode": "wide"}]
    call(capsys, "tell", log, "--from", past("forest,,1", "line,,2", "forest,wide,3", head="kind,mode,value"))
    assert [dict(trial.params) for trial in bo.Optimizer.load(log).trials] == points


LIMITED = {"x": (0.0, 1.0)}


def test_a_line_may_have_values_of_constraints_only_or_of_some_of_them(
    tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    bo.Optimizer(LIMITED, constraints=["heat", "weight"], storage=tmp_path / "log", seed=0)
    path = past("0.1,,-1,-2", "0.2,3,-1,", "0.3,4,,", "0.4,5,1,2", "0.5,,,2", head="x,value,heat,weight")
    (told,) = call(capsys, "tell", tmp_path / "log", "--from", path)
    assert (told["complete"], told["failed"]) == (5, 0)
    trials = bo.Optimizer.load(tmp_path / "log").trials
    assert [(trial.params["x"], trial.value, dict(trial.constraints)) for trial in trials] == [
        (0.1, None, {"heat": -1.0, "weight": -2.0}),
        (0.2, 3.0, {"heat": -1.0}),
        (0.3, 4.0, {}),
        (0.4, 5.0, {"heat": 1.0, "weight": 2.0}),
        (0.5, None, {"weight": 2.0}),
    ]


def test_an_exported_table_with_constraints_is_told_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opt = bo.Optimizer(LIMITED, constraints=["heat"], storage=tmp_path / "log", seed=0)
    opt.tell({"x": 0.1}, 1.0, constraints={"heat": 0.5}, std=0.1)
    opt.tell({"x": 0.2}, constraints={"heat": -0.5})
    opt.tell({"x": 0.3}, 2.0)
    opt.fail(opt.ask())
    call(capsys, "export", tmp_path / "log", tmp_path / "out.csv")
    again = bo.Optimizer(LIMITED, constraints=["heat"], storage=tmp_path / "other", seed=0)
    call(capsys, "tell", tmp_path / "other", "--from", tmp_path / "out.csv")
    assert [(t.params, t.values, t.constraints, t.stds, t.state) for t in again.trials] == [
        (t.params, t.values, t.constraints, t.stds, t.state) for t in opt.trials
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0.2,,,", "line 3, column 'value': expected a finite number .*, got an empty cell"),
        ("0.2,,hot,", "line 3, column 'heat': expected a finite number .*, got 'hot'"),
        ("0.2,1" + "0" * 400 + ",1,", "line 3, column 'value': expected a finite number"),
        ("0.2,1,-1,-0.5", "line 3: std: expected finite standard deviations >= 0"),
        ("0.2,,-1,0.5", "line 3: std: expected one for each of 0 values"),
    ],
)
def test_a_line_that_is_no_outcome_is_refused_and_none_is_told(
    line: str, message: str, tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    bo.Optimizer(LIMITED, constraints=["heat"], storage=tmp_path / "log", seed=0)
    path = past("0.1,,1,", line, head="x,value,heat,std")
    assert re.search(message, refused(capsys, "tell", tmp_path / "log", "--from", path))
    assert not bo.Optimizer.load(tmp_path / "log").trials


def test_a_known_noise_is_refused_with_an_online_learner(
    tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    bo.Optimizer(LIMITED, surrogate="pkawv", storage=tmp_path / "log", seed=0)
    path = past("0.1,1,0.5", head="x,value,std")
    error = refused(capsys, "tell", tmp_path / "log", "--from", path)
    assert "std: an online learner gives all values the same weight" in error
    assert not bo.Optimizer.load(tmp_path / "log").trials


def test_rows_of_a_pool_are_told_by_their_columns(
    tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    bo.Optimizer([[0.0, 0.0], [0.5, 2.0], [1.0, 3.0]], storage=tmp_path / "log", seed=0)
    call(capsys, "tell", tmp_path / "log", "--from", past("0.5,2,7", head="x0,x1,value"))
    assert [(trial.index, trial.value) for trial in bo.Optimizer.load(tmp_path / "log").trials] == [(1, 7.0)]


def test_rows_of_a_pool_may_be_told_by_their_numbers_only(
    tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    bo.Optimizer([[0.0, 0.0], [0.5, 2.0], [1.0, 3.0]], storage=log, seed=0)
    path = past("2,7,COMPLETE", "0,,FAIL", head="index,value,state")
    assert call(capsys, "tell", log, "--from", path) == [
        {"from": path, "complete": 1, "failed": 1, "told_before": 0, "ignored_columns": []}
    ]
    assert [(trial.index, trial.value) for trial in bo.Optimizer.load(log).trials] == [(2, 7.0), (0, None)]
    for cell in ("3", "x", "1.5"):
        text = refused(capsys, "tell", log, "--from", past("1,5", f"{cell},7", head="index,value"))
        assert "line 3: index: expected a row number from 0 to 2" in text
    assert len(bo.Optimizer.load(log).trials) == 2


def test_rows_of_a_table_are_told_by_their_names_only(
    tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.DataFrame({"well": ["A1", "A2", "A3"], "dose": [0.1, 0.5, 0.9]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    bo.Optimizer(bo.Pool(frame, id_column="well"), storage=tmp_path / "log", seed=0)
    path = past("A3,7,x", "A1,6,y", head="well,value,who")
    (told,) = call(capsys, "tell", tmp_path / "log", "--from", path, "--pool", tmp_path / "rows.csv")
    assert told == {"from": path, "complete": 2, "failed": 0, "told_before": 0, "ignored_columns": ["who"]}
    trials = bo.Optimizer.load(tmp_path / "log", pool=frame).trials
    assert [(trial.label, trial.value) for trial in trials] == [("A3", 7.0), ("A1", 6.0)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,0.5,1", "line 3: params: expected nothing for 'x', got 0.5 (it is active where 'kind' is 'b'"),
        ("b,,1", "line 3: params: expected values for 'kind', 'x', got nothing for 'x'"),
        ("c,,1", "line 3: parameter 'kind': expected one of 'a', 'b'"),
        ("b,2,1", "line 3: parameter 'x': expected a number"),
    ],
)
def test_the_only_place_in_an_error_is_the_line(
    line: str, message: str, tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    space: dict[str, Any] = {"kind": ["a", "b"], "x": bo.Float(0.0, 1.0, when={"kind": "b"})}
    bo.Optimizer(space, storage=tmp_path / "log", seed=0)
    text = refused(capsys, "tell", tmp_path / "log", "--from", past("a,,1", line, head="kind,x,value"))
    assert message in text
    assert "row" not in text


def test_the_only_place_in_an_error_is_the_line_of_a_pool_too(
    tmp_path: Path, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    bo.Optimizer([[0.0, 0.0], [0.5, 2.0], [1.0, 3.0]], storage=tmp_path / "log", seed=0)
    for line, message in (
        ("0.5,,7", "line 3: params: expected the columns ('x0', 'x1'), got nothing for 'x1'."),
        ("0.5,q,7", "line 3: params: 'x1': expected a finite number, got 'q'"),
    ):
        text = refused(capsys, "tell", tmp_path / "log", "--from", past("0,0,1", line, head="x0,x1,value"))
        assert message in text
        assert "row" not in text


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolons"), ("\t", "tabs")])
def test_a_table_with_another_separator_is_refused(
    mark: str, name: str, state: str, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = past("0,1;16;fast;1;0,5".replace(";", mark), head=HEAD.replace(",", mark))
    text = refused(capsys, "tell", state, "--from", path)
    assert f"expected cells separated by commas, got {name}; save it with commas" in text


@pytest.mark.parametrize(
    ("lines", "head", "message"),
    [
        (["0.1,16,fast,1,x"], HEAD, "line 3, column 'value': expected a finite number .*, got 'x'"),
        (["0.1,16,fast,1,"], HEAD, "line 3, column 'value': expected a finite number .*, got an empty cell"),
        (["0.1,16,fast,1,inf"], HEAD, "line 3, column 'value': expected a finite number .*, got 'inf'"),
        (["0.1,16,fast,1,1_000"], HEAD, "line 3, column 'value': expected a finite number .*, got '1_000'"),
        (["0.1,16,fast,1,2,nan"], HEAD + ",std", "column 'std': expected a finite number .or an empty cell, "),
        (["7,16,fast,1,2"], HEAD, r"line 3: parameter 'rate': expected a number in \[0.001, 1.0\], got 7"),
        (["high,16,fast,1,2"], HEAD, "line 3: parameter 'rate': expected a number .*, got 'high'"),
        (["0.1,16,medium,1,2"], HEAD, "line 3: parameter 'kind': expected one of 'fast', 'slow' .*, got 'medium'"),
        (["0.1,,fast,1,2"], HEAD, "line 3: .*nothing for 'width'"),
        (["0.1,16,fast,1"], HEAD, "line 3: expected as many cells, .* as the first line has names, 5, got 4"),
        (["0.1,16,fast,1,2,DONE"], HEAD + ",state", "line 3, column 'state': expected COMPLETE, .*, got 'DONE'"),
        (
            ["0.1,16,fast,1,2"],
            "rate,width,kin,level,value",
            "expected a column for each parameter, got none for 'kind'",
        ),
        (["0.1,16,fast,1,2"], "rate,width,kind,level,loss", "expected a column 'value' .*name yours by --value"),
        (["0.1,16,fast,1,2"], "rate,rate,kind,level,value", "expected a line of distinct column names"),
        ([], HEAD, None),
    ],
)
def test_a_line_that_is_refused_is_named_and_none_is_told(
    lines: list[str],
    head: str,
    message: str | None,
    state: str,
    past: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    good = "0.2,32,slow,2.5,1" + {"state": ",COMPLETE", "std": ","}.get(head.rpartition(",")[2], "")
    path = past(good, *lines, head=head) if message else past(head=head)
    before = Path(state).read_bytes()
    text = refused(capsys, "tell", state, "--from", path)
    assert re.search(message or "distinct column names and lines of data, .* and no line of data", text)
    assert path in text
    assert Path(state).read_bytes() == before


def test_a_file_stands_alone_on_the_command_line(
    state: str, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = past("0.1,16,fast,1,0.5")
    for more in (["0", "1"], ["--params", "{}"], ["--constraint", "a=1"], ["--std", "1"], ["--replace"]):
        assert "--from: expected no other option than --value" in refused(capsys, "tell", state, "--from", path, *more)
    assert "--value: expected only with --from" in refused(capsys, "tell", state, "0", "1", "--value", "loss")
    names = ["--value", "value", "--value", "rate"]
    assert "--value: expected 1, one for each objective" in refused(capsys, "tell", state, "--from", path, *names)
    assert "No such file" in refused(capsys, "tell", state, "--from", path + "x")


def test_a_file_that_is_no_text_is_refused(state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "past.csv").write_bytes(b"rate,value\n\xff\xfe,1\n")
    text = refused(capsys, "tell", state, "--from", tmp_path / "past.csv")
    assert "expected a CSV file in UTF-8" in text
    assert "; save it as UTF-8." in text
    (tmp_path / "past.csv").write_text('rate,value\n"0.1,1\n' + "0.1,1\n" * 30_000)
    text = refused(capsys, "tell", state, "--from", tmp_path / "past.csv")
    assert re.search(r"line \d+: expected the cells of a CSV file, got field larger than .*; check its quotes\.", text)


def test_plates_come_back_with_rounded_numbers_or_by_id(
    state: str, past: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row["params"] for row in call(capsys, "ask", state, "-n", 6)]
    cells = [[f"{v:.3g}" if isinstance(v, float) else str(v).lower() for v in row.values()] for row in rows]
    head = ",".join(rows[0])
    lines = [",".join([*row, str(i)]) for i, row in enumerate(cells)]
    path = past(*lines[:3], head=f"{head},value")
    assert call(capsys, "tell", state, "--from", path)[0]["complete"] == 3
    assert call(capsys, "tell", state, "--from", path)[0]["told_before"] == 3
    path = past("5,5.0", "3,3.0", "4,4.0", head="id,value")
    assert call(capsys, "tell", state, "--from", path)[0]["complete"] == 3
    assert call(capsys, "tell", state, "--from", path)[0]["told_before"] == 3
    trials = bo.Optimizer.load(state).trials
    assert [(trial.state, trial.value) for trial in trials] == [("COMPLETE", float(i)) for i in range(6)]
    assert [dict(trial.params) for trial in trials] == rows


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("A-1,1.0", "line 2, column 'id': expected the id of a trial, a whole number, got 'A-1'"),
        (",1.0", "line 2, column 'id': expected the id of a trial, a whole number, got an empty cell"),
        ("7,1.0", "expected the id of a trial"),
    ],
)
def test_ids_that_are_none_are_refused(
    state: str, past: Callable[..., str], capsys: pytest.CaptureFixture[str], line: str, message: str
) -> None:
    assert message in refused(capsys, "tell", state, "--from", past(line, head="id,value"))
    assert len(bo.Optimizer.load(state).trials) == 0


def test_an_empty_cell_is_an_objective_that_is_not_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, table = tmp_path / "runs.db", tmp_path / "past.csv"
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions={"loss": "minimize", "cost": "minimize"}, storage=log, seed=0)
    trial = opt.ask()
    (told,) = call(capsys, "tell", log, trial.id, "loss=none", "cost=2")
    assert told["values"] == {"loss": None, "cost": 2.0}
    call(capsys, "tell", log, trial.id, "0.5", "None", "--replace")
    call(capsys, "tell", log, "--params", '{"x": 0.25}', "3", "none")
    table.write_text("x,loss,cost\n0.1,,4\n0.2,5,\n0.3,6,7\n")
    call(capsys, "tell", log, "--from", table)
    trials = bo.Optimizer.open(log).trials
    assert [t.values or t.partial_values for t in trials] == [
        (0.5, 2.0),
        (3.0, None),
        (None, 4.0),
        (5.0, None),
        (6.0, 7.0),
    ]
    call(capsys, "export", log, tmp_path / "all.csv")
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "all.csv")[["values_loss", "values_cost"]],
        opt.trials_dataframe()[["values_loss", "values_cost"]],
    )
    table.write_text("x,loss,cost\n0.4,,\n")
    assert "line 2, column 'loss': expected" in refused(capsys, "tell", log, "--from", table)
    assert "value: expected a number for one objective at least" in refused(capsys, "tell", log, 0, "none", "none")
    assert len(bo.Optimizer.open(log).trials) == 5
