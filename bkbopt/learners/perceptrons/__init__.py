"""Perceptrons: learners of labels, which add a term for a mistake or a small margin; `bkbopt.learners` has the names.

y is -1 or +1, f_t = f(x_t) the prediction, B the budget. A round costs one kernel row, O(B d), unless a docstring says
otherwise. Loops take a `Block` and a `Support` (`_loops_kernel.py`), the round `first` of the block's first row, and
write the predictions made before learning into `p (b,)`. They begin with row `start`, stop before a row that finds
`room` terms, and return that row, or b. `u (b,)` are uniform numbers, one a round whether it is used or not.
"""
