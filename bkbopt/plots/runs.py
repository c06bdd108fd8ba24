"""Plots of runs: the best value and the regret against the number of evaluations, with bands over seeds.

| symbol | shape  | units  | meaning                                                            |
| ------ | ------ | ------ | ------------------------------------------------------------------ |
| y      | (t,)   | user's | values of one run in the order in which they were told             |
| curves | (r, t) | user's | one row for each run of a method, cut to the shortest run          |
| t      | (t,)   | -      | evaluations so far                                                 |
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from bkbopt._support.checks import check_choice, check_number
from bkbopt.analysis.run_data import bounded, left_out, recommended_so_far, told
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer import Optimizer
from bkbopt.plots.labels import evaluations_of, name_of_all
from bkbopt.plots.signatures import picture
from bkbopt.plots.style import GREY, Series, axes_of, legend_below, log_if_positive, series, value_label, whole_numbers
from bkbopt.search.trials.directions import sign_of
from bkbopt.spaces.values import as_float

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["convergence", "regret"]

#: Legend text of a single method without name.
UNNAMED = "best value told"
KINDS = ("simple", "average", "cumulative")
BANDS = {"quartiles": "median and quartiles", "standard error": "mean and 2 standard errors"}


@dataclass(frozen=True)
class Method:
    """The runs of one method.

    Attributes:
        name: its name in the legend; empty for a single method.
        runs: its runs, each an optimizer or values (t,).
        series: style of its lines.
    """

    name: str
    runs: tuple[Optimizer | np.ndarray, ...]
    series: Series

    @property
    def optimizers(self) -> tuple[Optimizer, ...]:
        """The runs that are optimizers."""
        return tuple(run for run in self.runs if isinstance(run, Optimizer))


@picture
def convergence(
    runs: Any,
    *,
    ax: "Axes | None" = None,
    direction: str | None = None,
    best: bool = True,
    recommended: Any = None,
    t: Sequence[float] | None = None,
    band: Literal["quartiles", "standard error"] = "quartiles",
    value_name: str | None = None,
) -> "Axes":
    """The best value so far against the number of evaluations, without infeasible trials and `Optimizer.outliers`.

    With noise the best observed value is biased by selection. At the end of the line is the recommendation of an
    optimizer: the posterior mean with two standard deviations or, for several runs, median and quartiles of the means.

    Args:
        runs: an optimizer; or the values of one run, in the order told, user's units, NaN for failed evaluations; or a
            list of such runs, over seeds (or a matrix with a row for each run); or a dict from names of methods to any
            of these. Runs of one method are cut to the shortest.
        ax: Axes to draw on; None for a new figure.
        direction: "minimize" or "maximize"; None for that of the optimizers, or "minimize" if there are none.
        best: whether to draw the best value so far; False draws the values themselves.
        recommended: values of the recommended point after each evaluation, in the form of `runs`; dashed. For an
            optimizer these are the present posterior means at the points that the present kernel, noise and space would
            have recommended; the last one is that of `Optimizer.recommend`.
        t: numbers of evaluations of the values, if they are not 1, 2, 3, ...
        band: "quartiles", with the median, or "standard error", mean +- 2 standard errors.
        value_name: label of the value axis, such as "error (%)"; None for the name of the optimizers' objective.

    Raises:
        ArgumentTypeError: `runs` has none of these forms.
        ArgumentError: no runs, infinite values, optimizers with different directions, an unknown band, or several
            objectives.
        NotReadyError: an optimizer has no values.

    Example:
        >>> from bkbopt import plots
        >>> ax = plots.convergence({"ours": [[3.0, 1.0, 2.0], [2.0, 2.5, 0.5]], "theirs": [3.0, 2.5, 2.0]})
        >>> ax.get_ylabel()
        'best value so far'
    """
    check_choice("band", band, tuple(BANDS))
    ax = axes_of(ax)
    methods, answers = _methods("runs", runs), _answers(recommended)
    sign = _sign(methods, direction)

    def curve(run: Optimizer | np.ndarray) -> np.ndarray:
        y = _values(run, outliers=not best)
        return sign * np.fmax.accumulate(sign * y) if best else y

    def recommendations(run: Optimizer | np.ndarray) -> np.ndarray:
        return recommended_so_far(run) if isinstance(run, Optimizer) else run

    _draw_all(ax, methods, answers, curve, t, band, recommendations)
    if best:
        _draw_recommendations(ax, methods)
    opts, form = [opt for method in methods for opt in method.optimizers], _name_of_best(methods) if best else "{}"
    ax.set_xlabel(evaluations_of(opts))
    ax.set_ylabel(value_label(name_of_all(opts, value_name), form), parse_math=False)
    _finish(ax, methods, band)
    return ax


@picture
def regret(
    runs: Any,
    optimum: float,
    *,
    ax: "Axes | None" = None,
    kind: Literal["simple", "average", "cumulative"] = "simple",
    direction: str | None = None,
    truth: Callable[[Mapping[str, Any]], float] | None = None,
    recommended: Any = None,
    t: Sequence[float] | None = None,
    band: Literal["quartiles", "standard error"] = "quartiles",
    value_name: str | None = None,
) -> "Axes":
    """Regret against the number of evaluations; on a log scale if it is positive, except for cumulative regret.

    Infeasible and failed evaluations have no regret, and are left out. Regret is defined by noise-free values: pass
    those as `runs`, or pass optimizers and `truth`. The regret of noisy values is drawn too, but selection makes it too
    small, even negative. Where a run's regret is negative, the label of the axis ends with "optimum beaten".

    Args:
        runs: see `convergence`.
        optimum: the noise-free value of the optimum, user's units.
        ax: Axes to draw on; None for a new figure.
        kind: "simple": regret of the best point so far; "average": mean regret of all evaluations so far; "cumulative":
            their sum.
        direction: see `convergence`.
        truth: `truth(params) -> noise-free value`, called for the trials of optimizers in `runs`.
        recommended: noise-free values of the recommended point after each evaluation, in the form of `runs`; their
            simple regret is drawn dashed.
        t: see `convergence`.
        band: see `convergence`.
        value_name: name of the value in the label, with its unit; None as for `convergence`.

    Raises:
        ArgumentError, ArgumentTypeError, NotReadyError: as for `convergence`; also if the optimum is not finite, or the
            kind is unknown.

    Example:
        >>> from bkbopt import plots
        >>> ax = plots.regret([[3.0, 1.0, 2.0], [2.0, 2.5, 0.5]], optimum=0.25, kind="cumulative")
        >>> ax.get_ylabel()
        'cumulative regret in value'
    """
    check_choice("kind", kind, KINDS)
    optimum = float(bounded(check_number("optimum", optimum, -np.inf, "a finite number")))
    if truth is not None and not callable(truth):
        raise ArgumentTypeError(f"truth: expected a callable (params) -> value, got {type(truth).__name__}.")
    check_choice("band", band, tuple(BANDS))
    ax = axes_of(ax)
    methods, answers = _methods("runs", runs), _answers(recommended)
    sign, is_beaten = _sign(methods, direction), False

    def checked(regrets: np.ndarray) -> np.ndarray:
        nonlocal is_beaten
        is_beaten = is_beaten or bool((regrets < 0.0).any())
        return regrets

    def curve(run: Optimizer | np.ndarray) -> np.ndarray:
        gap = sign * (optimum - (_values(run) if truth is None else _true_values(run, truth)))
        if kind == "simple":
            return checked(np.fmin.accumulate(gap))
        total, n = np.nancumsum(gap), np.cumsum(~np.isnan(gap))
        return checked(total if kind == "cumulative" else total / np.maximum(n, 1))

    _draw_all(ax, methods, answers, curve, t, band, lambda y: checked(sign * (optimum - _given_values(y))))
    opts = [opt for method in methods for opt in method.optimizers]
    ax.set_xlabel(evaluations_of(opts))
    form = f"{kind} regret in {{}}" + (", optimum beaten" if is_beaten else "")
    ax.set_ylabel(value_label(name_of_all(opts, value_name), form), parse_math=False)
    if kind != "cumulative":
        log_if_positive(ax)
    _finish(ax, methods, band)
    return ax


# -- arguments ---------------------------------------------------------------------------------------------------------


def _methods(argument: str, given: Any) -> list[Method]:
    named = dict(given) if isinstance(given, Mapping) else {"": given}
    if not named:
        raise ArgumentError(f"{argument}: expected at least one method, got an empty dict.")
    styles = series()
    return [
        Method(str(name), _runs(argument, runs), styles[i % len(styles)])
        for i, (name, runs) in enumerate(named.items())
    ]


def _answers(given: Any) -> dict[str, Method]:
    return {} if given is None else {method.name: method for method in _methods("recommended", given)}


def _runs(argument: str, given: Any) -> tuple[Optimizer | np.ndarray, ...]:
    """The runs of one method: one optimizer, one list of values, or several of them."""
    if isinstance(given, Optimizer):
        return (given,)
    if isinstance(given, torch.Tensor):
        given = given.detach().cpu().numpy()
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise ArgumentTypeError(
            f"{argument}: expected an optimizer, a list of values, or a list of these, got {type(given).__name__}."
        )
    if not len(given):
        raise ArgumentError(f"{argument}: expected at least one run with at least one value, got an empty list.")
    if any(isinstance(run, Optimizer | Sequence | np.ndarray | torch.Tensor) for run in given):
        return tuple(run if isinstance(run, Optimizer) else _as_curve(argument, run) for run in given)
    return (_as_curve(argument, given),)


def _as_curve(argument: str, given: Any) -> np.ndarray:
    try:
        values = np.asarray([as_float(v) for v in given])
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{argument}: expected numbers in every run, got {given!r:.80}.") from None
    if not len(values) or bool(np.isinf(values).any()):
        raise ArgumentError(f"{argument}: expected finite values (or NaN) in every run, got {given!r:.80}.")
    return bounded(values)


def _sign(methods: list[Method], direction: str | None) -> float:
    """+1 if larger is better, -1 otherwise."""
    found = {opt.direction for method in methods for opt in method.optimizers}
    if direction is not None:
        found.add(direction)
    if not found <= {"minimize", "maximize"} or len(found) > 1:
        raise ArgumentError(
            f'direction: expected "minimize" or "maximize", the same for all runs, got {sorted(map(str, found))}.'
        )
    return sign_of(found.pop() if found else "minimize")


def _values(run: Optimizer | np.ndarray, *, outliers: bool = True) -> np.ndarray:
    """Values in the order of completion; NaN for infeasible trials, and for outliers if they do not count."""
    if not isinstance(run, Optimizer):
        return run
    data = told(run)
    counted = data.feasible if outliers else data.feasible & ~left_out(run, data)
    return np.where(counted, data.y, np.nan)


def _name_of_best(methods: list[Method]) -> str:
    aside = any(left_out(opt, told(opt)).any() for method in methods for opt in method.optimizers)
    return "best {} so far, outliers aside" if aside else "best {} so far"


def _given_values(run: Optimizer | np.ndarray) -> np.ndarray:
    """The values of recommended points, which an optimizer does not know without noise."""
    if isinstance(run, Optimizer):
        raise ArgumentError(
            "recommended: expected noise-free values, got an optimizer, whose posterior means are estimates; evaluate "
            "the recommended points without noise, or draw `convergence`."
        )
    return run


def _true_values(run: Optimizer | np.ndarray, truth: Callable[[Mapping[str, Any]], float]) -> np.ndarray:
    """Noise-free values in the order of completion; NaN for infeasible trials."""
    if not isinstance(run, Optimizer):
        return run
    data = told(run)
    return np.where(data.feasible, bounded([float(truth(dict(trial.params))) for trial in data.trials]), np.nan)


# -- drawing -----------------------------------------------------------------------------------------------------------


def _draw_all(
    ax: "Axes",
    methods: list[Method],
    answers: dict[str, Method],
    curve: Callable[[Optimizer | np.ndarray], np.ndarray],
    t: Sequence[float] | None,
    band: str,
    answer_curve: Callable[[Optimizer | np.ndarray], np.ndarray],
) -> None:
    """Draw a line and a band for each method, and for its recommendations."""
    unknown = set(answers) - {method.name for method in methods}
    if unknown:
        raise ArgumentError(f"recommended: expected names among those of runs, got {sorted(unknown)}.")
    for method in methods:
        _draw(ax, method, [curve(run) for run in method.runs], t, band, _label(method))
        if method.name in answers:
            curves = [answer_curve(run) for run in answers[method.name].runs]
            name = f"{method.name}, recommended" if method.name else "recommended"
            _draw(ax, method, curves, t, band, name, dashed=True)


def _label(method: Method) -> str:
    runs = f" (n = {len(method.runs)})" if len(method.runs) > 1 else ""
    return (method.name or UNNAMED) + runs


def _draw(
    ax: "Axes",
    method: Method,
    curves: list[np.ndarray],
    t: Sequence[float] | None,
    band: str,
    label: str,
    *,
    dashed: bool = False,
) -> None:
    n = min(len(curve) for curve in curves)
    rows = np.stack([curve[:n] for curve in curves])
    try:
        at = np.arange(1.0, n + 1.0) if t is None else np.asarray(t, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"t: expected numbers, got {t!r:.80}.") from None
    if at.shape != (n,):
        raise ArgumentError(f"t: expected {n} numbers, one for each value, got shape {at.shape}.")
    middle, low, high = _summary(rows, band)
    series = method.series
    steps: Any = {} if t is not None else {"drawstyle": "steps-post"}
    ax.plot(
        at,
        middle,
        color=series.colour,
        linestyle=(0, (2, 1.5)) if dashed else series.line,
        linewidth=1.4 if dashed else 2.0,
        marker=series.marker if t is not None or n == 1 else None,  # a line through one value cannot be seen
        markersize=5,
        label=label if np.isfinite(middle).any() else None,
        **steps,
    )
    if len(rows) > 1:
        step: Any = None if t is not None else "post"
        ax.fill_between(at, low, high, step=step, color=series.colour, alpha=0.2, linewidth=0)


def _summary(rows: np.ndarray, band: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Middle, lower and upper end of the band, each (t,), of curves (r, t)."""
    if band == "quartiles":
        low, middle, high = np.quantile(rows, [0.25, 0.5, 0.75], axis=0)
        return middle, low, high
    middle = rows.mean(axis=0)
    spread = 2.0 * rows.std(axis=0, ddof=1) / len(rows) ** 0.5 if len(rows) > 1 else np.zeros_like(middle)
    return middle, middle - spread, middle + spread


