"""How often the regret certificate and the posterior's bands hold, and how tight they are.

Run it as `python -m benchmarks.calibration`: about 20 minutes, and with `--quick` half of one. Searches by the default
optimizer, over a pool of 600 random arms or a box, of

- draws of a Gaussian process with a Matern-5/2 kernel and random lengthscales, from 0.15 to 1 of the side of the unit
  cube (`prior2` to `prior4`, by the dimension);
- the same with a constraint, another such draw that is positive in half of the cube (`limited2`, `limited3`), measured
  with a noise of a fiftieth of its IQR; the regret is that to the best feasible point;
- the standard functions of `benchmarks.functions`, scaled to the unit cube.

The noise has a tenth of the interquartile range (IQR) as its standard deviation. After so many values the noise-free
regret of the recommended point is compared with `Optimizer.regret_certificate()`, where it is feasible, and the
noise-free values of 200 random points with the bands of `Optimizer.predict`, at fitted hyper-parameters and averaged
over them. A second optimizer with other random numbers is told the same values: the *scatter* is the logarithm of the
ratio of their bounds. By default two of the prior's problems are searched to 300 values and the others to 100.
"""

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

import bkbopt as bo
from benchmarks.arguments import Arguments
from benchmarks.functions import NOISE_SHARE, PROBLEMS, Array
from benchmarks.report import measuring, print_table
from bkbopt.kernels import matern52
from bkbopt.posterior.features import WideFourier

__all__ = ["Reading", "Target", "main", "readings", "target_named"]

LONG = ("pool prior3", "box prior2")
LIMITED = ("pool limited3", "box limited2")
SHORT = ("box prior4", "pool branin", "box branin", "pool hartmann6", "box hartmann6", "box shekel4")
QUICK = ("pool prior3", "box branin")
N_ARMS, N_FRESH = 600, 200
VALUES = (25, 50, 100, 300)
LENGTHSCALES = (0.15, 1.0)
#: Random features of a draw of the prior: many more than a search has values.
N_FREQUENCIES = 3_000
#: Keep the random numbers of functions, pools and noise apart.
FUNCTION, POOL, NOISE, FRESH, LIMIT = 7_101, 7_102, 7_103, 7_104, 7_105
#: Standard deviation of the noise of a constraint, in units of its IQR, and its name.
LIMIT_NOISE, LIMIT_NAME = 0.02, "limit"
#: Added to the seed of a twin.
TWIN = 1_000


@dataclass(frozen=True)
class Target:
    """A function to maximise in the unit cube.

    Attributes:
        dim: columns d.
        value: noise-free values (n,) of points (n, d).
        maximum: its largest value in the cube, among feasible points.
        iqr: interquartile range of its values.
        limit: noise-free values (n,) of the constraint at points (n, d), in units of their IQR; None without one.
    """

    dim: int
    value: Callable[[Array], Array]
    maximum: float
    iqr: float
    limit: Callable[[Array], Array] | None = None

    def feasible(self, X: Array) -> Array:
        """A mask (n,) of the points (n, d) at which the constraint holds."""
        return np.ones(len(X), bool) if self.limit is None else self.limit(X) <= 0.0


