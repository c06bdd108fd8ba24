"""Conversion of the arguments of `tell` (trials, ids, parameters, tables) to checked reports of single trials."""

import difflib
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bkbopt._support.arrays import UNKNOWN
from bkbopt._support.checks import check_choice, check_flag
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer.arguments.frames import is_table, named, rows_of, whole
from bkbopt.optimizer.arguments.naming import as_names
from bkbopt.optimizer.designers.logged_designer import LoggedDesigner
from bkbopt.optimizer.log.aims import Aims
from bkbopt.optimizer.log.attributes import as_attrs, checked_attrs
from bkbopt.optimizer.log.objectives import apart, is_pair
from bkbopt.optimizer.log.reporting import Report
from bkbopt.optimizer.log.trial_list import TrialList
from bkbopt.optimizer.log.trials import Outcome, Trial
from bkbopt.optimizer.telling.told_columns import (
    attrs_by_row,
    known_stds,
    matrix,
    plain,
    simple_attrs,
    values_by_row,
    with_nan,
)
from bkbopt.optimizer.telling.told_points import not_told, note_missing_constraints, note_other_points, note_told_before
from bkbopt.optimizer.translation.rounded_points import note_near_points
from bkbopt.spaces.base import Params
from bkbopt.spaces.values import shown

__all__ = ["failures_of", "report_of", "tell"]

logger = logging.getLogger(__name__)

NO_OUTCOME = Outcome()
#: Choices of `invalid` that keep what rows have.
KEEPING = ("skip", "partial")
#: Similarity, by `difflib`, from which an unknown name is taken for a misspelt one.
ALIKE = 0.75


@dataclass(frozen=True)
class _Told:
    """The arguments of `tell` as lists over trials; names of table columns are resolved, nothing else is checked."""

    targets: list[Any]
    value: Any
    constraints: Mapping[str, Any]
    std: Any
    attrs: Sequence[Mapping[str, Any]]


def trial_id(trial: Any, *, takes_params: bool = True) -> int:
    """The id of a trial, which may be given as an integer; errors say whether the call takes parameters, too."""
    if isinstance(trial, Trial):
        return trial.id
    if isinstance(trial, int | np.integer) and not isinstance(trial, bool):
        return int(trial)
    expected = "a trial, its id, or a dict of parameters" if takes_params else "a trial or its id"
    advice = _advice(trial, takes_params=takes_params)
    raise ArgumentTypeError(f"trial: expected {expected}, got {type(trial).__name__}{advice}.")


def _advice(trial: Any, *, takes_params: bool) -> str:
    """What to pass in place of something that is no trial, for messages."""
    if takes_params and hasattr(trial, "to_dict"):  # a row of a data frame
        return "; pass dict(row), or list(ids) for trials by their ids"
    if takes_params and isinstance(trial, np.ndarray | torch.Tensor):
        return "; pass dict(zip(names, row)), or a list of these for many points, or list(ids) for trials by their ids"
    if takes_params and isinstance(trial, list | tuple | float):  # in a list: the values of a point by their places
        return "; of a point pass a dict, as dict(zip(names, row))"
    is_text = isinstance(trial, str | bytes)
    return "; pass a list of them for many" if isinstance(trial, Iterable) and not is_text else ""


def report_of(given: Any, outcome: Outcome = NO_OUTCOME, *, takes_params: bool = False) -> Report:
    """The report of a trial or its id, or of a point."""
    if takes_params and isinstance(given, Mapping):
        return Report(given, outcome)
    number = trial_id(given, takes_params=takes_params)
    return Report(number, outcome, given if isinstance(given, Trial) else None)


def failures_of(
    given: Any,
    without_gaps: Callable[[Params], Params] | None = None,
    *,
    is_lost: bool = False,
    user_attrs: Mapping[str, Any] | None = None,
) -> tuple[list[Report], bool]:
    """The reports that a trial or point, or each of a list, has failed or is lost, and whether it was a list.

    `without_gaps` completes points, which are refused without it.
    """
    many = isinstance(given, list | tuple | TrialList)
    trials = list(given) if many else [given]
    if without_gaps is not None:
        trials = [whole(one, without_gaps) for one in trials]
    attrs = attrs_by_row(as_attrs(user_attrs), {}, len(trials)) if many else [checked_attrs(user_attrs)]
    outcomes = [Outcome(is_lost=is_lost, user_attrs=own) for own in attrs]
    pairs = zip(trials, outcomes, strict=True)
    return [report_of(one, outcome, takes_params=without_gaps is not None) for one, outcome in pairs], many


