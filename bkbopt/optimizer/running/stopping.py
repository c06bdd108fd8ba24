"""The rule by which a run ends once the recommended point is good enough."""

from bkbopt.optimizer.optimizer import Optimizer

__all__ = ["CERTIFY_EVERY", "is_good_enough"]

#: Trials between two regret certificates; a certificate costs as much as several asks.
CERTIFY_EVERY = 10


def is_good_enough(optimizer: Optimizer, regret: float) -> bool:
    """Whether the regret of the recommended point is at most `regret` (units of y), at confidence 0.95.

    It is not before the start-up has its values, nor where the point is not expected to be feasible, or a constraint
    has no value. The optimizer has a single objective.
    """
    if optimizer.n_complete - len(optimizer.penalties) <= optimizer.n_startup_trials:
        return False
    found = optimizer.regret_certificate()
    is_feasible = found.feasibility is None or found.feasibility >= 0.5
    return found.bound <= regret and is_feasible and optimizer._has_all_constraints
