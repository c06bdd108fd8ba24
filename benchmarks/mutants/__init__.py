"""Mutants, copies of the package with one fault sown, which the fast tests have to notice.

Run it as `python -m benchmarks.mutants`.
"""
