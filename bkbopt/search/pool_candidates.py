"""A finite pool: rows of an array or a data frame, or any objects with a kernel of the user's.

| symbol | shape  | units   | meaning                                                              |
| ------ | ------ | ------- | -------------------------------------------------------------------- |
| X      | (A, d) | encoded | the pool: columns scaled to [0, 1] (or as given), categories as codes |
| A      | -      | -       | number of arms                                                       |

Objects that are not vectors are numbered in order of appearance; X then holds their numbers, and the kernel looks the
objects up. Equal objects (by ==, where hashable) are the same arm wherever they appear.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.arrays import as_points
from bkbopt.errors import ArgumentError, ArgumentTypeError, SpaceExhaustedError
from bkbopt.posterior.model import Model
from bkbopt.posterior.observations import row_keys
from bkbopt.search.acquisition import UCB, Acquisition, Thompson
from bkbopt.search.candidates import Feasibility, Params
from bkbopt.search.pool_maximizer import PoolMaximizer, argmax_of
from bkbopt.spaces.parameters import as_python

__all__ = ["Pool", "PoolDomain"]


@dataclass(frozen=True)
class Pool:
    """Says that something is a pool, where it could be taken for a search space: `bo.Pool([(0, 1), (2, 3)])`.

    Args:
        arms: an array or tensor (A, d), a data frame, or a list of anything that the surrogate's kernel understands.

    Example:
        >>> import bkbopt as bo
        >>> bo.Optimizer(bo.Pool([(0.1, 2.0), (0.7, 1.5), (0.4, 0.9)]), seed=0).ask().params
        {'x0': 0.7, 'x1': 1.5}
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
        self._rows: dict[bytes, Tensor] = {}
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
        if self.objects is not None:
            self._take(self._numbered(pool.arms), None)
            return
        columns, table = _read_table(pool.arms, self._columns, scale=self._scale)
        self._columns = columns
        self._take(columns.scaled(table), pool.arms.copy() if hasattr(pool.arms, "iloc") else table)

    def _take(self, X: Tensor, raw: Any) -> None:
        """Search the arms `X (A, d)` from here on."""
        self._raw = raw
        self._chosen = None
        self._rows = {}
        self.search = PoolMaximizer(X)
        self._closed = torch.zeros(len(X), dtype=torch.bool)
        for x in self._blocked.values():
            self._closed |= (x == X).all(1)

    @property
    def X(self) -> Tensor:
        """The arms, encoded, (A, d)."""
        return self.search.X

    def _numbered(self, arms: Any) -> Tensor:
        if not isinstance(arms, Sequence):
            raise ArgumentTypeError(f"pool: expected a list of objects as before, got {type(arms).__name__}.")
        if not arms:
            raise _empty()
        return torch.tensor([self._number(a) for a in arms], dtype=torch.float64).reshape(-1, 1)

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

    @property
    def has_choices(self) -> bool:
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

    def describe(self, x: Tensor, given: Params | None = None) -> tuple[Params, int | None]:
        """See `Domain`."""
        for index in (None if given is None else given.get("index"), self._chosen):
            if isinstance(index, int) and 0 <= index < len(self.X) and torch.equal(self.X[index], x):
                return self._params_of(x, index), index
        rows = self._rows_of(x)
        found = int(rows[0]) if len(rows) else None
        return self._params_of(x, found), found

    def _rows_of(self, x: Tensor) -> Tensor:
        """Rows of the pool that are the point `x (d,)`; looked for once."""
        key = row_keys(x[None])[0]
        if key not in self._rows:
            self._rows[key] = torch.nonzero((x == self.X).all(1))[:, 0]
        return self._rows[key]

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
            return {name: as_python(self._raw.iat[index, j]) for j, name in enumerate(columns.names)}
        raw = (
            self._raw[index] if index is not None and isinstance(self._raw, Tensor) else x * columns.width + columns.low
        )
        out: dict[str, Any] = dict(zip(columns.names, raw.tolist(), strict=True))
        for j, values in columns.choices.items():
            out[columns.names[j]] = values[int(x[j])]
        return out

    def block(self, x: Tensor) -> None:
        """See `Domain`."""
        self._blocked[row_keys(x[None])[0]] = x
        self._closed[self._rows_of(x)] = True

    def startup(self, rng: np.random.Generator, pending: Tensor) -> Tensor:
        """See `Domain`: uniformly at random among the open arms."""
        taken = self._unavailable(pending)
        for _ in range(100):
            i = int(rng.integers(len(self.X)))
            if not taken[i] and self._feasible(self._choose(i)):
                return self.X[i]
        rows = rng.permutation(torch.nonzero(~self._closed)[:, 0].numpy())
        for row in [*rows[~taken.numpy()[rows]], *rows]:
            if self._feasible(self._choose(int(row))):
                return self.X[int(row)]
        raise self._exhausted()

    def suggest(
        self, model: Model, acquisition: Acquisition | Thompson, good: Tensor, rng: np.random.Generator, pending: Tensor
    ) -> Tensor:
        """See `Domain`: the exact argmax."""
        while not bool(self._closed.all()):
            i = argmax_of(self.search, model, acquisition, self._unavailable(pending), rng)
            if self._feasible(self._choose(i)):
                return self.X[i]
            self._closed[i] = True
        raise self._exhausted()

    def _unavailable(self, pending: Tensor) -> Tensor:
        """Arms that may not be chosen: closed or pending, or only closed where that is all of them."""
        if not len(pending):
            return self._closed
        taken = self._closed.clone()
        for x in pending:
            taken[self._rows_of(x)] = True
        return self._closed if bool(taken.all()) else taken

    def upper_bound(self, model: Model, beta: float, good: Tensor) -> tuple[Tensor, float]:
        """The arm with the largest upper confidence bound, and that bound."""
        mean, variance = self.search.scan(model)
        scores = UCB(beta)(mean, variance)
        i = int(scores.argmax())
        return self._choose(i), float(scores[i])

    def __deepcopy__(self, memo: dict[int, Any]) -> "PoolDomain":
        """An independent domain that shares the arms, which are never changed."""
        twin = copy.copy(self)
        twin._feasible = copy.copy(self._feasible)
        twin._feasible._describe = twin.describe
        twin._closed, twin.search = self._closed.clone(), copy.deepcopy(self.search)
        twin._blocked, twin._rows = dict(self._blocked), dict(self._rows)
        return twin

    def state_dict(self) -> dict[str, object]:
        """See `Domain`: the raw rows of an array; data frames and objects have to be given again."""
        out: dict[str, object] = {"raw": self._raw, "closed": self._closed.clone()}
        if self.objects is not None:
            return out | {"numbers": self.X, "n_objects": len(self.objects)}
        assert self._columns is not None
        columns = vars(self._columns)
        choices = [[j, list(values)] for j, values in self._columns.choices.items()]
        return out | {
            "raw": None if hasattr(self._raw, "iloc") else self._raw,
            "columns": columns | {"choices": choices},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `Domain`. Objects are numbered in order of appearance, those that have left the pool included.

        Raises:
            ArgumentError: the pool given is not the one that was saved.
        """
        if "numbers" in state:
            if self.objects is None or len(self.objects) != state["n_objects"]:
                raise ArgumentError(
                    f"pool: expected the {state['n_objects']} different objects that were saved (all that were ever in "
                    f"the pool, in order of appearance), got {len(self.objects or ())}."
                )
            self._take(state["numbers"], None)
        else:
            columns = state["columns"]
            if self._columns is None or self._columns.names != tuple(columns["names"]):
                raise ArgumentError(f"pool: expected the columns {columns['names']} that were saved, got other ones.")
            arms = self._raw
            self._columns = _Columns(**columns | {"choices": {j: tuple(values) for j, values in columns["choices"]}})
            self.replace(Pool(arms))
        if len(state["closed"]) == len(self.X):
            self._closed = state["closed"]

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


def _empty() -> ArgumentError:
    return ArgumentError("pool: expected at least one arm, got an empty pool.")


def _read_table(arms: Any, known: _Columns | None, *, scale: bool) -> tuple[_Columns, Tensor]:
    """The encoding, grown by categories that a later pool brings, and the raw values (A, d), categories as codes."""
    table, names, choices = _as_table(arms, known)
    if not len(table):
        raise _empty()
    if not table.shape[1]:
        raise ArgumentError("pool: expected at least one column, got none.")
    if known is not None:
        if names != known.names or set(choices) != set(known.choices):
            kinds = [f"{name} (categorical)" if j in choices else name for j, name in enumerate(names)]
            raise ArgumentError(
                f"pool: expected the columns of the first pool, {known.names}, of the same types, got {kinds}."
            )
        return replace(known, choices=choices), table
    low, width = table.new_zeros(table.shape[1]), table.new_ones(table.shape[1])
    if scale:
        low, high = table.min(0).values, table.max(0).values
        width = torch.where(high > low, high - low, 1.0)
        if not bool(torch.isfinite(width).all()):
            raise ArgumentError("pool: a column's range overflows; divide it by its largest value first.")
        for j in choices:
            low[j], width[j] = 0.0, 1.0
    return _Columns(names, low, width, choices), table


def _as_table(arms: Any, known: _Columns | None) -> tuple[Tensor, tuple[str, ...], dict[int, tuple[object, ...]]]:
    """Raw values (A, d), column names and the values of the categorical columns."""
    if not hasattr(arms, "iloc"):
        table = as_points(arms, None, name="pool").detach().clone()
        return table, tuple(f"x{j}" for j in range(table.shape[1])), {}
    names = tuple(str(c) for c in arms.columns)
    if len(set(names)) < len(names):
        raise ArgumentError(f"pool: expected columns with distinct names, got {names}.")
    columns, choices = [np.zeros((len(arms), 0))], {}
    for j, name in enumerate(names):
        series = arms.iloc[:, j]
        missing = series.isna()
        if missing.any():
            row = int(missing.to_numpy().argmax())
            raise ArgumentError(
                f"pool: expected no missing values, got one in column {name!r}, row {row}; drop or impute such rows."
            )
        if series.dtype.kind in "iufb":
            columns.append(series.to_numpy(dtype=np.float64)[:, None])
            continue
        values = known.choices.get(j, ()) if known is not None else ()
        # Values in order of first appearance; a later pool may add some.
        choices[j] = values = tuple(dict.fromkeys([*values, *series.tolist()]))
        place = {v: float(i) for i, v in enumerate(values)}
        columns.append(np.array([place[v] for v in series.tolist()], dtype=np.float64)[:, None])
    return as_points(np.hstack(columns), None, name="pool"), names, choices
