"""Commands that need the space or the model; they import torch, and take a second or more."""

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bkbopt._support.locks import locked
from bkbopt._support.replacing import as_path
from bkbopt._support.sqlite import PATIENCE
from bkbopt.adapters.shell import readers, space_file
from bkbopt.adapters.shell.opening import as_aims, loaded, names_of, opened, rows_of_file
from bkbopt.adapters.shell.rows import Row, aims_row, finished, point
from bkbopt.adapters.shell.usage import JSON_ERRORS, UsageError, by_name, check_other_file, json_or_text
from bkbopt.errors import ArgumentError, NotReadyError

if TYPE_CHECKING:
    from bkbopt import Optimizer
    from bkbopt.search.trials.reports import FrontPoint, Recommendation

__all__ = ["KINDS", "ask", "best", "best_rows", "change", "enqueue", "init", "plot", "report", "tell_point"]

#: Kinds of plots: the function of `bkbopt.plots`, the largest number of parameters, and the argument that names the
#: value, or the values of all objectives, if it has one.
KINDS = {
    "overview": ("overview", 0, "value_names"),
    "convergence": ("convergence", 0, "value_name"),
    "slice": ("posterior_slice", 1, "value_name"),
    "contour": ("posterior_contour", 2, "value_name"),
    "dependence": ("partial_dependence", 2, "value_name"),
    "pairs": ("pairwise_dependence", 0, "value_name"),
    "pool": ("pool_ucb", 2, "value_name"),
    "importance": ("importance", 0, None),
    "complexity": ("complexity", 0, None),
    "time": ("ask_time", 0, None),
    "calibration": ("calibration", 0, None),
    "pareto": ("pareto", 0, "value_names"),
}

#: Kinds of plots that need both parameters.
OF_TWO = ("contour", "pool")
#: Options of `init` that need a pool.
POOL_OPTIONS = ("id_column", "column", "constraints", "direction", "duplicates", "feasible", "seed")


def init(args: argparse.Namespace) -> Iterator[Row]:
    """Make a log from a search space, or over the rows of a pool."""
    opt = _over_space(args) if args.pool is None else _over_pool(args)
    with locked(args.state, PATIENCE):
        if not args.force and os.path.exists(args.state):
            raise ArgumentError(f"state: {args.state} exists already; use another name, or --force to replace it.")
        opt.save(args.state)
    yield _described(args.state, opt)


def _described(state: str, opt: "Optimizer") -> Row:
    """What a log searches."""
    arms = {} if opt.pool is None else {"arms": len(opt.pool)}
    return {"state": state, **aims_row(as_aims(opt)), **arms, "parameters": list(names_of(opt))}


def _over_space(args: argparse.Namespace) -> "Optimizer":
    from bkbopt import Optimizer

    given = [name for name in POOL_OPTIONS if getattr(args, name) is not None]
    if given:
        raise UsageError(
            f"--{given[0].replace('_', '-')}: expected only with --pool; options of a search space are lines of "
            "SPACE.toml."
        )
    check_other_file("state", as_path(args.state), args.space, "the search space")
    space, options = space_file.read_space(args.space)
    return Optimizer(space, **options)


def _over_pool(args: argparse.Namespace) -> "Optimizer":
    from bkbopt import Optimizer, Pool

    if args.column and not args.pool.lower().endswith(".csv"):
        raise UsageError(
            "--column: expected only with a CSV file, since later commands read all columns of other files; write a "
            "file with the features and the names of the rows only."
        )
    check_other_file("state", as_path(args.state), args.pool, "the rows of the pool")
    pool = Pool(rows_of_file(args.pool), id_column=args.id_column, columns=args.column)
    options = {name: getattr(args, name) for name in ("constraints", "direction", "duplicates", "feasible", "seed")}
    return Optimizer(pool, **{name: option for name, option in options.items() if option is not None})


