"""Optimizers in various states, each with a call to be interrupted."""

import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import bkbopt as bo
from bkbopt.errors import BkbError

__all__ = ["SCENES", "Scene", "told"]


@dataclass(frozen=True)
class Scene:
    """A state and a call.

    Attributes:
        name: of both.
        make: the log at that moment.
        prepare: what is done with an optimizer that was opened, before the call.
        call: what is interrupted.
        stored: whether the log is in a file.
    """

    name: str
    make: Callable[[], bo.Optimizer]
    prepare: Callable[[bo.Optimizer], Any]
    call: Callable[[bo.Optimizer], Any]
    stored: bool = True


BOX = {"x": (0.0, 1.0), "kind": ["a", "b"]}
POOL = np.random.default_rng(0).random((30, 2))


def value(params: Any) -> float:
    """Of any point."""
    return float(sum(np.sin(5.0 * (v if isinstance(v, (int, float)) else len(str(v)))) for v in params.values()))


def told(opt: bo.Optimizer, trial: bo.Trial) -> Any:
    """The trial with values."""
    limits = {name: value(trial.params) - 0.3 for name in opt.constraints}
    return opt.tell(trial, value(trial.params), constraints=limits)


def made(n: int, space: Any = None, running: int = 2, **options: Any) -> Callable[[], bo.Optimizer]:
    """An optimizer with `n` finished trials, the fourth of which has failed, and some running ones."""

    def make() -> bo.Optimizer:
        opt = bo.Optimizer(BOX if space is None else space, **{"seed": 5, "n_startup_trials": 3, **options})
        for trial in opt.ask(n) if n else ():
            opt.fail(trial) if trial.id == 3 else told(opt, trial)
        opt.ask(running)
        return opt

    return make


def nothing(opt: bo.Optimizer) -> None:
    """No preparation: models are fitted in the call."""


def warm(opt: bo.Optimizer) -> None:
    """The models exist before the call."""
    opt._core.followed("predict").trained()


def to_the_mark(opt: bo.Optimizer) -> None:
    """The models exist, and the next ask fits them again."""
    warm(opt)
    for trial in [t for t in opt.trials if t.state == "RUNNING"]:
        told(opt, trial)


def queued(opt: bo.Optimizer) -> None:
    """Points are queued, one of them in part, and the models exist."""
    warm(opt)
    opt.enqueue({"x": 0.25})
    opt.enqueue({"x": 0.5, "kind": "b"})


def others(opt: bo.Optimizer) -> None:
    """Another process has told, asked and moved the space."""
    warm(opt)
    other = bo.Optimizer.open(opt.storage or "")
    told(other, other.trials[-1])
    other.set_space({"x": (0.5, 2.0), "new": ["u", "v"]})
    other.ask()


def refused(opt: bo.Optimizer) -> None:
    """A call that is refused within its transaction."""
    with contextlib.suppress(BkbError):
        opt.tell([opt.trials[-1].id, 0], [1.0, 1.0])


def noted(opt: bo.Optimizer) -> None:
    """Trials have an attribute, which becomes a constraint, and the models exist."""
    for number in range(4):
        opt.set_user_attr(number, "note", 0.5 * number)
    warm(opt)


def past(opt: bo.Optimizer) -> Any:
    """Values of points that were not asked for, and of a running trial."""
    return opt.tell([{"x": 0.1, "kind": "a"}, {"x": 0.9, "kind": "b"}], [1.0, 2.0])


CALLS: dict[str, Callable[[bo.Optimizer], Any]] = {
    "ask": lambda opt: opt.ask(),
    "ask(3)": lambda opt: opt.ask(3),
    "ask(fixed)": lambda opt: opt.ask(fixed={"kind": "b"}),
    "tell": lambda opt: told(opt, opt.trials[-1]),
    "tell, replaced": lambda opt: opt.tell([1, 3], [0.5, 0.25], replace=True),
    "tell past data": past,
    "tell, refused": refused,
    "fail": lambda opt: opt.fail(opt.trials[-1]),
    "enqueue": lambda opt: opt.enqueue({"x": 0.75}),
    "set_space": lambda opt: opt.set_space({"x": (0.2, 3.0), "new": ["u", "v"]}),
    "set_space, rules": lambda opt: opt.set_space({"x": (0.2, 3.0), "new": ["u", "v"]}, feasible="new == 'u' or x > 2"),
    "set_space, none": lambda opt: opt.set_space({"x": (0.2, 3.0), "new": ["u", "v"]}, feasible=[]),
    "set_space, other rules": lambda opt: opt.set_space(BOX, feasible=["x >= 0.1", "kind == 'b'"]),
    "set_constraints": lambda opt: opt.set_constraints(["g >= 0.5", "note <= 1"]),
    "recover": lambda opt: opt.recover(enqueue=True),
    "heartbeat": lambda opt: opt.heartbeat(opt.trials[-1]),
    "set_user_attr": lambda opt: opt.set_user_attr(0, "a", [1]),
    "recommend": lambda opt: opt.recommend(),
    "predict": lambda opt: opt.predict({"x": 0.3, "kind": "a"}),
    "save": lambda opt: opt.save(Path(opt.storage or tempfile.gettempdir()).with_name("saved")),
}


def _scenes() -> list[Scene]:
    start, model = made(2), made(6)
    out = [Scene(f"start-up, {name}", start, nothing, CALLS[name]) for name in ("ask", "ask(3)", "tell", "enqueue")]
    out += [Scene(f"model, {name}", model, warm, call) for name, call in CALLS.items()]
    in_memory = "ask", "ask(3)", "tell", "tell, replaced", "fail", "enqueue", "set_space", "recover"
    in_memory += "set_user_attr", "set_space, rules"
    out += [Scene(f"model in memory, {name}", model, warm, CALLS[name], stored=False) for name in in_memory]
    out += [Scene(f"a fit, {name}", model, nothing, CALLS[name]) for name in ("ask", "recommend")]
    out += [
        Scene("a mark, ask", model, to_the_mark, CALLS["ask"]),
        Scene("a mark in memory, ask", model, to_the_mark, CALLS["ask"], stored=False),
        Scene("queue, ask", model, queued, CALLS["ask"]),
        Scene("queue, ask(3)", model, queued, CALLS["ask(3)"]),
        Scene("written by others, ask", model, others, CALLS["ask"]),
        Scene("written by others, tell", model, others, lambda opt: told(opt, opt.trials[-1])),
    ]
    ruled = made(6, feasible="x <= 0.8 or kind == 'a'")
    for name in ("set_space, rules", "set_space, none", "set_space, other rules"):
        out += [Scene(f"rules{where}, {name}", ruled, warm, CALLS[name], not where) for where in ("", " in memory")]
    limited, pool = made(6, constraints=["g"]), made(6, POOL)
    out += [Scene(f"constraints, {name}", limited, warm, CALLS[name]) for name in ("ask", "tell")]
    out += [Scene("constraints at a mark, ask", limited, to_the_mark, CALLS["ask"])]
    for where in ("", " in memory"):
        out += [Scene(f"constraints{where}, set_constraints", limited, noted, CALLS["set_constraints"], not where)]
    out += [Scene(f"pool, {name}", pool, warm, CALLS[name]) for name in ("ask", "ask(3)", "tell")]
    out += [Scene("pool, set_pool", pool, warm, lambda opt: opt.set_pool(POOL[10:] * 0.9))]
    return out


SCENES = {scene.name: scene for scene in _scenes()}
