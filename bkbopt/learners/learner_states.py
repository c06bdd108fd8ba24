"""Learners in state files: parameters, the state common to all learners, and the state of each class."""

from typing import TYPE_CHECKING, Any

from bkbopt._support.states import Count, Form, Kept, checked, refused
from bkbopt.learners.saving import (
    check_dimension,
    class_of,
    classes_from_state,
    classes_to_state,
    names_from_state,
    params_from_state,
    params_to_state,
)
from bkbopt.learners.several import head_states, inner_state, restore_heads, restore_inner

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
        "order": Kept(),
        "names": Kept(),
        "units": Kept(),
        "recent": Kept(),
        "own": Kept(),
        "heads": Kept(),
    }
)


def learner_to_state(learner: "OnlineLearner") -> dict[str, object]:
    """Parameters and all that was learnt, in a form for `bkbopt._support.files`."""
    learner._need_whole()
    params = params_to_state(learner.get_params())
    state: dict[str, object] = {"class": type(learner).__name__, "params": params, "learnt": None}
    if learner._dim is not None:
        state["learnt"] = {
            "params": params_to_state(learner._params.get_params()),
            "d": learner.n_features_in_,
            "rounds": learner.n_rounds_,
            "classes": classes_to_state(learner.classes_) if learner._classifies else None,
            "order": learner._classes.order.tolist(),
            "names": learner._names,
            "units": None if learner._units is None else learner._units.state_dict(),
            "recent": None if learner._recent is None else learner._recent.state_dict(),
            "own": inner_state(learner),
            "heads": head_states(learner),
        }
    return state


def learner_from_state(base: type["OnlineLearner"], state: object, kernel: object, features: object) -> Any:
    """The inverse of `learner_to_state`: a learner of the class `base` or one below it.

    Args:
        base: the class.
        state: anything.
        kernel: the caller's, if the learner had one that is not saved.
        features: the caller's feature map, likewise.

    Raises:
        StateFileError: `state` is not one of such a learner.
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
    """Restore `learnt` in a new learner."""
    d, t = learnt["d"], learnt["rounds"]
    check_dimension(d, learnt)
    learner._prepare(d, 1.0)
    units = learner._new_units(d)
    if units is not None:
        saved = checked(learnt["units"], units.form(), {"d": d}, "the units")
    elif learnt["units"] is not None:
        raise refused("the units", "None for a learner without", type(learnt["units"]).__name__)
    classes = classes_from_state(learnt["classes"], learnt["order"], learner._classifies)
    if units is not None:
        units.load_state_dict(saved, t, len(classes.order) if learner._classifies else None)
        learner._prepare(d, units.lengthscale)
    learner._units, learner._classes = units, classes
    restore_inner(learner, learnt["own"], d, t)
    names = names_from_state(learnt["names"], d)
    learner._set_features(d, names)
    learner.n_rounds_ = t
    if learner._classifies:
        learner.classes_ = classes.labels
    restore_heads(learner, learnt["heads"])
    if learner._recent is not None:
        recent = learner._recent.form(len(classes.order))
        learner._recent.load_state_dict(checked(learnt["recent"], recent, where="the last margins"))
    elif learnt["recent"] is not None:
        raise refused("the last margins", "None for a learner without", type(learnt["recent"]).__name__)
