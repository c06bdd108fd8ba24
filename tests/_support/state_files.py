"""A state with something of every type, a file of it, and what compares two states bit for bit."""

import struct
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

from bkbopt._support import files as storage

ROOT = Path(__file__).resolve().parents[2]

STATE: dict[str, object] = {
    "seed": 2**127 + 1,
    "best": -0.0,
    "values": [0.1, float("nan"), float("inf"), float("-inf"), 5e-324, 1e300],
    "params": {"kernel": "rbf", "C": 1.5, "log": True, "cap": None, "naïve": "σ²"},
    "pair": (1, ("a", [])),
    "started": datetime(2026, 2, 3, 4, 5, 6, 789, tzinfo=UTC),
    "pool": np.arange(12.0).reshape(3, 4),
    "counts": torch.tensor([1, 2, 3]),
    "$ref": {"$array": 0},
}


def signature(value: object) -> object:
    """A value that compares equal exactly when type, structure and every bit agree (NaN included)."""
    match value:
        case dict():
            return dict, [(key, signature(item)) for key, item in value.items()]
        case list() | tuple():
            return type(value), [signature(item) for item in value]
        case float():
            return float, struct.pack(">d", value)
        case datetime():
            return datetime, value, value.utcoffset()
        case torch.Tensor():
            return torch.Tensor, value.dtype, value.device, signature(value.numpy())
        case np.ndarray():
            return np.ndarray, value.dtype.str, value.shape, value.tobytes()
    return type(value), value


def saved(folder: Path, state: dict[str, object] = STATE) -> Path:
    path = folder / "state.bkb"
    storage.save(path, state, kind="test")
    return path
