"""Accuracy over rows: of some learners on streams without and with drift."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.learner_accuracy.models import Model
from benchmarks.learner_accuracy.sets import Stream
from bkbopt.plots.style import SERIES

__all__ = ["draw"]

SHOWN = ("ProsNKONS", "FOGD", "BPAS", "SGDClassifier", "SGD, RBFSampler", "river HoeffdingTree")
STREAMS = ("codrna", "SEA", "blobs")
#: Rows of the window over which accuracy is taken.
WINDOW = 500
#: Markers on a line.
MARKERS = 6


def draw(models: Sequence[Model], streams: Sequence[Stream], path: Path) -> None:
    """Write the picture of those of the models and streams that are shown to the file `path`."""
    from matplotlib.figure import Figure

    chosen = [stream for stream in streams if stream.name in STREAMS] or list(streams[:1])
    figure = Figure(figsize=(3.2 * len(chosen) + 1.6, 3.0), layout="constrained")
    for axes, stream in zip(np.atleast_1d(figure.subplots(1, len(chosen))), chosen, strict=True):
        for model in models:
            if model.name not in SHOWN:
                continue
            series = SERIES[SHOWN.index(model.name)]
            hits = np.cumsum(model.run(stream) == stream.y, dtype=float)
            window = min(WINDOW, len(hits) // 2)
            rows = np.arange(window, len(hits), max(1, window // 5))
            accuracy = 100.0 * (hits[rows] - hits[rows - window]) / window
            every = max(1, len(rows) // MARKERS)
            axes.plot(
                rows,
                accuracy,
                series.line,
                color=series.colour,
                marker=series.marker,
                markevery=every,
                markersize=3.5,
                lw=1.2,
                label=model.name,
            )
        axes.set_title(stream.name, fontsize=9)
        axes.set_xlabel("rows", fontsize=8)
        axes.tick_params(labelsize=7)
    figure.axes[0].set_ylabel(f"accuracy over the last {WINDOW} rows (%)", fontsize=8)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center", fontsize=7, frameon=False)
    figure.savefig(path, dpi=110)
