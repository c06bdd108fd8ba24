"""Objectives of extreme scale through every interface: results must be finite, and as good as at normal scale.

`run(seeds)` counts outcomes by kind of objective:

| outcome      | meaning                                                                             |
| ------------ | ----------------------------------------------------------------------------------- |
| fine         | all numbers are finite, and the recommendation is where a plain objective's would be |
| lost         | finite, but the recommendation is no better than what the start-up trials found      |
| not finite   | NaN or an infinite number came out                                                  |
| warned: name | a warning came out                                                                  |
| raised: name | an error came out                                                                   |
"""

import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna

import bkbopt as bo
from bkbopt.adapters.optuna import BKBSampler
from bkbopt.errors import BkbError
from tests.faults.rows import FAILED, Row

__all__ = [
    "KINDS",
    "OPTIONS",
    "REACH",
    "Kind",
    "optimized",
    "outcome",
    "plain",
    "regret",
    "rows",
    "run",
    "sampled",
    "suits",
]

LARGEST = sys.float_info.max
SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
DISTRIBUTIONS: dict[str, optuna.distributions.BaseDistribution] = {
    name: optuna.distributions.FloatDistribution(*ends) for name, ends in SPACE.items()
}
TRIALS, STARTUP = 24, 10
#: A recommendation is lost where its regret exceeds this; start-up trials leave 0.3 on average, 24 trials 0.005.
REACH = 0.2


def plain(params: Mapping[str, float]) -> float:
    """Two basins in x and an edge in y; values from -0.14 to 2.7."""
    x, y = params["x"], params["y"]
    return 4.0 * (x - 0.3) ** 2 + abs(y - 0.6) + 0.3 * math.sin(9.0 * x)


BEST = min(plain({"x": x, "y": 0.6}) for x in np.linspace(0.0, 1.0, 10_001))


def regret(params: Mapping[str, float]) -> float:
    """Of a plain objective."""
    return plain(params) - BEST


def _second(params: Mapping[str, float]) -> float:
    """Another objective, whose optimum lies elsewhere."""
    return (params["x"] - 0.8) ** 2 + (params["y"] - 0.2) ** 2


def _limit(params: Mapping[str, float]) -> float:
    """A constraint that the optimum fulfils by 0.2, and half of the square does not."""
    return params["x"] - 0.5


Params = Mapping[str, float]
#: The value of trial number i.
Value = Callable[[Params, int, np.random.Generator], float]


@dataclass(frozen=True)
class Kind:
    """A kind of objective.

    Attributes:
        value: of a trial.
        second: of a second objective.
        limit: of a constraint.
        std: known standard deviation of the noise.
        searched: whether the plain objective's optimum can be found from the values.
        first_at: where all start-up trials are, told as past data; None for where they are asked.
    """

    value: Value
    second: Value | None = None
    limit: Value | None = None
    std: Callable[[int], float] | None = None
    searched: bool = True
    first_at: Mapping[str, float] | None = None


def _affine(offset: float, scale: float, f: Callable[[Params], float] = plain) -> Value:
    return lambda params, i, rng: offset + scale * f(params)


def _outlier(value: float, every: int, at: int = 4) -> Value:
    """The plain objective, but for one trial of so many."""
    return lambda params, i, rng: value if i % every == at else plain(params)


