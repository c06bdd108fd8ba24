"""A picture of a run while it goes on, which a notebook shows in place."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bkbopt._support.arrays import check_number
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer import Optimizer
from bkbopt.optimizer.trials import Trial
from bkbopt.plots.front import pareto
from bkbopt.plots.progress import draw_progress
from bkbopt.plots.readings import values_of
from bkbopt.plots.runs import convergence
from bkbopt.plots.style import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LivePlot"]

#: Largest share of the time that pictures take.
SHARE = 0.1


class LivePlot:
    """Draws a run as it goes on: a callback of `bo.minimize` whose picture a notebook replaces in place.

    With one objective it shows the values, the best of them so far and the recommended point; with two the Pareto
    front; with more the best value so far of each. It draws at most once in `every` seconds, less often where pictures
    would take more than a tenth of the time, and once more when the run is over, so that the last picture is of the
    whole run. A picture takes about 0.1 s, and the fit of the model where no ask has needed it yet. What is asked next
    does not depend on it. The place is below the cell of the first picture: make a new one for each run.

    Outside of a notebook there is no place where a picture could be replaced, and it is refused before anything is
    evaluated; with `show` it works everywhere.

    Args:
        every: seconds between the beginnings of two pictures, at least.
        draw: a picture of yours, from an optimizer with at least one value to a matplotlib figure: `plots.overview`.
        show: what is done with each picture in place of showing it: `lambda figure: figure.savefig("run.png")`.

    Raises:
        ArgumentError: outside of a notebook and without `show`, or `every` is negative.
        ArgumentTypeError: `draw` or `show` is no callable.
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
        draw: "Callable[[Optimizer], Figure] | None" = None,
        show: "Callable[[Figure], object] | None" = None,
    ) -> None:
        self.every = check_number("every", every, 0.0, "a number of seconds >= 0")
        for name, given in (("draw", draw), ("show", show)):
            if given is not None and not callable(given):
                raise ArgumentTypeError(f"{name}: expected a callable or None, got {type(given).__name__}.")
        new_figure(1.0, 1.0)  # without matplotlib this is the time to say so
        self._draw = _picture if draw is None else draw
        self._show = _InPlace() if show is None else show
        self._next = -np.inf
        self._drawn = (0, 0)

    def __call__(self, optimizer: Optimizer, trial: Trial) -> None:
        """Draw the optimizer, if it is time to."""
        if time.monotonic() >= self._next:
            self.finish(optimizer)

    def finish(self, optimizer: Optimizer) -> None:
        """Draw the optimizer as it is now, where it has a feasible value that was not drawn yet."""
        valued = [trial for trial in optimizer.trials if trial.values]
        drawn = (id(optimizer), len(valued))
        if drawn == self._drawn or not any(trial.is_feasible for trial in valued):
            return
        start = time.monotonic()
        self._show(self._draw(optimizer))
        end = time.monotonic()
        is_first = self._drawn == (0, 0)  # it takes longer, as matplotlib is loaded
        self._next = max(start + self.every, end if is_first else end + (end - start) * (1.0 / SHARE - 1.0))
        self._drawn = drawn


class _InPlace:
    """A place in a notebook."""

    def __init__(self) -> None:
        shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None  # a notebook has loaded it
        if getattr(shell, "kernel", None) is None:
            raise ArgumentError(
                "LivePlot: expected a notebook, which shows pictures in place, and this is none. Pass show=, as in "
                'LivePlot(show=lambda figure: figure.savefig("run.png")), use show_progress_bar=True, or follow a run '
                "with a storage by `bkbopt watch`."
            )
        self._handle: Any = None

    def __call__(self, figure: "Figure") -> None:
        """Show the figure where the last one was."""
        if self._handle is None:
            from IPython.display import display

            self._handle = display(figure, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(figure)


def _picture(opt: Optimizer) -> "Figure":
    """The picture that fits to the objectives."""
    k = len(opt.directions)
    figure = new_figure(6.4 if k <= 2 else 3.6 * k, 4.2)
    if k == 1:
        draw_progress(opt, figure.add_subplot())
    elif k == 2:
        pareto(opt, figure.add_subplot())
    else:
        axes = figure.subplots(1, k)
        for j, direction in enumerate(opt.directions):
            convergence(values_of(opt, j), axes[j], direction=direction, value_name=f"value {j}")
    return figure
