"""A run as one HTML file: result, progress, model, all trials, options and versions."""

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bkbopt import __version__
from bkbopt._support.replacing import as_path, replace_atomically
from bkbopt._support.settings import in_usual_settings
from bkbopt._support.showing import with_deviation
from bkbopt.analysis.coordinates import coordinates_of, has_dimensions
from bkbopt.analysis.run_data import as_optimizer, is_modelled, n_values, values_of
from bkbopt.errors import ArgumentError, ArgumentTypeError, BkbError
from bkbopt.optimizer import Optimizer
from bkbopt.optimizer.log.trials import Trial
from bkbopt.plots import tables
from bkbopt.plots.arms import pool_ucb
from bkbopt.plots.cost import ask_time, complexity
from bkbopt.plots.coverage import calibration
from bkbopt.plots.front import pairs_of, pareto
from bkbopt.plots.page import Html, Section, element, page, picture
from bkbopt.plots.posterior import posterior_contour, posterior_slice
from bkbopt.plots.progress import draw_progress
from bkbopt.plots.reported import Run
from bkbopt.plots.runs import convergence
from bkbopt.plots.sensitivity import draw_shares
from bkbopt.plots.style import names_of_values, new_figure
from bkbopt.search.trials.reports import Recommendation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["report"]

#: Inches of a picture: on a phone its letters are ten pixels high.
WIDTH, HEIGHT = 5.0, 4.2
#: Most parameters along which the posterior is drawn.
SLICES = 6
#: Most parameters whose importance is drawn.
BARS = 20
#: Number of values above which calibration has fewer folds, each of which learns most values again.
MANY = 1000
#: Most trials of the front that are listed above the table of all trials.
FRONT = 50


@in_usual_settings
def report(
    opt: Optimizer,
    path: str | os.PathLike[str],
    *,
    title: str = "Report of a run",
    value_names: str | Sequence[str] | None = None,
) -> None:
    """Write a run as a page of HTML: one file that needs no network, for large and small screens, light and dark.

    It has the result, the values with the best and the recommended one over the trials, importances and slices of the
    posterior, its calibration, the Pareto front of several objectives, the time of the asks, all trials in a table that
    can be sorted and searched, the space, the options, and versions. Slices, importances and calibration are for a
    single objective, after the start-up design. Text of the log is escaped, and the page allows only its own script.
    Trials that are running or queued are in the table too.

    Calibration learns the values again for each of its folds.

    Args:
        opt: an optimizer with any number of trials.
        path: of the file; an existing file is replaced in a single step.
        title: of the page.
        value_names: name of the value, with its unit; for several objectives a list with one for each. None for the
            names of the objectives.

    Raises:
        ArgumentTypeError: `opt` is not an optimizer, `path` is no path, or a name is not a string.
        ArgumentError: not one name for each objective, or the path is that of the log.
        MissingPackageError: matplotlib is not installed.
        OSError: the system refuses the file; an existing file is unchanged.

    Example:
        >>> import os, tempfile
        >>> import bkbopt as bo
        >>> from bkbopt import plots
        >>> opt = bo.minimize(lambda p: (p["x"] - 0.3) ** 2, {"x": (0.0, 1.0)}, n_trials=12, seed=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "run.html")
        ...     plots.report(opt, path, value_names=["loss"])
        ...     os.path.getsize(path) < 500_000
        True
    """
    opt, k = as_optimizer(opt), len(opt.directions)
    names = names_of_values(value_names, k, opt.objectives)
    if not isinstance(title, str):
        raise ArgumentTypeError(f"title: expected a text, got {title!r}.")
    target = as_path(path)
    if opt.storage is not None and os.path.realpath(target) == opt.storage:
        raise ArgumentError(f"path: expected another file than that of the log, got {target!r}.")
    run = Run(opt, opt.trials, names)
    parts: dict[str, Callable[[Run], list[Html]]] = {
        "Result": _result,
        "Progress": _progress,
        "Pareto front": _front,
        "Parameters": _parameters,
        "Model": _model,
        "Trials": _trials,
        "Set-up": _setup,
    }
    contents = {name: part(run) for name, part in parts.items()}
    sections = [Section(name, content) for name, content in contents.items() if content]
    made = f"Made {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by bkbopt {__version__}."
    text = page(title, run.lead, sections, made)
    replace_atomically(target, lambda file: file.write(text.encode()))


