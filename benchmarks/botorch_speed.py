"""Time from data to a suggestion, and accuracy, of BoTorch's models: BKBModel, SingleTaskGP, variational GP.

Run it as `python -m benchmarks.botorch_speed`. The data are values of Hartmann's six-dimensional function with noise of
standard deviation 0.1, half of them at random points and half around its best one, as a search leaves them. The models
run in turns, three times over, so that the load of the machine affects them alike. Every turn has its own data, random
numbers and process, in which the modules are loaded and used once before. All models get the same calls:

- fit: the model is made and fitted by `fit_gpytorch_mll`;
- first: mean and variance of 2,048 points, with all that the model computes at its first prediction; again: once more;
- q = 1, q = 4: `qLogNoisyExpectedImprovement` is made with `prune_baseline=True` and maximised by `optimize_acqf`, 10
  starts, 256 raw samples. Its baseline are the 500 training points with the highest posterior mean: the joint sample of
  thousands of points that it draws otherwise costs the cube of their number, whatever the model;
- total: fit + first + q, from data to suggestion;
- NLPD and RMSE: of 2,000 further noisy values drawn like the data, in units of y. The noise alone gives -0.884 and 0.1;
- memory: the most that the process held above what it held with the data alone.

Tables have medians over a model's turns; ratios of two models are medians over the turns that both have. The turns of a
model share its time limit at a size: there is another turn if the longest so far would still fit. A model that does not
finish its first turn shows the steps that it finished, and is left out at larger sizes.

The variational GP has as many inducing points as the BKBModel of the same number, and learns their locations. It is
fitted by L-BFGS, which reaches a better bound than BoTorch's default above 1,024 points, for at most two and a half
minutes.
"""

import argparse
import math
import multiprocessing
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from multiprocessing.connection import Connection

import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.exceptions.warnings import BotorchWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP, SingleTaskVariationalGP
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf
from botorch.optim.fit import fit_gpytorch_mll_scipy
from botorch.test_functions import Hartmann
from gpytorch.mlls import ExactMarginalLogLikelihood, VariationalELBO
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor

from benchmarks.arguments import Arguments
from benchmarks.report import MemoryWatch, limited_threads, measuring, print_table, rss_mb
from bkbopt.adapters.botorch import BKBModel

__all__ = ["MODELS", "Measured", "main", "make_data", "measure", "within_limit"]

D, NOISE_SD = 6, 0.1
SIZES = (500, 2_000, 8_000)
N_TEST, N_POSTERIOR, N_BASELINE = 2_000, 2_048, 500
SPREAD = 0.15
#: The fit of a variational GP ends after so long, converged or not.
VARIATIONAL_S = 150.0
TURNS = 3


