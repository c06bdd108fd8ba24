"""An objective with its space, one that fails, and an executor that evaluates when told to."""

from concurrent.futures import Future
from typing import Any

__all__ = ["OPTIONS", "SPACE", "BoomError", "ManualExecutor", "bowl", "fragile"]

SPACE = {"x": (0.0, 1.0), "k": ["a", "b"]}
OPTIONS: dict[str, Any] = {"seed": 0, "n_startup_trials": 4}


def bowl(params: dict[str, Any]) -> float:
    return (params["x"] - 0.3) ** 2 + (params["k"] == "b")


class BoomError(Exception):
    pass


def fragile(params: dict[str, Any]) -> float:
    if params["x"] > 0.6:
        raise BoomError("too hot")
    return bowl(params)


class ManualExecutor:
    """Evaluates when told to, in the order told; the loop runs in another thread."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Future[float], dict[str, Any]]] = []

    def submit(self, f: Any, params: dict[str, Any]) -> "Future[float]":
        future: Future[float] = Future()
        self.jobs.append((future, params))
        return future
