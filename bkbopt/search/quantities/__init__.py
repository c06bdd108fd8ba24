"""Modelled quantities: the scaling of their values, the rows that they learn from, and the times of their fits."""
