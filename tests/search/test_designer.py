"""Proposals: global steps and leaps, from the data alone."""

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bkbopt as bo
from bkbopt.errors import ArgumentTypeError
from bkbopt.search import proposing
from bkbopt.search.acquisition import UCB
from bkbopt.search.box_maximizer import LEAP
from bkbopt.search.fitted_model import FittedModel
from bkbopt.search.proposing import leap_is_due, propose

MIXED = {"x": (0.0, 1.0), "rate": bo.Float(1e-3, 1.0, log=True), "n": bo.Int(1, 40), "kind": ["a", "b", "c"]}
FLOATS = {"x": (0.0, 1.0), "y": (0.0, 1.0), "z": (0.0, 1.0)}
#: The steps up to 200 that are leaps.
DUE = [t for t in range(200) if leap_is_due(t, False)]


def value(params: Any) -> float:
    return sum((i + 1.0) * (v - 0.3) ** 2 for i, v in enumerate(p for p in params.values() if isinstance(p, float)))


def told(space: Any, n: int = 20, seed: int = 0, **options: Any) -> bo.Optimizer:
    """An optimizer with `n` random trials and a model."""
    opt = bo.Optimizer(space, seed=seed, **options)
    space_ = bo.Space.parse(space)
    rows = space_.decode(space_.sample(n, np.random.default_rng(seed)))
    opt.tell(rows, [value(p) for p in rows])
    opt.fail(opt.ask())  # builds the model
    return opt


def proposal(opt: bo.Optimizer, step: int, seed: int = 0, **options: Any) -> torch.Tensor:
    given: dict[str, Any] = {"pending": opt._log.pending(), "failed": opt._log.failed(), "acquisition": "ucb"}
    with torch.no_grad():
        return propose(
            opt._modelling,
            opt.domain,
            confidence=opt.confidence,
            rng=np.random.default_rng(seed),
            step=step,
            **given | options,
        )[0]


def moved(opt: bo.Optimizer, x: torch.Tensor) -> int:
    """Number of columns in which a proposal differs from the best point."""
    return int((x != opt._modelling.best_points(1)[0]).sum())


@pytest.mark.parametrize("choices", [False, True])
def test_leaps_are_due_about_three_root_t_times_and_none_at_first(choices: bool) -> None:
    steps = [t for t in range(10_001) if leap_is_due(t, choices)]
    first = proposing.FIRST_LEAP_OF_CHOICES if choices else proposing.FIRST_LEAP
    assert steps[0] > first
    for t in (200, 1_000, 10_000):
        expected = proposing.LEAPS * (t**0.5 - first**0.5)
        assert abs(sum(s <= t for s in steps) - expected) <= 1.0


def test_spaces_with_short_grids_or_categories_have_early_leaps() -> None:
    early = next(t for t in range(200) if leap_is_due(t, True))
    assert early < DUE[0]
    for more, leaps in (
        ({}, False),
        ({"k": bo.Int(1, 5)}, True),
        ({"k": ["a", "b"]}, True),
        ({"k": bo.Int(1, 99)}, False),
    ):
        opt = told({**FLOATS, **more})
        assert (moved(opt, proposal(opt, early)) == 1) == leaps


@pytest.mark.parametrize("space", [FLOATS, MIXED], ids=["floats", "mixed"])
def test_leap_differs_from_the_best_point_in_one_parameter_and_is_of_the_space(space: Any) -> None:
    opt = told(space)
    for seed in range(20):
        x = proposal(opt, DUE[0], seed)
        assert moved(opt, x) == 1
        params = opt.domain.describe(x)[0]
        assert torch.equal(opt.domain.encode([params])[0], x)


def test_leap_along_a_continuum_goes_far() -> None:
    opt = told(FLOATS)
    best = opt._modelling.best_points(1)[0]
    assert min(float((proposal(opt, DUE[0], seed) - best).abs().max()) for seed in range(60)) > LEAP


def test_global_step_stands_in_where_no_leap_is_open() -> None:
    opt = told(FLOATS)
    best = opt.domain.describe(opt._modelling.best_points(1)[0])[0]
    shut = bo.Optimizer(FLOATS, seed=0, feasible=lambda p: all(abs(p[k] - best[k]) < 0.5 * LEAP for k in best))
    opt.domain = shut.domain
    x = opt.domain.describe(proposal(opt, DUE[0]))[0]
    assert all(abs(x[k] - best[k]) < 0.5 * LEAP for k in best)


