"""Trials, and entries of the log of trials.

The module imports neither torch nor NumPy, so that programs that only report a value start fast.
"""

import copy
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NoReturn

from bkbopt._support.showing import shown_record
from bkbopt.errors import ArgumentError
from bkbopt.optimizer.log.limits import PLAIN, Limits
from bkbopt.search.trials.reports import Diagnostics
from bkbopt.search.trials.states import COMPLETE, FAIL, RUNNING, WAITING

__all__ = [
    "Entry",
    "Outcome",
    "Trial",
    "check_stds",
    "detached",
    "utc_now",
    "values_of",
]


@dataclass(frozen=True, slots=True, repr=False)
class Trial:
    """An immutable record of a trial at the time of the call that returned it.

    Attributes:
        id: number of the trial, from 0 on.
        params: the active parameters by name; for a queued trial the given ones. The dict is the caller's own.
        index: row of the pool in which the trial was asked for or told, also after `set_pool`; None for a search space.
        state: "WAITING" (queued), "RUNNING", "COMPLETE" or "FAIL".
        values: one for each objective, in the user's units and directions; empty if there are none, or not all.
        constraints: measured values of the outcome constraints by name, see `is_feasible`.
        stds: standard deviations of the values' noise, None where the user gave none; None without any.
        asked_at: time of the ask (of the tell, for points that were not asked for), in UTC, with the time zone.
        told_at: time of completion, likewise.
        label: name of the row, if the pool has an `id_column`. Files keep names that are numbers or text; after
            reading, other trials have it whose row of the current pool is the same.
        user_attrs: what the user keeps with the trial, by name; the search does not read it.
        limits: limits of the constraints by name, `low` and `high`; of one without them values are feasible if <= 0.
        partial_values: where some of several objectives are measured, one for each, with None for the others; empty
            otherwise.

    Example:
        >>> import bkbopt as bo
        >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
        >>> trial = opt.ask()
        >>> trial.id, trial.state, trial.value
        (0, 'RUNNING', None)
        >>> opt.tell(trial, 0.25).value, opt.trials[0].state
        (0.25, 'COMPLETE')
    """

    id: int
    params: Mapping[str, Any]
    index: int | None = None
    state: str = RUNNING
    values: tuple[float, ...] = ()
    constraints: Mapping[str, float] = field(default_factory=dict)
    stds: tuple[float | None, ...] | None = None
    asked_at: datetime | None = None
    told_at: datetime | None = None
    label: Hashable | None = field(default=None, compare=False)
    user_attrs: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=dict, compare=False, repr=False)
    partial_values: tuple[float | None, ...] = ()

    def __hash__(self) -> int:
        """That of the id: equal trials have the same one."""
        return hash(self.id)

    def __repr__(self) -> str:
        """What is told of the trial."""
        return shown_record(self)

    @property
    def value(self) -> float | None:
        """The value of a single objective; None if there is none.

        Raises:
            ArgumentError: there are several objectives.
        """
        if len(self.values) > 1:
            raise ArgumentError(f"value: this trial has {len(self.values)} objectives; read values.")
        return self.values[0] if self.values else None

    @property
    def is_feasible(self) -> bool:
        """Whether all known values of outcome constraints are within their limits."""
        return all(self.limits.get(name, PLAIN).holds(value) for name, value in self.constraints.items())


def _refuse(_: Trial, name: str, *__: object) -> NoReturn:
    """Refuse a change: a frozen class with slots has no message of its own for names that are no fields, as `value`."""
    raise FrozenInstanceError(
        f"trial.{name}: expected a trial to stay as it is, got a change; record its outcome with opt.tell(trial, "
        "value), a failure with opt.fail(trial)."
    )


Trial.__setattr__ = Trial.__delattr__ = _refuse  # type: ignore[method-assign, assignment]


