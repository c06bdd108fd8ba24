"""The command-line tool says on one line what went wrong, and leaves the log as it was."""

import json
import textwrap
import time
from pathlib import Path

import pytest

import bkbopt as bo
from bkbopt.adapters import shell as cli
from bkbopt.errors import ArgumentError, ArgumentTypeError
from tests.adapters.shell.calls import Copy, call, process, refused

fcntl = pytest.importorskip("fcntl", reason="the locks of these tests are those of POSIX")


def test_refused_commands_take_one_line_and_leave_the_state(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "ask", state)
    before = Path(state).read_bytes()
    for arguments, message in (
        (("tell", state, "0", "nan"), "expected finite values"),
        (("tell", state, "0", "-inf"), "expected finite values"),
        (("tell", state, "0", "abc"), "argument VALUE: invalid float value: 'abc'"),
        (("tell", state, "0", "1_000"), "argument VALUE: invalid float value: '1_000'"),
        (("tell", state, "0", "\u0661"), "argument VALUE: invalid float value"),
        (("tell", state, "0_0", "1"), "argument ID: invalid int value: '0_0'"),
        (("fail", state, "0_0"), "argument ID: invalid int value: '0_0'"),
        (("fail", state, "\u0660"), "argument ID: invalid int value: '\u0660'"),
        (("tell", state, "0", "1", "--std", "1_0"), "expected a finite standard deviation >= 0, got 1_0"),
        (("tell", state, "0", "1", "--constraint", "heat=1_0"), "expected NAME=NUMBER, got 'heat=1_0'"),
        (("ask", state, "-n", "1_0"), "argument -n: expected a whole number >= 1"),
        (
            ("tell", state, "0", "1.2", "heat=0.2"),
            "argument VALUE: invalid float value: 'heat=0.2'; give the value of a constraint as --constraint heat=0.2",
        ),
        (("tell", state, "0.5", "1"), "argument ID: invalid int value: '0.5'"),
        (("tell", state, "0"), "expected an id and a value, --params and a value, or --from; give one of the three"),
        (("tell", state, "0", "1", "--params", "{}"), "one of the two forms"),
        (("tell", state, "--params", "{", "1"), "--params: expected a JSON object"),
        (("tell", state, "--params", "[1]", "1"), "--params: expected a JSON object"),
        (("tell", state, "--params", '{"rate": 3}', "1"), "nothing for 'kind'"),
        (("ask", state, "--fixed", "[]"), "--fixed: expected a JSON object"),
        (("ask", state, "--fixed", '{"rate": 7}'), "'rate'"),
        (
            ("ask", state, "--fixed", "rate"),
            "--fixed: expected a JSON object such as {\"x\": 0.5}, or NAME=VALUE, got 'rate'",
        ),
        (("ask", state, "--fixed", "=0.5"), "--fixed: expected a JSON object"),
        (("ask", state, "--fixed", "rate=high"), "'rate'"),
        (
            ("ask", state, "--fixed", "rate=0.5", "--fixed", '{"rate": 0.6}'),
            "expected each name once, got ['rate'] twice",
        ),
        (("enqueue", state, '{"rate": 1, "rate": 2}'), "params: expected a JSON object such as"),
        (("ask", state, "--fixed", '{"rate": 1, "rate": 2}'), "(the name 'rate' twice)"),
        (("enqueue", state, "x"), "params: expected a JSON object such as {\"x\": 0.5}, got 'x'"),
        (("enqueue", state, '{"size": 1}'), "'size'"),
        (("enqueue", state, '{"rate": ' + "9" * 5000 + "}"), "params: expected a JSON object"),
        (("enqueue", state, "[" * 100_000), "params: expected a JSON object"),
        (("ask", state, "--fixed", "rate=" + "9" * 5000), "'rate'"),
        (("tell", state, "0", "1", "2"), "expected 1 value, one for each objective"),
        (("fail", state, "4"), "expected the id of a trial"),
        (("ask", state, "-n", "0"), "argument -n: expected a whole number >= 1"),
        (("recover", state, "--older-than", "nan"), "argument --older-than: expected a number of seconds"),
        (("recover", state, "--older-than", "1h"), "expected a number of seconds >= 0, got 1h"),
        (("recover", state), "expected --older-than SECONDS or --list"),
        (("tell", state, "0", "1", "--std", "-1"), "argument --std: expected a finite standard deviation >= 0, got -1"),
        (("tell", state, "0", "1", "--std", "1", "--std", "2"), "std: expected one for each of 1 values, got 2"),
        (("tell", state, "0", "1", "--constraint", "hat=1"), "constraints: expected names among (), got 'hat'"),
        (("export", state, state), "out: expected another file than the log"),
        (("export", state, state + "-journal"), "out: expected another file than the log"),
        (("report", state, state + ".lock"), "out: expected another file than the log"),
        (("export", state, "no.XLSX"), "out: expected the name of a CSV file, got 'no.XLSX'"),
        (("plot", state, state), "out: expected another file than the log"),
        (("init", "--force", state, state), "state: expected another file than the search space"),
        (("export", state, Path(state).parent / "no" / "a.csv"), "folder"),
        (("best", state), "best: expected at least one trial with a value, got none of "),
        (("show", state + "x"), "there is no file"),
        (("ask", state + "x"), "there is no file"),
        (("frobnicate",), "invalid choice: 'frobnicate'"),
        ((), "arguments are required"),
        (("init", Path(state).parent / "space.toml", state), "exists already"),
        (("init", Path(state).parent / "space.toml", state + "y/"), "got the folder"),
        (("ask", state, "--pool", Path(state).parent), "pool: expected none, since the log has a search space"),
        (("init", Path(state).parent / "no.toml", state), "no.toml: No such file or directory."),
        (("init", Path(state).parent / "space.toml", Path(state).parent / "no" / "a.db"), "make it first"),
        (("show", Path(state).parent), "got the folder"),
    ):
        assert message in refused(capsys, *arguments)
    assert Path(state).read_bytes() == before
    assert not any(Path(f"{state}{more}.lock").exists() for more in "xy")
    Path(state).write_bytes(b"no state")
    assert "expected a log of bkbopt, got a damaged file or another format" in refused(capsys, "best", state)


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("0", "nan"), "for a trial without a value: bkbopt fail LOG 0"),
        (("--params", '{"x": 1}', "nan"), "tell a point without a value with --from and FAIL in a column state"),
        (("0", "nan", "--replace"), "Optimizer.tell(..., replace=True, invalid='fail') takes a value back"),
        (("0", "1", "--constraint", "a=nan"), "leave out a constraint without a value"),
    ],
)
def test_a_value_that_is_not_finite_is_refused_with_what_can_be_done(
    arguments: tuple[str, ...], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert advice in refused(capsys, "tell", "LOG", *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("tell", "LOG", "0"),
        ("tell", "LOG", "0", "nan"),
        ("tell", "LOG", "0", "1", "--std", "-1"),
        ("tell", "LOG", "0", "1", "--constraint", "a=1", "--constraint", "a=2"),
        ("tell", "LOG", "0", "1", "--constraint", "a=inf"),
        ("tell", "LOG", "--params", "[1]", "1"),
        ("tell", "LOG", "--params", "{}", "1", "--replace"),
        ("enqueue", "LOG", "x"),
        ("ask", "LOG", "-n", "0"),
        ("ask", "LOG", "--fixed", "rate"),
        ("best", "LOG", "--fixed", "a=1", "--fixed", "a=2"),
        ("plot", "LOG", "a.png", "--kind", "contour", "--x", "rate"),
        ("plot", "LOG", "a.png", "--kind", "importance", "--x", "rate"),
        ("plot", "LOG", "a.word"),
        ("plot", "LOG", "a.png", "--kind", "importance", "--value-name", "loss"),
        ("plot", "LOG", "a.png", "--kind", "slice", "--value-name", "loss", "--value-name", "cost"),
    ],
    ids=" ".join,
)
def test_what_is_wrong_whatever_the_log_holds_has_the_status_of_a_wrong_command_line(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    # There is no log: nothing is looked up before the command line is known to be right.
    try:
        status: object = cli.main(list(arguments))
    except SystemExit as stop:  # argparse's own way to end
        status = stop.code
    assert status == 2
    assert capsys.readouterr().err.startswith("bkbopt: error: ")


@pytest.mark.parametrize("arguments", [("tell", "0", "1", "2"), ("tell", "7", "1"), ("ask", "--fixed", "rate=7")])
def test_what_the_log_refuses_has_the_status_1(state: str, arguments: tuple[str, ...]) -> None:
    command, *more = arguments
    assert cli.main([command, state, *more]) == 1


def test_help_of_init_shows_a_search_space_that_init_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["init", "--help"])
    _, _, example = capsys.readouterr().out.partition("A search space in TOML:\n")
    (tmp_path / "space.toml").write_text(textwrap.dedent(example))
    (made,) = call(capsys, "init", tmp_path / "space.toml", tmp_path / "state")
    assert made["parameters"] == ["rate", "width", "kind", "size", "depth", "threads"]


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"bkbopt {bo.__version__}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[space", "expected a TOML file"),
        ("seed = 3", r"expected a table \[space\]"),
        ("space = 3", r"expected a table \[space\]"),
        ("sede = 3\n[space]\nx = [1, 2]", r"expected options among .* got \['sede'\]"),
        (
            "[space]\nx = { typ = 'int', low = 0, high = 1 }",
            r"parameter 'x': expected a type among .*, got no key 'type' but \['high', 'low', 'typ'\]\.$",
        ),
        ("[space]\nx = { type = ['float'], low = 0, high = 1 }", "parameter 'x': expected a type among"),
        ("[space]\nx = { type = 'float', low = 0 }", r"parameter 'x': expected the keys \['high', 'low'\]"),
        ("[space]\nx = { type = 'int', low = 0, high = 3, base = 2 }", "parameter 'x': .* got .*'base'"),
        (
            "[space]\nx = { type = 'float', low = 0.0, high = 1.0, log = true }",
            "parameter 'x': low: expected a positive",
        ),
        ("[space]\nx = [nan]", "parameter 'x': expected finite numbers"),
        ("[space]\nx = { type = 'ordinal', values = 3 }", "parameter 'x': values: expected a list"),
        ("[space]\nx = { type = 'int', low = 0, high = 3, when = 'a' }", "parameter 'x': when: expected a dict"),
    ],
)
def test_a_space_that_cannot_be_is_refused_by_name(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(text)
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        cli.read_space(tmp_path / "space.toml")


def test_choices_and_options_that_cannot_be_are_refused_by_init(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, message in (
        ("[space]\nx = [1979-05-27, 2]", "choices that can be saved"),
        ("direction = 'up'\n[space]\nx = [1, 2]", "direction: expected one of"),
        ("seed = -1\n[space]\nx = [1, 2]", "seed: "),
    ):
        (tmp_path / "space.toml").write_text(text)
        assert message in refused(capsys, "init", tmp_path / "space.toml", tmp_path / "state")
        assert not (tmp_path / "state").exists()


def test_force_starts_anew(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "ask", state)
    call(capsys, "init", Path(state).parent / "space.toml", state, "--force")
    assert bo.Optimizer.load(state).trials == []


def test_an_ask_waits_for_another_ask_and_a_tell_does_not(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "ask", state)
    link = Path(state).with_name("link")
    link.symlink_to(state)  # the lock on a link is that of the file
    with open(state + ".lock", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        asking = Copy("ask", link)
        assert call(capsys, "tell", link, 0, 0.5)[0]["state"] == "COMPLETE"
        call(capsys, "best", link)
        time.sleep(0.5)
        assert not asking.has_ended()
        fcntl.flock(file, fcntl.LOCK_UN)  # the copy has the file open, too
    assert json.loads(asking.ended()[1])["id"] == 1


def test_ctrl_c_ends_a_wait(state: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    before = Path(state).read_bytes()
    capsys.readouterr()
    with open(state + ".lock", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        monkeypatch.setattr("bkbopt._support.locks.time.sleep", interrupt)
        assert cli.main(["ask", state]) == 130
    assert capsys.readouterr() == ("", "bkbopt: error: interrupted\n")
    assert Path(state).read_bytes() == before


def test_a_reader_that_goes_away_ends_a_command_quietly(
    state: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a buffer, as containers have it, Python has nothing to flush at exit, and no error to report.
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    call(capsys, "ask", state, "-n", 3)
    told = process("tell", state, "1", "0.5")  # starts much faster than an ask
    assert told.stdout is not None
    assert told.stderr is not None
    told.stdout.close()
    err = told.stderr.read()
    told.stderr.close()
    assert told.wait(timeout=120) == 141
    assert err == ""
    states = [trial.state for trial in bo.Optimizer.load(state).trials]
    assert states == ["RUNNING", "COMPLETE", "RUNNING"]  # what nobody read is in the state


def test_run_refuses_a_constraint_that_no_output_can_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "space.toml").write_text(
        'constraints = ["dry weight"]\n[space]\nx = { type = "float", low = 0, high = 1 }\n'
    )
    message = refused(capsys, "run", tmp_path / "space.toml", "--", "echo", "{x}")
    assert "constraints: expected names without blanks for bkbopt run, got 'dry weight'" in message
    assert not (tmp_path / "space.db").exists()
