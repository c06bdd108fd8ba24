"""Time of a suggestion as a study grows: BKBSampler, multivariate TPE and GPSampler, in one run.

Run it as `python -m benchmarks.optuna_speed`. Three spaces: six floats, ten mixed parameters (floats with and without
log, integers, categories), and a choice of three models with parameters of their own, which are asked for as the study
runs. The studies lie in memory and hold noisy values of a bowl, half of them at random points and half around a good
one, as a search leaves them. Every measurement has a process of its own, in which the modules are loaded and used once
before:

- cold: the first suggestion (ask) of a new sampler in a new process, for a study in storage;
- warm: a step (ask and tell) of a sampler that has read the study, median of several;
- memory: what the process holds after the steps, and the most that it held, above what it held with the study alone.

A sampler is left out above the size at which its warm step takes more than ten seconds, as GPSampler's does. A last
part has 1,000 running trials beside 50 finished ones; TPE treats them as poor trials there (`constant_liar`), as it
ignores them otherwise. GPSampler needs several gigabytes for this part and runs with `--full` only.
"""

import json
import multiprocessing
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from benchmarks.arguments import Arguments
from benchmarks.report import Clock, MemoryWatch, limited_threads, measuring, print_table, rss_mb
from benchmarks.samplers import N_STARTUP, SAMPLERS, quiet_optuna

__all__ = ["SPACES", "Cost", "main", "make_study", "measure", "objective", "params_at"]

Space = Mapping[str, BaseDistribution]
Params = Mapping[str, Any]

SPACES: dict[str, dict[str, BaseDistribution]] = {
    "6 floats": {f"x{j}": FloatDistribution(-5.0, 10.0) for j in range(6)},
    "10 mixed": {
        "rate": FloatDistribution(1e-5, 1.0, log=True),
        "decay": FloatDistribution(1e-6, 1e-1, log=True),
        "dropout": FloatDistribution(0.0, 0.9),
        "momentum": FloatDistribution(0.0, 1.0),
        "layers": IntDistribution(1, 8),
        "width": IntDistribution(8, 1024, log=True),
        "batch": IntDistribution(16, 512, step=16),
        "activation": CategoricalDistribution(["relu", "tanh", "gelu"]),
        "norm": CategoricalDistribution([None, "batch", "layer"]),
        "nesterov": CategoricalDistribution([False, True]),
    },
    "3 branches": {
        "model": CategoricalDistribution(["svm", "forest", "boosting"]),
        "svm.cost": FloatDistribution(1e-3, 1e3, log=True),
        "svm.width": FloatDistribution(1e-3, 1e3, log=True),
        "forest.depth": IntDistribution(2, 60),
        "forest.share": FloatDistribution(0.1, 1.0),
        "boosting.rate": FloatDistribution(1e-3, 1.0, log=True),
        "boosting.rounds": IntDistribution(10, 500),
        "boosting.share": FloatDistribution(0.1, 1.0),
    },
}
NAMES = {"bkb": "BKB", "tpe": "TPE", "tpe_liar": "TPE (liar)", "gp_sampler": "GP"}
SIZES = (100, 300, 1_000, 3_000, 10_000)
#: A sampler that has caught up and still takes longer for a step is not asked at larger sizes.
LIMIT_S = 10.0
#: Steps before the warm ones that no number counts.
N_SETTLING = 2
N_FINISHED, N_RUNNING = 50, 1_000
NOISE_SD = 0.05


def params_at(space: Space, u: np.ndarray) -> dict[str, Any]:
    """The parameters at a point u (d,) of the unit cube."""
    return {name: _value_at(d, float(v)) for (name, d), v in zip(space.items(), u, strict=True)}


def is_active(name: str, params: Params) -> bool:
    """Whether a parameter exists beside the others: `forest.depth` belongs to the model "forest"."""
    return "." not in name or name.partition(".")[0] == params["model"]


def asked(study: optuna.Study, space: Space) -> optuna.Trial:
    """The next trial, with its parameters."""
    trial = study.ask()
    for name, d in space.items():
        if not is_active(name, trial.params):
            continue
        if isinstance(d, CategoricalDistribution):
            trial.suggest_categorical(name, d.choices)
        elif isinstance(d, IntDistribution):
            trial.suggest_int(name, d.low, d.high, step=d.step, log=d.log)
        else:
            assert isinstance(d, FloatDistribution)
            trial.suggest_float(name, d.low, d.high, step=d.step, log=d.log)
    return trial


