"""Linear bandits, which choose arms and learn their values; `bkbopt.learners` has their names."""
