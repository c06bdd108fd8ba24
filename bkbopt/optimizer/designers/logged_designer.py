"""A log of trials with its designer: ask, tell, enqueue and recover, on checked arguments.

The log is in memory; with a file, the log in memory is updated from the file. Every change takes the same steps: the
new entries are computed without side effects, written to the file in one transaction, and then stored in memory. After
an interrupt before the commit everything is unchanged; after an interrupt later the next call completes the change.
"""

import contextlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from bkbopt._support.checks import check_count
from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError, NotReadyError, StateFileError
from bkbopt.optimizer.arguments import known_constraint
from bkbopt.optimizer.arguments.known_constraint import KnownConstraint
from bkbopt.optimizer.arguments.outcome_constraints import changed
from bkbopt.optimizer.designers.asking import next_ones
from bkbopt.optimizer.designers.coming import Coming
from bkbopt.optimizer.log.aims import Aims
from bkbopt.optimizer.log.limits import Limits, intervals_of, limits_of
from bkbopt.optimizer.log.limits import stored as stored_limits
from bkbopt.optimizer.log.log_file import LogFile, Writer
from bkbopt.optimizer.log.log_rows import Described
from bkbopt.optimizer.log.log_schema import to_json
from bkbopt.optimizer.log.reporting import Report, finished, lost_ones, measured, own_entry, replaced
from bkbopt.optimizer.log.trial_log import TrialLog, check_running
from bkbopt.optimizer.log.trials import Entry, Trial, check_stds, utc_now
from bkbopt.optimizer.translation.conversion import conversion_of
from bkbopt.optimizer.translation.description import check_text, describe, read_changed
from bkbopt.optimizer.translation.log_entries import evaluation, stored, understood
from bkbopt.optimizer.translation.log_spaces import LogSpaces
from bkbopt.search.completion import completed
from bkbopt.search.designer import Designer
from bkbopt.search.options import Options
from bkbopt.search.trials.evaluations import Point, Problem
from bkbopt.search.trials.states import WAITING
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.base import Params
from bkbopt.spaces.space import Space

__all__ = ["LoggedDesigner"]


