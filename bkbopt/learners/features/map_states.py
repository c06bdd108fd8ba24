"""Feature maps in state files: maps of numbers and tensors are saved, others must be passed again."""

import dataclasses
from typing import Any

import numpy as np

from bkbopt._support.state_forms import Count, Floats, Form, Kept, Number, checked, refused
from bkbopt.errors import ArgumentError
from bkbopt.learners.features.quadrature import QuadratureFourier
from bkbopt.learners.features.taylor import Taylor
from bkbopt.posterior.features.fourier import RandomFourier

__all__ = ["map_from_state", "map_to_state"]

_WEIGHTS = {name: Floats((size,), 0.0, tensor=True) for name, size in (("q_cosines", "a"), ("q_sines", "b"))}
_FREQUENCIES = {name: Floats((size, "d"), tensor=True) for name, size in (("cosines", "a"), ("sines", "b"))}
_POSITIVE = np.finfo(float).tiny
#: The maps that are saved.
FORMS: dict[type[Any], Form] = {
    QuadratureFourier: Form(
        {
            **_FREQUENCIES,
            **_WEIGHTS,
            "lengthscale": Floats(("d",), _POSITIVE, tensor=True),
            "outputscale": Number(_POSITIVE),
            "order": Count(1),
        },
        least={"a": 1, "d": 1},
    ),
    RandomFourier: Form(
        {"omega": Floats(("D", "d"), tensor=True), "outputscale": Number(_POSITIVE)}, least={"D": 1, "d": 1}
    ),
    Taylor: Form({"dim": Count(1), "degree": Count(), "lengthscale": Kept(), "max_size": Count()}),
}


def map_to_state(features: object) -> dict[str, object]:
    """A map for a state file; of a map that is not in `FORMS` only its presence is saved."""
    kind = type(features)
    if kind not in FORMS:
        return {"form": None}
    return {"form": kind.__name__, "parts": {f.name: getattr(features, f.name) for f in dataclasses.fields(kind)}}


def map_from_state(state: object, given: object) -> Any:
    """The inverse of `map_to_state`; `given` is the caller's map, needed if the map was not saved.

    Raises:
        ArgumentError: a map is needed and none is given.
        StateFileError: `state` is not that of a map.
    """
    if state != {"form": None}:
        whole = checked(state, Form({"form": Kept(), "parts": Kept()}), where="the feature map")
        kinds, form = {kind.__name__: kind for kind in FORMS}, whole["form"]
        if not isinstance(form, str) or form not in kinds:
            raise refused("the feature map", f"one of {', '.join(kinds)}", repr(form)[:40])
        kind = kinds[form]
        return kind(**checked(whole["parts"], FORMS[kind], where="the feature map"))
    if given is None:
        raise ArgumentError(
            "features: this state was saved with a feature map of yours; pass features= with the same map to load."
        )
    return given
