"""A space or pool that is being set, until the log has it."""

from dataclasses import dataclass
from typing import Any

from bkbopt.optimizer.arguments.known_constraint import KnownConstraint, stored
from bkbopt.optimizer.arguments.searching import check_columns
from bkbopt.optimizer.log.log_file import LogFile, Writer
from bkbopt.optimizer.translation.description import describe
from bkbopt.optimizer.translation.log_spaces import LogSpaces, PastValues
from bkbopt.spaces.arms import Arms
from bkbopt.spaces.base import Params
from bkbopt.spaces.space import Space
from bkbopt.surrogates import Surrogate

__all__ = ["Coming"]


@dataclass(frozen=True, eq=False)
class Coming:
    """A space or pool that is being set, with its constraint; an interrupted call is completed with it.

    Attributes:
        candidates: the space or pool as it was given.
        pair: what is added to `LogSpaces`; None if the last one stays.
        feasible: the constraint.
        before: the number of spaces in memory, and the file's state, before.
        is_done: whether the file's transaction has ended.
    """

    candidates: Space | Arms
    pair: tuple[Space | Arms, PastValues | None] | None
    feasible: KnownConstraint | None
    before: tuple[int, Any]
    is_done: bool = False

    @classmethod
    def after(
        cls,
        spaces: LogSpaces,
        file: LogFile | None,
        surrogate: Surrogate,
        candidates: Space | Arms,
        past: Params,
        feasible: KnownConstraint | None,
    ) -> "Coming":
        """What is to be set after all spaces of a log; raises the errors of `LogSpaces.next` and `check_columns`."""
        check_columns(surrogate, spaces[-1], spaces.next(candidates, {})[0])
        pair = None if spaces.is_last(candidates, past) else spaces.next(candidates, past)
        return cls(candidates, pair, feasible, (len(spaces), None if file is None else _state_of(file)))

    def write(self, writer: Writer, *, has_constraint: bool) -> None:
        """Write what the file does not have; the constraint only if it is given: it may be this process's alone."""
        if self.pair is not None:
            values = self.pair[1]
            described = describe(self.candidates).with_past({} if values is None else values.params)
            if described != writer.file.spaces[-1].with_past(described.past):
                writer.add_space(described)
        if has_constraint and stored(self.feasible) != writer.file.options["feasible"]:
            writer.set_option("feasible", stored(self.feasible))

    def add_to(self, spaces: LogSpaces) -> None:
        """Add the space or pool, unless it was added before an interrupt."""
        if self.pair is not None and len(spaces) == self.before[0]:
            spaces.add(self.pair)

    def is_in(self, file: LogFile) -> bool:
        """Whether the file has it; after an interrupt its state tells."""
        return self.is_done or _state_of(file) != self.before[1]


def _state_of(file: LogFile) -> Any:
    """What differs after another space, pool or constraint."""
    return len(file.spaces), file.options["feasible"]