class LoggedDesigner:
    """A designer with a log: suggestions are added to the log, and the designer learns from the log.

    Args:
        problem: the optimisation problem.
        options: options of the designer.
        entropy: seed of all random numbers.
        feasible: the user's constraint on parameters.
        aims: directions, outcome constraints and names of objectives.

    Attributes:
        feasible, aims: see above.
        log: the log of all trials, in memory.
        spaces: all spaces or pools from which trials were proposed; the last one is that of new trials.
        designer: the designer, which computes suggestions.
        has_noted_constraints: whether users were warned of a value without those of all constraints.
        conversion: the conversion between the user's parameters and points of the current space or pool.
        file: the file of the log; None if the log is in memory only.
    """

    def __init__(
        self, problem: Problem, options: Options, entropy: int, feasible: KnownConstraint | None, aims: Aims
    ) -> None:
        self.feasible, self.aims = feasible, aims
        self.spaces = LogSpaces()
        self.spaces.append(problem.candidates, {})
        if isinstance(self.spaces[0], Space):  # it may have come with the lists of another log
            problem = replace(problem, space=self.spaces[0])
        self.conversion = conversion_of(problem.candidates)
        problem = replace(problem, feasible=self._is_feasible(), intervals=intervals_of(aims.limits))
        self.designer = Designer(problem, options, entropy)
        self.has_noted_constraints = False
        self.log = TrialLog(aims.limits)
        self.file: LogFile | None = None
        self._seen = 0
        #: What is being set; how many of `spaces`, and which constraint, the designer has; what the file has of it.
        self._coming: Coming | None = None
        self._n_used, self._used = 1, feasible
        self._kept: Any = False
        #: Outcome constraints that are being set, with the trials that get values of them.
        self._coming_limits: tuple[Limits, list[Entry]] | None = None

    def _is_feasible(self) -> Callable[[Point], bool] | None:
        feasible = self.feasible
        return None if feasible is None else lambda point: feasible(self.conversion.params(point, None))

    # -- spaces and pools --------------------------------------------------------------------------------------------

    def set_candidates(self, candidates: Space | Arms, past: Params, given: Any = None) -> None:
        """Take another space or pool from here on.

        Args:
            candidates: the space or pool.
            past: values that earlier trials had for new parameters.
            given: the constraint on parameters, as users give it; None for that of before.
        """
        coming = None
        try:
            with self._transaction() as (_, writer):  # the constraint of before is the one that the log has now
                feasible = known_constraint.changed(self.feasible, given, candidates)
                surrogate = self.designer.options.surrogate
                coming = Coming.after(self.spaces, self.file, surrogate, candidates, past, feasible)
                self._coming = coming
                if writer is not None:
                    coming.write(writer, has_constraint=given is not None)
            self._coming = replace(coming, is_done=True)
        except BkbError:
            if coming is not None:  # refused; if the file has it all the same, a function is to be set again
                self._coming = replace(coming, feasible=self.feasible)
            raise
        self.refresh()

    def _use_last(self) -> None:
        """Pass the last space or pool to the designer; this is repeated if it was interrupted."""
        if self._n_used != len(self.spaces) or self._used is not self.feasible:
            self._use(self.spaces[-1])

    def _use(self, candidates: Space | Arms) -> None:
        first, self._n_used = self._n_used, 0
        problem = self.designer.problem
        if isinstance(candidates, Space):
            problem = replace(problem, space=candidates)
        else:
            self.spaces.use_everywhere(candidates)
            if candidates.objects is not None:
                self.designer.options.surrogate.bind_objects(candidates.objects)
            problem = replace(problem, pool=candidates)
        self.conversion = conversion_of(candidates)
        problem = replace(problem, feasible=self._is_feasible())
        if self.spaces.has_past(first):  # the points of all trials have changed
            self._begin_anew(problem)
        else:
            self.designer.set_problem(problem)
        self._n_used, self._used = len(self.spaces), self.feasible

    def set_constraints(self, given: Any) -> None:
        """Take other outcome constraints, as users give them; their values so far may be attributes of trials."""
        with self._transaction() as (entries, writer):
            limits = changed(self.aims.limits, given)
            if writer is not None:
                check_text(to_json(list(limits)), "constraints", "names")
            entries.extend(measured(self.log, limits))
            if writer is None:
                self._coming_limits = limits, entries
            else:
                writer.set_option("constraints", stored_limits(limits))
        self.refresh()

    def _use_limits(self, limits: Limits) -> None:
        if list(limits.items()) != list(self.aims.limits.items()):  # their order is that of `Optimizer.limits`
            aims = replace(self.aims, limits=limits)
            self.log.use_limits(aims.limits)
            self.aims, self.has_noted_constraints = aims, False

    def _begin_anew(self, problem: Problem) -> None:
        """Take a new designer, which is to learn all trials again."""
        problem = replace(problem, intervals=intervals_of(self.aims.limits))
        self.designer = Designer(problem, self.designer.options, self.designer.seed)
        self.log.change_all()

    # -- the log and its file ----------------------------------------------------------------------------------------

    def follow(self, file: LogFile, current: Space | Arms) -> None:
        """Take over the log of a file, whose last space or pool is `current`, and keep to it.

        Raises:
            StateFileError: the data of the file are inconsistent.
        """
        with file.fits():
            self.designer.seed = check_count("entropy", file.options["entropy"], 0)
            self.spaces = LogSpaces()
            for described in file.spaces[:-1]:
                self.spaces.restore(described, current if isinstance(current, Arms) else self._read(described))
            self.spaces.restore(file.spaces[-1], current)
            self._kept = file.options["feasible"]
            self.feasible = self._constraint(file)
            self._use(self.spaces[-1])
            self.file = file
            self.refresh()

    def leave_file(self) -> None:
        """Close the file and continue in memory only."""
        if self.file is not None:
            self.file.close()
            self.file = None

    def refresh(self) -> None:
        """Read changes that other processes have written, and complete an interrupted change."""
        self.mend()
        if self.file is not None:
            self._take_changes(self.file)

    def mend(self) -> None:
        """Complete an interrupted change in memory."""
        self.log.mend()
        if self.file is None and self._coming is not None:
            self._coming.add_to(self.spaces)
            self.feasible, self._coming = self._coming.feasible, None
        if self.file is None and self._coming_limits is not None:
            limits, entries = self._coming_limits
            self.log.put(entries)
            self._use_limits(limits)
            self._coming_limits = None
        self._use_last()

    @property
    def is_in_use(self) -> bool:
        """Whether a call is asking or writing."""
        return self.file is not None and self.file.is_in_use

    def release(self) -> None:
        """Release the lock and the transaction that an interrupted call has left."""
        if self.file is not None:
            self.file.release()

    def _take_changes(self, file: LogFile) -> None:
        entries, last = file.changes(self._seen)
        new = file.spaces[len(self.spaces) :]
        if new and not new[-1].is_space:  # the file has the rows of the last pool only
            new = [new[-1]] * len(new)
        for described in new:
            self.spaces.restore(described, self._read(described))
        with file.fits():
            self.feasible = self._constraint(file)
            self._use_limits(limits_of(file.options["constraints"]))
        self._kept = file.options["feasible"]
        self._use_last()
        if entries:
            try:
                known = understood(
                    entries, self.log, self.spaces, has_stds=self.designer.options.surrogate.takes_weights
                )
                self.log.put(known)
            except (ArgumentTypeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
                raise StateFileError(
                    f"{file.path}: expected trials that belong to the space of the log, got {error}; restore it from a "
                    "copy, or start a new log."
                ) from error
        self._seen, self._coming = last, None

    def _read(self, described: Described) -> Space | Arms:
        """A space or pool of the file; of one that was set here, which need not be in the file, the object itself."""
        if self._coming is not None and describe(self._coming.candidates) == described.with_past({}):
            return self._coming.candidates
        return read_changed(described, self.designer.options.models.fit)

    def _constraint(self, file: LogFile) -> KnownConstraint | None:
        """The constraint of the file; a function is that of this process, or the one that is being set."""
        kept, current = file.options["feasible"], self.feasible
        if self._coming is not None and self._coming.is_in(file):
            current = self._coming.feasible
        elif kept is False and self._kept is not False:  # another process has removed it
            current = None
        return known_constraint.of_file(kept, current, self.spaces[-1])

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[tuple[list[Entry], Writer | None]]:
        """A block that fills a list of new or changed entries; at its end all of them are in the log, or none is."""
        entries: list[Entry] = []
        if self.file is None:
            yield entries, None
        else:
            with self.file.transaction() as writer:
                self._take_changes(self.file)
                yield entries, writer
                last = writer.put([stored(entry, self.spaces) for entry in entries])
        self.log.put(entries)
        if self.file is not None:
            self._seen = last

    # -- the designer ------------------------------------------------------------------------------------------------

    def update(self) -> Designer:
        """The designer, updated with all changed trials; an interrupted update is repeated."""
        if self.log.is_rewritten:
            self._begin_anew(self.designer.problem)
            self.log.is_rewritten = False
        self.designer.update(evaluation(entry, self.spaces, self.conversion) for entry in self.log.changed())
        self.log.forget_changes()
        return self.designer

    def followed(self, call: str) -> Designer:
        """The updated designer; the user's `call` raises `NotReadyError` while an objective has no value."""
        if not self.log.n_complete:
            raise NotReadyError(f"{call}: expected at least one value of an objective, got none; call tell first.")
        if self.aims.k > 1 and not self.update().trained().ready:
            raise NotReadyError(f"{call}: expected a value of each objective, got none of one; call tell first.")
        return self.update()

    def point(self, entry: Entry) -> Point:
        """The point of an entry with the values that later spaces state for it."""
        return self.spaces.complete(entry.point, entry.space)[0]

    # -- asking ------------------------------------------------------------------------------------------------------

    def ask(self, count: int | None, fixed: Params, *, beating: bool = False) -> list[Trial]:
        """The next trials, queued ones first; fewer than `count` if no other point can be proposed.

        With `count` None the search chooses the number. Processes ask one after the other, and may tell while another
        one asks. With `beating` each trial has its first heartbeat at once.
        """
        # Parameters are converted after changes of other processes were read, which may have set another space.
        with contextlib.nullcontext() if self.file is None else self.file.asking():
            self.refresh()
            basis, asked = self._basis(), next_ones(self, count, fixed)
            with self._transaction() as (entries, _):
                if self._basis() != basis:  # another process has changed rules, or taken the numbers
                    asked = next_ones(self, count, fixed)
                asked = [self._with_attrs(entry) for entry in asked]
                entries.extend(replace(e, seen_at=e.trial.asked_at) if beating else e for e in asked)
        return [entry.trial for entry in asked]

    def _with_attrs(self, entry: Entry) -> Entry:
        """The entry of a trial that is asked with the attributes that it got in the queue."""
        number = entry.trial.id
        return entry.with_attrs(self.log.entries[number].trial.user_attrs) if number < len(self.log) else entry

    def _basis(self) -> tuple[int, list[int], int, KnownConstraint | None]:
        return len(self.log), self.log.waiting, len(self.spaces), self.feasible

    def new_entry(self, number: int, point: Point, index: int | None, now: datetime) -> Entry:
        """The entry of a running trial in the current space."""
        conversion = self.conversion
        params, label, limits = conversion.params(point, index), conversion.label(index), self.aims.limits
        return Entry(
            Trial(number, params, index, asked_at=now, label=label, limits=limits), len(self.spaces) - 1, point
        )

    def enqueue(self, params: Params, attrs: Mapping[str, Any]) -> Trial:
        """Queue a point with attributes; missing parameters are suggested when the trial is asked for."""
        with self._transaction() as (entries, _):
            given = self.conversion.fixed(params, "params")
            whole, feasible = completed(self.designer.problem, given), self.designer.problem.feasible
            if whole is not None and feasible is not None and not feasible(whole[0]):
                raise ArgumentError(f"params: expected a feasible point, got {dict(params)!r}.")
            trial = self.new_entry(len(self.log), given, self.conversion.index(given, params), utc_now()).trial
            named = {**trial.params, **self.conversion.labels(params)}
            queued = replace(trial, params=named, state=WAITING, user_attrs=attrs)
            entries.append(Entry(queued, len(self.spaces) - 1, given))
        return entries[0].trial

    # -- telling -----------------------------------------------------------------------------------------------------

    def finish(self, reports: Sequence[Report], call: str) -> list[Trial]:
        """Check all reports, then write all; `call` is the name of the user's call, for errors."""
        self._check_stds(reports)
        with self._transaction() as (entries, _):
            by_params = [report.target for report in reports if isinstance(report.target, Mapping)]
            points = iter(self.conversion.told(by_params, map(self.log.entries.__getitem__, self.log.running)))
            entries.extend(finished(self.log, reports, points, self._told, self._is_other_row, call))
        return [entry.trial for entry in entries]

    def _check_stds(self, reports: Sequence[Report]) -> None:
        check_stds((r.outcome for r in reports), takes_weights=self.designer.options.surrogate.takes_weights)

    def _told(self, number: int, point: Point, params: Params, now: datetime) -> Entry:
        return self.new_entry(number, point, self.conversion.index(point, params), now)

    def _is_other_row(self, entry: Entry, params: Params) -> bool:
        return self.conversion.is_other_row(entry.trial, self.is_present(entry), params)

    def is_present(self, entry: Entry) -> bool:
        """Whether the trial is one of the present space or pool, not of an earlier one."""
        return entry.space == len(self.spaces) - 1

    def replace(self, reports: Sequence[Report], call: str) -> list[Trial]:
        """Replace the outcomes of finished trials."""
        self._check_stds(reports)
        with self._transaction() as (entries, _):
            entries.extend(replaced(self.log, reports, call))
        return [entry.trial for entry in entries]

    def add_attrs(self, report: Report, attrs: Mapping[str, Any]) -> Trial:
        """Add attributes to a trial, whatever its state."""
        with self._transaction() as (entries, _):
            entries.append(own_entry(self.log, report).with_attrs(attrs))
        return entries[0].trial

    def beat(self, reports: Sequence[Report], call: str) -> None:
        """Write a heartbeat for each of the running trials that the reports are about."""
        with self._transaction() as (entries, _):
            checked, now = partial(check_running, call=call), utc_now()
            alive = {r.target: replace(own_entry(self.log, r, checked), seen_at=now) for r in reports}
            entries.extend(alive.values())

    def recover(self, older_than: float, enqueue: bool, among: Container[int] | None = None) -> list[Trial]:
        """Fail running trials, `among` some, without a heartbeat for `older_than` seconds; `enqueue` queues them."""
        with self._transaction() as (entries, _):
            running = (self.log.entries[i] for i in self.log.running if among is None or i in among)
            lost, queued = lost_ones(running, older_than, enqueue, len(self.log.order), len(self.log))
            entries.extend(lost + queued)
        return [entry.trial for entry in lost]
