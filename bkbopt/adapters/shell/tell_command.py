"""The command `tell`."""

import argparse
import math
from collections.abc import Callable, Iterator
from typing import Any

from bkbopt.adapters.shell import log_commands, model_commands
from bkbopt.adapters.shell.past import tell_file
from bkbopt.adapters.shell.rows import Row
from bkbopt.adapters.shell.usage import UNMEASURED, UsageError, as_number, by_name

__all__ = ["tell"]


def tell(args: argparse.Namespace) -> Iterator[Row]:
    """Report a value of a trial, of a point, or past data from a file: argparse cannot tell their arguments apart."""
    if args.past is not None:
        if args.numbers or args.params is not None or args.constraint or args.std or args.replace or args.user_attr:
            raise UsageError("--from: expected no other option than --value and --again; the file has all the rest.")
        return tell_file(args)
    if args.value:
        raise UsageError("--value: expected only with --from, whose columns it names; give values behind the id.")
    if args.again:
        raise UsageError("--again: expected only with --from; other outcomes are always told.")
    limits = by_name("--constraint", args.constraint)
    numbers: list[str] = args.numbers
    by_id = bool(numbers) and args.params is None
    number = _read("ID", int, numbers[0], args) if by_id else None
    texts = _in_order(numbers[1:] if by_id else numbers, args.state)
    values = [None if text.lower() == UNMEASURED else _read("VALUE", float, text, args) for text in texts]
    for value in (*(value for value in values if value is not None), *limits.values()):
        if not math.isfinite(value):
            raise UsageError(f"tell: expected finite values, got {value}; {_without_value(args, number, values)}.")
    if (number is None and args.params is None) or not (values or limits):
        raise UsageError("tell: expected an id and a value, --params and a value, or --from; give one of the three.")
    if number is None:
        if args.replace:
            raise UsageError("--replace: expected the id of a finished trial, got --params; see show --trials.")
        return model_commands.tell_point(args, values, limits)
    return log_commands.tell(args, number, values, limits)


def _in_order(texts: list[str], state: str) -> list[str]:
    """The values of objectives that are all given as NAME=VALUE, in the order of the objectives; others as they are."""
    named = dict(text.rpartition("=")[::2] for text in texts if "=" in text)
    names = log_commands.objectives(state) if named else ()
    if not set(named) & set(names):
        return texts
    if len(texts) != len(names) or set(named) != set(names):
        form = " ".join(f"{name}=VALUE" for name in names)
        raise UsageError(
            f"tell: expected {form}, or values alone in this order, got {' '.join(texts)}; give constraints as "
            "--constraint NAME=G."
        )
    return [named[name] for name in names]


def _without_value(args: argparse.Namespace, number: int | None, values: list[float | None]) -> str:
    """What to do in place of telling a number that is not finite, for messages."""
    if all(value is None or math.isfinite(value) for value in values):
        return "leave out a constraint without a value"
    if args.params is not None:
        return "tell a point without a value with --from and FAIL in a column state"
    if args.replace:
        return "in Python Optimizer.tell(..., replace=True, invalid='fail') takes a value back"
    return f"for a trial without a value: bkbopt fail {args.state} {'ID' if number is None else number}"


def _read(name: str, kind: Callable[[str], Any], text: str, args: argparse.Namespace) -> Any:
    """A number, with argparse's error message; argparse itself cannot parse an optional id before several values."""
    try:
        return as_number(kind, text)
    except ValueError:
        advice = f"; give the value of a constraint as --constraint {text}" if "=" in text else ""
        args.parser.error(f"argument {name}: invalid {kind.__name__} value: {text!r}{advice}")
