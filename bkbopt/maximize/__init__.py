"""Maximising an acquisition: exactly over a finite pool, by starts, gradients and discrete moves over a box."""