# -- pieces ------------------------------------------------------------------------------------------------------------


def _drawn(draw: Callable[["Axes"], object], alt: str, caption: str, height: float = HEIGHT) -> Html:
    """A picture, `height` inches high, or the reason why it cannot be drawn."""
    figure = new_figure(WIDTH, height)
    try:
        draw(figure.add_subplot())
    except BkbError as error:
        return element("p", f"Not drawn ({caption.partition('.')[0]}): {error}")
    return picture(figure, alt, caption)


def _grid(*pictures: Html) -> list[Html]:
    return [element("div", *pictures, class_="pictures")] if pictures else []


def _card(heading: str, big: str, *facts: tuple[str, object]) -> Html:
    terms = (part for name, value in facts for part in (element("dt", name), element("dd", tables.cell(value))))
    return element("div", element("h3", heading), element("p", big, class_="big"), element("dl", *terms), class_="card")


# -- parts -------------------------------------------------------------------------------------------------------------


def _result(run: Run) -> list[Html]:
    out = [element("div", *cards, class_="cards")] if (cards := _cards(run)) else []
    out += [element("p", text) for text in _remarks(run)]
    return out + ([tables.constraints_table(run.opt, run.trials)] if run.opt.constraints else [])


def _cards(run: Run) -> list[Html]:
    """The recommended point, the best observed value, and the model, as far as they exist."""
    opt, cards = run.opt, []
    if run.has_model:
        choice = opt.recommend()
        big = with_deviation(choice.mean, choice.std)
        feasible = [] if choice.feasibility is None else [("probability feasible", f"{choice.feasibility:.2g}")]
        cards.append(_card("Recommended (mean and sd)", big, *feasible, *_row(choice), *choice.params.items()))
    if run.front and run.is_single:
        best = opt.best_trial
        facts = *best.constraints.items(), *_row(best), *best.params.items()
        cards.append(_card(f"Best value told, trial {best.id}", f"{best.values[0]:.6g}", *facts))
    if run.has_model:
        surrogate, noise, beta = opt.surrogate, ("noise sd", opt.noise_std), ("beta", opt.beta)
        size = "inducing points", len(surrogate.inducing)
        cards.append(_card("Model", type(surrogate).__name__, noise, size, beta))
    return cards


def _row(point: Trial | Recommendation) -> list[tuple[str, object]]:
    """What names the row of a pool, in words."""
    return [(words, getattr(point, own)) for words, own in tables.row_words([point]).items()]


def _remarks(run: Run) -> Iterator[str]:
    n = max(run.opt.n_startup_values, 2)
    if run.lost:
        yield (
            "Lost trials ended for a reason that is not their point: they were interrupted, or their process died. The "
            "search learns nothing from them."
        )
    if not run.valued:
        yield "There are no values yet; pictures are drawn once there are."
    elif not run.front:
        yield "No trial was feasible so far."
    elif not run.is_single:
        advice = " With noise their values are biased by selection; use the recommended points."
        yield _front_in_words(run) + (advice if is_modelled(run.opt) else "")
    if run.has_model:
        if run.front:
            yield "With noise the best observed value is biased by selection; use the recommended point."
    elif run.is_single:
        yield f"There is no model yet: it is used after {n} values, and there are {n_values(run.opt)}."


