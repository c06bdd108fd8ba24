"""Readers of numbers in arguments, for argparse: they return a number, or raise `argparse.ArgumentTypeError`."""

import argparse
import contextlib
import math
from collections.abc import Callable
from typing import Any

from bkbopt.adapters.shell.usage import as_number, as_text, json_or_text

__all__ = ["attribute", "count", "deviation", "limit", "number_or_text", "regret", "seconds", "whole_number"]


def _from_zero(what: str) -> Callable[[str], float]:
    """A reader of finite numbers >= 0, for argparse; `what` is expected, for messages."""

    def read(text: str) -> float:
        with contextlib.suppress(ValueError):
            number = as_number(float, text)
            if 0.0 <= number < math.inf:  # false for NaN, too
                return number
        raise argparse.ArgumentTypeError(f"expected {what} >= 0, got {text.strip()}")

    return read


seconds = _from_zero("a number of seconds")
deviation = _from_zero("a finite standard deviation")
regret = _from_zero("a finite regret")


def count(text: str) -> int:
    """A whole number >= 1."""
    with contextlib.suppress(ValueError):
        number = as_number(int, text)
        if number >= 1:
            return number
    raise argparse.ArgumentTypeError(f"expected a whole number >= 1, got {text.strip()}")


def whole_number(text: str) -> int:
    """A whole number."""
    with contextlib.suppress(ValueError):
        return as_number(int, text)
    raise argparse.ArgumentTypeError(f"invalid int value: {text!r}")


def number_or_text(text: str) -> int | str:
    """A whole number, or the text itself."""
    with contextlib.suppress(ValueError):
        return as_number(int, text)
    return text


def attribute(text: str) -> tuple[str, Any]:
    """The name and the value of an attribute."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    return as_text(name), json_or_text(value)


def limit(text: str) -> tuple[str, float]:
    """The name and the value of a constraint."""
    name, _, value = text.rpartition("=")
    with contextlib.suppress(ValueError):
        if name:
            return name, as_number(float, value)
    raise argparse.ArgumentTypeError(f"expected NAME=NUMBER, got {text!r}")
