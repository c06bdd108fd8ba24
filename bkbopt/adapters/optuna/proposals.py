"""What is proposed is published: the full proposal of a running trial in its system attributes.

Every process that shares the storage reads it there, and counts it as pending. The proposal is JSON from names to
Optuna's internal values (numbers; categories by index), cut into chunks that fit a relational database's column.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial

__all__ = ["chunks", "publish", "published_point"]

KEY = "bkb:relative_params"
#: Attributes of Optuna's relational storage hold fewer than 2,046 characters; the storage escapes ours once more.
CHUNK = 1000


def publish(study: Study, trial: FrozenTrial, values: Mapping[str, float]) -> None:
    """Write the proposal `values`, by column key, to the trial's system attributes."""
    for key, chunk in chunks(values):
        study._storage.set_trial_system_attr(trial._trial_id, key, chunk)


def chunks(values: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Attributes and their texts; an empty one ends the list, so that a shorter proposal replaces a longer one."""
    text = json.dumps(dict(values))
    pieces = [text[i : i + CHUNK] for i in range(0, len(text), CHUNK)]
    for i, piece in enumerate([*pieces, ""]):
        yield f"{KEY}:{i}", piece


def published_point(trial: FrozenTrial) -> dict[str, float]:
    """The point that was published for a running trial; empty where there is none."""
    return _published(trial.system_attrs)


def _published(attributes: Mapping[str, Any]) -> dict[str, float]:
    pieces: list[str] = []
    while piece := attributes.get(f"{KEY}:{len(pieces)}"):
        pieces.append(piece)
    if piece is None:
        return {}  # none yet, or its end is still missing
    return dict(_parsed("".join(pieces)))


# Every suggestion reads those of all running trials, most of which it has read before.
@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[tuple[str, float], ...]:
    try:
        values = json.loads(text)
    except json.JSONDecodeError:
        return ()  # caught while a second proposal replaces the first
    if not isinstance(values, dict):
        return ()
    return tuple((key, float(value)) for key, value in values.items() if isinstance(value, int | float))
