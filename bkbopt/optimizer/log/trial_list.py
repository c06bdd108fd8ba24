"""The trials of a log as users get them: copied one by one, when they are read."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from bkbopt.optimizer.log.trials import Entry, Trial, detached

__all__ = ["TrialList"]


class TrialList(Sequence[Trial]):
    """The trials of a log at one moment, by id; read like a list, which it equals if that has the same trials.

    A trial is copied when it is first read, since programs change `trial.params`: a change stays in this list and does
    not reach the log. Slices, sums and pickles are lists.

    Args:
        entries: of the log.

    Example:
        >>> import bkbopt as bo
        >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
        >>> trial = opt.ask()
        >>> opt.trials[-1] == trial, opt.trials == [trial]
        (True, True)
    """

    __hash__ = None  # type: ignore[assignment]  # like a list

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = tuple(entries)
        self._own: dict[int, Trial] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Trial]:
        return map(self._copy, range(len(self)))

    @overload
    def __getitem__(self, i: int, /) -> Trial: ...

    @overload
    def __getitem__(self, i: slice, /) -> list[Trial]: ...

    def __getitem__(self, i: int | slice, /) -> Trial | list[Trial]:
        found = range(len(self))[i]
        return self._copy(found) if isinstance(found, int) else list(map(self._copy, found))

    def _copy(self, number: int) -> Trial:
        """The trial of an entry, the same one each time, also where two threads read it."""
        own = self._own.get(number)
        return own or self._own.setdefault(number, detached(self._entries[number].trial))

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, list | TrialList) else NotImplemented

    def __add__(self, other: Any) -> list[Trial]:
        return [*self, *other] if isinstance(other, list | TrialList) else NotImplemented

    def __radd__(self, other: Any) -> list[Trial]:
        return [*other, *self] if isinstance(other, list) else NotImplemented

    def __repr__(self) -> str:
        return repr(list(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)
