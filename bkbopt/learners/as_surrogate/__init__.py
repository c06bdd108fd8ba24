"""Online learners as surrogates of the optimizer."""
