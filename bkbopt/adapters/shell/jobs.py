"""Evaluation of trials by `bkbopt run`: command lines with parameters, their processes, and their output."""

import contextlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import IO, Any

from bkbopt.adapters.shell.usage import UNMEASURED, as_number
from bkbopt.adapters.shell.writing import check_outcome
from bkbopt.errors import ArgumentError
from bkbopt.optimizer.log.aims import Aims
from bkbopt.optimizer.log.trials import Outcome

__all__ = ["FORM", "Command", "FormError", "Job", "outcome_of"]

#: Seconds between SIGTERM and SIGKILL.
GRACE = 5.0
#: Number of bytes that are read from the end of a process's output.
TAIL = 65536
#: Largest number of characters of a line in a message.
SHOWN = 300

#: The form of the last line of an output, for messages.
FORM = "a number for each objective, and name=number for each constraint, separated by blanks"

#: What a command does if a trial has no value, for messages.
WITHOUT_VALUE = "end with another exit status than 0 for a trial without a value"

_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class FormError(ArgumentError):
    """An output whose last line does not have the form of values."""


class Command:
    """A command line in which `{name}` stands for the value of a parameter; `{{` and `}}` are braces.

    Args:
        words: program and arguments.
        names: names of the parameters.

    Raises:
        ArgumentError: no words, an unknown name, an unpaired brace, or a program that cannot be run.
    """

    def __init__(self, words: Sequence[str], names: Collection[str]) -> None:
        self.words = tuple(words)
        if not self.words:
            raise ArgumentError("command: expected a program and its arguments after --, got none.")
        for word in self.words:
            for found in _FIELD.finditer(word):
                if found[0] in ("{", "}"):
                    raise ArgumentError(f"command: expected {{name}}, or {{{{ for a brace, got {word!r}.")
                if found[1] is not None and found[1] not in names:
                    raise ArgumentError(
                        f"command: expected names of parameters in braces, among {', '.join(names)}, got "
                        f"{found[0]} in {word!r}; write {{{{ and }}}} for literal braces."
                    )
        program = self.words[0]
        first = program.partition(" ")[0]
        if first != program and not _FIELD.search(first) and shutil.which(first) and shutil.which(program) is None:
            raise ArgumentError(
                f"command: expected a program and its arguments as separate words, got {program!r} as one word; "
                "leave the quotes out, or use sh -c for a shell command."
            )
        if not _FIELD.search(program) and shutil.which(program) is None:
            raise ArgumentError(f"command: expected a program that can be run, got {program!r}; check path and mode.")

    def filled(self, params: Mapping[str, Any]) -> list[str]:
        """The words with the values of active parameters; inactive parameters become empty text.

        Raises:
            ArgumentError: a value with a NUL character, which arguments of processes cannot contain.
        """

        def value(found: re.Match[str]) -> str:
            if found[1] is None:
                return found[0][0]
            return _as_text(params[found[1]]) if found[1] in params else ""

        words = [_FIELD.sub(value, word) for word in self.words]
        bad = next((word for word in words if "\0" in word), None)
        if bad is not None:
            raise ArgumentError(f"command: expected arguments without NUL characters, got {bad!r}; rename the choice.")
        return words


def _as_text(value: Any) -> str:
    """Text unchanged; numbers and other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


class Job:
    """A process that evaluates one trial, in its own process group, so that Ctrl-C does not reach it directly.

    Its output goes to files: pipes could fill up and block it, and children that it leaves running would keep them
    open.

    Args:
        words: program and arguments.
        trial_id: number of the trial.
        params: its parameters.

    Attributes:
        unreadable: the end of an output in which no values were found; None for all others.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(self, words: Sequence[str], trial_id: int, params: Mapping[str, Any]) -> None:
        self.unreadable: str | None = None
        environment = {**os.environ, "BKBOPT_PARAMS": json.dumps(dict(params)), "BKBOPT_TRIAL": str(trial_id)}
        with contextlib.ExitStack() as files:
            self._output: IO[bytes] = files.enter_context(tempfile.TemporaryFile())
            self._errors: IO[bytes] = files.enter_context(tempfile.TemporaryFile())
            self._process = subprocess.Popen(
                list(words),
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._errors,
                env=environment,
                **_OWN_GROUP,
            )
            self._files = files.pop_all()

    def result(self, aims: Aims, seconds: float | None) -> tuple[Outcome, str | None]:
        """Wait for the end; returns the outcome, and the reason if the trial failed."""
        try:
            status: int | None = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
            self.end()
        try:
            if status is None:
                return Outcome(), f"not finished after {seconds:g} s"
            if status:
                error = last_line(_tail(self._errors))
                return Outcome(), _ending(status) + (f": {error[:SHOWN]}" if error else "")
            return outcome_of(_tail(self._output), aims), None
        except ArgumentError as error:
            if isinstance(error, FormError):
                self.unreadable = _tail(self._output)[-SHOWN:].strip()
            return Outcome(), str(error)
        finally:
            self._files.close()

    def ask_to_end(self) -> None:
        """Send SIGTERM to the process and its children."""
        self._signal(signal.SIGTERM)

    def end(self, grace: float = GRACE) -> None:
        """Send SIGTERM, and after `grace` seconds SIGKILL."""
        self.ask_to_end()
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self._signal(_KILL)
            self._process.wait()

    def _signal(self, number: int) -> None:
        if self._process.returncode is not None:
            return
        try:
            _to_group(self._process, number)
        except ProcessLookupError:  # the process has ended meanwhile
            return