UNIT = _affine(0.0, 1.0)
#: Offsets and scales. A quarter of the largest double times 2.7 is no double, so a fifth.
SCALES = {
    "plain": (0.0, 1.0),
    "offset 1e6": (1e6, 1.0),
    "offset 1e12": (1e12, 1.0),
    "offset -1e12": (-1e12, 1.0),
    "offset 1e15": (1e15, 1.0),
    "offset 1e15, scale 1e3": (1e15, 1e3),
    "offset 1e300, scale 1e288": (1e300, 1e288),
    "scale 1e300": (0.0, 1e300),
    "scale 1e-300": (0.0, 1e-300),
    "scale of the largest double": (0.0, LARGEST / 5.0),
    "offset -1e308, scale of the largest double": (-1e308, LARGEST / 4.0),
    "subnormal": (0.0, 1e-320),
}
TAILS = {
    "cauchy noise": Kind(lambda p, i, rng: plain(p) + 0.05 * rng.standard_cauchy(), searched=False),
    "lognormal noise, sigma 10": Kind(lambda p, i, rng: rng.lognormal(0.0, 10.0), searched=False),
    "lognormal values, sigma 10": Kind(lambda p, i, rng: math.exp(10.0 * plain(p)), searched=False),
    "exp(200 f)": Kind(lambda p, i, rng: math.exp(200.0 * plain(p)), searched=False),
    "one outlier 1e300": Kind(_outlier(1e300, 10**6)),
    "one outlier 1e10": Kind(_outlier(1e10, 10**6)),
    # Values of 5 in their place lose the optimum in as many runs.
    "one late outlier 1e300": Kind(_outlier(1e300, 10**6, 13), searched=False),
    "one outlier -1e300": Kind(_outlier(-1e300, 10**6), searched=False),
    "one late outlier -1e300": Kind(_outlier(-1e300, 10**6, 13), searched=False),
    "an outlier of the largest double": Kind(_outlier(LARGEST, 10**6)),
    "a third 1e300": Kind(_outlier(1e300, 3, 1), searched=False),
    "a third 1e10": Kind(_outlier(1e10, 3, 1), searched=False),
    "offset 1e12, one outlier 1e300": Kind(
        lambda p, i, rng: 1e300 if i == 4 else 1e12 + plain(p),
    ),
    "both ends of the doubles": Kind(
        lambda p, i, rng: LARGEST if i == 4 else -LARGEST if i == 7 else plain(p), searched=False
    ),
}
FEW = {
    "zero": Kind(lambda p, i, rng: 0.0, searched=False),
    "constant 5": Kind(lambda p, i, rng: 5.0, searched=False),
    "constant -1e300": Kind(lambda p, i, rng: -1e300, searched=False),
    "constant largest": Kind(lambda p, i, rng: LARGEST, searched=False),
    "constant 5e-324": Kind(lambda p, i, rng: 5e-324, searched=False),
    "one value, then constant": Kind(lambda p, i, rng: float(i == 0), searched=False),
    "1e300, then 1": Kind(lambda p, i, rng: 1e300 if i == 0 else 1.0, searched=False),
    "two values": Kind(lambda p, i, rng: float(regret(p) > 0.5), searched=False),
    "1e12 and the next double": Kind(
        lambda p, i, rng: 1e12 if regret(p) < 0.5 else math.nextafter(1e12, math.inf), searched=False
    ),
    "whole numbers": Kind(lambda p, i, rng: float(round(10.0 * plain(p)))),
    "rounding of a constant": Kind(lambda p, i, rng: (0.1 + p["x"]) - p["x"], searched=False),
}


def _with_std(std: float, scale: float = 1.0) -> Kind:
    # Noise of the largest known deviations would drown everything.
    return Kind(_affine(0.0, scale), std=lambda i: std, searched=std <= 0.1 * scale)


