"""Least squares on all rows: kernel ridge regression, Kernel-AWV, PKAWV."""
