"""The parameters of a space, or the columns of a pool, as axes of a picture.

| symbol | shape  | units   | meaning                                                                  |
| ------ | ------ | ------- | ------------------------------------------------------------------------ |
| X      | (n, d) | encoded | points                                                                   |
| grid   | (n,)   | user's  | values along a dimension                                                 |
| place  | (n,)   | axis    | where values stand on the axis: numbers as they are, choices by number   |
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from bkbopt.errors import ArgumentError, ArgumentTypeError, NotReadyError
from bkbopt.optimizer import Optimizer
from bkbopt.plots.style import BELOW
from bkbopt.search.box_candidates import BoxDomain
from bkbopt.spaces.space import Categorical

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = [
    "Dimension",
    "dimension_of",
    "dimensions_of",
    "fixed_at",
    "nearness",
    "pair_of",
    "predicted",
    "sampled",
    "shuffled",
    "told",
]

#: Numbers on a grid of up to so many values are drawn one by one.
FEW = 12
#: Logarithmic axes that span less than this factor have more ticks than the powers of ten.
SHORT = 300.0
#: Points predicted at once.
BLOCK = 8192


@dataclass(frozen=True)
class Dimension:
    """One parameter as an axis.

    Attributes:
        name: its name.
        column: its encoded column.
        values: the values along it that pictures look at, in order, user's units.
        choices: of a categorical parameter, else None.
        log: whether the axis is logarithmic.
        is_continuum: whether what lies between the values is allowed, or they are too many to be told apart.
    """

    name: str
    column: int
    values: tuple[Any, ...]
    choices: Categorical | None = None
    log: bool = False
    is_continuum: bool = True

    def place(self, values: Iterable[Any]) -> np.ndarray:
        """Where values stand on the axis, (n,)."""
        locate = float if self.choices is None else self.choices.locate
        return np.array([locate(v) for v in values], dtype=float)

    def edges(self) -> np.ndarray:
        """Bounds of the cells around the values, on the axis, (n + 1,)."""
        at = self.place(self.values)
        at = np.log(at) if self.log else at
        middle = 0.5 * (at[1:] + at[:-1])
        edges = np.concatenate([[1.5 * at[0] - 0.5 * at[1]], middle, [1.5 * at[-1] - 0.5 * at[-2]]])
        return np.exp(edges) if self.log else edges

    def dress(self, ax: "Axes", which: Literal["x", "y"]) -> None:
        """Give an axis the name, the scale, the range and the ticks of this dimension."""
        set_label, set_scale, set_ticks, set_limits = (
            (ax.set_xlabel, ax.set_xscale, ax.set_xticks, ax.set_xlim)
            if which == "x"
            else (ax.set_ylabel, ax.set_yscale, ax.set_yticks, ax.set_ylim)
        )
        set_label(self.name)
        if self.log:
            set_scale("log")
            if self.is_continuum and self.values[-1] / self.values[0] < SHORT:
                _tick_plainly(ax.xaxis if which == "x" else ax.yaxis)
        if self.choices is not None:
            slant: Any = {"rotation": 25, "ha": "right"} if which == "x" and self._is_crowded else {}
            set_ticks(range(len(self.values)), [str(v) for v in self.values], **slant)
        elif not self.is_continuum:
            set_ticks(self.place(self.values), [f"{v:g}" for v in self.values])
            if self.log:
                set_ticks([], minor=True)
        set_limits(*self.limits())

    @property
    def room(self) -> float:
        """Points that its tick labels and its name take below a horizontal axis."""
        longest = max(len(str(v)) for v in self.values)
        return BELOW + (0.42 * 6.0 * longest if self._is_crowded else 0.0)

    @property
    def _is_crowded(self) -> bool:
        """Whether the names of the choices have no room side by side."""
        return self.choices is not None and sum(len(str(v)) + 2 for v in self.values) > 50

    def limits(self) -> tuple[float, float]:
        """Ends of the axis: those of the range, half a step beyond where the values are few."""
        bounds = self.place(self.values) if self.is_continuum else self.edges()
        return float(bounds[0]), float(bounds[-1])


def _tick_plainly(axis: "Axis") -> None:
    """Ticks at 1, 2 and 5 times the powers of ten, written without powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def dimensions_of(opt: Optimizer, n: int = 50) -> list[Dimension]:
    """All dimensions along which something varies, each with at most `n` numbers (choices are never left out).

    Raises:
        ArgumentError: a pool of objects, which have no columns, or nothing varies.
    """
    domain = opt.domain
    if isinstance(domain, BoxDomain):
        found = _box_dimensions(domain, n)
    else:
        columns = domain._columns
        if columns is None:
            raise ArgumentError(
                "opt: expected a space or a pool with columns, got a pool of objects; there is nothing to vary."
            )
        found = []
        for j, name in enumerate(columns.names):
            if j in columns.choices:
                found.append(Dimension(name, j, columns.choices[j], Categorical(columns.choices[j]), False, False))
            else:
                raw = np.unique((domain.X[:, j] * columns.width[j] + columns.low[j]).numpy())
                few = len(raw) <= FEW
                values = raw if few else np.linspace(raw[0], raw[-1], n)
                found.append(Dimension(name, j, tuple(values.tolist()), None, False, not few))
    found = [dimension for dimension in found if len(dimension.values) > 1]
    if not found:
        raise ArgumentError("opt: expected a parameter that varies, but all are fixed.")
    return found


