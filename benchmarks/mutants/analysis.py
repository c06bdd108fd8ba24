"""Faults of the numbers behind the pictures."""

from benchmarks.mutants.fault import Fault

__all__ = ["ANALYSIS"]

ANALYSIS = (
    Fault(
        "a total share is twice as large",
        "analysis/sensitivity.py",
        ".mean()) / (2.0 * variance)",
        ".mean()) / variance",
        ("analysis/test_sensitivity.py",),
    ),
    Fault(
        "central intervals are one-sided",
        "analysis/intervals.py",
        "ndtri(0.5 * (1.0 + LEVELS))",
        "ndtri(0.5 + 0.25 * LEVELS)",
        ("analysis/test_intervals.py",),
    ),
    Fault(
        "combinations that do not exist have an average",
        "analysis/dependence.py",
        "part[~active] = np.nan",
        "part[~active] = 0.0",
        ("analysis/test_dependence.py",),
    ),
)
