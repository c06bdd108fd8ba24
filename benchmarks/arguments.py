"""The command line of a program: its docstring is the help, and every option says its default, with `--quick` too."""

import argparse
import re
from collections.abc import Collection, Sequence
from typing import Any

__all__ = ["Arguments"]


class Arguments(argparse.ArgumentParser):
    """The parser of a program, whose `--quick` makes it small enough to see that it works.

    Args:
        text: the docstring of its module.
        quick: whether it has `--quick`.
    """

    def __init__(self, text: str | None, *, quick: bool = True) -> None:
        said = re.search(r"python -m benchmarks[.\w]+", text or "")  # how to run it
        prog = said[0] if said else None
        super().__init__(prog=prog, description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
        self._defaults: dict[str, tuple[object, object]] = {}
        if quick:
            self.add_argument("--quick", action="store_true", help="a small run, to see that the program works")

    def option(self, name: str, usual: Any, quick: Any = None, *, help: str, choices: Collection[str] = ()) -> None:
        """An option.

        Args:
            name: such as `--seeds`.
            usual: its default, whose type it has; a sequence where it takes several values; None for no limit.
            quick: the default with `--quick`, where it differs.
            help: what it sets.
            choices: the words that it takes.
        """
        example = quick if usual is None else usual
        several = isinstance(example, Sequence) and not isinstance(example, str)
        how: dict[str, Any] = {"nargs": "+"} if several else {}
        if choices:
            how |= {"choices": choices, "metavar": "NAME"}
            help = f"{help}: {', '.join(choices)}"
        else:
            how["type"] = type(example[0] if several else example)
        with_quick = "" if quick is None else f"; with --quick {_text(quick, choices)}"
        action = self.add_argument(name, help=f"{help} (default {_text(usual, choices)}{with_quick})", **how)
        self._defaults[action.dest] = usual, usual if quick is None else quick

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The options, with the defaults of those that were not given."""
        options = super().parse_args(args, namespace)
        for name, defaults in self._defaults.items():
            if getattr(options, name) is None:
                setattr(options, name, defaults[getattr(options, "quick", False)])
        return options


def _text(default: Any, choices: Collection[str]) -> str:
    if default is None or (choices and list(default) == list(choices)):
        return "all"
    return (
        str(default) if isinstance(default, str) or not isinstance(default, Sequence) else " ".join(map(str, default))
    )
