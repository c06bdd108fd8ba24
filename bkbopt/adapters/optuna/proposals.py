"""Publication of proposals: the complete proposal of a running trial is written to its system attributes.

All processes that share the storage read it there and count it as pending. The proposal is a JSON object of Optuna's
internal values (numbers; categories by index) by column key, cut into chunks that fit a relational database's column.
"""

import functools
import json
from collections.abc import Mapping

from optuna.study import Study
from optuna.trial import FrozenTrial

__all__ = ["publish", "published_point"]

KEY = "bkb:relative_params"
#: Attributes of Optuna's relational storage hold fewer than 2,046 characters, and quotes are escaped when stored.
CHUNK = 1000


def publish(study: Study, trial: FrozenTrial, values: Mapping[str, float]) -> None:
    """Write the proposal `values`, by column key, to the trial's system attributes.

    An empty text marks the end, so that a shorter list of chunks may replace a longer one.
    """
    text = json.dumps(dict(values))
    chunks = [text[i : i + CHUNK] for i in range(0, len(text), CHUNK)]
    for i, chunk in enumerate([*chunks, ""]):
        study._storage.set_trial_system_attr(trial._trial_id, f"{KEY}:{i}", chunk)


def published_point(trial: FrozenTrial) -> dict[str, float]:
    """The point that was published for a running trial; empty if there is none."""
    pieces: list[str] = []
    while piece := trial.system_attrs.get(f"{KEY}:{len(pieces)}"):
        pieces.append(piece)
    if piece is None:
        return {}  # not published yet, or incomplete
    return dict(_parsed("".join(pieces)))


# Cached, since every suggestion reads the proposals of all running trials.
@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[tuple[str, float], ...]:
    try:
        values = json.loads(text)
    except json.JSONDecodeError:
        return ()  # read while a second proposal is replacing the first
    if not isinstance(values, dict):
        return ()
    return tuple((key, float(value)) for key, value in values.items() if isinstance(value, int | float))