def _progress(run: Run) -> list[Html]:
    if not run.valued:
        return []
    if not run.is_single:
        return _grid(*(_best_of(run, j) for j in range(len(run.names))), *_times(run))
    values = [trial.values[0] for trial in run.valued]
    alt = f"{len(values)} values in order of completion; {_best(run)}"
    caption = "The values, and the best value so far."
    if run.has_model:
        caption += (
            " Dashed: the posterior mean, under the present model, of the point that would have been recommended at "
            "that time."
        )
    name = run.names[0]
    drawn = _drawn(lambda ax: draw_progress(run.opt, ax=ax, value_name=name), alt, caption)
    return _grid(drawn, *_times(run))


def _best(run: Run) -> str:
    if not run.front:
        return "no trial is feasible"
    return f"the best is {run.opt.best_trial.values[0]:.6g} in trial {run.opt.best_trial.id}"


def _best_of(run: Run, j: int) -> Html:
    """The best value so far of one of several objectives."""
    name, direction = run.names[j], run.opt.directions[j]
    values = values_of(run.opt, j)
    alt = f"The best {name} so far, as a single objective, over {len(values)} values, to {direction}"
    caption = f"{name} as a single objective ({direction})."
    return _drawn(lambda ax: convergence(values, ax=ax, direction=direction, value_name=name), alt, caption)


def _front(run: Run) -> list[Html]:
    k = len(run.names)
    if run.is_single or not run.front:
        return []
    out = [element("p", _front_in_words(run))]
    out += _grid(*(_front_of(run, pair) for pair in pairs_of(k)))
    some = run.front[:FRONT]
    name = "trials of the front" if len(some) == len(run.front) else f"trials of the front, of {len(run.front)}"
    if is_modelled(run.opt):
        words = "Recommended, by posterior means, best first in the first objective; with noise use these points."
        out += [element("p", words), tables.front_table(run.opt, run.names, FRONT)]
    return [*out, tables.trials_table(run.opt, some, run.names, {}, name)]


def _front_in_words(run: Run) -> str:
    return f"The Pareto front has {len(run.front)} trials: they are feasible, and no other trial dominates them."


def _front_of(run: Run, pair: tuple[int, int]) -> Html:
    names = run.names[pair[0]], run.names[pair[1]]
    alt = f"{names[0]} and {names[1]} of {len(run.valued)} trials, {len(run.front)} of which form the Pareto front"
    caption = f"{names[0]} and {names[1]}."
    return _drawn(lambda ax: pareto(run.opt, ax=ax, objectives=pair, value_names=run.names), alt, caption)


def _parameters(run: Run) -> list[Html]:
    out = []
    for single in run.singles:
        content = _parameters_of_one(single)
        out += [element("h3", single.names[0])] * (bool(content) and not run.is_single) + content
    return out


def _parameters_of_one(run: Run) -> list[Html]:
    if not (run.has_model and has_dimensions(run.opt)):
        return []
    opt, coordinates = run.opt, coordinates_of(run.opt)
    center = coordinates.center(None)
    inactive = [name for name in run.shares if coordinates.inactive(name, center)]
    active = [name for name in run.shares if name not in inactive]
    shown = active[:SLICES]
    pictures = [_importances(run)]
    if len(active) > 1:
        x, y = active[:2]
        alt = f"Colours: the posterior mean over {x} and {y}, the other parameters at the recommended point"
        which = " of those active at the recommended point" if inactive else ""
        caption = f"Posterior over the two most important parameters{which}, {x} and {y}; the others as recommended."
        pictures.append(_drawn(lambda ax: posterior_contour(opt, x, y, ax=ax, value_name=run.names[0]), alt, caption))
        if opt.pool is not None:
            pictures += _arms(run, active)
    pictures += [_slice(run, name) for name in shown]
    out = _grid(*pictures)
    if inactive:
        out.append(element("p", f"Not drawn, since inactive at the recommended point: {', '.join(inactive)}."))
    if len(active) > len(shown):
        out.append(element("p", f"Not drawn, since less important: {', '.join(active[SLICES:])}."))
    return out


