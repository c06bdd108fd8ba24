"""Learners as state files have them: parameters, what all learners keep of their rows, and what each keeps itself."""

from typing import TYPE_CHECKING, Any

from bkbopt.learners.saving import (
    check_dimension,
    class_of,
    classes_from_state,
    names_from_state,
    params_from_state,
    params_to_state,
)
from bkbopt.learners.states import Count, Form, Kept, checked, generator_state, refused

if TYPE_CHECKING:
    from bkbopt.learners.base import OnlineLearner

__all__ = ["learner_from_state", "learner_to_state"]

_SAVED = Form({"class": Kept(), "params": Kept(), "learnt": Kept()})
_LEARNT = Form(
    {
        "params": Kept(),
        "d": Count(1),
        "rounds": Count(1),
        "classes": Kept(),
        "negative": Count(0, 1),
        "names": Kept(),
        "rng": Kept(),
        "state": Kept(),
    }
)


def learner_to_state(learner: "OnlineLearner") -> dict[str, object]:
    """Parameters and all that was learnt, as `bkbopt._support.files` can write it."""
    params = params_to_state(learner.get_params())
    state: dict[str, object] = {"class": type(learner).__name__, "params": params, "learnt": None}
    if learner._dim is not None:
        state["learnt"] = {
            "params": params_to_state(learner._own.get_params()),
            "d": learner.n_features_in_,
            "rounds": learner.n_rounds_,
            "classes": learner.classes_.tolist() if learner._classifies else None,
            "negative": learner._negative,
            "names": learner._names,
            "rng": learner._rng.bit_generator.state if hasattr(learner, "_rng") else None,
            "state": learner._state(),
        }
    return state


def learner_from_state(base: type["OnlineLearner"], state: object, kernel: object, features: object) -> Any:
    """The inverse of `learner_to_state`: a learner of the class `base` or one below it.

    Args:
        base: the class.
        state: anything.
        kernel: the caller's, where the learner had one that is not saved.
        features: the same of a feature map.

    Raises:
        StateFileError: `state` is none of such a learner.
        ArgumentError: a parameter is out of range, or a kernel or a map is needed and was not given.
    """
    saved = checked(state, _SAVED, where="the state of a learner")
    kind: Any = class_of(saved["class"], base)
    params = params_from_state(kind, saved["params"], kernel, features)
    if saved["learnt"] is None:
        return kind(**params)
    learnt = checked(saved["learnt"], _LEARNT, where="what was learnt")
    learner = kind(**params_from_state(kind, learnt["params"], kernel, features))
    _resume(learner, learnt)
    return learner.set_params(**params)


def _resume(learner: "OnlineLearner", learnt: dict[str, Any]) -> None:
    """Let a new learner go on from `learnt`."""
    d, t = learnt["d"], learnt["rounds"]
    check_dimension(d, learnt["state"])
    learner._prepare(d)
    state = checked(learnt["state"], learner._form(), {"d": d, "t": t}, "what was learnt")
    learner._start(d)
    learner._became(d, names_from_state(learnt["names"], d))
    learner.n_rounds_, learner._negative = t, learnt["negative"]
    if learner._classifies:
        learner.classes_ = classes_from_state(learnt["classes"], learnt["negative"])
    elif learnt["classes"] is not None or learnt["negative"]:
        raise refused("the classes", "None for a regression", repr(learnt["classes"])[:80])
    if hasattr(learner, "_rng"):
        learner._rng.bit_generator.state = generator_state(learnt["rng"])
    learner._restore(state)
