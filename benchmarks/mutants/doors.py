"""Faults of the interfaces: the optimizer with its log, the sampler of Optuna, and the command line."""

from benchmarks.mutants.fault import Fault

__all__ = ["OPTIMIZER", "OPTUNA", "SHELL"]

MINIMIZING = ("optimizer/test_minimizing.py", "optimizer/test_sharing.py")
OPENING = ("optimizer/test_storage_opening.py",)
QUEUE = ("optimizer/test_held_and_queued.py",)
TELLING = ("optimizer/test_telling.py",)
TRIALS = ("optimizer/test_trials.py",)
STORAGE = ("optimizer/test_storage.py",)
CRAFTED = ("faults/test_crafted_logs.py",)
INTERRUPTS = ("faults/test_interrupts.py",)
CHANGED = ("optimizer/test_changed_spaces.py",)

OPTIMIZER = (
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
        "            self.log.change_all()\n",
        "",
        CHANGED,
    ),
    Fault(
        "a new space forgets the choices of the earlier ones",
        "optimizer/log_spaces.py",
        "space, earlier = successor(candidates, list(self)), list(self)",
        "space, earlier = successor(candidates, ()), list(self)",
        CHANGED,
    ),
    Fault(
        "a front keeps dominated points of equal sums",
        "optimizer/recommendations.py",
        "np.lexsort((np.arange(len(Y)), *-Y.T[::-1]))",
        "np.lexsort((np.arange(len(Y)), -(Y / 8.0).sum(1)))",
        ("faults/test_numerics.py",),
    ),
    Fault(
        "equal values without noise differ in a front",
        "optimizer/recommendations.py",
        "q.measured if q.is_noiseless else self._fantasy.means[:, k]",
        "self._fantasy.means[:, k]",
        ("optimizer/test_recommendations.py",),
    ),
    Fault(
        "a recommended point under noisy constraints is feasible with probability one half",
        "optimizer/recommendations.py",
        "SURE = 0.9",
        "SURE = 0.5",
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
        "optimizer/logged_designer.py",
        "next((i for i in running.get(_key(point), ()) if i not in taken), None)",
        "next(iter(running.get(_key(point), ())), None)",
        TELLING,
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
        "column[:, 0], valid & fine",
        "column[:, 0], valid",
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
        "a finished trial is told again",
        "optimizer/trials.py",
        "(e for e in entries if not self._is_over(e.trial.id))",
        "entries",
        TRIALS,
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
        "a later callback overrules an earlier one",
        "optimizer/minimizing.py",
        "self.asked_to |= callback(self.optimizer, trial) is True",
        "self.asked_to = callback(self.optimizer, trial) is True",
        MINIMIZING,
    ),
    Fault(
        "the trial whose error ends a run stays running",
        "optimizer/minimizing.py",
        "            finished = _finish(optimizer, trial, future.result, catch)\n            del in_flight[trial.id]\n",
        "            del in_flight[trial.id]\n            finished = _finish(optimizer, trial, future.result, catch)\n",
        MINIMIZING,
    ),
    Fault(
        "a choice of None is a gap in a table",
        "optimizer/vocabulary.py",
        "is_missing(value) and parameters[name].locate(value) is None",
        "is_missing(value)",
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

FRESH = ("adapters/optuna/test_fresh_samplers.py",)
PARALLEL = ("adapters/optuna/test_parallel.py",)
REPRODUCIBILITY = ("adapters/optuna/test_reproducibility.py",)

OPTUNA = (
    Fault(
        "trials that an interrupt kept back are not told again",
        "adapters/optuna/followed.py",
        "        self.designer.update(news)\n        self._finished.update(finished)\n",
        "        self._finished.update(finished)\n        self.designer.update(news)\n",
        FRESH,
    ),
    Fault(
        "the range that was seen last counts",
        "adapters/optuna/followed.py",
        "if key not in self._latest or order > self._latest[key][0]:",
        "if True:",
        FRESH,
    ),
    Fault(
        "trials are learnt in the order of their numbers",
        "adapters/optuna/columns.py",
        "finished.timestamp() if finished is not None else 0.0",
        "0.0",
        FRESH,
    ),
    Fault(
        "intermediate values of complete trials are not kept",
        "adapters/optuna/columns.py",
        "state in (COMPLETE, PRUNED) else {}",
        "state == PRUNED else {}",
        ("adapters/optuna/test_pruned_trials.py",),
    ),
    Fault(
        "another seed for suggestions is one for the models",
        "adapters/optuna/sampler.py",
        "FollowedStudy(study, self._options, self._model_seed)",
        "FollowedStudy(study, self._options, self._entropy)",
        REPRODUCIBILITY,
    ),
    Fault(
        "a sampler takes another study for the one it follows",
        "adapters/optuna/sampler.py",
        "if followed is None or not followed.belongs_to(study):",
        "if followed is None:",
        REPRODUCIBILITY,
    ),
    Fault(
        "a value is drawn that others are at",
        "adapters/optuna/independent.py",
        "grid[counts == counts.min()]",
        "grid[counts == counts.max()]",
        PARALLEL,
    ),
)

COMMANDS = ("adapters/shell/test_commands.py", "adapters/shell/test_refusals.py")
LOG_COMMANDS = ("adapters/shell/test_log_commands.py",)
RUNS = ("adapters/shell/test_run.py",)

SHELL = (
    Fault(
        "three outputs that cannot be read stop a run that has values",
        "adapters/shell/run.py",
        "self._n_unreadable == UNREADABLE and not self.opt.n_complete",
        "self._n_unreadable == UNREADABLE",
        RUNS,
    ),
    Fault(
        "the last of two values of a constraint counts",
        "adapters/shell/commands.py",
        "    if len(limits) < len(args.constraint):",
        "    if False:",
        COMMANDS,
    ),
    Fault(
        "a negative number is an option",
        "adapters/shell/commands.py",
        'return f" {argument}" if argument.startswith("-") else argument',
        "return argument",
        COMMANDS,
    ),
    Fault(
        "a parameter takes any key",
        "adapters/shell/space_file.py",
        "if not needed <= set(fields) <= needed | besides:",
        "if not needed <= set(fields):",
        COMMANDS,
    ),
    Fault(
        "a trial is told twice from the shell",
        "adapters/shell/writing.py",
        "check_running(entry, number, n_trials, call).finished(",
        "entry.finished(",
        LOG_COMMANDS,
    ),
    Fault(
        "a trial is recovered that is not silent",
        "adapters/shell/writing.py",
        "if e.silence(now) >= older_than]",
        "if e.silence(now) >= 0.0]",
        LOG_COMMANDS,
    ),
    Fault(
        "what is not feasible is the best so far",
        "adapters/shell/progress.py",
        "if not trial.values or not trial.is_feasible:",
        "if not trial.values:",
        LOG_COMMANDS,
    ),
    Fault(
        "a command that fails gives a value",
        "adapters/shell/jobs.py",
        "            if status:\n",
        "            if status is None:\n",
        RUNS,
    ),
    Fault(
        "the children of a command outlive it",
        "adapters/shell/jobs.py",
        "os.killpg(process.pid, number)",
        "os.kill(process.pid, number)",
        ("adapters/shell/test_jobs.py",),
    ),
    Fault(
        "a trial that is repeated counts twice",
        "adapters/shell/run.py",
        "return self.progress.n_finished - self.progress.n_repeated",
        "return self.progress.n_finished",
        RUNS,
    ),
    Fault(
        "an interrupted run forgets its points",
        "adapters/shell/run.py",
        "lose(self._log, list(self.jobs), enqueue=True)",
        "lose(self._log, list(self.jobs))",
        RUNS,
    ),
    Fault(
        "two runs count at the same time",
        "adapters/shell/run.py",
        """            self.progress.update()
            count = self._n_wanted()
""",
        """            count = self._n_wanted()
""",
        RUNS,
    ),
    Fault(
        "a run takes no notice of others on its log",
        "adapters/shell/run.py",
        "self.settings.trials - self._n_made() - alive",
        "self.settings.trials - self._n_made() - len(self.jobs)",
        RUNS,
    ),
)
