"""The protocol of a domain, and the user's constraint on the input."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from bkbopt.posterior.model import Model
from bkbopt.posterior.observations import row_keys
from bkbopt.search.acquisition import Acquisition, Thompson

__all__ = ["Domain", "Feasibility", "Params"]

Params = Mapping[str, Any]


class Domain(Protocol):
    """What the optimizer asks of a search space. A point is a row `x (d,)` of encoded columns."""

    @property
    def dim(self) -> int:
        """Number of encoded columns d."""
        ...

    @property
    def categorical(self) -> tuple[int, ...]:
        """Columns that hold category codes."""
        ...

    @property
    def n_arms(self) -> int | None:
        """Number of points, where they are finitely many and listed."""
        ...

    @property
    def is_discrete(self) -> bool:
        """Whether a point can be met twice by chance, so that `duplicates` has a meaning."""
        ...

    @property
    def has_choices(self) -> bool:
        """Whether a column has few values: categories, or a short grid."""
        ...

    def encode(self, params: Sequence[Params]) -> Tensor:
        """Encoded points `(n, d)`; refuses what does not belong to the domain."""
        ...

    def describe(self, x: Tensor, given: Params | None = None) -> tuple[Params, int | None]:
        """The parameters of an encoded point, and its row in the pool (None outside of pools).

        `given` is what the user wrote for it: its digits are kept, and its row is looked at first.
        """
        ...

    def block(self, x: Tensor) -> None:
        """Never propose this point again."""
        ...

    def startup(self, rng: np.random.Generator, pending: Tensor) -> Tensor:
        """The next point `(d,)` of the initial design, none of `pending (p, d)` while there are others."""
        ...

    def suggest(
        self, model: Model, acquisition: Acquisition | Thompson, good: Tensor, rng: np.random.Generator, pending: Tensor
    ) -> Tensor:
        """The point `(d,)` that maximises the acquisition, none of `pending (p, d)` while there are others.

        `good (k, d)` are the best known points.
        """
        ...

    def state_dict(self) -> dict[str, object]:
        """For a state file."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of `state_dict`, on a domain of the same space or pool."""
        ...


class Feasibility:
    """A user's `feasible(params) -> bool`, asked once a point."""

    def __init__(
        self, feasible: Callable[[Params], bool] | None, describe: Callable[[Tensor], tuple[Params, int | None]]
    ) -> None:
        self._feasible = feasible
        self._describe = describe
        self._known: dict[bytes, bool] = {}

    def __call__(self, x: Tensor) -> bool:
        """Whether the encoded point `x (d,)` may be evaluated."""
        if self._feasible is None:
            return True
        key = row_keys(x[None])[0]
        if key not in self._known:
            self._known[key] = bool(self._feasible(dict(self._describe(x)[0])))
        return self._known[key]
