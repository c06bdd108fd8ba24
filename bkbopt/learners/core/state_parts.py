"""Common parts of state files of learners and bandits: classes, parameters, names and labels, all of them checked."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bkbopt._support.state_forms import Form, Kept, checked, refused
from bkbopt.errors import StateFileError
from bkbopt.kernels.saving import kernel_from_state, kernel_to_state
from bkbopt.learners.core.classes import Classes
from bkbopt.learners.core.rows import MOST_CLASSES, Names, as_labels, merged_classes
from bkbopt.learners.features.map_states import map_from_state, map_to_state

__all__ = [
    "check_dimension",
    "class_of",
    "classes_from_state",
    "classes_to_state",
    "names_from_state",
    "params_from_state",
    "params_to_state",
]

#: Largest number of features that no array of the state confirms (as with Taylor features of degree 0).
_UNSEEN = 1_000_000
#: Larger whole numbers, which may be seeds, cannot be printed in messages.
_INT_BITS = 4096


def class_of(name: object, base: type[Any]) -> type[Any]:
    """The class with this name: `base` or a subclass.

    Raises:
        StateFileError: there is none.
    """
    kinds = {c.__name__: c for c in _concrete(base) if not c.__abstractmethods__}
    if not isinstance(name, str) or name not in kinds:
        got = name if isinstance(name, str) else type(name).__name__
        raise StateFileError(f"path: expected the state of a {base.__name__}, got that of a {got}.")
    return kinds[name]


def _concrete(cls: type[Any]) -> list[type[Any]]:
    """`cls` and all classes below it."""
    return [cls, *(c for child in cls.__subclasses__() for c in _concrete(child))]


def params_to_state(params: Mapping[str, object]) -> dict[str, object]:
    """Parameters by name for a state file; kernels and feature maps as far as they can be saved."""
    state = dict(params)
    if "kernel" in state:
        state["kernel"] = kernel_to_state(state["kernel"])
    if callable(state.get("features")):
        state["features"] = {"map": map_to_state(state["features"])}
    return state


def params_from_state(kind: type[Any], state: object, kernel: object, features: object) -> dict[str, Any]:
    """The inverse of `params_to_state` for the class `kind`; `kernel` and `features` are the caller's.

    Values are checked by the class, like those of a caller; here only their types are.

    Raises:
        ArgumentError: a kernel or a map is needed and was not given.
        StateFileError: other names than those of the class, or a value that no parameter has.
    """
    form = Form({f.name: Kept() for f in dataclasses.fields(kind)})
    params: dict[str, Any] = checked(state, form, where="the parameters")
    for name, value in params.items():
        if name not in ("kernel", "features") and not _plain(value):
            raise refused(f"the parameter {name!r}", "a number, a name or None", type(value).__name__)
    if "kernel" in params:
        params["kernel"] = kernel_from_state(params["kernel"], kernel)
    if isinstance(params.get("features"), dict):
        saved = checked(params["features"], Form({"map": Kept()}), where="the parameter 'features'")
        params["features"] = map_from_state(saved["map"], features)
    return params


def _plain(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "biufU"
    if isinstance(value, torch.Tensor):
        return value.ndim == 0 and not value.is_complex()
    if type(value) is int:
        return value.bit_length() <= _INT_BITS
    return value is None or isinstance(value, bool | float | str)


def check_dimension(d: int, state: object) -> None:
    """Refuse a number of features `d` that is too large for the size of the state, before memory is allocated."""
    if d > max(_UNSEEN, _numbers(state)):
        raise refused("the number of features", "as many as the state has numbers for", d)


def _numbers(state: object) -> int:
    """How many numbers the arrays of a tree hold."""
    if isinstance(state, dict):
        return sum(_numbers(part) for part in state.values())
    return math.prod(state.shape) if isinstance(state, np.ndarray | torch.Tensor) else 0


def names_from_state(names: object, d: int) -> Names | None:
    """The names of `d` features, or None where they have none; `StateFileError` where it is neither."""
    if names is None:
        return None
    right = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    if not isinstance(names, tuple) or not right or len(set(names)) != d or len(names) != d:
        raise refused("the names of the features", f"{d} different names", repr(names)[:80])
    return names


def classes_to_state(labels: npt.NDArray[Any]) -> object:
    """Labels `(K,)` for a state file, which keeps the types of all arrays but those of objects: these become lists."""
    return labels.tolist() if labels.dtype.kind == "O" else labels


def classes_from_state(classes: object, order: object, classifies: bool) -> Classes:
    """The labels in order, and the positions among them of those that have appeared.

    Raises:
        StateFileError: not sorted labels, or labels for a regression.
        ArgumentError: what cannot be labels.
    """
    if not classifies:
        if classes is not None or order != []:
            raise refused("the classes", "None for a regression", repr(classes)[:80])
        return Classes.none()
    array = np.array(classes, dtype=object) if isinstance(classes, list) else classes
    if not isinstance(array, np.ndarray) or array.ndim != 1 or not 0 < len(array) <= MOST_CLASSES:
        raise refused("the classes", "labels", repr(classes)[:80])
    labels = as_labels(array, len(array))
    if merged_classes(labels[:0], labels).tolist() != labels.tolist():
        raise refused("the classes", "different labels in order", repr(classes)[:80])
    known = range(len(labels))
    if not isinstance(order, list) or not order or not all(type(k) is int and k in known for k in order):
        raise refused("the order of the classes", "positions among them", repr(order)[:80])
    if len(set(order)) < len(order):
        raise refused("the order of the classes", "different positions", repr(order)[:80])
    return Classes(labels, np.array(order, dtype=np.int64))
