"""The states of a trial, by the names that Optuna gives them; a module that imports nothing."""

__all__ = ["COMPLETE", "FAIL", "PRUNED", "RUNNING", "WAITING"]

#: Asked for, and not told yet.
RUNNING = "RUNNING"
#: Evaluated.
COMPLETE = "COMPLETE"
#: Ended early by a pruner of Optuna.
PRUNED = "PRUNED"
#: Evaluated without a value.
FAIL = "FAIL"
#: Queued by `Optimizer.enqueue`, and not asked yet.
WAITING = "WAITING"