def change(args: argparse.Namespace) -> Iterator[Row]:
    """Replace the search space of a log, or the rows of its pool, for later trials."""
    from bkbopt import Optimizer, Pool, Space
    from bkbopt.optimizer.arguments.outcome_constraints import as_limits

    opt, constraints = opened(args), args.constraint
    if opt.pool is None:
        for name in ("feasible", "constraint"):
            if getattr(args, name) is not None:
                raise UsageError(f"--{name}: expected only with rows; of a search space it is a line of SPACE.toml.")
        entries, options = space_file.read_space(args.new)
        space, feasible = Space.parse(entries), options.pop("feasible", None)
        constraints = options.pop("constraints", None)
        as_limits(() if constraints is None else constraints)  # refused before the space is set
        Optimizer(opt.space, **options, constraints=opt.limits, storage=args.state)  # refuses what has to stay
        opt.set_space(space, by_name("--past", args.earlier), feasible=feasible)
    else:
        if args.earlier:
            raise UsageError("--past: expected only with a search space, whose parameters it names.")
        as_limits(() if constraints is None else constraints)
        rows, old = rows_of_file(args.new), opt.pool
        names = list(old.names) if hasattr(rows, "iloc") else None  # a table may have other columns, too
        opt.set_pool(Pool(rows, id_column=old.pool.id_column, columns=names), feasible=args.feasible)
    if constraints is not None:
        opt.set_constraints(constraints)
    yield _described(args.state, opt)


def ask(args: argparse.Namespace) -> Iterator[Row]:
    """Ask for the next trials."""
    fixed = _fixed(args.fixed)
    for trial in opened(args).ask(args.n, fixed=fixed):
        yield {"id": trial.id, **point(trial.params, trial.index, trial.label)}


def enqueue(args: argparse.Namespace) -> Iterator[Row]:
    """Queue a point."""
    params = _as_params("params", args.params)
    trial = opened(args).enqueue(params)
    yield {"id": trial.id, "state": trial.state, **point(trial.params, trial.index, trial.label)}


def tell_point(args: argparse.Namespace, values: list[float | None], limits: dict[str, float]) -> Iterator[Row]:
    """Report the outcome of a point given by its parameters, which needs the space."""
    params = _as_params("--params", args.params)
    opt = opened(args)
    k = len(opt.directions)
    if values and len(values) != k:
        raise ArgumentError(
            f"tell: expected {k} value{'s' * (k > 1)}, one per objective, with an id or --params, got {len(values)}; "
            "give one of the two forms."
        )

    def shaped(numbers: Sequence[float | None]) -> Any:
        return None if not numbers else numbers[0] if k == 1 and len(numbers) == 1 else numbers

    attrs = by_name("--user-attr", args.user_attr)
    told = opt.tell(params, shaped(values), constraints=limits or None, std=shaped(args.std), user_attrs=attrs)
    yield finished(as_aims(opt), told)


def best(args: argparse.Namespace) -> Iterator[Row]:
    """The recommended point; see `best_rows`."""
    fixed = _fixed(args.fixed)
    if args.regret and fixed:
        raise UsageError("--regret: expected without --fixed, since the bound is that of the best point of all.")
    opt = loaded(args)
    if not opt.n_complete:
        raise NotReadyError(f"best: expected at least one trial with a value, got none of {len(opt.trials)}; tell one.")
    if args.regret and len(opt.directions) > 1:
        raise ArgumentError(f"--regret: expected a single objective, got {len(opt.directions)}; leave it out.")
    return best_rows(opt, fixed, with_regret=args.regret)


def best_rows(opt: "Optimizer", fixed: Mapping[str, Any] | None = None, *, with_regret: bool = False) -> Iterator[Row]:
    """The recommended point and the best observed value; for several objectives the recommended Pareto front.

    With `fixed` values there is no observed value, since the point need not have been evaluated. `with_regret` adds the
    bound of `Optimizer.regret_certificate`.
    """
    if len(opt.directions) > 1:
        aims = as_aims(opt)
        for each in opt.recommend_front(fixed=fixed):
            where = point(each.params, each.index, each.label)
            yield {**where, "means": aims.by_name(each.means), "stds": aims.by_name(each.stds), **_sure(each)}
        return
    choice = opt.recommend(fixed=fixed)
    row = {**point(choice.params, choice.index, choice.label), "mean": choice.mean, "std": choice.std, **_sure(choice)}
    if not fixed:
        # If no trial is feasible, the recommendation is the point that is closest to feasibility.
        feasible = any(trial.values and trial.is_feasible for trial in opt.trials)
        row["observed"] = finished(as_aims(opt), opt.best_trial) if feasible else None
    if with_regret:
        row["regret_bound"] = opt.regret_certificate().bound
    yield row


