"""How runs went: the best value against the number of evaluations, and the regret, with bands over seeds.

| symbol | shape  | units  | meaning                                                            |
| ------ | ------ | ------ | ------------------------------------------------------------------ |
| y      | (t,)   | user's | values of one run in the order in which they were told             |
| curves | (r, t) | user's | one row a run of the same method, cut to the shortest              |
| t      | (t,)   | -      | evaluations so far                                                 |
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from bkbopt._support.arrays import check_number
from bkbopt.errors import ArgumentError, ArgumentTypeError
from bkbopt.optimizer import Optimizer
from bkbopt.plots.readings import Told, told
from bkbopt.plots.style import GREY, SERIES, Series, axes_of, legend_below, log_ticks, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["convergence", "regret"]

#: What stands in a legend for the only method there is.
UNNAMED = "best value told"
KINDS = ("simple", "average", "cumulative")
BANDS = {"quartiles": "median and quartiles", "standard error": "mean and 2 standard errors"}


@dataclass(frozen=True)
class Method:
    """The runs of one method.

    Attributes:
        name: what the legend calls it; empty where there is only one.
        runs: as given, each an optimizer or values (t,).
        series: how its lines look.
    """

    name: str
    runs: tuple[Optimizer | np.ndarray, ...]
    series: Series

    @property
    def optimizers(self) -> tuple[Optimizer, ...]:
        """Those of the runs that are optimizers."""
        return tuple(run for run in self.runs if isinstance(run, Optimizer))


def convergence(
    runs: Any,
    ax: "Axes | None" = None,
    *,
    direction: str | None = None,
    best: bool = True,
    recommended: Any = None,
    t: Sequence[float] | None = None,
    band: Literal["quartiles", "standard error"] = "quartiles",
    value_name: str = "value",
) -> "Axes":
    """The best value told so far, against the number of evaluations; of feasible trials, where there are constraints.

    Under noise the best value told flatters: it is partly luck. What an optimizer in `runs` recommends at its end is
    drawn beside its line, as posterior mean with two standard deviations (over several runs, median and quartiles of
    the means). Values of the recommendation after each evaluation can be given as `recommended`.

    Args:
        runs: an optimizer; or the values of one run, in the order told, user's units, NaN where an evaluation failed;
            or a list of such runs, over seeds (or a matrix, a row a run); or a dict from the names of methods to any of
            these. Runs of one method are cut to the shortest.
        ax: where to draw; None makes a new figure.
        direction: "minimize" or "maximize"; None takes that of the optimizers, and "minimize" where there are none.
        best: False draws the values as they are, for values that are answers already.
        recommended: values of the recommended point after each evaluation, in the form of `runs`; dashed.
        t: numbers of evaluations behind the values, where they are not 1, 2, 3, ...
        band: "quartiles" with the median, or "standard error": two of them about the mean.
        value_name: of the value axis, with its unit: "error (%)".

    Raises:
        ArgumentTypeError: `runs` has none of these forms.
        ArgumentError: no runs, values that are infinite, directions that contradict each other, an unknown band, an
            optimizer with several objectives.
        NotReadyError: an optimizer without values.

    Example:
        >>> from bkbopt import plots
        >>> ax = plots.convergence({"ours": [[3.0, 1.0, 2.0], [2.0, 2.5, 0.5]], "theirs": [3.0, 2.5, 2.0]})
        >>> ax.get_ylabel()
        'best value so far'
    """
    _check_band(band)
    ax = axes_of(ax)
    methods, answers = _methods("runs", runs), _answers(recommended)
    sign = _sign(methods, direction)

    def so_far(y: np.ndarray) -> np.ndarray:
        return sign * np.fmax.accumulate(sign * y) if best else y

    _draw_all(ax, methods, answers, lambda run: so_far(_values(run)), t, band)
    if best:
        _draw_recommendations(ax, methods)
    ax.set(xlabel="evaluations", ylabel=f"best {value_name} so far" if best else value_name)
    _finish(ax, methods, band)
    return ax


def regret(
    runs: Any,
    optimum: float,
    ax: "Axes | None" = None,
    *,
    kind: Literal["simple", "average", "cumulative"] = "simple",
    direction: str | None = None,
    truth: Callable[[Mapping[str, Any]], float] | None = None,
    recommended: Any = None,
    t: Sequence[float] | None = None,
    band: Literal["quartiles", "standard error"] = "quartiles",
    value_name: str = "value",
) -> "Axes":
    """Regret against the number of evaluations; on a log scale where it is positive, unless it is a sum.

    Evaluations of points that a constraint forbids have none, and are left out as failed ones are.
    Regret is a matter of noise-free values. Give those as `runs`, or optimizers with `truth`; the regret of noisy
    values is drawn if that is what comes, but luck makes it too small, even negative.

    Args:
        runs: see `convergence`.
        optimum: the best value that there is, noise-free, user's units.
        ax: where to draw; None makes a new figure.
        kind: "simple": of the best point evaluated so far; "average": of all evaluations so far, their mean;
            "cumulative": their sum.
        direction: see `convergence`.
        truth: `truth(params) -> noise-free value`, asked of the trials of optimizers in `runs`.
        recommended: noise-free values of the recommended point after each evaluation, in the form of `runs`; their
            simple regret is drawn dashed.
        t: see `convergence`.
        band: see `convergence`.
        value_name: what the unit is of, for the label.

    Raises:
        ArgumentError, ArgumentTypeError, NotReadyError: as `convergence`; also an optimum that is not finite, and an
            unknown kind.

    Example:
        >>> from bkbopt import plots
        >>> ax = plots.regret([[3.0, 1.0, 2.0], [2.0, 2.5, 0.5]], optimum=0.25, kind="cumulative")
        >>> ax.get_ylabel()
        'cumulative regret in value'
    """
    if kind not in KINDS:
        raise ArgumentError(f"kind: expected one of {KINDS}, got {kind!r}.")
    optimum = check_number("optimum", optimum, -np.inf, "a finite number")
    if truth is not None and not callable(truth):
        raise ArgumentTypeError(f"truth: expected a callable (params) -> value, got {type(truth).__name__}.")
    _check_band(band)
    ax = axes_of(ax)
    methods, answers = _methods("runs", runs), _answers(recommended)
    sign = _sign(methods, direction)

    def curve(run: Optimizer | np.ndarray) -> np.ndarray:
        gap = sign * (optimum - (_values(run) if truth is None else _true_values(run, truth)))
        if kind == "simple":
            return np.fmin.accumulate(gap)
        total, n = np.nancumsum(gap), np.cumsum(~np.isnan(gap))
        return total if kind == "cumulative" else total / np.maximum(n, 1)

    _draw_all(ax, methods, answers, curve, t, band, lambda y: sign * (optimum - y))
    ax.set(xlabel="evaluations", ylabel=f"{kind} regret in {value_name}")
    if kind != "cumulative" and _is_positive(ax):
        ax.set_yscale("log")
        log_ticks(ax.yaxis)
    _finish(ax, methods, band)
    return ax


# -- what was given ----------------------------------------------------------------------------------------------------


def _methods(argument: str, given: Any) -> list[Method]:
    named = dict(given) if isinstance(given, Mapping) else {"": given}
    if not named:
        raise ArgumentError(f"{argument}: expected at least one method, got an empty dict.")
    return [
        Method(str(name), _runs(argument, runs), SERIES[i % len(SERIES)])
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
        values = np.asarray([float(v) for v in given])
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{argument}: expected numbers in every run, got {given!r:.80}.") from None
    if not len(values) or bool(np.isinf(values).any()):
        raise ArgumentError(f"{argument}: expected finite values (or NaN) in every run, got {given!r:.80}.")
    return values


def _sign(methods: list[Method], direction: str | None) -> float:
    """+1 where larger is better."""
    found = {opt.direction for method in methods for opt in method.optimizers} | ({direction} - {None})
    if not found <= {"minimize", "maximize"} or len(found) > 1:
        raise ArgumentError(
            f'direction: expected "minimize" or "maximize", the same for all runs, got {sorted(map(str, found))}.'
        )
    return 1.0 if found == {"maximize"} else -1.0


def _values(run: Optimizer | np.ndarray) -> np.ndarray:
    """Values in the order in which they came, NaN where a trial is infeasible."""
    if not isinstance(run, Optimizer):
        return run
    data = told(run)
    return _of_feasible(data, data.y)


def _of_feasible(data: Told, y: np.ndarray) -> np.ndarray:
    return np.where([trial.is_feasible for trial in data.trials], y, np.nan)


def _true_values(run: Optimizer | np.ndarray, truth: Callable[[Mapping[str, Any]], float]) -> np.ndarray:
    """Noise-free values in the order in which trials were told."""
    if not isinstance(run, Optimizer):
        return run
    data = told(run)
    return _of_feasible(data, np.array([float(truth(trial.params)) for trial in data.trials]))


def _check_band(band: str) -> None:
    if band not in BANDS:
        raise ArgumentError(f"band: expected one of {tuple(BANDS)}, got {band!r}.")


# -- drawing -----------------------------------------------------------------------------------------------------------


def _draw_all(
    ax: "Axes",
    methods: list[Method],
    answers: dict[str, Method],
    curve: Callable[[Optimizer | np.ndarray], np.ndarray],
    t: Sequence[float] | None,
    band: str,
    answer_curve: Callable[[np.ndarray], np.ndarray] = lambda y: y,
) -> None:
    """A line and a band for each method, and for its answers."""
    unknown = set(answers) - {method.name for method in methods}
    if unknown:
        raise ArgumentError(f"recommended: expected names among those of runs, got {sorted(unknown)}.")
    for method in methods:
        _draw(ax, method, [curve(run) for run in method.runs], t, band, _label(method))
        if method.name in answers:
            curves = [answer_curve(_values(run)) for run in answers[method.name].runs]
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
    at = np.arange(1.0, n + 1.0) if t is None else np.asarray(t, dtype=float)
    if at.shape != (n,):
        raise ArgumentError(f"t: expected {n} numbers, one a value, got shape {at.shape}.")
    middle, low, high = _summary(rows, band)
    series = method.series
    steps: Any = {} if t is not None else {"drawstyle": "steps-post"}
    ax.plot(
        at,
        middle,
        color=series.colour,
        linestyle=(0, (2, 1.5)) if dashed else series.line,
        linewidth=1.4 if dashed else 2.0,
        marker=series.marker if t is not None else None,
        markersize=5,
        label=label,
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
    """A diamond with its uncertainty at the end of each method's line, where its runs are optimizers."""
    for method in methods:
        if not method.optimizers or len(method.optimizers) < len(method.runs):
            continue
        choices = [opt.recommend() for opt in method.optimizers]
        if len(choices) == 1:
            middle, spread = choices[0].mean, np.full((2, 1), 2.0 * choices[0].std)
        else:
            low, middle, high = np.quantile([choice.mean for choice in choices], [0.25, 0.5, 0.75])
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


def _is_positive(ax: "Axes") -> bool:
    """Whether all that the lines show is above zero."""
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in ax.get_lines()])
    return bool((drawn[np.isfinite(drawn)] > 0.0).all())


def _finish(ax: "Axes", methods: list[Method], band: str) -> None:
    from matplotlib.patches import Patch

    ax.grid(alpha=0.3)
    whole_numbers(ax)
    more = (
        [Patch(color=GREY, alpha=0.3, linewidth=0, label=BANDS[band])] if any(len(m.runs) > 1 for m in methods) else []
    )
    legend_below(ax, *more)
