"""Commands of jobs: parameters in braces, and values read from the output."""

import os
import sys
from pathlib import Path

import pytest

from bkbopt.adapters.shell.jobs import Command, Job, outcome_of
from bkbopt.errors import ArgumentError
from bkbopt.optimizer.log.aims import Aims
from bkbopt.optimizer.log.limits import Limit
from bkbopt.optimizer.log.trials import Outcome
from tests.adapters.shell.calls import has_ended, wait_until

ONE = Aims(("minimize",))
TWO = Aims(("minimize", "maximize"), {"heat": Limit()})
NAMED = Aims(("minimize", "maximize"), {"heat": Limit()}, ("loss", "power"))


def python(code: str, *, seconds: float | None = 60.0, aims: Aims = ONE) -> tuple[Outcome, str | None]:
    """What comes of a job that is a program in Python."""
    return Job([sys.executable, "-c", code], 7, {"x": 0.5, "kind": "slow"}).result(aims, seconds)


def test_values_of_parameters_stand_where_their_names_are() -> None:
    names = ("x", "n", "on", "kind", "gone", "a b")
    command = Command([sys.executable, "{x}", "--n={n}", "{kind}{on}", "{gone}", "{{x}}", "a{{", "{a b}!"], names)
    params = {"x": 1e-05, "n": 3, "on": True, "kind": "very {x} slow", "a b": 0.1}
    expected = [sys.executable, "1e-05", "--n=3", "very {x} slowtrue", "", "{x}", "a{", "0.1!"]
    assert command.filled(params) == expected
    with pytest.raises(ArgumentError, match="expected arguments without NUL characters"):
        command.filled(params | {"kind": "a\0b"})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected a program and its arguments after --, got none"),
        (["awk", "{y}"], r"among x, n, got \{y\} in '\{y\}'; write \{\{ and \}\}"),
        (["awk", "{}"], r"got \{\} in"),
        (["awk", "BEGIN { print"], r"expected \{name\}, or \{\{ for a brace"),
        (["no-such-program", "{x}"], "a program that can be run, got 'no-such-program'"),
    ],
)
def test_commands_that_cannot_be_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Command(words, ("x", "n"))


def test_the_last_line_that_is_not_empty_is_the_value() -> None:
    assert outcome_of("step 1\nvalue: 3\n-1e-3 \n \n\n", ONE) == Outcome((-1e-3,))
    assert outcome_of("1\t2 heat=0", TWO) == Outcome((1.0, 2.0), {"heat": 0.0})
    assert outcome_of("heat=-1 1 2", TWO) == Outcome((1.0, 2.0), {"heat": -1.0})
    assert outcome_of("heat=3", TWO) == Outcome((), {"heat": 3.0})
    assert outcome_of("power=2 heat=0 loss=1", NAMED) == outcome_of("1 2 heat=0", NAMED) == Outcome((1, 2), {"heat": 0})
    assert outcome_of("heat=3", NAMED) == Outcome((), {"heat": 3.0})
    assert outcome_of("loss=1 power=None heat=0", NAMED) == outcome_of("1 none heat=0", TWO)
    assert outcome_of("1 none heat=0", TWO) == Outcome(constraints={"heat": 0.0}, partial_values=(1.0, None))
    attrs = outcome_of("1 step=3 time=2.5 rate=1e5", ONE).user_attrs
    assert repr(attrs) == "{'step': 3, 'time': 2.5, 'rate': 100000.0}"
    assert outcome_of("1 weight=g=2", Aims(("minimize",), {"weight=g": Limit()})) == Outcome((1.0,), {"weight=g": 2.0})


@pytest.mark.parametrize(
    ("output", "aims", "message"),
    [
        ("", ONE, "expected a number on the last line, got no output"),
        ("3\ndone", ONE, "expected numbers, and name=number once, on the last line, got 'done'"),
        ("1_000", ONE, "expected numbers, and name=number once, on the last line, got '1_000'"),
        ("\u0661", ONE, "expected numbers, and name=number once, on the last line, got '\u0661'"),
        ("nan", ONE, "value: expected finite values, got nan"),
        ("1 inf", TWO, "value: expected finite values, got inf"),
        ("1", TWO, "expected 2 values, one for each objective, got 1"),
        ("1 2", ONE, "expected 1 value, one for each objective, got 2"),
        ("cold=3", ONE, "output: expected a number on the last line, got 'cold=3'"),
        ("1 cold=3 cold=4", ONE, "name=number once"),
        ("1 kind=fast", ONE, "expected numbers"),
        ("1 2 heat=1 heat=2", TWO, "name=number once"),
        ("1 2", TWO, "output: expected heat=number on the last line as well, got '1 2'"),
        ("loss=1 heat=1", NAMED, "output: expected power=number on the last line as well, got 'loss=1 heat=1'"),
        ("loss=1 power=2 3 heat=1", NAMED, "expected name=number for each objective, and no other number"),
        ("loss=1 loss=1 power=2 heat=1", NAMED, "name=number once"),
        ("loss=1 power=2 hot=1", NAMED, "output: expected heat=number on the last line as well"),
        ("1 2 heat=nan", TWO, r"constraints\['heat'\]: expected finite values"),
        ("x" * 1000, ONE, "got '(x{300})[.]{3}'[.]$"),
    ],
)
def test_lines_that_are_no_value_are_refused(output: str, aims: Aims, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        outcome_of(output, aims)


def test_a_job_has_the_parameters_in_its_environment_and_nothing_to_read() -> None:
    code = """
import json, os, sys
assert sys.stdin.read() == ""
print("x" * 100_000)
print(json.loads(os.environ["BKBOPT_PARAMS"])["x"] + int(os.environ["BKBOPT_TRIAL"]))
"""
    assert python(code) == (Outcome((7.5,)), None)


def test_a_job_fails_with_its_reason() -> None:
    assert python("raise SystemExit(3)") == (Outcome(), "exit status 3")
    assert python("print(1); raise ValueError('too hot')") == (Outcome(), "exit status 1: ValueError: too hot")
    assert python("import os; os.kill(os.getpid(), 9)") == (Outcome(), "ended by SIGKILL")
    assert python("print('nan')")[0] == Outcome()


@pytest.mark.parametrize(("output", "aims"), [("nan", ONE), ("1 inf", TWO), ("1 2 heat=nan", TWO)])
def test_a_job_with_a_number_that_is_not_finite_fails_with_advice_for_its_program(output: str, aims: Aims) -> None:
    outcome, message = python(f"print({output!r})", aims=aims)
    assert outcome == Outcome()
    assert message is not None
    assert message.endswith("; end with another exit status than 0 for a trial without a value.")


def test_a_job_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    code = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({str(tmp_path / "pid")!r}, "w").write(str(child.pid) + "\\n")
time.sleep(600)
"""
    outcome, message = python(code, seconds=2.0)
    assert (outcome, message) == (Outcome(), "not finished after 2 s")
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: has_ended(pid))


def test_processes_that_a_job_leaves_running_do_not_delay_it() -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid)"
    outcome, message = python(code, seconds=None)  # with a pipe for the output it would take ten minutes
    assert message is None
    os.kill(int(outcome.values[0]), 15)
