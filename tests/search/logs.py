"""Random problems with random logs of trials, and the ways in which a log can reach a designer."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

import bkbopt as bo
from bkbopt.search.designer import Designer
from bkbopt.search.options import Options
from bkbopt.search.quantities.fitting import ModelOptions
from bkbopt.search.trials.evaluations import Evaluation, Point, Problem
from bkbopt.search.trials.states import COMPLETE, FAIL, PRUNED, RUNNING
from bkbopt.spaces.pool import EncodedPool, Pool
from bkbopt.spaces.space import Space
from bkbopt.spaces.stored import encoded_pool

__all__ = ["PROBLEMS", "Case", "arrivals", "points", "random_log", "read"]

FLOATS = {"x": bo.Float(-1.0, 2.0), "y": bo.Float(0.0, 1.0)}
MIXED = {
    "x": bo.Float(-1.0, 2.0),
    "rate": bo.Float(1e-4, 1.0, log=True),
    "n": bo.Int(1, 60),
    "size": bo.Ordinal([16, 32, 128]),
    "kind": bo.Categorical(["a", "b", "c"]),
}
CONDITIONAL = {
    "model": bo.Categorical(["svm", "trees", "mean"]),
    "c": bo.Float(1e-3, 1e3, log=True, when={"model": "svm"}),
    "kernel": bo.Categorical(["rbf", "poly"], when={"model": "svm"}),
    "degree": bo.Int(2, 9, when={"kernel": "poly"}),
    "share": bo.Float(0.1, 0.9, step=0.1, when={"model": ["svm", "trees"]}),
}
GRID = {"a": bo.Int(0, 12), "b": bo.Float(0.0, 1.0, step=0.1), "kind": bo.Categorical(["p", "q"])}
#: Ranges with ends that may be stretched: most values of the rate are close to one.
RATES = {
    "x": bo.Float(-1.0, 2.0),
    "rate": bo.Float(1e-5, 1.0),
    "n": bo.Int(1, 10_000),
    "kind": bo.Categorical(["a", "b"]),
}
#: More combinations of choices than are listed.
CHOICES = {"x": bo.Float(0.0, 1.0), **{f"flag{j}": bo.Categorical([False, True]) for j in range(15)}}
#: Ranges that change from trial to trial, and a parameter that some trials lack: as Optuna's trials are.
CHANGING = (
    {"x": bo.Float(0.0, 1.0), "n": bo.Int(1, 9), "kind": bo.Categorical(["a", "b"])},
    {"x": bo.Float(-2.0, 0.5), "n": bo.Int(5, 40), "kind": bo.Categorical(["a", "b"])},
    {"x": bo.Float(0.0, 1.0), "kind": bo.Categorical(["a", "b"]), "rate": bo.Float(1e-3, 1.0, log=True)},
    {"x": bo.Float(0.0, 1.0, step=0.05), "n": bo.Int(1, 9, step=2), "kind": bo.Categorical(["a", "b"])},
)
RATE = "rate (float)"
ARMS = np.random.default_rng(7).random((150, 3)) * [1.0, 10.0, 1e-3]
TABLE = pd.DataFrame({"dose": ARMS[:60, 0], "steps": np.arange(60) % 7, "solvent": ["water", "oil", "acid"] * 20})

#: Products that are searched as a list, and by their parts.
PRODUCT = Pool.product({"dose": ARMS[:7, 0], "site": ARMS[10:16], "solvent": ["water", "oil", "acid"]})
LIBRARY = Pool.product({"acid": ARMS[:110], "base": ARMS[50:], "solvent": TABLE, "step": range(2)})


def pool_of(arms: Any) -> EncodedPool:
    return encoded_pool(arms if isinstance(arms, Pool) else Pool(arms), scale=True, has_kernel=False)


#: What is searched, and the spaces that trials come from (none over a pool).
PROBLEMS: dict[str, tuple[Problem, tuple[Space, ...]]] = {
    **{
        name: (Problem(space=Space.parse(spec)), (Space.parse(spec),))
        for name, spec in {
            "floats": FLOATS,
            "mixed": MIXED,
            "choices": CHOICES,
            "conditional": CONDITIONAL,
            "grid": GRID,
            "rates": RATES,
        }.items()
    },
    "changing": (Problem(), tuple(Space.parse(spec) for spec in CHANGING)),
    "arms": (Problem(pool=pool_of(ARMS)), ()),
    "table": (Problem(pool=pool_of(TABLE)), ()),
    "product": (Problem(pool=pool_of(PRODUCT)), ()),
    "library": (Problem(pool=pool_of(LIBRARY)), ()),
}


def some(point: Point) -> bool:
    """A constraint on points that about two in three meet."""
    return sum(map(hash, point.values())) % 3 != 0


@dataclass(frozen=True)
class Case:
    """A problem with options.

    Attributes:
        name: of the problem in `PROBLEMS`.
        signs: of the objectives.
        constraints: names of outcome constraints.
        surrogate: without data.
        options: of the designer.
        feasible: whether points are constrained.
        known_noise: whether the standard deviation of the noise is known for most values.
        hostile: whether trials fail, are pruned, have infinite values or, in every second log, penalties.
        partly: whether most trials have a value of some of several objectives only.
    """

    name: str
    signs: tuple[float, ...] = (-1.0,)
    constraints: tuple[str, ...] = ()
    surrogate: Any = field(default_factory=bo.BKB)
    options: Mapping[str, Any] = field(default_factory=dict)
    feasible: bool = False
    known_noise: bool = False
    hostile: bool = True
    partly: bool = False

    @property
    def weighs(self) -> bool:
        """Whether standard deviations are told: an online learner refuses them."""
        return self.known_noise and not isinstance(self.surrogate, bo.LearnerSurrogate)

    @property
    def problem(self) -> Problem:
        """The problem."""
        feasible = some if self.feasible else None
        return replace(PROBLEMS[self.name][0], signs=self.signs, feasible=feasible)

    @property
    def spaces(self) -> tuple[Space, ...]:
        """The spaces that trials come from."""
        return PROBLEMS[self.name][1]

    def designer(self) -> Designer:
        """A designer that knows of no trial."""
        options = Options(ModelOptions(self.surrogate), **{"n_startup_trials": 3, **self.options})
        return Designer(self.problem, options, 5)

    def suggestions(self, designer: Designer, number: int, count: int = 3) -> list[tuple[Point, int | None]]:
        """What the designer suggests for `count` trials from `number` on."""
        space = None if self.problem.pool is not None or self.problem.space is not None else self.spaces[0]
        return points(designer.suggest(count, number=number, space=space))


def points(suggestions: Sequence[Any]) -> list[tuple[Point, int | None]]:
    return [(dict(suggestion.point), suggestion.index) for suggestion in suggestions]


def random_point(case: Case, space: Space | None, rng: np.random.Generator) -> Point:
    if space is None:
        pool = case.problem.pool
        assert pool is not None
        return pool.point(int(rng.integers(len(pool.X))))
    u = space.sample(1, rng)
    named = space.internal(space.decode(u))[0]
    point = {key: float(value) for key, value in space.active_part(named).items()}
    return {key: 10.0 ** (-5.0 * rng.random()) if key == RATE else value for key, value in point.items()}


def effect(key: str, value: float) -> float:
    """What one parameter adds to the values."""
    return (math.log10(value) + 3.0) ** 2 if key == RATE else math.sin(3.0 * value + len(key))


def random_log(case: Case, n: int, rng: np.random.Generator) -> list[Evaluation]:
    """`n` trials in the order of their numbers; they end in an order of their own, and some are running still."""
    log: list[Evaluation] = []
    times = rng.permutation(n)
    is_penalised = case.hostile and rng.random() < 0.5
    for number in range(n):
        space = case.spaces[rng.integers(len(case.spaces))] if case.spaces else None
        point = log[-1].point if log and rng.random() < 0.1 else random_point(case, space, rng)
        if log and point is log[-1].point:
            space = log[-1].space
        state = COMPLETE
        if case.hostile:
            state = str(rng.choice([COMPLETE, FAIL, PRUNED], p=[0.75, 0.15, 0.1]))
        if number > n - 3:
            state = RUNNING
        level = sum(effect(key, value) for key, value in point.items())
        values = tuple(level * (k + 1) + 0.1 * float(rng.standard_normal()) for k in range(len(case.signs)))
        if is_penalised and math.sin(9.0 * level) > 0.6:
            values = tuple(-50.0 * sign for sign in case.signs)
        if case.hostile and rng.random() < 0.08:
            values = (math.inf * (1.0 if rng.random() < 0.5 else -1.0), *values[1:])
        partial: tuple[float, ...] = ()
        if case.partly and state == COMPLETE and rng.random() < 0.7:
            measured = rng.random(len(values)) < [0.2, *[0.7] * (len(values) - 1)]
            measured[rng.integers(len(values))] = True
            partial = tuple(y if there else math.nan for y, there in zip(values, measured, strict=True))
            values, partial = (values, ()) if measured.all() else ((), partial)
        told = state == COMPLETE
        order = (float(times[number]), number)
        names = [name for name in case.constraints if rng.random() < 0.8]
        log.append(
            Evaluation(
                number,
                state,
                point,
                space,
                order if state != RUNNING else (0.0, number),
                values if told else (),
                tuple(0.05 + 0.3 * rng.random() for _ in values or partial)
                if told and case.weighs and rng.random() < 0.7
                else None,
                {step: level + 1.0 / step for step in range(1, int(rng.integers(1, 4)))} if state != FAIL else {},
                dict.fromkeys(names, level - 0.5) if state in (COMPLETE, PRUNED) else {},
                partial=partial,
            )
        )
    return log


def arrivals(log: Sequence[Evaluation], rng: np.random.Generator, late: bool) -> Iterator[list[Evaluation]]:
    """The log in pieces: some trials are seen running first, and with `late` they come in any order."""
    finished = [e for e in log if e.state != RUNNING]
    finished.sort(key=lambda e: e.order)
    if late:
        keep = rng.random(len(finished)) < 0.6  # most come as they were finished
        ranks = np.where(keep, np.arange(len(finished)), rng.permutation(len(finished)))
        finished = [finished[i] for i in np.argsort(ranks, kind="stable")]
    pieces: list[list[Evaluation]] = []
    while finished:
        size = int(rng.integers(1, 5))
        pieces.append(finished[:size])
        finished = finished[size:]
    for evaluation in log:
        if evaluation.state == RUNNING:
            pieces[rng.integers(len(pieces))].append(evaluation)
        elif rng.random() < 0.4:
            early = Evaluation(
                evaluation.number,
                RUNNING,
                evaluation.point,
                evaluation.space,
                (0.0, evaluation.number),
                n_values=int(rng.integers(len(log))) if rng.random() < 0.7 else None,
            )
            at = next(i for i, piece in enumerate(pieces) if evaluation in piece)
            pieces[rng.integers(at + 1)].insert(0, early)
    yield from pieces


@torch.no_grad()
def read(case: Case, designer: Designer, rng: np.random.Generator) -> None:
    """All results of a designer's models, in any order."""
    if not designer.history.n_complete:
        return
    models = designer.trained() if rng.random() < 0.5 else designer.models
    if not models.ready:
        return
    X = designer.history.X
    pending = X[rng.integers(len(X), size=int(rng.integers(0, 12)))]
    posteriors = models.posteriors(pending, designer.candidates.n_arms())
    posteriors.models[0](X)
    models.objectives[0].predict(X)
    models.objectives[0].surrogate.posterior(X[:2])
    models.objectives[0].noisiness.is_noisy()
    if designer.problem.pool is not None or designer.problem.space is not None:
        designer.upper_bound(posteriors)
