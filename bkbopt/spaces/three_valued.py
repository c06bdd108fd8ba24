"""Conditions that are true, false, or None: neither, since they depend on a parameter that is inactive."""

from collections.abc import Callable, Sequence
from typing import Any

from bkbopt.spaces.base import Params

__all__ = ["Read", "combined", "if_active", "inverted"]

#: Reads a number, a choice or the truth of a condition off parameters, of which inactive ones are left out.
Read = Callable[[Params], Any]


def if_active(read: Read) -> Read:
    """What is read; None where a parameter is inactive."""

    def value(params: Params) -> Any:
        try:
            return read(params)
        except KeyError:
            return None

    return value


def inverted(read: Read) -> Read:
    """The negation of a condition."""

    def value(params: Params) -> Any:
        answer = read(params)
        return None if answer is None else not answer

    return value


def combined(reads: Sequence[Read], decisive: bool) -> Read:
    """The first answer that decides, False for `and` and True for `or`; else None if there is one, else the other."""

    def value(params: Params) -> Any:
        found: bool | None = not decisive
        for read in reads:
            answer = read(params)
            if answer is None:
                found = None
            elif bool(answer) is decisive:
                return decisive
        return found

    return value
