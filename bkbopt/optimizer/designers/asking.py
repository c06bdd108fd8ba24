"""The trials of an ask: queued ones first, then suggestions of the search."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bkbopt.errors import ArgumentError, SpaceExhaustedError
from bkbopt.optimizer.log.trials import Entry, utc_now
from bkbopt.optimizer.translation.log_entries import named
from bkbopt.search.trials.evaluations import Point
from bkbopt.spaces.base import Params

if TYPE_CHECKING:
    from bkbopt.optimizer.designers.logged_designer import LoggedDesigner

__all__ = ["next_ones"]

#: Largest number of trials of one ask with a batch size that the search chooses.
MOST_USEFUL = 1_000


def next_ones(core: "LoggedDesigner", count: int | None, fixed: Params) -> list[Entry]:
    """The entries of the next trials, queued ones first; see `LoggedDesigner.ask`."""
    held = core.conversion.fixed(fixed, "fixed")
    entries = _from_queue(core, len(core.log.waiting) if count is None else count, held)
    if count is None or len(entries) < count:
        try:
            entries += _suggested(core, None if count is None else count - len(entries), held, entries)
        except SpaceExhaustedError:
            if not entries:
                raise
    return [named(entry, fixed, core.conversion) for entry in entries]


def _suggested(core: "LoggedDesigner", count: int | None, fixed: Point, queued: Sequence[Entry]) -> list[Entry]:
    start = time.perf_counter()
    designer, number, running = core.update(), len(core.log), {e.trial.id: e.point for e in queued}
    if count is None:
        suggestions = designer.suggest_useful(MOST_USEFUL, number=number, fixed=fixed, running=running)
    else:
        suggestions = designer.suggest(count, number=number, fixed=fixed, running=running)
    used = (e.trial.index for part in (core.log.entries, queued) for e in part if core.is_present(e))
    earlier = (e.trial for e in core.log.entries if not core.is_present(e))
    rows = core.conversion.without_trials([s.index for s in suggestions], used, earlier)
    seconds, now = (time.perf_counter() - start) / max(len(suggestions), 1), utc_now()
    return [
        replace(core.new_entry(s.number, s.point, row, now), diagnostics=replace(s.diagnostics, ask_seconds=seconds))
        for s, row in zip(suggestions, rows, strict=True)
    ]


def _from_queue(core: "LoggedDesigner", count: int, fixed: Point) -> list[Entry]:
    entries: list[Entry] = []
    for number, queued in [(number, core.log.entries[number]) for number in core.log.waiting]:
        given = queued.point
        agrees = all(given.get(key, value) == value for key, value in fixed.items())
        if len(entries) < count and agrees and core.conversion.holds({**given, **fixed}):
            running = {entry.trial.id: entry.point for entry in entries}
            try:
                suggestion = core.update().complete({**given, **fixed}, number, running)
                entry = core.new_entry(number, suggestion.point, suggestion.index, utc_now())
                entry = named(entry, core.conversion.naming(queued.trial, core.is_present(queued)), core.conversion)
            except (SpaceExhaustedError, ArgumentError):  # it stays in the queue
                continue
            entries.append(replace(entry, diagnostics=suggestion.diagnostics))
    return entries
