"""Plot of the Pareto front of two objectives."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from bkbopt._support.showing import shortened
from bkbopt.analysis.run_data import as_optimizer, bounded, is_modelled, penalised
from bkbopt.errors import ArgumentError
from bkbopt.optimizer import Optimizer
from bkbopt.optimizer.log.trials import Trial
from bkbopt.plots.progress import reach_of
from bkbopt.plots.signatures import picture
from bkbopt.plots.style import BLUE, GREY, LONGEST_LABEL, ORANGE, axes_of, ink, legend_below, names_of_values
from bkbopt.search.trials.directions import sign_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["pairs_of", "pareto"]

#: Most objectives all pairs of which are drawn.
PAIRED = 4
#: Share of an axis below which a standard deviation cannot be seen.
TINY = 0.005
#: Axis, 0 or 1, and side of a trial that is beyond the axes -> a triangle that points there.
TRIANGLES = {(0, 1.0): ">", (0, -1.0): "<", (1, 1.0): "^", (1, -1.0): "v"}


@picture
def pareto(
    opt: Optimizer,
    *,
    ax: "Axes | None" = None,
    objectives: tuple[int | str, int | str] | None = None,
    with_recommended: bool = True,
    value_names: str | Sequence[str] | None = None,
) -> "Axes":
    """The values told of two objectives, with the Pareto front: the feasible trials that no other one dominates.

    The line bounds the region that the front dominates. With noise the front is biased by selection, as a best value
    is. Trials far from the front are triangles at the edge. With more than two objectives the picture shows two of
    them, and the front of all as dots without a line: its trials may look dominated, if they are better in an objective
    that is not shown.

    Args:
        opt: an optimizer with at least two objectives and one feasible trial with values.
        ax: Axes to draw on; None for a new figure.
        objectives: numbers or names of the two objectives, of the horizontal axis first; None if there are two.
        with_recommended: whether to draw the posterior means of `recommend_front`, with their standard deviations,
            where models are used and values have noise.
        value_names: names of the values, with their units: a list with one for each objective, also of those that are
            not drawn. None for the names of the objectives, or their numbers.

    Raises:
        ArgumentTypeError: `opt` or `ax` has the wrong type, or `value_names` is no text and no list of texts.
        ArgumentError: one objective, or more than two and `objectives` is no pair of different ones among them; not one
            name for each objective.
        NotReadyError: there is no feasible trial with values yet.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> opt = bo.Optimizer({"x": (0.0, 1.0)}, directions=["minimize", "maximize"], seed=0)
        >>> told = opt.tell([{"x": 0.1}, {"x": 0.4}, {"x": 0.9}], [[1.0, 2.0], [2.0, 3.0], [3.0, 1.0]])
        >>> plots.pareto(opt, value_names=("cost", "yield")).get_ylabel()
        'yield (maximize)'
    """
    opt = as_optimizer(opt)
    across, up = _pair(opt, objectives)
    named = names_of_values(value_names, len(opt.directions), opt.objectives)
    front = opt.best_trials
    aside = {trial.id for trial in front} | penalised(opt)
    others = [trial for trial in opt.trials if trial.values and trial.id not in aside]
    ax = axes_of(ax)
    x, y = _places(front, across, up)
    means, stds = _recommended(opt, (across, up)) if with_recommended else (np.empty((2, 0)), np.empty((2, 0)))
    _draw_others(ax, opt, np.array([x, y]), means, others, (across, up))
    order = np.argsort(x, kind="stable")
    # Between two trials the front has the second value of the one that is better in the first objective.
    steps: Any = "steps-post" if opt.directions[across] == "minimize" else "steps-pre"
    k = len(opt.directions)
    line, label = ("o-", "Pareto front") if k == 2 else ("o", f"Pareto front of all {k} objectives")
    ax.plot(x[order], y[order], line, color=BLUE, drawstyle=steps, linewidth=2, markersize=6, label=label)
    _draw_recommended(ax, means, stds)
    names = shortened((named[across], named[up]), LONGEST_LABEL - len(" (minimize)"))
    ax.set_xlabel(f"{names[0]} ({opt.directions[across]})", parse_math=False)
    ax.set_ylabel(f"{names[1]} ({opt.directions[up]})", parse_math=False)
    ax.grid(alpha=0.3)
    legend_below(ax, ncols=3)
    return ax


def _recommended(opt: Optimizer, objectives: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means and standard deviations of the recommended front, (2, m) each."""
    points = opt.recommend_front() if is_modelled(opt) else []
    means, stds = ([[getattr(point, of)[j] for point in points] for j in objectives] for of in ("means", "stds"))
    return bounded(means), bounded(stds)


