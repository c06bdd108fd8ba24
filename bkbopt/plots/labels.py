"""Labels in the words of a run: the names of its values, and what was left out."""

from collections.abc import Sequence

from bkbopt.optimizer import Optimizer
from bkbopt.search.trials.states import FAIL

__all__ = ["evaluations_of", "failed_in_words", "name_of", "name_of_all"]


def failed_in_words(opts: Sequence[Optimizer], noun: str = "") -> str:
    """How many trials of optimizers have no value that counts, as "7 failed, 4 penalties"; empty if there are none.

    Lost trials are left out. The `noun` follows "failed".
    """
    failed = sum(sum(trial.state == FAIL for trial in opt.trials) - len(opt.lost_trials) for opt in opts)
    penalties = sum(len(opt.penalties) for opt in opts)
    what = f"failed {noun}{'s' * (failed > 1)}" if noun else "failed"
    counts = ((failed, what), (penalties, "penalties"))
    return ", ".join(f"{count} {words}" for count, words in counts if count)


def evaluations_of(opts: Sequence[Optimizer]) -> str:
    """The label of an axis of evaluations of runs, which says how many trials of optimizers are left out."""
    failed = failed_in_words(opts, "trial")
    return f"evaluations ({failed} left out)" if failed else "evaluations"


def name_of(opt: Optimizer, value_name: str | None) -> str:
    """The label of the value, which is the name of the single objective if none was given."""
    return (opt.objectives or ("value",))[0] if value_name is None else value_name


def name_of_all(opts: Sequence[Optimizer], value_name: str | None) -> str:
    """The label of the values of several runs: the name that all of their objectives have, if none was given."""
    names = {name_of(opt, value_name) for opt in opts}
    return names.pop() if len(names) == 1 else value_name or "value"
