"""Faults of the sampler of Optuna, of studies as optimizers, and of the command line."""

from benchmarks.mutants.fault import Fault

__all__ = ["OPTUNA", "SHELL", "STUDIES"]


FRESH = ("adapters/optuna/test_fresh_samplers.py",)
PARALLEL = ("adapters/optuna/test_parallel.py",)
REPRODUCIBILITY = ("adapters/optuna/test_reproducibility.py",)

IMPORTANCES = ("adapters/optuna/test_importance.py",)

OPTUNA = (
    Fault(
        "values of an enqueued trial are unknown to the search of the others",
        "adapters/optuna/sampler.py",
        'held(trial.system_attrs.get("fixed_params", {}), search_space)',
        "held({}, search_space)",
        ("adapters/optuna/test_fixed_values.py",),
    ),
    Fault(
        "a point that another worker has evaluated meanwhile is proposed",
        "adapters/optuna/followed.py",
        "self.running_points(number) + [e.point for e in finished]",
        "self.running_points(number)",
        ("adapters/optuna/test_parallel.py",),
    ),
    Fault(
        "a trial that was running at the last update is not looked at again",
        "adapters/optuna/followed.py",
        "left.add(number)",
        "left.discard(number)",
        ("adapters/optuna/test_followed.py",),
    ),
    Fault(
        "trials that an interrupt kept back are not told again",
        "adapters/optuna/followed.py",
        "        self.designer.update(news)\n        self._seen = (len(trials), left) if by_number else (0, set())\n",
        "        self._seen = (len(trials), left) if by_number else (0, set())\n        self.designer.update(news)\n",
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
        "if followed is None or not followed.belongs_to(study, trials):",
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
    Fault(
        "importances leave out interactions",
        "adapters/optuna/importance.py",
        "found[name].total if",
        "found[name].first if",
        IMPORTANCES,
    ),
    Fault(
        "the least important parameter comes first",
        "adapters/optuna/importance.py",
        "key=lambda share: -share[1]",
        "key=lambda share: share[1]",
        IMPORTANCES,
    ),
)

COMMANDS = ("adapters/shell/test_commands.py", "adapters/shell/test_refusals.py")
LOG_COMMANDS = ("adapters/shell/test_log_commands.py",)
RUNS = ("adapters/shell/test_run.py",)

SHELL = (
    Fault(
        "a run goes on when the regret is small enough",
        "adapters/shell/run.py",
        "return self.is_good_enough or (",
        "return (",
        ("adapters/shell/test_run.py",),
    ),
    Fault(
        "three outputs that cannot be read stop a run that has values",
        "adapters/shell/run.py",
        "self._n_unreadable == UNREADABLE and not self.opt.n_complete",
        "self._n_unreadable == UNREADABLE",
        RUNS,
    ),
    Fault(
        "the last of two values of a constraint counts",
        "adapters/shell/usage.py",
        "    if len(given) < len(pairs):",
        "    if False:",
        COMMANDS,
    ),
    Fault(
        "Python flushes into a closed pipe at exit",
        "adapters/shell/commands.py",
        "        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())\n",
        "",
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
        'check_running(found, number, call, "--replace")',
        "found[0]",
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
        "return self.progress.n_finished - self.progress.n_lost",
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
        "self.args.trials - self._n_made() - alive",
        "self.args.trials - self._n_made() - len(self.jobs)",
        RUNS,
    ),
)

READ_STUDIES = ("adapters/optuna/test_optimizer_of.py",)

STUDIES = (
    Fault(
        "pruned trials of a study count as failed",
        "adapters/optuna/studies.py",
        "state=COMPLETE if pruned else trial.state.name",
        'state="FAIL" if pruned else trial.state.name',
        READ_STUDIES,
    ),
    Fault(
        "trials of a study are learnt in the order of their numbers",
        "adapters/optuna/studies.py",
        "key=lambda trial: evaluation_of(trial).order",
        "key=lambda trial: trial.number",
        READ_STUDIES,
    ),
    Fault(
        "an optimizer of a study has the default number of start-up trials",
        "adapters/optuna/sampler.py",
        '("n_startup_trials", "beta", "acquisition")',
        '("beta", "acquisition")',
        READ_STUDIES,
    ),
    Fault(
        "a target of a study has as many directions as the study",
        "adapters/optuna/studies.py",
        "directions=_directions(study) if target is None else",
        "directions=_directions(study) if True else",
        IMPORTANCES,
    ),
)
