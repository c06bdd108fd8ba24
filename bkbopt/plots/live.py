"""A picture of a run in progress, updated in place in a notebook."""

import functools
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bkbopt._support.checks import check_number
from bkbopt.analysis.run_data import values_of
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer import Optimizer
from bkbopt.optimizer.log.trials import Trial
from bkbopt.plots.front import pareto
from bkbopt.plots.progress import draw_progress
from bkbopt.plots.runs import convergence
from bkbopt.plots.style import names_of_values, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["LivePlot"]

#: Largest fraction of the time spent on pictures.
SHARE = 0.1


class LivePlot:
    """Draws a run in progress: a callback of `bo.minimize` that updates its picture in place in a notebook.

    With one objective it shows the values, the best of them so far and the recommended point; with two the Pareto
    front; with more the best value so far of each. It draws at most once in `every` seconds, less often if pictures
    would take more than a tenth of the time, and once more at the end, so that the last picture shows the whole run. A
    picture takes about 0.1 s, plus a fit of the model if no ask has made one yet. It does not change the suggestions.
    The picture is below the cell that drew it first: make a new `LivePlot` for each run.

    Outside of a notebook a picture cannot be updated in place, so `LivePlot` is refused before anything is evaluated;
    with `show` it works everywhere.

    Args:
        every: least number of seconds between the starts of two pictures.
        draw: a function from an optimizer with at least one value to a matplotlib figure or its Axes, such as
            `plots.overview`.
        show: called with each picture instead of showing it: `lambda figure: figure.savefig("run.png")`.
        value_names: label of the value, with its unit; for several objectives a list with one for each. A function
            `draw` names its values itself.

    Raises:
        ArgumentError: outside of a notebook and without `show`, `every` is negative, or names beside `draw`; at the
            first picture, not one name for each objective.
        ArgumentTypeError: `draw` or `show` is no callable, what `draw` returns is neither figure nor Axes, or
            `value_names` is no text and no list of texts.
        MissingPackageError: matplotlib is not installed.

    Example:
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> figures = []
        >>> live = plots.LivePlot(show=figures.append)  # in a notebook without show
        >>> opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2, {"x": (0.0, 1.0)}, n_trials=12, callbacks=live, seed=0)
        >>> figures[-1].axes[0].get_xlabel()
        'evaluations'
    """

    def __init__(
        self,
        *,
        every: float = 1.0,
        draw: "Callable[[Optimizer], Figure | Axes] | None" = None,
        show: "Callable[[Figure], object] | None" = None,
        value_names: str | Sequence[str] | None = None,
    ) -> None:
        self.every = check_number("every", every, 0.0, "a number of seconds >= 0")
        for name, given in (("draw", draw), ("show", show)):
            if given is not None and not callable(given):
                raise ArgumentTypeError(f"{name}: expected a callable or None, got {type(given).__name__}.")
        # Their number is known at the first picture.
        names_of_values(value_names, len(value_names) if isinstance(value_names, Sequence | np.ndarray) else 1)
        if draw is not None and value_names is not None:
            raise ArgumentError(
                f"value_names: expected none beside draw, which names values itself, got {value_names!r}; name them in "
                "the function."
            )
        new_figure(1.0, 1.0)  # raises now if matplotlib is missing
        self._draw = functools.partial(_picture, value_names=value_names) if draw is None else draw
        self._show = _InPlace() if show is None else show
        self._next = -np.inf
        self._drawn = (0, 0)

    def __call__(self, optimizer: Optimizer, trial: Trial) -> None:
        """Draw the optimizer if `every` and the share of time allow it."""
        if time.monotonic() >= self._next:
            self.finish(optimizer)

    def finish(self, optimizer: Optimizer) -> None:
        """Draw the optimizer once more, if it has a feasible value that has not been drawn."""
        valued = [trial for trial in optimizer.trials if trial.values]
        drawn = (id(optimizer), len(valued))
        if drawn == self._drawn or not any(trial.is_feasible for trial in valued):
            return
        start = time.monotonic()
        self._show(_figure_of(self._draw(optimizer)))
        end = time.monotonic()
        is_first = self._drawn == (0, 0)  # it takes longer, since matplotlib is loaded
        self._next = max(start + self.every, end if is_first else end + (end - start) * (1.0 / SHARE - 1.0))
        self._drawn = drawn


def _figure_of(drawn: Any) -> "Figure":
    """The figure that a function has drawn, or that of the Axes on which it has drawn."""
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    figure = drawn.get_figure(root=True) if isinstance(drawn, Axes) else drawn
    if not isinstance(figure, Figure):
        raise ArgumentTypeError(
            f"draw: expected a function that returns a figure or Axes, got {type(drawn).__name__} from it; return the "
            "figure."
        )
    return figure


class _InPlace:
    """A display of a notebook that is updated."""

    def __init__(self) -> None:
        shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None  # a notebook has loaded it
        if getattr(shell, "kernel", None) is None:
            raise ArgumentError(
                "LivePlot: expected a notebook, which shows pictures in place, got none. Pass show=, as in "
                'LivePlot(show=lambda figure: figure.savefig("run.png")), use show_progress_bar=True, or follow a run '
                "with a storage by `bkbopt watch`."
            )
        self._handle: Any = None

    def __call__(self, figure: "Figure") -> None:
        """Show the figure in place of the last one."""
        if self._handle is None:
            from IPython.display import display

            self._handle = display(figure, display_id=True)
        else:
            self._handle.update(figure)


def _picture(opt: Optimizer, value_names: str | Sequence[str] | None) -> "Figure":
    """The picture for this number of objectives."""
    k = len(opt.directions)
    names = names_of_values(value_names, k, opt.objectives)
    figure = new_figure(6.4 if k <= 2 else 3.6 * k, 4.2)
    if k == 1:
        draw_progress(opt, ax=figure.add_subplot(), with_recommended=False, value_name=names[0])
    elif k == 2:
        pareto(opt, ax=figure.add_subplot(), value_names=names)
    else:
        axes = figure.subplots(1, k)
        for j, direction in enumerate(opt.directions):
            convergence(values_of(opt, j), ax=axes[j], direction=direction, value_name=names[j])
    return figure
