"""The command-line tool does what the API does, one JSON object a line."""

import json
import re
import warnings
from pathlib import Path

import pytest

import bkbopt as bo
from bkbopt.adapters import shell as cli
from tests.adapters.shell.calls import IN_PYTHON, SPACE, Copy, call, process, refused, value


def test_a_list_of_bounds_is_two_choices_with_a_warning_in_the_words_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "space.toml").write_text("[space]\nx = [0.0, 1.5]\n")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert cli.main(["init", str(tmp_path / "space.toml"), str(tmp_path / "log.db")]) == 0
    assert capsys.readouterr().err == (
        "bkbopt: parameter 'x': [0.0, 1.5] is a set of two choices; write "
        '{ type = "float", low = 0.0, high = 1.5 } for the range between them, or '
        '{ type = "categorical", choices = [0.0, 1.5] }.\n'
    )
    assert bo.Optimizer.load(tmp_path / "log.db").space == bo.Space.parse({"x": bo.Categorical([0.0, 1.5])})


def test_tells_are_those_of_the_api_with_the_same_seed(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    opt = bo.Optimizer(IN_PYTHON, direction="maximize", seed=3, n_startup_trials=6)
    for _ in range(15):  # past a mark
        trial = opt.ask()
        (asked,) = call(capsys, "ask", state)
        assert asked == {"id": trial.id, "params": dict(trial.params)}
        y = value(asked["params"])
        opt.tell(trial, y)
        (told,) = call(capsys, "tell", state, asked["id"], repr(y))
        assert told == {"id": trial.id, "state": "COMPLETE", "value": y, "params": dict(trial.params)}
    (best,) = call(capsys, "best", state)
    choice = opt.recommend()
    assert (best["params"], best["mean"], best["std"]) == (dict(choice.params), choice.mean, choice.std)
    assert best["observed"]["id"] == opt.best_trial.id


def test_it_runs_as_a_process_of_its_own(state: str) -> None:
    asked = process("ask", state, "-n", "2")
    out, err = asked.communicate(timeout=120)
    assert (asked.returncode, err) == (0, "")
    assert [json.loads(line)["id"] for line in out.splitlines()] == [0, 1]
    lost = process("tell", state, "7", "0.5")
    out, err = lost.communicate(timeout=120)
    assert (lost.returncode, out) == (1, "")
    assert err == "bkbopt: error: trial: expected the id of a trial (0 to 1), got 7.\n"


def test_concurrent_asks_get_different_trials_and_none_is_lost(state: str) -> None:
    results = [worker.ended() for worker in [Copy("ask", state) for _ in range(4)]]
    assert [(status, err) for status, _, err in results] == [(0, "")] * 4
    asked = [json.loads(out) for _, out, _ in results]
    assert sorted(trial["id"] for trial in asked) == [0, 1, 2, 3]
    assert len({json.dumps(trial["params"]) for trial in asked}) == 4
    assert len(bo.Optimizer.load(state).trials) == 4


def test_past_data_failures_and_negative_numbers_in_any_notation(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    past = {"rate": 0.25, "width": 32, "kind": "slow", "level": True}
    (told,) = call(capsys, "tell", state, "--params", json.dumps(past), "-1e-3")
    assert told["value"] == -1e-3
    assert told["params"] == {**past, "threads": 4}
    call(capsys, "ask", state, "-n", 2)
    (failed,) = call(capsys, "fail", state, 2)
    assert (failed["state"], failed["value"]) == ("FAIL", None)
    assert call(capsys, "tell", state, 1, "-.5")[0]["value"] == -0.5
    (shown,) = call(capsys, "show", state)
    assert (shown["direction"], shown["complete"], shown["running"], shown["failed"]) == ("maximize", 2, [], 1)
    assert [p["name"] for p in shown["space"]] == list(IN_PYTHON)
    trials = call(capsys, "show", state, "--trials")
    assert [(t["id"], t["state"], t["value"]) for t in trials] == [
        (0, "COMPLETE", -1e-3),
        (1, "COMPLETE", -0.5),
        (2, "FAIL", None),
    ]


def test_the_space_is_that_of_the_api(tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(SPACE)
    space, options = cli.read_space(tmp_path / "space.toml")
    assert bo.Space.parse(space) == bo.Space.parse(IN_PYTHON)
    assert options == {"direction": "maximize", "seed": 3, "n_startup_trials": 6}


def test_paths_of_arguments_may_begin_with_a_tilde(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    (tmp_path / "space.toml").write_text(SPACE)
    call(capsys, "init", "~/space.toml", "~/log.db")
    call(capsys, "ask", "~/log.db")
    call(capsys, "tell", "~/log.db", "0", "1.5")
    call(capsys, "export", "~/log.db", "~/past.csv")
    call(capsys, "init", "--force", "~/space.toml", "~/log.db")
    call(capsys, "tell", "~/log.db", "--from=~/past.csv")
    (report,) = call(capsys, "report", "~/log.db", "~/run.html")
    assert report["bytes"] == (tmp_path / "run.html").stat().st_size
    assert bo.Optimizer.load(tmp_path / "log.db").trials[0].value == 1.5


def test_a_byte_order_mark_is_no_part_of_the_space(tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(SPACE, encoding="utf-8-sig")
    assert bo.Space.parse(cli.read_space(tmp_path / "space.toml")[0]) == bo.Space.parse(IN_PYTHON)


def test_conditions_are_those_of_the_api(tmp_path: Path) -> None:
    lines = (
        "[space]",
        'model = ["svm", "gp", "tree"]',
        'kernel = { type = "categorical", choices = ["rbf", "linear"], when = { model = ["svm", "gp"] } }',
        'gamma = { type = "float", low = 0.1, high = 1.0, when = { kernel = "rbf", model = "svm" } }',
        'leaf = { type = "ordinal", values = [1, 2, 5], when = { model = "tree" } }',
    )
    (tmp_path / "space.toml").write_text("\n".join(lines))
    space, _ = cli.read_space(tmp_path / "space.toml")
    assert bo.Space.parse(space) == bo.Space.parse(
        {
            "model": ["svm", "gp", "tree"],
            "kernel": bo.Categorical(["rbf", "linear"], when={"model": ["svm", "gp"]}),
            "gamma": bo.Float(0.1, 1.0, when={"kernel": "rbf", "model": "svm"}),
            "leaf": bo.Ordinal([1, 2, 5], when={"model": "tree"}),
        }
    )


def test_a_state_over_a_pool_shows_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opt = bo.Optimizer([[0.0], [0.5], [1.0]], seed=0)
    opt.tell({"index": 1}, 2.0)
    opt.save(tmp_path / "pool")
    assert call(capsys, "best", tmp_path / "pool")[0]["index"] == 1
    assert call(capsys, "show", tmp_path / "pool")[0]["arms"] == 3
    assert "index" in call(capsys, "ask", tmp_path / "pool")[0]


def test_plots_are_pictures_of_the_kind_that_the_name_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    # Of fewer parameters, since some of the pictures have an axis or more for each.
    (tmp_path / "space.toml").write_text(SPACE[: SPACE.index("level")])
    state = str(tmp_path / "state")
    call(capsys, "init", tmp_path / "space.toml", state)
    for trial in call(capsys, "ask", state, "-n", 4):
        call(capsys, "tell", state, trial["id"], value(trial["params"]))
    before = Path(state).read_bytes()
    out = Path(state).parent
    assert call(capsys, "plot", state, out / "a.png") == [{"plot": str(out / "a.png"), "kind": "overview"}]
    assert (out / "a.png").read_bytes().startswith(b"\x89PNG")
    call(capsys, "plot", state, out / "b.pdf", "--kind", "contour", "--x", "rate", "--y", "kind")
    assert (out / "b.pdf").read_bytes().startswith(b"%PDF")
    for kind in ("convergence", "importance", "time", "pairs"):
        call(capsys, "plot", state, out / f"{kind}.svg", "--kind", kind)
    call(capsys, "plot", state, out / "s.svg", "--kind", "slice", "--x", "width")
    call(capsys, "plot", state, out / "named.svg", "--kind", "slice", "--x", "width", "--value-name", "items/s")
    assert "items/s" in (out / "named.svg").read_text()  # above the outlines of its letters
    assert "expected a file name that ends in one of" in refused(capsys, "plot", state, out / "a.xyz")
    assert "--x and --y with --kind contour" in refused(
        capsys, "plot", state, "c.png", "--kind", "contour", "--x", "rate"
    )
    assert "at most 0 parameters" in refused(capsys, "plot", state, "c.png", "--x", "rate")
    assert "'nope'" in refused(capsys, "plot", state, "c.png", "--kind", "slice", "--x", "nope")
    assert "expected text in UTF-8, got 'b\\udce9'" in refused(
        capsys, "plot", state, "c.png", "--value-name", "b\udce9"
    )
    assert "expected text in UTF-8" in refused(capsys, "report", state, "c.html", "--value-name", "b\udce9")
    assert Path(state).read_bytes() == before


def test_a_picture_for_latex_needs_latex(
    state: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    for trial in call(capsys, "ask", state, "-n", 2):
        call(capsys, "tell", state, trial["id"], value(trial["params"]))
    monkeypatch.setenv("PATH", "")
    with matplotlib.rc_context({"pgf.texsystem": "xelatex"}):
        text = refused(capsys, "plot", state, Path(state).parent / "a.pgf", "--kind", "convergence")
    assert re.search(r"out: .*a\.pgf cannot be drawn: 'xelatex' not found; .*; or name another format\.", text)
    assert not Path(state).with_name("a.pgf").exists()


def test_a_report_is_a_page_and_leaves_the_log_as_it_was(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    out = Path(state).parent / "out.html"
    before = Path(state).read_bytes()
    (row,) = call(capsys, "report", state, out)
    assert row == {"report": str(out), "trials": 0, "bytes": out.stat().st_size}
    assert "<title>state</title>" in out.read_text()
    assert Path(state).read_bytes() == before
    for trial in call(capsys, "ask", state, "-n", 7):
        call(capsys, "tell", state, trial["id"], value(trial["params"]))
    before = Path(state).read_bytes()
    call(capsys, "report", state, out, "--title", "Speed & cost", "--value-name", "items/s")
    assert Path(state).read_bytes() == before
    page = out.read_text()
    assert "<title>Speed &amp; cost</title>" in page
    assert "Maximize items/s: 7 trials (7 complete)" in page
    assert page.count("<img") > 6
    assert "expected another file than the log" in refused(capsys, "report", state, state)
    assert "value_names: expected 1" in refused(capsys, "report", state, out, "--value-name", "a", "--value-name", "b")
    assert "there is no file" in refused(capsys, "report", "nowhere.db", out)
    assert Path(state).read_bytes() == before
    assert out.read_text() == page


def test_held_values_and_queued_points_are_those_of_the_api(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    opt = bo.Optimizer(IN_PYTHON, direction="maximize", seed=3, n_startup_trials=6)
    given = {"rate": 0.5, "kind": "slow"}
    opt.enqueue(given)
    queued = {"id": 0, "state": "WAITING", "params": given}
    assert call(capsys, "enqueue", state, json.dumps(given)) == [queued]
    assert call(capsys, "show", state)[0]["queued"] == [0]
    for _ in range(9):
        trial = opt.ask(fixed={"width": 32})
        (asked,) = call(capsys, "ask", state, "--fixed", '{"width": 32}')
        assert asked == {"id": trial.id, "params": dict(trial.params)}
        assert asked["params"]["width"] == 32
        opt.tell(trial, value(asked["params"]))
        call(capsys, "tell", state, asked["id"], value(asked["params"]))
    assert dict(opt.trials[0].params).items() >= given.items()


def test_the_best_point_with_fixed_values_is_that_of_the_api(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    opt = bo.Optimizer.open(state)
    for trial in opt.ask(12):
        opt.tell(trial, value(dict(trial.params)))
    for given, fixed in (
        (["kind=slow"], {"kind": "slow"}),
        (["width=32", 'kind="fast"'], {"width": 32, "kind": "fast"}),
        (['{"width": 32}', "rate=0.5"], {"width": 32, "rate": 0.5}),
    ):
        arguments = [part for text in given for part in ("--fixed", text)]
        choice = opt.recommend(fixed=fixed)
        assert call(capsys, "best", state, *arguments) == [
            {"params": dict(choice.params), "mean": choice.mean, "std": choice.std}
        ]
        assert dict(choice.params).items() >= fixed.items()
        assert call(capsys, "ask", state, *arguments)[0]["params"].items() >= fixed.items()
    assert call(capsys, "best", state, "--fixed", "{}") == call(capsys, "best", state)
    assert "'rate'" in refused(capsys, "best", state, "--fixed", "rate=9")
    assert "--regret: expected without --fixed" in refused(capsys, "best", state, "--regret", "--fixed", "rate=0.5")


def test_a_log_goes_on_with_another_space(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state, space = tmp_path / "state", tmp_path / "space.toml"
    space.write_text('seed = 0\n[space]\nx = { type = "float", low = 0.0, high = 1.0 }\n')
    call(capsys, "init", space, state)
    call(capsys, "tell", state, "--params", '{"x": 0.5}', 1.0)
    opt = bo.Optimizer.load(state)
    space.write_text('seed = 0\n[space]\nx = { type = "float", low = 2.0, high = 3.0 }\nkind = ["a", "b"]\n')
    (changed,) = call(capsys, "change", state, space)
    assert changed["parameters"] == ["x", "kind"]
    opt.set_space({"x": (2.0, 3.0), "kind": ["a", "b"]})
    assert call(capsys, "ask", state)[0]["params"] == dict(opt.ask().params)
    before = Path(state).read_bytes()
    space.write_text('seed = 0\ndirection = "maximize"\n[space]\nx = { type = "float", low = 0.0, high = 9.0 }\n')
    assert "expected the arguments that" in refused(capsys, "change", state, space)
    assert Path(state).read_bytes() == before


def test_values_that_earlier_trials_had_for_a_new_parameter_are_an_option_of_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, space = tmp_path / "state", tmp_path / "space.toml"
    space.write_text('seed = 0\n[space]\nx = { type = "float", low = 0.0, high = 1.0 }\n')
    call(capsys, "init", space, state)
    call(capsys, "tell", state, "--params", '{"x": 0.5}', 1.0)
    space.write_text('seed = 0\n[space]\nx = { type = "float", low = 0.0, high = 1.0 }\nkind = ["a", "b"]\n')
    call(capsys, "change", state, space, "--past", "kind=b")
    assert call(capsys, "best", state)[0]["params"] == {"x": 0.5, "kind": "b"}
    assert "each name once" in refused(capsys, "change", state, space, "--past", "kind=b", "--past", "kind=a")


def test_rules_about_parameters_are_lines_of_the_space_and_may_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, space = tmp_path / "state", tmp_path / "space.toml"
    text = '[space]\nx = { type = "float", low = 0.0, high = 1.0 }\ny = { type = "float", low = 0.0, high = 1.0 }\n'
    space.write_text('seed = 0\nfeasible = ["x + y <= 0.5"]\n' + text)
    call(capsys, "init", space, state)
    assert all(sum(row["params"].values()) <= 0.5 for row in call(capsys, "ask", state, "-n", 6))
    assert "got the rule 'x + z <= 1'" in refused(capsys, "change", state, _written(space, "x + z <= 1", text))
    call(capsys, "change", state, _written(space, "x >= 0.9", text))
    assert all(row["params"]["x"] >= 0.9 for row in call(capsys, "ask", state, "-n", 6))
    space.write_text("seed = 0\n" + text)
    call(capsys, "change", state, space)
    assert call(capsys, "show", state)[0]["rules"] == ["x >= 0.9"]
    assert "expected only with rows" in refused(capsys, "change", state, space, "--feasible", "x <= 1")


def _written(space: Path, rule: str, text: str) -> Path:
    space.write_text(f'seed = 0\nfeasible = "{rule}"\n{text}')
    return space


def test_rules_about_the_rows_of_a_pool_are_options_of_init_and_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    state, rows = tmp_path / "state", tmp_path / "rows.csv"
    rows.write_text("x,kind\n" + "".join(f"{i},{kind}\n" for i in range(9) for kind in "ab"))
    call(capsys, "init", "--pool", rows, "--feasible", "x >= 6", "--feasible", "kind == 'b'", "--seed", 0, state)
    asked = [row["params"] for row in call(capsys, "ask", state, "-n", 3, "--pool", rows)]
    assert all(row["x"] >= 6 and row["kind"] == "b" for row in asked)
    call(capsys, "change", state, rows, "--pool", rows, "--feasible", "x < 2")
    assert all(row["params"]["x"] < 2 for row in call(capsys, "ask", state, "-n", 3, "--pool", rows))
    call(capsys, "change", state, rows, "--pool", rows, "--no-rules")
    assert "rules" not in call(capsys, "show", state)[0]


def test_a_log_goes_on_with_other_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    state, old, new = (tmp_path / name for name in ("state", "old.csv", "new.csv"))
    old.write_text("name,x,note\na,0.0,1\nb,1.0,2\nc,2.0,3\n")
    new.write_text("note,name,x\n9,d,5.0\n3,c,2.0\n1,a,0.0\n")
    call(capsys, "init", "--pool", old, "--id-column", "name", "--column", "x", state)
    call(capsys, "tell", state, "--params", '{"name": "c"}', -1.0, "--pool", old)
    (changed,) = call(capsys, "change", state, new, "--pool", old)
    assert (changed["arms"], changed["parameters"]) == (3, ["x"])
    assert "in the shell with bkbopt change" in refused(capsys, "ask", state, "--pool", old)
    (best,) = call(capsys, "best", state, "--pool", new)
    assert (best["label"], best["index"]) == ("c", 1)
    assert {row["label"] for row in call(capsys, "ask", state, "-n", 2, "--pool", new)} <= {"a", "c", "d"}


LIMITED = """
constraints = ["heat", "weight"]
seed = 0
n_startup_trials = 4
perturbations = false

[space]
x = { type = "float", low = 0.0, high = 1.0 }
"""


def test_limits_of_measured_values_are_written_in_the_space_and_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space, state = tmp_path / "space.toml", tmp_path / "state"
    space.write_text(LIMITED.replace('["heat", "weight"]', '["heat <= 70"]'))
    assert call(capsys, "init", space, state)[0]["constraints"] == ["heat <= 70"]
    call(capsys, "ask", state, "-n", 2)
    assert call(capsys, "tell", state, 0, 2.5, "--constraint", "heat=65", "--user-attr", "mass=3")[0]["feasible"]
    assert not call(capsys, "tell", state, 1, 1.5, "--constraint", "heat=75", "--user-attr", "mass=1")[0]["feasible"]
    assert call(capsys, "show", state)[0]["feasible"] == 1
    space.write_text(LIMITED.replace('["heat", "weight"]', '["heat <= 80", "1 <= mass <= 2"]'))
    assert "set_constraints (in the shell bkbopt change)" in refused(
        capsys, "run", space, "--storage", state, "--trials", 3, "--", "true"
    )
    (changed,) = call(capsys, "change", state, space)
    assert changed["constraints"] == ["heat <= 80", "1 <= mass <= 2"]
    rows = call(capsys, "show", state, "--trials")
    assert [(row["constraints"], row["feasible"]) for row in rows] == [
        ({"heat": 65.0, "mass": 3.0}, False),
        ({"heat": 75.0, "mass": 1.0}, True),
    ]
    space.write_text(LIMITED.replace('constraints = ["heat", "weight"]', ""))
    assert call(capsys, "change", state, space)[0]["constraints"] == ["heat <= 80", "1 <= mass <= 2"]


def test_limits_of_a_search_over_rows_are_options_of_init_and_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    state, rows = tmp_path / "state", tmp_path / "rows.csv"
    rows.write_text("x\n" + "".join(f"{i}\n" for i in range(9)))
    (made,) = call(capsys, "init", "--pool", rows, "--constraint", "heat <= 70", "--constraint", "mass >= 1", state)
    assert made["constraints"] == ["heat <= 70", "mass >= 1"]
    (changed,) = call(capsys, "change", state, rows, "--pool", rows, "--constraint", "heat <= 60")
    assert changed["constraints"] == ["heat <= 60"]
    assert "constraints" not in call(capsys, "change", state, rows, "--pool", rows, "--no-constraints")[0]


def test_constraints_are_told_with_the_value_or_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "space.toml").write_text(LIMITED)
    state = tmp_path / "state"
    (made,) = call(capsys, "init", tmp_path / "space.toml", state)
    assert made["constraints"] == ["heat", "weight"]
    call(capsys, "ask", state, "-n", 3)
    (told,) = call(capsys, "tell", state, 0, 2.5, "--constraint", "heat=1e-1", "--constraint", "weight=-1")
    assert (told["value"], told["constraints"], told["feasible"]) == (2.5, {"heat": 0.1, "weight": -1.0}, False)
    assert call(capsys, "best", state)[0]["observed"] is None
    (told,) = call(capsys, "tell", state, "--constraint", "heat=-2", "1", "-1.5")  # values behind an option
    assert (told["id"], told["value"], told["feasible"]) == (1, -1.5, True)
    (told,) = call(capsys, "tell", state, 2, "--constraint", "heat=3")
    assert (told["state"], told["value"], told["feasible"]) == ("COMPLETE", None, False)
    (told,) = call(capsys, "tell", state, "--params", '{"x": 0.5}', "--constraint", "heat=3")
    assert (told["id"], told["value"]) == (3, None)
    assert call(capsys, "best", state)[0]["observed"]["id"] == 1
    (shown,) = call(capsys, "show", state)
    assert (shown["complete"], shown["feasible"], shown["constraints"]) == (4, 1, ["heat", "weight"])
    for arguments, message in (
        (("tell", state, 0, "--constraint", "heat"), "expected NAME=NUMBER, got 'heat'"),
        (("tell", state, 0, "--constraint", "heat=hot"), "expected NAME=NUMBER, got 'heat=hot'"),
        (("tell", state, 0, 1, "--constraint", "heat=1", "--constraint", "heat=2"), "each name once"),
        (("tell", state, "--params", '{"x": 0.1}', 1, "--constraint", "hat=1"), "expected names among"),
        (("tell", state, 0, 1, "--limit", "2"), "unrecognized arguments: --limit"),
    ):
        assert message in refused(capsys, *arguments)


def test_several_objectives_have_a_value_each_and_a_front_for_the_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("botorch")
    (tmp_path / "space.toml").write_text('directions = ["minimize", "maximize"]\n[space]\nx = [1, 2, 3, 4]\n')
    state = tmp_path / "state"
    (made,) = call(capsys, "init", tmp_path / "space.toml", state)
    assert made["directions"] == ["minimize", "maximize"]
    for x, values in ((1, ("-1", "2")), (2, ("0", "3")), (3, ("1", "1"))):
        (told,) = call(capsys, "tell", state, "--params", json.dumps({"x": x}), *values)
        assert told["values"] == [float(v) for v in values]
    call(capsys, "ask", state)
    front = call(capsys, "best", state)
    assert [point["params"] for point in front] == [{"x": 1}, {"x": 2}]
    assert [len(point["means"]) for point in front] == [len(point["stds"]) for point in front] == [2, 2]
    assert [point["params"] for point in call(capsys, "best", state, "--fixed", "x=4")] == [{"x": 4}]
    assert [trial["values"] for trial in call(capsys, "show", state, "--trials")][2:] == [[1.0, 1.0], None]
    assert "--regret: expected a single objective, got 2" in refused(capsys, "best", state, "--regret")
    assert "expected 2 values, one for each objective" in refused(capsys, "tell", state, 3, 1.0)
    assert call(capsys, "tell", state, 3, "-1e-3", "0.5")[0]["values"] == [-1e-3, 0.5]
    pytest.importorskip("matplotlib")
    call(capsys, "plot", state, tmp_path / "front.svg", "--kind", "pareto")
    call(
        capsys,
        "plot",
        state,
        tmp_path / "named.svg",
        "--kind",
        "pareto",
        "--value-name",
        "cost",
        "--value-name",
        "yield",
    )
    assert all(name in (tmp_path / "named.svg").read_text() for name in ("cost", "yield"))
    call(capsys, "plot", state, tmp_path / "overview.png")
    message = refused(capsys, "plot", state, tmp_path / "a.png", "--kind", "convergence")
    assert "see overview and pareto, or pass opt.single_objective(0) (in the shell --objective 0)" in message
    call(capsys, "plot", state, tmp_path / "a.svg", "--kind", "convergence", "--objective", 1, "--value-name", "yield")
    assert "yield" in (tmp_path / "a.svg").read_text()
    message = refused(capsys, "plot", state, tmp_path / "a.png", "--objective", 2)
    assert "objective: expected a number below 2, got 2" in message


def test_an_objective_is_drawn_by_its_name_even_if_that_is_a_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "runs.db"
    opt = bo.Optimizer({"x": (0.0, 1.0)}, directions={"1": "minimize", "0": "maximize"}, seed=0, storage=state)
    opt.tell([{"x": 0.1}, {"x": 0.5}], {"1": [1.0, 2.0], "0": [3.0, 4.0]})
    drawn = []
    for objective in ("0", "1"):
        picture = tmp_path / f"{objective}.svg"
        call(capsys, "plot", state, picture, "--kind", "convergence", "--objective", objective)
        drawn.append(re.sub(r"\s", "", picture.read_text()))
    texts = [set(re.findall("<!--(.*?)-->", text)) for text in drawn]
    assert "4.0" in texts[0]  # an axis of the values
    assert "4.0" not in texts[1]