def _value_at(distribution: BaseDistribution, u: float) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        k = len(distribution.choices)
        return distribution.choices[min(int(u * k), k - 1)]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    low, high = distribution.low, distribution.high
    value = low * (high / low) ** u if distribution.log else low + u * (high - low)
    if isinstance(distribution, IntDistribution):
        return low + distribution.step * round((value - low) / distribution.step)
    return min(max(value, low), high)


def _place(distribution: BaseDistribution, value: Any) -> float:
    """Position of a value in its range, from 0 to 1."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices.index(value) / (len(distribution.choices) - 1)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    low, high = distribution.low, distribution.high
    if distribution.log:
        return float(np.log(value / low) / np.log(high / low))
    return float((value - low) / (high - low))


def _centre(space: Space) -> np.ndarray:
    return np.linspace(0.3, 0.7, len(space))


def objective(space: Space, params: Params, rng: np.random.Generator) -> float:
    """A bowl with a ripple over the unit cube, or over the columns of the active parameters, and noise."""
    here = np.array([name in params for name in space])
    u = np.array([_place(distribution, params[name]) for name, distribution in space.items() if name in params])
    return float(
        ((u - _centre(space)[here]) ** 2).sum() + 0.1 * np.sin(6.0 * u.sum()) + NOISE_SD * rng.standard_normal()
    )


def make_study(space: Space, finished: int, running: int = 0, seed: int = 0) -> optuna.Study:
    """A study in memory with so many finished trials, and so many running ones at random points."""
    rng = np.random.default_rng([seed, finished])
    d = len(space)
    near = np.clip(_centre(space) + 0.1 * rng.standard_normal((finished // 2, d)), 0.0, 1.0)
    points = rng.permutation(np.concatenate([rng.random((finished - finished // 2, d)), near]))
    study = optuna.create_study(sampler=SAMPLERS["random"](seed))
    for u in points:
        every = params_at(space, u)
        params = {name: value for name, value in every.items() if is_active(name, every)}
        value = objective(space, params, rng)
        distributions = {name: space[name] for name in params}
        study.add_trial(optuna.create_trial(params=params, distributions=distributions, value=value))
    for _ in range(running):
        asked(study, space)
    return study


@dataclass(frozen=True)
class Cost:
    """Measurements of one process: milliseconds cold, and warm by median and at most; megabytes held and at most."""

    cold: float
    warm: float
    longest: float
    held: float
    most: float


def measure(sampler: str, space_name: str, finished: int, running: int, steps: int, threads: int) -> Cost:
    """Time a fresh sampler on a study; meant for a process of its own."""
    space, rng = SPACES[space_name], np.random.default_rng([1, finished])
    with quiet_optuna(), limited_threads(threads):
        _use_once(sampler, space)
        study = make_study(space, finished, running)
        before, warm = rss_mb(), []
        with MemoryWatch() as memory:
            with Clock() as cold:
                study.sampler = SAMPLERS[sampler](0)
                trial = asked(study, space)
            study.tell(trial, objective(space, trial.params, rng))
            for step in range(N_SETTLING + steps):
                with Clock() as clock:
                    trial = asked(study, space)
                value = objective(space, trial.params, rng)
                with clock:
                    study.tell(trial, value)
                if clock.wall > LIMIT_S:
                    warm = [clock.wall]
                    break
                if step >= N_SETTLING:
                    warm.append(clock.wall)
        held = rss_mb() - before
    most = max(memory.peak - before, held)
    return Cost(1e3 * cold.wall, 1e3 * statistics.median(warm), 1e3 * max(warm), held, most)


def _use_once(sampler: str, space: Space) -> None:
    """Load the modules that a suggestion needs, and start their threads."""
    study = make_study(space, N_STARTUP + 2)
    study.sampler = SAMPLERS[sampler](1)
    asked(study, space)


def in_fresh_processes(repeats: int, *arguments: Any) -> Cost:
    """`measure` in so many processes, one after the other (in one only where the start is slow): medians."""
    costs: list[Cost] = []
    while len(costs) < repeats and (not costs or costs[-1].cold <= 1e3 * LIMIT_S):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            costs.append(process.submit(measure, *arguments).result())
    return Cost(
        cold=statistics.median(c.cold for c in costs),
        warm=statistics.median(c.warm for c in costs),
        longest=max(c.longest for c in costs),
        held=statistics.median(c.held for c in costs),
        most=max(c.most for c in costs),
    )


Measure = Callable[[str, str, int, int], Cost]
Costs = dict[tuple[str, int], Cost]


def costs_by_size(space_name: str, samplers: Sequence[str], sizes: Sequence[int], run: Measure) -> Costs:
    """Costs by sampler and size, side by side, each sampler up to the size at which it is too slow."""
    costs: Costs = {}
    slow: set[str] = set()
    for size in sizes:
        for sampler in samplers:
            if sampler not in slow:
                costs[sampler, size] = run(sampler, space_name, size, 0)
                if costs[sampler, size].warm > 1e3 * LIMIT_S:
                    slow.add(sampler)
    return costs


def print_costs(space_name: str, samplers: Sequence[str], sizes: Sequence[int], costs: Costs) -> None:
    """Tables of the warm and the cold times with their ratios to the first sampler, and of memory."""
    ours, *others = samplers

    def row(size: int, *fields: str) -> list[float | None]:
        found = [(costs.get((sampler, size)), field) for sampler in samplers for field in fields]
        return [None if cost is None else getattr(cost, field) for cost, field in found]

    def times(field: str) -> list[tuple[object, ...]]:
        rows = list[tuple[object, ...]]()
        for size in sizes:
            own, *theirs = row(size, field)
            rows.append((size, own, *theirs, *(ms / own if ms and own else None for ms in theirs)))
        return rows

    header = ("finished", *(f"{NAMES[s]} ms" for s in samplers), *(f"{NAMES[s]} / {NAMES[ours]}" for s in others))
    aims = "aims: GP / BKB at least 20 at 1,000; TPE / BKB at least 1 at 10,000"
    print_table(f"{space_name}, warm: an ask and a tell", header, times("warm"), aims)
    print_table(f"{space_name}, cold: the first ask of a fresh sampler in a fresh process", header, times("cold"))
    longest = [(size, *row(size, "longest")) for size in sizes]
    print_table(f"{space_name}, warm: the longest step measured", header[: len(samplers) + 1], longest)
    memory = [(size, *row(size, "held", "most")) for size in sizes]
    columns = ("finished", *(f"{NAMES[s]} {what}" for s in samplers for what in ("held", "most")))
    note = "aim: BKB below 300 MB at 10,000"
    print_table(f"{space_name}: memory in MB above that of the study", columns, memory, note)


def print_running(samplers: Sequence[str], n_running: int, run: Measure) -> None:
    """A table of the times beside running trials, on six floats."""
    rows = []
    for sampler in samplers:
        alone, beside = (run(sampler, "6 floats", N_FINISHED, n) for n in (0, n_running))
        warm, cold = beside.warm / alone.warm, beside.cold / alone.cold
        rows.append((NAMES[sampler], alone.warm, beside.warm, warm, alone.cold, beside.cold, cold, beside.most))
    print_table(
        f"{N_FINISHED} finished trials, 6 floats: without, and with {n_running} running ones",
        ("sampler", "warm ms", "with", "ratio", "cold ms", "with", "ratio", "most MB"),
        rows,
        "aim: BKB's ratios at most 10",
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the tables."""
    parser = Arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="GPSampler beside running trials too: needs 8 GB")
    parser.option("--threads", 2, help="of torch and BLAS")
    parser.option("--sizes", SIZES, quick=SIZES[:2], help="finished trials, increasing")
    parser.option(
        "--samplers", ("bkb", "tpe", "gp_sampler"), choices=NAMES, help="what is timed; ratios are to the first"
    )
    parser.option("--spaces", tuple(SPACES), choices=SPACES, help="parameters of the study")
    parser.option("--steps", 9, quick=3, help="warm steps of a process")
    parser.option("--repeats", 3, quick=1, help="processes a measurement, whose medians are shown")
    parser.option("--running", N_RUNNING, quick=300, help="running trials of the last part; 0 leaves it out")
    parser.add_argument("--json", type=Path, help="also keep the costs of the growing studies in this file")
    options = parser.parse_args(arguments)
    sizes, steps, repeats, running = options.sizes, options.steps, options.repeats, options.running

    def run(sampler: str, space_name: str, finished: int, n_running: int) -> Cost:
        return in_fresh_processes(repeats, sampler, space_name, finished, n_running, steps, options.threads)

    with measuring(options.threads):
        print(f"{repeats} process(es) each, {steps} warm steps")
        rows = []
        for space_name in options.spaces:
            costs = costs_by_size(space_name, options.samplers, sizes, run)
            print_costs(space_name, options.samplers, sizes, costs)
            rows += [{"space": space_name, "sampler": s, "finished": n, **asdict(c)} for (s, n), c in costs.items()]
        if options.json is not None:
            options.json.parent.mkdir(parents=True, exist_ok=True)
            options.json.write_text(json.dumps(rows))
        if running:
            print_running(["bkb", "tpe_liar", *(["gp_sampler"] if options.full else [])], running, run)


if __name__ == "__main__":
    main()