def _box_dimensions(domain: BoxDomain, n: int) -> list[Dimension]:
    found = []
    for j, column in enumerate(domain.space.columns):
        parameter = domain.space.parameters[column.name]
        if isinstance(parameter, Categorical):
            found.append(Dimension(column.name, j, tuple(parameter.choices), parameter, False, False))
            continue
        few = column.n_values is not None and column.n_values <= FEW
        positions = range(column.n_values or 0) if few else np.unique(parameter.scale.nearest(np.linspace(0.0, 1.0, n)))
        values = tuple(parameter.value(position) for position in positions)
        found.append(Dimension(column.name, j, values, None, parameter.log, not few))
    return found


def dimension_of(opt: Optimizer, argument: str, name: str | None, n: int = 50) -> Dimension:
    """The dimension of that name; None stands for the only one there is.

    Raises:
        ArgumentError: there is none of that name that varies, or None and there are several.
    """
    known = {dimension.name: dimension for dimension in dimensions_of(opt, n)}
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name not in known:
        raise ArgumentError(f"{argument}: expected one of the parameters {tuple(known)} that vary, got {name!r}.")
    return known[name]


def pair_of(opt: Optimizer, x: str, y: str, n: int) -> tuple[Dimension, Dimension]:
    """Two different dimensions, with `n` points along a continuum; more where the other's values are few.

    Raises:
        ArgumentError: as `dimension_of`, or both are the same.
    """
    if x == y:
        raise ArgumentError(f"y: expected another parameter than x, got {y!r} twice.")
    pair = dimension_of(opt, "x", x, n), dimension_of(opt, "y", y, n)
    if all(dimension.is_continuum for dimension in pair):
        return pair
    return dimension_of(opt, "x", x, 3 * n), dimension_of(opt, "y", y, 3 * n)


def fixed_at(opt: Optimizer, at: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parameters of the recommendation, with `at` in place of some.

    Raises:
        ArgumentTypeError: `at` is no dict.
        ArgumentError: `at` names a parameter that is not there, or has a value outside of the space.
        NotReadyError: there are no values yet.
    """
    if at is not None and not isinstance(at, Mapping):
        raise ArgumentTypeError(f"at: expected a dict of parameters, got {type(at).__name__}.")
    params = dict(opt.recommend().params)
    unknown = set(at or ()) - set(params)
    if unknown:
        raise ArgumentError(f"at: expected parameters among {tuple(params)}, got {sorted(map(str, unknown))}.")
    params |= dict(at or {})
    opt.domain.encode([params])
    return params


def predicted(opt: Optimizer, X: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and standard deviation of encoded points `X (n, d)`, each (n,), user's units."""
    parts = [opt._predict_encoded(block) for block in X.split(BLOCK)]
    return np.concatenate([mean for mean, _ in parts]), np.concatenate([std for _, std in parts])


def sampled(opt: Optimizer, n: int, seed: int = 0) -> Tensor:
    """`n` points that stand for the whole space, encoded: even in a box, random arms of a pool; `(<= n, d)`."""
    domain = opt.domain
    if isinstance(domain, BoxDomain):
        unit = torch.quasirandom.SobolEngine(domain.dim, scramble=True, seed=seed).draw(n, dtype=torch.float64)
        return domain.space.from_unit(unit)
    rows = np.random.default_rng(seed).permutation(len(domain.X))[:n]
    return domain.X[torch.from_numpy(np.sort(rows))]


def shuffled(opt: Optimizer, n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Two samples `(n, d)` of points whose columns are independent of each other, and of the other sample's."""
    domain = opt.domain
    if isinstance(domain, BoxDomain):
        # One sequence in 2 d dimensions: two of them with different scrambles would be correlated.
        unit = torch.quasirandom.SobolEngine(2 * domain.dim, scramble=True, seed=seed).draw(n, dtype=torch.float64)
        return domain.space.from_unit(unit[:, : domain.dim]), domain.space.from_unit(unit[:, domain.dim :])
    rng = np.random.default_rng(seed)
    A, B = (
        torch.stack([column[torch.from_numpy(rng.integers(len(column), size=n))] for column in domain.X.T], dim=1)
        for _ in range(2)
    )
    return A, B


def nearness(opt: Optimizer, X: Tensor, columns: Sequence[int], params: Mapping[str, Any]) -> np.ndarray:
    """Prior correlation of points `X (n, d)` with their projections on a slice, (n,), from 0 to 1.

    The projection keeps `columns` and takes the rest from `params`. It says how much a point tells about the slice.
    """
    other = opt.domain.encode([params]).expand_as(X).clone()
    other[:, list(columns)] = X[:, list(columns)]
    kernel = opt.surrogate.kernel
    out = []
    with torch.no_grad():
        for A, B in zip(X.split(256), other.split(256), strict=True):
            scale = (kernel.diag(A) * kernel.diag(B)).sqrt()
            out.append((kernel(A, B).diagonal() / scale).clamp(0.0, 1.0).numpy())
    return np.concatenate(out) if out else np.zeros(0)


def told(opt: Optimizer) -> tuple[Tensor, np.ndarray]:
    """Encoded points (n, d) and values (n,), user's units, in the order in which they were told.

    Raises:
        NotReadyError: there are none.
    """
    X, y = opt._log.complete()
    if not len(y):
        raise NotReadyError("opt: expected at least one value, got none; call tell first.")
    return X, y.numpy()