def _importances(run: Run) -> Html:
    some = dict([*run.shares.items()][:BARS])
    parts = ", ".join(f"{name} {100.0 * some[name].total:.0f} %" for name in [*some][:SLICES])
    alt = f"The most important parameters, by their shares of the variance: {parts}"
    caption = "Shares of the variance of the posterior mean over the whole space"
    caption += "." if len(some) == len(run.shares) else f": the largest {BARS} of {len(run.shares)}."
    return _drawn(lambda ax: draw_shares(ax, some), alt, caption, max(HEIGHT, 1.4 + 0.28 * len(some)))


def _slice(run: Run, name: str) -> Html:
    alt = f"The posterior mean with two standard deviations along {name}, the other parameters as recommended"
    caption = f"Along {name}; the others as recommended."
    return _drawn(lambda ax: posterior_slice(run.opt, name, ax=ax, value_name=run.names[0]), alt, caption)


def _arms(run: Run, names: Sequence[str]) -> list[Html]:
    pool = run.opt.pool
    assert pool is not None and pool.columns is not None
    numeric = [name for name in names if name not in pool.columns.choice_names][:2]
    if len(numeric) < 2:
        return []
    x, y = numeric
    alt = f"The {len(pool)} arms over {x} and {y}, coloured by their confidence bound, with those evaluated"
    caption = f"The arms of the pool over {x} and {y}, coloured by confidence bound."
    return [_drawn(lambda ax: pool_ucb(run.opt, x, y, ax=ax, value_name=run.names[0]), alt, caption)]


def _model(run: Run) -> list[Html]:
    pictures = [
        _calibration(single, "" if run.is_single else f" of {single.names[0]}")
        for single in run.singles
        if single.has_model
    ]
    if any(ask.n_inducing is not None and ask.effective_dimension is not None for ask in run.opt.diagnostics):
        alt = "Inducing points and effective dimension of the model at each ask"
        pictures.append(_drawn(lambda ax: complexity(run.opt, ax=ax), alt, "Size of the model at each ask."))
    return _grid(*pictures)


def _calibration(run: Run, of_value: str) -> Html:
    alt = f"Coverage of the posterior's central intervals by left-out values{of_value}, against their nominal level"
    caption = (
        f"Calibration{of_value}: values left out in turn and predicted from the rest. Below the diagonal the intervals "
        "are too narrow, above it too wide. It is measured in the region where the search has evaluated."
    )
    n_folds = 10 if len(run.valued) <= MANY else 5
    return _drawn(lambda ax: calibration(run.opt, ax=ax, n_folds=n_folds), alt, caption)


def _times(run: Run) -> list[Html]:
    asks = run.opt.diagnostics
    if not asks:
        return []
    total = sum((ask.ask_seconds for ask in asks), 0.0)
    alt = f"The time of each of {len(asks)} asks, {total:.3g} seconds in all"
    return [_drawn(lambda ax: ask_time(run.opt, ax=ax), alt, f"Time of the asks, {total:.3g} s in all.")]


def _trials(run: Run) -> list[Html]:
    if not run.trials:
        return []
    notes: dict[int, list[str]] = {}
    best = run.opt.best_trial.id if run.is_single and run.front else None
    front = {trial.id for trial in run.front} - {best}
    choice = dict(run.opt.recommend().params) if run.has_model else None
    for trial in run.trials:
        words = {
            "best": trial.id == best,
            "front": trial.id in front,
            "recommended": bool(trial.values) and choice is not None and dict(trial.params) == choice,
            "infeasible": not trial.is_feasible,
        }
        notes[trial.id] = [word for word, holds in words.items() if holds]
    return [tables.trials_table(run.opt, run.trials, run.names, notes, "trials")]


def _setup(run: Run) -> list[Html]:
    return [tables.candidates_table(run.opt), tables.options_table(run.opt), tables.versions_table()]
