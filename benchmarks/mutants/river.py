"""Faults of the adapter of river."""

from benchmarks.mutants.fault import Fault

__all__ = ["RIVER"]

TESTS = ("adapters/test_river.py",)

RIVER = (
    Fault(
        "a missing feature is taken for zero",
        "adapters/river.py",
        "{name: x.get(name, mean) for name, mean in self._means.items()}",
        "{name: x.get(name, 0.0) for name in self._means}",
        TESTS,
    ),
    Fault(
        "the learner of the user is taught",
        "adapters/river.py",
        "self._taught = type(learner)(**learner.get_params())",
        "self._taught = learner",
        TESTS,
    ),
    Fault(
        "columns have the order of the first row",
        "adapters/river.py",
        "for name in sorted(x, key=str)}",
        "for name in x}",
        TESTS,
    ),
    Fault(
        "features that are ignored are named at every row",
        "adapters/river.py",
        "            self._warned = True\n",
        "",
        TESTS,
    ),
)