def _draw_recommendations(ax: "Axes", methods: list[Method]) -> None:
    """Draw the last recommendation at the end of each method's line, if all its runs are optimizers."""
    for method in methods:
        if not method.optimizers or len(method.optimizers) < len(method.runs):
            continue
        choices = [opt.recommend() for opt in method.optimizers]
        means, stds = bounded([choice.mean for choice in choices]), bounded([choice.std for choice in choices])
        if len(choices) == 1:
            middle, spread = means[0], np.full((2, 1), 2.0 * stds[0])
        else:
            low, middle, high = np.quantile(means, [0.25, 0.5, 0.75])
            spread = np.array([[middle - low], [high - middle]])
        what = "posterior mean, 2 sd" if len(choices) == 1 else "posterior means, quartiles"
        ax.errorbar(
            [min(len(_values(run)) for run in method.runs)],
            [middle],
            yerr=spread,
            fmt="D",
            color=method.series.colour,
            markeredgecolor="black",
            capsize=4,
            clip_on=False,
            zorder=4,
            label=f"{method.name + ', ' if method.name else ''}recommended ({what})",
        )


def _finish(ax: "Axes", methods: list[Method], band: str) -> None:
    from matplotlib.patches import Patch

    ax.grid(alpha=0.3)
    whole_numbers(ax)
    is_band = any(len(method.runs) > 1 for method in methods)
    more = [Patch(color=GREY, alpha=0.3, linewidth=0, label=BANDS[band])] if is_band else []
    legend_below(ax, *more)
