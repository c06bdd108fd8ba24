"""Faults sown into the package, one at a time, to see that the fast tests notice: `python -m benchmarks.faults`."""