def test_leap_is_feasible_and_neither_pending_nor_failed() -> None:
    opt = told({"n": bo.Int(0, 200), "kind": list("abcdefghij"), "k": bo.Int(0, 200)}, feasible=lambda p: p["n"] > 50)
    taken = set()
    for seed in range(60):
        x = proposal(opt, DUE[0], seed % 50)
        params = opt.domain.describe(x)[0]
        assert params["n"] > 50
        key = tuple(params.values())
        assert key not in taken
        taken.add(key)
        trial = opt._log.add(x, params, None, datetime(2000, 1, 1))
        if seed % 2:
            opt.fail(trial)


@pytest.mark.parametrize("options", [{"leaps": False}, {"acquisition": "thompson"}], ids=["off", "thompson"])
def test_step_of_a_leap_is_global_where_there_are_no_leaps(options: dict[str, Any]) -> None:
    opt = told(FLOATS)
    assert torch.equal(proposal(opt, DUE[0], **options), proposal(opt, DUE[0] + 1, **options))
    assert not leap_is_due(DUE[0] + 1, False)


@pytest.mark.parametrize(
    "where", [{"n": bo.Int(0, 30), "kind": ["a", "b"]}, np.random.default_rng(0).random((40, 2))], ids=["grid", "pool"]
)
def test_grids_and_pools_are_searched_as_without_leaps(where: Any) -> None:
    asked = []
    for leaps in (True, False):
        opt = bo.Optimizer(where, seed=0, leaps=leaps)
        row = []
        for _ in range(70):
            trial = opt.ask()
            row.append(dict(trial.params))
            opt.tell(trial, float(next(iter(trial.params.values()))))
        asked.append(row)
    assert asked[0] == asked[1]


def test_fixed_kernel_is_searched_as_without_leaps() -> None:
    asked = []
    for leaps in (True, False):
        surrogate = bo.BKB(bo.kernels.matern52(3, 0.4), noise=1e-2)
        opt = bo.Optimizer(FLOATS, seed=0, surrogate=surrogate, fit=False, leaps=leaps)
        row = []
        for _ in range(60):
            trial = opt.ask()
            row.append(dict(trial.params))
            opt.tell(trial, value(trial.params))
        asked.append(row)
    assert asked[0] == asked[1]


def test_proposal_leaves_model_and_domain_as_they_were() -> None:
    opt = told(MIXED)
    before = copy.deepcopy(opt)
    for step in (DUE[0], DUE[0] + 1):
        first = proposal(opt, step)
        assert torch.equal(proposal(opt, step), first)
        assert torch.equal(proposal(before, step), first)
    assert opt._rng.bit_generator.state == before._rng.bit_generator.state


SCRIPT = """
import json
import sys
sys.path.insert(0, sys.argv[2])
import numpy as np, torch
import bkbopt as bo
from bkbopt.confidence import Practical
from bkbopt.search.box_candidates import BoxDomain
from bkbopt.search.box_maximizer import LEAP
from bkbopt.search.fitted_model import FittedModel
from bkbopt.search.proposing import propose
rows, values = json.loads(sys.argv[1])
domain = BoxDomain(bo.Space.parse({"x": (0.0, 1.0), "n": bo.Int(0, 99), "kind": ["a", "b"]}), None, 0)
X = domain.encode(rows)
modelling = FittedModel(bo.BKB(), fit=True, sign=-1.0, categorical=domain.categorical, rng=np.random.default_rng(0))
none = X[:0]
out = []
with torch.no_grad():
    modelling.refit(X, torch.tensor(values, dtype=torch.float64))
    for step in range(60, 80):
        rng = np.random.default_rng(step)
        x, _ = propose(modelling, domain, acquisition="ucb", confidence=Practical(), rng=rng, pending=none,
                       failed=none, step=step)
        out.append(x.tolist())
print(json.dumps(out))
"""


