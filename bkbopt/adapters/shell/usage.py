"""The error of a command line that is wrong by itself, whatever the log holds."""

from bkbopt.errors import ArgumentError

__all__ = ["UsageError"]


class UsageError(ArgumentError):
    """What argparse cannot check: forms that exclude each other, JSON, options of one kind of plot. The status is 2."""
