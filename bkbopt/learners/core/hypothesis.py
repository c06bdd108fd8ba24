"""The function that a learner has learnt, with its span: the input of a surrogate.

| symbol | shape  | units | meaning                                                                  |
| ------ | ------ | ----- | ------------------------------------------------------------------------ |
| points | (n, d) | as X  | f(x) = sum_i a_i k(points_i, x)                                          |
| a      | (n,)   | -     | weights                                                                  |
| B      | (n, k) | -     | f lies in the span of the k functions sum_i B_ij k(points_i, .)          |
"""

from dataclasses import dataclass

from bkbopt.learners.numerics.losses import Array

__all__ = ["Hypothesis"]


@dataclass(frozen=True)
class Hypothesis:
    """See the module's table; with `basis` None the span is that of all points."""

    points: Array
    weights: Array
    basis: Array | None = None
