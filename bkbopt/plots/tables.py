"""The tables of a report: trials, the space or pool, options, versions."""

import platform
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import metadata
from typing import Any

from bkbopt._support.showing import with_deviation
from bkbopt.optimizer import Optimizer
from bkbopt.optimizer.log.trials import Trial, values_of
from bkbopt.plots.page import Html, element, pill, table
from bkbopt.search.trials.reports import FrontPoint
from bkbopt.search.trials.states import COMPLETE, FAIL, RUNNING, WAITING
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.columns import RANKED
from bkbopt.spaces.space import Categorical, Ordinal, Parameter, Space

__all__ = [
    "LOST",
    "STATES",
    "VALUELESS",
    "candidates_table",
    "cell",
    "constraints_table",
    "front_table",
    "options_table",
    "row_words",
    "state_of",
    "trials_table",
    "versions_table",
]

#: Characters of a value in a cell.
LONGEST = 80
#: Largest number of choices of a parameter that are listed.
LISTED = 20
#: The states of trials in words.
STATES = {COMPLETE: "complete", RUNNING: "running", WAITING: "queued", FAIL: "failed"}
#: The words for a failed trial that ended for a reason that is not its point, and for one without a value, as pruned
#: trials of a study are.
LOST, VALUELESS = "lost", "without value"
#: What names the row of a pool, by the words of a report.
ROW = {"row of the pool": "index", "label": "label"}
#: Largest number of columns of attributes.
MOST_ATTRS = 20
#: Packages whose versions are listed.
PACKAGES = ("bkbopt", "torch", "numpy", "scipy", "numba", "botorch", "matplotlib")


def cell(value: object) -> str:
    """The text of a value in a cell: six digits of a number, the beginning of a long text."""
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\u2026"


def state_of(trial: Trial, lost: Container[int]) -> str:
    """The state of a trial in words; `lost` are the ids of the lost trials."""
    if trial.state == COMPLETE and not values_of(trial) and not trial.constraints:
        return VALUELESS
    return LOST if trial.id in lost else STATES[trial.state]


def row_words(points: Iterable[object]) -> dict[str, str]:
    """The attributes in which any of these trials or recommended points names its row of a pool, by their words."""
    every = list(points)
    return {words: own for words, own in ROW.items() if any(getattr(point, own) is not None for point in every)}


def trials_table(
    opt: Optimizer, trials: Sequence[Trial], value_names: Sequence[str], notes: Mapping[int, Sequence[str]], name: str
) -> Html:
    """Trials with values, constraints, parameters, attributes and times; `notes` by id are beside some."""
    names = list(dict.fromkeys(parameter for trial in trials for parameter in trial.params))
    row_names, lost = row_words(trials), {trial.id for trial in opt.lost_trials}
    has_notes = any(notes.values())
    head = ["trial", *value_names, "state", *(["note"] * has_notes), *opt.constraints]
    attrs = list(dict.fromkeys(attr for trial in trials for attr in trial.user_attrs))
    more = f"; {len(attrs) - MOST_ATTRS} more attributes in trials_dataframe()" if len(attrs) > MOST_ATTRS else ""
    attrs = attrs[:MOST_ATTRS]
    head += [*row_names, *names, *attrs, "asked (UTC)", "seconds"]

    def row(trial: Trial) -> Iterator[object]:
        yield trial.id
        yield from map(cell, values_of(trial) or [None] * len(value_names))
        yield state_of(trial, lost)
        if has_notes:
            yield Html("".join(map(pill, notes.get(trial.id, ()))))
        yield from (cell(trial.constraints.get(constraint)) for constraint in opt.constraints)
        yield from (cell(getattr(trial, own)) for own in row_names.values())
        yield from (cell(trial.params.get(parameter)) for parameter in names)
        yield from (cell(trial.user_attrs.get(attr)) for attr in attrs)
        yield _time(trial.asked_at)
        yield _seconds(trial.asked_at, trial.told_at)

    address = f"table-{name.partition(',')[0].replace(' ', '-')}"
    rows = (list(row(trial)) for trial in trials)
    shown = name.replace("trials", "trial", 1) if len(trials) == 1 else name
    return table(f"{len(trials)} {shown}; numbers have six digits{more}", head, rows, id_=address)


