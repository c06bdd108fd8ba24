"""What may change in a run: the search space or the pool, and the outcome constraints."""

from typing import Any

from bkbopt.optimizer.arguments import option_types as types
from bkbopt.optimizer.arguments.problems import other_pool, other_space
from bkbopt.optimizer.designers.locking import locked
from bkbopt.optimizer.readings.given import Given
from bkbopt.spaces.base import Params

__all__ = ["Changing"]


class Changing(Given):
    """Changes of the problem; all trials are kept."""

    @locked
    def set_pool(self, pool: Any, *, feasible: types.Feasible | None = None) -> None:
        """Replace the arms of a pool; arms may be removed and added, and all observations are kept.

        An earlier trial keeps the `index` of its row in the earlier pool; labels by an `id_column` hold in both pools.
        `feasible` is as in `set_space`.

        Raises:
            ArgumentError: the optimizer has a space, or the pool is invalid (see the constructor); nothing changes.
        """
        has_kernel = self._core.designer.options.surrogate.has_kernel
        self._core.set_candidates(other_pool(self.pool, pool, has_kernel=has_kernel), {}, feasible)

    @locked
    def set_space(self, space: Any, past: Params | None = None, *, feasible: types.Feasible | None = None) -> None:
        """Replace the search space; ranges may change, and parameters may be added and removed.

        Past trials are kept in the model if their parameters have the same kind, also with another range, step or list
        of values (permuted, extended or shortened). A value that was removed stays in the model and is not proposed. A
        new parameter had some value in past trials too: state it with `past`. Otherwise the model assumes that it was
        mid-range, or the first choice, as if that were known.

        Args:
            space: the search space of later trials.
            past: values that all earlier trials had for new parameters, by name.
            feasible: another constraint on parameters; by default the former one holds, with an empty list none does.

        Raises:
            ArgumentError, ArgumentTypeError: the optimizer has a pool, the space is invalid (see the constructor), has
                other parameters than the surrogate's kernel, if that was given, or lacks one that is in a rule; or
                `past` has other parameters than new ones, or other values. Nothing changes.
        """
        self._core.set_candidates(*other_space(self.space, space, past), feasible)

    @locked
    def set_constraints(self, constraints: types.Constraints) -> None:
        """Replace the outcome constraints: limits may change, constraints may be added and removed.

        Trials keep their measured values. Those of a quantity that becomes a constraint are taken from attributes of
        complete trials, if it has been told as one. All is then learnt again.

        Args:
            constraints: all constraints from now on, as in the constructor; an empty list for none.

        Raises:
            ArgumentError, ArgumentTypeError: see the constructor; nothing changes.

        Example:
            >>> import bkbopt as bo
            >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, constraints=["viscosity <= 30"], seed=0)
            >>> trial = opt.tell({"x": 0.5}, 1.0, constraints={"viscosity": 28.0}, user_attrs={"purity": 0.85})
            >>> opt.set_constraints(["viscosity <= 25", "purity >= 0.8"])
            >>> opt.trials[0].constraints, opt.trials[0].is_feasible
            ({'viscosity': 28.0, 'purity': 0.85}, False)
        """
        self._core.set_constraints(constraints)
