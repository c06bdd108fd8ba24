"""Candidate sets, from which suggestions are chosen: boxes, grids, pools and products."""
