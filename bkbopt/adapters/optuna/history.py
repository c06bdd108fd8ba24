"""The finished trials of a study in the order of their completion, encoded, and kept up to date as they come in.

Everything here is a function of the storage: a sampler that has followed a study and one that meets it now hold the
same rows in the same order. A trial that turns up late, with an earlier time of completion than one already taken in,
is put in its place, and `version` says that what was computed from the old order is void.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState
from torch import Tensor

from bkbopt.adapters.optuna.encoding import Encoding, column_key, internal_values, merged, parameter_of
from bkbopt.spaces.space import Parameter

__all__ = ["History", "Record"]


@dataclass(frozen=True)
class Record:
    """A finished trial.

    Attributes:
        order: when it was finished, then its number; rows are sorted by it.
        values: of its parameters, by column, in Optuna's internal form.
        objectives: what it returned; empty if it was pruned.
        intermediate: the last intermediate value of a pruned trial, NaN where there is none.
        constraints: by name.
    """

    order: tuple[float, int]
    values: Mapping[str, float]
    objectives: tuple[float, ...]
    intermediate: float
    constraints: Mapping[str, float]

    @classmethod
    def of(cls, trial: FrozenTrial) -> "Record":
        """The record of a complete or pruned trial."""
        complete = trial.state == TrialState.COMPLETE
        last = trial.last_step
        finished = trial.datetime_complete
        return cls(
            (finished.timestamp() if finished is not None else 0.0, trial.number),
            internal_values(trial.params, trial.distributions),
            tuple(trial.values) if complete else (),
            math.nan if complete or last is None else float(trial.intermediate_values[last]),
            dict(trial.constraints),
        )


class History:
    """Rows of finished trials, and the encoding that holds them all.

    Attributes:
        records: the trials in order.
        latest: for each column the distribution that was suggested last, with the parameter's name.
        version: raised whenever rows that were there before have moved or changed their code.
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.latest: dict[str, tuple[str, BaseDistribution]] = {}
        self.version = 0
        self.n_complete = 0
        self._numbers: set[int] = set()
        self._last_order: dict[str, tuple[float, int]] = {}
        self._counts: dict[str, int] = {}
        self._constraints: set[str] = set()
        self._objectives: list[list[float]] = []
        self._intermediate: list[float] = []
        self._parameters: dict[str, Parameter] = {}
        self._encoding = Encoding(())
        self._X: Tensor | None = None
        self._encoded = 0

    def update(self, trials: Sequence[FrozenTrial]) -> None:
        """Take in those of all finished trials that are new."""
        if len(trials) == len(self.records):
            return  # a study loses no trial
        new = [(Record.of(trial), trial) for trial in trials if trial.number not in self._numbers]
        if not new:
            return
        new.sort(key=lambda pair: pair[0].order)
        late = bool(self.records) and new[0][0].order < self.records[-1].order
        self.records += [record for record, _ in new]
        for record, trial in new:
            self._numbers.add(trial.number)
            self.n_complete += bool(record.objectives)
            self._widen(trial.distributions, record.order)
            for key in record.values:
                self._counts[key] = self._counts.get(key, 0) + 1
            self._constraints.update(record.constraints)
        if late:
            self.records.sort(key=lambda record: record.order)
            self._objectives, self._intermediate = [], []
            self._void()
        self._columns_of_values()

    def _columns_of_values(self) -> None:
        rows = self.records[len(self._intermediate) :]
        self._intermediate += [record.intermediate for record in rows]
        k = max((len(record.objectives) for record in rows), default=0)
        while len(self._objectives) < k:
            self._objectives.append([math.nan] * (len(self.records) - len(rows)))
        for j, column in enumerate(self._objectives):
            column += [record.objectives[j] if record.objectives else math.nan for record in rows]

    def _widen(self, distributions: Mapping[str, BaseDistribution], order: tuple[float, int]) -> None:
        for name, distribution in distributions.items():
            key = column_key(name, distribution)
            last = self.latest.get(key)
            is_later = last is None or order > self._last_order[key]
            if is_later:
                self._last_order[key] = order
            # The key of choices names them all; Optuna's comparison of a thousand takes milliseconds.
            if last is not None and (isinstance(distribution, CategoricalDistribution) or last[1] == distribution):
                continue
            parameter = parameter_of(distribution)
            if is_later:
                self.latest[key] = (name, distribution)
            old = self._parameters.get(key)
            wide = parameter if old is None else merged(old, parameter)
            if old is None or wide != old:
                self._parameters[key] = wide
                self._encoding = Encoding(tuple(sorted(self._parameters.items())))
                self._void()

    def _void(self) -> None:
        self.version += 1
        self._X, self._encoded = None, 0

    @property
    def encoding(self) -> Encoding:
        """The columns of all parameters seen."""
        return self._encoding

    @property
    def X(self) -> Tensor:
        """Encoded points `(n, d)`."""
        n = len(self.records)
        if self._X is None or len(self._X) < n:
            X = self._encoding.absent.repeat(max(2 * n, 16), 1)
            if self._X is not None:
                X[: self._encoded] = self._X[: self._encoded]
            self._X = X
        if self._encoded < n:
            self._X[self._encoded : n] = self._encoding.encode([r.values for r in self.records[self._encoded :]])
            self._encoded = n
        return self._X[:n]

    @property
    def is_conditional(self) -> bool:
        """Whether some trial lacks a parameter that another has."""
        return any(count < len(self.records) for count in self._counts.values())

    def objective(self, k: int) -> tuple[Tensor, Tensor]:
        """Objective k of all rows, and the last intermediate values, each `(n,)`: one of each pair is NaN."""
        values = torch.tensor(self._objectives[k], dtype=torch.float64)
        return values, torch.tensor(self._intermediate, dtype=torch.float64)

    def constraint_names(self) -> list[str]:
        """Names of all constraints that were set, sorted."""
        return sorted(self._constraints)
