"""An `Optimizer` with the methods of scikit-optimize's, which takes points as lists."""

from typing import Any

import bkbopt as bo
from bkbopt.errors import extra

with extra("skopt"):
    from skopt.space import Categorical, Integer, Space

__all__ = ["ListOptimizer"]


class ListOptimizer:
    """Ask and tell of lists, in the order of the dimensions; values are minimised.

    Args:
        dimensions: as scikit-optimize takes them, each with a name.
        options: further arguments of `Optimizer`.

    Example:
        >>> from skopt.space import Real
        >>> opt = ListOptimizer([Real(0.0, 1.0, name="x")], seed=0)
        >>> opt.tell(opt.ask(), 0.5)
    """

    def __init__(self, dimensions: list[Any], **options: Any) -> None:
        self.optimizer = bo.Optimizer({d.name: _parameter(d) for d in Space(dimensions)}, **options)
        self._running: dict[tuple[Any, ...], bo.Trial] = {}

    def ask(self) -> list[Any]:
        """The next point."""
        trial = self.optimizer.ask()
        self._running[tuple(trial.params.values())] = trial
        return list(trial.params.values())

    def tell(self, x: list[Any], y: float | None) -> None:
        """The value of a suggested point; None if the evaluation failed."""
        trial = self._running.pop(tuple(x))
        if y is None:
            self.optimizer.fail(trial)
        else:
            self.optimizer.tell(trial, y)


def _parameter(dimension: Any) -> Any:
    if isinstance(dimension, Categorical):
        return bo.Categorical(dimension.categories)
    kind = bo.Int if isinstance(dimension, Integer) else bo.Float
    return kind(dimension.low, dimension.high, log=dimension.prior == "log-uniform")
