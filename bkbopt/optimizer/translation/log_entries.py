"""Entries as a file holds them, with parameters as JSON, as memory does, with the user's values, and as evaluations."""

import math
from collections.abc import Sequence
from dataclasses import replace

from bkbopt.optimizer.log.limits import excesses
from bkbopt.optimizer.log.trial_log import TrialLog
from bkbopt.optimizer.log.trials import Entry
from bkbopt.optimizer.translation.conversion import Conversion, conversion_of
from bkbopt.optimizer.translation.log_spaces import LogSpaces
from bkbopt.search.trials.evaluations import Evaluation
from bkbopt.search.trials.states import WAITING
from bkbopt.spaces.base import Params
from bkbopt.spaces.space import Space

__all__ = ["evaluation", "named", "stored", "understood"]


def stored(entry: Entry, spaces: LogSpaces) -> Entry:
    """An entry with its parameters as JSON values, with labels of a product's parts, as a file stores it."""
    conversion = conversion_of(spaces[entry.space])
    params = {**conversion.labels(entry.trial.params), **conversion.stored(entry.point)}
    return replace(entry, trial=replace(entry.trial, params=params))


def understood(entries: Sequence[Entry], log: TrialLog, spaces: LogSpaces, *, has_stds: bool) -> list[Entry]:
    """Entries of a file completed by their points, with parameters in the user's types.

    Args:
        entries: of the file.
        log: the log in memory; points of trials that it has are taken from it.
        spaces: the spaces and pools of the trials.
        has_stds: whether the surrogate takes known noise.

    Raises:
        ValueError: a trial that does not belong to its space or pool, or has noise that cannot be taken.
    """
    out: dict[int, Entry] = {}
    unknown: dict[tuple[int, bool], list[Entry]] = {}
    for entry in entries:
        number, trial = entry.trial.id, entry.trial
        if trial.stds is not None and not has_stds:
            raise ValueError("known noise for a learner, which gives all values the same weight")
        old = log.entries[number] if number < len(log) else None
        if old is not None and old.space == entry.space and old.trial.state != WAITING:
            params, label = old.trial.params, old.trial.label
            out[number] = replace(entry, point=old.point, trial=replace(trial, params=params, label=label))
        else:
            unknown.setdefault((entry.space, trial.state == WAITING), []).append(entry)
    for (space, is_part), group in unknown.items():
        conversion = conversion_of(spaces[space])
        points = conversion.restored([entry.trial.params for entry in group], is_part)
        for entry, point in zip(group, points, strict=True):
            label = conversion.label(entry.trial.index, point) if entry.trial.label is None else entry.trial.label
            trial = replace(entry.trial, params=conversion.recorded(point, entry.trial), label=label)
            out[trial.id] = replace(entry, point=point, trial=trial)
    return list(out.values())


def evaluation(entry: Entry, spaces: LogSpaces, conversion: Conversion) -> Evaluation:
    """An entry as the designer learns it; a lost trial has no point."""
    t, space, n_then = entry.trial, spaces[entry.space], entry.n_values
    point, added = ({}, ()) if entry.is_lost else spaces.complete(entry.point, entry.space)
    order = (float(-1 if entry.place is None else entry.place), t.id)
    known = space if isinstance(space, Space) else None
    row = conversion.name(t) if point else None
    stds = None if t.stds is None else tuple(math.nan if std is None else std for std in t.stds)
    beyond = excesses(t.limits, t.constraints)
    partial = tuple(math.nan if value is None else value for value in t.partial_values)
    return Evaluation(t.id, t.state, point, known, order, t.values, stds, {}, beyond, added, row, n_then, partial)


def named(entry: Entry, params: Params, conversion: Conversion) -> Entry:
    """The entry with the row that `params` names in place of one with the same values."""
    trial = entry.trial
    index = conversion.as_named(trial.index, params)
    if index == trial.index:
        return entry
    shown, label = conversion.params(entry.point, index), conversion.label(index)
    return replace(entry, trial=replace(trial, index=index, params=shown, label=label))
