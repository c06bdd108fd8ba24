"""A cache of the last results of a computation."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["Latest"]

T = TypeVar("T")


class Latest(Generic[T]):
    """The results of a computation by what they follow from; of more than `most` the oldest is dropped.

    Example:
        >>> from bkbopt._support.latest import Latest
        >>> latest = Latest(most=2)
        >>> [latest.of(key, lambda: print("computed") or key) for key in (1, 1)]
        computed
        [1, 1]
    """

    def __init__(self, most: int = 1) -> None:
        self._most = most
        self._kept: dict[Hashable, T] = {}

    def of(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The result for a key; it is computed when the key is new."""
        if key not in self._kept:
            result = compute()
            if len(self._kept) >= self._most:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = result
        return self._kept[key]
