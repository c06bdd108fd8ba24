"""The log of trials, in memory and in a file: its records, names and tables. It imports neither torch nor NumPy."""
