"""Faults of the optimizer with its log."""

from benchmarks.mutants.fault import Fault

__all__ = ["OPTIMIZER"]

ATTRIBUTES = ("optimizer/log/test_attributes.py",)
OBJECTIVES = ("optimizer/log/test_objectives.py",)
MINIMIZING = (
    "optimizer/running/test_minimizing.py",
    "optimizer/running/test_minimizing_ends.py",
    "optimizer/test_sharing.py",
)
OPENING = ("optimizer/designers/test_storage_opening.py",)
LIMITS = ("optimizer/test_changing_constraints.py",)
QUEUE = ("optimizer/test_held_and_queued.py",)
STORAGE = ("optimizer/designers/test_storage.py",)
INTERRUPTS = ("faults/test_interrupts.py",)
CHANGED = ("optimizer/test_changed_spaces.py",)
REPLACED = ("optimizer/telling/test_replaced_outcomes.py",)
RULES = ("optimizer/arguments/test_known_constraints.py",)

OPTIMIZER = (
    Fault(
        "a parameter that is held at a value counts as removed",
        "optimizer/changing.py",
        "and p.n_values != 1",
        "and True",
        ("optimizer/test_changing_spaces.py",),
    ),
    Fault(
        "an exception has the optimizer that a user has",
        "optimizer/running/minimizing.py",
        "own = None if optimizer is space or optimizer.storage is not None else optimizer",
        "own = optimizer",
        ("optimizer/running/test_minimizing_ends.py",),
    ),
    Fault(
        "a copy with one objective has the noise of the first one",
        "optimizer/designers/single_objective.py",
        "None if trial.stds is None else trial.stds[k]",
        "None if trial.stds is None else trial.stds[0]",
        ("optimizer/designers/test_single_objective.py",),
    ),
    Fault(
        "the function of one process is that of a log as soon as it sets a space",
        "optimizer/designers/coming.py",
        "if has_constraint and stored(",
        "if stored(",
        RULES,
    ),
    Fault(
        "a function that was refused is used",
        "optimizer/designers/logged_designer.py",
        "self._coming = replace(coming, feasible=self.feasible)",
        "pass",
        RULES,
    ),
    Fault(
        "rules that are set during an ask do not hold for its trial",
        "optimizer/designers/logged_designer.py",
        "self.log.waiting, len(self.spaces), self.feasible",
        "self.log.waiting, len(self.spaces), None",
        RULES,
    ),
    Fault(
        "rules are not read again for other choices",
        "optimizer/arguments/known_constraint.py",
        "current.rules == kept and current.candidates is candidates",
        "current.rules == kept",
        RULES,
    ),
    Fault(
        "a trial that is asked loses what it got in the queue",
        "optimizer/designers/logged_designer.py",
        "asked = [self._with_attrs(entry) for entry in asked]",
        "pass",
        ATTRIBUTES,
    ),
    Fault(
        "predictions of a constraint are excesses",
        "optimizer/results/predictions.py",
        "out[name] = sides[0].value(mean.numpy()), std.numpy()",
        "out[name] = mean.numpy(), std.numpy()",
        LIMITS,
    ),
    Fault(
        "attributes are no values of a new constraint",
        "optimizer/designers/logged_designer.py",
        "entries.extend(measured(self.log, limits))",
        "entries.extend([])",
        LIMITS,
    ),
    Fault(
        "a log with names is opened with them in another order",
        "optimizer/designers/saving.py",
        'new = [*ANEW, "objectives"] if held.get("objectives") is None else ANEW',
        'new = [*ANEW, "objectives"]',
        OBJECTIVES,
    ),
    Fault(
        "a run ends while a constraint has no value",
        "optimizer/running/stopping.py",
        "and is_feasible and optimizer._has_all_constraints",
        "and is_feasible",
        ("optimizer/running/test_minimizing.py",),
    ),
    Fault(
        "a run ends where no feasible point is recommended",
        "optimizer/running/stopping.py",
        "or found.feasibility >= 0.5",
        "or True",
        ("optimizer/running/test_minimizing.py",),
    ),
    Fault(
        "suggestions name a row that has a trial, though an equal one has none",
        "optimizer/designers/asking.py",
        "for s, row in zip(suggestions, rows, strict=True)",
        "for s, row in ((s, s.index) for s in suggestions)",
        ("search/candidates/test_listed.py",),
    ),
    Fault(
        "a value that was measured again is still suspicious",
        "optimizer/results/lone_values.py",
        " or float(obs.repeats[rows]) > 0.0",
        "",
        ("optimizer/results/test_lone_values.py",),
    ),
    Fault(
        "a value of an objective without noise is suspicious",
        "optimizer/results/lone_values.py",
        " or objective.noisiness.fitter.options.deterministic",
        "",
        ("optimizer/results/test_lone_values.py",),
    ),
    Fault(
        "points that lack new parameters rank behind none outside of the space",
        "optimizer/results/recommendations.py",
        "return IN if self._belongs(point) else COMPLETED if",
        "return IN if self._belongs(point) else OUTSIDE if",
        CHANGED,
    ),
    Fault(
        "trials that were learnt before do not get the values of the past",
        "optimizer/designers/logged_designer.py",
        "        self.log.change_all()\n",
        "",
        CHANGED,
    ),
    Fault(
        "equal values without noise differ in a front",
        "optimizer/results/recommendations.py",
        "at_known(q, X, q.measured) if q.is_noiseless else means[:, k]",
        "means[:, k]",
        ("optimizer/results/test_recommendations.py",),
    ),
    Fault(
        "an interrupt loses what was told",
        "optimizer/designers/logged_designer.py",
        "self.designer.update(evaluation(entry, self.spaces, self.conversion) for entry in self.log.changed())\n"
        "        self.log.forget_changes()\n",
        "changed = self.log.changed()\n        self.log.forget_changes()\n"
        "        self.designer.update(evaluation(entry, self.spaces, self.conversion) for entry in changed)\n",
        ("optimizer/test_sharing.py",),
    ),
    Fault(
        "queued points are asked against the values held",
        "optimizer/designers/asking.py",
        "if len(entries) < count and agrees and",
        "if len(entries) < count and",
        QUEUE,
    ),
    Fault(
        "what was learnt of a replaced outcome stays",
        "optimizer/designers/logged_designer.py",
        "if self.log.is_rewritten:",
        "if False:",
        REPLACED,
    ),
    Fault(
        "an ask keeps the numbers that others have taken meanwhile",
        "optimizer/designers/logged_designer.py",
        "if self._basis() != basis:",
        "if False:",
        STORAGE,
    ),
    Fault(
        "a space that another process has set is not taken over",
        "optimizer/designers/logged_designer.py",
        "new = file.spaces[len(self.spaces) :]",
        "new = file.spaces[:0]",
        STORAGE,
    ),
    Fault(
        "a queued trial of the same ask does not count as running",
        "optimizer/designers/asking.py",
        "designer.suggest(count, number=number, fixed=fixed, running=running)",
        "designer.suggest(count, number=number, fixed=fixed)",
        QUEUE,
    ),
    Fault(
        "a transaction that an interrupt left open stays open",
        "optimizer/designers/locking.py",
        "                if not is_within:\n                    self._core.release()\n",
        "                pass\n",
        INTERRUPTS,
    ),
    Fault(
        "a look at the trials ends the ask that it comes from",
        "optimizer/designers/locking.py",
        "                if not is_within:\n",
        "                if True:\n",
        INTERRUPTS,
    ),
    Fault(
        "a space that an interrupt kept from being used is never used",
        "optimizer/designers/logged_designer.py",
        "            self._coming_limits = None\n        self._use_last()\n",
        "            self._coming_limits = None\n",
        INTERRUPTS,
    ),
    Fault(
        "another pool of the same shape is taken for that of the log",
        "optimizer/designers/saving.py",
        '"n_rows", "fingerprint")',
        '"n_rows")',
        OPENING,
    ),
    Fault(
        "options given anew are forgotten",
        "optimizer/designers/saving.py",
        "                writer.set_option(name, value)\n",
        "                pass\n",
        OPENING,
    ),
    Fault(
        "points of interrupted trials are lost",
        "optimizer/optimizer.py",
        "recover(-math.inf, True,",
        "recover(-math.inf, False,",
        ("optimizer/running/test_minimizing_ends.py",),
    ),
    Fault(
        "the point that ended the run is queued",
        "optimizer/running/minimizing.py",
        "interrupted = not isinstance(sys.exception(), Exception)",
        "interrupted = True",
        ("optimizer/running/test_minimizing_ends.py",),
    ),
    Fault(
        "points that the stated constraint refuses are recommended",
        "optimizer/results/labelled_recommendations.py",
        "return is_whole and (problem.feasible is None or problem.feasible(point))",
        "return is_whole",
        ("optimizer/results/test_recommendations.py",),
    ),
    Fault(
        "a later callback overrules an earlier one",
        "optimizer/running/minimizing.py",
        "self.asked_to |= as_python(callback(self.optimizer, trial)) is True",
        "self.asked_to = as_python(callback(self.optimizer, trial)) is True",
        MINIMIZING,
    ),
    Fault(
        "the trial whose error ends a run stays running",
        "optimizer/running/minimizing.py",
        "                finished = self._finish(told, future.result)\n                del in_flight[told.id]\n",
        "                del in_flight[told.id]\n                finished = self._finish(told, future.result)\n",
        MINIMIZING,
    ),
    Fault(
        "recommended points may be uncertain",
        "optimizer/results/recommendations.py",
        "best[rows] - CAUTION * ",
        "best[rows] - 0.0 * ",
        ("optimizer/results/test_recommendations.py",),
    ),
    Fault(
        "pruned trials are as certain as others",
        "optimizer/results/recommendations.py",
        "torch.where(self._complete[rows], variance, prior)",
        "variance",
        ("optimizer/results/test_recommendations.py", "adapters/optuna/test_reports.py"),
    ),
    Fault(
        "a theorem's certificate is a tenth of its width",
        "optimizer/results/predictions.py",
        "return RegretCertificate(confidence_gap, params_of(whole",
        "return RegretCertificate(0.1 * confidence_gap, params_of(whole",
        ("optimizer/test_optimizer_search.py",),
    ),
    Fault(
        "threads do not wait for each other",
        "optimizer/designers/locking.py",
        "with self._lock, usual_settings():",
        "with usual_settings():",
        ("optimizer/test_sharing.py",),
    ),
    Fault(
        "what would have been recommended knows values that came later",
        "optimizer/results/recommendations.py",
        "models.of_first(end)",
        "models.of_first(ends[-1])",
        ("optimizer/results/test_earlier_recommendations.py", "plots/test_progress.py"),
    ),
)
