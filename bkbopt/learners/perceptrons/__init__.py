"""Perceptrons: learners of labels, which add a term for a mistake or a small margin; `bkbopt.learners` has the names.

y is -1 or +1, f_t = f(x_t) the prediction, B the budget. A round costs one kernel row, O(B d), unless a docstring says
otherwise. Loops get a `Block` and a `Support` (`numerics/_loops_kernel.py`), and the round `first` of the block's first
row. They write the predictions made before learning to `p (b,)`. They begin with row `start`, stop before a row that
needs more than `room` terms, and return that row, or b: `ExpansionLearner._run_loop` calls them. `u (b,)` are uniform
numbers, one a round, used or not.
"""
