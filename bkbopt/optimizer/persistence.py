"""An optimizer to and from a state file."""

import os
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bkbopt import confidence
from bkbopt._support import files as storage
from bkbopt.errors import ArgumentError, reading_state
from bkbopt.learners.surrogate import LearnerSurrogate
from bkbopt.search.box_candidates import BoxDomain
from bkbopt.search.candidates import Params
from bkbopt.search.fitted_model import restored_kernel
from bkbopt.search.pool_candidates import Pool
from bkbopt.search.reports import Diagnostics
from bkbopt.search.trials import TrialLog
from bkbopt.spaces.space import Space
from bkbopt.surrogates import BKB, ExactGP, FourierGP, Surrogate

if TYPE_CHECKING:
    from bkbopt.optimizer import Optimizer

__all__ = ["load", "save"]

KIND = "optimizer"
SURROGATES: dict[str, Any] = {c.__name__: c for c in (BKB, ExactGP, FourierGP, LearnerSurrogate)}
SCHEDULES: dict[str, Any] = {
    c.__name__: c
    for c in (confidence.Constant, confidence.Practical, confidence.Theorem2, confidence.Srinivas, confidence.Chowdhury)
}


def save(optimizer: "Optimizer", path: str | os.PathLike[str]) -> None:
    """See `Optimizer.save`."""
    surrogate = optimizer._modelling.surrogate
    if type(surrogate).__name__ not in SURROGATES:
        raise ArgumentError(f"surrogate: {type(surrogate).__name__} is not one that state files know.")
    options = {
        "direction": optimizer.direction,
        "n_startup_trials": optimizer.n_startup_trials,
        "acquisition": optimizer.acquisition,
        "duplicates": optimizer.duplicates,
        "fit": optimizer._modelling.fit,
        "leaps": optimizer.leaps,
    }
    state = {
        "options": options,
        "beta": _schedule_state(optimizer.confidence),
        "surrogate": {"class": type(surrogate).__name__, "options": surrogate.options()},
        "domain": optimizer.domain.state_dict(),
        "given": _given_params(optimizer),
        "sobol_seed": optimizer._sobol_seed,
        "log": optimizer._log.state_dict(),
        "rng": optimizer._rng.bit_generator.state,
        "modelling": optimizer._modelling.state_dict(),
        "diagnostics": [asdict(d) for d in optimizer.diagnostics],
    }
    storage.save(path, state, kind=KIND)


def load(
    cls: "type[Optimizer]",
    path: str | os.PathLike[str],
    pool: Any,
    surrogate: Surrogate | None,
    feasible: Callable[[Params], bool] | None,
) -> "Optimizer":
    """See `Optimizer.load`."""
    state: Any = storage.load(path, kind=KIND)
    with reading_state("an optimizer", path):
        return _rebuilt(cls, state, pool, surrogate, feasible)


def _rebuilt(
    cls: "type[Optimizer]",
    s: Any,
    pool: Any,
    surrogate: Surrogate | None,
    feasible: Callable[[Params], bool] | None,
) -> "Optimizer":
    surrogate = _surrogate(s["surrogate"], s["modelling"], surrogate)
    domain = s["domain"]
    where: Any = Space.from_dict(domain["space"]) if "space" in domain else _pool(domain, pool)
    optimizer = cls(where, seed=0, surrogate=surrogate, beta=_schedule(s["beta"]), feasible=feasible, **s["options"])
    optimizer._sobol_seed = s["sobol_seed"]
    if isinstance(optimizer.domain, BoxDomain):
        optimizer.domain = BoxDomain(optimizer.domain.space, feasible, s["sobol_seed"])
    optimizer.domain.load_state_dict(domain)
    X = s["log"]["X"]
    rows = [None if i is None else {"index": i} for i in s["log"]["index"]]
    params = [s["given"].get(str(i)) or optimizer.domain.describe(x, rows[i])[0] for i, x in enumerate(X)]
    optimizer._log = TrialLog.from_state(s["log"], params)
    for trial, x in zip(optimizer._log, X, strict=True):
        if optimizer.domain.is_discrete and (optimizer.duplicates == "avoid" or trial.state == "FAIL"):
            optimizer.domain.block(x)
    optimizer._modelling.load_state_dict(s["modelling"])
    optimizer._rng.bit_generator.state = s["rng"]
    optimizer.diagnostics = [Diagnostics(**d) for d in s["diagnostics"]]
    return optimizer


def _surrogate(own: dict[str, Any], modelling: dict[str, Any], given: Surrogate | None) -> Surrogate:
    """The surrogate without data, as it was when the optimizer was made."""
    if given is not None:
        if type(given).__name__ != own["class"]:
            raise ArgumentError(
                f"surrogate: expected a {own['class']}, which this state was saved with, got {type(given).__name__}."
            )
        return given
    if own["options"].pop("needs_kernel"):
        raise ArgumentError(
            "surrogate: this state was saved with a kernel of yours; pass surrogate= with the same kernel to load."
        )
    kernel = None if modelling["start"] is None else restored_kernel(modelling["start"], None)
    return SURROGATES[own["class"]](**{**own["options"], "kernel": kernel, "noise": modelling["user_noise"]})


def _given_params(optimizer: "Optimizer") -> dict[str, object]:
    """Parameters that the user told with more digits than the encoded point gives back, by trial."""
    if not isinstance(optimizer.domain, BoxDomain):
        return {}
    space, log = optimizer.domain.space, optimizer._log
    decoded = space.decode(log.state_dict()["X"][:, : space.dim])  # type: ignore[index]
    return {str(t.id): dict(t.params) for t, params in zip(log, decoded, strict=True) if t.params != params}


def _schedule_state(schedule: object) -> dict[str, object]:
    name = type(schedule).__name__
    if isinstance(schedule, confidence.Batch):
        return {"class": "Batch", "inner": _schedule_state(schedule.inner), "leverage_budget": schedule.leverage_budget}
    if name not in SCHEDULES:
        raise ArgumentError(f"beta: a schedule of type {name} cannot be saved; use one of bkbopt.confidence.")
    return {"class": name, "options": asdict(schedule)}  # type: ignore[call-overload]


def _schedule(state: dict[str, Any]) -> Any:
    if state["class"] == "Batch":
        return confidence.Batch(_schedule(state["inner"]), state["leverage_budget"])
    return SCHEDULES[state["class"]](**state["options"])


def _pool(state: dict[str, Any], given: Any) -> Pool:
    if given is not None:
        return given if isinstance(given, Pool) else Pool(given)
    if state["raw"] is None:
        raise ArgumentError("pool: this state was saved with a pool of objects or a data frame; pass pool= to load.")
    return Pool(state["raw"])
