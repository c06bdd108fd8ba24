"""How well online learners predict streams, by their defaults, beside those of scikit-learn and river.

Run it as `python -m benchmarks.learner_accuracy`. Each row is predicted and then learnt, once, in the order of the
stream: real tables are shuffled, river's streams are as they come. Nothing is tuned. The tables have the percentage of
labels that were right, and for numbers 100 R^2 of all predictions against the mean of all targets; below zero is worse
than that mean, and values below -100 are shown as "<-100". The last column is the median over the streams of rows a
second of processor time of one thread, compilation not included.

A star stands where a learner's rounds grow with the stream, so that it got the first 2,000 rows of longer ones only:
its figures are not those of the same rows. `--paper` shows ours with the papers' parameters, which were the defaults
once: lengthscale 1, columns as they are. `--picture` draws accuracy over rows.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.arguments import Arguments
from benchmarks.learner_accuracy.defaults import OF_CLASSES, OF_NUMBERS, lengthscales, several
from benchmarks.learner_accuracy.models import (
    Model,
    models_of_classes,
    models_of_numbers,
    others_of_classes,
    others_of_numbers,
)
from benchmarks.learner_accuracy.picture import draw
from benchmarks.learner_accuracy.sets import CLASSES, NUMBERS, Stream, load, right
from benchmarks.report import DATA, Clock, measuring, print_table
from bkbopt.errors import ArgumentError

__all__ = ["main", "measured", "right"]


def measured(model: Model, stream: Stream, skip: int = 0) -> tuple[float | None, float, bool]:
    """Accuracy after `skip` rows (None: there are none, or the learner refuses them), rows a second, whether cut."""
    cut = model.rows is not None and len(stream.y) > model.rows
    used = Stream(stream.name, stream.X[: model.rows], stream.y[: model.rows])
    if len(used.y) <= skip:
        return None, np.nan, cut
    clock = Clock()
    try:
        model.run(Stream("compiles", used.X[:300], used.y[:300]))
        with clock:
            p = model.run(used)
    except ArgumentError:
        return None, np.nan, cut
    return right(Stream(stream.name, used.X[skip:], used.y[skip:]), p[skip:]), len(used.y) / clock.cpu, cut


def _cell(score: float | None, cut: bool) -> str:
    if score is None:
        return "-"
    text = "<-100" if not score >= -100.0 else f"{score:.1f}"
    return text + ("*" if cut else "")


def _table(title: str, models: Sequence[Model], streams: Sequence[Stream], skip: int, note: str) -> None:
    rows = []
    for model in models:
        cells = [measured(model, stream, skip) for stream in streams]
        if all(score is None for score, _, _ in cells):
            continue
        speed = float(np.nanmedian([rate for _, rate, _ in cells]))
        rows.append((model.name, *(_cell(score, cut) for score, _, cut in cells), f"{speed:,.0f}"))
    print_table(title, ("", *(stream.name for stream in streams), "rows/s"), rows, note)


def _commonest(streams: Sequence[Stream]) -> str:
    shares = [100.0 * max(np.mean(s.y == label) for label in np.unique(s.y)) for s in streams]
    return "The commonest label: " + ", ".join(f"{s.name} {v:.1f}" for s, v in zip(streams, shares, strict=True)) + "."


def _sizes(streams: Sequence[Stream]) -> str:
    return "Rows and columns: " + ", ".join(f"{s.name} {len(s.y):,} x {s.X.shape[1]}" for s in streams) + "."


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = Arguments(__doc__)
    parser.add_argument("--data", type=Path, help=f"folder of the data sets (default: {DATA}, if it is there)")
    parser.option("--rows", 10_000, quick=500, help="rows of a stream at most")
    parser.option("--skip", 0, help="rows at the beginning of a stream that are learnt and do not count")
    parser.option("--streams", (*CLASSES, *NUMBERS), choices=(*CLASSES, *NUMBERS), help="what to predict")
    parser.add_argument("--paper", action="store_true", help="ours only, with the papers' parameters")
    parser.add_argument("--own", action="store_true", help="ours only")
    parser.add_argument("--picture", type=Path, help="draw accuracy over rows into this file, and no tables")
    parser.add_argument("--lengthscales", action="store_true", help="ours by lengthscale, see `defaults.py`; no others")
    parser.add_argument("--several", action="store_true", help="what further classes cost, see `defaults.py`")
    options = parser.parse_args(arguments)
    folder = options.data or (DATA if DATA.is_dir() else None)
    rows, skip, wanted = options.rows, options.skip, options.streams
    classes = load({name: read for name, read in CLASSES.items() if name in wanted}, folder, rows, skip)
    numbers = load({name: read for name, read in NUMBERS.items() if name in wanted}, folder, rows, skip)
    with measuring(1), warnings.catch_warnings():
        # Of models that diverge, whose figures say it.
        warnings.simplefilter("ignore")
        if options.picture:
            draw([*models_of_classes(), *others_of_classes()], classes, options.picture)
            return
        if options.lengthscales:
            lengthscales("Labels, % right, mean over the streams", classes, OF_CLASSES)
            lengthscales("Numbers, 100 R^2, mean over the streams", numbers, OF_NUMBERS)
            return
        if options.several:
            several(rows)
            return
        how = "with the papers' parameters" if options.paper else "by default"
        alone = options.paper or options.own
        if classes:
            models = [*models_of_classes(paper=options.paper), *([] if alone else others_of_classes())]
            _table(f"Labels, % right, {how}", models, classes, skip, f"{_commonest(classes)}\n  {_sizes(classes)}")
        if numbers:
            models = [*models_of_numbers(paper=options.paper), *([] if alone else others_of_numbers())]
            _table(f"Numbers, 100 R^2, {how}", models, numbers, skip, _sizes(numbers))


if __name__ == "__main__":
    main()
