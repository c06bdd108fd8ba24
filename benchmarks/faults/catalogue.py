"""All faults, by the rooms of the package."""

from benchmarks.faults.botorch import BOTORCH
from benchmarks.faults.fault import Fault
from benchmarks.faults.foundations import CONFIDENCE, KERNELS, POSTERIOR, SUPPORT
from benchmarks.faults.learners import LEARNERS
from benchmarks.faults.plots import PLOTS

__all__ = ["FAULTS", "LATER", "ROOMS"]

#: A room is a folder of `bkbopt/`, a module on top of it, or a folder or module of `adapters/`.
ROOMS: dict[str, tuple[Fault, ...]] = {
    "_support": SUPPORT,
    "kernels": KERNELS,
    "confidence": CONFIDENCE,
    "posterior": POSTERIOR,
    "learners": LEARNERS,
    "adapters/botorch": BOTORCH,
    "plots": PLOTS,
}
#: Rooms whose faults are still to be listed: a file of faults beside this one, a line above, and this set gets shorter.
LATER = {"surrogates", "spaces", "search", "optimizer", "adapters/optuna", "adapters/shell"}

FAULTS: tuple[Fault, ...] = tuple(fault for faults in ROOMS.values() for fault in faults)
