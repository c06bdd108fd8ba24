"""The states of a trial."""

__all__ = ["COMPLETE", "FAIL", "PRUNED", "RUNNING", "WAITING"]

RUNNING, COMPLETE, PRUNED, FAIL = "RUNNING", "COMPLETE", "PRUNED", "FAIL"
#: Queued by `Optimizer.enqueue`, and not yet asked for.
WAITING = "WAITING"