POINT = {"x": 0.7, "y": 0.2}
REPEATED = {
    f"one point, {noise}, {name}": Kind(
        lambda p, i, rng, a=a, b=b, sd=sd: a + b * (plain(p) + sd * rng.standard_normal()),
        # Fourteen trials are few where values are multiples of 0.125.
        searched=name != "offset 1e15",
        first_at=POINT,
    )
    for name, (a, b) in SCALES.items()
    for noise, sd in {"one value": 0.0, "noisy values": 0.01}.items()
}
STDS = {
    **{f"std {std:g}": _with_std(std) for std in (0.0, 1e-300, 1e-160, 1e-3, 1e160, 1e300, LARGEST)},
    "scale 1e300, std 1e297": _with_std(1e297, 1e300),
    "scale 1e-300, std 1e-303": _with_std(1e-303, 1e-300),
    "scale 1e-300, std 1": _with_std(1.0, 1e-300),
    "scale 1e300, std 1": _with_std(1.0, 1e300),
    "offset 1e12, std 0.01": Kind(_affine(1e12, 1.0), std=lambda i: 0.01),
    "std 0 and 0.1": Kind(UNIT, std=lambda i: 0.1 * (i % 2)),
    "std 1e-300 and 1e300": Kind(UNIT, std=lambda i: 1e300 if i % 5 == 2 else 1e-300),
}
LIMITS = {
    **{
        f"constraint, {name}": Kind(UNIT, limit=_affine(0.0, scale, _limit))
        for name, (offset, scale) in SCALES.items()
        if offset == 0.0  # zero is where the limit is
    },
    "constraint, always far above": Kind(UNIT, limit=_affine(1e12, 1.0, _limit), searched=False),
    "constraint, always far below": Kind(UNIT, limit=_affine(-1e12, 1.0, _limit)),
    "constraint, one of 1e300": Kind(UNIT, limit=lambda p, i, rng: 1e300 if i == 4 else _limit(p)),
    "constraint, one of -1e300": Kind(UNIT, limit=lambda p, i, rng: -1e300 if i == 4 else _limit(p)),
    "constraint, a third 1e300": Kind(UNIT, limit=lambda p, i, rng: 1e300 if p["x"] > 0.65 else _limit(p)),
    "constraint, 0 and 1e300": Kind(UNIT, limit=lambda p, i, rng: 1e300 * (p["x"] > 0.5)),
    "constraint, constant": Kind(UNIT, limit=lambda p, i, rng: -1e300),
    "constraint and objective, scale 1e300": Kind(_affine(0.0, 1e300), limit=_affine(0.0, 1e300, _limit)),
}
SEVERAL = {
    f"two objectives, {name}": Kind(_affine(*ends), second=_affine(*ends, _second), searched=False)
    for name, ends in SCALES.items()
} | {
    "two objectives, 1e300 and 1e-300": Kind(_affine(0.0, 1e300), _affine(0.0, 1e-300, _second), searched=False),
    "two objectives, constant": Kind(lambda p, i, rng: 1e300, UNIT, searched=False),
    "two objectives, one of 1e300": Kind(_outlier(1e300, 10**6), _affine(0.0, 1.0, _second), searched=False),
    "two objectives, one of -1e300": Kind(_outlier(-1e300, 10**6), _affine(0.0, 1.0, _second), searched=False),
    "two objectives, limit of 1e300": Kind(
        UNIT, _affine(0.0, 1e300, _second), limit=_affine(0.0, 1e300, _limit), searched=False
    ),
}
KINDS: dict[str, Kind] = {
    **{name: Kind(_affine(*ends)) for name, ends in SCALES.items()},
    **TAILS,
    **FEW,
    **REPEATED,
    **STDS,
    **LIMITS,
    **SEVERAL,
}
#: Arguments of an optimizer that see values in other ways.
OPTIONS: dict[str, dict[str, Any]] = {
    "bkb": {},
    "exact": {"surrogate": "exact"},
    "logei": {"acquisition": "logei"},
    "thompson": {"acquisition": "thompson"},
    "deterministic": {"deterministic": True},
    "fourier": {"surrogate": "fourier"},
    "learner": {"surrogate": "pkawv"},
    "maximized": {"direction": "maximize"},
}


def values_of(kind: Kind, params: Params, i: int, rng: np.random.Generator, sign: float) -> list[float]:
    """The values of all objectives; for maximisation with `sign` -1."""
    return [sign * value(params, i, rng) for value in (kind.value, kind.second) if value is not None]


def optimized(kind: Kind, seed: int, n: int = TRIALS, **options: Any) -> bo.Optimizer:
    """An optimizer after `n` trials of a kind."""
    rng, sign = np.random.default_rng(seed), 1.0
    if options.get("direction") == "maximize":
        sign = -1.0
        if kind.second is not None:
            options = {"directions": ["maximize"] * 2}
    elif kind.second is not None:
        options = {**options, "directions": ["minimize"] * 2}
    if kind.limit is not None:
        options = {**options, "constraints": ["limit"]}
    opt = bo.Optimizer(SPACE, seed=seed, n_startup_trials=STARTUP, **options)
    for i in range(n):
        past = kind.first_at if i < STARTUP else None
        trial = opt.ask() if past is None else past
        params = trial.params if isinstance(trial, bo.Trial) else trial
        values = values_of(kind, params, i, rng, sign)
        limits = {} if kind.limit is None else {"limit": kind.limit(params, i, rng)}
        std = None if kind.std is None else [kind.std(i)] * len(values)
        told = values if kind.second is not None else values[0]
        opt.tell(trial, told, constraints=limits, std=std if std is None or kind.second is not None else std[0])
    return opt


