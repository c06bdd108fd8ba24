"""The command-line tool: ask and tell for black boxes that are not Python.

    bkbopt init SPACE.toml STATE         make a state file from a search space
    bkbopt ask STATE [-n N]              the next trials
    bkbopt tell STATE ID VALUE           the value of a trial
    bkbopt tell STATE --params JSON VALUE    the value of a point that was never asked
    bkbopt fail STATE ID                 a trial gave no value
    bkbopt best STATE                    what to use, and the best value told
    bkbopt show STATE [--trials]         what the state is; or all trials
    bkbopt plot STATE OUT.png [--kind KIND] [--x NAME] [--y NAME]

Results are JSON objects on standard output, one a line. An error is one line on standard error, with exit status 2 for
a command that cannot be understood and 1 for everything else; the state is then as it was. Commands that change the
state lock it, and wait for each other.

A search space in TOML:

    direction = "minimize"               # options of Optimizer, all of them optional
    seed = 0

    [space]
    rate = { type = "float", low = 1e-5, high = 1e-1, log = true }
    width = { type = "int", low = 16, high = 256, step = 16 }
    kind = ["fast", "slow"]              # choices
    size = { type = "ordinal", values = ["S", "M", "L"] }
    depth = { type = "int", low = 1, high = 9, when = { kind = "slow" } }
    threads = 4                          # a fixed value
"""

import argparse
import contextlib
import json
import math
import os
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, NoReturn

from bkbopt import __version__
from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError
from bkbopt.optimizer import Optimizer
from bkbopt.optimizer.trials import Trial
from bkbopt.spaces.space import Categorical, Float, Int, Ordinal

__all__ = ["main", "read_space"]

OPTIONS = ("direction", "seed", "n_startup_trials", "surrogate", "acquisition", "beta", "duplicates", "leaps")
TYPES: dict[str, Any] = {"float": Float, "int": Int, "categorical": Categorical, "ordinal": Ordinal}
NEEDED = {"float": {"low", "high"}, "int": {"low", "high"}, "categorical": {"choices"}, "ordinal": {"values"}}
BESIDES = {
    "float": {"log", "step", "when"},
    "int": {"log", "step", "when"},
    "categorical": {"when"},
    "ordinal": {"when"},
}
KINDS = (
    "overview",
    "convergence",
    "slice",
    "contour",
    "dependence",
    "importance",
    "complexity",
    "time",
    "calibration",
)
#: Seconds that a command waits for others by default.
WAIT = 60.0

Row = dict[str, Any]


