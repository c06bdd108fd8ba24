"""The commands, and the parser of their arguments."""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from bkbopt import __version__
from bkbopt._support.locks import locked
from bkbopt.adapters.shell import space_file
from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError

if TYPE_CHECKING:
    from bkbopt import Optimizer, Trial

__all__ = ["main"]

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
    "pareto",
)
#: Seconds that a command waits for others by default.
WAIT = 60.0

Row = dict[str, Any]


def main(argv: list[str] | None = None) -> int:
    """Run one command; `argv` are its arguments, by default those of the process. Returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    args, more = _parser().parse_known_args([_shielded(a) for a in arguments])
    if "numbers" in args:  # argparse takes those in front of the first option only
        args.numbers += [a for a in more if not a.startswith("-")]
        more = [a for a in more if a.startswith("-")]
    if more:
        args.parser.error(f"unrecognized arguments: {' '.join(more)}")
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
    from bkbopt import Optimizer

    space, options = space_file.read_space(args.space)
    opt = Optimizer(space, **options)
    with locked(args.state, args.wait):
        if not args.force and os.path.exists(args.state):
            raise ArgumentError(f"state: {args.state} exists already; take another name, or --force to start anew.")
        opt.save(args.state)
    yield {"state": args.state, **_aims(opt), "parameters": list(space)}


def _ask(args: argparse.Namespace) -> Iterator[Row]:
    fixed = None if args.fixed is None else _as_params("--fixed", args.fixed)
    with _opened(args) as opt:
        trials = opt.ask(args.n, fixed=fixed)
    for trial in trials:
        yield {"id": trial.id, **_point(trial.params, trial.index)}


def _enqueue(args: argparse.Namespace) -> Iterator[Row]:
    params = _as_params("params", args.params)
    with _opened(args) as opt:
        trial = opt.enqueue(params)
    yield {"id": trial.id, "state": trial.state, **_point(trial.params, trial.index)}


def _tell(args: argparse.Namespace) -> Iterator[Row]:
    from bkbopt import Trial

    limits = dict(args.constraint)
    if len(limits) < len(args.constraint):
        raise ArgumentError("--constraint: expected each name once.")
    numbers: list[str] = args.numbers
    params = None if args.params is None else _as_params("--params", args.params)
    number = _read("ID", int, numbers[0], args) if numbers and params is None else None
    values = [_read("VALUE", float, text, args) for text in (numbers if number is None else numbers[1:])]
    if (number is None and params is None) or not (values or limits):
        raise ArgumentError("tell: expected an id and a value, or --params and a value; give one of the two forms.")
    with _opened(args) as opt:
        k = len(opt.directions)
        if values and len(values) != k:
            raise ArgumentError(
                f"tell: expected {k} value{'s' * (k > 1)}, one for each objective, behind an id or --params, "
                f"got {len(values)}; give one of the two forms."
            )
        told = opt.tell(
            number if params is None else params,
            (values[0] if k == 1 else values) if values else None,
            constraints=limits or None,
        )
    assert isinstance(told, Trial)
    yield _finished(opt, told)


def _read(name: str, kind: Callable[[str], Any], text: str, args: argparse.Namespace) -> Any:
    """A number; the message is argparse's, which cannot tell apart an id that may be left out and several values."""
    try:
        return kind(text)
    except ValueError:
        args.parser.error(f"argument {name}: invalid {kind.__name__} value: {text!r}")


def _fail(args: argparse.Namespace) -> Iterator[Row]:
    with _opened(args) as opt:
        failed = opt.fail(args.id)
    yield _finished(opt, failed)


def _best(args: argparse.Namespace) -> Iterator[Row]:
    from bkbopt import Optimizer

    opt = Optimizer.load(args.state)
    if len(opt.directions) > 1:
        yield from (_finished(opt, trial) for trial in opt.best_trials)
        return
    choice = opt.recommend()
    # While no trial is feasible, the recommendation is the point that is nearest to it.
    feasible = any(trial.values and trial.is_feasible for trial in opt.trials)
    yield {
        **_point(choice.params, choice.index),
        "mean": choice.mean,
        "std": choice.std,
        "observed": _finished(opt, opt.best_trial) if feasible else None,
    }


