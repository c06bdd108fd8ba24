"""What a copy of a log cannot hold, and `load` takes again: objects, kernels, tables, constraints."""

import dataclasses
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import pandas as pd
import pytest
import torch

import bkbopt as bo
from bkbopt.confidence import Batch, ScheduleContext
from bkbopt.errors import ArgumentError
from tests.optimizer.logs_to_save import BOX, CASES, POOL, advance
from tests.sweeps import sweep

WORDS = ["ant", "bee", "cat", "antelope", "beetle", "catfish", "ape", "bat", "cow", "eel", "elk", "dog"]
TABLE = pd.DataFrame({"dose": POOL[:, 0], "steps": np.arange(120) % 7, "solvent": ["water", "oil", "acid"] * 40})


def overlap(A: list[str], B: list[str]) -> list[list[float]]:
    return [[len(set(a) & set(b)) / (len(set(a)) * len(set(b))) ** 0.5 for b in B] for a in A]


def words() -> bo.Optimizer:
    return bo.Optimizer(WORDS, seed=1, n_startup_trials=4, surrogate=bo.BKB(kernel=overlap, noise=0.05))


def test_objects_and_their_kernel_are_given_again(tmp_path: Path) -> None:
    opt = words()
    asked = advance(opt, 10)
    opt.save(tmp_path / "s")
    surrogate = bo.BKB(kernel=overlap, noise=0.05)
    with pytest.raises(ArgumentError, match=r"surrogate: .* the kernel that the log was made with"):
        bo.Optimizer.load(tmp_path / "s", pool=WORDS)
    with pytest.raises(ArgumentError, match=r"pool: .* pass pool="):
        bo.Optimizer.load(tmp_path / "s", surrogate=surrogate)
    with pytest.raises(ArgumentError, match="pool: expected the 12 distinct objects"):
        bo.Optimizer.load(tmp_path / "s", pool=WORDS[:5], surrogate=surrogate)
    again = bo.Optimizer.load(tmp_path / "s", pool=WORDS, surrogate=surrogate)
    assert asked + advance(again, 10) == advance(words(), 20)


def test_objects_that_came_and_went_are_given_in_order_of_appearance(tmp_path: Path) -> None:
    a, b = words(), words()
    for opt in (a, b):
        advance(opt, 6)
        opt.set_pool([*WORDS[4:], "emu", "asp"])
        advance(opt, 2)
    a.save(tmp_path / "s")
    again = bo.Optimizer.load(tmp_path / "s", pool=[*WORDS, "emu", "asp"], surrogate=bo.BKB(kernel=overlap, noise=0.05))
    assert again.trials == a.trials
    assert advance(again, 8) == advance(b, 8)


def test_a_data_frame_with_more_columns_than_the_features_is_given_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"remark": [None, "late"] * 20, "u": rng.random(40), "name": range(40), "v": rng.random(40)})
    opt = bo.Optimizer(bo.Pool(frame, id_column="name", columns=["u", "v"]), storage=tmp_path / "log.db", seed=0)
    opt.tell_rows([3, 9], [1.0, 0.0])
    again = bo.Optimizer.load(tmp_path / "log.db", pool=frame)
    assert (again.trials, again.trials[0].label) == (opt.trials, 3)
    assert again.ask().params == opt.ask().params
    with pytest.raises(ArgumentError, match="expected the 40 rows of the log, got 40 other rows"):
        bo.Optimizer.load(tmp_path / "log.db", pool=frame.iloc[::-1])


@pytest.mark.parametrize(("fit", "resample"), sweep([True, False], ["delayed", "every"]))
def test_gpytorch_kernel_is_given_again_and_keeps_what_was_fitted(fit: bool, resample: str, tmp_path: Path) -> None:
    def surrogate() -> bo.BKB:
        kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=2))
        return bo.BKB(kernel, noise=None if fit else 0.1, resample=resample)

    opt = bo.Optimizer(POOL, seed=1, n_startup_trials=4, surrogate=surrogate(), fit=fit)
    advance(opt, 7)
    opt.save(tmp_path / "s")
    with pytest.raises(ArgumentError, match="surrogate"):
        bo.Optimizer.load(tmp_path / "s")
    with pytest.raises(ArgumentError, match="expected a BKB"):
        bo.Optimizer.load(tmp_path / "s", surrogate=bo.ExactGP(gpytorch.kernels.RBFKernel()))
    again = bo.Optimizer.load(tmp_path / "s", surrogate=surrogate())
    assert advance(again, 3) == advance(opt, 3)


