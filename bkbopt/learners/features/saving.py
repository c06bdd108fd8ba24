"""Feature maps in state files: maps of numbers and tensors are saved, others must be passed again."""

import dataclasses
from typing import Any

import numpy as np

from bkbopt._support.states import Count, Floats, Form, Kept, Number, checked, refused
from bkbopt.errors import ArgumentError
from bkbopt.learners.features.quadrature import QuadratureFourier
from bkbopt.learners.features.taylor import Taylor
from bkbopt.posterior.features.fourier import RandomFourier

__all__ = ["map_from_state", "map_to_state"]

KINDS: dict[str, Any] = {kind.__name__: kind for kind in (QuadratureFourier, RandomFourier, Taylor)}
_WEIGHTS = {name: Floats((size,), 0.0, tensor=True) for name, size in (("q_cosines", "a"), ("q_sines", "b"))}
_FREQUENCIES = {name: Floats((size, "d"), tensor=True) for name, size in (("cosines", "a"), ("sines", "b"))}
_POSITIVE = np.finfo(float).tiny
_FORMS = {
    "QuadratureFourier": Form(
        {
            **_FREQUENCIES,
            **_WEIGHTS,
            "lengthscale": Floats(("d",), _POSITIVE, tensor=True),
            "outputscale": Number(_POSITIVE),
            "order": Count(1),
        },
        least={"a": 1, "d": 1},
    ),
    "RandomFourier": Form(
        {"omega": Floats(("D", "d"), tensor=True), "outputscale": Number(_POSITIVE)}, least={"D": 1, "d": 1}
    ),
    "Taylor": Form({"dim": Count(1), "degree": Count(), "lengthscale": Kept(), "max_size": Count()}),
}


def map_to_state(features: object) -> dict[str, object]:
    """A map for a state file; of a map that is not in `KINDS` only its presence is saved."""
    form = type(features).__name__
    if form not in KINDS or not isinstance(features, KINDS[form]):
        return {"form": None}
    return {"form": form, "parts": {f.name: getattr(features, f.name) for f in dataclasses.fields(features)}}


def map_from_state(state: object, given: object) -> Any:
    """The inverse of `map_to_state`; `given` is the caller's map, needed if the map was not saved.

    Raises:
        ArgumentError: a map is needed and none is given.
        StateFileError: `state` is not that of a map.
    """
    if state != {"form": None}:
        whole = checked(state, Form({"form": Kept(), "parts": Kept()}), where="the feature map")
        form = whole["form"]
        if not isinstance(form, str) or form not in KINDS:
            raise refused("the feature map", f"one of {', '.join(KINDS)}", repr(form)[:40])
        return KINDS[form](**checked(whole["parts"], _FORMS[form], where="the feature map"))
    if given is None:
        raise ArgumentError(
            "features: this state was saved with a feature map of yours; pass features= with the same map to load."
        )
    return given