def front_table(opt: Optimizer, value_names: Sequence[str], most: int) -> Html:
    """The first `most` points of the recommended front, with posterior means and standard deviations."""
    front = opt.recommend_front()
    names = list(dict.fromkeys(name for point in front for name in point.params))
    row_names = row_words(front)
    head = [*(f"{name} (mean and sd)" for name in value_names), *row_names, *names]

    def row(point: FrontPoint) -> Iterator[object]:
        yield from (with_deviation(mean, sd) for mean, sd in zip(point.means, point.stds, strict=True))
        yield from (cell(getattr(point, own)) for own in row_names.values())
        yield from (cell(point.params.get(name)) for name in names)

    name = "recommended points" + (f", of {len(front)}" if len(front) > most else "")
    return table(name, head, [list(row(point)) for point in front[:most]])


def _time(at: datetime | None) -> str:
    return "" if at is None else at.strftime("%Y-%m-%d %H:%M:%S")


def _seconds(start: datetime | None, end: datetime | None) -> str:
    return "" if start is None or end is None else f"{(end - start).total_seconds():.3g}"


def constraints_table(opt: Optimizer, trials: Sequence[Trial]) -> Html:
    """How often each constraint was told and violated."""
    rows = []
    for name, text in zip(opt.constraints, opt.options["constraints"], strict=True):
        told = [trial for trial in trials if name in trial.constraints]
        values = [trial.constraints[name] for trial in told]
        ends = [cell(min(values)), cell(max(values))] if told else ["", ""]
        n_violated = sum(not trial.limits[name].holds(trial.constraints[name]) for trial in told)
        rows.append([text, len(told), n_violated, *ends])
    return table(
        "Constraints: limits, or names of excesses, feasible where <= 0",
        ["constraint", "told", "violated", "smallest", "largest"],
        rows,
    )


# -- options and versions of the run -----------------------------------------------------------------------------------


def candidates_table(opt: Optimizer) -> Html:
    """The parameters of the space, or the columns of the pool."""
    if opt.space is not None:
        return _space_table(opt.space)
    assert opt.pool is not None
    return _pool_table(opt.pool)


def _space_table(space: Space) -> Html:
    rows = []
    for name, parameter in space.parameters.items():
        conditions = (f"{parent} is {' or '.join(map(str, own))}" for parent, own in (parameter.when or {}).items())
        rows.append([name, _range(parameter), " and ".join(conditions)])
    if not space.is_conditional:
        return table("The search space", ["parameter", "values"], [row[:2] for row in rows])
    return table("The search space", ["parameter", "values", "active where"], rows)


def _range(parameter: Parameter) -> str:
    if isinstance(parameter, Categorical | Ordinal):
        return _listed(parameter.listed)
    return f"{parameter.expected}{', logarithmic' * parameter.log}"


def _listed(values: Sequence[object]) -> str:
    more = f" and {len(values) - LISTED} more" if len(values) > LISTED else ""
    return ", ".join(map(cell, values[:LISTED])) + more


def _pool_table(pool: Arms) -> Html:
    caption = f"The pool, {len(pool)} arms"
    if pool.columns is None:
        return element("p", f"{caption}, which have no columns.")
    rows = []
    for j, name in enumerate(pool.columns.names):
        choices = pool.columns.choices.get(j)
        if choices is None:
            column = pool.values_in(j)
            ends, tails = map(cell, (float(column[0]), float(column[-1]))), pool.columns.tails.get(j)
            bulk = "" if tails is None else f"; compressed beyond {cell(tails.middle)} ± {cell(tails.half)}"
            rows.append([name, "number", f"from {' to '.join(ends)}{bulk}"])
        else:
            rows.append([name, "ordered choice" if pool.columns.kinds[j] == RANKED else "choice", _listed(choices)])
    return table(caption, ["column", "kind", "values"], rows)


def options_table(opt: Optimizer) -> Html:
    """The options of the optimizer."""
    return table(
        "Arguments of Optimizer", ["option", "value"], [[name, _shown(name, v)] for name, v in opt.options.items()]
    )


def _shown(name: str, value: Any) -> str:
    """The value of an option in words; of a function `feasible` the log only knows that there is one."""
    if name == "feasible" and isinstance(value, bool):
        return "a function of the parameters" if value else "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def versions_table() -> Html:
    """Versions of the packages that made the report; the run may have used others."""
    rows = [["Python", platform.python_version()]]
    for name in PACKAGES:
        try:
            rows.append([name, metadata.version(name)])
        except metadata.PackageNotFoundError:
            continue
    return table("Versions used for this page", ["package", "version"], rows)
