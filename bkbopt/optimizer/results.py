"""Results of an optimizer: best trials, Pareto fronts, predictions, regret certificates, and HTML for notebooks."""

import html
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from bkbopt._support.arrays import as_values
from bkbopt.confidence import Batch, Chowdhury, Confidence, Srinivas, Theorem2
from bkbopt.errors import ArgumentError, NotReadyError, SpaceExhaustedError, extra
from bkbopt.optimizer.recommendations import ParamsOf, evaluated_at, finished_only, non_dominated, recommended
from bkbopt.optimizer.trials import Trial, TrialLog
from bkbopt.search.certificate import band_gap, gap_quantile, gaps
from bkbopt.search.designer import Designer
from bkbopt.search.trials.directions import sign_of
from bkbopt.search.trials.evaluations import Point
from bkbopt.search.trials.reports import RegretCertificate
from bkbopt.search.trials.states import COMPLETE

if TYPE_CHECKING:
    from bkbopt.optimizer.readings import Readings

__all__ = [
    "as_html",
    "best_trial",
    "certificate",
    "front",
    "hypervolume",
    "prediction",
    "useful_workers",
    "width",
]

#: Number of trials in the HTML for notebooks.
SHOWN = 5

Array = np.ndarray[Any, np.dtype[np.float64]]


def _gains(trials: Sequence[Trial], directions: Sequence[str]) -> Array:
    """Values (n, k), with the sign such that larger is better."""
    signs = np.array([*map(sign_of, directions)])
    return signs * np.array([trial.values for trial in trials]).reshape(-1, len(directions))


def _candidates(log: TrialLog, call: str, constraints: Sequence[str]) -> list[Trial]:
    """The feasible trials; those without a value of some constraint only if there are no others."""
    found = [trial for trial in log if trial.values and trial.state == COMPLETE]
    if not found:
        raise NotReadyError(f"{call}: expected at least one value, got none; call tell first.")
    feasible = [trial for trial in found if trial.is_feasible]
    if not feasible:
        hint = "recommend has the nearest point" if call == "best_trial" else "trials has the constraints' values"
        raise NotReadyError(f"{call}: expected at least one feasible trial, got none; {hint}.")
    return [trial for trial in feasible if all(name in trial.constraints for name in constraints)] or feasible


def best_trial(log: TrialLog, directions: Sequence[str], constraints: Sequence[str]) -> Trial:
    """See `Optimizer.best_trial`."""
    if len(directions) > 1:
        raise ArgumentError("best_trial: expected a single objective, got several; see best_trials.")
    feasible = _candidates(log, "best_trial", constraints)
    return feasible[int(_gains(feasible, directions)[:, 0].argmax())]


def front(log: TrialLog, directions: Sequence[str], constraints: Sequence[str]) -> list[Trial]:
    """See `Optimizer.best_trials`; in order of their ids."""
    feasible = _candidates(log, "best_trials", constraints)
    Y = _gains(feasible, directions)
    return [feasible[i] for i in sorted(non_dominated(Y))]


def hypervolume(
    log: TrialLog, directions: Sequence[str], constraints: Sequence[str], reference: Sequence[float]
) -> float:
    """See `Optimizer.hypervolume`."""
    with extra("botorch"):
        from botorch.utils.multi_objective.hypervolume import Hypervolume

    point = as_values(reference, len(directions), name="reference").numpy()
    low = point * [*map(sign_of, directions)]
    Y = _gains(front(log, directions, constraints), directions)
    # Scaled by powers of two to values below 1/2, so that only the volume itself can overflow.
    exponents = np.frexp(np.abs(np.vstack([Y, low])).max(0))[1] + 1
    corner, points = (torch.from_numpy(np.ldexp(part, -exponents)) for part in (low, Y))
    return _ldexp(float(Hypervolume(ref_point=corner).compute(points)), int(exponents.sum()))


def _ldexp(x: float, exponent: int) -> float:
    """x 2^exponent, or the largest double if that overflows."""
    try:
        return math.ldexp(x, exponent)
    except OverflowError:
        return math.copysign(sys.float_info.max, x)


