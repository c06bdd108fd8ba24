"""A table of values to tell, and an optimizer of its space."""

import math
from typing import Any

import pandas as pd

import bkbopt as bo

__all__ = ["BOX", "FRAME", "ROWS", "optimizer"]

BOX = {"x": (0.0, 1.0), "y": (-2.0, 2.0)}
FRAME = pd.DataFrame(
    {
        "x": [0.1, 0.5, 0.9],
        "y": [0.0, 1.0, 2.0],
        "loss": [1.0, math.nan, 3.0],
        "gain": [3.0, 2.0, 1.0],
        "heat": [-1.0, 0.5, -1.0],
        "sd": [0.1, 0.2, 0.3],
        "note": ["fine", "crash", "fine"],
    }
)
ROWS = FRAME[["x", "y"]].to_dict("records")


def optimizer(space: Any = None, **options: Any) -> bo.Optimizer:
    return bo.Optimizer(BOX if space is None else space, **{"seed": 0, "n_startup_trials": 4, **options})
