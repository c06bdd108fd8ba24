"""Argument checks, state files, compiled loops and thread limits: nothing of the field."""
