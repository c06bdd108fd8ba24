"""Runs saved as files, so that a stopped program continues; and the loop of a learner over a stream."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.comparison import keep
from benchmarks.paper_tables.sets import Array
from bkbopt.learners import OnlineLearner

__all__ = ["Kept", "margins", "mean_sd", "settings_of"]


@dataclass(frozen=True)
class Kept:
    """Results by name and settings; files carry a digest of both and of the package's source."""

    out: Path
    digest: str

    def __call__(self, name: str, settings: Mapping[str, object], compute: Callable[[], dict[str, Any]]) -> Any:
        """The result kept under this name with these settings, or computed now."""
        text = json.dumps([self.digest, settings], sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()[:12]
        path = self.out / f"{re.sub(r'[^A-Za-z0-9]+', '-', name)}_{key}.json"
        if not path.exists():
            keep(compute(), path)
        return json.loads(path.read_text())


def settings_of(learner: OnlineLearner) -> dict[str, object]:
    """Class and parameters, for the key of a run."""
    return {"class": type(learner).__name__, **learner.get_params()}


def margins(learner: OnlineLearner, X: Array, y: Array) -> Array:
    """Predictions before learning, as numbers; labels are -1 and +1."""
    # Learners of one squared loss take the labels for numbers.
    classifies = learner.loss not in ("squared", "absolute")
    return learner.progressive(X, y, **({"decision": True, "classes": [-1.0, 1.0]} if classifies else {}))


def mean_sd(values: list[float]) -> str:
    """Mean and standard deviation, as text."""
    sd = np.std(values, ddof=1) if len(values) > 1 else np.nan
    return f"{np.mean(values):.3f} +- {sd:.3f}"
