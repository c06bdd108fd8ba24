"""The entry point of the command line, and the parser of its arguments."""

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from bkbopt import __version__
from bkbopt._support.compiled import noticed
from bkbopt._support.file_paths import at_home
from bkbopt.adapters.shell import log_commands, model_commands, readers, space_file, tell_command
from bkbopt.adapters.shell.rows import Row, as_line
from bkbopt.adapters.shell.usage import UsageError, as_text
from bkbopt.adapters.shell.watch import watch
from bkbopt.errors import BkbError

__all__ = ["main"]

#: Exit status after the reader of the output has closed the pipe: that of a process which SIGPIPE ends.
PIPE_CLOSED = 128 + 13


def main(argv: list[str] | None = None) -> int:
    """Run a command with the arguments `argv`, by default those of the process, and return the exit status."""
    try:
        args = _understood(list(sys.argv[1:] if argv is None else argv))
        with warnings.catch_warnings(), _notices(args):
            warnings.showwarning = _warned
            for row in args.run(args):
                sys.stdout.write(as_line(row) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does. Python would report an error when it flushes the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (BkbError, OSError) as error:
        return _failed(error, 2 if isinstance(error, UsageError) else 1)
    except KeyboardInterrupt:
        return _failed("interrupted", 130)
    return 0


def _warned(message: Warning | str, *_: object, **_more: object) -> None:
    """Print a warning on one line, without the line of code that has caused it."""
    sys.stderr.write(f"bkbopt: {' '.join(str(message).split())}\n")


def _notices(args: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """A block in which somebody at a terminal is told that loops are compiled."""
    if args.run is _compile or not sys.stderr.isatty():
        return contextlib.nullcontext()

    def tell(notice: str) -> None:
        from tqdm import tqdm

        tqdm.write(f"bkbopt: {notice}", file=sys.stderr)  # above the bar of `run`

    return noticed(tell)


def _failed(error: object, status: int) -> int:
    """Print an error on one line, and return the exit status."""
    shown = str(error)
    if isinstance(error, OSError) and error.filename and error.strerror:
        shown = f"{error.filename}: {error.strerror}."
    text = " ".join(shown.split()) or type(error).__name__
    sys.stderr.write(f"bkbopt: error: {text}\n")
    return status


def _run(args: argparse.Namespace) -> Iterator[Row]:
    from bkbopt.adapters.shell.run import run  # imported here, since no other command needs it

    return run(args)


def _compile(args: argparse.Namespace) -> Iterator[Row]:
    from bkbopt.adapters.shell.compiling import compile_all  # imported here, since it takes NumPy

    return compile_all(args)


# -- the command line --------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser that prints errors on one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"bkbopt: error: {' '.join(message.split())} (see {self.prog} --help)\n")


def _understood(arguments: list[str]) -> argparse.Namespace:
    """The parsed arguments of a command."""
    command: list[str] | None = None
    if arguments[:1] == ["run"] and "--" in arguments:
        at = arguments.index("--")
        arguments, command = arguments[:at], arguments[at + 1 :]
    args, more = _parser().parse_known_args([_shielded(a) for a in arguments])
    several = args.numbers if "numbers" in args else args.files if "files" in args else None
    if several is not None:  # argparse only takes those before the first option
        several += [a for a in more if not a.startswith("-")]
        more = [a for a in more if a.startswith("-")]
    if args.run is model_commands.init:
        _name_files(args)
    for name in ("space", "state", "storage", "pool", "past", "out", "new"):
        # Shells leave the ~ of --from=~/past.csv as it is.
        if getattr(args, name, None):
            setattr(args, name, at_home(getattr(args, name)))
    if args.run is _run and not command:
        args.parser.error("expected -- and a command behind the options")
    if more:
        args.parser.error(f"unrecognized arguments: {' '.join(more)}")
    args.command = command
    return args


def _name_files(args: argparse.Namespace) -> None:
    """Name the files of `init`: the search space and the log, or with --pool the log only."""
    expected = 2 if args.pool is None else 1
    if len(args.files) != expected:
        names = "STATE with --pool" if expected == 1 else "SPACE.toml and STATE, or --pool ROWS and STATE"
        args.parser.error(f"expected {names}, got {args.files}")
    *first, args.state = args.files
    args.space = first[0] if first else None


def _shielded(argument: str) -> str:
    """The argument; a negative number gets a leading blank, since argparse takes -1e-3 for an option."""
    try:
        float(argument)
    except ValueError:
        return argument
    return f" {argument}" if argument.startswith("-") else argument


class _Commands:
    """The subcommands of a parser."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        self, name: str, run: Callable[..., Iterator[Row]], text: str, *first: tuple[str, str], more: str = ""
    ) -> argparse.ArgumentParser:
        """Add a command with its positional arguments `first`; `more` is appended to the text in its own help."""
        sub = self._commands.add_parser(name, help=text, description=f"{text[:1].upper()}{text[1:]}{more}.")
        sub.set_defaults(run=run, parser=sub)
        for metavar, meaning in first:
            sub.add_argument(metavar.lower().partition(".")[0], metavar=metavar, help=meaning)
        return sub


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="bkbopt",
        description="Bayesian optimisation from the shell, on a log of trials that any number of processes may use.",
        epilog="tell ID, fail, set-user-attr, show, watch, export and recover take a tenth of a second; the others "
        "start torch, and so do tell --from and tell --params.",
    )
    parser.add_argument("--version", action="version", version=f"bkbopt {__version__}")
    commands = _Commands(parser)
    _add_first(commands)
    _add_asking(commands)
    _add_telling(commands)
    _add_reading(commands)
    return parser


_SPACE = ("SPACE.toml", "the search space; `bkbopt init --help` shows one")
_STATE = ("STATE", "the log: an SQLite file")
_FIXED: dict[str, Any] = {
    "metavar": "NAME=VALUE",
    "action": "append",
    "default": [],
    "help": "a value at which a parameter is fixed, once for each of them; or several as a JSON object",
}
_POOL: dict[str, Any] = {
    "metavar": "ROWS",
    "help": "the rows of a pool that are not in the log: a CSV, Parquet or .npy file, or a folder of them",
}
_CONSTRAINT: dict[str, Any] = {
    "metavar": "TEXT",
    "type": as_text,
    "action": "append",
    "help": "a limit of a quantity that is measured with the value, as 'heat <= 70'; once for each",
}
_ATTR: dict[str, Any] = {
    "metavar": "NAME=VALUE",
    "type": readers.attribute,
    "action": "append",
    "default": [],
    "help": "an attribute of the trial, which the search does not read: a number, other JSON, or text",
}


def _add_first(commands: _Commands) -> None:
    run = commands.add("run", _run, "optimise a command: ask, run it, tell; continues an existing log", _SPACE)
    run.formatter_class = argparse.RawDescriptionHelpFormatter
    run.usage = "bkbopt run SPACE.toml [options] -- COMMAND ARGUMENT..."
    run.epilog = (
        "In COMMAND and its arguments {name} stands for the value of a parameter, empty where it is inactive; {{ and\n"
        "}} are braces. The environment has BKBOPT_PARAMS (JSON) and BKBOPT_TRIAL. The last line of the output is the\n"
        "value: a number for each objective, or name=number for each if they have names, and name=number for each\n"
        "constraint. Another exit status than 0, or no number, fails the trial.\n\n"
        "Ctrl-C ends the commands and queues their points; the same command line continues. A kill -9 may leave\n"
        "commands running: end them yourself. Their trials are run again after a minute without heartbeat; if nothing\n"
        "else is left to do, the same command line waits for that."
    )
    run.add_argument("--storage", metavar="FILE.db", help="the log; by default the name of the space with .db")
    text = "number of finished trials in the log at which to end; without it the run goes on until Ctrl-C"
    run.add_argument("--trials", type=readers.count, metavar="N", help=text)
    run.add_argument("--jobs", type=readers.count, default=1, metavar="J", help="how many at once (default 1)")
    text = "end once the regret of the recommended point is at most R, in units of the value, at confidence 0.95"
    run.add_argument("--stop-at-regret", type=readers.regret, metavar="R", help=text)
    text = "seconds after which a command is ended, and its trial fails"
    run.add_argument("--timeout-per-trial", type=readers.seconds, metavar="S", help=text)
    run.add_argument("--quiet", action="store_true", help="no progress bar")
    _add_init(commands)
    text = "replace the search space of a log, or the rows of its pool, for later trials"
    more = (
        ". Parameters may be added and removed, and ranges and choices changed; of the options of SPACE.toml only "
        "beta, constraints, feasible and n_startup_trials"
    )
    change = commands.add("change", model_commands.change, text, _STATE, more=more)
    change.add_argument("new", metavar="SPACE.toml|ROWS", help="the space, or a file with the rows as for --pool")
    change.add_argument("--pool", **{**_POOL, "help": "the earlier rows, where these are not in the log"})
    text = "the value that earlier trials had for a new parameter; once for each"
    change.add_argument("--past", dest="earlier", **{**_ATTR, "help": text})
    limits = change.add_mutually_exclusive_group()
    limits.add_argument("--constraint", **_CONSTRAINT)
    text = "no limits of measured quantities from now on"
    limits.add_argument("--no-constraints", dest="constraint", action="store_const", const=[], help=text)
    rules = change.add_mutually_exclusive_group()
    text = "a rule for the rows of a pool from now on, as in init; once for each"
    rules.add_argument("--feasible", metavar="RULE", action="append", help=text)
    text = "no rules for the rows from now on"
    rules.add_argument("--no-rules", dest="feasible", action="store_const", const=[], help=text)
    text = "compile all loops now, as when a container image is built; otherwise the first runs compile them"
    compiling = commands.add("compile", _compile, text)
    compiling.add_argument("--quiet", action="store_true", help="no progress bar")


def _add_init(commands: _Commands) -> None:
    init = commands.add("init", model_commands.init, "make a log from a search space, or over the rows of a pool")
    init.formatter_class = argparse.RawDescriptionHelpFormatter
    init.usage = "bkbopt init SPACE.toml STATE [--force]\n       bkbopt init --pool ROWS [options] STATE"
    init.epilog = "".join((space_file.__doc__ or "").partition("A search space in TOML")[1:])
    text = "the search space, shown below; with --pool there is none; and the log: a new SQLite file"
    init.add_argument("files", metavar="SPACE.toml STATE", nargs="*", help=text)
    init.add_argument("--force", action="store_true", help="replace a file that exists")
    text = "search the rows of a CSV, Parquet or .npy file, or of a folder of them; later commands take it, too"
    pool = init.add_argument_group("search over a pool")
    pool.add_argument("--pool", metavar="ROWS", help=text)
    pool.add_argument("--id-column", metavar="NAME", help="the column that names the rows, and is no feature")
    text = "a column of a CSV file that is a feature, once for each; by default all but that of the names"
    pool.add_argument("--column", metavar="NAME", action="append", help=text)
    pool.add_argument("--constraint", dest="constraints", **_CONSTRAINT)
    pool.add_argument("--direction", choices=("minimize", "maximize"), help="of the value (default minimize)")
    text = "avoid proposes no row twice (default allow)"
    pool.add_argument("--duplicates", choices=("allow", "avoid"), help=text)
    text = "propose rows only for which this rule about the columns holds, as 'width * depth <= 64'; once for each"
    pool.add_argument("--feasible", metavar="RULE", action="append", help=text)
    pool.add_argument(
        "--seed", type=readers.whole_number, metavar="N", help="of the random numbers, a whole number >= 0"
    )


def _add_asking(commands: _Commands) -> None:
    text = "print the next trials, which are running from then on"
    more = (
        ". It takes a second or more: Python and torch start, and the model is fitted to all trials. With -n 50 this "
        "happens once for 50 trials, with `run` once for all"
    )
    ask = commands.add("ask", model_commands.ask, text, _STATE, more=more)
    ask.add_argument("-n", type=readers.count, default=1, help="how many (default 1)")
    ask.add_argument("--fixed", **_FIXED)
    ask.add_argument("--pool", **_POOL)
    enqueue = commands.add("enqueue", model_commands.enqueue, "queue a point to be asked next", _STATE)
    enqueue.add_argument("params", metavar="JSON", help="its parameters; those left out are suggested")
    enqueue.add_argument("--pool", **_POOL)


def _add_telling(commands: _Commands) -> None:
    tell = commands.add(
        "tell", tell_command.tell, "report a value of a trial, or of a point that was never asked", _STATE
    )
    text = (
        "the id of the trial (not with --params), and a finite number, or NAME=number, for each objective; of several "
        "objectives none for one that is not measured"
    )
    tell.add_argument("numbers", metavar="ID VALUE", nargs="*", help=text)
    tell.add_argument("--params", metavar="JSON", help="parameters of a point that was never asked; starts torch")
    text = (
        "past data: a CSV file with a line for each trial and columns named as the parameters, value (values_0, "
        "values_1, ..., or names of objectives), and if there are any std and the constraints; or a table of "
        "`bkbopt export`; all lines or none; starts torch"
    )
    tell.add_argument("--from", dest="past", metavar="PAST.csv", help=text)
    text = "tell the lines of --from, too, that equal finished trials in parameters and values, as real repeats may"
    tell.add_argument("--again", action="store_true", help=text)
    text = "the column with the values in the file of --from; once for each objective"
    tell.add_argument("--value", metavar="COLUMN", action="append", default=[], help=text)
    text = "the measured value of a constraint; once for each; a VALUE may then be left out"
    tell.add_argument("--constraint", metavar="NAME=G", type=readers.limit, action="append", default=[], help=text)
    text = "known standard deviation of the value's noise; once for each objective"
    tell.add_argument("--std", metavar="S", type=readers.deviation, action="append", default=[], help=text)
    text = "replace the outcome of a finished trial, or of a failed one"
    tell.add_argument("--replace", action="store_true", help=text)
    tell.add_argument("--user-attr", **_ATTR)
    tell.add_argument("--pool", **{**_POOL, "help": f"with --from or --params, {_POOL['help']}"})
    fail = commands.add("fail", log_commands.fail, "report that a trial gave no value", _STATE)
    fail.add_argument("id", metavar="ID", type=readers.whole_number, help="the trial")
    text = "its point is not the reason, as where a machine breaks down: the search learns nothing from it"
    fail.add_argument("--lost", action="store_true", help=text)
    fail.add_argument("--user-attr", **_ATTR)
    attr = commands.add("set-user-attr", log_commands.set_attrs, "keep something with a trial, in any state", _STATE)
    attr.add_argument("id", metavar="ID", type=readers.whole_number, help="the trial")
    attr.add_argument("attrs", metavar="NAME=VALUE", type=readers.attribute, nargs="+", help=_ATTR["help"])
    recover = commands.add("recover", log_commands.recover, "fail running trials of processes that died", _STATE)
    text = "seconds since the ask of a trial, or since its last heartbeat"
    recover.add_argument("--older-than", type=readers.seconds, metavar="SECONDS", help=text)
    recover.add_argument("--enqueue", action="store_true", help="queue their points, to be asked again")
    recover.add_argument("--list", action="store_true", help="print the running trials and their age, change nothing")


def _add_reading(commands: _Commands) -> None:
    best = commands.add(
        "best", model_commands.best, "print the point to use and the best value told, or the front", _STATE
    )
    best.add_argument("--fixed", **_FIXED)
    text = "print a bound of the recommended point's regret, too, in units of the value, at confidence 0.95"
    best.add_argument("--regret", action="store_true", help=text)
    best.add_argument("--pool", **_POOL)
    show = commands.add("show", log_commands.show, "print what the log holds", _STATE)
    show.add_argument("--trials", action="store_true", help="print all trials instead, one a line")
    text = "follow the progress of a log: one line on a terminal, else a line for each change"
    follow = commands.add("watch", watch, text, _STATE)
    follow.add_argument(
        "--interval", type=readers.seconds, default=2.0, metavar="SECONDS", help="between looks (default 2)"
    )
    follow.add_argument("--once", action="store_true", help="print one line and end")
    export = commands.add("export", log_commands.export, "write the trials as a table", _STATE)
    export.add_argument("out", metavar="OUT.csv", help="where to; - is the standard output")
    plot = commands.add("plot", model_commands.plot, "draw a picture", _STATE)
    plot.add_argument("out", metavar="OUT.png", help="where to; the ending says which format")
    plot.add_argument("--kind", choices=model_commands.KINDS, default="overview", help="which (default overview)")
    plot.add_argument("--x", metavar="NAME", help="the parameter from left to right: slice, contour, dependence, pool")
    plot.add_argument("--y", metavar="NAME", help="the one from bottom to top: contour, dependence, pool")
    named = "name of the value, with its unit; once for each objective"
    plot.add_argument("--value-name", type=as_text, metavar="NAME", action="append", default=[], help=named)
    of_one = (
        "number or name of an objective, or name of a constraint or attribute, that is drawn as if it were the only one"
    )
    plot.add_argument("--objective", type=as_text, metavar="NAME", help=of_one)
    plot.add_argument("--pool", **_POOL)
    text = "write the run as a page of HTML in one file: result, pictures, trials, options"
    report = commands.add("report", model_commands.report, text, _STATE)
    report.add_argument("out", metavar="OUT.html", help="where to")
    report.add_argument("--title", metavar="TEXT", help="of the page; by default the name of the log")
    report.add_argument("--value-name", type=as_text, metavar="NAME", action="append", default=[], help=named)
    report.add_argument("--pool", **_POOL)
