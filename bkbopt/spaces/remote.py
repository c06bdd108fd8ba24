"""Parts of a pool on the workers of a Dask cluster: rows are read and searched on the workers.

Each part is a Dask actor, an object on one worker. It also holds the data that a search stores for the rows. If the
worker dies, the next call reads the part again on another worker. The data of the search are lost then, which
`LostPartError` reports to the search.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bkbopt.errors import ArgumentError
from bkbopt.spaces.columns import Columns
from bkbopt.spaces.stored_rows import EncodedRows, Floats, Ints, StoredPart, StoredRows

__all__ = ["Beside", "LostPartError", "RemotePart"]

T = TypeVar("T")

#: Seconds to wait for the result of a call before checking whether the worker is still there.
PATIENCE = 2.0


class LostPartError(RuntimeError):
    """The data that a search stored with the rows of a part are lost."""


class Beside:
    """Rows on a worker, with the data that a search stores for them.

    Args:
        read: reads the part.
        args: its arguments.
    """

    def __init__(self, read: Callable[..., StoredPart | None], *args: Any) -> None:
        self.part = read(*args)
        self.kept: dict[str, Any] = {}

    def apply(self, function: Callable[..., Any], *args: Any) -> Any:
        """The result of `function(self, *args)`."""
        return function(self, *args)

    @property
    def rows(self) -> StoredPart:
        """The part; one without rows is refused."""
        if self.part is None:
            raise ArgumentError("pool: expected rows in each part, got an empty one.")
        return self.part

    def encoded(self, columns: Columns, codes: Mapping[int, Floats]) -> EncodedRows:
        """The encoded rows."""
        return EncodedRows(StoredRows((self.rows,), (codes,)), columns)


class RemotePart:
    """A `StoredPart` on a worker.

    Args:
        client: of the cluster.
        source: identifies the data; a part with the same source is not read again.
        read: reads the part, on a worker.
        args: its arguments; Dask's delayed values are computed on the worker.
    """

    def __init__(self, client: Any, source: Hashable, read: Callable[..., StoredPart | None], *args: Any) -> None:
        self.source = source
        self._client, self._read, self._args = client, read, args
        self._actor: Any = None
        self.n_rows, facts = self.apply(_facts)
        if facts is not None:
            self.names, self.kinds, self.choices, has_labels = facts
            self.labels = RemoteLabels(self) if has_labels else None

    def __len__(self) -> int:
        return self.n_rows

    def apply(self, function: Callable[..., T], *args: Any) -> T:
        """The result of `function(beside, *args)` on the worker; a part whose worker has died is read again first."""
        while True:
            if self._actor is None:
                self._actor = self._made()
            answer: tuple[T] | None = self._asked(function, *args)
            if answer is not None:
                return answer[0]
            self._actor = None

    def _made(self) -> Any:
        args = [self._client.compute(arg) if hasattr(arg, "__dask_graph__") else arg for arg in self._args]
        return self._client.submit(Beside, self._read, *args, actor=True, pure=False).result()

    def _asked(self, function: Callable[..., T], *args: Any) -> tuple[T] | None:
        """The result of a call, in a tuple; None if its worker has died."""
        from distributed import TimeoutError as NotYet

        try:
            call = self._actor.apply
        except RuntimeError:  # raised if the client knows already that the worker is gone
            return None
        future = call(function, *args)
        while True:
            try:
                return (future.result(timeout=PATIENCE),)
            except NotYet:
                if self._is_there():
                    continue
            except OSError:
                # Of the function, as for a file that cannot be read, or of a worker that the scheduler takes for alive.
                if function is not _present and self._asked(_present) is not None:
                    raise
            return None

    def _is_there(self) -> bool:
        return self._actor._address in self._client.scheduler_info(n_workers=-1)["workers"]

    @cached_property
    def limits(self) -> tuple[Floats, Floats]:
        """See `StoredPart`."""
        return self.apply(_limits)

    def read(self, rows: slice | Ints) -> Floats:
        """See `StoredPart`."""
        return self.apply(_read, rows)

    def hashes(self, columns: Columns, codes: Mapping[int, Floats]) -> NDArray[np.uint32]:
        """See `StoredPart`."""
        return self.apply(_hashes, columns, codes)


class RemoteLabels:
    """The labels of the rows of a part on a worker; see `Labels`."""

    def __init__(self, part: RemotePart) -> None:
        self._part = part

    def __getitem__(self, row: int) -> Hashable:
        return self._part.apply(_label, row)

    def rows_of(self, names: Sequence[Hashable]) -> list[tuple[Hashable, int]]:
        """See `Labels`."""
        return self._part.apply(_rows_named, list(names))


# -- functions that run on workers -------------------------------------------------------------------------------------


def _present(here: Beside) -> bool:
    return here is not None


def _facts(here: Beside) -> tuple[int, tuple[Any, ...] | None]:
    """The number of rows, and of these names, kinds and choices of the columns, and whether they have labels."""
    part = here.part
    if part is None:
        return 0, None
    return len(part), (part.names, part.kinds, dict(part.choices), part.labels is not None)


def _limits(here: Beside) -> tuple[Floats, Floats]:
    return here.rows.limits


def _read(here: Beside, rows: slice | Ints) -> Floats:
    return here.rows.read(rows)


def _hashes(here: Beside, columns: Columns, codes: Mapping[int, Floats]) -> NDArray[np.uint32]:
    return here.rows.hashes(columns, codes)


def _label(here: Beside, row: int) -> Hashable:
    labels = here.rows.labels
    assert labels is not None
    return labels[row]


def _rows_named(here: Beside, names: Sequence[Hashable]) -> list[tuple[Hashable, int]]:
    labels = here.rows.labels
    assert labels is not None
    return labels.rows_of(names)