def _show(args: argparse.Namespace) -> Iterator[Row]:
    from bkbopt import Optimizer

    opt = Optimizer.load(args.state)
    if args.trials:
        for trial in opt.trials:
            times = {"asked_at": trial.asked_at, "told_at": trial.told_at}
            yield _finished(opt, trial) | {k: None if at is None else at.isoformat() for k, at in times.items()}
        return
    states = [trial.state for trial in opt.trials]
    limits = {"feasible": sum(t.state == "COMPLETE" and t.is_feasible for t in opt.trials)} if opt.constraints else {}
    yield {
        **_aims(opt),
        "space": None if opt.space is None else opt.space.to_dict()["parameters"],
        "arms": None if opt.pool is None else len(opt.pool),
        "complete": states.count("COMPLETE"),
        **limits,
        "running": [trial.id for trial in opt.trials if trial.state == "RUNNING"],
        "queued": [trial.id for trial in opt.trials if trial.state == "WAITING"],
        "failed": states.count("FAIL"),
        "last_ask": asdict(opt.diagnostics[-1]) if opt.diagnostics else None,
    }


def _plot(args: argparse.Namespace) -> Iterator[Row]:
    from bkbopt import Optimizer, plots

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
        "pareto": plots.pareto,
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


def _aims(opt: "Optimizer") -> Row:
    """What is optimized, by the names of the options."""
    several = len(opt.directions) > 1
    aims: Row = {"directions": list(opt.directions)} if several else {"direction": opt.direction}
    return aims | ({"constraints": list(opt.constraints)} if opt.constraints else {})


def _finished(opt: "Optimizer", trial: "Trial") -> Row:
    several = len(opt.directions) > 1
    values: Row = {"values": list(trial.values) or None} if several else {"value": trial.value}
    limits = {"constraints": dict(trial.constraints), "feasible": trial.is_feasible} if trial.constraints else {}
    return {"id": trial.id, "state": trial.state, **values, **limits, **_point(trial.params, trial.index)}


# -- what is read ------------------------------------------------------------------------------------------------------


def _as_params(argument: str, text: str) -> dict[str, Any]:
    try:
        params = json.loads(text)
    except json.JSONDecodeError as error:
        raise ArgumentError(f"{argument}: expected a JSON object, got {text!r}: {error}.") from None
    if not isinstance(params, dict):
        raise ArgumentTypeError(f"{argument}: expected a JSON object, got {text!r}.")
    return params


# -- the state file ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(args: argparse.Namespace) -> Iterator["Optimizer"]:
    """The optimizer of a state file, which is saved at the end unless something went wrong."""
    from bkbopt import Optimizer

    os.stat(args.state)  # no lock is left beside a file that is not there
    with locked(args.state, args.wait):
        opt = Optimizer.load(args.state)
        yield opt
        opt.save(args.state)


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


def _limit(text: str) -> tuple[str, float]:
    name, equals, value = text.rpartition("=")
    try:
        if name and equals:
            return name, float(value)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"expected NAME=NUMBER, got {text!r}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="bkbopt", description="Bayesian optimisation by ask and tell, on a state file.")
    parser.add_argument("--version", action="version", version=f"bkbopt {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[..., Iterator[Row]], text: str, *, changes: bool) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run, parser=sub)
        if name == "init":
            sub.add_argument("space", metavar="SPACE.toml", help="the search space")
        sub.add_argument("state", metavar="STATE", help="the state file")
        if changes:
            text = f"how long to wait for other commands on this file (default {WAIT:g})"
            sub.add_argument("--wait", type=_seconds, default=WAIT, metavar="SECONDS", help=text)
        return sub

    init = command("init", _init, "make a state file from a search space", changes=True)
    init.formatter_class = argparse.RawDescriptionHelpFormatter
    init.epilog = "".join((space_file.__doc__ or "").partition("A search space in TOML")[1:])
    init.add_argument("--force", action="store_true", help="replace a state file that exists")
    ask = command("ask", _ask, "print the next trials; they count as running until told", changes=True)
    ask.add_argument("-n", type=int, default=1, help="how many (default 1)")
    ask.add_argument("--fixed", metavar="JSON", help="values of some parameters that are held")
    enqueue = command("enqueue", _enqueue, "queue a point to be asked next", changes=True)
    enqueue.add_argument("params", metavar="JSON", help="its parameters; those left out are suggested")
    tell = command("tell", _tell, "report a value of a trial, or of a point that was never asked", changes=True)
    text = "the trial, left out with --params; and a finite number for each objective"
    tell.add_argument("numbers", metavar="ID VALUE", nargs="*", help=text)
    tell.add_argument("--params", metavar="JSON", help="parameters of a point that was never asked")
    text = "the value of a constraint, feasible where <= 0; once for each, and enough without a VALUE"
    tell.add_argument("--constraint", metavar="NAME=G", type=_limit, action="append", default=[], help=text)
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
