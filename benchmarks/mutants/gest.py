"""Faults of the adapter of gest-api."""

from benchmarks.mutants.fault import Fault

__all__ = ["GEST"]

GENERATOR = ("adapters/gest/test_generator.py",)

GEST = (
    Fault(
        "a lower bound is taken for an upper one",
        "adapters/gest/problem.py",
        "low, high = constraint.value, math.inf",
        "low, high = -math.inf, constraint.value",
        ("adapters/gest/test_problem.py",),
    ),
    Fault(
        "a suggestion may come back with other variables",
        "adapters/gest/reports.py",
        "if name in row and not _is_same(parameter, as_python(row[name]), trial.params[name]):",
        "if False:",
        GENERATOR,
    ),
    Fault(
        "suggestions that were asked in vain are lost",
        "adapters/gest/generator.py",
        "trials, self._left = self._left[:count], self._left[count:]",
        "trials, self._left = self._left[:count], []",
        GENERATOR,
    ),
    Fault(
        "constants are left out of suggestions",
        "adapters/gest/generator.py",
        "{**trial.params, **copy.deepcopy(self._problem.constants), ID: trial.id}",
        "{**trial.params, ID: trial.id}",
        GENERATOR,
    ),
)
