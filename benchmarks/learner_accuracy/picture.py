"""Accuracy over rows: of some learners on streams without and with drift."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.learner_accuracy.models import Model
from benchmarks.learner_accuracy.sets import Stream

__all__ = ["draw"]

SHOWN = ("ProsNKONS", "FOGD", "BPAS", "SGDClassifier", "SGD, RBFSampler", "river HoeffdingTree")
STREAMS = ("codrna", "SEA", "blobs")
#: Rows of the window over which accuracy is taken.
WINDOW = 500


def draw(models: Sequence[Model], streams: Sequence[Stream], path: Path) -> None:
    """Write the picture of those of the models and streams that are shown to the file `path`."""
    from matplotlib.figure import Figure

    chosen = [stream for stream in streams if stream.name in STREAMS] or list(streams[:1])
    figure = Figure(figsize=(3.2 * len(chosen) + 1.6, 3.0), layout="constrained")
    for axes, stream in zip(np.atleast_1d(figure.subplots(1, len(chosen))), chosen, strict=True):
        for model in models:
            if model.name not in SHOWN:
                continue
            hits = np.cumsum(model.run(stream) == stream.y, dtype=float)
            window = min(WINDOW, len(hits) // 2)
            rows = np.arange(window, len(hits), max(1, window // 5))
            style = "-" if "SGD" not in model.name and "river" not in model.name else "--"
            axes.plot(rows, 100.0 * (hits[rows] - hits[rows - window]) / window, style, lw=1.2, label=model.name)
        axes.set_title(stream.name, fontsize=9)
        axes.set_xlabel("rows", fontsize=8)
        axes.tick_params(labelsize=7)
    figure.axes[0].set_ylabel(f"% right of the last {WINDOW}", fontsize=8)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center", fontsize=7, frameon=False)
    figure.savefig(path, dpi=110)
