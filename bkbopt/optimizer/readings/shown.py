"""What people are shown of an optimizer: a line of text, and HTML for notebooks."""

import html
from typing import Any

from bkbopt._support.showing import with_deviation
from bkbopt.optimizer.log.objectives import aims_of
from bkbopt.optimizer.log.trials import values_of
from bkbopt.optimizer.readings.logged import Logged
from bkbopt.optimizer.readings.recommending import Recommending
from bkbopt.spaces.space import Space

__all__ = ["Shown"]


#: Number of trials that are shown.
SHOWN = 5
#: The word for a failed trial that ended for a reason that is not its point.
LOST = "LOST (no fault of its point)"


class Shown(Logged, Recommending):
    """An optimizer as text and as HTML."""

    def __repr__(self) -> str:
        log, last = self._core.log, self._core.spaces[-1]
        n, unit = (len(last.names), "parameter") if isinstance(last, Space) else (len(last), "point")
        what = f"{aims_of(self.directions, self.objectives)} over {n:,} {unit}{'s' * (n != 1)}"
        return f"<Optimizer to {what}: {len(log)} trials, {log.n_complete} of them with values>"

    def _repr_html_(self) -> str:
        """HTML for notebooks: the best and the recommended trial, counts, and the latest trials."""
        return _as_html(self)


def _as_html(opt: Shown) -> str:
    """See `_repr_html_`."""
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
        told = ["" if value is None else f"{value:.6g}" for value in values_of(trial)]
        told = (told or [""] * len(values)) if opt.objectives else [", ".join(told)]
        own = ["" if trial.label is None else str(trial.label)] * len(label)
        cells = [str(trial.id), state, *told, *own]
        cells += [_short(trial.params.get(name, "")) for name in names]
        rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    table = f"<table><tr>{head}</tr>{''.join(rows)}</table>" if rows else ""
    return "<br>".join(lines) + table


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _shown(point: Any) -> str:
    """The label of a trial's or a recommended point's row, if it has one, and the parameters."""
    label = "" if point.label is None else f"{_short(point.label)}: "
    return html.escape(label + ", ".join(f"{name} = {_short(value)}" for name, value in point.params.items()))
