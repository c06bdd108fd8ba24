"""A finite pool: rows of an array or a data frame, or any objects with a kernel of the user's.

| symbol | shape  | units   | meaning                                                              |
| ------ | ------ | ------- | -------------------------------------------------------------------- |
| X      | (A, d) | encoded | the pool: columns scaled to [0, 1] (or as given), categories as codes |
| A      | -      | -       | number of arms                                                       |

Objects that are not vectors are numbered in order of appearance; X then holds their numbers, and the kernel looks the
objects up. Equal objects (by ==, where hashable) are the same arm wherever they appear.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bkbopt.acquisition import UCB, Acquisition, Thompson
from bkbopt.domains.base import Feasibility, Params
from bkbopt.errors import ArgumentError, ArgumentTypeError, SpaceExhaustedError
from bkbopt.maximize.pool import PoolMaximizer, argmax_of
from bkbopt.surrogates.checks import as_points
from bkbopt.surrogates.model import Model

__all__ = ["Pool", "PoolDomain"]


@dataclass(frozen=True)
class Pool:
    """Says that something is a pool, where it could be taken for a search space: `bo.Pool([(0, 1), (2, 3)])`.

    Args:
        arms: an array or tensor (A, d), a data frame, or a list of anything that the surrogate's kernel understands.
    """

    arms: Any


@dataclass(frozen=True)
class _Columns:
    """How raw columns become encoded ones: shift and width of the numeric, the values of the categorical."""

    names: tuple[str, ...]
    low: Tensor
    width: Tensor
    choices: Mapping[int, tuple[object, ...]]

    def scaled(self, X: Tensor) -> Tensor:
        return (X - self.low) / self.width


class PoolDomain:
    """See `Domain`.

    Args:
        pool: see `Pool`.
        feasible: the user's constraint, asked of the arms that are about to be proposed.
        scale: whether numeric columns are scaled to [0, 1] by the first pool's range.
        has_kernel: whether the user gave a kernel; lists of objects need one.

    Raises:
        ArgumentError: an empty pool, the wrong shape, NaN or infinite rows.
        ArgumentTypeError: something that is no pool.
    """

    def __init__(self, pool: Pool, feasible: Callable[[Params], bool] | None, *, scale: bool, has_kernel: bool) -> None:
        self._feasible = Feasibility(feasible, self.describe)
        self._chosen: int | None = None
        self._scale = scale
        self._columns: _Columns | None = None
        self.objects: list[object] | None = None
        self._numbers: dict[object, int] = {}
        self._blocked: dict[bytes, Tensor] = {}
        arms = pool.arms
        if isinstance(arms, Sequence) and not _is_numeric_table(arms):
            if not has_kernel:
                raise ArgumentTypeError(
                    "pool: expected rows of numbers, got a list of other objects and no kernel for them; pass "
                    "surrogate=bo.BKB(kernel=k, noise=...) with k(list_a, list_b) -> matrix."
                )
            self.objects = []
        self.replace(pool)

    # -- the arms ------------------------------------------------------------------------------------------------

    def replace(self, pool: Pool) -> None:
        """Take other arms: some may have gone, others come. The encoding stays that of the first pool."""
        X, raw = self._encoded_arms(pool.arms)
        if not len(X):
            raise ArgumentError("pool: expected at least one arm, got an empty pool.")
        self._raw = raw
        self._chosen = None
        self.search = PoolMaximizer(X)
        self._closed = torch.zeros(len(X), dtype=torch.bool)
        for x in self._blocked.values():
            self._closed |= (x == X).all(1)

    @property
    def X(self) -> Tensor:
        """The arms, encoded, (A, d)."""
        return self.search.X

    def _encoded_arms(self, arms: Any) -> tuple[Tensor, Any]:
        if self.objects is not None:
            if not isinstance(arms, Sequence):
                raise ArgumentTypeError(f"pool: expected a list of objects as before, got {type(arms).__name__}.")
            numbers = [self._number(a) for a in arms]
            return torch.tensor(numbers, dtype=torch.float64).reshape(-1, 1), None
        names, table, choices = _as_table(arms, self._columns)
        columns = self._columns
        if columns is None:
            low, width = table.new_zeros(table.shape[1]), table.new_ones(table.shape[1])
            if self._scale and len(table):
                low, high = table.min(0).values, table.max(0).values
                width = torch.where(high > low, high - low, 1.0)
                if not bool(torch.isfinite(width).all()):
                    raise ArgumentError("pool: a column's range overflows; divide it by its largest value first.")
                for j in choices:
                    low[j], width[j] = 0.0, 1.0
            columns = self._columns = _Columns(names, low, width, choices)
        elif names != columns.names:
            raise ArgumentError(f"pool: expected the columns {columns.names} of the first pool, got {names}.")
        raw = arms.copy() if hasattr(arms, "iloc") else table
        return columns.scaled(table), raw

    def _number(self, arm: object) -> int:
        """The number of an object; new ones are appended. Unhashable ones are recognised by identity."""
        assert self.objects is not None
        key: object = arm
        try:
            hash(arm)
        except TypeError:
            key = ("identity", id(arm))
        if key not in self._numbers:
            self._numbers[key] = len(self.objects)
            self.objects.append(arm)
        return self._numbers[key]

    # -- the protocol --------------------------------------------------------------------------------------------

    @property
    def dim(self) -> int:
        """See `Domain`."""
        return self.X.shape[1]

    @property
    def categorical(self) -> tuple[int, ...]:
        """See `Domain`."""
        return () if self._columns is None else tuple(self._columns.choices)

    @property
    def n_arms(self) -> int | None:
        """See `Domain`."""
        return len(self.X)

    @property
    def is_discrete(self) -> bool:
        """See `Domain`."""
        return True

    def encode(self, params: Sequence[Params]) -> Tensor:
        """See `Domain`. A dict may also be {"index": row of the pool}."""
        rows = [self._encode_one(i, p) for i, p in enumerate(params)]
        return torch.stack(rows) if rows else self.X[:0]

    def _encode_one(self, i: int, params: Params) -> Tensor:
        if not isinstance(params, Mapping):
            raise ArgumentTypeError(f"params: expected a dict, got {type(params).__name__} in row {i}.")
        if set(params) == {"index"}:
            index = params["index"]
            if isinstance(index, bool) or not isinstance(index, int | np.integer) or not 0 <= index < len(self.X):
                raise ArgumentError(f"index: expected a row number from 0 to {len(self.X) - 1}, got {index!r}.")
            return self.X[int(index)]
        if self._columns is None:
            if set(params) != {"arm"}:
                raise ArgumentError(
                    f'params: expected {{"arm": object}} or {{"index": row}}, got keys {sorted(params)}.'
                )
            return torch.tensor([float(self._number(params["arm"]))], dtype=torch.float64)
        columns = self._columns
        if set(params) != set(columns.names):
            raise ArgumentError(f"params: expected the columns {columns.names}, got {tuple(params)} in row {i}.")
        values = []
        for j, name in enumerate(columns.names):
            if j in columns.choices:
                if params[name] not in columns.choices[j]:
                    raise ArgumentError(
                        f"params: expected one of the pool's {name!r}, got {params[name]!r} in row {i}."
                    )
                values.append(float(columns.choices[j].index(params[name])))
            else:
                values.append(params[name])
        return columns.scaled(as_points([values], len(values), name="params"))[0]

    def describe(self, x: Tensor) -> tuple[Params, int | None]:
        """See `Domain`."""
        index = self._chosen
        if index is None or not torch.equal(self.X[index], x):
            rows = torch.nonzero((x == self.X).all(1))[:, 0]
            index = int(rows[0]) if len(rows) else None
        return self._params_of(x, index), index

    def _choose(self, index: int) -> Tensor:
        """The arm's point; its row is remembered, so that describing what was chosen needs no search."""
        self._chosen = index
        return self.X[index]

    def _params_of(self, x: Tensor, index: int | None) -> Params:
        if self.objects is not None:
            return {"arm": self.objects[int(x[0])]}
        columns = self._columns
        assert columns is not None
        if index is not None and hasattr(self._raw, "iloc"):
            row = self._raw.iloc[index]
            return {name: _as_python(row.iloc[j]) for j, name in enumerate(columns.names)}
        raw = (
            self._raw[index] if index is not None and isinstance(self._raw, Tensor) else x * columns.width + columns.low
        )
        out: dict[str, Any] = dict(zip(columns.names, raw.tolist(), strict=True))
        for j, values in columns.choices.items():
            out[columns.names[j]] = values[int(x[j])]
        return out

    def block(self, x: Tensor) -> None:
        """See `Domain`."""
        key = x.numpy().tobytes()
        if key not in self._blocked:
            self._blocked[key] = x
            self._closed |= (x == self.X).all(1)

    def startup(self, rng: np.random.Generator) -> Tensor:
        """See `Domain`: uniformly at random among the open arms."""
        for _ in range(100):
            i = int(rng.integers(len(self.X)))
            if not self._closed[i] and self._feasible(self._choose(i)):
                return self.X[i]
        for row in rng.permutation(torch.nonzero(~self._closed)[:, 0].numpy()):
            if self._feasible(self._choose(int(row))):
                return self.X[int(row)]
        raise self._exhausted()

    def suggest(
        self, model: Model, acquisition: Acquisition | Thompson, good: Tensor, rng: np.random.Generator
    ) -> Tensor:
        """See `Domain`: the exact argmax."""
        while not bool(self._closed.all()):
            i = argmax_of(self.search, model, acquisition, self._closed, rng)
            if self._feasible(self._choose(i)):
                return self.X[i]
            self._closed[i] = True
        raise self._exhausted()

    def upper_bound(self, model: Model, beta: float, good: Tensor) -> tuple[Tensor, float]:
        """The arm with the largest upper confidence bound, and that bound."""
        mean, variance = self.search.scan(model)
        scores = UCB(beta)(mean, variance)
        i = int(scores.argmax())
        return self._choose(i), float(scores[i])

    def state_dict(self) -> dict[str, object]:
        """For a state file: the raw rows of an array; data frames and objects have to be given again."""
        return {"raw": self._raw if isinstance(self._raw, Tensor) else None}

    def _exhausted(self) -> SpaceExhaustedError:
        return SpaceExhaustedError(
            f"pool: all {len(self.X)} arms have been proposed, have failed or are infeasible; "
            'stop here, add arms with set_pool, or allow repeats with duplicates="allow".'
        )


