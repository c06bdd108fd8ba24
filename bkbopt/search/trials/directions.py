"""Directions of objectives; inside, larger is better."""

__all__ = ["sign_of"]


def sign_of(direction: str) -> float:
    """+1 for "maximize", -1 for "minimize"; values are multiplied by it, so that larger is better."""
    return 1.0 if direction == "maximize" else -1.0