def tell(
    core: LoggedDesigner,
    trial: Any,
    value: Any,
    *,
    argument: str = "value",
    std: Any = None,
    replace: bool = False,
    again: bool = True,
    **more: Any,
) -> tuple[list[Trial], bool]:
    """The trials of a call of `tell`, and whether it was a call for many; see `Optimizer.tell`.

    Args:
        core: the log with its designer.
        trial: the trial or trials.
        value: the value or values.
        argument: the name of `value` in the user's call, for messages.
        std: of the value's noise.
        replace: whether outcomes are replaced.
        again: whether what is a finished trial already is told once more.
        more: the other arguments of `Optimizer.tell`.
    """
    problem = core.designer.problem
    reports, many = _reports_of(core, trial, value, argument=argument, std=std, **more)
    if not check_flag("again", again):
        if not many or replace:
            raise ArgumentError("again: expected True for a single trial, and with replace=True, got False.")
        reports = not_told(core, reports)
    n_before = len(core.log)
    told = (core.replace if check_flag("replace", replace) else core.finish)(reports, "tell")
    points = [trial for report, trial in zip(reports, told, strict=True) if isinstance(report.target, Mapping)]
    if not core.has_noted_constraints:
        core.has_noted_constraints = note_missing_constraints(told, core.aims.constraints)
    if problem.space is not None and core.log.running:
        new = [core.log.entries[trial.id].point for trial in points if trial.id >= n_before]
        note_near_points(new, (core.log.entries[i].point for i in core.log.running), problem.space)
    if problem.pool is not None:  # without another look at the file, which may fail
        note_other_points(points, len(told))
    if not core.designer.options.models.deterministic:
        note_told_before(points, core.log.entries)
    return told, many


def _reports_of(
    core: LoggedDesigner,
    trial: Any,
    value: Any,
    *,
    argument: str,
    std: Any,
    constraints: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    invalid: str = "raise",
    user_attrs: Mapping[str, Any] | None = None,
) -> tuple[list[Report], bool]:
    """The reports of a call of `tell`, and whether it was a call for many trials.

    Raises:
        ArgumentError: different numbers of rows, values that are not finite, or unknown names.
        ArgumentTypeError: an argument has the wrong type.
    """
    many = is_table(trial) or isinstance(trial, list | tuple | TrialList)
    _check_call(trial, value, constraints, columns, invalid, user_attrs, many=many)
    aims, without_gaps = core.aims, core.conversion.without_gaps
    by_name = apart(argument, value, aims.objectives, many=many)
    value, others = by_name.values, dict(by_name.others)
    measured = {name: others[name] for name in aims.limits if name in others} | dict(constraints or {})
    if others:
        known = {*aims.limits, *core.designer.problem.candidates.names, *_names_of(trial, others, many=many)}
        others = {name: item for name, item in others.items() if name not in known}
        _check_misspelt(argument, others, [name for name in aims.constraints if name not in measured])
    if value is None and not measured:
        raise ArgumentTypeError(
            f"{argument}: expected a finite number, got None; call fail for a trial without a value."
        )
    for name, number in measured.items():
        _check_measured(name, number, many=many)
    if std is not None and by_name.stds is not None:
        raise ArgumentError(
            f"std: expected none beside {argument} with pairs (value, std), got {shown(std)}; leave it out."
        )
    std = by_name.stds if std is None else _stds_by_name(std, aims, many=many)
    if is_table(trial):
        told = _from_table(trial, value, measured, std, columns, without_gaps, dict(user_attrs or {}), others)
    elif many:
        targets = [whole(target, without_gaps) for target in trial]
        told = _Told(targets, value, measured, std, attrs_by_row(user_attrs or {}, others, len(targets)))
    else:
        one, of_std = (
            None if given is None else [_one(name, given, aims.k)] for name, given in ((argument, value), ("std", std))
        )
        attrs = simple_attrs(others) | checked_attrs(user_attrs)
        told = _Told(
            [whole(trial, without_gaps)], one, {name: [number] for name, number in measured.items()}, of_std, [attrs]
        )
    return _checked(told, argument, aims, invalid, many=many), many