def _is_numeric_table(arms: Sequence[Any]) -> bool:
    """Whether a list is rows of numbers rather than a list of objects."""
    return (
        all(isinstance(a, Sequence | np.ndarray | Tensor) and not isinstance(a, str | bytes) for a in arms)
        and all(isinstance(v, int | float | np.number) for a in arms[:1] for v in a)
        and len({len(a) for a in arms}) <= 1
    )


def _as_table(arms: Any, known: _Columns | None) -> tuple[tuple[str, ...], Tensor, dict[int, tuple[object, ...]]]:
    """Column names, raw values (A, d) and the values of the categorical columns."""
    if not hasattr(arms, "iloc"):
        table = as_points(arms, None, name="pool").clone()
        return tuple(f"x{j}" for j in range(table.shape[1])), table, {}
    columns, choices = [], {}
    for j, name in enumerate(arms.columns):
        series = arms[name]
        if series.dtype.kind in "iufb":
            columns.append(series.to_numpy(dtype=np.float64))
            continue
        values = tuple(known.choices[j]) if known is not None and j in known.choices else ()
        # Values in order of first appearance; a later pool may add some.
        values = (*values, *(v for v in dict.fromkeys(series.tolist()) if v not in values))
        choices[j] = values
        place = {v: float(i) for i, v in enumerate(values)}
        columns.append(np.array([place[v] for v in series.tolist()], dtype=np.float64))
    table = as_points(np.column_stack(columns) if columns else np.zeros((len(arms), 0)), None, name="pool")
    return tuple(str(c) for c in arms.columns), table, choices


def _as_python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
