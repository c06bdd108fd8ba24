"""Mutants: copies of the package with one fault each, which the fast tests must detect."""
