"""Cost of a run, from the optimizer's diagnostics: inducing points, effective dimension, time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bkbopt.analysis.run_data import as_optimizer
from bkbopt.errors import ArgumentError, ArgumentTypeError, NotReadyError
from bkbopt.optimizer import Optimizer
from bkbopt.plots.signatures import picture
from bkbopt.plots.style import BLUE, GREY, ORANGE, axes_of, legend_below, log_ticks, whole_numbers
from bkbopt.spaces.values import as_float

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ask_time", "complexity"]

#: A running median is that of this part of all asks on either side, of `FEWEST` at least.
PART = 20
FEWEST = 4
#: The line has at most twice as many vertices; a picture has fewer columns of pixels.
VERTICES = 1_000


@picture
def complexity(opt: Optimizer, *, ax: "Axes | None" = None) -> "Axes":
    """Inducing points m and effective dimension at each ask, against the number of values.

    The effective dimension is the sum of the leverages of all evaluations; m grows with it, and the cost of a step
    grows with m. Fits of the kernel are visible as jumps. If m stays between four fifths of `max_inducing` and all of
    it, this limit is active: a draw of inducing points fills four fifths, and the rest is for later points.

    Args:
        opt: an optimizer with at least one ask after the start-up design.
        ax: Axes to draw on; None for a new figure.

    Raises:
        ArgumentTypeError: `opt` or `ax` has the wrong type.
        NotReadyError: no ask has used the model yet.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
        >>> opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2 + p["y"], space, n_trials=14, seed=0)
        >>> plots.complexity(opt).get_xlabel()
        'values told'
    """
    used = [d for d in as_optimizer(opt).diagnostics if d.n_inducing is not None and d.effective_dimension is not None]
    if not used:
        raise NotReadyError("opt: expected an ask after the start-up design, got none; continue with ask and tell.")
    ax = axes_of(ax)
    used = list({d.n_values: d for d in used}.values())  # the last ask of each batch
    t = [d.n_values for d in used]
    m: list[Any] = [d.n_inducing for d in used]
    ax.plot(t, m, color=BLUE, linewidth=2, drawstyle="steps-post", label="inducing points m")
    dimension: list[Any] = [d.effective_dimension for d in used]
    ax.plot(t, dimension, color=ORANGE, linestyle="--", linewidth=2, label="effective dimension")
    ax.set(xlabel="values told", ylabel="number", ylim=(0.0, None))
    ax.grid(alpha=0.3)
    whole_numbers(ax, both=True)
    legend_below(ax)
    return ax


@picture
def ask_time(times: Optimizer | Sequence[float], *, ax: "Axes | None" = None) -> "Axes":
    """Wall-clock time of each ask, on a log scale, against the number of values, with a running median.

    The line is the median of neighbouring asks, of which those after the same number of values, as in a batch, count as
    one. The dots far above the line are asks with a fit of the kernel. Fits become rarer: the next one is due when the
    number of trials has grown by a fixed fraction.

    Args:
        times: an optimizer, or a list of seconds, one for each evaluation.
        ax: Axes to draw on; None for a new figure.

    Raises:
        ArgumentTypeError: `times` or `ax` has the wrong type.
        ArgumentError: seconds that are not positive and finite.
        NotReadyError: there was no ask yet.

    Example:
        >>> from bkbopt import plots
        >>> plots.ask_time([0.02, 0.03, 0.02, 0.4, 0.03]).get_yscale()
        'log'
    """
    if isinstance(times, Optimizer):
        t = np.array([d.n_values for d in times.diagnostics], dtype=float)
        seconds = np.array([d.ask_seconds for d in times.diagnostics], dtype=float)
        label, what = "values told", "time of an ask (ms)"
    else:
        seconds = _as_seconds(times)
        t, label, what = np.arange(1.0, len(seconds) + 1.0), "evaluations", "time (ms)"
    if not len(seconds):
        raise NotReadyError("times: expected at least one ask, got none; call ask first.")
    ax = axes_of(ax)
    ms = 1e3 * seconds
    ax.plot(t, ms, ".", color=GREY, markersize=4, alpha=0.6, label="each")
    ax.plot(*_running_median(t, ms), color=BLUE, linewidth=2, label="running median")
    ax.set(xlabel=label, ylabel=what, yscale="log")
    log_ticks(ax.yaxis)
    ax.grid(alpha=0.3)
    whole_numbers(ax)
    legend_below(ax)
    return ax


def _running_median(t: np.ndarray, ms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct t `(n,)`, at most twice `VERTICES`, and medians `(n,)` around them; times of one t count as one."""
    at, counts = np.unique(t, return_counts=True)
    each = ms[np.argsort(t, kind="stable")]
    if counts.max() > 1:
        each = np.array([*map(np.median, np.split(each, np.cumsum(counts)[:-1]))])
    half, shown = max(len(at) // PART, FEWEST), range(0, len(at), max(len(at) // VERTICES, 1))
    # At the ends of those on one side: as many on either side would leave the first and the last ask by themselves.
    return at[shown], np.array([np.median(each[max(i - half, 0) : i + half + 1]) for i in shown])


def _as_seconds(times: Any) -> np.ndarray:
    if isinstance(times, str) or not isinstance(times, Sequence | np.ndarray):
        raise ArgumentTypeError(f"times: expected an optimizer or a list of seconds, got {type(times).__name__}.")
    try:
        seconds = np.asarray([as_float(v) for v in times])
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"times: expected numbers, got {times!r:.80}.") from None
    if not bool((np.isfinite(seconds) & (seconds > 0.0)).all()):
        raise ArgumentError(f"times: expected positive finite seconds, got {times!r:.80}.")
    return seconds
