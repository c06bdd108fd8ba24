"""All faults, by part of the package."""

from benchmarks.mutants.analysis import ANALYSIS
from benchmarks.mutants.botorch import BOTORCH
from benchmarks.mutants.candidates import CANDIDATES
from benchmarks.mutants.choices import CHOICES
from benchmarks.mutants.fault import Fault
from benchmarks.mutants.foundations import CONFIDENCE, KERNELS, SUPPORT
from benchmarks.mutants.gest import GEST
from benchmarks.mutants.interfaces import OPTUNA, SHELL, STUDIES
from benchmarks.mutants.learners import LEARNERS
from benchmarks.mutants.models import MODELS
from benchmarks.mutants.optimizer import OPTIMIZER
from benchmarks.mutants.plots import PLOTS
from benchmarks.mutants.posterior import POSTERIOR
from benchmarks.mutants.river import RIVER
from benchmarks.mutants.search import SEARCH
from benchmarks.mutants.spaces import SPACES
from benchmarks.mutants.surrogates import SURROGATES
from benchmarks.mutants.told import TOLD
from benchmarks.mutants.trials import TRIALS

__all__ = ["FAULTS", "LATER", "ROOMS"]

#: A room is a folder of `bkbopt/`, a module on top of it, or a folder or module of `adapters/`.
ROOMS: dict[str, tuple[Fault, ...]] = {
    "_support": SUPPORT,
    "kernels": KERNELS,
    "confidence": CONFIDENCE,
    "posterior": POSTERIOR,
    "spaces": SPACES,
    "surrogates": SURROGATES,
    "search": TRIALS + MODELS + CHOICES + SEARCH + CANDIDATES,
    "optimizer": OPTIMIZER + TOLD,
    "learners": LEARNERS,
    "adapters/botorch": BOTORCH,
    "adapters/gest": GEST,
    "adapters/optuna": OPTUNA + STUDIES,
    "adapters/river": RIVER,
    "adapters/shell": SHELL,
    "analysis": ANALYSIS,
    "plots": PLOTS,
}
#: Rooms whose faults are still to be listed: a file of faults beside this one, a line above, and this set gets shorter.
LATER: set[str] = set()

FAULTS: tuple[Fault, ...] = tuple(fault for faults in ROOMS.values() for fault in faults)
