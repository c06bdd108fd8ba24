"""Conversion of the arguments of `tell` (trials, ids, parameters, tables) to checked reports of single trials."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Rational
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bkbopt._support.arrays import DROPPED, UNKNOWN, as_points, as_values, without_mask
from bkbopt._support.checks import check_choice, check_flag
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer.arguments import as_names
from bkbopt.optimizer.frames import is_table, named, rows_of
from bkbopt.optimizer.objectives import without_names
from bkbopt.optimizer.told_points import note_other_points, note_told_before
from bkbopt.optimizer.trial_list import TrialList
from bkbopt.optimizer.trials import Outcome, Trial
from bkbopt.spaces.base import Params
from bkbopt.spaces.values import as_float, is_missing, is_real, shown

if TYPE_CHECKING:
    from bkbopt.optimizer.logged_designer import LoggedDesigner

__all__ = ["Report", "failures_of", "tell"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Report:
    """The outcome of a trial, which is identified by its id or its parameters.

    Attributes:
        target: the id or the parameters.
        outcome: the outcome.
        given: the trial itself, where it was given; it may be one of another optimizer, with the same id.
    """

    target: int | Params
    outcome: Outcome
    given: Trial | None = None


@dataclass(frozen=True)
class _Told:
    """The arguments of `tell` as lists over trials; names of table columns are resolved, nothing else is checked."""

    targets: list[Any]
    value: Any
    constraints: Mapping[str, Any]
    std: Any


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


def failures_of(given: Any, *, is_lost: bool = False) -> tuple[list[Report], bool]:
    """The reports that a trial, or each of a list, has failed or is lost, and whether it was a list."""
    ids, many = _trial_ids(given)
    trials = given if many else [given]
    return [Report(i, Outcome(is_lost=is_lost), _as_trial(trial)) for i, trial in zip(ids, trials, strict=True)], many


def _as_trial(given: Any) -> Trial | None:
    """What was given, if it is a trial."""
    return given if isinstance(given, Trial) else None


def _trial_ids(given: Any) -> tuple[list[int], bool]:
    """The ids of a trial, or of each of a list, and whether it was a list."""
    many = isinstance(given, list | tuple | TrialList)
    return [trial_id(one, takes_params=False) for one in (given if many else [given])], many


def tell(
    core: "LoggedDesigner",
    objectives: Sequence[str],
    constraint_names: Sequence[str],
    trial: Any,
    value: Any,
    *,
    argument: str = "value",
    std: Any = None,
    replace: bool = False,
    **more: Any,
) -> tuple[list[Trial], bool]:
    """The trials of a call of `tell`, and whether it was a call for many; see `Optimizer.tell`.

    Args:
        core: the log with its designer.
        objectives: the names of the objectives, if they have any.
        constraint_names: the names of all constraints.
        trial: the trial or trials.
        value: the value or values.
        argument: the name of `value` in the user's call, for messages.
        std: of the value's noise.
        replace: whether outcomes are replaced.
        more: the other arguments of `Optimizer.tell`.
    """
    if std is not None and not core.designer.options.surrogate.takes_weights:
        raise ArgumentError(
            'std: an online learner gives all values the same weight, so std must be None; use surrogate="bkb".'
        )
    problem = core.designer.problem
    reports, many = _reports_of(
        trial,
        value,
        argument=argument,
        std=std,
        objectives=objectives,
        n_objectives=len(problem.signs),
        constraint_names=constraint_names,
        without_gaps=core.conversion.without_gaps,
        **more,
    )
    told = (core.replace if check_flag("replace", replace) else core.finish)(reports, "tell")
    points = [trial for report, trial in zip(reports, told, strict=True) if isinstance(report.target, Mapping)]
    if problem.pool is not None:  # without another look at the file, which may fail
        note_other_points(points, len(told))
    if not core.designer.options.models.deterministic:
        note_told_before(points, core.log.entries)
    return told, many


def _reports_of(
    trial: Any,
    value: Any,
    *,
    argument: str,
    std: Any,
    objectives: Sequence[str],
    n_objectives: int,
    constraint_names: Sequence[str],
    without_gaps: Callable[[Params], Params],
    constraints: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    invalid: str = "raise",
) -> tuple[list[Report], bool]:
    """The reports of a call of `tell`, and whether it was a call for many trials.

    Raises:
        ArgumentError: different numbers of rows, values that are not finite, or unknown names.
        ArgumentTypeError: an argument has the wrong type.
    """
    check_choice("invalid", invalid, ("raise", "fail", "skip"))
    if constraints is not None and not isinstance(constraints, Mapping):
        raise ArgumentTypeError(f"constraints: expected a dict from names to values, got {type(constraints).__name__}.")
    limits = dict(constraints or {})
    if value is None and not limits:
        raise ArgumentTypeError(
            f"{argument}: expected a finite number, got None; call fail for a trial without a value."
        )
    for name, limit in limits.items():
        if limit is None:
            raise ArgumentTypeError(f"constraints: expected a finite number for {name!r}, got None; leave it out.")
    many = is_table(trial) or isinstance(trial, list | tuple | TrialList)
    if invalid == "skip" and not many:
        raise ArgumentError('invalid: expected "raise" or "fail" for a single trial, got "skip".')
    if columns is not None and not is_table(trial):
        raise ArgumentTypeError(f"columns: only allowed with a data frame, got a {type(trial).__name__}; drop columns.")
    if not is_table(trial) and not isinstance(value, Trial):  # of swapped arguments the value is the better message
        for target in trial if many else [trial]:
            if not isinstance(target, Mapping):
                trial_id(target)
    untold = [name for name in constraint_names if name not in limits]
    value, std = (
        without_names(name, given, objectives, untold, many=many) for name, given in ((argument, value), ("std", std))
    )
    if is_table(trial):
        told = _from_table(trial, value, limits, std, columns, without_gaps)
    elif many:
        told = _Told(list(trial), value, limits, std)
    else:
        one, of_std = (
            None if given is None else [_one(name, given, n_objectives)]
            for name, given in ((argument, value), ("std", std))
        )
        told = _Told([trial], one, {name: [limit] for name, limit in limits.items()}, of_std)
    return _checked(told, argument, n_objectives, constraint_names, invalid), many


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
    limits: dict[str, Any],
    std: Any,
    columns: Sequence[str] | None,
    without_gaps: Callable[[Params], Params],
) -> _Told:
    frame, used = named(frame), list[str]()

    def column(name: str, given: Any) -> Any:
        """The values of a column if its name was given, else the argument itself."""
        if isinstance(given, list | tuple) and given and all(isinstance(part, str) for part in given):
            return list(zip(*(column(name, part) for part in given), strict=True))
        if not isinstance(given, str):
            return given
        if given not in frame.columns:
            raise ArgumentError(f"{name}: expected one of the columns {list(frame.columns)}, got {given!r}.")
        used.append(given)
        return frame[given].tolist()

    value = column("value", value)
    limits = {name: column("constraints", given) for name, given in limits.items()}
    std = column("std", std)
    if columns is not None:
        unknown = [name for name in as_names("columns", columns) if name not in frame.columns]
        if unknown:
            raise ArgumentError(f"columns: expected columns among {list(frame.columns)}, got {unknown}.")
    chosen = frame[list(columns)] if columns is not None else frame.drop(columns=used)
    return _Told(rows_of(chosen, without_gaps), value, limits, std)


def _checked(told: _Told, argument: str, k: int, names: Sequence[str], invalid: str) -> list[Report]:
    n = len(told.targets)
    unknown = [name for name in told.constraints if name not in names]
    if unknown:
        raise ArgumentError(
            f"constraints: expected names among {tuple(names)}, got {unknown[0]!r}; "
            "name all constraints when the optimizer is made, with constraints=[...]."
        )
    values, valid = _matrix(argument, told.value, n, k, invalid != "raise")
    limits = {}
    for name, given in told.constraints.items():
        numbers, fine = _matrix(f"constraints[{name!r}]", given, n, 1, invalid != "raise", advice=UNKNOWN)
        assert numbers is not None
        limits[name] = [number if known else None for number, known in zip(numbers[:, 0].tolist(), fine, strict=True)]
        valid = valid & (fine | np.isnan(_with_nan(name, _plain(given))) if invalid == "skip" else fine)
    stds, known = _known_stds(told.std, valid, k)
    if values is None and known.any():
        raise ArgumentError(
            "std: expected None where only constraints have values, since it is that of the value's noise, got "
            f"{shown(told.std)}; leave it out."
        )
    # Lists: an element of a tensor costs a call of torch.
    of_values, of_stds = (() if table is None else table.tolist() for table in (values, stds))
    out = []
    for i, target in enumerate(told.targets):
        of_limits = {name: number for name, column in limits.items() if (number := column[i]) is not None}
        if invalid == "skip" and not (valid[i] and (of_limits or values is not None)):
            continue
        of_std = tuple(of_stds[i]) if known[i] else None
        given = Outcome(() if values is None else tuple(of_values[i]), of_limits, of_std) if valid[i] else Outcome()
        out.append(Report(target if isinstance(target, Mapping) else trial_id(target), given, _as_trial(target)))
    return out


def _matrix(
    name: str, given: Any, n: int, k: int, keep_invalid: bool, *, advice: str = DROPPED
) -> tuple[torch.Tensor | None, Any]:
    """Numbers (n, k) or None, and a mask of the finite rows."""
    fine = np.ones(n, dtype=bool)
    if given is None:
        return None, fine
    given = _plain(given)
    if _has_bool(given):
        flags = "; of flags tell -1.0 where it holds, and 1.0 elsewhere" if name.startswith("constraints") else ""
        raise ArgumentTypeError(f"{name}: expected real numbers, got bool among them{flags}.")
    if keep_invalid:
        given = _with_nan(name, given)
        if given.ndim and len(given) == n:
            finite = np.isfinite(given)
            fine, given = finite.all(axis=tuple(range(1, given.ndim))), np.where(finite, given, 0.0)
    if k == 1:
        return as_values(given, n, name=name, advice=advice)[:, None], fine
    table = as_points(given, k, name=name, advice=advice)
    if len(table) != n:
        raise ArgumentError(
            f"{name}: expected shape ({n}, {k}), one column for each objective, got {tuple(table.shape)}."
        )
    return table, fine


def _known_stds(std: Any, valid: Any, k: int) -> tuple[torch.Tensor | None, Any]:
    """Standard deviations (n, k) or None, and a mask of the trials for which they are known; see `Optimizer.tell`.

    In rows that are not `valid (n,)` none is used.
    """
    n = len(valid)
    if std is None:
        return None, np.zeros(n, dtype=bool)
    std = std.to_numpy() if is_table(std) else _plain(std)
    if _has_bool(std):
        raise ArgumentTypeError("std: expected real numbers, got bool among them.")
    numbers = _with_nan("std", std)
    if numbers.shape == (() if k == 1 else (k,)):  # those of all trials
        numbers = np.tile(numbers, (n, 1))
    known = valid
    if numbers.ndim and len(numbers) == n:
        missing = np.isnan(numbers).reshape(n, -1)
        known = valid & ~missing.all(1)
        if missing[known].any():
            raise ArgumentError(
                "std: expected for each trial numbers for all objectives, or for none where they are unknown, got "
                f"{numbers[known & missing.any(1)][0].tolist()}."
            )
        numbers[~known] = 0.0
    infinite = np.isinf(np.atleast_1d(numbers))
    if infinite.any():
        i = infinite.nonzero()[0][0]
        raise ArgumentError(f"std: expected finite numbers, got inf at position {i}; pass None where it is unknown.")
    stds, _ = _matrix("std", numbers, n, k, False)
    assert stds is not None
    if bool((stds < 0.0).any()):
        raise ArgumentError(f"std: expected standard deviations >= 0, got {float(stds.min())!r}.")
    return stds, known


def _has_bool(given: Any) -> bool:
    return any(map(_has_bool, given)) if isinstance(given, list) else isinstance(given, bool | np.bool_)


def _plain(given: Any) -> Any:
    """Tensors without gradients, arrays without masks, whole numbers and fractions in lists as doubles.

    Arrays have no large whole numbers, and an array of masked arrays has what is below the masks.
    """
    if isinstance(given, list | tuple):
        return [_plain(part) for part in given]
    if isinstance(given, np.ma.MaskedArray):
        return without_mask(given)
    if isinstance(given, torch.Tensor):
        return given.detach()
    return as_float(given) if isinstance(given, Rational) and is_real(given) else given


def _with_nan(name: str, given: Any) -> Any:
    """Numbers as an array, with NaN for missing ones."""

    def numbers(part: Any) -> Any:
        part = part.tolist() if hasattr(part, "tolist") else part
        if isinstance(part, list | tuple):
            return [numbers(one) for one in part]
        if is_missing(part):
            return math.nan
        if not is_real(part):
            raise ArgumentTypeError(f"{name}: expected real numbers, got {type(part).__name__} among them.")
        return as_float(part)

    try:
        return np.array(numbers(given), dtype=np.float64)
    except ValueError:
        raise ArgumentError(f"{name}: expected numbers in equal rows, got rows of different lengths.") from None