def _bkb(X: Tensor, Y: Tensor, m: int) -> BKBModel:
    model = BKBModel(X, Y, max_inducing=m)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def _exact(X: Tensor, Y: Tensor, m: int) -> SingleTaskGP:
    model = SingleTaskGP(X, Y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def _variational(X: Tensor, Y: Tensor, m: int) -> SingleTaskVariationalGP:
    model = SingleTaskVariationalGP(X, Y, inducing_points=min(m, len(X)), outcome_transform=Standardize(1))
    mll = VariationalELBO(model.likelihood, model.model, num_data=len(X))
    fit_gpytorch_mll(mll, optimizer=fit_gpytorch_mll_scipy, optimizer_kwargs={"timeout_sec": VARIATIONAL_S})
    return model


#: Name -> (X, Y, m) -> a fitted model, and m.
MODELS: dict[str, tuple[Callable[[Tensor, Tensor, int], GPyTorchModel], int]] = {
    "BKB 300": (_bkb, 300),
    "BKB 1000": (_bkb, 1_000),
    "exact": (_exact, 0),
    "variational 300": (_variational, 300),
    "variational 1000": (_variational, 1_000),
}


@dataclass
class Measured:
    """What a turn measured, in seconds, units of y and megabytes; None for what was not reached."""

    fit: float | None = None
    first: float | None = None
    again: float | None = None
    nlpd: float | None = None
    rmse: float | None = None
    q1: float | None = None
    q4: float | None = None
    memory: float | None = None

    def total(self, field: str) -> float | None:
        """From data to a suggestion of `field` points."""
        parts = [self.fit, self.first, getattr(self, field)]
        return None if None in parts else sum(part for part in parts if part is not None)

    @classmethod
    def median(cls, turns: "Sequence[Measured]") -> "Measured":
        """The medians of several turns."""
        return cls(*(_median([getattr(turn, field.name) for turn in turns]) for field in fields(cls)))


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


Report = Callable[[str, float], None]


def make_data(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Shuffled points X (n, 6) and noisy values Y (n, 1)."""
    generator, f = torch.Generator().manual_seed(seed), Hartmann(D, negate=True).to(torch.float64)
    best = torch.tensor(f._optimizers[0], dtype=torch.float64)
    X = torch.rand(n, D, generator=generator, dtype=torch.float64)
    near = best + SPREAD * torch.randn(n // 2, D, generator=generator, dtype=torch.float64)
    X = torch.cat([X[n // 2 :], near.clamp(0.0, 1.0)])[torch.randperm(n, generator=generator)]
    noise = NOISE_SD * torch.randn(n, generator=generator, dtype=torch.float64)
    return X, (f(X) + noise)[:, None]


def scores(model: GPyTorchModel, X: Tensor, Y: Tensor) -> tuple[float, float]:
    """Mean negative log predictive density of Y, and root mean squared error."""
    with torch.no_grad():
        posterior = model.posterior(X, observation_noise=True)
        variance, error = posterior.variance, Y - posterior.mean
    density = 0.5 * (torch.log(2.0 * math.pi * variance) + error.square() / variance)
    return float(density.mean()), float(error.square().mean().sqrt())


def suggest(model: GPyTorchModel, X: Tensor, q: int, restarts: int, raw_samples: int) -> Tensor:
    """The q points (q, 6) that qLogNEI proposes."""
    with torch.no_grad():
        mean = model.posterior(X).mean[:, 0]
    baseline = X[mean.topk(min(N_BASELINE, len(X))).indices]
    acquisition = qLogNoisyExpectedImprovement(model, baseline, prune_baseline=True)
    bounds = torch.tensor([[0.0] * D, [1.0] * D], dtype=torch.float64)
    points, _ = optimize_acqf(acquisition, bounds, q=q, num_restarts=restarts, raw_samples=raw_samples)
    return points


def measure(
    name: str, n: int, threads: int, report: Report, restarts: int = 10, raw_samples: int = 256, turn: int = 0
) -> None:
    """Measure a model on n points; each number is reported as soon as it is known. Meant for a process of its own."""
    make, m = MODELS[name]
    with warnings.catch_warnings(), limited_threads(threads):
        for category in (BotorchWarning, NumericalWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", "Sparse invariant checks")  # of the variational GP's linear algebra
        _use_once(make)
        X, Y = make_data(n, seed=10 * turn)
        Z, before = make_data(N_POSTERIOR, seed=10 * turn + 1)[0], rss_mb()
        torch.manual_seed(turn)
        with MemoryWatch() as memory:
            start = time.perf_counter()
            model = make(X, Y, m)
            report("fit", time.perf_counter() - start)
            for field in ("first", "again"):
                start = time.perf_counter()
                posterior = model.posterior(Z)
                posterior.mean.sum().item(), posterior.variance.sum().item()
                report(field, time.perf_counter() - start)
            for field, score in zip(
                ("nlpd", "rmse"), scores(model, *make_data(N_TEST, seed=10 * turn + 2)), strict=True
            ):
                report(field, score)
            for field, q in (("q1", 1), ("q4", 4)):
                torch.manual_seed(10 * turn + q)
                start = time.perf_counter()
                suggest(model, X, q, restarts, raw_samples)
                report(field, time.perf_counter() - start)
        report("memory", memory.peak - before)


def _use_once(make: Callable[[Tensor, Tensor, int], GPyTorchModel]) -> None:
    """Load the modules, and start their threads."""
    X, Y = make_data(20, seed=3)
    suggest(make(X, Y, 10), X, 1, 2, 4)


def _in_child(
    connection: Connection, name: str, n: int, threads: int, restarts: int, raw_samples: int, turn: int
) -> None:
    measure(name, n, threads, lambda field, value: connection.send((field, value)), restarts, raw_samples, turn)
    connection.send(None)


def within_limit(
    name: str, n: int, threads: int, limit: float, restarts: int = 10, raw_samples: int = 256, turn: int = 0
) -> tuple[Measured, bool]:
    """`measure` in a process of its own, ended after `limit` seconds; also returns whether it finished."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_in_child, args=(there, name, n, threads, restarts, raw_samples, turn))
    process.start()
    there.close()
    measured, deadline = Measured(), time.monotonic() + limit
    done = False
    try:
        while not done and here.poll(max(deadline - time.monotonic(), 0.0)):
            message = here.recv()
            done = message is None
            if message is not None:
                setattr(measured, *message)
    except EOFError:  # the process died, of too little memory for example
        pass
    finally:
        process.terminate()
        process.join()
    return measured, done


def print_size(n: int, rows: dict[str, Measured]) -> None:
    """The table of one size."""
    header = ("model", "fit", "first", "again", "q = 1", "q = 4", "total 1", "total 4", "NLPD", "RMSE", "MB")
    table = [
        (name, r.fit, r.first, r.again, r.q1, r.q4, r.total("q1"), r.total("q4"), r.nlpd, r.rmse, r.memory)
        for name, r in rows.items()
    ]
    print_table(f"{n:,} points; seconds", header, table, "-: not reached within the time limit")


def print_ratios(results: dict[tuple[str, int], list[Measured]], sizes: Sequence[int]) -> None:
    """Every model's total and NLPD relative to the exact model's, and its growth from size to size."""
    table = []
    for (name, n), own in results.items():
        exact = results.get(("exact", n), [])
        smaller = results.get((name, sizes[sizes.index(n) - 1]), []) if sizes.index(n) else []
        times = [_ratio(exact, own, field) for field in ("q1", "q4")]
        growth = [_ratio(own, smaller, field) for field in ("q1", "q4")]
        worse = [
            100.0 * (a.nlpd - b.nlpd) / abs(b.nlpd)
            for a, b in zip(own, exact, strict=False)
            if a.nlpd is not None and b.nlpd is not None
        ]
        table.append((name, n, *times, _median(worse), *growth))
    print_table(
        "beside the exact model, and beside the size before",
        ("model", "points", "exact / own, q = 1", "q = 4", "NLPD worse by %", "own / before, q = 1", "q = 4"),
        table,
        "aims for BKB: 20 times and 2 % at 2,000; own / before below 2 at 8,000; NLPD below that of the variational GP",
    )


def _ratio(a: Sequence[Measured], b: Sequence[Measured], field: str) -> float | None:
    """Ratio of the total of `a` to that of `b`, over the turns that both have."""
    pairs = [(one.total(field), other.total(field)) for one, other in zip(a, b, strict=False)]
    return _median([one / other for one, other in pairs if one is not None and other is not None])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the tables."""
    parser = Arguments(__doc__)
    names = tuple(MODELS)
    parser.add_argument("--full", action="store_true", help="the variational GP with 1,000 inducing points too")
    parser.option("--threads", 2, help="of all models")
    parser.option("--sizes", SIZES, quick=SIZES[:1], help="points that a model is fitted to")
    # A minute is not enough to fit the variational GP.
    parser.option("--models", names[:4], quick=names[:3], choices=names, help="what to measure")
    parser.option("--limit", 240.0, quick=60.0, help="seconds for a model at one size")
    parser.option("--restarts", 10, help="starts of optimize_acqf")
    parser.option("--raw-samples", 256, help="random points that the starts are chosen from")
    parser.option("--turns", TURNS, help="times that each model is measured, as far as the limit allows")
    options = parser.parse_args(arguments)
    sizes, limit = options.sizes, options.limit
    models = names if options.full else options.models
    with measuring(options.threads):
        print(f"at most {limit:.0f} s a model and size")
        results: dict[tuple[str, int], list[Measured]] = {}
        slow: set[str] = set()
        for n in sizes:
            found, unfinished = take_turns([name for name in models if name not in slow], n, limit, options)
            slow |= unfinished
            results |= {(name, n): turns for name, turns in found.items()}
            print_size(n, {name: Measured.median(turns) for name, turns in found.items()})
        print_ratios(results, sizes)


def take_turns(
    names: Sequence[str], n: int, limit: float, options: argparse.Namespace
) -> tuple[dict[str, list[Measured]], set[str]]:
    """Measurements of each model in its turns, and the models that did not finish their first turn."""
    found: dict[str, list[Measured]] = {name: [] for name in names}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    slow: set[str] = set()
    for turn in range(options.turns):
        for name in names:
            left = limit - sum(seconds[name])
            if name in slow or left < max(seconds[name], default=0.0):
                continue
            start, arguments = time.monotonic(), (options.threads, left, options.restarts, options.raw_samples, turn)
            measured, done = within_limit(name, n, *arguments)
            seconds[name].append(time.monotonic() - start)
            found[name].append(measured)
            if not done and not turn:
                slow.add(name)
    return found, slow


if __name__ == "__main__":
    main()