if sys.platform == "win32":
    _OWN_GROUP: dict[str, Any] = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    _KILL = signal.SIGTERM

    def _to_group(process: subprocess.Popen[bytes], number: int) -> None:
        process.send_signal(number)

else:
    _OWN_GROUP: dict[str, Any] = {"process_group": 0}
    _KILL = signal.SIGKILL

    def _to_group(process: subprocess.Popen[bytes], number: int) -> None:
        os.killpg(process.pid, number)


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - TAIL, 0))
    return file.read().decode("utf-8", "replace")


def last_line(text: str) -> str:
    """The last line that is not empty; "" if there is none."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _ending(status: int) -> str:
    if status > 0:
        return f"exit status {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


def outcome_of(output: str, aims: Aims) -> Outcome:
    """The values on the last line of an output: numbers, and `name=number` for constraints, separated by blanks.

    Objectives with names may be given as `name=number`, too. Other names are those of attributes. The word none stands
    for the value of an objective that is not measured.

    Raises:
        FormError: the line has another form.
        ArgumentError: a value is not finite.
    """
    line = last_line(output)
    values: list[float | None] = []
    named: dict[str, float | None] = {}
    limits: dict[str, float] = {}
    attrs: dict[str, Any] = {}
    for word in line.split():
        name, equals, text = word.rpartition("=")
        is_gap = aims.k > 1 and text.lower() == UNMEASURED and (not equals or name in aims.objectives)
        number = None if is_gap else _number(text)
        of_name: dict[str, Any] = named if name in aims.objectives else limits if name in aims.constraints else attrs
        if (number is None and not is_gap) or (equals and name in of_name):
            raise FormError(f"output: expected numbers, and name=number once, on the last line, got {_cut(line)}.")
        if equals:
            whole = of_name is attrs and number is not None and number.is_integer() and text.lstrip("+-").isdigit()
            of_name[name] = int(text) if whole else number
        else:
            values.append(number)
    if not (values or named or limits):
        raise FormError(f"output: expected a number on the last line, got {_cut(line) if line else 'no output'}.")
    if named:
        values = _all_named(values, named, aims, line)
    try:
        outcome = check_outcome(aims, values, limits, advice=WITHOUT_VALUE)
    except ArgumentError as error:
        if all(value is None or math.isfinite(value) for value in [*values, *limits.values()]):
            raise FormError(str(error)) from None
        raise
    missing = [name for name in aims.constraints if name not in limits]
    if missing:  # without this check the trial would be feasible
        raise FormError(f"output: expected {missing[0]}=number on the last line as well, got {_cut(line)}.")
    return replace(outcome, user_attrs=attrs)


def _all_named(values: list[float | None], named: dict[str, float | None], aims: Aims, line: str) -> list[float | None]:
    """The values of the objectives, all of which have to be given by name."""
    missing = next((name for name in aims.objectives if name not in named), None)
    if values or missing is not None:
        expected = f"{missing}=number" if missing is not None else "name=number for each objective, and no other number"
        raise FormError(f"output: expected {expected} on the last line as well, got {_cut(line)}.")
    return [named[name] for name in aims.objectives]


def _number(text: str) -> float | None:
    try:
        return as_number(float, text)
    except ValueError:
        return None


def _cut(line: str) -> str:
    return repr(line if len(line) <= SHOWN else f"{line[:SHOWN]}...")
