"""The tables and figures of the papers on online kernel learning, with our learners."""