def test_same_data_give_the_same_proposals_in_another_process() -> None:
    space = bo.Space.parse({"x": (0.0, 1.0), "n": bo.Int(0, 99), "kind": ["a", "b"]})
    rows = space.decode(space.sample(30, np.random.default_rng(1)))
    given = json.dumps([rows, [value(p) + 0.01 * p["n"] for p in rows]])
    root = str(Path(bo.__file__).parents[1])
    outputs = [
        subprocess.run([sys.executable, "-c", SCRIPT, given, root], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert outputs[0] == outputs[1]
    assert len(json.loads(outputs[0])) == 20


def test_saved_optimizer_leaps_as_the_one_that_went_on(tmp_path: Path) -> None:
    opt = told(MIXED, n=DUE[0] - 4)
    opt.save(tmp_path / "state")
    other = bo.Optimizer.load(tmp_path / "state")
    assert other.leaps is True
    leapt = 0
    for _ in range(8):
        leapt += leap_is_due(len(opt.trials), True)
        a, b = opt.ask(), other.ask()
        assert a.params == b.params
        opt.tell(a, value(a.params))
        other.tell(b, value(b.params))
    assert leapt > 0


def test_switch_is_saved(tmp_path: Path) -> None:
    told(FLOATS, leaps=False).save(tmp_path / "state")
    assert bo.Optimizer.load(tmp_path / "state").leaps is False


def test_switch_takes_booleans_only() -> None:
    with pytest.raises(ArgumentTypeError, match="leaps: expected True or False, got 1"):
        bo.Optimizer(FLOATS, leaps=1)  # type: ignore[arg-type]


def test_leap_has_no_regret_bound() -> None:
    opt = bo.Optimizer(FLOATS, seed=0)
    for _ in range(DUE[1] + 1):
        trial = opt.ask()
        opt.tell(trial, value(trial.params))
    without = [d.trial for d in opt.diagnostics[10:] if d.regret_bound is None]
    assert without == [t for t in DUE if t <= DUE[1]]


def test_leaps_find_the_better_well_of_each_parameter() -> None:
    # Five wells of depth 1 at 0.2 and of depth 0.8 at 0.8, one a parameter: all but one are wrong at the start.
    def wells(params: Any) -> float:
        return -sum(
            np.exp(-(((v - 0.2) / 0.08) ** 2)) + 0.8 * np.exp(-(((v - 0.8) / 0.08) ** 2)) for v in params.values()
        )

    ends = []
    for leaps in (True, False):
        opt = bo.Optimizer({f"x{j}": (0.0, 1.0) for j in range(3)}, seed=0, leaps=leaps)
        rng = np.random.default_rng(0)
        near = 0.8 + 0.05 * rng.standard_normal((60, 3))
        rows = [{f"x{j}": float(v) for j, v in enumerate(x.clip(0.0, 1.0))} for x in near]
        opt.tell(rows, [wells(p) for p in rows])
        for _ in range(40):
            trial = opt.ask()
            opt.tell(trial, wells(trial.params) + 0.02 * rng.standard_normal())
        ends.append(wells(opt.recommend().params))
    assert ends[0] <= ends[1] + 1e-3


def test_modelling_without_leaps_needs_no_box() -> None:
    # What an adapter does: a model of its own, and a domain.
    domain = bo.Optimizer(np.random.default_rng(0).random((30, 2)), seed=0).domain
    modelling = FittedModel(bo.BKB(), fit=True, sign=1.0, categorical=(), rng=np.random.default_rng(0))
    X = domain.encode([{"index": i} for i in range(12)])
    modelling.refit(X, X[:, 0])
    x, report = propose(
        modelling,
        domain,
        acquisition="ucb",
        confidence=bo.confidence.Practical(),
        rng=np.random.default_rng(0),
        pending=X[:0],
        failed=X[:0],
        step=DUE[0],
    )
    assert domain.describe(x)[1] is not None
    assert report["regret_bound"] >= 0.0


def test_leap_goes_to_no_point_that_is_most_like_a_failed_one() -> None:
    opt = told(FLOATS)
    kernel, known = opt._modelling.surrogate.kernel, opt._modelling.surrogate.observations.X
    failed = torch.as_tensor(np.random.default_rng(1).random((30, 3)))
    with torch.no_grad():
        leaps = torch.stack([proposal(opt, DUE[0], seed, failed=failed[:1]) for seed in range(40)])
        careful = torch.stack([proposal(opt, DUE[0], seed, failed=failed) for seed in range(40)])

    def beside_failures(X: torch.Tensor) -> int:
        return int((kernel(X, failed).amax(1) >= kernel(X, known).amax(1)).sum())

    assert beside_failures(leaps) > 4
    assert beside_failures(careful[[moved(opt, x) == 1 for x in careful]]) == 0


def test_no_leaps_along_a_line() -> None:
    opt = told({"x": (0.0, 1.0)})
    assert all(torch.equal(proposal(opt, DUE[0], seed), proposal(opt, DUE[0] + 1, seed)) for seed in range(3))


def test_global_step_stands_in_where_no_leap_may_be_taken() -> None:
    opt = told(FLOATS)
    model, good = opt._modelling.surrogate.model, opt._modelling.best_points(1)
    no_point = torch.empty(0, 3, dtype=torch.float64)

    def leapt(usable: Callable[[torch.Tensor], torch.Tensor]) -> bool:
        rng = np.random.default_rng(0)
        with torch.no_grad():
            return proposing.choose(model, opt.domain, UCB(1.0), UCB(1.0), good, rng, no_point, usable)[1]

    assert leapt(lambda X: torch.ones(len(X), dtype=torch.bool))
    assert not leapt(lambda X: torch.zeros(len(X), dtype=torch.bool))
