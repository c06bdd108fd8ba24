"""An optimizer to and from a file: the arguments it was made with, its spaces or pool, and its log.

Models, generators and counters are not in it: they follow from the log.
"""

import operator
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from bkbopt import confidence
from bkbopt._support import files
from bkbopt.errors import ArgumentError, BkbError, reading_state
from bkbopt.learners.gram import kernel_from_state, kernel_to_state
from bkbopt.learners.surrogate import LearnerSurrogate
from bkbopt.optimizer.logged_designer import LoggedDesigner
from bkbopt.optimizer.trials import FAIL, RUNNING, WAITING, Outcome
from bkbopt.search.acquisition import Acquisition
from bkbopt.search.reports import Diagnostics
from bkbopt.spaces.pool import EncodedPool, Pool
from bkbopt.spaces.space import Space
from bkbopt.spaces.tables import Columns
from bkbopt.surrogates import BKB, ExactGP, FourierGP, Surrogate

__all__ = ["Saved", "fill", "read", "save"]

KIND = "log of an optimizer"
SURROGATES: dict[str, Any] = {c.__name__: c for c in (BKB, ExactGP, FourierGP, LearnerSurrogate)}
SCHEDULES: dict[str, Any] = {
    c.__name__: c
    for c in (confidence.Constant, confidence.Practical, confidence.Theorem2, confidence.Srinivas, confidence.Chowdhury)
}


@dataclass(frozen=True)
class Saved:
    """What a file holds, as arguments of `Optimizer` and the rest.

    Attributes:
        where: the space or pool.
        arguments: the others.
        spaces: all that trials were proposed from.
        pool: with the encoding that it had; None in a space.
        state: as it was read.
    """

    where: Space | Pool
    arguments: dict[str, Any]
    spaces: list[Space]
    pool: EncodedPool | None
    state: Any


def save(path: str | os.PathLike[str], arguments: Mapping[str, Any], core: LoggedDesigner) -> None:
    """Write the plain arguments of an optimizer, and its log; see `Optimizer.save`."""
    log, problem, options = core.log, core.designer.problem, core.designer.options
    known = {id(space): space for space in (problem.space, *(e.space for e in log.entries)) if space is not None}
    places = {key: i for i, key in enumerate(known)}
    state = {
        "arguments": dict(arguments),
        "entropy": core.designer.seed,
        "beta": _schedule_state(options.confidence),
        "surrogate": _surrogate_state(options.models.surrogate),
        "spaces": [space.to_dict() for space in known.values()],
        "pool": None if problem.pool is None else _pool_state(problem.pool),
        "trials": [_trial_state(entry, places) for entry in log.entries],
        "order": list(log.order),
        "waiting": list(log.waiting),
        "diagnostics": [asdict(d) for d in core.diagnostics],
    }
    files.save(path, state, kind=KIND)


def read(
    path: str | os.PathLike[str], pool: Any, surrogate: Surrogate | None, acquisition: Acquisition | None
) -> Saved:
    """Read what `save` wrote; see `Optimizer.load`."""
    state: Any = files.load(path, kind=KIND)
    with reading_state("an optimizer", path):
        arguments = dict(state["arguments"])
        if arguments["acquisition"] is None:
            if acquisition is None:
                raise ArgumentError("acquisition: this state was saved with one of yours; pass acquisition= to load.")
            arguments["acquisition"] = acquisition
        arguments["surrogate"] = _surrogate(state["surrogate"], surrogate)
        arguments["beta"] = _schedule(state["beta"])
        spaces = [_space(description) for description in state["spaces"]]
        encoded = None if state["pool"] is None else _pool(state["pool"], pool, arguments["fit"])
        return Saved(spaces[0] if encoded is None else encoded.pool, arguments, spaces, encoded, state)


def fill(core: LoggedDesigner, saved: Saved, path: str | os.PathLike[str]) -> None:
    """Take entropy, pool and log from what was read."""
    with reading_state("an optimizer", path):
        state = saved.state
        core.designer.seed = operator.index(state["entropy"])
        if saved.pool is not None:
            core.replace(replace(core.designer.problem, pool=saved.pool))
        for t in state["trials"]:
            space = None if t["space"] is None else (core.designer.problem.space, *saved.spaces[1:])[t["space"]]
            point = t["point"]
            params = core.vocabulary.params(point, None) if space is None else space.external([point])[0]
            start = WAITING if t["state"] == WAITING else RUNNING
            core.log.add(params, point, space, t["index"], t["asked_at"], start)
        unfinished = [i for i, t in enumerate(state["trials"]) if t["state"] in (RUNNING, WAITING)]
        places = sorted([*state["order"], *unfinished])
        if places != list(range(len(state["trials"]))) or sorted(core.log.waiting) != sorted(state["waiting"]):
            raise ValueError("trials without a place in their order")
        core.log.waiting[:] = state["waiting"]
        for number in state["order"]:
            t = state["trials"][number]
            outcome = Outcome() if t["state"] == FAIL else Outcome(t["values"], t["constraints"], t["stds"])
            core.log.finish(number, outcome, t["told_at"])
        core.diagnostics[:] = [Diagnostics(**d) for d in state["diagnostics"]]


