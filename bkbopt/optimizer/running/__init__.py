"""`minimize` and `maximize`, and when a run ends."""
