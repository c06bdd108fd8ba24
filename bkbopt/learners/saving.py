"""Parameters of learners and bandits in state files."""

from collections.abc import Mapping
from typing import Any

from bkbopt.learners.features.saving import map_from_state, map_to_state
from bkbopt.learners.gram import kernel_from_state, kernel_to_state

__all__ = ["params_from_state", "params_to_state"]


def params_to_state(params: Mapping[str, object]) -> dict[str, object]:
    """Parameters by name for a state file: kernels and feature maps as far as they can be written."""
    state = dict(params)
    if "kernel" in state:
        state["kernel"] = kernel_to_state(state["kernel"])
    if callable(state.get("features")):
        state["features"] = {"map": map_to_state(state["features"])}
    return state


def params_from_state(state: Mapping[str, Any], kernel: object, features: object) -> dict[str, Any]:
    """The inverse of `params_to_state`; `kernel` and `features` are the caller's.

    Raises:
        ArgumentError: one of them is needed and was not given.
    """
    params = dict(state)
    if "kernel" in params:
        params["kernel"] = kernel_from_state(params["kernel"], kernel)
    if isinstance(params.get("features"), dict):
        params["features"] = map_from_state(params["features"]["map"], features)
    return params
