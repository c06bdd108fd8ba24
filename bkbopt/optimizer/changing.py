"""What may change in a run: the search space or the pool, and the outcome constraints."""

import logging
from collections.abc import Iterator
from typing import Any

from bkbopt.optimizer.arguments import option_types as types
from bkbopt.optimizer.arguments.problems import other_pool, other_space
from bkbopt.optimizer.designers.locking import locked
from bkbopt.optimizer.readings.given import Given
from bkbopt.spaces.base import Params
from bkbopt.spaces.space import Space

__all__ = ["Changing"]

logger = logging.getLogger(__name__)


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
        mid-range, or the first choice, as if that were known, and so of later trials where a parameter was removed: one
        that is held from now on at a value stays, as {"x": value}. A warning names such parameters.

        Args:
            space: the search space of later trials.
            past: values that all earlier trials had for new parameters, by name.
            feasible: another constraint on parameters; by default the former one holds, with an empty list none does.

        Raises:
            ArgumentError, ArgumentTypeError: the optimizer has a pool, the space is invalid (see the constructor), has
                other parameters than the surrogate's kernel, if that was given, or lacks one that is in a rule; or
                `past` has other parameters than new ones, or other values. Nothing changes.
        """
        old, (new, values) = self.space, other_space(self.space, space, past)
        self._core.set_candidates(new, values, feasible)
        if old is not None and self._core.log.n_complete:
            _note_assumed(old, new, values)

    @locked
    def set_constraints(self, constraints: types.Constraints) -> None:
        """Replace the outcome constraints: limits may change, constraints may be added and removed.

        Trials keep their measured values. Those of a quantity that becomes a constraint are taken from attributes that
        complete trials have at that time, and are told as a constraint's from then on. All is then learnt again.

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


def _note_assumed(old: Space, new: Space, past: Params) -> None:
    """Warn of parameters whose values in earlier or later trials are assumed."""
    added = [name for name in _only(new, old) if name not in past]
    if added:
        logger.warning(
            "set_space: earlier trials are taken to have had the middle of the range, or the first choice, of %s. If "
            "they had another value, set the space again with it: past={%r: value}.",
            added,
            added[0],
        )
    if removed := list(_only(old, new)):
        logger.warning(
            "set_space: later trials are taken to have the middle of the former range, or the first choice, of %s. If "
            "they have another value, keep the parameter at it: set_space({%r: value, ...}).",
            removed,
            removed[0],
        )


def _only(one: Space, other: Space) -> Iterator[str]:
    """The parameters of one space, without the fixed and the conditional ones, that another does not have."""
    return (name for name, p in one.items if name not in other.parameters and p.n_values != 1 and not p.when)