def numbers_of(opt: bo.Optimizer) -> list[float]:
    """Every number that an optimizer reports."""
    points = [{"x": x, "y": y} for x in (0.0, 0.3, 1.0) for y in (0.0, 0.6)]
    out = [*map(float, np.ravel(opt.predict(points)))]
    if len(opt.directions) == 1:
        choice, certificate = opt.recommend(), opt.regret_certificate()
        out += [choice.mean, choice.std, certificate.bound, certificate.beta, float(opt.beta)]
    else:
        assert opt.best_trials or opt.constraints
        out.append(opt.hypervolume([1.0 if d == "minimize" else -1.0 for d in opt.directions]))
    for record in opt.diagnostics:
        out += [number for number in (record.noise_std, record.confidence_gap, record.beta) if number is not None]
    assert opt.useful_workers(4) >= 1
    assert opt._repr_html_()
    return out


def sampled(kind: Kind, seed: int, n: int = TRIALS) -> optuna.Study:
    """A study after `n` trials of a kind."""
    rng = np.random.default_rng(seed)
    sampler = BKBSampler(seed=seed, n_startup_trials=STARTUP)
    directions = ["minimize"] * (1 if kind.second is None else 2)
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(directions=directions, sampler=sampler)
    optuna.logging.set_verbosity(verbosity)
    for i in range(n):
        trial = study.ask(DISTRIBUTIONS)
        if kind.limit is not None:
            trial.set_constraint("limit", kind.limit(trial.params, i, rng))
        study.tell(trial, values_of(kind, trial.params, i, rng, 1.0))
    return study


def outcome(kind: Kind, seed: int, interface: str) -> str:
    """Outcome of an optimizer with the options `interface`, or of "optuna"; see the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        # Importing GPyTorch, which BoTorch does.
        warnings.filterwarnings("ignore", message="`torch.jit.script` is deprecated", category=DeprecationWarning)
        try:
            if interface == "optuna":
                points: Sequence[Params] = [trial.params for trial in sampled(kind, seed).trials]
                return "fine" if not kind.searched or min(map(regret, points)) < REACH else "lost"
            opt = optimized(kind, seed, **OPTIONS[interface])
            if not all(map(math.isfinite, numbers_of(opt))):
                return "not finite"
        except Warning as warning:
            return f"warned: {type(warning).__name__}"
        except (BkbError, ArithmeticError, ValueError, RuntimeError, TypeError, LookupError) as error:
            return f"raised: {type(error).__name__}"
    return "fine" if not kind.searched or regret(opt.recommend().params) < REACH else "lost"


def suits(kind: Kind, interface: str) -> bool:
    """Whether an interface supports a kind: online learners and Optuna take no known noise."""
    if interface == "optuna":
        return kind.std is None and kind.first_at is None
    return interface != "learner" or kind.std is None


def run(seeds: Iterable[int], interfaces: Iterable[str] = ("bkb",)) -> Counter[tuple[str, str]]:
    """How often each kind of objective had which outcome, over seeds and interfaces: "optuna" and keys of `OPTIONS`."""
    seeds, interfaces = list(seeds), list(interfaces)
    return Counter(
        (name, outcome(kind, seed, interface))
        for name, kind in KINDS.items()
        for seed in seeds
        for interface in interfaces
        if suits(kind, interface)
    )


#: Interfaces of the table; the slow tests go through all.
TABLE_INTERFACES = ("bkb", "exact", "optuna")
#: Kinds of objective in the table's short form.
SHORT = 6


def rows(quick: bool) -> Iterator[Row]:
    """A line for each kind of objective."""
    kinds = dict(list(KINDS.items())[:SHORT]) if quick else KINDS
    for name, kind in kinds.items():
        interfaces = [interface for interface in TABLE_INTERFACES[: 1 if quick else None] if suits(kind, interface)]
        results = Counter(
            outcome(kind, seed, interface) for seed in range(1 if quick else 2) for interface in interfaces
        )
        outcomes = Counter({w if w == "fine" else f"{FAILED}: {w}": count for w, count in results.items()})
        yield Row(f"objective: {name}", outcomes, unit="runs")
