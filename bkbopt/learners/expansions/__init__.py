"""Learners that change a kernel expansion term by term: their base, and gradient descent."""
