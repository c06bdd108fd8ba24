"""Faults of the optimizer with its log."""

from benchmarks.mutants.fault import Fault

__all__ = ["OPTIMIZER"]

MINIMIZING = ("optimizer/test_minimizing.py", "optimizer/test_minimizing_ends.py", "optimizer/test_sharing.py")
OPENING = ("optimizer/test_storage_opening.py",)
QUEUE = ("optimizer/test_held_and_queued.py",)
TELLING = ("optimizer/test_telling.py", "optimizer/test_telling_tables.py")
TRIALS = ("optimizer/test_trials.py",)
STORAGE = ("optimizer/test_storage.py",)
CRAFTED = ("faults/test_crafted_logs.py",)
INTERRUPTS = ("faults/test_interrupts.py",)
CHANGED = ("optimizer/test_changed_spaces.py",)
REPLACED = ("optimizer/test_replaced_outcomes.py",)

OPTIMIZER = (
    Fault(
        "a value that was measured again is still suspicious",
        "optimizer/lone_values.py",
        " or float(obs.repeats[rows]) > 0.0",
        "",
        ("optimizer/test_lone_values.py",),
    ),
    Fault(
        "points that lack new parameters rank behind none outside of the space",
        "optimizer/recommendations.py",
        "return IN if self._belongs(point) else COMPLETED if",
        "return IN if self._belongs(point) else OUTSIDE if",
        CHANGED,
    ),
    Fault(
        "values of the past count where the parameter is not active",
        "optimizer/log_spaces.py",
        "for key, value in self.point.items() if key in active}",
        "for key, value in self.point.items()}",
        CHANGED,
    ),
    Fault(
        "trials that were learnt before do not get the values of the past",
        "optimizer/logged_designer.py",
        "        self.log.change_all()\n",
        "",
        CHANGED,
    ),
    Fault(
        "a new space forgets the choices of the earlier ones",
        "optimizer/log_spaces.py",
        "space = successor(candidates, earlier)",
        "space = successor(candidates, ())",
        CHANGED,
    ),
    Fault(
        "equal values without noise differ in a front",
        "optimizer/recommendations.py",
        "q.measured if q.is_noiseless else self._known.means[:, k]",
        "self._known.means[:, k]",
        ("optimizer/test_recommendations.py",),
    ),
    Fault(
        "an interrupt loses what was told",
        "optimizer/logged_designer.py",
        "self.designer.update(map(self._evaluation, self.log.changed()))\n        self.log.forget_changes()\n",
        "changed = self.log.changed()\n        self.log.forget_changes()\n"
        "        self.designer.update(map(self._evaluation, changed))\n",
        ("optimizer/test_sharing.py",),
    ),
    Fault(
        "one running trial is told twice in a call",
        "optimizer/outcomes.py",
        "for i in running.get(_key(point), ()) if i not in taken)",
        "for i in running.get(_key(point), ()))",
        TELLING,
    ),
    Fault(
        "a value of a named row is that of a running one with equal values",
        "optimizer/outcomes.py",
        "(entry for entry in there if not is_other_row(entry, params))",
        "there",
        ("optimizer/test_labels.py",),
    ),
    Fault(
        "queued points are asked against the values held",
        "optimizer/logged_designer.py",
        "if len(entries) < count and agrees and",
        "if len(entries) < count and",
        QUEUE,
    ),
    Fault(
        "a constraint that is missing fails nothing",
        "optimizer/telling.py",
        "column[:, 0].tolist(), valid & fine",
        "column[:, 0].tolist(), valid",
        TELLING,
    ),
    Fault(
        "trials are learnt in the order of their ids",
        "optimizer/trials.py",
        "            self.order.append(number)\n",
        "            self.order.append(number)\n            self.order.sort()\n",
        TRIALS,
    ),
    Fault(
        "an interrupted put is not made good",
        "optimizer/trials.py",
        "        if self._coming:\n",
        "        if False:\n",
        TRIALS,
    ),
    Fault(
        "outcomes of finished trials stay",
        "optimizer/trials.py",
        "return old.place != entry.place or old.outcome == entry.outcome",
        "return True",
        REPLACED,
    ),
    Fault(
        "what was learnt of a replaced outcome stays",
        "optimizer/logged_designer.py",
        "if self.log.is_rewritten:",
        "if False:",
        REPLACED,
    ),
    Fault(
        "an ask keeps the numbers that others have taken meanwhile",
        "optimizer/logged_designer.py",
        "if self._basis() != basis:",
        "if False:",
        STORAGE,
    ),
    Fault(
        "a space that another process has set is not taken over",
        "optimizer/logged_designer.py",
        "new = file.spaces[len(self.spaces) :]",
        "new = file.spaces[:0]",
        STORAGE,
    ),
    Fault(
        "a queued trial of the same ask does not count as running",
        "optimizer/logged_designer.py",
        "designer.suggest(count, number=number, fixed=fixed, running=running)",
        "designer.suggest(count, number=number, fixed=fixed)",
        QUEUE,
    ),
    Fault(
        "a file that was replaced is written",
        "optimizer/log_file.py",
        "self._connection is None or identity(self.path) != self._inode",
        "self._connection is None",
        STORAGE,
    ),
    Fault(
        "triggers and views of others are let in",
        "optimizer/log_file.py",
        "            if views != [log_rows.view(arguments, described)]:\n",
        "            if not views:\n",
        ("optimizer/test_saving_refusals.py",),
    ),
    Fault(
        "a transaction that an interrupt left open stays open",
        "optimizer/locking.py",
        "                if not is_within:\n                    self._core.release()\n",
        "                pass\n",
        INTERRUPTS,
    ),
    Fault(
        "a look at the trials ends the ask that it comes from",
        "optimizer/locking.py",
        "                if not is_within:\n",
        "                if True:\n",
        INTERRUPTS,
    ),
    Fault(
        "a transaction that ends late rolls back another one",
        "optimizer/log_file.py",
        "                if self._transaction is own:\n",
        "                if True:\n",
        INTERRUPTS,
    ),
    Fault(
        "queued trials count as finished after an interrupt",
        "optimizer/trials.py",
        "[entry.trial.id for entry in self.entries if entry.trial.state != WAITING]",
        "list(range(len(self.entries)))",
        TRIALS,
    ),
    Fault(
        "a space that an interrupt kept from being used is never used",
        "optimizer/logged_designer.py",
        "        self.log.mend()\n        self._use_last()\n",
        "        self.log.mend()\n",
        INTERRUPTS,
    ),
    Fault(
        "a trial of a space that is new cannot be looked up",
        "optimizer/log_file.py",
        "        if n_spaces != len(self.spaces):\n",
        "        if False:\n",
        (*CRAFTED, *STORAGE),
    ),
    Fault(
        "numbers of changes may be anything",
        "optimizer/log_schema.py",
        "not (_whole(change) and _whole(space) < n_spaces)",
        "not _whole(space) < n_spaces",
        CRAFTED,
    ),
    Fault(
        "ranges of a pool's columns may be anything",
        "optimizer/description.py",
        "    if not of_one_length or not bool(",
        "    if False and not bool(",
        CRAFTED,
    ),
    Fault(
        "rows are read without their checksums",
        "optimizer/log_schema.py",
        "    if checksum(row[:-1]) != row[-1]:\n",
        "    if False:\n",
        ("optimizer/test_log_schema.py",),
    ),
    Fault(
        "another pool of the same shape is taken for that of the log",
        "optimizer/saving.py",
        '"n_rows", "fingerprint")',
        '"n_rows")',
        OPENING,
    ),
    Fault(
        "options given anew are forgotten",
        "optimizer/saving.py",
        "                writer.set_option(name, value)\n",
        "                pass\n",
        OPENING,
    ),
    Fault(
        "trials that were heard of lately are recovered",
        "optimizer/trials.py",
        "(now - (self.seen_at or self.trial.asked_at or now))",
        "(now - (self.trial.asked_at or now))",
        ("optimizer/test_unfinished_trials.py",),
    ),
    Fault(
        "a constraint of zero is violated",
        "optimizer/trials.py",
        "all(value <= 0.0 for value",
        "all(value < 0.0 for value",
        TRIALS,
    ),
    Fault(
        "points of interrupted trials are lost",
        "optimizer/minimizing.py",
        "if interrupted or trial is not told:",
        "if False:",
        ("optimizer/test_minimizing_ends.py",),
    ),
    Fault(
        "the point that ended the run is queued",
        "optimizer/minimizing.py",
        "if interrupted or trial is not told:",
        "if True:",
        ("optimizer/test_minimizing_ends.py",),
    ),
    Fault(
        "points that the stated constraint refuses are recommended",
        "optimizer/labelled_recommendations.py",
        "return is_whole and (problem.feasible is None or problem.feasible(point))",
        "return is_whole",
        ("optimizer/test_recommendations.py",),
    ),
    Fault(
        "a later callback overrules an earlier one",
        "optimizer/minimizing.py",
        "self.asked_to |= as_python(callback(self.optimizer, trial)) is True",
        "self.asked_to = as_python(callback(self.optimizer, trial)) is True",
        MINIMIZING,
    ),
    Fault(
        "the trial whose error ends a run stays running",
        "optimizer/minimizing.py",
        "            finished = finish(told, future.result)\n            del in_flight[told.id]\n",
        "            del in_flight[told.id]\n            finished = finish(told, future.result)\n",
        MINIMIZING,
    ),
    Fault(
        "recommended points may be uncertain",
        "optimizer/recommendations.py",
        "best[rows] - CAUTION * ",
        "best[rows] - 0.0 * ",
        ("optimizer/test_recommendations.py",),
    ),
    Fault(
        "pruned trials are as certain as others",
        "optimizer/recommendations.py",
        "torch.where(self._complete[rows], variance, prior)",
        "variance",
        ("optimizer/test_recommendations.py", "adapters/optuna/test_reports.py"),
    ),
    Fault(
        "a choice of None is a gap in a table",
        "optimizer/conversion.py",
        "gaps = {name for name in empty if parameters[name].locate(cells[name]) is None}",
        "gaps = empty",
        ("optimizer/test_spaces_by_ask_and_tell.py",),
    ),
    Fault(
        "threads do not wait for each other",
        "optimizer/locking.py",
        "        with self._lock:\n            is_within",
        "        if True:\n            is_within",
        ("optimizer/test_sharing.py",),
    ),
)
