"""Losses, kernel matrices, factors and dictionaries that grow: arrays and numbers, no learners."""
