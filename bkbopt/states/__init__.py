"""States: what has been learnt, given fixed features. Frozen; every update returns a new one."""

from bkbopt.states.gaussian import GaussianState

__all__ = ["GaussianState"]