def _sure(found: "Recommendation | FrontPoint") -> Row:
    """The probability that the constraints hold, if there are any."""
    return {} if found.feasibility is None else {"feasibility": found.feasibility}


def plot(args: argparse.Namespace) -> Iterator[Row]:
    """Draw a plot of the log."""
    from bkbopt import plots
    from bkbopt.plots.style import new_figure

    kind = args.kind
    names = [name for name in (args.x, args.y) if name is not None]
    function, most, naming = KINDS[kind]
    if len(names) > most or (args.x is None and args.y is not None) or (kind in OF_TWO and len(names) < 2):
        raise UsageError(
            f"plot: expected {'--x and --y' if kind in OF_TWO else f'at most {most} parameters'} "
            f"with --kind {kind}, got {len(names)}: {names}."
        )
    labels = _value_names(kind, naming, args.value_name)
    check_other_file("out", args.out, args.state)
    known = sorted(new_figure(1.0, 1.0).canvas.get_supported_filetypes())
    if Path(args.out).suffix.lstrip(".").lower() not in known:
        raise UsageError(f"out: expected a file name that ends in one of {', '.join(known)}, got {args.out!r}.")
    opt = loaded(args)
    if args.objective is not None:
        is_name = args.objective in opt.objectives
        opt = opt.single_objective(args.objective if is_name else readers.number_or_text(args.objective))
    drawn = getattr(plots, function)(opt, *names, **labels)
    try:
        drawn.figure.savefig(args.out, dpi=130)  # of a figure it is the figure
    except RuntimeError as error:  # a picture for LaTeX takes the widths of its text from LaTeX
        raise ArgumentError(f"out: {args.out} cannot be drawn: {error}; or name another format.") from None
    yield {"plot": args.out, "kind": kind}


def _value_names(kind: str, argument: str | None, given: list[str]) -> dict[str, Any]:
    """The `argument` of a plot with the names of the values, if any are given."""
    if not given:
        return {}
    if argument == "value_names":
        return {argument: given}
    if argument is None or len(given) > 1:
        expected = "none" if argument is None else "one name"
        raise UsageError(f"--value-name: expected {expected} with --kind {kind}, got {given}.")
    return {argument: given[0]}


def report(args: argparse.Namespace) -> Iterator[Row]:
    """Write the run as a page of HTML."""
    from bkbopt import plots

    check_other_file("out", args.out, args.state)
    opt = loaded(args)
    plots.report(opt, args.out, title=args.title or Path(args.state).name, value_names=args.value_name or None)
    yield {"report": args.out, "trials": len(opt.trials), "bytes": os.path.getsize(args.out)}


def _as_params(argument: str, text: str, other: str = "") -> dict[str, Any]:
    """A JSON object; messages name the `other` form that is allowed."""
    try:
        params = json.loads(text, object_pairs_hook=_once)
    except JSON_ERRORS as error:
        raise UsageError(
            f'{argument}: expected a JSON object such as {{"x": 0.5}}{other}, got {text[:200]!r} ({error}).'
        ) from None
    if not isinstance(params, dict):
        raise UsageError(f"{argument}: expected a JSON object{other}, got {text[:200]!r}.")
    return params


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; of a name that it has twice Python would take the last value."""
    names = [name for name, _ in pairs]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"the name {repeated!r} twice")
    return dict(pairs)


def _fixed(texts: Sequence[str]) -> dict[str, Any]:
    """The values of --fixed, each NAME=VALUE or a JSON object; a VALUE that is no JSON is text."""
    fixed: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if text.lstrip().startswith("{") or not (name and equals):
            given = _as_params("--fixed", text, ", or NAME=VALUE")
        else:
            given = {name: json_or_text(value)}
        if repeated := fixed.keys() & given.keys():
            raise UsageError(f"--fixed: expected each name once, got {sorted(repeated)} twice.")
        fixed |= given
    return fixed
