"""The error of a command line that is wrong by itself, whatever the log holds; numbers, text and files of users."""

import argparse
import contextlib
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from bkbopt._support.file_paths import is_of_log
from bkbopt.errors import ArgumentError

__all__ = [
    "JSON_ERRORS",
    "UNMEASURED",
    "UsageError",
    "as_number",
    "as_text",
    "by_name",
    "check_other_file",
    "json_or_text",
]

T = TypeVar("T", int, float)

#: Errors of a text that is no JSON, has a number of more digits than Python reads, or lists that are nested too deep.
JSON_ERRORS = (ValueError, RecursionError)
#: The word for the value of an objective that is not measured, where another one is.
UNMEASURED = "none"


class UsageError(ArgumentError):
    """What argparse cannot check: forms that exclude each other, JSON, options of one kind of plot. The status is 2."""


def as_number(kind: Callable[[str], T], text: str) -> T:
    """The number that a text is, of this kind: `int` or `float`.

    Raises:
        ValueError: it is none. Digits with underscores, or of other alphabets, are numbers for Python only.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"expected digits, got {text!r}")
    return kind(text)


def by_name(argument: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The values of NAME=VALUE by name; a name that is given twice is refused."""
    given = dict(pairs)
    if len(given) < len(pairs):
        raise UsageError(f"{argument}: expected each name once.")
    return given


def json_or_text(text: str) -> Any:
    """The value that a text is as JSON, or the text itself."""
    with contextlib.suppress(*JSON_ERRORS):
        return json.loads(text)
    return as_text(text)


def as_text(given: str) -> str:
    """An argument to be shown, for argparse, which refuses bytes that are no text: pictures cannot have them."""
    try:
        given.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"expected text in UTF-8, got {given!r}") from None
    return given


def check_other_file(argument: str, path: str, own: str, what: str = "the log") -> None:
    """Refuse to write to a file that is read, or to one beside a log.

    Args:
        argument: the argument of the file to be written, for the message.
        path: the file to be written; it need not exist.
        own: the file that is read.
        what: what that file is.

    Raises:
        ArgumentError: both are the same file, or the first one belongs to the log.
    """
    if is_of_log(path, own):
        raise ArgumentError(f"{argument}: expected another file than {what}, got {path}; name a new file.")
