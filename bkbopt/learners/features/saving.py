"""Feature maps in state files: those that consist of numbers and tensors are saved whole, others are asked for."""

import dataclasses
from typing import Any

from bkbopt.errors import ArgumentError
from bkbopt.learners.features.quadrature import QuadratureFourier
from bkbopt.learners.features.taylor import Taylor
from bkbopt.posterior.features.fourier import RandomFourier

__all__ = ["map_from_state", "map_to_state"]

KINDS: dict[str, Any] = {kind.__name__: kind for kind in (QuadratureFourier, RandomFourier, Taylor)}


def map_to_state(features: object) -> dict[str, object]:
    """A map for a state file; of maps that are not in `KINDS` nothing but that there was one."""
    form = type(features).__name__
    if form not in KINDS or not isinstance(features, KINDS[form]):
        return {"form": None}
    return {"form": form, "parts": {f.name: getattr(features, f.name) for f in dataclasses.fields(features)}}


def map_from_state(state: dict[str, Any], given: object) -> Any:
    """The inverse of `map_to_state`; `given` is the map of the caller, needed where it was not saved.

    Raises:
        ArgumentError: a map is needed and none is given.
    """
    if state["form"] is not None:
        return KINDS[state["form"]](**state["parts"])
    if given is None:
        raise ArgumentError(
            "features: this state was saved with a feature map of yours; pass features= with the same map to load."
        )
    return given
