"""A registry of the cases of faulty disks, and their shared code; see `disks`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bkbopt as bo
from bkbopt.errors import BkbError
from tests.faults.power_loss import digest
from tests.faults.processes import in_child
from tests.faults.rows import FAILED

__all__ = [
    "AS_IT_SHOULD",
    "CASES",
    "LEFT_OUT",
    "MANY",
    "NOBODY",
    "THEN_FINE",
    "Case",
    "case",
    "goes_on",
    "made",
    "many",
    "refused",
    "unprivileged",
]

SPACE = {"x": (0.0, 1.0)}
MANY = 2000
NOBODY = 65534
THEN_FINE, AS_IT_SHOULD, LEFT_OUT = "refused, then fine", "as it should be", "left out"

Case = Callable[[Path], str]
CASES: dict[str, Case] = {}


def case(name: str) -> Callable[[Case], Case]:
    """Enter a function, from a folder to an outcome, into `CASES`; it runs in a process of its own."""

    def entered(function: Case) -> Case:
        CASES[name] = function
        return function

    return entered


def made(path: Path, n: int = 3) -> bo.Optimizer:
    """An optimizer with a log of so many trials."""
    opt = bo.Optimizer(SPACE, seed=0, n_startup_trials=10**6, storage=path)
    for i in range(n):
        opt.tell(opt.ask(), float(i))
    return opt


def many(opt: bo.Optimizer) -> list[bo.Trial] | bo.Trial:
    return opt.tell([{"x": i / MANY} for i in range(MANY)], [1.0] * MANY)


def _state(opt: bo.Optimizer) -> tuple[list[bo.Trial], str | None]:
    """What memory and, where it can be read, the file hold."""
    path = Path(opt.storage or "")
    return list(opt._core.log), digest(path) if os.access(path, os.R_OK) else None


def refused(opt: bo.Optimizer, call: Callable[[], Any], words: str = "") -> str | None:
    """Errors in the response to a call; None where it raises an error with these words, and nothing changed."""
    before = _state(opt)
    try:
        call()
    except (BkbError, OSError) as error:
        if words not in str(error):
            return f"{FAILED}: said {error}"
    else:
        return f"{FAILED}: nothing was refused"
    return None if _state(opt) == before else f"{FAILED}: something changed"


def goes_on(opt: bo.Optimizer, call: Callable[[], Any]) -> str:
    """Whether a call works, and the file equals the optimizer's log."""
    call()
    opt.tell(opt.ask(), 0.5)
    same = bo.Optimizer.load(opt.storage or "").trials == opt.trials
    return THEN_FINE if same else f"{FAILED}: the file has other trials"


def unprivileged(work: Callable[[], str]) -> str:
    """`work`, done as a user with restricted permissions."""

    def done() -> str:
        if os.getuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return work()

    return str(in_child(done))
