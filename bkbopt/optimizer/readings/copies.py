"""Copies of an optimizer: in a file, and of one of its objectives; there are no other ones."""

import logging
import os
from typing import Any, NoReturn, Self

from bkbopt._support import fork_locks
from bkbopt.errors import ArgumentError, ArgumentTypeError, StorageError
from bkbopt.optimizer.arguments.naming import as_objective
from bkbopt.optimizer.designers import saving
from bkbopt.optimizer.designers.locking import locked
from bkbopt.optimizer.designers.single_objective import with_one_objective, with_quantity
from bkbopt.optimizer.readings.given import Given

__all__ = ["Copies"]

logger = logging.getLogger(__name__)


class Copies(Given):
    """Copies of an optimizer with its log."""

    def __getstate__(self) -> NoReturn:
        """Refuse copies and pickles: two copies would give the same trial numbers to different trials."""
        raise ArgumentTypeError(
            "optimizer: it cannot be copied or pickled; in another process open its storage with Optimizer.open(path), "
            "or make a second optimizer with save and Optimizer.load."
        )

    @locked
    def single_objective(self, objective: int | str) -> Self:
        """A copy in memory with one of the objectives, for `bkbopt.plots` and all that needs a single one.

        Its trials have the values of this objective alone; constraints and failures are kept. Its model is fitted anew,
        to this objective alone. The copy does not follow this optimizer: ask and tell here.

        It may also be a constraint, or an attribute with numbers, as the seconds that a trial took, of trials that have
        it: then the copy has no constraints. It is minimised, or maximised if it has a lower limit only.

        Args:
            objective: number or name of the objective, or name of another measured quantity.

        Raises:
            ArgumentError: there is no such objective or quantity.

        Example:
            >>> import bkbopt as bo
            >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, directions={"loss": "minimize", "power": "maximize"}, seed=0)
            >>> for x in (0.1, 0.5, 0.9):
            ...     _ = opt.tell({"x": x}, {"loss": x**2, "power": x})
            >>> opt.single_objective("power").best_trial.params["x"]
            0.9
        """
        if isinstance(objective, str) and objective not in self.objectives:
            core = with_quantity(self._core, objective)
            if core is None:
                known = (*self.objectives, *self.constraints)
                raise ArgumentError(
                    f"objective: expected the number of an objective, one of {known}, or an attribute with numbers, "
                    f"got {objective!r}."
                )
        else:
            core = with_one_objective(self._core, as_objective(objective, len(self.directions), self.objectives))
        single = object.__new__(type(self))
        single._acquisition, single._lock = self._acquisition, fork_locks.lock()
        single._core = core
        return single

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the log (options, space and all trials) to a file, atomically.

        The file is a log as `storage` makes one, for `load`, or for `open` to go on in it. Models are not in it: they
        follow from the trials. Not in it either: functions (`feasible`, acquisition), kernels and schedules of beta
        that are not ours, data frames, arrays of more than 64 MiB, and pools of objects; they are given again. The
        parts of a product are in it, as long as they are below 64 MiB. If the file of the log cannot be read, the
        copy has what this optimizer knows, and a warning is logged.

        Raises:
            ArgumentError: the file is that of the log itself, or an argument cannot be stored in a log.
            ArgumentTypeError: `path` is no path, but bytes or a file, for example.
            OSError: the file cannot be written; an existing file is unchanged.
        """
        with self._lock:
            try:
                self._core.refresh()
            except StorageError as error:  # the copy may be all that is left
                logger.warning("save: the copy lacks what other processes have written since the last call: %s", error)
                self._core.mend()
            saving.save(path, self._describe(), self._core)

    def _describe(self) -> dict[str, Any]:
        """The arguments as a log stores them."""
        return saving.describe_options(self._core, self._acquisition)