def _check_call(
    trial: Any, value: Any, constraints: Any, columns: Any, invalid: str, user_attrs: Any, *, many: bool
) -> None:
    """Check the kinds of the arguments of `tell`, and that they fit each other."""
    check_choice("invalid", invalid, ("raise", "fail", *KEEPING))
    if constraints is not None and not isinstance(constraints, Mapping):
        raise ArgumentTypeError(f"constraints: expected a dict from names to values, got {type(constraints).__name__}.")
    as_attrs(user_attrs)
    if invalid in KEEPING and not many:
        raise ArgumentError(f'invalid: expected "raise" or "fail" for a single trial, got {invalid!r}.')
    if columns is not None and not is_table(trial):
        raise ArgumentTypeError(f"columns: only allowed with a data frame, got a {type(trial).__name__}; drop columns.")
    if not is_table(trial) and not isinstance(value, Trial):  # of swapped arguments the value is the better message
        for target in trial if many else [trial]:
            if not isinstance(target, Mapping):
                trial_id(target)


def _check_measured(name: str, number: Any, *, many: bool) -> None:
    """Refuse what is told of a constraint where its value is missing, or has a standard deviation."""
    if number is None:
        raise ArgumentTypeError(f"constraints: expected a finite number for {name!r}, got None; leave it out.")
    of_trials = number if isinstance(number, list | tuple) else []
    pair = next(filter(is_pair, of_trials), None) if many else number
    if is_pair(pair):
        raise ArgumentTypeError(
            f"constraints: expected a number for {name!r}, got the pair {shown(pair)}; pass its first number, since "
            "the noise of constraints is fitted."
        )


def _stds_by_name(std: Any, aims: Aims, *, many: bool) -> Any:
    """Standard deviations in the order of the objectives."""
    found = apart("std", std, aims.objectives, many=many)
    if found.stds is not None:
        raise ArgumentTypeError(f"std: expected a number for each objective, got pairs in {shown(std)}.")
    return found.values


def _check_misspelt(argument: str, others: Mapping[str, Any], untold: Sequence[str]) -> None:
    """Refuse an item whose name is nearly that of a constraint without a value, which would count as feasible."""
    for name in untold:
        if near := difflib.get_close_matches(name, others, 1, cutoff=ALIKE):
            raise ArgumentError(
                f"{argument}: expected the constraint {name!r}, got {near[0]!r}; give the constraint its name, or the "
                "attribute another one."
            )


def _names_of(trial: Any, others: Mapping[str, Any], *, many: bool) -> Iterator[str]:
    """The names by which the points of a call are told; `others` may name columns of a table that are no parameters."""
    if is_table(trial):
        named_there = {given for given in others.values() if isinstance(given, str)}
        yield from (name for name in trial.columns if name not in named_there)
    else:
        yield from (name for one in (trial if many else [trial]) if isinstance(one, Mapping) for name in one)


def _one(name: str, given: Any, k: int) -> Any:
    """The value of one trial, or its `k` values; checks their number."""
    if isinstance(given, str | bytes | Mapping | Trial):
        expected = "a number" if k == 1 else f"{k} numbers, one for each objective"
        got = f"{shown(given)} of type {type(given).__name__}"
        if isinstance(given, Mapping) and name != "std":
            form = "that of the objective" if k == 1 else "a list, in the order of directions"
            got = f"{got}; pass {form}, or name the objectives: directions={{name: direction}}"
        got = "a Trial, which comes first: tell(trial, value)" if isinstance(given, Trial) else got
        raise ArgumentTypeError(f"{name}: expected {expected}, got {got}.")
    try:
        n: int | None = len(given)
    except TypeError:  # it has no length
        n = None
    if k > 1 and n != k:
        raise ArgumentError(f"{name}: expected {k} numbers, one for each objective, got {given!r}.")
    if k == 1 and n is not None and n > 1:
        raise ArgumentError(
            f"{name}: expected a number, since there is one objective and one trial, got {given!r}; pass a list of "
            "trials or points for several values, std= for the noise of a value, or see directions for several "
            "objectives."
        )
    return given