def detached(trial: Trial) -> Trial:
    """The trial with dicts of its own: programs take parameters out of `trial.params` and put others in."""
    t, params, constraints = trial, dict(trial.params), dict(trial.constraints)  # `replace` takes twice as long
    attrs = copy.deepcopy(dict(t.user_attrs)) if t.user_attrs else {}
    times, partial = (t.asked_at, t.told_at), t.partial_values
    return Trial(
        t.id, params, t.index, t.state, t.values, constraints, t.stds, *times, t.label, attrs, t.limits, partial
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a trial; without values and constraints the trial failed, or is lost: its point is not why.

    `user_attrs` come with it, and are added to those that the trial has; `partial_values` are those of `Trial`.
    """

    values: tuple[float, ...] = ()
    constraints: Mapping[str, float] = field(default_factory=dict)
    stds: tuple[float | None, ...] | None = None
    is_lost: bool = False
    user_attrs: Mapping[str, Any] = field(default_factory=dict)
    partial_values: tuple[float | None, ...] = ()

    @property
    def state(self) -> str:
        """`COMPLETE` or `FAIL`."""
        return COMPLETE if self.values or self.partial_values or self.constraints else FAIL

    @classmethod
    def of(
        cls,
        cells: Sequence[float | None],
        constraints: Mapping[str, float],
        stds: Sequence[float | None] | None = None,
        user_attrs: Mapping[str, Any] | None = None,
    ) -> "Outcome":
        """That of values for each objective, None for those that are not measured, of which there may be none."""
        known = tuple(cell for cell in cells if cell is not None)
        values, partial = (known, ()) if len(known) == len(cells) else ((), tuple(cells) if known else ())
        if stds is not None:
            stds = tuple(None if cell is None else std for cell, std in zip(cells, stds, strict=True))
            stds = None if all(std is None for std in stds) else stds
        return cls(values, constraints, stds, user_attrs=user_attrs or {}, partial_values=partial)

    def over(self, old: Trial) -> "Outcome":
        """The outcome that replaces that of a trial: what is not told stays."""
        cells, stds = values_of(self), self.stds
        if not cells:
            cells, stds = values_of(old), old.stds
        elif self.partial_values and (kept := values_of(old)):
            parts = zip(cells, stds or [None] * len(cells), kept, old.stds or [None] * len(cells), strict=True)
            pairs = [(cell, std) if cell is not None else (was, was_std) for cell, std, was, was_std in parts]
            cells, stds = zip(*pairs, strict=True)
        return Outcome.of(cells, {**old.constraints, **self.constraints}, stds, self.user_attrs)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the log: a trial and internal data. Entries are immutable; a changed trial gets a new entry.

    Attributes:
        trial: the public record.
        space: number of the space or pool from which it was proposed; see `LoggedDesigner.spaces`.
        point: its parameters in internal form; empty as long as they are not converted.
        place: place in the order of completion; None before.
        seen_at: time of the last heartbeat, of a lost trial that of its end; None if there was none.
        diagnostics: record of the ask; None for points that were told without being asked for.
    """

    trial: Trial
    space: int
    point: Mapping[str, float] = field(default_factory=dict)
    place: int | None = None
    seen_at: datetime | None = None
    diagnostics: Diagnostics | None = None

    def finished(self, outcome: Outcome, place: int, now: datetime) -> "Entry":
        """The same trial, complete or failed."""
        trial = replace(
            self.trial,
            state=outcome.state,
            values=outcome.values,
            partial_values=outcome.partial_values,
            constraints=outcome.constraints,
            stds=outcome.stds,
            told_at=now,
            user_attrs={**self.trial.user_attrs, **outcome.user_attrs} if outcome.user_attrs else self.trial.user_attrs,
        )
        seen_at = None if self.is_lost else self.seen_at
        return replace(self, trial=trial, place=place, seen_at=now if outcome.is_lost else seen_at)

    @property
    def is_lost(self) -> bool:
        """Whether the trial failed for a reason that is not its point, from which the search learns nothing."""
        return self.trial.state == FAIL and self.seen_at is not None and self.seen_at == self.trial.told_at

    @property
    def n_values(self) -> int | None:
        """Number of values when the trial was suggested; None if it was not."""
        return None if self.diagnostics is None else self.diagnostics.n_values

    def replaced(self, outcome: Outcome) -> "Entry":
        """The same finished trial with other values, at its place and time; those that are not told stay."""
        assert self.place is not None
        assert self.trial.told_at is not None
        if outcome.state == COMPLETE:
            outcome = outcome.over(self.trial)
        return self.finished(outcome, self.place, self.trial.told_at)

    def with_attrs(self, attrs: Mapping[str, Any]) -> "Entry":
        """The same trial with these attributes beside those that it has; of equal names these count."""
        return replace(self, trial=replace(self.trial, user_attrs={**self.trial.user_attrs, **attrs}))

    @property
    def outcome(self) -> Outcome:
        """The outcome of a finished trial, without attributes."""
        t = self.trial
        return Outcome(t.values, t.constraints, t.stds, self.is_lost, partial_values=t.partial_values)

    def repeated(self, number: int, now: datetime) -> "Entry":
        """A new queued trial at the same point, with the same attributes."""
        t = self.trial
        queued = Trial(number, t.params, t.index, WAITING, asked_at=now, label=t.label, user_attrs=t.user_attrs)
        return Entry(replace(queued, limits=t.limits), self.space, self.point)

    def silence(self, now: datetime) -> float:
        """Seconds since the ask of the trial, or since its last heartbeat; 0 where the clock was set back since."""
        return max((now - (self.seen_at or self.trial.asked_at or now)).total_seconds(), 0.0)


def values_of(told: Trial | Outcome) -> tuple[float | None, ...]:
    """The values that are known, None for other objectives; empty if none is."""
    return told.values or told.partial_values


def check_stds(outcomes: Iterable[Outcome], *, takes_weights: bool) -> None:
    """Refuse known noise where the surrogate gives all values the same weight."""
    if not takes_weights and any(outcome.stds is not None for outcome in outcomes):
        raise ArgumentError(
            'std: an online learner gives all values the same weight, so std must be None; use surrogate="bkb".'
        )


def utc_now() -> datetime:
    """The present time in UTC."""
    return datetime.now(UTC)