def test_callable_kernel_is_given_again(tmp_path: Path) -> None:
    def kernel(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.exp(-torch.cdist(A, B, compute_mode="donot_use_mm_for_euclid_dist") / 0.5)

    def fresh() -> bo.Optimizer:
        return bo.Optimizer(POOL, seed=1, n_startup_trials=4, surrogate=bo.ExactGP(kernel))

    opt = fresh()
    asked = advance(opt, 10)
    opt.save(tmp_path / "s")
    again = bo.Optimizer.load(tmp_path / "s", surrogate=bo.ExactGP(kernel))
    assert asked + advance(again, 6) == advance(fresh(), 16)


def test_data_frame_is_given_again(tmp_path: Path) -> None:
    opt = bo.Optimizer(TABLE, seed=1, n_startup_trials=4)
    advance(opt, 10)
    opt.save(tmp_path / "s")
    with pytest.raises(ArgumentError, match=r"pool: .* pass pool="):
        bo.Optimizer.load(tmp_path / "s")
    with pytest.raises(ArgumentError, match="columns"):
        bo.Optimizer.load(tmp_path / "s", pool=TABLE[["dose"]])
    with pytest.raises(ArgumentError, match="columns"):
        bo.Optimizer.load(tmp_path / "s", pool=POOL)
    assert advance(bo.Optimizer.load(tmp_path / "s", pool=TABLE), 6) == advance(opt, 6)


@pytest.mark.parametrize("pool", [pytest.param(POOL, marks=pytest.mark.slow), TABLE], ids=["array", "frame"])
def test_pool_that_changed_keeps_the_encoding_of_the_first(pool: Any, tmp_path: Path) -> None:
    a, b = (bo.Optimizer(pool, seed=1, n_startup_trials=4) for _ in range(2))
    for opt in (a, b):
        advance(opt, 8)
        opt.set_pool(pool[40:80])  # of a smaller range, and with other first categories
        advance(opt, 2)
    a.save(tmp_path / "s")
    again = bo.Optimizer.load(tmp_path / "s", pool=None if isinstance(pool, np.ndarray) else pool[40:80])
    assert again.recommend() == a.recommend()
    assert advance(again, 6) == advance(b, 6)


@pytest.mark.parametrize("name", ["mixed", "grid", "pool"])
def test_constraint_is_given_again(name: str, tmp_path: Path) -> None:
    def feasible(params: Any) -> bool:
        return float(next(iter(params.values()))) * 7.3 % 1.0 > 0.4

    space, options = CASES[name]
    opt = bo.Optimizer(space, seed=2, n_startup_trials=4, feasible=feasible, **options)
    advance(opt, 8)
    opt.save(tmp_path / "s")
    assert advance(bo.Optimizer.load(tmp_path / "s", feasible=feasible), 4) == advance(opt, 4)


@dataclasses.dataclass(frozen=True)
class Narrow:
    """A schedule of the user's own."""

    beta: float = 0.5

    def __call__(self, context: ScheduleContext) -> float:
        return self.beta


@pytest.mark.parametrize("beta", [Narrow(), lambda context: 0.5, Batch(Narrow())])
def test_own_schedule_of_beta_is_given_again(beta: Any, tmp_path: Path) -> None:
    opt = bo.Optimizer(BOX, seed=1, n_startup_trials=4, beta=beta)
    advance(opt, 7)
    opt.save(tmp_path / "s")
    with pytest.raises(ArgumentError, match=r"beta: expected the schedule of yours .*; pass beta="):
        bo.Optimizer.load(tmp_path / "s")
    assert advance(bo.Optimizer.load(tmp_path / "s", beta=beta), 4) == advance(opt, 4)


@pytest.mark.parametrize("beta", [float("nan"), float("inf"), -5.0])
def test_number_of_an_own_schedule_is_checked(beta: float) -> None:
    opt = bo.Optimizer(BOX, seed=1, n_startup_trials=1, beta=Narrow(beta))
    for x in (0.2, 0.7):
        opt.tell({"x": x, "rate": 0.1}, x)
    with pytest.raises(ArgumentError, match="beta: expected a finite number >= 0 from the schedule"):
        opt.ask()
    with pytest.raises(ArgumentError, match="beta: expected a finite number >= 0 from the schedule"):
        _ = opt.beta
    assert len(opt.trials) == 2