def main(argv: list[str] | None = None) -> int:
    """Run one command; `argv` are its arguments, by default those of the process. Returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    args = _parser().parse_args([_shielded(a) for a in arguments])
    try:
        for row in args.run(args):
            sys.stdout.write(json.dumps(row, allow_nan=False) + "\n")
        sys.stdout.flush()
    except (BkbError, OSError) as error:
        return _failed(error)
    except KeyboardInterrupt:
        return _failed("interrupted", 130)
    return 0


def _failed(error: object, status: int = 1) -> int:
    """Say on one line what went wrong."""
    text = " ".join(str(error).split()) or type(error).__name__
    sys.stderr.write(f"bkbopt: error: {text}\n")
    if isinstance(error, BrokenPipeError):
        # Nobody reads what is left in the buffer, and Python would complain of that at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


# -- the commands ------------------------------------------------------------------------------------------------------


def _init(args: argparse.Namespace) -> Iterator[Row]:
    space, options = read_space(args.space)
    opt = Optimizer(space, **options)
    with _locked(args.state, args.wait):
        if not args.force and os.path.exists(args.state):
            raise ArgumentError(f"state: {args.state} exists already; take another name, or --force to start anew.")
        opt.save(args.state)
    yield {"state": args.state, "direction": opt.direction, "parameters": list(space)}


def _ask(args: argparse.Namespace) -> Iterator[Row]:
    with _opened(args) as opt:
        trials = opt.ask(args.n)
    for trial in trials:
        yield {"id": trial.id, **_point(trial.params, trial.index)}


def _tell(args: argparse.Namespace) -> Iterator[Row]:
    if (args.id is None) == (args.params is None):
        raise ArgumentError("tell: expected an id and a value, or --params and a value; give one of the two forms.")
    what = args.id if args.params is None else _as_params(args.params)
    with _opened(args) as opt:
        told = opt.tell(what, args.value)
    assert isinstance(told, Trial)
    yield _finished(told)


def _fail(args: argparse.Namespace) -> Iterator[Row]:
    with _opened(args) as opt:
        failed = opt.fail(args.id)
    yield _finished(failed)


def _best(args: argparse.Namespace) -> Iterator[Row]:
    opt = Optimizer.load(args.state)
    observed, choice = opt.best_trial, opt.recommend()
    yield {
        **_point(choice.params, choice.index),
        "mean": choice.mean,
        "std": choice.std,
        "observed": _finished(observed),
    }


def _show(args: argparse.Namespace) -> Iterator[Row]:
    opt = Optimizer.load(args.state)
    if args.trials:
        for trial in opt.trials:
            times = {"asked_at": trial.asked_at, "told_at": trial.told_at}
            yield _finished(trial) | {k: None if at is None else at.isoformat() for k, at in times.items()}
        return
    states = [trial.state for trial in opt.trials]
    domain = opt.domain.state_dict()
    yield {
        "direction": opt.direction,
        "space": domain["space"]["parameters"] if "space" in domain else None,  # type: ignore[index]
        "arms": opt.domain.n_arms if "space" not in domain else None,
        "complete": states.count("COMPLETE"),
        "running": [trial.id for trial in opt.trials if trial.state == "RUNNING"],
        "failed": states.count("FAIL"),
        "last_ask": asdict(opt.diagnostics[-1]) if opt.diagnostics else None,
    }


def _plot(args: argparse.Namespace) -> Iterator[Row]:
    from bkbopt import plots

    opt, ask = Optimizer.load(args.state), args.kind
    names = [name for name in (args.x, args.y) if name is not None]
    most = {"slice": 1, "contour": 2, "dependence": 2}.get(ask, 0)
    if len(names) > most or (args.x is None and args.y is not None) or (ask == "contour" and len(names) < 2):
        raise ArgumentError(
            f"plot: expected {'--x and --y' if ask == 'contour' else f'at most {most} parameters'} with --kind {ask}, "
            f"got {len(names)}: {names}."
        )
    kinds: dict[str, Callable[..., Any]] = {
        "overview": plots.overview,
        "convergence": plots.convergence,
        "slice": plots.posterior_slice,
        "contour": plots.posterior_contour,
        "dependence": plots.partial_dependence,
        "importance": plots.importance,
        "complexity": plots.complexity,
        "time": plots.ask_time,
        "calibration": plots.calibration,
    }
    drawn = kinds[ask](opt, *names)
    figure = drawn if ask == "overview" else drawn.figure
    known = sorted(figure.canvas.get_supported_filetypes())
    if Path(args.out).suffix.lstrip(".").lower() not in known:
        raise ArgumentError(f"out: expected a file name that ends on one of {', '.join(known)}, got {args.out!r}.")
    figure.savefig(args.out, dpi=130)
    yield {"plot": args.out, "kind": ask}


def _point(params: Mapping[str, Any], index: int | None) -> Row:
    return {"params": dict(params)} | ({} if index is None else {"index": index})


def _finished(trial: Trial) -> Row:
    return {"id": trial.id, "state": trial.state, "value": trial.value, **_point(trial.params, trial.index)}


# -- what is read ------------------------------------------------------------------------------------------------------


def read_space(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A search space and the options of `Optimizer` from a TOML file; the module's text shows one.

    Raises:
        ArgumentError: not TOML, no `[space]`, unknown keys, or a parameter that cannot be.
        ArgumentTypeError: an entry of the wrong type.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        try:
            document = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ArgumentError(f"space: expected a TOML file, got {os.fspath(path)}: {error}.") from None
    entries = document.pop("space", None)
    if not isinstance(entries, dict) or not entries:
        raise ArgumentError(f"space: expected a table [space] with parameters in {os.fspath(path)}, got {entries!r}.")
    unknown = set(document) - set(OPTIONS)
    if unknown:
        raise ArgumentError(f"space: expected options among {OPTIONS}, got {sorted(unknown)}.")
    return {name: _parameter(name, entry) for name, entry in entries.items()}, document


def _parameter(name: str, entry: Any) -> Any:
    values = entry if isinstance(entry, list) else [entry]
    if any(isinstance(v, float) and not math.isfinite(v) for v in values):
        raise ArgumentError(f"parameter {name!r}: expected finite numbers, which JSON can say, got {entry!r}.")
    if not isinstance(entry, dict):
        return entry
    fields = dict(entry)
    kind = fields.pop("type", None)
    if kind not in TYPES:
        raise ArgumentError(f"parameter {name!r}: expected a type among {tuple(TYPES)}, got {kind!r}.")
    needed, besides = NEEDED[kind], BESIDES[kind]
    if not needed <= set(fields) <= needed | besides:
        raise ArgumentError(
            f"parameter {name!r}: expected {sorted(needed)} and no more than {sorted(besides)} besides, "
            f"got {sorted(fields)}."
        )
    try:
        return TYPES[kind](**fields)
    except (ArgumentError, ArgumentTypeError) as error:
        raise type(error)(f"parameter {name!r}: {error}") from None


def _as_params(text: str) -> dict[str, Any]:
    try:
        params = json.loads(text)
    except json.JSONDecodeError as error:
        raise ArgumentError(f"--params: expected a JSON object, got {text!r}: {error}.") from None
    if not isinstance(params, dict):
        raise ArgumentTypeError(f"--params: expected a JSON object, got {text!r}.")
    return params


# -- the state file ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(args: argparse.Namespace) -> Iterator[Optimizer]:
    """The optimizer of a state file, which is saved at the end unless something went wrong."""
    os.stat(args.state)  # no lock is left beside a file that is not there
    with _locked(args.state, args.wait):
        opt = Optimizer.load(args.state)
        yield opt
        opt.save(args.state)


@contextlib.contextmanager
def _locked(state: str, wait: float) -> Iterator[None]:
    """Hold the lock of a state file: no other command changes it meanwhile.

    The lock is one of the operating system on a file beside the state; it goes with the process that holds it. The file
    stays: if it were removed, two processes could hold locks on two files of that name.
    """
    path = os.path.realpath(state) + ".lock"
    deadline = time.monotonic() + wait
    with open(path, "a+b") as file:
        while not _try_lock(file):
            if time.monotonic() >= deadline:
                raise TimeoutError(
                    f"{state}: another command has held its lock for {wait:g} s; wait for it, or see who holds {path}."
                )
            time.sleep(0.05)
        try:
            yield
        finally:
            _unlock(file)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[bytes]) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


# -- the command line --------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Errors take one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"bkbopt: error: {' '.join(message.split())} (see {self.prog} --help)\n")


def _shielded(argument: str) -> str:
    """A negative number behind a blank: argparse takes -1e-3 for an option."""
    try:
        float(argument)
    except ValueError:
        return argument
    return f" {argument}" if argument.startswith("-") else argument


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds >= 0.0:  # NaN too
        raise argparse.ArgumentTypeError(f"expected a number of seconds >= 0, got {text}")
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="bkbopt", description="Bayesian optimisation by ask and tell, on a state file.")
    parser.add_argument("--version", action="version", version=f"bkbopt {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[..., Iterator[Row]], text: str, *, changes: bool) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
        if name == "init":
            sub.add_argument("space", metavar="SPACE.toml", help="the search space")
        sub.add_argument("state", metavar="STATE", help="the state file")
        if changes:
            text = f"how long to wait for other commands on this file (default {WAIT:g})"
            sub.add_argument("--wait", type=_seconds, default=WAIT, metavar="SECONDS", help=text)
        return sub

    init = command("init", _init, "make a state file from a search space", changes=True)
    init.formatter_class = argparse.RawDescriptionHelpFormatter
    init.epilog = "".join((__doc__ or "").partition("A search space in TOML")[1:])
    init.add_argument("--force", action="store_true", help="replace a state file that exists")
    ask = command("ask", _ask, "print the next trials; they count as running until told", changes=True)
    ask.add_argument("-n", type=int, default=1, help="how many (default 1)")
    tell = command("tell", _tell, "report a value of a trial, or of a point that was never asked", changes=True)
    tell.add_argument("id", metavar="ID", type=int, nargs="?", help="the trial; left out with --params")
    tell.add_argument("value", metavar="VALUE", type=float, help="a finite number")
    tell.add_argument("--params", metavar="JSON", help="parameters of a point that was never asked")
    fail = command("fail", _fail, "report that a trial gave no value", changes=True)
    fail.add_argument("id", metavar="ID", type=int, help="the trial")
    command("best", _best, "print the point to use, and the best value told", changes=False)
    show = command("show", _show, "print what the state is", changes=False)
    show.add_argument("--trials", action="store_true", help="print all trials instead, one a line")
    plot = command("plot", _plot, "draw a picture", changes=False)
    plot.add_argument("out", metavar="OUT.png", help="where to; the ending says which format")
    plot.add_argument("--kind", choices=KINDS, default="overview", help="which picture (default overview)")
    plot.add_argument("--x", metavar="NAME", help="the parameter from left to right: slice, contour, dependence")
    plot.add_argument("--y", metavar="NAME", help="the one from bottom to top: contour, dependence")
    return parser


if __name__ == "__main__":
    sys.exit(main())
