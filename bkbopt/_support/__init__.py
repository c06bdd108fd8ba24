"""Argument checks, state files, compiled loops, thread limits and lazy names: nothing of the field."""