@torch.no_grad()
def prediction(designer: Designer, X: Tensor, averaged: bool) -> tuple[Array, Array]:
    """See `Optimizer.predict_encoded`."""
    objectives = designer.trained().objectives
    parts = [objective.averaged(X) if averaged else objective.predict(X) for objective in objectives]
    mean, std = (np.stack([part[j].numpy() for part in parts], 1) for j in (0, 1))
    return (mean[:, 0], std[:, 0]) if len(parts) == 1 else (mean, std)


def width(designer: Designer) -> float:
    """See `Optimizer.beta`."""
    objective, nothing = designer.trained().objectives[0], designer.history.X[:0]
    context = objective.context(designer.n_arms(), nothing, designer.problem.arms)
    return designer.options.confidence(context)


@torch.no_grad()
def certificate(
    designer: Designer, params_of: ParamsOf, belongs: Callable[[Point], bool], confidence: float
) -> RegretCertificate:
    """See `Optimizer.regret_certificate`."""
    fantasy, objective = finished_only(designer)
    x, lower = fantasy.lower_bound()
    upper = max(designer.upper_bound(fantasy), lower)
    naive, beta = objective.scaler.rise(lower, upper - lower), fantasy.betas[0]
    if _is_a_theorem_s(designer.options.confidence) and not designer.options.models.fit:
        point, index = evaluated_at(designer, x)
        return RegretCertificate(naive, params_of(point, index), index, None, naive, beta)
    x, point, index = recommended(designer, fantasy, belongs)
    gap = gap_quantile(gaps(designer, objective, fantasy, x, confidence), confidence)
    bound = max(gap, band_gap(designer, objective, fantasy, x, confidence))
    return RegretCertificate(bound, params_of(point, index), index, confidence, naive, beta)


def _is_a_theorem_s(confidence: Confidence) -> bool:
    """Whether a theorem guarantees the confidence bounds of this schedule."""
    inner = confidence.inner if isinstance(confidence, Batch) else confidence
    return isinstance(inner, Theorem2 | Srinivas | Chowdhury)


def useful_workers(designer: Designer, limit: int) -> int:
    """See `Optimizer.useful_workers`."""
    n = len(designer.history.running)
    try:
        more = designer.suggest_useful(max(limit - n, 0)) if n < limit else []
    except SpaceExhaustedError:
        more = []
    return max(min(n + len(more), limit), 1)


def as_html(opt: "Readings") -> str:
    """See `Optimizer._repr_html_`."""
    trials = opt.trials
    states = [trial.state for trial in trials]
    counts = ", ".join(f"{states.count(state)} {state.lower()}" for state in dict.fromkeys(states)) or "no trials"
    lines = [f"<b>Optimizer</b> to {', '.join(opt.directions)}: {html.escape(counts)}"]
    complete = [trial for trial in trials if trial.values and trial.is_feasible]
    if complete and len(opt.directions) == 1:
        best, choice = opt.best_trial, opt.recommend()
        lines.append(f"best value told: {best.value:.6g} (trial {best.id}) at {_shown(best.params)}")
        lines.append(f"recommended: {choice.mean:.6g} &plusmn; {choice.std:.2g} at {_shown(choice.params)}")
    elif complete:
        lines.append(f"Pareto front: {len(opt.best_trials)} trials")
    names = list(dict.fromkeys(name for trial in trials[-SHOWN:] for name in trial.params))
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in ["trial", "state", "value", *names])
    rows = []
    for trial in trials[-SHOWN:]:
        values = ", ".join(f"{value:.6g}" for value in trial.values)
        cells = [str(trial.id), trial.state, values, *(_short(trial.params.get(name, "")) for name in names)]
        rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    table = f"<table><tr>{head}</tr>{''.join(rows)}</table>" if rows else ""
    return "<br>".join(lines) + table


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _shown(params: Any) -> str:
    return html.escape(", ".join(f"{name} = {_short(value)}" for name, value in params.items()))