def target_named(name: str, seed: int) -> Target:
    """A standard function, or the draw of a prior with this seed."""
    if name.startswith("limited"):
        return _limited(int(name.removeprefix("limited")), seed)
    if not name.startswith("prior"):
        problem = PROBLEMS[name]
        box = problem.high - problem.low
        return Target(problem.dim, lambda X: -problem.value(problem.low + X * box), -problem.minimum, problem.iqr)
    dim = int(name.removeprefix("prior"))
    features, weights, value = _drawn(dim, [FUNCTION, seed, dim])
    X = torch.quasirandom.SobolEngine(dim, scramble=True, seed=0).draw(4096, dtype=torch.float64)
    values = value(X.numpy())
    best = X[np.argsort(-values)[:8].copy()].clone().requires_grad_()
    ascent = torch.optim.LBFGS([best], max_iter=50, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        ascent.zero_grad()
        loss = -(features(best.clamp(0.0, 1.0)) @ weights).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    ascent.step(closure)  # type: ignore[no-untyped-call]
    top = max(float(values.max()), float(value(best.detach().clamp(0.0, 1.0).numpy()).max()))
    return Target(dim, value, top, float(np.subtract(*np.quantile(values, [0.75, 0.25]))))


def _drawn(dim: int, seed: Sequence[int]) -> tuple[WideFourier, torch.Tensor, Callable[[Array], Array]]:
    """Features, weights and values of the draw of a prior."""
    rng = np.random.default_rng(seed)
    lengthscale = np.exp(rng.uniform(*np.log(LENGTHSCALES), dim))
    features = WideFourier.from_kernel(matern52(dim, lengthscale.tolist()), N_FREQUENCIES, rng)
    weights = torch.as_tensor(rng.standard_normal(features.size))

    def value(X: Array) -> Array:
        return np.concatenate([(features(part) @ weights).numpy() for part in torch.as_tensor(X).split(1024)])

    return features, weights, value


def _limited(dim: int, seed: int) -> Target:
    """The draw of a prior with a constraint; its largest feasible value is searched by random steps."""
    free, (_, _, other) = target_named(f"prior{dim}", seed), _drawn(dim, [LIMIT, seed, dim])
    X = torch.quasirandom.SobolEngine(dim, scramble=True, seed=0).draw(16_384, dtype=torch.float64).numpy()
    values = other(X)
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])

    def limit(X: Array) -> Array:
        return (other(X) - middle) / (high - low)

    X = X[values <= middle]
    best, rng = X[np.argsort(-free.value(X))[:32]], np.random.default_rng(0)
    for step in 0.03 * 0.6 ** np.arange(16):
        near = np.clip(best + step * rng.standard_normal((64, *best.shape)), 0.0, 1.0).reshape(-1, dim)
        near = np.concatenate([best, near[limit(near) <= 0.0]])
        best = near[np.argsort(-free.value(near))[:32]]
    return Target(dim, free.value, float(free.value(best[:1])[0]), free.iqr, limit)


@dataclass(frozen=True)
class Reading:
    """Measurements after some values of one search.

    Attributes:
        regret: of the recommended point, in units of the IQR, as are the bounds.
        bound: that of the certificate.
        again: that of an optimizer with other random numbers.
        naive: largest UCB - largest LCB.
        seconds: that the certificate took.
        ask_seconds: that an ask takes here.
        within: shares of fresh points within one and two deviations, fitted and averaged.
        is_feasible: whether the recommended point is.
    """

    regret: float
    bound: float
    again: float
    naive: float
    seconds: float
    ask_seconds: float
    within: tuple[float, float, float, float]
    is_feasible: bool


def readings(problem: str, seed: int, values: Sequence[int]) -> list[Reading]:
    """One search, measured after each of these numbers of values."""
    kind, name = problem.split()
    target = target_named(name, seed)
    arms = np.random.default_rng([POOL, seed]).random((N_ARMS, target.dim)) if kind == "pool" else None
    where: Any = {f"x{j}": (0.0, 1.0) for j in range(target.dim)} if arms is None else arms
    top = target.maximum if arms is None else float(target.value(arms[target.feasible(arms)]).max())
    names = () if target.limit is None else (LIMIT_NAME,)
    opt = bo.Optimizer(where, direction="maximize", constraints=names, seed=seed)
    noise = np.random.default_rng([NOISE, seed])
    out = []
    for t in range(1, max(values) + 1):
        trial = opt.ask()
        X = _points([trial.params])
        y = float(target.value(X)[0]) + NOISE_SHARE * target.iqr * float(noise.standard_normal())
        limits = None
        if target.limit is not None:
            limits = {LIMIT_NAME: float(target.limit(X)[0]) + LIMIT_NOISE * float(noise.standard_normal())}
        opt.tell(trial, y, constraints=limits)
        if t in values:
            out.append(_read(opt, target, arms, top, seed))
            twin = bo.Optimizer(where, direction="maximize", constraints=names, seed=seed + TWIN)
            for trial in opt.trials:
                twin.tell(trial.params, trial.value, constraints=trial.constraints or None)
            out[-1] = replace(out[-1], again=twin.regret_certificate().bound / target.iqr)
    return out


