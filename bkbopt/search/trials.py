"""Trials: what was proposed, what came back, and the table of all of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bkbopt.errors import TrialStateError, UnknownTrialError, extra

if TYPE_CHECKING:
    import pandas

__all__ = ["COMPLETE", "FAIL", "RUNNING", "Trial", "TrialLog"]

RUNNING, COMPLETE, FAIL = "RUNNING", "COMPLETE", "FAIL"


@dataclass(frozen=True)
class Trial:
    """One proposal, frozen at the time it was handed out or looked up.

    Attributes:
        id: number of the trial, from 0 on.
        params: the parameters by name.
        index: row of the pool, or None outside of pools.
        state: "RUNNING", "COMPLETE" or "FAIL".
        value: the value told, in the user's units and direction, or None.
        asked_at: when it was proposed (or told, for past data).
        told_at: when its value came.

    Example:
        >>> import bkbopt as bo
        >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, seed=0)
        >>> trial = opt.ask()
        >>> trial.id, trial.state, trial.value
        (0, 'RUNNING', None)
        >>> opt.tell(trial, 0.25).value, opt.trials[0].state
        (0.25, 'COMPLETE')
    """

    id: int
    params: Mapping[str, Any]
    index: int | None = None
    state: str = RUNNING
    value: float | None = None
    asked_at: datetime | None = None
    told_at: datetime | None = None


class TrialLog:
    """All trials with their encoded points, in order of their ids."""

    def __init__(self, dim: int) -> None:
        self.trials: list[Trial] = []
        self._X = torch.zeros(16, dim, dtype=torch.float64)
        self._order: list[int] = []
        self._pending: dict[int, None] = {}
        self._failed: list[int] = []
        self._best: dict[bool, int] = {}

    def __len__(self) -> int:
        """Number of trials."""
        return len(self.trials)

    def __iter__(self) -> Iterator[Trial]:
        """The trials in order."""
        return iter(self.trials)

    def add(self, x: Tensor, params: Mapping[str, Any], index: int | None, now: datetime) -> Trial:
        """A new running trial at the encoded point `x (d,)`."""
        if len(self.trials) == len(self._X):
            self._X = torch.cat([self._X, torch.zeros_like(self._X)])
        trial = Trial(len(self.trials), params, index, asked_at=now)
        self._X[trial.id] = x
        self.trials.append(trial)
        self._pending[trial.id] = None
        return trial

    def running(self, trial_id: int, call: str) -> Trial:
        """The trial with that id, which must be running.

        Raises:
            UnknownTrialError: there is none.
            TrialStateError: it was told or failed before.
        """
        if not 0 <= trial_id < len(self.trials):
            raise UnknownTrialError(f"trial: expected an id that ask gave out (0 to {len(self) - 1}), got {trial_id}.")
        trial = self.trials[trial_id]
        if trial.state != RUNNING:
            what = f"told the value {trial.value!r}" if trial.state == COMPLETE else "failed"
            raise TrialStateError(f"{call}: expected a running trial, but trial {trial_id} was {what} already.")
        return trial

    def finish(self, trial_id: int, value: float | None, now: datetime) -> Trial:
        """Mark as complete with a value, or as failed with None."""
        trial = replace(self.trials[trial_id], state=FAIL if value is None else COMPLETE, value=value, told_at=now)
        self.trials[trial_id] = trial
        del self._pending[trial_id]
        if value is None:
            self._failed.append(trial_id)
            return trial
        self._order.append(trial_id)
        for largest in (False, True):
            best = self._best.get(largest)
            held = self.trials[best].value if best is not None else None
            if held is None or (value > held if largest else value < held):
                self._best[largest] = trial_id
        return trial

    @property
    def n_complete(self) -> int:
        """Number of values told."""
        return len(self._order)

    @property
    def order(self) -> list[int]:
        """Ids of the complete trials in the order in which their values came."""
        return list(self._order)

    def complete(self) -> tuple[Tensor, Tensor]:
        """Points (n, d) and values (n,) in the order in which the values came."""
        values = [self.trials[i].value for i in self._order]
        return self._X[self._order], torch.tensor(values, dtype=torch.float64)

    def pending(self) -> Tensor:
        """Points of the running trials, (p, d)."""
        return self._X[list(self._pending)]

    def failed(self) -> Tensor:
        """Points of the failed trials, (f, d)."""
        return self._X[self._failed]

    def point(self, trial_id: int) -> Tensor:
        """The encoded point of a trial, (d,)."""
        return self._X[trial_id]

    def best(self, *, largest: bool) -> Trial | None:
        """The trial with the best value told, the earliest of equals."""
        at = self._best.get(largest)
        return None if at is None else self.trials[at]

    def dataframe(self) -> "pandas.DataFrame":
        """One row a trial with Optuna's column names: number, value, datetime_*, duration, params_*, state.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        with extra("pandas"):
            import pandas

        names: dict[str, None] = {}
        for t in self.trials:
            names.update(dict.fromkeys(t.params))
        columns: dict[str, list[Any]] = {
            "number": [t.id for t in self.trials],
            "value": [float("nan") if t.value is None else t.value for t in self.trials],
            "datetime_start": [t.asked_at for t in self.trials],
            "datetime_complete": [t.told_at for t in self.trials],
            "duration": [t.told_at - t.asked_at if t.told_at and t.asked_at else None for t in self.trials],
        }
        for name in names:
            columns[f"params_{name}"] = [t.params.get(name) for t in self.trials]
        if any(t.index is not None for t in self.trials):
            columns["index"] = [t.index for t in self.trials]
        columns["state"] = [t.state for t in self.trials]
        return pandas.DataFrame(columns)

    def state_dict(self) -> dict[str, object]:
        """Everything but the parameters, which the domain decodes anew from the points."""
        return {
            "X": self._X[: len(self)].clone(),
            "order": list(self._order),
            "failed": list(self._failed),
            "pending": list(self._pending),
            "index": [t.index for t in self.trials],
            "value": [t.value for t in self.trials],
            "asked_at": [t.asked_at for t in self.trials],
            "told_at": [t.told_at for t in self.trials],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], params: list[Mapping[str, Any]]) -> "TrialLog":
        """The inverse of `state_dict`; `params` are those of each trial."""
        X: Tensor = state["X"]
        log = cls(X.shape[1])
        for i, x in enumerate(X):
            log.add(x, params[i], state["index"][i], state["asked_at"][i])
        for i in [*state["order"], *state["failed"]]:
            log.finish(i, state["value"][i], state["told_at"][i])
        log._pending = dict.fromkeys(state["pending"])
        return log