def _draw_recommended(ax: "Axes", means: np.ndarray, stds: np.ndarray) -> None:
    """Draw means with one standard deviation to each side, unless there are none or the deviations are tiny."""
    limits = ax.axis()
    sizes = np.array([[limits[1] - limits[0]], [limits[3] - limits[2]]])
    if np.any(stds >= TINY * sizes):
        look: Any = {"fmt": "D", "color": ink(), "markerfacecolor": "none", "markersize": 5, "zorder": 4}
        ax.errorbar(means[0], means[1], stds[1], stds[0], elinewidth=1, label="recommended (mean and sd)", **look)
        ax.axis(limits)  # wide bars are cut


def _draw_others(
    ax: "Axes",
    opt: Optimizer,
    front: np.ndarray,
    means: np.ndarray,
    trials: Sequence[Trial],
    objectives: tuple[int, int],
) -> None:
    """Draw trials that are not on the front, whose values are `front (2, n)`; far ones are triangles at the edge.

    The axes have room for most of the `means (2, m)` of recommended points, too.
    """
    values, feasible = _places(trials, *objectives), np.array([t.is_feasible for t in trials], dtype=np.bool_)
    limits = np.array(
        [
            _limits(front[i], values[i], feasible, means[i], sign_of(opt.directions[objective]))
            for i, objective in enumerate(objectives)
        ]
    )
    low, high = limits[:, :1], limits[:, 1:]
    away = np.sign(values - np.clip(values, low, high))
    beyond = np.any(away != 0.0, axis=0)
    if beyond.any() or means.size:
        margin = 0.04 * (high - low)
        low, high = low - margin, high + margin
        ax.set(xlim=(low[0, 0], high[0, 0]), ylim=(low[1, 0], high[1, 0]))
    look: Any = {"s": 20, "zorder": 2}
    for kind, marker, colour, label in ((~feasible, "x", ORANGE, "infeasible"), (feasible, "o", GREY, "dominated")):
        if (kind & ~beyond).any():
            x, y = values[:, kind & ~beyond]
            ax.scatter(x, y, marker=marker, color=colour, label=label, **look)
        for (i, side), triangle in TRIANGLES.items():
            # In a corner a triangle points up or down.
            rows = kind & (away[i] == side) & ((away[1] == 0.0) | (i == 1))
            if rows.any():
                x, y = np.where(away == 0.0, values, np.where(away > 0.0, high, low))[:, rows]
                ax.scatter(x, y, marker=triangle, color=colour, clip_on=False, s=30, zorder=3)
    if beyond.any():
        name = "beyond the axes" if feasible[beyond].any() else "infeasible, beyond the axes"
        ax.scatter([], [], marker="^", color=GREY if feasible[beyond].any() else ORANGE, label=name, **look)


def _limits(
    front: np.ndarray, others: np.ndarray, feasible: np.ndarray, means: np.ndarray, sign: float
) -> tuple[float, float]:
    """Limits of an axis: of the front `(n,)`, and of most of the `others (m,)`, some `feasible`, and of the `means`."""
    best = (sign * front).max()
    distances = best - sign * np.concatenate([front, others[feasible]])
    reach = max(reach_of(distances), float(np.ptp(front))) or np.inf
    near = means[np.abs(best - sign * means) <= 2.0 * reach]
    shown = np.concatenate([front, near, sign * np.clip(sign * others, best - reach, best + reach)])
    pad = 0.0 if np.ptp(shown) else max(1.0, 0.1 * abs(best))  # if all values are equal
    return float(shown.min()) - pad, float(shown.max()) + pad


def pairs_of(k: int) -> list[tuple[int, int]]:
    """The pairs of `k` objectives that are drawn where no pair is asked for: of many those with the first one."""
    return [*combinations(range(k), 2)] if k <= PAIRED else [(0, j) for j in range(1, k)]


def _pair(opt: Optimizer, objectives: tuple[int | str, int | str] | None) -> tuple[int, int]:
    """The numbers of the two objectives to draw."""
    k = len(opt.directions)
    if k < 2 or (k > 2 and objectives is None):
        raise ArgumentError(
            f"opt: expected an optimizer with two objectives{' or `objectives=` with two of them' * (k > 2)}, got {k}."
        )
    given: Any = (0, 1) if objectives is None else objectives
    pair = tuple(given) if isinstance(given, Iterable) else ()
    pair = tuple(opt.objectives.index(one) if one in opt.objectives else one for one in pair)
    if len(pair) != 2 or pair[0] == pair[1] or not all(number in range(k) for number in pair):
        names = f", or names among {opt.objectives}" if opt.objectives else ""
        raise ArgumentError(f"objectives: expected two different numbers from 0 to {k - 1}{names}, got {objectives!r}.")
    return int(pair[0]), int(pair[1])


def _places(trials: Sequence[Trial], across: int, up: int) -> np.ndarray:
    """Two values of trials, (2, n)."""
    return bounded([(trial.values[across], trial.values[up]) for trial in trials]).reshape(-1, 2).T
