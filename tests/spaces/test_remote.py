"""A part on a worker whose death is noticed late, with a stand-in for the cluster's client."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bkbopt.spaces.remote import Beside, RemotePart

ROWS = np.arange(12.0).reshape(6, 2)


class Answer:
    """The future of a call."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call

    def result(self, timeout: float | None = None) -> Any:
        return self._call()


class Actor:
    """What a client has of an object on a worker, which may be dead although the scheduler takes it for alive."""

    _address = "tcp://worker"

    def __init__(self, *args: Any) -> None:
        self.is_dead, self._here = False, Beside(*args)

    def apply(self, function: Callable[..., Any], *args: Any) -> Answer:
        def call() -> Any:
            if self.is_dead:
                raise OSError("Unable to contact Actor's worker")
            return function(self._here, *args)

        return Answer(call)


class Client:
    """A client that makes actors here."""

    def __init__(self) -> None:
        self.actors: list[Actor] = []

    def submit(self, make: Any, *args: Any, **_: Any) -> Answer:
        self.actors.append(Actor(*args))
        return Answer(lambda: self.actors[-1])

    def scheduler_info(self, **_: Any) -> dict[str, Any]:
        return {"workers": {"tcp://worker": {}}}


class Part(SimpleNamespace):
    """Rows in memory, or in a file that cannot be read."""

    def __init__(self, *, is_readable: bool = True) -> None:
        super().__init__(names=("a", "b"), kinds=("float", "float"), choices={}, labels=None, is_readable=is_readable)

    def __len__(self) -> int:
        return len(ROWS)

    def read(self, rows: Any) -> Any:
        if not self.is_readable:
            raise PermissionError("a file")
        return ROWS[rows]


def test_a_part_of_a_dead_worker_that_the_scheduler_takes_for_alive_is_read_again() -> None:
    client = Client()
    part = RemotePart(client, "here", cast(Any, Part))
    client.actors[0].is_dead = True
    np.testing.assert_array_equal(part.read(np.array([2, 4])), ROWS[[2, 4]])
    assert len(client.actors) == 2


def test_an_error_of_a_file_on_a_worker_is_raised() -> None:
    client = Client()
    part = RemotePart(client, "here", cast(Any, lambda: Part(is_readable=False)))
    with pytest.raises(PermissionError, match="a file"):
        part.read(np.array([2, 4]))
    assert len(client.actors) == 1
