"""`bkbopt watch`: display of the progress of a log."""

import argparse
import os
import sys
import time
from collections.abc import Iterator

from bkbopt.adapters.shell.progress import Progress
from bkbopt.adapters.shell.rows import Row
from bkbopt.optimizer.log.log_file import LogFile
from bkbopt.optimizer.log.trials import utc_now

__all__ = ["watch"]


def watch(args: argparse.Namespace) -> Iterator[Row]:
    """Print the progress: on a terminal one line that is overwritten, else a line for each change. Ctrl-C ends it."""
    progress = Progress(LogFile(args.state))
    on_terminal, is_new = sys.stdout.isatty() and not args.once, True
    try:
        while True:
            line = progress.line(utc_now())
            if on_terminal:
                sys.stdout.write("\r" + _fitted(line))
            elif is_new:
                sys.stdout.write(line + "\n")
            sys.stdout.flush()
            if args.once:
                break
            time.sleep(args.interval)
            is_new = progress.update()
    except KeyboardInterrupt:
        if on_terminal:
            sys.stdout.write("\n")
    return iter(())


def _fitted(line: str) -> str:
    """The line cut or padded to the terminal's width minus one; in the last column some terminals break the line."""
    width = (os.get_terminal_size(sys.stdout.fileno()).columns or 80) - 1  # some terminals report a width of 0
    return line[:width].ljust(width)