def _from_table(
    frame: Any,
    value: Any,
    measured: dict[str, Any],
    std: Any,
    columns: Sequence[str] | None,
    without_gaps: Callable[[Params], Params],
    attrs: dict[str, Any],
    others: dict[str, Any],
) -> _Told:
    frame, used = named(frame), list[str]()

    def column(name: str, given: Any) -> Any:
        """The values of a column if its name was given, else the argument itself."""
        if isinstance(given, list | tuple) and _are_names(given, or_none=name == "std"):
            unknown = [math.nan] * len(frame)
            return list(zip(*(unknown if part is None else column(name, part) for part in given), strict=True))
        if not isinstance(given, str):
            return given
        if given not in frame.columns:
            raise ArgumentError(f"{name}: expected one of the columns {list(frame.columns)}, got {given!r}.")
        used.append(given)
        return frame[given].tolist()

    value = column("value", value)
    measured = {name: column("constraints", given) for name, given in measured.items()}
    std = column("std", std)
    attrs, others = (  # a list of text has one for each trial
        {name: column("user_attrs", given) if isinstance(given, str) else given for name, given in each.items()}
        for each in (attrs, others)
    )
    if columns is not None:
        unknown = [name for name in as_names("columns", columns) if name not in frame.columns]
        if unknown:
            raise ArgumentError(f"columns: expected columns among {list(frame.columns)}, got {unknown}.")
    chosen = frame[list(columns)] if columns is not None else frame.drop(columns=used)
    points = rows_of(chosen, without_gaps)
    return _Told(points, value, measured, std, attrs_by_row(attrs, others, len(points)))


def _are_names(parts: Sequence[Any], *, or_none: bool) -> bool:
    """Whether all parts are text, some of them perhaps None."""
    are = [isinstance(part, str) for part in parts]
    return any(are) and all(is_one or (or_none and part is None) for is_one, part in zip(are, parts, strict=True))


def _checked(told: _Told, argument: str, aims: Aims, invalid: str, *, many: bool) -> list[Report]:
    n, k, limits = len(told.targets), aims.k, aims.limits
    unknown = [name for name in told.constraints if name not in limits]
    if unknown:
        raise ArgumentError(
            f"constraints: expected names among {tuple(limits)}, got {unknown[0]!r}; name all constraints when the "
            "optimizer is made, with constraints=[...], or later with set_constraints."
        )
    values, valid = values_by_row(argument, told.value, n, k, invalid, many=many)
    measured, own_names = {}, {name: name for name in limits}  # members of enumerations equal these, as text
    for name, given in told.constraints.items():
        numbers, fine = matrix(f"constraints[{name!r}]", given, n, 1, invalid != "raise", advice=UNKNOWN)
        assert numbers is not None
        measured[own_names[name]] = [
            number if known else None for number, known in zip(numbers[:, 0].tolist(), fine, strict=True)
        ]
        valid = valid & (fine | np.isnan(with_nan(name, plain(given))) if invalid in KEEPING else fine)
    stds, known = known_stds(told.std, valid, k)
    if values is None and known.any():
        raise ArgumentError(
            "std: expected None where only constraints have values, since it is that of the value's noise, got "
            f"{shown(told.std)}; leave it out."
        )
    # Lists: an element of a tensor costs a call of torch.
    of_values, of_stds = (() if table is None else table.tolist() for table in (values, stds))
    out = []
    for i, target in enumerate(told.targets):
        of_limits = {name: number for name, column in measured.items() if (number := column[i]) is not None}
        if invalid in KEEPING and not (valid[i] and (of_limits or values is not None)):
            continue
        of_std = tuple(None if math.isnan(one) else one for one in of_stds[i]) if known[i] else None
        given = Outcome(user_attrs=told.attrs[i])
        if valid[i]:
            own = () if values is None else tuple(None if math.isnan(one) else one for one in of_values[i])
            given = Outcome.of(own, of_limits, of_std, told.attrs[i])
        out.append(report_of(target, given, takes_params=True))
    return out