def _points(params: Sequence[Any]) -> Array:
    return np.array([[one[f"x{j}"] for j in range(len(one))] for one in params])


def _read(opt: bo.Optimizer, target: Target, arms: Array | None, top: float, seed: int) -> Reading:
    recommended = _points([opt.recommend().params])
    regret = top - float(target.value(recommended)[0])
    start = time.perf_counter()
    certificate = opt.regret_certificate()
    seconds = time.perf_counter() - start
    fresh = np.random.default_rng([FRESH, seed]).random((N_FRESH, target.dim)) if arms is None else arms[:N_FRESH]
    params = [{f"x{j}": float(x) for j, x in enumerate(row)} for row in fresh]
    within = []
    for averaged in (False, True):
        mean, sd = opt.predict(params, averaged=averaged)
        off = np.abs(target.value(fresh) - mean) / sd
        within += [float((off <= 1.0).mean()), float((off <= 2.0).mean())]
    asks = [record.ask_seconds for record in opt.diagnostics[-10:]]
    scaled = (regret / target.iqr, certificate.bound / target.iqr, math.nan, certificate.confidence_gap / target.iqr)
    return Reading(
        *scaled,
        seconds,
        float(np.median(asks)),
        (within[0], within[1], within[2], within[3]),
        bool(target.feasible(recommended)[0]),
    )


def _rows(problem: str, values: Sequence[int], runs: Sequence[Sequence[Reading]]) -> tuple[list[Any], list[Any]]:
    """Lines of the two tables."""
    certificates, bands = [], []
    for t, every in zip(sorted(values), zip(*runs, strict=True), strict=True):
        found = [r for r in every if r.is_feasible]
        if not found:
            continue
        # The largest arm's regret is zero, up to rounding.
        held = [sum(r.regret <= getattr(r, name) + 1e-9 for r in found) for name in ("bound", "naive")]
        middle = [float(np.median([getattr(r, name) for r in found])) for name in ("regret", "bound", "naive")]
        ratios = [r.bound / r.regret for r in found if r.regret > 0.0]
        times = [float(np.median([getattr(r, name) for r in found])) for name in ("seconds", "ask_seconds")]
        tight = float(np.median(ratios)) if ratios else None
        scatter = float(np.median([abs(math.log(r.bound / r.again)) for r in found]))
        certificates.append((problem, t, *(f"{n} of {len(found)}" for n in held), *middle, tight, scatter, *times))
        bands.append((problem, t, *map(float, np.mean([r.within for r in found], 0))))
    return certificates, bands


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the searches and print the tables."""
    parser = Arguments(__doc__)
    parser.option("--runs", 20, quick=3, help="searches of each problem")
    text = "numbers of values (default 25 50 100, of two problems 300 too; with --quick 25 50)"
    parser.add_argument("--values", type=int, nargs="+", help=text)
    parser.option("--problems", (*LONG, *SHORT, *LIMITED), quick=QUICK, help="a kind and a name each, in quotes")
    options = parser.parse_args(arguments)
    certificates, bands = [], []
    with measuring(1):
        for problem in options.problems:
            values = sorted(options.values or ([25, 50] if options.quick else VALUES[: 4 if problem in LONG else 3]))
            start = time.perf_counter()
            found = [readings(problem, seed, values) for seed in range(options.runs)]
            print(f"{problem}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
            more = _rows(problem, values, found)
            certificates += more[0]
            bands += more[1]
    header = (
        *("problem", "values", "held", "naive held", "regret", "bound", "naive", "bound / regret", "scatter"),
        *("s", "s an ask"),
    )
    note = "medians, regret and bounds in units of the IQR; bound / regret over runs with a regret"
    print_table(f"regret certificate at 0.95, {options.runs} runs", header, certificates, note)
    header = ("problem", "values", "1 sd, fitted", "2 sd, fitted", "1 sd, averaged", "2 sd, averaged")
    print_table("share of fresh points within the posterior's bands; 0.68 and 0.95 are right", header, bands)


if __name__ == "__main__":
    main()
