"""What people are shown of an optimizer: HTML for notebooks, and its options."""

import html
from typing import TYPE_CHECKING, Any

from bkbopt._support.showing import with_deviation
from bkbopt.optimizer import known_constraint
from bkbopt.optimizer.aims import Aims
from bkbopt.optimizer.logged_designer import LoggedDesigner
from bkbopt.optimizer.objectives import aims_of

if TYPE_CHECKING:
    from bkbopt.optimizer.readings import Readings

__all__ = ["as_html", "shown_options"]

#: Number of trials that are shown.
SHOWN = 5
#: The word for a failed trial that ended for a reason that is not its point.
LOST = "LOST (no fault of its point)"


def as_html(opt: "Readings") -> str:
    """See `Optimizer._repr_html_`."""
    trials, lost = opt.trials, {trial.id for trial in opt.lost_trials}
    states = [LOST if trial.id in lost else trial.state for trial in trials]
    counts = ", ".join(f"{states.count(state)} {state.lower()}" for state in dict.fromkeys(states)) or "no trials"
    lines = [f"<b>Optimizer</b> to {html.escape(aims_of(opt.directions, opt.objectives))}: {html.escape(counts)}"]
    complete = [trial for trial in trials if trial.values and trial.is_feasible]
    if complete and len(opt.directions) == 1:
        best, choice = opt.best_trial, opt.recommend()
        lines.append(f"best value told: {best.value:.6g} (trial {best.id}) at {_shown(best)}")
        lines.append(f"recommended: {with_deviation(choice.mean, choice.std)} at {_shown(choice)}")
    elif complete:
        lines.append(f"Pareto front: {len(opt.best_trials)} trials")
    names = list(dict.fromkeys(name for trial in trials[-SHOWN:] for name in trial.params))
    label = ["label"] if any(trial.label is not None for trial in trials[-SHOWN:]) else []
    values = opt.objectives or ("value",)
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in ["trial", "state", *values, *label, *names])
    rows = []
    for trial, state in zip(trials[-SHOWN:], states[-SHOWN:], strict=True):
        told = [f"{value:.6g}" for value in trial.values]
        told = (told or [""] * len(values)) if opt.objectives else [", ".join(told)]
        own = ["" if trial.label is None else str(trial.label)] * len(label)
        cells = [str(trial.id), state, *told, *own]
        cells += [_short(trial.params.get(name, "")) for name in names]
        rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    table = f"<table><tr>{head}</tr>{''.join(rows)}</table>" if rows else ""
    return "<br>".join(lines) + table


def shown_options(core: LoggedDesigner, aims: Aims, rule: object) -> dict[str, Any]:
    """What an optimizer was made with; see `Optimizer.options`."""
    options, models = core.designer.options, core.designer.options.models
    given = {name: value for name, value in models.surrogate.options().items() if name != "needs_kernel"}
    return {
        "directions": aims.as_given,
        "constraints": aims.constraints,
        "n_startup_trials": options.n_startup_trials,
        "surrogate": f"{type(models.surrogate).__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())})",
        "acquisition": rule if isinstance(rule, str) else getattr(rule, "__name__", "a function"),
        "beta": options.confidence,
        "fit": models.fit,
        "duplicates": "avoid" if options.avoid_duplicates else "allow",
        "deterministic": models.deterministic,
        "feasible": known_constraint.stored(core.feasible),
        "perturbations": options.perturbations,
    }


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _shown(point: Any) -> str:
    """The label of a trial's or a recommended point's row, if it has one, and the parameters."""
    label = "" if point.label is None else f"{_short(point.label)}: "
    return html.escape(label + ", ".join(f"{name} = {_short(value)}" for name, value in point.params.items()))
