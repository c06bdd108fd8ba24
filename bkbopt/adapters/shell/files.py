"""The files that a command reads and writes."""

from bkbopt._support.file_paths import is_of_log
from bkbopt.errors import ArgumentError

__all__ = ["check_other_file"]


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
