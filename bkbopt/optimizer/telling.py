"""What people tell: trials, ids, parameters and tables, with values, as checked reports of single trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bkbopt._support.arrays import as_values, check_choice
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer.trials import Outcome, Trial
from bkbopt.optimizer.vocabulary import Params

__all__ = ["Report", "reports_of", "trial_id"]


@dataclass(frozen=True)
class Report:
    """The outcome of a trial, which is given by its id or by its parameters."""

    target: int | Params
    outcome: Outcome


@dataclass(frozen=True)
class _Told:
    """The arguments of `tell` for many trials; tables are read, nothing else is checked."""

    targets: list[Any]
    value: Any
    constraints: Mapping[str, Any]
    std: Any


def trial_id(trial: Any) -> int:
    """The id that a trial or an integer stands for."""
    if isinstance(trial, Trial):
        return trial.id
    if isinstance(trial, int | np.integer) and not isinstance(trial, bool):
        return int(trial)
    raise ArgumentTypeError(f"trial: expected a trial, its id, or a dict of parameters, got {type(trial).__name__}.")


def reports_of(
    trial: Any,
    value: Any,
    *,
    n_objectives: int,
    constraint_names: Sequence[str],
    constraints: Mapping[str, Any] | None,
    std: Any,
    columns: Sequence[str] | None,
    invalid: str,
) -> tuple[list[Report], bool]:
    """The reports of a call of `tell`, and whether it was a call for many; see `Optimizer.tell`.

    Raises:
        ArgumentError: numbers of rows that differ, values that are not finite, unknown names.
        ArgumentTypeError: anything else.
    """
    check_choice("invalid", invalid, ("raise", "fail"))
    if constraints is not None and not isinstance(constraints, Mapping):
        raise ArgumentTypeError(f"constraints: expected a dict from names to values, got {type(constraints).__name__}.")
    limits = dict(constraints or {})
    is_table = hasattr(trial, "iloc") and hasattr(trial, "columns")
    many = is_table or (isinstance(trial, list | tuple) and not isinstance(trial, Trial))
    if columns is not None and not is_table:
        raise ArgumentTypeError(f"columns: expected with a data frame only, got it with {type(trial).__name__}.")
    if is_table:
        told = _from_table(trial, value, limits, std, columns)
    elif many:
        told = _Told(list(trial), value, limits, std)
    else:
        if value is None and not limits:
            raise ArgumentTypeError("value: expected a finite number, got None; call fail for a trial without a value.")
        one = [value] if n_objectives == 1 else [_several("value", value, n_objectives)]
        stds = None if std is None else [std] if n_objectives == 1 else [_several("std", std, n_objectives)]
        told = _Told([trial], None if value is None else one, {k: [v] for k, v in limits.items()}, stds)
    return _checked(told, n_objectives, constraint_names, invalid == "fail"), many


def _several(name: str, given: Any, k: int) -> Any:
    if isinstance(given, str | bytes) or not hasattr(given, "__len__") or len(given) != k:
        raise ArgumentError(f"{name}: expected {k} numbers, one for each objective, got {given!r}.")
    return given


def _from_table(frame: Any, value: Any, limits: dict[str, Any], std: Any, columns: Sequence[str] | None) -> _Told:
    used: list[str] = []

    def column(name: str, given: Any) -> Any:
        """A column's values where a name was given."""
        if isinstance(given, list | tuple) and given and all(isinstance(part, str) for part in given):
            return np.stack([np.asarray(column(name, part), dtype=object) for part in given], 1)
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
        unknown = [name for name in columns if name not in frame.columns]
        if unknown:
            raise ArgumentError(f"columns: expected columns among {list(frame.columns)}, got {unknown}.")
    chosen = frame[list(columns)] if columns is not None else frame.drop(columns=used)
    return _Told(chosen.to_dict("records"), value, limits, std)


def _checked(told: _Told, k: int, names: Sequence[str], fail_invalid: bool) -> list[Report]:
    n = len(told.targets)
    unknown = [name for name in told.constraints if name not in names]
    if unknown:
        raise ArgumentError(
            f"constraints: expected names among {tuple(names)}, got {unknown[0]!r}; "
            "name all constraints when the optimizer is made, with constraints=[...]."
        )
    values, valid = _matrix("value", told.value, n, k, fail_invalid)
    stds, _ = _matrix("std", told.std, n, k, False)
    if stds is not None and bool((stds < 0.0).any()):
        raise ArgumentError(f"std: expected standard deviations >= 0, got {float(stds.min())!r}.")
    limits = {}
    for name, given in told.constraints.items():
        column, fine = _matrix(f"constraints[{name!r}]", given, n, 1, fail_invalid)
        assert column is not None
        limits[name], valid = column[:, 0], valid & fine
    out = []
    for i, target in enumerate(told.targets):
        report = Report(
            target if isinstance(target, Mapping) else trial_id(target),
            Outcome(
                () if values is None else tuple(values[i].tolist()),
                {name: float(column[i]) for name, column in limits.items()},
                None if stds is None else tuple(stds[i].tolist()),
            )
            if valid[i]
            else Outcome(),
        )
        out.append(report)
    return out


def _matrix(name: str, given: Any, n: int, k: int, keep_invalid: bool) -> tuple[torch.Tensor | None, Any]:
    """Numbers (n, k) or None, and which rows are finite."""
    fine = np.ones(n, dtype=bool)
    if given is None:
        return None, fine
    if keep_invalid:
        given = np.array([_number_or_nan(row) for row in given], dtype=np.float64)
        fine = np.isfinite(given).reshape(n, -1).all(1) if len(given) == n else fine
        given = np.where(np.isfinite(given), given, 0.0)
    if k == 1:
        return as_values(given, n, name=name).detach()[:, None], fine
    table = torch.as_tensor(np.asarray(given, dtype=np.float64))
    if table.shape != (n, k):
        raise ArgumentError(
            f"{name}: expected shape ({n}, {k}), one column for each objective, got {tuple(table.shape)}."
        )
    for j in range(k):
        as_values(table[:, j], n, name=name)
    return table, fine


def _number_or_nan(value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return [_number_or_nan(part) for part in value]
    return float("nan") if value is None else float(value)