def _space(description: Any) -> Space:
    try:
        return Space.from_dict(description)
    except BkbError as error:
        raise ValueError("no description of a space") from error


def _trial_state(entry: Any, places: Mapping[int, int]) -> dict[str, object]:
    t = entry.trial
    return {
        "point": dict(entry.point),
        "space": None if entry.space is None else places[id(entry.space)],
        "index": t.index,
        "state": t.state,
        "values": t.values,
        "constraints": dict(t.constraints),
        "stds": t.stds,
        "asked_at": t.asked_at,
        "told_at": t.told_at,
    }


def _surrogate_state(surrogate: Surrogate) -> dict[str, object]:
    name = type(surrogate).__name__
    if name not in SURROGATES:
        raise ArgumentError(f"surrogate: {name} is not one that state files know.")
    kernel = surrogate.kernel if surrogate.has_kernel else None
    return {"class": name, "options": surrogate.options(), "kernel": kernel_to_state(kernel)}


def _surrogate(own: dict[str, Any], given: Surrogate | None) -> Surrogate:
    """The surrogate without data, as it was when the optimizer was made."""
    if given is not None:
        if type(given).__name__ != own["class"]:
            raise ArgumentError(
                f"surrogate: expected a {own['class']}, which this state was saved with, got {type(given).__name__}."
            )
        return given
    options = dict(own["options"])
    if options.pop("needs_kernel"):
        raise ArgumentError(
            "surrogate: this state was saved with a kernel of yours; pass surrogate= with the same kernel to load."
        )
    surrogate: Surrogate = SURROGATES[own["class"]](kernel_from_state(own["kernel"], None), **options)
    return surrogate


def _schedule_state(schedule: object) -> dict[str, object]:
    name = type(schedule).__name__
    if isinstance(schedule, confidence.Batch):
        return {"class": name, "inner": _schedule_state(schedule.inner), "leverage_budget": schedule.leverage_budget}
    if name not in SCHEDULES:
        raise ArgumentError(f"beta: a schedule of type {name} cannot be saved; use one of bkbopt.confidence.")
    return {"class": name, "options": asdict(schedule)}  # type: ignore[call-overload]


def _schedule(state: dict[str, Any]) -> Any:
    if state["class"] == "Batch":
        return confidence.Batch(_schedule(state["inner"]), state["leverage_budget"])
    return SCHEDULES[state["class"]](**state["options"])


def _pool_state(pool: EncodedPool) -> dict[str, object]:
    """The raw rows of an array; data frames and objects have to be given again."""
    if pool.columns is None:
        return {"columns": None, "table": pool.table, "n_objects": len(pool.objects or ())}
    columns = pool.columns
    choices = [[j, list(values)] for j, values in columns.choices.items()]
    is_frame = hasattr(pool.pool.arms, "iloc")
    return {
        "columns": {**vars(columns), "choices": choices},
        "table": None if is_frame else pool.table,
        "id_column": pool.pool.id_column,
    }


def _pool(state: dict[str, Any], given: Any, scale: bool) -> EncodedPool:
    """The pool as it was; raises where it is not the one that was saved."""
    if state["columns"] is None:
        objects = list(given.arms if isinstance(given, Pool) else given or ())
        if len(objects) != state["n_objects"]:
            raise ArgumentError(
                f"pool: expected the {state['n_objects']} different objects that were saved (all that were ever in "
                f"the pool, in order of appearance), got {len(objects)}; pass pool= to load."
            )
        every = EncodedPool(Pool(objects), scale=scale, has_kernel=True)
        return every.replaced(Pool([objects[int(number)] for number in state["table"][:, 0].tolist()]))
    columns = state["columns"]
    if given is None and state["table"] is None:
        raise ArgumentError("pool: this state was saved with a data frame; pass pool= to load.")
    pool = given if isinstance(given, Pool) else Pool(state["table"] if given is None else given)
    if pool.id_column is None and state["id_column"] is not None:
        pool = Pool(pool.arms, id_column=state["id_column"])
    known = Columns(**{**columns, "choices": {j: tuple(values) for j, values in columns["choices"]}})
    encoded = EncodedPool(pool, scale=scale, has_kernel=True)
    if encoded.names != known.names:
        raise ArgumentError(f"pool: expected the columns {known.names} that were saved, got {encoded.names}.")
    return encoded.with_columns(known)
